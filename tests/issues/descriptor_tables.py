#!/usr/bin/env python3
"""A program that has used up its descriptors is told so, and its protected files lose no target.

  descriptor_tables.py --build BUILD CASE

A CASE is a function below; `scene.py` runs it three ways.
"""
import itertools
import os

from scene import Failed, main



FULL = """
import errno, os
def refused(path):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
    except OSError as why:
        return errno.errorcode[why.errno]
file, filling = os.open("x.dat", os.O_RDWR | os.O_CREAT, 0o644), []
while not refused("/dev/null"):
    filling.append(os.open("/dev/null", os.O_RDONLY))
for part in range(100):
    os.write(file, bytes([part]) * 1000)
os.fsync(file)
os.ftruncate(file, 50001)
os.fsync(file)
os.pwrite(file, b"in between", 2345)
os.fsync(file)
print(os.pread(file, 20, 2340), os.fstat(file).st_size, refused("y.dat"), refused("x.dat"), refused("/dev/null"))
print(filling and [os.close(fd) for fd in filling[:len(filling) // 2]] and refused("y.dat"))
os.write(file, b"end")
os.close(file)
"""


LOWERED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
"""
# Where the limit is lowered while files are open, numbers of Holdfast's may become free for the program after that.
FULL_FOR_A_WHILE = FULL.replace(', refused("y.dat"), refused("x.dat"), refused("/dev/null"))', ")").replace(' and refused("y.dat")', " and None")
ANOTHER = """
import os
another = os.open("z.dat", os.O_RDWR | os.O_CREAT, 0o644)
"""

FULL_OF_LARGE_WRITES = """
import os
file = os.open("x.dat", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, bytes(range(256)) * 12000), os.fsync(file)
try:
    while os.open("/dev/null", os.O_RDONLY):
        pass
except OSError as why:
    print(why)
for part in range(3):
    print(os.pwrite(file, bytes([part]) * 2500000, part * 1000003), os.fsync(file))
os.close(file)
"""


def full_tables_of_few(scene):
    """Where a process may have few descriptors, no target is lost either: a file that would need more is not opened to be written."""
    done = []
    for scheme, targets, limit in (("mirror:2", 2, 48), ("rs:4+2", 6, 96)):
        if scene.way == "protected":
            scene.protect(scheme, targets)
        done.append(scene.run("sh", "-c", f'ulimit -n {limit}; exec /usr/bin/python3 -c "$0"', FULL_OF_LARGE_WRITES))
        done.append(scene.taken_away("x.dat", f"of {scheme} with {limit} descriptors"))
    if scene.said:
        raise Failed(f"was said: {scene.said}")
    if scene.way == "protected":
        code, _ = scene.run("sh", "-c", "ulimit -n 64; echo few > few.dat")
        if code == 0 or "few.dat: a process that writes it needs 80 descriptors, and this one may have 64; allow more" not in scene.said:
            raise Failed(f"a file that needs more is made with {code}: {scene.said}")
        if os.listdir(scene.files):
            raise Failed(f"what is refused leaves {os.listdir(scene.files)}")
    return done


def full_tables(scene):
    """A program that has used up all its descriptors is refused the next one, and what it has open serves on: on all targets."""
    done = []
    for limit, script in ((100, FULL), (1024, FULL), (1024, LOWERED + FULL), (1024, ANOTHER + LOWERED + FULL_FOR_A_WHILE)):
        done.append(scene.run("sh", "-c", f'ulimit -n {limit}; exec /usr/bin/python3 -c "$0"', script))
        if any("no descriptors left" not in line for line in scene.said.splitlines()):
            raise Failed("something else was said")
        for name in ("x.dat", "y.dat", "z.dat"):
            if not os.path.exists(scene.at(name)):
                continue
            scene.must_be_protected(name)
            done.append(scene.taken_away(name, f"with {limit} descriptors"))
    return done


SEVERAL = """
import os, sys, threading
files = [os.open(f"{i}.dat", os.O_RDWR | os.O_CREAT, 0o644) for i in range(int(sys.argv[1]))]
try:
    while os.open("/dev/null", os.O_RDONLY):
        pass
except OSError as why:
    print(why)
said = {}
def write(i, part):
    said[i, part] = os.pwrite(files[i], bytes([i + part]) * 250000, part * 100003), os.fsync(files[i])
if sys.argv[2] == "in turn":
    for part in range(3):
        for i in range(len(files)):
            write(i, part)
else:
    threads = [threading.Thread(target=lambda i=i: [write(i, part) for part in range(3)]) for i in range(len(files))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
for file in files:
    os.close(file)
print(sorted(said.items()))
"""


def full_tables_of_several(scene):
    """Files that are open before the table is full are all written after that. By a thread for each of them, too: where the reserve is not enough for
    as many commits at once, they wait for each other."""
    done = []
    ways = (("in turn", 256), ("at once", 1024), ("at once", 256))
    for (scheme, targets, count), (way, limit) in itertools.product((("mirror:2", 2, 9), ("rs:4+2", 6, 5)), ways):
        if scene.way == "protected":
            scene.protect(scheme, targets)
        done.append(scene.run("sh", "-c", f'ulimit -n {limit}; exec /usr/bin/python3 -c "$0" {count} "{way}"', SEVERAL))
        done += [scene.taken_away(f"{i}.dat", f"of {count} files of {scheme}, written {way}") for i in range(count)]
    if scene.said:
        raise Failed("something was said")
    return done


CASES = {
    "full_descriptor_tables_of_several_files": full_tables_of_several,
    "full_descriptor_tables": full_tables,
    "full_descriptor_tables_of_few": full_tables_of_few,
}


if __name__ == "__main__":
    main(__doc__, CASES)
