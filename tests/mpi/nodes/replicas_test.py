#!/usr/bin/env python3
"""Teams of a redundant job on nodes of their own (tests/tools/nodes.py): two teams of two ranks on four nodes, started from a fifth. One node is lost.
With relaunched and returned its team is started again, with a sixth node for the lost one, or where it was; then the other team is lost.

    replicas_test.py --build BUILD [--preload LIBRARY] killed|separate|twice|beside|protected|unplugged|frozen|asleep|strangers|addresses|disks|output|relaunched|protected_relaunched|returned|homeless|behind|full|unreachable|messages|uneven openmpi|mpich|openmpi5|mpich5

The job goes on without the team of that node; its file is byte for byte that of an undisturbed run. Ends with 77 where no nodes can be made.
"""
import argparse
import contextlib
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
from nodes import holder_of, signal_all  # noqa: E402

COUNT, LOST, DEADLINE_S = 6, 3, 5
HEAT = ["60", "80", "60", "2"]
BIG = ["300", "200", "60", "2"]  # whose writes are worth being shared out


@contextlib.contextmanager
def told(job, log):
    """Where something fails the job is ended, and what it has said is shown."""
    try:
        yield
    except BaseException:
        job.kill()
        log.seek(0)
        print(log.read()[-6000:], file=sys.stderr)
        raise


class Test:
    """On the first node, which has none of the ranks. Its temporary directory is the cluster's own."""

    def __init__(self, options):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.directory = self.root / "work"
        self.directory.mkdir()
        os.environ.update(HOLDFAST_DEADLINE=f"{DEADLINE_S}s", XDG_STATE_HOME=str(self.root / "state"), HOLDFAST_SHARED_MOUNTS=str(self.root))
        self.environment = {**os.environ, **({"LD_PRELOAD": options.preload} if options.preload else {})}
        self.build, self.case, self.mpi = pathlib.Path(options.build).resolve(), options.case, options.mpi
        self.launcher = {"openmpi": ["mpirun.openmpi", "--host"], "mpich": ["mpiexec.mpich", "-hosts"], "openmpi5": [f"{self.build}/mpi/openmpi/bin/mpirun", "--host"],
                         "mpich5": [f"{self.build}/mpi/mpich/bin/mpiexec", "-hosts"]}[self.mpi]
        self.heat = str(self.build / "examples" / self.mpi / "heat")

    def command(self, hosts, ranks, *program):
        return [*self.launcher, ",".join(f"node{i}" for i in hosts), "-n", str(ranks), *program]

    def holder(self, node):
        return holder_of(self.root, f"node{node}")

    def link(self, node, state):
        subprocess.run(["nsenter", "-t", str(self.holder(node)), "--net", "ip", "link", "set", "eth0", state], check=True)

    def kill_all(self, node):
        self.signal_all(node, signal.SIGKILL)

    def signal_all(self, node, number, but=None):
        signal_all(self.root, f"node{node}", number, but)

    def status(self, expect):
        done = subprocess.run([self.build / "bin/holdfast", "status", "--job", "--json"], capture_output=True, text=True)
        assert done.returncode in expect, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.returncode < 2 else {"teams": []}

    def start(self, log, *command, replicas=2):
        return subprocess.Popen([self.build / "bin/holdfast", "run", "--replicas", str(replicas), *command], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=self.environment)

    def wait_for(self, what, true, job=None, seconds=60):
        until = time.monotonic() + seconds
        while not true():
            assert job is None or job.poll() is None, f"the job ended before {what}"
            assert time.monotonic() < until, f"within {seconds} s not: {what}"
            time.sleep(0.05)

    def ranks(self):
        """(team, rank) -> (process, host)"""
        return {(team["team"], rank["rank"]): (rank["process"], rank["host"]) for team in self.status((0, 1, 3))["teams"] for rank in team["ranks"]}

    # --- a node is lost

    def lose_a_node(self):
        shape = BIG if self.case in ("separate", "protected") else HEAT
        native = subprocess.run(self.command((2, 3), 2, self.heat, "native", *shape), cwd=self.directory, check=True, capture_output=True, text=True, timeout=120,
                                stdin=subprocess.DEVNULL, env=self.environment).stdout
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, *self.policy(), *self.command((2, 3, 4, 5), 2, self.heat, "out", *shape, "--pause-ms", "200"))
            with told(job, log):
                self.see_it_through(job)
            log.seek(0)
            said = log.read()
        assert job.returncode == 0, f"the job ended with {job.returncode}: {said}"
        assert self.content() == (self.directory / "native").read_bytes(), "the file is another one"
        assert not list(self.directory.glob(".out.holdfast-parts-*")), "parts are left"
        assert said.count(native.replace("native", "out")) == 1, said
        assert "holdfast: team 0 on node2, node3, team 1 on node4, node5; the loss of this node, node1, where they are started, is not survived" in said, said
        assert re.search(r"rank \d of team 0 \(process \d+ on node[23]\) has (died|not been heard of within the deadline and was ended); team 1 goes on alone", said), said
        status = self.status((1,))
        assert [team["lost"] for team in status["teams"]] == [True, False], status
        assert [[rank["host"] for rank in sorted(team["ranks"], key=lambda one: one["rank"])] for team in status["teams"]] == [["node2", "node3"], ["node4", "node5"]], status
        print(f"{self.mpi}, {self.case}: a node was lost, and the job went on")

    def policy(self):
        if self.case == "separate":
            return ["--write-protocol", "distributed-separate"]
        for target in ("t0", "t1", "t2"):
            (self.directory / target).mkdir()
        small = ["--buffer-bytes", "1MiB"] if self.case == "protected" else []  # else all of it is written at the end, when nobody can be lost any more
        return ["--protect", "rs:2+1", "--targets", "t0,t1,t2", "--allow-shared-target", *small] if self.case.startswith("protected") else []

    def content(self):
        if not self.case.startswith("protected"):
            return (self.directory / "out").read_bytes()
        return subprocess.run([self.build / "bin/holdfast", "cat", "out"], cwd=self.directory, check=True, capture_output=True).stdout

    def written(self):
        files = self.directory.glob("t?/**/*") if self.case == "protected" else self.directory.glob(".out.holdfast-parts-*.1" if self.case == "separate" else "out")
        return sum(file.stat().st_size for file in files if file.is_file())

    def see_it_through(self, job):
        self.wait_for("the replicas are there", lambda: len(self.ranks()) == 4, job)
        self.wait_for("something is written", lambda: self.written() > 100_000, job)
        self.see_that_the_secret_is_nowhere()
        process, host = self.ranks()[0, 1]
        assert host == f"node{LOST}", host
        if self.case in ("killed", "separate", "protected"):
            self.kill_all(LOST)
        if self.case in ("unplugged", "asleep"):
            self.link(LOST, "down")
        if self.case == "frozen":  # its launcher's daemon, too: what moves its output is there to end it
            self.signal_all(LOST, signal.SIGSTOP, but=b"replica-output")
        if self.case == "asleep":
            os.kill(process, signal.SIGSTOP)
        if self.case == "asleep":  # nobody can end it: it has to find out when it wakes
            self.wait_for("the others go on", self.others_go_on, job)
            self.link(LOST, "up")
            os.kill(process, signal.SIGCONT)
        def has_ended():
            others, lives = self.others_go_on(), alive(process)  # in this order
            assert not (self.case == "unplugged" and others and lives), "others go on beside it"
            return not lives
        self.wait_for("the lost rank has ended", has_ended, seconds=3 * DEADLINE_S)
        assert job.poll() is None, "the job had ended before"
        code = job.wait(timeout=120)
        if self.case in ("unplugged", "asleep", "frozen"):
            self.link(LOST, "up")
            self.kill_all(LOST)  # as a node that comes back
        return code

    def others_go_on(self):
        return "team 1 goes on alone" in (self.directory / "log").read_text()

    def see_that_the_secret_is_nowhere(self):
        """But in the environment of who has to know it."""
        secrets, words = set(), b""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                found = re.search(rb"HOLDFAST_REPLICA=[^\0]*?\b([0-9a-f]{64})\b", (entry / "environ").read_bytes())
                secrets |= {found[1]} if found else set()
                words += (entry / "cmdline").read_bytes()
            except OSError:
                pass
        assert len(secrets) == 1, secrets
        assert not any(secret in words for secret in secrets), "the secret stands in an argument"

    # --- what is not lost

    def run_program(self, name, *words, ranks=1):
        hosts = (2, 3) if ranks == 1 else (f"2:{ranks}", f"3:{ranks}")
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, *self.command(hosts, ranks, str(self.build / "tests/mpi/nodes" / f"{name}_{self.mpi}"), *words))
            try:
                code = job.wait(timeout=60)
            except subprocess.TimeoutExpired:
                job.kill()
                raise
            log.seek(0)
            said = log.read()
        assert code == 0, said
        assert "team 0 on node2, team 1 on node3" in said, said
        return said

    def disks_of_nodes(self):
        """What lies there each team has for itself: /dev/shm is each node's own here."""
        self.run_program("scratch", "/dev/shm/scratch", "result")
        for path in (self.directory / "result", *(pathlib.Path(f"/proc/{self.holder(node)}/root/dev/shm/scratch/two") for node in (2, 3))):
            assert path.read_text() == "written on the node\n", path
        del os.environ["HOLDFAST_SHARED_MOUNTS"]
        self.environment.pop("HOLDFAST_SHARED_MOUNTS")
        said = self.run_program("addresses", "/dev/null")
        assert f"holdfast: {self.directory} is node-local by its file system" in said, said
        print(f"{self.mpi}: a file on a disk of the node's own is each team's")

    def twins_that_are_strangers(self):
        """Both nodes reach the first one, and not each other."""
        for node, other in ((2, 3), (3, 2)):
            subprocess.run(["nsenter", "-t", str(self.holder(node)), "--net", "ip", "route", "add", "blackhole", f"10.99.0.{other}/32"], check=True)
        said = self.run_program("addresses", "addresses")
        assert re.search(r"rank 0 of team 1 does not reach its twin of team 0 \(process \d+ on node2\): nobody answers \(.* to 10.99.0.2 port \d+\); team 0 goes on alone",
                         said), said
        assert (self.directory / "addresses").exists()
        print(f"{self.mpi}: one of two twins that do not reach each other goes on")

    def lose(self, hosts, killed, cut):
        """Of so many teams of one rank; while the first losses are taken in, another node is cut off."""
        subprocess.run(self.command((2,), 1, self.heat, "native", *HEAT), cwd=self.directory, check=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                       env=self.environment)
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, *self.command(hosts, 1, self.heat, "out", *HEAT, "--pause-ms", "300"), replicas=len(hosts))
            self.wait_for("the replicas are there", lambda: len(self.ranks()) == len(hosts), job)
            self.wait_for("something is written", lambda: self.written() > 100_000, job)
            for node in killed:
                self.kill_all(node)
            self.link(cut, "down")
            code = job.wait(timeout=120)
            self.kill_all(cut)
            log.seek(0)
            said = log.read()
        assert code == 0, said
        assert (self.directory / "out").read_bytes() == (self.directory / "native").read_bytes(), "the file is another one"
        return said

    def lose_two_of_three(self):
        said = self.lose((2, 3, 4), (2,), 3)
        assert "team 1 and team 2 go on" in said and "team 2 goes on alone" in said, said
        print(f"{self.mpi}: of three teams the last one went on")

    def lose_the_node_beside(self):
        """A team has its rank on the node where the job is started: that one is not lost by what cuts it off from the other."""
        said = self.lose((1, 2), (), 2)
        assert "team 0 goes on alone" in said, said
        print(f"{self.mpi}: the team on the node where the job was started went on")

    def come_back(self):
        """The team of a lost node, or process, catches up by the log of the other one, and outlives that."""
        shape = BIG if self.case == "separate" else HEAT
        native = subprocess.run(self.command((2, 3), 2, self.heat, "native", *shape), cwd=self.directory, check=True, capture_output=True, text=True, timeout=120,
                                stdin=subprocess.DEVNULL, env=self.environment).stdout
        node_is_lost = self.case.endswith("relaunched")
        spare = ["--spare-hosts", "node6"] if node_is_lost else []
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, "--relaunch", "1", *spare, *self.policy(), *self.command((2, 3, 4, 5), 2, self.heat, "out", *HEAT, "--pause-ms", "500"))
            with told(job, log):
                self.wait_for("the replicas are there", lambda: len(self.ranks()) == 4, job)
                if self.case == "relaunched":
                    self.wait_for("something is written", lambda: self.written() > 100_000, job)
                time.sleep(1)  # a protected file grows when it is synced
                self.lose_one(0, 1, node_is_lost)
                self.wait_for("the team has caught up", self.has_caught_up, job)
                hosts = ["node2", "node6"] if node_is_lost else ["node2", "node3"]
                assert [self.ranks()[2, rank][1] for rank in (0, 1)] == hosts, self.ranks()
                self.lose_one(1, 0, node_is_lost)
                code = job.wait(timeout=120)
                assert code == 0, f"the job ended with {code}"
            log.seek(0)
            said = log.read()
        assert self.content() == (self.directory / "native").read_bytes(), "the file is another one"
        assert not list(self.directory.glob(".out.holdfast-parts-*")), "parts are left"
        assert said.count(native.replace("native", "out")) == 1, said
        for line in ("and the command is started again as team 2", f"holdfast: team 2 takes the place of team 0, on {', '.join(hosts)}\n",
                     "team 2 has caught up; team 1 and team 2 go on", "team 2 goes on alone"):
            assert line in said, (line, said)
        shown = subprocess.run([self.build / "bin/holdfast", "status", "--job"], capture_output=True, text=True).stdout
        assert "2 of 2 teams lost, 1 relaunched" in shown and "team 2, started again, caught up" in shown, shown
        print(f"{self.mpi}, {self.case}: a team came back on {', '.join(hosts)}, and outlived the other one")

    def no_host_is_left(self):
        """A node is gone and none is spare: that is said, and the other team goes on."""
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, "--relaunch", "1", *self.command((2, 3), 1, self.heat, "out", *HEAT, "--pause-ms", "200"))
            self.wait_for("the replicas are there", lambda: len(self.ranks()) == 2, job)
            time.sleep(1)
            self.lose_one(0, 0, True)
            code = job.wait(timeout=120)
            log.seek(0)
            said = log.read()
        assert code == 0, said
        assert "node2 does not answer, and no host is left for its ranks: name some with --spare-hosts" in said, said
        assert "team 1 goes on alone" in said, said
        print(f"{self.mpi}: where no host is left that is said, and the other team went on")

    def lose_one(self, team, rank, node_is_lost):
        process, host = self.ranks()[team, rank]
        if not node_is_lost:
            return os.kill(process, signal.SIGKILL)
        node = int(host.removeprefix("node"))
        self.link(node, "down")
        self.kill_all(node)

    def has_caught_up(self):
        return any(team.get("caught_up") for team in self.status((0, 1, 3))["teams"])

    def lose_both_before_it_has_caught_up(self):
        """The program computes all the time. What its twin had done is with the new team, which goes through it when it is alone."""
        program, steps = str(self.build / "tests/mpi/nodes" / f"computes_{self.mpi}"), 24
        lines = lambda name="lines": (self.directory / name).read_text().splitlines() if (self.directory / name).exists() else []
        subprocess.run(self.command((2, 3), 2, program, "native", str(steps), "60000000"), cwd=self.directory, check=True, capture_output=True, timeout=200,
                       stdin=subprocess.DEVNULL, env=self.environment)
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, "--relaunch", "1", *self.command((2, 3, 4, 5), 2, program, "lines", str(steps), "60000000"))
            said = lambda: (self.directory / "log").read_text()
            self.wait_for("it has come some way", lambda: len(lines()) >= 5, job)
            self.lose_one(0, 1, False)
            self.wait_for("the new team is there", lambda: (2, 0) in self.ranks() and (2, 1) in self.ranks(), job)
            time.sleep(1)  # its copies are in step with what they follow
            assert not self.has_caught_up(), "it has caught up: nothing is tested here"
            self.lose_one(1, 0, False)
            code = job.wait(timeout=200)
        assert code == 0, said()
        assert "team 2 goes on alone" in said() and "has caught up" not in said(), said()
        result = [line.split() for line in lines()]
        assert [[one[0], one[3]] for one in result] == [[line.split()[0], line.split()[3]] for line in lines("native")], result
        assert [one[2] for one in result[1:]] == [one[1] for one in result[:-1]], result
        print(f"{self.mpi}: a team that was behind outlived the other one")

    def on(self, node, *command):
        subprocess.run(["nsenter", "-t", str(self.holder(node)), "--net", "--uts", "--ipc", "--mount", *map(str, command)], check=True)

    def log_without_room(self):
        """MPICH, which has no files there. One node has no room for its rank's log: no team is started again, which is said once, and the job goes on."""
        logs = self.root / "logs"
        logs.mkdir()
        self.on(2, "mount", "-t", "tmpfs", "-o", "size=64k", "none", logs)
        self.environment["TMPDIR"] = str(logs)
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, "--relaunch", "1", *self.command((2, 3), 1, self.heat, "out", *HEAT, "--pause-ms", "200"))
            self.wait_for("the replicas are there", lambda: len(self.ranks()) == 2, job)
            said = lambda: (self.directory / "log").read_text()
            self.wait_for("it is said", lambda: job.poll() is not None or "is not started again any more" in said())
            assert job.poll() is None, said()
            self.lose_one(0, 0, False)
            code = job.wait(timeout=120)
            log.seek(0)
            said = log.read()
        assert code == 0, said
        assert re.search(r"holdfast: the log of the job cannot be made: \S*/logs: No space left on device; a lost team is not started again any more", said), said
        assert said.count("not started again") == 1 and "team 1 goes on alone" in said and "team 2" not in said, said
        print(f"{self.mpi}: a log without room is said once, and no team is started again")

    def hub_out_of_reach(self):
        """Of one node its ports cannot be reached: its rank says which, and the other team goes on."""
        name = self.launcher[0]
        wrapper = self.root / "bin" / os.path.basename(name)
        wrapper.parent.mkdir()
        wrapper.write_text(f"""#!/bin/sh
case $HOLDFAST_REPLICA in 0*)
    for port in $(echo "$HOLDFAST_REPLICA" | grep -o 'tcp [^ ;]* [0-9]*' | cut -d' ' -f3 | sort -u); do
        nsenter -t {self.holder(2)} --net ip rule add ipproto tcp dport $port unreachable
    done
esac
exec {shutil.which(name)} "$@"
""")
        wrapper.chmod(0o755)
        self.environment["PATH"] = f"{wrapper.parent}:{os.environ['PATH']}"
        self.launcher[0] = wrapper.name
        with open(self.directory / "log", "w+") as log:
            job = self.start(log, *self.command((2, 3), 1, self.heat, "out", *HEAT))
            code = job.wait(timeout=60)
            log.seek(0)
            said = log.read()
        assert code == 0, said
        assert re.search(r"cannot be one of several replicas: node2 does not reach the process that joins the teams: .*to 10\.99\.0\.1 port \d+", said), said
        assert "team 0 has not come up" in said and "team 1 goes on alone" in said, said
        print(f"{self.mpi}: a node that does not reach the hub names its port, and the other team goes on")

    def output_held_back(self):
        """As by a terminal that is stopped, for longer than the deadline: the ranks wait with it, and live."""
        lines = 20000
        job = subprocess.Popen([self.build / "bin/holdfast", "run", "--replicas", "2",
                                *self.command((2, 3), 1, str(self.build / "tests/mpi/nodes" / f"addresses_{self.mpi}"), "addresses", str(lines))], cwd=self.directory,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)
        self.wait_for("the replicas are there", lambda: len(self.ranks()) == 2, job)
        time.sleep(2 * DEADLINE_S + 2)
        assert job.poll() is None and not (self.directory / "addresses").exists(), "more was printed than anybody has taken"
        said = job.communicate(timeout=60)[0]
        assert job.returncode == 0, said[-2000:]
        assert [line for line in said.splitlines() if not line.startswith("holdfast:")] == [f"line {i} of those that nobody reads for a while" for i in range(lines)]
        assert (self.directory / "addresses").exists()
        print(f"{self.mpi}: output that is held back holds the ranks back, and they live")

    def messages_are_decided(self):
        """Under each MPI by its own rules: what it says of a request that is looked at, and then waited for, differs."""
        for how in ("mixed", "later"):
            said = self.run_program("messages", how, "out", "10", ranks=3)
            assert re.search(r"^done \d+$", said, re.MULTILINE), said
            for rank in range(3):
                assert (self.directory / f"out.{rank}").read_text().endswith("end\n")
        print(f"{self.mpi}: exchanges, persistent and cancelled receives, and looks at requests are the same in both teams")

    def sums_on_nodes_that_differ(self):
        """Teams whose nodes take different numbers of ranks come to the same sums. With what the user has set instead they do not."""
        by_nodes = {"OMPI_MCA_coll_han_priority": "90"} if self.mpi.startswith("openmpi") else {"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}
        self.environment["PRTE_MCA_rmaps_default_mapping_policy"] = "slot"
        for set_by_user, expected in (({}, 0), (by_nodes, 120)):
            self.environment |= set_by_user
            with open(self.directory / "log", "w+") as log:
                job = self.start(log, *self.launcher, "node2:3,node3:1,node4:1,node5:3", "-n", "4", str(self.build / "tests/mpi/nodes" / f"sums_{self.mpi}"), "out")
                with told(job, log):
                    code = job.wait(timeout=60)
                log.seek(0)
                said = log.read()
            assert "team 0 on node2, node3, team 1 on node4, node5" in said and "their nodes take different numbers of ranks" in said, said
            assert code == expected, (code, said)
        print(f"{self.mpi}: sums over ranks are the same on nodes that differ")

    def same_addresses(self):
        """Of the program and its libraries, whatever node it is on; and what that is called."""
        self.run_program("addresses", "addresses")
        written = (self.directory / "addresses").read_text()
        assert re.fullmatch(r"0x\w+ 0x\w+\nnode2 node2 node2\n", written), written
        print(f"{self.mpi}: addresses and names of hosts are the same on both nodes")


def alive(process):
    try:
        return (pathlib.Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload", default="", help="a library that the ranks need beside Holdfast's")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("case", choices=("killed", "separate", "twice", "beside", "protected", "unplugged", "frozen", "asleep", "strangers", "addresses", "disks", "output", "relaunched", "protected_relaunched", "returned", "homeless", "behind", "full", "unreachable", "messages", "uneven"))
    parser.add_argument("mpi", choices=("openmpi", "mpich", "openmpi5", "mpich5"))
    options = parser.parse_args()
    if not options.inside:
        own = [sys.executable, "-B", os.path.abspath(__file__), "--inside", "--build", os.path.abspath(options.build), "--preload", options.preload, options.case,
               options.mpi]
        return subprocess.run([sys.executable, "-B", str(NODES), "--count", str(COUNT), "--", *own]).returncode
    test = Test(options)
    {"homeless": test.no_host_is_left, "behind": test.lose_both_before_it_has_caught_up, "full": test.log_without_room, "unreachable": test.hub_out_of_reach, "relaunched": test.come_back, "protected_relaunched": test.come_back, "returned": test.come_back, "twice": test.lose_two_of_three, "beside": test.lose_the_node_beside, "addresses": test.same_addresses, "messages": test.messages_are_decided, "uneven": test.sums_on_nodes_that_differ, "disks": test.disks_of_nodes, "output": test.output_held_back, "strangers": test.twins_that_are_strangers}.get(options.case, test.lose_a_node)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
