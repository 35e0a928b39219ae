"""holdfast run --log: the calls of stdio, on plain, buffered and protected files."""
import os
import shutil
import subprocess
import tempfile
import unittest

from command import CommandTest

STREAMS = os.environ.get("HOLDFAST_STREAMS") or os.path.join(os.path.dirname(__file__), "../../build/tests/cli/streams")
WRITTEN = 1000 * 512 + 300 + 10 * 6 + 5 * 4


class Streams(CommandTest):
    def profile(self, *program, options=(), output=os.devnull):
        log = self.path("job.hflog")
        with open(output, "ab") as out:
            subprocess.run([self.binary, "run", "--log", log, *options, *program], cwd=self.dir, env=self.env, stdout=out, check=True, timeout=120)
        return self.counted(log)

    def counted(self, log):
        files = [f for f in self.json("report", log)["files"] if f["interface"] == "stdio"]
        return {f["path"].removeprefix(self.dir + "/"): f["total"] for f in files}

    def check(self, counts, **expected):
        self.assertEqual({name: counts.get(name, 0) for name in expected}, expected)

    def test_each_write_is_counted_with_its_bytes(self):
        files = self.profile(STREAMS, "write", "out")
        self.assertEqual(list(files), ["out"])  # neither the system's files nor one that was not found
        self.check(files["out"], opens=1, closes=1, syncs=1, writes_independent=1315, bytes_written=WRITTEN, reads_independent=0, failures=0,
                   writes_consecutive=1314, writes_forward=0, write_sizes_0=315, write_sizes_1=1000, end_of_writes=WRITTEN)
        self.assertGreater(files["out"]["write_ns"], 0)

    def test_each_read_is_counted_where_it_was(self):
        self.profile(STREAMS, "write", "out")
        self.check(self.profile(STREAMS, "read", "out")["out"], opens=1, closes=1, reads_independent=1000 + 300 + 9 + 6 + 1, bytes_read=WRITTEN,
                   writes_independent=0, end_of_reads=WRITTEN, reads_forward=0, reads_backward=0)

    def test_seeks_descriptors_and_freopen_are_followed(self):
        files = self.profile(STREAMS, "places", "out")
        self.check(files["out"], opens=1, closes=1, seeks=4 + 1 + 1 + 1, writes_independent=4, writes_forward=3, reads_independent=2,
                   reads_forward=1, reads_backward=1, end_of_writes=3100, end_of_reads=3100)
        self.check(files["out.2"], opens=1, closes=1, bytes_written=9)

    def test_standard_output_is_counted_where_it_is_a_file(self):
        with open(self.path("said"), "w") as said:
            said.write("before\n")
        files = self.profile(STREAMS, "print", "x", output=self.path("said"))
        self.check(files["said"], opens=0, writes_independent=100, bytes_written=800, end_of_writes=807)
        self.assertEqual(self.profile(STREAMS, "print", "x"), {})

    def test_standard_output_into_a_pipe_is_counted_by_its_name(self):
        self.assertEqual(self.holdfast("run", "--log", "job.hflog", STREAMS, "print", "x").stdout.count("line"), 100)
        files = self.counted(self.path("job.hflog"))
        self.assertEqual(list(files), ["<STDOUT>"])
        self.check(files["<STDOUT>"], opens=0, writes_independent=100, bytes_written=800)

    def test_standard_output_that_is_gathered_is_no_file_of_the_program(self):
        self.holdfast("run", "--log", "job.hflog", "--gather-output", "said", STREAMS, "print", "x")
        self.assertEqual(self.counted(self.path("job.hflog")), {})

    def test_what_the_c_library_does_below_is_not_invented(self):
        self.check(self.profile(STREAMS, "write", "out")["out"], system_writes=0, system_write_bytes=0)
        self.assertIn("system's calls are not known", self.holdfast("report", "job.hflog").stdout)

    def test_below_a_stream_with_buffers_the_systems_calls_are_seen(self):
        counts = self.profile(STREAMS, "write", "out", options=["--buffer", "4x1MiB", "--path", "out"])["out"]
        self.check(counts, writes_independent=1315, bytes_written=WRITTEN, system_write_bytes=WRITTEN)
        self.assertLessEqual(counts["system_writes"], 4)

    def test_below_a_protected_stream_the_calls_on_targets_are_seen(self):
        targets = ",".join(self.make_targets(3))
        counts = self.profile(STREAMS, "write", "out", options=["--protect", "rs:2+1", "--targets", targets, "--path", "out"])["out"]
        self.check(counts, writes_independent=1315, bytes_written=WRITTEN)
        self.assertGreaterEqual(counts["system_write_bytes"], WRITTEN * 3 // 2)
        self.assertNotIn("not known", self.holdfast("report", "job.hflog").stdout)

    def test_files_that_profile_exclude_names_are_not_counted(self):
        self.env["HOLDFAST_PROFILE_EXCLUDE"] = "*.log:out*"
        self.assertEqual(self.profile(STREAMS, "write", "out"), {})

    def test_what_holdfast_serves_is_counted_where_other_files_are_not(self):
        place = tempfile.mkdtemp(dir="/dev/shm", prefix="holdfast-cli-")
        self.addCleanup(shutil.rmtree, place)
        self.assertEqual(self.profile(STREAMS, "write", place + "/out"), {})
        served = self.profile(STREAMS, "write", place + "/out", options=["--buffer", "4x1MiB", "--path", place + "/*"])
        self.check(served[place + "/out"], opens=1, writes_independent=1315, bytes_written=WRITTEN, system_write_bytes=WRITTEN)

    def test_no_call_of_a_stream_is_counted_twice(self):
        self.profile(STREAMS, "write", "out", options=["--buffer", "4x1MiB", "--path", "out"])
        self.assertEqual([f["interface"] for f in self.json("report", "job.hflog")["files"]], ["stdio"])


if __name__ == "__main__":
    unittest.main()
