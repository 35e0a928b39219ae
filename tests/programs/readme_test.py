#!/usr/bin/env python3
"""Runs the commands of README.md: every block marked `sh run`, in order, in one directory; `sh make` has to name make targets."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(kind):
    text = open(os.path.join(ROOT, "README.md"), encoding="utf-8").read()
    return [line for block in re.findall(rf"^```sh {kind}\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]


def as_script(lines):
    script = ["set -eu"]
    for line in lines:
        command, _, code = line.partition("# exit code")
        command = command.split("  #")[0].strip()
        # Nothing stands in for a command that fails: its line is named.
        wanted = code.strip() or "0"
        script.append(f"code=0; {command} || code=$?")
        script.append(f"[ $code = {wanted} ] || {{ echo 'README: exit code '$code' instead of {wanted}: {command}'; exit 1; }}")
    return "\n".join(script)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    mpi = "openmpi" if shutil.which("mpirun.openmpi") else "mpich"
    if not shutil.which(f"mpicc.{mpi}"):
        print("skipped: no MPI of Debian's is installed")
        return 77

    for line in blocks("make"):
        if subprocess.run(["make", "-n", "-C", ROOT, *line.split()[1:]], stdout=subprocess.DEVNULL).returncode:
            print(f"README: the Makefile cannot do: {line}")
            return 1
    lines = blocks("run")
    if len(lines) < 10:
        print(f"README: only {len(lines)} commands are marked to be run")
        return 1
    with tempfile.TemporaryDirectory(prefix="holdfast-readme-") as scratch:
        tools = os.path.join(scratch, "tools")
        work = os.path.join(scratch, "work")
        os.mkdir(tools)
        os.mkdir(work)
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(work, "examples"))
        for name in ("mpicc", "mpirun"):  # the same MPI for both, whatever the machine's default is
            os.symlink(shutil.which(f"{name}.{mpi}"), os.path.join(tools, f"{name}.{mpi}"))
            with open(os.path.join(tools, name), "w", encoding="utf-8") as shim:
                shim.write(f'#!/bin/sh\nexec {name}.{mpi} "$@"\n')
            os.chmod(os.path.join(tools, name), 0o755)
        environment = {
            **os.environ,
            "PATH": f"{tools}:{build}/bin:{os.environ['PATH']}",
            # What a laptop needs to start four ranks, possibly as root, under Open MPI.
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
        }
        try:
            return subprocess.run(["bash", "-c", as_script(lines)], cwd=work, env=environment, timeout=240,
                                  stdin=subprocess.DEVNULL).returncode
        except subprocess.TimeoutExpired:
            print("README: its commands did not end within 240 s")
            return 1


if __name__ == "__main__":
    sys.exit(main())
