"""holdfast run --replicas: what programs that a replica has started append to files is there once."""
import os
import sys
import time
import unittest

from replicated import ReplicatedTest

OUT_OF_PYTHON = """import os, subprocess
with open('log', 'a') as log:
    log.write('first\\n')
    log.flush()
    subprocess.run(['expr', '1', '+', '1'], stdout=log)
    log.write('then\\n')
    log.flush()
    subprocess.run(['sh', '-c', 'echo in; echo a; echo child'], stdout=log, close_fds=False)
fd = os.open('log', os.O_WRONLY | os.O_APPEND)
os.dup2(fd, 7, inheritable=True)
os.system('echo by number >&7; expr 2 + 2 >&7')
if os.fork() == 0:
    os.write(7, b'forked\\n')
    os._exit(0)
os.wait()
os.write(7, b'last\\n')
"""


class AppendsOfChildren(ReplicatedTest):
    def assert_once(self, expected, *command, replicas=2):
        done = self.replicas(*command, replicas=replicas)
        self.assertEqual(self.read("log"), expected, done.stderr)
        self.assertNotIn("no replica", done.stderr)
        self.assertNotIn("differs", done.stderr)
        return done

    def test_to_a_file_that_they_inherit_are_there_once(self):
        self.assert_once("begin\n2\n4\nend\n", "bash", "-c", "{ echo begin; expr 1 + 1; expr 2 + 2; echo end; } >> log")

    def test_to_a_file_that_they_open_are_there_once(self):
        self.assert_once("2\none\n4\ntwo\n", "bash", "-c", "expr 1 + 1 >> log; echo one >> log; expr 2 + 2 >> log; (echo two >> log)", replicas=3)

    def test_may_be_read_back_at_once(self):
        done = self.assert_once("2\n4\n", "bash", "-c", "expr 1 + 1 >> log; cat log; expr 2 + 2 >> log; cat log")
        self.assertEqual(done.stdout, "2\n2\n4\n")

    def test_of_python_by_all_ways_are_there_once(self):
        self.assert_once("first\n2\nthen\nin\na\nchild\nby number\n4\nforked\nlast\n", sys.executable, "-c", OUT_OF_PYTHON)

    def test_of_many_bytes_in_pieces_of_any_size_are_there_once(self):
        self.assert_once("".join(f"{i}\n" for i in range(1, 60001)), "bash", "-c", "seq 1 30000 >> log; { seq 30001 60000; } >> log")

    def test_to_files_of_each_team_are_made(self):
        """Their names differ."""
        done = self.replicas("bash", "-c", "sh -c 'file=$(mktemp -p .); expr 1 + 1 >> $file; cat $file; rm $file'; true")
        self.assertEqual(done.stdout, "2\n")

    def test_that_differ_are_there_once_and_told_of(self):
        done = self.replicas("bash", "-c", "bash -c 'printf %8d $BASHPID >> log'; echo over")
        self.assertEqual(len(self.read("log")), 8)
        self.assertEqual(done.stderr.count(f"rank 0: what bash has appended to {self.path('log')} differs between teams 0 and 1, and is there once\n"), 1, done.stderr)

    def test_of_a_program_that_takes_no_library_are_not_lost(self):
        self.replicas("bash", "-c", "env -i expr 1 + 1 >> log")
        self.assertIn("2\n", self.read("log"))

    def test_survive_the_loss_of_either_team(self):
        for team in 0, 1:
            with self.subTest(team=team):
                command = "sh -c 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.5; done' >> log; echo own >> log"
                if os.path.exists(self.path("log")):
                    os.remove(self.path("log"))
                job = self.start("bash", "-c", command)
                process = self.process_of(team, 0)
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and not (os.path.exists(self.path("log")) and "line 2" in self.read("log")):
                    time.sleep(0.02)
                self.strike(process)
                _, said = job.communicate(timeout=120)
                self.assertEqual(job.returncode, 0, said)
                self.assertEqual(self.read("log"), "".join(f"line {i}\n" for i in range(1, 7)) + "own\n", said)


if __name__ == "__main__":
    unittest.main()
