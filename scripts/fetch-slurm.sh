#!/usr/bin/env bash
# Puts Slurm, as Debian packages it, into BUILD/slurm for tests/mpi/nodes/slurm_test.py: nothing is installed, and no daemon is started.
# Quick when it is there; where no archive can be reached one line says so, and its tests are left out.
#
#   scripts/fetch-slurm.sh [BUILD]
set -uo pipefail
place=${1:-build}/slurm
# The mark is written last: what was interrupted has none and is fetched anew.
[[ -e $place/.complete ]] && exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "fetch-slurm: this is not a Debian system; the tests with Slurm are left out" >&2
  exit 0
fi

fetch() {
  rm -rf "$place" && mkdir -p "$place/packages" && cd "$place/packages" &&
    apt-get -o APT::Sandbox::User=root download slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 &&
    for package in *.deb; do
      dpkg-deb -x "$package" .. || return 1
    done &&
    # The package's own scripts would make this link.
    ln -s slurmstepd-wlm ../usr/sbin/slurmstepd && cd .. && rm -rf packages
}

echo "fetch-slurm: Slurm's programs go to $place"
mkdir -p "$(dirname "$place")"
log=$(mktemp)
if (fetch) >"$log" 2>&1; then
  touch "$place/.complete"
else
  rm -rf "$place"
  echo "fetch-slurm: could not be had, so the tests with Slurm are left out: $(tail -1 "$log")" >&2
fi
rm -f "$log"
