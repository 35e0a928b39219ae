#!/usr/bin/env python3
"""A program that only read a mirrored file had the kernel's own descriptor of one copy. What was wrong in that copy it got as it was, and it got the
errors of that copy's disk, and waited as long as that disk did, while the other copy was whole.

  copies_that_fail.py --build BUILD CASE

Exit code 77: no FUSE here.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tools"))
import faultfs

JOB_SECONDS = 60
CONTENT = b"".join(b"%07d\n" % line for line in range(20000))
RULES = {"wrong_bits": "read flip 800 name=unit", "errors": "read errno EIO name=unit", "hangs": "read hang name=unit"}
WRITER = "import sys; open('file.dat', 'wb').write(sys.stdin.buffer.read())"
# Opens the file while all is well, and reads on when it is no more.
READER = """
import os, sys
file = os.open('file.dat', os.O_RDONLY)
begun = os.read(file, 16)
with open(sys.argv[1] + '.new', 'w') as order:
    order.write(sys.argv[2])
os.rename(sys.argv[1] + '.new', sys.argv[1])
os.lseek(file, 0, os.SEEK_SET)
seen = b''
while more := os.read(file, 50000):
    seen += more
sys.stdout.buffer.write(seen)
"""


def run(options, scratch, targets, *command, given=b""):
    done = subprocess.run([os.path.join(options.build, "bin", "holdfast"), "run", "--protect", "mirror:2", "--deadline", "2s", "--targets", ",".join(targets),
                           "--path", "*.dat", "--", *command], cwd=scratch, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=JOB_SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def failures(options, scratch, mount, targets):
    wrong = []
    code, _, said = run(options, scratch, targets, sys.executable, "-c", WRITER, given=CONTENT)
    if code != 0 or not os.readlink(os.path.join(scratch, "file.dat")).startswith(mount.path):
        return [f"the file was not made: {code}, {said}"]
    rule = RULES[options.case] + "\n"
    for name, command in {"cat": ["cat", "file.dat"], "sort": ["sort", "file.dat"], "reader": [sys.executable, "-c", READER, mount.control, rule]}.items():
        if name != "reader":
            mount.order(rule)
        try:
            code, seen, said = run(options, scratch, targets, *command)
            if code != 0 or seen != CONTENT:
                wrong.append(f"{name}: exit code {code}, {len(seen)} bytes that are {'right' if seen == CONTENT else 'wrong'}: {said}")
        except subprocess.TimeoutExpired:
            wrong.append(f"{name}: still waits after {JOB_SECONDS} s")
        mount.order("")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("case", choices=RULES)
    options = parser.parse_args()
    if not os.path.exists("/dev/fuse"):
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as scratch:
        mount = faultfs.Mount(os.path.join(options.build, "bin", "faultfs"), scratch, "mount")
        try:
            if not mount.works():
                sys.exit(77)
            targets = [os.path.join(mount.path, "a"), os.path.join(scratch, "b")]
            for target in targets:
                os.mkdir(target)
            wrong = failures(options, scratch, mount, targets)
        finally:
            mount.end()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
