#!/usr/bin/env python3
"""A program whose calls are known is profiled: its report counts exactly these, on MPI's own files and on protected ones."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "intercept"))
import launch  # noqa: E402

RANKS, PIECE, PIECES = 2, 4096, 16
BLOCK = PIECE * PIECES
# What each rank does in known.c.
CALLS = {"opens": 1, "closes": 1, "writes_independent": PIECES + 3 + 1, "writes_nonblocking": 1, "writes_collective": 1, "writes_shared": 2,
         "reads_independent": 5, "syncs": 2, "seeks": 1, "views": 2, "stats": 1,
         "write_sizes_0": 2, "write_sizes_2": PIECES + 3 + 1, "write_sizes_3": 1, "read_sizes_0": 1, "read_sizes_2": 4,
         "bytes_written": 2 * BLOCK + 200 + 3 * 1024 + PIECE, "bytes_read": 4 * 2 * PIECE + 10}


class ProfileTest(unittest.TestCase):
    options = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-profile-")
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name).resolve()
        self.log = self.root / "job.hflog"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}

    def run_line(self, *options, program=()):
        return [self.options.holdfast, "run", "--library", self.options.library, *options, *launch.command(self.options.mpicc, RANKS),
                self.options.known, str(self.root / "out"), *program]

    def run_job(self, *options, expect=0, program=()):
        done = subprocess.run(self.run_line(*options, program=program), cwd=self.root, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def report(self, path=None):
        done = subprocess.run([self.options.holdfast, "report", "--json", str(path or self.log)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def protection(self):
        targets = [self.root / f"t{i}" for i in range(3)]
        for target in targets:
            target.mkdir()
        return ["--protect", "rs:2+1", "--targets", ",".join(map(str, targets)), "--allow-shared-target", "--striping-unit", "16384"]

    def check_counts(self, log):
        entry, = [f for f in log["files"] if f["interface"] == "mpi-io"]
        self.assertEqual(entry["path"], str(self.root / "out"))
        for name, of_each in CALLS.items():
            self.assertEqual(entry["total"].get(name, 0), RANKS * of_each, name)
            self.assertEqual(entry["ranks"].get(name, [0] * RANKS), [of_each] * RANKS, name)
        for name in ("reads_collective", "reads_shared", "writes_ordered", "failures"):
            self.assertNotIn(name, entry["total"])
        # Places: the first write of rank 0 lies at the beginning; 15 follow it, and the collective one lies forward.
        self.assertEqual(entry["ranks"]["writes_consecutive"], [PIECES - 1] * RANKS)
        self.assertEqual(entry["ranks"]["reads_consecutive"], [3] * RANKS)
        self.assertIn([RANKS * 1024, RANKS * 2], entry["common_write_strides"])
        self.assertIn([PIECE, RANKS * (PIECES + 1)], entry["common_write_sizes"])
        line = log["time_line"]
        self.assertEqual([row["rank"] for row in line["rows"]], list(range(RANKS)))
        self.assertEqual(sum(map(sum, (row["written"] for row in line["rows"]))), RANKS * CALLS["bytes_written"])
        self.assertEqual(sum(map(sum, (row["read"] for row in line["rows"]))), RANKS * CALLS["bytes_read"])
        job = log["job"]
        self.assertRegex(job["mpi"], r"^(MPICH|Open MPI) v?\d+\.\d+")
        self.assertEqual((job["ranks"], job["exit_code"], job["complete"]), (RANKS, 0, True))
        self.assertEqual(job["program"], os.path.realpath(self.options.known))
        spent = sum(entry["total"].get(t, 0) for t in ("read_ns", "write_ns", "open_ns", "close_ns", "sync_ns", "metadata_ns"))
        self.assertLess(spent, RANKS * job["duration_ns"])
        return entry

    def test_a_file_of_the_mpi_is_counted_exactly(self):
        done = self.run_job("--log", str(self.log))
        self.assertNotIn("holdfast", done.stderr)
        entry = self.check_counts(self.report())
        self.assertEqual(entry["scheme"], "")
        # What the MPI itself called for it.
        total = entry["total"]
        self.assertGreaterEqual(total["system_write_bytes"], RANKS * CALLS["bytes_written"])
        self.assertGreaterEqual(total["system_writes"], RANKS * PIECES)
        self.assertGreaterEqual(total["system_read_bytes"], RANKS * CALLS["bytes_read"] - 10)
        self.assertGreater(total["system_syncs"], 0)
        self.assertLessEqual(total["system_write_ns"], total["write_ns"] + total.get("close_ns", 0) + total.get("sync_ns", 0))
        self.assertEqual(sorted(p.name for p in self.root.iterdir()), ["job.hflog", "out"])

    def test_a_protected_file_is_counted_exactly_with_its_calls_on_targets(self):
        self.run_job("--log", str(self.log), *self.protection())
        entry = self.check_counts(self.report())
        self.assertEqual((entry["scheme"], entry["alignment"]), ("rs:2+1", 16384))
        total = entry["total"]
        # All that was written lies on targets, with a half more for the code.
        self.assertGreaterEqual(total["system_write_bytes"], 1.5 * RANKS * 2 * BLOCK)
        self.assertGreater(total["system_syncs"], 0)
        self.assertGreater(total["layer_ns"], 0)
        self.assertLessEqual(total["layer_ns"], sum(total.get(t, 0) for t in ("read_ns", "write_ns", "open_ns", "close_ns", "sync_ns", "metadata_ns")))
        self.assertIn(entry["shared_pointer"], ("window", "process"))

    def test_calls_that_are_not_about_files_are_counted_where_that_is_asked_for(self):
        for name, options in (("plain", []), ("protected", self.protection())):
            with self.subTest(name):
                log = self.root / f"{name}.hflog"
                self.run_job("--log", str(log), "--profile-mpi", *options)
                counted = self.report(log)
                self.check_counts(counted)
                for process in counted["processes"]:
                    # What MPI-IO says to other ranks is its own.
                    self.assertEqual({kind: one["calls"] for kind, one in process["mpi_calls"].items()}, {"collective": 3, "wait": 1})
        self.run_job("--log", str(self.log))
        self.assertNotIn("mpi_calls", self.report()["processes"][0])

    def test_the_time_of_calls_that_are_not_about_files_is_where_a_rank_waits(self):
        self.run_job("--profile-mpi", "--log", str(self.log), program=["talk"])
        log = self.report()
        expected = {"message": 5, "wait": 1, "collective": 2, "window": 4, "communicator": 2}
        for process in log["processes"]:
            self.assertEqual({kind: one["calls"] for kind, one in process["mpi_calls"].items()}, expected)
        first, second = (process["mpi_calls"]["collective"]["ns"] for process in log["processes"])
        self.assertGreater(first, second + 200_000_000)
        self.assertLess(first, log["job"]["duration_ns"])
        text = subprocess.run([self.options.holdfast, "report", str(self.log)], capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(text, r"% of the ranks' time in 28 calls of MPI that are not about files: message [0-9.]+ % in 10 calls, wait")

    def test_all_that_served_a_files_shared_pointer_are_named(self):
        self.run_job("--log", str(self.log), program=["pointers"])
        entry, = [f for f in self.report()["files"] if f["interface"] == "mpi-io"]
        self.assertEqual(entry["shared_pointer"], "window, individual")

    def test_the_log_is_named_after_the_job_and_told_once_at_the_end(self):
        done = self.run_job("--profile")
        told = [line for line in done.stderr.splitlines() if line.startswith("holdfast: ")]
        self.assertEqual(len(told), 1, done.stderr)
        path = pathlib.Path(told[0].split("holdfast report ")[1])
        self.assertTrue(path.name.startswith(pathlib.Path(self.options.known).name + "-"))
        self.assertEqual(path.parent, self.root)
        self.check_counts(self.report(path))

    def test_a_configuration_file_turns_it_on(self):
        (self.root / "holdfast.toml").write_text(f'profile = true\nlog_directory = "{self.root}/logs"\n')
        self.run_job()
        log, = (self.root / "logs").glob("*.hflog")
        self.check_counts(self.report(log))

    def test_a_file_of_each_rank_by_plain_calls_is_counted_exactly_and_no_other(self):
        self.run_job("--log", str(self.log), program=["plain"])
        log = self.report()
        self.assertEqual([(f["path"], f["interface"]) for f in log["files"]], [(f"{self.root}/out.{rank}", "posix") for rank in reversed(range(RANKS))])
        self.assertEqual(sorted(p["rank"] for p in log["processes"]), list(range(RANKS)))
        for rank, entry in enumerate(reversed(log["files"])):
            total = entry["total"]
            self.assertEqual(entry["ranks"]["rank"], [rank])
            expected = {"opens": 1, "closes": 1, "writes_independent": 100 * (rank + 1), "bytes_written": 51200 * (rank + 1), "reads_independent": 1,
                        "bytes_read": 100, "syncs": 1, "system_writes": 100 * (rank + 1), "system_write_bytes": 51200 * (rank + 1), "system_reads": 1}
            self.assertEqual({name: total.get(name, 0) for name in expected}, expected)
        self.assertTrue(log["job"]["complete"])

    def test_a_trace_has_every_operation(self):
        self.run_job("--log", str(self.log), "--trace")
        operations = self.report()["operations"]
        writes = [o for o in operations if o[2] == "writes_independent" and o[0] == 1]
        self.assertEqual(len(writes), CALLS["writes_independent"])
        self.assertEqual([o[5] for o in writes[:PIECES]], [BLOCK + i * PIECE for i in range(PIECES)])
        self.assertEqual(operations, sorted(operations, key=lambda o: o[3]))

    def test_without_being_asked_nothing_is_written(self):
        self.run_job()
        self.assertEqual([p.name for p in self.root.iterdir()], ["out"])

    def test_a_directory_that_cannot_be_written_is_one_warning(self):
        (self.root / "file").write_text("in the way")
        done = self.run_job("--log", str(self.root / "file" / "job.hflog"))
        told = [line for line in done.stderr.splitlines() if line.startswith("holdfast: ")]
        self.assertEqual(len(told), 1, done.stderr)
        self.assertIn("--log FILE", told[0])
        self.assertTrue((self.root / "out").exists())

    def start(self):
        job = subprocess.Popen(self.run_line("--log", str(self.log), program=["wait"]), cwd=self.root, env=self.env, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        self.addCleanup(job.stdout.close)
        self.addCleanup(self.end, job)
        self.assertEqual(job.stdout.readline().strip(), "here")
        return job

    def end(self, job):
        try:
            os.killpg(job.pid, signal.SIGKILL)  # its own session: nobody else is in it
        except ProcessLookupError:
            pass
        for pid in self.ranks():
            os.kill(pid, signal.SIGKILL)
        job.wait(timeout=60)

    def ranks(self):
        """This test's own ranks, by their executable and their argument."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.root / "out").encode() in words and words[0] == str(self.options.known).encode():
                found.append(int(entry.parent.name))
        return found

    def check_killed(self, log, run_saw_it):
        entry, = [f for f in log["files"] if f["interface"] == "mpi-io"]
        self.assertEqual(entry["total"]["writes_independent"], RANKS * PIECES)
        self.assertEqual(entry["total"]["bytes_written"], RANKS * BLOCK)
        self.assertFalse(log["job"]["complete"])
        self.assertEqual("exit_code" in log["job"], run_saw_it)

    def test_ranks_that_are_killed_leave_a_log(self):
        job = self.start()
        for pid in self.ranks():
            with contextlib.suppress(ProcessLookupError):  # its launcher ends the others at the first one's death
                os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(job.wait(timeout=60), 0)
        self.check_killed(self.report(), True)
        self.assertFalse((self.root / "job.hflog.pieces").exists())

    def test_a_signal_reaches_the_launcher_and_the_log_is_written(self):
        job = self.start()
        job.terminate()
        job.wait(timeout=60)  # whatever the launcher makes of it: MPICH's ends with 15 or with 0
        self.check_killed(self.report(), True)

    def test_what_a_job_left_is_reported_when_run_was_killed_with_it(self):
        job = self.start()
        job.kill()
        job.wait(timeout=60)
        self.end(job)
        pieces = self.root / "job.hflog.pieces"
        self.assertTrue(pieces.is_dir())
        self.check_killed(self.report(pieces), False)
        next(pieces.glob("*.piece")).write_bytes(b"rubbish")  # one of them cannot be read
        log = self.report(pieces)
        self.assertEqual(log["job"]["damaged_pieces"], 1)
        self.assertEqual(log["files"][0]["total"]["bytes_written"], (RANKS - 1) * BLOCK)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("mpicc", "library", "holdfast", "known"):
        parser.add_argument("--" + name, required=True)
    ProfileTest.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
