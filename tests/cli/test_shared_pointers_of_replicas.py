"""holdfast run --replicas: a file pointer that ranks share is one for all replicas."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from replicated import ReplicatedTest

PROGRAM = os.path.join(os.path.dirname(__file__), "shares_a_pointer.c")
RANKS, BYTES = 3, 16


class SharedPointers(ReplicatedTest):
    def programs(self):
        for mpi, launcher in self.launchers(RANKS):
            program = self.path(f"shares_a_pointer.{mpi}")
            subprocess.run([f"mpicc.{mpi}", "-O1", "-o", program, PROGRAM], check=True, cwd=self.dir)
            yield mpi, [*launcher, program]

    def check(self, records):
        """Every record is there once, the ordered ones behind them, and each was read once."""
        lines = self.read("out").splitlines()
        raced, ordered, read = lines[:RANKS * records], lines[RANKS * records:-RANKS], lines[-RANKS:]
        self.assertEqual(sorted(raced), [f"w {rank:04} {i:08}" for rank in range(RANKS) for i in range(records)])
        for rank in range(RANKS):
            mine = [line for line in raced if line.startswith(f"w {rank:04}")]
            self.assertEqual(mine, sorted(mine), "a rank's records are in its order")
        self.assertEqual(ordered, [f"o {rank:04} {records:08}" for rank in range(RANKS)])
        self.assertEqual(read, [f"r {rank:04} {RANKS * (records + 1):08}" for rank in range(RANKS)])
        os.unlink(self.path("out"))

    def test_each_record_is_there_once(self):
        for mpi, command in self.programs():
            with self.subTest(mpi):
                self.replicas(*command, "out", "20")
                self.check(20)

    def test_each_record_is_there_once_after_a_loss(self):
        for mpi, command in self.programs():
            for rank in (0, 1):
                with self.subTest(mpi, killed=rank):
                    shutil.rmtree(self.path("state"), ignore_errors=True)
                    job = self.start(*command, "out", "150")
                    process = self.process_of(0, rank, RANKS)
                    deadline = time.monotonic() + 30
                    while time.monotonic() < deadline and (not os.path.exists(self.path("out")) or os.path.getsize(self.path("out")) < 40 * BYTES):
                        time.sleep(0.005)
                    os.kill(process, signal.SIGKILL)
                    _, err = job.communicate(timeout=60)
                    self.assertEqual(job.returncode, 0, err)
                    self.assertIn("team 1 goes on alone", err)
                    self.check(150)

    def test_a_protected_file_has_one_as_well(self):
        for name in ("a", "b", "c"):
            os.mkdir(self.path(name))
        for mpi, command in list(self.programs())[:1]:
            self.replicas("--protect", "rs:2+1", "--targets", "a,b,c", "--allow-shared-target", *command, "out", "10")
            self.holdfast("export", "out", "plain")
            os.rename(self.path("plain"), self.path("out"))
            self.check(10)


if __name__ == "__main__":
    unittest.main()
