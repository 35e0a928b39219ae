"""holdfast run --replicas: programs that become another one (exec), such as scripts that find the right interpreter."""
import os
import time
import unittest

from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")


class ReplicasExec(ReplicatedTest):
    def script(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def shim(self):
        """As pyenv's: children of its own, output, and then the program by its name."""
        bin_directory = os.path.dirname(PROGRAM)
        return self.script("shim", f'#!/usr/bin/env bash\nfound=$(echo {bin_directory} | sed "s/a/a/")\necho "found by $0"\n'
                                   f'PATH=$found:$PATH exec env WITH=1 {os.path.basename(PROGRAM)} "$@"\n')

    def test_a_script_that_becomes_the_program_is_one_replica_with_it(self):
        for replicas in (2, 3):
            done = self.replicas(self.shim(), "clocks", replicas=replicas)
            self.assertEqual(done.stdout, f"found by {self.path('shim')}\n")
            self.assertEqual(len(self.read("file").splitlines()), 200)
            self.assertIn(f"0 of {replicas} teams lost", self.holdfast("status", "--job").stdout)

    def test_a_rank_that_is_killed_after_that_is_survived(self):
        for team in (0, 1):
            job = self.start(self.shim(), "slow", rests=True)
            process = self.process_of(team, 0)
            deadline = time.monotonic() + 30
            while os.path.basename(os.readlink(f"/proc/{process}/exe")) != os.path.basename(PROGRAM) and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.5)
            self.strike(process)
            out, err = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 0, err)
            self.assertEqual(out, f"found by {self.path('shim')}\n" + "".join(f"printed {i}\n" for i in range(60)))
            self.assertEqual(self.read("file"), "".join(f"line {i}\n" for i in range(60)))
            self.assertIn(f"rank 0 of team {team} (process {process}", err)

    def test_replicas_that_become_two_programs_are_stopped(self):
        with open(self.path("count"), "w", encoding="utf-8"):
            pass
        script = self.script("two", '#!/bin/bash\ncase " $(tr "\\0" " " < /proc/$$/environ) " in *" HOLDFAST_REPLICA=1 "*) exec /bin/cat count;; esac\nexec /bin/ls count\n')
        done = self.replicas(script, expect=120)
        self.assertRegex(done.stderr, "the replicas of rank 0 differ: exec of /bin/(cat|ls)")

    def test_what_cannot_be_a_replica_is_named(self):
        done = self.replicas("/bin/bash", "-c", "exec env -i /bin/true", expect=121)
        self.assertIn("cannot go on: /bin/true takes its place, which is linked statically, or is started without LD_PRELOAD", done.stderr)

    def test_an_exec_that_finds_nothing_is_the_programs_matter(self):
        done = self.replicas("/bin/bash", "-c", "shopt -s execfail; exec ./none || echo goes on", expect=None)
        self.assertEqual(done.stdout, "goes on\n", done.stderr)

    def test_a_lost_team_is_not_started_again_after_that(self):
        done = self.replicas("--relaunch", "1", self.shim(), "clocks")
        self.assertEqual(done.stderr.count("becomes another program"), 1, done.stderr)
        self.assertIn("a lost team is not started again any more", done.stderr)


if __name__ == "__main__":
    unittest.main()
