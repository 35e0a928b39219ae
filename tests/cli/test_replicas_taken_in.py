"""holdfast run --replicas: where ranks of others are taken in, in an order that no replica can repeat, and replicas differ, that is named."""
import os
import subprocess
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "accepts.c")


class ReplicasTakenIn(ReplicatedTest):
    def test_ranks_that_come_in_another_order_in_each_team_are_named(self):
        """MPICH over UCX, as Debian has it, has no ports to take others in by."""
        launcher = dict(debian_mpis()).get("openmpi")
        if not launcher:
            self.skipTest("no MPI here can take others in")
        subprocess.run(["mpicc.openmpi", SOURCE, "-o", self.path("accepts")], check=True)
        subprocess.run([*launcher, "-n", "3", "./accepts", "native"], cwd=self.dir, env=self.env, check=True, timeout=60)
        self.assertEqual(self.read("native"), "2\n1\n")
        done = self.replicas(*launcher, "-n", "3", "./accepts", "file", expect=120)
        self.assertIn("; this rank has used MPI_Comm_accept, whose order among ranks replicas cannot repeat", done.stderr)
        self.assertEqual(self.read("file"), "")


if __name__ == "__main__":
    unittest.main()
