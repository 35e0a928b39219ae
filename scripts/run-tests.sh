#!/usr/bin/env bash
# Runs all tests of a build, one suite after another, the quick ones first: scripts/run-tests.sh [BUILD]
# Ends with ctest's summary of every suite; fails if any test failed or a suite has no test.
set -uo pipefail
build=${1:-build}
if [[ ! -f $build/CTestTestfile.cmake ]]; then
  echo "run-tests: $build holds no build; run: make build" >&2
  exit 1
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

failed=0
summary=()
# Runs the tests that have a label (or, with -LE, those that have none of the labels).
suite() {
  local name=$1
  shift
  local began=$SECONDS
  echo "== $name"
  ctest --test-dir "$build" --output-on-failure --no-tests=ignore -j "$jobs" "$@" 2>&1 | tee "$logs/$name" ||
    { failed=1; }
  local line
  line=$(grep -E 'tests passed|No tests were found' "$logs/$name" | tail -1)
  # A suite may be empty: ctest then says so, or nothing at all.
  grep -q "Test  *#" "$logs/$name" || return 0
  summary+=("$(printf '%-9s %4d s  %s' "$name" $((SECONDS - began)) "${line:-no summary: ctest did not end}")")
}

# The part of the core tests that is run under a sanitizer each time, in a build of its own; `make test-asan` and `make test-tsan` run all of them.
sanitized() {
  local name=$1 flags=$2
  echo "== $name: building"
  if ! { cmake -S "$(dirname "$0")/.." -B "$build-$name" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_SANITIZE="$flags" -DHOLDFAST_SANITIZE_OPTIMIZE=-O0 &&
    cmake --build "$build-$name" -j "$jobs" --target brief_tests; } >"$logs/build-$name" 2>&1; then
    tail -40 "$logs/build-$name"
    summary+=("$(printf '%-9s the build failed' "$name")")
    failed=1
    return
  fi
  build=$build-$name suite "$name" -L '^brief$'
}

jobs=$(nproc)
suite core -L '^core$'
sanitized asan address,undefined
sanitized tsan thread
# Most of what is left waits: for starters, for other ranks, for deadlines. Together they wait beside each other, with four more than there are
# processors: one for each of the four chains of nodes, which begin first (COST). Each test says how many processors it takes (docs/testing.md).
jobs=$(($(nproc) + 4))
suite jobs -L '^(cli|programs|mpi)$'
jobs=1
suite others -LE '^(core|cli|mpi|programs|long)$'

echo
echo "== All tests"
printf '%s\n' "${summary[@]}"
# Every suite's "N% tests passed, F tests failed out of T", added up.
read -r broken total < <(cat "$logs"/* | awk '/tests passed, [0-9]+ tests failed out of/ { f += $4; t += $NF } END { print f + 0, t + 0 }')
if ((failed)); then
  grep -hE '^[[:space:]]+[0-9]+ - ' "$logs"/*
fi
if ((total == 0)); then
  echo "run-tests: not one test was found in $build" >&2
  exit 1
fi
echo "$((100 * (total - broken) / total))% tests passed, $broken tests failed out of $total"
exit $failed
