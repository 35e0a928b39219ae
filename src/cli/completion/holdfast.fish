# fish completion for holdfast. The command itself says what may follow; see `holdfast completion --help`.

function __holdfast_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for answer in ($words[1] __complete $words[2..] "$word" 2>/dev/null)
        switch $answer
            case :files
                set -l before (string match -r -- '^--[^=]*=' $word)
                set -l behind (string sub -s (math (string length -- "$before") + 1) -- "$word")
                string replace -r -- '^' "$before" (__fish_complete_path $behind)
            case :directories
                set -l before (string match -r -- '^.*[,=]' $word)
                set -l behind (string sub -s (math (string length -- "$before") + 1) -- "$word")
                string replace -r -- '^' "$before" (__fish_complete_directories $behind)
            case ':program *'
                set -l first (math (string replace ':program ' '' -- $answer) + 2)
                set -l line (string escape -- $words[$first..] | string join ' ')
                complete --do-complete "$line $word"
            case '*'
                echo $answer
        end
    end
end

complete -c holdfast -f -a '(__holdfast_complete)'
