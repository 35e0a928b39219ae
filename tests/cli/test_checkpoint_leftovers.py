"""What checkpoints leave on the nodes beside their versions, and what of it goes: by holdfast checkpoints --drop, at a restart, and where space is short."""
import glob
import os
import unittest

from checkpoint_test import CheckpointTest, Peaks

SMALL = {"nodes": 3, "scheme": "rs:2+1"}


class Leftovers(CheckpointTest):
    def copies(self, state="*", attempt="*"):
        """The names of local files in that state, by step and rank."""
        found = glob.glob(self.path(f"holdfast-nodes/*/.checkpoints/*/{attempt}.*/{state}/*"))
        return sorted(os.path.basename(name).split(".")[0] for name in found if "~" in os.path.basename(name))

    # checkpoints --drop

    def test_what_is_dropped_leaves_no_local_copy(self):
        script = """echo ten > ck/ck.10.0; echo twenty > ck/ck.20.0; """ + self.command("checkpoints", "--drop", "20") + """ > said
            (cd holdfast-nodes/n1/.checkpoints/*/1.*/protected; ls) > left; """ + self.command("checkpoints", "--drop", "20") + " 2> again; exit 9"
        self.run_job(script, "--drain", "none", "--keep", "9", "--protect-at", "close", expect=9, **SMALL)
        self.assertEqual(self.read("said"), "1 file of checkpoint 20 dropped\n")
        self.assertRegex(self.read("left"), r"^10\.[^\n]*\n$")
        self.assertIn("there is no checkpoint 20", self.read("again"))
        self.assertEqual(self.states(), {10: "whole"})
        self.holdfast("checkpoints", "--drop", "10")
        self.assertEqual(glob.glob(self.path("holdfast-nodes/*/.checkpoints/*")), [], "nothing is left of the run")

    def test_what_is_only_local_can_be_dropped(self):
        script = """echo ten > ck/ck.10.$RANK; [ $RANK = 1 ] || exit 0
            exec 3> ck/ck.20.1; echo half >&3; sleep 1; kill -9 $$"""
        self.run_job(script, "--drain", "none", ranks=2, expect=137, **SMALL)
        self.assertEqual(self.states(), {10: "whole", 20: "torn"})
        self.assertEqual(self.holdfast("checkpoints", "--drop", "20").stdout, "1 file of checkpoint 20 dropped\n")
        self.assertEqual((self.states(), self.copies("torn")), ({10: "whole"}, []))

    def test_what_could_not_be_protected_can_be_dropped(self):
        self.run_job(self.command("agents", "stop") + " 2> /dev/null; echo twenty > ck/ck.20.0", "--drain", "none", expect=None, **SMALL)
        for node in ("n1", "n2", "n3"):
            self.holdfast("agents", "start", "--node", node, self.path("holdfast-nodes", node))
        self.assertEqual(self.states()[20], "failed")
        self.holdfast("checkpoints", "--drop", "20")
        self.assertEqual((self.states(), self.copies("failed")), ({}, []))
        self.assertFalse(glob.glob(self.path("holdfast-nodes/*/.checkpoints/*/*/failed/*")), "its reason goes as well")

    def test_a_number_that_was_dropped_beside_its_job_is_not_given_again(self):
        script = f"echo ten > ck/ck.10.0; echo old > ck/ck.20.0; {self.until('20 *whole')}; {self.command('checkpoints', '--drop', '20')} > said; echo new > ck/ck.20.0"
        self.run_job(script, "--drain", "none", "--keep", "9", **SMALL)
        self.assertEqual(self.read("said"), "1 file of checkpoint 20 dropped\n")
        self.holdfast("checkpoints", "--drain", "20", ".")
        self.assertEqual(self.read("ck/ck.20.0"), "new\n")
        self.assertEqual(len(glob.glob(self.path("holdfast-nodes/n1/ck.20.*"))), 1)

    def test_a_checkpoint_is_removed_by_the_paths_of_all_its_files_and_not_by_some(self):
        self.run_job("for s in 3 4; do echo $RANK > ck/ck.$s.$RANK; done", "--keep", "9", ranks=2, **SMALL)  # the last one is plain
        refused = self.holdfast("rm", "ck/ck.3.0", expect=3).stderr
        self.assert_one_sentence(refused, "ck/ck.3.0 is one of 2 files of checkpoint 3", "ck/ck.3.1 too", "holdfast checkpoints --drop 3")
        self.assertEqual(self.states(), {3: "superseded", 4: "whole"})
        self.assertEqual(self.holdfast("rm", "ck/ck.3.0", "ck/ck.3.1").stdout, "2 files of checkpoint 3 dropped\n")
        self.assertEqual((self.states(), glob.glob(self.path("holdfast-nodes/*/ck.3.*"))), ({4: "whole"}, []))
        self.assert_one_sentence(self.holdfast("rm", "ck/ck.3.0", expect=3).stderr, "ck/ck.3.0 is not a protected file")
        self.assertEqual(self.holdfast("rm", "-f", "ck/ck.3.0").stdout, "")
        said = self.holdfast("rm", "-f", "ck/ck.4.0", "ck/ck.4.1").stderr.splitlines()
        self.assertEqual([line.split(" is ")[1] for line in said], ["a plain file as well, which stays: remove it with rm"] * 2)
        self.assertEqual((self.read("ck/ck.4.1"), glob.glob(self.path("holdfast-nodes/*/ck.4.*"))), ("1\n", []))

    def test_what_a_job_is_writing_is_not_dropped(self):
        script = "exec 3> ck/ck.20.0; echo half >&3; " + self.command("checkpoints", "--drop", "20") + " 2> said; echo $? >> said; exec 3>&-"
        self.run_job(script, "--drain", "none", **SMALL)
        self.assertRegex(self.read("said"), "a job that runs is writing checkpoint 20; drop it when it is protected, or the job has ended\n[1-9]")
        self.assertEqual(self.states(), {20: "whole"})

    # Attempts that fail.

    def test_attempts_that_fail_leave_no_copies_behind(self):
        script = """here=holdfast-nodes/n1/.checkpoints; echo x >> started
            [ $(wc -l < started) = 1 ] && { head -c 200000 /dev/zero > ck/ck.10.0; sleep 1; exit 9; }
            for before in $(ls -d $here/*/*/ | sort -V | head -n -1); do ls $before/restored $before/protected $before/coming.*; done 2> /dev/null | grep "10.0of1\\|coming.1.1$" >> left
            cat ck/ck.10.0 > /dev/null; touch $(ls -td $here/*/*/ | head -1)/coming.1.1
            exec 3> ck/ck.20.0; head -c 100000 /dev/zero >&3; kill -9 $$"""
        self.run_job(script, "--restarts", "3", "--drain", "none", expect=137, **SMALL)
        self.assertEqual(self.read("left"), "")
        self.assertEqual((self.copies("restored"), self.copies("protected")), ([], []))
        self.assertEqual(sum(os.path.getsize(name) for name in glob.glob(self.path("holdfast-nodes/*/.checkpoints/*/*/torn/*"))), 0)
        self.assertEqual({c["attempt"]: c["state"] for c in self.json("checkpoints")["checkpoints"] if c["step"] == 20},
                         {2: "quarantined", 3: "quarantined", 4: "torn"}, "they are still named")
        self.run_job("wc -c < ck/ck.10.0 > got", "--resume", "--drain", "none", **SMALL)
        self.assertEqual(self.read("got"), "200000\n")

    def test_nor_directories(self):
        """But for those of which there are versions, and the last one's."""
        script = "echo x >> started; n=$(wc -l < started); echo $n > ck/ck.$n.0; exit 9"
        self.run_job(script, "--restarts", "6", "--drain", "none", expect=9, **SMALL)
        self.assertEqual(self.states(), {6: "superseded", 7: "whole"})
        left = {node: sorted(os.path.basename(at).split(".")[0] for at in glob.glob(self.path(f"holdfast-nodes/{node}/.checkpoints/*/*.*"))) for node in ("n1", "n2", "n3")}
        self.assertEqual(left, {node: ["6", "7"] for node in left})
        self.run_job("cat ck/ck.7.0 > got", "--resume", "--drain", "none", **SMALL)
        self.assertEqual(self.read("got"), "7\n")

    # What a protector that was killed has begun

    def struck(self):
        """A script: a protector is killed between a version's first directory and its last manifest. Of which step, a file says."""
        return f"""for s in 1 2 3; do
                truncate -s 256M ck/ck.$s.0
                for look in $(seq 1000); do ls -d holdfast-nodes/n2/ck.$s.0-* 2> none && break; sleep 0.01; done
                {self.strike_protectors("KILL")}
                ls holdfast-nodes/n2/ck.$s.0-*/manifest 2> none || {{ echo $s > step; break; }}
            done; """

    def begun(self, step):
        return sorted(os.path.relpath(name, self.path("holdfast-nodes")).split("/")[0] for name in glob.glob(self.path(f"holdfast-nodes/*/ck.{step}.0-*")))

    def test_what_a_killed_protector_has_begun_goes_when_the_job_has_ended(self):
        with Peaks(self.dir) as peaks:
            done = self.run_job(self.struck(), "--drain", "none", "--keep", "9", **SMALL)
        step = int(self.read("step"))
        self.assertIn("it is started anew", done.stderr)
        self.assertGreater(len(peaks.bytes), 3, "of three nodes, and one that was started anew")
        self.assertLess(max(peaks.bytes.values()), 256 << 20, "no file is held as a whole")
        self.assertEqual(self.states()[step], "whole")
        self.assertEqual(self.begun(step), ["n1", "n2", "n3"], "the version itself")
        self.assertEqual(glob.glob(self.path("holdfast-nodes/*/*/growing")), [])

    def test_it_goes_when_a_later_attempt_has_a_checkpoint(self):
        self.run_job(self.struck() + "exit 9", "--drain", "none", "--keep", "9", expect=9, **SMALL)
        step = int(self.read("step"))
        self.assertEqual(self.begun(step), ["n1", "n1", "n2", "n2", "n3", "n3"])
        self.run_job("echo later > ck/ck.4.0; exit 9", "--resume", "--drain", "none", "--keep", "9", expect=9, **SMALL)
        self.assertEqual(len(self.begun(step)), 6, "a protector of before may be at work still")
        self.run_job("exit 9", "--resume", "--drain", "none", "--keep", "9", expect=9, **SMALL)
        self.assertEqual(self.begun(step), ["n1", "n2", "n3"])

    def test_it_goes_when_its_checkpoint_is_dropped(self):
        self.run_job(self.struck() + "exit 9", "--drain", "none", "--keep", "9", expect=9, **SMALL)
        step = self.read("step").strip()
        self.assertEqual(len(self.begun(step)), 6)
        self.holdfast("checkpoints", "--drop", step)
        self.assertEqual(self.begun(step), [])

    def test_so_does_what_was_begun_of_a_file_that_is_protected_by_itself(self):
        self.run_job(self.struck() + "exit 9", "--drain", "none", "--keep", "9", expect=9, pattern="ck/*", **SMALL)
        step = self.read("step").strip()
        self.assertEqual(len(self.begun(step)), 6)
        self.holdfast("checkpoints", "--drop", "0", expect=3)
        self.holdfast("checkpoints", "--drop", "ck/other", expect=3)
        self.assertEqual(len(self.begun(step)), 6)
        self.holdfast("checkpoints", "--drop", f"ck/ck.{step}.0")
        self.assertEqual(self.begun(step), [])

    def test_a_job_without_checkpoints_leaves_nothing(self):
        self.run_job("true", **SMALL)
        self.assertEqual(glob.glob(self.path("holdfast-nodes/*/.checkpoints/*")), [])

    def test_on_a_disk_that_is_nearly_full_older_copies_give_way(self):
        self.small_disk("n1", 7 << 20)
        script = """for s in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > ck/ck.$s.0 || exit 1; done
            (cd holdfast-nodes/n1/.checkpoints/*/*/; ls evicted protected) > there
            wc -c < ck/ck.1.0 > got; echo anew > ck/ck.2.0"""
        self.run_job(script, "--keep", "9", "--drain", "none", "--protect-at", "close", nodes=4, scheme="rs:2+2")
        self.assertEqual(self.read("got"), "1000000\n")
        evicted, protected = self.read("there").split("protected:")
        self.assertIn("\n1.0of1", evicted)
        self.assertIn("\n6.0of1", protected)
        self.holdfast("checkpoints", "--drain", "2", ".")
        self.assertEqual(self.read("ck/ck.2.0"), "anew\n", "the number of a copy that has gone is not given again")


if __name__ == "__main__":
    unittest.main()
