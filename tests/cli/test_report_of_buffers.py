"""holdfast report of a job with buffers: the rows that reports of buffered I/O have in the field, from a real run."""
import json
import os
import sys
import unittest

from command import CommandTest

# One process, pieces of 512 bytes: 4 MiB are written, then 2 MiB read again.
PROGRAM = """
import os
fd = os.open('fields', os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o666)
for i in range(8192): os.write(fd, b'%08d' % i * 64)
os.lseek(fd, 0, os.SEEK_SET)
for i in range(4096): assert os.read(fd, 512) == b'%08d' % i * 64
os.close(fd)
"""
MIB = 1 << 20


class BufferedReport(CommandTest):
    def setUp(self):
        super().setUp()
        self.holdfast("run", "--log", "job.hflog", "--trace", "--buffer", "4x512KiB", "--path", "fields", sys.executable, "-c", PROGRAM)
        self.lines = self.holdfast("report", "job.hflog").stdout.split(f'File "{self.path("fields")}"')[1].splitlines()

    def row(self, name):
        return next(line.split(name)[1].split() for line in self.lines if line.startswith(f"    {name} "))

    def test_the_programs_calls_stand_above_the_systems(self):
        self.assertEqual(self.row("Open")[0], "1")
        self.assertEqual(self.row("Close")[0], "1")
        read, write, total = self.row("Read"), self.row("Write"), self.row("Total")
        self.assertEqual((read[0], float(read[2]), read[4]), ("4096", 2, "512"))
        self.assertEqual((write[0], float(write[2]), write[4]), ("8192", 4, "512"))
        self.assertEqual(int(total[0]), 1 + 4096 + 8192 + 1 + 1)  # the seek
        below, above = self.row("Sys Write"), self.row("Sys Read")
        self.assertEqual(float(below[2]), 4)
        self.assertLessEqual(int(below[0]), 4 * MIB // (512 << 10) + 4)
        self.assertGreaterEqual(float(above[2]), 2)
        self.assertLessEqual(int(above[0]), 16)

    def test_buffers_prefetches_and_preflushes_are_told(self):
        used = self.row("Buffers used")
        self.assertTrue(1 <= int(used[0]) <= 4, used)
        self.assertRegex(" ".join(used[1:]), r"^\((512\.0 KiB|1\.0 MiB|1\.5 MiB|2\.0 MiB)\)$")
        self.assertGreaterEqual(int(self.row("Preflushes")[0]), 1)
        self.assertTrue(any("in Holdfast's buffers" in line for line in self.lines))

    def test_single_calls_of_plain_files_are_in_the_trace(self):
        self.holdfast("report", "job.hflog", "--trace", "job.trace")
        with open(self.path("job.trace")) as file:
            events = json.load(file)["traceEvents"]
        writes = [e for e in events if e["name"] == "writes_independent" and e["args"]["bytes"] == 512]
        self.assertEqual(len(writes), 8192)
        self.assertEqual([e["args"]["offset"] for e in writes[:3]], [0, 512, 1024])
        self.assertTrue(any(e["ph"] == "M" and e["args"]["name"].endswith("/fields") for e in events))

    def test_a_copy_is_a_read_of_one_file_and_a_write_of_the_other(self):
        """Whoever serves them: both with buffers, or protected and plain."""
        program = ("import os\nopen('a.dat', 'wb').write(b'x' * 1000)\nfor to in ('c.dat', 'd.txt'):\n  a, c = os.open('a.dat', os.O_RDONLY), os.open(to, os.O_WRONLY | os.O_CREAT)\n"
                   "  os.sendfile(c, a, 0, 1000)\n  os.copy_file_range(a, c, 500, 0, 1000)")
        options = {"buffers": ["--buffer", "4x64KiB"], "protected": ["--protect", "rs:2+1", "--targets", ",".join(self.make_targets(3))]}
        for name, how in options.items():
            with self.subTest(name):
                self.holdfast("run", "--log", f"{name}.hflog", *how, "--path", "*.dat", sys.executable, "-c", program)
                moved = {f["path"].rsplit("/", 1)[1]: f["total"] for f in self.json("report", f"{name}.hflog")["files"]}
                self.assertEqual(moved["a.dat"]["bytes_read"], 3000)
                self.assertEqual((moved["c.dat"]["bytes_written"], moved["d.txt"]["bytes_written"]), (1500, 1500))
            for left in ("a.dat", "c.dat", "d.txt"):
                os.path.exists(self.path(left)) and os.unlink(self.path(left))


if __name__ == "__main__":
    unittest.main()
