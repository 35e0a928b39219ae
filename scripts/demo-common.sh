# What the demonstrations share; read by demo.sh, demo-nodes.sh, demo-checkpoints.sh and demo-redundant.sh, each with the words it was called with.
# Sets: build, holdfast, scratch (removed at the end, as is a running `job`, and agents that were started), cases (what the words name).
name_of_demo=$(basename "$0" .sh)
build=$(cd "${1:-build}" && pwd)
shift || true
cases=("$@")
holdfast=$build/bin/holdfast
scratch=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-demo.XXXXXX")
export HOLDFAST_AGENTS=$scratch/agents
job=0
clean_up() {
  if ((job)) && kill -0 "$job" 2>/dev/null; then
    kill -TERM "$job" && wait "$job" 2>/dev/null
  fi
  if [[ -d $HOLDFAST_AGENTS ]]; then "$holdfast" agents stop >/dev/null 2>&1 || true; fi
  rm -rf "$scratch"
}
trap clean_up EXIT

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
# Where no case was named: for each MPI those whose example was built. Takes pairs of a case's beginning and an example: c- heat.
choose_cases() {
  local mpi i pairs=("$@")
  [[ -x $holdfast ]] || fail "$holdfast is not there; run: make build"
  if ((${#cases[@]} == 0)); then
    for mpi in openmpi mpich; do
      for ((i = 0; i < $#; i += 2)); do
        if [[ -x $build/examples/$mpi/${pairs[i + 1]} ]]; then cases+=("${pairs[i]}$mpi"); fi
      done
    done
  fi
  ((${#cases[@]})) || fail "no example program was built: install mpich or openmpi-bin with their development packages, then run: make build"
}
# Sets ranks and launcher for RANKS processes of MPI; further words are Open MPI's.
choose_launcher() {
  local mpi=$1
  ranks=$2
  shift 2
  launcher="mpirun.openmpi --oversubscribe${*:+ $*} -n $ranks"
  ((EUID)) || launcher="mpirun.openmpi --allow-run-as-root --oversubscribe${*:+ $*} -n $ranks"
  if [[ $mpi == mpich ]]; then launcher="mpirun.mpich -n $ranks"; fi
}
# Runs a function with the path of the example PROGRAM of MPI, in a directory of its own.
in_own_directory() {
  local mpi=$1 program=$build/examples/$1/$2 run=$3
  [[ -x $program ]] || fail "$program was not built"
  mkdir "$scratch/$mpi"
  cd "$scratch/$mpi"
  "$run" "$program"
  cd "$scratch"
  rm -rf "${scratch:?}/$mpi"
}
