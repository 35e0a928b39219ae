"""holdfast run --replicas: what a replica starts is no replica. Launchers among that are refused, and writers are named."""
import os
import shlex
import subprocess
import unittest

from command import debian_mpis
from replicated import ReplicatedTest

APPENDS = r"""#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  MPI_Init(&count, &words);
  if (count > 1 && system(words[1]) != 0) MPI_Abort(MPI_COMM_WORLD, 9);
  FILE *file = fopen("log", "a");
  fprintf(file, "a line\n");
  fclose(file);
  return MPI_Finalize();
}
"""

SPAWNS = os.path.join(os.path.dirname(__file__), "spawns.c")


class ChildrenOfReplicas(ReplicatedTest):
    def script(self, text):
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path("script"), 0o755)
        return "./script"

    def build(self, name, source=APPENDS, program="appends"):
        subprocess.run([f"mpicc.{name}", "-x", "c", "-", "-o", self.path(program)], input=source, text=True, check=True)

    def assert_refused(self, launcher, *command):
        done = self.replicas(*command, expect=2)
        self.assertEqual(done.stderr.count("rank 0 starts a launcher of its own"), 1, done.stderr)
        self.assertIn(f"name the launcher in the command, as holdfast run --replicas 2 {launcher[0]} ", done.stderr)
        self.assertEqual([name for name in ("log", "after") if os.path.exists(self.path(name))], [], done.stderr)

    def test_a_script_that_has_the_launcher_in_it_is_refused(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.build(name)
                words = shlex.join([*launcher, "./appends"])
                self.assert_refused(launcher, self.script(f"#!/bin/bash\n{words} 2> /dev/null\necho $? > after\n"))
                self.assert_refused(launcher, "python3", "-c", f"import subprocess; subprocess.run({[*launcher, './appends']}); open('after', 'w')")

    def test_a_shell_that_becomes_the_launcher_is_refused(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.build(name)
                self.assert_refused(launcher, "bash", "-c", shlex.join([*launcher, "./appends"]))

    def test_a_rank_that_starts_a_launcher_is_refused(self):
        for name, launcher in self.launchers(1):
            with self.subTest(name):
                self.build(name)
                self.assert_refused(launcher, *launcher, "./appends", shlex.join([*launcher, "./appends"]))

    def test_a_launcher_that_is_started_with_an_empty_environment_is_refused(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.build(name)
                words = shlex.join(["env", "-i", f"PATH={os.environ['PATH']}", *launcher, "./appends"])
                self.assert_refused(launcher, self.script(f"#!/bin/bash\n{words} 2> /dev/null\necho $? > after\n"))
                self.assert_refused(launcher, "bash", "-c", f"exec {words}")
                self.assert_refused(launcher, "python3", "-c", f"import os, subprocess; subprocess.run({[*launcher, './appends']}, env={{}}); open('after', 'w')")

    def test_a_program_that_is_started_with_an_empty_environment_is_told_of_once(self):
        done = self.replicas(self.script("#!/bin/bash\nenv -i sh -c 'echo one >> log'\nenv -i sh -c 'echo two >> log'\necho own >> own\n"))
        self.assertEqual(done.stderr.count("nobody sees what it does"), 1, done.stderr)
        self.assertIn("rank 0 starts sh, which is started without LD_PRELOAD: nobody sees what it does, and what it writes is written once in each team\n", done.stderr)
        self.assertEqual(self.read("own"), "own\n")

    def test_who_writes_to_a_file_that_it_inherits_is_told_of_once(self):
        done = self.replicas("bash", "-c", "{ echo begin; expr 1 + 1; expr 2 + 2; } > log")
        self.assertEqual(done.stderr.count("rank 0 has started expr, which is no replica: it writes"), 1, done.stderr)
        self.assertEqual(self.read("log"), "begin\n2\n4\n")

    def test_ranks_of_a_launcher_in_a_script_that_is_not_known_are_refused(self):
        """It has another name here. What a rank is started with is the launcher's own."""
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.build(name)
                shell = "#!/bin/bash\nexport PMI_RANK=0 PMI_SIZE=1\n./appends 2> /dev/null\necho $? > after\n"
                done = self.replicas(self.script(shell), expect=2)
                self.assertEqual(done.stderr.count("rank 0 has started appends by a launcher that --replicas does not know"), 1, done.stderr)
                self.assertFalse(os.path.exists(self.path("log")))

    def test_a_rank_of_a_batch_step_is_no_rank_of_an_unknown_launcher(self):
        """As in a shell that `srun --pty` has started: what it starts has the step's variables."""
        for name, _ in self.launchers():
            with self.subTest(name):
                self.build(name)
                self.env |= {"PMI_RANK": "0", "PMI_SIZE": "1"}
                self.replicas(self.script("#!/bin/bash\n./appends\necho own > own\n"))
                self.assertEqual((self.read("own"), self.read("log")), ("own\n", "a line\n"))
                done = self.replicas(self.script("#!/bin/bash\nPMI_RANK=1 ./appends 2> /dev/null\n"), expect=2)
                self.assertIn("by a launcher that --replicas does not know", done.stderr)

    def test_what_only_looks_is_not_told_of_without_its_library(self):
        done = self.replicas(self.script("#!/bin/bash\nenv -u LD_PRELOAD test -e log\nenv -i sh -c 'echo one >> log'\n"))
        self.assertEqual(done.stderr.count("nobody sees what it does"), 1, done.stderr)
        self.assertIn("rank 0 starts sh, which", done.stderr)

    def test_a_launcher_that_is_not_there_is_not_refused(self):
        done = self.replicas(self.script("#!/bin/bash\nenv -i PATH=/bin:/usr/bin jsrun -n 4 ./appends 2> /dev/null || echo none >> own\n"))
        self.assertNotIn("launcher", done.stderr)
        self.assertEqual(self.read("own"), "none\n")

    def test_a_launcher_may_be_asked_for_its_version(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                done = self.replicas(self.script(f"#!/bin/bash\n{launcher[0]} --version > /dev/null || exit 3\necho asked\n"))
                self.assertEqual(done.stdout, "asked\n")

    def test_ranks_that_are_spawned_are_no_replicas(self):
        """Each team's ranks have their own. Debian's MPICH cannot spawn at all."""
        launcher = dict(debian_mpis()).get("openmpi")
        if not launcher:
            self.skipTest("no MPI here can spawn")
        subprocess.run(["mpicc.openmpi", SPAWNS, "-o", self.path("spawns")], check=True)
        done = self.replicas(*launcher, "-n", "2", "./spawns")
        self.assertEqual(done.stderr.count("rank 0 has started spawns, which is no replica: it writes"), 1, done.stderr)
        self.assertEqual(self.read("told"), "43\n")
        os.remove(self.path("told"))
        self.env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
        done = self.replicas("./spawns")
        self.assertEqual(done.stderr.count("rank 0 has started spawns, which is no replica: it writes"), 1, done.stderr)
        self.assertEqual(self.read("told"), "43\n")

    def test_a_launcher_that_is_not_known_is_refused(self):
        shell = self.path("jsrun")
        os.symlink("/bin/sh", shell)
        self.assert_one_sentence(self.holdfast("run", "--replicas", "2", shell, "-c", "true", expect=2).stderr, "is no launcher that --replicas knows")

    def test_a_child_that_writes_is_told_of_once(self):
        done = self.replicas(self.script("#!/bin/bash\nsed -n 'w log' /etc/hostname\nsed -n 'w other' /etc/hostname\n(echo inside > third)\necho own >> fourth\n"))
        self.assertEqual(done.stderr.count("which is no replica"), 1, done.stderr)
        self.assertIn(f"rank 0 has started sed, which is no replica: it writes {self.path('log')} once in each team", done.stderr)
        self.assertEqual(self.read("fourth"), "own\n")

    def test_children_that_write_elsewhere_are_not_told_of(self):
        text = '#!/bin/bash\nsed -n p /etc/hostname > /dev/null\nfile=$(mktemp)\nsed -n "w $file" /etc/hostname\nrm $file\necho own >> log\n'
        self.assertNotIn("no replica", self.replicas(self.script(text)).stderr)


if __name__ == "__main__":
    unittest.main()
