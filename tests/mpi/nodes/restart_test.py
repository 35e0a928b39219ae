#!/usr/bin/env python3
"""Checkpoints on nodes of their own (tests/tools/nodes.py): a job of four ranks on four of five nodes loses one with its disk, its agent and its rank, and is
started again by its own launcher on the three others and the spare.

    restart_test.py --build BUILD [--shared] [--once] openmpi|mpich|openmpi5|mpich5

The program is as it is (examples/jacobi_checkpoint.c); it ends with the same bits as by itself. Ends with 77 where no nodes can be made.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
NODES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "nodes.py"
sys.path.insert(0, str(NODES.parent))
from nodes import signal_all  # noqa: E402

COUNT, LOST, SPARE = 5, 3, 5
STEPS = ["120", "10", "32"]


class Test:
    """On the first node. Its temporary directory is the cluster's own."""

    def __init__(self, options):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.directory = self.root / "work"
        (self.directory / "ck").mkdir(parents=True)
        os.environ.update(HOLDFAST_AGENTS=str(self.directory / "agents"), HOLDFAST_DEADLINE="2s")
        self.environment = {**os.environ, **({"LD_PRELOAD": options.preload} if options.preload else {})}
        self.build, self.case = pathlib.Path(options.build).resolve(), options.case
        names = ",".join(f"node{i}" for i in range(1, 5))
        self.launcher = {"openmpi": ["mpirun.openmpi", "--host"], "mpich": ["mpiexec.mpich", "-hosts"],
                         "openmpi5": [f"{self.build}/mpi/openmpi/bin/mpirun", "--host"], "mpich5": [f"{self.build}/mpi/mpich/bin/mpiexec", "-hosts"]}[self.case] + [names]
        self.once = options.once
        self.shared, self.pattern = (["shared"], "ck/ck.{step}") if options.shared else ([], "ck/ck.{step}.{rank}")
        self.program = [*self.launcher, "-n", "4", str(self.build / "examples" / self.case / "jacobi_checkpoint"), *STEPS]

    def holdfast(self, *arguments):
        return subprocess.run([self.build / "bin/holdfast", *map(str, arguments)], cwd=self.directory, capture_output=True, text=True, timeout=120)

    def whole_steps(self):
        said = self.holdfast("checkpoints", "--json").stdout
        return [one["step"] for one in json.loads(said)["checkpoints"] if one["state"] == "whole"] if said else []

    def lose(self, node):
        """All processes of the node are gone at once, and its disk."""
        signal_all(self.root, f"node{node}", signal.SIGKILL)
        shutil.rmtree(self.directory / f"disk-node{node}")

    def run(self):
        native = self.directory / "native"
        (native / "ck").mkdir(parents=True)
        wanted = checksum(subprocess.run([*self.program, "0", *self.shared], cwd=native, check=True, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                                         env=self.environment).stdout)
        with open(self.directory / "log", "w+") as log:
            job = subprocess.Popen([self.build / "bin/holdfast", "run", "--protect", "rs:2+2", "--local", self.directory / "disk-{node}", "--hosts",
                                    ",".join(f"node{i}" for i in range(1, COUNT + 1)), "--with", f"{self.root}/remote-shell {{node}}", "--checkpoint",
                                    self.pattern, "--restarts", "0" if self.once else "1", "--", *self.program, "100000", *self.shared],
                                   cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
            try:
                self.see_it_through(job, log, wanted)
            except BaseException:
                job.kill()
                log.seek(0)
                print(log.read()[-6000:], file=sys.stderr)
                raise

    def see_it_through(self, job, log, wanted):
        began = time.monotonic()
        while not self.whole_steps():
            assert job.poll() is None, "the job ended before any checkpoint was whole"
            assert time.monotonic() - began < 60, "no checkpoint is whole within a minute"
            time.sleep(0.1)
        self.lose(LOST)
        code = job.wait(timeout=120)
        log.seek(0)
        said = log.read()
        if self.once:
            return self.check_that_it_failed(code, said)
        assert code == 0, f"the job ended with {code}"
        begun = re.search(r"attempt 2 begins with checkpoint (\d+), on (.*)", said)
        assert begun and int(begun[1]) >= 10, "it was not started again from a checkpoint"
        assert begun[2] == ", ".join(f"node{i}" for i in range(1, COUNT + 1) if i != LOST), begun[2]
        assert checksum(said) == wanted, f"the result is {checksum(said)}, and {wanted} by itself"
        kept = json.loads(self.holdfast("checkpoints", "--json").stdout)["checkpoints"]
        last = next(one for one in kept if one["step"] == 120)
        assert last["state"] == "whole" and f"node{SPARE}" in last["nodes"], kept
        print(f"{self.case}: a node was lost; the job went on from checkpoint {begun[1]} with a rank on the spare node, to the same bits")


    def check_that_it_failed(self, code, said):
        """Without another attempt it is said, and so is how to go on."""
        assert code != 0 and checksum(said) is None, f"the job ended with {code}"
        assert self.case != "openmpi5" or (code == 121 and len(re.findall(r"the launcher has ended with 0, but the end of \d ranks? was not seen", said)) == 1), code
        assert re.search(r"checkpoint \d+ is whole .* go on from it with: holdfast run --resume", said), "it is not said how to go on"
        print(f"{self.case}: a node was lost; the job has failed with {code}")


def checksum(text):
    found = re.findall(r"checksum (\S+)", text)
    return found[-1] if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload", default="", help="a library that the ranks need beside Holdfast's")
    parser.add_argument("--shared", action="store_true", help="one file of all ranks, by MPI-IO")
    parser.add_argument("--once", action="store_true", help="without another attempt")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("case", choices=("openmpi", "mpich", "openmpi5", "mpich5"))
    options = parser.parse_args()
    if not options.inside:
        own = [sys.executable, "-B", os.path.abspath(__file__), "--inside", "--build", os.path.abspath(options.build), "--preload", options.preload, *(["--shared"] if options.shared else []),
               *(["--once"] if options.once else []), options.case]
        return subprocess.run([sys.executable, "-B", str(NODES), "--count", str(COUNT), "--", *own]).returncode
    test = Test(options)
    try:
        test.run()
    finally:
        test.holdfast("agents", "stop")
    return 0


if __name__ == "__main__":
    sys.exit(main())
