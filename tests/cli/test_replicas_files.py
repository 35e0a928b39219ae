"""holdfast run --replicas: files that are special by their names, their kind, or by who else changes them."""
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
NUMBERED = os.path.join(os.path.dirname(__file__), "numbered.c")


class ReplicasFiles(ReplicatedTest):
    def leave_temporary_directories(self):
        """There each replica has files of its own with its number in their names."""
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="replicas-", dir=os.getcwd()))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        if self.dir.startswith(("/tmp/", "/var/tmp/", "/run/")):
            self.skipTest("this test has to be run outside of directories for temporary files")

    def numbered(self, name=None):
        compiler = [f"mpicc.{name}", "-DWITH_MPI"] if name else ["cc"]
        subprocess.run([*compiler, NUMBERED, "-o", self.path("numbered")], check=True)
        return self.path("numbered")

    def check_numbered(self, ranks, lines):
        directories = sorted(glob.glob("run.*", root_dir=self.dir))
        self.assertEqual(len(directories), len(ranks), os.listdir(self.dir))
        seen = []
        for directory in directories:
            number = directory.removeprefix("run.")
            self.assertEqual(sorted(os.listdir(self.path(directory))), ["beside", f"log.{number}.done"])
            log = self.read(f"{directory}/log.{number}.done").splitlines()
            rank = int(log[0].split()[1])
            self.assertEqual(log, [f"rank {rank} line {i}" for i in range(lines)] + ["4 entries"])
            seen.append(rank)
        self.assertEqual(sorted(seen), ranks)
        self.assertEqual(glob.glob("scratch.*", root_dir=self.dir), [])
        return [int(directory.removeprefix("run.")) for directory in directories]

    def test_a_name_with_the_processs_number_is_one_in_all(self):
        self.leave_temporary_directories()
        self.replicas(self.numbered(), replicas=3)
        self.check_numbered([0], 3)

    def test_a_name_with_the_processs_number_stays_when_its_process_is_lost(self):
        self.leave_temporary_directories()
        job = self.start("--relaunch", "1", self.numbered(), "30", "50")
        process = self.process_of(0, 0)
        time.sleep(0.5)
        os.kill(process, signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(self.check_numbered([0], 30), [process])

    def test_names_with_the_numbers_of_ranks(self):
        self.leave_temporary_directories()
        for name, launcher in self.launchers():
            with self.subTest(name):
                job = self.start(*launcher, self.numbered(name), "20", "50")
                first = self.process_of(0, 0, 2)
                time.sleep(0.4)
                os.kill(self.process_of(0, 1, 2), signal.SIGKILL)
                _, err = job.communicate(timeout=60)
                self.assertEqual(job.returncode, 0, err)
                numbers = self.check_numbered([0, 1], 20)
                self.assertIn(first, numbers)
                for number in numbers:
                    self.assertEqual(self.read(f"independent.{number}"), "run.")
                for entry in os.listdir(self.dir):
                    shutil.rmtree(self.path(entry)) if os.path.isdir(self.path(entry)) else os.unlink(self.path(entry))

    def test_a_replica_that_alone_cannot_open_a_file_is_ended(self):
        for how, name in (("r", "input"), ("w", "new")):
            with self.subTest(how):
                open(self.path("input"), "w").close()
                done = self.replicas(PROGRAM, "alone", name, how)
                said = f"rank 0 of team 1 cannot go on: {self.path(name)}: another replica has opened it, and this one cannot: Too many open files"
                self.assertIn(said, done.stderr)
                self.assertIn("team 0 goes on alone", done.stderr)
                self.assertEqual(self.read("out"), "opened 1\n")

    def test_a_named_pipe_is_made_once_and_refused(self):
        done = self.replicas(PROGRAM, "pipes", "pipe")
        answers = ["mkfifo ok", "mkfifo again File exists", "open to write Operation not supported", "open to read Operation not supported",
                   "fopen Operation not supported", "unlink ok"]
        self.assertEqual(done.stdout.splitlines(), answers)
        self.assertEqual(done.stderr.count(f"{self.path('pipe')}: is a named pipe, which several replicas cannot use as one"), 2, done.stderr)

    def test_a_range_that_is_to_be_moved_is_refused_and_named_once(self):
        done = self.replicas(PROGRAM, "ranges", "file")
        self.assertEqual(done.stdout.splitlines(), ["insert Operation not supported", "collapse Operation not supported"] * 2 + ["write ok"])
        for flag in ("INSERT", "COLLAPSE"):
            said = f"holdfast: rank 0: {self.path('file')}: fallocate with FALLOC_FL_{flag}_RANGE is refused: after a loss nobody could see whether it was done\n"
            self.assertEqual(done.stderr.count(said), 1, done.stderr)
        self.assertEqual(self.read("file"), "kept")

    def test_a_name_that_ends_in_a_slash_is_no_files(self):
        said = "echo one > new/ || echo refused; echo two > old; echo three > old/ || echo refused; cat old"
        done = self.replicas("bash", "-c", said)
        self.assertEqual(done.stdout, "refused\nrefused\ntwo\n", done.stderr)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_a_file_is_written_by_the_name_of_its_number_too(self):
        done = self.replicas("bash", "-c", "exec 7> file; echo one >&7; echo two >> /dev/fd/7; echo three >> /proc/self/fd/7; cat < /dev/fd/7")
        self.assertEqual(self.read("file"), "one\ntwo\nthree\n", done.stderr)
        self.assertEqual(done.stdout, "one\ntwo\nthree\n")

    def test_a_file_that_was_renamed_is_opened_by_its_number_as_what_it_is(self):
        program = (
            "import os\nos.dup2(os.open('old', os.O_RDWR | os.O_CREAT), 7)\nos.write(7, b'own')\nos.rename('old', 'new')\nopen('old', 'w').write('other')\n"
            "with open('/dev/fd/7', 'a') as file:\n    file.write(' more')\nos.remove('new')\n"
            "try:\n    open('/dev/fd/7', 'a')\nexcept OSError as error:\n    print(os.strerror(error.errno))\nprint(os.pread(7, 100, 0).decode())"
        )
        done = self.replicas("python3", "-c", program)
        self.assertEqual(done.stdout, "No such file or directory\nown more\n", done.stderr)
        self.assertEqual(self.read("old"), "other")
        self.assertIn("which is gone: replicas open a file by its name", done.stderr)

    def edit(self, text):
        with open(self.path("control.new"), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.rename(self.path("control.new"), self.path("control"))

    def test_a_control_file_that_is_edited_is_the_same_for_all(self):
        """The second replica is slower by more than a whole turn: what it finds is another content than the first one has read."""
        for options in ([], ["--read-protocol", "simple"]):
            with self.subTest(options=options):
                self.edit("0")
                job = self.start(*options, PROGRAM, "control", "control")
                for i in range(1, 30):
                    time.sleep(0.05)
                    self.edit(str(i))
                _, err = job.communicate(timeout=60)
                self.assertEqual(job.returncode, 0, err)
                self.assertNotIn("lost", err)
                seen = [int(line.split()[1]) for line in self.read("file").splitlines()]
                self.assertEqual((len(seen), seen), (60, sorted(seen)))
                self.assertGreater(len(set(seen)), 5)


if __name__ == "__main__":
    unittest.main()
