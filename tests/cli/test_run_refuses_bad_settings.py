"""holdfast run says in one sentence what is wrong, starts nothing and makes nothing."""
import os
import shutil
import unittest

from command import CommandTest


class RunRefuses(CommandTest):
    def setUp(self):
        super().setUp()
        self.make_installation()
        self.library("posix")

    def refused(self, *options, words, env=None, command=("touch", "started")):
        before = self.tree()
        done = self.holdfast("run", *options, *command, expect=2, env=env)
        self.assert_one_sentence(done.stderr, *words)
        self.assertEqual(self.tree(), before, "something was started or made")
        return done

    def test_an_unknown_scheme(self):
        for scheme in ("raid5", "mirror:9", "mirror:0", "rs:4", "rs:33+2", "rs:4+9", "rs:4+0", "mirror:2x"):
            self.refused("--protect", scheme, words=["--protect", scheme, "rs:K+M"])

    def test_a_target_that_does_not_exist(self):
        self.make_targets(1)
        self.refused("--protect", "mirror:2", "--targets", "t0,nowhere", words=["nowhere", "does not exist"])
        self.refused("--protect", "mirror:2", "--targets", "n1:dir,n2:dir", words=["n1:dir", "a directory of the node n1 is written with its whole path: n1:/..."])

    def test_fewer_targets_than_the_scheme_is_wide(self):
        targets = self.make_targets(5)
        self.refused("--protect", "rs:4+2", "--targets", ",".join(targets), words=["needs 6", "5"])

    def test_one_target_named_twice(self):
        self.make_targets(1)
        self.refused("--protect", "mirror:2", "--targets", "t0,t0/", words=["--targets", "once"])

    def test_a_directory_that_is_not_empty_and_no_target(self):
        targets = self.make_targets(2)
        self.make_file("t0/thesis.txt", 10)
        self.refused("--protect", "mirror:2", "--targets", ",".join(targets), words=["t0", "not empty"])

    def test_a_target_of_another_set(self):
        ours, theirs = self.make_targets(2), self.make_targets(2, "other")
        for name, targets in (("a", ours), ("b", theirs)):
            self.make_file(name, 100)
            self.holdfast("import", name, "--protect", "mirror:2", "--targets", ",".join(targets))
        self.refused("--protect", "mirror:2", "--targets", f"{ours[0]},{theirs[1]}", words=["set"])
        extra = self.make_targets(1, "extra")
        self.refused("--protect", "mirror:2", "--targets", ",".join(ours + extra), words=["extra0"])

    def test_a_marker_that_is_damaged_or_newer(self):
        targets = self.make_targets(2)
        self.make_file("a", 100)
        self.holdfast("import", "a", "--protect", "mirror:2", "--targets", ",".join(targets))
        for target in targets:
            with open(os.path.join(target, "holdfast-target.json"), "w") as marker:
                marker.write("{")
        self.refused("--protect", "mirror:2", "--targets", ",".join(targets), words=["t0"])

    def test_targets_that_are_gone_are_not_to_be_made_where_a_file_lies_on_them(self):
        _, targets = self.protect("mirror:2", 2, "a", 100)
        for target in targets:
            shutil.rmtree(target)
        for where in ((), ("--path", self.path("*.dat"))):
            refused = self.refused("--protect", "mirror:2", "--targets", ",".join(targets), *where, words=[targets[0], self.path("a"), "bring it back"])
            self.assertNotIn("mkdir", refused.stderr)
        os.mkdir(self.path("elsewhere"))
        self.dir, home = self.path("elsewhere"), self.dir
        self.assertIn("mkdir", self.refused("--protect", "mirror:2", "--targets", ",".join(targets), words=["mount missing"]).stderr)
        self.dir = home

    def test_contradictory_settings(self):
        three = ",".join(self.make_targets(3))
        self.refused(words=["replication_factor 3", "rs:2+1"],
                     env={"HOLDFAST_PROTECT": "rs:2+1", "HOLDFAST_REPLICATION_FACTOR": "3", "HOLDFAST_TARGETS": three})
        self.refused("--protect", "mirror:2", "--targets", three, "--start-iodevice", "3", words=["start_iodevice 3"])
        self.refused("--protect", "mirror:3", "--targets", three, "--striping-factor", "2", words=["striping_factor 2"])

    def test_values_that_make_no_sense(self):
        for option, value in (("--placement", "mixed"), ("--striping-unit", "1000"), ("--close", "later"),
                              ("--deadline", "soon"), ("--start-iodevice", "-7"), ("--accept-epoch", "new")):
            self.refused(option, value, words=[option, value, "allowed is"])

    def test_a_settings_file_that_is_missing_or_senseless(self):
        self.refused("--config", "nowhere.toml", words=["nowhere.toml"])
        with open(self.path("holdfast.toml"), "w") as f:
            f.write('protcet = "mirror:2"\n')
        self.refused(words=["protcet"])

    def test_no_program_or_one_that_does_not_exist(self):
        self.refused(command=(), words=["no program"])
        self.refused(command=("no-such-launcher",), words=["no-such-launcher"])

    def test_an_unknown_option(self):
        self.refused("--protekt", "mirror:2", words=["--help"])


if __name__ == "__main__":
    unittest.main()
