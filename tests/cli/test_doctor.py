"""holdfast doctor names what hinders Holdfast on a machine, each with its mend, and leaves nothing behind."""
import os
import resource
import subprocess
import unittest

from command import CommandTest

OPEN_MPI = "mpirun (Open MPI) 4.1.4"


class Doctor(CommandTest):
    def setUp(self):
        super().setUp()
        self.make_installation()
        self.library("posix")
        self.library("openmpi4")
        os.mkdir(self.path("words"))
        self.env["PATH"] = self.path("words")
        self.env.pop("LD_LIBRARY_PATH", None)
        self.launcher("mpirun", OPEN_MPI)

    def launcher(self, word, says):
        with open(self.path("words", word), "w") as script:
            script.write(f"#!/bin/sh\necho '{says}'\n")
        os.chmod(self.path("words", word), 0o755)

    def sentences(self, level, *args, expect=0, env=None):
        self.env.update(env or {})
        found = self.json("doctor", *args, expect=expect)
        self.assertEqual(found["fails"], sum(f["level"] == "fail" for f in found["findings"]))
        return [f["sentence"] for f in found["findings"] if f["level"] == level]

    def assert_found(self, level, *words, args=(), env=None):
        sentences = self.sentences(level, *args, expect=int(level == "fail"), env=env)
        self.assertTrue(any(all(w in s for w in words) for s in sentences), f"no {level} with {words} in {sentences}")

    def test_nothing_fails_where_all_is_well_and_nothing_is_left_behind(self):
        targets = self.make_targets(2)
        before = self.tree()
        text = self.holdfast("doctor", "--protect-nothing", expect=3).stderr
        self.assertIn("--help", text)
        text = self.holdfast("doctor", "--targets", ",".join(targets), self.path("words")).stdout
        self.assertEqual(self.tree(), before)
        for words in ("openmpi4 4.1.4", f"{targets[0]} is on ", f"{targets[1]} can be written", "holdfast 0.", "open files"):
            self.assertIn(words, text)
        for line in text.splitlines()[:-1]:
            self.assertIn(line.split()[0], ("ok", "warn"))

    def test_a_launcher_without_a_library(self):
        self.launcher("mpiexec.other", "Intel(R) MPI Library for Linux* OS, Version 2021.9")
        self.assert_found("warn", "mpiexec.other", "intelmpi2021", "HOLDFAST_MPICC")
        os.symlink("mpiexec.other", self.path("words", "mpiexec"))  # now it is what people type
        self.assert_found("fail", "mpiexec, mpiexec.other", "intelmpi2021")

    def test_a_launcher_that_names_no_mpi_or_none_at_all(self):
        self.launcher("mpirun", "hello")
        self.assert_found("warn", "does not say which MPI", "--library")
        os.remove(self.path("words", "mpirun"))
        self.assert_found("warn", "no mpirun", "PATH")

    def test_an_installation_without_its_library(self):
        os.remove(self.path("install/lib/libholdfast-posix.so"))
        self.assert_found("fail", "libholdfast-posix.so", "make install")

    def test_targets_that_cannot_be_used(self):
        self.make_targets(2)
        self.make_file("t0/thesis.txt", 10)
        self.assert_found("fail", "t0", "not empty", args=("--targets", "t0,t1"))
        self.assert_found("fail", "t7", "mkdir -p", args=("--targets", "t1,t7"))
        self.assert_found("fail", "nowhere", "mkdir -p", args=("nowhere",))
        self.assert_found("fail", "thesis.txt", "directory", args=("t0/thesis.txt",))

    def test_targets_on_one_device(self):
        self.make_targets(2)
        self.assert_found("warn", "t0", "t1", "one device", args=("--targets", "t0,t1"))

    def test_a_target_in_use_is_well(self):
        _, targets = self.protect("mirror:2", 2)
        self.assertEqual(self.sentences("fail", "--targets", ",".join(targets)), [])

    def test_a_directory_that_is_mounted_read_only(self):
        def mounted(*command):
            return subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', self.path("t0"), *command],
                                  cwd=self.dir, env={**self.env, "PATH": os.environ["PATH"]}, capture_output=True, text=True)
        self.make_targets(1)
        if mounted("true").returncode:
            self.skipTest("mounts cannot be made here")
        done = mounted(self.binary, "doctor", "t0")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("read-only", done.stdout)

    def test_settings_that_are_bad_or_mean_nothing(self):
        self.assert_found("warn", "HOLDFAST_PROTCET", "HOLDFAST_PROTECT meant", env={"HOLDFAST_PROTCET": "mirror:2"})
        self.assert_found("warn", "HOLDFAST_ELEPHANT", "unset it", env={"HOLDFAST_ELEPHANT": "1"})
        self.assert_found("fail", "HOLDFAST_PROTECT", "raid5", env={"HOLDFAST_PROTECT": "raid5"})
        self.assert_found("fail", "needs", env={"HOLDFAST_PROTECT": "rs:4+2", "HOLDFAST_TARGETS": self.dir})

    def test_libraries_that_are_loaded_already(self):
        self.assert_found("warn", "LD_PRELOAD", "unset it", env={"LD_PRELOAD": self.path("install/lib/libholdfast-posix.so")})
        self.assert_found("warn", "LD_PRELOAD", "unset it", env={"LD_PRELOAD": self.path("install/lib/libholdfast_all-openmpi4.so")})
        self.assert_found("warn", "LD_PRELOAD", "cannot be read", env={"LD_PRELOAD": self.path("nothing.so")})

    def test_libraries_of_another_mpi(self):
        os.mkdir(self.path("other"))
        self.library("mpi", "../other")
        os.rename(self.path("other/libholdfast-mpi.so"), self.path("other/libmpi.so.40"))
        os.makedirs(self.path("mpi/bin"))
        os.rename(self.path("words/mpirun"), self.path("mpi/bin/mpirun"))
        self.env["PATH"] = self.path("mpi/bin")
        self.assert_found("warn", "LD_LIBRARY_PATH", self.path("other/libmpi.so.40"), "load one MPI", env={"LD_LIBRARY_PATH": self.path("other")})
        self.assert_found("warn", "empty part", env={"LD_LIBRARY_PATH": ":" + self.path("words")})

    def test_limits_that_are_small(self):
        def limits():
            resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([self.binary, "doctor"], cwd=self.dir, env=self.env, capture_output=True, text=True, preexec_fn=limits)
        self.assertEqual(done.returncode, 1, done)
        for words in ("ulimit -n 1024", "ulimit -f unlimited", "cannot be written (File too large)"):
            self.assertIn(words, done.stdout)


if __name__ == "__main__":
    unittest.main()
