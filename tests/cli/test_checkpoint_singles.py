"""Files of patterns without any field: each is protected by itself, and is of no checkpoint."""
import glob
import os
import shutil
import unittest

from checkpoint_test import CheckpointTest

PATTERN = "results/*.dat"


class CheckpointSingles(CheckpointTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("results"))
        self.small = {"nodes": 3, "scheme": "rs:2+1"}

    def job(self, script, *options, pattern=PATTERN, **more):
        return self.run_job(script, *options, pattern=pattern, **{**self.small, **more})

    def single(self, *words):
        """By their names: what is known of each."""
        return {os.path.basename(one["file"]): one for one in self.json("checkpoints", *words)["checkpoints"]}

    def states_of_files(self):
        return {name: one["state"] + (", drained" if one["drained"] and one["state"] != "drained" else "") for name, one in self.single().items()}

    def test_after_the_loss_of_two_nodes_the_newest_version_of_each_file_is_there(self):
        script = """if [ -e begun ]; then ls results > listed; cat results/*.dat > got; exit 0; fi; touch begun
            echo a first > results/a.dat; echo b first > results/b.dat; echo plain > results/c.txt; echo a second > results/a.dat
            echo b second > results/new; mv results/new results/b.dat; echo c first > results/c.dat
            for i in $(seq 900); do sleep 0.1; done; exit 3"""
        # The third file comes last: what was written before it is protected by then.
        done = self.job(script, "--restarts", "1", "--simulate-loss", "1,4@3", "--protect-at", "close", "--drain", "none", nodes=6, scheme="rs:4+2")
        self.assertIn("3 files that are protected one by one are there; node n1 is lost now, as --simulate-loss says", done.stderr)
        self.assertIn("attempt 2 begins with the newest version of 3 files that are protected one by one, which may be of different times", done.stderr)
        self.assertEqual(self.read("got"), "a second\nb second\nc first\n")
        self.assertEqual(self.read("listed").split(), ["a.dat", "b.dat", "c.dat", "c.txt"])
        self.assertEqual(os.listdir(self.path("results")), ["c.txt"])  # the others lie on the nodes

    def test_each_attempt_adds_to_what_those_before_have_left(self):
        self.job("for f in a b c; do echo $f of 1 > results/$f.dat; done", "--drain", "none")
        self.job("cat results/*.dat > got; echo b of 2 > results/b.dat", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "a of 1\nb of 1\nc of 1\n")
        self.job("cat results/*.dat > got; echo c of 3 > results/c.dat; rm results/a.dat", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "a of 1\nb of 2\nc of 1\n")
        self.lose("n2")
        done = self.job("ls results > listed; cat results/*.dat > got; echo d of 4 >> results/b.dat", "--resume")
        self.assertIn("attempt 4 begins with the newest version of 2 files", done.stderr)
        self.assertEqual((self.read("listed"), self.read("got")), ("b.dat\nc.dat\n", "b of 2\nc of 3\n"))
        self.assertEqual(sorted(os.listdir(self.path("results"))), ["b.dat", "c.dat"])
        self.assertEqual((self.read("results", "b.dat"), self.read("results", "c.dat")), ("b of 2\nd of 4\n", "c of 3\n"))

    def test_another_programs_files_are_gone_on_from_with_a_line(self):
        self.job("echo a > results/a.dat", "--drain", "none")
        done = self.holdfast("run", "--simulate-nodes", "3", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--library", "posix", "--drain", "none", "--resume", "--",
                             "cat", "results/a.dat")
        self.assertIn("holdfast: what is protected of the last run was written by launch, and this job runs cat; give it another directory", done.stderr)

    def test_new_files_are_made_where_all_of_before_was_written_anew_or_removed(self):
        for change, left in (("echo anew > results/a.dat", 3), ("rm results/a.dat", 0)):
            self.job("echo a > results/a.dat", "--protect-at", "close", "--drain", "none")
            # Until the version that the attempt began with is dropped.
            self.job(f"""{change}; for i in $(seq 300); do [ $(ls -d holdfast-nodes/n*/a.dat* 2> /dev/null | wc -l) = {left} ] && break; sleep 0.1; done
                [ -e results/b.dat ] && echo there; echo b > results/b.dat && cat results/b.dat > got""",
                     "--resume", "--keep", "1", "--protect-at", "close", "--drain", "none")
            self.assertEqual(self.read("got"), "b\n")
            shutil.rmtree(self.path("holdfast-nodes"))

    def test_what_was_removed_stays_so_whichever_node_comes_back(self):
        stay = "[ -e results/a.dat ] && echo a; [ -e results/b.dat ] && echo b; ls results"
        self.job("echo a > results/a.dat; echo b > results/b.dat", "--drain", "none")
        kept = [(part, self.path("away", *part.split("/")[-2:])) for part in glob.glob(self.path("holdfast-nodes", "n*", "a.dat*"))]
        self.assertEqual(len(kept), 3)
        for part, away in kept:
            shutil.copytree(part, away)
        self.job("rm results/a.dat; for i in $(seq 100); do [ -e results/a.dat ] && echo there; done > seen; exit 3", "--resume", "--drain", "none", expect=3)
        for options in (("--drain", "none"), ()):
            for part, away in kept:  # as a node has it that was away then
                shutil.copytree(away, part, dirs_exist_ok=True)
            self.assertEqual(self.single()["b.dat"]["state"], "protected")
            self.job(f"({stay}) > seen", "--resume", *options)
            self.assertEqual(self.read("seen"), "b\nb.dat\n")
            self.assertEqual(glob.glob(self.path("holdfast-nodes", "n*", "a.dat*")), [])
        self.assertEqual(self.states_of_files(), {"b.dat": "protected, drained"})
        self.job("echo a anew > results/a.dat", "--resume", "--drain", "none")
        self.job("cat results/a.dat > seen", "--resume", "--drain", "none")
        self.assertEqual(self.read("seen"), "a anew\n")

    def test_so_many_versions_of_each_file_are_kept(self):
        versions = lambda name: sum(f"/{name}.dat " in line for line in self.holdfast("checkpoints", "--verify").stdout.splitlines())
        self.job("for v in 1 2 3 4; do echo $v > results/a.dat; done; echo b > results/b.dat", "--keep", "2", "--drain", "none")
        self.assertEqual((versions("a"), versions("b")), (2, 1))
        self.job("echo 5 > results/a.dat", "--keep", "1", "--resume", "--drain", "none")
        self.assertEqual((versions("a"), versions("b")), (1, 1))

    def test_where_none_can_be_seen_any_more_the_restart_is_refused(self):
        script = "[ -e begun ] && touch again; touch begun; echo a > results/a.dat; echo b > results/b.dat; for i in $(seq 900); do sleep 0.1; done; exit 3"
        done = self.job(script, "--restarts", "1", "--simulate-loss", "1,2,3@2", "--protect-at", "close", "--drain", "none", nodes=6, scheme="rs:2+1", expect=122)
        self.assertIn("each of the 2 files that were protected one by one cannot be read, and there is no other: more of their nodes are lost than rs:2+1 "
                      "tolerates; bring back the data of n1, n2, n3", done.stderr)
        self.assertFalse(os.path.exists(self.path("again")))

    def test_what_more_nodes_are_lost_of_is_named_and_its_open_fails(self):
        # Two groups of nodes: what the first one has is lost with two of it.
        script = "[ $RANK = 0 ] && echo first > results/first.dat; [ $RANK = 3 ] && echo second > results/second.dat; true"
        self.job(script, "--drain", "none", nodes=6, ranks=4)
        self.lose("n1", "n2")
        done = self.job("[ $RANK = 3 ] || exit 0; cat results/second.dat > got; cat results/first.dat 2>> wrong; [ $? = 1 ] && echo fails >> got",
                        "--resume", "--drain", "none", nodes=6, ranks=4, expect=123)
        self.assertIn("results/first.dat cannot be read, and to open it fails: more of its nodes are lost than rs:2+1 tolerates", done.stderr)
        self.assertEqual(self.read("got"), "second\nfails\n")
        self.assertNotIn("No such file", self.read("wrong"))
        self.assertEqual(self.states_of_files(), {"first.dat": "lost", "second.dat": "protected"})
        self.lose("n4", "n5")
        done = self.job("touch begun", "--resume", nodes=6, ranks=4, expect=122)
        self.assertFalse(os.path.exists(self.path("begun")))
        self.assertRegex(done.stderr, r"results/\w+.dat cannot be read, and there is no other")

    def test_what_one_node_has_just_closed_another_one_removes_or_replaces(self):
        script = """case $RANK in 0) truncate -s 200M results/a.dat; truncate -s 200M results/b.dat;;
            1) rm results/a.dat || exit 4; echo new > results/new; mv results/new results/b.dat;;
            2) ls results > listed;; esac"""
        self.job(script, ranks=3)
        self.assertEqual((self.read("listed"), os.listdir(self.path("results"))), ("b.dat\n", ["b.dat"]))
        self.assertEqual(os.path.getsize(self.path("results", "b.dat")), len("new\n"))

    def test_a_link_whose_own_name_is_meant_leads_to_its_file(self):
        link = "ln -sf b.dat results/latest.dat; cat results/latest.dat > got; echo more >> results/latest.dat"
        self.job(f"echo a > results/a.dat; echo b > results/b.dat; {link}", "--drain", "none")
        self.assertEqual((self.read("got"), set(self.single())), ("b\n", {"a.dat", "b.dat"}))
        self.job("cat results/latest.dat > got; rm results/latest.dat; cat results/b.dat >> got; ls results > listed", "--resume")
        self.assertEqual((self.read("got"), self.read("listed")), ("b\nmore\nb\nmore\n", "a.dat\nb.dat\n"))

    def test_what_is_renamed_to_the_name_of_a_link_takes_its_place(self):
        new = "echo new > new; mv new results/latest.dat; cat results/latest.dat results/a.dat > got; [ -L results/latest.dat ] && echo link >> got"
        self.job(f"echo a > results/a.dat; ln -s a.dat results/latest.dat; {new}; true", "--drain", "none")
        self.assertEqual((self.read("got"), set(self.single())), ("new\na\n", {"a.dat", "latest.dat"}))
        moved = "mv results/b.dat results/link.dat; cat results/link.dat > got; ls results >> got"
        self.job(f"ln -s a.dat results/link.dat; echo b > results/b.dat; {moved}", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "b\na.dat\nlatest.dat\nlink.dat\n")

    def test_a_link_that_is_renamed_stays_a_link(self):
        lead = lambda to: f"ln -sf {to}.dat results/latest.dat && readlink results/latest.dat >> got && cat results/latest.dat >> got"
        self.job(f"echo a > results/a.dat; echo b > results/b.dat; {lead('a')}; {lead('b')}", "--drain", "none")
        self.assertEqual((self.read("got"), set(self.single())), ("a.dat\na\nb.dat\nb\n", {"a.dat", "b.dat"}))
        # Over a file of that name, which goes.
        os.remove(self.path("got"))
        self.job(f"rm results/latest.dat; echo own > results/latest.dat; {lead('a')}; ls results >> got", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "a.dat\na\na.dat\nb.dat\nlatest.dat\n")

    def test_a_file_that_is_to_be_new_is_not_made_where_a_link_is(self):
        make = "python3 -c 'open(\"results/latest.dat\", \"x\").write(\"new\")' 2> wrong; cat results/latest.dat > got"
        self.job(f"echo a > results/a.dat; ln -s a.dat results/latest.dat; {make}", "--drain", "none")
        self.assertIn("FileExistsError", self.read("wrong"))
        self.assertEqual((self.read("got"), set(self.single())), ("a\n", {"a.dat"}))

    def test_what_a_drain_brings_to_the_path_of_a_removed_file_is_not_seen(self):
        self.job("for f in a b; do echo $f > results/$f.dat; done")
        os.remove(self.path("results", "a.dat"))
        placed = "LD_PRELOAD= mkdir results/.holdfast-drain-01234567; LD_PRELOAD= sh -c 'echo a > results/a.dat'"
        look = "[ -e results/a.dat ] && echo there; ls results"
        self.job(f"rm results/a.dat; {placed}; ({look}) > during; LD_PRELOAD= rmdir results/.holdfast*; ({look}) > got", "--resume", "--drain", "none")
        self.assertEqual((self.read("during"), self.read("got")), ("b.dat\n", "there\na.dat\nb.dat\n"))

    def test_what_is_put_at_the_path_of_a_removed_file_is_seen(self):
        self.job("for f in a b; do echo $f > results/$f.dat; done")
        self.job("rm results/a.dat; ls results > listed", "--resume")
        self.assertEqual(self.read("listed"), "b.dat\n")
        self.job("cat results/a.dat 2> wrong; ls results > listed", "--resume")
        self.assertEqual(self.read("listed"), "b.dat\n")
        self.assertIn("No such file", self.read("wrong"))
        with open(self.path("results", "a.dat"), "w") as plain:
            plain.write("the user's\n")
        self.job("cat results/a.dat > got; ls results > listed; echo more >> results/a.dat; cat results/a.dat >> got", "--resume")
        self.assertEqual((self.read("got"), self.read("listed")), ("the user's\nthe user's\nmore\n", "a.dat\nb.dat\n"))
        self.assertEqual(self.read("results", "a.dat"), "the user's\nmore\n")
        self.job("rm results/a.dat; [ -e results/a.dat ] && echo there; ls results > listed", "--resume", expect=0)
        self.assertEqual((self.read("listed"), os.listdir(self.path("results"))), ("b.dat\n", ["b.dat"]))

    def test_what_is_listed_can_be_opened(self):
        """Files of a run that a narrower pattern does not mean."""
        self.job("for f in a.dat b.dat c.txt; do echo $f > results/$f; done", "--drain", "none", pattern="results/*")
        self.job("ls results > listed; cat results/* > got", "--resume", "--drain", "none", pattern="results/*.dat")
        self.assertEqual((self.read("listed"), self.read("got")), ("a.dat\nb.dat\n", "a.dat\nb.dat\n"))

    def test_a_file_that_is_lost_on_the_nodes_is_there_as_it_was_drained(self):
        script = "[ $RANK = 0 ] && echo first > results/a.dat; [ $RANK = 3 ] && echo b > results/b.dat; true"
        four = {"nodes": 6, "ranks": 4}
        self.job(script, **four)
        self.lose("n1", "n2")
        self.assertEqual(self.states_of_files(), {"a.dat": "drained", "b.dat": "protected, drained"})
        # What is written later is drained beside it, and takes nothing from what is known of it.
        done = self.job("[ $RANK = 3 ] || exit 0; cat results/*.dat > got; echo b again > results/b.dat", "--resume", **four)
        self.assertIn(self.path("results", "a.dat") + " cannot be read from the nodes, and is there as it was drained", done.stderr)
        self.assertEqual(self.read("got"), "first\nb\n")
        done = self.job("[ $RANK = 3 ] || exit 0; cat results/*.dat > got; echo more >> results/a.dat", "--resume", "--drain", "none", **four)
        self.assertEqual(self.read("got"), "first\nb again\n")
        self.job("[ $RANK = 3 ] || exit 0; cat results/a.dat > got; rm results/a.dat; ls results > listed", "--resume", **four)
        self.assertEqual((self.read("got"), self.read("listed")), ("first\nmore\n", "b.dat\n"))
        self.assertEqual(os.listdir(self.path("results")), ["b.dat"])

    def test_where_all_are_drained_the_job_begins_with_these(self):
        self.job("echo a > results/a.dat; echo b > results/b.dat", nodes=6)
        self.lose("n1", "n2")
        done = self.job("cat results/*.dat > got; rm results/a.dat; ls results > listed; echo c > results/c.dat", "--resume", nodes=6)
        self.assertIn("attempt 2 begins with 2 files as drained", done.stderr)
        self.assertEqual((self.read("got"), self.read("listed")), ("a\nb\n", "b.dat\n"))
        self.job("cat results/*.dat > got; ls results > listed", "--resume", nodes=6)
        self.assertEqual((self.read("got"), self.read("listed")), ("b\nc\n", "b.dat\nc.dat\n"))
        with open(self.path("results", "b.dat"), "w") as other:
            other.write("somebody else's\n")
        done = self.job("cat results/b.dat > got", "--resume", nodes=6, expect=1)
        self.assertIn("results/b.dat cannot be read, and to open it fails", done.stderr)

    def test_a_run_is_gone_on_with_by_its_own_kind_of_patterns(self):
        self.job("echo a > results/1.dat; echo b > results/2.dat", "--drain", "none", pattern="results/{step}.dat")
        refused = self.job("cat results/*.dat", "--resume", expect=122)
        self.assertIn("the last run with such files has them as checkpoints, and --checkpoint", refused.stderr)
        self.job("echo a > results/a.dat", "--drain", "none")
        self.job("cat results/a.dat > got", "--resume", "--drain", "none")
        self.assertEqual(self.read("got"), "a\n")
        self.job("echo 3 > results/3.dat", "--drain", "none")
        refused = self.job("cat results/*.dat", "--resume", pattern="results/{step}.dat", expect=122)
        self.assertIn("the last run with such files has them protected one by one", refused.stderr)

    def test_the_one_before_is_there_where_the_newest_cannot_be_read(self):
        script = "if [ $RANK = 3 ]; then echo before > results/a.dat; fi; [ $RANK = 4 ] && echo b > results/b.dat; true"
        self.job(script, "--protect-at", "close", "--drain", "none", nodes=6, ranks=5)
        self.job("[ $RANK = 0 ] && echo after > results/a.dat; true", "--resume", "--drain", "none", nodes=6, ranks=5)
        self.lose("n1", "n2")
        done = self.job("[ $RANK = 0 ] && cat results/a.dat > got; true", "--resume", "--drain", "none", nodes=6, ranks=5)
        self.assertIn("the newest version of " + self.path("results", "a.dat") + " cannot be read", done.stderr)
        self.assertEqual(self.read("got"), "before\n")

    def test_what_was_not_protected_is_said_and_the_version_before_is_there(self):
        script = """if [ -e begun ]; then cat results/a.dat > got; exit 0; fi; touch begun
            echo before > results/a.dat; exec 3> results/a.dat; echo half >&3; kill -9 $$"""
        done = self.job(script, "--restarts", "1", "--protect-at", "close", "--drain", "none", expect=0)
        self.assertIn("what was written last of " + self.path("results", "a.dat") + " was not protected when the job failed", done.stderr)
        self.assertEqual(self.read("got"), "before\n")

    def test_each_file_is_listed_drained_made_anew_and_dropped_by_its_name(self):
        self.job("for f in a b c; do echo $f > results/$f.dat; done", "--drain", "none")
        listed = self.single()
        self.assertEqual({name: (one["state"], one["files"], one["bytes"]) for name, one in listed.items()},
                         {f"{f}.dat": ("protected", 1, 2) for f in "abc"})
        self.assertIn(self.path("results", "a.dat"), self.holdfast("checkpoints").stdout)
        self.assertEqual(set(self.single("results/a*.dat")), {"a.dat"})
        os.mkdir(self.path("out"))
        self.holdfast("checkpoints", "--drain", "results/d*.dat", expect=3)
        self.holdfast("checkpoints", "--drain", "results/b.dat", "out")
        self.assertEqual(self.read("out", "results", "b.dat"), "b\n")
        self.holdfast("checkpoints", "--drain", "results/*.dat")
        self.assertEqual(sorted(os.listdir(self.path("results"))), ["a.dat", "b.dat", "c.dat"])
        self.assertEqual(self.states_of_files(), {f"{f}.dat": "protected, drained" for f in "abc"})
        self.assertIn("'results/a.dat': 0 of 1 file made anew", self.holdfast("checkpoints", "--repair", "results/a.dat").stdout)
        self.assertIn("1 file of 'results/b.dat' dropped", self.holdfast("checkpoints", "--drop", "results/b.dat").stdout)
        self.job("echo d > results/d.dat", "--drain", "none")  # a run of its own
        self.assertIn("3 files of 'results/*.dat' dropped", self.holdfast("checkpoints", "--drop", "results/*.dat").stdout)
        self.assertIn("there is no file that is protected by itself and named 'results/b.dat'",
                      self.holdfast("checkpoints", "--drop", "results/b.dat", expect=3).stderr)
        for option in ("--drop", "--drain", "--repair"):
            self.assertIn("there is no checkpoint 0", self.holdfast("checkpoints", option, "0", expect=3).stderr)

    def test_commands_about_files_know_one_by_its_path(self):
        self.job("for f in a b; do echo $f > results/$f.dat; done", "--drain", "none")
        for command, option in ((("cat",), "--drain results/a.dat"), (("verify",), "--verify"), (("export",), "--drain results/a.dat")):
            words = [*command, "results/a.dat", *(["copy"] if command == ("export",) else [])]
            self.assert_one_sentence(self.holdfast(*words, expect=3).stderr, "results/a.dat is a file that is protected by itself on the nodes",
                                     "holdfast checkpoints " + option)
        self.holdfast("rm", "results/a.dat")
        self.assertEqual(set(self.single()), {"b.dat"})
        self.assert_one_sentence(self.holdfast("rm", "results/a.dat", expect=3).stderr, "results/a.dat is not a protected file")
        self.assertEqual(glob.glob(self.path("holdfast-nodes", "n*", "a.dat*")), [])

    def test_the_run_drains_each_once(self):
        done = self.job("for f in a b; do echo $f > results/$f.dat; done")
        self.assertIn("2 files that are protected one by one are drained: plain at their paths", done.stderr)
        self.assertEqual((self.read("results", "a.dat"), self.read("results", "b.dat")), ("a\n", "b\n"))
        done = self.job("cat results/a.dat > got", "--resume")
        self.assertNotIn("drained", done.stderr)
        done = self.job("rm results/a.dat; echo c > results/c.dat", "--resume")
        self.assertEqual(sorted(os.listdir(self.path("results"))), ["b.dat", "c.dat"])

    def test_plain_files_of_before_are_seen_where_no_version_is(self):
        for name in ("a", "b"):
            with open(self.path("results", name + ".dat"), "w") as plain:
                plain.write("plain\n")
        self.job("cat results/*.dat > got; echo mine > results/a.dat; cat results/*.dat >> got; exit 3", "--drain", "none", expect=3)
        self.assertEqual(self.read("got"), "plain\nplain\nmine\nplain\n")
        self.job("cat results/*.dat > got; echo more >> results/b.dat", "--resume")
        self.assertEqual(self.read("got"), "mine\nplain\n")
        self.assertEqual((self.read("results", "a.dat"), self.read("results", "b.dat")), ("mine\n", "plain\nmore\n"))

    def test_what_does_not_go_together_is_refused(self):
        here = ("run", "--simulate-nodes", "3", "--protect", "rs:2+1")
        for options, words in ((("--checkpoint", PATTERN, "--checkpoint", "ck.{step}.{rank}"), "where a pattern has no field each file is protected by itself"),
                               (("--checkpoint", PATTERN, "--checkpoint", "ck.{rank}"), "where a pattern has no field each file is protected by itself"),
                               (("--checkpoint", "shared:results/*.dat"), "a {step} must stand in it"),
                               (("--checkpoint", PATTERN, "--drain", "every:2"), "--drain every:2 counts checkpoints"),
                               (("--checkpoint", PATTERN, "--replicas", "2"), "--replicas keeps checkpoints of a {step} or a {rank}")):
            self.assert_one_sentence(self.holdfast(*here, *options, "true", expect=2).stderr, words)


if __name__ == "__main__":
    unittest.main()
