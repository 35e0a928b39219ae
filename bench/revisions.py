#!/usr/bin/env python3
"""Two builds of Holdfast side by side: the same programs under each in turn, and natively, so that a busy machine disturbs all alike.

  revisions.py --before BUILD --after BUILD [--mpi openmpi|mpich] [--times N] [--directory DIR] [--only NAME,...] [--markdown]

Stated are the medians of the ratios of each repetition: after to before (above 1: the later build is slower), and after to native. Programs are
those of the later build. A kept revision is built in a work tree of its own (git worktree add), so that both builds stay.
"""
import argparse
import os
import random
import shutil
import statistics
import tempfile

from harness import last_json, run_command
from workloads import launcher

RS, MIRROR = "rs:4+2", "mirror:3"
MIB = 1 << 20


class Case:
    """One line: a program's arguments, and what protects its file (None: no policy). `reads` is of a file that was written before."""

    def __init__(self, name, what, program, arguments, protect, ranks=4, reads=False):
        self.name, self.what, self.program, self.arguments = name, what, program, [str(a) for a in arguments]
        self.protect, self.ranks, self.reads = protect, ranks, reads


def cases(size):
    blocks = ["--bytes", size, "--block", MIB]
    write, read = ["--mode", "write", *blocks], ["--mode", "read", *blocks]
    return [
        Case("plain", "no policy, written", "mpiio_bench", write, None),
        Case("mirror", "mirror:3, written", "mpiio_bench", write, MIRROR),
        Case("mirror-sync", "mirror:3, written and synced", "mpiio_bench", [*write, "--sync"], MIRROR),
        Case("rs", "rs:4+2, written", "mpiio_bench", write, RS),
        Case("rs-sync", "rs:4+2, written and synced", "mpiio_bench", [*write, "--sync"], RS),
        Case("collective", "rs:4+2, collective calls of 1 MiB blocks in turn", "mpiio_bench", [*write, "--strided"], RS),
        Case("read", "rs:4+2, read", "mpiio_bench", read, RS, reads=True),
        Case("read-mirror", "mirror:3, read", "mpiio_bench", read, MIRROR, reads=True),
        Case("nested", "rs:4+2, nested strided view", "small_collectives", ["--pattern", "nested"], RS),
        Case("small", "rs:4+2, collective calls of 64 KiB a rank", "small_collectives", ["--pattern", "side"], RS),
        Case("shared", "no policy, shared pointer, records of 64 KiB", "shared_bench", ["--mode", "shared", "--record", 65536, "--each", 256], None),
        Case("shared-rs", "rs:4+2, shared pointer, records of 64 KiB", "shared_bench", ["--mode", "shared", "--record", 65536, "--each", 256], RS),
        Case("open", "rs:4+2, 4 KiB by one rank: open and close", "mpiio_bench", ["--mode", "write", "--bytes", 4096, "--block", 4096], RS, ranks=1),
    ]


class Side:
    def __init__(self, options, case, scratch, name, build):
        self.options, self.case, self.build = options, case, build
        self.path = os.path.join(scratch, f"{case.name}.{name}")
        self.targets = [os.path.join(scratch, f"{case.name}.{name}.t{i}") for i in range(6)] if build and case.protect else []
        for target in self.targets:
            os.mkdir(target)

    def command(self, *more):
        program = os.path.join(self.options.after, "bin", "bench", f"{self.case.program}.{self.options.mpi}")
        job = [*launcher(self.options.mpi, self.case.ranks), program, "--path", self.path, *self.case.arguments, *more]
        if not self.build:
            return job
        protect = ["--protect", self.case.protect, "--targets", ",".join(self.targets)] if self.case.protect else []
        return [self.holdfast, "run", *protect, "--", *job]

    @property
    def holdfast(self):
        return os.path.join(self.build, "bin", "holdfast")

    def forget(self):
        if not os.path.lexists(self.path):
            return
        if self.targets:
            run_command([self.holdfast, "rm", self.path], {})
        else:
            os.unlink(self.path)

    def run(self):
        if self.case.reads:
            if not os.path.lexists(self.path):
                run_command(self.command("--mode", "write"), {})
        else:
            self.forget()
        out, _ = run_command(self.command(), {})
        return last_json(out)["seconds"]


def measure(options, case):
    scratch = tempfile.mkdtemp(prefix="revisions.", dir=options.directory)
    try:
        sides = {name: Side(options, case, scratch, name, build)
                 for name, build in (("native", None), ("before", options.before), ("after", options.after))}
        for side in sides.values():
            side.run()
        times = {name: [] for name in sides}
        for _ in range(options.times):
            for name in random.sample(list(sides), len(sides)):
                times[name].append(sides[name].run())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    ratio = lambda a, b: statistics.median(x / y for x, y in zip(times[a], times[b]))
    least = min(times["after"]) / min(times["before"])
    return ratio("after", "before"), least, ratio("before", "native"), ratio("after", "native"), statistics.median(times["native"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=os.path.abspath)
    parser.add_argument("--after", required=True, type=os.path.abspath)
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--size", type=int, default=128 * MIB, help="bytes of the larger files")
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    print("| what | after / before | least times | before / native | after / native | native |\n| --- | ---: | ---: | ---: | ---: | ---: |"
          if options.markdown else "after/before  least  before/native  after/native")
    for case in cases(options.size):
        if options.only and case.name not in options.only.split(","):
            continue
        change, least, before, after, native = measure(options, case)
        print(f"| {case.what} | {change:.2f} | {least:.2f} | {before:.2f} | {after:.2f} | {native * 1000:.1f} ms |" if options.markdown else
              f"{change:12.2f} {least:6.2f} {before:14.2f} {after:13.2f}  {case.what} ({native * 1000:.1f} ms natively)", flush=True)


if __name__ == "__main__":
    main()
