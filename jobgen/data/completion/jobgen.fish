# fish completion of jobgen, printed by `jobgen completion fish`.

function __jobgen_complete
    set -l word (commandline -ct)
    for line in (_JOBGEN_COMPLETE=fish command jobgen (commandline -opc) (string unescape -- "$word") 2>/dev/null </dev/null)
        set -l parts (string split \t -- $line)
        set -l lead (string match -r -- '^--[^=]*=' "$word")
        set -l path (string replace -r -- '^--[^=]*=' '' "$word")
        switch $parts[1]
            case word part
                printf '%s\t%s\n' $parts[2] "$parts[3]"
            case file
                printf '%s\n' "$lead"(__fish_complete_path "$path")
            case folder
                printf '%s\n' "$lead"(__fish_complete_directories "$path")
        end
    end
end

complete -c jobgen -f -k -a '(__jobgen_complete)'
