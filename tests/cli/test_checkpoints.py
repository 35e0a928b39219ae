"""holdfast run --checkpoint and holdfast checkpoints: files on simulated nodes' own disks, protected in the background, and found again when nodes are
lost. The programs are shell scripts and C programs as they are."""
import glob
import os
import shutil
import signal
import struct
import subprocess
import textwrap
import time
import unittest

from checkpoint_test import CheckpointTest, PATTERN
from command import BINARY, LOSE_AGENT


class Checkpoints(CheckpointTest):
    def test_a_database_whose_journal_is_no_checkpoint_is_named_once(self):
        """SQLite applies a journal that it finds, whatever time it is of."""
        write = "echo 1 > ck/db.0; for i in 1 2; do echo 2 > ck/db.0-journal; rm ck/db.0-journal; echo 3 > ck/other-journal; done"
        said = self.run_job(write, pattern="ck/db.{rank}", nodes=3, scheme="rs:2+1").stderr
        self.assertEqual(said.count("it is a checkpoint, and its journal, db.0-journal, is none"), 1, said)
        self.assertIn(f"as --checkpoint '{self.path('ck')}/*'", said)
        self.assertNotIn("journal", self.run_job(write, pattern="ck/*", nodes=3, scheme="rs:2+1").stderr)

    def test_what_a_program_writes_becomes_a_checkpoint_on_the_nodes(self):
        done = self.run_job("head -c 300000 /dev/urandom > ck/ck.10.$RANK; cp ck/ck.10.$RANK plain.$RANK; ls -l ck/ck.10.$RANK > seen.$RANK", "--drain", "none", ranks=3)
        self.assertIn("checkpoint 10 is whole (3 files", done.stderr)
        self.assertEqual(os.listdir(self.path("ck")), [], "nothing lies at the user's path")
        for rank in range(3):
            self.assertEqual(os.path.getsize(self.path(f"plain.{rank}")), 300000)
            with open(self.path(f"seen.{rank}")) as seen:
                self.assertIn(" 300000 ", seen.read())
        one = self.standings()[10]
        self.assertEqual((one["state"], one["files"], one["files_of_all"], one["bytes"]), ("whole", 3, 3, 900000))
        self.assertEqual(len(one["nodes"]), 6)
        table = self.holdfast("checkpoints").stdout
        self.assertIn("whole", table)
        self.assertIn("3/3", table)
        self.assertIn("0 findings", self.holdfast("checkpoints", "--verify").stdout)

    def test_a_checkpoint_is_not_whole_while_a_rank_lacks_its_file(self):
        done = self.run_job("[ $RANK = 1 ] || echo $RANK > ck/ck.10.$RANK", ranks=3, expect=123)
        self.assertIn("no checkpoint is whole: of the 3 files of checkpoint 10 2 are protected", done.stderr)
        self.assertEqual(self.states(), {10: "protected"})
        done = self.run_job("cat ck/ck.10.0 > got; echo $? > code", "--resume")
        self.assertNotIn("begins with checkpoint", done.stderr)
        with open(self.path("code")) as code:
            self.assertEqual(code.read(), "1\n")

    def test_a_serial_program_in_a_batch_job_of_many_tasks_is_one_rank(self):
        self.env |= {"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}
        self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", "--", "sh", "-c",
                      "echo x > ck/ck.1.0")
        self.assertEqual(self.states(), {1: "whole"})

    def test_a_lost_node_is_no_loss(self):
        self.run_job("echo content of $RANK > ck/ck.10.$RANK", ranks=6)
        self.lose("n2", "n5")
        done = self.run_job("cat ck/ck.10.$RANK >> got", "--resume", ranks=6)
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "".join(f"content of {rank}\n" for rank in range(6)))

    def test_what_a_rank_is_about_to_open_is_fetched_before_it_does(self):
        """On the node that has written it, before the rank begins, and on the one where its rank is."""
        self.run_job("[ $RANK = 0 ] && for file in 0 1 2; do echo content of $file > ck/ck.10.$file; done; true", "--drain", "none", ranks=3)
        self.run_job("""await() { for i in $(seq 300); do ls holdfast-nodes/$1/.checkpoints/*/*/restored/10.$2of3.0.*ck.10.$2 && break; sleep 0.1; done >> there 2>&-; }
            await n1 2; await n$((RANK + 1)) $RANK; cat ck/ck.10.$RANK >> got""", "--resume", "--drain", "none", ranks=3)
        self.assertEqual(self.read("got"), "".join(f"content of {rank}\n" for rank in range(3)))
        for node, rank in (("n1", 0), ("n1", 2), ("n2", 1), ("n3", 2)):
            self.assertRegex(self.read("there"), rf"/{node}/.*/10\.{rank}of3\.")

    def test_a_file_of_all_ranks_is_fetched_where_ranks_have_opened_such_a_one_before(self):
        pattern = "ck/ck.{step}"
        self.run_job("[ $RANK = 0 ] && echo content > ck/ck.10; exit 0", "--drain", "none", ranks=3, pattern=pattern)
        self.run_job("[ $RANK = 1 ] && { cat ck/ck.10 > got; exit 9; }; exit 0", "--resume", "--drain", "none", ranks=3, pattern=pattern, expect=9)
        self.assertEqual(self.read("got"), "content\n")
        self.run_job("""[ $RANK = 0 ] || exit 0; for i in $(seq 300); do ls holdfast-nodes/n2/.checkpoints/*/3.*/restored/10.* && break; sleep 0.1; done > there 2>&-""",
                     "--resume", "--drain", "none", ranks=3, pattern=pattern)
        self.assertRegex(self.read("there"), r"/n2/.*/restored/10\.0of1\.", "before its rank has begun")

    def test_more_losses_than_it_bears_are_refused_and_the_nodes_are_named(self):
        self.run_job("echo content of $RANK > ck/ck.10.$RANK", "--drain", "none", ranks=2)
        self.lose("n2", "n4", "n5")
        refused = self.run_job("echo started > started", "--resume", expect=122)
        self.assert_one_sentence(refused.stderr, "checkpoint 10 cannot be read, and there is no other", "bring back the data of n2, n4, n5")
        self.assertFalse(os.path.exists(self.path("started")))

    def test_it_goes_back_to_an_older_checkpoint_where_the_newest_cannot_be_read(self):
        # The newest has lost its parts on three nodes, the older one on none.
        self.run_job("echo old > ck/ck.1.0; echo new > ck/ck.2.0", "--drain", "none")
        for node in ("n1", "n3", "n6"):
            subprocess.run(["sh", "-c", f"rm -r {self.path('holdfast-nodes', node)}/ck.2.0-*"], check=True)
        self.assertEqual(self.states(), {1: "whole", 2: "lost"})
        done = self.run_job("cat ck/ck.2.0 > got 2>/dev/null; cat ck/ck.1.0 >> got", "--resume")
        self.assertIn("checkpoint 2 cannot be read", done.stderr)
        self.assertIn("back to checkpoint 1", done.stderr)
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "old\n")

    def test_what_an_attempt_began_with_and_is_lost_meanwhile_is_no_success(self):
        """The attempt writes nothing, so that nothing of its own is missing."""
        self.run_job("echo content > ck/ck.10.0", "--drain", "none")
        done = self.run_job(f"{LOSE_AGENT}; lose n2 n4 n5", "--resume", "--drain", "none", expect=123)
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertRegex(done.stderr, r"the program has ended well, and checkpoint 10 cannot be read: more of its nodes are lost than rs:4\+2 tolerates; bring back the data of n2, n4, n5")

    def test_so_is_that_of_which_no_node_is_left(self):
        self.run_job("echo content > ck/ck.10.0", "--drain", "none", nodes=4, scheme="mirror:2")
        done = self.run_job(f"{LOSE_AGENT}; lose n1 n2", "--resume", "--drain", "none", nodes=4, scheme="mirror:2", expect=(121, 123))
        # The rank's own node is one of them: where `run` has seen the rank before, nobody knows how it has ended.
        said = {121: "the nodes of all ranks are lost (no answer from n1, n2)",
                123: "the program has ended well, and checkpoint 10 cannot be read: more of its nodes are lost than mirror:2 tolerates; bring back the data of n1, n2"}
        self.assertIn(said[done.returncode], done.stderr)

    def test_a_restart_does_not_begin_from_the_start_where_all_nodes_that_knew_are_lost(self):
        """Of what the attempt before has begun with, or has written."""
        said = "checkpoint 10 cannot be read, and there is no other: more of its nodes are lost than mirror:2 tolerates; bring back the data of n1, n2"
        options = ("--restarts", "1", "--drain", "none")
        self.run_job("echo content > ck/ck.10.0", "--drain", "none", nodes=4, scheme="mirror:2")
        done = self.run_job(f"{LOSE_AGENT}; lose n1 n2; exit 7", "--resume", *options, nodes=4, scheme="mirror:2", expect=122)
        self.assertIn(said, done.stderr)
        self.holdfast("agents", "stop")
        done = self.run_job("echo content > ck/ck.10.0; sleep 100", "--simulate-loss", "1,2@10", *options, nodes=4, scheme="mirror:2", expect=122)
        self.assertIn("the job has ended with", done.stderr)
        self.assertIn(said, done.stderr)

    def test_a_rank_that_begins_on_a_simulated_node_that_is_lost_is_lost_with_it(self):
        """The checkpoint is there when the job begins. So the node is lost before its rank has begun, and the job would wait for that."""
        self.run_job("echo content > ck/ck.10.$RANK", "--drain", "none", ranks=2, nodes=7)
        done = self.run_job("""[ -e begun ] && exit 0
            [ $RANK = 0 ] && { until [ -z "$(ls holdfast-nodes/n2)" ]; do sleep 0.1; done; sleep 1; exit 0; }
            touch begun; sleep 100""", "--resume", "--drain", "none", "--restarts", "1", "--simulate-loss", "2@10", ranks=2, nodes=7)
        self.assertIn("node n2 is lost now", done.stderr)
        self.assertIn("attempt 3 begins with checkpoint 10", done.stderr)

    def test_machines_read_what_is_done_with_a_checkpoint(self):
        self.run_job("echo content of $RANK > ck/ck.10.$RANK", "--drain", "none", ranks=2)
        verified = self.json("checkpoints", "--verify")
        self.assertEqual([(os.path.basename(one["file"]), one["step"], one["health"], one["findings"]) for one in verified["files"]],
                         [("ck.10.0", 10, "healthy", 0), ("ck.10.1", 10, "healthy", 0)])
        self.assertEqual(verified["unreached"], [])
        self.assertEqual(self.json("checkpoints", "--repair", "10"), {"repaired": "10", "files": 2, "made_anew": 0})
        files = [self.path("ck", f"ck.10.{rank}") for rank in range(2)]
        self.assertEqual(self.json("checkpoints", "--drain", "10"), {"drained": "10", "files": files, "bytes": 26})
        self.assertEqual(self.json("checkpoints", "--drop", "10"), {"dropped": "10", "files": 2, "away": []})

    def test_a_simulated_loss_that_leaves_too_few_nodes_is_named_before_it_comes(self):
        said = "--simulate-loss leaves 4 nodes, and rs:4+2 needs 5 to protect later checkpoints; try it with --simulate-nodes 7"
        self.assertIn(said, self.run_job("true", "--simulate-loss", "1,4@30").stderr)
        self.holdfast("agents", "stop")
        self.assertNotIn("--simulate-loss", self.run_job("true", "--simulate-loss", "1,4@30", nodes=7).stderr)

    def test_a_newer_one_that_is_lost_meanwhile_is_named_beside_an_older_one(self):
        self.run_job("echo old > ck/ck.1.0; echo new > ck/ck.2.0", "--drain", "none")
        done = self.run_job("rm -r holdfast-nodes/n[136]/ck.2.0-*", "--resume", "--drain", "none", expect=123)
        self.assertIn("checkpoint 1 is whole", done.stderr)
        self.assertIn("checkpoint 2 cannot be read: more of its nodes are lost than rs:4+2 tolerates; bring back the data of n1, n3, n6", done.stderr)

    def test_one_that_is_lost_is_no_matter_where_it_is_plain_or_was_removed(self):
        lose = f"{LOSE_AGENT}; lose n2 n4 n5"
        self.run_job("echo content > ck/ck.10.0")
        self.assertEqual(self.read("ck/ck.10.0"), "content\n")
        self.run_job(lose, "--resume")
        self.run_job("echo content > ck/ck.20.0", "--drain", "none")
        self.run_job(f"rm ck/ck.20.0; {lose}", "--resume", "--drain", "none")

    def test_a_program_that_dies_is_started_again_from_its_newest_whole_checkpoint(self):
        # The first attempt writes 10 and 20 whole, leaves 30 without a file and 40 torn; the second one sees 20 alone.
        script = """
            for s in 40 30 20 10; do if [ -e ck/ck.$s.0 ]; then echo $s; cat ck/ck.$s.0; fi; done >> seen
            [ -e ck/ck.20.0 ] && exit 0
            for s in 10 20; do echo step $s > ck/ck.$s.0; done
            sleep 2
            exec 3> ck/ck.40.0; echo half >&3; kill -9 $$"""
        done = self.run_job(script, "--restarts", "1", "--keep", "3")
        self.assertIn("it is started again (1 of 1)", done.stderr)
        self.assertIn("not whole, and neither opened nor listed from here on: checkpoint 40", done.stderr)
        with open(self.path("seen")) as seen:
            self.assertEqual(seen.read(), "20\nstep 20\n")

    def test_a_job_that_was_told_to_end_is_not_started_again(self):
        rank = "echo begins >> seen; echo 1 > ck/ck.1.0; while :; do sleep 0.1; done"
        handles = f"trap 'echo 2 > ck/ck.2.0; exit 1' TERM; {rank}"
        hides = f"PMI_SIZE=1 PMI_RANK=0 sh -c '{rank}' & rank=$!; trap 'kill -9 $rank; exit 0' TERM; while :; do wait; done"  # as MPICH's launcher
        for launched, expected in (handles, 1), (hides, 0):
            job = self.begin("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", "--restarts", "1",
                             "--", "sh", "-c", launched)
            while not os.path.exists(self.path("seen")):
                time.sleep(0.1)
            time.sleep(1)
            job.send_signal(signal.SIGTERM)
            _, said = job.communicate(timeout=90)
            self.assertEqual(job.returncode, expected, said)
            self.assertEqual(self.read("seen"), "begins\n", said)
            self.assertIn("the job was told to end, and is not started again", said)
            self.assertNotIn("the job has failed", said)
            os.remove(self.path("seen"))
        self.assertEqual(self.read("ck", "ck.2.0"), "2\n")

    def test_a_signal_that_comes_twice_at_once_is_handed_on_once(self):
        """As `timeout` sends it, and to the launcher itself as well: at the third Open MPI's leaves its ranks behind."""
        job = self.begin("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", "--", "sh", "-c",
                         "trap 'echo got >> got' TERM; touch seen; until [ -e end ]; do sleep 0.05; done")
        while not os.path.exists(self.path("seen")):
            time.sleep(0.1)
        for pause in (0.2, 1, 0.2):
            job.send_signal(signal.SIGTERM)
            time.sleep(pause)
        with open(self.path("end"), "w"):
            pass
        _, said = job.communicate(timeout=90)
        self.assertEqual(self.read("got"), "got\ngot\n", said)

    def test_a_job_whose_ranks_are_told_to_end_is_started_again(self):
        """So launchers end what is left of a job where a rank has died; `holdfast run` itself was told nothing."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            done = self.run_job(f"""echo begins >> seen{int(number)}; cat ck/ck.1.0 >> seen{int(number)} 2>/dev/null; echo 1 > ck/ck.1.0
                [ -e again{int(number)} ] && exit 0; touch again{int(number)}; kill -{int(number)} $$; sleep 9""", "--restarts", "1", nodes=3, scheme="rs:2+1")
            self.assertIn(f"the job has ended with {128 + number}; it is started again (1 of 1)", done.stderr)
        self.assertEqual(self.read(f"seen{signal.SIGTERM}"), "begins\nbegins\n1\n")

    def test_each_attempt_reads_its_input_from_where_the_first_one_began(self):
        with open(self.path("input"), "w") as file:
            file.write("1\n2\n3\n")
        job = [BINARY, "run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", "--drain", "none", "--restarts",
               "1", "--", "sh", "-c", "cat; [ -e again ] && exit 0; touch again; exit 3"]
        run = {"cwd": self.dir, "env": self.env, "capture_output": True, "text": True, "timeout": 90, "check": True}
        with open(self.path("input")) as file:
            os.lseek(file.fileno(), 2, os.SEEK_SET)
            done = subprocess.run(job, stdin=file, **run)
        self.assertEqual(done.stdout, "2\n3\n2\n3\n", done.stderr)
        self.assertNotIn("standard input", done.stderr)
        os.remove(self.path("again"))
        done = subprocess.run(job, input="1\n", **run)
        self.assertEqual(done.stdout, "1\n", done.stderr)
        self.assertIn("standard input is no file", done.stderr)

    def run_side_by_side(self, script, *options, words=(), expect=0):
        """Two ranks at a time, by a launcher that ends with 0 whatever becomes of them: as Open MPI 5's does when it has lost a node."""
        launcher = self.path("launch_both")
        with open(launcher, "w") as file:
            file.write("#!/bin/sh\nexport PMI_SIZE=2\nfor RANK in 0 1; do export RANK PMI_RANK=$RANK; sh -c \"$1\" & done\nwait\nexit 0\n")
        os.chmod(launcher, 0o755)
        return self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", *options, "--", launcher, script, *words, expect=expect)

    def test_a_job_has_failed_whose_launcher_ends_with_0_and_whose_ranks_did_not_end(self):
        script = "[ -e ck/ck.10.$RANK ] && exit 0; echo $RANK > ck/ck.10.$RANK; sleep 1; [ $RANK = 0 ] || kill -9 $$"
        done = self.run_side_by_side(script, expect=121)
        self.assertIn("the launcher has ended with 0, but the end of 1 rank was not seen (the first is rank 1)", done.stderr)
        self.assertIn("checkpoint 10 is whole", done.stderr)
        done = self.run_side_by_side(script.replace(".10.", ".20."), "--restarts", "1")
        self.assertIn("the job has ended with 121; it is started again (1 of 1)", done.stderr)
        self.assertIn("attempt 2 begins with checkpoint 20", done.stderr)

    def test_a_job_has_failed_whose_ranks_were_all_on_nodes_that_are_lost(self):
        """Nobody has a note of them any more. That `run` has seen them begin shows by what it has dropped."""
        launcher = self.path("launch_well")
        with open(launcher, "w") as file:
            file.write("#!/bin/sh\nexport PMI_SIZE=1 RANK=0 PMI_RANK=0\nsh -c \"$1\"\nexit 0\n")
        os.chmod(launcher, 0o755)
        script = f"""[ -e ck/ck.2.0 ] && exit 0; {LOSE_AGENT}
            for step in 1 2; do echo $step > ck/ck.$step.0; done
            while [ -z "$(ls -d holdfast-nodes/n2/ck.2.0-*)" ] || [ -n "$(ls -d holdfast-nodes/n2/ck.1.0-*)" ]; do sleep 0.1; done 2> /dev/null
            lose n1; rm -rf holdfast-nodes/n1/* holdfast-nodes/n1/.[a-z]*; kill -9 $$"""
        job = ["run", "--simulate-nodes", "4", "--protect", "mirror:2", "--checkpoint", PATTERN, "--keep", "1", "--library", "posix", "--drain", "none"]
        done = self.holdfast(*job, "--", launcher, script, expect=121)
        self.assertIn("the launcher has ended with 0, but the nodes of all ranks are lost (no answer from n1): the job has failed", done.stderr)
        self.holdfast("checkpoints", "--drop", "2", expect=None)
        self.holdfast("agents", "stop")
        done = self.holdfast(*job, "--restarts", "1", "--", launcher, script)
        self.assertIn("the job has ended with 121; it is started again (1 of 1)", done.stderr)
        self.assertIn("attempt 2 begins with checkpoint 2, on n2, n3, n4", done.stderr)

    def test_a_rank_has_ended_whatever_becomes_of_the_processes_that_it_starts(self):
        self.run_side_by_side("sh -c 'kill -9 $$'; sh -c 'sleep 1; kill -9 $$' & exec env -u LD_PRELOAD true")
        self.run_side_by_side("echo x > ck/ck.1.$RANK; exit 3")
        # Who tells its launcher to go on without some ranks has ended well with the others.
        killed = "[ $RANK = 0 ] || kill -9 $$"
        self.run_side_by_side(killed, expect=121)
        self.run_side_by_side(killed, words=["--enable-recovery"])

    def test_whole_checkpoints_are_kept_in_their_number_and_older_ones_leave_nothing(self):
        self.run_job("for s in 1 2 3 4 5; do echo $s > ck/ck.$s.$RANK; done; sleep 1", "--keep", "2", ranks=2)
        self.assertEqual(self.states(), {4: "superseded", 5: "whole"})
        left = {name.split(".")[1] for name in map(os.path.basename, glob.glob(self.path("holdfast-nodes/n1/ck.*")))}
        self.assertTrue(left <= {"4", "5"}, left)
        self.holdfast("checkpoints", "--drop", "4")
        self.assertEqual(self.states(), {5: "whole"})
        self.assertIn("no checkpoint 4", self.holdfast("checkpoints", "--drop", "4", expect=3).stderr)

    def test_a_file_that_is_written_anew_updated_appended_to_renamed_or_removed_is_as_the_program_left_it(self):
        self.run_job("""
            echo first > ck/ck.1.0; echo second > ck/ck.1.0
            echo one > ck/ck.2.0; echo two >> ck/ck.2.0
            echo moved > tmp.0; mv tmp.0 ck/ck.3.0; [ -e tmp.0 ] && echo left >> wrong
            echo gone > ck/ck.4.0; rm ck/ck.4.0; [ -e ck/ck.4.0 ] && echo there >> wrong
            cat ck/ck.4.0 2>/dev/null && echo read >> wrong
            echo 0123456789 > ck/ck.5.0; printf X | dd of=ck/ck.5.0 bs=1 seek=3 conv=notrunc 2>/dev/null
            truncate -s 4 ck/ck.5.0
            cat ck/ck.1.0 ck/ck.2.0 ck/ck.3.0 ck/ck.5.0 > got""", "--keep", "9")
        self.assertFalse(os.path.exists(self.path("wrong")))
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "second\none\ntwo\nmoved\n012X")
        # And from a later run, each from the pool.
        for step, content in ((5, "012X"),):
            self.run_job(f"cat ck/ck.{step}.0 > got", "--resume")
            with open(self.path("got")) as got:
                self.assertEqual(got.read(), content)

    def test_a_rack_that_is_lost_takes_no_checkpoint_with_it(self):
        with open(self.path("domains"), "w") as file:
            file.write("n1 a\nn2 a\nn3 b\nn4 b\n")
        job = {"nodes": 4, "scheme": "mirror:2", "ranks": 4}
        self.run_job("echo $RANK > ck/ck.10.$RANK", "--domains", "domains", "--drain", "none", **job)
        self.lose("n1", "n2")
        self.run_job("cat ck/ck.10.$RANK >> got", "--resume", "--domains", "domains", "--drain", "none", **job)
        self.assertEqual(self.read("got"), "0\n1\n2\n3\n")

    def test_a_job_of_fewer_ranks_reads_the_files_of_more(self):
        """gfortran opens what it only reads to write as well, where it may."""
        compiler = shutil.which("gfortran") or self.skipTest("there is no gfortran")
        with open(self.path("restart.f90"), "w") as file:
            file.write("""
              program restart
                character(32) :: rank, name
                integer :: r, other, value, sum
                call get_environment_variable("RANK", rank)
                read (rank, *) r
                sum = 0
                do other = r, 5, 3
                  write (name, '("ck/ck.10.", i0)') other
                  open (10, file=trim(name), form="unformatted")
                  read (10) value
                  close (10)
                  sum = sum + value
                end do
                write (name, '("ck/ck.20.", i0)') r
                open (10, file=trim(name), form="unformatted")
                write (10) sum
                close (10)
              end program""")
        subprocess.run([compiler, "restart.f90", "-o", "restart"], cwd=self.dir, check=True)
        # A record: its length, the value, its length.
        self.run_job("python3 -c 'import os, struct; open(\"ck/ck.10.\" + os.environ[\"RANK\"], \"wb\").write(struct.pack(\"iii\", 4, int(os.environ[\"RANK\"]), 4))'",
                     "--drain", "none", ranks=6)
        self.run_job("exec ./restart", "--resume", ranks=3)
        for rank, total in enumerate((3, 5, 7)):
            with open(self.path(f"ck/ck.20.{rank}"), "rb") as file:
                self.assertEqual(struct.unpack("iii", file.read())[1], total)
        done = self.run_job("[ $RANK = 0 ] || exit 0; dd if=/dev/zero of=ck/ck.20.2 bs=1 count=1 conv=notrunc 2> how; echo x > ck/ck.20.2", "--resume", ranks=2, expect=None)
        self.assertIn("Read-only file system", self.read("how"))
        self.assertIn("the launcher gives the job 2 ranks, so only files numbered 0 to 1 belong to a checkpoint", done.stderr)

    def test_who_looks_at_the_files_of_all_ranks_fetches_none(self):
        """But its own, which is fetched ahead."""
        self.run_job("umask 027; head -c 1000000 /dev/zero > ck/ck.10.$RANK", "--drain", "none", ranks=4)
        script = """[ $RANK = 0 ] || exit 0; for r in 0 1 2 3; do stat -c "%s %a" ck/ck.10.$r >> seen; [ -r ck/ck.10.$r ] || echo no >> seen; done
            du -k holdfast-nodes/n1/.checkpoints/*/2.* | tail -1 > kept; cp ck/ck.10.3 copy"""
        self.run_job(script, "--resume", "--drain", "none", ranks=4)
        self.assertEqual(self.read("seen"), "1000000 640\n" * 4)
        self.assertLess(int(self.read("kept").split()[0]), 1500)
        self.assertEqual(self.read("copy"), "\0" * 1000000, "what is opened then is the file that was looked at")

    def test_a_copy_that_finds_no_room_is_no_checkpoint(self):
        """A rename to a checkpoint's name, and an update in place, begin with a copy. Half of one is neither seen nor protected.

        The disk has no room for the file twice, whether or not its part of the protected version is there too: when that comes, and whether
        the rename has just then filled the disk, is chance.
        """
        self.small_disk("n1", 6 << 20)
        script = """
            head -c 3500000 /dev/zero > ck/ck.1.0; head -c 8000000 /dev/zero > new
            mv new ck/ck.2.0 2> /dev/null && echo moved >> wrong
            [ $(stat -c %s new) = 8000000 ] || echo lost >> wrong
            [ -e ck/ck.2.0 ] && echo half >> wrong
            for i in 1 2; do dd if=new of=ck/ck.1.0 bs=1 count=1 conv=notrunc 2> /dev/null && echo updated >> wrong; done
            stat -c %s ck/ck.1.0 > size"""
        self.run_job(script, scheme="rs:2+2", nodes=4)
        self.assertFalse(os.path.exists(self.path("wrong")))
        with open(self.path("size")) as size:
            self.assertEqual(size.read(), "3500000\n")
        self.assertEqual({step: one["bytes"] for step, one in self.standings().items()}, {1: 3500000})

    def test_a_file_is_there_at_any_time_after_its_close(self):
        """While it goes from state to state in the background."""
        script = """
            import os
            for step in range(1, 101):
                name = f"ck/ck.{step}.0"
                with open(name, "wb") as file:
                    file.write(b"x" * 65536)
                for look in range(60):
                    os.stat(name)
                    os.access(name, os.R_OK)
                    os.close(os.open(name, os.O_RDONLY))"""
        with open(self.path("looks.py"), "w") as file:
            file.write(textwrap.dedent(script))
        self.run_job("python3 looks.py", scheme="rs:2+1", nodes=3)

    def test_a_file_that_is_protected_meanwhile_is_there_all_the_time(self):
        # Its place changes with its state, several times for each line.
        self.run_job("""umask 027; i=0; while [ $i -lt 50 ]; do i=$((i + 1))
              echo $i >> ck/ck.1.0 || echo open >> wrong; [ -s ck/ck.1.0 ] || echo look >> wrong; read line < ck/ck.1.0 || echo read >> wrong
            done; wc -l < ck/ck.1.0 > lines; stat -c %a ck/ck.1.0 > mode""", "--drain", "none")
        self.assertFalse(os.path.exists(self.path("wrong")))
        self.assertEqual((self.read("lines"), self.read("mode")), ("50\n", "640\n"))

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_file_that_is_moved_between_a_look_and_its_use_is_found_again(self):
        # The call on the file itself, and no other, comes late: by then it has been protected.
        self.run_job(r"""there=$(LD_PRELOAD= ls -d $PWD/holdfast-nodes/n1/.checkpoints/*/1.*); path=$(echo $PWD/ck/ck | tr / "|")
            for i in 1 2 3; do
              strace -f -qq -o /dev/null -P "$there/closed/$i.0of1.1~$path.$i.0" -P "$there/protecting/$i.0of1.1~$path.$i.0" \
                -e trace=newfstatat,openat -e inject=newfstatat,openat:delay_enter=500000 \
                sh -c "echo $i > ck/ck.$i.0; [ -s ck/ck.$i.0 ] || echo look >> wrong"
              strace -f -qq -o /dev/null -P "$there/closed/1$i.0of1.1~$path.1$i.0" -P "$there/protecting/1$i.0of1.1~$path.1$i.0" \
                -e trace=newfstatat,openat -e inject=newfstatat,openat:delay_enter=500000 \
                sh -c "echo $i > ck/ck.1$i.0; read line < ck/ck.1$i.0 || echo read >> wrong"
            done""", "--keep", "9")
        self.assertFalse(os.path.exists(self.path("wrong")))

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_an_open_and_a_close_take_no_call_of_the_system_twice(self):
        """An open lists the ten states once, with seven calls each. That all directories are there is seen at one look."""
        with open(self.path("opens.py"), "w") as file:
            file.write("import os, sys\nfor i in range(int(sys.argv[1])): os.close(os.open(f'ck/ck.{sys.argv[1]}{i}.0', os.O_CREAT | os.O_WRONLY | os.O_TRUNC))\n")
        self.run_job("for n in 2 12; do strace -o calls.$n python3 opens.py $n; done", "--drain", "none", scheme="rs:2+1", nodes=3)
        calls = [len(self.read(f"calls.{n}").splitlines()) for n in (2, 12)]
        self.assertLess((calls[1] - calls[0]) / 10, 100)

    def test_plain_checkpoints_that_were_there_before_are_taken_up(self):
        with open(self.path("ck/ck.7.0"), "w") as plain:
            plain.write("older\n")
        self.run_job("cat ck/ck.7.0 > got; echo newer > ck/ck.8.0")
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "older\n")
        self.run_job("[ -e ck/ck.7.0 ] && echo mixed > got; cat ck/ck.8.0 >> got", "--resume")
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "older\nnewer\n", "it is not mixed with what the run began with")

    def test_what_cannot_be_protected_is_said_and_the_run_ends_so(self):
        # The node's own agent and too many others go while the program writes.
        script = f"{LOSE_AGENT}; lose n2 n3; echo x > ck/ck.1.0"
        done = self.run_job(script, scheme="rs:2+1", nodes=3, expect=123)
        self.assertIn("ck/ck.1.0 is not protected:", done.stderr)
        self.assertIn("ended well, and checkpoint 1 is not protected", done.stderr)

    def test_what_cannot_be_protected_on_a_node_that_does_not_answer_is_no_success(self):
        # Its own agent alone: what its protector says of the file is out of reach for everybody else.
        script = f"{LOSE_AGENT}; lose n1; echo x > ck/ck.1.0"
        done = self.run_job(script, scheme="rs:2+1", nodes=3, expect=(121, 123))
        # Which it is depends on when `run` looks for the ranks: where it has seen this one before the node was gone, nobody knows how it has ended.
        said = {121: "the nodes of all ranks are lost (no answer from n1)", 123: "whether all that was written on n1 is protected cannot be told"}
        self.assertIn(said[done.returncode], done.stderr)

    def test_what_is_written_on_another_node_is_protected_by_whatever_command_goes_there(self):
        """One that goes through a second shell, as ssh does, and one that does not. The pattern is nothing that shells leave alone."""
        if subprocess.run(["unshare", "-u", "hostname", "far"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no process can get another host name here")
        here = os.uname().nodename.split(".")[0]
        os.mkdir(self.path("it's $HOME"))
        shell = self.path("there")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nshift; exec sh -c "$*"\n')
        os.chmod(shell, 0o755)
        for step, there in enumerate(("env ON={node}", f"{shell} {{node}}"), 1):
            done = self.holdfast("run", "--local", self.path("disk-{node}"), "--hosts", f"{here},b,far", "--with", there, "--protect", "rs:2+1",
                                 "--checkpoint", "it's $HOME/ck.{step}.{rank}", "--library", "posix", "--", "unshare", "-u", "sh", "-c",
                                 f"hostname far; echo x > ck.{step}.0".replace("ck.", "it\\'s\\ \\$HOME/ck."))
            self.assertIn(f"checkpoint {step} is whole (1 file", done.stderr)

    def lose_far(self, file, pattern, expect, protector="exec sleep 100", lose=f"{LOSE_AGENT}; lose far", **env):
        """A job on four nodes, whose one rank is here. What goes to the last one by the user's command, ssh say, does not hear of its loss: here it stands still."""
        there = self.path("there")
        with open(there, "w") as script:
            script.write(f'#!/bin/sh\nnode=$1; shift\ncase "$node $*" in "far "*protector*) {protector};; esac\nexec sh -c "$*"\n')
        os.chmod(there, 0o755)
        begun = time.monotonic()
        self.env |= {"HOLDFAST_DEADLINE": "1s", **env}
        done = self.holdfast("run", "--local", self.path("disk-{node}"), "--hosts", f"{os.uname().nodename.split('.')[0]},b,c,far", "--with", f"{there} {{node}}",
                             "--protect", "rs:2+2", "--checkpoint", pattern, "--library", "posix", "--", "sh", "-c", f"{lose}; echo x > {file}",
                             expect=expect)
        self.assertLess(time.monotonic() - begun, 60)
        self.assertIn("checkpoint 1 is whole", done.stderr)
        return done

    def test_a_node_that_is_lost_with_its_protector_is_not_waited_for(self):
        done = self.lose_far("ck/ck.1", "ck/ck.{step}", 123)
        self.assertIn("whether all that was written on far is protected cannot be told", done.stderr, "a rank there may have written a later one")

    def test_a_node_that_does_not_answer_when_the_job_ends_is_asked_again(self):
        """Its protector has ended with something undone, and it alone can say what."""
        pause = "agent=$(sed -n 's/^process //p' $HOLDFAST_AGENTS/far.*.agent); kill -STOP $agent; (sleep 2.5; kill -CONT $agent) > /dev/null 2>&1 & true"
        done = self.lose_far("ck/ck.1", "ck/ck.{step}", 0, protector="cat > /dev/null; exit 1", lose=pause)
        self.assertNotIn("far is protected", done.stderr)

    def test_the_loss_of_a_node_without_ranks_does_not_matter_where_each_rank_has_a_file(self):
        done = self.lose_far("ck/ck.1.0", PATTERN, 0)
        self.assertNotIn("far is protected", done.stderr)
        with open(self.path("ck/ck.1.0")) as drained:
            self.assertEqual(drained.read(), "x\n")

    def test_a_rank_that_writes_the_files_of_others_does_not_show_where_these_are(self):
        """The other one is on the node that is lost, with a file that it has closed."""
        other = f"PMI_RANK=1 SLURMD_NODENAME=far sh -c 'echo y > ck/ck.2.1'; {LOSE_AGENT}; lose far; echo x > ck/ck.1.1"
        done = self.lose_far("ck/ck.1.0", PATTERN, 123, lose=other, PMI_SIZE="2", PMI_RANK="0")
        self.assertIn("whether all that was written on far is protected cannot be told", done.stderr)

    def test_where_nothing_was_a_checkpoint_that_is_said(self):
        done = self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", "ck/ck.{step}.{rank}", "--library", "posix", "--",
                             "sh", "-c", "echo x > ck/state.1.0")
        self.assert_one_sentence(done.stderr, "no file was written that --checkpoint", "ck/ck.{step}.{rank}", "n1, n2, n3")

    def test_a_program_without_checkpoints_ends_as_without(self):
        self.assertEqual(self.run_job("exit 3", expect=3).stdout, "")

    def test_bad_input_is_refused_in_one_sentence(self):
        here = ("--simulate-nodes", "3", "--protect", "rs:2+1")
        for options, words in (((*here, "--checkpoint", "ck.{step}.{node}"), "means nothing"),
                               ((*here, "--checkpoint", "ck.{step}*"), "something that is no digit"),
                               ((*here, "--resume"), "--resume is about checkpoints"),
                               ((*here, "--restarts", "2"), "--restarts is about checkpoints"),
                               ((*here, "--checkpoint", PATTERN, "--simulate-loss", "4@1"), "nodes from 1 to 3"),
                               (("--checkpoint", PATTERN), "add --local '/tmp/hf-{node}'"),
                               (("--simulate-nodes", "2", "--protect", "rs:2+1", "--checkpoint", PATTERN), "needs 3 nodes")):
            self.assert_one_sentence(self.holdfast("run", *options, "true", expect=2).stderr, words)


if __name__ == "__main__":
    unittest.main()
