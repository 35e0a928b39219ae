"""holdfast run finds out which MPI is used, preloads the library built for it and hands the settings on."""
import os
import unittest

from command import CommandTest

LAUNCHER = """#!/bin/sh
if [ "$1" = --version ]; then cat "$0.version"; exit 0; fi
echo "arguments: $*"
env | grep -E '^(HOLDFAST_|LD_PRELOAD)' | sort
exit 7
"""


class RunPicksTheLibrary(CommandTest):
    def setUp(self):
        super().setUp()
        self.make_installation()
        os.mkdir(self.path("path"))
        self.env["PATH"] = self.path("path") + ":" + self.env["PATH"]

    def launcher(self, name, version):
        for suffix, text in (("", LAUNCHER), (".version", version)):
            with open(self.path("path", name + suffix), "w") as f:
                f.write(text)
        os.chmod(self.path("path", name), 0o755)

    def run_with(self, *args, expect=7):
        return self.holdfast("run", *args, expect=expect)

    def test_each_launcher_by_what_it_prints(self):
        for name, version, library in (
                ("mpirun", "mpirun (Open MPI) 4.1.4\n\nReport bugs to", "openmpi4"),
                ("mpirun.openmpi", "mpirun.openmpi (OpenRTE) 4.1.4\n", "openmpi4"),
                ("mpiexec", "HYDRA build details:\n    Version:                                 4.0.2\n", "mpich4"),
                ("mpiexec.hydra", "HYDRA build details:\n    Version:        5.0.2\n", "mpich5"),
                ("prterun", "prterun (Open MPI) 5.0.11\n", "openmpi5")):
            with self.subTest(name):
                path = self.library(library)
                self.launcher(name, version)
                done = self.run_with(name, "-n", "2", "./app")
                self.assertIn(f"LD_PRELOAD={path}\n", done.stdout)

    def test_the_library_of_an_installed_prefix(self):
        path = self.library("mpich4", "lib/holdfast")
        self.launcher("mpiexec", "HYDRA build details:\n    Version: 4.0.2\n")
        self.assertIn(f"LD_PRELOAD={path}\n", self.run_with("mpiexec", "./app").stdout)

    def test_the_library_with_all_calls_is_taken_only_where_they_are_counted(self):
        default = self.library("openmpi4")
        self.launcher("mpirun", "mpirun (Open MPI) 4.1.4\n")
        done = self.run_with("--profile-mpi", "mpirun", "./app", expect=2)
        self.assert_one_sentence(done.stderr, "libholdfast_all-openmpi4.so", "--profile-mpi", "make install")
        with_all_calls = default.replace("libholdfast-", "libholdfast_all-")
        os.link(default, with_all_calls)
        self.assertIn(f"LD_PRELOAD={with_all_calls}\n", self.run_with("--profile-mpi", "mpirun", "./app").stdout)
        self.assertIn(f"LD_PRELOAD={with_all_calls}\n", self.run_with("--library", default, "--profile-mpi", "mpirun", "./app").stdout)
        for options in ([], ["--profile"]):
            self.assertIn(f"LD_PRELOAD={default}\n", self.run_with(*options, "mpirun", "./app").stdout)
        # Nobody asks for it by name.
        self.assert_one_sentence(self.run_with("--library", "nothing", "mpirun", "./app", expect=2).stderr, "built are openmpi4;")

    def test_a_missing_library_names_the_mpi_and_what_is_built(self):
        self.library("mpich4")
        self.launcher("mpirun", "mpirun (Open MPI) 5.0.11\n")
        done = self.run_with("mpirun", "./app", expect=2)
        self.assert_one_sentence(done.stderr, "openmpi5", "5.0.11", "mpich4")

    def test_another_major_version_of_the_same_mpi_will_do(self):
        older, newer = self.library("openmpi4"), self.library("openmpi5")
        self.library("mpich4")
        self.launcher("mpirun", "mpirun (Open MPI) 3.1.6\n")
        self.assertIn(f"LD_PRELOAD={newer}\n", self.run_with("mpirun", "./app").stdout)
        os.unlink(newer)
        self.launcher("mpirun", "mpirun (Open MPI) 5.0.11\n")
        self.assertIn(f"LD_PRELOAD={older}\n", self.run_with("mpirun", "./app").stdout)

    def test_the_exit_status_and_the_arguments_are_the_programs(self):
        self.library("mpich4")
        self.launcher("mpiexec", "HYDRA build details:\n    Version: 4.0.2\n")
        done = self.run_with("--close", "fast", "--", "mpiexec", "-n", "4", "./app", "--close", "x", "--", "-y", "a b")
        self.assertIn("arguments: -n 4 ./app --close x -- -y a b\n", done.stdout)
        self.assertEqual(self.run_with("mpiexec", "--protect", "me").stdout.splitlines()[0], "arguments: --protect me")

    def test_settings_arrive_as_environment(self):
        self.library("mpich4")
        self.launcher("mpiexec", "HYDRA build details:\n    Version: 4.0.2\n")
        targets = self.make_targets(3)
        out = self.run_with("--protect", "rs:2+1", "--targets", "t0,t1,t2/", "--path", "*.nc", "--path", "/data/*",
                            "--deadline", "500ms", "mpiexec").stdout
        for line in ("HOLDFAST_PROTECT=rs:2+1", "HOLDFAST_TARGETS=" + ",".join(targets), "HOLDFAST_PATH=*.nc:/data/*",
                     "HOLDFAST_DEADLINE=500ms", "HOLDFAST_CONFIG="):
            self.assertIn(line + "\n", out)
        for target in targets:
            self.assertTrue(os.path.exists(os.path.join(target, "holdfast-target.json")))

    def test_open_mpi_is_told_to_forward_the_environment(self):
        self.library("openmpi4")
        self.launcher("mpirun", "mpirun (Open MPI) 4.1.4\n")
        out = self.run_with("--close", "fast", "mpirun", "-n", "2", "./app").stdout
        self.assertIn("arguments: -x LD_PRELOAD -x HOLDFAST_CLOSE -x HOLDFAST_CONFIG -n 2 ./app\n", out)

    def test_what_is_preloaded_already_stays(self):
        path = self.library("mpich4")
        self.launcher("mpiexec", "HYDRA build details:\n    Version: 4.0.2\n")
        self.env["LD_PRELOAD"] = self.harmless
        self.assertIn(f"LD_PRELOAD={path}:{self.harmless}\n", self.run_with("mpiexec").stdout)

    def test_a_program_without_mpi_gets_the_posix_library(self):
        path = self.library("posix")
        out = self.run_with("sh", "-c", "echo $LD_PRELOAD", expect=0).stdout
        self.assertEqual(out, path + "\n")

    def test_where_no_mpi_is_found_it_says_that_nothing_is_protected(self):
        self.library("posix")
        self.assert_one_sentence(self.run_with("--protect", "mirror:2", "true", expect=0).stderr, "no MPI", "'true'", "--library")
        self.assertEqual(self.run_with("true", expect=0).stderr, "")

    def test_a_library_can_be_named(self):
        path = self.library("mpich4")
        script = ("sh", "-c", "echo $LD_PRELOAD")
        for name in ("mpich4", path):
            self.assertEqual(self.run_with("--library", name, *script, expect=0).stdout, path + "\n")
        self.assert_one_sentence(self.run_with("--library", "mpich9", *script, expect=2).stderr, "mpich9", "mpich4")
        self.assert_one_sentence(self.run_with("--library", "./no.so", *script, expect=2).stderr, "./no.so")


if __name__ == "__main__":
    unittest.main()
