#!/usr/bin/env python3
"""Runs a case of a program of this folder natively, with buffers, and with protected files: it has to say the same, and leave the same bytes.

  as_natively.py --build BUILD PROGRAM CASE [WAY...]

A WAY is buffered, protected (rs:2+1) or mirrored (mirror:2); all without. The program gets CASE and the path of a file in a directory of
its own, whose *.dat are served.
"""
import argparse
import os
import subprocess
import sys
import tempfile

SECONDS = 60
SCHEMES = {"protected": "rs:2+1", "mirrored": "mirror:2"}


def content(path):
    with open(path, "rb") as file:
        return file.read()


def said_and_left(options, directory, way):
    """What the program prints, its exit code, and the bytes of every file that it leaves."""
    own = os.path.join(directory, way)
    os.mkdir(own)
    holdfast = os.path.join(options.build, "bin", "holdfast")
    policy = ["--path", os.path.join(own, "*.dat"), "--"]
    prefix = []
    if way == "buffered":
        prefix = [holdfast, "run", "--buffer", "4x64KiB", *policy]
    if way in SCHEMES:
        targets = [os.path.join(directory, f"{way}.t{i}") for i in range(3)]
        for target in targets:
            os.mkdir(target)
        prefix = [holdfast, "run", "--protect", SCHEMES[way], "--striping-unit", "4096", "--targets", ",".join(targets), *policy]
    program = os.path.join(options.build, "tests", "issues", "plain", options.program)
    done = subprocess.run([*prefix, program, options.case, "file.dat"], cwd=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    files = {}
    for name in sorted(n for n in os.listdir(own) if not n.startswith(".")):
        path = plain = os.path.join(own, name)
        if os.path.exists(os.path.join(own, f".{name}.holdfast")):
            plain = os.path.join(directory, f"{way}.export.{name}")
            subprocess.run([holdfast, "verify", path], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([holdfast, "export", path, plain], check=True, stdout=subprocess.DEVNULL)
        files[name] = content(plain)
    return done.stdout.decode(errors="replace"), done.returncode, files, done.stderr.decode(errors="replace")


def differences(native, served):
    lines = []
    if native[1] != served[1]:
        lines.append(f"exit code {served[1]}, natively {native[1]}")
    for ours, theirs in zip(served[0].splitlines() + ["(end)"], native[0].splitlines() + ["(end)"]):
        if ours != theirs:
            lines.append(f"said: {ours}\nnatively: {theirs}")
    if native[2].keys() != served[2].keys():
        lines.append(f"files {sorted(served[2])}, natively {sorted(native[2])}")
    lines += [f"other bytes in {name}" for name in native[2].keys() & served[2].keys() if native[2][name] != served[2][name]]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("program")
    parser.add_argument("case")
    parser.add_argument("ways", nargs="*", metavar="WAY")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as directory:
        native = said_and_left(options, directory, "native")
        if native[1] != 0:
            print(f"natively: exit code {native[1]}\n{native[0]}{native[3]}")
            return 1
        for way in options.ways or ["buffered", *SCHEMES]:
            served = said_and_left(options, directory, way)
            wrong = differences(native, served)
            failed |= bool(wrong)
            for line in wrong:
                print(f"{options.case} {way}: {line}")
            if wrong and served[3]:
                print(served[3][-2000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
