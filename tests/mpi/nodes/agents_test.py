#!/usr/bin/env python3
"""Node agents on nodes of their own (tests/tools/nodes.py): what becomes of a program when the way to a node is cut, or a node's disk goes.

    agents_test.py --build BUILD CASE

answerless   a node hears and cannot answer: a blackhole route in its network alone
unplugged    its link goes down, and nobody says so
frozen       its agent is stopped (SIGSTOP) and goes on later
gone         its agent is killed and its link goes down
two_cut      two nodes of rs:2+1 are cut off, one cannot answer and one cannot be asked: the program hears of it within its deadlines, and what was synced is there when they are back
mirror, rs   the network is cut in two while a program on either side writes the same file: one of them commits, never both
rebuilt      the disk of one of five nodes of rs:3+2 goes, and a bit of another one's: a repair from a sixth brings it to a seventh, and no more bytes come to the sixth than go there;
             then an agent is halted while it helps to rebuild another node's
openmpi, mpich, openmpi5, mpich5   four ranks on four nodes write one file over the nodes' agents; two agents are killed and their disks wiped meanwhile

In the first ones the program writes on through it and ends well, within its deadlines; what it wrote is right without the node; when the node is back its target is stale, and
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
HALVES = {"mirror": ("mirror:2", (2, 3)), "rs": ("rs:2+2", (1, 2, 3, 4))}
MPIS = ("openmpi", "mpich", "openmpi5", "mpich5")
DEADLINE = "1s"
LOADED_DEADLINE = "4s"  # where a node that lives must not be taken for a halted one, on a machine that does much else
FIRST_ADDRESS, FOURTH_ADDRESS = "10.99.0.1/32", "10.99.0.4/32"

PROGRAM = """
SYNCED = 1
import os, random, time
source = random.Random(7)
with open("out.dat", "wb", buffering=0) as file:
    for step in range(20):
        file.write(source.randbytes(300_000))
        if step == SYNCED:
            os.fsync(file.fileno())
        open("step", "w").write(str(step))
        time.sleep(0.1)
"""

# Half of the file: FIRST to LAST of its bytes.
WRITER = """
import os, pathlib, sys, time
name, first, last, value = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
os.chdir(sys.argv[5])  # by this node's own mounts
with open("shared/out.dat", "r+b", buffering=0) as file:
    pathlib.Path("ready." + name).touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    file.seek(first)
    file.write(value * (last - first))
    os.fsync(file.fileno())
"""
HALF = 500_000
REBUILT = 24 << 20


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
        """Whatever is left over of a node is an error of nodes.py. The number of an agent that has ended may be somebody else's by now."""
        for process in self.processes().values():
            try:
                if pathlib.Path(f"/proc/{process}/comm").read_text().strip() != "agent":
                    continue
                os.kill(process, signal.SIGCONT)
                os.kill(process, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
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

    def begin_to_write(self, **how):
        targets = [self.start_agent(node) for node in (2, 3, 4)]
        began = time.monotonic()
        job = subprocess.Popen([self.build / "bin/holdfast", "run", "--protect", "rs:2+1", "--path", "*.dat", "--deadline", DEADLINE, "--striping-unit", "64k",
                                "--targets", ",".join(targets), "--", sys.executable, "-c", PROGRAM], cwd=self.directory, **how)
        step = self.directory / "step"
        while not (step.exists() and step.read_text() not in ("", "0", "1", "2")):
            assert job.poll() is None, "the program ended before it had written"
            assert time.monotonic() - began < 60, "the program has not begun to write within a minute"
            time.sleep(0.05)
        return job, began

    def run_cut(self):
        job, began = self.begin_to_write()
        process = self.processes()["n3"]
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

    def run_two_cut(self):
        job, began = self.begin_to_write(stderr=subprocess.PIPE, text=True)
        self.on(3, "ip", "route", "add", "blackhole", FIRST_ADDRESS)
        self.on(1, "ip", "route", "add", "blackhole", FOURTH_ADDRESS)
        said = job.communicate(timeout=60)[1]
        took = time.monotonic() - began
        assert job.returncode == 1 and "OSError: " in said and "n3:" in said and "n4:" in said, f"{job.returncode}: {said}"
        assert took < 30, f"the program took {took:.0f} s"
        told = self.holdfast("status", "--deadline", DEADLINE, "out.dat", expect=3).decode()
        for way in ("from 10.99.0.1 to 10.99.0.3 port ", "no way to 10.99.0.4 port "):
            assert way in told, told
        self.on(3, "ip", "route", "del", "blackhole", FIRST_ADDRESS)
        self.on(1, "ip", "route", "del", "blackhole", FOURTH_ADDRESS)
        written, give_up = self.written(), time.monotonic() + 30
        while "unreached" in self.states(None) and time.monotonic() < give_up:
            time.sleep(0.2)
        found = self.holdfast("cat", "out.dat")
        assert written.startswith(found) and len(found) >= 2 * 300_000, "what was written is not what is read"
        print(f"two_cut: the program was told after {took:.1f} s; the first {len(found)} bytes are there")

    # --- a program on either side of a network that is cut in two

    def each_way(self, what):
        for one, other in ((1, 3), (1, 4), (2, 3), (2, 4)):
            for here, there in ((one, other), (other, one)):
                self.on(here, "ip", "route", what, "blackhole", f"10.99.0.{there}/32")

    def begin_half(self, node, *arguments):
        job = subprocess.Popen(self.inside(node, self.build / "bin/holdfast", "run", *self.protected, "--", sys.executable, "-c", WRITER, *arguments, self.directory),
                               stderr=subprocess.PIPE, text=True)
        give_up = time.monotonic() + 60
        while not (self.directory / f"ready.{arguments[0]}").exists():
            assert job.poll() is None and time.monotonic() < give_up, f"the writer on node {node} has not begun: {job.stderr.read()}"
            time.sleep(0.02)
        return job

    def run_halves(self):
        scheme, nodes = HALVES[self.case]
        targets = [self.start_agent(node) for node in nodes]
        (self.directory / "shared").mkdir()
        self.protected = ["--protect", scheme, "--path", "*.dat", "--deadline", DEADLINE, "--striping-unit", "64k", "--targets", ",".join(targets)]
        self.holdfast("run", *self.protected, "--", "sh", "-c", f"head -c {2 * HALF} /dev/zero | tr '\\0' o > shared/out.dat")
        for both_reach_the_path in (True, False):
            self.write_in_halves(both_reach_the_path, "ab" if both_reach_the_path else "cd")

    def cut_in_two(self, jobs, both_reach_the_path):
        self.each_way("add")
        if not both_reach_the_path:
            for node in (3, 4):
                self.on(node, "mount", "-t", "tmpfs", "tmpfs", self.directory / "shared")
        (self.directory / "go").touch()
        return [job.communicate(timeout=60)[1] for job in jobs]

    def write_in_halves(self, both_reach_the_path, values):
        """Each side has enough of the members. Where only one reaches the path's directory it is that one who commits."""
        before = self.holdfast("cat", "shared/out.dat")
        jobs = []
        try:
            for node, half in ((1, 0), (4, 1)):
                jobs.append(self.begin_half(node, f"half_{values[half]}", str(half * HALF), str((half + 1) * HALF), values[half]))
            said = self.cut_in_two(jobs, both_reach_the_path)
        finally:
            for job in jobs:
                if job.poll() is None:
                    job.send_signal(signal.SIGINT)
                    job.communicate(timeout=30)
        committed = [job.returncode == 0 for job in jobs]
        told = "\n".join(said)
        assert sum(committed) == 1, f"{committed}: {told}"
        assert both_reach_the_path or committed[0], told
        self.each_way("del")
        (self.directory / "go").unlink()
        if not both_reach_the_path:
            for node in (3, 4):
                self.on(node, "umount", self.directory / "shared")
        self.holdfast("repair", "shared/out.dat")
        self.holdfast("verify", "shared/out.dat")
        found = self.holdfast("cat", "shared/out.dat")
        for half in (0, 1):
            there, value = found[half * HALF:(half + 1) * HALF], values[half].encode()
            assert not committed[half] or there == value * HALF, f"what half {half} has committed is not there"
            assert committed[half] or there == before[half * HALF:(half + 1) * HALF], f"what half {half} has not committed is there"
        print(f"{self.case}: half {committed.index(True)} of the network has committed, the other one was told: {said[committed.index(False)].splitlines()[0]}")

    # --- a repair on a node that has nothing of the file

    def received(self):
        devices = subprocess.run(self.inside(1, "cat", "/proc/net/dev"), capture_output=True, text=True, check=True).stdout
        return next(int(line.split(":")[1].split()[0]) for line in devices.splitlines() if line.strip().startswith("eth0:"))

    def turn_a_bit(self, node):
        path = max((path for path in (self.directory / f"disk{node}").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def halt_while_rebuilt(self, address):
        """The repair goes on without the node that is halted, as one that is lost."""
        processes = self.processes()
        os.kill(processes["n5"], signal.SIGKILL)
        shutil.rmtree(self.directory / "disk5")
        self.start_agent(5)
        job = subprocess.Popen(self.inside(1, self.build / "bin/holdfast", "repair", "out.dat", f"--replace={address}={address}", "--deadline", LOADED_DEADLINE),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        give_up = time.monotonic() + 60
        while job.poll() is None and sum(path.stat().st_size for path in (self.directory / "disk5").rglob("*") if path.is_file()) < 1 << 20:
            assert time.monotonic() < give_up, "nothing is rebuilt"
            time.sleep(0.005)
        halted = job.poll() is None
        os.kill(processes["n3"], signal.SIGSTOP)
        said = job.communicate(timeout=60)[0]
        assert job.returncode in (0, 1), said
        os.kill(processes["n3"], signal.SIGCONT)
        return halted

    def run_rebuilt(self):
        targets = [self.start_agent(node) for node in (2, 3, 4, 5, 6)]
        content = random.Random(3).randbytes(REBUILT)
        (self.directory / "plain").write_bytes(content)
        self.holdfast("run", "--protect", "rs:3+2", "--path", "*.dat", "--striping-unit", "256k", "--targets", ",".join(targets), "--", "cp", "plain", "out.dat")
        os.kill(self.processes()["n6"], signal.SIGKILL)
        shutil.rmtree(self.directory / "disk6")
        self.turn_a_bit(3)
        spare, before = self.start_agent(7), self.received()
        self.holdfast("repair", "out.dat", f"--replace={targets[-1]}={spare}")
        came, part = self.received() - before, REBUILT // 3
        assert came < 1.5 * part, f"{came} bytes came to the node that repaired, for {part} that it sent"
        assert self.states(0) == ["ok"] * 5
        self.holdfast("verify", "out.dat")
        assert self.holdfast("cat", "out.dat") == content
        assert any(self.halt_while_rebuilt(targets[-2]) for _ in range(5)), "each time it was over before an agent could be halted"
        self.holdfast("repair", "out.dat", f"--replace={targets[-2]}={targets[-2]}")
        assert self.states(0) == ["ok"] * 5
        self.holdfast("verify", "out.dat")
        assert self.holdfast("cat", "out.dat") == content
        print(f"rebuilt: {came / part:.2f} bytes came to the node that repaired for each that was rebuilt")

    # --- four ranks on four nodes, each with an agent

    def run_mpi(self):
        heat = self.build / "examples" / self.case / "heat"
        targets = [self.start_agent(node) for node in (1, 2, 3, 4)]
        wheel = self.build / "mpi" / self.case[:-1] / "bin/mpirun"
        launcher = [wheel if self.case.endswith("5") else f"mpirun.{self.case}", "-n", "4", heat]
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
    parser.add_argument("case", choices=(*CUTS, "two_cut", *HALVES, "rebuilt", *MPIS))
    options = parser.parse_args()
    if not options.inside:
        cluster = ["--count", "7", "--rate", "200mbit"] if options.case == "rebuilt" else ["--count", "4"]
        own = [sys.executable, "-B", os.path.abspath(__file__), "--inside", "--build", os.path.abspath(options.build), "--preload", options.preload, options.case]
        return subprocess.run([sys.executable, "-B", str(NODES), *cluster, "--", *own]).returncode
    test = Test(options)
    try:
        if options.case in CUTS:
            test.run_cut()
        elif options.case == "two_cut":
            test.run_two_cut()
        elif options.case in HALVES:
            test.run_halves()
        elif options.case == "rebuilt":
            test.run_rebuilt()
        else:
            test.run_mpi()
    finally:
        test.stop_agents()
    return 0


if __name__ == "__main__":
    sys.exit(main())
