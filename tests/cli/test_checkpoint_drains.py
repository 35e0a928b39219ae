"""Checkpoints that become plain files: holdfast checkpoints --drain, and holdfast run --drain."""
import glob
import os
import shutil
import subprocess
import sys
import time
import unittest

from checkpoint_test import CheckpointTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin/faultfs")
PLAIN = "for look in $(seq 300); do env -u LD_PRELOAD test -e ck/ck.{0}.0 && break; sleep 0.1; done"  # in a job's script: until that one is drained


class CheckpointDrains(CheckpointTest):
    def plain(self, step, ranks=1, below="."):
        """What stands at the paths of a checkpoint, by rank."""
        found = {}
        for rank in range(ranks):
            path = self.path(below, f"ck/ck.{step}.{rank}")
            if os.path.exists(path):
                with open(path) as file:
                    found[rank] = file.read()
        return found

    def nothing_is_left(self):
        self.assertEqual(glob.glob(self.path("**/.holdfast-drain-*"), recursive=True, include_hidden=True), [])

    def test_a_checkpoint_is_drained_to_its_own_paths_and_below_a_directory(self):
        self.run_job("umask 027; seq 1 100000 > ck/ck.10.$RANK; echo $RANK >> ck/ck.10.$RANK", "--drain", "none", ranks=3)
        self.assertEqual(self.plain(10, 3), {})
        content = {rank: "".join(f"{i}\n" for i in range(1, 100001)) + f"{rank}\n" for rank in range(3)}
        said = self.holdfast("checkpoints", "--drain", "10").stdout
        self.assertIn("checkpoint 10 is plain there (3 files", said)
        self.assertIn(self.path("ck/ck.10.2") + "\n", said)
        self.assertEqual(self.plain(10, 3), content)
        self.assertEqual(os.stat(self.path("ck/ck.10.0")).st_mode & 0o777, 0o640)
        self.assertIn("whole, drained", self.holdfast("checkpoints").stdout)
        self.assertEqual((self.standings()[10]["state"], self.standings()[10]["drained"]), ("whole", True))
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "10", "away", expect=3).stderr, "away is not there", "make the directory")
        os.mkdir(self.path("away"))
        self.holdfast("checkpoints", "--drain", "10", "away")
        self.assertEqual(self.plain(10, 3, below="away"), content)
        self.nothing_is_left()
        # And from elsewhere, where the files have no names of this kind.
        before, self.dir = self.dir, self.path("away")
        refused = self.holdfast("checkpoints", "--drain", "10", ".", expect=3)
        self.dir = before
        self.assert_one_sentence(refused.stderr, "does not lie below this directory")

    def test_one_that_is_plain_and_gone_from_the_nodes_is_said_to_be(self):
        self.run_job(f"{self.written(1)}; {PLAIN.format(1)}; {self.written(2, 3)}; {self.until('1 *drained')}", "--drain", "every:1", "--keep", "1")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "1", expect=3).stderr, "checkpoint 1 is drained", "plain at its paths")

    def test_before_the_batch_system_ends_the_job_the_newest_is_drained(self):
        """A shell that waits until the plain file is there, or gives up."""
        script = """echo x > ck/ck.10.0
            for look in $(seq {0}); do
                if env -u LD_PRELOAD test -e ck/ck.10.0; then echo drained while it runs; exit; fi; sleep 0.1
            done; echo not drained"""
        for seconds, looks, said in ((3600, 30, "not drained\n"), (30, 300, "drained while it runs\n")):
            self.env["SLURM_JOB_END_TIME"] = str(int(time.time()) + seconds)
            self.assertEqual(self.run_job(script.format(looks)).stdout, said)
            self.assertEqual(self.plain(10), {0: "x\n"})
            os.unlink(self.path("ck/ck.10.0"))
        self.assertEqual(self.run_job(script.format(30), "--drain", "none").stdout, "not drained\n")

    def test_what_is_read_is_checked_and_lost_units_are_made_up(self):
        self.run_job("seq 1 100000 > ck/ck.10.0", "--drain", "none")
        for unit in glob.glob(self.path("holdfast-nodes/n3/ck.10.0-*/*")):
            with open(unit, "r+b") as file:
                file.seek(os.path.getsize(unit) // 2)
                file.write(b"damage")
        self.lose("n2")
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.plain(10), {0: "".join(f"{i}\n" for i in range(1, 100001))})

    def test_a_step_that_is_not_whole_is_refused_and_nothing_is_touched(self):
        self.run_job("[ $RANK = 1 ] || echo $RANK > ck/ck.10.$RANK; echo whole > ck/ck.5.$RANK", "--drain", "none", ranks=3)
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "10", expect=3).stderr, "checkpoint 10 is not whole", "of 3 files 2")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "7", expect=3).stderr, "there is no checkpoint 7")
        self.assertEqual(os.listdir(self.path("ck")), [])
        self.drop_from_nodes(5, "n1", "n2", "n3")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "5", expect=3).stderr, "checkpoint 5 cannot be read", "more nodes are lost")
        self.assertEqual(os.listdir(self.path("ck")), [])

    def test_a_drain_that_fails_leaves_every_name_as_it_was(self):
        self.run_job("echo new $RANK > ck/ck.10.$RANK", "--drain", "none", ranks=3)
        os.mkdir(self.path("ck/ck.10.2"))
        with open(self.path("ck/ck.10.0"), "w") as old:
            old.write("old\n")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "10", expect=3).stderr, "ck.10.2 is no plain file")
        self.assertEqual(self.read("ck/ck.10.0"), "old\n")
        self.assertEqual(sorted(os.listdir(self.path("ck"))), ["ck.10.0", "ck.10.2"])
        os.rmdir(self.path("ck/ck.10.2"))
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.plain(10, 3), {rank: f"new {rank}\n" for rank in range(3)})

    def test_a_protected_file_at_a_checkpoints_path_is_not_replaced(self):
        self.run_job("echo new > ck/ck.10.0", "--drain", "none")
        targets = ",".join(self.make_targets(3))
        self.holdfast("run", "--protect", "rs:2+1", "--targets", targets, "--path", "ck.*", "--library", "posix", "--", "sh", "-c", "echo other > ck/ck.10.0")
        self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "10", expect=3).stderr, "ck.10.0 is a protected file")
        self.assertEqual(self.holdfast("cat", "ck/ck.10.0").stdout, "other\n")

    def test_a_link_at_a_checkpoints_path_stays_one(self):
        os.mkdir(self.path("far"))
        os.symlink(self.path("far/file"), self.path("ck/ck.10.0"))
        self.run_job("echo new > ck/ck.10.0", "--drain", "none")
        self.holdfast("checkpoints", "--drain", "10")
        self.assertTrue(os.path.islink(self.path("ck/ck.10.0")))
        self.assertEqual(self.read("far/file"), "new\n")

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_drain_that_is_killed_leaves_nothing_half_and_is_repeated(self):
        self.run_job("seq 1 200000 > ck/ck.10.$RANK", "--drain", "none", "--keep", "9", ranks=2)
        content = "".join(f"{i}\n" for i in range(1, 200001))
        for calls, most, step in (("renameat2,fsync,mkdirat,unlinkat", 40, 1), ("pwrite64", 20, 1), ("sendmsg,sendto", 400, 37)):
            done = False
            for call in range(1, most, step):
                killed = subprocess.run(["strace", "-f", "-q", "-o", "/dev/null", f"-etrace={calls}", f"-einject={calls}:signal=SIGKILL:when={call}",
                                         self.binary, "checkpoints", "--drain", "10"], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
                for rank, seen in self.plain(10, 2).items():
                    self.assertEqual(seen, content, f"rank {rank}, killed at {calls} number {call}")
                done = killed.returncode == 0
                if done:
                    break
            self.assertTrue(done, f"more of {calls} than were tried")
            self.holdfast("checkpoints", "--drain", "10")
            self.assertEqual(self.plain(10, 2), {0: content, 1: content})
            self.nothing_is_left()
            for name in glob.glob(self.path("ck/*")):
                os.remove(name)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_full_disk_at_the_path_is_named_and_changes_nothing(self):
        self.run_job("seq 1 200000 > ck/ck.10.$RANK", "--drain", "none", ranks=2)
        with open(self.path("ck/ck.10.0"), "w") as old:
            old.write("old\n")
        for call, error in (("pwrite64", "ENOSPC"), ("fsync", "EIO")):
            for number in (1, 2):
                failed = subprocess.run(["strace", "-f", "-q", "-o", "/dev/null", f"-etrace={call}", f"-einject={call}:error={error}:when={number}",
                                         self.binary, "checkpoints", "--drain", "10"], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
                self.assertEqual(failed.returncode, 3, failed.stderr)
                self.assert_one_sentence(failed.stderr, "No space left" if error == "ENOSPC" else "Input/output error")
                self.assertEqual(self.read("ck/ck.10.0"), "old\n")
                self.assertEqual(os.listdir(self.path("ck")), ["ck.10.0"])
        self.holdfast("checkpoints", "--drain", "10", "ck/ck.{step}.{rank}")
        self.assertEqual(len(self.plain(10, 2)[1]), len(self.plain(10, 2)[0]))
        self.assertNotEqual(self.read("ck/ck.10.0"), "old\n")

    def test_the_last_checkpoint_is_plain_when_the_job_has_ended(self):
        done = self.run_job("for s in 1 2 3; do echo step $s of $RANK > ck/ck.$s.$RANK; done", ranks=2)
        self.assertIn("checkpoint 3 is drained: plain at its paths (2 files", done.stderr)
        self.assertEqual((self.plain(3, 2), self.plain(2, 2)), ({0: "step 3 of 0\n", 1: "step 3 of 1\n"}, {}))
        again = self.run_job("cat ck/ck.3.$RANK >> got", "--resume", ranks=2)
        self.assertNotIn("drained", again.stderr, "once is enough")
        self.assertEqual(self.read("got"), "step 3 of 0\nstep 3 of 1\n")
        # Also of a job that fails, with what it has removed by then.
        failed = self.run_job("echo late > ck/ck.4.$RANK; rm ck/ck.3.$RANK; [ $RANK = 0 ] || exit 5", "--resume", ranks=2, expect=5)
        self.assertIn("checkpoint 4 is drained", failed.stderr)
        self.assertEqual(self.plain(4, 2), {0: "late\n", 1: "late\n"})

    def test_none_drains_nothing_and_says_what_stays(self):
        done = self.run_job("echo x > ck/ck.3.0", "--drain", "none")
        self.assertIn("checkpoint 3 is not drained, as --drain none says", done.stderr)
        self.assertIn("holdfast checkpoints --drain 3\n", done.stderr)
        self.assertEqual(os.listdir(self.path("ck")), [])

    def written(self, *steps):
        """In a job's script: one after another, for whole ones count in the order in which they become that."""
        return "; ".join(f"echo step {step} > ck/ck.{step}.0; {self.until(f'{step} *whole')}" for step in steps)

    def test_each_nth_whole_checkpoint_is_plain_while_the_job_runs(self):
        # What the kernel shows of the directory before the last one is written.
        done = self.run_job(f"""{self.written(1, 2)}; {PLAIN.format(2)}; {self.written(3, 4)}; {PLAIN.format(4)}
            LD_PRELOAD= ls ck > during; echo step 5 > ck/ck.5.0""", "--drain", "every:2", "--keep", "1")
        self.assertEqual(self.read("during"), "ck.2.0\nck.4.0\n")
        self.assertEqual([self.plain(step) for step in range(1, 6)], [{}, {0: "step 2\n"}, {}, {0: "step 4\n"}, {0: "step 5\n"}])
        self.assertEqual(done.stderr.count("is drained"), 3)
        self.assertEqual(self.states(), {2: "drained", 4: "drained", 5: "whole"})
        self.assertEqual(self.standings()[2]["bytes"], 7)
        os.remove(self.path("ck/ck.2.0"))
        self.assertEqual(self.states(), {4: "drained", 5: "whole"})

    def test_what_was_written_again_since_is_plain_as_it_is_now(self):
        for before, after in ((PLAIN.format(2), "true"), ("true", PLAIN.format(2))):
            done = self.run_job(f"""{self.written(1)}; echo step 2 > ck/ck.2.0; {before}; echo and more >> ck/ck.2.0; {after}
                {self.written(3)}; echo step 4 > ck/ck.4.0; {PLAIN.format(4)}; echo step 5 > ck/ck.5.0""", "--drain", "every:2", "--keep", "1")
            self.assertEqual([self.plain(step) for step in range(1, 6)], [{}, {0: "step 2\nand more\n"}, {}, {0: "step 4\n"}, {0: "step 5\n"}], done.stderr)
            self.assertEqual(self.states(), {2: "drained", 4: "drained", 5: "whole"})
            self.holdfast("checkpoints", "--drop", "5")
            for step in (2, 4, 5):
                os.remove(self.path(f"ck/ck.{step}.0"))

    def test_what_some_ranks_have_written_again_waits_for_the_others(self):
        """Else what is plain would be of two times, and nothing else where a rank dies then."""
        natively = "env -u LD_PRELOAD"
        second = "ls holdfast-nodes/*/.checkpoints/*/*/protected | grep -q '^1[.]0of2[.]2[.].*[|]ck.1.0$'"
        script = f"""echo first > ck/ck.1.$RANK; {PLAIN.format(1)}
            if [ $RANK = 0 ]; then
                echo and more >> ck/ck.1.0
                for look in $(seq 300); do {natively} sh -c "{second}" && break; sleep 0.1; done
                sleep 2; {natively} cat ck/ck.1.0 > during; touch go
            else
                for look in $(seq 300); do [ -e go ] && break; sleep 0.1; done
                echo and more >> ck/ck.1.1
                for look in $(seq 300); do {natively} grep -q more ck/ck.1.0 && break; sleep 0.1; done
                {natively} cat ck/ck.1.0 ck/ck.1.1 > after
            fi"""
        self.run_job(script, "--drain", "every:1", ranks=2, at_once=True)
        self.assertEqual(self.read("during"), "first\n")
        self.assertEqual(self.read("after"), "first\nand more\n" * 2)

    def drain_at_end(self, meanwhile):
        """The second of three checkpoints is drained when the third is written. `meanwhile`: in the job's script."""
        os.rmdir(self.path("ck"))
        mount = faultfs.Mount(FAULTFS, self.dir, "ck")
        self.addCleanup(mount.end)
        if not mount.works():
            self.skipTest("faultfs cannot mount here")
        mount.order("fsync delay 3000 count=1")
        begun = "for look in $(seq 300); do [ -n \"$(LD_PRELOAD= ls -A ck | grep holdfast-drain)\" ] && break; sleep 0.1; done"
        return self.run_job(f"{self.written(1, 2)}; {begun}; {meanwhile}; echo step 3 > ck/ck.3.0", "--drain", "every:2", "--keep", "1")

    def test_one_that_was_being_drained_at_the_jobs_end_makes_room_as_others_do(self):
        done = self.drain_at_end("true")
        self.assertEqual((self.states(), done.stderr.count("is drained")), ({2: "drained", 3: "whole"}, 2), done.stderr)

    def test_one_whose_drain_fails_at_the_jobs_end_stays_on_the_nodes(self):
        done = self.drain_at_end("LD_PRELOAD= mkdir ck/ck.2.0")
        self.assertIn("from the nodes' disks it can be later: holdfast checkpoints --drain 2\n", done.stderr)
        self.assertEqual(self.states(), {2: "superseded", 3: "whole"}, done.stderr)
        os.rmdir(self.path("ck/ck.2.0"))
        self.holdfast("checkpoints", "--drain", "2")
        self.assertEqual(self.plain(2), {0: "step 2\n"})

    def test_a_checkpoint_that_cannot_be_drained_is_named_and_the_run_ends_so(self):
        os.mkdir(self.path("ck/ck.1.0"))
        done = self.run_job("echo x > ck/ck.1.0", expect=123)
        self.assertIn("checkpoint 1 is not drained:", done.stderr)
        os.rmdir(self.path("ck/ck.1.0"))
        self.holdfast("checkpoints", "--drain", "1")
        self.assertEqual(self.plain(1), {0: "x\n"})

    def test_what_the_program_has_removed_does_not_come_back(self):
        done = self.run_job(f"echo x > ck/ck.1.0; echo y > ck/ck.2.0; {self.until('2 *whole')}; rm ck/ck.2.0")
        self.assertIn("checkpoint 1 is drained", done.stderr)
        self.assertEqual((self.plain(1), self.plain(2)), ({0: "x\n"}, {}))
        again = self.run_job("ls ck; cat ck/ck.1.0", "--resume")
        self.assertEqual(again.stdout.split(), ["ck.1.0", "x"], again.stderr)
        self.assertIn("checkpoint 2 is passed over: the program has removed", again.stderr)
        self.assertEqual(self.standings()[2]["why"], f"the program has removed {self.path('ck/ck.2.0')}")

    def test_a_checkpoint_that_the_program_finds_bad_is_not_given_to_it_again(self):
        """One rank removes the files of both. What it removes of another one is gone on that one's node at once."""
        job = {"ranks": 2, "nodes": 4, "scheme": "rs:2+1", "at_once": True}
        script = f"""until_there() {{ for look in $(seq 300); do [ -e $1 ] && break; sleep 0.1; done; }}
            ls ck > found.$RANK; [ -e removed ] && exit 0
            [ -e ck/ck.3.$RANK ] || {{ for s in 1 2 3; do echo $s > ck/ck.$s.$RANK; done; {self.until('3 *whole')}; }}
            touch there.$RANK; until_there there.0; until_there there.1
            if [ $RANK = 0 ]; then rm ck/ck.3.0 ck/ck.3.1; touch removed; else until_there removed; [ -e ck/ck.3.1 ] && touch seen; touch looked; fi
            until_there looked; kill -9 $PPID"""
        done = self.run_job(script, "--restarts", "2", **job, expect=None)
        self.assertIn("attempt 2 begins with checkpoint 2", done.stderr)
        self.assertFalse(os.path.exists(self.path("seen")))
        self.assertEqual(self.read("found.1").split(), ["ck.2.0", "ck.2.1"])

    def test_what_is_newer_than_the_last_whole_one_is_named_when_the_job_has_ended(self):
        """Two slots, each with a pattern of its own, of which one was written once more; and a file that gets its second name before it is written anew."""
        job = {"nodes": 3, "scheme": "rs:2+1"}
        done = self.run_job("for i in 1 2; do echo $i > ck/A.0; echo $i > ck/B.0; done; echo 3 > ck/A.0", "--checkpoint", "ck/B.{rank}", pattern="ck/A.{rank}", **job)
        newer = "is newer and not whole, so it is not at its paths: of its 2 files 1 is protected (the first is " + self.path("ck/")
        self.assertIn(f"checkpoint 3 {newer}A.0); all patterns without {{step}} have to be written equally often\n", done.stderr)
        done = self.run_job("for i in 1 2 3; do echo $i > new; [ -e ck/cur.0 ] && mv ck/cur.0 ck/prev.0; mv new ck/cur.0; done", "--checkpoint", "ck/prev.{rank}",
                            pattern="ck/cur.{rank}", **job)
        self.assertIn("checkpoint 2 is not drained, for the program has removed or renamed a file of it\n", done.stderr)
        self.assertIn(f"checkpoint 3 {newer}cur.0)", done.stderr)

    def test_what_some_ranks_alone_have_written_again_is_drained_with_the_rest(self):
        """Rank 0 is done when rank 1 dies. Each updates its file in place, and natively the last states stand at their paths."""
        update = f"""{sys.executable} -c "import sys; f = open('ck/state.' + sys.argv[1], 'r+'); f.write(sys.argv[2]); f.close()" $RANK"""
        script = f"""[ -e ck/state.$RANK ] || echo 0 > ck/state.$RANK
            if [ $RANK = 0 ]; then [ -e tried ] || for n in 1 2 3; do {update} $n; done; touch done.0; exit 0; fi
            n=$(cat ck/state.1); echo began $(cat ck/state.0) $n >> began; while [ $n -lt 3 ]; do n=$((n + 1)); {update} $n
              [ $n = 2 ] && [ ! -e tried ] && touch tried && until [ -e done.0 ]; do sleep 0.1; done && {self.until('1 *whole')} && sleep 1 && kill -9 $$; done; :"""
        job = {"pattern": "ck/state.{rank}", "ranks": 2, "nodes": 3, "scheme": "rs:2+1", "at_once": True}
        done = self.run_job(script, "--restarts", "1", **job)
        self.assertEqual(self.read("began").splitlines()[-1], "began 3 2", "what it went on from")
        self.assertIn("of the 2 files of checkpoint 1 1 was written again by ranks that have ended well; all of them are drained as they are now", done.stderr)
        self.assertEqual([self.read(f"ck/state.{rank}") for rank in (0, 1)], ["3\n", "3\n"])
        self.run_job("cat ck/state.$RANK > again.$RANK", "--resume", **job)
        self.assertEqual([self.read(f"again.{rank}") for rank in (0, 1)], ["3\n", "3\n"])
        self.assertEqual([self.read(f"ck/state.{rank}") for rank in (0, 1)], ["3\n", "3\n"], "what is older on the nodes does not take their places")
        self.run_job("exit 3", "--resume", **{**job, "at_once": False}, expect=3)
        self.assertEqual([self.read(f"ck/state.{rank}") for rank in (0, 1)], ["3\n", "3\n"])

    def test_what_is_removed_for_a_newer_one_serves_until_that_is_whole(self):
        self.run_job(f"""[ -e tried ] && cat ck/ck.1.0 > got && exit 0
            touch tried; echo one > ck/ck.1.0; {self.until('1 *whole')}; exec 3> ck/ck.2.0; rm ck/ck.1.0; kill -9 $$""", "--restarts", "1", nodes=3, scheme="rs:2+1")
        self.assertEqual(self.read("got"), "one\n")
        self.assertEqual(self.plain(1), {0: "one\n"}, "the attempt that has removed it was killed, and the last one has gone on from it")

    def test_where_the_only_checkpoint_is_removed_a_job_ends_well_and_may_go_on_from_it(self):
        self.run_job(f"echo one > ck/ck.1.0; {self.until('1 *whole')}; rm ck/ck.1.0", nodes=3, scheme="rs:2+1")
        self.assertEqual(self.plain(1), {})
        self.assertEqual(self.run_job("cat ck/ck.1.0", "--resume", nodes=3, scheme="rs:2+1").stdout, "one\n")

    def test_a_job_goes_back_to_a_drained_checkpoint_where_the_nodes_have_lost_theirs(self):
        self.run_job("echo drained $RANK > ck/ck.5.$RANK", ranks=2)
        self.run_job("echo newer $RANK > ck/ck.6.$RANK", "--resume", "--drain", "none", ranks=2)
        with open(self.path("ck/ck.4.0"), "w") as older:
            older.write("older\n")
        self.lose("n2", "n4", "n5")
        self.assertEqual(self.states(), {5: "drained", 6: "lost"})
        look = "cat ck/ck.5.$RANK >> got; for s in 4 6; do [ -e ck/ck.$s.$RANK ] && echo $s >> got; done; true"
        done = self.run_job(look, "--resume", ranks=2)
        self.assertIn("checkpoint 6 cannot be read", done.stderr)
        self.assertIn("back to checkpoint 5", done.stderr)
        self.assertIn("begins with checkpoint 5 as it was drained", done.stderr)
        self.assertIn("no checkpoint was written; 5, with which the job began, is plain at its paths", done.stderr.splitlines()[-1])
        self.assertEqual(self.read("got"), "drained 0\ndrained 1\n")
        # Files that somebody has changed since are no checkpoint of this job.
        with open(self.path("ck/ck.5.1"), "a") as plain:
            plain.write("changed\n")
        self.assertEqual(self.states(), {5: "lost", 6: "lost"})
        self.assert_one_sentence(self.run_job(look, "--resume", ranks=2, expect=122).stderr, "checkpoint 6 cannot be read, and there is no other")

    def test_a_plain_file_that_was_changed_or_removed_since_is_named_when_a_job_goes_on(self):
        self.run_job("echo new > ck/ck.10.0")
        said = self.run_job("cat ck/ck.10.0", "--resume")
        self.assertEqual(said.stdout, "new\n")
        self.assertNotIn("since it was drained", said.stderr)
        for change, how in (("echo mine > ck/ck.10.0", "changed"), ("rm ck/ck.10.0", "removed")):
            subprocess.run(change, shell=True, cwd=self.dir, check=True)
            said = self.run_job("cat ck/ck.10.0", "--resume", "--drain", "none")
            self.assertEqual(said.stdout, "new\n")
            self.assertIn(f"ck.10.0 was {how} since it was drained; checkpoint 10 is read as it was protected", said.stderr)
        subprocess.run("echo mine > ck/ck.10.0", shell=True, cwd=self.dir, check=True)
        self.holdfast("checkpoints", "--drop", "10")
        self.assertEqual(self.run_job("cat ck/ck.10.0", "--resume").stdout, "mine\n")

    def test_drains_that_mean_nothing_are_refused_in_one_sentence(self):
        here = ("--simulate-nodes", "3", "--protect", "rs:2+1")
        for options, words in (((*here, "--checkpoint", "ck.{step}.{rank}", "--drain", "sometimes"), "--drain 'sometimes' says nothing"),
                               ((*here, "--checkpoint", "ck.{step}.{rank}", "--drain", "every:0"), "--drain 'every:0' says nothing"),
                               ((*here, "--drain", "last"), "--drain last is about checkpoints"),
                               ((*here, "--drain", "every:2"), "--drain every:2 is about checkpoints")):
            self.assert_one_sentence(self.holdfast("run", *options, "true", expect=2).stderr, words)


if __name__ == "__main__":
    unittest.main()
