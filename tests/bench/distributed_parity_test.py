"""The distributed algorithm of bench/checkpoints: what half of the nodes had is made anew from the other half's data and parity, and parity that is wrong
is found.

    distributed_parity_test.py CHECKPOINT_BENCH"""
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


class DistributedParity(unittest.TestCase):
    def coded(self, *more):
        with tempfile.TemporaryDirectory() as directory:
            return subprocess.run([PROGRAM, "parity", directory, *more], capture_output=True, text=True, timeout=50)

    def test_each_half_of_the_nodes_is_made_anew_by_the_other(self):
        done = self.coded()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("made anew by the other one", done.stdout)

    def test_parity_of_one_node_that_multiplies_by_another_number_is_found(self):
        done = self.coded("wrong")
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("is made anew otherwise than it was", done.stderr)


if __name__ == "__main__":
    unittest.main()
