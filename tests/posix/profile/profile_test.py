#!/usr/bin/env python3
"""Plain file calls that are known are counted exactly so: profile_test.py --library LIBRARY --holdfast COMMAND --calls PROGRAM."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

# calls.c, mode all: what the program did, and what of it the system did for it.
ALL = {"opens": 1, "closes": 1, "writes_independent": 14, "reads_independent": 9, "bytes_written": 5120 + 300 + 1000 + 300 + 300,
       "bytes_read": 4 * 256 + 300 + 400 + 300, "seeks": 2, "syncs": 2, "resizes": 1, "stats": 3, "others": 1, "mmaps": 1, "renames": 1, "failures": 1}


class PlainProfileTest(unittest.TestCase):
    options = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-plain-profile-")
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name).resolve()
        self.log, self.out = self.root / "job.hflog", self.root / "out"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}

    def line(self, *command, options=()):
        return [self.options.holdfast, "run", "--library", self.options.library, "--log", str(self.log), *options, *map(str, command)]

    def run_job(self, *command, options=(), expect=0):
        done = subprocess.run(self.line(*command, options=options), cwd=self.root, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return self.report()

    def report(self):
        done = subprocess.run([self.options.holdfast, "report", "--json", str(self.log)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def calls(self, mode, options=()):
        return self.run_job(self.options.calls, mode, self.out, options=options)

    def file(self, log, path=None):
        found = [f for f in log["files"] if f["path"] == str(path or self.out) and f["interface"] == "posix"]
        self.assertEqual(len(found), 1, [(f["path"], f["interface"]) for f in log["files"]])
        return found[0]["total"]

    def check(self, total, **expected):
        self.assertEqual({name: total.get(name, 0) for name in expected}, expected)

    def check_system(self, total):
        """Of a file that nobody serves, the system's calls are the program's."""
        for ours, systems in (("reads_independent", "system_reads"), ("writes_independent", "system_writes"), ("bytes_read", "system_read_bytes"),
                              ("bytes_written", "system_write_bytes"), ("syncs", "system_syncs"), ("read_ns", "system_read_ns"), ("write_ns", "system_write_ns")):
            self.assertEqual(total.get(ours, 0), total.get(systems, 0), ours)

    def test_every_call_is_counted_once(self):
        log = self.calls("all")
        total = self.file(log)
        self.check(total, **ALL, writes_consecutive=10, writes_forward=2, writes_backward=1, reads_consecutive=4, reads_forward=2, reads_backward=1, unlinks=0)
        self.check_system(total)
        self.check(self.file(log, str(self.out) + ".moved"), unlinks=1)
        self.assertEqual([f["path"] for f in log["files"]], [str(self.out), str(self.out) + ".moved"])
        self.assertTrue(log["job"]["complete"])
        self.assertEqual(log["processes"][0]["rank"], 0)
        self.assertEqual(sum(map(sum, (row["written"] for row in log["time_line"]["rows"]))), ALL["bytes_written"])

    def test_a_served_file_is_counted_the_same_and_its_calls_on_targets_beside_it(self):
        targets = [self.root / f"t{i}" for i in range(3)]
        for target in targets:
            target.mkdir()
        total = self.file(self.calls("all", options=["--protect", "mirror:3", "--targets", ",".join(map(str, targets)), "--allow-shared-target", "--path", "*/out*"]))
        self.check(total, **ALL)
        self.assertGreaterEqual(total["system_write_bytes"], 3 * 1000)
        self.assertGreater(total["layer_ns"], 0)

    def test_a_buffered_file_has_the_programs_many_calls_and_the_systems_few(self):
        total = self.file(self.run_job(self.options.calls, "duplicates", self.out, options=["--buffer", "2x64KiB", "--path", "*/out"]))
        self.check(total, writes_independent=4, bytes_written=400, system_writes=1, system_write_bytes=400)

    def test_what_buffers_do_is_counted(self):
        unit = 64 << 10
        script = ("import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
                  f"for i in range(5 * {unit} // 512): os.write(f, b'x' * 512)\n"
                  f"os.fsync(f); os.lseek(f, 0, 0)\nwhile os.read(f, 4096): pass\nos.close(f)")
        total = self.file(self.run_job(sys.executable, "-c", script, self.out, options=["--buffer", "2x64KiB", "--path", "*/out"]))
        self.check(total, bytes_written=5 * unit, writes_independent=5 * unit // 512, bytes_read=5 * unit, system_write_bytes=5 * unit, system_writes=5,
                   buffers_used=2, buffer_bytes=2 * unit)
        self.assertGreaterEqual(total["preflushes"], 1)
        self.assertGreaterEqual(total["prefetches"], 1)
        shown = subprocess.run([self.options.holdfast, "report", str(self.log)], capture_output=True, text=True, check=True, timeout=60).stdout
        for row in ("Buffers used", "Prefetches", "Preflushes"):
            self.assertIn(row, shown)

    @unittest.skipUnless(shutil.which("gfortran"), "no gfortran here")
    def test_the_bytes_of_a_fortran_program_are_those_in_its_file(self):
        source = self.root / "units.f90"
        source.write_text("program p\ninteger :: i\nopen (10, file='out', form='unformatted')\ndo i = 1, 5000\n write (10) i, i * 2.0d0\nend do\n"
                          "close (10)\nend program\n")
        subprocess.run(["gfortran", "-o", self.root / "units", source], check=True, timeout=60)
        total = self.file(self.run_job(self.root / "units"))
        self.assertEqual(total["system_write_bytes"], total["bytes_written"])
        self.assertGreaterEqual(total["bytes_written"], self.out.stat().st_size)  # it goes back to its records' lengths
        self.assertEqual(total["end_of_writes"], self.out.stat().st_size)

    def test_a_python_program_that_writes_by_its_own_buffers_is_counted_as_what_it_calls(self):
        script = "import sys\nwith open(sys.argv[1], 'w') as f:\n for i in range(10000): f.write('%08d\\n' % i)\nprint(len(open(sys.argv[1]).read()))"
        total = self.file(self.run_job(sys.executable, "-c", script, self.out))
        self.check(total, opens=2, closes=2, bytes_written=90000, bytes_read=90000, end_of_writes=90000, end_of_reads=90000, writes_forward=0, writes_backward=0)
        self.assertLess(total["writes_independent"], 20)

    def test_duplicates_are_one_file_at_one_position(self):
        total = self.file(self.calls("duplicates"))
        self.check(total, opens=1, closes=4, others=3, writes_independent=4, bytes_written=400, writes_consecutive=3, writes_forward=0, writes_backward=0)
        self.check_system(total)

    def test_a_child_counts_with_its_parent_and_the_position_they_share_is_known(self):
        log = self.calls("forks")
        total = self.file(log)
        self.check(total, opens=1, closes=1, writes_independent=15, bytes_written=15000, end_of_writes=15000)
        self.assertTrue(log["job"]["complete"])

    def test_a_program_that_closes_all_its_descriptors_is_counted_on(self):
        for mode in ("close-each", "close-range"):
            log = self.calls(mode)
            self.check(self.file(log), opens=2, closes=2, writes_independent=2, bytes_written=30, writes_consecutive=1)
            self.assertEqual(len(log["files"]), 1)

    def test_threads_lose_no_call(self):
        self.check(self.file(self.calls("threads")), opens=5, closes=5, writes_independent=4000, bytes_written=4000 * 64)

    def test_what_the_kernel_moves_is_read_of_the_one_and_written_of_the_other(self):
        log = self.calls("kernel")
        self.check(self.file(log), writes_independent=1, bytes_written=10000, reads_independent=2, bytes_read=8000, seeks=1)
        self.check(self.file(log, str(self.out) + ".copy"), writes_independent=2, bytes_written=8000, writes_consecutive=1)

    def test_what_is_written_later_is_counted_when_it_is_asked_for(self):
        expected = {"writes_independent": 3, "bytes_written": 3000, "writes_consecutive": 2, "reads_independent": 1, "bytes_read": 1000, "failures": 0}
        self.check(self.file(self.calls("asynchronous")), **expected, system_writes=3, system_write_bytes=3000)
        self.check(self.file(self.calls("asynchronous", options=["--buffer", "2x64KiB", "--path", "*/out"])), **expected)

    def test_a_descriptor_that_crosses_exec_is_known_to_the_next_image(self):
        log = self.calls("executes")
        self.check(self.file(log), opens=1, closes=1, writes_independent=5, bytes_written=500, end_of_writes=500)
        self.assertEqual(len(log["processes"]), 2)
        self.assertTrue(log["job"]["complete"])

    def test_a_killed_program_leaves_what_was_counted(self):
        job = subprocess.Popen(self.line(self.options.calls, "waits", self.out), cwd=self.root, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(job.stdout.close)
        try:
            self.assertEqual(job.stdout.readline().strip(), "here")
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
            os.kill(int(children[0]), 9)
        finally:
            if job.poll() is None:
                try:
                    job.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    job.kill()
        log = self.report()
        self.check(self.file(log), writes_independent=6, bytes_written=300)
        self.assertFalse(log["job"]["complete"])

    def test_files_of_the_system_and_files_that_are_excluded_are_not_counted(self):
        script = "import json, sys; open(sys.argv[1], 'w').write('x' * 100); open('/dev/null', 'w').write('x'); open('/etc/hostname').read()"
        log = self.run_job(sys.executable, "-c", script, self.out, options=["--profile-exclude", "*.tmp"])
        self.assertEqual([f["path"] for f in log["files"]], [str(self.out)])
        self.check(self.file(log), opens=1, writes_independent=1, bytes_written=100, closes=1)
        self.assertEqual(self.calls("all", options=["--profile-exclude", "*/out*"])["files"], [])

    def test_a_glob_with_an_exclamation_mark_takes_files_back(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="holdfast-plain-profile-") as shared:
            script = "import sys; open(sys.argv[1], 'wb').write(b'x' * 100)"
            command = [sys.executable, "-c", script, shared.name]
            self.assertEqual(self.run_job(*command)["files"], [])
            self.check(self.file(self.run_job(*command, options=["--profile-exclude", "!/dev/shm/holdfast-*"]), shared.name), bytes_written=100)

    def test_a_shell_that_starts_programs_is_no_part_of_the_job(self):
        log = self.run_job("/bin/sh", "-c", f"echo hello > {self.root}/notes; {self.options.calls} duplicates {self.out}; exit 0")
        self.assertEqual([f["path"] for f in log["files"]], [str(self.out)])
        self.assertEqual(len(log["processes"]), 1)

    def test_output_that_goes_to_a_file_is_the_files(self):
        with open(self.root / "listing", "wb") as listing:
            subprocess.run(self.line(sys.executable, "-c", "import os; [os.write(1, b'line\\n') for _ in range(7)]"), cwd=self.root, env=self.env, stdout=listing, check=True,
                           timeout=60)
        self.check(self.file(self.report(), self.root / "listing"), opens=0, writes_independent=7, bytes_written=35)

    def test_without_a_profile_nothing_is_written_and_nothing_is_left(self):
        subprocess.run([self.options.holdfast, "run", "--library", self.options.library, self.options.calls, "duplicates", str(self.out)], cwd=self.root,
                       env=self.env, check=True, timeout=60)
        self.assertEqual([p.name for p in self.root.iterdir()], ["out"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("library", "holdfast", "calls"):
        parser.add_argument("--" + name, required=True, type=os.path.abspath)
    PlainProfileTest.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
