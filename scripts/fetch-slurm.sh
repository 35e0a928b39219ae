#!/usr/bin/env bash
# Puts Slurm, as Debian packages it, into BUILD/slurm for tests/mpi/nodes/slurm_test.py: nothing is installed, and no daemon is started.
# Quick when it is there; where no archive can be reached one line says so, and its tests are left out.
#
#   scripts/fetch-slurm.sh [BUILD]
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch-common.sh"

fetch() {
  unpack .. slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 &&
    # The package's own scripts would make this link.
    ln -s slurmstepd-wlm ../usr/sbin/slurmstepd
}

fetch_into "${1:-build}/slurm" "Slurm's programs go" "the tests with Slurm"
