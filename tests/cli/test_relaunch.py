"""holdfast run --replicas R --relaunch N: a team that is lost comes back, and the job survives the loss of the others."""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from command import BINARY, CommandTest, Rests, debian_mpis, interrupt, interrupted_with_its_test

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
HEAT = os.path.join(os.path.dirname(__file__), "../../examples/heat.c")
MESSAGES = os.path.join(os.path.dirname(__file__), "messages.c")
SHAPE = ["60", "80", "80", "2"]
ROUNDS = int(os.environ.get("HOLDFAST_RELAUNCH_ROUNDS", "2"))


class Relaunch(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["XDG_STATE_HOME"] = self.path("state")
        self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.env["UCX_LOG_FILE"] = "stderr"  # what MPICH says of ranks that die is no output of the program
        self.job = None
        self.rests = Rests(self.dir)
        self.addCleanup(self.rests.begin)
        self.said = tempfile.TemporaryFile()
        self.addCleanup(self.said.close)
        self.addCleanup(self.end_job)

    def end_job(self):
        if self.job:
            interrupt(self.job)

    def start(self, *command, relaunch=1, replicas=2, stdin=subprocess.DEVNULL):
        self.begin(self.binary, "run", "--replicas", str(replicas), "--relaunch", str(relaunch), *command, stdin=stdin)

    def begin(self, *words, stdin=subprocess.DEVNULL):
        self.rests.begin()
        self.said.seek(0)
        self.said.truncate()
        self.job = subprocess.Popen(words, cwd=self.dir, env={**self.env, **self.rests.variables(self.env)}, stdin=stdin, stdout=subprocess.PIPE,
                                    stderr=self.said, text=True, preexec_fn=interrupted_with_its_test)

    def errors(self):
        return os.pread(self.said.fileno(), 1 << 20, 0).decode()

    def hear(self, words):
        self.until(f"it says '{words}'", lambda _: words in self.errors())

    def finish(self, expect=0):
        """Nothing more is to happen to it."""
        self.rests.hurry()
        out, _ = self.job.communicate(timeout=120)
        self.assertEqual(self.job.returncode, expect, self.errors())
        return out, self.errors()

    def state(self):
        done = self.holdfast("status", "--job", "--json", expect=None)
        return json.loads(done.stdout) if done.stdout else {"teams": []}

    def until(self, what, fact):
        """The state, when it shows the fact."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            has_ended = self.job.poll() is not None
            state = self.state()
            if fact(state):
                return state
            if has_ended:
                self.fail(f"the job has ended before {what}:\n{self.job.communicate()[0]}{self.errors()}")
            time.sleep(0.05)
        self.fail(f"not {what}: {self.state()}")

    def processes(self, team, ranks):
        state = self.until(f"team {team} is there", lambda s: len(s["teams"]) > team and len(s["teams"][team]["ranks"]) == ranks)
        return {r["rank"]: r["process"] for r in state["teams"][team]["ranks"]}

    def begun(self, name):
        """The program has written something: all its ranks are through MPI_Init, in which MPICH complains of who dies."""
        self.until(f"there is something in {name}", lambda _: os.path.exists(self.path(name)) and os.path.getsize(self.path(name)) > 0)

    def wrote_lines(self, count):
        self.until(f"{count} lines are written", lambda _: os.path.exists(self.path("file")) and self.read("file").count(b"\n") >= count)

    def kill(self, team, rank, ranks):
        os.kill(self.processes(team, ranks)[rank], signal.SIGKILL)

    def lose_one_of_several(self, rng, ranks):
        """Kills a rank of one living team, where another one lives. Until the loss is declared the state shows the dead rank as a living one."""
        teams = self.state()["teams"]
        living = [t for t in teams if not t["lost"] and len(t["ranks"]) == ranks]
        if len(living) < 2:
            return
        chosen = rng.choice(living)
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(rng.choice(chosen["ranks"])["process"], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while self.job.poll() is None and not self.state()["teams"][chosen["team"]]["lost"]:
            self.assertLess(time.monotonic(), deadline, f"team {chosen['team']} is not lost: {self.state()}")
            time.sleep(0.05)

    def caught_up(self, team):
        return self.until(f"team {team} has caught up", lambda s: len(s["teams"]) > team and s["teams"][team].get("caught_up"))

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def clean(self, *names):
        for name in names:
            os.unlink(self.path(name))
        shutil.rmtree(self.path("state"))

    # ------------------------------------------------------------------------------------------------ a program without MPI

    def check_slow(self, out, err):
        self.assertEqual(out, "".join(f"printed {i}\n" for i in range(60)), err)
        self.assertEqual(self.read("file").decode(), "".join(f"line {i}\n" for i in range(60)))

    def test_a_lost_team_comes_back_and_outlives_the_other_one(self):
        for first in (0, 1):
            with self.subTest(first=first):
                self.start(PROGRAM, "slow")
                self.processes(1, 1)
                self.kill(first, 0, 1)
                self.caught_up(2)
                self.kill(1 - first, 0, 1)
                out, err = self.finish()
                self.check_slow(out, err)
                self.assertIn("and the command is started again as team 2", err)
                self.assertIn(f"team 2 has caught up; team {1 - first} and team 2 go on", err)
                status = self.holdfast("status", "--job", expect=1).stdout
                self.assertIn("2 of 2 teams lost, 1 relaunched", status)
                self.assertIn("team 2, started again, caught up", status)
                self.assertEqual([name for name in os.listdir(self.path("state/holdfast/jobs")) if name.endswith(".log")], [], "its log goes with it")
                self.clean("file")

    def test_the_other_one_may_be_lost_before_it_has_caught_up(self):
        for pause in (0, 0.2, 0.5):
            with self.subTest(pause=pause):
                self.start(PROGRAM, "slow")
                self.processes(1, 1)
                self.wrote_lines(3)
                self.kill(0, 0, 1)
                time.sleep(pause)
                self.kill(1, 0, 1)
                self.check_slow(*self.finish())
                self.clean("file")

    def test_losses_at_random_times(self):
        seed = int(os.environ.get("HOLDFAST_SEED", "0")) or random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        for _ in range(ROUNDS * 2):
            with self.subTest(seed=seed):
                self.start(PROGRAM, "slow", relaunch=3)
                self.processes(1, 1)
                for _ in range(3):
                    time.sleep(rng.random())
                    self.lose_one_of_several(rng, 1)
                self.check_slow(*self.finish())
                self.clean("file")

    def test_teams_come_back_as_often_as_is_said(self):
        losses = 10
        text = "import os, time\nfile, n = open('file', 'w'), 0\nwhile not os.path.exists('enough'):\n  print('line', n, file=file, flush=True)\n  n += 1\n  time.sleep(0.02)\n"
        self.start("python3", "-c", text, relaunch=losses)
        self.processes(1, 1)
        for team in range(losses):
            self.kill(team, 0, 1)
            self.caught_up(team + 2)
        with open(self.path("enough"), "w", encoding="utf-8"):
            pass
        _, err = self.finish()
        lines = self.read("file").decode().splitlines()
        self.assertEqual(lines, [f"line {i}" for i in range(len(lines))], err)
        self.assertIn(f"{losses} relaunched", self.holdfast("status", "--job", expect=1).stdout)

    def test_clocks_and_random_numbers_are_those_of_then(self):
        self.start(PROGRAM, "slowclocks")
        self.processes(1, 1)
        self.wrote_lines(3)
        self.kill(0, 0, 1)
        self.caught_up(2)
        self.kill(1, 0, 1)
        self.finish()
        lines = self.read("file").decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines], [str(i) for i in range(len(lines))])
        times = [int(line.split()[1]) for line in lines]
        self.assertEqual(times, sorted(times))
        drawn = [line.split()[2:] for line in lines]
        self.assertEqual([before for _, before in drawn[1:]], [one for one, _ in drawn[:-1]])

    def test_what_was_asked_about_files_is_answered_as_then(self):
        self.start(PROGRAM, "slowasks")
        self.processes(1, 1)
        self.wrote_lines(3)
        self.kill(0, 0, 1)
        self.caught_up(2)
        self.kill(1, 0, 1)
        self.finish()
        lines = [[int(word) for word in line.split()] for line in self.read("file").decode().splitlines()]
        self.assertEqual([line[:2] for line in lines], [[i, -1] for i in range(60)])
        self.assertEqual([line[2] - lines[0][2] for line in lines], list(range(60)), "entries of the directory")
        self.assertEqual([line[4] for line in lines[1:]], [line[3] for line in lines[:-1]])

    def test_a_file_that_was_changed_since_it_was_read_is_named(self):
        with open(self.path("input"), "w") as file:
            file.write("one")
        self.start(PROGRAM, "slowreads", "input")
        self.processes(1, 1)
        self.wrote_lines(1)
        with open(self.path("input"), "w") as file:
            file.write("another")
        self.kill(0, 0, 1)
        self.hear("cannot catch up")
        _, err = self.finish()
        self.assertIn(f"cannot catch up: {self.path('input')} has been changed since it was read", err)
        self.assertEqual(self.read("file"), b"one\n" + b"goes on\n" * 40)

    def test_files_that_have_other_names_by_now_and_were_changed_since_they_were_read(self):
        self.start(PROGRAM, "slowrenames")
        self.processes(1, 1)
        self.until("a second state is written", lambda _: os.path.exists(self.path("file")) and b"another" in self.read("file"))
        self.kill(0, 0, 1)
        self.caught_up(2)
        self.kill(1, 0, 1)
        out, err = self.finish()
        self.assertEqual(out, "".join(f"state {i} after {'another' if i else 'nothing'}\n" for i in range(60)), err)
        self.assertEqual(self.read("file").decode(), "state 59 after another")

    def test_a_rehearsal_compares_one_that_comes_back_with_what_was_done_then(self):
        self.start("--rehearse", PROGRAM, "slowdiffer")
        first = self.processes(1, 1)
        self.wrote_lines(3)
        self.kill(0, 0, 1)
        self.caught_up(2)
        processes = [*self.processes(0, 1).values(), *first.values(), *self.processes(2, 1).values()]
        self.until("the other team has written", lambda _: f"{processes[1]:09d}" in self.read("file").decode())
        self.kill(1, 0, 1)
        _, err = self.finish()
        lines = self.read("file").decode().split()[1::2]
        self.assertEqual(len(lines), 60)
        self.assertEqual(list(dict.fromkeys(map(int, lines))), processes, "each team's lines, one after the other")
        self.assertRegex(err, "a write of 18 bytes at [0-9]+; the rehearsal goes on with what team 1 does")
        self.assertIn("team 2 has caught up", err)
        counted = int(err.split("the replicas have differed at ")[1].split()[0])
        self.assertGreaterEqual(counted, lines.index(f"{processes[2]:09d}"), "with what stands in the log, too")

    def test_a_file_that_was_changed_since_much_of_it_was_read_is_named(self):
        self.start("--", PROGRAM, "slowblocks", relaunch=2)
        self.processes(1, 1)
        self.until("a second block is written", lambda _: os.path.exists(self.path("file")) and self.read("file")[:1] not in (b"", b"a"))
        self.kill(0, 0, 1)
        self.hear("cannot catch up")
        _, err = self.finish()
        self.assertIn(f"rank 0 of team 2 cannot catch up: {self.path('file')} has been changed since it was read", err)
        self.assertIn("team 1 goes on alone", err)
        self.assertNotIn("team 3", err)
        self.assertEqual(self.read("file"), b"h" * 100000)

    def test_what_was_read_is_kept_whatever_was_asked_for(self):
        self.start("--", PROGRAM, "slowgreedy")
        self.processes(1, 1)
        self.until("a second block is written", lambda _: os.path.exists(self.path("file")) and self.read("file")[:1] not in (b"", b"a"))
        self.kill(0, 0, 1)
        self.caught_up(2)
        self.kill(1, 0, 1)
        _, err = self.finish()
        self.assertIn("team 2 has caught up", err)
        self.assertEqual(self.read("file"), b"h" * 800)

    def test_what_no_log_has_is_named(self):
        for how, what in (("map", f"it maps {self.path('file')} to write"), ("command", "it starts 'exit 0'"), ("fork", "it starts a process, and what that writes")):
            with self.subTest(how):
                self.start("--", PROGRAM, "slowwrites", how)
                self.processes(1, 1)
                self.until("it writes again", lambda _: os.path.exists(self.path("file")) and self.read("file") == b"again\n")
                self.kill(0, 0, 1)
                self.hear("cannot catch up")
                _, err = self.finish()
                self.assertIn(f"rank 0 of team 2 cannot catch up: {what}", err)
                self.assertIn("team 1 goes on alone", err)
                self.clean("file")

    def test_of_three_all_that_were_there_at_first_may_be_lost(self):
        self.start(PROGRAM, "slow", replicas=3, relaunch=2)
        self.processes(2, 1)
        self.kill(0, 0, 1)
        self.caught_up(3)
        self.kill(1, 0, 1)
        self.processes(4, 1)
        self.kill(2, 0, 1)
        self.check_slow(*self.finish())

    def test_what_is_not_sound_is_refused(self):
        for options, word in ((["--relaunch", "1"], "--replicas"), (["--replicas", "2", "--relaunch-log", "10"], "--relaunch-log")):
            self.assert_one_sentence(self.holdfast("run", *options, "touch", "started", expect=2).stderr, word)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_standard_input_is_read_again(self):
        lines = [f"line {i}\n" for i in range(500)]
        self.start(PROGRAM, "echo", stdin=subprocess.PIPE)
        self.job.stdin.write("".join(lines[:400]))
        self.job.stdin.flush()
        self.processes(1, 1)
        self.kill(0, 0, 1)
        self.processes(2, 1)
        self.kill(1, 0, 1)
        self.job.stdin.write("".join(lines[400:]))
        out, err = self.finish()
        self.assertEqual(out, "".join(f"{i}: {line}" for i, line in enumerate(lines, 1)), err)

    def test_a_program_that_always_dies_is_said_to_be_at_fault(self):
        self.start(PROGRAM, "crash")
        _, err = self.finish(expect=121)
        self.assertIn("rank 0 has died at the same place in every team", err)

    def test_a_log_without_room_ends_it_with_one_warning(self):
        self.start("--relaunch-log", "1KiB", PROGRAM, "slow")
        self.processes(1, 1)
        self.hear("has no more room")
        self.kill(0, 0, 1)
        out, err = self.finish()
        self.check_slow(out, err)
        self.assertEqual(err.count("has no more room; a lost team is not started again any more"), 1, err)
        self.assertIn("team 1 goes on alone", err)

    def test_a_full_log_directory_ends_it_with_one_warning(self):
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespace can be made")
        os.makedirs(self.path("state/holdfast/jobs"))
        mounts = f"mount -t tmpfs -o size=64k none '{self.path('state/holdfast/jobs')}' && exec \"$@\""
        self.begin("unshare", "--mount", "sh", "-c", mounts, "sh", self.binary, "run", "--replicas", "2", "--relaunch", "1", PROGRAM, "slow")
        out, err = self.finish()
        self.check_slow(out, err)
        self.assertRegex(err, r"the log of the job cannot be made: \S+: No space left on device; a lost team is not started again any more")
        self.assertEqual(err.count("not started again"), 1, err)

    # ------------------------------------------------------------------------------------------------ MPI

    def heat(self, name, launcher):
        subprocess.run([f"mpicc.{name}", "-O2", HEAT, "-o", self.path("heat")], check=True)
        subprocess.run([*launcher, "./heat", "native", *SHAPE], cwd=self.dir, env=self.env, check=True, capture_output=True)

    def test_a_lost_team_of_ranks_comes_back_and_outlives_the_other_one(self):
        for name, launcher in self.launchers():
            self.heat(name, launcher)
            for first, rank in ((0, 1), (1, 0)):
                with self.subTest(name, first=first, rank=rank):
                    self.start(*launcher, "./heat", "out", *SHAPE, "--pause-ms", "100")
                    self.processes(1, 2)
                    self.begun("out")
                    self.kill(first, rank, 2)
                    self.caught_up(2)
                    self.kill(1 - first, 1 - rank, 2)
                    out, err = self.finish()
                    self.assertEqual(out, "heat: 41 frames in out\n", err)
                    self.assertEqual(self.read("out"), self.read("native"))
                    self.clean("out")

    def launcher_of(self, team):
        """The child of `holdfast run` that a rank comes from."""
        process = self.processes(team, 2)[0]
        while (parent := self.parent_of(process)) != self.job.pid:
            process = parent
        return process

    @staticmethod
    def parent_of(process):
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return int(file.read().rpartition(")")[2].split()[1])

    def test_a_launcher_that_is_killed_is_a_lost_team(self):
        for name, launcher in debian_mpis():
            command = [*launcher, "-n", "2"]
            self.heat(name, command)
            for team in (0, 1):
                with self.subTest(name, team=team):
                    self.start(*command, "./heat", "out", *SHAPE, "--pause-ms", "100")
                    self.processes(1, 2)
                    self.begun("out")
                    os.kill(self.launcher_of(team), signal.SIGKILL)
                    self.caught_up(2)
                    out, err = self.finish()
                    self.assertEqual(out, "heat: 41 frames in out\n", err)
                    self.assertEqual(self.read("out"), self.read("native"))
                    self.assertRegex(err, rf"(the launcher|rank \d) of team {team} .*has died")
                    self.assertIn("1 of 2 teams lost, 1 relaunched", self.holdfast("status", "--job", expect=1).stdout)
                    self.clean("out")

    def newest_mpis(self):
        """As their wheels bring them into the build, with the example that was built for them."""
        build = os.path.dirname(os.path.dirname(os.path.abspath(BINARY)))
        for name, launcher in (("openmpi5", ["mpi/openmpi/bin/mpirun", "--map-by", ":OVERSUBSCRIBE"]), ("mpich5", ["mpi/mpich/bin/mpiexec"])):
            program = os.path.join(build, "examples", name, "heat")
            if os.path.exists(program) and os.path.exists(os.path.join(build, launcher[0])):
                yield name, [os.path.join(build, launcher[0]), *launcher[1:], "-n", "2", program]

    def test_the_newest_mpis_come_back_and_join_what_was_written_apart(self):
        shape = ["300", "200", "40", "2"]  # whose writes are worth being shared out
        self.env |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for name, heat in self.newest_mpis():
            with self.subTest(name):
                subprocess.run([*heat, "native", *shape], cwd=self.dir, env=self.env, check=True, capture_output=True)
                self.start("--write-protocol", "distributed-separate", *heat, "out", *shape, "--pause-ms", "250")  # they take seconds to start where much else runs
                self.processes(1, 2)
                self.begun("out")
                self.kill(0, 1, 2)
                self.caught_up(2)
                self.kill(1, 0, 2)
                out, err = self.finish()
                self.assertEqual(out, "heat: 21 frames in out\n", err)
                self.assertEqual(self.read("out"), self.read("native"))
                self.assertEqual([left for left in os.listdir(self.dir) if "holdfast-parts" in left], [])
                self.clean("out", "native")

    def test_a_team_comes_back_to_a_protected_file(self):
        """What the lost ones have not synced it writes once more."""
        targets = [f"t{i}" for i in range(6)]
        for target in targets:
            os.makedirs(self.path(target))
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.heat(name, launcher)
                self.start("--protect", "rs:4+2", "--targets", ",".join(targets), *launcher, "./heat", "out", *SHAPE, "--pause-ms", "100")
                self.processes(1, 2)
                time.sleep(0.5)
                self.kill(0, 1, 2)
                self.caught_up(2)
                self.kill(1, 0, 2)
                self.finish()
                self.holdfast("verify", self.path("out"))
                self.holdfast("export", "--force", self.path("out"), self.path("plain"))
                self.assertEqual(self.read("plain"), self.read("native"))
                self.holdfast("rm", self.path("out"))
                shutil.rmtree(self.path("state"))

    def test_who_a_message_came_from_is_as_it_was_then(self):
        for name, launcher in self.launchers(3):
            program = self.path(f"messages.{name}")
            subprocess.run([f"mpicc.{name}", "-O1", MESSAGES, "-o", program], check=True)
            for how in ("receive", "probe", "request"):
                with self.subTest(name, how=how):
                    self.start(*launcher, program, how, "out", "160", "20")
                    self.processes(1, 3)
                    self.begun("out.0")
                    time.sleep(0.3)
                    self.kill(0, 0, 3)
                    self.caught_up(2)
                    self.kill(1, 1, 3)
                    out, err = self.finish()
                    self.assertRegex(out, r"^done [0-9]+\n$", err)
                    self.assertEqual(self.read("out.0").decode().splitlines()[-1], "end")
                    os.unlink(self.path("out.0"))
                    shutil.rmtree(self.path("state"))

    def test_losses_of_ranks_at_random_times(self):
        seed = int(os.environ.get("HOLDFAST_SEED", "0")) or random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        for name, launcher in self.launchers():
            self.heat(name, launcher)
            for _ in range(ROUNDS):
                with self.subTest(name, seed=seed):
                    self.start(*launcher, "./heat", "out", *SHAPE, "--pause-ms", "60", relaunch=2)
                    self.processes(1, 2)
                    for _ in range(2):
                        time.sleep(rng.random() * 1.2)
                        self.lose_one_of_several(rng, 2)
                    out, err = self.finish()
                    self.assertEqual(out, "heat: 41 frames in out\n", err)
                    self.assertEqual(self.read("out"), self.read("native"))
                    self.clean("out")


if __name__ == "__main__":
    unittest.main()
