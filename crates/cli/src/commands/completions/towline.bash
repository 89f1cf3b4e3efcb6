_towline_with_values() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind=
    case "$prev" in
        --agent) kind=agents ;;
        --budget) kind=axes ;;
        --goal) kind=goals ;;
        COMMANDS) [[ $COMP_CWORD -eq 2 ]] && kind=goals ;;
    esac
    if [[ -n $kind && $cur != -* ]]; then
        [[ $kind == axes ]] && compopt -o nospace
        COMPREPLY=( $(compgen -W "$(towline complete "$kind" 2>/dev/null | cut -f1)" -- "$cur") )
        return 0
    fi
    _towline "$@"
}
complete -F _towline_with_values -o bashdefault -o default towline
