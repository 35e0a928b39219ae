"""What becomes of a job when nodes fail in each known way while it writes: up to M of them are borne, M+1 are an error within the deadline, never a half
success. The nodes are agents of one machine that hand nothing over, so that they are asked as other nodes' are."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from command import CommandTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

PATIENCE_S = 30
NODES = ("n1", "n2", "n3")  # of rs:2+1: one may be lost
FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin/faultfs")

# Writes and syncs, waits until something has happened, writes all of it anew and more, and syncs.
PROGRAM = """
import os, random, sys
source = random.Random(7)
with open("out.dat", "wb", buffering=0) as file:
    file.write(source.randbytes(300_000))
    os.fsync(file.fileno())
    print("synced", flush=True)
    sys.stdin.readline()
    file.seek(0)
    file.write(source.randbytes(900_000))
    os.fsync(file.fileno())
"""


def contents():
    """What the program writes first, and then."""
    source = random.Random(7)
    return source.randbytes(300_000), source.randbytes(900_000)


class Fault:
    """Something that happens to a node, and goes again. What status says of the node meanwhile, and when it has gone."""
    during, afterwards = "unreached", "stale"
    deadline = "10s"

    def __init__(self, test):
        self.test = test
        self.things = {}

    def made(self, node):
        """Before its agent starts."""

    def strikes(self, node):
        self.test.lose_agent(node)

    def goes(self, node):
        self.test.start(node)


class Killed(Fault):
    pass


class ToldToEnd(Fault):
    def strikes(self, node):
        self.test.holdfast("agents", "stop", node)


class Frozen(Fault):
    deadline = "1s"

    def strikes(self, node):
        os.kill(self.test.processes[node], signal.SIGSTOP)

    def goes(self, node):
        os.kill(self.test.processes[node], signal.SIGCONT)


class StartedAgain(Fault):
    """In the middle of the file: what was open there is lost with the agent, though another one is there at once."""
    during = "stale"

    def strikes(self, node):
        self.test.lose_agent(node)
        self.test.start(node)

    def goes(self, node):
        pass


class Wiped(StartedAgain):
    during = afterwards = "lost"

    def strikes(self, node):
        self.test.lose_agent(node)
        shutil.rmtree(self.test.disk(node))
        self.test.start(node)


class Full(Fault):
    """A small file system that somebody else fills."""
    during = "stale"

    def made(self, node):
        self.test.mount("tmpfs", "-o", "size=8m", "tmpfs", self.test.disk(node))

    def strikes(self, node):
        with open(os.path.join(self.test.disk(node), "somebody-elses"), "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def goes(self, node):
        os.remove(os.path.join(self.test.disk(node), "somebody-elses"))


class Failing(Fault):
    """Its disk answers EIO to everything."""
    during = "lost"

    def made(self, node):
        scratch = self.test.path(f"{node}.faultfs")
        os.mkdir(scratch)
        mount = faultfs.Mount(FAULTFS, scratch, "mount")
        self.test.addCleanup(mount.end)
        if not mount.works():
            self.test.skipTest("faultfs cannot mount here")
        os.rmdir(self.test.disk(node))
        os.symlink(mount.path, self.test.disk(node))
        self.things[node] = mount

    def strikes(self, node):
        self.things[node].order("any errno EIO")

    def goes(self, node):
        self.things[node].order("")


class Hanging(Failing):
    """Its disk answers nothing more."""
    deadline = "1s"

    def strikes(self, node):
        self.things[node].order("any hang")


class Stranger(Fault):
    """Where the agent listened there is a process that is none, and says something else."""
    words = b"HTTP/1.1 400 Bad Request\r\nServer: somebody\r\n\r\n" * 8

    def strikes(self, node):
        self.test.lose_agent(node)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.test.addCleanup(listener.close)
        self.test.wait_until(lambda: self.is_bound(listener, node))  # the agent's threads may hold the name a moment longer
        listener.listen(64)
        self.things[node] = listener
        threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def is_bound(self, listener, node):
        try:
            listener.bind("\0" + self.test.names[node])
        except OSError:
            return False
        return True

    def serve(self, listener):
        met = []
        try:
            while True:
                met.append(listener.accept()[0])
                met[-1].sendall(self.words)
        except OSError:
            for one in met:
                one.close()

    def goes(self, node):
        self.things[node].shutdown(socket.SHUT_RDWR)
        super().goes(node)


class AnotherAgent(Fault):
    """Where the agent listened there is now one of another node: its note leads there."""

    def made(self, node):
        if node == NODES[0]:
            self.test.start("other")

    def strikes(self, node):
        self.test.lose_agent(node)
        note = self.test.note_of(node)
        with open(note) as file:
            text = file.read()
        with open(note, "w") as file:
            file.write(text.replace(self.test.names[node], self.test.names["other"]))


FAULTS = (Killed, ToldToEnd, Frozen, StartedAgain, Wiped, Full, Failing, Hanging, Stranger, AnotherAgent)
# What a pool finds out in its own way: who is a member, and what a directory without a marker is.
FAULTS_OF_EACH = [("--targets", kind) for kind in FAULTS] + [("--local", kind) for kind in (Killed, StartedAgain, Wiped)]


class AgentFaults(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.processes, self.names = {}, {}
        self.addCleanup(self.end_agents)

    def anew(self, fault):
        """A directory of its own for each fault."""
        self.doCleanups()
        self.setUp()
        self.env["HOLDFAST_DEADLINE"] = fault.deadline

    def end_agents(self):
        for process in self.processes.values():
            if self.is_agent(process):  # the number of one that has ended may be somebody else's by now
                os.kill(process, signal.SIGKILL)

    def disk(self, node):
        return self.path(f"{node}.disk")

    def start(self, node):
        os.makedirs(self.disk(node), exist_ok=True)
        self.holdfast("agents", "start", "--this-node-only", "--node", node, self.disk(node))
        self.processes[node] = self.agent_of(node)
        with open(self.note_of(node)) as file:
            self.names[node] = next(line.split()[-1] for line in file if line.startswith("at unix "))

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def mount(self, kind, *options):
        if subprocess.run(["mount", "-t", kind, *options], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", options[-1]], check=True)

    def status(self):
        done = self.holdfast("status", "out.dat", "--json", expect=None)
        members = json.loads(done.stdout)["files"][0]["members"]
        return done.returncode, [m["state"] for m in sorted(members, key=lambda m: m["path"])]  # a pool's are in an order of the file's own

    def start_all(self, fault):
        self.anew(fault)
        for node in NODES:
            os.mkdir(self.disk(node))
            fault.made(node)
            self.start(node)
        return [f"{node}:{self.disk(node)}" for node in NODES]

    def run_and_strike(self, fault, *struck, option):
        """How the program has ended, and what was said."""
        targets = self.start_all(fault)
        job = self.begin("run", "--protect", "rs:2+1", "--path", "*.dat", "--striping-unit", "64k", option, ",".join(targets), "--",
                         sys.executable, "-c", PROGRAM)
        self.assertEqual(job.stdout.readline(), "synced\n")
        for node in struck:
            fault.strikes(node)
        _, said = job.communicate("go\n", timeout=PATIENCE_S)
        return job.returncode, said

    def test_up_to_m_nodes_are_borne(self):
        for option, kind in FAULTS_OF_EACH:
            with self.subTest(f"{option} {kind.__name__}"):
                fault = kind(self)
                code, said = self.run_and_strike(fault, "n2", option=option)
                self.assertEqual(code, 0, said)
                self.assertEqual(self.cat(), contents()[1])
                self.assertEqual(self.status(), (1, ["ok", fault.during, "ok"]))
                fault.goes("n2")
                self.assertEqual(self.status(), (1, ["ok", fault.afterwards, "ok"]))
                place = f"n2:{self.disk('n2')}"
                self.holdfast("repair", "out.dat", *(["--replace", f"{place}={place}"] if fault.afterwards == "lost" else []))
                self.holdfast("verify", "out.dat")
                self.assertEqual(self.cat(), contents()[1])

    def test_one_more_is_an_error_and_what_was_synced_is_old_or_new(self):
        for option, kind in FAULTS_OF_EACH:
            with self.subTest(f"{option} {kind.__name__}"):
                fault = kind(self)
                code, said = self.run_and_strike(fault, "n2", "n3", option=option)
                self.assertEqual(code, 1, said)
                self.assertIn("OSError: ", said)
                for node in ("n2", "n3"):
                    self.assertIn(f"{node}:{self.disk(node)}", said)
                state = fault.during if fault.during in ("lost", "unreached") else "ok"  # what failed as a whole is as it was
                self.assertEqual(self.status(), ({"ok": 0, "lost": 2, "unreached": 3}[state], ["ok", state, state]))
                for node in ("n2", "n3"):
                    fault.goes(node)
                if fault.afterwards == "lost":
                    self.assertIn("n2:", self.holdfast("cat", "out.dat", expect=2, text=False).stderr.decode())
                    continue
                found, (old, new) = self.cat(), contents()
                self.assertGreaterEqual(len(found), len(old))
                self.assertEqual([i for i, byte in enumerate(found[:len(old)]) if byte not in (old[i], new[i])], [])

    def test_a_disk_that_hangs_holds_up_only_what_lies_on_it(self):
        """Its agent serves another one of the node, too. Nobody who uses that waits."""
        fault = Hanging(self)
        fault.deadline = "60s"
        self.anew(fault)
        for node in ("n1", "n2"):
            os.mkdir(self.disk(node))
            os.mkdir(self.path(f"{node}.sound"))
        fault.made("n1")
        for node in ("n1", "n2"):
            self.holdfast("agents", "start", "--this-node-only", "--node", node, self.disk(node), self.path(f"{node}.sound"))
            self.processes[node] = self.agent_of(node)
        run = ["run", "--protect", "mirror:2", "--path", "*.dat", "--targets"]
        held = self.begin(*run, f"n1:{self.disk('n1')},n2:{self.disk('n2')}", "--", "sh", "-c", "echo a > a.dat; echo made; read go; echo going; echo b >> a.dat")
        self.assertEqual(held.stdout.readline(), "made\n")
        fault.strikes("n1")
        held.stdin.write("go\n")
        held.stdin.flush()
        self.assertEqual(held.stdout.readline(), "going\n")
        begun = time.monotonic()
        self.holdfast(*run, ",".join(f"{node}:{self.path(f'{node}.sound')}" for node in ("n1", "n2")), "--", "sh", "-c", "echo c > c.dat; cat c.dat > seen")
        self.holdfast("verify", "c.dat")
        self.assertLess(time.monotonic() - begun, 30, "half of a deadline")
        self.assertIsNone(held.poll(), "it waits all the time")
        fault.goes("n1")
        _, said = held.communicate(timeout=PATIENCE_S)
        self.assertEqual(held.returncode, 0, said)
        self.assertEqual(self.cat("a.dat"), b"a\nb\n")

    def test_old_data_that_is_put_back_is_never_read(self):
        """The disks of one node, or of two, are as they were before the second write."""
        for back in (("n2",), ("n2", "n3")):
            with self.subTest(len(back)):
                fault = Killed(self)
                targets = self.start_all(fault)
                options = ("--protect", "rs:2+1", "--path", "*.dat", "--striping-unit", "64k", "--targets", ",".join(targets), "--", "sh", "-c")
                self.holdfast("run", *options, "seq 100000 > out.dat")
                for node in back:
                    shutil.copytree(self.disk(node), self.path(f"old.{node}"))
                self.holdfast("run", *options, "seq 200000 299999 > out.dat")
                for node in back:
                    self.lose_agent(node)
                    shutil.rmtree(self.disk(node))
                    os.rename(self.path(f"old.{node}"), self.disk(node))
                    self.start(node)
                if len(back) == 1:
                    self.assertEqual(self.cat(), "".join(f"{i}\n" for i in range(200000, 300000)).encode())
                    self.assertEqual(self.status(), (1, ["ok", "stale", "ok"]))
                    self.holdfast("repair", "out.dat")
                    self.holdfast("verify", "out.dat")
                else:
                    refused = self.holdfast("cat", "out.dat", expect=2, text=False)
                    self.assertEqual(refused.stdout, b"")
                    self.assert_one_sentence(refused.stderr.decode(), "n2:", "n3:")


if __name__ == "__main__":
    unittest.main()
