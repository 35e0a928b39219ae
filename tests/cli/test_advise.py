"""holdfast advise: from a log to advice, a configuration and commands, as a person types it."""
import json
import os
import shutil
import stat
import subprocess
import sys
import unittest

from command import CommandTest


def counters_of(calls, size, seconds, write=True):
    way = "write" if write else "read"
    return {f"{way}s_independent": calls, f"{way}s_consecutive": calls - 1, f"bytes_{'written' if write else 'read'}": calls * size,
            f"{way}_ns": int(seconds * 1e9), "opens": 1, "closes": 1, "open_ns": 1000000}


def file_of(path, ranks, calls, size, seconds, interface="posix", **more):
    """One file of which each of `ranks` does the same."""
    one = counters_of(calls, size, seconds)
    return {"path": path, "interface": interface, "scheme": "", "shared_pointer": "", "alignment": 4096,
            "total": {k: v * len(ranks) for k, v in one.items()}, "ranks": {"rank": list(ranks), **{k: [v] * len(ranks) for k, v in one.items()}},
            "common_read_sizes": [], "common_write_sizes": [[size, calls * len(ranks)]], "common_read_strides": [], "common_write_strides": [], **more}


def log_of(files, ranks=1, seconds=1085.0):
    return {"job": {"command": ["./app"], "program": "/home/me/app", "scheme": "", "holdfast": "0", "start_ns": 1, "duration_ns": int(seconds * 1e9),
                    "ranks": ranks, "nodes": ["n0"], "complete": True, "damaged_pieces": 0, "exit_code": 0},
            "processes": [], "files": files, "time_line": {"step_ns": 0, "steps": 0, "rows": []}, "operations": [], "operations_lost": 0}


SMALL = log_of([file_of("/scratch/run/ssef", [0], 2083634, 512, 1080)])  # 1 GB in writes of 512 bytes
GOOD = log_of([file_of("/scratch/run/out", [0], 16, 64 << 20, 10)])
SHARED = log_of([file_of("/scratch/run/f.h5", range(600), 10, 14_000_000, 1207, interface="mpi-io")], ranks=600, seconds=1800)


class Advise(CommandTest):
    """On logs told here, of files that are not on this machine."""

    def log(self, content, name="job.json"):
        with open(self.path(name), "w") as file:
            json.dump(content, file)
        return name

    def read(self, name="holdfast.toml"):
        with open(self.path(name)) as file:
            return file.read()

    def write(self, text, name="holdfast.toml"):
        with open(self.path(name), "w") as file:
            file.write(text)

    def test_small_writes_are_told_with_evidence_gain_and_the_option_to_use(self):
        out = self.holdfast("advise", self.log(SMALL)).stdout
        for words in ["1. small-accesses: /scratch/run/ssef: 1080 s -> 4.", "2,083,634 calls write 1.07 GB in pieces of 512 bytes",
                      "holdfast run --buffer 4x64MiB --path /scratch/run/ssef", "250 MB/s", "assumed"]:
            self.assertIn(words, " ".join(out.split()))
        self.assertLessEqual(max(map(len, out.splitlines())), 120)
        facts = self.json("advise", "job.json")
        self.assertEqual(facts["advice"][0]["settings"], {"buffer": "4x64MiB", "path": ["/scratch/run/ssef"]})
        self.assertAlmostEqual(facts["advice"][0]["seconds_after"], 4.7, delta=0.5)

    def test_a_good_program_has_nothing_to_change(self):
        out = self.holdfast("advise", self.log(GOOD), "--apply").stdout
        self.assertIn("nothing to change", out)
        self.assertIn("nothing is written", out)
        self.assertFalse(os.path.exists(self.path("holdfast.toml")))

    def test_a_log_without_files_is_no_praise(self):
        out = self.holdfast("advise", self.log(log_of([]))).stdout
        self.assertIn("nothing can be said", out)
        self.assertNotIn("nothing to change", out)

    def test_the_threshold_is_the_users(self):
        log = self.log(log_of([file_of("/scratch/a", [0], 20000, 512, 15)], seconds=1000))
        self.assertEqual(self.json("advise", log)["advice"], [])
        self.assertEqual(self.json("advise", log)["below_threshold"], 1)
        self.assertEqual(self.json("advise", log, "--threshold", "1")["advice"][0]["name"], "small-accesses")

    def test_stripes_are_advised_once_the_devices_are_known(self):
        log = self.log(SHARED)
        lustre = ["--file-system", "lustre", "--stripes", "4", "--most-stripes", "160"]
        self.assertEqual(self.json("advise", log, "--file-system", "lustre", "--stripes", "4")["not_known"][0].split()[0], "/scratch/run/f.h5")
        advice = self.json("advise", log, *lustre, "--devices", "336")["advice"][0]
        self.assertEqual((advice["name"], advice["commands"]), ("file-stripes", ["lfs setstripe -c -1 -S 1m /scratch/run"]))
        self.assertAlmostEqual(1800 - advice["seconds_saved"], 625, delta=10)

    def test_apply_writes_a_configuration_that_run_takes(self):
        self.make_installation()
        self.library("posix")
        out = self.holdfast("advise", self.log(SMALL), "--apply").stdout
        self.assertIn('buffer = "4x64MiB"', out)
        self.assertEqual(self.read(), 'buffer = "4x64MiB"\npath = ["/scratch/run/ssef"]\n')
        self.holdfast("run", "true")
        self.holdfast("advise", "job.json", "--apply", "other.toml")
        self.assertEqual(self.read("other.toml"), self.read())
        self.holdfast("run", "--config", "other.toml", "true")

    def test_apply_keeps_what_is_there(self):
        before = '# mine\ndeadline = "5s"   # patience\nbuffer = "2x1MiB" # too small\n\npath = [\n  "/a/*",\n  "b?c",\n] # mine too\nclose = "fast"\n'
        self.write(before)
        os.chmod(self.path("holdfast.toml"), 0o600)
        self.holdfast("advise", self.log(SMALL), "--apply")
        self.assertEqual(self.read(), '# mine\ndeadline = "5s"   # patience\nbuffer = "4x64MiB" # too small\n\npath = ["/a/*", "b?c", "/scratch/run/ssef"] # mine too\n'
                                      'close = "fast"\n')
        self.assertEqual(stat.S_IMODE(os.stat(self.path("holdfast.toml")).st_mode), 0o600)
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".new")], [])
        again = self.read()
        self.holdfast("advise", "job.json", "--apply")
        self.assertEqual(self.read(), again, "a second time changes nothing")

    def test_apply_follows_a_link(self):
        os.mkdir(self.path("real"))
        self.write("# kept\n", "real/settings.toml")
        os.symlink("real/settings.toml", self.path("holdfast.toml"))
        self.holdfast("advise", self.log(SMALL), "--apply")
        self.assertTrue(os.path.islink(self.path("holdfast.toml")))
        self.assertIn("# kept\nbuffer", self.read("real/settings.toml"))

    def test_apply_does_not_change_what_is_protected(self):
        self.write('protect = "mirror:2"\n')
        out = self.holdfast("advise", self.log(SMALL), "--apply").stdout
        self.assertIn("left out", out)
        self.assertEqual(self.read(), 'protect = "mirror:2"\n')
        self.write('protect = "mirror:2"\npath = "/scratch/*"\n')
        self.holdfast("advise", "job.json", "--apply")
        self.assertIn('buffer = "4x64MiB"', self.read())

    def test_apply_leaves_a_file_alone_that_is_no_configuration(self):
        self.write("this is = = no toml\n")
        self.assert_one_sentence(self.holdfast("advise", self.log(SMALL), "--apply", expect=3).stderr, "holdfast.toml", "line 1")
        self.assertEqual(self.read(), "this is = = no toml\n")

    def test_bad_input_is_one_sentence(self):
        self.log({"job": 5})
        for line, words in [(["nowhere.hflog"], ["nowhere.hflog"]), (["job.json"], ["damaged", "job.json"]), (["job.json", "--stripe-size", "big"], ["damaged"])]:
            self.assert_one_sentence(self.holdfast("advise", *line, expect=3).stderr, *words)
        self.log(SMALL)
        self.assert_one_sentence(self.holdfast("advise", "job.json", "--stripe-size", "big", expect=3).stderr, "--stripe-size", "1MiB")
        with open(self.path("x.hflog"), "wb") as file:
            file.write(b"HFJOBLOG" + bytes(100))
        self.assert_one_sentence(self.holdfast("advise", "x.hflog", expect=3).stderr, "x.hflog")

    def test_without_the_package_a_darshan_log_is_refused_with_the_way_to_it(self):
        with open(self.path("x.darshan"), "wb") as file:
            file.write(b"what a log may be")
        with open(self.path("python"), "w") as file:  # one that has no packages
            file.write(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
        os.chmod(self.path("python"), 0o755)
        self.assert_one_sentence(self.holdfast("advise", "x.darshan", expect=3, env={"HOLDFAST_PYTHON": self.path("python")}).stderr, "pip install darshan")
        self.assert_one_sentence(self.holdfast("advise", "x.darshan", expect=3, env={"HOLDFAST_PYTHON": "no-such-python"}).stderr, "no-such-python")


class Darshan(CommandTest):
    """On the logs that the package itself brings as examples."""

    def setUp(self):
        super().setUp()
        python = os.environ.get("HOLDFAST_TEST_DARSHAN_PYTHON") or sys.executable
        found = subprocess.run([python, "-c", "import darshan, os; print(os.path.dirname(darshan.__file__))"], capture_output=True, text=True)
        if found.returncode:
            self.skipTest(f"{python} has no package darshan (HOLDFAST_TEST_DARSHAN_PYTHON names one that has)")
        self.examples = os.path.join(found.stdout.strip(), "examples/example_logs")
        self.env["HOLDFAST_PYTHON"] = python

    def example(self, name):
        path = os.path.join(self.examples, name)
        if not os.path.exists(path):
            self.skipTest(f"this version of the package brings no {name}")
        return path

    def test_a_job_of_many_files_brings_its_patterns_and_its_file_system(self):
        facts = self.json("advise", self.example("sample-badost.darshan"))
        self.assertEqual(facts["job_seconds"], 780)
        self.assertEqual(facts["patterns"][0]["name"], "file-per-process")
        self.assertIn("2,048 files of 2,048 processes", facts["patterns"][0]["words"])
        self.assertEqual(facts["advice"][0]["name"], "straggler", "one device of that file system was ill")
        self.assertTrue(facts["advice"][0]["commands"][0].startswith("lfs getstripe /scratch1/"))

    def test_a_shared_file_of_parallel_hdf5_is_known_as_one(self):
        facts = self.json("advise", self.example("example.darshan"))
        self.assertEqual(facts["patterns"][0]["name"], "single-shared-file")
        self.assertTrue(facts["patterns"][0]["files"].endswith("vpicio.hdf5"))

    def test_a_damaged_log_is_one_sentence(self):
        shutil.copy(self.example("example.darshan"), self.path("cut.darshan"))
        os.truncate(self.path("cut.darshan"), 100)
        self.assert_one_sentence(self.holdfast("advise", "cut.darshan", expect=3).stderr, "cut.darshan")


class Measure(CommandTest):
    """holdfast run --measure, with real runs."""

    def measured(self, *command, options=(), expect=0):
        done = self.holdfast("run", "--measure", *options, "--", *command, expect=expect)
        return done

    def test_both_runs_are_made_and_compared(self):
        program = "echo run >>runs; env | grep ^HOLDFAST_BUFFER >>runs; dd if=/dev/zero of=out.bin bs=512 count=500 status=none"
        done = self.measured("sh", "-c", program, options=["--buffer", "2x1MiB", "--path", "*.bin", "--log", "m.hflog", "--json"])
        facts = json.loads(done.stdout.splitlines()[-1])
        with open(self.path("runs")) as file:
            self.assertEqual(file.read(), "run\nrun\nHOLDFAST_BUFFER=2x1048576\n", "first without, then with")
        self.assertEqual(facts["settings"], "HOLDFAST_BUFFER=2x1048576")
        for which in ("before", "after"):
            self.assertGreater(facts[which]["seconds"], 0)
            self.assertTrue(os.path.exists(facts[which]["log"]))
        self.assertAlmostEqual(facts["times_faster"], facts["before"]["seconds"] / facts["after"]["seconds"])
        self.assertEqual(os.path.getsize(self.path("out.bin")), 256000)

    def test_a_variable_of_the_users_own_is_left_out_of_the_first_run_too(self):
        done = self.holdfast("run", "--measure", "--log", "m", "--path", "*.bin", "sh", "-c", "echo [$HOLDFAST_BUFFER]", env={"HOLDFAST_BUFFER": "2x1MiB"})
        self.assertEqual(done.stdout, "[]\n[2x1048576]\n")
        for words in ("without", "with", "files: *.bin", "gain", "m.before", "m.after"):
            self.assertIn(words, done.stderr)

    def test_without_a_setting_there_is_nothing_to_measure(self):
        done = self.measured("touch", "started", expect=2)
        self.assert_one_sentence(done.stderr, "nothing to measure", "--apply")
        self.assertFalse(os.path.exists(self.path("started")))

    def test_a_run_that_fails_ends_it_with_its_code(self):
        done = self.measured("sh", "-c", "echo x >>runs; exit 7", options=["--buffer", "2x1MiB", "--log", "m"], expect=7)
        self.assertIn("not begun", done.stderr)
        self.assertEqual(os.path.getsize(self.path("runs")), 2)


if __name__ == "__main__":
    unittest.main()
