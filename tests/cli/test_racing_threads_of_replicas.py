"""holdfast run --replicas: threads of one rank that wait for the same messages, or send such, at the same time are named: no replica can repeat which is first."""
import os
import subprocess
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "racing_threads.c")
SAME = "threads of one rank wait at the same time for the same messages on one communicator"
REQUESTS = "threads of one rank ask at the same time which requests are complete"
SENDS = "threads of one rank send at the same time to the same rank with one tag on one communicator"
FIRST = ", and which of these messages comes first may differ between replicas\n"
ALL = "threads of one rank are at the same time in collective calls on one communicator"
FORBIDDEN = ", which MPI forbids, and which of them is first may differ between replicas\n"
WARNING = ", and which of them is answered first may differ between replicas\n"


class RacingThreadsOfReplicas(ReplicatedTest):
    def start_racing(self, how, expect):
        for name, launcher in self.launchers():
            with self.subTest(name, how=how):
                subprocess.run([f"mpicc.{name}", "-pthread", SOURCE, "-o", "racing"], cwd=self.dir, check=True)
                done = self.replicas(*launcher, "./racing", how, "file", expect=None)
                self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,), done.stderr)
                yield done.stderr

    def test_threads_that_wait_for_the_same_messages_are_named_once(self):
        for said in self.start_racing("one", 120):
            self.assertEqual(said.count(f"holdfast: rank 0: {SAME}{WARNING}"), 1, said)
            self.assertIn(f"; {SAME}, whose order replicas cannot repeat", said)
            self.assertIn(SAME, self.holdfast("status", "--job", expect=None).stdout)

    def test_threads_that_wait_for_anybody_are_named_once(self):
        """Whether they differ then is chance: the leader's match may be taken by either."""
        for said in self.start_racing("anybody", (0, 120)):
            self.assertEqual(said.count(f"holdfast: rank 0: {SAME}{WARNING}"), 1, said)

    def test_threads_that_ask_for_requests_are_named_once(self):
        for said in self.start_racing("requests", (0, 120)):
            self.assertEqual(said.count(f"holdfast: rank 0: {REQUESTS}{WARNING}"), 1, said)

    def test_a_thread_that_posts_what_another_waits_for_is_named_once(self):
        for said in self.start_racing("posted", 120):
            self.assertEqual(said.count(f"holdfast: rank 0: {SAME}{WARNING}"), 1, said)

    def test_threads_that_send_with_one_tag_are_named_once(self):
        for how in ("sends", "sendrecv", "sendstart"):
            for said in self.start_racing(how, 120):
                self.assertEqual(said.count(f"holdfast: rank 0: {SENDS}{FIRST}"), 1, said)
                self.assertIn(SENDS, self.holdfast("status", "--job", expect=None).stdout)

    def test_threads_in_collective_calls_on_one_communicator_are_named_once(self):
        for how in ("all", "allstart"):
            for said in self.start_racing(how, 0):
                self.assertEqual(said.count(f"holdfast: rank 0: {ALL}{FORBIDDEN}"), 1, said)

    def test_a_persistent_collective_call_counts_when_it_is_started(self):
        """MPI 4 has such: of Debian's, MPICH."""
        launcher = dict(debian_mpis()).get("mpich")
        if not launcher:
            self.skipTest("no MPI 4 here")
        subprocess.run(["mpicc.mpich", "-pthread", SOURCE, "-o", "racing"], cwd=self.dir, check=True)
        for how, times in (("allpersist", 1), ("allpersistcomms", 0)):
            with self.subTest(how):
                said = self.replicas(*launcher, "-n", "2", "./racing", how, "file").stderr
                self.assertEqual(said.count(f"holdfast: rank 0: {ALL}{FORBIDDEN}"), times, said)

    def test_threads_that_send_apart_or_without_content_are_not_named(self):
        for how in ("sendtags", "sendrecvtags", "sendcomms", "empty", "allcomms"):
            for said in self.start_racing(how, 0):
                self.assertNotIn("threads of one rank", said)

    def test_a_thread_that_sends_because_the_others_message_was_taken_is_not_named(self):
        """Though the other one's call has not come back."""
        for said in self.start_racing("sendanswer", 0):
            self.assertNotIn("threads of one rank", said)
            self.assertEqual(self.read("file"), "100 101\n")

    def test_threads_with_messages_of_their_own_are_not_named(self):
        for said in self.start_racing("tags", 0):
            self.assertNotIn("threads of one rank", said)
            self.assertEqual(self.read("file"), "100 101\n")


if __name__ == "__main__":
    unittest.main()
