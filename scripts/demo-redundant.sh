#!/usr/bin/env bash
# A redundant job, for people: an ordinary MPI program runs twice side by side, one of its ranks is killed, its team comes back, a rank of the other one is
# killed, and its file is what it would have been.
#
#   scripts/demo-redundant.sh [BUILD] [MPI...]     MPI: openmpi, mpich; all that were built otherwise
#
# Everything happens in a temporary directory that is removed at the end. Fails if anything is not as promised.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/demo-common.sh"

shape=(200 300 150 5)

# The process of rank 1 of a team.
# A team's loss is no failure of the status here.
rank_1_of() { { "$holdfast" status --job || true; } | sed -n "/^team $1/,/^team $(($1 + 1))/s/^ *rank 1 *process \([0-9]*\).*/\1/p"; }

# Once the team that was started again has caught up.
wait_for_team_2() {
  local tries=0
  until [[ $("$holdfast" status --job 2>/dev/null) == *"team 2, started again, caught up"* ]]; do
    kill -0 "$job" 2>/dev/null || fail "the job ended before the lost team had caught up"
    ((++tries < 300)) || fail "the lost team has not caught up within half a minute"
    sleep 0.1
  done
}

# The process of rank 1 of team 0, once all of the job's four have come.
a_rank() {
  local tries=0
  until (($("$holdfast" status --job 2>/dev/null | grep -c '  rank') == 4)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended before its ranks had come"
    ((++tries < 300)) || fail "the ranks did not come within half a minute"
    sleep 0.1
  done
  rank_1_of 0
}

run_case() {
  local program=$1 victim code=0
  export XDG_STATE_HOME=$PWD/state  # this job is the newest in it
  headline "$mpi: the program by itself"
  show $launcher "$program" native "${shape[@]}"

  headline "$mpi: twice side by side; a rank of one team is killed, the team comes back, a rank of the other one is killed"
  printf ' $ holdfast run --replicas 2 --relaunch 1 mpirun -n %s heat out ... &\n' "$ranks"
  "$holdfast" run --replicas 2 --relaunch 1 $launcher "$program" out "${shape[@]}" --pause-ms 200 >job.log 2>&1 &
  job=$!
  victim=$(a_rank)
  show "$holdfast" status --job
  sleep 0.5
  printf ' $ kill -9 %s\n' "$victim"
  kill -KILL "$victim"
  wait_for_team_2
  show_code 1 "$holdfast" status --job
  victim=$(rank_1_of 1)
  printf ' $ kill -9 %s\n' "$victim"
  kill -KILL "$victim"
  wait "$job" || code=$?
  job=0
  sed 's/^/   /' job.log
  ((code == 0)) || fail "the job ended with exit code $code although one team was always left"

  headline "$mpi: what it wrote"
  same native out
  show_code 1 "$holdfast" status --job
}

choose_cases '' heat
for mpi in "${cases[@]}"; do
  choose_launcher "$mpi" 2
  in_own_directory "$mpi" heat run_case
done
headline "All as promised: ${cases[*]}"
