"""Standard input, output and error that are closed, full, or have lost who reads them: the command and its job go on, and the exit status tells."""
import os
import signal
import subprocess
import unittest

from checkpoint_test import CheckpointTest

PROGRAM = ["sh", "-c", "sleep 0.3; echo hi > made.out"]


class StandardStreams(CheckpointTest):
    def command(self, *args, **streams):
        """Its end, by its number: a signal is negative."""
        return subprocess.run([self.binary, *args], cwd=self.dir, env=self.env, timeout=60, check=False, text=True,
                              **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams})

    def without(self, numbers, *args):
        """The command as a shell's `<&-` and `>&-` start it."""
        closed = " ".join(f"{number}>&-" for number in numbers)
        return subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", self.binary, *args], cwd=self.dir, env=self.env, timeout=60, check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pipe_that_nobody_reads(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        self.addCleanup(os.close, write_end)
        return write_end

    def full(self):
        file = open("/dev/full", "w")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        return file

    # ------------------------------------------------------------------------------------------------------ standard error

    def test_a_sentence_that_cannot_be_written_keeps_the_exit_status(self):
        self.assertEqual(self.command("status", "nosuch", stderr=self.full()).returncode, 3)
        self.assertEqual(self.without([2], "status", "nosuch").returncode, 3)
        self.assertEqual(self.command("run", "--profile", "true", stderr=self.full()).returncode, 0)

    def run_with_checkpoints(self, script, stderr, *options):
        return self.command("run", "--simulate-nodes", "3", "--protect", "mirror:2", "--checkpoint", "ck/ck.{step}.{rank}", "--library", "posix", *options,
                            "--", "sh", "-c", script, stderr=stderr)

    def test_a_job_is_started_again_and_drained_where_nothing_can_be_said(self):
        script = "PMI_RANK=0; echo content > ck/ck.3.0; [ -e again ] || { touch again; exit 1; }"
        self.assertEqual(self.run_with_checkpoints(script, self.full(), "--restarts", "1").returncode, 0)
        self.assertEqual(self.read("ck", "ck.3.0"), "content\n")

    def test_checkpoints_are_drained_when_the_reader_of_the_lines_has_gone(self):
        self.assertEqual(self.run_with_checkpoints("echo content > ck/ck.8.0", self.pipe_that_nobody_reads()).returncode, 0)
        self.assertEqual(self.read("ck", "ck.8.0"), "content\n")

    def test_a_program_has_its_own_way_with_broken_pipes(self):
        """SIGPIPE is what it was for what `run` starts."""
        script = "sed -n 's/^SigIgn:[^0-9a-f]*//p' /proc/self/status"
        for options in ([], ["--profile"]):
            ignored = int(self.command("run", *options, "sh", "-c", script).stdout, 16)
            self.assertEqual(ignored >> (signal.SIGPIPE - 1) & 1, 0, options)

    # ----------------------------------------------------------------------------------------------------- standard output

    def test_output_that_cannot_be_written_is_one_sentence(self):
        for args in (["settings", "--json"], ["--help"], ["settings"]):
            done = self.command(*args, stdout=self.full())
            self.assertEqual(done.returncode, 3, args)
            self.assert_one_sentence(done.stderr, "standard output cannot be written", "No space left")

    def test_output_whose_reader_has_gone_is_one_sentence(self):
        done = self.command("settings", "--json", stdout=self.pipe_that_nobody_reads(), preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
                            restore_signals=False)
        self.assertEqual(done.returncode, 3)
        self.assert_one_sentence(done.stderr, "standard output cannot be written", "Broken pipe")

    # ------------------------------------------------------------------------------------------------------ closed numbers

    def test_replicas_end_where_a_standard_number_is_closed(self):
        for number in (0, 1, 2):
            done = self.without([number], "run", "--replicas", "2", *PROGRAM)
            self.assertEqual(done.returncode, 0, (number, done.stderr))
            self.assertEqual(self.read("made.out"), "hi\n")
            os.unlink(self.path("made.out"))

    def test_a_program_finds_closed_what_was_closed(self):
        done = self.without([0], "run", "sh", "-c", "[ -e /proc/self/fd/0 ] || echo closed")
        self.assertEqual((done.returncode, done.stdout), (0, "closed\n"))

    def test_a_file_is_mended_without_standard_numbers(self):
        content, targets = self.protect("rs:2+1", 3)
        os.unlink(self.object_of(targets[0]))
        self.assertEqual(self.without([0], "repair", "out.dat").returncode, 0)
        os.unlink(self.object_of(targets[1]))
        # What it would say cannot be said; it is done all the same.
        self.assertEqual(self.without([0, 1, 2], "repair", "out.dat").returncode, 3)
        self.assertEqual(self.holdfast("verify", "out.dat").returncode, 0)
        self.assertEqual(self.cat(), content)


if __name__ == "__main__":
    unittest.main()
