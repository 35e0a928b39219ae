"""holdfast run --replicas: what is asked in threads that MPI's own library has started is each replica's own, whoever's code asks there."""
import os
import subprocess
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

HERE = os.path.dirname(__file__)


class ThreadsOfMpiInReplicas(ReplicatedTest):
    def build(self, *command):
        subprocess.run(command, cwd=self.dir, check=True)

    def ask(self, *libraries):
        self.build("cc", "-pthread", os.path.join(HERE, "threads_of_mpi.c"), "-o", "asks", "-L.", "-lmpi_starts", f"-Wl,-rpath,{self.dir}", *libraries)
        self.replicas("./asks", "file")
        self.assertEqual(len(self.read("file").splitlines()), 3)

    def test_threads_that_mpi_starts_ask_for_themselves_and_those_of_the_program_do_not(self):
        self.build("cc", "-shared", "-fPIC", os.path.join(HERE, "starts_for_mpi.c"), "-o", "libmpi_starts.so")
        self.ask()

    def test_so_do_threads_that_both_start_by_the_cxx_library(self):
        for library, function in (("mpi_starts", "starts_for_mpi"), ("starts", "starts_for_program")):
            self.build("c++", "-O1", "-shared", "-fPIC", f"-DSTARTS={function}", os.path.join(HERE, "starts_for_mpi.cpp"), "-o", f"lib{library}.so")
        self.ask("-DSTARTS_OWN=starts_for_program", "-lstarts")

    def test_a_process_that_a_thread_of_mpis_own_ends_makes_no_call_that_its_twin_does_not_make(self):
        self.build("cc", "-shared", "-fPIC", os.path.join(HERE, "starts_for_mpi.c"), "-o", "libmpi_starts.so")
        self.build("cc", "-pthread", os.path.join(HERE, "ended_by_mpi.c"), "-o", "ends", "-L.", "-lmpi_starts", f"-Wl,-rpath,{self.dir}")
        self.replicas("./ends", "file", expect=3)
        self.assertEqual(self.read("file"), "both\none\n")

    def test_a_tool_that_asks_in_threads_of_mpis_own_holds_nobody_up(self):
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(HERE, "asks_in_polls.c"), "-o", "asks.so"], cwd=self.dir, check=True)
        self.env["LD_PRELOAD"] = ":".join(filter(None, [self.path("asks.so"), self.env.get("LD_PRELOAD")]))
        self.env["ASKED_IN_POLLS"] = self.path("asked")
        for name, launcher in debian_mpis():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", os.path.join(HERE, "messages.c"), "-o", "messages"], cwd=self.dir, check=True)
                self.replicas(*launcher, "-n", "2", "./messages", "receive", "file", "20", "10")
                self.assertGreater(os.path.getsize(self.path("asked")), 0)  # else nothing was asked there
                os.unlink(self.path("asked"))


if __name__ == "__main__":
    unittest.main()
