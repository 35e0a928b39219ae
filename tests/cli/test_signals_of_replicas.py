"""holdfast run --replicas: a signal that ends the job reaches the program, as it does natively."""
import os
import signal
import subprocess
import time
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "ends_in_order.c")


class SignalsOfReplicas(ReplicatedTest):
    def wait_until(self, done):
        deadline = time.monotonic() + 60
        while not done():
            for job in self.jobs:
                if job.poll() is not None and not done():
                    self.fail(f"{job.args} has ended with {job.returncode}:\n{job.stderr.read()}")
            self.assertLess(time.monotonic(), deadline, "it still runs")
            time.sleep(0.01)

    def wait_for_steps(self, name):
        self.wait_until(lambda: os.path.exists(self.path(name)) and len(self.read(name)) >= 100)

    def assert_ended_in_order(self, name, heard=0):
        lines = self.read(name).splitlines()
        self.assertEqual(lines.count("heard"), heard)
        lines = [line for line in lines if line != "heard"]
        self.assertEqual(lines[-1], f"signal {signal.SIGTERM.value}")
        self.assertEqual(lines[:-1], [f"step {i}" for i in range(len(lines) - 1)])

    def test_the_programs_handler_runs_once(self):
        """In one team: the other one would get the signal at another step."""
        subprocess.run(["cc", SOURCE, "-o", self.path("program")], check=True)
        for replicas in (2, 3):
            job = self.start("./program", "out", replicas=replicas)
            self.wait_for_steps("out.0")
            job.send_signal(signal.SIGTERM)
            said, errors = job.communicate(timeout=30)
            self.assertEqual((job.returncode, said), (7, "ended in order\n"), errors)
            self.assertNotRegex(errors, "differ|died|lost")
            self.assert_ended_in_order("out.0")
            self.jobs.remove(job)
            os.remove(self.path("out.0"))

    def test_it_runs_under_launchers_that_pass_the_signal_on(self):
        """The status is what the launcher makes of it: MPICH's has the program's or none."""
        for name, launcher in debian_mpis():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "-DWITH_MPI", SOURCE, "-o", self.path("program")], check=True)
                native = subprocess.Popen([*launcher, "-n", "2", "./program", f"native-{name}"], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.wait_for_steps(f"native-{name}.1")
                native.send_signal(signal.SIGTERM)
                native.wait(timeout=60)
                job = self.start(*launcher, "-n", "2", "./program", name)
                for rank in (0, 1):
                    self.wait_for_steps(f"{name}.{rank}")
                job.send_signal(signal.SIGTERM)
                _, errors = job.communicate(timeout=60)
                self.jobs.remove(job)
                self.assertNotRegex(errors, "differ|died|lost")
                self.assertIn(job.returncode, {native.returncode} | ({0, 7} if name.startswith("mpich") else set()), errors)
                for rank in (0, 1):
                    if "signal" in self.read(f"native-{name}.{rank}"):
                        self.assert_ended_in_order(f"{name}.{rank}")

    def test_one_signal_to_the_whole_group_is_one(self):
        """As from batch systems and `timeout`, which sends it to the process as well. Open MPI's launcher kills who has not ended after two seconds."""
        for name, launcher in debian_mpis():
            subprocess.run([f"mpicc.{name}", "-DWITH_MPI", SOURCE, "-o", self.path("program")], check=True)
            ended = []
            for both in (False, True):
                job = self.start(*launcher, "-n", "2", "./program", name, begin=os.setsid)
                for rank in (0, 1):
                    self.wait_for_steps(f"{name}.{rank}")
                if both:
                    job.send_signal(signal.SIGTERM)
                os.killpg(job.pid, signal.SIGTERM)
                _, errors = job.communicate(timeout=60)
                self.jobs.remove(job)
                self.assertNotRegex(errors, "differ|died|lost")
                for rank in (0, 1):
                    ended.append("signal" in self.read(f"{name}.{rank}"))
                    if ended[-1]:
                        self.assert_ended_in_order(f"{name}.{rank}")
                    os.remove(self.path(f"{name}.{rank}"))
            self.assertTrue(all(ended) if name.startswith("mpich") else any(ended), (name, ended))

    def test_what_it_prints_then_is_printed(self):
        """Open MPI's launcher kills ranks that it has told to end."""
        for name, launcher in debian_mpis():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "-DWITH_MPI", "-DSAYS", SOURCE, "-o", self.path("program")], check=True)
                job = self.start(*launcher, "-n", "2", "./program", name)
                for rank in (0, 1):
                    self.wait_for_steps(f"{name}.{rank}")
                job.send_signal(signal.SIGTERM)
                said, errors = job.communicate(timeout=60)
                self.jobs.remove(job)
                if all("signal" in self.read(f"{name}.{rank}") for rank in (0, 1)):
                    self.assertEqual(said.count("saved\n"), 2, said + errors)

    def test_a_program_that_the_signal_ends_has_not_ended_well(self):
        """MPICH's launcher ends with 0 then, more often than not."""
        for name, launcher in [*debian_mpis()] * 3:
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "-DWITH_MPI", "-DBY_DEFAULT", SOURCE, "-o", self.path("program")], check=True)
                job = self.start(*launcher, "-n", "2", "./program", name)
                for rank in (0, 1):
                    self.wait_for_steps(f"{name}.{rank}")
                job.send_signal(signal.SIGTERM)
                _, errors = job.communicate(timeout=60)
                self.jobs.remove(job)
                self.assertNotIn(job.returncode, (0, 120, 121), errors)
                for rank in (0, 1):
                    os.remove(self.path(f"{name}.{rank}"))

    def test_one_that_ends_nothing_reaches_one_team_which_goes_on(self):
        """SIGUSR1, which batch systems send before the end of the time. Each that comes is one."""
        subprocess.run(["cc", SOURCE, "-o", self.path("program")], check=True)
        job = self.start("./program", "out", replicas=3)
        self.process_of(2, 0)
        self.wait_for_steps("out.0")
        for heard in (1, 2):
            job.send_signal(signal.SIGUSR1)
            self.wait_until(lambda times=heard: self.read("out.0").count("heard") == times)
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=30)
        self.assertEqual(job.returncode, 7, errors)
        self.assertRegex(errors, "\nholdfast: signal 10 .* has come .*; team 0 goes on alone, and nothing is compared any more\n$")
        self.assertNotRegex(errors, "differ|died|lost")
        self.assert_ended_in_order("out.0", heard=2)

    def test_a_second_signal_ends_a_program_that_goes_on(self):
        job = self.start("sh", "-c", "trap 'echo goes on > told' TERM; echo > begun; while :; do sleep 0.05; done")
        self.wait_until(lambda: os.path.exists(self.path("begun")))
        job.send_signal(signal.SIGTERM)
        self.wait_until(lambda: os.path.exists(self.path("told")))
        self.assertIsNone(job.poll())
        time.sleep(0.5)  # what comes at once after the first one is that
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=20)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
