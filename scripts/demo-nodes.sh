#!/usr/bin/env bash
# Nodes' own disks as a pool, for people: an ordinary MPI program keeps its file, which lies on six of eight nodes, through the loss of two of them. The
# nodes are agents of this machine, each with a name and a directory of its own.
#
#   scripts/demo-nodes.sh [BUILD] [MPI...]     MPI: openmpi, mpich; all that were built otherwise
#
# Everything happens in a temporary directory that is removed at the end. Fails if anything is not as promised.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/demo-common.sh"
process_of() { "$holdfast" agents status "$1" --json | sed -n 's/.*"process": \([0-9]*\).*/\1/p'; }

nx=1024 ny=1024 every=2  # 8 MiB a frame

nodes_of_file() { "$holdfast" status out.heat | sed -n 's/^ *[0-9]* *\(n[0-9]\):.*/\1/p'; }

# Waits until the running job has written some frames; then two nodes of the file go, with what they had on their disks.
take_two_nodes_away() {
  local tries=0 node
  while (($(du -sk n*.disk | cut -f1 | sort -n | tail -1) < 4 * 1024)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended before any data reached its nodes"
    ((++tries < 600)) || fail "no data reached the nodes within a minute"
    sleep 0.1
  done
  lost=$(nodes_of_file | sed -n '2p;5p')
  [[ $(wc -w <<<"$lost") == 2 ]] || fail "the nodes of the file are not known"
  for node in $lost; do
    kill -KILL "$(process_of $node)"
    rm -rf $node.disk
  done
  kill -0 "$job" 2>/dev/null || fail "the job had ended before the nodes were taken away"
  say "... the job is running; now the agents of ${lost/$'\n'/ and } are killed, and their disks wiped"
}

start_nodes() {
  local node
  for node in "$@"; do
    mkdir "$node.disk"
    show "$holdfast" agents start --node "$node" "$PWD/$node.disk"
  done
}

run_case() {
  local program=$1
  headline "$mpi: eight nodes, each with a directory of its own"
  start_nodes n1 n2 n3 n4 n5 n6 n7 n8

  headline "$mpi: the program by itself"
  show $launcher "$program" native.heat $nx $ny 20 $every

  headline "$mpi: under Holdfast, rs:4+2 on six of the nodes; two of these go while it runs"
  printf ' $ holdfast run --protect rs:4+2 --local {node}.disk --hosts n[1-8] -- mpirun -n %s heat out.heat ...\n' "$ranks"
  "$holdfast" run --protect rs:4+2 --local "$PWD/{node}.disk" --hosts 'n[1-8]' -- $launcher "$program" out.heat $nx $ny 20 $every --pause-ms 200 \
    >job.log 2>&1 &
  job=$!
  take_two_nodes_away
  local code=0
  wait "$job" || code=$?
  job=0
  sed 's/^/   /' job.log
  ((code == 0)) || fail "the job ended with exit code $code although only two nodes were lost"

  headline "$mpi: what it wrote, without the two nodes"
  show "$holdfast" export out.heat exported.heat
  same native.heat exported.heat
  show_code 1 "$holdfast" status out.heat

  headline "$mpi: repaired onto the nodes that live"
  show_code 0 "$holdfast" repair out.heat --onto-live
  show_code 0 "$holdfast" verify out.heat
  show_code 1 "$holdfast" agents status
  show "$holdfast" agents stop
}

choose_cases '' heat
for mpi in "${cases[@]}"; do
  choose_launcher "$mpi" "$([[ $mpi == mpich ]] && echo 2 || echo 4)" --bind-to none
  in_own_directory "$mpi" heat run_case
done
headline "All as promised: ${cases[*]}"
