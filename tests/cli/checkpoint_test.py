"""What the tests of checkpoints share: jobs of shell scripts on simulated nodes."""
import glob
import os
import subprocess
import threading

from command import BINARY, CommandTest

PATTERN = "ck/ck.{step}.{rank}"
# To all protectors of the job.
STRIKE = """
import os, signal, sys
run = os.popen("ps -o ppid= -p " + os.environ["LAUNCHER"]).read().strip()
for child in os.popen("ps -o pid=,comm= --ppid " + run):
    pid, name = child.split(None, 1)
    if name.strip() == "protector":
        os.kill(int(pid), getattr(signal, "SIG" + sys.argv[1]))
"""


class Peaks:
    """While it lives: the most memory that the protectors of jobs in a directory have had resident, in bytes by process."""

    def __init__(self, directory):
        self.directory, self.bytes, self.over = directory, {}, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()

    def look(self):
        while not self.over.wait(0.02):
            for process in glob.glob("/proc/[0-9]*"):
                try:
                    with open(process + "/comm") as name:
                        if name.read().strip() != "protector" or os.readlink(process + "/cwd") != self.directory:
                            continue
                    with open(process + "/status") as status:
                        peak = [int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")]
                except OSError:
                    continue
                if peak:
                    self.bytes[process] = peak[0]


class CheckpointTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        os.mkdir(self.path("ck"))
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))

    def run_job(self, script, *options, nodes=6, scheme="rs:4+2", ranks=1, expect=0, pattern=PATTERN, at_once=False):
        """Each rank is the script in a shell of its own, with RANK and the launcher's variables, one after another unless `at_once`."""
        end = "&" if at_once else "|| exit $?"
        launcher = self.path("launch")
        with open(launcher, "w") as file:
            file.write("#!/bin/sh\nexport PMI_SIZE=" + str(ranks) + "\nfor RANK in $(seq 0 " + str(ranks - 1) + "); do\n"
                       f"  export RANK PMI_RANK=$RANK; sh -c \"$1\" {end}\ndone\nwait\n")
        os.chmod(launcher, 0o755)
        return self.holdfast("run", "--simulate-nodes", str(nodes), "--protect", scheme, "--checkpoint", pattern, "--library", "posix", *options, "--",
                             launcher, script, expect=expect)

    def strike_protectors(self, signal):
        """For the job's own script: a signal to all protectors of the job."""
        with open(self.path("strike.py"), "w") as file:
            file.write(STRIKE)
        return f"LAUNCHER=$PPID python3 strike.py {signal}"

    def command(self, *words):
        """For the job's own script."""
        return " ".join(["env -u LD_PRELOAD", BINARY, *words])

    def until(self, what):
        """For the job's own script: until that stands in what `holdfast checkpoints` says."""
        return f"for look in $(seq 300); do {self.command('checkpoints')} 2> /dev/null | grep -q \"{what}\" && break; sleep 0.1; done"

    def standings(self, *options):
        return {c["step"]: c for c in self.json("checkpoints", *options)["checkpoints"]}

    def states(self, *options):
        return {step: c["state"] for step, c in self.standings(*options).items()}

    def small_disk(self, node, bytes):
        """The node's directory is a file system with so much room."""
        at = self.path("holdfast-nodes", node)
        os.makedirs(at)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={bytes}", "tmpfs", at], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", at], check=False)

    def lose(self, *nodes):
        for node in nodes:
            self.lose_agent(node)
            self.lose_disk(node)

    def lose_disk(self, node):
        subprocess.run(["sh", "-c", f"rm -rf {self.path('holdfast-nodes', node)}/* {self.path('holdfast-nodes', node)}/.[a-z]*"], check=True)

    def drop_from_nodes(self, step, *nodes):
        """What these nodes hold of the versions of a checkpoint."""
        for node in nodes:
            subprocess.run(["sh", "-c", f"rm -r {self.path('holdfast-nodes', node)}/ck.{step}.*"], check=True)

    def read(self, *names):
        with open(self.path(*names)) as file:
            return file.read()
