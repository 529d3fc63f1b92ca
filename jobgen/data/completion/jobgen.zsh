#compdef jobgen
# zsh completion of jobgen, printed by `jobgen completion zsh`.

_jobgen() {
    local sort text help
    local -a files words_ parts described
    while IFS=$'\t' read -r sort text help; do
        case $sort in
        word) if [[ -n $help ]]; then described+=("${text//:/\\:}:$help"); else words_+=("$text"); fi ;;
        part) parts+=("$text") ;;
        file) files=(_files) ;;
        folder) files=(_files -/) ;;
        esac
    done < <(_JOBGEN_COMPLETE=zsh command jobgen "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)
    (( $#described )) && _describe -V 'jobgen' described
    (( $#words_ )) && compadd -V jobgen -a words_
    (( $#parts )) && compadd -V jobgen -S '' -a parts
    # Files do not begin with the name of the option.
    [[ $PREFIX == --*=* ]] && compset -P '*='
    (( $#files )) && $files
    return 0
}

if [[ $funcstack[1] == _jobgen ]]; then
    # A file in a folder of $fpath.
    _jobgen "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
    compdef _jobgen jobgen
fi
