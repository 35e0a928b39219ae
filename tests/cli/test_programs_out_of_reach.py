"""A program that no library can be preloaded into is run all the same, and one line says that it is not served."""
import os
import shutil
import subprocess
import unittest

from command import CommandTest

SOURCE = r"""
#include <stdio.h>
int main(int words, char **word) {
  FILE *file = fopen(word[words - 1], "w");
  return !file || fputs("what it wrote\n", file) < 0 || fclose(file);
}
"""

SHARED = r"""
#include <mpi.h>
int main(int words, char **word) {
  MPI_File file;
  int rank;
  MPI_Init(&words, &word);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (MPI_File_open(MPI_COMM_WORLD, word[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
  if (MPI_File_write_at_all(file, 4 * rank, "abcd", 4, MPI_CHAR, MPI_STATUS_IGNORE)) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_File_close(&file);
  return MPI_Finalize();
}
"""


class ProgramsOutOfReach(CommandTest):
    def setUp(self):
        super().setUp()
        with open(self.path("writes.c"), "w") as file:
            file.write(SOURCE)
        for name, flags in (("static", ["-static"]), ("dynamic", [])):
            subprocess.run(["cc", "-o", self.path(name), self.path("writes.c"), *flags], check=True)

    def check(self, stderr, program, lines=1):
        said = [line for line in stderr.splitlines() if "is linked statically or runs with other rights" in line]
        self.assertEqual(len(said), lines, stderr)
        for line in said:
            self.assertIn(program, line)
        with open(self.path("out.dat")) as file:
            self.assertEqual(file.read(), "what it wrote\n")

    def test_one_that_is_started_by_the_command(self):
        for options in (["--protect", "mirror:2", "--targets", ",".join(self.make_targets(2)), "--path", "*.dat"],
                        ["--buffer", "2x64k", "--path", "*.dat"], ["--profile"]):
            done = self.holdfast("run", *options, "./static", "out.dat")
            self.check(done.stderr, "static")
        self.check(self.holdfast("run", "./static", "out.dat").stderr, "", lines=0)

    def test_one_that_a_served_program_starts(self):
        script = "./static out.dat; ./dynamic other"
        self.check(self.holdfast("run", "--buffer", "2x64k", "--path", "*.dat", "sh", "-c", script).stderr, "./static")
        self.check(self.holdfast("run", "sh", "-c", script).stderr, "", lines=0)

    def test_of_a_jobs_ranks_the_first_speaks(self):
        for launcher in ("mpirun.mpich", "mpirun.openmpi"):
            if not shutil.which(launcher):
                continue
            options = ["--allow-run-as-root", "--oversubscribe"] if launcher.endswith("openmpi") else []
            done = self.holdfast("run", "--buffer", "2x64k", "--path", "*.dat", launcher, *options, "-n", "3", "./static", "out.dat")
            self.check(done.stderr, "./static")

    @unittest.skipIf(os.geteuid() != 0, "only root can give a program to somebody else")
    def test_one_with_its_owners_rights(self):
        shutil.copy(self.path("dynamic"), self.path("owned"))
        os.chown(self.path("owned"), 65534, 65534)
        os.chmod(self.path("owned"), 0o4755)
        os.chmod(self.dir, 0o777)
        self.check(self.holdfast("run", "--buffer", "2x64k", "--path", "*.dat", "./owned", "out.dat").stderr, "owned")

    def test_one_with_the_callers_own_rights_is_served(self):
        os.chmod(self.path("dynamic"), 0o4755)
        done = self.holdfast("run", "--protect", "mirror:2", "--targets", ",".join(self.make_targets(2)), "--path", "*.dat", "./dynamic", "out.dat")
        self.assertEqual(done.stderr, "")
        self.holdfast("status", "out.dat")

    @unittest.skipUnless(shutil.which("mpirun.openmpi") and shutil.which("mpicc.openmpi"), "needs Debian's Open MPI")
    def test_mpi_behind_a_script_is_told_which_library_it_needs(self):
        """And what the MPI keeps for itself, under names like those of the program's files, is none of the files that a glob means."""
        with open(self.path("shared.c"), "w") as file:
            file.write(SHARED)
        subprocess.run(["mpicc.openmpi", "-o", self.path("shared"), self.path("shared.c")], check=True)
        as_root = "--allow-run-as-root" if os.geteuid() == 0 else ""
        script = f"mpirun.openmpi {as_root} --oversubscribe -n 2 ./shared out.dat"
        options = ["--protect", "mirror:2", "--targets", ",".join(self.make_targets(2)), "--path", "out.*"]
        done = self.holdfast("run", *options, "sh", "-c", script)
        self.assert_one_sentence(done.stderr, "libmpi", "--library")
        os.unlink(self.path("out.dat"))
        done = self.holdfast("run", *options, "--library", "openmpi4", "sh", "-c", script)
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.cat("out.dat"), b"abcd" * 2)


if __name__ == "__main__":
    unittest.main()
