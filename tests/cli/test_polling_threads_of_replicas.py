"""holdfast run --replicas: threads that ask the time again and again until another one ends them."""
import os
import re
import subprocess
import time
import unittest

from replicated import ReplicatedTest

HERE = os.path.dirname(__file__)

POOL = """import multiprocessing, sys, time
def work(n):
    return sum(i * i for i in range(n))
if __name__ == "__main__":
    begun = time.monotonic()
    with multiprocessing.Pool(3) as pool:
        for step in range(int(sys.argv[1])):
            values = pool.map(work, range(2000, 2060))
            with open("out", "a", encoding="utf-8") as file:
                file.write(f"{step} {sum(values)} {time.monotonic() - begun}\\n")
            time.sleep(float(sys.argv[2]))
"""


class PollingThreadsOfReplicas(ReplicatedTest):
    def build(self):
        subprocess.run(["cc", "-pthread", os.path.join(HERE, "polls_until.c"), "-o", self.path("polls")], check=True)

    def assert_whole(self, steps):
        lines = self.read("out").splitlines()
        times = [int(line.split()[-1]) for line in lines]
        self.assertEqual([line.rsplit(" ", 1)[0] for line in lines], [f"step {i}" for i in range(steps)] + ["the end"])
        self.assertEqual(times, sorted(times))

    def test_a_thread_that_is_ended_by_another_one_may_ask_unlike_often(self):
        """What other threads are told by the same clock is the same in all replicas: they write it."""
        self.build()
        for replicas in (2, 3):
            done = self.replicas("./polls", "out", "40", replicas=replicas)
            self.assertNotIn("differ", done.stderr)
            self.assert_whole(40)

    def test_it_may_where_its_team_is_lost(self):
        self.build()
        for replicas, team in ((2, 0), (3, 0), (3, 1)):
            with self.subTest(f"{team} of {replicas}"):
                job = self.start("./polls", "out", "100", replicas=replicas, rests=True)
                process = self.process_of(team, 0)
                while not os.path.exists(self.path("out")) or len(self.read("out")) < 200:
                    time.sleep(0.01)
                self.strike(process)
                _, errors = job.communicate(timeout=90)
                self.assertEqual(job.returncode, 0, errors)
                self.assertIn(f"rank 0 of team {team} (process {process}", errors)
                self.assert_whole(100)
                os.remove(self.path("out"))

    def test_one_that_has_asked_once_more_than_its_leaders_is_answered(self):
        """Its leader has ended that thread, and waits at a file."""
        subprocess.run(["cc", "-pthread", os.path.join(HERE, "asks_again.c"), "-o", self.path("asks")], check=True)
        begun = time.monotonic()
        self.replicas("./asks", "file", "time")
        self.assertLess(time.monotonic() - begun, 10)

    def write_pool(self):
        with open(self.path("pool.py"), "w", encoding="utf-8") as file:
            file.write(POOL)

    def assert_pool_has_worked(self, steps):
        expected = sum(sum(i * i for i in range(n)) for n in range(2000, 2060))
        lines = [line.split() for line in self.read("out").splitlines()]
        self.assertEqual([(int(step), int(values)) for step, values, _ in lines], [(step, expected) for step in range(steps)])
        times = [float(line[2]) for line in lines]
        self.assertEqual(times, sorted(times))
        os.remove(self.path("out"))

    def test_a_pool_of_python_runs(self):
        """Its threads wait for the interpreter's lock by times, and write what the same clock says."""
        self.write_pool()
        for replicas in (2, 3, 2, 2):
            done = self.replicas("python3", "pool.py", "30", "0", replicas=replicas)
            self.assertNotRegex(done.stderr, "differ|lost|does not reach", done.stderr)
            self.assert_pool_has_worked(30)

    def test_a_pool_of_python_outlives_its_team(self):
        self.write_pool()
        for team in (0, 2):
            with self.subTest(team):
                job = self.start("python3", "pool.py", "40", "0.1", replicas=3)
                process = self.process_of(team, 0)
                while not os.path.exists(self.path("out")) or self.read("out").count("\n") < 5:
                    time.sleep(0.01)
                self.strike(process)
                _, errors = job.communicate(timeout=90)
                self.assertEqual(job.returncode, 0, errors)
                self.assertEqual(len(re.findall("has died", errors)), 1, errors)
                self.assert_pool_has_worked(40)


if __name__ == "__main__":
    unittest.main()
