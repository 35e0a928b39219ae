"""What stands in the way of checkpoints before the program starts, or beside another job: each is one sentence that says what to do."""
import os
import re
import shutil
import subprocess
import time
import unittest

from checkpoint_test import CheckpointTest, PATTERN
from command import LOSE_AGENT

HERE = ("--simulate-nodes", "3", "--protect", "rs:2+1", "--library", "posix")


class BadInput(CheckpointTest):
    def refused(self, *options, words, expect=2):
        done = self.holdfast("run", *options, "--", "sh", "-c", "echo x > started", expect=expect)
        self.assert_one_sentence(done.stderr, *words)
        self.assertFalse(os.path.exists(self.path("started")))

    def wait_for_file(self, name):
        for _ in range(200):
            if os.path.exists(self.path(name)):
                return
            time.sleep(0.1)

    def test_too_few_nodes_are_refused(self):
        self.refused("--simulate-nodes", "2", "--protect", "rs:2+1", "--checkpoint", PATTERN, words=("needs 3 nodes",))

    def test_nodes_that_no_job_has_used_have_no_checkpoints(self):
        os.mkdir(self.path("disk"))
        self.holdfast("agents", "start", "--node", "n1", self.path("disk"))
        told = self.holdfast("checkpoints", expect=3)
        self.assert_one_sentence(told.stderr, f"no job has used n1:{self.path('disk')} yet, so nothing is kept there: give it to one with holdfast run --local")
        self.lose_agent("n1")
        told = self.holdfast("checkpoints", expect=3)
        self.assert_one_sentence(told.stderr, f"no directory of the nodes can be read: n1:{self.path('disk')}: the agent of node n1 on ")

    def test_a_directory_that_nodes_share_is_refused(self):
        done = self.holdfast("run", "--local", self.path("disk"), "--hosts", "a,b,c", "--with", "env ON={node}", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--",
                             "sh", "-c", "echo x > started", expect=2)
        self.assertIn("Give each node one of its own: --local '" + self.path("disk-{node}"), done.stderr)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_a_rank_on_no_node_of_the_job_says_so_once(self):
        if subprocess.run(["unshare", "-u", "hostname", "far"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no process can get another host name here")
        here = os.uname().nodename.split(".")[0]
        program = """import os
for path in ("ck/ck.1.0", "other", "ck/ck.2.0"): open(path, "w").write(path)
open("got", "a").write(open("ck/ck.1.0").read())"""
        # The second one is not the first rank of its host.
        script = f"hostname far; python3 -c '{program}'; OMPI_COMM_WORLD_LOCAL_RANK=1 python3 -c '{program}'"
        done = self.holdfast("run", "--local", self.path("disk-{node}"), "--hosts", f"{here},b,c", "--with", "env ON={node}", "--protect", "rs:2+1",
                             "--checkpoint", "ck/ck.{step}.{rank}", "--library", "posix", "--", "unshare", "-u", "sh", "-c", script)
        said = [line for line in done.stderr.splitlines() if "none of the job's nodes" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertRegex(said[0], "^holdfast: .*/ck/ck.1.0: it is no checkpoint, for far is none of the job's nodes")
        self.assertIn("name far in --hosts", said[0])
        with open(self.path("got")) as got, open(self.path("ck/ck.2.0")) as plain:
            self.assertEqual((got.read(), plain.read()), ("ck/ck.1.0" * 2, "ck/ck.2.0"))

    def test_an_open_by_mpi_together_with_ranks_on_nodes_fails(self):
        launcher = shutil.which("mpirun.openmpi")
        if not launcher or subprocess.run(["unshare", "-u", "hostname", "far"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no Open MPI, or no process can get another host name here")
        program = self.path("reads")
        subprocess.run(["mpicc.openmpi", "-o", program, os.path.join(os.path.dirname(__file__), "reads_a_checkpoint.c")], check=True)
        script = f"""[ $OMPI_COMM_WORLD_RANK = 1 ] && exec unshare -u sh -c 'hostname far; exec {program} ck/ck.1.0'
            echo x > ck/ck.1.0; exec {program} ck/ck.1.0"""
        here = os.uname().nodename.split(".")[0]
        done = self.holdfast("run", "--local", self.path("disk-{node}"), "--hosts", f"{here},b,c", "--with", "env ON={node}", "--protect", "rs:2+1",
                             "--checkpoint", PATTERN, "--", launcher, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", "sh", "-c", script,
                             expect=121)  # rank 1 began on this host, and ended elsewhere
        self.assertEqual(len(re.findall("rank [01]: MPI_ERR_UNSUPPORTED_OPERATION", done.stdout)), 2, done.stdout)
        self.assertIn("ck/ck.1.0: it is a checkpoint, and this rank is on none of the job's nodes; name its host in --hosts", done.stderr)

    def test_a_job_beside_one_that_writes_the_same_checkpoints_is_refused(self):
        first = self.begin("run", *HERE, "--checkpoint", PATTERN, "--", "sh", "-c", "echo x > ck/ck.1.0; echo x > begun; read line; true")
        self.wait_for_file("begun")
        self.refused(*HERE, "--checkpoint", PATTERN, words=("another job that lives writes the checkpoints", "wait for its end"))
        # Other names are nobody's business.
        self.holdfast("run", *HERE, "--checkpoint", "other.{step}.{rank}", "--", "sh", "-c", "echo x > other.1.0")
        first.communicate("end\n", timeout=60)
        self.assertEqual(first.returncode, 0)
        self.run_job("true", "--resume", nodes=3, scheme="rs:2+1")

    def test_a_job_that_lives_is_known_by_each_of_its_patterns_whichever_way_they_are_named(self):
        os.symlink("ck", self.path("way"))
        first = self.begin("run", *HERE, "--checkpoint", PATTERN, "--checkpoint", "ck/head.{step}", "--", "sh", "-c", "echo x > begun; read line")
        self.wait_for_file("begun")
        for other in (("--checkpoint", PATTERN), ("--checkpoint", "ck/head.{step}", "--checkpoint", "ck/tail.{step}"), ("--checkpoint", "way/ck.{step}.{rank}"),
                      ("--checkpoint", "shared:ck/head.{step}")):
            with self.subTest(other):
                self.refused(*HERE, *other, words=("another job that lives writes the checkpoints", "wait for its end"))
        first.communicate("end\n", timeout=60)

    def test_another_programs_checkpoints_are_gone_on_from_with_a_line(self):
        for name, text in (("heat", "echo ten > ck/ck.10.0"), ("jacobi", "cat ck/ck.10.0 > got")):
            with open(self.path(name), "w") as program:
                program.write("#!/bin/sh\n" + text + "\n")
            os.chmod(self.path(name), 0o755)
        job = ("run", *HERE, "--checkpoint", PATTERN, "--drain", "none")
        self.holdfast(*job, "--", "./heat")
        self.assertNotIn("was written by", self.holdfast(*job, "--resume", "--", "env", "X=1", "./heat").stderr)
        other = self.holdfast(*job, "--resume", "--", "./jacobi")
        self.assertIn("holdfast: checkpoint 10 was written by heat, and this job runs jacobi; give it another directory if that is another program\n", other.stderr)
        self.assertEqual(self.read("got"), "ten\n")
        self.assertNotIn("was written by", self.holdfast(*job, "--resume", "--", "sh", "jacobi").stderr)

    def test_another_scheme_at_resume_leaves_what_there_is_as_it_is(self):
        self.run_job("echo one > ck/ck.1.0", "--drain", "none")
        self.lose("n2", "n5")
        self.run_job("cat ck/ck.1.0 > got; echo two > ck/ck.2.0", "--resume", "--drain", "none", scheme="mirror:3")
        self.assertEqual(self.read("got"), "one\n")
        self.assertEqual(self.states(), {1: "superseded", 2: "whole"})
        shutil.rmtree(self.path("ck"), ignore_errors=True)
        self.run_job("cat ck/ck.2.0 > got", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "two\n")

    def test_what_a_running_job_has_begun_with_is_not_dropped(self):
        self.run_job("echo one > ck/ck.1.0; echo two > ck/ck.2.0", "--drain", "none", nodes=3, scheme="rs:2+1")
        job = self.begin("run", *HERE, "--checkpoint", PATTERN, "--drain", "none", "--resume", "--", "sh", "-c", "echo x > begun; read line; cat ck/ck.2.0 > seen")
        self.wait_for_file("begun")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drop", "2", expect=None).stderr, "a job that runs has begun with checkpoint 2", "when the job has ended")
        self.holdfast("checkpoints", "--drop", "1")
        job.communicate("end\n", timeout=60)
        self.assertEqual(self.read("seen"), "two\n")
        self.holdfast("checkpoints", "--drop", "2")

    def test_commands_about_files_say_which_one_is_about_a_checkpoints(self):
        self.run_job("echo x > ck/ck.3.0; echo y > ck/ck.4.0", "--keep", "9", nodes=3, scheme="rs:2+1")  # the last one is plain
        asked = {("cat",): "--drain", ("verify",): "--verify", ("export",): "--drain"}
        for command, option in asked.items():
            for step, what in ((3, "is a file of checkpoint 3"), (4, "is a plain file, and one of checkpoint 4")):
                words = [*command, f"ck/ck.{step}.0", *(["copy"] if command == ("export",) else [])]
                number = "" if option == "--verify" else f" {step}"
                self.assert_one_sentence(self.holdfast(*words, expect=3).stderr, f"ck/ck.{step}.0 {what} on the nodes", f"holdfast checkpoints {option}{number}")
        self.assert_one_sentence(self.holdfast("rm", "ck/ck.5.0", expect=3).stderr, "ck.5.0 is not a protected file")
        self.assertEqual(self.states(), {3: "superseded", 4: "whole"})

    def test_a_program_that_no_mpi_is_found_behind_is_not_told_that_nothing_is_protected(self):
        done = self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--", "sh", "-c", "echo x > ck/ck.1.0")
        self.assertNotIn("nothing is protected", done.stderr)
        self.assertEqual(self.states(), {1: "whole"})

    def test_what_keeps_all_files_of_a_checkpoint_from_being_protected_is_said_once(self):
        script = f"[ $RANK = 0 ] && {{ {LOSE_AGENT}; lose n5 n6; }}; for s in 1 2 3; do echo x > ck/ck.$s.$RANK; sleep 0.2; done"
        done = self.run_job(script, ranks=3, expect=123)
        lines = [line for line in done.stderr.splitlines() if "is not protected: " in line]
        self.assertEqual(sorted(line.rsplit(" ", 1)[1] for line in lines), ["1)", "2)", "3)"], done.stderr)
        for line in lines:
            self.assertRegex(line, r"^holdfast: \S+/ck/ck\.\d\.\d is not protected: 4 of the job's nodes can take a part, and rs:4\+2 needs at least 5; ")
            self.assertRegex(line, r"; (n5 \(as n6\)|n6 \(as n5\)): no agent of node n[56] is known; run there: holdfast agents start --node n[56] \S+ \(said once")
            self.assertLess(len(line.replace(self.dir, "/tmp/holdfast-cli-12345678")), 300)
        self.assertIn("ended well, and checkpoints 1, 2 and 3 are not protected", done.stderr)


if __name__ == "__main__":
    unittest.main()
