"""One checkpoint file that several processes hold open at once, of one node and of several, and what becomes of it when one of them is killed."""
import sys
import unittest

from checkpoint_test import CheckpointTest
from command import BINARY

OF_ALL = "ck/ck.{step}"
SHARED = "shared:ck/ck.{step}"
# One of several processes: it writes its part of the file where the others write theirs.
PART = """
import os, sys, time
name, part, parts, stays = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(fd, bytes([65 + part]) * 1000, part * 1000)
time.sleep(stays)
os.pwrite(fd, b"!", part * 1000 + 999)
os.close(fd)
"""


class CheckpointSharing(CheckpointTest):
    def setUp(self):
        super().setUp()
        with open(self.path("part.py"), "w") as file:
            file.write(PART)

    def job(self, script, *options, ranks=1, pattern=OF_ALL, **more):
        return self.run_job(script, "--drain", "none", *options, ranks=ranks, pattern=pattern, nodes=3, scheme="rs:2+1", **more)

    def until(self, what):
        return f"for i in $(seq 100); do env -u LD_PRELOAD {BINARY} checkpoints 2> /dev/null | grep -q '{what}' && break; sleep 0.1; done"

    # Of one node.

    def test_processes_of_a_node_write_one_file_at_once(self):
        parts = 5
        script = f"""for part in $(seq 0 {parts - 1}); do {sys.executable} part.py ck/ck.10 $part {parts} 0.$(($part * 2)) & done; wait
            cat ck/ck.10 > seen; echo one > ck/ck.20"""
        self.job(script, "--keep", "9")
        whole = "".join(chr(65 + part) * 999 + "!" for part in range(parts))
        self.assertEqual(self.read("seen"), whole)
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.job("true", "--resume")
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.read("ck/ck.10"), whole)

    def test_it_is_closed_when_the_last_has_closed_it(self):
        script = f"""{sys.executable} part.py ck/ck.10 0 2 3 & sleep 0.5; {sys.executable} part.py ck/ck.10 1 2 0
            sleep 1; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; wait"""
        self.job(script)
        self.assertRegex(self.read("seen"), "10 *writing")
        self.assertEqual(self.states(), {10: "whole"})

    def killed(self, ends):
        """A job whose second checkpoint another process has open when it is killed; what its next attempt begins with."""
        script = f"""[ -e tried ] && {{ cat ck/* > got; exit 0; }}; touch tried
            echo one > ck/ck.10; {self.until("10 *whole")}
            {ends}; sleep 1; exit 7"""
        done = self.job(script, "--restarts", "1")
        self.assertIn("not whole, and neither opened nor listed from here on: checkpoint 20", done.stderr)
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got"), "one\n")

    def test_one_that_is_killed_after_another_has_closed_it_leaves_it_torn(self):
        self.killed("""sh -c 'exec 4<> ck/ck.20; echo half >&4; sleep 1; kill -9 $$' & sleep 0.3
            (exec 3<> ck/ck.20; echo mine >&3); wait""")

    def test_one_that_is_killed_before_another_closes_it_leaves_it_torn(self):
        self.killed("exec 3<> ck/ck.20; sh -c 'exec 4<> ck/ck.20; echo half >&4; kill -9 $$'; echo mine >&3; exec 3>&-")

    def test_one_that_gives_up_leaves_it_torn(self):
        self.killed("exec 3<> ck/ck.20; sh -c 'exec 4<> ck/ck.20; echo half >&4; exit 9'; echo mine >&3; exec 3>&-")

    def test_who_opens_it_after_their_death_goes_on_from_there(self):
        script = """sh -c 'exec 3> ck/ck.10; echo half >&3; kill -9 $$'; echo more >> ck/ck.10
            sh -c 'exec 3> ck/ck.20; echo half >&3; kill -9 $$'; echo anew > ck/ck.20; cat ck/ck.10 ck/ck.20 > seen"""
        self.job(script, "--keep", "9")
        self.assertEqual(self.read("seen"), "half\nmore\nanew\n")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})

    def test_commands_that_inherit_a_descriptor_and_are_killed_are_nobody(self):
        self.job("exec 3> ck/ck.10; sh -c 'kill -9 $$'; yes | head -n 1 >&3; exec 3>&-")
        self.assertEqual(self.states(), {10: "whole"})

    # Of several nodes.

    def test_a_second_node_is_refused_by_name(self):
        self.second_node_is_refused(OF_ALL)

    def test_so_it_is_where_the_pattern_calls_the_file_shared(self):
        """That says which file MPI's opens mean, and changes nothing for those of the C library."""
        self.second_node_is_refused(SHARED)

    def test_a_file_that_the_pattern_calls_shared_is_written_by_one_node_after_another(self):
        self.job("python3 part.py ck/ck.10 $RANK 3 0", ranks=3, pattern=SHARED)
        self.assertEqual(self.states(), {10: "whole"})
        self.job("cat ck/ck.10 > got", "--resume", pattern=SHARED)
        self.assertEqual(self.read("got"), "".join(c * 999 + "!" for c in "ABC"))

    def second_node_is_refused(self, pattern):
        script = """[ $RANK = 0 ] && { (exec 3> ck/ck.10; sleep 3; echo by 0 >&3) & sleep 0.5; exit 0; }
            echo by 1 > ck/ck.10 && echo wrong >> got; sleep 3; true"""
        done = self.job(script, ranks=2, pattern=pattern)
        self.assertRegex(done.stderr, "/ck/ck.10 is open to write on node n1, and what two nodes write at once cannot be joined: let ranks open it "
                                      "together by MPI_File_open, or give each a file of its own with a {rank} in its name")
        self.assertRegex(done.stderr, "ck/ck.10.*busy")
        self.assertEqual(self.states(), {10: "whole"})
        self.job("cat ck/ck.10 > got", "--resume", pattern=pattern)
        self.assertEqual(self.read("got"), "by 0\n")

    def test_two_nodes_that_begin_it_at_once_leave_one_of_them_or_none(self):
        script = """[ $RANK = 0 ] && { (until [ -e go ]; do :; done; exec 3> ck/ck.10 && { echo by 0 >> got; sleep 2; echo by 0 >&3; }) & exit 0; }
            touch go; (exec 3> ck/ck.10 && { echo by 1 >> got; sleep 2; echo by 1 >&3; }); sleep 3; true"""
        open(self.path("got"), "w").close()
        done = self.job(script, ranks=2, expect=None)
        winners = self.read("got").splitlines()
        self.assertLessEqual(len(winners), 1)
        self.assertNotIn("fails", done.stderr)
        self.assertEqual(self.states(), {10: "whole"} if winners else {})

    def test_one_node_after_another_goes_on_from_what_was_closed(self):
        script = "for i in 1 2 3; do echo $i of $RANK >> ck/ck.10; done"
        self.job(script, ranks=3)
        self.job("cat ck/ck.10 > got", "--resume")
        self.assertEqual(self.read("got"), "".join(f"{i} of {rank}\n" for rank in range(3) for i in (1, 2, 3)))


if __name__ == "__main__":
    unittest.main()
