#!/bin/sh
# Measures Holdfast against the same programs running natively; writes docs/benchmarks.md and its plots.
# Usage: bench/run.sh [BUILD] [--quick] [--only GROUP,...] [--list]   (PEERS=1 adds GlusterFS's own redundancy)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=build
case "${1:-}" in ''|-*) ;; *) build=$1; shift ;; esac
python=/usr/bin/python3
[ -x "$python" ] || python=python3
exec "$python" -B "$here/bench.py" --build "$build" "$@"
