"""Checkpoints that are renamed to other checkpoints' names: the version moves, and no byte of it is coded or sent again."""
import glob
import os
import unittest

from checkpoint_test import CheckpointTest

BYTES = 3_000_000  # more than what is packed with others


class CheckpointRenames(CheckpointTest):
    def job(self, script, *options, **more):
        more = {"nodes": 3, "scheme": "rs:2+1", **more}
        return self.run_job(script, "--drain", "none", *options, **more)

    def units(self, name):
        """The objects of all versions of a file, by node: where they lie, and not how they are called."""
        found = glob.glob(self.path(f"holdfast-nodes/n*/{name}-*/data"))
        return {(os.stat(one).st_dev, os.stat(one).st_ino) for one in found}

    def test_a_protected_one_gets_its_new_name_without_being_coded_again(self):
        script = f"""head -c {BYTES} /dev/urandom > ck/ck.1.0; cp ck/ck.1.0 content; {self.until('1 *whole')}
            mv ck/ck.1.0 ck/ck.2.0; [ -e ck/ck.1.0 ] && echo there >> wrong; cmp ck/ck.2.0 content || echo other >> wrong; true"""
        self.job(script, "--keep", "9")
        self.assertFalse(os.path.exists(self.path("wrong")))
        self.assertEqual(self.states()[2], "whole")
        self.assertEqual(len(self.units("ck.1.0")), 3)
        self.assertEqual(self.units("ck.2.0"), self.units("ck.1.0"))
        self.holdfast("checkpoints", "--verify")
        self.lose("n2")
        self.job("cmp ck/ck.2.0 content", "--resume")

    def test_one_that_waits_is_coded_once(self):
        self.job(f"head -c {BYTES} /dev/urandom > ck/ck.1.0; mv ck/ck.1.0 ck/ck.2.0", "--keep", "9")
        self.assertEqual(self.states()[2], "whole")
        self.assertEqual(len(self.units("ck.1.0") | self.units("ck.2.0")), 3)

    def test_a_temporary_name_with_a_wildcard_costs_nothing(self):
        script = f"""for s in 10 20; do mkdir -p ck/$s; head -c {BYTES} /dev/urandom > ck/$s/data.new; sleep 1; mv ck/$s/data.new ck/$s/data
            cp ck/$s/data content; done"""
        self.job(script, "--keep", "9", pattern="ck/{step}/*")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.assertEqual(len(self.units("data") | self.units("data.new")), 6)
        self.job("cmp ck/20/data content; ls ck/20 > seen", "--resume", pattern="ck/{step}/*")
        self.assertEqual(self.read("seen"), "data\n")

    def test_a_temporary_name_that_is_no_checkpoints_is_coded_under_its_last_name_alone(self):
        self.job(f"head -c {BYTES} /dev/urandom > ck/new; sleep 1; mv ck/new ck/ck.1.0", "--keep", "9")
        self.assertEqual(len(glob.glob(self.path("holdfast-nodes/n*/*/data"))), 3)
        self.assertEqual(len(self.units("ck.1.0")), 3)


if __name__ == "__main__":
    unittest.main()
