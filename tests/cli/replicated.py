"""What the tests of `holdfast run --replicas` share: jobs that are there several times."""
import json
import os
import signal
import subprocess
import time

from command import CommandTest, Rests, interrupt, interrupted_with_its_test


class ReplicatedTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["XDG_STATE_HOME"] = self.path("state")
        self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.env["UCX_LOG_FILE"] = "stderr"  # what MPICH says of ranks that die is no output of the program
        self.rests = Rests(self.dir)
        self.addCleanup(self.rests.begin)
        self.addCleanup(self.end_jobs)
        self.jobs = []

    def end_jobs(self):
        for job in self.jobs:
            interrupt(job)

    def start(self, *command, replicas=2, rests=False, begin=lambda: None):
        """`rests`: its program takes its time until `strike`. `begin` is called in its process."""
        self.rests.begin()
        env = {**self.env, **(self.rests.variables(self.env) if rests else {})}
        job = subprocess.Popen([self.binary, "run", "--replicas", str(replicas), *command], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: (begin(), interrupted_with_its_test()))
        self.jobs.append(job)
        return job

    def strike(self, process, by=signal.SIGKILL):
        """The last thing that is to happen to its job."""
        os.kill(process, by)
        self.rests.hurry()

    def replicas(self, *command, replicas=2, expect=0, text=None):
        done = subprocess.run([self.binary, "run", "--replicas", str(replicas), *command], cwd=self.dir, env=self.env, input=text or "",
                              capture_output=True, text=True, timeout=120)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def process_of(self, team, rank, ranks=1):
        """Once all replicas have come and something is in the file."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            done = self.holdfast("status", "--job", "--json", expect=None)
            if done.returncode == 0:
                teams = json.loads(done.stdout)["teams"]
                if all(len(t["ranks"]) == ranks for t in teams):
                    return next(r["process"] for r in teams[team]["ranks"] if r["rank"] == rank)
            time.sleep(0.05)
        self.fail("the replicas do not come up")

    def targets(self, count=6):
        names = [f"t{i}" for i in range(count)]
        for name in names:
            os.makedirs(self.path(name), exist_ok=True)
        return ["--targets", ",".join(names)]

    def exported(self, name):
        """Whole, as status and verify say, and in plain."""
        self.holdfast("status", self.path(name))
        self.holdfast("verify", self.path(name))
        plain = self.path(os.path.basename(name) + ".plain")
        self.holdfast("export", "--force", self.path(name), plain)
        with open(plain, "rb") as file:
            return file.read()
