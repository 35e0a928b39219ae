#!/usr/bin/env python3
"""Checkpoints that real MPI programs write, on simulated nodes: by MPI-IO, and by HDF5's serial driver.

  checkpoints_test.py --build BUILD FLAVOUR LAUNCHER...
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

RANKS = 2


class Case:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env |= {"HOLDFAST_AGENTS": os.path.join(scratch, "agents"), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.holdfast = os.path.join(options.build, "bin/holdfast")

    def program(self, *words):
        return os.path.join(self.options.build, "tests/programs", *words)

    def call(self, *words, expect=0):
        done = subprocess.run(words, cwd=self.scratch, env=self.env, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != expect:
            sys.exit(f"{' '.join(words)} ended with {done.returncode} and not with {expect}:\n{done.stdout}{done.stderr}")
        return done

    def job(self, *program, pattern="ck/ck.{step}.{rank}", options=(), launched=True, expect=0, nodes=4, scheme="rs:2+1"):
        launcher = self.options.launcher if launched else []
        return self.call(self.holdfast, "run", "--simulate-nodes", str(nodes), "--protect", scheme, "--checkpoint", pattern, "--drain", "none", "--keep", "9",
                         *options, "--", *launcher, *program, expect=expect)

    def states(self, pattern):
        listed = json.loads(self.call(self.holdfast, "checkpoints", pattern, "--json").stdout)["checkpoints"]
        return {one["step"]: (one["state"], one["files"]) for one in listed}

    def expect(self, what, found, wanted):
        if found != wanted:
            sys.exit(f"{what}: {found}, and not {wanted}")

    def mpi_io(self):
        program = self.program(self.options.flavour, "mpi_io")
        self.job(program, "write")
        self.expect("checkpoints", {step: state for step, state in self.states("ck/ck.{step}.{rank}").items() if step in (1, 2, 3)},
                    {1: ("superseded", RANKS), 2: ("whole", RANKS)})
        left = [name for name in os.listdir(self.scratch + "/ck")] if os.path.isdir(self.scratch + "/ck") else []
        self.expect("plain files", left, [])
        self.job(program, "read", options=["--resume"])

    def protected_at_close(self):
        """Each rank looks itself when its close has returned, in its node's directory."""
        look = os.path.join(self.scratch, "look")
        with open(look, "w") as file:
            file.write("#!/bin/sh\nunset LD_PRELOAD\nls -d holdfast-nodes/n*/.checkpoints/*/1.*/protected/1.$1of*\n")
        os.chmod(look, 0o755)
        done = self.job(self.program(self.options.flavour, "mpi_io"), "close", look, options=["--protect-at", "close"])
        self.expect("lines on protection", [line for line in done.stderr.splitlines() if "not protected" in line], [])
        self.expect("checkpoints", self.states("ck/ck.{step}.{rank}"), {1: ("whole", RANKS)})

    def hdf5(self):
        program = self.program("serial", "hdf5")
        if not os.path.exists(program):
            return
        pattern = "h5/ck.{step}.{rank}.h5"
        self.call(program, "native")
        self.job(program, "h5/ck.1.0", pattern=pattern, launched=False)
        self.expect("HDF5's checkpoints", self.states(pattern), {1: ("whole", 1)})
        self.call(self.holdfast, "checkpoints", pattern, "--drain", "1")
        with open(self.scratch + "/native.h5", "rb") as native, open(self.scratch + "/h5/ck.1.0.h5", "rb") as ours:
            self.expect("HDF5's bytes", ours.read() == native.read(), True)


def main(*parts):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("flavour")
    parser.add_argument("launcher", nargs="+")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    for part in parts:
        scratch = os.path.realpath(tempfile.mkdtemp(prefix="holdfast-checkpoints-"))
        case = Case(options, scratch)
        os.mkdir(scratch + "/h5")
        try:
            part(case)
        finally:
            subprocess.run([case.holdfast, "agents", "stop"], env=case.env, capture_output=True, check=False)
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(Case.mpi_io, Case.protected_at_close, Case.hdf5)
