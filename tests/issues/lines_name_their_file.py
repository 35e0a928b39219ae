#!/usr/bin/env python3
"""A line on standard error names the file that it is about, also where the file's name is a part of some word, or comes later on.

  lines_name_their_file.py --build BUILD
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    options = parser.parse_args()
    holdfast = os.path.join(options.build, "bin", "holdfast")
    failed = False
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as directory:
        targets = [os.path.join(directory, f"t{i}") for i in range(3)]
        for target in targets:
            os.mkdir(target)
        for name in ("a", "protected", "run", "some file"):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write("there already\n")
            done = subprocess.run([holdfast, "run", "--protect", "rs:2+1", "--targets", ",".join(targets), "--path", name, "--", "sh", "-c",
                                   f"echo more >> '{name}'"], cwd=directory, capture_output=True, text=True, timeout=60, check=False)
            wanted = f"holdfast: {name}: exists and is not protected, and stays so; to protect it run: holdfast import {shlex.quote(name)} NEW\n"
            if done.stderr != wanted:
                failed = True
                print(f"said: {done.stderr}instead of: {wanted}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
