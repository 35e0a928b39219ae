"""holdfast doctor names what hinders Holdfast on a machine, each with its mend, and leaves nothing behind."""
import os
import resource
import shutil
import socket
import subprocess
import unittest

from command import BINARY, CommandTest, OwnAgentsTest

OPEN_MPI = "mpirun (Open MPI) 4.1.4"


class Asking(CommandTest):
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


class Doctor(Asking):
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

    def test_a_log_directory_that_is_missing(self):
        self.assert_found("fail", "logs", "mkdir -p", args=("--log-dir", "logs"))

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

    def test_a_file_system_that_has_too_few_nodes_for_the_scheme(self):
        before = self.tree()
        scheme = {"HOLDFAST_PROTECT": "mirror:2"}
        self.assert_found("fail", f"mirror:2 needs 2 distinct storage nodes and the file system of {self.dir} gives 1", "--targets", env=scheme)
        self.assert_found("fail", f"the file system of {self.path('words')} gives 1", args=(self.path("words"),), env=scheme)
        self.assert_found("ok", "a file of mirror:2 can be made", env={**scheme, "HOLDFAST_ALLOW_SHARED_TARGET": "1"})
        self.assertEqual(self.tree(), before)

    def test_too_few_open_files_for_the_scheme(self):
        targets = ",".join(self.make_targets(6))
        for limit, code, words in ((64, 1, "FAIL a process may have 64 open files, and one that writes files of rs:4+2 needs 80: ulimit -n 1024"),
                                   (80, 0, "WARN a process may have 80 open files, which is few: ulimit -n 1024")):
            done = subprocess.run([self.binary, "doctor", "--protect", "rs:4+2", "--targets", targets], cwd=self.dir, env=self.env,
                                  capture_output=True, text=True, preexec_fn=lambda few=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
            self.assertEqual(done.returncode, code, done)
            self.assertIn(words.lower(), done.stdout.lower())

    def test_few_addresses_for_the_scheme(self):
        targets = ",".join(self.make_targets(6))
        few = 1000000 << 10
        done = subprocess.run([self.binary, "doctor", "--protect", "rs:4+2", "--targets", targets], cwd=self.dir, env=self.env,
                              capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (few, few)))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("a process may have 976.6 MiB of addresses, and may need 1.0 GiB: ulimit -v unlimited", done.stdout)

    def test_limits_that_are_small(self):
        def limits():
            resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([self.binary, "doctor"], cwd=self.dir, env=self.env, capture_output=True, text=True, preexec_fn=limits)
        self.assertEqual(done.returncode, 1, done)
        for words in ("ulimit -n 1024", "ulimit -f unlimited", "cannot be written (File too large)"):
            self.assertIn(words, done.stdout)


class Nodes(Asking, OwnAgentsTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("install/libexec/holdfast"))
        shutil.copy(os.path.join(os.path.dirname(BINARY), "../libexec/holdfast/agent"), self.path("install/libexec/holdfast/agent"))

    def start(self, *nodes):
        for node in nodes:
            os.mkdir(self.path(node))
            self.holdfast("agents", "start", "--this-node-only", "--node", node, self.path(node))
        return [f"{node}:{self.path(node)}" for node in nodes]

    def test_agents_that_run_are_well_and_nothing_is_left_behind(self):
        targets = self.start("n1", "n2")
        self.assertEqual(self.sentences("fail", "--targets", ",".join(targets)), [])
        for target in targets:
            self.assert_found("ok", target, "can be written", "free of", args=("--targets", ",".join(targets)))
        self.assertEqual(os.listdir(self.path("n1")), [])
        self.make_file("n2/thesis.txt", 10)
        self.assert_found("fail", "n2", "not empty", args=("--targets", ",".join(targets)))

    def test_an_agent_that_does_not_run_has_the_line_that_starts_it(self):
        known, = self.start("n1")
        line = f"holdfast agents start --node n9 {self.path('n9')}"
        self.assert_found("fail", "n9", line, args=("--targets", f"{known},n9:{self.path('n9')}"))
        self.lose_agent("n1")
        self.assert_found("fail", "n1", f"holdfast agents start --node n1 {self.path('n1')}", args=("--targets", known))
        self.assert_found("warn", "n1", f"holdfast agents start --node n1 {self.path('n1')}", "agents stop n1")

    def test_a_pool_with_too_few_nodes_for_the_scheme(self):
        local = ",".join(self.start("n1", "n2"))
        self.assert_found("ok", "mirror:2 fits on 2 nodes", args=("--protect", "mirror:2", "--local", local))
        self.assert_found("fail", "rs:2+1 needs 3 nodes", "mirror:2", args=("--protect", "rs:2+1", "--local", local))
        self.assert_found("fail", "mirror:2 needs 2 nodes", args=("--protect", "mirror:2", "--local", f"n1:{self.path('n1')},n9:{self.path('n9')}"))

    def test_a_pool_whose_agents_run_will_start(self):
        here = socket.gethostname().split(".")[0]
        args = ("--protect", "mirror:2", "--local", self.path("disk-{node}"), "--hosts", f"{here},n9")
        self.assert_found("ok", f"{here}:{self.path('disk-' + here)}", "'holdfast run' starts it", args=args)
        self.assert_found("warn", "n9", "--with 'ssh {node}'", f"holdfast agents start --node n9 {self.path('disk-n9')}", args=args)
        self.assert_found("fail", "missing", "mkdir -p", args=("--local", self.path("missing/{node}"), "--hosts", here))

    def test_a_file_of_racks_that_cannot_be_used(self):
        local = ",".join(self.start("n1", "n2"))
        self.assert_found("fail", "racks", "cannot be read", args=("--local", local, "--domains", "racks"))
        with open(self.path("racks"), "w") as file:
            file.write("n1 r1\n")
        self.assert_found("fail", "racks does not say where", "n2 RACK", args=("--local", local, "--domains", "racks"))
        with open(self.path("racks"), "a") as file:
            file.write("n2 r2\n")
        self.assertEqual(self.sentences("fail", "--local", local, "--domains", "racks"), [])


if __name__ == "__main__":
    unittest.main()
