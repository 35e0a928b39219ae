"""holdfast run --replicas: standard input reaches all teams, whole, however late it comes."""
import os
import subprocess
import threading
import time
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "counts_input.c")


class InputOfReplicas(ReplicatedTest):
    def commands(self, flavours):
        for name, launcher in debian_mpis():
            if name.startswith(flavours):
                subprocess.run([f"mpicc.{name}", SOURCE, "-o", self.path("program")], check=True)
                yield [*launcher, "-n", "2", "./program"]

    @staticmethod
    def said_of(content):
        total = 0
        for byte in content:
            total = (total * 31 + byte) % 1000003
        return f"{len(content)} bytes, sum {total}\n"

    def test_a_file_of_more_than_pipes_hold_comes_whole(self):
        """MPICH's launcher ends natively, too, where a rank does not read as fast as the file comes."""
        content = "".join(f"line {i}\n" for i in range(60000))
        with open(self.path("input"), "w") as file:
            file.write(content)
        for command in self.commands("openmpi"):
            with open(self.path("input")) as file:
                done = subprocess.run([self.binary, "run", "--replicas", "2", *command], cwd=self.dir, env=self.env, stdin=file, capture_output=True,
                                      text=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (0, self.said_of(content.encode())), done.stderr)

    def test_what_comes_when_the_ranks_have_begun_comes_whole(self):
        lines = [f"line {i}\n".encode() for i in range(5)]
        for command in self.commands(("openmpi", "mpich")):
            job = subprocess.Popen([self.binary, "run", "--replicas", "2", *command], cwd=self.dir, env=self.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.jobs.append(job)
            job.stdin.write(lines[0])
            job.stdin.flush()
            self.process_of(1, 0, ranks=2)

            def feed(job=job):
                for line in lines[1:]:
                    time.sleep(0.3)
                    job.stdin.write(line)
                    job.stdin.flush()
                job.stdin.close()

            feeder = threading.Thread(target=feed)
            feeder.start()
            feeder.join()
            said, errors = job.stdout.read(), job.stderr.read()
            self.assertEqual((job.wait(timeout=60), said.decode()), (0, self.said_of(b"".join(lines))), errors.decode())
            job.stdout.close(), job.stderr.close()
            self.jobs.remove(job)


if __name__ == "__main__":
    unittest.main()
