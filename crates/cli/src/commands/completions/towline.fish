complete -c towline -n "__fish_seen_subcommand_from COMMANDS" -f -k -a "(towline complete goals 2>/dev/null)"
complete -c towline -n "__fish_seen_subcommand_from run" -l goal -x -a "(towline complete goals 2>/dev/null)"
complete -c towline -n "__fish_seen_subcommand_from run" -l agent -x -a "(towline complete agents 2>/dev/null)"
complete -c towline -n "__fish_seen_subcommand_from run retry" -l budget -x -a "(towline complete axes 2>/dev/null)"
