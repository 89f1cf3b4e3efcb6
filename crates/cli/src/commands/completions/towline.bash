_towline_with_values() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind=
    case "$prev" in
        --agent) kind=agents ;;
        --budget) kind=axes ;;
        --goal|--after|--continue) kind=goals ;;
        COMMANDS) [[ $COMP_CWORD -eq 2 ]] && kind=goals ;;
    esac
    if [[ -n $kind && $cur != -* ]]; then
        [[ $kind == axes ]] && compopt -o nospace
        local value values
        values="$(towline complete "$kind" 2>/dev/null)"
        COMPREPLY=( $(compgen -W "$(cut -f1 <<< "$values")" -- "$cur") )
        # A list that bash only shows has the meaning of each word, too; nothing of it is inserted.
        if [[ ${#COMPREPLY[@]} -gt 1 && $COMP_TYPE -eq 63 ]]; then
            COMPREPLY=()
            while IFS= read -r value; do COMPREPLY+=("$value"); done < <(
                awk -v cur="$cur" 'index($0, cur) == 1' <<< "$values" | tr '\t' ' '
            )
        fi
        return 0
    fi
    _towline "$@"
}
complete -F _towline_with_values -o bashdefault -o default towline
