"""holdfast run --replicas: a leader or a follower is lost before, in or after a call, under each protocol by which replicas share out reads and writes.

A program that writes and reads by itself here (struck.c); in `make test-long` also with three replicas, with processes that hang, and ranks of MPI."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "struck.c")
READS = ("none", "simple", "extended-simple", "read-and-distribute", "chained", "chunked-and-chained", "distributed-chunked")
WRITES = ("simple", "distributed", "distributed-separate")
PROTOCOLS = [("read", name) for name in READS] + [("write", name) for name in WRITES]
MOMENTS = ("before", "in", "after")
DELAYS_US = (2000, 1000, 500, 200, 100, 50)  # a blow may come too late for the call, and for the program: then it comes earlier the next time
LONG = bool(os.environ.get("HOLDFAST_TEST_LONG"))
TEAMS = (2, 3) if LONG else (2,)


def mebibytes_of(call):
    """Of the struck call. One that waits for no twin is over soon, and on one processor the blow waits for the next tick of its clock."""
    return "64" if call == ("read", "none") else "16"


class StruckReplicas(ReplicatedTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_DEADLINE"] = "5s"
        subprocess.run(["cc", "-O2", "-pthread", SOURCE, "-o", self.path("struck")], check=True)
        self.natively = {(call[0], mebibytes_of(call)): self.native(call) for call in (PROTOCOLS[0], PROTOCOLS[1], PROTOCOLS[-1])}

    def native(self, call):
        """What it says and writes by itself."""
        done = subprocess.run(["./struck", call[0], "file", "0", "after", "nothing", "none", mebibytes_of(call)], cwd=self.dir, env=self.env, check=True,
                              capture_output=True, text=True)
        return done.stdout, self.content("file")

    def begin_one(self, place, call, team, when, how, replicas):
        """In a directory of its own: several run beside each other."""
        what, protocol = call
        shutil.rmtree(self.path(place), ignore_errors=True)  # of one that has failed
        os.mkdir(self.path(place))
        job = subprocess.Popen([self.binary, "run", "--replicas", str(replicas), f"--{what}-protocol", protocol, "../struck", what, "file", str(team), when, how,
                                self.path(place, "mark"), mebibytes_of(call)], cwd=self.path(place), env={**self.env, "XDG_STATE_HOME": self.path(place, "state")}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.jobs.append(job)
        return job

    def end_one(self, job, place, call, expect=0):
        out, err = job.communicate(timeout=100)
        self.assertEqual(job.returncode, expect, err)
        shown = subprocess.run([self.binary, "status", "--job"], env={**self.env, "XDG_STATE_HOME": self.path(place, "state")}, capture_output=True, text=True).stdout
        self.assertRegex(shown, rf"file: .*\b{call[0]} {call[1]}\b")
        if expect == 0:
            self.assertTrue((out, self.content(place, "file")) == self.natively[call[0], mebibytes_of(call)], "it has read or written something else")
            self.assertEqual([name for name in os.listdir(self.path(place)) if name.startswith(".")], [])
        fell_in_it = os.path.exists(self.path(place, "mark"))
        shutil.rmtree(self.path(place))
        return err, fell_in_it

    def content(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def kill_one(self, call, team, when, replicas):
        for delay_us in DELAYS_US:
            moment = f"in:{delay_us}" if when == "in" else when
            err, fell_in_it = self.end_one(self.begin_one("job", call, team, moment, "kill", replicas), "job", call)
            if when == "in" and not fell_in_it:
                continue
            others = " and ".join(f"team {other}" for other in range(replicas) if other != team)
            self.assertRegex(err, rf"rank 0 of team {team} .*\n?.*{others} goe?s? on")
            return
        self.fail("it never fell into the call")

    def test_one_is_killed_before_in_and_after_a_call(self):
        for call in PROTOCOLS:
            for replicas in TEAMS:
                for team in (0, 1):
                    for when in MOMENTS:
                        with self.subTest(call=call, replicas=replicas, team=team, when=when):
                            self.kill_one(call, team, when, replicas)

    def test_a_flipped_bit_is_not_written(self):
        for call in PROTOCOLS[len(READS):]:
            for team in (0, 1):
                with self.subTest(call=call, team=team):
                    err, _ = self.end_one(self.begin_one("job", call, team, "before", "flip", 2), "job", call, expect=120)
                    self.assertIn("differ", err)
                    err, _ = self.end_one(self.begin_one("job", call, team, "before", "flip", 3), "job", call)
                    self.assertIn(f"team {team}", err)

    def test_one_hangs_in_a_call(self):
        """Beside each other: they wait for the deadline."""
        for team in (0, 1):
            calls = PROTOCOLS if LONG else [PROTOCOLS[len(READS) - 1], PROTOCOLS[-2]]
            for delay_us in DELAYS_US[1:]:
                jobs = [(self.begin_one(f"job{i}", call, team, f"in:{delay_us}", "stop", 2), f"job{i}", call) for i, call in enumerate(calls)]
                calls = []
                for job, place, call in jobs:
                    with self.subTest(call=call, team=team):
                        err, fell_in_it = self.end_one(job, place, call)
                        if not fell_in_it:
                            calls.append(call)
                            continue
                        self.assertIn(f"team {1 - team} goes on alone", err)
            self.assertEqual(calls, [], "it never fell into the call")

    @unittest.skipUnless(LONG, "in make test-long")
    def test_ranks_are_killed_while_they_share_out_reads_and_writes(self):
        heat = os.path.join(os.path.dirname(__file__), "../../examples/heat.c")
        shape = ["300", "200", "40", "4"]
        for name, launcher in self.launchers():
            subprocess.run([f"mpicc.{name}", "-O2", heat, "-o", "heat"], cwd=self.dir, check=True)
            for more in ([], ["--restart"]):
                subprocess.run([*launcher, "./heat", name, *shape, *more], cwd=self.dir, env=self.env, check=True, capture_output=True)
            for what, protocol in PROTOCOLS:
                for team in (0, 1):
                    with self.subTest(name, what=what, protocol=protocol, team=team):
                        self.replicas(*launcher, "./heat", "out", *shape)
                        shutil.rmtree(self.path("state"))
                        job = self.start(f"--{what}-protocol", protocol, *launcher, "./heat", "out", *shape, "--restart", "--pause-ms", "100")
                        process = self.process_of(team, 1, 2)
                        time.sleep(0.4)
                        os.kill(process, signal.SIGKILL)
                        _, err = job.communicate(timeout=100)
                        self.assertEqual(job.returncode, 0, err)
                        self.assertEqual(self.content("out"), self.content(name))
                        os.unlink(self.path("out"))
                        shutil.rmtree(self.path("state"))


if __name__ == "__main__":
    unittest.main()
