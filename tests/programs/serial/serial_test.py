#!/usr/bin/env python3
"""One unmodified program that writes by plain file calls: natively, as mirror:3 with a target lost afterwards, and as rs:4+2 with two
targets taken away while it runs, without buffers and with small ones, and plain with buffers; every file is compared byte for byte.

  serial_test.py --build BUILD [--keep] PROGRAM [LAUNCHER...]      PROGRAM: an executable or a Python script
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
from targets import delete


def run(command, expected=0, during=None, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**clean, **environment}, start_new_session=True)
        try:
            if during:
                during(process)
            process.wait(100)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != expected:
        sys.exit(f"{' '.join(command)} ended with {process.returncode} and was to end with {expected}:\n{text}")
    return text


class Row:
    def __init__(self, options, scratch):
        self.holdfast = os.path.join(options.build, "bin", "holdfast")
        self.scratch = scratch
        self.runs = 0
        self.program = [*options.launcher, *(["/usr/bin/python3"] if options.program.endswith(".py") else []), options.program]
        self.native = os.path.join(scratch, "native")
        os.mkdir(self.native)
        run([*self.program, os.path.join(self.native, "out")])

    def buffered(self, buffer):
        """Plain files with buffers before them are as without."""
        directory = os.path.join(self.scratch, "plain-" + buffer)
        os.mkdir(directory)
        run([self.holdfast, "run", "--buffer", buffer, "--path", "out.*", "--", *self.program, os.path.join(directory, "out")])
        for name in sorted(os.listdir(self.native)):
            with open(os.path.join(directory, name), "rb") as ours, open(os.path.join(self.native, name), "rb") as native:
                if ours.read() != native.read():
                    sys.exit(f"plain with buffers {buffer}: {name} differs from the native one")

    def protected(self, scheme, targets, lose, *more):
        """Runs under `scheme`; the targets of `lose` go in the middle. Returns the directory and what locates its files."""
        self.runs += 1
        directory = os.path.join(self.scratch, f"run{self.runs}")
        os.mkdir(directory)
        places = [os.path.join(self.scratch, f"t{self.runs}.{i}") for i in range(targets)]
        for place in places:
            os.mkdir(place)
        flag = os.path.join(self.scratch, "flag")

        def take_away(process):
            for _ in range(6000):
                if os.path.exists(flag + ".pause") or process.poll() is not None:
                    break
                time.sleep(0.01)
            for i in lose:
                delete(places[i])
            if os.path.exists(flag + ".pause"):
                os.unlink(flag + ".pause")

        text = run([self.holdfast, "run", "--protect", scheme, "--targets", ",".join(places), "--path", "out.*", *more, "--", *self.program,
                    os.path.join(directory, "out")], HOLDFAST_STRIPING_UNIT="64KiB", during=take_away, **({"PAUSE": flag} if lose else {}))
        return directory, places, text

    def compare(self, directory, what):
        names = sorted(os.listdir(self.native))
        found = sorted(n for n in os.listdir(directory) if not n.startswith("."))
        if names != found:
            sys.exit(f"{what}: {found} is there and was to be {names}")
        for name in names:
            path, copy = os.path.join(directory, name), os.path.join(self.scratch, "copy")
            if name + " " in " ".join(self.plain(directory)) + " ":
                sys.exit(f"{what}: {name} is not protected")
            run([self.holdfast, "export", "--force", path, copy])
            if open(copy, "rb").read() != open(os.path.join(self.native, name), "rb").read():
                sys.exit(f"{what}: {name} differs from the native one")

    def plain(self, directory):
        return [n for n in os.listdir(directory) if not n.startswith(".") and not os.path.isdir(os.path.join(directory, f".{n}.holdfast"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("program")
    parser.add_argument("launcher", nargs="*")
    options = parser.parse_args()
    if options.program.endswith(".py") and subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
        print("numpy is not installed")
        sys.exit(77)
    scratch = tempfile.mkdtemp(prefix="holdfast-serial.")
    try:
        row = Row(options, scratch)
        directory, places, _ = row.protected("mirror:3", 3, [])
        row.compare(directory, "mirror:3")
        shutil.rmtree(places[0])
        row.compare(directory, "mirror:3 with a target lost")
        directory, places, _ = row.protected("rs:4+2", 6, [1, 4])
        row.compare(directory, "rs:4+2 with two targets lost half way")
        directory, places, _ = row.protected("rs:4+2", 6, [1, 4], "--buffer", "2x100k")
        row.compare(directory, "rs:4+2 with buffers, and two targets lost half way")
        for buffer in ("4x1MiB", "2x10000"):
            row.buffered(buffer)
    finally:
        if options.keep:
            print(scratch)
        else:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
