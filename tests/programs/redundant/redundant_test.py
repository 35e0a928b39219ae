#!/usr/bin/env python3
"""Unmodified programs that are there several times while ranks are killed at random.

    redundant_test.py --build BUILD [--kills N] [--relaunch] [--seed S] [--mpicc MPICC] PROGRAM MPI

Each job is `holdfast run --replicas 2|3` of the program on three ranks. At a random instant a rank of some team dies; of three teams two die. With --relaunch
teams are started again, any of them may die while another one is there, and each job loses three. The job ends with 0, and the files are those of the program by itself. Programs whose files depend on the clock or on who is first are held to what is true of each of their files; that
all replicas write the same is what the job itself demands. Ends with 77 where the program or its MPI is not there.
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
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import matrix  # noqa: E402  how the launchers are called

RANKS = 3
SECONDS = 120


class Missing(Exception):
    pass


class Program:
    """What is started, and what its files have to be. `expected` is made by the program itself, natively."""

    def __init__(self, options):
        self.build, self.mpi = pathlib.Path(options.build).resolve(), options.mpi
        self.expected = {}

    def built(self, folder, name):
        path = self.build / folder / self.mpi / name
        if not path.exists():
            raise Missing(f"{path} was not built")
        return [path]

    def prepare(self, directory):
        """What has to lie there before it starts."""

    def begin_natively(self, run):
        run(self.command())
        self.expected = {path.name: path.read_bytes() for path in pathlib.Path(run.directory).iterdir()}

    def check(self, files, run):
        assert files.keys() == self.expected.keys(), f"{sorted(files)} are there, and natively {sorted(self.expected)}"
        for name, content in files.items():
            assert content == self.expected[name], f"{name} is not what the program writes by itself"


class Heat(Program):
    def command(self):
        return [*self.built("examples", "heat"), "out", "200", "100", "60", "3", "--pause-ms", "80"]


class HeatInFortran(Program):
    def command(self):
        return [*self.built("examples", "heat_f"), "out", "200", "100", "60", "3", "--pause-ms", "80"]


class Lines(Program):
    """Whose line comes first in the log is the kernel's choice."""

    def command(self):
        return [*self.built("tests/programs", "lines"), "out"]

    def check(self, files, run):
        log, wanted = files.pop("out.log"), self.expected["out.log"]
        assert sorted(log.splitlines(True)) == sorted(wanted.splitlines(True)), "a line of the log is lost, torn or there twice"
        super().check({**files, "out.log": wanted}, run)


class Workers(Program):
    """Who does which task is the network's choice."""

    def command(self):
        return [*self.built("tests/programs", "workers"), "out"]

    @staticmethod
    def tasks(content):
        found = re.findall(r"task (\d+) of rank \d+: (-?\d+)\n", content)
        assert len(found) == content.count("\n") - 1 and re.search(r"^60 tasks, \d+ polls found nothing\n\Z", content, re.M), content
        return sorted(found)

    def check(self, files, run):
        assert files.keys() == {"out"}, sorted(files)
        assert self.tasks(files["out"].decode()) == self.tasks(self.expected["out"].decode()), "a task is lost, there twice, or another one's"


class Chance(Program):
    """The clock chooses the seeds; with the same ones it writes the same."""

    def command(self):
        return [*self.built("tests/programs", "chance"), "out"]

    def check(self, files, run):
        seeds = files["out"].decode().split("\n", 1)[0].split()[1:]
        assert len(seeds) == RANKS, files["out"]
        run([*self.command(), *seeds])
        assert files["out"] == run.file("out"), "with these seeds it writes something else"


class Fields(Program):
    arguments = []
    modules = "mpi4py"

    def command(self):
        python = matrix.tools and os.path.join(matrix.tools, "python3") or "/usr/bin/python3"
        if not os.path.exists(python) or subprocess.run([python, "-c", f"import {self.modules}"], capture_output=True).returncode:
            raise Missing(f"{self.modules} is not installed for {python}")
        return [python, HERE / "fields.py", "out", *self.arguments]


class Hdf5Fields(Fields):
    arguments = ["h5"]
    modules = "h5py._debian_h5py_mpi"


class Lammps(Program):
    def prepare(self, directory):
        text = (HERE.parent / "libraries" / "melt.lammps").read_text().replace("run             100", "run             1500").replace("${prefix}", "out")
        (directory / "melt").write_text(text.replace("atom/mpiio 20", "atom/mpiio 300").replace("restart         50", "restart         500"))

    def command(self):
        if not shutil.which("lmp"):
            raise Missing("LAMMPS is not installed (lammps)")
        return ["lmp", "-log", "none", "-screen", "none", "-in", "melt"]


class Hpcc(Program):
    """Its output has times and rates in it."""

    def prepare(self, directory):
        shutil.copy(HERE / "hpccinf.txt", directory)

    def command(self):
        if not shutil.which("hpcc"):
            raise Missing("HPC Challenge is not installed (hpcc)")
        return ["hpcc"]

    def check(self, files, run):
        text = files["hpccoutf.txt"].decode()
        assert "End of HPC Challenge tests" in text and re.search(r"^Success=1$", text, re.M), text[-3000:]
        assert len(text.splitlines()) == len(self.expected["hpccoutf.txt"].splitlines()), "its output is longer or shorter than natively"


PROGRAMS = {"heat": Heat, "heat_f": HeatInFortran, "lines": Lines, "workers": Workers, "chance": Chance, "fields.py": Fields, "h5fields.py": Hdf5Fields,
            "lammps": Lammps, "hpcc": Hpcc}


class Native:
    """Runs the program by itself in a directory of its own."""

    def __init__(self, program, root):
        self.program, self.root, self.directory = program, root, None

    def __call__(self, command):
        self.directory = tempfile.mkdtemp(prefix="native-", dir=self.root)
        self.program.prepare(pathlib.Path(self.directory))
        subprocess.run([*matrix.launcher(self.program.mpi, RANKS), *command], cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, check=True,
                       timeout=SECONDS)

    def file(self, name):
        return pathlib.Path(self.directory, name).read_bytes()


class Job:
    def __init__(self, program, root, seed, replicas, kills=None, relaunches=0):
        self.program, self.seed, self.random, self.replicas = program, seed, random.Random(seed), replicas
        self.relaunches = relaunches
        self.kills = (relaunches or replicas - 1) if kills is None else kills
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"job{seed}-", dir=root))
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.directory) + ".state"}
        self.told = []

    def holdfast(self):
        return self.program.build / "bin" / "holdfast"

    def start(self):
        self.program.prepare(self.directory)
        again = ["--relaunch", str(self.relaunches)] if self.relaunches else []
        command = [self.holdfast(), "run", "--replicas", str(self.replicas), *again, *matrix.launcher(self.program.mpi, RANKS), *self.program.command()]
        self.said = open(str(self.directory) + ".said", "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said, env=self.environment)
        self.began = time.monotonic()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.said.close()

    def living(self):
        """Processes by team of those teams that are not lost, once all ranks are there; and which of them do not stand by."""
        while self.process.poll() is None and time.monotonic() - self.began < SECONDS:
            done = subprocess.run([self.holdfast(), "status", "--job", "--json"], capture_output=True, text=True, env=self.environment)
            teams = json.loads(done.stdout)["teams"] if done.returncode in (0, 1) and done.stdout else []
            if teams and all(team["lost"] or len(team["ranks"]) == RANKS for team in teams):
                left = [team for team in teams if not team["lost"]]
                return {team["team"]: team["ranks"] for team in left}, {team["team"] for team in left if team.get("caught_up", True)}
            time.sleep(0.02)
        return {}, set()

    def strike(self, at):
        """Whether a rank was killed; no team is the last one."""
        try:
            self.process.wait(max(0, self.began + at - time.monotonic()))
            return False
        except subprocess.TimeoutExpired:
            pass
        teams, members = self.living()
        may_die = [team for team in sorted(teams) if members - {team}]
        if not may_die:
            return False
        team = self.random.choice(may_die)
        victim = self.random.choice(teams[team])
        self.told.append(f"rank {victim['rank']} of team {team} at {time.monotonic() - self.began:.2f} s")
        try:
            os.kill(victim["process"], signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def run(self, seconds, native):
        """How many ranks were killed. `seconds`: what a job takes."""
        self.start()
        try:
            struck = sum(self.strike(at) for at in sorted(self.random.uniform(0, seconds) for _ in range(self.kills)))
            code = self.process.wait(SECONDS)
            self.said.seek(0)
            assert code == 0, f"it ended with {code}"
            self.program.check({path.name: path.read_bytes() for path in self.directory.iterdir()}, native)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            self.said.seek(0)
            raise AssertionError(f"seed {self.seed}, {self.replicas} teams, {', '.join(self.told) or 'nobody killed'}: {error}\n{self.said.read()[-4000:]}") from None
        finally:
            self.end()
        shutil.rmtree(self.directory)
        return struck


def strike_until(program, kills, seed, root, relaunches):
    native = Native(program, root)
    program.begin_natively(native)
    began = time.monotonic()
    Job(program, root, seed, 2, kills=0).run(0, native)
    seconds = time.monotonic() - began
    struck = failed = jobs = 0
    while struck < kills and jobs < 10 * kills:
        replicas = random.Random(seed).choice((2, 3)) if kills - struck > 1 else 2
        try:
            struck += Job(program, root, seed, replicas, relaunches=relaunches).run(seconds, native)
        except AssertionError as error:
            print(error, file=sys.stderr, flush=True)
            failed, struck = failed + 1, struck + 1
        seed, jobs = seed + 1, jobs + 1
    print(f"{jobs} jobs, {struck} ranks killed, {failed} jobs failed")
    return 1 if failed or struck < kills else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--mpicc")
    parser.add_argument("--relaunch", action="store_true")
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("mpi")
    options = parser.parse_args()
    matrix.tools = os.path.dirname(options.mpicc) if options.mpicc else ""
    os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    seed = random.randrange(1, 10**6) if options.seed is None else options.seed
    print(f"the first seed is {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-redundant-") as root:
        try:
            return strike_until(PROGRAMS[options.program](options), options.kills, seed, root, 3 if options.relaunch else 0)
        except Missing as missing:
            print(missing)
            return 77


if __name__ == "__main__":
    sys.exit(main())
