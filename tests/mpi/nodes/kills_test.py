#!/usr/bin/env python3
"""A job with checkpoints that is struck at random (tests/tools/nodes.py): three ranks on six nodes, files over any four of them by rs:2+2.

    kills_test.py --build BUILD [--kills N] [--seed S] openmpi|mpich

At a random instant, from the job's start to the end of its drain, something of it dies: a rank, an agent or a protector, one of the launcher's processes, nodes with all
their processes and their disks, the node of `run` too, or `run` itself; a link is cut for a while, or for good. Where `run` has died the user goes on with --resume, on
another node where that one is lost. Up to M nodes are lost in all, and then: the program (examples/jacobi_checkpoint.c, as it is) ends with the same bits as by itself, each
attempt begins with what was whole before the blow or with something newer, and what is drained is what the program writes by itself. Now and then M + 1 nodes are
lost at once: then it goes on from something older, or is refused, or what is not protected is named; it never has another result.

Blows come until there were N of them. The seed is printed; `--seed S --kills 1` strikes as the job with seed S was struck. Ends with 77 where no nodes can be made.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
NODES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "nodes.py"
COUNT, RANKS, M = 6, 3, 2
STEPS, EVERY, PAUSE_US = 40, 4, 60000
NODE_NAMES = [f"node{i}" for i in range(1, COUNT + 1)]
# How often each is chosen.
KINDS = {"rank": 3, "agent": 2, "protector": 2, "launcher": 2, "nodes": 5, "home": 2, "run": 3, "cut": 2, "unplugged": 1, "beyond": 2}
PROGRAMS = {"rank": {"jacobi_checkpoint"}, "agent": {"agent"}, "protector": {"protector"},
            "launcher": {"orted", "orterun", "mpiexec.hydra", "hydra_pmi_proxy"}}
NOT_BEGUN, REFUSED, NOT_PROTECTED = 2, 122, 123
PATIENCE = 90  # seconds for what is left of a job after its last blow


class Cluster:
    """What the test does to nodes, from the first one. Their processes are in a process namespace of nodes.py's own: nobody else is seen here."""

    def __init__(self):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.holders = {name: int((self.root / f"{name}.pid").read_text()) for name in NODE_NAMES}
        self.spaces = {os.readlink(f"/proc/{pid}/ns/uts"): name for name, pid in self.holders.items()}

    def inside(self, node, directory, *command):
        return ["nsenter", "-t", str(self.holders[node]), "--net", "--uts", "--ipc", "--mount", f"--wd={directory}", *map(str, command)]

    def processes(self):
        """Of the nodes: process, node, and the file that it runs."""
        spared = {1, os.getpid(), *self.holders.values()}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(entry.name) not in spared and (node := self.spaces.get(os.readlink(entry / "ns/uts"))):
                    yield int(entry.name), node, pathlib.Path(os.readlink(entry / "exe")).name
            except OSError:
                pass  # has ended meanwhile

    @staticmethod
    def state(process):
        """Its words, and what its first thread does."""
        try:
            words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            return f"{words[:200]} [{pathlib.Path(f'/proc/{process}/wchan').read_text()}]"
        except OSError as error:
            return str(error)

    def kill_all(self, nodes):
        while True:  # those that one of them was just about to start, too
            found = [process for process, node, _ in self.processes() if node in nodes]
            if not found:
                return
            for process in found:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def link(self, node, state):
        subprocess.run(["nsenter", "-t", str(self.holders[node]), "--net", "ip", "link", "set", "eth0", state], check=True)


class Job:
    """One job, from its first `run` to whatever it comes to."""

    def __init__(self, test, seed):
        self.test, self.cluster, self.seed = test, test.cluster, seed
        self.random = random.Random(f"blows {seed}")
        self.directory = self.cluster.root / f"job{test.jobs}"
        test.jobs += 1
        (self.directory / "ck").mkdir(parents=True)
        self.environment = {**test.environment, "HOLDFAST_AGENTS": str(self.directory / "agents"), "HOLDFAST_DEADLINE": "2s"}
        self.home, self.lost, self.beyond, self.told = "node1", set(), False, []
        self.process, self.log = None, self.directory / "log"
        self.least = 0  # the newest step that was whole before a blow
        self.least_of_next = {}  # the same, by how many attempts had begun by then: what the next one begins with is no older

    def begin(self, *options):
        launcher = ["mpirun.openmpi", "--host"] if self.test.case == "openmpi" else ["mpiexec.mpich", "-hosts"]
        command = [self.test.build / "bin/holdfast", "run", *options, "--protect", "rs:2+2", "--local", self.directory / "disk-{node}", "--hosts", ",".join(NODE_NAMES),
                   "--with", f"{self.cluster.root}/remote-shell {{node}}", "--checkpoint", "ck/ck.{step}.{rank}", "--restarts", "3", "--",
                   *launcher, "node2,node3,node4", *self.test.program]
        with open(self.log, "a") as log:
            log.write(f"--- run {' '.join(options)} on {self.home}\n")
            log.flush()
            self.process = subprocess.Popen(self.cluster.inside(self.home, self.directory, *command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)

    def whole_steps(self):
        done = subprocess.run(self.cluster.inside(self.home, self.directory, self.test.build / "bin/holdfast", "checkpoints", "--json"), capture_output=True, text=True,
                              timeout=60, env=self.environment)
        return [one["step"] for one in json.loads(done.stdout)["checkpoints"] if one["state"] == "whole"] if done.stdout else []

    def see_what_is_whole(self):
        if steps := self.whole_steps():
            self.least = max(self.least, *steps)
            self.least_of_next[len(self.begins(self.log.read_text()))] = self.least

    @staticmethod
    def begins(said):
        return [int(step) for step in re.findall(r"begins after step (\d+)", said)]

    # --- blows

    def kind(self):
        """None: what is wanted cannot strike this job any more."""
        left = M - len(self.lost)
        possible = {kind: often for kind, often in KINDS.items() if not (kind in ("nodes", "home", "unplugged") and left <= 0) and not (kind == "beyond" and self.lost)}
        if self.test.only:
            return self.test.only if self.test.only in possible else None
        return self.random.choices(list(possible), possible.values())[0]

    def strike(self, kind):
        """Whether there was something to strike."""
        self.told.append(f"{kind} at {time.monotonic() - self.began:.1f} s")
        return {"nodes": self.lose_some, "home": self.lose_home, "run": self.kill_run, "cut": self.cut, "unplugged": self.unplug, "beyond": self.lose_too_many}.get(
            kind, lambda: self.kill_one(PROGRAMS[kind]))()

    def kill_one(self, names):
        give_up = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < give_up:
            found = sorted(process for process, _, name in self.cluster.processes() if name in names)
            try:
                if found:
                    os.kill(self.random.choice(found), signal.SIGKILL)
                    return True
            except ProcessLookupError:
                pass
            time.sleep(0.02)
        return False

    def lose(self, nodes):
        self.see_what_is_whole()
        self.told[-1] += f" ({', '.join(nodes)})"
        self.lost.update(nodes)
        dark = self.random.random() < 0.5 and self.has_begun()  # a launcher would wait for what it is just starting there, as natively
        self.cluster.kill_all(nodes)
        for node in nodes:
            if dark:
                self.cluster.link(node, "down")
            shutil.rmtree(self.directory / f"disk-{node}", ignore_errors=True)
        return True

    def has_begun(self):
        said = self.log.read_text()
        return said.count("begins after step") == said.count("--- run") + said.count("it is started again")

    def others(self, count):
        return sorted(self.random.sample([node for node in NODE_NAMES if node not in self.lost and node != self.home], count))

    def lose_some(self):
        return self.lose(self.others(self.random.randint(1, M - len(self.lost))))

    def lose_too_many(self):
        self.beyond = True
        return self.lose(self.others(M + 1))

    def lose_home(self):
        self.lose([self.home])
        self.process.wait()
        self.home = self.random.choice([node for node in NODE_NAMES if node not in self.lost])
        self.go_on()
        return True

    def kill_run(self):
        self.see_what_is_whole()
        self.process.kill()
        self.process.wait()
        time.sleep(self.random.choice((0, 0.2, 1)))
        self.go_on()
        return True

    def go_on(self):
        self.begin("--resume")

    def cut(self):
        node, seconds = self.random.choice([node for node in NODE_NAMES if node not in self.lost]), self.random.uniform(0.2, 4)
        give_up = time.monotonic() + 30
        while not self.has_begun() and self.process.poll() is None and time.monotonic() < give_up:  # MPICH's launcher waits for ever for what cannot reach it then
            time.sleep(0.02)
        self.told[-1] += f" ({node} for {seconds:.1f} s)"
        self.cluster.link(node, "down")
        time.sleep(seconds)
        self.cluster.link(node, "up")
        return True

    def unplug(self):
        """Nothing says so, and MPI waits: the user ends the job."""
        node = self.others(1)[0]
        self.told[-1] += f" ({node})"
        self.lost.add(node)
        self.cluster.link(node, "down")
        time.sleep(self.random.uniform(1, 3))
        return self.kill_run()

    # --- what came of it

    def run(self, blows):
        """The number of blows that struck."""
        self.began = time.monotonic()
        struck = 0
        self.begin()
        try:
            for _ in range(blows):
                try:
                    self.process.wait(self.random.uniform(0, self.test.seconds if struck == 0 else self.test.seconds / 2))
                    break
                except subprocess.TimeoutExpired:
                    if (kind := self.kind()) is None:
                        break
                    struck += self.strike(kind)
            code = self.process.wait(timeout=PATIENCE)
            self.check(code)
        except BaseException as error:
            print(f"seed {self.seed}: {', '.join(self.told)}: {error}", file=sys.stderr)
            print(self.log.read_text()[-8000:], file=sys.stderr)
            for process, node, name in self.cluster.processes():
                print(f"{node}: {process} {name}: {self.cluster.state(process)}", file=sys.stderr, flush=True)
            raise
        finally:
            self.end()
        shutil.rmtree(self.directory)  # by now nobody writes there: what was cut off for a while may have ended late
        return struck

    def end(self):
        for node in NODE_NAMES:
            self.cluster.link(node, "up")
        self.cluster.kill_all(NODE_NAMES)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def check(self, code):
        said = self.log.read_text()
        sums = re.findall(r"checksum (\S+)", said)
        assert set(sums) <= {self.test.wanted}, f"the result is {sums}, and {self.test.wanted} by itself"
        for file in (self.directory / "ck").iterdir():
            native = self.test.native / "ck" / file.name
            assert native.exists() and file.read_bytes() == native.read_bytes(), f"{file.name} is not what the program writes"
        if self.beyond and code == REFUSED:
            assert "more of its nodes are lost than rs:2+2 tolerates" in said, "it is not said why it was refused"
        elif self.beyond and code == NOT_BEGUN:  # they were lost before it had looked at them
            assert "rs:2+2 needs 4 nodes and there are 3" in said and not sums and not self.begins(said), "it has not said that nodes are missing"
        elif self.beyond and code == NOT_PROTECTED:
            assert sums and re.search("no checkpoint is whole|is not protected|is protected; see|cannot be read: more of its nodes are lost", said), "it is not said what is not protected"
        else:
            self.check_that_it_ended_well(code, said, sums)
        print(f"seed {self.seed}: {', '.join(self.told) or 'nothing'}: {code}, {self.begun(said)}", flush=True)

    @staticmethod
    def begun(said):
        return "from " + ", ".join(map(str, Job.begins(said)))

    def check_that_it_ended_well(self, code, said, sums):
        """Where a node is lost when its rank has just ended, the last checkpoint may not be protected: that is said, and one before it is drained."""
        assert code == 0 or (code == NOT_PROTECTED and self.lost and re.search(r"the program has ended well, and .* protected", said)), f"it ended with {code}"
        assert sums, "it has no result"
        names = {file.name for file in (self.directory / "ck").iterdir()}
        drained = max((int(name.split(".")[1]) for name in names), default=0)
        assert names == {f"ck.{drained}.{rank}" for rank in range(RANKS) if drained > 0}, f"what is drained is {sorted(names)}"
        assert self.beyond or drained >= self.least, f"checkpoint {drained} is drained, and {self.least} was whole"
        is_said = code == NOT_PROTECTED or (self.beyond and "no checkpoint is whole" in said)
        assert drained == STEPS or is_said, f"checkpoint {drained} is drained, and {STEPS} is the last"
        begun = self.begins(said)
        for before, least in self.least_of_next.items():
            assert self.beyond or len(begun) <= before or begun[before] >= least, f"it began after step {begun[before]}, and checkpoint {least} was whole"


class Test:
    def __init__(self, options):
        self.cluster, self.case, self.build = Cluster(), options.case, pathlib.Path(options.build).resolve()
        self.environment = {**os.environ, **({"LD_PRELOAD": options.preload} if options.preload else {})}
        self.program = ["-n", str(RANKS), self.build / "examples" / self.case / "jacobi_checkpoint", str(STEPS), str(EVERY), "32", str(PAUSE_US)]
        self.jobs, self.seconds, self.only = 0, 0, options.only

    def run(self, kills, seed):
        self.native = self.cluster.root / "native"
        (self.native / "ck").mkdir(parents=True)
        launcher = ["mpirun.openmpi", "--host"] if self.case == "openmpi" else ["mpiexec.mpich", "-hosts"]
        done = subprocess.run([*launcher, "node2,node3,node4", *self.program], cwd=self.native, check=True, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=self.environment)
        self.wanted = re.search(r"checksum (\S+)", done.stdout)[1]
        began = time.monotonic()
        Job(self, seed).run(0)
        self.seconds = time.monotonic() - began
        struck, failed = 0, 0
        while struck < kills:
            try:
                struck += Job(self, seed).run(min(random.Random(seed).choice((1, 1, 2, 3)), kills - struck))
            except (AssertionError, subprocess.TimeoutExpired):
                failed, struck = failed + 1, struck + 1
            seed += 1
        print(f"{self.case}: {struck} blows, {failed} jobs came to another end than they should")
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload", default="", help="a library that the ranks need beside Holdfast's")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, help="of the first job; the next ones count up")
    parser.add_argument("--only", choices=list(KINDS), help="blows of one kind")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("case", choices=("openmpi", "mpich"))
    options = parser.parse_args()
    if not options.inside:
        seed = random.randrange(1, 10**6) if options.seed is None else options.seed
        own = [sys.executable, "-B", os.path.abspath(__file__), "--inside", "--build", os.path.abspath(options.build), "--preload", options.preload, "--kills",
               str(options.kills), "--seed", str(seed), *(["--only", options.only] if options.only else []), options.case]
        return subprocess.run([sys.executable, "-B", str(NODES), "--count", str(COUNT), "--", *own]).returncode
    print(f"the first seed is {options.seed}", flush=True)
    return Test(options).run(options.kills, options.seed)


if __name__ == "__main__":
    sys.exit(main())
