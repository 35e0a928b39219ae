"""A file that ranks share, on more nodes than a target set can have. The nodes are agents of one machine."""
import os
import shutil
import subprocess
import time
import unittest

from command import OwnAgentsTest, interrupt, interrupted_with_its_test

RECORD, RECORDS, RANKS, NODES = 5000, 200, 3, 72
LAUNCHERS = [[*words, "-n", str(RANKS)] for name, words in (("openmpi", ["mpirun.openmpi", "--oversubscribe"]), ("mpich", ["mpiexec.mpich"]))
             if shutil.which(words[0]) and shutil.which(f"mpicc.{name}")]


class WideFiles(OwnAgentsTest):
    def compile(self, launcher):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "independent.c")
        compiler = "mpicc." + launcher[0].split(".")[1]
        subprocess.run([compiler, "-O1", "-o", self.path("independent"), source], check=True, timeout=60)

    @staticmethod
    def content():
        """As the program's ranks write it."""
        def record(i, rank):
            text = f"record {i} of rank {rank}".encode() + b"\0"
            return text + bytes([ord("a") + (i + rank) % 26]) * (RECORD - len(text))
        return b"".join(record(i, rank) for i in range(RECORDS) for rank in range(RANKS))

    def data_objects(self, *directory):
        """Those that have bytes."""
        found = [os.path.join(root, "data") for root, _, names in os.walk(self.path(*directory)) if "data" in names]
        return [data for data in found if os.stat(data).st_blocks > 0]

    def lose_two_that_have_some_of_it(self, job):
        """Neighbours: rows of both lack two units."""
        deadline = time.monotonic() + 60
        while len(self.data_objects("holdfast-nodes")) < 20:
            self.assertIsNone(job.poll(), "it ended before anything was there")
            self.assertLess(time.monotonic(), deadline, "nothing reaches the nodes")
            time.sleep(0.1)
        members = [m["path"].split(":")[0] for m in self.json("status", "shared.dat", expect=None)["files"][0]["members"]]
        for node in members[2:4]:
            self.lose_agent(node)
            shutil.rmtree(self.path("holdfast-nodes", node))
        self.assertIsNone(job.poll(), "it ended before the nodes were lost")
        return members

    @unittest.skipUnless(LAUNCHERS, "no MPI with a compiler is installed")
    def test_mirrors_that_ranks_share_go_round_all_nodes_too(self):
        self.compile(LAUNCHERS[0])
        self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.holdfast("run", "--simulate-nodes", "6", "--protect", "mirror:2", "--path", "*.dat", "--striping-unit", "16k", "--", *LAUNCHERS[0],
                      "./independent", "shared.dat", str(RECORDS), "0", "0")
        self.assertEqual(self.cat("shared.dat"), self.content())
        self.assertEqual(len(self.data_objects("holdfast-nodes")), 5, "all but the one that a repair needs")

    @unittest.skipUnless(LAUNCHERS, "no MPI with a compiler is installed")
    def test_ranks_write_one_file_on_seventy_nodes_of_which_two_are_lost(self):
        self.compile(LAUNCHERS[0])
        self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        job = subprocess.Popen([self.binary, "run", "--simulate-nodes", str(NODES), "--protect", "rs:4+2", "--path", "*.dat", "--striping-unit", "16k", "--",
                                *LAUNCHERS[0], "./independent", "shared.dat", str(RECORDS), "10", "0"], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interrupted_with_its_test)
        self.addCleanup(interrupt, job)
        members = self.lose_two_that_have_some_of_it(job)
        self.assertEqual(len(set(members)), NODES - 2, "all but those that a repair needs")
        out, error = job.communicate(timeout=100)
        self.assertEqual(job.returncode, 0, error)
        self.assertEqual(sorted(out.split("\n")), sorted([""] + [f"rank {rank} is done" for rank in range(RANKS)]), error)
        self.assertEqual(self.cat("shared.dat"), self.content())
        for node in set(members) - set(members[2:4]):
            self.assertEqual(len(self.data_objects("holdfast-nodes", node)), 1, f"{node} keeps a part of it")
        self.holdfast("verify", "shared.dat", expect=1)
        self.holdfast("repair", "shared.dat", "--onto-live")
        self.holdfast("verify", "shared.dat")
        after = {m["path"].split(":")[0] for m in self.json("status", "shared.dat")["files"][0]["members"]}
        self.assertEqual(len(after), NODES - 2)
        self.assertFalse(after & set(members[2:4]))
        self.assertEqual(self.cat("shared.dat"), self.content())


if __name__ == "__main__":
    unittest.main()
