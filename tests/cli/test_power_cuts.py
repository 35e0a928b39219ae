"""After a durable close a power cut takes nothing: file systems of their own, shut down below the user's path and the targets."""
import os
import shutil
import subprocess
import sys
import time
import unittest

from command import CommandTest

IMAGE_BYTES = 320 << 20  # mkfs.xfs takes no less than 300 MiB
READER = "import os, sys; sys.stdout.buffer.write(os.pread(os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), 0))"
WRITER = """import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o644)
for offset, byte, count in eval(sys.argv[2]):
    os.pwrite(file, bytes([byte]) * count, offset)
if len(sys.argv) == 3: os.fsync(file)
os.close(file)"""


def quiet(*command):
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def reason_to_skip():
    if os.geteuid() != 0:
        return "mounting needs root"
    missing = [tool for tool in ("mkfs.ext4", "mkfs.xfs", "xfs_io", "mount", "losetup") if not shutil.which(tool)]
    return f"no {missing[0]} here" if missing else None


class Device:
    """A file system of its own in a file."""

    def __init__(self, test, kind, directory):
        self.image, self.directory = directory + ".image", directory
        os.mkdir(directory)
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_BYTES)
        made = quiet(f"mkfs.{kind}", "-q", *(["-F"] if kind == "ext4" else []), self.image)
        if not made or not self.mount():
            test.skipTest(f"no loop mount of {kind} can be had here")
        test.addCleanup(self.unmount)

    def mount(self):
        return quiet("mount", "-o", "loop", self.image, self.directory)

    def unmount(self):
        quiet("umount", self.directory) or quiet("umount", "-l", self.directory)

    def cut_power(self, flush_log=False):
        """What the device has not been told to keep is gone. With `flush_log` the metadata so far had its turn, the data had not."""
        assert quiet("xfs_io", "-x", "-c", "shutdown" + (" -f" if flush_log else ""), self.directory)
        assert quiet("umount", self.directory) and self.is_gone() and self.mount()

    def is_gone(self):
        """Where another test's mount namespace has a copy of it, the file system lives on, shut down, and a mount would get that one."""
        for _ in range(600):
            if not subprocess.run(["losetup", "-j", self.image], capture_output=True, timeout=60).stdout:
                return True
            time.sleep(0.1)
        return False


class PowerCuts:
    kind = None

    def setUp(self):
        super().setUp()
        if reason_to_skip():
            self.skipTest(reason_to_skip())

    def make_devices(self, *names):
        self.devices = {name: Device(self, self.kind, self.path(name)) for name in names}

    def write(self, scheme, targets, pieces, *options):
        """A program that writes (offset, byte, count), syncs and closes; returns what the file holds then."""
        self.holdfast("run", "--protect", scheme, "--striping-unit", "4096", *(("--targets", ",".join(targets)) if targets else ()),
                      "--path", "*.dat", *options, sys.executable, "-c", WRITER, "u/f.dat", repr(pieces), *(["unsynced"] if "fast" in options else []))
        content = bytearray(max(offset + count for offset, _, count in pieces))
        for offset, byte, count in pieces:
            content[offset:offset + count] = bytes([byte]) * count
        return bytes(content)

    def expect(self, content):
        self.holdfast("status", "u/f.dat")
        self.assertEqual(self.cat("u/f.dat"), content)
        self.holdfast("verify", "u/f.dat")

    def expect_nothing(self):
        self.assertEqual([name for name in os.listdir(self.path("u")) if name != "lost+found" and not name.startswith(".holdfast-new.")], [])

    def cut_all(self, **how):
        for device in self.devices.values():
            device.cut_power(**how)

    def test_a_note_at_the_path_is_durable_with_the_close(self):
        self.make_devices("u")
        content = self.write("rs:2+1", self.make_targets(3), [(0, 7, 100_000)])
        self.cut_all()
        self.assertTrue(os.path.getsize(self.path("u/f.dat")) > 0)
        self.assertTrue(os.path.getsize(self.path("u/.f.dat.holdfast/manifest")) > 0)
        self.expect(content)

    def test_a_note_of_a_fast_close_is_durable_with_the_next_durable_one(self):
        self.make_devices("u")
        targets = self.make_targets(3)
        self.write("rs:2+1", targets, [(0, 7, 100_000)], "--close", "fast")
        content = self.write("rs:2+1", targets, [(0, 8, 100_000)])
        self.cut_all()
        self.expect(content)

    def test_a_link_at_the_path_is_durable_with_the_close(self):
        self.make_devices("u")
        content = self.write("mirror:2", self.make_targets(2), [(0, 7, 100_000)])
        self.cut_all()
        self.assertTrue(os.path.islink(self.path("u/f.dat")))
        self.assertTrue(os.path.getsize(self.path("u/.f.dat.holdfast/manifest")) > 0)
        self.expect(content)

    def test_a_mirror_that_ends_within_a_block_is_no_edit(self):
        self.make_devices("u", "t0", "t1")
        for pieces in ([(53248, 12, 6752), (20480, 13, 4096), (10485, 14, 183)], [(0, 15, 100_001)], [(3, 16, 50)]):
            self.write("mirror:2", [self.path("t0"), self.path("t1")], pieces)
            before = self.cat("u/f.dat")
            self.cut_all()
            self.expect(before)
            self.assertEqual(os.path.getsize(self.path("u/f.dat")), len(before))

    def test_a_file_in_one_directory_is_durable_with_the_close(self):
        self.make_devices("u")
        for placement in ("separate", "interleaved"):
            content = self.write("rs:2+1", [], [(0, 7, 100_001)], "--placement", placement, "--allow-shared-target")
            self.cut_all()
            self.expect(content)
            self.holdfast("rm", "u/f.dat")

    def test_an_import_is_durable(self):
        self.make_devices("u")
        content = self.make_file("plain", 300_001)
        self.holdfast("import", "plain", "u/f.dat", "--protect", "rs:2+1", "--targets", ",".join(self.make_targets(3)))
        self.cut_all()
        self.expect(content)

    def test_a_renamed_file_is_at_its_new_name(self):
        self.make_devices("u")
        content = self.write("rs:2+1", self.make_targets(3), [(0, 7, 100_000)])
        self.holdfast("run", "--protect", "rs:2+1", "--targets", "t0,t1,t2", "--path", "*.dat", "mv", "u/f.dat", "u/g.dat")
        self.cut_all()
        self.assertEqual(self.cat("u/g.dat"), content)
        self.assertFalse(os.path.exists(self.path("u/f.dat")))

    def test_what_a_cut_left_of_a_fast_close_never_stands_in_the_way_of_the_next_writer(self):
        self.make_devices("u")
        targets = self.make_targets(3)
        for flush_log in (False, True):
            self.write("rs:2+1", targets, [(0, 7, 100_000)], "--close", "fast")
            self.cut_all(flush_log=flush_log)
            content = self.write("rs:2+1", targets, [(0, 8, 100_000)])
            self.cut_all()
            self.expect(content)
            self.holdfast("rm", "u/f.dat")
            self.expect_nothing()

    def test_what_was_removed_stays_removed(self):
        """The note came back, and the data it led to did not."""
        self.make_devices("u", "t0", "t1", "t2")
        targets = [self.path(f"t{i}") for i in range(3)]
        for flush_log in (False, True):
            self.write("rs:2+1", targets, [(0, 7, 100_000)])
            self.holdfast("rm", "u/f.dat")
            self.cut_all(flush_log=flush_log)
            self.expect_nothing()
            for target in targets:
                self.assertFalse([name for name in os.listdir(target) if name.startswith("f.dat")])

    def test_a_fast_close_over_what_was_synced_is_durable(self):
        """Its rows took the place of synced ones, and the manifest that says so was lost: they read as zeros."""
        self.make_devices("u", "t0", "t1", "t2")
        targets = [self.path(f"t{i}") for i in range(3)]
        for flush_log in (False, True):
            self.write("rs:2+1", targets, [(0, 7, 100_000)])
            self.write("rs:2+1", targets, [(5_000, 8, 30_000)], "--close", "fast")
            self.cut_all(flush_log=flush_log)
            self.expect(bytes([7]) * 5_000 + bytes([8]) * 30_000 + bytes([7]) * 65_000)
            self.holdfast("rm", "u/f.dat")

    def test_what_was_synced_is_there_after_a_fast_close_behind_it(self):
        """The manifests that a fast close had replaced were empty on all targets."""
        self.make_devices("u", "t0", "t1", "t2")
        targets = [self.path(f"t{i}") for i in range(3)]
        for flush_log in (False, True):
            content = self.write("rs:2+1", targets, [(0, 7, 98_304)])
            self.write("rs:2+1", targets, [(98_304, 8, 30_000)], "--close", "fast")
            self.cut_all(flush_log=flush_log)
            read = self.holdfast("run", "--protect", "rs:2+1", "--targets", ",".join(targets), "--path", "*.dat", sys.executable, "-c", READER,
                                 "u/f.dat", str(len(content)), text=False)
            self.assertEqual(read.stdout, content)
            self.holdfast("rm", "u/f.dat")

    def test_a_first_job_that_lost_power_is_run_again(self):
        self.make_devices("u", "t0", "t1", "t2")
        targets = [self.path(f"t{i}") for i in range(3)]
        for flush_log in (False, True):
            self.write("rs:2+1", targets, [(0, 7, 100_000)], "--close", "fast")
            self.cut_all(flush_log=flush_log)
            # How much of it was kept is the file systems' choice: what is torn is refused, and can be removed.
            if self.holdfast("cat", "u/f.dat", "--targets", ",".join(targets), expect=None).returncode:
                self.holdfast("rm", "--force", "u/f.dat", "--targets", ",".join(targets))
            content = self.write("rs:2+1", targets, [(0, 8, 100_000)])
            self.cut_all()
            self.expect(content)
            self.holdfast("rm", "u/f.dat")
            self.expect_nothing()

    def test_what_is_left_of_a_creation_can_be_removed(self):
        self.make_devices("u", "t0", "t1", "t2")
        self.write("rs:2+1", [self.path(f"t{i}") for i in range(3)], [(0, 7, 100_000)], "--close", "fast")
        self.cut_all(flush_log=True)
        self.holdfast("rm", "--force", "u/f.dat")
        self.expect_nothing()


class OnExt4(PowerCuts, CommandTest):
    kind = "ext4"


class OnXfs(PowerCuts, CommandTest):
    kind = "xfs"


if __name__ == "__main__":
    unittest.main(verbosity=2)
