"""holdfast run --buffer: plain calls in small pieces become few large ones."""
import os
import shutil
import subprocess
import sys
import time
import unittest

from command import CommandTest

# Writes 512-byte pieces, numbered, and says how many write calls the system saw.
WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o666)
def calls(): return int(open('/proc/self/io').read().split('syscw: ')[1].split()[0])
before = calls()
for i in range(4000): assert os.write(fd, b'%08d' % i * 64) == 512
assert os.fstat(fd).st_size == os.stat(sys.argv[1]).st_size == 4000 * 512
assert os.pread(fd, 8, 512 * 3999) == b'00003999'
exec(sys.argv[2])
os.close(fd)
print(calls() - before)
"""
EXPECTED = b"".join(b"%08d" % i * 64 for i in range(4000))


class Buffers(CommandTest):
    def write(self, *options, then="", name="out.dat", expect=0, **more):
        return self.holdfast("run", *options, "--path", "out*", sys.executable, "-c", WRITER, name, then, expect=expect, **more)

    def content(self, name="out.dat"):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_small_writes_of_a_plain_file_become_few_calls(self):
        without = int(self.write().stdout)
        with_buffers = int(self.write("--buffer", "4x1MiB").stdout)
        self.assertGreaterEqual(without, 4000)
        self.assertLessEqual(with_buffers, 10)
        self.assertEqual(self.content(), EXPECTED)

    def test_files_that_no_path_names_are_left_alone(self):
        self.assertGreaterEqual(int(self.write("--buffer", "4x1MiB", name="other.dat").stdout), 4000)

    def test_a_protected_file_with_buffers_survives_the_loss_of_its_targets(self):
        targets = self.make_targets(6)
        self.write("--protect", "rs:4+2", "--targets", ",".join(targets), "--buffer", "2x100k")
        shutil.rmtree(targets[1])
        shutil.rmtree(targets[4])
        self.assertEqual(self.holdfast("cat", "out.dat", text=False).stdout, EXPECTED)

    def test_what_was_synced_is_there_after_a_kill_and_nothing_foreign(self):
        self.write("--buffer", "4x1MiB", then="os.fsync(fd); os.write(fd, b'x' * 5000); os.kill(os.getpid(), 9)", expect=-9)
        self.assertEqual(self.content()[:len(EXPECTED)], EXPECTED)
        self.assertEqual(self.content()[len(EXPECTED):].strip(b"x"), b"")

    def test_what_waits_longer_than_the_given_time_outlives_a_kill(self):
        """The program never syncs, and is killed once others see what it wrote: that stays, on plain and on protected files."""
        targets = self.make_targets(2)
        for options in ((), ("--protect", "mirror:2", "--targets", ",".join(targets))):
            with self.subTest(options):
                def see():
                    if options:
                        return self.cat(expect=None)
                    return self.content() if os.path.exists(self.path("out.dat")) else b""
                script = "import os, signal; fd = os.open('out.dat', os.O_CREAT | os.O_WRONLY); os.write(fd, b'kept' * 99); signal.pause()"
                job = subprocess.Popen([self.binary, "run", *options, "--buffer", "4x1MiB", "--buffer-flush", "10ms", "--path", "out*",
                                        sys.executable, "-c", script], cwd=self.dir, env=self.env)
                try:
                    for _ in range(600):  # the test fails below where it never comes
                        if see() == b"kept" * 99:
                            break
                        time.sleep(0.05)
                finally:
                    job.kill()
                    job.wait()
                self.assertEqual(see(), b"kept" * 99)
                self.holdfast("rm", "out.dat") if options else os.unlink(self.path("out.dat"))

    def test_full_buffers_that_stay_are_written_once(self):
        again = "[os.pwrite(fd, b'%08d' % i * 64, i * 512) for i in range(4000)] * 3"
        went = {flush: int(self.write("--buffer", "3x1MiB", "--buffer-flush", flush, then=again).stdout) for flush in ("full", "needed")}
        self.assertEqual(self.content(), EXPECTED)
        self.assertLess(went["needed"], went["full"])

    def test_exit_without_close_loses_nothing(self):
        for end, flush in (("os._exit(0)", "full"), ("sys.exit(0)", "needed"), ("os._exit(0)", "10ms"), ("os.fork() or os._exit(0); sys.exit(0)", "10ms"),
                           ("os.execlp('true', 'true')", "10ms")):
            with self.subTest(end):
                self.write("--buffer", "4x1MiB", "--buffer-flush", flush, then=end)
                self.assertEqual(self.content(), EXPECTED)

    @unittest.skipUnless(shutil.which("mpirun.openmpi") and not subprocess.run(
        ["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True, check=False).returncode, "needs Open MPI and its mpi4py")
    def test_an_aborted_job_loses_nothing(self):
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        program = ("import os; from mpi4py import MPI; rank = MPI.COMM_WORLD.rank; fd = os.open(f'out{rank}', os.O_CREAT | os.O_WRONLY)\n"
                   "for i in range(1000): os.write(fd, b'%08d' % i)\n"
                   "MPI.COMM_WORLD.Barrier(); rank == 0 and MPI.COMM_WORLD.Abort(3); MPI.COMM_WORLD.Barrier()")
        self.holdfast("run", "--buffer", "4x1MiB", "--path", "out*", "mpirun.openmpi", *as_root, "--oversubscribe", "--bind-to", "none",
                      "-n", "2", "/usr/bin/python3", "-c", program, expect=3)
        self.assertEqual(self.content("out0"), b"".join(b"%08d" % i for i in range(1000)))

    def test_a_second_process_that_opens_the_file_sees_what_was_written(self):
        """Close-to-open, until another process of the node is met: then every write goes to the file at once."""
        reader = "import sys; print(len(open(sys.argv[1], 'rb').read()))"
        then = (f"import subprocess; subprocess.run([sys.executable, '-c', {reader!r}, sys.argv[1]], check=True); import time;"
                "time.sleep(0.02); os.write(fd, b'y'); "
                f"subprocess.run([sys.executable, '-c', {reader!r}, sys.argv[1]], check=True)")
        done = self.write("--buffer", "4x1MiB", then=then)
        self.assertEqual(done.stdout.split()[1], str(len(EXPECTED) + 1))
        self.assertIn("goes without buffers", done.stderr)
        self.assertEqual(self.content(), EXPECTED + b"y")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs the right to mount a small file system")
    def test_a_full_disk_is_never_silent(self):
        os.mkdir(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", self.path("small")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=False)
        for then, code in (("os.fsync(fd)", 1), ("pass", 1), ("os._exit(0)", 74), ("sys.exit(0)", 74),
                           ("try:\n  os.close(fd)\nexcept OSError: os._exit(0)", 74), ("try:\n  os.close(fd)\nexcept OSError: os.unlink(sys.argv[1]); os._exit(0)", 0)):
            with self.subTest(then):
                done = self.write("--buffer", "4x4MiB", name="small/out.dat", then=then, expect=code)
                self.assertIn("No space left on device", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs the right to mount a small file system")
    def test_a_program_that_does_not_look_fills_no_log_with_lines(self):
        os.mkdir(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", self.path("small")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=False)
        program = ("import os\nfd = os.open('small/x.dat', os.O_CREAT | os.O_WRONLY)\nfailed = 0\nfor i in range(3000):\n"
                   "  try: os.write(fd, b'x' * 512)\n  except OSError: failed += 1\nprint(failed)")
        done = self.holdfast("run", "--buffer", "4x4KiB", "--path", "*.dat", sys.executable, "-c", program, expect=74)
        self.assertGreater(int(done.stdout), 2000)
        lines = done.stderr.splitlines()
        self.assertLess(len(lines), 20, done.stderr[:2000])
        self.assertIn("(1024 times so far)", done.stderr)
        self.assertIn("No space left on device", lines[-1])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs the right to mount a small file system")
    def test_targets_that_are_all_full_are_no_space(self):
        os.mkdir(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "small", self.path("small")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=False)
        targets = self.make_targets(2, "small/t")
        program = ("import errno, os\nfd = os.open('out.dat', os.O_CREAT | os.O_WRONLY)\n"
                   "try:\n  for i in range(8): os.write(fd, b'x' * (1 << 20))\nexcept OSError as e: print(errno.errorcode[e.errno])")
        done = self.holdfast("run", "--protect", "mirror:2", "--targets", ",".join(targets), "--path", "out*", sys.executable, "-c", program, expect=74)
        self.assertEqual(done.stdout, "ENOSPC\n")
        self.assertIn("No space left on device", done.stderr)

    def test_sizes_that_make_no_sense_are_refused(self):
        for wrong in ("16MiB", "0x16MiB", "4x1", "4x", "x", "4x16MiBs"):
            done = self.holdfast("run", "--buffer", wrong, "true", expect=2)
            self.assertIn("--buffer", done.stderr)


if __name__ == "__main__":
    unittest.main()
