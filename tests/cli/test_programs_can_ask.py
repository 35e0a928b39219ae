"""A program that includes holdfast.h runs with and without Holdfast, and is told a file's health."""
import os
import shutil
import subprocess
import unittest

from command import BINARY, CommandTest

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
POSIX_LIBRARY = os.path.join(os.path.dirname(BINARY), "../lib/libholdfast-posix.so")

PROGRAM = """
#include <errno.h>
#include <holdfast/holdfast.h>
#include <stdio.h>
int main(int argc, char **argv) {
  char text[200] = "untouched";
  if (!holdfast_present()) return puts("absent"), 0;
  errno = 4711;
  int health = holdfast_file_health(argv[1], text, sizeof text);
  return printf("%s %d %d %s\\n", holdfast_version(), health, errno, text), argc != 2;
}
"""


@unittest.skipUnless(os.path.exists(POSIX_LIBRARY), "the libraries are not built")
class ProgramsCanAsk(CommandTest):
    def setUp(self):
        super().setUp()
        with open(self.path("ask.c"), "w") as f:
            f.write(PROGRAM)
        subprocess.run(["cc", "-Wall", "-Werror", "-std=c99", "-I", INCLUDE, "-o", "ask", "ask.c"], cwd=self.dir, check=True)

    def ask(self, name):
        return self.holdfast("run", "./ask", name).stdout.split(maxsplit=3)

    def test_without_holdfast_the_program_runs_all_the_same(self):
        done = subprocess.run(["./ask", "x"], cwd=self.dir, env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "absent\n"))

    def test_the_health_is_what_status_says(self):
        _, targets = self.protect("rs:2+1", 3)
        version = self.holdfast("--version").stdout.split()[1]
        self.assertEqual(self.ask("out.dat"), [version, "0", "4711"])
        self.assertEqual(self.ask("ask.c"), [version, "3", "4711"])
        self.assertEqual(self.ask("missing"), [version, "3", "4711"])
        shutil.rmtree(targets[1])
        answer = self.ask("out.dat")
        self.assertEqual(answer[1], "1")
        self.assertEqual(answer[3].strip(), targets[1] + " is lost")
        shutil.rmtree(targets[0])
        self.assertEqual(self.ask("out.dat")[1], "2")


if __name__ == "__main__":
    unittest.main()
