"""Small files of many ranks of a node share protected files, and each is a checkpoint's file as any other one."""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from checkpoint_test import PATTERN, CheckpointTest

JACOBI = os.path.join(os.path.dirname(__file__), "../../examples/jacobi_checkpoint.c")
RANKS, NODES = 18, 6


class CheckpointPacks(CheckpointTest):
    def write_steps(self, *steps, options=()):
        """Of each step all ranks have closed their files before a protector looks."""
        script = f"[ $RANK != 0 ] || {self.strike_protectors('STOP')}\n"
        script += "".join(f"{{ seq $RANK 700; echo {step}; }} > ck/ck.{step}.$RANK\n" for step in steps)
        script += f"[ $RANK != {RANKS - 1} ] || {self.strike_protectors('CONT')}"
        return self.run_job(script, "--drain", "none", "--keep", "2", *options, nodes=NODES, ranks=RANKS)

    def stored(self, step):
        return {os.path.basename(name) for name in glob.glob(self.path(f"holdfast-nodes/n*/ck.{step}.*"))}

    def content(self, step):
        return ["".join(f"{i}\n" for i in range(rank, 701)) + f"{step}\n" for rank in range(RANKS)]

    def assert_begins_with(self, step):
        self.run_job(f"cat ck/ck.{step}.$RANK > got.$RANK; ls ck | wc -l > seen", "--resume", "--drain", "none", nodes=NODES, ranks=RANKS)
        self.assertEqual([self.read(f"got.{rank}") for rank in range(RANKS)], self.content(step))
        self.assertGreaterEqual(int(self.read("seen")), RANKS)

    def test_a_step_takes_one_commit_a_node_and_bears_the_loss_of_two(self):
        self.write_steps(10)
        self.assertEqual(len(self.stored(10)), NODES)
        self.assertEqual(self.standings()[10]["files"], RANKS)
        self.assertEqual(self.states(), {10: "whole"})
        self.lose("n2", "n5")
        self.assertEqual(self.states(), {10: "whole"})
        self.assert_begins_with(10)
        self.assertIn("3 files together", self.holdfast("checkpoints", "--verify", expect=None).stdout)

    def test_one_node_more_is_too_much_and_the_step_before_is_no_less_lost(self):
        self.write_steps(10)
        self.lose("n1", "n2", "n5")
        self.assertEqual(self.states(), {10: "lost"})
        self.run_job("true", "--resume", nodes=NODES, ranks=RANKS, expect=122)

    def test_nothing_is_packed_where_that_is_turned_off(self):
        self.write_steps(10, options=["--pack-below", "0"])
        self.assertEqual(len(self.stored(10)), RANKS)

    def test_repaired_by_hand_all_of_a_pack_is_made_anew_once(self):
        self.write_steps(10)
        before = self.stored(10)
        self.lose("n6")
        self.run_job("true", "--drain", "none", nodes=NODES)  # its agent again, over an empty directory
        self.assertEqual(self.holdfast("checkpoints", "--repair", "10").stdout, f"checkpoint 10: {RANKS} of {RANKS} files made anew\n")
        self.assertEqual((len(self.stored(10)), self.stored(10) & before), (NODES, set()))
        verdicts = self.holdfast("checkpoints", "--verify").stdout.splitlines()
        self.assertEqual([line.split(", ")[-1] for line in verdicts], ["0 findings"] * RANKS)
        self.assert_begins_with(10)

    def test_each_file_has_its_own_status_and_place_and_they_go_together(self):
        self.write_steps(10, 20, 30)
        self.assertEqual(self.states(), {20: "superseded", 30: "whole"})
        self.assertEqual(self.stored(10), set())
        facts = json.loads(self.holdfast("status", "ck/ck.20.7", "--json").stdout)
        [facts] = facts["files"] if isinstance(facts, dict) and "files" in facts else [facts]
        self.assertEqual((facts["path"], facts["size"], facts["health"]), (self.path("ck/ck.20.7"), len(self.content(20)[7]), "healthy"))
        self.assertEqual(self.holdfast("ls", f"n1:{self.path('holdfast-nodes/n1')}").stdout.count("ck/ck.20."), RANKS)
        os.mkdir(self.path("out"))
        self.holdfast("checkpoints", "--drain", "20", "out")
        self.assertEqual([self.read(f"out/ck/ck.20.{rank}") for rank in range(RANKS)], self.content(20))
        self.assertEqual(self.holdfast("checkpoints", "--drop", "20").stdout, f"{RANKS} files of checkpoint 20 dropped\n")
        self.assertEqual(self.stored(20), set())
        self.assertEqual(self.states(), {30: "whole"})

    def test_an_mpi_program_that_loses_two_nodes_ends_with_the_same_bits(self):
        """Two or three ranks on each of eight nodes. It waits for its files to be protected, so that it cannot end before the nodes are lost."""
        launcher = shutil.which("mpirun.openmpi")
        if not launcher:
            self.skipTest("there is no Open MPI")
        subprocess.run(["mpicc.openmpi", "-O2", "-o", self.path("jacobi"), JACOBI], check=True)
        mpirun = [launcher, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS), self.path("jacobi"), "60", "10", "16"]
        native = subprocess.run(mpirun, cwd=self.dir, env=self.env, capture_output=True, text=True, check=True, timeout=120)
        shutil.rmtree(self.path("ck"))
        done = self.holdfast("run", "--simulate-nodes", "8", "--simulate-loss", "1,4@30", "--protect", "rs:4+2", "--checkpoint", PATTERN, "--restarts", "1",
                             "--protect-at", "close", "--deadline", "60s", "--", *mpirun, "100000")
        self.assertIn("attempt 2 begins with checkpoint", done.stderr)
        self.assertEqual(re.findall(r"checksum \w+", done.stdout), re.findall(r"checksum \w+", native.stdout))
        self.assertEqual(len(glob.glob(self.path("ck/ck.60.*"))), RANKS)


if __name__ == "__main__":
    unittest.main()
