"""Targets are lost, status says so, the content stays readable, repair mends it."""
import os
import shutil
import unittest

from command import CommandTest


class LossAndMending(CommandTest):
    def flip(self, path, offset):
        with open(path, "r+b") as f:
            f.seek(offset)
            byte = f.read(1)
            f.seek(offset)
            f.write(bytes([byte[0] ^ 1]))

    def test_two_lost_targets_of_rs_are_rebuilt_onto_new_ones(self):
        content, targets = self.protect("rs:4+2", 6)
        self.holdfast("status", "out.dat")
        for target in targets[1:3]:
            shutil.rmtree(target)
        status = self.holdfast("status", "out.dat", expect=1)
        self.assertIn("degraded", status.stdout)
        self.assertIn(targets[1], status.stdout)
        self.assertEqual(self.cat(), content)
        self.holdfast("verify", "out.dat", expect=1)
        new = self.make_targets(2, "new")
        done = self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new[0]}", "--replace", f"{targets[2]}={new[1]}/")
        self.assertIn("rebuilt", done.stdout)
        self.assertIn(new[0], done.stdout)
        self.holdfast("status", "out.dat")
        self.holdfast("verify", "out.dat")
        for target in (targets[0], targets[3]):
            shutil.rmtree(target)
        self.assertEqual(self.cat(), content, "the rebuilt targets carry their part")

    def test_repair_with_the_same_line_again_goes_on_where_it_was(self):
        _, targets = self.protect("mirror:2", 2)
        shutil.rmtree(targets[0])
        new = self.make_targets(1, "new")
        for _ in range(2):
            self.holdfast("repair", "out.dat", "--replace", f"{targets[0]}={new[0]}")

    def test_beyond_the_tolerance_status_says_lost_and_nothing_is_read(self):
        content, targets = self.protect("rs:2+1", 3)
        for target in targets[:2]:
            shutil.rmtree(target)
        self.holdfast("status", "out.dat", expect=2)
        done = self.holdfast("cat", "out.dat", expect=None, text=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(done.stderr.startswith(b"holdfast: "), done.stderr)
        self.assertNotEqual(content, done.stdout)

    def test_verify_names_a_flipped_bit_and_repair_puts_it_right(self):
        content, targets = self.protect("rs:4+2", 6, "out.dat", 3_000_001, "--striping-unit", "64k")
        self.flip(self.object_of(targets[3]), 4711)
        report = self.json("verify", "out.dat", expect=1)["files"][0]
        self.assertEqual(report["verified"]["finding_count"], 1)
        self.assertEqual((report["findings"][0]["what"], report["findings"][0]["member"]), ("corrupt", 3))
        self.assertIn("corrupt", self.holdfast("verify", "out.dat", expect=1).stdout)
        self.assertEqual(self.cat(), content)
        self.assertEqual(self.json("repair", "out.dat")["files"][0]["repaired"]["units"], 1)
        self.holdfast("verify", "out.dat")

    def test_a_deleted_and_a_truncated_object_are_found_and_rebuilt(self):
        content, targets = self.protect("mirror:3", 3, "out.dat", 3_000_001, "--placement", "interleaved")
        os.unlink(self.object_of(targets[0]))
        os.truncate(self.object_of(targets[1]), 5000)
        self.holdfast("verify", "out.dat", expect=1)
        self.assertEqual(self.cat(), content)
        self.holdfast("repair", "out.dat")
        self.holdfast("verify", "out.dat")

    def test_an_emptied_target_is_taken_back_only_when_named_so(self):
        content, targets = self.protect("mirror:2", 2)
        shutil.rmtree(targets[1])
        os.mkdir(targets[1])
        self.holdfast("status", "out.dat", expect=1)
        self.holdfast("repair", "out.dat", expect=1)
        self.assertEqual(os.listdir(targets[1]), [])
        self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={targets[1]}")
        self.holdfast("status", "out.dat")
        shutil.rmtree(targets[0])
        self.assertEqual(self.cat(), content)

    def test_a_replacement_that_holds_something_is_refused(self):
        _, targets = self.protect("mirror:2", 2)
        shutil.rmtree(targets[1])
        os.mkdir(self.path("mine"))
        self.make_file("mine/thesis.txt", 10)
        done = self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={self.path('mine')}", expect=3)
        self.assert_one_sentence(done.stderr, "mine", "empty")
        self.assertEqual(os.listdir(self.path("mine")), ["thesis.txt"])
        self.holdfast("repair", "out.dat", "--replace", "t1", expect=3)

    def test_a_target_that_comes_back_old_is_not_read(self):
        content, targets = self.protect("mirror:2", 2)
        shutil.copytree(targets[1], self.path("old"))
        self.holdfast("rm", "out.dat")
        newer = self.make_file("out.dat", 3_000_001, seed=2)
        self.holdfast("import", "out.dat", "--protect", "mirror:2", "--targets", ",".join(targets))
        shutil.rmtree(targets[1])
        shutil.copytree(self.path("old"), targets[1])
        self.assertEqual(self.cat(), newer)
        self.assertNotEqual(content, newer)
        self.holdfast("status", "out.dat", expect=1)
        self.holdfast("repair", "out.dat", expect=None)
        self.assertEqual(self.cat(), newer)

    def test_losing_the_paths_own_directory_loses_nothing(self):
        os.mkdir(self.path("results"))
        content, targets = self.protect("rs:2+1", 3, "results/out.dat")
        shutil.rmtree(self.path("results"))
        os.mkdir(self.path("results"))
        done = self.holdfast("cat", "results/out.dat", "--targets", targets[1], text=False)
        self.assertEqual(done.stdout, content)

    def test_several_paths_answer_with_the_worst(self):
        self.protect("mirror:2", 2)
        self.make_file("plain.dat", 10)
        done = self.holdfast("status", "out.dat", "plain.dat", "missing.dat", expect=3)
        self.assertIn("healthy", done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 2)
        for line, name in zip(done.stderr.splitlines(), ("plain.dat", "missing.dat")):
            self.assertIn(name, line)


if __name__ == "__main__":
    unittest.main()
