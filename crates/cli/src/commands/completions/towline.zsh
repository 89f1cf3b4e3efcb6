
_towline_values() {
    local -a values
    values=("${(@f)$(_call_program values towline complete $1 2>/dev/null | sed 's/:/\\:/g; s/\t/:/')}")
    _describe -V "$1" values "${@:2}"
}
_towline_goals() { _towline_values goals }
_towline_agents() { _towline_values agents }
_towline_axes() { _towline_values axes -S '' }
