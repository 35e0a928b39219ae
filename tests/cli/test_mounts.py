"""holdfast run --mounts: the globs of plain files mean those on file systems of all nodes, or of one."""
import os
import pathlib
import sys
import unittest

from command import CommandTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(__file__), "../../build/bin/faultfs")
WRITER = "import sys\nfor name in sys.argv[1:]: open(name, 'wb').write(b'content')"


class Mounts(CommandTest):
    def setUp(self):
        super().setUp()
        for name in ("scratch", "scratch/node", "local"):
            os.mkdir(self.path(name))
        self.names = ["scratch/out.dat", "scratch/node/out.dat", "local/out.dat"]

    def protected(self, *options):
        """Which of the files that a program writes are protected under these options."""
        targets = self.make_targets(2, prefix=f"t{len(os.listdir(self.dir))}.")
        self.holdfast("run", "--protect", "mirror:2", "--targets", ",".join(targets), "--path", "*.dat", *options,
                      sys.executable, "-c", WRITER, *self.names)
        found = [name for name in self.names if os.path.islink(self.path(name))]
        for name in self.names:
            self.assertEqual(pathlib.Path(self.path(name)).read_bytes(), b"content")
            self.holdfast("rm", name, expect=None)
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        return found

    def test_directories_are_shared_or_local_as_the_options_say(self):
        sharing = ("--shared-mounts", self.path("scratch"), "--local-mounts", self.path("scratch/node") + "," + self.path("local"))
        self.assertEqual(self.protected(*sharing), self.names)
        self.assertEqual(self.protected("--mounts", "any", *sharing), self.names)
        self.assertEqual(self.protected("--mounts", "shared", *sharing), self.names[:1])
        self.assertEqual(self.protected("--mounts", "local", *sharing), self.names[1:])

    def test_the_environment_and_the_configuration_say_it_too(self):
        self.env.update(HOLDFAST_SHARED_MOUNTS=self.path("scratch"), HOLDFAST_LOCAL_MOUNTS=self.path("local"))
        with open(self.path("holdfast.toml"), "w") as file:
            file.write('mounts = "shared"\n')
        self.assertEqual(self.protected(), self.names[:2])
        self.assertEqual(self.protected("--mounts", "local"), self.names[2:])

    def test_files_under_buffers_are_chosen_alike(self):
        options = ("--buffer", "2x1MiB", "--path", "*.dat", "--mounts", "shared", "--shared-mounts", self.path("scratch"),
                   "--local-mounts", self.path("local"))
        # What is still in a buffer when the process is killed is not in the file.
        late = ("import os, sys\nfor name in sys.argv[1:]: os.write(os.open(name, os.O_CREAT | os.O_WRONLY), b'late')\n"
                "os.kill(os.getpid(), 9)")
        self.holdfast("run", *options, sys.executable, "-c", late, *self.names, expect=None)
        self.assertEqual([pathlib.Path(self.path(name)).read_bytes() for name in self.names], [b"", b"", b"late"])

    def test_bad_words_are_refused(self):
        done = self.holdfast("run", "--mounts", "some", "true", expect=2)
        self.assertIn("any, shared or local", done.stderr)

    @unittest.skipUnless(os.path.exists(FAULTFS) and os.path.exists("/dev/fuse"), "no FUSE here")
    def test_a_file_system_of_a_server_counts_as_shared(self):
        os.rmdir(self.path("scratch/node"))
        os.rmdir(self.path("scratch"))
        mount = faultfs.Mount(FAULTFS, self.dir, "scratch")
        self.addCleanup(mount.end)
        if not mount.works():
            self.skipTest("faultfs cannot mount here")
        self.names = ["scratch/out.dat", "local/out.dat"]
        local = ("--local-mounts", self.path("local"))
        self.assertEqual(self.protected("--mounts", "shared", *local), self.names[:1])
        self.assertEqual(self.protected("--mounts", "local", *local), self.names[1:])
        self.assertEqual(self.protected("--mounts", "local", "--local-mounts", self.dir + "," + self.path("scratch")), self.names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
