"""holdfast run --replicas R: a team that is started again goes on from a checkpoint of the program's own, joins the others there, and outlives them."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from replicated import ReplicatedTest

COLLECTS = os.path.join(os.path.dirname(__file__), "collects.c")
LETTERS = os.path.join(os.path.dirname(__file__), "letters.c")
JACOBI = os.path.join(os.path.dirname(__file__), "../../examples/jacobi_checkpoint.c")
STEPS, EVERY, ROWS, PAUSE_US = "500", "10", "16", "40000"
PATTERN = "ck/ck.{step}.{rank}"
SOON_MS = 1500


class ResumedTeams(ReplicatedTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))

    def jacobi(self, flavour, launcher):
        """The program, and what it prints and leaves without Holdfast."""
        program = self.path(f"jacobi.{flavour}")
        subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, JACOBI], check=True)
        self.forget()
        native = subprocess.run([*launcher, program, STEPS, EVERY, ROWS], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=60)
        last = {name: self.bytes_of(name) for name in self.last_files()}
        self.assertEqual(len(last), 2)
        self.forget()
        return [program, STEPS, EVERY, ROWS, PAUSE_US], native.stdout, last

    def forget(self):
        self.end_jobs()
        self.holdfast("agents", "stop", expect=None)
        for name in ("ck", "holdfast-nodes", "agents", "state"):
            shutil.rmtree(self.path(name), ignore_errors=True)

    def last_files(self):
        return sorted(os.path.relpath(name, self.dir) for name in glob.glob(self.path(f"ck/ck.{STEPS}.*")))

    def bytes_of(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def state(self):
        done = self.holdfast("status", "--job", "--json", expect=None)
        return json.loads(done.stdout) if done.stdout else {"teams": []}

    def until(self, what, fact, job):
        deadline = time.monotonic() + 60
        while not fact():
            self.assertLess(time.monotonic(), deadline, f"not {what}: {self.state()}")
            if job.poll() is not None:
                self.fail(f"the job has ended before {what}: {job.communicate()}")
            time.sleep(0.05)

    def caught_up(self, team):
        teams = self.state()["teams"]
        return len(teams) > team and teams[team].get("caught_up")

    def is_whole(self, step):
        done = self.holdfast("checkpoints", "--json", expect=None)
        return done.stdout and any(c["step"] >= step and c["state"] == "whole" for c in json.loads(done.stdout)["checkpoints"])

    def is_written(self, step):
        return lambda: all(os.path.exists(self.path(f"ck/ck.{step}.{rank}")) for rank in (0, 1))

    def kill(self, team, rank):
        process = next(r["process"] for r in self.state()["teams"][team]["ranks"] if r["rank"] == rank)
        os.kill(process, signal.SIGKILL)

    def finish(self, job, expect=0):
        out, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, expect, err)
        return out, err

    def check_end(self, out, err, printed, last):
        self.assertEqual(out, printed, err)
        self.assertEqual(self.last_files(), sorted(last), err)
        for name, content in last.items():
            self.assertEqual(self.bytes_of(name), content, name)

    def survive(self, job, ready, replicas, printed, last):
        """One team after another is lost, and the one that came back ends the job."""
        self.process_of(replicas - 1, 1, 2)
        self.until("a checkpoint is there", ready, job)
        self.kill(0, 1)
        lost = time.monotonic()
        self.until("it has caught up", lambda: self.caught_up(replicas), job)
        print(f"joined {time.monotonic() - lost:.1f} s after the loss")
        self.until("it is hardly behind", lambda: self.state()["teams"][replicas]["behind_ms"] < SOON_MS, job)
        for team in range(1, replicas):
            self.kill(team, 0)
            time.sleep(0.3)
        out, err = self.finish(job)
        self.check_end(out, err, printed, last)
        self.assertIn(f"team {replicas} has caught up", err)
        return err

    # ------------------------------------------------------------------------------------------------ with checkpoints of Holdfast's

    def options(self):
        return ["--simulate-nodes", "6", "--protect", "rs:2+1", "--checkpoint", PATTERN]

    def test_it_finds_the_newest_whole_checkpoint_and_outlives_the_others(self):
        for flavour, launcher in self.launchers():
            words, printed, last = self.jacobi(flavour, launcher)
            for replicas in (2, 3):
                with self.subTest(flavour=flavour, replicas=replicas):
                    self.forget()
                    job = self.start(*self.options(), "--", *launcher, *words, replicas=replicas)
                    err = self.survive(job, lambda: self.is_whole(40), replicas, printed, last)
                    self.assertRegex(err, rf"team {replicas} goes on from checkpoint [1-9]*[0-9]0\n")

    def test_one_that_receives_from_anybody_begins_at_its_beginning_and_outlives_the_other(self):
        for flavour, launcher in self.launchers():
            program = self.path(f"collects.{flavour}")
            subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, COLLECTS], check=True)
            self.forget()
            os.mkdir(self.path("ck"))
            native = subprocess.run([*launcher, program, STEPS], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=60)
            with self.subTest(flavour=flavour):
                self.forget()
                os.mkdir(self.path("ck"))
                job = self.start(*self.options(), "--", *launcher, program, STEPS, PAUSE_US)
                self.process_of(1, 1, 2)
                self.until("a checkpoint is there", lambda: self.is_whole(40), job)
                self.kill(0, 1)
                self.until("it has caught up", lambda: self.caught_up(3), job)
                self.kill(1, 0)
                out, err = self.finish(job)
                self.assertEqual(out, native.stdout, err)
                self.assertRegex(err, "rank 0 of team 2 cannot go on from a checkpoint: it receives messages from anybody.*as team 3")

    # ------------------------------------------------------------------------------------------------ with the program's own alone

    def test_a_restart_command_joins_where_it_writes_what_the_others_have_written(self):
        for flavour, launcher in self.launchers():
            words, printed, last = self.jacobi(flavour, launcher)
            with self.subTest(flavour=flavour):
                self.forget()
                job = self.start("--restart-command", " ".join([*launcher, *words]), *launcher, *words)
                self.survive(job, self.is_written(40), 2, printed, last)

    def test_one_whose_bytes_differ_is_refused_and_the_job_goes_on(self):
        for flavour, launcher in self.launchers():
            words, printed, last = self.jacobi(flavour, launcher)
            with self.subTest(flavour=flavour):
                self.forget()
                other = [*words[:3], "8", str(3 * int(words[4]))]  # slower: what it comes to the others have written
                job = self.start("--restart-command", " ".join([*launcher, *other]), *launcher, *words)
                self.process_of(1, 1, 2)
                self.until("a checkpoint is there", self.is_written(40), job)
                self.kill(0, 1)
                out, err = self.finish(job)
                self.check_end(out, err, printed, last)
                # Now and then it joins at a name all the same.
                self.assertRegex(err, r"rank \d of team 2 (cannot catch up: .* is not what |does not go on as the others do: .*ck/ck\.\d+\.\d, )")
                self.assertNotIn("as team 3", err)

    def joined_at_a_name(self, word, *restarted):
        """The job, when a team is a member that has made letter.1 together with the other one, and nothing of what it writes was compared yet."""
        program = self.path("letters")
        subprocess.run(["cc", "-O2", "-o", program, LETTERS], check=True)
        self.let(0)
        job = self.start("--restart-command", " ".join([program, restarted[0], "1", *restarted[1:]]), program, word)
        self.process_of(1, 0)
        self.until("the first letter is there", lambda: os.path.exists(self.path("letter.0")) and self.read("letter.0") == word[0], job)
        self.kill(0, 0)
        self.until("it has come up", lambda: len(self.state()["teams"]) == 3 and self.state()["teams"][2]["ranks"], job)
        self.touch("make.1")
        self.until("it has joined", lambda: self.caught_up(2), job)
        self.touch("write.1")
        return job

    def touch(self, *names):
        for name in names:
            open(self.path(name), "wb").close()

    def let(self, letter):
        self.touch(f"make.{letter}", f"write.{letter}")

    def test_one_whose_first_bytes_differ_is_refused_also_when_it_is_a_member(self):
        job = self.joined_at_a_name("abc", "aXc")
        self.let(2)
        _, err = self.finish(job)
        self.assertEqual([self.read(f"letter.{i}") for i in (0, 1, 2)], ["a", "b", "c"], err)
        self.assertRegex(err, r"rank 0 of team 2 does not go on as the others do: .*letter\.1, a write of 1 bytes at 0; team 1 goes on alone")
        self.assertNotIn("as team 3", err)

    def test_one_that_goes_on_to_another_file_is_refused_also_when_it_is_a_member(self):
        job = self.joined_at_a_name("abc", "abc", "elsewhere")
        self.let(2)
        _, err = self.finish(job)
        self.assertEqual([self.read(f"letter.{i}") for i in (0, 1, 2)], ["a", "b", "c"], err)
        self.assertFalse(os.path.exists(self.path("elsewhere")))
        self.assertRegex(err, r"rank 0 of team 2 does not go on as the others do: .*elsewhere, its open \(team 1 waits at .*letter\.1, a write of 1 bytes at 0\); "
                              "team 1 goes on alone")

    def test_one_whose_bytes_were_the_same_is_as_good_as_the_others(self):
        job = self.joined_at_a_name("abc", "abX")
        self.let(2)
        _, err = self.finish(job, expect=120)
        self.assertEqual([self.read(f"letter.{i}") for i in (0, 1, 2)], ["a", "b", ""], err)
        self.assertIn("the replicas of rank 0 differ", err)

    # ------------------------------------------------------------------------------------------------ bad input

    def test_bad_input_is_one_sentence(self):
        for options, said in ((["--restart-command", "mpirun ./a"], "--restart-command is about teams of --replicas"),
                              (["--replicas", "2", "--relaunch", "0", "--restart-command", "mpirun ./a"], "give --relaunch 1 too"),
                              (["--replicas", "2", "--restart-command", "mpirun -host {nodes} ./a"], "--restart-command has no {nodes}"),
                              (["--replicas", "2", "--restart-command", "mpirun ./a {step}"], "name them with --checkpoint"),
                              (["--replicas", "2", "--restart-command", "mpirun './a"], "--restart-command 'mpirun './a' is no command")):
            done = subprocess.run([self.binary, "run", *options, "true"], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
