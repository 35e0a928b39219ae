#!/usr/bin/env python3
"""Files on CephFS, a real file system with layouts: in one directory, and over directories whose pools lie on different OSDs.

  test_ceph.py --build BUILD [-v] [TEST...]

Not part of `make test`: it needs Ceph's packages, root for the mount, and about 1 GiB. The cluster is the test's own.
"""
import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import OSDS, Cluster  # noqa: E402

UNIT = 64 * 1024
build = None
cluster = None


def launcher(ranks=2):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def run(*command, expect=0, seconds=200, **settings):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL, env={**os.environ, "HOLDFAST_STRIPING_UNIT": str(UNIT), **settings})
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"exit code {done.returncode} instead of {expect}: {' '.join(command)}\n{done.stdout}")
    return done


def holdfast(*arguments, **options):
    return run(os.path.join(build, "bin", "holdfast"), *arguments, **options)


def text_of(path):
    with open(path, errors="replace") as file:
        return file.read()


def layout(path):
    text = os.getxattr(path, "ceph.file.layout").decode()
    return {key: value for key, value in (pair.split("=") for pair in text.split())}


class Ceph(unittest.TestCase):
    def setUp(self):
        self.native = os.path.join(cluster.root, "native")
        self.here = os.path.join(cluster.mount, self.id().split(".")[-1])
        for directory in (self.native, self.here):
            os.mkdir(directory)
        self.addCleanup(shutil.rmtree, self.native)

    def program(self, directory):
        return launcher() + [os.path.join(build, "tests", "programs", "openmpi", "collective"), os.path.join(directory, "out")]

    def compare(self, directory):
        names = sorted(name for name in os.listdir(self.native))
        self.assertTrue(names)
        for name in names:
            exported = os.path.join(cluster.root, "exported")
            holdfast("export", os.path.join(directory, name), exported)
            self.assertTrue(filecmp.cmp(os.path.join(self.native, name), exported, shallow=False), name)
            os.unlink(exported)
        return names


class OneDirectory(Ceph):
    def protected(self, scheme, placement, **settings):
        run(*self.program(self.native))
        holdfast("run", "--protect", scheme, "--placement", placement, "--allow-shared-target", "--", *self.program(self.here),
                 **settings)
        names = self.compare(self.here)
        for name in names:
            holdfast("status", os.path.join(self.here, name))
            holdfast("verify", os.path.join(self.here, name))
        return names

    def test_interleaved_files_have_the_layout_that_was_asked_for(self):
        for name in self.protected("mirror:2", "interleaved"):
            found = layout(os.path.join(self.here, f".{name}.holdfast", "data"))
            self.assertEqual((found["stripe_unit"], found["stripe_count"], found["object_size"]), (str(UNIT), "2", str(UNIT)))

    def test_the_hint_striping_factor_asks_for_more_nodes(self):
        for name in self.protected("rs:2+1", "interleaved", HOLDFAST_STRIPING_FACTOR="7"):
            # Whole rows go over whole rounds of nodes.
            self.assertEqual(layout(os.path.join(self.here, f".{name}.holdfast", "data"))["stripe_count"], "6")

    def test_separate_mirrors_leave_the_plain_file_at_the_path(self):
        for name in self.protected("mirror:2", "separate"):
            self.assertTrue(filecmp.cmp(os.path.join(self.native, name), os.path.join(self.here, name), shallow=False), name)
            self.assertEqual(layout(os.path.join(self.here, name))["stripe_unit"], str(UNIT))

    def test_separate_codes_leave_the_plain_file_at_the_path(self):
        for name in self.protected("rs:2+1", "separate"):
            self.assertTrue(filecmp.cmp(os.path.join(self.native, name), os.path.join(self.here, name), shallow=False), name)

    def test_distinct_objects_are_no_distinct_nodes_and_so_it_has_to_be_accepted(self):
        # What the refusal is for: of the two units of each of 16 rows, some lie on one OSD.
        path = os.path.join(self.here, "file")
        open(path, "w").close()
        for key, value in (("stripe_unit", UNIT), ("object_size", UNIT), ("stripe_count", 2)):
            os.setxattr(path, f"ceph.file.layout.{key}", str(value).encode())
        with open(path, "wb") as file:
            file.write(bytes(32 * UNIT))
        shared = [row for row in range(16) if cluster.osd_of(path, 2 * row) == cluster.osd_of(path, 2 * row + 1)]
        self.assertTrue(shared)
        for placement in ("interleaved", "separate"):
            done = holdfast("run", "--protect", "mirror:2", "--placement", placement, "--", *self.program(self.here), expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("places objects by a hash", done.stdout)
        self.assertEqual(os.listdir(self.here), ["file"])


class PoolsOfTheirOwn(Ceph):
    """Directories whose pools lie on one OSD each: the units of a row are on distinct nodes. The last test, for it kills an OSD."""

    def test_an_osd_killed_in_the_middle_is_one_lost_target(self):
        targets = [cluster.pool_directory(number) for number in range(OSDS)]
        home = os.path.join(cluster.root, "home")
        os.mkdir(home)
        heat = [os.path.join(build, "examples", "openmpi", "heat")]
        arguments = ["203", "301", "60", "3"]
        run(*launcher(), *heat, os.path.join(self.native, "out.heat"), *arguments)
        path = os.path.join(home, "out.heat")
        command = [os.path.join(build, "bin", "holdfast"), "run", "--protect", "rs:2+1", "--targets", ",".join(targets), "--deadline",
                   "3s", "--", *launcher(), *heat, path, *arguments, "--pause-ms", "300"]
        log = os.path.join(cluster.root, "job.log")
        with open(log, "wb") as output:
            job = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, "HOLDFAST_STRIPING_UNIT": str(UNIT)})
        try:
            time.sleep(2)
            self.assertIsNone(job.poll(), "the job ended before its OSD could be killed: " + text_of(log))
            cluster.kill("osd2")
            code = job.wait(120)
            self.assertEqual(code, 0, text_of(log))
        finally:
            if job.poll() is None:
                job.terminate()
                try:
                    job.wait(10)
                except subprocess.TimeoutExpired:
                    job.kill()
        os.environ["HOLDFAST_DEADLINE"] = "3s"
        done = holdfast("status", path, expect=1)
        self.assertIn(targets[2], done.stdout)
        self.compare(home)


def main():
    global build, cluster
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=os.path.abspath)
    options, rest = parser.parse_known_args()
    build = options.build
    cluster = Cluster()
    try:
        cluster.start()
        return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
