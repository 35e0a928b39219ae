"""An installation that lacks a program of its own: one line says so, however many nodes there are."""
import os
import unittest

from command import BINARY, CommandTest


class InstalledInPart(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.make_installation()
        os.makedirs(self.path("install/libexec/holdfast"))
        built = os.path.join(os.path.dirname(os.path.realpath(BINARY)), "..")
        os.symlink(os.path.join(built, "lib/libholdfast-posix.so"), self.path("install/lib/libholdfast-posix.so"))
        self.built = os.path.join(built, "libexec/holdfast")
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))

    def install(self, *programs):
        for program in programs:
            os.symlink(os.path.join(self.built, program), self.path("install/libexec/holdfast", program))

    def test_without_the_agent_nothing_begins(self):
        for options in (["--simulate-nodes", "3"], ["--local", self.path("d-{node}"), "--hosts", "n1,n2,n3", "--with", "env ON={node}"]):
            said = self.holdfast("run", "--protect", "rs:2+1", "--path", "*.dat", *options, "--", "touch", "ran", expect=2)
            self.assert_one_sentence(said.stderr, "no agent of a node can be started", "libexec/holdfast/agent", "install Holdfast anew")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_without_the_protector_the_job_runs_and_one_line_says_what_is_missing(self):
        self.install("agent")
        os.mkdir(self.path("ck"))
        said = self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", "ck/ck.{step}.{rank}", "--library", "posix", "--",
                             "touch", "ran", expect=None)
        self.assertTrue(os.path.exists(self.path("ran")))
        lines = [line for line in said.stderr.splitlines() if "protector" in line]
        self.assertEqual(len(lines), 1, said.stderr)
        self.assertIn("nothing protects the checkpoints that are written", lines[0])
        self.assertIn("install Holdfast anew", lines[0])


if __name__ == "__main__":
    unittest.main()
