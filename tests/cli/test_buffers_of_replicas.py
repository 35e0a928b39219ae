"""holdfast run --replicas --buffer: small writes are gathered, and full buffers are written as one, beside the program."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs  # noqa: E402
from replicated import ReplicatedTest  # noqa: E402

FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin/faultfs")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "small_writes.c")
STEPS = 10


def written(steps):
    return "".join(chr(ord("a") + step % 26) * 65536 for step in range(steps))


class BuffersOfReplicas(ReplicatedTest):
    def program(self):
        subprocess.run(["cc", "-O2", SOURCE, "-o", self.path("small_writes")], check=True)
        return "./small_writes"

    def mounted(self):
        mount = faultfs.Mount(FAULTFS, self.dir, "mount")
        self.addCleanup(mount.end)
        if not mount.works():
            self.skipTest("faultfs cannot mount here")
        return mount

    def until(self, is_so, patience=30):
        deadline = time.monotonic() + patience
        while not is_so():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def steps(self, rest_ms, **more):
        done = self.replicas("--buffer", "3x64KiB", "--path", "*/out", self.program(), "steps", "mount/out", str(STEPS), str(rest_ms), **more)
        said = re.fullmatch(r"([\d.]+) s, (\d+) failed\n", done.stdout)
        self.assertTrue(said, done.stdout + done.stderr)
        self.assertEqual(self.read("backing/out"), written(STEPS))
        return float(said[1]), int(said[2])

    def test_the_program_goes_on_while_a_full_buffer_is_written(self):
        self.mounted().order("write delay 300")
        seconds, failed = self.steps(300)
        self.assertEqual(failed, 0)
        self.assertLess(seconds, 1.5 * STEPS * 0.3)  # one after the other it would be twice as long

    def test_a_write_that_has_failed_beside_the_program_is_told_once_to_all_and_made_again(self):
        self.mounted().order("write errno EIO after=2 count=1")
        self.assertEqual(self.steps(0)[1], 1)

    def test_what_is_under_way_when_the_leader_is_killed_the_next_one_writes(self):
        mount = self.mounted()
        job = self.start("--buffer", "3x64KiB", "--path", "*/out", self.program(), "steps", "mount/out", str(STEPS), "20")
        self.until(lambda: os.path.exists(self.path("backing/out")) and os.path.getsize(self.path("backing/out")) > 0)
        mount.order("write hang count=1")
        time.sleep(0.3)
        os.kill(self.process_of(0, 0), signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertIn("team 1 goes on alone", err)
        self.assertEqual(self.read("backing/out"), written(STEPS))

    def test_a_full_file_system_ends_in_one_error_for_all(self):
        self.mounted().order("write errno ENOSPC after=4")
        done = self.replicas("--buffer", "3x64KiB", "--path", "*/out", self.program(), "steps", "mount/out", str(STEPS), "0", expect=3)
        self.assertEqual(done.stdout, "No space left on device\n")

    def test_small_writes_wait_for_nobody(self):
        """One replica stands still. The other one gathers what it writes until its buffer is full."""
        calls = 6_000_000
        job = self.start("--buffer", "2x64MiB", "--path", "*/out", self.program(), "gather", "out", str(calls))
        processes = [self.process_of(team, 0) for team in (0, 1)]

        def ticks_of(process):
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                return int(file.read().rsplit(")", 1)[1].split()[11])
        self.until(lambda: os.path.exists(self.path("out")))
        before = [ticks_of(process) for process in processes]
        open(self.path("begun"), "w", encoding="utf-8").close()
        self.until(lambda: all(ticks_of(process) > ticks for process, ticks in zip(processes, before)))
        os.kill(processes[0], signal.SIGSTOP)
        before = ticks_of(processes[1])
        try:
            self.until(lambda: ticks_of(processes[1]) > before + 10, 6)
        finally:
            os.kill(processes[0], signal.SIGCONT)
        _, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(os.path.getsize(self.path("out")), calls)

    def test_a_rank_sees_what_another_one_has_written_since_both_use_the_file(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "-O2", "-DWITH_MPI", SOURCE, "-o", self.path("small_writes")], check=True)
                done = self.replicas("--buffer", "2x64KiB", "--path", "*/out", *launcher, "./small_writes", "ranks", "out")
                self.assertEqual(done.stdout, "300 bytes, the last one is b\n")

    def test_a_job_of_one_rank_asks_nobody_for_its_turn_to_append(self):
        job = self.start(self.program(), "append", "log", "100", "20")
        self.until(lambda: os.path.exists(self.path("log")) and os.path.getsize(self.path("log")) > 0)
        hub, = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.is_hub(pid)]
        os.kill(hub, signal.SIGSTOP)
        try:
            before = os.path.getsize(self.path("log"))
            self.until(lambda: os.path.getsize(self.path("log")) > before + 100, 4)
        finally:
            os.kill(hub, signal.SIGCONT)
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(self.read("log"), "".join(f"line {line}\n" for line in range(100)))

    def is_hub(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                return b"replica-hub" in words.read() and os.readlink(f"/proc/{pid}/cwd") == self.dir
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
