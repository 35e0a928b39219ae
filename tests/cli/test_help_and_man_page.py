"""Every subcommand explains itself with an example, and the man page has every option."""
import os
import re
import shutil
import subprocess
import unittest

from command import CommandTest

COMMANDS = "run status verify repair export drain import ls rm cat merge targets plan report advise doctor settings agents checkpoints completion".split()
PARTS = [("agents", "start"), ("agents", "status"), ("agents", "stop"), ("plan", "reliability")]
MAN_PAGE = os.path.join(os.path.dirname(__file__), "../../packaging/holdfast.1")


class HelpAndManPage(CommandTest):
    def help(self, *command):
        return self.holdfast(*command, "--help").stdout

    def test_the_version_has_three_numbers(self):
        self.assertRegex(self.holdfast("--version").stdout, r"^holdfast \d+\.\d+\.\d+\n$")

    def test_every_command_has_an_example_that_is_in_the_man_page(self):
        with open(MAN_PAGE) as f:
            page = f.read().replace("\\-", "-")
        for command in COMMANDS:
            self.assertIn(command, self.help())
            text = self.help(command)
            example = re.search(r"Example:\n +(holdfast .*)", text)
            self.assertIsNotNone(example, text)
            self.assertIn(example.group(1), page)

    def test_every_option_is_in_the_man_page(self):
        with open(MAN_PAGE) as f:
            page = f.read().replace("\\-", "-")
        for command in [(c,) for c in COMMANDS] + PARTS:
            options = re.findall(r"^ +(?:-\w,)?(--[\w-]+)", self.help(*command), re.MULTILINE)
            self.assertIn("--help", options)
            for option in options:
                self.assertIn(option, page, f"{command} {option}")

    def test_the_man_page_names_no_option_that_does_not_exist(self):
        with open(MAN_PAGE) as f:
            page = f.read().replace("\\-", "-")
        known = self.help() + "".join(self.help(c) for c in COMMANDS) + "".join(self.help(*part) for part in PARTS)
        for option in set(re.findall(r"--[a-z][\w-]*", page)):
            self.assertIn(option, known)

    def test_the_man_page_is_well_formed(self):
        try:
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", MAN_PAGE], capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("man is not installed")
        self.assertEqual(done.stderr, "")

    def page_of(self, command):
        self.holdfast("__man", self.dir)
        with open(self.path(f"holdfast-{command}.1")) as f:
            return f.read()

    def test_every_command_has_a_page_of_its_own(self):
        self.page_of("run")
        pages = sorted(name for name in os.listdir(self.dir) if name.endswith(".1"))
        self.assertEqual(pages, sorted(f"holdfast-{c}.1" for c in COMMANDS))
        for command in COMMANDS:
            page, text = self.page_of(command).replace("\\-", "-"), self.help(command)
            for option in re.findall(r"^ +(?:-\w,)?(--[\w-]+)", text, re.MULTILINE):
                self.assertRegex(page, rf"(?m)^\\fB(-\w, )?(--[\w-]+, )*{option}(, --[\w-]+)*\\fR", f"{command} {option}")
            self.assertIn(re.search(r"Example:\n +(holdfast .*)", text).group(1), page)
            self.assertIn(text.splitlines()[0], page)
        for command, part in PARTS:
            for option in re.findall(r"^ +(?:-\w,)?(--[\w-]+)", self.help(command, part), re.MULTILINE):
                self.assertRegex(self.page_of(command).replace("\\-", "-"), rf"(?m)^\\fB(-\w, )?(--[\w-]+, )*{option}(, --[\w-]+)*\\fR", f"{command} {part} {option}")

    def test_a_setting_is_described_by_its_record(self):
        self.assertIn("Key close, variable HOLDFAST_CLOSE, hint holdfast_close; allowed is durable or fast.", self.page_of("run"))
        self.assertNotIn("Key trace", self.page_of("report"))  # a file there, and no setting

    def test_the_pages_are_well_formed(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        self.page_of("run")
        for command in COMMANDS:
            done = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-Z", self.path(f"holdfast-{command}.1")],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)

    def test_a_command_that_there_is_not_is_named(self):
        said = self.holdfast("statsu", "out.dat", expect=3)
        self.assertEqual(said.stderr, "holdfast: 'statsu' is no command; 'holdfast --help' lists them\n")

    def test_a_wrong_line_is_one_sentence_that_leads_to_the_help(self):
        for line in ([], ["frobnicate"], ["status"], ["status", "--frobnicate", "x"], ["repair", "x", "--replace"]):
            self.assert_one_sentence(self.holdfast(*line, expect=3).stderr, "--help")


if __name__ == "__main__":
    unittest.main()
