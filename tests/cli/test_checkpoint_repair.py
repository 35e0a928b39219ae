"""What a checkpoint has lost with its nodes is made anew: by the next attempt, and by holdfast checkpoints --repair."""
import glob
import os
import unittest

from checkpoint_test import CheckpointTest


class CheckpointRepair(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.run_job("seq 1 50000 > ck/ck.10.$RANK; echo $RANK >> ck/ck.10.$RANK", "--drain", "none", ranks=3)
        self.content = ["".join(f"{i}\n" for i in range(1, 50001)) + f"{rank}\n" for rank in range(3)]

    def findings(self, step=10):
        return [line.split(", ")[-1] for line in self.holdfast("checkpoints", "--verify", expect=None).stdout.splitlines() if f"step {step}," in line]

    def test_a_node_whose_disk_was_replaced_is_taken_anew(self):
        """Without a job: its agent answers, and its directory is empty."""
        self.lose("n2", "n5")
        self.holdfast("agents", "start", "--node", "n2", self.path("holdfast-nodes", "n2"))
        said = self.holdfast("checkpoints").stderr.splitlines()
        self.assertIn("n2 is empty and has no marker: is a mount missing there? If not, the next job takes it anew", said[0])
        self.assertTrue(said[1].endswith("n5 does not answer"), said)
        refused = self.holdfast("checkpoints", "--repair", "10", expect=3)
        self.assertIn("rs:4+2 needs 6 nodes and 5 answer: start agents on more of them", refused.stderr)
        self.holdfast("agents", "start", "--node", "n5", self.path("holdfast-nodes", "n5"))
        done = self.holdfast("checkpoints", "--repair", "10")
        self.assertEqual(done.stdout, "checkpoint 10: 3 of 3 files made anew\n")
        self.assertIn("n5 is empty, and is taken anew", done.stderr)
        self.assertEqual(self.findings(), ["0 findings"] * 3)
        self.lose("n1", "n3")
        self.assert_readable()

    def test_what_is_no_empty_directory_is_not_taken(self):
        self.lose("n2")
        self.holdfast("agents", "start", "--node", "n2", self.path("holdfast-nodes", "n2"))
        with open(self.path("holdfast-nodes", "n2", "somebodys"), "w") as file:
            file.write("data\n")
        self.assertIn("n2 has no target marker", self.holdfast("checkpoints").stderr)
        self.holdfast("checkpoints", "--repair", "10", expect=3)
        self.assertEqual(os.listdir(self.path("holdfast-nodes", "n2")), ["somebodys"])

    def start_agents(self):
        """Those of all nodes again; what was wiped is an empty directory."""
        self.run_job("true", "--drain", "none")

    def assert_readable(self):
        self.run_job("cat ck/ck.10.$RANK > got.$RANK", "--resume", "--drain", "none", ranks=3)
        self.assertEqual([self.read(f"got.{rank}") for rank in range(3)], self.content)

    def test_the_next_attempt_makes_it_whole_and_then_it_bears_as_many_losses_again(self):
        self.lose("n2", "n5")
        # All of it is there again, and what it takes the place of is gone.
        done = self.run_job("""[ $RANK = 2 ] || exit 0
            count() { LD_PRELOAD= ls -d "$@" 2>/dev/null | wc -l; }
            for i in $(seq 300); do
                sleep 0.2
                [ "$(count holdfast-nodes/n2/ck.10.*) $(count holdfast-nodes/n5/ck.10.*) $(count holdfast-nodes/n*/ck.10.*)" = "3 3 18" ] && break
            done""", "--resume", "--drain", "none", ranks=3)
        self.assertIn("begins with checkpoint 10", done.stderr)
        self.assertEqual(self.findings(), ["0 findings"] * 3)
        self.assertEqual([len(glob.glob(self.path(f"holdfast-nodes/n{n}/ck.10.*"))) for n in range(1, 7)], [3] * 6, "the old ones are gone")
        self.lose("n1", "n3")
        self.assertEqual(self.states(), {10: "whole"})
        self.assert_readable()

    def test_by_hand_what_lacks_or_is_damaged_is_written_again_and_the_rest_stays(self):
        before = {os.path.basename(name) for name in glob.glob(self.path("holdfast-nodes/n1/ck.10.*"))}
        self.lose("n6")
        self.start_agents()
        untouched = "checkpoint 10: 3 of 3 files made anew\n"
        self.assertEqual(self.holdfast("checkpoints", "--repair", "10").stdout, untouched)
        after = {os.path.basename(name) for name in glob.glob(self.path("holdfast-nodes/n1/ck.10.*"))}
        self.assertEqual((len(after), after & before), (3, set()))
        unit = glob.glob(self.path("holdfast-nodes/n3/ck.10.1-*/unit*")) + glob.glob(self.path("holdfast-nodes/n3/ck.10.1-*/data"))
        with open(unit[0], "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        self.assertNotEqual(self.findings(), ["0 findings"] * 3)
        self.assertEqual(self.holdfast("checkpoints", "--repair", "10").stdout, "checkpoint 10: 1 of 3 files made anew\n")
        self.assertEqual(self.findings(), ["0 findings"] * 3)
        self.assertEqual(self.holdfast("checkpoints", "--repair", "10").stdout, "checkpoint 10: 0 of 3 files made anew\n")
        self.assert_readable()
        self.assert_one_sentence(self.holdfast("checkpoints", "--repair", "11", expect=3).stderr, "there is no checkpoint 11")

    def test_a_nodes_directory_lists_what_it_keeps_of_checkpoints(self):
        target = f"n2:{self.path('holdfast-nodes/n2')}"
        listed = self.holdfast("ls", target).stdout
        self.assertEqual(listed.count("healthy"), 3)
        self.assertIn(self.path("ck/ck.10.2") + " (checkpoint 10, attempt 1)", listed)
        files = self.json("ls", target)["files"]
        self.assertEqual([(f["path"], f["checkpoint"]["rank"], f["health"]) for f in sorted(files, key=lambda f: f["path"])],
                         [(self.path(f"ck/ck.10.{rank}"), rank, "healthy") for rank in range(3)])
        self.lose("n4")
        self.assertEqual(self.holdfast("ls", target, expect=None).stdout.count("degraded"), 3)

    def test_status_and_repair_know_a_file_of_a_checkpoint_by_its_path(self):
        self.assertIn("ck.10.1 (checkpoint 10, attempt 1)\n", self.holdfast("status", "ck/ck.10.1").stdout)
        self.lose("n6")
        status = self.holdfast("status", "ck/ck.10.1", expect=1).stdout
        self.assertIn("degraded", status)
        self.assertIn("mend: holdfast checkpoints --repair 10\n", status)
        self.start_agents()
        self.assert_one_sentence(self.holdfast("repair", "ck/ck.10.1", "--onto-live", expect=3).stderr, "is written again over the nodes that answer")
        self.assertIn("made anew", self.holdfast("repair", "ck/ck.10.1").stdout)
        self.assertIn("nothing is missing", self.holdfast("repair", "ck/ck.10.1").stdout)
        healths = [self.json("status", f"ck/ck.10.{rank}", expect=None)["files"][0]["health"] for rank in range(3)]
        self.assertEqual(healths, ["degraded", "healthy", "degraded"])
        self.assertEqual(self.json("repair", "ck/ck.10.0")["files"][0]["made_anew"], True)
        # A plain file that was drained there changes nothing of it; a path of which no node knows is as without checkpoints.
        self.holdfast("checkpoints", "--drain", "10")
        self.assertIn("healthy", self.holdfast("status", "ck/ck.10.0").stdout)
        self.assertNotIn("checkpoint", self.holdfast("status", "ck/ck.11.0", expect=3).stderr)

    def test_with_too_few_nodes_all_stays_as_it_was(self):
        self.lose("n4")
        before = self.tree()
        refused = self.holdfast("checkpoints", "--repair", "10", expect=3)
        self.assertIn("ck.10.2: rs:4+2 needs 6 nodes and 5 answer", refused.stderr)
        self.assertEqual(self.states(), {10: "whole"})
        self.assertEqual([name for name in self.tree() if "/ck." in name], [name for name in before if "/ck." in name])


if __name__ == "__main__":
    unittest.main()
