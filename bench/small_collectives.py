#!/usr/bin/env python3
"""Small collective writes (small_collectives.c): what goes to the targets for each byte of the program's, and the time against native.

  small_collectives.py [--build BUILD] [--protect SCHEME] [--mpi MPI] [--times N] [--markdown]

The two sides of a pattern run in turn, N times; stated are medians. Bytes are those of the system's calls on the targets, as the job's profile
counts them: units, records, manifests, journals and what waits on the targets, in sum. Each file is read back and compared once. With --markdown
the table is the one of docs/benchmarks-small-collectives.md.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

PATTERNS = {"side": "32 calls of 64 KiB a rank, side by side", "odd": "20 calls of 100,000 bytes a rank, side by side",
            "nested": "nested strided view, 0.8 MiB in 20 steps", "tiny": "64 calls of 4 KiB a rank, side by side"}
MOST_WRITTEN, MOST_READ, MOST_TIME = 1.2, 0.1, 1.15  # times (K+M)/K; times the data; times (K+M)/K and native


def launcher(mpi, ranks):
    if mpi == "mpich":
        return ["mpirun.mpich", "-n", str(ranks)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


class Pattern:
    def __init__(self, options, name, scratch):
        self.options, self.name = options, name
        self.holdfast = os.path.join(options.build, "bin", "holdfast")
        self.program = os.path.join(options.build, "bin", "bench", f"small_collectives.{options.mpi}")
        self.native, self.ours, self.log = (os.path.join(scratch, f"{name}.{end}") for end in ("native", "ours", "log"))
        self.targets = [os.path.join(scratch, f"{name}.t{i}") for i in range(options.units)]
        for target in self.targets:
            os.mkdir(target)

    def job(self, path, *more):
        done = subprocess.run([*self.prefix(path), *launcher(self.options.mpi, self.options.ranks), self.program, "--path", path, "--pattern", self.name,
                               *more], check=True, capture_output=True, text=True, timeout=240)
        return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))

    def prefix(self, path):
        if path == self.native:
            return []
        return [self.holdfast, "run", "--profile", "--log", self.log, "--protect", self.options.protect, "--targets", ",".join(self.targets), "--"]

    def system_bytes(self):
        told = json.loads(subprocess.run([self.holdfast, "report", self.log, "--json"], check=True, capture_output=True, text=True).stdout)
        total = next(file["total"] for file in told["files"] if file["path"] == self.ours)
        return total["system_write_bytes"] / total["bytes_written"], total.get("system_read_bytes", 0) / total["bytes_written"]

    def once(self):
        """Seconds natively and protected, and what was written and read below for each byte. Files are new each time."""
        if os.path.exists(self.native):
            os.unlink(self.native)
            subprocess.run([self.holdfast, "rm", self.ours], check=True, capture_output=True)
        native = self.job(self.native)["seconds"]
        ours = self.job(self.ours)["seconds"]
        return native, ours, *self.system_bytes()

    def measure(self):
        runs = [self.once() for _ in range(self.options.times)]
        for path in (self.native, self.ours):
            self.job(path, "--mode", "verify")
        return [statistics.median(values) for values in zip(*((ours / native, native, ours, written, read) for native, ours, written, read in runs))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--protect", default="rs:4+2")
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    k, m = (int(part) for part in options.protect.removeprefix("rs:").split("+"))
    options.units, code = k + m, (k + m) / k
    print("| pattern | written for each byte | wanted | read for each byte | wanted | time against native | wanted |\n| --- | --- | --- | --- | --- | --- | --- |"
          if options.markdown else f"{options.protect}, {options.mpi}, {options.ranks} ranks")
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        for name, what in PATTERNS.items():
            ratio, native, ours, written, read = Pattern(options, name, scratch).measure()
            limits = [f"≤ {MOST_WRITTEN * code:.2f}", f"≤ {MOST_READ:.2f}", f"≤ {MOST_TIME * code:.2f} ×"]
            cells = [what, f"{written:.2f}", limits[0], f"{read:.2f}", limits[1], f"{ratio:.2f} × ({native * 1e3:.0f} → {ours * 1e3:.0f} ms)", limits[2]]
            print("| " + " | ".join(cells) + " |" if options.markdown else "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
