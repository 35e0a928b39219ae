"""holdfast run --replicas: a job that is there several times, on disk and on the terminal once."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from command import interrupted_with_its_test
from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
SEEDS = os.environ.get("HOLDFAST_SEEDS", "")
LOADS = os.path.join(os.path.dirname(__file__), "loads.c")
OTHER_NODE = os.path.join(os.path.dirname(__file__), "other_node.c")


class Replicas(ReplicatedTest):
    # ------------------------------------------------------------------------------------------------ programs without MPI

    def test_clocks_and_random_numbers_are_the_same_in_all(self):
        self.replicas(PROGRAM, "clocks")
        self.assertEqual(len(self.read("file").splitlines()), 200)

    def test_clocks_that_are_seldom_asked_are_the_same_in_all(self):
        self.replicas(PROGRAM, "otherclocks")
        self.assertEqual(len(self.read("file").splitlines()), 15)

    def test_a_thread_that_asks_the_time_until_it_is_ended_has_its_own_where_that_is_said(self):
        """How often it asks is another number in each replica."""
        with open(self.path("watches.py"), "w", encoding="utf-8") as file:
            file.write("import threading, time\nends = threading.Event()\ndef watch():\n    while not ends.is_set():\n        time.monotonic()\n        time.sleep(0.001)\n"
                       "watcher = threading.Thread(target=watch)\nwatcher.start()\ntime.sleep(0.3)\nends.set()\nwatcher.join()\nopen('file', 'w').write('done')\n")
        self.replicas("--clock", "own", sys.executable, "watches.py")
        self.assertEqual(self.read("file"), "done")

    def test_each_replica_sees_its_own_clocks_where_that_is_said(self):
        self.replicas("--clock", "strict", PROGRAM, "clocks")
        os.unlink(self.path("file"))
        self.assertIn("differ", self.replicas("--clock", "own", PROGRAM, "nanoseconds", expect=120).stderr)
        self.env["HOLDFAST_CLOCK"] = "own"
        os.unlink(self.path("file"))
        self.assertIn("differ", self.replicas(PROGRAM, "nanoseconds", expect=120).stderr)
        with open(self.path("holdfast.toml"), "w", encoding="utf-8") as file:
            file.write('clock = "strict"\n')
        del self.env["HOLDFAST_CLOCK"]
        os.unlink(self.path("file"))
        self.replicas("--config", "holdfast.toml", PROGRAM, "clocks")

    def test_three_replicas_are_one_as_well(self):
        self.replicas(PROGRAM, "clocks", replicas=3)
        self.assertEqual(len(self.read("file").splitlines()), 200)

    def test_input_goes_to_all_and_output_comes_once(self):
        lines = [f"line {i}\n" for i in range(2000)]
        done = self.replicas(PROGRAM, "echo", text="".join(lines))
        self.assertEqual(done.stdout, "".join(f"{i}: {line}" for i, line in enumerate(lines, 1)))

    def run_into(self, output, *command):
        return subprocess.Popen([self.binary, "run", "--replicas", "2", *command], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.PIPE, text=True, preexec_fn=interrupted_with_its_test)

    def test_output_that_does_not_wait_for_its_reader_is_whole(self):
        """As some programs leave a terminal or a pipe behind (O_NONBLOCK)."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        job = self.run_into(writer, "seq", "60000")
        os.close(writer)
        time.sleep(1.5)
        with open(reader, encoding="utf-8") as file:
            self.assertEqual(file.read(), "".join(f"{i}\n" for i in range(1, 60001)))
        self.assertEqual((job.communicate(timeout=60), job.returncode)[1], 0)

    def test_output_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w") as full:
            job = self.run_into(full, "seq", "3")
        _, errors = job.communicate(timeout=60)
        self.assertEqual((job.returncode, errors.count("standard output cannot be written")), (1, 1), errors)

    def test_a_program_ends_when_nobody_reads_its_output(self):
        job = self.run_into(subprocess.PIPE, "yes")
        self.assertEqual(job.stdout.read(4), "y\ny\n")
        job.stdout.close()
        self.assertEqual(job.wait(timeout=60), 128 + signal.SIGPIPE)
        self.assertNotIn("has died", job.stderr.read())
        job.stderr.close()

    def test_output_that_is_gathered_has_each_line_once(self):
        done = self.replicas("--gather-output", "all", PROGRAM, "echo", text="one\ntwo\n")
        self.assertEqual(done.stdout, "")
        lines = [re.fullmatch(r"\[(\S+) rank 0 out\] (.*)", line) for line in self.read("all").splitlines()]
        self.assertEqual([line and line.group(2) for line in lines], ["1: one", "2: two"])

    def test_a_profile_counts_the_calls_of_all(self):
        self.replicas("--log", "job.log", PROGRAM, "append", "file")
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("job.log")], ["job.log"])
        self.assertRegex(self.holdfast("report", "job.log").stdout, r"170 B read")

    def test_calls_that_change_names_are_made_once(self):
        native = subprocess.run([PROGRAM, "names"], cwd=self.dir, capture_output=True, text=True, check=True)
        shutil.rmtree(self.path("made"))
        done = self.replicas(PROGRAM, "names")
        self.assertEqual(done.stdout, native.stdout)
        self.assertEqual(self.read("made/two"), "cont")

    def test_a_file_whose_mode_forbids_to_write_is_written_by_its_maker(self):
        """As a user whom modes hold back."""
        user = []
        if os.geteuid() == 0:
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            os.chmod(self.dir, 0o777)
            if subprocess.run([*user, self.binary, "--version"], cwd=self.dir, capture_output=True, check=False).returncode != 0:
                self.skipTest("another user than root cannot run what was built here")
        native = subprocess.run([*user, PROGRAM, "readonly", "native"], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True)
        done = subprocess.run([*user, self.binary, "run", "--replicas", "3", PROGRAM, "readonly"], cwd=self.dir, env=self.env, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, native.stdout), done.stderr)
        self.assertEqual(self.read("file"), "content\n")
        self.assertIn("mode 444\n", done.stdout)

    def test_temporary_names_and_links_are_made_once(self):
        native = subprocess.run([PROGRAM, "temporary"], cwd=self.dir, capture_output=True, text=True, check=True)
        for name in ("first", "second", "third", "fourth"):
            os.unlink(self.path(name))
        done = self.replicas(PROGRAM, "temporary")
        self.assertEqual(done.stdout.splitlines()[:-1], native.stdout.splitlines()[:-1])
        first, second = done.stdout.splitlines()[-1].split()
        self.assertEqual([self.read(name) for name in ("first", "second", "third", "fourth")], [first, second, first, first])
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name.startswith("made")), [])

    def world(self):
        os.mkdir(self.path("many"))
        for i in range(30):
            open(self.path(f"many/m{i * 7 % 30}"), "w").close()
        with open(self.path("seen"), "w") as seen:
            seen.write("content")

    def test_what_is_asked_about_files_has_one_answer(self):
        """The replicas ask one after another, and the world changes in between."""
        self.world()
        self.replicas(PROGRAM, "asks", replicas=3)
        lines = self.read("file").splitlines()
        entries = [line.split()[1] for line in lines if line.startswith("entry ")]
        self.assertTrue({".", "..", *(f"m{i}" for i in range(30))} <= set(entries), entries)
        self.assertIn(f"the second is {entries[1]}", lines)
        for what in ("access -1", "lstat -1", "open 1", "fopen 1", "opendir"):
            self.assertIn(f"{what} No such file or directory", lines)
        self.assertEqual(sum(line.startswith("glob many/m") for line in lines), 32)
        walk = [line for line in lines if line.startswith("walk ")]
        self.assertEqual((len(walk), walk[-1]), (34, "walk many 5 0 0"))
        self.assertEqual(sum(bool(re.fullmatch(r"many/m\w+ has [04] bytes", line)) for line in lines), 34)
        self.assertIn("0 walks have failed", lines)

    def test_how_much_room_there_is_has_one_answer(self):
        self.replicas(PROGRAM, "space")
        self.assertEqual([line.split()[:2] for line in self.read("file").splitlines()], [[name, "0"] for name in ("statvfs", "fstatvfs", "statfs", "fstatfs")])

    def test_a_temporary_file_with_the_processs_number_is_each_replicas_own(self):
        self.replicas(PROGRAM, "own", replicas=3)
        self.assertEqual(self.read("file"), "-1 7 scratch -1\n")

    def test_devices_of_random_numbers_give_all_the_same(self):
        self.replicas(PROGRAM, "devices")
        self.assertRegex(self.read("file"), r"\A[0-9a-f]{632} [0-9a-f]{4} \d+\n\Z")
        self.assertGreater(len(set(self.read("file")[:600])), 10)

    def test_the_cxx_librarys_random_numbers_and_listings_are_the_same_in_all(self):
        self.world()
        self.replicas(SEEDS, "file")
        self.assertEqual(len(self.read("file").splitlines()), 36)

    def test_pythons_sets_have_one_order_in_all(self):
        for name, launcher in self.launchers(1):
            with self.subTest(name):
                script = "import os; print(hash('a'), file=open('team' + os.environ['HOLDFAST_REPLICA'][:1], 'w'))"
                self.replicas(*launcher, sys.executable, "-c", script)
                self.assertEqual(self.read("team0"), self.read("team1"))

    # What a leader allocates and what a follower allocates differ; neither moves what the program allocates.
    def test_memory_lies_at_the_same_places_in_all(self):
        for _ in range(3):
            self.replicas(PROGRAM, "memory", replicas=3)
        self.assertRegex(self.read("file"), r"\A[0-9a-f]+\n\Z")

    def test_attributes_are_set_once(self):
        native = subprocess.run([PROGRAM, "attributes", "native"], cwd=self.dir, capture_output=True, text=True, check=True)
        for name in ("native", "made/within"):
            os.unlink(self.path(name))
        for name in [entry for entry in os.listdir(self.dir) if os.path.isdir(self.path(entry))]:
            os.rmdir(self.path(name))
        done = self.replicas(PROGRAM, "attributes")
        self.assertEqual(done.stdout, native.stdout)
        state = os.stat(self.path("file"))
        self.assertEqual((state.st_mode & 0o7777, state.st_atime, state.st_mtime), (0o440, 1, 2))
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name.startswith(("made", "free"))), ["free", "made"])
        self.assertEqual(os.listdir(self.path("made")), ["within"])

    def test_appended_lines_are_there_once(self):
        native = subprocess.run([PROGRAM, "append", "native"], cwd=self.dir, capture_output=True, text=True, check=True)
        done = self.replicas(PROGRAM, "append", "file")
        self.assertEqual((done.stdout, self.read("file")), (native.stdout, self.read("native")))

    def test_the_exit_status_is_the_programs(self):
        self.replicas(PROGRAM, "exit", "7", expect=7)

    def test_options_of_the_program_are_its_own(self):
        self.replicas(PROGRAM, "exit", "7", "-f", "-host", expect=7)
        for _, launcher in self.launchers(1):
            # MPICH's launcher dies of SIGPIPE now and then, natively too, where its ranks end as soon as they begin.
            self.replicas(*launcher, "sh", "-c", "sleep 0.5", "-f")
            done = self.replicas(*launcher, "-hostfile", "nowhere", "sh", "-c", "exit 0", expect=2)
            self.assert_one_sentence(done.stderr, "'-hostfile nowhere' names no host")

    def test_a_hub_that_does_not_answer_is_named(self):
        """As from a node that it cannot be reached from: its port takes connections, and nobody is heard there."""
        library = os.path.join(os.path.dirname(self.binary), "../lib/libholdfast-posix.so")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            orders = f"1 2 1 1 3000 {'0' * 64} 0 0 0 0 0 0 0 - tcp 127.0.0.1 {port};\t"
            begun = time.monotonic()
            done = subprocess.run([PROGRAM, "exit", "0"], env={**self.env, "HOLDFAST_REPLICA": orders, "HOLDFAST_RANK": "0", "LD_PRELOAD": library}, timeout=60,
                                  capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assert_one_sentence(done.stderr, f"does not reach the process that joins the teams: nobody answers (from 127.0.0.1 to 127.0.0.1 port {port})")
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_short_deadline_is_no_loss(self):
        self.env["HOLDFAST_DEADLINE"] = "500ms"
        self.assertNotIn("deadline", self.replicas(PROGRAM, "slow").stderr)

    def test_replicas_that_differ_are_stopped_before_it_is_written(self):
        done = self.replicas(PROGRAM, "differ", expect=120)
        self.assertEqual(self.read("file"), "the same in all\n")
        for word in ("rank 0", self.path("file"), "a write of", "at 16"):
            self.assertIn(word, done.stderr)

    def test_replicas_that_wait_for_each_other_at_two_places_are_stopped(self):
        leader = f"{self.path('one')}, a write of 10 bytes at 9"
        for how, other in (("file", f"{self.path('two')}, a write of 10 bytes at 0"), ("asks", "a question about the time")):
            done = self.replicas(PROGRAM, "parts_company", how, expect=120)
            self.assertIn(f"the replicas of rank 0 differ: {other} (team 0 waits at {leader})", done.stderr)
            self.assertEqual((self.read("one"), self.read("two")), ("the same\n", ""))
        done = self.replicas(PROGRAM, "parts_company", "file", replicas=3)
        self.assertIn("rank 0 of team 1 differs from the others: ", done.stderr)
        self.assertEqual((self.read("one"), self.read("two")), ("the same\nelsewhere\n", ""))
        done = self.replicas("--rehearse", PROGRAM, "parts_company", "asks")
        self.assertIn("rank 0 of team 1 makes another call than team 0", done.stderr)

    def test_a_small_number_in_a_name_is_not_taken_for_a_process(self):
        """As in a container, where replicas may be processes 6 and 7."""
        container = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*container, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs namespaces of its own")
        script = "for ((step = 1; step <= 40; step++)); do echo $step >> out.$step; done; echo $$ > process"
        done = subprocess.run([*container, self.binary, "run", "--replicas", "2", "/bin/bash", "-c", script], cwd=self.dir, env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 120, done.stderr)  # they have got that far
        self.assertIn(f"the replicas of rank 0 differ: {self.path('process')}", done.stderr)
        self.assertEqual([self.read(f"out.{step}") for step in range(1, 41)], [f"{step}\n" for step in range(1, 41)])

    def test_a_thread_that_computes_before_its_first_call_is_waited_for(self):
        self.replicas(PROGRAM, "late_threads", "files")
        self.assertEqual((self.read("0"), self.read("1")), ("late\n", "late\n"))

    def test_whose_threads_have_ended_stands_as_well(self):
        """What a shell redirects is moved by a thread for each redirection. Those have ended."""
        script = ('for ((step = 1; step <= 40; step++)); do echo $step > out.$step; done; '
                  'case " $(tr "\\0" " " < /proc/$$/environ) " in *" HOLDFAST_REPLICA=1 "*) echo > here;; *) echo > there;; esac')
        done = self.replicas("/bin/bash", "-c", script, expect=120)
        self.assertIn(f"the replicas of rank 0 differ: {self.path('here')}, its open (team 0 waits at {self.path('there')}, its open)", done.stderr)

    def test_one_that_was_told_what_it_never_asks_for_is_stopped_too(self):
        script = ('case " $(tr "\\0" " " < /proc/$$/environ) " in *" HOLDFAST_REPLICA=1 "*) [ -e another ];; *) [ -e one ]; [ -e two ]; echo > three;; esac')
        done = self.replicas("/bin/bash", "-c", script, expect=120)
        self.assertIn("the replicas of rank 0 differ: a question about a file (team 0 waits at", done.stderr)

    def test_own_clocks_that_fill_other_buffers_stop_the_job(self):
        self.replicas(PROGRAM, "fills_by_time")
        self.assertIn("the replicas of rank 0 differ: ", self.replicas("--clock", "own", PROGRAM, "fills_by_time", expect=120).stderr)

    def test_threads_that_read_one_file_do_not_disturb_each_other(self):
        native = subprocess.run([PROGRAM, "readers", "input"], cwd=self.dir, capture_output=True, text=True, check=True)
        for options in ([], ["--compare", "messages"]):
            done = self.replicas(*options, PROGRAM, "readers", "input", replicas=3)
            self.assertEqual(done.stdout, native.stdout)

    def test_threads_that_write_one_file_in_another_order_are_told_so(self):
        done = self.replicas(PROGRAM, "writers", "file", expect=120)
        self.assertIn("several threads use this file, and which of them comes first may differ between replicas: let one thread make all calls", done.stderr)
        self.assertNotIn("several threads", self.replicas(PROGRAM, "differ", "other", expect=120).stderr)

    def test_a_rehearsal_tells_of_differences_and_goes_on(self):
        for replicas in (2, 3):
            done = self.replicas("--rehearse", PROGRAM, "differ_often", replicas=replicas, expect=7)
            lines = self.read("file").splitlines()
            self.assertEqual((len(lines), len(set(lines))), (3, 1), "they are one replica's")
            self.assertEqual(done.stderr.count("the replicas of rank 0 differ: " + self.path("file") + ", a write of 18 bytes"), 3, done.stderr)
            self.assertIn("the rehearsal is over: the replicas have differed at 3 calls", done.stderr)
            self.assertIn("calls at which the replicas have differed: 3", self.holdfast("status", "--job").stdout)
        self.assertIn("have not differed", self.replicas("--rehearse", PROGRAM, "clocks").stderr)

    def test_a_rehearsal_goes_on_without_a_replica_that_makes_other_calls(self):
        done = self.replicas("--rehearse", PROGRAM, "differ_in_length")
        self.assertIn("rank 0 of team 1 makes another call than team 0; team 0 goes on alone", done.stderr)
        self.assertIn("the replicas have differed at 1 call\n", done.stderr)
        self.assertIn(self.read("file"), ("first\nend\n", "not first\nend\n"))

    def test_a_program_that_always_dies_is_said_to_be_at_fault(self):
        done = self.replicas(PROGRAM, "crash", expect=121)
        self.assertRegex(done.stderr, "rank 0 has died at the same place in every team .*, which looks like a fault of the program itself")

    def test_two_losses_at_different_places_are_not_the_programs_fault(self):
        job = self.start(PROGRAM, "slowclocks", rests=True)
        for process in [self.process_of(team, 0) for team in (0, 1)]:
            lines = self.lines()
            while self.lines() < lines + 2 and job.poll() is None:
                time.sleep(0.02)
            os.kill(process, signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 121, err)
        self.assertNotIn("fault of the program", err)

    def lines(self):
        return self.read("file").count("\n") if os.path.exists(self.path("file")) else 0

    def killed(self, team, replicas=2, options=(), content=None, by=signal.SIGKILL):
        job = self.start(*options, PROGRAM, "slow", replicas=replicas, rests=True)
        process = self.process_of(team, 0)
        time.sleep(0.7)
        self.strike(process, by)
        out, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(out, "".join(f"printed {i}\n" for i in range(60)))
        self.assertEqual((content or self.read)("file"), "".join(f"line {i}\n" for i in range(60)))
        self.assertIn(f"rank 0 of team {team} ", err)
        if by == signal.SIGKILL or not options:
            self.assertIn(f"rank 0 of team {team} (process {process}", err)
        return err

    def test_a_leader_that_is_killed_is_replaced(self):
        self.assertIn("team 1 goes on alone, and nothing is compared any more", self.killed(0))
        status = self.holdfast("status", "--job", expect=1).stdout
        self.assertIn("ended with 0", status)
        self.assertIn("1 of 2 teams lost", status)

    def test_a_replica_that_another_signal_ends_makes_no_call_any_more(self):
        for by, team, replicas in ((signal.SIGSEGV, 0, 2), (signal.SIGTERM, 1, 2), (signal.SIGABRT, 0, 3)):
            with self.subTest(by=by):
                self.killed(team, replicas, by=by)
        self.assertIn("could not do what its twins could: signal 11 has ended it", self.killed(0, options=("--buffer", "2x4096"), by=signal.SIGSEGV))

    def test_what_was_written_before_all_have_crashed_is_there(self):
        for options in ((), ("--buffer", "2x4096")):
            done = self.replicas(*options, PROGRAM, "crash_in_file", expect=121)
            self.assertEqual(self.read("file"), "written\n")
            self.assertIn("which looks like a fault of the program itself", done.stderr)

    def test_standard_output_may_be_led_into_a_file(self):
        self.replicas(PROGRAM, "reopens")
        text = ""
        for i in range(50000):
            text += f"line {i}\n"
            text += f"{len(text)} bytes\n" if i % 10000 == 0 else ""
        self.assertEqual(self.read("file"), text)
        self.replicas("bash", "-c", "exec > log; for i in {1..2000}; do echo line $i; done", replicas=3)
        self.assertEqual(self.read("log"), "".join(f"line {i}\n" for i in range(1, 2001)))

    def without_the_leader(self, *words):
        """Of a program that asks, waits until the leader is lost, and asks again."""
        job = self.start(PROGRAM, *words)
        leader = self.process_of(0, 0)
        while not os.path.exists(self.path("file")) or not self.read("file"):
            self.assertIsNone(job.poll(), "it has ended before")
            time.sleep(0.02)
        os.kill(leader, signal.SIGKILL)
        open(self.path("go"), "wb").close()
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        return self.read("file")

    def test_processor_time_goes_on_behind_a_leader_that_had_computed_more(self):
        self.assertEqual(self.without_the_leader("processor"), "asked\n" + 4 * "on\n")

    def test_time_since_a_nodes_start_goes_on_on_a_node_that_started_earlier(self):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.path("other_node.so"), OTHER_NODE], check=True)
        self.env["LD_PRELOAD"] = ":".join(filter(None, [self.env.get("LD_PRELOAD"), self.path("other_node.so")]))
        self.assertEqual(self.without_the_leader("uptime"), "asked\non\n")
        os.unlink(self.path("file"))
        os.unlink(self.path("go"))
        shutil.rmtree(self.path("state"))
        self.assertEqual(self.without_the_leader("deadlines").splitlines(),
                         ["asked", *(f"{how} in time" for how in ("condition", "attribute", "semaphore", "descriptor", "timer")), "ticks on"])

    def test_timers_that_are_gone_are_forgotten(self):
        self.assertEqual(self.replicas(PROGRAM, "timers").stdout, "forgotten\n")

    def test_a_library_that_asks_for_the_time_while_it_is_loaded_gets_it(self):
        """The loader's lock is the program's then, and none of Holdfast's threads may wait for it."""
        subprocess.run(["cc", "-O1", "-o", self.path("loads"), LOADS, "-ldl"], check=True)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-DLIBRARY", "-o", self.path("library.so"), LOADS], check=True)
        done = self.replicas(self.path("loads"), "./library.so", "file")
        self.assertNotIn("has not been heard of", done.stderr)
        self.assertGreater(int(self.read("file")), 0)

    def test_a_follower_that_hangs_is_ended_and_its_leader_is_not(self):
        """The leader has much to say to it meanwhile, of which nothing arrives."""
        self.env["HOLDFAST_DEADLINE"] = "2s"
        job = self.start(PROGRAM, "polls")
        follower, leader = self.process_of(1, 0), self.process_of(0, 0)
        while not os.path.exists(self.path("file")) or not self.read("file"):
            time.sleep(0.05)
        os.kill(follower, signal.SIGSTOP)
        time.sleep(1.5)
        with open(f"/proc/{leader}/status") as status:
            kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("rank 0 of team 1", errors)
        self.assertIn("team 0 goes on alone", errors)
        self.assertEqual(self.read("file"), "begun\nended\n")
        self.assertLess(kib, 200 << 10, "what waits for it is bounded")

    def test_of_three_one_that_is_far_behind_when_the_leader_dies_goes_on(self):
        job = self.start(PROGRAM, "manyclocks", replicas=3)
        behind, leader = self.process_of(2, 0), self.process_of(0, 0)
        while not os.path.exists(self.path("file")) or not self.read("file"):
            time.sleep(0.01)
        os.kill(behind, signal.SIGSTOP)
        time.sleep(1)
        os.kill(leader, signal.SIGKILL)
        time.sleep(0.2)
        os.kill(behind, signal.SIGCONT)
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("team 1 and team 2 go on", errors)

    def test_a_follower_that_is_killed_is_not_missed(self):
        self.killed(1)

    def test_of_three_two_go_on(self):
        self.assertIn("team 1 and team 2 go on", self.killed(0, replicas=3))

    def test_input_that_nobody_reads_holds_nothing_up(self):
        """More than pipes take. A signal ends the job all the same."""
        job = subprocess.Popen([self.binary, "run", "--replicas", "2", PROGRAM, "polls"], cwd=self.dir, env=self.env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.jobs.append(job)
        feeder = threading.Thread(target=lambda: self.feed(job, 1 << 20))
        feeder.start()
        self.process_of(1, 0)
        time.sleep(0.5)
        begun = time.monotonic()
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(timeout=30), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - begun, 4, "it has not waited for the program's end")
        feeder.join()
        for pipe in (job.stdin, job.stdout, job.stderr):
            pipe.close()

    @staticmethod
    def feed(job, count):
        try:
            os.write(job.stdin.fileno(), bytes(count))
        except BrokenPipeError:
            pass

    def test_one_interrupt_ends_all_teams(self):
        job = self.start(PROGRAM, "slow")
        processes = [self.process_of(team, 0) for team in (0, 1)]
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=30)
        self.assertEqual(job.returncode, 130)
        for process in processes:
            self.assertFalse(os.path.exists(f"/proc/{process}"))

    def test_a_signal_that_it_was_started_to_ignore_ends_nothing(self):
        """As by nohup, or in the background of a shell."""
        job = self.start(PROGRAM, "slow", begin=lambda: [signal.signal(one, signal.SIG_IGN) for one in (signal.SIGHUP, signal.SIGQUIT)])
        self.process_of(0, 0)
        job.send_signal(signal.SIGHUP)
        job.send_signal(signal.SIGQUIT)
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, errors)

    def test_a_job_that_is_stopped_for_long_goes_on(self):
        """As by Ctrl-Z: all of it, but for the hub, which has a session of its own."""
        self.env["HOLDFAST_DEADLINE"] = "2s"
        job = self.start(PROGRAM, "slow", begin=lambda: os.setpgid(0, 0))
        self.process_of(0, 0)
        os.killpg(job.pid, signal.SIGSTOP)
        time.sleep(7)
        os.killpg(job.pid, signal.SIGCONT)
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, errors)
        self.assertNotIn("has not been heard of", errors)
        self.assertEqual(len(self.read("file").splitlines()), 60)

    def test_a_job_whose_hub_is_stopped_ends(self):
        self.env["HOLDFAST_DEADLINE"] = "2s"
        with open(self.path("said"), "w") as said:
            job = subprocess.Popen([self.binary, "run", "--replicas", "2", PROGRAM, "slow"], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said)
            self.jobs.append(job)
            self.process_of(1, 0)
            hub = next(int(at.split("/")[2]) for at in glob.glob("/proc/[0-9]*/comm") if self.is_hub_of_this_job(os.path.dirname(at)))
            self.addCleanup(os.kill, hub, signal.SIGKILL)
            os.kill(hub, signal.SIGSTOP)
            self.assertEqual(job.wait(timeout=60), 121)
        self.assertIn("the process that joins them does not answer", self.read("said"))

    def is_hub_of_this_job(self, process):
        try:
            with open(process + "/comm") as name:
                return name.read().strip() == "replica-hub" and os.readlink(process + "/cwd") == os.path.realpath(self.dir)
        except OSError:
            return False

    # ------------------------------------------------------------------------------------------------ protected files and buffers

    def content(self, name):
        return self.exported(name).decode()

    def test_names_of_protected_files_change_once(self):
        native = subprocess.run([PROGRAM, "names"], cwd=self.dir, capture_output=True, text=True, check=True)
        shutil.rmtree(self.path("made"))
        done = self.replicas("--protect", "mirror:2", *self.targets(2), "--path", "*/made/*", PROGRAM, "names")
        self.assertEqual(done.stdout, native.stdout)
        self.assertEqual(self.content("made/two"), "cont")

    def test_protected_files_lose_and_change_their_names_while_they_are_open(self):
        native = subprocess.run([PROGRAM, "renames"], cwd=self.dir, capture_output=True, text=True, check=True)
        shutil.rmtree(self.path("made"))
        done = self.replicas("--protect", "rs:2+1", *self.targets(3), "--path", "*/made/*", PROGRAM, "renames")
        self.assertEqual(done.stdout, native.stdout)
        self.assertEqual(sorted(name for name in os.listdir(self.path("made")) if not name.startswith(".")), ["new", "old"])

    def test_lines_are_appended_to_a_protected_file_once(self):
        native = subprocess.run([PROGRAM, "append", "native"], cwd=self.dir, capture_output=True, text=True, check=True)
        done = self.replicas("--protect", "rs:2+1", *self.targets(3), "--path", "*/file", PROGRAM, "append", "file")
        self.assertEqual((done.stdout, self.content("file")), (native.stdout, self.read("native")))

    def test_a_leader_that_is_killed_is_replaced_as_the_writer_of_a_protected_file(self):
        for scheme, buffers in (("rs:2+1", []), ("mirror:2", ["--buffer", "2x4096"])):
            with self.subTest(scheme):
                self.killed(0, options=["--protect", scheme, *self.targets(3), "--path", "*/file", *buffers], content=self.content)
                self.holdfast("rm", self.path("file"))
                shutil.rmtree(self.path("state"))

    def test_replicas_with_buffers_are_one(self):
        native = subprocess.run([PROGRAM, "append", "native"], cwd=self.dir, capture_output=True, text=True, check=True)
        done = self.replicas("--buffer", "2x4096", "--path", "*/file", PROGRAM, "append", "file")
        self.assertEqual((done.stdout, self.read("file")), (native.stdout, self.read("native")))
        os.unlink(self.path("file"))
        shutil.rmtree(self.path("state"))
        self.killed(0, options=["--buffer", "2x4096", "--path", "*/file"])

    # ------------------------------------------------------------------------------------------------ refused

    def test_what_is_not_there_yet_is_refused_before_anything_starts(self):
        for options, word in ((["--replicas", "9"], "1 to 4"), (["--replicas", "2", "--read-protocol", "x"], "--read-protocol"), (["--rehearse"], "--replicas"),
                              (["--replicas", "2", "--clock", "x"], "--clock is 'x'"),
                              (["--replicas", "2", "--buffer", "2x4096", "--buffer-flush", "1s", "--path", "*"], "--buffer-flush")):
            done = self.holdfast("run", *options, "touch", "started", expect=2)
            self.assert_one_sentence(done.stderr, word)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_the_state_of_a_job_is_named_by_its_node_too(self):
        """Nodes may share the directory, and have processes of equal numbers."""
        self.replicas(PROGRAM, "clocks")
        jobs = self.path("state/holdfast/jobs")
        name, = os.listdir(jobs)
        self.assertRegex(name, rf"\A\d+@{re.escape(socket.gethostname().split('.')[0])}\S*\.json\Z")
        with open(os.path.join(jobs, name), encoding="utf-8") as file:
            job = json.load(file)
        job |= {"process": os.getpid(), "over": False}
        for host, said in ((job["host"], "runs; epoch"), ("elsewhere", "runs, or was ended: ask on elsewhere, where it was started; epoch")):
            with open(os.path.join(jobs, name), "w", encoding="utf-8") as file:
                json.dump(job | {"host": host}, file)
            self.assertIn(f"\n{said} ", self.holdfast("status", "--job").stdout)

    def test_no_job_is_known(self):
        self.assert_one_sentence(self.holdfast("status", "--job", expect=3).stderr, "--replicas")


if __name__ == "__main__":
    unittest.main()
