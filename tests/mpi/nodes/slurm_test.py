#!/usr/bin/env python3
"""Agents in a job of Slurm's own (scripts/fetch-slurm.sh), on nodes of their own (tests/tools/nodes.py): four slurmd and a slurmctld.

    slurm_test.py --build BUILD openmpi|mpich|srun[-restart|-left|-resume|-replicas], srun-relaunch, srun-spawns

In an allocation of four nodes `holdfast run --local`, or `holdfast agents start`, starts the agents as a job step, and the program writes a file over the nodes' directories: ranks of
mpirun or mpiexec, or four processes of srun's. A second `run` finds the agents. A node is lost: the agents of the others go on, the file is read without it,
and is whole once the node is back. At the end the files are plain. With -restart the program writes checkpoints, loses a node with its rank, and is started again
on the node that was spare; with -left there is none, and the nodes that are left take the rank. With -resume the allocation lacks --no-kill: Slurm ends the job with its node, and it
is gone on with in another allocation. With -replicas two teams run on two nodes each, and one of them is lost. With -relaunch they have a node each; the lost one comes
back on a node that was not used, and outlives the other. With -spawns two teams spawn ranks, as far as Slurm can. Ends with 77 where no nodes can be made or Slurm is not there.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
NODES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "nodes.py"
sys.path.insert(0, str(NODES.parent))
from nodes import signal_all  # noqa: E402

COUNT = 4
FRAMES = ["512", "128", "10", "2"]
CONFIGURATION = """
ClusterName=t
SlurmctldHost=node1(10.99.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/%n
TmpFS={root}/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=3
SlurmdDebug=debug
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Test:
    """On the first node."""

    def __init__(self, options):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.build, self.case, self.preload = pathlib.Path(options.build).resolve(), options.case.partition("-")[0], options.preload
        kind = options.case.partition("-")[2]
        self.ranks_on = ["node1", "node2", "node3", "node4"] if kind == "left" else ["node2", "node3", "node4"]
        self.job = {"restart": self.restart, "left": self.restart, "replicas": self.replicas, "relaunch": self.relaunch, "spawns": self.spawns}.get(kind, self.job)
        self.directory = self.root / "work"
        self.daemons = []

    def start_slurm(self):
        for directory in ("work", "state", "etc", *(f"node{i}" for i in range(1, COUNT + 1))):
            (self.root / directory).mkdir()
        # What nodes.py says for launchers that start remote processes by themselves: here Slurm does.
        for name in [name for name in os.environ if name.startswith(("HYDRA_", "OMPI_MCA_plm", "OMPI_MCA_orte_default", "PRTE_MCA_plm", "PRTE_MCA_prte_default"))]:
            del os.environ[name]
        os.environ.update(SLURM_CONF=str(self.root / "etc/slurm.conf"), HOLDFAST_AGENTS=str(self.directory / "agents"), HYDRA_LAUNCHER="slurm", HYDRA_IFACE="eth0")
        nodes = "".join(f"NodeName=node{i} NodeAddr=10.99.0.{i} CPUs=2 State=UNKNOWN\n" for i in range(1, COUNT + 1))
        (self.root / "etc/slurm.conf").write_text(CONFIGURATION.format(root=self.root) + nodes)
        for node in range(1, COUNT + 1):
            subprocess.run(self.inside(node, "mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.build}/slurm/usr:/usr", "/usr"), check=True)
        self.begin(1, "slurmctld-wlm", "-D", "-c")
        for node in range(1, COUNT + 1):
            self.begin(node, "slurmd-wlm", "-D", "-N", f"node{node}")
        deadline = time.monotonic() + 60
        while self.output("sinfo", "-h", "-o", "%D %T") != f"{COUNT} idle":
            assert time.monotonic() < deadline, "the nodes do not become idle: " + self.output("sinfo")
            time.sleep(0.1)

    def inside(self, node, *command):
        holder = (self.root / f"node{node}.pid").read_text()
        return ["nsenter", "-t", holder, "--net", "--uts", "--ipc", "--mount", f"--wd={self.directory}", *map(str, command)]

    def begin(self, node, *command):
        with open(self.root / "daemons.log", "a") as log:
            self.daemons.append(subprocess.Popen(self.inside(node, *command), stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def output(self, *command):
        return subprocess.run(self.inside(1, *command), capture_output=True, text=True, timeout=60).stdout.strip()

    def stop(self):
        subprocess.run(self.inside(1, "scancel", "--full", "--quiet", "--user=root"), timeout=60)
        deadline = time.monotonic() + 20
        while self.output("squeue", "-h") and time.monotonic() < deadline:
            time.sleep(0.1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:  # it waits for the daemon of a step that has no process any more, now and then on a busy machine
                self.kill_step_daemons()
                daemon.wait(timeout=30)

    @staticmethod
    def kill_step_daemons():
        """In the process namespace of nodes.py there are no others. Processes of a step stay, and count as left over."""
        for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
            try:
                if comm.read_text() == "slurmstepd\n":
                    os.kill(int(comm.parent.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass

    # --- the job: what follows runs in the allocation, on the first node

    options = ["--drain", "none"]

    def environment(self):
        return {**os.environ, **({"LD_PRELOAD": self.preload} if self.preload else {})}

    def holdfast(self, *arguments, expect=0, env=None):
        done = subprocess.run([self.build / "bin/holdfast", *map(str, arguments)], cwd=self.directory, capture_output=True, timeout=120, env=env)
        if expect is not None and done.returncode != expect:
            raise AssertionError(f"holdfast {shlex.join(map(str, arguments))} ended with {done.returncode}, wanted {expect}:\n"
                                 f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}")
        return done.stdout

    def agents(self):
        return {agent["node"]: agent for agent in json.loads(self.holdfast("agents", "status", "--json", expect=None))}

    def run(self, *command):
        self.holdfast("run", "--protect", "rs:2+2", "--path", "*.dat", "--striping-unit", "64k", "--local", self.directory / "disk-{node}", *self.options, "--", *command,
                      env=self.environment())

    def members(self, name, expect=0):
        report = json.loads(self.holdfast("status", "--json", "--deadline", "2s", name, expect=expect))
        return {member["path"].split(":")[0]: member["state"] for member in report["files"][0]["members"]}

    def write(self, name):
        """As the program does natively; the bytes that the file is to have."""
        heat = self.build / "examples" / self.case / "heat"
        if self.case == "srun":
            self.run("srun", "--mpi=none", "-N4", "-n4", "sh", "-c", f'yes $SLURM_PROCID | head -c 100000 > {name}.$SLURM_PROCID.dat')
            for rank in range(COUNT):
                assert self.holdfast("cat", f"{name}.{rank}.dat") == (f"{rank}\n" * 50000).encode()
            return f"{name}.0.dat", b"0\n" * 50000
        launcher = ["mpirun.openmpi" if self.case == "openmpi" else "mpiexec.mpich", "-n", str(COUNT)]
        subprocess.run([*launcher, heat, "native", *FRAMES], cwd=self.directory, check=True, timeout=120, stdin=subprocess.DEVNULL, env=self.environment())
        self.run(*launcher, heat, f"{name}.dat", *FRAMES)
        content = (self.directory / "native").read_bytes()
        assert self.holdfast("cat", f"{name}.dat") == content, "what was written is not what is read"
        return f"{name}.dat", content

    def job(self):
        ends = self.output("squeue", "--noheader", "--jobs=" + os.environ["SLURM_JOB_ID"], "--format=%e")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", ends), f"drains before the job's end could not tell when that is: {ends}"
        if self.case == "srun":  # all of the job's nodes are meant; with the others `run` starts them
            said = self.holdfast("agents", "start", "--make", self.directory / "disk-{node}").decode().split()
            assert said == [f"node{i}:{self.directory}/disk-node{i}" for i in range(1, COUNT + 1)], said
        self.write("first")
        started = self.agents()
        assert {node: agent["state"] for node, agent in started.items()} == {f"node{i}": "up" for i in range(1, COUNT + 1)}, started
        assert [agent["host"] for agent in started.values()] == list(started), "each agent is on its own node"
        name, content = self.write("second")
        again = self.agents()
        assert {node: agent["process"] for node, agent in started.items()} == {node: agent["process"] for node, agent in again.items()}, "the same agents"
        self.lose(3)
        assert self.holdfast("cat", "--deadline", "2s", name) == content, "what was written is not what is read without a node"
        members = self.members(name, expect=1)
        assert members["node3"] == "unreached" and list(members.values()).count("ok") == COUNT - 1, members
        others = self.agents()
        assert all(others[node]["process"] == again[node]["process"] for node in ("node1", "node2", "node4")), "the other agents went on"
        self.bring_back(3)
        self.holdfast("verify", name)
        self.options = []  # an allocation's default: what lies on its nodes only is plain at the end of a run
        self.run("true")
        assert (self.directory / name).read_bytes() == content
        if self.case == "srun":
            self.start_and_end()
        print(f"{self.case}: agents as a step of the job; a node was lost, and the others' agents went on")

    def steps(self):
        """The names of those that run."""
        return self.output("squeue", "--steps", "--noheader", "--jobs=" + os.environ["SLURM_JOB_ID"], "--format=%j").split()

    def wait_until(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.2)

    def start_and_end(self):
        """`agents start` in an allocation means its nodes; what a killed `run` has started ends by itself."""
        self.holdfast("agents", "stop")
        self.wait_until(lambda: "holdfast-agents" not in self.steps(), "the step ends with its agents")
        disks = [f"node{i}:{self.directory}/disk-node{i}" for i in (1, 2, 4)]
        self.holdfast("agents", "start", "--hosts", "node[1,2,4]", self.directory / "no-{node}", expect=3)
        assert not self.agents(), "no directory, no agent"
        said = self.holdfast("agents", "start", "--hosts", "node[1,2,4]", self.directory / "disk-{node}").decode().split()
        assert said == disks, said
        assert {node: agent["host"] for node, agent in self.agents().items()} == {node: node for node in ("node1", "node2", "node4")}
        assert self.steps().count("holdfast-agents") == 1, self.steps()
        process = self.agents()["node2"]["process"]
        os.kill(process, signal.SIGKILL)
        self.wait_until(lambda: self.agents()["node2"]["process"] != process and self.agents()["node2"]["state"] == "up", "a killed one is started again")
        self.holdfast("agents", "stop")
        self.wait_until(lambda: "holdfast-agents" not in self.steps(), "stopped ones stay so")
        run = subprocess.Popen([self.build / "bin/holdfast", "run", "--protect", "rs:2+1", "--path", "*.dat", "--hosts", "node[1,2,4]", "--agent-linger", "3", "--local",
                                self.directory / "disk-{node}", "--", "sh", "-c", "echo $$ > began; exec sleep 100"], cwd=self.directory)
        self.wait_until((self.directory / "began").exists, "the program begins")
        assert "holdfast-agents" in self.steps(), self.steps()
        agent = self.agents()["node2"]["process"]
        watcher = int(pathlib.Path(f"/proc/{agent}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(watcher, signal.SIGKILL)
        os.kill(agent, signal.SIGKILL)
        self.wait_until(lambda: self.agents()["node2"]["state"] == "up", "run starts one again, in a step of its own")
        run.kill()
        run.wait()
        self.wait_until(lambda: "holdfast-agents" not in self.steps(), "a killed run leaves nothing")
        assert not self.agents(), self.agents()

    # --- a job with checkpoints, on three nodes of the four or on all of them

    # For srun, with no MPI: what jacobi_checkpoint does, in a few lines.
    SCRIPT = """
        own=$SLURM_PROCID step=60
        while [ $step -gt 0 ] && [ ! -e ck/ck.$step.$own ]; do step=$((step - 10)); done
        echo begins after step $step
        sum=0; [ $step -gt 0 ] && read sum < ck/ck.$step.$own
        while [ $step -lt 60 ]; do
            step=$((step + 1)) sum=$(((sum * 31 + step + own) % 1000003)); sleep 0.1
            [ $((step % 10)) = 0 ] && echo $sum > ck/ck.$step.$own
        done
        echo checksum $own:$sum
    """

    def program(self, pause_us):
        ranks, names = str(len(self.ranks_on)), ",".join(self.ranks_on)
        if self.case == "srun":
            return ["srun", "--mpi=none", "-N" + ranks, "-n" + ranks, "-w", names, "sh", "-c", self.SCRIPT]
        launcher = ["mpirun.openmpi", "--host"] if self.case == "openmpi" else ["mpiexec.mpich", "-hosts"]
        return [*launcher, names, "-n", ranks, self.build / "examples" / self.case / "jacobi_checkpoint", "60", "10", "32", pause_us]

    def run_with_checkpoints(self, *options):
        return [self.build / "bin/holdfast", "run", "--protect", "rs:2+1", "--local", self.directory / "disk-{node}", "--checkpoint", "ck/ck.{step}.{rank}", "--deadline", "2s",
                *options, "--", *map(str, self.program(100000))]

    def see_one_whole(self, job):
        deadline = time.monotonic() + 60
        while b'"whole"' not in self.holdfast("checkpoints", "--json", expect=None):
            assert job.poll() is None and time.monotonic() < deadline, "no checkpoint is whole"
            time.sleep(0.2)

    def restart(self):
        (self.directory / "ck").mkdir()
        log = self.directory / "log"
        with open(log, "w") as out:
            job = subprocess.Popen(self.run_with_checkpoints("--restarts", "2"), cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment())
        try:
            self.see_one_whole(job)
            self.lose(3)
            assert job.wait(timeout=120) == 0, f"the job ended with {job.returncode}"
            said = log.read_text()
            begun = self.check_begun(said, "it was not started again from a checkpoint")
        except BaseException:
            job.kill()
            print(log.read_text()[-6000:], file=sys.stderr)
            raise
        print(f"{self.case}: a node of the job was lost; it was started again from checkpoint {begun} on nodes that were left, to the same result")

    def check_begun(self, said, else_):
        """On the nodes that are left it has gone on from a checkpoint, whose step is returned, to the right end."""
        begun = re.search(r"attempt 2 begins with checkpoint (\d+), on node1, node2, node4", said)
        assert begun and f"begins after step {begun[1]}" in said, else_
        assert "no-kill" not in said, "this allocation outlives its nodes"
        self.check_result(said)
        return begun[1]

    def check_result(self, said):
        """What is printed, and the last checkpoint, which is plain at its paths, are those of the program by itself."""
        checksums, last = self.by_itself()
        assert sorted(re.findall(r"checksum (\S+)", said)) == checksums, "the result is another one"
        drained = {file.name: file.read_bytes() for file in (self.directory / "ck").iterdir()}
        assert drained == last, f"at the user's path is {sorted(drained)}, not the last checkpoint as the program writes it by itself"

    def by_itself(self):
        if self.case == "srun":
            sums = [0] * len(self.ranks_on)
            for step in range(1, 61):
                sums = [(value * 31 + step + own) % 1000003 for own, value in enumerate(sums)]
            return [f"{own}:{value}" for own, value in enumerate(sums)], {f"ck.60.{own}": f"{value}\n".encode() for own, value in enumerate(sums)}
        program = [",".join(["node1", "node2", "node4", "node4"][:len(self.ranks_on)]) if word.startswith("node") else word for word in map(str, self.program(0))]
        if self.case == "openmpi":
            program.insert(1, "--oversubscribe")
        plain = self.directory / "plain"
        (plain / "ck").mkdir(parents=True)
        # Slurm may hold on to the step that lost its node until the job ends.
        environment = {**self.environment(), "SLURM_OVERLAP": "1"}
        done = subprocess.run(program, cwd=plain, check=True, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env=environment)
        return sorted(re.findall(r"checksum (\S+)", done.stdout)), {file.name: file.read_bytes() for file in plain.glob("ck/ck.60.*")}

    def resume(self):
        """From outside of the allocations: the first one ends with its node."""
        (self.directory / "ck").mkdir()
        log = self.directory / "log"

        def begin(nodes, *options, salloc=()):
            with open(log, "w") as out:
                return subprocess.Popen(self.inside(1, "salloc", *salloc, "--quiet", "--time=60", f"-N{nodes}", *self.run_with_checkpoints(*options)), stdin=subprocess.DEVNULL,
                                        stdout=out, stderr=out, env=self.environment())

        job = begin(COUNT, "--restarts", "2")
        try:
            self.see_one_whole(job)
            self.lose(3)
            assert job.wait(timeout=120) != 0, "the job ended well without its node"
            said = log.read_text()
            assert said.count("begin the job with salloc --no-kill or sbatch --no-kill") == 1, "it is said once what the allocation lacks"
            assert "attempt 2" not in said, "nothing can be started again in an allocation that has ended"
            self.ranks_on = ["node1", "node2", "node4"]
            job = begin(COUNT - 1, "--restarts", "2", "--resume", salloc=("--no-kill",))
            assert job.wait(timeout=120) == 0, f"the job that goes on ended with {job.returncode}"
            said = log.read_text()
            begun = self.check_begun(said, "it does not go on from a checkpoint")
        except BaseException:
            job.kill()
            print(log.read_text()[-6000:], file=sys.stderr)
            raise
        finally:
            self.holdfast("agents", "stop", expect=None)
        print(f"{self.case}: the allocation ended with its node; another one went on from checkpoint {begun}, to the same result")
        return 0

    # --- two teams on two nodes each

    def replicas(self):
        """With srun by Open MPI's own way into Slurm."""
        mpi = "openmpi" if self.case == "srun" else self.case
        launcher = {"openmpi": ["mpirun.openmpi"], "mpich": ["mpiexec.mpich"], "srun": ["srun", "--mpi=pmix"]}[self.case]
        heat, shape, log = self.build / "examples" / mpi / "heat", ["60", "80", "60", "2"], self.directory / "log"
        subprocess.run([*launcher, "-n", "2", heat, "native", *shape], cwd=self.directory, check=True, timeout=120, stdin=subprocess.DEVNULL, env=self.environment())
        environment = {**self.environment(), "HOLDFAST_SHARED_MOUNTS": str(self.root), "XDG_STATE_HOME": str(self.root / "state-of-jobs")}
        def begin():
            with open(log, "w") as out:
                return subprocess.Popen([self.build / "bin/holdfast", "run", "--replicas", "2", "--deadline", "5s", "--", *launcher, "-n", "2", heat, "out", *shape, "--pause-ms",
                                         "300"], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)

        job = begin()
        try:
            for _ in range(3):
                if self.writes(job):
                    break
                print("Slurm's PMIx asked a node that is not the team's: MPI_Init never returns there; once more")
                job.terminate()
                assert job.wait(timeout=60) != 0, "it ended well though one team never began"
                self.wait_until(lambda: "heat" not in self.steps(), "the steps have ended", seconds=90)
                (self.directory / "out").unlink(missing_ok=True)
                job = begin()
            else:
                raise AssertionError("three times in a row a team did not leave MPI_Init")
            assert job.poll() is None, f"the job ended with {job.returncode}"
            self.lose(3)
            assert job.wait(timeout=120) == 0, f"the job ended with {job.returncode}"
            said = log.read_text()
            assert "team 0 on node1, node2, team 1 on node3, node4; the loss of this node, node1" in said, said
            assert "team 0 goes on alone" in said, said
            assert (self.directory / "out").read_bytes() == (self.directory / "native").read_bytes(), "the file is another one"
        except BaseException:
            job.kill()
            print(log.read_text()[-6000:], file=sys.stderr)
            raise
        print(f"{self.case}: a node was lost, and the other team went on")

    def writes(self, job):
        """Whether it does, else it never will. Now and then a rank asks in MPI_Init for what the fence is about to deliver. Slurm 22.05 then looks for the other rank's node
        among those of the allocation, not of the step: it asks the other team's, where nobody answers. A start may ask so and be well, when the fence comes soon."""
        out, wrong = self.directory / "out", self.wrong_questions()
        is_well = lambda: job.poll() is not None or (out.exists() and out.stat().st_size > 100_000)  # noqa: E731
        begun = time.monotonic()
        self.wait_until(lambda: is_well() or (time.monotonic() - begun > 25 and self.wrong_questions() > wrong), "it writes", seconds=60)
        return is_well()

    def wrong_questions(self):
        """By a node of the second team to one of the first."""
        logs = [(self.root / f"node{node}.log").read_text() for node in (3, 4)]
        return sum(len(re.findall(r"_pmix_p2p_send_core: .*nodelist=node[12],", log)) for log in logs)

    def relaunch(self):
        """A step is lost with its node; the next one gets another node of the allocation."""
        heat, shape, log = self.build / "examples" / "openmpi" / "heat", ["60", "80", "60", "2"], self.directory / "log"
        step = ["srun", "--mpi=pmix", "-N", "1", "-n", "1"]
        subprocess.run([*step, heat, "native", *shape], cwd=self.directory, check=True, timeout=120, stdin=subprocess.DEVNULL, env=self.environment())
        environment = {**self.environment(), "HOLDFAST_SHARED_MOUNTS": str(self.root), "XDG_STATE_HOME": str(self.root / "state-of-jobs")}

        def teams():
            done = subprocess.run([self.build / "bin/holdfast", "status", "--job", "--json"], capture_output=True, text=True, env=environment)
            return json.loads(done.stdout)["teams"] if done.stdout else []

        with open(log, "w") as out:
            job = subprocess.Popen([self.build / "bin/holdfast", "run", "--replicas", "2", "--relaunch", "1", "--deadline", "5s", "--", *step, heat, "out", *shape,
                                    "--pause-ms", "600"], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        try:
            self.wait_until(lambda: job.poll() is not None or ((self.directory / "out").exists() and (self.directory / "out").stat().st_size > 100_000), "it writes")
            assert job.poll() is None, f"the job ended with {job.returncode}"
            subprocess.run(self.inside(2, "ip", "link", "set", "eth0", "down"), check=True)
            self.lose(2)
            self.wait_until(lambda: job.poll() is not None or any(team.get("caught_up") for team in teams()), "the team has caught up")
            assert job.poll() is None, f"the job ended with {job.returncode}"
            os.kill(teams()[0]["ranks"][0]["process"], signal.SIGKILL)
            assert job.wait(timeout=120) == 0, f"the job ended with {job.returncode}"
            said = log.read_text()
            assert "team 0 on node1, team 1 on node2" in said and "not used: node3, node4" in said, said
            assert "team 2 takes the place of team 1, on node3" in said and "team 2 goes on alone" in said, said
            assert (self.directory / "out").read_bytes() == (self.directory / "native").read_bytes(), "the file is another one"
        except BaseException:
            job.kill()
            print(log.read_text()[-6000:], file=sys.stderr)
            raise
        print("srun: a team came back on another node of the allocation, and outlived the other one")

    def spawns(self):
        """Slurm's PMI-2 spawns ranks as a step of its own, for each team. Its PMIx cannot: the program is told that, as without replicas."""
        environment = {**self.environment(), "HOLDFAST_SHARED_MOUNTS": str(self.root), "XDG_STATE_HOME": str(self.root / "state-of-jobs"), "SLURM_OVERLAP": "1"}
        cases = [("pmix", "mpicc.openmpi", False)]
        if (mpich := self.build / "mpi/mpich/bin/mpicc").exists():
            cases.append(("pmi2", mpich, True))
        for pmi, compiler, can in cases:
            subprocess.run([compiler, pathlib.Path(__file__).resolve().parents[2] / "cli/spawns.c", "-o", "spawns"], cwd=self.directory, check=True)
            command, codes = ["srun", f"--mpi={pmi}", "-N2", "-n2", "./spawns"], []
            for before in ([], [self.build / "bin/holdfast", "run", "--replicas", "2", "--"]):
                done = subprocess.run([*before, *command], cwd=self.directory, env=environment, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)
                codes.append(done.returncode)
                told = self.directory / "told"
                assert told.exists() == can and (not can or told.read_text() == "43\n"), (pmi, done.stdout, done.stderr)
                told.unlink(missing_ok=True)
            assert codes[0] == codes[1] and (codes[1] == 0) == can, (pmi, codes, done.stdout, done.stderr)
            assert done.stderr.count("rank 0 has started spawns, which is no replica: it writes") == int(can), done.stderr
            assert can or "MPI_ERR_SPAWN" in done.stderr, done.stderr
            print(f"srun --mpi={pmi}: two teams {'have spawned ranks of their own' if can else 'are told that no rank can be spawned'}")

    def lose(self, node):
        """All processes of the node are gone at once, Slurm's too, and Slurm hears of it."""
        signal_all(self.root, f"node{node}", signal.SIGKILL)
        subprocess.run(["scontrol", "update", f"nodename=node{node}", "state=down", "reason=lost"], check=True)
        agents = self.agents()
        assert not agents or agents[f"node{node}"]["state"] == "lost", agents
        time.sleep(3)  # whatever Slurm does to the step's other tasks, it has done

    def bring_back(self, node):
        self.holdfast("agents", "start", "--node", f"node{node}", self.directory / f"disk-node{node}")


def in_job(test):
    """Its own end must not be waited for by the agents' step."""
    try:
        test.job()
    finally:
        test.holdfast("agents", "stop", expect=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload", default="", help="a library that the ranks need beside Holdfast's")
    parser.add_argument("--stage", choices=("outside", "inside", "job"), default="outside", help=argparse.SUPPRESS)
    parser.add_argument("case", choices=[case + end for case in ("openmpi", "mpich", "srun") for end in ("", "-restart", "-left", "-resume", "-replicas")] + ["srun-relaunch", "srun-spawns"])
    options = parser.parse_args()
    own = [sys.executable, "-B", os.path.abspath(__file__), "--build", os.path.abspath(options.build), "--preload", options.preload]
    if options.stage == "outside":
        if not (pathlib.Path(options.build) / "slurm/.complete").exists():
            print(f"slurm_test: skipped, Slurm is not there; run: scripts/fetch-slurm.sh {options.build}")
            return 77
        return subprocess.run([sys.executable, "-B", str(NODES), "--count", str(COUNT), "--", *own, "--stage", "inside", options.case]).returncode
    test = Test(options)
    if options.stage == "job":
        in_job(test)
        return 0
    try:
        test.start_slurm()
        if options.case.endswith("-resume"):
            return test.resume()
        code = subprocess.run(test.inside(1, "salloc", "--no-kill", "--quiet", "--time=60", f"-N{COUNT}", *own, "--stage", "job", options.case), timeout=300).returncode
        if code != 0:
            for log in ("slurmctld.log", "node1.log", "node2.log", "daemons.log"):
                print(log, (test.root / log).read_text()[-1500:] if (test.root / log).exists() else "", file=sys.stderr)
        return code
    finally:
        test.stop()


if __name__ == "__main__":
    sys.exit(main())
