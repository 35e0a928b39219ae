#!/usr/bin/env python3
"""Threads of one program that read one protected file by plain calls took turns: one that waited for a disk held up all others, whose disks were well.

  threads_that_read.py --build BUILD

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

UNIT, ROWS, K, DEADLINE_S = 1 << 20, 12, 2, 8
WRITER = f"open('file.dat', 'wb').write(bytes(range(256)) * ({UNIT * K * ROWS} // 256))"
# What is on the hanging target is waited for until the deadline. Each thread reads units of its own; those that do not hang are through before.
READER = f"""
import os, sys, threading, time
file = os.open('file.dat', os.O_RDONLY)
whole = bytes(range(256)) * ({UNIT * K * ROWS} // 256)
for unit in range({K * ROWS}):  # from here on the records of all rows are known
    os.pread(file, 16, unit * {UNIT})
with open(sys.argv[1] + '.new', 'w') as order:
    order.write('read hang name=data\\n')
os.rename(sys.argv[1] + '.new', sys.argv[1])
ended = []
def read(unit):
    at = unit * {UNIT}
    right = os.pread(file, {UNIT}, at) == whole[at:at + {UNIT}]
    ended.append((unit, right))
threads = [threading.Thread(target=read, args=(unit,)) for unit in range({K * ROWS})]
for thread in threads:
    thread.start()
deadline = time.monotonic() + {DEADLINE_S} / 2
while len(ended) < {K * ROWS} // 2 and time.monotonic() < deadline:
    time.sleep(0.05)
print(len(ended), flush=True)
for thread in threads:
    thread.join()
print(len(ended), all(right for _, right in ended), flush=True)
"""


def run(options, scratch, targets, *command):
    done = subprocess.run([os.path.join(options.build, "bin", "holdfast"), "run", "--protect", "rs:2+1", "--striping-unit", str(UNIT), "--deadline", f"{DEADLINE_S}s", "--targets",
                           ",".join(targets), "--path", "*.dat", "--", *command], cwd=scratch, capture_output=True, text=True, timeout=100, check=False)
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    options = parser.parse_args()
    if not os.path.exists("/dev/fuse"):
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as scratch:
        mount = faultfs.Mount(os.path.join(options.build, "bin", "faultfs"), scratch, "mount")
        try:
            if not mount.works():
                sys.exit(77)
            targets = [os.path.join(mount.path, "a"), os.path.join(scratch, "b"), os.path.join(scratch, "c")]
            for target in targets:
                os.mkdir(target)
            made = run(options, scratch, targets, sys.executable, "-c", WRITER)
            done = run(options, scratch, targets, sys.executable, "-c", READER, mount.control)
        finally:
            mount.end()
    print(made.stderr, done.stdout, done.stderr)
    lines = done.stdout.split("\n")
    return 0 if made.returncode == 0 and done.returncode == 0 and int(lines[0]) >= K * ROWS // 2 and lines[1] == f"{K * ROWS} True" else 1


if __name__ == "__main__":
    sys.exit(main())
