"""Programs whose checkpoints have no step in their names, no rank, or several files of a rank: what belongs together, and when it is whole."""
import os
import unittest

from checkpoint_test import PATTERN, CheckpointTest

RESTART = "restart.{rank}"


class CheckpointPatterns(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.small = {"nodes": 3, "scheme": "rs:2+1"}

    def job(self, script, *options, ranks=2, patterns=(RESTART,), **more):
        more = {**self.small, **more}
        extra = [word for pattern in patterns[1:] for word in ("--checkpoint", pattern)]
        return self.run_job(script, "--drain", "none", *extra, *options, ranks=ranks, pattern=patterns[0], **more)

    # Without a step: the same file again and again.

    def test_a_file_that_is_written_anew_each_time_is_a_checkpoint_each_time(self):
        self.job("for s in 1 2 3; do echo $s of $RANK > restart.$RANK; done; cat restart.$RANK > seen.$RANK", "--keep", "9")
        self.assertEqual(self.states(), {1: "superseded", 2: "superseded", 3: "whole"})
        self.assertEqual([self.read(f"seen.{rank}") for rank in (0, 1)], ["3 of 0\n", "3 of 1\n"])
        self.assertFalse(os.path.exists(self.path("restart.0")))
        self.job("cat restart.$RANK >> got", "--resume")
        self.assertEqual(self.read("got"), "3 of 0\n3 of 1\n")

    def test_one_that_is_overwritten_half_way_goes_back_on_all_ranks_alike(self):
        script = """if [ -e begun.$RANK ]; then cat restart.$RANK >> got; else touch begun.$RANK
              echo first of $RANK > restart.$RANK; echo second of $RANK > restart.$RANK
              [ $RANK = 1 ] || echo third of $RANK > restart.$RANK
              [ $RANK = 0 ] || { sleep 2; exec 3> restart.$RANK; echo half >&3; kill -9 $$; }; fi"""
        done = self.job(script, "--restarts", "1", "--keep", "9")
        self.assertIn("attempt 2 begins with checkpoint 2", done.stderr)
        self.assertEqual(self.read("got"), "second of 0\nsecond of 1\n")

    def test_one_that_is_rotated_goes_back_on_all_ranks_alike_whenever_a_rank_dies(self):
        """The old one is renamed away before the new one is written: natively a rank that dies in between has no newest one."""
        for died in ("kill -9 $$", "exec 3> state.1; echo half >&3; kill -9 $$"):
            script = f"""if [ -e begun.$RANK ]; then cat state.$RANK >> got; else touch begun.$RANK
                  rotate() {{ [ ! -e state.$RANK ] || mv state.$RANK state.old.$RANK; echo $1 of $RANK > state.$RANK; }}
                  rotate first; rotate second; [ $RANK = 1 ] || rotate third
                  [ $RANK = 0 ] || {{ sleep 2; mv state.1 state.old.1; {died}; }}; fi"""
            for name in ("got", "begun.0", "begun.1", "state.old.0", "state.old.1"):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
            done = self.job(script, "--restarts", "1", patterns=("state.{rank}",))
            self.assertIn("attempt 2 begins with checkpoint 2", done.stderr)
            self.assertEqual(self.read("got"), "second of 0\nsecond of 1\n")

    def test_counting_goes_on_where_the_job_goes_on(self):
        self.job("for s in 1 2; do echo $s of $RANK > restart.$RANK; done", "--keep", "9")
        self.job("cat restart.$RANK >> got; echo 3 of $RANK > restart.$RANK", "--resume", "--keep", "9")
        self.assertEqual(self.states(), {1: "superseded", 2: "superseded", 3: "whole"})
        self.job("cat restart.$RANK >> got", "--resume")
        self.assertEqual(self.read("got"), "2 of 0\n2 of 1\n3 of 0\n3 of 1\n")

    def test_truncations_and_renames_count_and_closes_do_not(self):
        with open(self.path("cut.py"), "w") as script:
            script.write("""
import os, sys
name = "restart." + sys.argv[1]
with open(name, "r+") as file:   # as Fortran writes anew: no truncation at the open, but one at the end
    file.write("cut")
    file.truncate()
os.truncate(name, 0)
with open(name, "a") as file:
    file.write("then appended")
""")
        self.job(f"""echo one > restart.$RANK; echo and more >> restart.$RANK; echo and more >> restart.$RANK
            echo two > new.$RANK; mv new.$RANK restart.$RANK
            python3 cut.py $RANK; cat restart.$RANK > seen.$RANK""", "--keep", "9")
        self.assertEqual(self.read("seen.1"), "then appended")
        self.assertEqual(set(self.states()), {1, 2, 3, 4})
        self.job("cat restart.$RANK > got.$RANK", "--resume")
        self.assertEqual(self.read("got.1"), "then appended")

    def test_a_removed_file_that_is_written_anew_is_the_next_checkpoint(self):
        self.job("echo one > restart.$RANK; rm restart.$RANK; [ -e restart.$RANK ] && echo there >> wrong; echo two > restart.$RANK", "--keep", "9")
        self.assertFalse(os.path.exists(self.path("wrong")))
        self.assertEqual(self.states(), {1: "superseded", 2: "whole"})

    def test_plain_files_of_before_are_taken_up_and_drained_ones_gone_on_from(self):
        with open(self.path("restart.0"), "w") as plain:
            plain.write("plain\n")
        self.run_job("cat restart.0 > got; echo one > restart.0", pattern=RESTART, **self.small)
        self.assertEqual((self.read("got"), self.read("restart.0")), ("plain\n", "one\n"))
        self.lose("n1", "n2", "n3")
        self.run_job("cat restart.0 >> got; echo two > restart.0", "--resume", pattern=RESTART, **self.small)
        self.assertEqual((self.read("got"), self.read("restart.0")), ("plain\none\n", "two\n"))

    def test_a_rank_reads_what_another_one_has_written_last(self):
        script = """[ $RANK = 0 ] && for s in 1 2; do echo $s > restart.0; done
            if [ $RANK = 1 ]; then for i in $(seq 100); do [ "$(cat restart.0 2> /dev/null)" = 2 ] && break; sleep 0.1; done; cat restart.0 > seen; fi"""
        self.job(script, expect=123)  # rank 1 has none of its own
        self.assertEqual(self.read("seen"), "2\n")

    # Without a rank: one file of all.

    def test_a_file_of_all_ranks_is_a_checkpoint_as_soon_as_it_is_protected(self):
        self.job("[ $RANK = 0 ] && for s in 10 20; do echo step $s > ck/ck.$s; done; true", "--keep", "9", ranks=3, patterns=("ck/ck.{step}",))
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.assertEqual(self.standings()[20]["files_of_all"], 1)
        self.job("cat ck/ck.20 >> got; [ -e ck/ck.10 ] && echo other >> got; true", "--resume", ranks=3, patterns=("ck/ck.{step}",))
        self.assertEqual(self.read("got"), "step 20\n" * 3)

    def test_any_rank_may_write_it(self):
        self.job("[ $RANK = 2 ] && echo step > ck/ck.10; true", ranks=3, patterns=("ck/ck.{step}",))
        self.job("cat ck/ck.10 >> got", "--resume", ranks=3, patterns=("ck/ck.{step}",))
        self.assertEqual(self.read("got"), "step\n" * 3)

    # Several patterns.

    def test_a_checkpoint_of_several_patterns_is_whole_when_its_files_of_all_are(self):
        patterns = ("ck/ck.{step}.{rank}", "ck/head.{step}")
        script = """for s in 10 20; do echo $s of $RANK > ck/ck.$s.$RANK; done; [ $RANK = 0 ] && echo head > ck/head.10; true"""
        self.job(script, "--keep", "9", patterns=patterns)
        self.assertEqual(self.states()[10], "whole")
        self.assertEqual(self.standings()[10]["files_of_all"], 3)
        self.assertNotEqual(self.states()[20], "whole")
        self.assertEqual(self.states("ck/head.{step}"), {10: "whole"})
        self.job("cat ck/ck.10.$RANK ck/head.10 >> got; [ -e ck/ck.20.$RANK ] && echo other >> got; true", "--resume", patterns=patterns)
        self.assertEqual(self.read("got"), "10 of 0\nhead\n10 of 1\nhead\n")

    def test_the_working_directory_has_no_fields_or_separators_whatever_its_name(self):
        above = self.dir
        for name, begins in (("run_2026-11-28T17:30:00, 2", ""), ("a{step}*[b]?\\:c", ""), ("run_17:30", above + "/run_17:30/")):
            self.dir = os.path.join(above, name)
            os.makedirs(self.path("ck"))
            self.env["HOLDFAST_AGENTS"] = self.path("agents")
            self.run_job("for s in 1 2; do echo $s > ck/ck.$s.0; done", pattern=begins + PATTERN, **self.small)
            self.assertEqual(self.states(), {1: "superseded", 2: "whole"}, name)
            self.assertEqual(self.read("ck", "ck.2.0"), "2\n")
            self.holdfast("agents", "stop")
        self.dir = above

    def test_patterns_that_say_nothing_together_are_refused(self):
        here = ("--simulate-nodes", "3", "--protect", "rs:2+1")
        for patterns, words in ((("ck.{step}.{rank}", RESTART), "all patterns have a {step}, or none has"), (("ck.dat",), "{step}, {rank} or both")):
            given = [word for pattern in patterns for word in ("--checkpoint", pattern)]
            self.assert_one_sentence(self.holdfast("run", *here, *given, "true", expect=2).stderr, words)

    # One file, two writers.

    def test_a_file_that_two_nodes_write_fails_its_checkpoint_by_name(self):
        script = """there() { until [ -e $1 ]; do sleep 0.05; done; }
            [ $RANK = 0 ] && { (exec 3> ck/ck.10.0; touch open; there written; echo by 0 >&3; exec 3>&-; touch closed) & there open; exit 0; }
            echo by 1 > ck/ck.10.0; echo mine > ck/ck.10.1; touch written; there closed"""
        done = self.job(script, patterns=("ck/ck.{step}.{rank}",), expect=123)
        self.assertRegex(done.stderr, "checkpoint 10 fails: .*/ck/ck.10.0 was written on n[12] and at the same time on n[12]")
        self.assertEqual(self.states(), {10: "failed"})
        done = self.job("true", "--resume", patterns=("ck/ck.{step}.{rank}",))
        self.assertNotIn("begins with checkpoint 10", done.stderr)

    # One place, two names.

    def test_a_second_file_of_one_step_and_rank_is_not_lost_without_a_word(self):
        patterns = ("ck/ck.{step}.{rank}",)
        for first, second in (("01.0", "1.0"), ("2.0", "2.00")):
            done = self.job(f"echo one > ck/ck.{first}; echo two > ck/ck.{second}; cat ck/ck.{first} ck/ck.{second} > got", ranks=1, patterns=patterns, expect=123)
            step = int(first.split(".")[0])
            self.assertRegex(done.stderr, f"/ck/ck.{second} is not protected: checkpoint {step} has .*/ck/ck.{first} in its place")
            self.assertEqual((done.stderr.count("in its place"), self.read("got")), (1, "one\ntwo\n"))
            self.assertEqual(self.states()[step], "whole", "of what could be protected")
        done = self.job("echo plain > new; echo one > ck/ck.03.0; mv new ck/ck.3.0", ranks=1, patterns=patterns, expect=123)
        self.assertRegex(done.stderr, "/ck/ck.3.0 is not protected: checkpoint 3 has .*/ck/ck.03.0 in its place")
        self.job("cat ck/ck.03.0 > got; [ ! -e ck/ck.3.0 ]", "--resume", ranks=1, patterns=patterns)
        self.assertEqual(self.read("got"), "one\n")

    def test_no_ending_of_a_name_is_taken_for_anything_else(self):
        """Such as that of the notes why a file has failed."""
        self.job("mkdir -p ck/1; for name in a a.why a.new a.why.new; do echo $name > ck/1/$name; done; cat ck/1/a* > seen", patterns=("ck/{step}/*",), ranks=1)
        self.assertEqual(self.read("seen"), "a\na.new\na.why\na.why.new\n")
        self.assertEqual(self.standings()[1]["files"], 4)

    def test_a_file_may_get_another_name_of_its_place(self):
        patterns = ("ck/ck.{step}.{rank}",)
        for step, (script, content) in enumerate((("echo old > ck/ck.1.0; echo one > ck/ck.1.0; mv ck/ck.1.0 ck/ck.01.0", "one\n"),
                                                  ("echo old > ck/ck.2.0; rm ck/ck.2.0; echo two > ck/ck.02.0", "two\n"),
                                                  ("echo three > ck/ck.03.0; echo and more >> ck/ck.03.0", "three\nand more\n"),
                                                  # The old one is protected, in several versions, before.
                                                  ("for i in 1 2 3; do echo $i > ck/ck.4.0; sleep 0.5; done; mv ck/ck.4.0 ck/ck.04.0", "3\n")), 1):
            done = self.job(script, ranks=1, patterns=patterns)
            self.assertNotIn("in its place", done.stderr)
            self.job(f"cat ck/ck.0{step}.0 > got; [ ! -e ck/ck.{step}.0 ]", "--resume", ranks=1, patterns=patterns)
            self.assertEqual(self.read("got"), content)


if __name__ == "__main__":
    unittest.main()
