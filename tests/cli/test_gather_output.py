"""holdfast run --gather-output: what the ranks print, line by line in one file."""
import os
import re
import shutil
import unittest

from command import CommandTest

LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}) rank (\d+) (out|err)\] (.*)")


class GatherOutput(CommandTest):
    def gathered(self, *command, options=(), expect=0, env=None):
        done = self.holdfast("run", "--gather-output", "all.txt", *options, *command, expect=expect, env=env)
        with open(self.path("all.txt"), encoding="utf-8") as file:
            lines = [LINE.fullmatch(line) for line in file.read().splitlines()]
        self.assertTrue(all(lines), "every line has its time, rank and origin")
        return done, [line.groups()[1:] for line in lines]

    def launchers(self):
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        for launcher, options in (("mpirun.openmpi", [*as_root, "--oversubscribe", "--bind-to", "none"]), ("mpiexec.mpich", [])):
            if shutil.which(launcher):
                yield [launcher, *options, "-n", "3"]

    def test_lines_of_a_serial_program(self):
        done, lines = self.gathered("sh", "-c", "echo one; echo two >&2; printf three")
        self.assertEqual(sorted(lines), [("0", "err", "two"), ("0", "out", "one"), ("0", "out", "three")])
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_lines_of_all_ranks_whole_and_in_each_ones_order(self):
        program = "for i in $(seq 500); do echo line $i of $$ with a tail; done; echo done >&2"
        for launcher in self.launchers():
            with self.subTest(launcher[0]):
                _, lines = self.gathered(*launcher, "sh", "-c", program)
                for rank in "012":
                    own = [text for r, stream, text in lines if r == rank and stream == "out"]
                    self.assertEqual([text.split(" of ")[0] for text in own], [f"line {i}" for i in range(1, 501)])
                    self.assertIn((rank, "err", "done"), lines)
                self.assertEqual(len(lines), 3 * 501)

    def test_what_a_killed_program_had_printed_is_there(self):
        done, lines = self.gathered("sh", "-c", "echo before; kill -9 $$", expect=128 + 9)
        self.assertEqual(lines, [("0", "out", "before")])

    def test_the_exit_status_is_the_programs(self):
        self.gathered("sh", "-c", "exit 7", expect=7)

    def test_a_program_that_the_program_starts_is_of_its_rank(self):
        _, lines = self.gathered("sh", "-c", "sh -c 'echo inner'; echo outer")
        self.assertEqual(lines, [("0", "out", "inner"), ("0", "out", "outer")])

    def test_a_job_begins_with_an_empty_file(self):
        self.gathered("sh", "-c", "echo old")
        _, lines = self.gathered("sh", "-c", "echo new")
        self.assertEqual(lines, [("0", "out", "new")])

    def test_a_file_that_cannot_be_made_is_said_before_anything_starts(self):
        done = self.holdfast("run", "--gather-output", "no/such/all.txt", "touch", "started", expect=2)
        self.assertIn("--gather-output", done.stderr)
        self.assertFalse(os.path.exists(self.path("started")))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs the right to mount a small file system")
    def test_on_a_full_disk_the_output_goes_on_where_it_would_have_gone(self):
        os.mkdir(self.path("small"))
        import subprocess
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", self.path("small")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=False)
        done = self.holdfast("run", "--gather-output", "small/all.txt", "sh", "-c", "seq 100000")
        self.assertIn("holdfast: the file of --gather-output cannot be written any more", done.stdout)
        self.assertTrue(done.stdout.endswith("99999\n100000\n"))


if __name__ == "__main__":
    unittest.main()
