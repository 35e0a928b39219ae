#compdef holdfast
# zsh completion for holdfast. The command itself says what may follow; see `holdfast completion --help`.

_holdfast() {
  local -a answers proposals
  local answer
  answers=("${(@f)$(_call_program proposals ${words[1]} __complete "${(@q)${(@Q)words[2,CURRENT]}}")}")
  for answer in $answers; do
    case $answer in
      :files)
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files
        return ;;
      :directories)
        compset -P '*[,=]'
        _files -/
        return ;;
      :program*)
        shift $((${answer#:program } + 1)) words
        ((CURRENT -= ${answer#:program } + 1))
        _normal
        return ;;
      *) proposals+=("${${answer%%$'\t'*}//:/\\:}:${answer#*$'\t'}") ;;
    esac
  done
  _describe -t proposals holdfast proposals
}

if [[ $funcstack[1] == _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi
