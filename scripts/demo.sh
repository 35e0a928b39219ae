#!/usr/bin/env bash
# The main job, for people: an ordinary MPI program keeps its file through the loss of two of six storage targets.
#
#   scripts/demo.sh [BUILD] [CASE...]     CASE: c-mpich, c-openmpi, fortran-mpich, fortran-openmpi; all that were built otherwise
#
# Everything happens in a temporary directory that is removed at the end. Fails if anything is not as promised.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/demo-common.sh"

nx=1024 ny=1024 every=2  # 8 MiB a frame

# Waits until the running job has written some frames; then two targets go.
take_two_targets_away() {
  local tries=0
  while (($(du -sk t0 | cut -f1) < 4 * 1024)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended before any data reached its targets"
    ((++tries < 600)) || fail "no data reached the targets within a minute"
    sleep 0.1
  done
  mv t1 t1.unplugged
  rm -rf t4
  kill -0 "$job" 2>/dev/null || fail "the job had ended before the targets were taken away"
  say "... the job is running; now: mv t1 t1.unplugged; rm -rf t4"
}

run_case() {
  local name=$case program=$1
  mkdir t0 t1 t2 t3 t4 t5 n1 n4
  local targets=$PWD/t0,$PWD/t1,$PWD/t2,$PWD/t3,$PWD/t4,$PWD/t5
  headline "$name: the program by itself, then restarted from its own file"
  show $launcher "$program" native.heat $nx $ny 20 $every
  cp native.heat native-first.heat
  show $launcher "$program" native.heat $nx $ny 4 $every --restart

  headline "$name: the same program under Holdfast, rs:4+2 on six targets; two of them go while it runs"
  printf ' $ holdfast run --protect rs:4+2 --targets t0,t1,t2,t3,t4,t5 -- mpirun -n 4 %s out.heat ...\n' "${program##*/}"
  "$holdfast" run --protect rs:4+2 --targets "$targets" -- \
    $launcher "$program" out.heat $nx $ny 20 $every --pause-ms 200 >job.log 2>&1 &
  job=$!
  take_two_targets_away
  local code=0
  wait "$job" || code=$?
  job=0
  sed 's/^/   /' job.log
  ((code == 0)) || fail "the job ended with exit code $code although only two targets were lost"

  headline "$name: what it wrote, without the two targets"
  show "$holdfast" export out.heat exported.heat
  same native-first.heat exported.heat
  show_code 1 "$holdfast" status out.heat

  headline "$name: restarted by its own read-back, still without the two targets"
  show "$holdfast" run --protect rs:4+2 --targets "$targets" -- $launcher "$program" out.heat $nx $ny 4 $every --restart
  show "$holdfast" export out.heat exported-restarted.heat
  same native.heat exported-restarted.heat

  headline "$name: repaired onto two new targets"
  show_code 0 "$holdfast" repair out.heat --replace "$PWD/t1=$PWD/n1" --replace "$PWD/t4=$PWD/n4"
  show_code 0 "$holdfast" status out.heat
  show_code 0 "$holdfast" verify out.heat
  show "$holdfast" export out.heat exported-repaired.heat
  same native.heat exported-repaired.heat
}

choose_cases c- heat fortran- heat_f
for case in "${cases[@]}"; do
  mpi=${case#*-} example=heat
  [[ $case == fortran-* ]] && example=heat_f
  choose_launcher "$mpi" 4 --bind-to none
  in_own_directory "$mpi" "$example" run_case
done
headline "All as promised: ${cases[*]}"
