# fish completion of jobgen, printed by `jobgen completion fish`.

function __jobgen_complete
    set -l word (commandline -ct)
    # A quote may still be open.
    set -l plain (string unescape -- "$word"; or string unescape -- "$word\""; or string unescape -- "$word'")
    for line in (_JOBGEN_COMPLETE=fish command jobgen (commandline -opc) "$plain" 2>/dev/null </dev/null)
        set -l parts (string split \t -- $line)
        switch $parts[1]
            case word part
                printf '%s\t%s\n' $parts[2] "$parts[3]"
            case file
                __jobgen_complete_path "$word" '.*'
            case folder
                __jobgen_complete_path "$word" '.*/'
        end
    end
end

function __jobgen_complete_path -a word pattern
    set -l lead (string match -r -- '^--[^=]*=' "$word")
    set -l path (string replace -r -- '^--[^=]*=' '' "$word")
    # fish completes paths after a command that it does not know, and reads quotes and escapes in them itself.
    for found in (complete -C "__jobgen_no_command $path" | string replace -r -- '\t.*' '' | string match -r -- "^$pattern\$")
        printf '%s\n' "$lead$found"
    end
end

complete -c jobgen -f -k -a '(__jobgen_complete)'
