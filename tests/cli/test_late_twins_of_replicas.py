"""holdfast run --replicas: a replica whose twin answers late, for its node is busy, tries again."""
import json
import os
import signal
import subprocess
import time
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

PROGRAM = """#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  MPI_Init(&count, &words);
  FILE *file = fopen("out", "w");
  for (int step = 0; file && step < 170; ++step) fprintf(file, "step %d\\n", step), fflush(file), usleep(100000);
  MPI_Finalize();
  return !file || fclose(file) != 0;
}
"""
HALF = 6  # of the deadline, in seconds: as long the first try takes


class LateTwinsOfReplicas(ReplicatedTest):
    def process_that_has_come(self, team):
        """To the hub, also where its twins have not."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            done = self.holdfast("status", "--job", "--json", expect=None)
            ranks = json.loads(done.stdout)["teams"][team]["ranks"] if done.returncode == 0 else []
            if ranks:
                return ranks[0]["process"]
            time.sleep(0.05)
        self.fail(f"team {team} does not come up")

    def test_a_twin_that_does_not_answer_for_half_the_deadline_is_met_later(self):
        """It runs for longer than the hub waits before it judges whom nobody reaches."""
        name, launcher = next(debian_mpis())
        with open(self.path("program.c"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run([f"mpicc.{name}", self.path("program.c"), "-o", self.path("program")], check=True)
        turn = "case $HOLDFAST_REPLICA in 1*) until [ -e turn ]; do sleep 0.05; done;; esac; exec \"$0\" \"$@\""
        job = self.start("--deadline", f"{2 * HALF}s", *launcher, "-n", "1", "sh", "-c", turn, self.path("program"))
        busy = self.process_that_has_come(0)
        os.kill(busy, signal.SIGSTOP)
        with open(self.path("turn"), "wb"):
            pass
        try:
            self.process_that_has_come(1)
            time.sleep(HALF + 0.7)
        finally:
            os.kill(busy, signal.SIGCONT)
        _, errors = job.communicate(timeout=60)
        self.assertNotRegex(errors, "lost|does not reach|alone|has died")
        self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(self.read("out"), "".join(f"step {i}\n" for i in range(170)))


if __name__ == "__main__":
    unittest.main()
