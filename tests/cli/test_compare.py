"""holdfast run --replicas --compare messages: what ranks send is the same in all teams, and a soft error in it is found."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from replicated import ReplicatedTest

FLIP_BIT = os.environ.get("HOLDFAST_FLIP_BIT", "")
EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples")
HERE = os.path.dirname(__file__)
ROWS, COLUMNS, EVERY = 60, 80, 2
HEADER, FRAME = 64, ROWS * COLUMNS * 8


class Compare(ReplicatedTest):
    def compiled(self, mpi, source):
        program = self.path(f"{os.path.basename(source)}.{mpi}")
        fortran = {"openmpi": "mpifort.openmpi", "mpich": "mpifort.mpich"}[mpi]
        compiler = fortran if source.endswith(".f90") else f"mpicc.{mpi}"
        if not shutil.which(compiler):
            return None
        subprocess.run([compiler, "-O1", "-w", "-o", program, source], check=True, cwd=self.dir)
        return program

    def compared(self, *command, replicas=2, expect=0):
        return self.replicas("--compare", "messages", *command, replicas=replicas, expect=expect)

    def heats(self):
        for mpi, launcher in self.launchers():
            for source in ("heat.c", "heat.f90"):
                program = self.compiled(mpi, os.path.join(EXAMPLES, source))
                if program:
                    yield source, [*launcher, program]

    # ------------------------------------------------------------------------------------------------ what is the same

    def test_heat_in_c_and_fortran_is_the_same_in_all(self):
        shape = [str(ROWS), str(COLUMNS), "20", str(EVERY)]
        for source, command in self.heats():
            with self.subTest(program=command[-1]):
                subprocess.run([*command, "native", *shape], cwd=self.dir, env=self.env, check=True, capture_output=True)
                for replicas in (2, 3) if source.endswith(".c") else (2,):
                    self.compared(*command, "out", *shape, replicas=replicas)
                    self.assertEqual(self.content("out"), self.content("native"))
                    os.unlink(self.path("out"))
                os.unlink(self.path("native"))

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_a_twin_that_hangs_does_not_keep_its_leader_from_saying_that_it_lives(self):
        """The leader has much to say to it, of which nothing arrives. Whose last word the hub has heard first is another one in each round."""
        self.env["HOLDFAST_DEADLINE"] = "5s"
        for mpi, launcher in list(self.launchers(ranks=1))[:1]:
            program = self.compiled(mpi, os.path.join(HERE, "polls_and_sends.c"))
            for turn in range(3):
                with self.subTest(mpi=mpi, turn=turn):
                    job = self.start("--compare", "messages", *launcher, program, f"file{turn}", "9")
                    follower = self.process_of(1, 0)
                    while not os.path.exists(self.path(f"file{turn}")) or not self.read(f"file{turn}"):
                        time.sleep(0.05)
                    time.sleep(0.1 + 0.35 * turn)
                    os.kill(follower, signal.SIGSTOP)
                    _, errors = job.communicate(timeout=60)
                    self.assertEqual(job.returncode, 0, errors)
                    self.assertIn("team 0 goes on alone", errors)
                    self.assertEqual(self.read(f"file{turn}"), "begun\nended\n")

    def test_messages_from_anybody_are_the_same_in_all(self):
        for mpi, launcher in self.launchers(ranks=3):
            program = self.compiled(mpi, os.path.join(HERE, "messages.c"))
            for how in ("receive", "request") if mpi == "openmpi" else ("probe",):
                with self.subTest(mpi=mpi, how=how):
                    self.compared(*launcher, program, how, f"{how}.{mpi}")

    def test_what_lies_between_is_not_looked_at(self):
        """All kinds of sends and collective calls, with another number in each process in all holes and in all that is not sent."""
        for mpi, launcher in self.launchers(ranks=3):
            program = self.compiled(mpi, os.path.join(HERE, "sends.c"))
            for replicas in (2, 3):
                with self.subTest(mpi=mpi, replicas=replicas):
                    self.compared(*launcher, program, "sent", replicas=replicas)
                    self.assertEqual(self.read("sent"), "all was sent\n")

    # ------------------------------------------------------------------------------------------------ what differs

    def test_the_first_message_that_differs_is_named(self):
        cases = {"Send": "MPI_Send to rank", "Isend": "MPI_Isend to rank", "Start": "MPI_Send_init to rank", "Bcast": "MPI_Bcast with root 1",
                 "in_place": "MPI_Allreduce, 32 bytes", "Scatter": "MPI_Scatter with root 0", "Alltoall": "MPI_Ialltoall, ",
                 "Alltoallv": "MPI_Alltoallv, ", "Allgather": "MPI_Allgather, 16 bytes", "Neighbor_alltoall": "MPI_Neighbor_alltoall, 16 bytes",
                 "passing": "MPI_Sendrecv to rank"}
        for mpi, launcher in self.launchers():
            program = self.compiled(mpi, os.path.join(HERE, "sends.c"))
            for case, name in list(cases.items())[mpi == "mpich"::2]:
                with self.subTest(mpi=mpi, case=case):
                    done = self.compared(*launcher, program, "sent", case, expect=120)
                    self.assertIn(f"of those that it sends is {name}", done.stderr)
                    # Each rank is compared with its own twins: rank 0 may be writing when another one is told of.
                    if "replicas of rank 0 differ" in done.stderr:
                        self.assertFalse(os.path.exists(self.path("sent")), "it stops before it writes")
                    elif os.path.exists(self.path("sent")):
                        os.unlink(self.path("sent"))
            self.replicas("--compare", "files", *launcher, program, "sent", "Send")
            os.unlink(self.path("sent"))

    def frames(self):
        return (os.path.getsize(self.path("out")) - HEADER) // FRAME if os.path.exists(self.path("out")) else 0

    def frames_from(self, count):
        deadline = time.monotonic() + 30
        while self.frames() < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.frames()

    def flipped(self, source, command, replicas, team=1):
        """One bit of the last row of rank 0, in one team, while the program rests after a frame."""
        shape = [str(ROWS), str(COLUMNS), "10", str(EVERY)]
        subprocess.run([*command, "native", *shape], cwd=self.dir, env=self.env, check=True, capture_output=True)
        job = self.start("--compare", "messages", *command, "out", *shape, "--pause-ms", "1000", replicas=replicas)
        self.frames_from(2)  # before it is there the status is that of the job before
        process = self.process_of(team, 0, ranks=2)
        frame = self.frames_from(self.frames() + 1)
        time.sleep(0.1)
        native = self.content("native")
        at = HEADER + (frame - 1) * FRAME
        row = ROWS // 2 - 1
        first = row * COLUMNS + 40 if source.endswith(".c") else 40 * ROWS + row - 7
        pattern = native[at + 8 * first:at + 8 * first + 64]
        flips = subprocess.run([FLIP_BIT, str(process), pattern.hex(), "58", "3"], capture_output=True, text=True)
        self.assertEqual(flips.returncode, 0, f"the row is not there: {flips.stdout}{flips.stderr}")
        _, errors = job.communicate(timeout=60)
        return job.returncode, errors + self.holdfast("status", "--job", expect=None).stdout, native

    def test_a_flipped_bit_in_a_halo_row_is_named_by_rank_and_call(self):
        for source, command in self.heats():
            with self.subTest(program=command[-1]):
                code, errors, native = self.flipped(source, command, replicas=2)
                self.assertEqual(code, 120, errors)
                self.assertRegex(errors, "the replicas of rank 0 differ: message [0-9]+ of those that it sends is MPI_Sendrecv to rank 1 with tag")
                out = self.content("out")
                self.assertEqual(out, native[:len(out)], "nothing of it is in the file")
                os.unlink(self.path("out"))

    def test_of_three_the_one_with_a_flipped_bit_is_out(self):
        for source, command in self.heats():
            if source.endswith(".f90"):
                continue
            for team in (1, 0):  # 0: all that others were told comes from the one that is out
                with self.subTest(program=command[-1], team=team):
                    shutil.rmtree(self.path("state"), ignore_errors=True)
                    code, errors, native = self.flipped(source, command, 3, team)
                    self.assertEqual(code, 0, errors)
                    self.assertRegex(errors, f"rank 0 of team {team} differs from the others: message [0-9]+ of those that it sends is MPI_Sendrecv to rank 1")
                    self.assertEqual(self.content("out"), native)
                    os.unlink(self.path("out"))

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        done = self.holdfast("run", "--replicas", "2", "--compare", "bytes", "touch", "started", expect=2)
        self.assert_one_sentence(done.stderr, "--compare is 'bytes': allowed is files or messages")
        self.assert_one_sentence(self.holdfast("run", "--compare", "messages", "touch", "started", expect=2).stderr, "--replicas")
        self.assertFalse(os.path.exists(self.path("started")))


if __name__ == "__main__":
    unittest.main()
