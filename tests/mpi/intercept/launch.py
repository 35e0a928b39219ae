#!/usr/bin/env python3
"""Starts a program on some ranks with the launcher that belongs to a compiler wrapper.

usage: launch.py MPICC RANKS PROGRAM [ARGUMENT...]
"""
import os
import pathlib
import subprocess
import sys

AS_ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []


def preload(library):
    """What the ranks are given beside the environment's own (tests/tools/wait_asleep.c)."""
    return ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))


def is_openmpi(mpicc):
    shown = subprocess.run([mpicc, "--showme:version"], capture_output=True, text=True)
    return shown.returncode == 0 and "Open MPI" in shown.stdout


def command(mpicc, ranks):
    """The launcher lies beside mpicc and shares its suffix (mpicc.mpich, mpiexec.mpich)."""
    path = pathlib.Path(mpicc)
    suffix = path.suffix if path.suffix in (".mpich", ".openmpi") else ""
    launcher = [str(path.with_name("mpiexec" + suffix))]
    if is_openmpi(mpicc):
        launcher += AS_ROOT + ["--oversubscribe", "--bind-to", "none"]
    return launcher + ["-n", str(ranks)]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(sys.argv[1], int(sys.argv[2])) + sys.argv[3:]).returncode)
