"""holdfast drain: files of a pool as plain files at their places, by the command and at the end of a job."""
import os
import shutil
import signal
import subprocess
import unittest

from pooled import PooledTest


class PoolDrains(PooledTest):
    def on_nodes(self):
        return [n for i in range(1, 4) for n in os.listdir(self.path(f"disk-n{i}")) if ".dat" in n]

    def test_what_lies_on_nodes_only_is_named_at_the_end(self):
        self.run_on("n1,n2,n3", "true")
        named = self.run_on("n1,n2,n3", "echo a > 'a file.dat'")
        self.assert_one_sentence(named.stderr, "1 file lies on the nodes' disks only", f"holdfast drain '{self.path('a file.dat')}'")
        more = self.run_on("n1,n2,n3", "for i in 1 2 3 4 5 6; do echo $i > $i.dat; done")
        self.assertIn("7 files lie", more.stderr)
        self.assertTrue(more.stderr.endswith(" ...\n"))
        self.holdfast("rm", "a file.dat", *(f"{i}.dat" for i in range(1, 7)))
        self.assertEqual(self.run_on("n1,n2,n3", "true").stderr, "")

    def test_a_drained_file_is_plain_with_its_bytes_and_looks(self):
        self.run_on("n1,n2,n3", "umask 027; seq 300000 > a.dat; chmod 600 a.dat; touch -d '2020-02-02 02:02' a.dat; echo b > b.dat")
        before = os.stat(self.path("a.dat"))
        said = self.holdfast("drain", "a.dat")
        self.assertRegex(said.stdout, r"^a.dat is plain now \(.*\)\n$")
        after = os.stat(self.path("a.dat"))
        self.assertEqual((after.st_mode & 0o7777, after.st_mtime), (0o600, before.st_mtime))
        with open(self.path("a.dat")) as file:
            self.assertEqual(file.read(), "".join(f"{i}\n" for i in range(1, 300001)))
        self.assertIn("is not a protected file", self.holdfast("status", "a.dat", expect=3).stderr)
        self.assertEqual(sorted(os.listdir(self.dir))[:2], [".b.dat.holdfast", "a.dat"])
        self.assertTrue(all(name.startswith("b.dat") for name in self.on_nodes()), self.on_nodes())
        self.assertEqual(self.holdfast("cat", "b.dat").stdout, "b\n")
        refused = self.holdfast("drain", "a.dat", expect=3)
        self.assert_one_sentence(refused.stderr, "a.dat is not a protected file")

    def test_a_lost_node_is_no_hindrance_and_more_are_told(self):
        self.run_on("n1,n2,n3", "echo a > a.dat; seq 1000000 > b.dat")
        self.lose("n2")
        self.holdfast("drain", "a.dat")
        with open(self.path("a.dat")) as file:
            self.assertEqual(file.read(), "a\n")
        self.lose("n3")
        before = self.tree()
        self.assertIn("b.dat", self.holdfast("drain", "b.dat", expect=3).stderr)
        self.assertEqual(self.tree(), before, "a failure leaves all as it was")

    def test_inside_an_allocation_the_job_ends_with_plain_files(self):
        self.env["PBS_JOBID"] = "17.server"
        self.run_on("n1,n2,n3", "true")
        ended = self.run_on("n1,n2,n3", "for i in 1 2 3 4 5 6; do echo $i > $i.dat; done; exit 5", expect=5)
        self.assertEqual(ended.stderr, "")
        for i in range(1, 7):
            with open(self.path(f"{i}.dat")) as file:
                self.assertEqual(file.read(), f"{i}\n")
        self.assertEqual(self.on_nodes(), [])
        self.run_on("n1,n2,n3", "echo kept > kept.dat", "--drain", "none")
        self.assertEqual(len(self.members("kept.dat")), 3)

    def test_a_program_that_has_it_open_goes_on_in_the_plain_file(self):
        """What nobody has written through is drained; nobody can tell that it is open."""
        try:
            os.setxattr(self.dir, "user.holdfast.try", b"")
        except OSError:
            self.skipTest("no attributes on this file system")
        local = ",".join(f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2, 3))
        for name, how, wanted in (("append.dat", "3>>", "ab\n"), ("update.dat", "3<>", "b\n"), ("read.dat", "3<", "a")):
            self.run_on("n1,n2,n3", f"printf a > {name}")
            script = f"exec {how}{name}; echo open; read go; " + ("read line <&3; echo $line" if how == "3<" else "echo b >&3; exec 3>&-; echo written")
            program = self.begin("run", "--protect", "rs:2+1", "--path", "*.dat", "--local", local, "--drain", "none", "--", "sh", "-c", script)
            self.assertEqual(program.stdout.readline(), "open\n")
            self.holdfast("drain", name)
            said, errors = program.communicate("\n", timeout=30)
            self.assertEqual((program.returncode, said), (0, "a\n" if how == "3<" else "written\n"), errors)
            with open(self.path(name)) as file:
                self.assertEqual(file.read(), wanted)

    def test_what_is_open_for_writing_is_not_drained(self):
        self.run_on("n1,n2,n3", "echo a > a.dat")
        local = ",".join(f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2, 3))
        writer = self.begin("run", "--protect", "rs:2+1", "--path", "*.dat", "--local", local, "--", "sh", "-c",
                            "trap '' TERM; exec 3>>a.dat; echo b >&3; echo open; read go; echo c >&3")
        self.assertEqual(writer.stdout.readline(), "open\n")
        before = self.tree()
        refused = self.holdfast("drain", "a.dat", expect=3)
        self.assert_one_sentence(refused.stderr, "a.dat is being written")
        self.assertEqual(self.tree(), before)
        os.kill(writer.pid, signal.SIGKILL)  # of its job nobody answers for the file any more
        ended = self.run_on("n1,n2,n3", "echo c > c.dat", "--drain", "end", expect=123)
        self.assertIn("a.dat stays on the nodes' disks", ended.stderr)
        writer.stdin.write("\n")
        writer.stdin.flush()
        self.assertEqual(writer.stdout.read(), "", "until the program has ended")
        self.assertEqual(self.holdfast("cat", "a.dat").stdout, "a\nb\nc\n")
        self.holdfast("drain", "a.dat")
        with open(self.path("a.dat")) as file:
            self.assertEqual(file.read(), "a\nb\nc\n")

    def test_a_job_leaves_the_files_of_jobs_that_still_run(self):
        """Those that one has closed it may open again, and those that are open are no failure of the other one. Jobs that ended are looked after."""
        self.run_on("n1,n2,n3", "echo a > old.dat; echo a > taken.dat")
        local = ",".join(f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2, 3))
        script = "echo a > closed.dat; exec 3> open.dat; echo a >&3; echo b >> taken.dat; echo ready; read go; echo b >> closed.dat; echo b >&3"
        other = self.begin("run", "--protect", "rs:2+1", "--path", "*.dat", "--local", local, "--drain", "none", "--", "sh", "-c", script)
        self.assertEqual(other.stdout.readline(), "ready\n")
        ended = self.run_on("n1,n2,n3", "echo a > own.dat", "--drain", "end")
        self.assertEqual(ended.stderr, "")
        _, said = other.communicate("\n", timeout=30)
        self.assertNotIn("not protected", said)
        for name, content in (("closed.dat", "a\nb\n"), ("open.dat", "a\nb\n"), ("taken.dat", "a\nb\n")):
            self.assertEqual(len(self.members(name)), 3)
            self.assertEqual(self.holdfast("cat", name).stdout, content)
        for name in ("own.dat", "old.dat"):
            with open(self.path(name)) as file:
                self.assertEqual(file.read(), "a\n", "is plain")
        self.assertEqual([name for name in os.listdir(self.path("agents")) if name.startswith("job.")], [], "nothing stays of jobs that have ended")

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_drain_that_is_killed_leaves_the_file_whole(self):
        content = "".join(f"{i}\n" for i in range(1, 200001))
        self.run_on("n1,n2,n3", "true")
        for calls, most in (("renameat2,fsync,unlinkat,fchmod,utimensat", 20), ("sendmsg,sendto", 400)):
            done, step = 0, 1 if most < 100 else 7
            for call in range(1, most, step):
                self.run_on("n1,n2,n3", "seq 200000 > a.dat")
                killed = subprocess.run(["strace", "-f", "-q", "-o", "/dev/null", f"-etrace={calls}", f"-einject={calls}:signal=SIGKILL:when={call}",
                                         self.binary, "drain", "a.dat"], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
                if killed.returncode == 0:
                    done += 1
                    break
                with open(self.path("a.dat")) as file:
                    seen = file.read()
                if seen != content:  # the note
                    self.assertEqual(self.holdfast("cat", "a.dat").stdout, content, f"killed at {calls} number {call}")
                    self.holdfast("drain", "a.dat")
                    with open(self.path("a.dat")) as file:
                        self.assertEqual(file.read(), content)
                os.remove(self.path("a.dat"))
            self.assertEqual(done, 1, f"more of {calls} than were tried")


if __name__ == "__main__":
    unittest.main()
