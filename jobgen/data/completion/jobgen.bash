# bash completion of jobgen, printed by `jobgen completion bash`.

_jobgen() {
    local sort text help files= IFS=$'\n'
    COMPREPLY=()
    while IFS=$'\t' read -r sort text help; do
        case $sort in
        word | part)
            COMPREPLY+=("$(printf %q "$text")")
            [[ $sort == part ]] && compopt -o nospace 2>/dev/null
            ;;
        file) files=-f ;;
        folder) files=-d ;;
        esac
    done < <(_JOBGEN_COMPLETE=bash command jobgen "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
    if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then
        # bash finds and quotes file names itself.
        if [[ $files == -d ]]; then compopt -o dirnames 2>/dev/null; else compopt -o default 2>/dev/null; fi
    elif [[ $files ]]; then
        COMPREPLY+=($(compgen "$files" -- "${COMP_WORDS[COMP_CWORD]}"))
        compopt -o filenames 2>/dev/null
    fi
}

# Versions before 4.4 sort candidates, and those before 4.0 complete file names everywhere.
complete -o nosort -F _jobgen jobgen 2>/dev/null || complete -o default -F _jobgen jobgen
