"""scripts/run-tests.sh on a small project: both lanes are run, what fails in either is told, and nothing is left of one that is interrupted."""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/run-tests.sh")
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
function(add name labels)
  add_test(NAME ${name} COMMAND sh -c "${ARGN}")
  set_tests_properties(${name} PROPERTIES LABELS "${labels}")
endfunction()
add_custom_target(brief_tests)
if(HOLDFAST_SANITIZE)
  add(instrumented "core;brief" "exit 0")
else()
  add(unit core "nice > ${CMAKE_SOURCE_DIR}/unit")
  add(simulation "core;simulated" "nice > ${CMAKE_SOURCE_DIR}/simulation; ${SIMULATION}")
  add(mutants mutants "exit 0")
  add(command cli "exit 0")
  add(rare long "exit 1")
endif()
"""


class RunTests(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="holdfast-run-tests-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.mkdir(f"{self.dir}/scripts")
        self.script = shutil.copy(SCRIPT, f"{self.dir}/scripts/run-tests.sh")
        with open(f"{self.dir}/CMakeLists.txt", "w") as file:
            file.write(PROJECT)
        self.env = {**os.environ, "TMPDIR": self.dir + "/logs"}
        os.mkdir(self.env["TMPDIR"])

    def begin(self, simulation):
        subprocess.run(["cmake", "-S", self.dir, "-B", f"{self.dir}/build", "-G", "Ninja", f"-DSIMULATION={simulation}"], check=True, capture_output=True)
        return subprocess.Popen([self.script, f"{self.dir}/build"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True)

    def read(self, name):
        with open(f"{self.dir}/{name}") as file:
            return file.read()

    @staticmethod
    def has_ended(process):
        try:
            with open(f"/proc/{process}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_all_suites_are_run_and_what_computes_gives_way(self):
        job = self.begin("exit 0")
        said, _ = job.communicate(timeout=200)
        self.assertEqual(job.returncode, 0, said)
        for suite in ("asan", "core", "jobs", "mutants", "simulated", "tsan"):
            self.assertRegex(said, rf"(?m)^{suite} +[0-9]+ s  100% tests passed, 0 tests failed out of 1$")
        self.assertTrue(said.endswith("\n100% tests passed, 0 tests failed out of 6\n"), said)
        self.assertEqual(self.read("simulation"), "19\n")
        self.assertEqual(self.read("unit"), f"{os.nice(0)}\n")
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_what_fails_in_the_other_lane_is_told(self):
        job = self.begin("exit 1")
        said, _ = job.communicate(timeout=200)
        self.assertEqual(job.returncode, 1, said)
        self.assertRegex(said, r"(?m)^simulated +[0-9]+ s  0% tests passed, 1 tests failed out of 1$")
        self.assertIn("- simulation (Failed)", said)
        self.assertTrue(said.endswith("\n83% tests passed, 1 tests failed out of 6\n"), said)

    def test_nothing_is_left_of_one_that_is_interrupted(self):
        job = self.begin(f"echo $$ > {self.dir}/process && exec sleep 300")
        deadline = time.monotonic() + 100
        while not (os.path.exists(f"{self.dir}/process") and self.read("process")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        os.killpg(job.pid, signal.SIGINT)
        job.communicate(timeout=100)
        self.assertNotEqual(job.returncode, 0)
        while not self.has_ended(self.read("process").strip()):  # it has been told to, which takes a moment on a busy machine
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])


if __name__ == "__main__":
    unittest.main()
