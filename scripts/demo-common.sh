# What the demonstrations share; read by demo.sh, demo-nodes.sh, demo-checkpoints.sh and demo-redundant.sh, which set build, launcher, ranks and name_of_demo.
if [[ -t 1 ]]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi
headline() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '   %s\n' "$*"; }
fail() {
  printf '\n%s: %s\n' "$name_of_demo" "$*" >&2
  exit 1
}
# Shows a command as one would type it in the demo's directory, then runs it with its output indented.
show() {
  printf ' $ %s\n' "$*" | sed "s#$build/bin/##g; s#$PWD/##g; s#$build#build#g; s#$launcher#mpirun -n $ranks#g"
  "$@" 2>&1 | sed "s#$PWD/##g; s/^/   /"
}
# The same for a command that has to end with a given exit code.
show_code() {
  local expected=$1 code=0
  shift
  show "$@" || code=$?
  ((code == expected)) || fail "'${*:1:2}' ended with exit code $code, promised is $expected"
}
# Bit for bit, or the demo has failed.
same() {
  cmp "$1" "$2" || fail "$1 and $2 differ"
  say "identical, $(stat -c %s "$1") bytes: $1 $2"
}
