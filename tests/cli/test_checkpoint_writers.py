"""holdfast run --checkpoint: whoever writes a file of a checkpoint, and however that ends, it is taken for complete only where it is."""
import glob
import os
import shutil
import subprocess
import time
import unittest

from checkpoint_test import CheckpointTest


class Writers(CheckpointTest):
    def run_python(self, program, *options, expect=0):
        with open(self.path("program.py"), "w") as file:
            file.write(program)
        return self.run_job("exec python3 program.py", *options, expect=expect)

    def test_a_child_by_vfork_closes_nothing_of_its_parents(self):
        # Python's subprocess closes all numbers in the child, which runs in the parent's memory.
        self.run_python("""
import subprocess
with open("ck/ck.1.0", "w") as file:
    file.write("before, ")
    subprocess.run(["true"], check=True)
    file.write("after")
""")
        self.assertEqual(self.read("ck/ck.1.0"), "before, after")

    def test_what_a_redirection_has_written_when_it_is_killed_is_torn(self):
        # The shell that opens the file gives its number to a program that takes its place.
        script = """
            [ -e ck/ck.1.0 ] && { ls ck > seen; exit 0; }
            echo whole > ck/ck.1.0; sleep 1
            bash -c 'exec sh -c "echo half; kill -9 \\$\\$" > ck/ck.2.0'
            exit 1"""
        self.run_job(script, "--restarts", "1", "--drain", "none")
        self.assertEqual(self.read("seen"), "ck.1.0\n")

    def test_whatever_a_redirection_leads_to_is_complete_at_its_end(self):
        script = """
            bash -c 'exec /bin/echo one > ck/ck.1.0'
            bash -c 'exec sh -c "exec /bin/echo two" > ck/ck.2.0'
            bash -c '{ echo th; /bin/echo ree; } > ck/ck.3.0'
            bash -c '( /bin/echo four ) > ck/ck.4.0'
            bash -c 'exec 3> ck/ck.5.0; /bin/echo five >&3; exec 3>&-'
            bash -c 'env -i /bin/echo six > ck/ck.6.0' 2> /dev/null
            bash -c 'grep nothing program > ck/ck.7.0'
            bash -c '/no/such/program > ck/ck.8.0' 2> /dev/null
            bash -c '( echo nine; exit 3 ) > ck/ck.9.0' 2> /dev/null
            exit 0"""
        self.run_job(script, "--keep", "99", "--drain", "none")
        self.assertEqual({step: state for step, state in self.states().items() if state not in ("whole", "superseded")}, {})
        self.assertEqual(set(self.states()), set(range(1, 10)))
        os.mkdir(self.path("out"))
        for step, content in enumerate(("one\n", "two\n", "th\nree\n", "four\n", "five\n", "six\n", "", "", "nine\n"), 1):
            self.holdfast("checkpoints", "--drain", str(step), "out")
            self.assertEqual(self.read(f"out/ck/ck.{step}.0"), content)

    def test_a_program_that_gives_up_in_the_middle_of_a_file_leaves_none(self):
        self.run_python("""
import os, time
if os.path.exists("ck/ck.1.0"):
    open("seen", "w").write(" ".join(os.listdir("ck")))
    os._exit(0)
with open("ck/ck.1.0", "w") as file: file.write("whole")
time.sleep(1)
half = os.open("ck/ck.2.0", os.O_WRONLY | os.O_CREAT)
os.write(half, b"half")
os._exit(1)
""", "--restarts", "1", "--drain", "none")
        self.assertEqual(self.read("seen"), "ck.1.0")

    def test_so_does_one_that_returns_an_error(self):
        compiler = shutil.which("cc") or self.skipTest("there is no C compiler")
        with open(self.path("gives_up.c"), "w") as file:
            file.write("""#include <stdio.h>
                #include <unistd.h>
                int main(void) {
                  if (access("ck/ck.1.0", F_OK) == 0) return access("ck/ck.2.0", F_OK) == 0 ? 9 : 0;
                  FILE* whole = fopen("ck/ck.1.0", "w");
                  if (!whole || fputs("whole", whole) < 0 || fclose(whole) != 0) return 8;
                  sleep(1);
                  FILE* half = fopen("ck/ck.2.0", "w");
                  return half && fputs("half", half) >= 0 ? 1 : 8;
                }""")
        subprocess.run([compiler, "gives_up.c", "-o", "gives_up"], cwd=self.dir, check=True)
        self.run_job("exec ./gives_up", "--restarts", "1", "--drain", "none")

    def test_threads_that_close_and_open_checkpoints_side_by_side_leave_none_behind(self):
        compiler = shutil.which("cc") or self.skipTest("there is no C compiler")
        with open(self.path("threads.c"), "w") as file:
            file.write("""#include <fcntl.h>
                #include <pthread.h>
                #include <stdio.h>
                #include <unistd.h>
                static void* write_some(void* which) {
                  char path[99];
                  for (int i = 1; i <= 25; ++i) {
                    sprintf(path, "ck/ck.%d.0", *(int*)which * 100 + i);
                    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
                    if (fd < 0 || write(fd, "hello", 5) != 5 || close(fd) != 0) perror(path);
                  }
                  return NULL;
                }
                int main(void) {
                  pthread_t threads[4];
                  int numbers[4] = {1, 2, 3, 4};
                  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, write_some, &numbers[i]);
                  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
                }""")
        subprocess.run([compiler, "threads.c", "-o", "threads", "-pthread"], cwd=self.dir, check=True)
        done = self.run_job("exec ./threads", "--keep", "999", "--drain", "none", nodes=2, scheme="mirror:2")
        self.assertNotIn("ck/ck.", done.stderr)
        self.assertEqual([step for step, state in self.states().items() if state not in ("whole", "superseded")], [])
        self.assertEqual(len(self.states()), 100)

    def test_processes_that_begin_one_checkpoint_at_the_same_moment_all_open_it(self):
        self.run_python("""
import os
for how in ("w", "a"):
    for step in range(60):
        for child in range(2):
            if os.fork() == 0:
                try:
                    open(f"ck/ck.{step}.0", how).close()
                except OSError as error:
                    open("failed", "a").write(f"{error}\\n")
                os._exit(0)
        for child in range(2): os.wait()
""", "--drain", "none")
        self.assertFalse(os.path.exists(self.path("failed")), os.path.exists(self.path("failed")) and self.read("failed"))

    def test_a_file_that_is_open_to_write_gets_no_checkpoints_name(self):
        done = self.run_python("""
import errno, os
file = open("coming", "w")
file.write("first")
try:
    os.rename("coming", "ck/ck.1.0")
    raise SystemExit("it was renamed")
except OSError as error:
    if error.errno != errno.EBUSY: raise
file.write(", second")
file.close()
os.rename("coming", "ck/ck.1.0")
""")
        self.assertIn("open to write, and what it writes later on would be lost; close it before the rename", done.stderr)
        self.assertEqual(self.read("ck/ck.1.0"), "first, second")

    def test_permissions_are_kept_and_changed_as_the_program_says(self):
        self.run_job("""
            umask 027; echo a > ck/ck.1.0; stat -c %a ck/ck.1.0 > modes
            umask 077; echo b >> ck/ck.1.0; stat -c %a ck/ck.1.0 >> modes
            printf X | dd of=ck/ck.1.0 conv=notrunc 2> /dev/null; stat -c %a ck/ck.1.0 >> modes
            truncate -s 3 ck/ck.1.0; stat -c %a ck/ck.1.0 >> modes
            echo c > ck/ck.1.0; stat -c %a ck/ck.1.0 >> modes
            chmod 604 ck/ck.1.0 && touch -d @1000 ck/ck.1.0; stat -c '%a %Y' ck/ck.1.0 >> modes
            echo d > coming; chmod 666 coming; mv coming ck/ck.2.0""")
        self.assertEqual(self.read("modes"), "640\n" * 5 + "604 1000\n")
        self.assertEqual(os.stat(self.path("ck/ck.2.0")).st_mode & 0o777, 0o666)
        # Also where the file is protected by then, and for each attempt to come.
        self.run_job(f"umask 022; echo e > ck/ck.3.0; {self.until('3 *whole')}; chmod 710 ck/ck.3.0", "--resume")
        self.assertEqual(os.stat(self.path("ck/ck.3.0")).st_mode & 0o777, 0o710)
        self.run_job("stat -c %a ck/ck.3.0 > modes", "--resume")
        self.assertEqual(self.read("modes"), "710\n")
        # And where any rank may write it.
        for number, pattern in enumerate(("ck/all.{step}", "ck/p*"), 4):
            path = "ck/all.4" if number == 4 else "ck/p"
            self.run_job(f"umask 022; echo f > {path}; chmod 600 {path}; stat -c %a {path} > modes; chmod 400 {path}; stat -c %a {path} >> modes", "--protect-at", "close", pattern=pattern)
            self.assertEqual(self.read("modes"), "600\n400\n")
            self.assertEqual(os.stat(self.path(path)).st_mode & 0o777, 0o400)

    def test_what_was_written_in_the_place_of_a_plain_file_and_removed_is_gone(self):
        with open(self.path("ck/ck.5.0"), "w") as plain:
            plain.write("old\n")
        self.run_job("echo new > ck/ck.5.0; rm ck/ck.5.0; echo six > ck/ck.6.0")
        self.assertEqual(os.listdir(self.path("ck")), ["ck.6.0"])

    def test_a_step_of_several_programs_is_not_named_by_its_number_alone(self):
        os.mkdir(self.path("other"))
        self.run_job("echo one > ck/ck.1.0", "--drain", "none")
        self.run_job("echo other > other/ck.1.0", "--drain", "none", pattern="other/ck.{step}.{rank}")
        for what in (("--drop", "1"), ("--drain", "1")):
            refused = self.holdfast("checkpoints", *what, expect=3)
            self.assert_one_sentence(refused.stderr, "several programs have a checkpoint 1", self.path("ck/ck.1.0"), self.path("other/ck.1.0"), "by its pattern")
        self.holdfast("checkpoints", "other/ck.{step}.{rank}", "--drop", "1")
        self.assertEqual(len(self.json("checkpoints")["checkpoints"]), 1)
        self.run_job("echo again > ck/ck.1.0", "--drain", "none")  # a run of its own, of the same program
        self.assertIn("2 files of checkpoint 1 dropped", self.holdfast("checkpoints", "--drop", "1").stdout)

    def test_a_drop_names_the_nodes_that_keep_their_part(self):
        self.run_job("echo ten > ck/ck.10.0; echo twenty > ck/ck.20.0", "--drain", "none", "--keep", "9", nodes=2, scheme="mirror:2")
        self.lose_agent("n2")
        said = self.holdfast("checkpoints", "--drop", "20", expect=3)
        self.assert_one_sentence(said.stderr, "checkpoint 20 is not dropped on n2", "repeat")
        self.holdfast("agents", "start", "--node", "n2", self.path("holdfast-nodes/n2"))
        self.assertEqual(set(self.states()), {10, 20})
        self.holdfast("checkpoints", "--drop", "20")
        self.assertEqual(set(self.states()), {10})

    def test_a_protector_that_dies_is_started_anew(self):
        kill = """python3 -c 'import os, signal
run = os.popen("ps -o ppid= -p " + os.environ["LAUNCHER"]).read().strip()
for child in os.popen("ps -o pid=,comm= --ppid " + run):
    pid, name = child.split(None, 1)
    if name.strip() == "protector": os.kill(int(pid), signal.SIGKILL); print("killed")
' >> killed; """
        script = "export LAUNCHER=$PPID; if [ -e ck/ck.2.0 ]; then " + kill + """echo three > ck/ck.3.0; exit 0; fi
            echo one > ck/ck.1.0; """ + kill + "echo two > ck/ck.2.0; sleep 3; exit 1"
        done = self.run_job(script, "--restarts", "1", "--drain", "none", nodes=3, scheme="rs:2+1")
        self.assertEqual(self.read("killed"), "killed\n" * 6)
        self.assertRegex(done.stderr, "the protector of node n1 (has ended|was ended by signal 9); it is started anew")
        self.assertIn("attempt 2 begins with checkpoint 2", done.stderr)
        self.assertEqual(self.states()[3], "whole")

    def test_a_protector_whose_way_breaks_does_not_end_the_attempt(self):
        """It is reached through a program that is killed while a child has the file open, and so is ssh when its connection breaks."""
        there = self.path("there")
        with open(there, "w") as script:
            script.write('#!/bin/sh\nnode=$1; shift\ncase "$node $*" in "far "*protector*) sh -c "echo \\$\\$ >> way; exec cat" | sh -c "$*"; exit;; esac\nexec sh -c "$*"\n')
        os.chmod(there, 0o755)
        with open(self.path("program.py"), "w") as program:
            program.write("""
import os, signal, subprocess, time
def ways(least):
    while not os.path.exists("way") or len(open("way").readlines()) < least: time.sleep(0.05)
    return [int(line) for line in open("way")]
with open("ck/ck.1.0", "w") as file:
    file.write("whole")
    child = subprocess.Popen(["sleep", "1000"], stdout=file)
os.kill(ways(1)[0], signal.SIGKILL)
ways(2)
child.kill(), child.wait()
""")
        self.env |= {"PMI_RANK": "0", "PMI_SIZE": "1"}
        done = self.holdfast("run", "--local", self.path("disk-{node}"), "--hosts", f"{os.uname().nodename.split('.')[0]},b,far", "--with", f"{there} {{node}}",
                             "--protect", "rs:2+1", "--checkpoint", "ck/ck.{step}.{rank}", "--library", "posix", "--",
                             "env", "SLURMD_NODENAME=far", "python3", "program.py")
        self.assertRegex(done.stderr, "the protector of node far has ended( with 3)?; it is started anew")
        self.assertIn("checkpoint 1 is whole", done.stderr)
        self.assertEqual(self.read("ck/ck.1.0"), "whole")

    def test_a_job_that_wrote_some_and_made_none_whole_says_so_and_keeps_them(self):
        done = self.run_job("[ $RANK = 1 ] || echo half > ck/ck.10.0", "--drain", "none", ranks=2, expect=123)
        self.assertIn("no checkpoint is whole: of the 2 files of checkpoint 10 1 are protected", done.stderr)
        self.assertEqual(len(glob.glob(self.path("holdfast-nodes/n1/.checkpoints/*/1.*/protected/10.*"))), 1)

    # Which is the newest.

    def test_of_slots_that_are_written_in_turn_the_last_one_that_is_whole_counts(self):
        script = """
            [ -e started ] && { cat ck/ck.0.$RANK ck/ck.1.$RANK >> seen 2> /dev/null; exit 0; }
            [ $RANK = 1 ] && touch started
            for value in 1 2 3 4; do echo $value of $RANK > ck/ck.$((value % 2)).$RANK; sleep 0.7; done
            [ $RANK = 0 ] && { echo 5 of 0 > ck/ck.1.0; sleep 1; exit 0; }
            exec 3> ck/ck.1.1; echo half >&3; kill -9 $$"""
        done = self.run_job(script, "--restarts", "1", "--drain", "none", ranks=2)
        self.assertIn("attempt 2 begins with checkpoint 0", done.stderr)
        self.assertEqual(self.read("seen"), "4 of 0\n4 of 1\n")

    def test_steps_that_count_down_are_kept_as_they_were_written(self):
        self.run_job("for s in 50 40 30 20 10; do echo $s > ck/ck.$s.0; sleep 0.4; done")
        self.assertEqual(os.listdir(self.path("ck")), ["ck.10.0"])
        self.assertEqual(self.states(), {10: "whole", 20: "superseded"})

    def test_nobody_goes_back_behind_a_later_run_without_a_word(self):
        here = {"nodes": 3, "scheme": "rs:2+1"}
        self.run_job("echo ten > ck/ck.10.0", "--drain", "none", **here)
        time.sleep(1)  # runs sort by the second of their beginning
        self.run_job("echo twenty > ck/ck.20.0", "--drain", "none", **here)
        self.drop_from_nodes(20, "n1", "n2")
        done = self.run_job("cat ck/ck.10.0 > seen", "--resume", "--drain", "none", **here)
        self.assertRegex(done.stderr, "checkpoint 20 cannot be read: more of its nodes are lost .*bring back the data of n1, n2; back to checkpoint 10")
        self.assertEqual(self.read("seen"), "ten\n")

    # Files that are updated in place, or appended to.

    def updated(self, first, second, patterns="ck/ck.{step}.{rank}", begin="for s in 1 2; do echo $s of $RANK > ck/ck.$s.$RANK; done"):
        """Two ranks, one after the other, of which the second is killed. What the second attempt finds."""
        wait = """protected() { for i in $(seq 300); do LD_PRELOAD= ls holdfast-nodes/*/.checkpoints/*/*/protected | grep -q "[|]$1$" && break; sleep 0.1; done; }"""
        done = self.run_job(f"""{wait}; [ -e begun.$RANK ] && {{ cat ck/ck.2.$RANK restart.$RANK >> got 2> /dev/null || cat ck/ck.1.$RANK >> got; exit 0; }}
            touch begun.$RANK; {begin}; if [ $RANK = 0 ]; then {first}; else {second}; kill -9 $$; fi""",
                            "--restarts", "1", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1", pattern=patterns)
        return done.stderr, self.read("got")

    MORE = "printf 'and more\n' >> ck/ck.2.$RANK"
    HALF = "protected ck.2.1; exec 4>> ck/ck.2.1; echo half >&4"

    def test_a_step_in_which_a_writer_died_that_others_had_appended_to_gives_way_to_an_older_one(self):
        said, got = self.updated(self.MORE, self.HALF)
        self.assertRegex(said, "checkpoint 2 is passed over: .*/ck/ck.2.1 was not written again to its end, and other files of it had been before")
        self.assertIn("attempt 2 begins with checkpoint 1,", said)
        self.assertEqual(got, "1 of 0\n1 of 1\n")
        self.assertEqual(self.states(), {1: "whole", 2: "torn"})
        for pattern in ([], ["ck/ck.{step}.{rank}"]):
            refused = self.holdfast("checkpoints", *pattern, "--drain", "2", expect=3).stderr
            self.assert_one_sentence(refused, "checkpoint 2 is not whole", "ck/ck.2.1 was not written again to its end")
        again = self.run_job("cat ck/ck.1.$RANK > seen.$RANK", "--resume", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1").stderr
        self.assertIn("attempt 3 begins with checkpoint 1,", again)
        self.assertEqual((self.read("seen.0"), self.read("seen.1")), ("1 of 0\n", "1 of 1\n"))

    def test_where_there_is_no_older_one_it_is_said_that_the_ranks_may_differ(self):
        said, got = self.updated(self.MORE, self.HALF, begin="echo 2 of $RANK > ck/ck.2.$RANK")
        self.assertIn("attempt 2 begins with checkpoint 2,", said)
        self.assertIn("1 of the 2 files of checkpoint 2 was written again more often than the others (the first is that of rank 0)", said)
        self.assertEqual(got, "2 of 0\nand more\n2 of 1\n")

    def test_a_file_that_was_updated_in_place_by_one_rank_is_no_secret(self):
        update = "protected restart.0; printf new | dd of=restart.0 conv=notrunc 2> /dev/null"
        said, got = self.updated(update, ":", patterns="restart.{rank}", begin="echo old of $RANK > restart.$RANK")
        self.assertIn("attempt 2 begins with checkpoint 1,", said)
        self.assertIn("1 of the 2 files of checkpoint 1 was written again more often than the others (the first is that of rank 0)", said)
        self.assertEqual(got, "new of 0\nold of 1\n")

    def test_what_was_before_the_first_update_fits_together(self):
        said, got = self.updated(":", self.HALF)
        self.assertIn("attempt 2 begins with checkpoint 2,", said)
        self.assertNotIn("passed over", said)
        self.assertNotIn("written again", said)
        self.assertEqual(got, "2 of 0\n2 of 1\n")

    def test_a_program_whose_first_rank_always_appends_is_not_warned_of_that(self):
        header = "for s in 1 2; do echo $s of $RANK > ck/ck.$s.$RANK; [ $RANK = 1 ] || echo more >> ck/ck.$s.0; done"
        said, got = self.updated(":", ":", begin=header)
        self.assertIn("attempt 2 begins with checkpoint 2,", said)
        self.assertNotIn("written again", said)
        self.assertEqual(got, "2 of 0\nmore\n2 of 1\n")

    # Files that are written by several opens.

    def written_in_two(self, last, *options, again="exit 0"):
        """Two ranks, one after the other, that write steps 1 and 2 by two opens each, and then `last`. What `run` says, and what later attempts find of each step."""
        done = self.run_job(f"""[ -e begun.$RANK ] && {{ for s in 1 2 3; do echo $s: $(cat ck/ck.$s.$RANK); done >> got.$RANK 2> /dev/null; {again}; }}
            touch begun.$RANK; for s in 1 2; do echo head > ck/ck.$s.$RANK; echo body >> ck/ck.$s.$RANK; done
            {last}""", "--drain", "none", *options, ranks=2, nodes=3, scheme="rs:2+1")
        return done.stderr, [self.read(f"got.{rank}") for rank in range(2)] if os.path.exists(self.path("got.0")) else []

    ONLY_SECOND = "1:\n2: head body\n3:\n"

    def test_a_job_that_dies_between_two_opens_of_a_step_goes_on_from_the_step_before(self):
        said, got = self.written_in_two("echo head > ck/ck.3.$RANK; [ $RANK = 0 ] || kill -9 $$", "--restarts", "1")
        self.assertRegex(said, "checkpoint 3 is passed over: .*/ck/ck.3.0 was closed 1 time, and those before it 2 times: it may be written in part")
        self.assertIn("attempt 2 begins with checkpoint 2,", said)
        self.assertEqual(got, [self.ONLY_SECOND] * 2)

    def test_the_same_where_one_rank_was_further(self):
        last = "echo head > ck/ck.3.$RANK; [ $RANK = 1 ] && kill -9 $$; echo body >> ck/ck.3.0"
        said, got = self.written_in_two(last, "--restarts", "2", again="[ -e again ] && exit 0; touch again; kill -9 $$")
        self.assertEqual(said.count("checkpoint 3 is passed over"), 2, "what shows it stays as long as the checkpoint")
        self.assertIn("attempt 3 begins with checkpoint 2,", said)
        self.assertEqual(got, [self.ONLY_SECOND * 2, self.ONLY_SECOND])
        refused = self.holdfast("checkpoints", "--drain", "3", expect=3).stderr
        self.assert_one_sentence(refused, "checkpoint 3 is not whole", "/ck/ck.3.1 was closed 1 time, and those before it 2 times")

    def test_a_last_step_that_is_closed_fewer_times_is_whole_where_the_program_ends_well(self):
        said, _ = self.written_in_two("echo all > ck/ck.3.$RANK")
        self.assertIn("checkpoint 3 is whole", said)
        self.assertEqual({step: self.states()[step] for step in (2, 3)}, {2: "superseded", 3: "whole"})
        again = self.run_job("cat ck/ck.3.$RANK > seen.$RANK", "--resume", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1").stderr
        self.assertIn("attempt 2 begins with checkpoint 3,", again)
        self.assertEqual((self.read("seen.0"), self.read("seen.1")), ("all\n", "all\n"))
        again = self.run_job("true", "--resume", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1").stderr
        self.assertIn("begins with checkpoint 3,", again, "the first attempt has ended well, whatever came after it")

    def test_what_a_rename_replaces_in_its_step_was_closed_once(self):
        script = """[ -e begun.$RANK ] && { cat ck/ck.3.$RANK ck/ck.2.$RANK >> got 2> /dev/null; exit 0; }; touch begun.$RANK
            for s in 1 2 3; do echo draft > ck/ck.$s.$RANK; [ $s.$RANK = 3.1 ] && kill -9 $$; echo $s of $RANK > new.$RANK; mv new.$RANK ck/ck.$s.$RANK; done"""
        done = self.run_job(script, "--restarts", "1", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1")
        self.assertRegex(done.stderr, "checkpoint 3 is passed over: .*/ck/ck.3.1 was closed 1 time, and those before it 2 times")
        self.assertEqual(self.read("got"), "2 of 0\n2 of 1\n")

    def test_a_file_that_is_cut_to_its_length_by_its_last_open_was_closed_twice(self):
        again = "[ -e ck/ck.3.$RANK ] && echo third >> got; [ -e ck/ck.2.$RANK ] && echo second >> got; exit 0"
        script = f"""[ -e begun.$RANK ] && {{ {again}; }}; touch begun.$RANK
            for s in 1 2 3; do echo head > ck/ck.$s.$RANK; [ $s.$RANK = 3.1 ] && kill -9 $$; printf 'body and rest' >> ck/ck.$s.$RANK
              [ $s = 2 ] && truncate -s 9 ck/ck.$s.$RANK; done; exit 0"""
        self.run_job(script, "--restarts", "1", "--drain", "none", ranks=2, nodes=3, scheme="rs:2+1")
        self.assertEqual(self.read("got"), "second\n" * 2)

    # Links that a program makes.

    def test_a_link_to_a_checkpoint_leads_to_its_content(self):
        script = """
            if [ -e ck/latest.$RANK ]; then cat ck/latest.$RANK > seen; stat -L -c %s ck/latest.$RANK >> seen; exit 0; fi
            echo one > ck/ck.1.0; ln -s ck.1.0 ck/latest.0; cat ck/latest.0 > now; readlink ck/latest.0 >> now
            echo more >> ck/latest.0; cat ck/ck.1.0 >> now; [ -L ck/latest.0 ] && [ -f ck/latest.0 ] && echo both >> now
            echo anew > ck/latest.0; python3 -c 'print(open("ck/latest.0").read(), end="")' >> now"""
        self.run_job(script, "--drain", "none")
        self.assertEqual(self.read("now"), "one\nck.1.0\none\nmore\nboth\nanew\n")
        self.run_job(script, "--resume", "--drain", "none")
        self.assertEqual(self.read("seen"), "anew\n5\n")

    def test_a_rename_to_its_own_name_leaves_a_checkpoint_where_it_is(self):
        self.run_python("""
import os
open("ck/ck.1.0", "w").write("content")
os.rename("ck/ck.1.0", "ck/../ck/ck.1.0")
assert open("ck/ck.1.0").read() == "content"
""", "--keep", "9")
        self.assertEqual(self.read("ck/ck.1.0"), "content")
        self.assertEqual(set(self.states()), {1})

    # What cannot be a checkpoint.

    def test_a_path_that_is_too_long_is_refused_at_the_programs_open(self):
        deep = "/".join(["d" * 100] * 3)
        os.makedirs(self.path(deep))
        done = self.run_job(f"cd {deep}; (echo x > ck.1.0); echo $? >> said", pattern=deep + "/ck.{step}.{rank}", expect=None)
        self.assertIn("too long for a checkpoint; choose a shorter one", done.stderr)
        self.assertNotEqual(self.read(deep, "said"), "0\n")

    def test_what_a_process_writes_when_its_job_has_ended_is_plain(self):
        """It is in the background of the job's script, and archives what that has written."""
        self.run_job("""(until [ -e over ]; do sleep 0.05; done; echo late > ck/ck.2.0; echo later >> ck/ck.2.0
            echo moved > new; mv new ck/ck.3.0; echo 1 again > ck/ck.1.0; cp ck/ck.1.0 copy; touch late) > /dev/null 2> said &
            echo 1 > ck/ck.1.0""")
        with open(self.path("over"), "w"):
            pass
        for _ in range(200):
            if os.path.exists(self.path("late")):
                break
            time.sleep(0.05)
        self.assertEqual([self.read(f"ck/ck.{step}.0") for step in (1, 2, 3)], ["1 again\n", "late\nlater\n", "moved\n"], self.read("said"))
        self.assertEqual(self.read("copy"), "1 again\n", "by a process that was started later")
        self.assertIn("the job has ended: what this process writes from here on is plain", self.read("said"))

    # What was there before.

    def test_a_plain_file_of_before_that_is_written_anew_does_not_come_back(self):
        for step in (4, 5, 6):
            with open(self.path(f"ck/ck.{step}.0"), "w") as file:
                file.write("old\n")
        self.run_job("echo new > ck/ck.5.0; echo six > ck/ck.6.0; echo seven > ck/ck.7.0; rm ck/ck.6.0; ls ck > seen")
        self.assertEqual(self.read("seen"), "ck.4.0\nck.5.0\nck.7.0\n")
        self.assertEqual(sorted(os.listdir(self.path("ck"))), ["ck.4.0", "ck.7.0"])
        self.assertEqual(self.read("ck/ck.4.0"), "old\n", "what the program has left alone stays")

    def test_a_plain_file_of_before_that_gets_another_checkpoints_name_serves_until_one_is_whole(self):
        """The newest state is renamed to the backup's name, and its rank dies before it writes another one. Natively the backup is what it goes on from."""
        script = """echo $(cat ck/restart.0) $(cat ck/bak.0) >> seen
            if [ ! -e died ]; then mv ck/restart.0 ck/bak.0; touch died; kill -9 $$; fi"""
        rotates = "mv ck/restart.0 ck/bak.0; cat ck/bak.0 > seen; echo 8 > ck/restart.0"
        for said, job, restart, bak in (("7 6\n7\n", script, None, "7\n"), ("7\n", rotates, "8\n", "7\n")):
            for name, state in (("restart", 7), ("bak", 6)):
                with open(self.path(f"ck/{name}.0"), "w") as file:
                    file.write(f"{state}\n")
            self.run_job(job, "--restarts", "1", "--checkpoint", "ck/bak.{rank}", pattern="ck/restart.{rank}")
            self.assertEqual(self.read("seen"), said)
            self.assertEqual(self.read("ck/bak.0"), bak)
            self.assertEqual(os.path.exists(self.path("ck/restart.0")) and self.read("ck/restart.0") or None, restart)
            os.remove(self.path("seen"))

    def test_plain_files_of_before_stay_where_the_newest_checkpoint_cannot_come_to_its_path(self):
        with open(self.path("ck/ck.5.0"), "w") as file:
            file.write("old\n")
        script = "echo new > ck/ck.5.0; echo six > ck/ck.6.0; env -u LD_PRELOAD mkdir ck/ck.6.0; exit "
        for code, expect in ((0, 123), (7, 7)):
            done = self.run_job(script + str(code), expect=expect)
            self.assertIn("checkpoint 6 is not drained", done.stderr)
            self.assertEqual(self.read("ck/ck.5.0"), "old\n")
            os.rmdir(self.path("ck/ck.6.0"))


if __name__ == "__main__":
    unittest.main()
