"""holdfast agents: directories of nodes as targets of other nodes. The nodes here are agents of one machine, each with a name of its own."""
import fcntl
import glob
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

from command import CommandTest


def open_text(path):
    with open(path) as file:
        return file.read()


class Agents(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))

    def start(self, count, prefix="n", options=()):
        """So many nodes, each with a directory of its own; their targets' addresses."""
        addresses = []
        for i in range(1, count + 1):
            node, directory = f"{prefix}{i}", self.path(f"{prefix}{i}.disk")
            os.makedirs(directory, exist_ok=True)
            self.holdfast("agents", "start", *options, "--node", node, directory)
            addresses.append(f"{node}:{directory}")
        return addresses

    def test_without_home_it_is_that_of_the_user(self):
        env = {"HOLDFAST_AGENTS": "", "HOME": "", "XDG_STATE_HOME": ""}
        home = pwd.getpwuid(os.geteuid()).pw_dir
        self.assertIn(f"HOLDFAST_AGENTS={home}/.local/state/holdfast/agents\n",
                      self.holdfast("run", "--targets", "n1:/nowhere", "env", env=env, expect=None).stdout)

    @unittest.skipUnless(os.geteuid() == 0, "needs the right to be a user whom nobody knows")
    def test_a_user_without_a_home_is_told_what_to_set(self):
        os.chmod(self.dir, 0o777)
        env = {k: v for k, v in self.env.items() if k not in ("HOLDFAST_AGENTS", "HOME", "XDG_STATE_HOME")}
        done = subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", self.binary, "agents", "start", "--node", "n1", self.dir],
                              cwd=self.dir, env=env, capture_output=True, text=True, check=False, timeout=60)
        if "Permission denied" in done.stderr and self.binary in done.stderr:
            self.skipTest("another user than root cannot run what was built here")
        self.assertEqual(done.returncode, 3)
        self.assert_one_sentence(done.stderr, "set HOME or XDG_STATE_HOME")

    def restart(self, address):
        node, directory = address.split(":")
        self.holdfast("agents", "start", "--node", node, directory)

    def import_over(self, addresses, scheme, *options):
        content = self.make_file()
        self.holdfast("import", "out.dat", "--protect", scheme, "--targets", ",".join(addresses), *options)
        return content

    def states(self, expect=0):
        return [m["state"] for m in self.json("status", "out.dat", expect=expect)["files"][0]["members"]]

    def test_an_agent_is_started_once_seen_and_stopped(self):
        self.assertEqual(self.holdfast("agents", "status").stdout.count("\n"), 1, "none are known")
        [address] = self.start(1)
        [agent] = self.json("agents", "status")
        self.assertEqual((agent["node"], agent["state"], agent["directories"]), ("n1", "up", [address.split(":")[1]]))
        self.restart(address)
        self.assertEqual(self.agent_of("n1"), agent["process"], "the same one")
        self.holdfast("agents", "stop", "n1")
        self.assertEqual(self.json("agents", "status"), [])
        deadline = time.time() + 10
        while os.path.exists(f"/proc/{agent['process']}") and time.time() < deadline:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{agent['process']}"))

    def wait_for_another(self, node, before):
        """The process of the agent that took that one's place; None where there is none within seconds."""
        deadline = time.time() + 10
        while time.time() < deadline:
            for agent in self.json("agents", "status", expect=None):
                if agent["node"] == node and agent["state"] == "up" and agent["process"] != before:
                    return agent["process"]
            time.sleep(0.05)
        return None

    def test_a_killed_agent_is_started_again_and_a_stopped_one_is_not(self):
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--restart", "--node", "n1", self.path("{node}.disk"))
        first = self.agent_of("n1")
        os.kill(first, signal.SIGKILL)
        second = self.wait_for_another("n1", first)
        self.assertIsNotNone(second)
        self.assertEqual(self.json("agents", "status")[0]["directories"], [self.path("n1.disk")])
        self.holdfast("agents", "stop", "n1")
        time.sleep(0.3)
        self.assertEqual(self.json("agents", "status"), [])

    def test_an_agent_is_not_started_again_more_than_three_times_a_minute(self):
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--restart", "--node", "n1", self.path("n1.disk"))
        process = self.agent_of("n1")
        watcher = self.parent(process)
        for _ in range(3):
            os.kill(process, signal.SIGKILL)
            process = self.wait_for_another("n1", process)
            self.assertIsNotNone(process)
        os.kill(process, signal.SIGKILL)
        self.wait_until(lambda: self.has_ended(watcher))
        [agent] = self.json("agents", "status", expect=1)
        self.assertEqual(agent["state"], "lost")
        self.assertIn("was killed four times within a minute and stays down", agent["why"])
        self.assertIn(f"holdfast agents start --node n1 {self.path('n1.disk')}", agent["why"])
        self.restart(f"n1:{self.path('n1.disk')}")
        self.assertEqual(self.json("agents", "status")[0]["state"], "up")

    def wait_until(self, condition, seconds=10):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    # In a program: the process of n2's agent, and another one that has taken its place.
    AGAIN = """agent_now() { sed -n 's/^process //p' $HOLDFAST_AGENTS/n2.*.agent; }
        agent=$(agent_now); watcher=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$agent/status)
        back() { for i in $(seq 150); do new=$(agent_now); [ -n "$new" ] && [ "$new" != $agent ] && agent=$new && return; sleep 0.1; done; exit 9; }
        """

    def run_and_lose(self, script, expect=0):
        return self.holdfast("run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", "--", "sh", "-c", self.AGAIN + script, expect=expect)

    def member_states(self, name, expect=0):
        return {m["path"].split(":")[0]: m["state"] for m in self.json("status", name, expect=expect)["files"][0]["members"]}

    def test_an_agent_that_is_killed_in_a_job_is_started_again_and_used(self):
        done = self.run_and_lose("echo a > a.dat; exec 3> c.dat; echo first >&3; kill -9 $agent; back; echo b > b.dat; echo second >&3; exec 3>&-")
        self.assertEqual(done.stderr, "")
        for name in ("a.dat", "b.dat"):
            self.assertEqual(self.member_states(name), {"n1": "ok", "n2": "ok", "n3": "ok"}, name)
        self.assertEqual(self.holdfast("cat", "c.dat").stdout, "first\nsecond\n")
        self.assertEqual(self.member_states("c.dat", expect=1), {"n1": "ok", "n2": "stale", "n3": "ok"}, "what was open is not whole there")
        self.holdfast("repair", "c.dat")
        self.holdfast("verify", "a.dat", "b.dat", "c.dat")

    def test_run_starts_an_agent_again_where_nobody_on_its_node_does(self):
        done = self.run_and_lose("kill -9 $watcher $agent; back; echo b > b.dat")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.member_states("b.dat"), {"n1": "ok", "n2": "ok", "n3": "ok"})

    def test_a_file_opened_while_an_agent_is_being_started_again_has_it_as_a_member(self):
        """Of another node: none of the program's processes can start it."""
        done = self.run_and_lose("sed -i 's/^place .*/place another-host/' $HOLDFAST_AGENTS/n2.*.again; kill -STOP $watcher; kill -9 $agent; "
                                 "(sleep 1; kill -CONT $watcher) & echo b > b.dat")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.member_states("b.dat"), {"n1": "ok", "n2": "ok", "n3": "ok"})

    def test_an_agent_that_is_stopped_stays_stopped_while_the_job_runs(self):
        self.env["HOLDFAST"] = str(self.binary)
        self.run_and_lose("(unset LD_PRELOAD; $HOLDFAST agents stop n2); sleep 4; [ ! -e $HOLDFAST_AGENTS/n2.*.agent ] && [ ! -e /proc/$agent ]")

    def test_an_agent_that_is_killed_again_and_again_in_a_job_is_left(self):
        done = self.run_and_lose("for i in 1 2 3; do kill -9 $agent; back; done; kill -9 $agent; echo b > b.dat; sleep 5; [ $(agent_now) = $agent ]")
        self.assert_one_sentence(done.stderr, "the agent of node n2 was killed four times within a minute and stays down",
                                 "holdfast agents start --node n2 ")
        self.assertEqual(self.holdfast("cat", "b.dat").stdout, "b\n")

    # `run` is the program's parent: where it is killed, nobody is left who would start an agent again but the programs themselves. They are asked to
    # end then, and these do not.
    ALONE = AGAIN + "kill -9 $PPID; lose() { agent=$(agent_now); kill -9 $(sed -n 's/^PPid:[^0-9]*//p' /proc/$agent/status) $agent; }; "

    def leave_alone(self, script, *options):
        """A program that goes on after `run` was killed; what it says."""
        env = {**self.env, "HOLDFAST": str(self.binary)}
        job = subprocess.run([self.binary, "run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", *options, "--", "sh", "-c",
                              f"trap '' TERM; ({self.ALONE}{script}) >said 2>&1; echo $? >ended.new; mv ended.new ended"],
                             cwd=self.dir, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        self.assertEqual(job.returncode, -signal.SIGKILL)
        self.wait_until(lambda: os.path.exists(self.path("ended")), seconds=100)
        self.assertEqual(open_text(self.path("ended")), "0\n", open_text(self.path("said")))
        os.remove(self.path("ended"))
        return open_text(self.path("said"))

    def test_a_program_starts_its_nodes_agent_again_where_nobody_else_is_left(self):
        self.leave_alone("echo a > a.dat; before=$agent; lose; echo b > b.dat; [ $(agent_now) != $before ]")
        for name in ("a.dat", "b.dat"):
            self.assertEqual(self.member_states(name), {"n1": "ok", "n2": "ok", "n3": "ok"}, name)
        process = self.agent_of("n2")
        os.kill(process, signal.SIGKILL)
        self.assertIsNotNone(self.wait_for_another("n2", process), "it has one that watches over it, too")

    def test_many_programs_of_a_node_start_one_agent(self):
        self.leave_alone("lose; for i in 1 2 3 4 5 6; do echo $i > $i.dat & done; wait; [ $(ls *.dat | wc -l) = 6 ]")
        for i in range(1, 7):
            self.assertEqual(self.member_states(f"{i}.dat"), {"n1": "ok", "n2": "ok", "n3": "ok"})
        self.assertEqual(open_text(self.note_of("n2", "again")).count("started "), 1)

    def test_programs_start_an_agent_again_at_most_three_times_a_minute(self):
        self.leave_alone("for i in 1 2 3; do lose; echo $i > $i.dat; done; before=$(agent_now); lose; echo 4 > 4.dat; [ $(agent_now) = $before ]")
        agent = next(agent for agent in self.json("agents", "status", expect=1) if agent["node"] == "n2")
        self.assertIn("was killed four times within a minute and stays down", agent["why"])
        self.assertEqual(self.holdfast("cat", "4.dat").stdout, "4\n")
        self.restart(f"n2:{self.path('holdfast-nodes/n2')}")
        for i in (1, 2, 3):
            self.assertEqual(self.member_states(f"{i}.dat"), {"n1": "ok", "n2": "ok", "n3": "ok"})
        self.assertNotEqual(self.member_states("4.dat", expect=1)["n2"], "ok")

    def test_an_agent_that_ended_because_nobody_needed_it_is_started_by_who_does(self):
        self.leave_alone("echo a > a.dat; until [ ! -e $HOLDFAST_AGENTS/n2.*.agent ]; do sleep 0.1; done; sleep 1; echo b > b.dat", "--agent-linger", "2")
        self.assertEqual(self.member_states("b.dat"), {"n1": "ok", "n2": "ok", "n3": "ok"})

    def test_no_program_starts_an_agent_that_was_stopped(self):
        stop = "(unset LD_PRELOAD; $HOLDFAST agents stop n2); "
        for i, how in enumerate((stop, "lose; " + stop, "kill $agent; for i in $(seq 200); do [ -e /proc/$agent ] || break; sleep 0.05; done; ")):
            self.leave_alone(f"{how} echo b > b{i}.dat; [ ! -e $HOLDFAST_AGENTS/n2.*.again ]")
            self.assertFalse(any(agent["node"] == "n2" and agent["state"] == "up" for agent in self.json("agents", "status", expect=None)))
            self.assertEqual(self.holdfast("cat", f"b{i}.dat").stdout, "b\n")

    def test_no_program_starts_an_agent_of_another_node(self):
        there = "sed -i 's/^place .*/place another-host/' $HOLDFAST_AGENTS/n2.*.again"
        self.leave_alone(f"{there}; before=$agent; lose; echo b > b.dat; [ $(agent_now) = $before ]")
        self.assertEqual(self.holdfast("cat", "b.dat").stdout, "b\n")

    @staticmethod
    def parent(process):
        with open(f"/proc/{process}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])

    def test_a_stopped_agent_is_not_started_again_by_who_was_about_to(self):
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--restart", "--node", "n1", self.path("n1.disk"))
        process = self.agent_of("n1")
        watcher = self.parent(process)
        os.kill(watcher, signal.SIGSTOP)
        os.kill(process, signal.SIGKILL)
        self.assertIn("it is forgotten", self.holdfast("agents", "stop", "n1").stderr)
        os.kill(watcher, signal.SIGCONT)
        deadline = time.time() + 10
        while os.path.exists(f"/proc/{watcher}") and time.time() < deadline:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{watcher}"))
        self.assertEqual(self.json("agents", "status"), [])

    def test_who_starts_an_agent_hears_of_the_one_that_comes_up(self):
        """The first is killed before it has said anything: it waits for the one before it to go, whose lock is held here.

        That one says that it ends and then goes: its lock is free a moment after `agents stop`."""
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--node", "n1", self.path("n1.disk"))
        name = os.path.join(self.path("agents"), "lock." + os.path.basename(self.note_of("n1")).removesuffix(".agent"))
        self.holdfast("agents", "stop", "n1")
        with open(name, "w") as lock:
            os.chmod(name, 0o600)
            fcntl.fcntl(lock, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            starter = self.begin("agents", "start", "--restart", "--node", "n1", self.path("n1.disk"))
            waiting, deadline = None, time.time() + 4
            while waiting is None and time.time() < deadline:
                waiting = self.child_that_waits()
                time.sleep(0.01)
            self.assertIsNotNone(waiting)
            os.kill(waiting, signal.SIGKILL)
        self.assertEqual(starter.communicate(timeout=30)[0], f"n1:{self.path('n1.disk')}\n")
        self.assertNotEqual(self.agent_of("n1"), waiting)

    def test_several_that_start_one_agent_at_once_have_it_at_once(self):
        """Who came second waited for five seconds, and was told to end an agent that was well."""
        os.mkdir(self.path("n1.disk"))
        run = ("run", "--protect", "mirror:2", "--path", "*.dat", "--simulate-nodes", "2", "--", "true")
        starters = [self.begin(*words) for words in [("agents", "start", "--node", "n1", self.path("n1.disk")), run] * 3]
        for starter in starters:
            self.assertEqual(starter.communicate(timeout=60)[1], "")
            self.assertEqual(starter.returncode, 0)
        self.assertEqual(sorted(agent["directories"][0] for agent in self.json("agents", "status")),
                         [self.path("holdfast-nodes/n1"), self.path("holdfast-nodes/n2"), self.path("n1.disk")])

    def test_a_node_is_not_ended_for_a_simulated_one_of_its_name(self):
        self.start(1)
        self.holdfast("run", "--protect", "mirror:2", "--path", "*.dat", "--simulate-nodes", "2", "--", "true")
        simulated = f"n1:{self.path('holdfast-nodes/n1')}"
        refused = self.holdfast("agents", "stop", "n1", expect=3)
        self.assert_one_sentence(refused.stderr, f"n1 is a node (n1:{self.path('n1.disk')}) and a simulated one ({simulated})", "name the directories")
        self.assertEqual(len(self.json("agents", "status")), 3, "none has ended")
        self.holdfast("agents", "stop", simulated, "n2")
        self.assertEqual([agent["directories"] for agent in self.json("agents", "status")], [[self.path("n1.disk")]])
        self.holdfast("agents", "stop", "n1")

    def test_an_agent_of_this_node_only_is_no_simulated_one(self):
        self.start(1)
        os.mkdir(self.path("other"))
        self.holdfast("agents", "start", "--this-node-only", "--node", "n1", self.path("other"))
        self.assertEqual(len(self.json("agents", "status")), 2)
        self.holdfast("agents", "stop", "n1")
        self.assertEqual(self.json("agents", "status"), [])

    def test_a_simulated_node_that_rests_is_not_forgotten_with_a_node_of_its_name(self):
        """Its job's processes start it again when they need it."""
        self.holdfast("run", "--protect", "mirror:2", "--path", "*.dat", "--simulate-nodes", "2", "--agent-linger", "1", "--", "true")
        while glob.glob(self.path("agents", "n1.*.agent")):
            time.sleep(0.05)
        self.start(1)
        rests = glob.glob(self.path("agents", "n1.*.again"))
        self.assertEqual(len(rests), 1)
        self.holdfast("agents", "stop", "n1")
        self.assertEqual(glob.glob(self.path("agents", "n1.*.again")), rests)
        self.holdfast("agents", "stop", f"n1:{self.path('holdfast-nodes/n1')}", expect=None)
        self.assertEqual(glob.glob(self.path("agents", "n1.*.again")), [])

    def test_a_process_has_one_companion_for_each_node_that_it_writes_to(self):
        """And a thread that waits for it. What waits for disks side by side is the agents' business."""
        program = """import os
file = os.open("out.dat", os.O_RDWR | os.O_CREAT)
for _ in range(3): os.write(file, bytes(1 << 20)); os.fsync(file)
print(len(os.listdir("/proc/self/task")))"""
        done = self.holdfast("run", "--protect", "rs:4+2", "--path", "*.dat", "--simulate-nodes", "6", "--", sys.executable, "-c", program)
        self.assertLessEqual(int(done.stdout), 1 + 6 + 2, "the path's own file and its directory are made durable side by side")

    def child_that_waits(self):
        """An agent that has the registry open, was started by another agent process, and is in no note."""
        known = {agent["process"] for agent in self.json("agents", "status", expect=None)}
        for entry in os.listdir("/proc"):
            try:
                if not entry.isdigit() or int(entry) in known or open_text(f"/proc/{entry}/comm") != "agent\n":
                    continue
                named = [os.readlink(f"/proc/{entry}/fd/{fd}") for fd in os.listdir(f"/proc/{entry}/fd")]
                if self.path("agents") in named and open_text(f"/proc/{self.parent(entry)}/comm") == "agent\n":
                    return int(entry)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return None

    def test_an_agent_in_the_foreground_stays_until_it_is_told_to_end(self):
        os.mkdir(self.path("n1.disk"))
        for end in (lambda p: self.holdfast("agents", "stop", "n1"), lambda p: p.send_signal(signal.SIGTERM)):
            process = self.begin("agents", "start", "--foreground", "--node", "n1", self.path("n1.disk"))
            self.assertEqual(process.stdout.readline(), f"n1:{self.path('n1.disk')}\n")
            self.assertEqual(self.json("agents", "status")[0]["state"], "up")
            self.assertIsNone(process.poll())
            end(process)
            self.assertEqual(process.wait(timeout=10), 0)
            self.assertEqual(self.json("agents", "status"), [])

    # It was forgotten, and then nobody could use it, end it or start another one.
    def test_an_agent_that_is_only_slow_is_not_forgotten(self):
        [address] = self.start(1)
        process = self.json("agents", "status")[0]["process"]
        os.kill(process, signal.SIGSTOP)
        try:
            refused = self.holdfast("agents", "stop", "n1", expect=3)
        finally:
            os.kill(process, signal.SIGCONT)
        self.assertIn(str(process), refused.stderr)
        self.assertIn("lives", refused.stderr)
        self.assertEqual(self.json("agents", "status")[0]["state"], "up")
        self.holdfast("agents", "stop", "n1")
        self.assertEqual(self.json("agents", "status"), [])

    def test_a_directory_is_served_as_it_is_named(self):
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--linger", "2", "--node", "n1", self.path("n1.disk") + "/./")
        self.assertEqual(self.json("agents", "status")[0]["directories"], [self.path("n1.disk")])
        self.wait_until(lambda: not glob.glob(self.path("agents", "n1.*.agent")), seconds=30)  # asking it would be being a client
        self.assertEqual(self.json("agents", "status"), [])
        os.mkdir(self.path("two\nlines"))
        self.assertIn("newline", self.holdfast("agents", "start", "--node", "n2", self.path("two\nlines"), expect=3).stderr)

    def test_a_file_over_agents_is_kept_through_the_death_of_two_of_them(self):
        addresses = self.start(6)
        content = self.import_over(addresses, "rs:4+2")
        self.assertEqual(self.cat(), content)
        self.holdfast("verify", "out.dat")
        self.assertEqual(self.states(), ["ok"] * 6)
        for node in ("n2", "n5"):
            self.lose_agent(node)
        self.assertEqual(self.cat(), content)
        self.assertEqual(self.states(expect=1).count("unreached"), 2)
        self.lose_agent("n6")
        refused = self.holdfast("cat", "out.dat", expect=3)
        self.assertIn("n6:", refused.stderr)
        for i in (1, 4, 5):
            self.restart(addresses[i])
        self.holdfast("verify", "out.dat")

    def test_damage_beside_a_target_out_of_reach_is_not_called_lost(self):
        addresses = self.start(3)
        content = self.import_over(addresses, "rs:2+1")
        [data] = [os.path.join(root, name) for root, _, names in os.walk(self.path("n1.disk")) for name in names if name == "data"]
        with open(data, "r+b") as file:
            sound = file.read(1)
            file.seek(0)
            file.write(bytes([sound[0] ^ 255]))
        self.holdfast("agents", "stop", "n2")
        said = self.holdfast("verify", "out.dat", expect=3).stdout
        self.assertIn("unknown", said)
        self.assertIn("damage", said)
        self.assertIn("cannot be rebuilt from what is reachable", self.holdfast("repair", "out.dat", expect=3).stdout)
        self.holdfast("cat", "out.dat", expect=3, text=False)
        self.holdfast("agents", "stop")
        said = self.holdfast("verify", "out.dat", expect=3).stdout
        for words in ("unknown", "nothing of it can be read until more targets answer", f"on n1: holdfast agents start --node n1 {self.path('n1.disk')}"):
            self.assertIn(words, said)
        for words in ("damage", "holdfast repair"):
            self.assertNotIn(words, said)
        for address in addresses:
            self.restart(address)
        self.holdfast("repair", "out.dat")
        self.holdfast("verify", "out.dat")
        self.assertEqual(self.cat(), content)
        shutil.rmtree(os.path.dirname(data))
        shutil.rmtree(os.path.dirname(data).replace("n1.disk", "n3.disk"))
        self.assertIn("lost", self.holdfast("verify", "out.dat", expect=2).stdout)

    def test_a_node_whose_disk_was_wiped_is_replaced_by_another(self):
        addresses = self.start(3)
        content = self.import_over([addresses[0], addresses[1] + "/", addresses[2]], "rs:2+1")  # as a shell completes a directory's name
        self.lose_agent("n2")
        shutil.rmtree(self.path("n2.disk"))
        [spare] = self.start(1, "s")
        self.holdfast("repair", "out.dat", "--replace", f"{addresses[1]}/={spare}/")
        self.assertEqual(self.states(), ["ok"] * 3)
        self.lose_agent("n1")
        self.assertEqual(self.cat(), content)

    def test_what_an_agent_keeps_is_readable_in_place_and_no_link_leads_there(self):
        addresses = self.start(3)
        content = self.import_over(addresses, "mirror:3")
        self.assertFalse(os.path.islink(self.path("out.dat")), "a link would lead into another node's directory")
        for i in (1, 2, 3):
            with open(self.object_of(self.path(f"n{i}.disk"), f"unit{i - 1}"), "rb") as copy:
                self.assertEqual(copy.read(), content)
        self.assertIn("out.dat", self.holdfast("ls", addresses[0]).stdout)
        self.assertIn(addresses[2], self.holdfast("targets", addresses[0]).stdout)
        self.holdfast("rm", "out.dat")
        self.assertEqual([n for n in os.listdir(self.path("n1.disk")) if n.startswith("out.dat")], [])

    def test_agents_and_directories_are_targets_of_one_file(self):
        addresses = self.start(1) + self.make_targets(2)
        content = self.import_over(addresses, "rs:2+1")
        self.lose_agent("n1")
        self.assertEqual(self.cat(), content)
        self.assertEqual(self.states(expect=1), ["unreached", "ok", "ok"])
        shutil.rmtree(addresses[1])
        refused = self.holdfast("cat", "out.dat", expect=3)
        self.assertIn("cannot be told while no agent answers on n1", refused.stderr)
        for command in ("status", "verify"):
            told = self.holdfast(command, "out.dat", expect=3)
            self.assertIn("unknown: too much is out of reach to tell", told.stdout)
            self.assertIn(f"holdfast agents start --node n1 {addresses[0].split(':')[1]}", told.stdout)
        self.restart(addresses[0])
        self.assertEqual(self.states(expect=1), ["ok", "lost", "ok"])
        self.assertEqual(self.cat(), content)
        shutil.rmtree(addresses[2])
        self.holdfast("status", "out.dat", expect=2)
        self.lose_agent("n1")
        self.holdfast("status", "out.dat", expect=2)  # it is lost, whatever the third target holds

        self.assertNotIn("cannot be told", self.holdfast("cat", "out.dat", expect=2).stderr)

    def test_rows_out_of_reach_are_not_called_lost(self):
        addresses = self.start(2) + self.make_targets(1)
        self.import_over(addresses, "rs:2+1")
        self.holdfast("agents", "stop")
        said = self.holdfast("verify", "out.dat", expect=3).stdout
        self.assertIn("unreached", said)
        self.assertIn("fewer than 2 units of the row are in reach", said)
        for words in ("damage", " lost  "):
            self.assertNotIn(words, said)
        findings = self.json("verify", "out.dat", expect=3)["files"][0]["findings"]
        self.assertEqual({finding["what"] for finding in findings}, {"unreached"})
        self.assertIn("more than 1 of its 3 units are lost or out of reach", self.holdfast("cat", "out.dat", expect=3).stderr)

    def test_agents_that_end_while_a_file_is_read_are_not_missed_on_their_node(self):
        addresses = self.start(3)
        content = self.make_file(size=64 << 20)
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--targets", ",".join(addresses))
        reader = self.begin("cat", "out.dat")
        first = reader.stdout.buffer.read(1)
        for node in ("n1", "n2", "n3"):
            self.lose_agent(node)
        rest = reader.stdout.buffer.read()
        self.assertEqual(reader.wait(timeout=60), 0, reader.stderr.read())
        self.assertEqual(first + rest, content)

    def test_agents_that_end_while_a_file_is_read_are_out_of_reach(self):
        addresses = self.start(3, options=["--this-node-only"])  # as other nodes' are
        self.make_file(size=64 << 20)
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--targets", ",".join(addresses))
        reader = self.begin("cat", "out.dat")
        os.read(reader.stdout.fileno(), 1)
        for node in ("n2", "n3"):
            self.lose_agent(node)
        with open(os.devnull, "wb") as sink:
            shutil.copyfileobj(reader.stdout.buffer, sink)
        said = reader.stderr.read()
        self.assertEqual(reader.wait(timeout=60), 3, said)
        self.assertIn("cannot be told while no agent answers on n2, n3;", said)
        self.assertIn(addresses[1], said.splitlines()[0])

    def test_one_directory_is_no_two_targets(self):
        [address] = self.start(1)
        directory = address.split(":")[1]
        self.holdfast("agents", "start", "--node", "n9", directory)
        self.make_file()
        for other in (f"n9:{directory}", directory):
            refused = self.holdfast("import", "out.dat", "--protect", "mirror:2", "--targets", f"{address},{other}", expect=3)
            self.assert_one_sentence(refused.stderr, address, other, "are the same directory")

    def secret(self):
        with open(self.path("agents/secret")) as file:
            return file.read().strip()

    def find_in_processes(self, text, seen):
        """Where any process has it in its arguments or its environment. Of what it looks through it adds the arguments to `seen`."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{process}/{name}", "rb") as file:
                        words = file.read()
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
                if name == "cmdline":
                    seen.add(words)
                if text.encode() in words:
                    found.append(f"{name} of {process}: {words!r}")
        return found

    def test_the_secret_is_the_users_own_and_nobody_hears_it(self):
        [address] = self.start(1)
        secret = self.secret()
        self.assertEqual(os.stat(self.path("agents/secret")).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.path("agents")).st_mode & 0o777, 0o700)
        self.assertEqual(self.find_in_processes(secret, set()), [])
        # While agents are started by a command: it lives as long as its agent takes to come up.
        with open(self.path("starter"), "w") as script:
            script.write(f'#!/bin/sh\nuntil [ -e {self.path("looked")} ]; do sleep 0.05; done\nexec "$@"\n')
        os.chmod(self.path("starter"), 0o755)
        run = self.begin("run", "--protect", "mirror:2", "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", "m1,m2",
                         "--with", self.path("starter") + " env ON={node}", "--", "sh", "-c", "echo one > one.dat; until [ -e seen ]; do sleep 0.05; done")
        seen = set()
        while run.poll() is None:
            self.assertEqual(self.find_in_processes(secret, seen), [])
            for name, words in (("looked", b"/bin/sh\0" + self.path("starter").encode()), ("seen", b"sh\0-c\0echo one > one.dat")):
                if any(line.startswith(words) for line in seen):  # each stays until it was
                    open(self.path(name), "wb").close()
        self.assertEqual(run.returncode, 0, run.communicate())
        for words in (b"starter", b"agents\0start", b"libexec/holdfast/agent", b"one.dat"):
            self.assertTrue(any(words in line for line in seen), f"{words} was not seen to run")
        os.chmod(self.path("agents"), 0o755)
        refused = self.holdfast("targets", address, expect=None)
        self.assertNotEqual(refused.returncode, 0)
        self.make_file()
        refused = self.holdfast("import", "out.dat", "--protect", "mirror:1", "--targets", address, expect=3)
        self.assertIn("must be yours alone; run: chmod 700", refused.stderr)
        os.chmod(self.path("agents"), 0o700)

    def test_who_has_another_secret_is_refused(self):
        [address] = self.start(1)
        with open(self.path("agents/secret"), "w") as file:
            file.write("ab" * 32 + "\n")
        [agent] = self.json("agents", "status", expect=1)
        self.assertIn("does not know this secret", agent["why"])
        os.kill(agent["process"], signal.SIGTERM)

    def test_a_new_secret_is_made_where_the_old_one_was_removed(self):
        [address] = self.start(1)
        self.make_file()
        self.holdfast("import", "out.dat", "--protect", "mirror:1", "--targets", address)
        before = self.secret()
        self.holdfast("agents", "stop")
        os.remove(self.path("agents/secret"))
        self.start(1)
        self.assertNotEqual(self.secret(), before)
        self.holdfast("verify", "out.dat")
        # One that was not stopped before it is the user's to end.
        os.remove(self.path("agents/secret"))
        self.holdfast("agents", "start", "--node", "n2", self.path("n1.disk"))
        agents = {agent["node"]: agent for agent in self.json("agents", "status", expect=1)}
        self.assertEqual([agents[node]["state"] for node in ("n1", "n2")], ["lost", "up"])
        self.assertIn("does not know this secret", agents["n1"]["why"])
        os.kill(agents["n1"]["process"], signal.SIGTERM)

    def test_who_is_hung_up_on_is_counted(self):
        [address] = self.start(1)
        name = next(line.split()[-1] for line in open_text(self.note_of("n1")).splitlines() if line.startswith("at unix "))
        for said in (b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n" * 8, os.urandom(400), b""):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
                stranger.connect("\0" + name)
                if not said:
                    continue  # has said nothing: not counted
                stranger.sendall(said)
                try:
                    self.assertEqual(stranger.recv(1), b"", "it is hung up on")
                except ConnectionResetError:
                    pass
        self.assertEqual(self.json("agents", "status")[0]["refused"], 2)
        self.assertIn("n1 has hung up on 2 connections: another secret", self.holdfast("agents", "status").stdout)
        self.assertEqual(self.holdfast("targets", address, expect=None).returncode, 3, "nobody has made it a target")

    def test_a_killed_agents_directory_is_served_by_the_next_and_the_old_connection_is_none(self):
        addresses = self.start(3)
        content = self.import_over(addresses, "rs:2+1")
        self.lose_agent("n1")
        self.restart(addresses[0])
        self.assertEqual(self.states(), ["ok"] * 3)
        self.assertEqual(self.cat(), content)

    def test_an_agent_that_nobody_needs_ends(self):
        os.mkdir(self.path("d"))
        self.holdfast("agents", "start", "--node", "n1", "--linger", "3", "d")
        process = self.agent_of("n1")
        deadline = time.time() + 20
        while os.path.exists(f"/proc/{process}") and time.time() < deadline:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{process}"))
        self.assertFalse(any(name.endswith(".agent") for name in os.listdir(self.path("agents"))), "and its note is gone")

    def ticks_of(self, process):
        """Of processor time."""
        with open(f"/proc/{process}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))

    def test_idle_agents_take_no_processor_time(self):
        """Nor does who would start one again. A program is connected, with a file that it does not use."""
        os.mkdir(self.path("n1.disk"))
        self.holdfast("agents", "start", "--restart", "--this-node-only", "--node", "n1", self.path("n1.disk"))
        process = self.agent_of("n1")
        with open(f"/proc/{process}/stat") as file:
            processes = [process, int(file.read().rsplit(")", 1)[1].split()[1])]
        self.assertTrue(all(self.is_agent(one) for one in processes))
        job = self.begin("run", "--protect", "mirror:1", "--path", "*.dat", "--targets", f"n1:{self.path('n1.disk')}", "--",
                         sys.executable, "-c", "f = open('out.dat', 'wb'); f.write(b'x'); f.flush(); print('open', flush=True); input()")
        self.assertEqual(job.stdout.readline(), "open\n")
        before = [self.ticks_of(one) for one in processes]
        time.sleep(3)
        after = [self.ticks_of(one) for one in processes]
        self.assertLessEqual(sum(after) - sum(before), 1, "a tick is a hundredth of a second")
        _, said = job.communicate("\n", timeout=30)
        self.assertEqual(job.returncode, 0, said)

    def test_run_simulates_nodes_and_finds_them_again(self):
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", "--", "sh", "-c"]
        self.holdfast(*run, "printf 'first line\\n' > out.dat")
        self.assertEqual(self.cat(), b"first line\n")
        self.assertEqual(sorted(m["path"] for m in self.json("status", "out.dat")["files"][0]["members"]),
                         [f"n{i}:{self.path('holdfast-nodes', f'n{i}')}" for i in (1, 2, 3)])
        self.lose_agent("n2")
        self.holdfast(*run, "printf 'second line\\n' >> out.dat; cat out.dat > seen")
        with open(self.path("seen")) as seen:
            self.assertEqual(seen.read(), "first line\nsecond line\n")
        self.assertEqual(self.states(), ["ok"] * 3, "run has started the agent again")
        for i in (1, 2, 3):
            self.lose_agent(f"n{i}")
        refused = self.holdfast("cat", "out.dat", expect=3)
        self.assertIn("the agent of node n", refused.stderr)
        self.assert_one_sentence(self.holdfast("run", "--protect", "rs:2+1", "--simulate-nodes", "3", "--targets", "/a,/b", "true", expect=2).stderr,
                                 "--simulate-nodes and --targets")

    def test_the_profile_has_what_the_agents_were_asked_for(self):
        self.holdfast("run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", "--log", "log", "--", sys.executable, "-c",
                      "import os; f = open('out.dat', 'w+b', buffering=0); f.write(bytes(3 << 20)); os.fsync(f.fileno()); f.seek(0); f.read()")
        said = self.holdfast("report", "log").stdout
        of_file = "".join(part for part in said.split("\nFile ") if part.startswith(f'"{self.path("out.dat")}"'))
        for kind in ("Read", "Write", "Sync"):
            self.assertRegex(of_file, rf"Sys {kind} +[1-9]")
        self.assertNotIn("side by side, took 0.000 s", of_file)
        self.assertIn("side by side, took ", of_file)

    def run_on_targets(self, script, targets, *options, scheme="rs:2+1"):
        return self.holdfast("run", "--protect", scheme, "--path", "*.dat", "--targets", ",".join(targets), *options, "--", "sh", "-c", script)

    def test_run_starts_the_agents_of_targets_and_names_what_lies_on_nodes_only(self):
        """A set of nodes' directories, by the way that is told to the nodes; in an allocation what they hold is brought to its path."""
        names = [f"n{i}" for i in (1, 2, 3)]
        for node in names:
            os.mkdir(self.path(f"{node}.disk"))
        targets = [f"{node}:{self.path(f'{node}.disk')}" for node in names]
        with_command = ("--with", "env ON={node}")
        done = self.run_on_targets("echo a > a.dat", targets, *with_command)
        self.assert_one_sentence(done.stderr, "1 file lies on the nodes' disks only", f"holdfast drain '{self.path('a.dat')}'")
        self.assertEqual(self.member_states("a.dat"), dict.fromkeys(names, "ok"))
        self.env["PBS_JOBID"] = "17.server"
        self.assertEqual(self.run_on_targets("echo b > b.dat", targets, *with_command).stderr, "")
        for name, content in (("a.dat", "a\n"), ("b.dat", "b\n")):
            self.assertEqual(open_text(self.path(name)), content, "is plain")
        shared = self.make_targets(2)
        os.mkdir(self.path("n9.disk"))
        # Which nodes' agents may be started --hosts says. What two shared directories hold as well outlives the node.
        mixed = [f"n9:{self.path('n9.disk')}", *shared]
        self.assertEqual(self.run_on_targets("echo c > c.dat", mixed, *with_command, "--hosts", "n9", scheme="mirror:3").stderr, "")
        self.assertEqual(self.holdfast("cat", "c.dat").stdout, "c\n")
        self.assertEqual(len(self.json("status", "c.dat")["files"][0]["members"]), 3)
        missing = self.holdfast("run", "--protect", "mirror:2", "--targets", f"n7:{self.path('no-such')},n8:{self.path('no-such')}", *with_command, "true", expect=2)
        self.assertIn("no-such cannot be served", missing.stderr)
        self.assertFalse(os.path.exists(self.path("no-such")), "a mount may be missing")

    def test_bad_input_is_told_in_one_sentence(self):
        [address] = self.start(1)
        other = self.make_targets(1)[0]
        for arguments, words in (
            (["agents", "start", "--node", "a/b", other], ["'a/b' is no node's name"]),
            (["agents", "start", "--node", "n7", "/no/such"], ["/no/such cannot be served", "No such file"]),
            (["agents", "start", "--node", "n7", "/dev/null"], ["/dev/null is not a directory and cannot be served; name a directory"]),
            (["agents", "stop", "n8"], ["no agent of node n8 is known"]),
        ):
            self.assert_one_sentence(self.holdfast(*arguments, expect=3).stderr, *words)
        self.make_file()
        for target, words in (("n8:/d", ["no agent of node n8 is known", "holdfast agents start --node n8 /d"]),
                              (f"n1:{other}", [f"n1:{other}: no agent of node n1 is known", f"holdfast agents start --node n1 {other}"])):
            refused = self.holdfast("import", "out.dat", "--protect", "mirror:1", "--targets", target, expect=3)
            self.assert_one_sentence(refused.stderr, *words)


if __name__ == "__main__":
    unittest.main()
