"""`--units remote`: the node that wrote a checkpoint keeps none of its units, as long as others are enough."""
import glob
import unittest

from checkpoint_test import CheckpointTest

# At the second attempt, or a later job, what is there is read. Before the first one ends some nodes lose all that they have.
SCRIPT = """[ -e tried ] && { cat ck/ck.10.0 > got; exit 0; }
touch tried; seq 100000 > ck/ck.10.0; for node in $LOSE; do rm -rf holdfast-nodes/$node/* holdfast-nodes/$node/.[a-z]*; done; exit 7"""


class CheckpointUnits(CheckpointTest):
    def job(self, *options, lose="", nodes=5, **more):
        return self.run_job(f"LOSE='{lose}'; {SCRIPT}", "--protect-at", "close", "--drain", "none", *options, nodes=nodes, scheme="rs:2+1", **more)

    def keepers(self):
        """Nodes with a unit of a checkpoint that n1 wrote."""
        found = glob.glob(self.path("holdfast-nodes/n*/ck.10.0-*/data"))
        return sorted({path.split("/")[-3] for path in found})

    def test_the_writer_keeps_a_unit_of_its_own_unless_asked(self):
        self.job(expect=7)
        self.assertEqual(len(self.keepers()), 3)
        self.assertIn("n1", self.keepers())

    def test_others_keep_them_all(self):
        self.job("--units", "remote", expect=7)
        self.assertEqual(len(self.keepers()), 3)
        self.assertNotIn("n1", self.keepers())

    def test_the_writer_may_be_lost_beside_as_many_as_the_scheme_bears(self):
        self.job("--units", "remote", "--restarts", "1", lose="n1 n2")
        self.assertEqual(self.read("got"), "".join(f"{i}\n" for i in range(1, 100001)))

    def test_with_a_unit_of_its_own_that_is_one_too_many(self):
        done = self.job("--restarts", "1", lose="n1 n2", expect=122)
        self.assertRegex(done.stderr, "n1.*n2|n2.*n1")

    def test_while_others_are_too_few_the_writer_keeps_one(self):
        self.run_job("rm -rf holdfast-nodes/n2/*; seq 100000 > ck/ck.10.0", "--protect-at", "close", "--drain", "none", "--units", "remote", nodes=4, scheme="rs:2+1")
        self.assertEqual(self.keepers(), ["n1", "n3", "n4"])

    def test_too_few_nodes_are_refused_before_the_program_begins(self):
        done = self.job("--units", "remote", nodes=3, expect=2)
        self.assertIn("rs:2+1 with --units remote needs 4 nodes and there are 3; the largest scheme that fits is mirror:2", done.stderr)
        done = self.holdfast("run", "--units", "remote", "--protect", "mirror:2", "--targets", "a,b", "--", "true", expect=2)
        self.assertIn("--units is about checkpoints: name their files with --checkpoint 'ck/ck.{step}.{rank}'", done.stderr)


if __name__ == "__main__":
    unittest.main()
