"""Faults that meet the work on a checkpoint which is whole already: its drain, its drop, and what is made anew. What the scheme bears is not seen; with one more
the command says so, and all stays as it was."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import unittest

from checkpoint_test import CheckpointTest, PATTERN

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin/faultfs")
CONTENT = "".join(f"{i}\n" for i in range(1, 50001))
SCRIPT = "seq 1 50000 > ck/ck.10.0"


class CheckpointFaults(CheckpointTest):
    def node(self, name):
        return self.path("holdfast-nodes", name)

    def make_failing(self, *nodes):
        """Nodes whose disks fail as they are told to."""
        mounts = {}
        os.mkdir(self.path("holdfast-nodes"))
        for node in nodes:
            scratch = self.path(f"scratch-{node}")
            os.mkdir(scratch)
            mounts[node] = faultfs.Mount(FAULTFS, scratch, "mount")
            self.addCleanup(mounts[node].end)
            if not mounts[node].works():
                self.skipTest("faultfs cannot mount here")
            os.symlink(mounts[node].path, self.node(node))
        return mounts

    def write_checkpoint(self, nodes, script=SCRIPT):
        self.run_job(script, "--drain", "none", scheme="rs:2+1", nodes=nodes)

    def drained(self):
        """What is at its path now; nothing else is left there, and the next one begins anew."""
        names = os.listdir(self.path("ck"))
        if not names:
            return None
        self.assertEqual(names, ["ck.10.0"])
        content = self.read("ck/ck.10.0")
        os.remove(self.path("ck/ck.10.0"))
        return content

    def parts(self):
        return sorted(glob.glob(self.path("holdfast-nodes/*/ck.10.0-*/*")))

    def test_what_a_drain_bears_and_what_it_refuses(self):
        mounts = self.make_failing("n2", "n3")
        self.write_checkpoint(nodes=3)
        old = self.path("old")
        shutil.copytree(self.path("holdfast-nodes"), old)
        # Written anew, so that the nodes' old data is that of another version.
        self.run_job("seq 1 50000 > ck/ck.10.0; echo more >> ck/ck.10.0", "--drain", "none", "--resume", scheme="rs:2+1", nodes=3)

        new = self.path("new")
        shutil.copytree(self.path("holdfast-nodes"), new)

        agents = {node: self.agent_of(node) for node in mounts}

        def put_back(node, all_nodes):
            mounts[node].order("")
            os.kill(agents[node], signal.SIGCONT)
            for part in glob.glob(f"{self.node(node)}/ck.10.0-*"):
                shutil.rmtree(part)
            for part in glob.glob(f"{all_nodes}/{node}/ck.10.0-*"):
                shutil.copytree(part, os.path.join(self.node(node), os.path.basename(part)))

        def take(name):
            return lambda node: [os.remove(part) for part in glob.glob(f"{self.node(node)}/ck.10.0-*/{name}")]

        for name, strikes, words in (("EIO", lambda node: mounts[node].order("any errno EIO"), ["checkpoint 10 cannot be read"]),
                                     ("EIO of reads", lambda node: mounts[node].order("read errno EIO name=data"), ["units are lost", "n2", "n3", "Input/output error"]),
                                     ("bit flip", lambda node: mounts[node].order("read flip 4097 name=data"), ["units are lost", "n2 (it is damaged there)", "n3 (it is damaged there)"]),
                                     ("agent halted", lambda node: os.kill(agents[node], signal.SIGSTOP), ["checkpoint 10 cannot be read"]),
                                     ("unit deleted", take("data"), ["units are lost", "n2", "n3", "No such file"])):
            with self.subTest(name):
                self.env["HOLDFAST_DEADLINE"] = "1s" if name == "agent halted" else "10s"
                try:
                    strikes("n2")
                    self.holdfast("checkpoints", "--drain", "10")
                    self.assertEqual(self.drained(), CONTENT + "more\n")
                    strikes("n3")
                    refused = self.holdfast("checkpoints", "--drain", "10", expect=3)
                    self.assert_one_sentence(refused.stderr, *words)
                    self.assertIsNone(self.drained())
                finally:
                    for node in mounts:
                        put_back(node, new)
        with self.subTest("disks full"):
            for node in mounts:
                mounts[node].order("write errno ENOSPC\ncreate errno ENOSPC\nmkdir errno ENOSPC")
            self.holdfast("checkpoints", "--drain", "10")
            self.assertEqual(self.drained(), CONTENT + "more\n")
            for node in mounts:
                put_back(node, new)
        with self.subTest("old data"):
            put_back("n2", old)
            self.holdfast("checkpoints", "--drain", "10")
            self.assertEqual(self.drained(), CONTENT + "more\n")
            put_back("n3", old)
            said = self.holdfast("checkpoints", "--drain", "10").stderr
            self.assert_one_sentence(said, "this is checkpoint 10 of attempt 1; that of attempt 2 was written later")
            self.assertEqual(self.drained(), CONTENT)
            for node in mounts:
                put_back(node, new)
        with self.subTest("manifests deleted"):  # any one of them is enough
            for node in mounts:
                take("manifest")(node)
                self.holdfast("checkpoints", "--drain", "10")
                self.assertEqual(self.drained(), CONTENT + "more\n")
            take("manifest")("n1")
            self.assert_one_sentence(self.holdfast("checkpoints", "--drain", "10", expect=3).stderr, "there is no checkpoint 10")
            self.assertIsNone(self.drained())

    def test_a_drop_names_the_nodes_whose_disks_fail(self):
        mounts = self.make_failing("n2")
        self.write_checkpoint(nodes=3)
        mounts["n2"].order("any errno EIO")
        self.assertIn("checkpoint 10 is not dropped on n2", self.holdfast("checkpoints", "--drop", "10", expect=3).stderr)
        mounts["n2"].order("")
        self.holdfast("checkpoints", "--drop", "10")
        self.assertEqual((self.states(), self.parts()), ({}, []))

    def test_a_node_that_fails_while_parts_are_made_anew_is_left_out(self):
        """As long as there is another one. Else all stays as it was, and what was begun is gone."""
        mounts = self.make_failing("n1", "n2")
        self.write_checkpoint(nodes=4)
        self.drop_from_nodes(10, "n3")
        for rule, why in (("write errno EIO", "Input/output error"), ("fsync errno EIO", "Input/output error"), ("write errno ENOSPC", "No space left on device")):
            with self.subTest(rule):
                before = self.parts()
                for node in mounts:
                    mounts[node].order(rule)
                refused = self.holdfast("checkpoints", "--repair", "10", expect=3)
                self.assert_one_sentence(refused.stderr, "ck.10.0", why)
                self.assertEqual(self.parts(), before)
                mounts["n1"].order("")
                self.assertEqual(self.holdfast("checkpoints", "--repair", "10").stdout, "checkpoint 10: 1 of 1 file made anew\n")
                self.assertIn("healthy, 1 row, 0 findings", self.holdfast("checkpoints", "--verify").stdout)
                self.assertEqual(sorted({part.split("/")[-3] for part in self.parts()}), ["n1", "n3", "n4"])
                mounts["n2"].order("")
                self.drop_from_nodes(10, "n3")
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.drained(), CONTENT)

    def test_what_a_program_closes_after_its_run_was_killed_is_gone_on_from(self):
        """Its protectors finish what is closed by then, and go."""
        script = f"""trap '' TERM
            echo ten > ck/ck.10.0
            {self.until("10  whole")}
            run=$(ps -o ppid= -p $PPID)
            protectors=$(ps -o pid=,comm= --ppid $run | sed -n 's/ protector$//p')
            kill -9 $run
            for one in $protectors; do while kill -0 $one 2> /dev/null; do sleep 0.05; done; done
            echo twenty > ck/ck.20.0
            echo over"""
        self.assertEqual(self.run_job(script, scheme="rs:2+1", nodes=3, expect=-signal.SIGKILL).stdout, "over\n")
        self.assertEqual(self.states(), {10: "whole", 20: "closed"})
        done = self.run_job("cat ck/ck.20.0", "--resume", scheme="rs:2+1", nodes=3)
        self.assertEqual(done.stdout, "twenty\n")
        self.assertIn("1 file that attempt 1 had closed is not protected yet: that is done first", done.stderr)
        self.assertIn("attempt 2 begins with checkpoint 20", done.stderr)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_run_that_is_killed_while_it_drains_leaves_nothing_half(self):
        """In the middle of the file, before it gets its name, and before the name is durable."""
        place, directory = self.path("ck/ck.10.0"), self.path("ck")
        for number, options in enumerate((["-einject=pwrite64:signal=SIGKILL:when=4"], ["-P", place, "-einject=renameat2,rename,renameat:signal=SIGKILL"],
                                          ["-P", directory, "-einject=fsync:signal=SIGKILL"])):
            with self.subTest(options[-1]):
                killed = subprocess.run(["strace", "-q", "-o", "/dev/null", *options, self.binary, "run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint",
                                         PATTERN, "--library", "posix", "--resume", "--", "sh", "-c", SCRIPT], cwd=self.dir, env=self.env, capture_output=True, text=True,
                                        timeout=60, check=False)
                self.assertEqual(killed.returncode, -signal.SIGKILL)
                self.assertIn("checkpoint 10 is whole", killed.stderr)
                if os.path.exists(place):
                    self.assertEqual(self.read(place), CONTENT)
                self.assertEqual(os.path.exists(place), number == 2)
                self.holdfast("checkpoints", "--drain", "10")
                self.assertEqual(self.drained(), CONTENT)


if __name__ == "__main__":
    unittest.main()
