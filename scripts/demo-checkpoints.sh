#!/usr/bin/env bash
# Checkpoints on the nodes' own disks, for people: an ordinary MPI program runs on six of eight nodes; two of the six are lost while it runs, with all
# that lies on them. It is started again on those that live and the two spare ones, finds its newest whole checkpoint, and ends with the same bits.
# So it does with one file that all ranks write together.
#
#   scripts/demo-checkpoints.sh [BUILD] [MPI...]     MPI: openmpi, mpich; all that were built otherwise
#
# The nodes are agents and directories of this machine. Everything happens in a temporary directory that is removed at the end. Fails if anything is not
# as promised.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/demo-common.sh"

run_case() {
  local program=$1 steps=(100 10 64 50000) # steps, one checkpoint for every ten, rows of each rank, a pause in microseconds
  headline "$mpi: the program by itself"
  mkdir native
  (cd native && show $launcher "$program" "${steps[@]:0:3}") | tee native.log
  [[ -s native/ck/ck.100.0 ]] || fail "the program wrote no checkpoints"

  headline "$mpi: under Holdfast; once checkpoint 30 is whole nodes n1 and n4 are lost"
  show "$holdfast" run --simulate-nodes 8 --simulate-loss 1,4@30 --protect rs:4+2 --checkpoint 'ck/ck.{step}.{rank}' --restarts 1 -- \
    $launcher "$program" "${steps[@]}" | tee job.log
  grep -q 'node n4 is lost now' job.log || fail "no node was lost"
  grep -q 'attempt 2 begins with checkpoint' job.log || fail "the job was not started again"
  local native protected
  native=$(sed -n 's/^ *checksum //p' native.log) protected=$(sed -n 's/^ *checksum //p' job.log)
  [[ -n $native && $native == "$protected" ]] || fail "the results differ: $native by itself, $protected under Holdfast"
  say "the same bits: checksum $protected"

  headline "$mpi: what the job can be restarted from"
  show "$holdfast" checkpoints
  show "$holdfast" checkpoints --verify | tail -3
  show "$holdfast" agents status | head -9 || true

  headline "$mpi: gone on with later, for fifty steps more"
  show "$holdfast" run --resume --simulate-nodes 8 --protect rs:4+2 --checkpoint 'ck/ck.{step}.{rank}' -- $launcher "$program" 150 10 64 | tee resumed.log
  grep -q 'begins after step 100' resumed.log || fail "the job did not go on from checkpoint 100"

  headline "$mpi: the last checkpoint is plain at its own paths, with the bits of the program by itself"
  show ls -l ck
  for ((rank = 0; rank < ranks; ++rank)); do cmp "native/ck/ck.100.$rank" "ck/ck.100.$rank" || fail "ck/ck.100.$rank differs"; done
  [[ -s ck/ck.150.0 ]] || fail "checkpoint 150 was not drained"

  headline "$mpi: the same with one file of all ranks"
  "$holdfast" agents stop >/dev/null 2>&1 || true
  mkdir -p shared/native
  cd shared
  (cd native && $launcher "$program" "${steps[@]:0:3}" 0 shared >/dev/null)
  show "$holdfast" run --simulate-nodes 8 --simulate-loss 1,4@30 --protect rs:4+2 --checkpoint 'ck/ck.{step}' --restarts 1 -- \
    $launcher "$program" "${steps[@]}" shared | tee job.log
  grep -q 'attempt 2 begins with checkpoint' job.log || fail "the job was not started again"
  protected=$(sed -n 's/^ *checksum //p' job.log)
  [[ $native == "$protected" ]] || fail "the results differ: $native by itself, $protected under Holdfast"
  show "$holdfast" checkpoints
  cmp native/ck/ck.100 ck/ck.100 || fail "ck/ck.100 differs"
  say "the same bits: checksum $protected"
  "$holdfast" agents stop >/dev/null 2>&1 || true
}

choose_cases '' jacobi_checkpoint
for mpi in "${cases[@]}"; do
  choose_launcher "$mpi" 6 --bind-to none
  in_own_directory "$mpi" jacobi_checkpoint run_case
done
headline "All as promised: ${cases[*]}"
