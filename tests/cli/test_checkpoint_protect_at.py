"""`--protect-at close`: what a program has closed bears the loss of nodes from then on, and where it does not one line says so."""
import json
import sys
import unittest

from checkpoint_test import CheckpointTest
from command import BINARY

# As another process sees it, which the job serves nothing.
LOOK = f"env -u LD_PRELOAD {BINARY} checkpoints --json"


class CheckpointProtectAt(CheckpointTest):
    def job(self, script, *options, **more):
        return self.run_job(script, "--protect-at", "close", "--drain", "none", "--keep", "9", *options, nodes=3, scheme="rs:2+1", **more)

    def test_when_a_close_returns_the_file_is_protected(self):
        closes = {"redirection": "echo content > ck/ck.10.0", "rename": "echo content > plain; mv plain ck/ck.10.0",
                  "append": "echo con > ck/ck.10.0; echo tent >> ck/ck.10.0", "copy": "echo content > plain; cp plain ck/ck.10.0",
                  "descriptor": "exec 4> ck/ck.10.0; echo content >&4; exec 4>&-"}
        for name, script in closes.items():
            with self.subTest(name):
                self.job(f"{script}; {LOOK} > seen")
                (one,) = [one for one in json.loads(self.read("seen"))["checkpoints"] if one["state"] in ("whole", "protected", "closed", "protecting")]
                self.assertEqual((one["step"], one["state"]), (10, "whole"))
                self.holdfast("checkpoints", "--drop", "10")

    def test_nodes_may_be_lost_right_after_it(self):
        script = """[ -e tried ] && { cat ck/ck.10.0 > got; exit 0; }
            touch tried; echo content > ck/ck.10.0; rm -rf holdfast-nodes/n1/* holdfast-nodes/n1/.[a-z]*; exit 7"""
        self.job(script, "--restarts", "1")
        self.assertEqual(self.read("got"), "content\n")

    def stopped(self, script, *options):
        """A job whose protectors stand still while its script runs."""
        return self.job(f"{self.strike_protectors('STOP')}; {script}; {self.strike_protectors('CONT')}", *options)

    def test_where_it_is_not_protected_in_time_one_line_says_so_and_the_close_succeeds(self):
        done = self.stopped("echo one > ck/ck.10.0 && echo closed > seen", "--lock-patience", "300ms")
        self.assertIn("holdfast: " + self.path("ck/ck.10.0") + ": not protected yet, and not waited for any longer: see what keeps it with 'holdfast checkpoints'",
                      done.stderr)
        self.assertEqual(self.read("seen"), "closed\n")
        self.assertEqual(self.states(), {10: "whole"})

    def test_what_fails_is_said_as_in_the_background_and_the_close_succeeds(self):
        done = self.job("rm -rf holdfast-nodes/n2/* holdfast-nodes/n3/*; echo one > ck/ck.10.0 && echo closed > seen", expect=123)
        self.assertRegex(done.stderr, "ck.10.0 is not protected: ")
        self.assertNotIn("not protected yet", done.stderr)
        self.assertEqual(self.read("seen"), "closed\n")

    def test_a_child_that_has_it_open_is_not_waited_for(self):
        script = f"""{sys.executable} -c '
import os, subprocess
file = open("ck/ck.10.0", "w")
file.write("content")
child = subprocess.Popen(["sleep", "1000"], stdout=file)
file.close()
child.kill(), child.wait()'"""
        done = self.job(script)
        self.assertIn("ck.10.0: not protected yet, for a program still has it open to write", done.stderr)
        self.assertEqual(self.states(), {10: "whole"})

    def test_it_is_about_checkpoints(self):
        done = self.holdfast("run", "--protect-at", "close", "--protect", "mirror:2", "--targets", "a,b", "--", "true", expect=2)
        self.assertIn("--protect-at is about checkpoints: name their files with --checkpoint 'ck/ck.{step}.{rank}'", done.stderr)
        done = self.run_job("true", "--protect-at", "night", expect=2)
        self.assertRegex(done.stderr, "protect-at.*night.*background or close")


if __name__ == "__main__":
    unittest.main()
