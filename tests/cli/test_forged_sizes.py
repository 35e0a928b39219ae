"""A manifest that says more than its targets can hold is not believed: nothing is read or written for it."""
import ctypes.util
import json
import os
import time
import unittest

from command import CommandTest

EIB = 1 << 60


def seal(text):
    """The closing line of a sealed text of format 1 (docs/format.md)."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits.restype = ctypes.c_uint64
    begun = text.encode() + b"#holdfast-manifest 1 "
    return begun + b"%016x\n" % library.XXH3_64bits(begun, ctypes.c_size_t(len(begun)))


@unittest.skipUnless(ctypes.util.find_library("xxhash"), "the checksum library is not here")
class ForgedSizes(CommandTest):
    def forge(self, targets, **fields):
        """In every copy of the manifest, the sidecar's too."""
        copies = [self.path(".out.dat.holdfast/manifest")] + [self.object_of(target, "manifest") for target in targets]
        for copy in copies:
            with open(copy) as file:
                text = file.read()
            manifest = json.loads(text[:text.rindex("#holdfast-manifest")])
            manifest.update(fields, epoch=manifest["epoch"] + 1)
            with open(copy, "wb") as file:
                file.write(seal(json.dumps(manifest, indent=1) + "\n"))

    def refuse(self, *command):
        begun = time.monotonic()
        done = self.holdfast(*command, expect=None)
        self.assertNotEqual(done.returncode, 0, command)
        self.assertIn("forged or damaged", done.stdout + done.stderr, command)
        self.assertLess(time.monotonic() - begun, 10, command)

    def forge_and_refuse(self, scheme, count, size, rows):
        _, targets = self.protect(scheme, count, "out.dat", 3_000_001, "--striping-unit", "4096")
        self.forge(targets, size=size, rows=rows)
        for command in (("export", "out.dat", "exported"), ("cat", "out.dat"), ("verify", "out.dat"), ("repair", "out.dat")):
            self.refuse(*command)
        self.assertFalse([name for name in os.listdir(self.dir) if name.startswith("exported")])

    def test_a_file_of_two_eib_is_not_exported_read_verified_or_repaired(self):
        self.forge_and_refuse("rs:2+1", 3, 2 * EIB // 8192 // 64 * 8192, 2 * EIB // 8192 // 64)

    def test_a_size_beyond_the_rows_is_not_believed(self):
        self.forge_and_refuse("rs:2+1", 3, EIB // 64, 367)

    def test_rows_beyond_the_size_are_not_believed(self):
        self.forge_and_refuse("mirror:2", 2, 3_000_001, 1 << 40)

    def test_checksums_cut_short_on_every_target_are_damage_and_no_forgery(self):
        content, targets = self.protect("rs:2+1", 3, "out.dat", 3_000_001, "--striping-unit", "4096")
        for target in targets:
            os.truncate(self.object_of(target, "sums"), 20000)
        done = self.holdfast("verify", "out.dat", expect=None)
        self.assertNotIn("forged", done.stdout + done.stderr)
        self.assertTrue(done.returncode)
        done = self.holdfast("cat", "out.dat", expect=None, text=False)
        self.assertTrue(done.returncode and content.startswith(done.stdout) and b"forged" not in done.stderr)

    def test_a_file_that_ends_in_a_hole_or_is_empty_is_believed(self):
        for size in (0, 1, 5_000_000):
            with open(self.path("plain"), "wb") as file:
                file.truncate(size)
            name = f"holes{size}"
            self.holdfast("import", "plain", name, "--protect", "rs:2+1", "--targets", ",".join(
                self.make_targets(3) if size == 0 else [self.path(f"t{i}") for i in range(3)]), "--striping-unit", "4096")
            self.assertEqual(self.cat(name), bytes(size))
            self.holdfast("verify", name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
