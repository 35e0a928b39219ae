"""repair --replace: a file is moved before the old target is let go, and what cannot be rebuilt changes nothing."""
import json
import os
import shutil
import socket
import unittest

from command import CommandTest


class ReplacingTargets(CommandTest):
    def members(self, name="out.dat", expect=0):
        return [(m["path"], m["state"]) for m in self.json("status", name, expect=expect)["files"][0]["members"]]

    def set_of(self, target):
        """The set as it is told to a machine; without the free bytes, which others change as they like."""
        told = json.loads(self.holdfast("targets", target, "--json", expect=None).stdout)["sets"][0]
        for row in told["targets"]:
            row.pop("free_bytes", None)
        return told

    def paths_of_set(self, target):
        return [row["path"] for row in self.set_of(target)["targets"]]

    def small(self, scheme="rs:2+1", count=3, name="out.dat", size=100_000):
        return self.protect(scheme, count, name, size, "--striping-unit", "4k")

    def more(self, name, targets, seed):
        """A further file on the same targets."""
        content = self.make_file(name, 100_000, seed)
        self.holdfast("import", name, "--protect", "rs:2+1", "--targets", ",".join(targets), "--striping-unit", "4k")
        return content

    def test_a_target_that_still_answers_is_replaced(self):
        content, targets = self.small()
        new = self.make_targets(1, "n")[0]
        done = self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new}")
        self.assertIn(f"on {new}", done.stdout)
        self.assertEqual(self.members()[1], (new, "ok"))
        self.assertIn(new, self.paths_of_set(targets[0]))
        self.holdfast("verify", "out.dat")
        shutil.rmtree(targets[1])
        self.holdfast("status", "out.dat")
        shutil.rmtree(targets[0])
        self.assertEqual(self.cat(), content, "the new target carries its part")

    def test_one_after_the_other_they_are_all_replaced(self):
        content, targets = self.small()
        new = self.make_targets(3, "n")
        for old, fresh in zip(targets, new):
            self.holdfast("repair", "out.dat", "--replace", f"{old}={fresh}")
        for old in targets:
            shutil.rmtree(old)
        self.holdfast("verify", "out.dat")
        self.assertEqual(self.cat(), content)

    def test_two_at_once_are_replaced_where_one_is_gone(self):
        content, targets = self.small()
        new = self.make_targets(2, "n")
        shutil.rmtree(targets[2])
        self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new[0]}", "--replace", f"{targets[2]}={new[1]}")
        shutil.rmtree(targets[1])
        self.holdfast("verify", "out.dat")
        self.assertEqual(self.cat(), content)

    def test_a_mirrors_link_leads_to_the_new_target(self):
        content, targets = self.protect("mirror:2", 2, "out.dat", 100_001)
        new = self.make_targets(1, "n")[0]
        self.holdfast("repair", "out.dat", "--replace", f"{targets[0]}={new}")
        shutil.rmtree(targets[0])
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)
        self.holdfast("status", "out.dat")

    def test_with_too_few_left_nothing_is_changed(self):
        _, targets = self.small()
        new = self.make_targets(2, "n")
        shutil.rmtree(targets[1])
        shutil.rmtree(targets[2])
        before = self.tree()
        done = self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new[0]}", "--replace", f"{targets[2]}={new[1]}", expect=2)
        self.assert_one_sentence(done.stderr, "out.dat", "2 targets are lost", targets[1], targets[2])
        self.assertEqual(self.tree(), before)

    def test_rows_that_cannot_be_rebuilt_leave_the_old_target_in_its_place(self):
        _, targets = self.small()
        new = self.make_targets(1, "n")[0]
        for target in targets[1:]:  # two of the three units of the first row
            with open(self.object_of(target), "r+b") as f:
                f.write(b"\0" * 100)
        states, told = self.members(), self.set_of(targets[0])
        done = self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new}", expect=2)
        self.assertIn(f"{new} is not brought up to date", done.stdout)
        self.assertEqual(self.members(), states)
        self.assertEqual(self.set_of(targets[0]), told)

    def test_an_emptied_target_that_cannot_be_rebuilt_is_not_called_current(self):
        _, targets = self.small()
        for target in targets[:2]:
            with open(self.object_of(target), "r+b") as f:
                f.write(b"\0" * 100)
        shutil.rmtree(targets[2])
        os.mkdir(targets[2])
        for _ in range(2):
            self.holdfast("repair", "out.dat", "--replace", f"{targets[2]}={targets[2]}", expect=2)
            self.assertNotEqual(self.members(expect=1)[2][1], "ok")

    def test_a_later_loss_finds_the_old_target_that_is_needed(self):
        """One file of a set was repaired onto a new target while the old one was away; another file lies on the old one still."""
        content, targets = self.small(name="f")
        other = self.more("g", targets, 7)
        new = self.make_targets(2, "n")
        os.rename(targets[1], self.path("away"))
        self.holdfast("repair", "f", "--replace", f"{targets[1]}={new[0]}")
        os.rename(self.path("away"), targets[1])
        self.assertEqual(self.members("g")[1], (targets[1], "ok"))
        self.assertEqual(self.members("f")[1], (new[0], "ok"))
        shutil.rmtree(targets[2])
        self.assertEqual(self.cat("g"), other)
        self.holdfast("repair", "g", "--replace", f"{targets[2]}={new[1]}")
        self.assertEqual([path for path, _ in self.members("g")], [targets[0], new[0], new[1]])
        self.holdfast("repair", "f")
        shutil.rmtree(targets[1])
        for name, bytes_ in (("f", content), ("g", other)):
            self.holdfast("verify", name)
            self.assertEqual(self.cat(name), bytes_)

    def test_several_files_move_with_one_command(self):
        content, targets = self.small(name="f")
        other = self.more("g", targets, 7)
        new = self.make_targets(1, "n")[0]
        self.holdfast("repair", "f", "g", "--replace", f"{targets[1]}={new}")
        shutil.rmtree(targets[1])
        for name, bytes_ in (("f", content), ("g", other)):
            self.holdfast("status", name)
            self.assertEqual(self.cat(name), bytes_)

    def test_the_same_command_again_changes_nothing(self):
        _, targets = self.small()
        new = self.make_targets(1, "n")[0]
        for _ in range(2):
            self.holdfast("repair", "out.dat", "--replace", f"{targets[1]}={new}")
        self.assertEqual(self.members()[1], (new, "ok"))


class NamesThatWereTaken(CommandTest):
    def take(self, make):
        content, targets = self.protect("rs:2+1", 3, "out.dat", 100_000, "--striping-unit", "4k")
        for target, name in zip(targets, ("data", "sums", "manifest")):
            where = self.object_of(target, name)
            os.unlink(where)
            make(where)
            self.holdfast("repair", "out.dat")
            self.holdfast("verify", "out.dat")
            self.assertTrue(os.path.isfile(where) and not os.path.islink(where), where)
        self.assertEqual(self.cat(), content)
        self.holdfast("rm", "out.dat")

    def test_by_a_directory_are_taken_back(self):
        def make(where):
            os.mkdir(where)
            with open(os.path.join(where, "notes"), "w") as f:
                f.write("kept")
        self.take(make)

    def test_by_a_link_are_taken_back_and_it_is_not_followed(self):
        self.make_file("mine", 50_000, seed=3)
        with open(self.path("mine"), "rb") as f:
            mine = f.read()
        self.take(lambda where: os.symlink(self.path("mine"), where))
        with open(self.path("mine"), "rb") as f:
            self.assertEqual(f.read(), mine)

    def test_by_a_fifo_are_taken_back(self):
        self.take(os.mkfifo)

    def test_by_a_socket_are_taken_back(self):
        def make(where):
            here = os.getcwd()
            os.chdir(os.path.dirname(where))  # a socket's path is short
            self.addCleanup(os.chdir, here)
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(os.path.basename(where))
            os.chdir(here)
        self.take(make)


if __name__ == "__main__":
    unittest.main()
