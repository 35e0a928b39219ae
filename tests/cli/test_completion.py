"""What the shells propose comes from the command itself, for every command and option, by the scripts that `holdfast completion` prints."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
import unittest

from command import CommandTest

SCRIPTS = os.path.join(os.path.dirname(__file__), "../../src/cli/completion")

# Calls the script's function as readline would, and prints what it answers.
ASK = """source <(holdfast completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_holdfast holdfast
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.binary) + ":" + os.environ["PATH"]
        for name in ("out", "other"):
            os.mkdir(self.path(name))

    def proposals(self, *words):
        return [line.split("\t")[0] for line in self.holdfast("__complete", *words).stdout.splitlines()]

    def bash(self, line):
        words = re.findall(r"[^\s:=]+|[:=]+", line) + ([""] if line.endswith(" ") else [])
        done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", line, *words], cwd=self.dir, env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_every_command_and_every_option_of_its_help_is_proposed(self):
        commands = [word for word in self.proposals("") if not word.startswith("-")]
        listed = self.holdfast("--help").stdout.split("Subcommands:\n")[1].split("\n\n")[0]
        self.assertEqual(commands, re.findall(r"^  ([a-z]\w*)", listed, re.MULTILINE))
        for command in commands:
            options = re.findall(r"^ +(?:-\w,)?(--[\w-]+)", self.holdfast(command, "--help").stdout, re.MULTILINE)
            self.assertEqual(sorted(self.proposals(command, "--")), sorted(options), command)

    def test_parts_of_commands_are_proposed_too(self):
        self.assertEqual(self.proposals("plan", "rel"), ["reliability"])
        self.assertEqual(self.proposals("plan", "reliability", "--sv"), ["--svg"])
        self.assertEqual(self.proposals("agents", "st"), ["start", "status", "stop"])

    def test_values_are_those_that_are_taken(self):
        self.make_targets(2)
        for option in ("--mounts", "--placement", "--close", "--locks", "--buffer-flush"):
            values = self.proposals("run", option, "")
            self.assertGreater(len(values), 1, option)
            for value in values:
                self.holdfast("run", option, value, "true")
            refused = self.holdfast("run", option, "elephant", "true", expect=2).stderr
            for value in values:
                self.assertIn(value, refused)
        self.assertEqual(self.proposals("plan", "--per", ""), ["all", "year", "quarter", "month"])
        self.assertEqual(self.proposals("run", "--close=d"), ["--close=durable"])
        self.assertEqual(self.proposals("plan", "--scheme", "mirror:2,mirror"), ["mirror:2,mirror:2", "mirror:2,mirror:3"])
        self.assertEqual(self.proposals("completion", ""), ["bash", "zsh", "fish"])

    def test_where_files_directories_and_programs_belong(self):
        for words, answer in ((("status", ""), ":files"), (("run", "--config", ""), ":files"), (("run", "--targets", "a,b"), ":directories"),
                              (("doctor", ""), ":directories"), (("repair", "x", "--replace", "a="), ":directories"),
                              (("run", "--json", ""), ":program 2"), (("run", "--", "mpi"), ":program 2"),
                              (("run", "--close", "fast", "mpirun", "--ho"), ":program 3")):
            self.assertEqual(self.proposals(*words), [answer], words)
        self.assertEqual(self.proposals("plan", "--nodes", ""), [])
        self.assertEqual(self.proposals("no-such-command", "--"), [])
        self.assertEqual(self.proposals("status", "--", "--"), [":files"])

    def test_bash(self):
        self.assertEqual(self.bash("holdfast exp"), ["export"])
        self.assertEqual(self.bash("holdfast run --gather"), ["--gather-output"])
        # Behind a ':' or '=', where bash begins another word, only the rest is put in.
        self.assertEqual(self.bash("holdfast run --protect mirror:"), ["2", "3"])
        self.assertEqual(self.bash("holdfast run --locks=k"), ["kernel"])
        self.assertEqual(sorted(self.bash("holdfast run --targets o")), ["other", "out"])
        self.assertEqual(self.bash("holdfast run --targets out,ot"), ["out,other"])
        self.assertEqual(self.bash("holdfast repair x --replace out=ot"), ["other"])
        self.assertIn("sleep", self.bash("holdfast run --profile slee"))
        self.assertEqual(self.bash("holdfast status o"), [])  # readline's own completion of names

    def test_the_scripts_that_are_installed_are_those_that_are_printed(self):
        for shell in ("bash", "zsh", "fish"):
            with open(os.path.join(SCRIPTS, f"holdfast.{shell}")) as script:
                self.assertEqual(self.holdfast("completion", shell).stdout, script.read())
        self.assert_one_sentence(self.holdfast("completion", "tcsh", expect=3).stderr, "--help")

    def typed(self, shell, prepare, text, until):
        """What a shell on a terminal shows once `text`, with its tabs, is typed."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.dir)
            os.execvpe(shell[0], shell, {**self.env, "TERM": "dumb", "PS1": "ready> ", "HOME": self.dir, "COLUMNS": "200"})
        shown, end = "", time.monotonic() + 30
        try:
            os.write(terminal, f"{prepare}; echo re''ady\n".encode())
            sent = False
            while time.monotonic() < end and not (sent and until in shown):
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 4096).decode(errors="replace")
                elif "ready\r" in shown and not sent:
                    sent, shown = True, ""
                    os.write(terminal, text.encode())
            return shown
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(terminal)

    def test_bash_on_a_terminal(self):
        prepare = "source <(holdfast completion bash)"
        shell = ["bash", "--norc", "--noprofile", "-i"]
        self.assertIn("--protect rs:8+3", self.typed(shell, prepare, "holdfast run --protect rs:8\t", "+3"))
        self.assertIn("--targets out,other", self.typed(shell, prepare, "holdfast run --targets out,ot\t", "other"))

    def test_zsh_on_a_terminal(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        prepare = "autoload -Uz compinit; compinit -u -D"
        os.symlink(os.path.abspath(f"{SCRIPTS}/holdfast.zsh"), self.path("_holdfast"))
        as_installed = f"fpath=({self.dir} $fpath); {prepare}"
        self.assertIn("rs:8+3", self.typed(["zsh", "-f", "-i"], as_installed, "holdfast run --protect rs:8\t", "rs:8+3"))
        prepare += "; source <(holdfast completion zsh)"
        for typed, shown in (("holdfast run --protect rs:8\t", "rs:8+3"), ("holdfast run --targets out,ot\t", "out,other"), ("holdfast expo\t", "export")):
            self.assertIn(shown, self.typed(["zsh", "-f", "-i"], prepare, typed, shown))

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        for typed, shown in (("holdfast run --protect rs:8", "rs:8+3"), ("holdfast run --targets out,ot", "out,other/"), ("holdfast expo", "export")):
            script = f"holdfast completion fish | source; complete --do-complete {shlex.quote(typed)}"
            done = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.dir, env=self.env, capture_output=True, text=True)
            self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], [shown], done.stderr)


if __name__ == "__main__":
    unittest.main()
