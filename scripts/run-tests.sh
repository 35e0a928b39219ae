#!/usr/bin/env bash
# Runs all tests of a build: scripts/run-tests.sh [BUILD]
# Suites that wait come one after another. Beside them, with what they leave of the processors, runs what only computes.
# Ends with ctest's summary of every suite; fails if any test failed or a suite has no test.
set -uo pipefail
here=$(dirname "$0")
build=${1:-build}
if [[ ! -f $build/CTestTestfile.cmake ]]; then
  echo "run-tests: $build holds no build; run: make build" >&2
  exit 1
fi
build=$(cd "$build" && pwd)
# What each suite and build has said is kept there, its line of the summary, and a file `failed` where one has failed. The other lane has it from the first.
lane=${2:-}
if [[ $lane ]]; then
  logs=$3
else
  logs=$(mktemp -d)
  mkdir "$logs/said" "$logs/lines" "$logs/beside"
fi

# What a suite is run by, where there is something.
within=()
# Small protected files wait for the disk half of their time. In a view of its own of the file systems a suite has its temporary files in memory,
# where this may be had and there is room. Core tests stay on the disk, and so do all where TMPDIR says where, or HOLDFAST_TESTS_ON_DISK is set.
in_memory() {
  local available
  available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  [[ -z ${TMPDIR:-}${HOLDFAST_TESTS_ON_DISK:-} && $available -ge 12 ]] || return 0
  memory=$(mktemp -d /tmp/hfXXXX)
  within=(unshare --mount --propagation private sh -c "mount -t tmpfs -o size=8g holdfast-tests $memory && TMPDIR=$memory exec \"\$@\"" in-memory)
  "${within[@]}" true 2>/dev/null || within=()
}

# Runs the tests that have a label (or, with -LE, those that have none of the labels).
suite() {
  local name=$1
  shift
  local began=$SECONDS
  echo "== $name"
  "${within[@]}" ctest --test-dir "$tests" --output-on-failure --no-tests=ignore -j "$jobs" "$@" 2>&1 | tee "$logs/said/$name" ||
    touch "$logs/failed"
  local line
  line=$(grep -E 'tests passed|No tests were found' "$logs/said/$name" | tail -1)
  # A suite may be empty: ctest then says so, or nothing at all.
  grep -q "Test  *#" "$logs/said/$name" || return 0
  printf '%-9s %4d s  %s\n' "$name" $((SECONDS - began)) "${line:-no summary: ctest did not end}" >"$logs/lines/$name"
}

# Builds the part of the core tests that is run under a sanitizer each time; `make test-asan` and `make test-tsan` run all of them.
build_sanitized() {
  local name=$1 flags=$2
  if ! { cmake -S "$here/.." -B "$build-$name" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_SANITIZE="$flags" -DHOLDFAST_SANITIZE_OPTIMIZE=-O0 &&
    cmake --build "$build-$name" -j "$jobs" --target brief_tests; } >"$logs/build-$name" 2>&1; then
    tail -40 "$logs/build-$name"
    printf '%-9s the build failed\n' "$name" >"$logs/lines/$name"
    touch "$logs/failed"
  fi
}

# The tests of a build under a sanitizer, which look at clocks: not in the other lane.
sanitized() {
  [[ ! -f $logs/lines/$1 ]] || return 0
  tests=$build-$1 suite "$1" -L '^brief$'
}

jobs=$(nproc)
if [[ $lane == beside ]]; then
  # A scheduling group of its own, where there are such groups: it counts as little as each of its processes does.
  echo 19 2>/dev/null >/proc/self/autogroup || true
  # A directory of its own, for two ctests must not keep their books in one.
  tests=$logs/beside
  echo "subdirs(\"$build\")" >"$tests/CTestTestfile.cmake"
  build_sanitized asan address,undefined
  build_sanitized tsan thread
  touch "$logs/built"
  suite simulated -L '^simulated$'
  suite mutants -L '^mutants$'
  exit 0
fi

setsid nice -n 19 "$0" "$build" beside "$logs" </dev/null >"$logs/beside/said" 2>&1 &
beside=$!
clean_up() {
  kill -- "-$beside" 2>/dev/null && wait "$beside" # all of its processes, where it has not ended
  rm -rf "$logs"
  [[ -z $memory ]] || rmdir "$memory"
}
memory=
trap clean_up EXIT

tests=$build
suite core -L '^core$' -LE '^simulated$'
# Most of what is left waits: for starters, for other ranks, for deadlines. One computes for a fifth of its time. Together they wait beside each other, with six
# more than there are processors, or four where none waits for a disk: four chains of nodes begin first (COST), beside the longest ones. Each test says how many
# it takes (docs/testing.md).
in_memory
jobs=$(($(nproc) + (${#within[@]} > 0 ? 4 : 6)))
suite jobs -L '^(cli|programs|mpi)$'
within=()
jobs=1
suite others -LE '^(core|cli|mpi|programs|mutants|long)$'

# The other lane goes on beside these.
while [[ ! -e $logs/built ]] && kill -0 "$beside" 2>/dev/null; do sleep 0.2; done
jobs=$(nproc)
sanitized asan >"$logs/asan" 2>&1 & # beside each other, for they wait more than they compute
other=$!
sanitized tsan
wait "$other"
cat "$logs/asan"
wait "$beside" || touch "$logs/failed"
cat "$logs/beside/said"

echo
echo "== All tests"
cat "$logs"/lines/*
# Every suite's "N% tests passed, F tests failed out of T", added up.
read -r broken total < <(cat "$logs"/said/* | awk '/tests passed, [0-9]+ tests failed out of/ { f += $4; t += $NF } END { print f + 0, t + 0 }')
if [[ -f $logs/failed ]]; then
  grep -hE '^[[:space:]]+[0-9]+ - ' "$logs"/said/*
fi
if ((total == 0)); then
  echo "run-tests: not one test was found in $build" >&2
  exit 1
fi
echo "$((100 * (total - broken) / total))% tests passed, $broken tests failed out of $total"
[[ ! -f $logs/failed ]]
