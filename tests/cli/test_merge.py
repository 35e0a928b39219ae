"""`holdfast merge`: records that a job has left in the logs of its shared file pointer, put into the file or refused."""
import fcntl
import os
import shutil
import struct
import subprocess
import time
import unittest

from command import BINARY, CommandTest

LEAVE_RECORDS = os.environ.get("HOLDFAST_LEAVE_RECORDS") or os.path.join(os.path.dirname(BINARY), "leave_records")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/format-1/records")


class Merge(CommandTest):
    """Four records, 28 bytes, are left for `out`, and one that is torn: see tests/golden/records.hpp."""

    def leave_records(self, name="out"):
        """The golden logs, beside a file of which they say that it is theirs."""
        shutil.copyfile(os.path.join(GOLDEN, "out"), self.path(name))
        subprocess.run([LEAVE_RECORDS, self.path(name)], check=True, timeout=60, stdin=subprocess.DEVNULL)

    def content(self, name="out"):
        with open(self.path(name), "rb") as f:
            return f.read()

    def golden(self, name):
        with open(os.path.join(GOLDEN, name), "rb") as f:
            return f.read()

    def everything(self):
        """Names and bytes below the test's directory."""
        return {p: None if os.path.isdir(p) else self.content(p) for p in self.tree()}

    def refused(self, *words, code, args=("out",)):
        """One sentence, nothing on standard output, and not a byte is changed."""
        before = self.everything()
        done = self.holdfast("merge", *args, expect=code)
        self.assert_one_sentence(done.stderr, *words)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.everything(), before)

    def test_what_was_left_is_merged_and_the_logs_go(self):
        self.leave_records()
        done = self.holdfast("merge", "out")
        self.assertEqual(self.content(), self.golden("merged"))
        self.assertEqual(self.tree(), [self.path("out")])
        self.assertIn(f"{self.path('out')}: 4 records merged, 28 B", done.stdout)
        self.assertIn("the order between nodes is true within 0.2 us", done.stdout)
        self.assertIn("1 record was not whole and left out: the first in 00000003-00112233445566778899aabbccddeeff.1.0", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_json_says_what_was_merged_and_then_that_there_is_nothing(self):
        self.leave_records()
        expected = {"path": self.path("out"), "records": 4, "bytes": 28, "torn": 1, "discarded": 0, "kept_for": [], "uncertainty_ns": 250}
        self.assertEqual(self.json("merge", "out"), {"files": [expected]})
        self.assertEqual(self.content(), self.golden("merged"))
        nothing = {**expected, "records": 0, "bytes": 0, "torn": 0, "uncertainty_ns": 0}
        self.assertEqual(self.json("merge", "out"), {"files": [nothing]})

    def test_nothing_to_merge_is_no_error(self):
        content = self.make_file("out", 1000)
        self.assertEqual(self.holdfast("merge", "out").stdout, f"{self.path('out')}: nothing to merge\n")
        self.assertEqual(self.content(), content)
        self.assertEqual(self.tree(), [self.path("out")])

    def test_a_file_that_does_not_exist_is_an_error(self):
        self.refused("no such file", self.path("out"), code=3)

    def test_one_file_that_is_refused_does_not_keep_others_from_being_merged(self):
        self.leave_records("second")
        done = self.holdfast("merge", "first", "second", expect=3)
        self.assert_one_sentence(done.stderr, "first", "no such file")
        self.assertEqual(self.content("second"), self.golden("merged"))

    def test_a_link_leads_to_the_file(self):
        self.leave_records()
        os.symlink("out", self.path("link"))
        os.rename(self.path(".out.holdfast-records"), self.path(".link.holdfast-records"))
        self.holdfast("merge", "link")
        self.assertEqual(self.content(), self.golden("merged"))
        self.assertTrue(os.path.islink(self.path("link")))

    def test_a_file_that_was_changed_since_is_refused_until_that_is_accepted(self):
        self.leave_records()
        with open(self.path("out"), "r+b") as f:
            f.write(b"SIXTEEN")
        self.refused("changed", "--accept-changes", "--discard", code=2)
        self.holdfast("merge", "--accept-changes", "out")
        self.assertEqual(self.content(), b"SIXTEEN" + self.golden("merged")[7:])

    def test_a_file_that_was_replaced_since_is_refused_until_that_is_accepted(self):
        shutil.copytree(GOLDEN, self.path("copy"))  # the checked-in logs name another file's inode
        os.remove(self.path("copy/merged"))
        self.refused("replaced", "--accept-changes", "--discard", code=2, args=("copy/out",))
        self.holdfast("merge", "--accept-changes", "copy/out")
        self.assertEqual(self.content("copy/out"), self.golden("merged"))
        self.assertEqual(self.tree(), [self.path("copy"), self.path("copy/out")])

    def test_a_file_that_is_gone_is_refused_and_merged_when_it_is_back(self):
        self.leave_records()
        os.rename(self.path("out"), self.path("kept"))
        self.refused("gone", self.path(".out.holdfast-records"), "--discard", code=2)
        os.rename(self.path("kept"), self.path("out"))
        self.holdfast("merge", "--accept-changes", "out")  # moving it has touched its time of change
        self.assertEqual(self.content(), self.golden("merged"))

    def locked_log(self):
        """A log, locked as by the process whose it is. A lock of the open file: one of this process would go when refused() reads the log."""
        logs = self.path(".out.holdfast-records")
        held = open(os.path.join(logs, next(name for name in os.listdir(logs) if name.endswith(".1.0"))), "r+b")
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return held

    def test_a_job_that_still_runs_is_waited_for_by_the_user(self):
        self.leave_records()
        with self.locked_log() as held:
            log = os.path.basename(held.name)
            self.refused("still running", log, code=3)
            self.refused("still running", log, code=3, args=("--discard", "out"))
        self.holdfast("merge", "out")
        self.assertEqual(self.content(), self.golden("merged"))

    def test_what_a_job_writes_last_before_it_ends_is_merged_too(self):
        """A job that is killed has its locks for a moment still: the merge has looked at its logs then, and waits."""
        self.leave_records()
        with self.locked_log() as held:
            whole = held.read()
            held.truncate(len(whole) - 100)
            os.utime(held.fileno(), (0, time.time()))
            merge = subprocess.Popen([self.binary, "merge", "out"], cwd=self.dir, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 0.5
            while os.fstat(held.fileno()).st_atime == 0 and time.monotonic() < deadline:  # it has not been read, as far as a file system tells
                time.sleep(0.01)
            held.seek(0)
            held.write(whole)
        _, err = merge.communicate(timeout=60)
        self.assertEqual(merge.returncode, 0, err)
        self.assertEqual(self.content(), self.golden("merged"))

    def test_records_of_an_earlier_run_are_refused_until_they_are_discarded(self):
        self.leave_records()
        logs = self.path(".out.holdfast-records")
        note = next(name for name in os.listdir(logs) if name.endswith(".note"))
        shutil.copy(os.path.join(logs, note), os.path.join(logs, f"00000004-{'f' * 32}.note"))  # a later opening of the file
        self.refused("4 records of an earlier run", "--discard", code=2)
        self.holdfast("merge", "--discard", "out")
        self.assertEqual(self.content(), self.golden("out"))
        self.assertEqual(self.tree(), [self.path("out")])

    def test_discard_throws_the_records_away_and_leaves_the_file(self):
        self.leave_records()
        self.assertEqual(self.holdfast("merge", "--discard", "out").stdout, f"{self.path('out')}: 4 records thrown away\n")
        self.assertEqual(self.content(), self.golden("out"))
        self.assertEqual(self.tree(), [self.path("out")])
        self.assertEqual(self.holdfast("merge", "out").stdout, f"{self.path('out')}: nothing to merge\n")

    def test_discard_is_the_way_out_where_the_file_was_replaced(self):
        self.leave_records()
        os.remove(self.path("out"))
        content = self.make_file("out", 1000)
        self.assertEqual(self.json("merge", "--discard", "out")["files"][0]["discarded"], 4)
        self.assertEqual(self.content(), content)
        self.assertEqual(self.tree(), [self.path("out")])

    def test_no_path_is_an_error_that_leads_to_the_help(self):
        self.refused("--help", code=3, args=())


if __name__ == "__main__":
    unittest.main()
