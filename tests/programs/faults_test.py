#!/usr/bin/env python3
"""An unmodified program writes while one of its six targets fails in every way that storage is known to fail.

  faults_test.py --build BUILD MPI [--ranks N] [FAULT...]

The target is a FUSE pass-through (tests/tools/faultfs.c) that is told to fail in the middle of the run. For each fault: the job ends by itself
with exit code 0 and the native run's bytes, also when the kernel holds calls that cannot be killed; `status` says degraded while the fault
lasts, and ends; then the fault goes, `repair` mends in place, `verify` finds nothing. Exit code 77: no FUSE here.
"""
import argparse
import filecmp
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

STEPS, EVERY, PAUSE_MS = 24, 3, 120
DEADLINE_SECONDS = 1
# fault: (rules for faultfs, exit code of status afterwards while they hold)
FAULTS = {
    "EIO": ("any errno EIO", 1),
    "ENOSPC": ("write errno ENOSPC\ncreate errno ENOSPC", 1),
    "EROFS": ("write errno EROFS\nopen errno EROFS\ncreate errno EROFS\nmkdir errno EROFS\nrename errno EROFS\nfsync errno EROFS", 1),
    "EACCES": ("any errno EACCES", 1),
    "ESTALE": ("any errno ESTALE", 1),
    "short": ("write short", 1),
    "lose": ("write lose", 1),
    "fsync": ("fsync errno EIO", 1),
    "flip_write": ("write flip 4097", 1),
    "flip_read": ("read flip 70001", 1),
    "delay": ("any delay 5", 0),
    "hang": ("any hang", 1),
    "stuck": ("any stuck", 1),
    "killed": (None, 1),     # the server dies: ENOTCONN
    "unmounted": (None, 1),  # what is written by path would land below the mount
}


class Failed(Exception):
    pass


class Target(faultfs.Mount):
    """A target on faultfs; ends what it started."""

    def __init__(self, build, scratch):
        super().__init__(os.path.join(build, "bin", "faultfs"), scratch, "t2")

    def fail(self, name):
        if name == "killed":
            self.server.kill()
            self.server.wait()
        elif name == "unmounted":
            subprocess.run(["fusermount3", "-u", "-z", self.path], check=True)
        else:
            self.order(FAULTS[name][0])

    def mend(self, name):
        """The fault goes: what lies on the disk below is what the target has from now on."""
        if name not in ("killed", "unmounted"):
            return self.order("")
        self.end()
        os.rmdir(self.path)  # fails if anything was written below the mount
        os.rename(self.backing, self.path)


def launcher(mpi, ranks):
    if mpi == "mpich":
        return ["mpirun.mpich", "-n", str(ranks)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def run(command, expected, seconds=60, during=None):
    """As a shell does it: until everybody who has the output has closed it. What does not end is killed, with all it started."""
    with tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=error, stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, "HOLDFAST_DEADLINE": f"{DEADLINE_SECONDS}s", "HOLDFAST_STRIPING_UNIT": "64KiB"})
        try:
            if during:
                during(process)
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"did not end within {seconds} s: {' '.join(command)}") from None
        finally:
            error.seek(0)
            said = error.read()
    if process.returncode != expected:
        raise Failed(f"exit code {process.returncode} instead of {expected}: {' '.join(command)}\n{output.decode()}{said}")
    return said


def one_fault(name, options, native, scratch):
    holdfast = os.path.join(options.build, "bin", "holdfast")
    path, exported = os.path.join(scratch, "out.heat"), os.path.join(scratch, "exported")
    targets = [os.path.join(scratch, f"t{i}") for i in range(6)]
    for target in targets[:2] + targets[3:]:
        os.mkdir(target)
    mount = Target(options.build, scratch)
    try:
        if not mount.works():
            print("faultfs cannot mount here")
            sys.exit(77)

        def fail_in_the_middle(process):
            time.sleep(PAUSE_MS * STEPS / EVERY / 2 / 1000)
            if process.poll() is not None:
                raise Failed("the job ended before its middle")
            mount.fail(name)

        run([holdfast, "run", "--protect", "rs:4+2", "--targets", ",".join(targets), "--", *launcher(options.mpi, options.ranks),
             *program(options, path)], 0, during=fail_in_the_middle)
        run([holdfast, "status", path], FAULTS[name][1])
        run([holdfast, "export", path, exported], 0)
        if not filecmp.cmp(native, exported, shallow=False):
            raise Failed("the file differs from the native run's while the fault lasts")
        mount.mend(name)
        run([holdfast, "repair", path], 0)
        run([holdfast, "status", path], 0)
        run([holdfast, "verify", path], 0)
        os.unlink(exported)
        run([holdfast, "export", path, exported], 0)
        if not filecmp.cmp(native, exported, shallow=False):
            raise Failed("the file differs from the native run's after the repair")
    finally:
        mount.end()


def program(options, path):
    return [os.path.join(options.build, "examples", options.mpi, "heat"), path, "203", "301", str(STEPS), str(EVERY), "--pause-ms", str(PAUSE_MS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("mpi", choices=["openmpi", "mpich"])
    parser.add_argument("faults", nargs="*", default=list(FAULTS))
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        native = os.path.join(scratch, "native")
        run(launcher(options.mpi, options.ranks) + program(options, native), 0)
        for name in options.faults or list(FAULTS):
            begin = time.monotonic()
            directory = os.path.join(scratch, name)
            os.mkdir(directory)
            try:
                one_fault(name, options, native, directory)
                print(f"{name}: ok, {time.monotonic() - begin:.1f} s", flush=True)
            except Failed as why:
                failed += 1
                print(f"{name}: FAILED: {why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
