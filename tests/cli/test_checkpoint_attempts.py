"""holdfast run --resume: attempts of one number, of which the nodes of each knew nothing of the other."""
import os
import signal
import unittest

from checkpoint_test import CheckpointTest


class Attempts(CheckpointTest):
    def test_two_attempts_of_one_number_are_told_apart(self):
        """All nodes that know of the second attempt are away when the next one begins, and come back. Both have written one step."""
        here = {"nodes": 4, "scheme": "mirror:2"}
        # The time that they are halted counts as time without clients.
        self.run_job("echo one > ck/ck.1.0", "--agent-linger", "600", **here)
        agents = {node: self.agent_of(node) for node in ("n1", "n2", "n3", "n4")}
        self.env["HOLDFAST_DEADLINE"] = "1s"

        def only(*answering):
            for node, agent in agents.items():
                os.kill(agent, signal.SIGCONT if node in answering else signal.SIGSTOP)

        self.addCleanup(only, *agents)
        only("n1", "n2")
        earlier = self.run_job("cat ck/ck.1.0; echo two > ck/ck.2.0", "--resume", "--drain", "none", **here)
        only("n3", "n4")
        later = self.run_job("cat ck/ck.1.0; echo three > ck/ck.2.0", "--resume", "--drain", "none", **here)
        self.assertIn("attempt 2 begins with checkpoint 1, on n1, n2", earlier.stderr)
        self.assertIn("attempt 2 begins with checkpoint 1 as it was drained, on n3, n4", later.stderr)
        self.assertEqual((earlier.stdout, later.stdout), ("one\n", "one\n"))
        only(*agents)
        both = [c for c in self.json("checkpoints")["checkpoints"] if c["step"] == 2]
        self.assertEqual([(c["attempt"], c["state"], c["nodes"]) for c in both], [(2, "superseded", ["n1", "n2"]), (2, "whole", ["n3", "n4"])])
        self.assertLess(both[0]["attempt_id"], both[1]["attempt_id"])
        for one in both:
            self.assertRegex(self.holdfast("checkpoints").stdout, rf"\b2\.{one['attempt_id']}\b")
        os.mkdir(self.path("out"))
        for answering, content in ((agents, "three\n"), (("n1", "n2"), "two\n"), (("n3", "n4"), "three\n")):
            only(*answering)
            self.holdfast("checkpoints", "--drain", "2", "out")
            self.assertEqual(self.read("out/ck/ck.2.0"), content)
        only(*agents)
        again = self.run_job("cat ck/ck.2.0", "--resume", "--drain", "none", **here)
        self.assertIn("attempt 3 begins with checkpoint 2, on", again.stderr)
        self.assertEqual(again.stdout, "three\n")
        self.holdfast("checkpoints", "--drop", "2")
        self.assertEqual([c["state"] for c in self.json("checkpoints")["checkpoints"]], ["drained"])

    def test_a_run_is_later_than_those_before_though_the_clock_was_set_back(self):
        """Nobody goes on from the run before the last one."""
        here = {"nodes": 3, "scheme": "rs:2+1"}
        self.run_job("echo one > ck/ck.5.0", "--drain", "none", **here)
        self.env.update(LD_PRELOAD=os.environ["HOLDFAST_LATE_CLOCK"], HOLDFAST_CLOCK_SET_BACK="86400")
        self.run_job("echo two > ck/ck.2.0", "--drain", "none", **here)
        self.assertEqual([c["step"] for c in self.json("checkpoints")["checkpoints"]], [5, 2], "in their order")
        again = self.run_job("cat ck/ck.*", "--resume", "--drain", "none", **here)
        self.assertEqual(again.stdout, "two\n", again.stderr)


if __name__ == "__main__":
    unittest.main()
