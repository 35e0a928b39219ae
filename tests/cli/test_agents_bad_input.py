"""What stands in the way of node agents: each is said in a sentence that names what is wrong and what to do."""
import os
import pwd
import shutil
import socket
import struct
import subprocess
import threading
import time
import unittest

from command import OwnAgentsTest

NOBODY = pwd.getpwnam("nobody") if os.geteuid() == 0 else None


class AgentsBadInput(OwnAgentsTest):
    def started(self, node, *options):
        os.makedirs(self.path(f"{node}.disk"), exist_ok=True)
        self.holdfast("agents", "start", *options, "--node", node, self.path(f"{node}.disk"))
        return f"{node}:{self.path(f'{node}.disk')}"

    def small(self, name, *options):
        os.mkdir(self.path(name))
        if subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", self.path(name)], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.path(name)], check=True)

    def test_a_host_that_nobody_knows(self):
        """The words of the user's own command, and what is missing then."""
        there = self.path("there")
        with open(there, "w") as file:
            file.write('#!/bin/sh\necho "ssh: Could not resolve hostname $1: Name or service not known" >&2\nexit 255\n')
        os.chmod(there, 0o755)
        for command in (("run", "--protect", "mirror:2", "--local", self.path("disk-{node}"), "--hosts", "far1,far2", "--with", f"{there} {{node}}", "--", "true"),
                        ("agents", "start", "--hosts", "far1,far2", "--with", f"{there} {{node}}", self.path("disk-{node}"))):
            said = self.holdfast(*command, expect=2 if command[0] == "run" else 3).stderr.strip().splitlines()
            self.assertEqual(sorted(said[:2]), [f"ssh: Could not resolve hostname {host}: Name or service not known" for host in ("far1", "far2")])
            self.assert_one_sentence(said[-1], "far1", "far2" if command[0] == "agents" else "holdfast agents start --node far1")

    def test_a_node_that_is_switched_off(self):
        """The command that is to start its agent gets no answer, for minutes. It is ended with what it has started, and the job begins without that node."""
        there = self.path("there")
        with open(there, "w") as file:
            file.write(f'#!/bin/sh\nnode=$1; shift\n[ $node = n2 ] && {{ sleep 1000 & echo $! >> {self.path("silent")}; wait; }}\nexec "$@"\n')
        os.chmod(there, 0o755)
        began = time.monotonic()
        said = self.holdfast("run", "--protect", "mirror:2", "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", "n1,n2,n3", "--with",
                             f"{there} {{node}}", "--deadline", "1s", "--", "sh", "-c", "echo a > a.dat").stderr
        self.assertLess(time.monotonic() - began, 60)
        self.assertIn(f"'{there} {{node}}' has not ended within 3 s for n2 and was ended: bring these nodes up, or leave them out of --hosts", said)
        self.assertIn("disk-n2 is left out", said)
        with open(self.path("silent")) as file:
            silent = [int(line) for line in file]
        self.assertEqual([process for process in silent if not self.has_ended(process)], [], "nothing is left behind")

    @unittest.skipUnless(NOBODY, "needs the right to be another user")
    def test_two_users_with_one_directory(self):
        """On the same nodes, each with a registry of its own. The second one is refused, and what the first one has is as it was."""
        os.chmod(self.dir, 0o777)
        home = self.path("home")
        os.mkdir(home)
        os.chown(home, NOBODY.pw_uid, NOBODY.pw_gid)
        pool = ("--protect", "mirror:2", "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", "n1,n2", "--with", "env ON={node}")

        def as_nobody(*arguments):
            return subprocess.run(["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups", self.binary, *arguments], timeout=60,
                                  cwd=home, env={**self.env, "HOLDFAST_AGENTS": f"{home}/agents"}, capture_output=True, text=True, check=False)
        if self.binary in as_nobody("--version").stderr:
            self.skipTest("another user than root cannot run what was built here")
        self.addCleanup(as_nobody, "agents", "stop")
        self.holdfast("run", *pool, "--", "sh", "-c", "umask 022; echo first > out.dat")
        before = [(name, os.stat(name).st_mtime) for name in self.tree() if "/disk-" in name]
        refused = as_nobody("run", *pool, "--", "sh", "-c", "echo second > theirs.dat")
        self.assertEqual(refused.returncode, 2)
        for node in ("n1", "n2"):
            self.assertIn(f"{self.path('disk-' + node)} cannot be served; name a directory of your own: {self.path('disk-' + node)}: Permission denied", refused.stderr)
        self.assertEqual(as_nobody("cat", self.path("out.dat")).returncode, 3)
        self.assertEqual([(name, os.stat(name).st_mtime) for name in self.tree() if "/disk-" in name], before)
        self.assertEqual(self.cat(), b"first\n")
        self.assertEqual([n for n in os.listdir(home) if n != "agents"], [])

    def test_full_disks(self):
        self.small("registry", "size=4k")
        with open(self.path("registry/somebody-elses"), "wb") as filler:
            filler.write(bytes(4096))
        os.chmod(self.path("registry"), 0o700)
        os.mkdir(self.path("disk"))
        refused = self.holdfast("agents", "start", "--node", "n1", self.path("disk"), env={"HOLDFAST_AGENTS": self.path("registry")}, expect=3)
        self.assert_one_sentence(refused.stderr, "the agent of node n1 cannot be started", self.path("registry"), "No space left")
        # A disk that is full is borne, as one that is lost; two of them are refused by name.
        targets = [self.started("n1"), self.started("n2")]
        for node in ("n3", "n4"):
            self.small(f"{node}.disk", "size=128k")
            targets.append(self.started(node))
        content = self.make_file(size=3_000_000)
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--local", ",".join(targets[:3]))
        [member] = [m for m in self.json("status", "out.dat", expect=1)["files"][0]["members"] if m["state"] != "ok"]
        self.assertEqual((member["path"], member["state"]), (targets[2], "stale"))
        self.assertIn("No space left", member["why"])
        self.assertEqual(self.cat(), content)
        content = self.make_file("two.dat", size=3_000_000)
        refused = self.holdfast("import", "two.dat", "--protect", "rs:2+1", "--local", ",".join(targets[1:]), expect=3)
        self.assert_one_sentence(refused.stderr, "more than 1 of its 3 units are lost", targets[2], targets[3], "No space left")
        with open(self.path("two.dat"), "rb") as file:
            self.assertEqual(file.read(), content)

    # Whoever listens in an agent's place: the first bytes of its greeting are answered with those.
    def listen_in_place_of(self, node, reply):
        with open(self.note_of(node)) as file:
            name = next(line.split()[-1] for line in file if line.startswith("at unix "))
        self.lose_agent(node)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        for _ in range(1000):
            try:
                listener.bind("\0" + name)
                break
            except OSError:
                time.sleep(0.01)
        listener.listen(64)

        def serve():
            try:
                while True:
                    with listener.accept()[0] as client:
                        client.recv(4096)
                        client.sendall(reply)
            except OSError:
                pass
        threading.Thread(target=serve, daemon=True).start()

    def test_an_agent_of_another_version(self):
        address = self.started("n1", "--this-node-only")
        self.listen_in_place_of("n1", struct.pack("<8sII32s32s", b"hfgreet1", 2, 77, b"", b""))
        self.make_file()
        words = ("n1", "it speaks version 77 of protocol 2, and this process version")
        self.assert_one_sentence(self.holdfast("import", "out.dat", "--protect", "mirror:1", "--targets", address, expect=3).stderr, *words)
        [agent] = self.json("agents", "status", expect=1)
        self.assertIn(words[1], agent["why"])

    def test_a_program_that_says_where_it_does_not_run(self):
        """--local without a launcher and without hosts is this node alone."""
        host = socket.gethostname().split(".")[0]
        refused = self.holdfast("run", "--protect", "rs:2+1", "--path", "*.dat", "--local", self.path("disk-{node}"), "--", "sh", "-c", "echo a > a.dat", expect=2)
        self.assert_one_sentence(refused.stderr, f"rs:2+1 needs 3 nodes and this is one ({host})", "--hosts n1,n2,...", "--simulate-nodes 3")
        self.assertEqual(os.listdir(self.dir), [])

    def test_too_few_open_files_for_an_agents_start(self):
        done = subprocess.run(["sh", "-c", f"ulimit -n 64; {self.binary} agents start --node n1 {self.dir}"], cwd=self.dir, env=self.env, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3, done)
        self.assert_one_sentence(done.stderr, "the agent of node n1 cannot be started", "allow more with: ulimit -n 1024")

    def test_too_few_open_files_for_a_program(self):
        """That is told of the process, and not of the nodes, and nothing is left where a file was to be made."""
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", "--", "sh", "-c"]
        self.holdfast(*run, "echo one > one.dat")
        before = sorted(os.listdir(self.dir))
        for limit in (6, 8, 10):
            done = self.holdfast(*run, f"ulimit -n {limit}; echo two > two.dat", expect=2)
            self.assertIn("Too many open files", done.stderr)
            self.assertEqual(sorted(os.listdir(self.dir)), before, limit)
        read = self.holdfast(*run, "ulimit -n 7; cat one.dat", expect=1)
        self.assertIn("cat: one.dat: Too many open files", read.stderr)

    @unittest.skipUnless(shutil.which("unshare") and os.geteuid() == 0, "needs namespaces of its own")
    def test_no_port_is_left(self):
        """The kernel chooses ports. In a network of its own the only one that it may choose is somebody else's."""
        os.mkdir(self.path("disk"))
        script = f"""ip link set lo up; ip link add eth0 type veth peer name other && ip link set other up && ip addr add 10.98.0.2/24 dev eth0 && ip link set eth0 up || exit 77
            echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range || exit 77
            python3 -c 'import socket, time
s = socket.socket(); s.bind(("10.98.0.2", 40000)); s.listen()
print("up", flush=True); time.sleep(600)' > {self.path('up')} & holder=$!
            for i in $(seq 500); do [ -s {self.path('up')} ] && break; sleep 0.01; done
            {self.binary} agents start --node n1 {self.path('disk')}; code=$?
            {self.binary} agents stop; kill $holder; exit $code"""
        done = subprocess.run(["unshare", "--net", "sh", "-c", script], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77:
            self.skipTest("no network of its own can be had here")
        self.assertEqual(done.returncode, 3, done)
        self.assert_one_sentence(done.stderr, "the agent of node n1 cannot be started", "no address of this node can be listened on", "10.98.0.2: Address already in use")


if __name__ == "__main__":
    unittest.main()
