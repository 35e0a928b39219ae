"""Checkpoints that are damaged on their nodes: beyond what their scheme bears, where nobody is told, and with parts that somebody has deleted."""
import glob
import os
import re
import unittest

from checkpoint_test import CheckpointTest


def flipped(path):
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))


class CheckpointDamage(CheckpointTest):
    WRITE = "for s in 10 20; do seq $s 9999 > ck/ck.$s.$RANK; done"
    READ = "step=$(ls ck | head -1 | cut -d. -f2); [ -z $step ] || cat ck/ck.$step.$RANK > got.$RANK"  # natively a file that cannot be read is listed, too

    def flip(self, step, rank, *nodes):
        """A bit of the unit that each of these nodes has. A second time all is as before."""
        for node in nodes:
            (unit,) = glob.glob(self.path("holdfast-nodes", node, f"ck.{step}.{rank}-*", "data"))
            flipped(unit)

    def content(self, step):
        return "".join(f"{i}\n" for i in range(step, 10000))

    def go_on(self, *options, **more):
        return self.run_job(self.READ, "--resume", "--drain", "none", *options, ranks=2, **more)

    def test_what_cannot_be_read_is_passed_over_by_name(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.flip(20, 1, "n1", "n3", "n4")
        done = self.go_on("--restarts", "1")
        self.assertIn("attempt 2 begins with checkpoint 20", done.stderr)
        self.assertRegex(done.stderr, r"checkpoint 20 cannot be read: \S+/ck/ck\.20\.1 is damaged beyond what rs:4\+2 tolerates; see: \S+ checkpoints --verify; back to checkpoint 10\n")
        self.assertIn("attempt 3 begins with checkpoint 10", done.stderr)
        self.assertEqual([self.read("got.0"), self.read("got.1")], [self.content(10)] * 2)

    def test_what_is_out_of_reach_is_not_called_lost(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.holdfast("agents", "stop", "n2")
        self.assertIn("degraded", self.holdfast("checkpoints", "--verify", expect=1).stdout)
        for node in ("n4", "n5"):
            self.holdfast("agents", "stop", node)
        said = self.holdfast("checkpoints", "--verify", expect=3).stdout
        self.assertRegex(said, r"ck\.20\.1 \(step 20, attempt 1\): unknown, \d+ rows?, 0 findings\n")
        for node in ("n2", "n4", "n5"):
            self.assertEqual(said.count(f"holdfast agents start --this-node-only --node {node} {self.path('holdfast-nodes', node)}\n"), 1, said)
        # Without the disks it is lost, whether or not agents answer on the others.
        for node in ("n2", "n4", "n5"):
            self.lose_disk(node)
            self.holdfast("agents", "start", "--node", node, self.path("holdfast-nodes", node))
        self.holdfast("agents", "stop", "n1")
        said = self.holdfast("checkpoints", "--verify", expect=2).stdout
        self.assertRegex(said, r"ck\.20\.1 \(step 20, attempt 1\): lost, ")
        self.assertNotIn("agents start", said)

    def test_so_does_a_later_run_and_all_is_said_of_it_meanwhile(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.flip(20, 1, "n1", "n3", "n4")
        self.go_on(expect=1)
        self.assertEqual(self.states(), {10: "whole", 20: "damaged"})
        self.assertIn("ck.20.1 could not be read", self.standings()[20]["why"])
        done = self.go_on()
        self.assertIn("back to checkpoint 10", done.stderr)
        self.assertIn("attempt 3 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got.1"), self.content(10))

    def test_what_can_be_read_again_is_begun_with(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.flip(20, 1, "n1", "n3", "n4")
        self.go_on(expect=1)
        self.flip(20, 1, "n3")
        done = self.go_on()
        self.assertIn("attempt 3 begins with checkpoint 20", done.stderr)
        self.assertNotIn("cannot be read", done.stderr)
        self.assertEqual(self.read("got.1"), self.content(20))

    def test_what_is_older_stays_until_newer_ones_are_whole(self):
        """The damaged one is none of those that --keep means."""
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.flip(20, 1, "n1", "n3", "n4")
        self.go_on(expect=1)
        self.run_job("cat ck/ck.10.$RANK > got.$RANK; seq 30 9999 > ck/ck.30.$RANK", "--resume", "--keep", "2", "--drain", "none", ranks=2)
        states = self.states()
        self.assertEqual((states[10], states[30]), ("superseded", "whole"))
        self.assertEqual(self.read("got.0"), self.content(10))

    def test_where_there_is_no_other_the_start_is_refused(self):
        self.run_job(self.WRITE, "--keep", "1", "--drain", "none", ranks=2)
        self.flip(20, 0, "n1", "n2", "n3")
        self.assertIn("attempt 2 begins with checkpoint 20", self.go_on(expect=1).stderr)
        refused = self.go_on(expect=122)
        self.assertRegex(refused.stderr, r"checkpoint 20 cannot be read, and there is no other: \S+/ck/ck\.20\.0 is damaged beyond what rs:4\+2 tolerates")

    def test_back_to_plain_files_where_they_are_all_that_is_left(self):
        self.run_job("seq 10 9999 > ck/ck.10.$RANK", ranks=2)
        self.run_job("seq 20 9999 > ck/ck.20.$RANK", "--resume", "--keep", "1", "--drain", "none", ranks=2)
        self.flip(20, 0, "n1", "n2", "n3")
        self.go_on(expect=1)
        done = self.go_on()
        self.assertIn("back to checkpoint 10", done.stderr)
        self.assertIn("begins with checkpoint 10 as it was drained", done.stderr)
        self.assertEqual(self.read("got.0"), self.content(10))

    # Agents that have ended.

    def test_the_agents_of_simulated_nodes_are_started_again_as_it_is_advised(self):
        self.run_job(self.WRITE, "--drain", "none", ranks=2)
        for node in ("n1", "n2", "n3"):
            self.holdfast("agents", "stop", node)
        advised = re.findall(r"start the agent of simulated node n\d: holdfast (agents start --this-node-only --node n\d \S+)",
                             self.holdfast("checkpoints", "--verify", expect=3).stdout)
        self.assertEqual(len(advised), 3)
        for words in advised:
            self.holdfast(*words.split())
        self.assertNotIn("agent", self.holdfast("checkpoints", "--verify").stdout)

    # Units and manifests that somebody has deleted.

    def parts(self, step):
        return glob.glob(self.path("holdfast-nodes", "n*", f"ck.{step}.*"))

    def delete_some(self, step):
        for rank, node, name in ((0, "n1", "manifest"), (0, "n2", "data"), (1, "n3", "data"), (1, "n4", "manifest")):
            (part,) = glob.glob(self.path("holdfast-nodes", node, f"ck.{step}.{rank}-*", name))
            os.remove(part)

    def test_a_drop_leaves_nothing_of_what_has_lost_units_and_manifests(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.delete_some(10)
        self.assertEqual(len(self.parts(10)), 12)
        self.assertEqual(self.holdfast("checkpoints", "--drop", "10").stdout, "2 files of checkpoint 10 dropped\n")
        self.assertEqual(self.parts(10), [])
        self.assertEqual((self.states(), len(self.parts(20))), ({20: "whole"}, 12))

    def test_so_does_a_newer_checkpoint_of_the_job(self):
        self.run_job(self.WRITE, "--keep", "2", "--drain", "none", ranks=2)
        self.delete_some(10)
        self.run_job("cat ck/ck.20.$RANK > got.$RANK; seq 30 9999 > ck/ck.30.$RANK", "--resume", "--keep", "1", "--drain", "none", ranks=2)
        self.assertEqual((self.parts(10), self.parts(20)), ([], []))
        self.assertEqual(self.states(), {30: "whole"})


if __name__ == "__main__":
    unittest.main()
