"""holdfast run --replicas: a job in which no rank goes on, for some replicas wait for twins that are elsewhere, says so."""
import os
import subprocess
import threading
import unittest

from command import interrupt
from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "crosswise.c")
STILL = "holdfast: no rank has gone on for 15 s: replicas seem to wait for each other, each at another call; the job is not ended\n"


class StandstillOfReplicas(ReplicatedTest):
    def begin_both(self, name, launcher):
        """Side by side, for both take their time: one that stands still, and one that is only slow."""
        subprocess.run([f"mpicc.{name}", SOURCE, "-o", "program"], cwd=self.dir, check=True)
        jobs = {}
        for how in ("crosswise", "slow"):
            os.mkdir(self.path(f"{name}-{how}"))
            jobs[how] = self.start("--deadline", "5s", *launcher, "./program", how, f"{name}-{how}")
        return jobs

    def test_ranks_that_wait_crosswise_are_named_and_slow_ones_are_not(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                jobs = self.begin_both(name, launcher)
                patience = threading.Timer(150, interrupt, (jobs["crosswise"],))
                patience.start()
                self.addCleanup(patience.cancel)
                lines = [jobs["crosswise"].stderr.readline()]
                while lines[-1] and lines[-1] != STILL:
                    lines.append(jobs["crosswise"].stderr.readline())
                self.assertEqual(lines[-1], STILL, lines)
                self.assertRegex(jobs["crosswise"].stderr.readline(), "^holdfast: rank 0: team 0 waits for its twins at .*crosswise/of-0.*; team 1 is in MPI_Sendrecv$")
                self.assertRegex(jobs["crosswise"].stderr.readline(), "^holdfast: rank 1: team 0 is in MPI_Sendrecv; team 1 waits for its twins at .*crosswise/of-1")
                self.assertIsNone(jobs["crosswise"].poll())
                interrupt(jobs["crosswise"])
                _, said = jobs["slow"].communicate(timeout=60)
                self.assertEqual(jobs["slow"].returncode, 0, said)
                self.assertNotIn("gone on", said)

    def test_a_thread_that_asks_for_random_numbers_once_more_is_named(self):
        """Though another thread of its process calls as well. Its leader waits for it at a file."""
        subprocess.run(["cc", "-pthread", os.path.join(os.path.dirname(SOURCE), "asks_again.c"), "-o", self.path("asks")], check=True)
        job = self.start("--deadline", "5s", "./asks", "file", "random")
        patience = threading.Timer(150, interrupt, (job,))
        patience.start()
        self.addCleanup(patience.cancel)
        lines = [job.stderr.readline()]
        while lines[-1] and lines[-1] != STILL:
            lines.append(job.stderr.readline())
        self.assertEqual(lines[-1], STILL, lines)
        self.assertRegex(job.stderr.readline(), "^holdfast: rank 0: team 0 waits for its twins at .*/file, its open; team 1 waits for its twins at a request for random numbers$")
        interrupt(job)


if __name__ == "__main__":
    unittest.main()
