"""One checkpoint file that several processes hold open at once, of one node and of several, and what becomes of it when one of them is killed."""
import errno
import glob
import os
import sys
import unittest

from checkpoint_test import CheckpointTest
from command import BINARY, LOSE_AGENT

OF_ALL = "ck/ck.{step}"
SHARED = "shared:ck/ck.{step}"
WHOLE = "".join(c * 999 + "!" for c in "ABC")
THERE = "there() { until [ -e $1 ]; do sleep 0.05; done; }; "  # in a script: what waits for a file
# One of several processes: it writes its part of the file where the others write theirs. It has it open for some seconds, or until a file is there.
PART = """
import os, sys, time
name, part, parts, stays = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(fd, bytes([65 + part]) * 1000, part * 1000)
if stays[0].isdigit():
    time.sleep(float(stays))
else:
    open("open." + sys.argv[2], "w").close()
    while not os.path.exists(stays): time.sleep(0.02)
os.pwrite(fd, b"!", part * 1000 + 999)
os.close(fd)
"""
# One of several processes that count in it, each under a lock.
COUNTS = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
lock = getattr(fcntl, sys.argv[2])
for i in range(10):
    lock(fd, fcntl.LOCK_EX)
    before = os.pread(fd, 8, 0)
    os.pwrite(fd, b"%08d" % (int(before or b"0") + 1), 0)
    lock(fd, fcntl.LOCK_UN)
os.close(fd)
"""

# One of three that write it anew. The first one truncates what the others have open already; natively that is one file.
ANEW = """
import os, sys, time
def there(name):
    while not os.path.exists(name): time.sleep(0.02)
rank = int(sys.argv[1])
if rank == 0: there("open.1"), there("open.2")
fd = os.open("ck/ck.10", os.O_RDWR | os.O_CREAT | (os.O_TRUNC if rank == 0 else 0), 0o644)
open("truncated" if rank == 0 else f"open.{rank}", "w").close()
there("truncated")
os.pwrite(fd, bytes([97 + rank]) * 500, rank * 500)
os.close(fd)
"""

# The ends of programs of three ranks, which truncate the file before any of them writes.
ALL_ANEW = """
fd = os.open(name, anew, 0o644)
open(f"open.{rank}", "w").close()
there("open.0", "open.1", "open.2")
os.pwrite(fd, bytes([97 + rank]) * 500, rank * 500)
os.close(fd)
"""

# One of three: the first one makes the file, another one looks whether it may write it, and then all truncate it before any of them writes.
MADE = """
import os, sys, time
def there(*names):
    while not all(map(os.path.exists, names)): time.sleep(0.02)
rank, name = int(sys.argv[1]), "ck/ck.10"
anew = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
if rank == 0:
    os.close(os.open(name, anew, 0o644))
    open("made", "w").close()
there("made")
if rank == 1: os.close(os.open(name, os.O_RDWR))
"""

# One of three: the last one writes a header alone, with its own open. Then all truncate that, and write. sys.argv[2]: "late" where the first one does not close before the others are refused.
BEFORE = """
import errno, os, sys, time
def there(*names):
    while not all(map(os.path.exists, names)): time.sleep(0.02)
rank, late, name = int(sys.argv[1]), sys.argv[2:] == ["late"], "ck/ck.10"
anew = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
if rank == 2:
    fd = os.open(name, anew, 0o644)
    os.write(fd, b"a header that is longer than a part" * 100)
    if not late: os.close(fd)
    open("written", "w").close()
there("written")
if late and rank < 2:
    try: os.open(name, anew, 0o644)
    except OSError as failed: open(f"refused.{rank}", "w").write(errno.errorcode[failed.errno])
if late:
    there("refused.0", "refused.1")
    if rank == 2: os.close(fd), open("closed", "w").close()
    there("closed")
"""

# One of three: the first one makes a plain file a checkpoint, and all write to it.
PLAIN = """
import os, sys, time
def there(*names):
    while not all(map(os.path.exists, names)): time.sleep(0.02)
rank = int(sys.argv[1])
for name in ("ck/ck.10", "ck/ck.20"):
    if rank == 0:
        open("ck/plain", "w").write("h" * 500)
        os.rename("ck/plain", name)
        open(name[3:], "w").close()
    there(name[3:])
    with open(name) as file: assert file.read() == "h" * 500, name
    open(f"read.{name[3:]}.{rank}", "w").close()
    there(*[f"read.{name[3:]}.{other}" for other in range(3)])
    fd = os.open(name, os.O_RDWR)
    os.pwrite(fd, bytes([97 + rank]) * 500, 500 + rank * 500)
    os.close(fd)
"""

# The C library keeps the stream that it has.
REOPENED = """
import ctypes
c = ctypes.CDLL(None, use_errno=True)
c.fopen.restype = c.freopen.restype = ctypes.c_void_p
c.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
stream = c.fopen(b"/dev/null", b"w")
print(c.freopen(b"ck/ck.10", b"r+", stream), ctypes.get_errno())
"""


class CheckpointSharing(CheckpointTest):
    def setUp(self):
        super().setUp()
        with open(self.path("counts.py"), "w") as file:
            file.write(COUNTS)
        with open(self.path("part.py"), "w") as file:
            file.write(PART)

    def job(self, script, *options, ranks=1, pattern=OF_ALL, **more):
        return self.run_job(script, "--drain", "none", *options, ranks=ranks, pattern=pattern, nodes=3, scheme="rs:2+1", **more)

    @staticmethod
    def at_once(script, ranks):
        """The script as the ranks run it side by side."""
        return f"""{{ ( {script} ); touch ended.$RANK; }} &
            [ $RANK = {ranks - 1} ] && {{ until [ $(ls ended.* | wc -l) = {ranks} ]; do sleep 0.05; done; rm ended.*; }}; true"""

    # Of one node.

    def test_processes_of_a_node_write_one_file_at_once(self):
        parts = 5
        script = f"""for part in $(seq 0 {parts - 1}); do {sys.executable} part.py ck/ck.10 $part {parts} 0.$(($part * 2)) & done; wait
            cat ck/ck.10 > seen; echo one > ck/ck.20"""
        self.job(script, "--keep", "9")
        whole = "".join(chr(65 + part) * 999 + "!" for part in range(parts))
        self.assertEqual(self.read("seen"), whole)
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.job("true", "--resume")
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.read("ck/ck.10"), whole)

    def test_it_is_closed_when_the_last_has_closed_it(self):
        script = THERE + f"""{sys.executable} part.py ck/ck.10 0 2 looked & there open.0; {sys.executable} part.py ck/ck.10 1 2 0
            sleep 1; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; touch looked; wait"""
        self.job(script)
        self.assertRegex(self.read("seen"), "10 *writing")
        self.assertEqual(self.states(), {10: "whole"})

    def killed(self, ends):
        """A job whose second checkpoint another process has open when it is killed; what its next attempt begins with."""
        script = f"""[ -e tried ] && {{ cat ck/* > got; exit 0; }}; touch tried
            echo one > ck/ck.10; {self.until("10 *whole")}
            {ends}; sleep 1; exit 7"""
        done = self.job(script, "--restarts", "1")
        self.assertIn("not whole, and neither opened nor listed from here on: checkpoint 20", done.stderr)
        self.assertIn("attempt 2 begins with checkpoint 10", done.stderr)
        self.assertEqual(self.read("got"), "one\n")

    def test_one_that_is_killed_after_another_has_closed_it_leaves_it_torn(self):
        self.killed(f"""{THERE} sh -c '{THERE} exec 4<> ck/ck.20; echo half >&4; touch open; there closed; kill -9 $$' & there open
            (exec 3<> ck/ck.20; echo mine >&3); touch closed; wait""")

    def test_one_that_is_killed_before_another_closes_it_leaves_it_torn(self):
        self.killed("exec 3<> ck/ck.20; sh -c 'exec 4<> ck/ck.20; echo half >&4; kill -9 $$'; echo mine >&3; exec 3>&-")

    def test_one_that_gives_up_leaves_it_torn(self):
        self.killed("exec 3<> ck/ck.20; sh -c 'exec 4<> ck/ck.20; echo half >&4; exit 9'; echo mine >&3; exec 3>&-")

    def test_who_opens_it_after_their_death_goes_on_from_there(self):
        script = """sh -c 'exec 3> ck/ck.10; echo half >&3; kill -9 $$'; echo more >> ck/ck.10
            sh -c 'exec 3> ck/ck.20; echo half >&3; kill -9 $$'; echo anew > ck/ck.20; cat ck/ck.10 ck/ck.20 > seen"""
        self.job(script, "--keep", "9")
        self.assertEqual(self.read("seen"), "half\nmore\nanew\n")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})

    def test_commands_that_inherit_a_descriptor_and_are_killed_are_nobody(self):
        self.job("exec 3> ck/ck.10; sh -c 'kill -9 $$'; yes | head -n 1 >&3; exec 3>&-")
        self.assertEqual(self.states(), {10: "whole"})

    # Of several nodes.

    def test_a_second_node_is_refused_by_name(self):
        script = THERE + """[ $RANK = 0 ] && { (exec 3> ck/ck.10; touch open; there tried; echo by 0 >&3; exec 3>&-; touch closed) & there open; exit 0; }
            echo by 1 > ck/ck.10 && echo wrong >> got; touch tried; there closed"""
        done = self.job(script, ranks=2)
        self.assertRegex(done.stderr, "/ck/ck.10 is open to write on node n1, and two nodes cannot write it at once: "
                                      "put 'shared:' before its pattern if ranks write one file, else put {rank} into its name")
        self.assertRegex(done.stderr, "ck/ck.10.*busy")
        self.assertEqual(self.states(), {10: "whole"})
        self.job("cat ck/ck.10 > got", "--resume")
        self.assertEqual(self.read("got"), "by 0\n")

    def test_two_nodes_that_begin_it_at_once_leave_one_of_them_or_none(self):
        script = THERE + """writes() { echo by $RANK >> got; touch tried.$RANK; there tried.$1; echo by $RANK >&3; }
            [ $RANK = 0 ] && { (until [ -e go ]; do :; done; writes 1 3> ck/ck.10; touch tried.0 ended) & exit 0; }
            touch go; writes 0 3> ck/ck.10; touch tried.1; there ended"""
        open(self.path("got"), "w").close()
        done = self.job(script, ranks=2, expect=None)
        winners = self.read("got").splitlines()
        self.assertLessEqual(len(winners), 1)
        self.assertNotIn("fails", done.stderr)
        self.assertEqual(self.states(), {10: "whole"} if winners else {})

    def test_one_node_after_another_goes_on_from_what_was_closed(self):
        script = "for i in 1 2 3; do echo $i of $RANK >> ck/ck.10; done"
        self.job(script, ranks=3)
        self.job("cat ck/ck.10 > got", "--resume")
        self.assertEqual(self.read("got"), "".join(f"{i} of {rank}\n" for rank in range(3) for i in (1, 2, 3)))

    # Of several nodes, where the pattern says so.

    def test_a_file_that_the_pattern_calls_shared_is_written_by_one_node_after_another(self):
        self.job("python3 part.py ck/ck.10 $RANK 3 0", ranks=3, pattern=SHARED)
        self.assertEqual(self.states(), {10: "whole"})
        self.job("cat ck/ck.10 > got", "--resume", pattern=SHARED)
        self.assertEqual(self.read("got"), WHOLE)

    def test_so_it_is_by_all_at_once(self):
        self.job(self.at_once("python3 part.py ck/ck.10 $RANK 3 2", 3), ranks=3, pattern=SHARED)
        self.assertEqual(self.states(), {10: "whole"})
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.read("ck/ck.10"), WHOLE)

    def test_what_one_of_them_truncates_is_the_file_that_the_others_have_open(self):
        with open(self.path("anew.py"), "w") as file:
            file.write(ANEW)
        self.job("python3 part.py ck/ck.10 $RANK 3 0", ranks=3, pattern=SHARED)
        self.job(self.at_once(f"{sys.executable} anew.py $RANK", 3), "--resume", ranks=3, pattern=SHARED)
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.read("ck/ck.10"), "".join(c * 500 for c in "abc"))

    def test_ranks_meet_also_where_some_have_opened_it_before(self):
        with open(self.path("made.py"), "w") as file:
            file.write(MADE + ALL_ANEW)
        self.job(self.at_once(f"{sys.executable} made.py $RANK", 3), ranks=3, pattern=SHARED)
        self.assertEqual(self.states(), {10: "whole"})
        self.holdfast("checkpoints", "--drain", "10")
        self.assertEqual(self.read("ck/ck.10"), "".join(c * 500 for c in "abc"))

    def test_a_plain_file_that_got_its_name_is_there_for_all_nodes(self):
        with open(self.path("plain.py"), "w") as file:
            file.write(PLAIN)
        self.job(self.at_once(f"{sys.executable} plain.py $RANK", 3), ranks=3, pattern=SHARED)
        self.holdfast("checkpoints", "--drain", "20")
        self.assertEqual(self.read("ck/ck.20"), "".join(c * 500 for c in "habc"))

    def test_a_stream_is_not_made_to_read_and_write_one(self):
        with open(self.path("reopened.py"), "w") as file:
            file.write(REOPENED)
        done = self.job(f"echo one > ck/ck.10; {sys.executable} reopened.py > got; cat ck/ck.10 > seen", pattern=SHARED)
        self.assertEqual(self.read("got"), f"None {errno.EOPNOTSUPP}\n")
        self.assertEqual(self.read("seen"), "one\n")
        self.assertIn("a stream cannot be made to read and write a 'shared:' file by freopen; open it with fopen", done.stderr)

    def test_what_one_has_written_before_is_gone_when_all_truncate_it(self):
        with open(self.path("before.py"), "w") as file:
            file.write(BEFORE + ALL_ANEW)
        for late in ("", "late"):
            for name in ("ck/ck.10", "written", "open.0", "open.1", "open.2"):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            done = self.job(self.at_once(f"{sys.executable} before.py $RANK {late}", 3), ranks=3, pattern=SHARED)
            self.holdfast("checkpoints", "--drain", "10")
            self.assertEqual(self.read("ck/ck.10"), "".join(c * 500 for c in "abc"))
        self.assertEqual([self.read(f"refused.{rank}") for rank in (0, 1)], ["EBUSY"] * 2)
        self.assertIn("has written to it, and has it open: to truncate it now would take that from it", done.stderr)

    def test_it_is_whole_while_the_job_runs_when_all_have_begun_another(self):
        script = f"""for step in 10 20; do {sys.executable} part.py ck/ck.$step $RANK 3 0; done
            [ $RANK = 1 ] && env -u LD_PRELOAD {BINARY} checkpoints > before 2> /dev/null
            [ $RANK = 2 ] && {{ {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; }}; true"""
        self.job(script, "--keep", "9", ranks=3, pattern=SHARED)
        self.assertRegex(self.read("before"), "10 *writing")
        self.assertRegex(self.read("seen"), "10 *whole")
        self.assertRegex(self.read("seen"), "20 *writing")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})

    def test_one_that_is_killed_on_another_node_leaves_it_torn(self):
        """Whoever closes it later, and though the job ends well."""
        script = """exec 3<> ck/ck.10; echo by $RANK >&3; exec 3>&-
            [ $RANK = 1 ] && sh -c 'exec 4<> ck/ck.20; echo half >&4; kill -9 $$'
            exec 3<> ck/ck.20; echo mine >&3; exec 3>&-"""
        done = self.job(script, ranks=3, pattern=SHARED, expect=123)
        self.assertRegex(done.stderr, "ck/ck.20 is not whole: a program on n2 that had it open to write was killed, or gave up")
        self.assertEqual(self.states(), {10: "whole", 20: "torn"})

    def test_what_ranks_only_read_is_no_version(self):
        """Though they open it to read and write. Nor are they done with the newer one."""
        script = f"""for step in 10 20; do {sys.executable} part.py ck/ck.$step $RANK 3 0; done
            [ $RANK = 2 ] || exit 0
            {self.until("10 *whole")}
            exec 4<> ck/ck.10; cat <&4 > got; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; exec 4>&-
            {sys.executable} -c 'print(open("ck/ck.10", "r+b").read().decode(), end="")' > again"""
        self.job(script, "--keep", "9", ranks=3, pattern=SHARED)
        self.assertEqual([self.read("got"), self.read("again")], [WHOLE, WHOLE])
        self.assertRegex(self.read("seen"), "10 *whole")
        self.assertRegex(self.read("seen"), "20 *writing")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.assertEqual(len({os.path.basename(at) for at in glob.glob(self.path("holdfast-nodes/n*/ck.10-*"))}), 1)

    def test_one_that_is_killed_while_it_only_reads_has_torn_nothing(self):
        script = f"""for step in 10 20; do {sys.executable} part.py ck/ck.$step $RANK 3 0; done
            [ $RANK = 2 ] && {{ {self.until("10 *whole")}; sh -c 'exec 4<> ck/ck.10; head -c 10 <&4 > got; kill -9 $$'; }}; true"""
        done = self.job(script, "--keep", "9", ranks=3, pattern=SHARED)
        self.assertEqual(self.read("got"), WHOLE[:10])
        self.assertNotIn("not whole", done.stderr)
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.assertEqual(len({os.path.basename(at) for at in glob.glob(self.path("holdfast-nodes/n*/ck.10-*"))}), 1)

    def test_a_file_completes_it(self):
        """Also where some ranks write none of it."""
        script = f"""[ $RANK = 0 ] && {sys.executable} part.py ck/ck.10 0 3 0
            [ $RANK = 1 ] && {{ echo done > ck/done.10; {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; }}; true"""
        self.job(script, "--complete", "ck/done.{step}", ranks=3, pattern=SHARED)
        self.assertRegex(self.read("seen"), "10 *whole")

    def test_it_does_when_a_node_is_lost_on_which_no_rank_is(self):
        """Two of the three ranks write nothing: their notes alone say that they are elsewhere."""
        script = f"""[ $RANK = 0 ] || {{ {THERE} there over; exit 0; }}
            {sys.executable} part.py ck/ck.10 0 3 0; {LOSE_AGENT}; lose n6
            {sys.executable} part.py ck/ck.10 1 3 0; {sys.executable} part.py ck/ck.10 2 3 0; echo done > ck/done.10
            {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; touch over"""
        done = self.run_job(script, "--complete", "ck/done.{step}", ranks=3, nodes=6, scheme="mirror:2", pattern=SHARED, at_once=True)
        self.assertRegex(self.read("seen"), "10 *whole")
        self.assertEqual(self.read("ck/ck.10"), WHOLE, done.stderr)

    def test_the_program_says_that_it_is_complete(self):
        """Each rank for itself, also one that writes nothing."""
        call = f"{sys.executable} -c 'import ctypes; ctypes.CDLL(None).holdfast_checkpoint_complete(ctypes.c_ulonglong(10))'"
        script = f"""[ $RANK = 2 ] || {sys.executable} part.py ck/ck.10 $RANK 3 0; {call}
            [ $RANK = 2 ] && {{ {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; }}; true"""
        self.job(script, ranks=3, pattern=SHARED)
        self.assertRegex(self.read("seen"), "10 *whole")

    def test_a_rank_that_nobody_has_heard_of_is_waited_for(self):
        """The job dies before its last rank has written anything: nobody knows what is missing."""
        script = f"""[ -e tried ] && {{ ls ck > got; exit 0; }}; [ $RANK = 2 ] && {{ sleep 1; touch tried; exit 7; }}
            for step in 10 20; do {sys.executable} part.py ck/ck.$step $RANK 3 0; done"""
        self.job(script, "--restarts", "1", ranks=3, pattern=SHARED)
        self.assertEqual(self.read("got"), "")

    def test_there_may_be_as_many_as_the_ranks_care_to_write(self):
        script = f"""for step in 10 20; do mkdir -p ck/$step; for name in one two; do {sys.executable} part.py ck/$step/$name $RANK 3 0; done; done
            [ $RANK = 2 ] && {{ {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > seen 2> /dev/null; }}; true"""
        self.job(script, "--keep", "9", ranks=3, pattern="shared:ck/{step}/*")
        self.assertRegex(self.read("seen"), "10 *whole")
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.holdfast("checkpoints", "--drain", "20")
        self.assertEqual([self.read("ck/20", name) for name in ("one", "two")], [WHOLE, WHOLE])

    def test_what_else_programs_of_a_shell_do_with_it(self):
        script = """[ $RANK = 0 ] || exit 0
            seq 1000 > plain; cp plain ck/ck.10; cp -p ck/ck.10 copy; cat plain >> ck/ck.10; wc -c < ck/ck.10 > seen; stat -c %s ck/ck.10 >> seen; ls ck >> seen
            truncate -s 10 ck/ck.10; cat ck/ck.10 >> seen; mv ck/ck.10 elsewhere 2> /dev/null || echo kept >> seen; rm ck/ck.10; ls ck >> seen
            cp -p plain ck/ck.20; gzip -c plain > ck/ck.30; gzip -dc ck/ck.30 | cmp - plain && echo same >> seen"""
        self.job(script, "--keep", "9", ranks=2, pattern=SHARED)
        self.assertEqual(self.read("copy"), self.read("plain"))
        length = 2 * len(self.read("plain"))
        self.assertEqual(self.read("seen"), f"{length}\n{length}\nck.10\n1\n2\n3\n4\n5\nkept\nsame\n")
        self.assertEqual(self.states(), {20: "superseded", 30: "whole"})

    def test_a_launcher_that_does_not_say_how_many_ranks_there_are(self):
        """One rank would be counted, and the file be whole when that one has written its part."""
        done = self.job("env -u PMI_SIZE sh -c 'echo mine > ck/ck.10'; true", ranks=2, pattern=SHARED)
        self.assertRegex(done.stderr, "ck/ck.10: the launcher does not give the number of ranks, which a file that all of them write needs; "
                                      "set PMI_SIZE to that number for each rank")
        self.assertEqual(self.states(), {})

    def test_ranks_take_turns_under_locks(self):
        """Each finds what the one before has written, by locks of both kinds, and nothing stays beside the file."""
        for step, kind in (("10", "lockf"), ("20", "flock")):
            with self.subTest(kind=kind):
                self.job(self.at_once(f"{sys.executable} counts.py ck/ck.{step} {kind}", 3), ranks=3, pattern=SHARED)
                self.job(f"cat ck/ck.{step} > got", "--resume", pattern=SHARED)
                self.assertEqual(self.read("got"), "00000030")
        self.assertEqual([name for name in os.listdir(self.path("ck")) if name.startswith(".holdfast")], [])

    def test_a_lock_of_another_node_is_seen(self):
        script = f"""[ $RANK = 0 ] && {{ exec 3<> ck/ck.10; flock 3; ls -A ck > listed; touch locked; until [ -e refused ]; do sleep 0.05; done; exit 0; }}
            until [ -e locked ]; do sleep 0.05; done; exec 3<> ck/ck.10; flock -n 3 || touch refused; flock 3 && touch granted"""
        self.job(self.at_once(script, 2), ranks=2, pattern=SHARED)
        self.assertTrue(os.path.exists(self.path("refused")) and os.path.exists(self.path("granted")))
        self.assertEqual(self.read("listed"), "ck.10\n")

    def test_it_can_be_mapped_to_be_read(self):
        script = f"""{sys.executable} part.py ck/ck.10 $RANK 3 0; touch written.$RANK; until [ $(ls written.* | wc -l) = 3 ]; do sleep 0.05; done
            {sys.executable} -c "
import mmap, os
fd = os.open('ck/ck.10', os.O_RDONLY)
print(mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)[:].decode())" > got.$RANK"""
        self.job(self.at_once(script, 3), ranks=3, pattern=SHARED)
        self.assertEqual([self.read(f"got.{rank}") for rank in range(3)], [WHOLE + "\n"] * 3)

    def written_and_renamed(self, step):
        """All ranks write a file of another name, and the first of them gives it its own when all have closed it."""
        return f"""mkdir -p ck/{step}; {sys.executable} part.py ck/{step}/data.new $RANK 3 0
            touch written.{step}.$RANK; until [ $(ls written.{step}.* | wc -l) = 3 ]; do sleep 0.05; done
            [ $RANK = 0 ] && {{ mv -T ck/{step}/data.new ck/{step}/data && cat ck/{step}/data > seen.{step}; ls ck/{step} >> listed; touch renamed.{step}; }}
            until [ -e renamed.{step} ]; do sleep 0.05; done
            """

    def test_it_is_renamed_when_all_have_closed_it(self):
        script = self.written_and_renamed(10) + self.written_and_renamed(20) + f"""
            [ $RANK = 2 ] && {{ {self.until("10 *whole")}; env -u LD_PRELOAD {BINARY} checkpoints > states 2> /dev/null; }}; true"""
        self.job(self.at_once(script, 3), "--keep", "9", ranks=3, pattern="shared:ck/{step}/*")
        self.assertRegex(self.read("states"), "10 *whole")
        self.assertEqual((self.read("seen.10"), self.read("seen.20"), self.read("listed")), (WHOLE, WHOLE, "data\ndata\n"))
        self.assertEqual(self.states(), {10: "superseded", 20: "whole"})
        self.job("ls ck/20 > listed; cat ck/20/data > got", "--resume", pattern="shared:ck/{step}/*")
        self.assertEqual((self.read("listed"), self.read("got")), ("data\n", WHOLE))

    def test_it_keeps_its_name_while_somebody_has_it_open(self):
        script = """[ $RANK = 0 ] || exit 0
            mkdir -p ck/10; exec 3<> ck/10/data.new; echo mine >&3; mv -T ck/10/data.new ck/10/data; ls ck/10 > listed
            exec 3>&-; mv -T ck/10/data.new ck/10/data; ls ck/10 >> listed"""
        done = self.job(script, ranks=2, pattern="shared:ck/{step}/*")
        self.assertRegex(done.stderr, "ck/10/data.new: a rank still has it open to write; let all ranks close it before one renames it")
        self.assertEqual(self.read("listed"), "data.new\ndata\n")
        self.assertEqual(self.states(), {10: "whole"})

    def test_a_plain_file_that_all_have_written_is_renamed_to_it(self):
        script = f"""{sys.executable} part.py ck/new.10 $RANK 3 0; touch written.$RANK; until [ $(ls written.* | wc -l) = 3 ]; do sleep 0.05; done
            [ $RANK = 0 ] && mv ck/new.10 ck/ck.10; true"""
        self.job(self.at_once(script, 3), ranks=3, pattern=SHARED)
        self.assertEqual(self.states(), {10: "whole"})
        self.job("cat ck/ck.10 > got", "--resume", pattern=SHARED)
        self.assertEqual(self.read("got"), WHOLE)


if __name__ == "__main__":
    unittest.main()
