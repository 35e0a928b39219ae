#!/usr/bin/env python3
"""Node agents on nodes of their own (tests/tools/nodes.py): what becomes of a program when the way to a node is cut, or a node's disk goes.

    agents_test.py --build BUILD CASE

answerless   a node hears and cannot answer: a blackhole route in its network alone
unplugged    its link goes down, and nobody says so
frozen       its agent is stopped (SIGSTOP) and goes on later
gone         its agent is killed and its link goes down
openmpi, mpich   four ranks on four nodes write one file over the nodes' agents; two agents are killed and their disks wiped meanwhile

The program writes on through it and ends well, within its deadlines; what it wrote is right without the node; when the node is back its target is stale, and
repair makes it whole. Ends with 77 where no nodes can be made.
"""
import argparse
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
NODES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "nodes.py"
CUTS = ("answerless", "unplugged", "frozen", "gone")
MPIS = ("openmpi", "mpich")
DEADLINE = "1s"
FIRST_ADDRESS = "10.99.0.1/32"

PROGRAM = """
import random, time
source = random.Random(7)
with open("out.dat", "wb", buffering=0) as file:
    for step in range(20):
        file.write(source.randbytes(300_000))
        open("step", "w").write(str(step))
        time.sleep(0.1)
"""


class Test:
    """On the first node. Its temporary directory is the cluster's own."""

    def __init__(self, options):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.directory = self.root / "work"
        self.directory.mkdir()
        os.environ["HOLDFAST_AGENTS"] = str(self.directory / "agents")
        self.preload = {**os.environ, "LD_PRELOAD": options.preload} if options.preload else None
        self.build, self.case = pathlib.Path(options.build).resolve(), options.case

    def inside(self, node, *command):
        holder = (self.root / f"node{node}.pid").read_text()
        return ["nsenter", "-t", holder, "--net", "--uts", "--ipc", "--mount", f"--wd={self.directory}", *map(str, command)]

    def on(self, node, *command):
        subprocess.run(self.inside(node, *command), check=True)

    def holdfast(self, *arguments, node=1, expect=0):
        done = subprocess.run(self.inside(node, self.build / "bin/holdfast", *arguments), capture_output=True, timeout=120)
        if expect is not None and done.returncode != expect:
            raise AssertionError(f"holdfast {shlex.join(map(str, arguments))} ended with {done.returncode}, wanted {expect}:\n"
                                 f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}")
        return done.stdout

    def start_agent(self, node):
        disk = self.directory / f"disk{node}"
        disk.mkdir(exist_ok=True)
        self.holdfast("agents", "start", "--node", f"n{node}", disk, node=node)
        return f"n{node}:{disk}"

    def processes(self):
        return {agent["node"]: agent["process"] for agent in json.loads(self.holdfast("agents", "status", "--json", expect=None))}

    def states(self, expect):
        report = json.loads(self.holdfast("status", "--json", "--deadline", DEADLINE, "out.dat", expect=expect))
        return [member["state"] for member in report["files"][0]["members"]]

    def stop_agents(self):
        """Whatever is left over of a node is an error of nodes.py."""
        for process in self.processes().values():
            try:
                os.kill(process, signal.SIGCONT)
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # --- a program on a node of its own, and three nodes with agents

    def cut(self, process):
        if self.case == "answerless":
            self.on(3, "ip", "route", "add", "blackhole", FIRST_ADDRESS)
        elif self.case == "frozen":
            os.kill(process, signal.SIGSTOP)
        else:
            if self.case == "gone":
                os.kill(process, signal.SIGKILL)
            self.on(3, "ip", "link", "set", "eth0", "down")

    def mend(self, process):
        if self.case == "answerless":
            self.on(3, "ip", "route", "del", "blackhole", FIRST_ADDRESS)
        elif self.case == "frozen":
            os.kill(process, signal.SIGCONT)
        else:
            self.on(3, "ip", "link", "set", "eth0", "up")
            if self.case == "gone":
                self.start_agent(3)

    def run_cut(self):
        targets = [self.start_agent(node) for node in (2, 3, 4)]
        process = self.processes()["n3"]
        began = time.monotonic()
        job = subprocess.Popen([self.build / "bin/holdfast", "run", "--protect", "rs:2+1", "--path", "*.dat", "--deadline", DEADLINE, "--striping-unit", "64k",
                                "--targets", ",".join(targets), "--", sys.executable, "-c", PROGRAM], cwd=self.directory)
        step = self.directory / "step"
        while not (step.exists() and step.read_text() not in ("", "0", "1", "2")):
            assert job.poll() is None, "the program ended before it had written"
            assert time.monotonic() - began < 60, "the program has not begun to write within a minute"
            time.sleep(0.05)
        self.cut(process)
        code = job.wait(timeout=60)
        took = time.monotonic() - began
        assert code == 0, f"the program ended with {code}"
        assert took < 30, f"the program took {took:.0f} s"
        assert self.holdfast("cat", "--deadline", DEADLINE, "out.dat") == self.written(), "what was written is not what is read"
        assert self.states(1)[1] == "unreached"
        self.mend(process)
        self.see_it_whole_again()
        print(f"{self.case}: the program ended after {took:.1f} s; the target was out of reach, then stale, then whole again")

    @staticmethod
    def written():
        source = random.Random(7)
        return b"".join(source.randbytes(300_000) for _ in range(20))

    def see_it_whole_again(self):
        deadline = time.monotonic() + 30
        while self.states(None)[1] == "unreached" and time.monotonic() < deadline:
            time.sleep(0.2)
        assert self.states(1)[1] == "stale", self.states(None)
        self.holdfast("repair", "out.dat")
        self.holdfast("verify", "out.dat")
        assert self.states(0) == ["ok"] * 3
        assert self.holdfast("cat", "out.dat") == self.written()

    # --- four ranks on four nodes, each with an agent

    def run_mpi(self):
        heat = self.build / "examples" / self.case / "heat"
        targets = [self.start_agent(node) for node in (1, 2, 3, 4)]
        launcher = [f"mpirun.{self.case}", "-n", "4", heat]
        frames = ["1024", "256", "20", "2"]
        subprocess.run([*launcher, "native.dat", *frames], cwd=self.directory, check=True, timeout=120, stdin=subprocess.DEVNULL, env=self.preload)
        job = subprocess.Popen([self.build / "bin/holdfast", "run", "--protect", "rs:2+2", "--striping-unit", "64k", "--deadline", "5s", "--targets", ",".join(targets),
                                "--", *launcher, "out.dat", *frames, "--pause-ms", "300"], cwd=self.directory, stdin=subprocess.DEVNULL, env=self.preload)
        began = time.monotonic()
        while sum(path.stat().st_size for path in (self.directory / "disk1").rglob("*") if path.is_file()) < 2 << 20:
            assert job.poll() is None, "the job ended before any data reached its nodes"
            assert time.monotonic() - began < 60, "no data has reached the nodes within a minute"
            time.sleep(0.05)
        processes = self.processes()
        for node in ("2", "4"):
            os.kill(processes[f"n{node}"], signal.SIGKILL)
            shutil.rmtree(self.directory / f"disk{node}")
        assert job.poll() is None, "the job had ended before the nodes' disks were taken away"
        code = job.wait(timeout=120)
        assert code == 0, f"the job ended with {code}"
        native = (self.directory / "native.dat").read_bytes()
        assert self.holdfast("cat", "out.dat") == native, "what was written is not what is read"
        assert sorted(self.states(1)) == ["ok", "ok", "unreached", "unreached"]
        for node in (2, 4):
            self.start_agent(node)
        self.holdfast("repair", "out.dat", *(f"--replace={targets[node - 1]}={targets[node - 1]}" for node in (2, 4)))
        assert self.states(0) == ["ok"] * 4
        self.holdfast("verify", "out.dat")
        assert self.holdfast("cat", "out.dat") == native
        print(f"{self.case}: the job went on without two of four nodes' disks; they were made whole again")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload", default="", help="a library that the ranks need beside Holdfast's")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("case", choices=CUTS + MPIS)
    options = parser.parse_args()
    if not options.inside:
        own = [sys.executable, "-B", os.path.abspath(__file__), "--inside", "--build", os.path.abspath(options.build), "--preload", options.preload, options.case]
        return subprocess.run([sys.executable, "-B", str(NODES), "--count", "4", "--", *own]).returncode
    test = Test(options)
    try:
        test.run_cut() if options.case in CUTS else test.run_mpi()
    finally:
        test.stop_agents()
    return 0


if __name__ == "__main__":
    sys.exit(main())
