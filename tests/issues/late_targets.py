#!/usr/bin/env python3
"""Two ranks find targets slow, other ones each: together more than the file can miss, and the sync waits for them.

  late_targets.py --build BUILD --mpi MPI CASE

Six targets lie on a FUSE file system (tests/tools/faultfs.c) that each rank has a mount of, as on nodes of their own. Rank 0's first write to targets
0 and 1 hangs, then rank 1's to targets 2 and 3; each rank gives up its two after a deadline, as rs:4+2 bears. Only then the ranks sync.

  answering   the targets answer again while the sync waits: it succeeds
  answered    they have answered before it: nothing is lost, and every byte is on every target
  silent      they never do: the sync fails on all ranks, and the job ends

Exit code 77: no FUSE or namespaces here.
"""
import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../programs"), os.path.join(HERE, "../tools")]
import faultfs  # noqa: E402
from matrix import Failed, launcher, run  # noqa: E402

PROGRAM = "a_sync_waits_for_targets_that_ranks_found_late"
DEADLINE, PATIENCE, SECONDS = 1.5, 4, 100

# By rank; what hangs goes on hanging as long as there is a rule for it.
SLOW = [f"write hang count=1 name=/t{first}/\nwrite hang count=1 name=/t{first + 1}/" for first in (0, 2)]
# Rank 1 sees its own mount where rank 0 sees another.
OWN_MOUNT = """#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] || exec "$@"
exec unshare --mount sh -c 'mount --make-rprivate / && mount --bind "$0" "$1" && shift && exec "$@"' %s %s "$@"
"""


class Job:
    def __init__(self, prefix, wrapper, options, scratch, name):
        self.file, self.meeting = os.path.join(scratch, name), os.path.join(scratch, name + ".meeting")
        program = os.path.join(options.build, "tests", "issues", options.mpi, PROGRAM)
        self.process = subprocess.Popen([*prefix, *launcher(options.mpi, 2), *wrapper, program, self.file, self.meeting], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def says(self, what):
        return os.path.exists(f"{self.meeting}.{what}")

    def wait_for(self, what):
        end = time.time() + SECONDS
        while not self.says(what):
            if self.process.poll() is not None:
                raise Failed(f"ended before {what}: {self.process.communicate()[0][-2000:]}")
            if time.time() > end:
                raise Failed(f"{what}: not within {SECONDS} s")
            time.sleep(0.01)

    def tell(self, what):
        with open(f"{self.meeting}.{what}", "w", encoding="ascii"):
            pass

    def ends(self):
        said = self.process.communicate(timeout=SECONDS)[0]
        return self.process.returncode, said

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()


def answer(mounts):
    for mount in mounts:
        mount.order("")


def play(job, mounts, case):
    for rank, mount in enumerate(mounts):
        job.wait_for(f"open{rank}")
        mount.order(SLOW[rank])
        job.tell(f"go{rank}")
        job.wait_for(f"wrote{rank}")
    if case == "answered":
        answer(mounts)
        time.sleep(0.5)
    job.tell("go2")
    job.wait_for("syncs0")
    if case == "answering":
        time.sleep(1.5 * DEADLINE)
        if job.says("synced0") or job.says("failed0"):
            raise Failed("the sync did not wait")
        answer(mounts)


def expect_whole(holdfast, job, native, scratch, case):
    if case == "answering":  # the sync goes on when as few are missing as may be: the last may be too late for it
        run([holdfast, "repair", job.file])
    run([holdfast, "status", job.file])
    run([holdfast, "verify", job.file])
    exported = os.path.join(scratch, "exported")
    run([holdfast, "export", job.file, exported])
    if not filecmp.cmp(exported, native, shallow=False):
        raise Failed("the file is not what the native run has left")


def play_case(options, scratch):
    holdfast, faults = (os.path.join(options.build, "bin", name) for name in ("holdfast", "faultfs"))
    mounts, jobs = [faultfs.Mount(faults, scratch, "mount")], []
    try:
        mounts.append(faultfs.Mount(faults, scratch, "other", of=mounts[0]))
        if os.geteuid() != 0 or not all(mount.works() for mount in mounts):
            return 77
        targets = [os.path.join(mounts[0].path, f"t{i}") for i in range(6)]
        for target in targets:
            os.mkdir(target)
        wrapper = os.path.join(scratch, "own_mount")
        with open(wrapper, "w", encoding="ascii") as file:
            file.write(OWN_MOUNT % (mounts[1].path, mounts[0].path))
        os.chmod(wrapper, 0o755)
        jobs.append(Job([], [], options, scratch, "native"))
        for number in range(3):
            jobs[0].tell(f"go{number}")
        code, said = jobs[0].ends()
        if code:
            raise Failed(f"natively: exit code {code}\n{said}")
        jobs.append(Job([holdfast, "run", "--protect", "rs:4+2", "--striping-unit", "64KiB", "--targets", ",".join(targets), "--deadline",
                         f"{int(DEADLINE * 1000)}ms", "--patience", str(PATIENCE), "--path", os.path.join(scratch, "file"), "--"],
                        [wrapper], options, scratch, "file"))
        play(jobs[1], mounts, options.case)
        code, said = jobs[1].ends()
        lost = options.case == "silent"
        if (code != 0) != lost or any(jobs[1].says(f"failed{rank}") != lost for rank in (0, 1)):
            raise Failed(f"exit code {code}\n{said}")
        answer(mounts)
        if not lost:
            expect_whole(holdfast, jobs[1], jobs[0].file, scratch, options.case)
    finally:
        for job in jobs:
            job.end()
        for mount in mounts:
            mount.end()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("case", choices=["answering", "answered", "silent"])
    options = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            code = play_case(options, scratch)
        except Failed as why:
            print(f"{options.case}: FAILED: {why}")
            return 1
    print(f"{options.case}: {'no FUSE here' if code else 'ok'}, {time.monotonic() - begin:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
