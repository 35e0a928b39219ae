"""holdfast run --replicas --write-protocol distributed-separate: each replica writes a part of its own, and all are joined with the file."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
SEPARATE = ["--write-protocol", "distributed-separate"]
COUNT = 40


class SeparateWrites(ReplicatedTest):
    def after(self, count):
        """The file as the program alone leaves it after so many writes."""
        subprocess.run([PROGRAM, "bigblocks", "native", str(count), "0"], cwd=self.dir, check=True, capture_output=True)
        with open(self.path("native"), "rb") as file:
            return file.read()

    def assert_whole(self, expected):
        """In two steps: the difference of long contents takes minutes to be written down."""
        self.assertTrue(self.content() == expected, "the file is not the native one")
        self.assertEqual(self.parts(), [])

    def content(self):
        with open(self.path("file"), "rb") as file:
            return file.read()

    def parts(self):
        return sorted(name for name in os.listdir(self.dir) if "holdfast-parts" in name)

    def wait_for_parts(self, bytes_of_all):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if sum(os.path.getsize(self.path(name)) for name in self.parts()) > bytes_of_all:
                return
            time.sleep(0.01)
        self.fail("the replicas write no parts")

    def test_the_file_is_the_one_that_the_program_alone_writes(self):
        for replicas in (2, 3):
            done = self.replicas(*SEPARATE, PROGRAM, "bigblocks", "file", str(COUNT), "0", replicas=replicas)
            native = self.after(COUNT)
            self.assertEqual(done.stdout, f"{len(native)} bytes\n")
            self.assert_whole(native)
            self.assertIn("file: read simple, write distributed-separate", self.holdfast("status", "--job").stdout)
            os.unlink(self.path("file"))

    def test_with_buffers_above_it(self):
        self.replicas(*SEPARATE, "--buffer", "2x262144", "--path", "*/file", PROGRAM, "bigblocks", "file", str(COUNT), "0")
        self.assert_whole(self.after(COUNT))

    def test_each_replica_writes_its_part_and_the_status_says_so(self):
        job = self.start(*SEPARATE, PROGRAM, "bigblocks", "file", str(COUNT), "60", replicas=3)
        self.wait_for_parts(300000)
        self.assertEqual({name.rpartition(".")[2] for name in self.parts() if name[-2] == "."}, {"0", "1", "2"})
        self.assertIn("its replicas write to parts", self.holdfast("status", "file", expect=1).stdout)
        self.assert_one_sentence(self.holdfast("merge", "file", expect=None).stderr, "still writes")
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assert_whole(self.after(COUNT))

    def test_a_replica_that_is_killed_is_survived(self):
        for replicas, team in ((2, 0), (2, 1), (3, 0), (3, 2)):
            with self.subTest(replicas=replicas, team=team):
                job = self.start(*SEPARATE, PROGRAM, "bigblocks", "file", str(COUNT), "50", replicas=replicas)
                process = self.process_of(team, 0)
                self.wait_for_parts(300000)
                os.kill(process, signal.SIGKILL)
                _, err = job.communicate(timeout=60)
                self.assertEqual(job.returncode, 0, err)
                self.assert_whole(self.after(COUNT))
                shutil.rmtree(self.path("state"))
                os.unlink(self.path("file"))

    def killed_as_a_whole(self, replicas):
        job = self.start(*SEPARATE, PROGRAM, "bigblocks", "file", str(COUNT), "60", replicas=replicas)
        processes = [self.process_of(team, 0) for team in range(replicas)]
        self.wait_for_parts(500000)
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                os.kill(process, sign)
        out, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 121, err)
        return out + err

    def assert_state_after_some_writes(self, content):
        """All of the writes up to one, and perhaps a piece of the next one."""
        block = 4096
        before = self.after(0)
        for count in range(1, COUNT + 1):
            after = self.after(count)
            if len(before) <= len(content) <= len(after) and all(
                    content[at:at + block] in (before[at:at + block], after[at:at + block]) or
                    all(byte in (old, new) for byte, old, new in zip(content[at:at + block], before[at:at + block].ljust(block, b"\0"), after[at:at + block]))
                    for at in range(0, len(content), block)):
                return
            before = after
        self.fail(f"the {len(content)} bytes are those of no state of the file")

    def test_what_a_job_that_was_killed_has_left_is_merged(self):
        for replicas in (2, 3):
            with self.subTest(replicas=replicas):
                said = self.killed_as_a_whole(replicas)
                self.assertIn("holdfast merge", said)
                self.assertNotEqual(self.parts(), [])
                self.assertRegex(self.holdfast("status", "file", expect=1).stdout, r"file: not joined: .* lie in parts beside it; holdfast merge ")
                self.assertIn("not joined", self.holdfast("ls", expect=None).stdout)
                self.assertEqual(json.loads(self.holdfast("status", "--json", "file", expect=1).stdout)["files"][0]["health"], "not joined")
                self.assertRegex(self.holdfast("merge", "file").stdout, r"file: [0-9]+ writes? joined, ")
                self.assert_state_after_some_writes(self.content())
                self.assertEqual(self.parts(), [])
                self.assertIn("nothing to merge", self.holdfast("merge", "file").stdout)
                shutil.rmtree(self.path("state"))

    def test_a_file_that_was_changed_since_is_not_merged_unasked(self):
        self.killed_as_a_whole(2)
        with open(self.path("file"), "r+b") as file:
            file.write(b"newer")
        before = self.content()
        self.assert_one_sentence(self.holdfast("merge", "file", expect=None).stderr, "--accept-changes")
        self.assertTrue(self.content() == before)
        self.holdfast("merge", "--accept-changes", "file")
        self.assertEqual(self.parts(), [])
        self.assertTrue(self.content() != before)

    def test_parts_can_be_thrown_away_and_a_lost_one_is_named(self):
        self.killed_as_a_whole(2)
        before = self.content()
        part = next(name for name in self.parts() if name.endswith(".1"))
        os.unlink(self.path(part))
        self.assert_one_sentence(self.holdfast("merge", "file", expect=None).stderr, f"{part} is not there")
        self.assertTrue(self.content() == before)
        self.assertIn("thrown away", self.holdfast("merge", "--discard", "file").stdout)
        self.assert_whole(before)

    def test_what_a_full_disk_cannot_take_is_merged_when_there_is_room(self):
        """Parts and file have to fit. The program hears of it, and what it has written stays."""
        disk = self.path("disk")
        os.mkdir(disk)
        script = (f"mount -t tmpfs -o size=2m tmpfs {disk} && {self.binary} run --replicas 2 {' '.join(SEPARATE)} {PROGRAM} bigblocks "
                  f"{disk}/file {COUNT} 0; echo code $?; mount -o remount,size=16m {disk} && {self.binary} merge {disk}/file && "
                  f"cp {disk}/file {self.path('file')}; ls -A {disk}")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            self.skipTest("no mounts here: " + done.stderr)
        self.assertIn("No space left on device; nothing is lost: it stays in the replicas' parts", done.stderr)
        self.assertIn("code 1\n", done.stdout)
        self.assertRegex(done.stdout, "writes? joined, ")
        self.assertEqual(done.stdout.splitlines()[-1], "file")
        self.assert_state_after_some_writes(self.content())

    def test_a_merge_that_was_cut_short_goes_on_when_there_is_room(self):
        """Of two ranks: what one has joined changes the file of the other."""
        disk = self.path("disk")
        os.mkdir(disk)
        with open(self.path("two.c"), "w", encoding="utf-8") as file:
            file.write("""#include <mpi.h>
                #include <signal.h>
                #include <string.h>
                #define SHARE 700000
                static char mine[SHARE];
                int main(int count, char** words) {
                  int rank;
                  MPI_File file;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  memset(mine, 'a' + rank, SHARE);
                  MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
                  MPI_File_write_at(file, rank * SHARE, mine, SHARE, MPI_CHAR, MPI_STATUS_IGNORE);
                  MPI_Barrier(MPI_COMM_WORLD);
                  raise(SIGKILL);
                  return count;
                }""")
        for name, launcher in self.launchers():
            subprocess.run([f"mpicc.{name}", "two.c", "-o", "two"], cwd=self.dir, check=True)
            command = " ".join(launcher)
            script = (f"mount -t tmpfs -o size=1900k tmpfs {disk} && {self.binary} run --replicas 2 {' '.join(SEPARATE)} {command} ./two {disk}/file; "
                      f"echo code $?; {self.binary} merge {disk}/file; echo code $?; mount -o remount,size=16m {disk} && {self.binary} merge {disk}/file && "
                      f"cp {disk}/file {self.path('file')}; ls -A {disk}")
            done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=120, check=False)
            if "unshare:" in done.stderr or "mount:" in done.stderr:
                self.skipTest("no mounts here: " + done.stderr)
            self.assertIn("code 121\ncode 3\n", done.stdout)
            self.assertRegex(done.stderr, "No space left on device.*; nothing is lost: the bytes stay in .*; when the cause is gone: holdfast merge")
            self.assertRegex(done.stdout, "2 writes joined, ")
            self.assertEqual(done.stdout.splitlines()[-1], "file")
            self.assertTrue(self.content() == b"a" * 700000 + b"b" * 700000)

    def test_it_does_not_go_with_a_rehearsal(self):
        done = self.holdfast("run", "--replicas", "2", "--rehearse", *SEPARATE, "touch", "started", expect=2)
        self.assert_one_sentence(done.stderr, "--rehearse and --write-protocol distributed-separate cannot be had together")

    def test_protected_files_are_written_by_the_leader(self):
        for name in ("t0", "t1", "t2"):
            os.mkdir(self.path(name))
        self.replicas(*SEPARATE, "--protect", "rs:2+1", "--targets", "t0,t1,t2", "--path", "*/file", PROGRAM, "bigblocks", "file", str(COUNT), "0")
        self.assertIn("file: read read-and-distribute, write simple", self.holdfast("status", "--job").stdout)
        self.holdfast("export", "--force", "file", "plain")
        with open(self.path("plain"), "rb") as file:
            self.assertTrue(file.read() == self.after(COUNT))

    def test_a_team_that_is_started_again_takes_part(self):
        job = self.start("--relaunch", "1", *SEPARATE, PROGRAM, "bigblocks", "file", str(COUNT), "60")
        process = self.process_of(0, 0)
        self.wait_for_parts(300000)
        os.kill(process, signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assert_whole(self.after(COUNT))

    def test_ranks_see_and_cut_what_others_have_written(self):
        """By collective reads, and by a size that is set for all. Which protocol it is an option says, or a hint of the open."""
        with open(self.path("together.c"), "w", encoding="utf-8") as file:
            file.write("""#include <mpi.h>
                #include <stdio.h>
                #include <string.h>
                #define SHARE 200000
                static char mine[SHARE], other[SHARE];
                int main(int count, char** words) {
                  int rank;
                  MPI_File file;
                  MPI_Offset size;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  memset(mine, 'a' + rank, SHARE);
                  MPI_Info info;
                  MPI_Info_create(&info);
                  if (count > 2) MPI_Info_set(info, "holdfast_write_protocol", words[2]);
                  if (count > 3) MPI_Info_set(info, "holdfast_read_protocol", words[3]);
                  MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
                  MPI_Info_free(&info);
                  MPI_File_write_at_all(file, rank * SHARE, mine, SHARE, MPI_CHAR, MPI_STATUS_IGNORE);
                  MPI_File_read_at_all(file, (1 - rank) * SHARE, other, SHARE, MPI_CHAR, MPI_STATUS_IGNORE);
                  int wrong = 0;
                  for (int i = 0; i < SHARE; ++i) wrong += other[i] != 'a' + 1 - rank;
                  MPI_File_write_at(file, (2 + rank) * SHARE, mine, SHARE, MPI_CHAR, MPI_STATUS_IGNORE);
                  MPI_Barrier(MPI_COMM_WORLD);
                  MPI_File_set_size(file, 5 * SHARE / 2);
                  MPI_File_get_size(file, &size);
                  MPI_File_write_at(file, rank * SHARE + 100, other, SHARE / 2, MPI_CHAR, MPI_STATUS_IGNORE);
                  MPI_File_set_atomicity(file, 1);
                  MPI_File_write_at(file, rank * SHARE + 150, mine, 70000, MPI_CHAR, MPI_STATUS_IGNORE);
                  MPI_File_close(&file);
                  printf("rank %d: %d wrong, %d bytes\\n", rank, wrong, (int)size);
                  MPI_Finalize();
                  return 0;
                }""")
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "together.c", "-o", "together"], cwd=self.dir, check=True)
                asked = SEPARATE[1]
                for options, hints, used in ((SEPARATE, [], ("simple", asked)), ([], [asked], ("simple", asked)), (SEPARATE, ["simple"], ("simple", "simple")),
                                             (["--rehearse"], [asked], ("simple", "simple")), ([], ["simple", "chained"], ("chained", "simple")),
                                             (["--read-protocol", "chained"], ["simple", "read-and-distribute"], ("read-and-distribute", "simple"))):
                    done = self.replicas(*options, *launcher, "./together", "file", *hints)
                    self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0: 0 wrong, 500000 bytes", "rank 1: 0 wrong, 500000 bytes"])
                    self.assertIn("file: read {}, write {}\n".format(*used), self.holdfast("status", "--job").stdout)
                    shares = [own * 100 + other * 50 + own * 70000 + other * 29950 + own * 99900 for own, other in ((b"a", b"b"), (b"b", b"a"))]
                    self.assert_whole(b"".join(shares) + b"a" * 100000)
                    os.unlink(self.path("file"))

    def test_ranks_of_an_mpi_program(self):
        heat = os.path.join(os.path.dirname(__file__), "../../examples/heat.c")
        shape = ["300", "200", "40", "4"]
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "-O2", heat, "-o", "heat"], cwd=self.dir, check=True)
                subprocess.run([*launcher, "./heat", "native", *shape], cwd=self.dir, env=self.env, check=True, capture_output=True)
                job = self.start(*SEPARATE, *launcher, "./heat", "file", *shape, "--pause-ms", "150", rests=True)
                process = self.process_of(1, 0, 2)
                self.wait_for_parts(1)
                self.strike(process)
                _, err = job.communicate(timeout=100)
                self.assertEqual(job.returncode, 0, err)
                with open(self.path("native"), "rb") as native:
                    self.assert_whole(native.read())
                os.unlink(self.path("file"))
                shutil.rmtree(self.path("state"))


if __name__ == "__main__":
    unittest.main()
