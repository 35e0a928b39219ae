"""Checkpoints of which nobody knows beforehand how many files they have: wildcards, --complete, and a program that says that it has written all."""
import os
import subprocess
import unittest

from checkpoint_test import CheckpointTest

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
OF_RANKS, PARTS, DONE = "ck/{step}/*.{rank}", "ck/{step}/part*", "ck/{step}/DONE"


class CheckpointRolls(CheckpointTest):
    def job(self, script, *options, ranks=2, pattern=OF_RANKS, complete=None, **more):
        more = {"nodes": 3, "scheme": "rs:2+1", **more}
        extra = ("--complete", complete) if complete else ()
        return self.run_job(script, "--drain", "none", *extra, *options, ranks=ranks, pattern=pattern, **more)

    # Wildcards.

    def test_a_rank_may_write_several_files_of_a_step(self):
        script = "for s in 10 20; do mkdir -p ck/$s; for what in mesh state; do echo $what $s of $RANK > ck/$s/$what.$RANK; done; done"
        self.job(script, "--keep", "9")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.assertEqual((self.standings()[20]["files"], self.standings()[20]["files_of_all"]), (4, 4))
        self.job("cat ck/20/*.$RANK >> got; ls ck/20 > seen.$RANK; [ -e ck/10/mesh.0 ] && echo other >> got; true", "--resume")
        self.assertEqual(self.read("got"), "".join(f"{what} 20 of {rank}\n" for rank in (0, 1) for what in ("mesh", "state")))
        self.assertEqual(self.read("seen.1").split(), ["mesh.0", "mesh.1", "state.0", "state.1"])

    def test_a_step_counts_as_written_when_the_rank_has_begun_another(self):
        script = """[ -e tried ] && { cat ck/* > got; exit 0; }; touch tried
            for s in 10 20; do echo a $s > ck/$s.a.0; echo b $s > ck/$s.b.0; done; """ + self.until("10 *whole") + """
            echo a 30 > ck/30.a.0; """ + self.until("20 *whole") + "; kill -9 $$"
        done = self.job(script, "--restarts", "1", ranks=1, pattern="ck/{step}.*.{rank}")
        self.assertIn("attempt 2 begins with checkpoint 20", done.stderr)
        self.assertIn("not whole, and neither opened nor listed from here on: checkpoint 30", done.stderr)
        self.assertEqual(self.read("got"), "a 20\nb 20\n")

    def test_a_file_that_could_not_be_completed_keeps_its_step_from_being_whole(self):
        script = """[ -e tried ] && { cat ck/* > got; exit 0; }; touch tried
            echo a > ck/10.a.0; echo a > ck/20.a.0; """ + self.until("10 *whole") + """
            sh -c 'exec 3> ck/20.b.0; echo half >&3; kill -9 $$'
            echo a > ck/30.a.0; sleep 1; kill -9 $$"""
        done = self.job(script, "--restarts", "1", ranks=1, pattern="ck/{step}.*.{rank}")
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got"), "a\n")

    def test_without_a_rank_in_the_name_all_ranks_count(self):
        script = "[ $RANK = 2 ] || for s in 10 20; do echo $s of $RANK > ck/$s.part$RANK; done; true"
        pattern = "ck/{step}.part*"
        self.job(script, "--keep", "9", ranks=3, pattern=pattern)
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})  # rank 2 has ended as well
        done = self.job(script + "; [ $RANK = 2 ] && exit 9; true", ranks=3, pattern=pattern, expect=9)
        self.assertNotIn("is whole", done.stderr)
        newest = max(self.json("checkpoints")["checkpoints"], key=lambda one: one["run"])
        silent = ("rank 2 has written no file of it, and nothing says that it will write none: name a file that completes a checkpoint with --complete, "
                  "or call holdfast_checkpoint_complete")
        self.assertEqual((newest["state"], newest["why"]), ("protected", silent))
        self.assertIn(f"holdfast: checkpoint 10 is not whole: {silent}\n", done.stderr)
        again = self.job("[ $RANK = 2 ] && exit 9; true", "--resume", ranks=3, pattern=pattern, expect=9)
        self.assertNotIn("is not whole", again.stderr, "the run before has a whole one, and it goes on from that")

    def test_a_rank_that_writes_nothing_is_named_at_a_restart_with_the_mend(self):
        script = "[ -e tried ] && { echo 30 > ck/30.part0; exit 9; }; [ $RANK = 1 ] && { touch tried; exit 9; }; for s in 10 20; do echo $s > ck/$s.part0; done; " + self.until("10 *protected")
        done = self.job(script, "--restarts", "1", pattern="ck/{step}.part*", expect=9)
        self.assertRegex(done.stderr, r"checkpoint 10 is not whole: rank 1 has written no file of it, .* with --complete, or call")
        self.assertIn("no checkpoint is whole yet; attempt 2 begins from the start", done.stderr)
        standing = next(one for one in self.json("checkpoints")["checkpoints"] if one["step"] == 10)
        self.assertEqual(standing["state"], "quarantined")
        self.assertIn("--complete", standing["why"])

    def test_what_is_dropped_leaves_nothing(self):
        self.job("for s in 10 20 30; do echo $s > ck/$s.a.$RANK; done", "--keep", "1", pattern="ck/{step}.*.{rank}")
        self.assertEqual(self.states(), {30: "whole"})
        left = [name for node in ("n1", "n2", "n3") for name in os.listdir(self.path("holdfast-nodes", node)) if name.startswith(("10", "20", "30", "roll"))]
        self.assertEqual({name.split("-")[0].rsplit(".", 1)[0] for name in left}, {"30.a", "roll.30.of"}, left)
        self.assertEqual(len(left), (2 + 1) * 3)  # two files, and what the job's end says of them

    def test_what_was_removed_or_renamed_before_does_not_belong_to_it(self):
        script = """echo a > ck/10.tmp; mv ck/10.tmp ck/10.a; echo b > ck/10.b; echo c > ck/10.c; rm ck/10.c; ls ck > before"""
        self.job(script, "--keep", "9", ranks=1, pattern="ck/{step}.*")
        self.assertEqual(self.read("before").split(), ["10.a", "10.b"])
        self.assertEqual((self.states(), self.standings()[10]["files"]), ({10: "whole"}, 2))
        self.job("ls ck > seen; cat ck/10.tmp 2> /dev/null && echo wrong >> seen; true", "--resume", ranks=1, pattern="ck/{step}.*")
        self.assertEqual(self.read("seen").split(), ["10.a", "10.b"])

    def test_what_comes_late_belongs_to_it_when_the_rank_has_been_somewhere_else_again(self):
        script = """echo a > ck/10.a; echo a > ck/20.a; """ + self.until("10 *whole") + """
            echo late > ck/10.late; """ + self.command("checkpoints") + """ | grep " 10 " > before; echo b > ck/20.b; sleep 1"""
        self.job(script, "--keep", "9", ranks=1, pattern="ck/{step}.*")
        self.assertRegex(self.read("before"), " 10 .*(whole|superseded) *1/1 ")
        self.assertEqual({step: (one["state"], one["files"]) for step, one in self.standings().items()}, {10: ("superseded", 2), 20: ("whole", 2)})

    def test_the_newest_is_brought_to_its_paths(self):
        self.run_job("for s in 10 20; do mkdir -p ck/$s; echo $s > ck/$s/a.$RANK; echo $s > ck/$s/b.$RANK; done", nodes=3, scheme="rs:2+1", ranks=2,
                     pattern=OF_RANKS)
        self.assertEqual(sorted(os.listdir(self.path("ck/20"))), ["a.0", "a.1", "b.0", "b.1"])
        self.assertFalse(os.path.exists(self.path("ck/10")))

    def test_a_lost_node_is_borne_and_what_it_had_is_made_anew(self):
        self.job("for s in 10 20; do echo $s > ck/$s.a.$RANK; echo $s > ck/$s.b.$RANK; done", pattern="ck/{step}.*.{rank}", nodes=4)
        olds = [os.path.join("holdfast-nodes/*", name) for name in os.listdir(self.path("holdfast-nodes/n2")) if "20." in name]
        self.lose("n2")
        anew = f"for look in $(seq 300); do [ -z \"$(LD_PRELOAD= ls -d {' '.join(olds)} 2> /dev/null)\" ] && break; sleep 0.1; done"
        self.job(f"cat ck/20.?.$RANK >> got; {anew}", "--resume", pattern="ck/{step}.*.{rank}", nodes=4)
        self.assertEqual(self.read("got"), "20\n" * 4)
        self.lose("n3")
        self.job("cat ck/20.?.$RANK >> again", "--resume", pattern="ck/{step}.*.{rank}", nodes=4)
        self.assertEqual(self.read("again"), "20\n" * 4)

    # --complete

    def test_a_file_may_say_that_its_checkpoint_is_complete(self):
        script = """[ -e tried ] && { cat ck/10/part* ck/10/DONE >> got; ls ck/20 2> /dev/null >> got; exit 0; }
            mkdir -p ck/10 ck/20; echo part $RANK > ck/10/part$RANK; echo part $RANK > ck/20/part$RANK
            [ $RANK = 1 ] || exit 0; echo done > ck/10/DONE; """ + self.until("10 *whole") + "; touch tried; kill -9 $$"
        done = self.job(script, "--restarts", "1", pattern=PARTS, complete=DONE)
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got"), "part 0\npart 1\ndone\n" * 2)

    def test_a_file_that_completes_it_may_have_had_another_name_before(self):
        script = "for s in 1 2; do mkdir -p ck/$s; echo $s > ck/$s/a; echo $s > ck/$s/DONE.tmp; mv ck/$s/DONE.tmp ck/$s/DONE; done"
        for more in ((), ("--protect-at", "close")):
            with self.subTest(more=more):
                self.job(script, *more, ranks=1, pattern="ck/{step}/*", complete="ck/{step}/DONE")
                said = self.job("cat ck/2/DONE; ls ck/2", "--resume", ranks=1, pattern="ck/{step}/*", complete="ck/{step}/DONE")
                self.assertEqual(said.stdout, "2\nDONE\na\n", said.stderr)

    def test_where_files_complete_nothing_else_does(self):
        script = "for s in 10 20 30; do echo $RANK > ck/$s.part$RANK; done; [ $RANK = 1 ] && echo done > ck/20.done; true"
        self.job(script, "--keep", "9", pattern="ck/{step}.part*", complete="ck/{step}.done", expect=0)
        self.assertEqual(self.states(), {10: "protected", 20: "whole", 30: "protected"})
        self.assertIn("nothing says", self.standings()[30]["why"])

    def test_each_rank_may_complete_its_own_part(self):
        script = """for s in 10 20; do echo a > ck/$s.a.$RANK; echo b > ck/$s.b.$RANK; [ $s = 20 -a $RANK = 1 ] || : > ck/$s.done.$RANK; done"""
        self.job(script, "--keep", "9", pattern="ck/{step}.*.{rank}", complete="ck/{step}.done.{rank}")
        self.assertEqual((self.states()[10], self.standings()[10]["files_of_all"]), ("whole", 6))
        self.assertNotEqual(self.states()[20], "whole")

    def test_what_ranks_write_one_after_another_is_whole_when_it_is_complete(self):
        script = """echo $RANK >> ck/ck.10; """ + self.until("10 .*protected") + """
            [ $RANK = 2 ] && { echo other > ck/ck.20; echo done > ck/done.10; }; true"""
        self.job(script, "--keep", "9", ranks=3, pattern="ck/ck.{step}", complete="ck/done.{step}")
        self.assertEqual(self.states()[10], "whole")
        self.assertNotEqual(self.states()[20], "whole")
        self.job("cat ck/ck.10 > got", "--resume", ranks=1, pattern="ck/ck.{step}", complete="ck/done.{step}")
        self.assertEqual(self.read("got"), "0\n1\n2\n")

    def test_a_file_is_complete_only_with_what_was_opened_before_it(self):
        script = """echo a > ck/10.part0; exec 3> ck/10.part1; echo done > ck/10.done; sleep 1
            """ + self.command("checkpoints") + """ > seen 2> /dev/null; echo late >&3; exec 3>&-; """ + self.until("10 *whole")
        self.job(script, ranks=1, pattern="ck/{step}.part*", complete="ck/{step}.done")
        self.assertNotIn("whole", self.read("seen"))
        self.assertEqual(self.states(), {10: "whole"})
        self.assertEqual(self.standings()[10]["files"], 3)

    # holdfast.h

    def test_a_program_may_say_that_it_has_written_all(self):
        with open(self.path("say.c"), "w") as file:
            file.write("""#include <holdfast/holdfast.h>
#include <stdlib.h>
int main(int argc, char **argv) { return !holdfast_present() || argc < 2 || holdfast_checkpoint_complete(strtoull(argv[1], 0, 10)) != 0; }
""")
        subprocess.run(["cc", "-Wall", "-Werror", "-std=c99", "-I", INCLUDE, "-o", "say", "say.c"], cwd=self.dir, check=True)
        script = """[ -e tried ] && { cat ck/* >> got; exit 0; }
            [ $RANK = 0 ] && { echo a > ck/10.part0; echo b > ck/10.part1; }
            ./say 10 || exit 9; [ $RANK = 1 ] && { """ + self.until("10 *whole") + "; touch tried; kill -9 $$; }; true"
        done = self.job(script, "--restarts", "1", pattern="ck/{step}.part*")
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got"), "a\nb\n" * 2)
        self.assertEqual(self.holdfast("run", "./say", "10", expect=1).returncode, 1)  # it keeps none

    def test_senseless_patterns_are_refused(self):
        here = ("--simulate-nodes", "3", "--protect", "rs:2+1")
        for given, words in ((("--complete", DONE), "--complete is about checkpoints"),
                             (("--checkpoint", PARTS, "--complete", "ck/done"), "{step}, {rank} or both"),
                             (("--checkpoint", "r.{rank}", "--complete", "done.{rank}"), "must say which checkpoint is complete"),
                             (("--checkpoint", "ck/*.{rank}"), "there must be a {step}, too"),
                             (("--checkpoint", "ck/{step}/*{rank}"), "something that is no digit")):
            self.assert_one_sentence(self.holdfast("run", *here, *given, "true", expect=2).stderr, words)


if __name__ == "__main__":
    unittest.main()
