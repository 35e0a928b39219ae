"""What the tests of the command share: a directory of its own for each test, targets in it, and the command itself."""
import contextlib
import ctypes
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import zlib

BINARY = os.environ.get("HOLDFAST_BINARY") or os.path.join(os.path.dirname(__file__), "../../build/bin/holdfast")

# For programs that lose nodes with the job that uses them, as `lose NODE...`: their agents and who would start those again, and the notes, by which `run` or
# the program would. All of them at one time: what one node alone has lost is made anew on another one.
LOSE_AGENT = """lose() { gone=; for node; do
    note=$(ls $HOLDFAST_AGENTS/$node.*.agent); agent=$(sed -n 's/^process //p' $note)
    gone="$gone $(sed -n 's/^PPid:[^0-9]*//p' /proc/$agent/status) $agent"; rm $note $HOLDFAST_AGENTS/$node.*.again; done; kill -9 $gone; }"""

def interrupted_with_its_test():
    """For Popen's preexec_fn: a `holdfast run` whose test is ended, by ctest's limit of time, ends with all its processes as by Ctrl-C."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


class Rests:
    """The programs of a job rest longer than they say until they are hurried (tests/tools/rests.c): what a test does meanwhile has time for that."""

    def __init__(self, directory, times=6):
        self.file, self.times = directory + ".hurry", times

    def variables(self, env):
        library = os.environ.get("HOLDFAST_RESTS")
        return {"LD_PRELOAD": ":".join(filter(None, [env.get("LD_PRELOAD"), library])), "RESTS": str(self.times), "RESTS_UNTIL": self.file} if library else {}

    def begin(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.file)

    def hurry(self):
        open(self.file, "wb").close()


def interrupt(job, patience=30):
    """Ends a `holdfast run` with all its processes, where it has not ended."""
    if job.poll() is not None:
        return
    job.send_signal(signal.SIGINT)
    try:
        job.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        job.kill()
        job.communicate()


def debian_mpis():
    """Name and launcher of each that is here with its compiler."""
    for name, launcher in (("openmpi", ["mpirun.openmpi", "--oversubscribe"]), ("mpich", ["mpiexec.mpich"])):
        if shutil.which(launcher[0]) and shutil.which(f"mpicc.{name}"):
            yield name, launcher


class CommandTest(unittest.TestCase):
    binary = BINARY

    def launchers(self, ranks=2):
        """Of each test one MPI, by turns; the other one in `make test-long`."""
        here = list(debian_mpis())
        if not os.environ.get("HOLDFAST_TEST_LONG"):
            turn = zlib.crc32(self.id().encode()) % max(len(here), 1)
            here = here[turn:turn + 1]
        for name, launcher in here:
            yield name, [*launcher, "-n", str(ranks)]

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="holdfast-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}
        asleep = [library for library in os.environ.get("LD_PRELOAD", "").split(":") if "wait_asleep" in os.path.basename(library)]
        if asleep:
            self.env["LD_PRELOAD"] = asleep[0]  # tests/tools/wait_asleep.c

    def make_installation(self):
        """A copy of the command in a prefix of its own, where the test says which libraries there are."""
        os.makedirs(self.path("install/bin"))
        os.makedirs(self.path("install/lib/holdfast"))
        self.binary = shutil.copy(BINARY, self.path("install/bin/holdfast"))

    def library(self, name, where="lib"):
        # Loaded for real by everything that is started then: any harmless library does, here the one beside this process's libc.
        with open("/proc/self/maps") as maps:
            libc = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
        self.harmless = os.path.join(os.path.dirname(libc), "libdl.so.2")
        return shutil.copy(self.harmless, self.path("install", where, f"libholdfast-{name}.so"))

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def holdfast(self, *args, expect=0, env=None, text=True):
        """Runs the command in the test's directory and demands its exit code, or one of those."""
        done = subprocess.run([self.binary, *args], cwd=self.dir, env={**self.env, **(env or {})}, capture_output=True,
                              text=text, timeout=120, stdin=subprocess.DEVNULL)
        if expect is not None:
            self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,), f"holdfast {' '.join(args)}\n{done.stdout!r}\n{done.stderr!r}")
        return done

    def begin(self, *args):
        """The command, running beside the test."""
        process = subprocess.Popen([self.binary, *args], cwd=self.dir, env=self.env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def note_of(self, node, kind="agent"):
        """The one file of that kind that the registry has about a directory of the node."""
        [note] = glob.glob(self.path("agents", f"{node}.*.{kind}"))
        return note

    def agent_of(self, node):
        """The process of a node's agent."""
        return next(agent["process"] for agent in self.json("agents", "status", expect=None) if agent["node"] == node)

    def lose_agent(self, node):
        """With it goes who would start it again at once, as when the node is gone."""
        process = self.agent_of(node)
        with open(f"/proc/{process}/stat") as file:
            watcher = int(file.read().split()[3])
        if self.is_agent(watcher):
            os.kill(watcher, signal.SIGKILL)
        os.kill(process, signal.SIGKILL)
        while not self.has_ended(process):
            time.sleep(0.01)

    @staticmethod
    def has_ended(process):
        try:
            with open(f"/proc/{process}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    @staticmethod
    def is_agent(process):
        try:
            with open(f"/proc/{process}/comm", encoding="utf-8") as file:
                return file.read().strip() == "agent"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def json(self, *args, expect=0):
        return json.loads(self.holdfast(*args, "--json", expect=expect).stdout)

    def make_targets(self, count, prefix="t"):
        targets = [self.path(f"{prefix}{i}") for i in range(count)]
        for target in targets:
            os.mkdir(target)
        return targets

    def make_file(self, name="out.dat", size=3_000_001, seed=1):
        content = random.Random(seed).randbytes(size)
        with open(self.path(name), "wb") as f:
            f.write(content)
        return content

    def protect(self, scheme, count, name="out.dat", size=3_000_001, *options):
        """A protected file of random bytes over fresh targets; returns its content and the targets."""
        content, targets = self.make_file(name, size), self.make_targets(count)
        self.holdfast("import", name, "--protect", scheme, "--targets", ",".join(targets), *options)
        return content, targets

    def cat(self, name="out.dat", expect=0):
        return self.holdfast("cat", name, expect=expect, text=False).stdout

    def object_of(self, target, name="data"):
        """The file's object on a target, wherever its directory is called."""
        for root, _, files in os.walk(target):
            if name in files:
                return os.path.join(root, name)
        self.fail(f"{target} has no {name}")

    def assert_one_sentence(self, stderr, *words):
        lines = stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, stderr)
        self.assertTrue(lines[0].startswith("holdfast: "), stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def tree(self):
        return sorted(os.path.join(root, n) for root, dirs, files in os.walk(self.dir) for n in dirs + files)


class OwnAgentsTest(CommandTest):
    """With a registry of agents of its own, outside of any allocation."""

    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        for variable in ("SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"):
            self.env.pop(variable, None)
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))
