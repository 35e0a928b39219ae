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
