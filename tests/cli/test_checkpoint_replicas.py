"""holdfast run --replicas R --checkpoint PATTERN: each replica writes its own copy, one of them counts, and the job survives the loss of teams and nodes."""
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

SLOW = os.path.join(os.path.dirname(__file__), "slow_checkpoint.c")
RENAMED = os.path.join(os.path.dirname(__file__), "renamed_directories.c")
RENAMED_ALONE = os.path.join(os.path.dirname(__file__), "renamed_alone.c")
JACOBI = os.path.join(os.path.dirname(__file__), "../../examples/jacobi_checkpoint.c")
PATTERN = "ck/ck.{step}.{rank}"
STEPS, EVERY = "60", "10"


class CheckpointReplicas(ReplicatedTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))

    def jacobi(self, flavour, launcher):
        """The program, and what it prints without Holdfast."""
        program = self.path(f"jacobi.{flavour}")
        if not os.path.exists(program):
            subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, JACOBI], check=True)
        self.end_jobs()
        self.forget()
        native = subprocess.run([*launcher, program, STEPS, EVERY], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=60)
        files = {name: self.bytes_of(name) for name in self.plain()}
        self.assertEqual(len(files), 2 * int(STEPS) // int(EVERY))
        self.forget()
        return program, re.search(r"checksum \w+", native.stdout)[0], files

    def forget(self):
        self.holdfast("agents", "stop", expect=None)
        for name in ("ck", "holdfast-nodes", "agents", "state"):
            shutil.rmtree(self.path(name), ignore_errors=True)

    def plain(self):
        return sorted(os.path.relpath(name, self.dir) for name in glob.glob(self.path("ck/*.*")))

    def bytes_of(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def options(self, nodes, scheme="rs:2+1", relaunch=0):
        return ["--simulate-nodes", str(nodes), "--protect", scheme, "--checkpoint", PATTERN, "--checkpoint", "ck/head.{step}", "--relaunch", str(relaunch)]

    def check_end(self, out, err, result, files):
        self.assertEqual(re.findall(r"checksum \w+", out), [result], err)
        last = [name for name in files if f"ck.{STEPS}." in name]
        self.assertEqual([name for name in self.plain() if name in last], last, err)
        for name in last:
            self.assertEqual(self.bytes_of(name), files[name], name)

    def standings(self):
        return {c["step"]: c for c in self.json("checkpoints")["checkpoints"]}

    def kill_when(self, team, rank, ready, ranks=2):
        process = self.process_of(team, rank, ranks)
        self.kill(process, ready)

    def kill(self, process, ready):
        deadline = time.monotonic() + 60
        while not ready():
            self.assertLess(time.monotonic(), deadline, self.jobs[-1].communicate() if self.jobs[-1].poll() is not None else "it runs")
            time.sleep(0.01)
        os.kill(process, signal.SIGKILL)

    def finish(self, job, expect=0):
        out, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, expect, err)
        return out, err

    def local(self, state, node="*"):
        return glob.glob(self.path("holdfast-nodes", node, ".checkpoints/*/*", state, "*"))

    # ------------------------------------------------------------------------------------------------ all is well

    def test_each_file_is_protected_once_and_is_what_a_native_run_has(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.jacobi(flavour, launcher)
            # Two nodes are shared by three teams; of six each of two teams has three.
            for replicas, nodes, scheme in ((2, 6, "rs:2+1"), (3, 6, "rs:2+1"), (3, 2, "mirror:2")):
                with self.subTest(flavour=flavour, replicas=replicas, nodes=nodes):
                    options = ["--simulate-nodes", str(nodes), "--protect", scheme, "--checkpoint", PATTERN]
                    done = self.replicas(*options, "--", *launcher, program, STEPS, EVERY, replicas=replicas)
                    self.check_end(done.stdout, done.stderr, result, files)
                    self.assertEqual({step: (c["state"], c["files"]) for step, c in self.standings().items()},
                                     {60: ("whole", 2), 50: ("superseded", 2)}, done.stderr)
                    self.assertEqual(self.local("../team.*/writing"), [], "what was not counted is not left")
                    self.forget()


    # ------------------------------------------------------------------------------------------------ losses

    def slow(self, flavour, launcher, steps="6"):
        program = self.path(f"slow.{flavour}")
        if not os.path.exists(program):
            subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, SLOW], check=True)
        self.forget()
        os.mkdir(self.path("ck"))
        native = subprocess.run([*launcher, program, steps, "0"], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=60)
        files = {name: self.bytes_of(name) for name in self.plain()}
        self.begin_anew()
        return program, sorted(native.stdout.splitlines()), files

    def begin_anew(self):
        self.end_jobs()
        self.forget()
        os.mkdir(self.path("ck"))

    def check_slow(self, out, err, result, files, begins=("begins after step 0",), steps="6"):
        self.assertEqual(sorted(out.splitlines()), sorted([*begins, *result[1:]]), err)
        for name in (f"ck/ck.{steps}.0", f"ck/ck.{steps}.1", f"ck/head.{steps}"):
            self.assertEqual(self.bytes_of(name), files[name], err)

    def half_written(self, team, step, rank):
        return lambda: any(os.path.getsize(name) > 0 for name in self.local(f"team.{team}/writing") if name.split("/")[-1].startswith(f"{step}.{rank}of"))

    def test_a_team_is_lost_while_it_writes_and_no_file_is_torn(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher)
            for replicas, nodes, scheme, team in ((2, 6, "rs:2+1", 0), (2, 6, "rs:2+1", 1), (3, 2, "mirror:2", 0)):
                with self.subTest(flavour=flavour, replicas=replicas, nodes=nodes, team=team):
                    self.begin_anew()
                    job = self.start(*self.options(nodes, scheme), "--", *launcher, program, "6", replicas=replicas)
                    self.kill_when(team, 1, self.half_written(team, 3, 1))
                    out, err = self.finish(job)
                    self.check_slow(out, err, result, files)
                    self.assertEqual({step: (c["state"], c["files"]) for step, c in self.standings().items()},
                                     {6: ("whole", 3), 5: ("superseded", 3)}, err)
                    self.assertRegex(err, f"rank 1 of team {team} .* has died")

    def test_a_team_goes_with_its_nodes_and_the_other_one_ends_the_job(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher)
            with self.subTest(flavour=flavour):
                done = self.replicas(*self.options(6), "--simulate-loss", "1@2", "--", *launcher, program, "6")
                self.check_slow(done.stdout, done.stderr, result, files)
                self.assertIn("node n1 is lost now", done.stderr)
                self.assertRegex(done.stderr, "rank 0 of team 0 .* has died")
                self.assertEqual(self.standings()[6]["state"], "whole")

    def test_what_differs_stops_the_job_before_it_counts(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher)
            self.env["HOLDFAST_TEST_DIFFERS"] = "1:3"
            with self.subTest(flavour=flavour):
                done = self.replicas(*self.options(6), "--", *launcher, program, "6", "10000", expect=120)
                self.assertIn("ck/ck.3.1, its content when it was closed, 80000 bytes", done.stderr)
                self.assertNotIn(3, [step for step, c in self.standings().items() if c["state"] in ("whole", "superseded")], done.stderr)
            with self.subTest(flavour=flavour, replicas=3):
                self.begin_anew()
                done = self.replicas(*self.options(6), "--", *launcher, program, "6", "10000", replicas=3)
                self.check_slow(done.stdout, done.stderr, result, files)
                self.assertIn("rank 1 of team 1 differs from the others", done.stderr)
            del self.env["HOLDFAST_TEST_DIFFERS"]

    # ------------------------------------------------------------------------------------------------ all teams, or one that comes back

    def test_when_all_replicas_of_a_rank_are_lost_the_job_goes_on_from_its_checkpoint(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher)
            with self.subTest(flavour=flavour):
                job = self.start(*self.options(6), "--restarts", "1", "--", *launcher, program, "6")
                other = self.process_of(1, 1, 2)
                self.kill_when(0, 1, self.half_written(0, 3, 1))
                self.kill(other, self.half_written(1, 5, 1))
                out, err = self.finish(job)
                self.assertIn("the job has ended with 121; it is started again (1 of 1)", err)
                self.assertRegex(err, "attempt 2 begins with checkpoint [34]")
                began = [line for line in out.splitlines() if line.startswith("begins")]
                self.assertRegex(began[1], "begins after step [34]")
                self.check_slow(out, err, result, files, began)

    def test_resume_begins_with_the_newest_whole_one(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher)
            with self.subTest(flavour=flavour):
                job = self.start(*self.options(6), "--drain", "none", "--", *launcher, program, "6")
                other = self.process_of(1, 0, 2)
                self.kill_when(0, 1, self.half_written(0, 3, 1))
                self.kill(other, self.half_written(1, 5, 0))
                self.finish(job, expect=121)
                done = self.replicas(*self.options(6), "--resume", "--", *launcher, program, "6", replicas=3)
                began = done.stdout.splitlines()[0]
                self.assertRegex(began, "begins after step [34]")
                self.check_slow(done.stdout, done.stderr, result, files, [began])

    def test_a_lost_team_comes_back_and_outlives_the_other_one(self):
        """What it reads again has been removed by then; after a resume it begins with what the job began with."""
        for flavour, launcher in self.launchers():
            program, result, files = self.slow(flavour, launcher, "24")
            with self.subTest(flavour=flavour):
                job = self.start(*self.options(6, relaunch=1), "--", *launcher, program, "24", "200000")
                other = self.process_of(1, 0, 2)
                self.kill_when(0, 1, self.half_written(0, 5, 1))
                self.until_caught_up(2, job)
                os.kill(other, signal.SIGKILL)
                out, err = self.finish(job)
                self.check_slow(out, err, result, files, steps="24")
                self.assertIn("team 2 has caught up", err)
            with self.subTest(flavour=flavour, resumed=True):
                self.begin_anew()
                job = self.start(*self.options(6), "--", *launcher, program, "24")
                other = self.process_of(1, 0, 2)
                self.kill_when(0, 1, self.half_written(0, 3, 1))
                self.kill(other, self.half_written(1, 5, 0))
                self.finish(job, expect=121)
                job = self.start(*self.options(6, relaunch=1), "--resume", "--", *launcher, program, "24", "200000")
                other = self.process_of(1, 0, 2)
                self.kill_when(0, 1, self.half_written(0, 9, 1))
                self.until_caught_up(2, job)
                os.kill(other, signal.SIGKILL)
                out, err = self.finish(job)
                began = out.splitlines()[0]
                self.assertRegex(began, "begins after step [34]")
                self.check_slow(out, err, result, files, [began], steps="24")

    def until_caught_up(self, team, job):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = self.holdfast("status", "--job", "--json", expect=None)
            teams = json.loads(done.stdout)["teams"] if done.stdout else []
            if len(teams) > team and teams[team].get("caught_up"):
                return
            if job.poll() is not None:
                self.fail(f"the job has ended before: {job.communicate()}")
            time.sleep(0.05)
        self.fail("it does not catch up")

    def renamed(self, flavour, launcher, steps):
        """The program that renames directories, what it prints, and its last files."""
        program = self.path(f"renamed.{flavour}")
        subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, RENAMED], check=True)
        self.begin_anew()
        native = subprocess.run([*launcher, program, steps, "0"], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=60)
        files = [self.bytes_of(f"ck/{steps}/part.{rank}") for rank in (0, 1)]
        self.begin_anew()
        return program, native.stdout, files

    def check_renamed(self, out, err, native, files, steps):
        self.assertEqual((out, [self.bytes_of(f"ck/{steps}/part.{rank}") for rank in (0, 1)]), (native, files), err)
        self.assertNotIn("plain file", err)
        self.assertEqual({step: (c["state"], c["files"]) for step, c in self.standings().items()},
                         {int(steps): ("whole", 2), int(steps) - 1: ("superseded", 2)}, err)

    def test_files_whose_directory_gets_its_name_by_a_rename_are_protected_once(self):
        options = ["--simulate-nodes", "6", "--protect", "rs:2+1", "--checkpoint", "ck/{step}/part.{rank}"]
        for flavour, launcher in self.launchers():
            program, native, files = self.renamed(flavour, launcher, "4")
            with self.subTest(flavour=flavour):
                done = self.replicas(*options, "--", *launcher, program, "4", "0")
                self.check_renamed(done.stdout, done.stderr, native, files, "4")
            program, native, files = self.renamed(flavour, launcher, "12")
            for team, rank in ((0, 0), (1, 0), (0, 1)):
                with self.subTest(flavour=flavour, team=team, rank=rank):
                    self.begin_anew()
                    job = self.start(*options, "--relaunch", "1", "--", *launcher, program, "12", "300000")
                    self.kill_when(team, rank, lambda: os.path.exists(self.path("ck/tmp.4")))
                    out, err = self.finish(job)
                    self.assertRegex(err, f"rank {rank} of team {team} .* has died")
                    self.check_renamed(out, err, native, files, "12")

    def test_a_rename_that_one_team_makes_alone_meets_nobody(self):
        options = ["--simulate-nodes", "6", "--protect", "rs:2+1", "--checkpoint", "ck/{step}/part.{rank}"]
        for flavour, launcher in self.launchers(ranks=1):
            program = self.path(f"alone.{flavour}")
            subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, RENAMED_ALONE], check=True)
            with self.subTest(flavour=flavour):
                self.begin_anew()
                done = self.replicas(*options, "--", *launcher, program)
                self.assertEqual(done.stdout, "went on\n", done.stderr)
                self.assertEqual({name for name in os.listdir(self.path("ck")) if "own." not in name}, {"between", "by_mpi", "end", "named"}, done.stderr)

    # ------------------------------------------------------------------------------------------------ what cannot be

    def test_what_cannot_be_had_is_refused_in_one_sentence(self):
        for patterns, said in ((["--checkpoint", "ck/{step}/*.{rank}"], "--checkpoint with * or ?, and --complete, cannot be had with --replicas yet"),
                               (["--checkpoint", "shared:ck/ck.{step}"], "--checkpoint 'shared:...' cannot be had with --replicas yet")):
            done = self.replicas("--simulate-nodes", "6", "--protect", "rs:2+1", *patterns, "--", "true", expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertIn("'ck/ck.{step}.{rank}'", done.stderr)

    def test_ranks_do_not_open_one_together(self):
        for flavour, launcher in self.launchers():
            program, result, files = self.jacobi(flavour, launcher)
            with self.subTest(flavour=flavour):
                done = self.replicas("--simulate-nodes", "6", "--protect", "rs:2+1", "--checkpoint", "ck/ck.{step}", "--", *launcher, program, "20", "10",
                                     "64", "0", "shared", expect=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("let each rank write a file of its own", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
