"""Programs open a checkpoint to read and write, as Fortran does by itself: what comes of that where they write nothing, and where they do."""
import shutil
import subprocess
import sys
import unittest

from checkpoint_test import CheckpointTest

THERE = "there() { until [ -e $1 ]; do sleep 0.02; done; }; "  # in a script: what waits for a file
LOOK = """
import sys
with open(sys.argv[1], "r+") as file: print(file.read().strip())
"""
# It changes what it has mapped, and calls no write.
MAP = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[:5] = sys.argv[2].encode()
"""


class CheckpointUpdates(CheckpointTest):
    def setUp(self):
        super().setUp()
        for name, text in (("look.py", LOOK), ("map.py", MAP)):
            with open(self.path(name), "w") as file:
                file.write(text)

    def job(self, script, *options, ranks=2, pattern="ck/ck.{step}.{rank}", **more):
        return self.run_job(THERE + script, "--drain", "none", *options, ranks=ranks, pattern=pattern, nodes=3, scheme="rs:2+1", at_once=ranks > 1, **more)

    def fortran(self, name, *statements):
        compiler = shutil.which("gfortran") or self.skipTest("there is no gfortran")
        with open(self.path(name + ".f90"), "w") as file:
            file.write("program restart\n  character(80) :: line\n  integer :: u\n" + "".join(f"  {one}\n" for one in statements) + "end program\n")
        subprocess.run([compiler, name + ".f90", "-o", name], cwd=self.dir, check=True)

    def test_ranks_on_all_nodes_read_a_restart_file_in_fortran(self):
        """Each has it open until all have."""
        for name, pattern in (("ck.5", "ck/ck.{step}"), ("ck.5.0", "ck/ck.{step}.{rank}")):
            self.fortran("rd", f"open (newunit=u, file='ck/{name}', status='old')", "read (u, '(a)') line",
                         "call execute_command_line('touch open.$RANK; until [ -e open.0 -a -e open.1 -a -e open.2 ]; do sleep 0.02; done')",
                         "close (u)", "call execute_command_line('echo '//trim(line)//' >> got')")
            begin = "[ $RANK = 0 ] && echo state of ck.5 > ck/ck.5" if name == "ck.5" else "echo state of ck.5 > ck/ck.5.$RANK"
            self.job(f"{begin}; touch begun.$RANK; there begun.0; ./rd", ranks=3, pattern=pattern)
            self.assertEqual(self.states(), {5: "whole"})
            self.assertEqual(self.read("got"), "state of ck.5\n" * 3)
            subprocess.run("rm open.*", shell=True, cwd=self.dir, check=True)
            self.job("./rd", "--resume", ranks=3, pattern=pattern)
            self.assertEqual(self.read("got"), "state of ck.5\n" * 6)
            self.assertEqual([(c["attempt"], c["state"]) for c in self.json("checkpoints")["checkpoints"]], [(1, "whole")])
            subprocess.run("rm -r got open.* begun.* holdfast-nodes", shell=True, cwd=self.dir, check=True)

    def test_a_rank_writes_on_while_another_one_looks(self):
        for pattern, name in (("ck/ck.{step}.{rank}", "ck.5.1"), ("ck/st.{rank}", "st.1")):
            script = f"""mine=$(echo ck/{name} | sed s/1$/$RANK/); [ $RANK = 0 ] && echo own > $mine
                for v in 1 2 3; do
                  if [ $RANK = 1 ]; then echo v$v > $mine; touch wrote.$v; there read.$v
                  else there wrote.$v; {sys.executable} look.py ck/{name} >> got; touch read.$v; fi
                done; [ $RANK = 1 ] && echo last > $mine; true"""
            self.job(script, pattern=pattern)
            self.assertEqual(self.read("got"), "v1\nv2\nv3\n")
            if name == "ck.5.1":  # the other one goes back to what both ranks have written as often
                self.job(f"[ $RANK = 1 ] || cat ck/{name} > got", "--resume", pattern=pattern)
                self.assertEqual(self.read("got"), "last\n")
            subprocess.run("rm -r got read.* wrote.* holdfast-nodes", shell=True, cwd=self.dir, check=True)

    def test_what_a_rank_writes_last_counts_whoever_wrote_its_file_before(self):
        script = """if [ $RANK = 1 ]; then echo first by 1 > ck/ck.5.1; touch first; there again; echo last by 1 > ck/ck.5.1; cat ck/ck.5.1 > seen.1; touch last
            else echo own > ck/ck.5.0; there first; echo by 0 > ck/ck.5.1; echo by 0 again > ck/ck.5.1; touch again; there last; cat ck/ck.5.1 > seen.0; fi"""
        self.job(script)
        self.assertEqual((self.read("seen.0"), self.read("seen.1")), ("last by 1\n",) * 2)
        self.assertEqual(self.states(), {5: "whole"})
        self.job("cat ck/ck.5.1 > got", "--resume", ranks=2)
        self.assertEqual(self.read("got"), "last by 1\n")

    def test_what_is_written_through_a_mapping_or_a_child_is_a_version(self):
        script = f"""for s in 1 2; do echo before > ck/ck.$s.0; done
            {sys.executable} map.py ck/ck.1.0 after
            (exec 3<> ck/ck.2.0; sh -c 'there() {{ until [ -e $1 ]; do sleep 0.02; done; }}; there closed; sleep 0.3; echo after >&3' & exec 3>&-; touch closed; wait)
            cat ck/ck.1.0 ck/ck.2.0 > seen"""
        self.job(script, "--keep", "9", ranks=1)
        self.assertEqual(self.read("seen"), "aftere\nafter\n\n")
        self.job("cat ck/ck.2.0 > got", "--resume", ranks=1)
        self.assertEqual(self.read("got"), "after\n\n")

    def test_who_is_killed_with_one_open_has_written_nothing(self):
        script = f"""[ -e tried ] && {{ cat ck/* > got; exit 0; }}; touch tried
            for s in 10 20; do echo $s > ck/ck.$s.0; done; {self.until("20 *whole")}
            sh -c 'exec 3<> ck/ck.20.0; kill -9 $$'; exit 7"""
        done = self.job(script, "--restarts", "1", "--keep", "2", ranks=1)
        self.assertIn("attempt 2 begins with checkpoint 20", done.stderr)
        self.assertEqual(self.read("got"), "20\n")

    def test_who_writes_after_another_node_has_is_named(self):
        script = """[ $RANK = 0 ] && { echo first > ck/ck.5; touch first; there open; echo by 0 > ck/ck.5; touch wrote; exit 0; }
            there first; exec 3<> ck/ck.5; touch open; there wrote; echo by 1 >&3"""
        done = self.job(script, pattern="ck/ck.{step}", expect=123)
        self.assertRegex(done.stderr, "ck/ck.5 is not protected: n[12] wrote it as well while n[12] had it open: "
                                      "let one node write it after the other, or each rank a file of its own")
        self.job("[ $RANK = 1 ] || cat ck/ck.5 > got", "--resume", pattern="ck/ck.{step}")
        self.assertEqual(self.read("got"), "by 0\n")


if __name__ == "__main__":
    unittest.main()
