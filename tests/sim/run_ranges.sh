#!/usr/bin/env bash
# Runs many schedules of the simulator's openers: tests/sim/run_ranges.sh FIRST COUNT [RESULTS]
# SIM_FAMILY='Checkpoints.of_*' runs those of checkpoints, or another family of openers (docs/testing.md).
# In ranges of a thousand seeds, as many side by side as there are processors. Each leaves its numbers below the directory RESULTS
# (build/sim-results), where a run that was broken off goes on; at the end they are added up. Fails if any schedule has.
set -uo pipefail
if [[ ! ${1:-} =~ ^[0-9]+$ || ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: tests/sim/run_ranges.sh FIRST COUNT [RESULTS], for example: tests/sim/run_ranges.sh 1 1000000" >&2
  exit 2
fi
first=$1 count=$2 results=${3:-build/sim-results}
program=${SIM_TEST:-build/bin/sim_test}
if [[ ! -x $program ]]; then
  echo "run_ranges: there is no $program; run: make build" >&2
  exit 2
fi
# Results are of one program: another one, in another directory, begins anew.
results=$results/$(sha256sum "$program" | cut -c1-12)${SIM_FAMILY:+-${SIM_FAMILY//[^a-z_]/}}
mkdir -p "$results"

range() {  # PROGRAM RESULTS FIRST COUNT
  local file=$2/$3-$4
  [[ -s $file ]] && return
  SIM_SEED=$3 SIM_SCHEDULES=$4 SIM_FAILURES=1000000 SIM_RESULT=$file.part "$1" --gtest_filter="${SIM_FAMILY:-Openers.of_*}" >"$file.log" 2>&1
  if [[ -s $file.part ]]; then
    mv "$file.part" "$file"
    grep -q '^0 failures' "$file" && rm "$file.log"
  else
    echo "run_ranges: seeds $3 to $(($3 + $4 - 1)) did not get to their end: $file.log" >&2
  fi
}
export -f range

ranges=()
for ((at = first; at < first + count; at += 1000)); do
  size=$((first + count - at))
  ranges+=("$at-$((size < 1000 ? size : 1000))")
done
printf '%s\n' "${ranges[@]}" | xargs -P "$(nproc)" -I{} bash -c 'n={}; range "$0" "$1" "${n%-*}" "${n#*-}"' "$program" "$results"

missing=0
files=()
for n in "${ranges[@]}"; do
  if [[ -s $results/$n ]]; then files+=("$results/$n"); else missing=$((missing + 1)); fi
done
((${#files[@]})) && awk '{ n = $1; $1 = ""; if (!($0 in sum)) order[++k] = $0; sum[$0] += n }
  END { for (i = 1; i <= k; ++i) printf "%12d%s\n", sum[order[i]], order[i] }' "${files[@]}"
grep -h '^Replay:' "$results"/*.log 2>/dev/null | head -20
((missing)) && echo "run_ranges: $missing of ${#ranges[@]} ranges did not get to their end" >&2
failed=0
for file in "${files[@]}"; do grep -q '^0 failures' "$file" || failed=1; done
((missing == 0 && failed == 0))
