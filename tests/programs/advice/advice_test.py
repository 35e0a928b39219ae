#!/usr/bin/env python3
"""Real programs whose files are used in the ways that `holdfast advise` speaks of: each is recognised by its log, and what --apply writes
changes the system's calls, by the next run's log.

  advice_test.py --build BUILD MPI

The files lie on a FUSE pass-through (tests/tools/faultfs.c) whose calls take their time, as a busy server's do. Exit code 77: no FUSE here.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults_test import Target, launcher  # noqa: E402

RANKS = 2
SLOW = "write delay 0.5\nread delay 0.5\nopen delay 1\ncreate delay 2"
options = None


class Advice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="holdfast-advice-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.mount = Target(options.build, cls.scratch.name)
        cls.addClassCleanup(cls.mount.end)
        cls.mount.order(SLOW)
        cls.files = os.path.realpath(cls.mount.path)

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=self.scratch.name)
        for name in os.listdir(self.files):
            os.unlink(os.path.join(self.files, name))

    def holdfast(self, *words, check=True):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}
        done = subprocess.run([os.path.join(options.build, "bin", "holdfast"), *words], cwd=self.dir, env=env, capture_output=True, text=True, timeout=120)
        if check:
            self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def command(self, pattern):
        program = os.path.join(options.build, "tests/programs/advice", options.mpi, "patterns")
        return [*launcher(options.mpi, RANKS), program, pattern, self.files]

    def run_pattern(self, pattern, *words, log="job.hflog"):
        return self.holdfast("run", "--log", log, *words, *self.command(pattern))

    def advise(self, *words, log="job.hflog"):
        return json.loads(self.holdfast("advise", log, "--json", *words).stdout)

    def counted(self, counter, log="job.hflog"):
        return sum(f["total"].get(counter, 0) for f in json.loads(self.holdfast("report", log, "--json").stdout)["files"])

    def check(self, pattern, advice, *words, named=None, evidence=()):
        """The program's pattern by its name, and exactly this advice."""
        self.run_pattern(pattern)
        said = self.advise(*words)
        self.assertEqual([a["name"] for a in said["advice"]], advice, said)
        if named:
            self.assertIn(named, [p["name"] for p in said["patterns"]])
        for word in evidence:
            self.assertIn(word, said["advice"][0]["evidence"])
        return said

    def apply(self, pattern, counter, most):
        """What is advised is written, and the next run makes fewer calls of the system by its log."""
        self.run_pattern(pattern)
        self.holdfast("advise", "job.hflog", "--apply")
        self.run_pattern(pattern, log="after.hflog")
        self.assertLessEqual(self.counted(counter, "after.hflog"), most)
        self.assertEqual([a["name"] for a in self.advise(log="after.hflog")["advice"]], [])
        return self.counted(counter)

    def test_small_writes_to_a_file_of_each_process(self):
        said = self.check("small-writes", ["small-accesses"], named="file-per-process", evidence=["1,000 calls write 500 KiB in pieces of 512 bytes"])
        self.assertIn(self.files + "/small.*", said["advice"][0]["settings"]["path"])

    def test_buffers_that_are_applied_make_small_writes_few(self):
        self.assertEqual(self.apply("small-writes", "system_writes", RANKS * 2), RANKS * 500)
        for rank in range(RANKS):
            with open(f"{self.files}/small.{rank:04}", "rb") as file:
                self.assertEqual(file.read(), bytes([ord("a") + rank]) * 512 * 500)

    def test_small_reads_and_buffers_that_read_ahead(self):
        self.run_pattern("small-writes")
        self.check("small-reads", ["small-accesses"], evidence=["1,002 calls read 500 KiB"])
        self.apply("small-reads", "system_reads", RANKS * 8)

    def test_streams_without_a_buffer_of_their_own(self):
        self.check("small-streams", ["small-accesses"], named="file-per-process", evidence=["1,000 calls write 500 KiB in pieces of 512 bytes"])
        self.apply("small-streams", "system_writes", RANKS * 2)
        self.assertEqual(self.counted("system_write_bytes", "after.hflog"), RANKS * 512 * 500)

    def test_measure_shows_the_gain_of_what_was_applied(self):
        self.run_pattern("small-writes")
        self.holdfast("advise", "job.hflog", "--apply")
        done = self.holdfast("run", "--measure", "--json", "--log", "measured", *self.command("small-writes"))
        measured = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(self.counted("system_writes", "measured.before"), RANKS * 500)
        self.assertLessEqual(self.counted("system_writes", "measured.after"), RANKS * 2)
        self.assertGreater(measured["before"]["io_seconds"], measured["after"]["io_seconds"])

    def test_one_process_that_writes_for_all(self):
        self.mount.order("write delay 20")
        self.addCleanup(self.mount.order, SLOW)
        self.check("spokesperson", ["spokesperson"], "--file-system", "lustre", "--stripes", "1", "--stripe-size", "32MiB", "--devices", "8", named="spokesperson",
                   evidence=["rank 0 moves 100 % of the job's bytes (16 MiB)"])

    def test_parts_of_a_shared_file_lie_together(self):
        said = self.check("parts", [], named="single-shared-file")
        self.assertIn("layout #1, 8 MiB a process", next(p["words"] for p in said["patterns"] if p["name"] == "single-shared-file"))

    def test_pieces_of_a_shared_file_take_turns(self):
        said = self.check("turns", [], named="single-shared-file")
        self.assertIn("layout #2, 2 MiB from one", next(p["words"] for p in said["patterns"] if p["name"] == "single-shared-file"))

    def test_accesses_that_begin_off_the_file_systems_units(self):
        said = self.check("unaligned", ["small-accesses", "unaligned-accesses"])
        self.assertIn("100 % of 400 writes begin off the units of 4 KiB", said["advice"][1]["evidence"])

    def test_many_small_files(self):
        self.check("many-files", ["too-many-files"], named="file-per-process", evidence=[f"{RANKS * 60} files of 15 bytes"])

    def test_a_file_that_is_opened_again_and_again(self):
        self.check("reopened", ["repeated-opens"], evidence=[f"{RANKS * 100} opens where {RANKS} would do"])

    def test_messages_of_all_processes_in_logs(self):
        self.check("logs", ["debugging-output"], named="file-per-process", evidence=[f"{RANKS} processes write {RANKS * 400} pieces of text of 32 bytes"])
        self.apply("logs", "system_writes", RANKS)

    def test_messages_of_all_processes_on_standard_output(self):
        self.run_pattern("messages")
        self.assertIn("standard-output", [p["name"] for p in self.advise()["patterns"]])
        self.assertEqual(self.counted("writes_independent"), RANKS * 400)
        self.run_pattern("messages", "--gather-output", "said", log="gathered.hflog")
        self.assertEqual(self.counted("writes_independent", "gathered.hflog"), 0)
        with open(os.path.join(self.dir, "said")) as said:
            self.assertEqual(len(said.readlines()), RANKS * 400)

    def test_pieces_that_take_turns_by_independent_calls_of_mpi(self):
        self.check("mpi-turns", ["independent-interleaved"], named="single-shared-file")

    def test_plain_pieces_that_take_turns(self):
        self.check("plain-turns", ["independent-interleaved"], named="single-shared-file", evidence=[f"{RANKS} processes write pieces of 240 bytes"])

    def test_small_writes_to_parts_of_a_shared_file_are_no_matter_for_one_process(self):
        said = self.check("small-parts", ["small-accesses"], named="single-shared-file")["advice"][0]
        self.assertIn("gather its own part", said["change"])
        self.assertNotIn("through the buffers", said["expectation"])
        self.assertEqual(said["settings"], {})

    def test_processes_that_write_their_own_part_again(self):
        said = self.check("rewritten", [], named="single-shared-file")
        self.assertIn("layout #1, 4 MiB a process, written 2 times", said["patterns"][0]["words"])

    def test_a_good_program_hears_that_there_is_nothing_to_change(self):
        self.check("good", [], named="single-shared-file")

    def test_records_of_fortran_in_the_other_byte_order(self):
        program = os.path.join(options.build, "tests/programs/advice/converted")
        if not os.path.exists(program):
            self.skipTest("no gfortran here")
        self.mount.order("write delay 5")
        self.addCleanup(self.mount.order, SLOW)
        self.holdfast("run", "--log", "job.hflog", program, self.files)
        said = self.advise()
        self.assertEqual([a["name"] for a in said["advice"]], ["byte-swapped-records"], said)
        self.assertIn("6 steps back to a record's beginning", said["advice"][0]["evidence"])
        self.holdfast("advise", "job.hflog", "--apply")
        self.holdfast("run", "--log", "after.hflog", program, self.files)
        self.assertLessEqual(self.counted("system_writes", "after.hflog") * 4, self.counted("system_writes"))
        self.assertEqual(os.path.getsize(self.files + "/fields.dat"), 6 * (250000 * 8 + 8))


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("mpi")
    options, rest = parser.parse_known_args()
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as scratch:
        trial = Target(options.build, scratch)
        works = trial.works()
        trial.end()
    if not works:
        print("faultfs cannot mount here")
        return 77
    return not unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
