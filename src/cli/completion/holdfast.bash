# bash completion for holdfast. The command itself says what may follow; see `holdfast completion --help`.

_holdfast() {
  # bash parts words at ':' and '=' as well; here they are as the command will see them, `starts` says where each begins.
  local words=() starts=() line=${COMP_LINE:0:COMP_POINT} blanks part i
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    blanks=${line%%[![:space:]]*}
    line=${line#"$blanks"}
    part=${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then part=$line; fi
    line=${line#"$part"}
    if ((i == 0)) || [[ -n $blanks || ${#words[@]} -eq 0 ]]; then
      words+=("$part") starts+=("$i")
    else
      words[-1]+=$part
    fi
  done

  # What readline will replace begins behind the last character at which it parts words.
  local word=${words[-1]} breaks="" kept
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
  kept=${breaks:+${word%"${word##*["$breaks"]}"}}

  local answer command=${1/#\~/$HOME} before
  COMPREPLY=()
  while IFS= read -r answer; do
    case $answer in
      :files) ;; # readline's own, by `-o default`
      :directories)
        before=${word%"${word##*[,=]}"}
        while IFS= read -r part; do
          part=$before$part
          COMPREPLY+=("${part#"$kept"}")
        done < <(compgen -d -- "${word#"$before"}")
        compopt -o filenames -o nospace 2>/dev/null
        ;;
      :program*)
        i=${starts[${answer#:program } + 1]}
        if ((i == COMP_CWORD)); then
          while IFS= read -r part; do COMPREPLY+=("$part"); done < <(compgen -c -- "$word")
        elif declare -F _command_offset >/dev/null; then
          _command_offset "$i"
        fi
        ;;
      *)
        part=${answer%%$'\t'*}
        COMPREPLY+=("${part#"$kept"}")
        ;;
    esac
  done < <("$command" __complete "${words[@]:1}" 2>/dev/null)
}

complete -o bashdefault -o default -F _holdfast holdfast
