#!/usr/bin/env python3
"""A further link of the chain is one word in a call's line of the table, and one function."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import launch

options = None

LINK = """
#include "owned_mpi.h"
int redundant_Reduce_local(int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op), const void* in, void* out, int count,
                           MPI_Datatype type, MPI_Op op) {
  const int code = next(in, out, count, type, op);
  *static_cast<int*>(out) += 100;
  return code;
}
"""
PROGRAM = """
#include <mpi.h>
int main(int argc, char** argv) {
  int one = 1, sums[2] = {1, 2};
  MPI_Init(&argc, &argv);
  MPI_Reduce_local(&one, &sums[0], 1, MPI_INT, MPI_SUM);
  PMPI_Reduce_local(&one, &sums[1], 1, MPI_INT, MPI_SUM);
  MPI_Finalize();
  return sums[0] == 102 && sums[1] == 103 ? 0 : 3;
}
"""


class LinkByHand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.intercept = options.source / "src" / "intercept"

    def run_line(self, *words, **environment):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=100, env={**os.environ, **environment})
        return done.returncode, done.stdout + done.stderr

    def must(self, *words, **environment):
        code, text = self.run_line(*words, **environment)
        self.assertEqual(code, 0, text)
        return text

    def generate(self, *lines):
        table = (self.intercept / "gen" / "mpi_functions.txt").read_text()
        wanted = [re.search(rf"^{name} .*$", table, re.MULTILINE).group().replace("[", f"[{links} ", 1) for name, links in lines]
        (self.work / "table.txt").write_text("\n".join(wanted) + "\n")
        return self.run_line(sys.executable, self.intercept / "gen" / "generate.py", "--table", self.work / "table.txt", "--name", self.name(),
                             "--out", self.work, options.mpicc)

    def name(self):
        if launch.is_openmpi(options.mpicc):
            return "openmpi"
        return "mpiabi" if options.mpicc.endswith("_abi") else "mpich"

    def test_it_stands_around_the_call_by_both_names(self):
        code, text = self.generate(("MPI_Reduce_local", "redundant=yes"))
        self.assertEqual(code, 0, text)
        (self.work / "link.cpp").write_text(LINK)
        (self.work / "program.c").write_text(PROGRAM)
        shown = self.must(options.mpicc, "-show")
        flags = [word for word in shown.split() if re.match("-[ID]", word)]
        self.must(options.cxx, "-std=c++20", "-fPIC", "-shared", "-o", self.work / "link.so", "-I", self.work, "-I", options.source / "src", *flags,
                  self.work / "link.cpp", self.work / "entries_all.cpp", self.work / "real_mpi.cpp", self.intercept / "mpi" / "real.cpp",
                  self.intercept / "mpi" / "entry.cpp", options.core, "-ldl")
        self.must(options.mpicc, self.work / "program.c", "-o", self.work / "program")
        code, text = self.run_line(*launch.command(options.mpicc, 2), self.work / "program")
        self.assertNotEqual(code, 0, "without the link they are MPI's own sums")
        self.must(*launch.command(options.mpicc, 2), self.work / "program", LD_PRELOAD=str(self.work / "link.so"))

    def test_links_come_in_the_order_of_the_chain(self):
        code, text = self.generate(("MPI_Wait", "redundant=yes"))
        self.assertEqual(code, 0, text)
        entries = (self.work / "entries_all.cpp").read_text()

        def body(function):
            return re.search(rf"\b{function}\([^)]*\) {{\n(.*?)\n}}", entries, re.DOTALL).group(1)

        self.assertIn("return count_MPI_Wait(", body("entry_MPI_Wait"))
        self.assertIn("return redundant_MPI_Wait(", body("count_MPI_Wait"))
        self.assertIn("redundant_Wait(frontend_MPI_Wait, ", body("redundant_MPI_Wait"))
        self.assertIn("next_mpi.Wait(", body("frontend_MPI_Wait"))
        # The default library has its own links of it alone.
        self.assertNotIn("redundant_", (self.work / "entries.cpp").read_text())

    def test_a_link_that_nobody_knows_is_an_error(self):
        code, text = self.generate(("MPI_Wait", "redunant=yes"))
        self.assertNotEqual(code, 0)
        self.assertIn("MPI_Wait: no such link: redunant; there are observe, count, sends, redundant, frontend", text)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--mpicc", required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--core", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=["link_by_hand_test.py", *rest], verbosity=2)


main()
