#!/usr/bin/env python3
"""Shared pointers with each rank on a node of its own (tests/tools/nodes.py): every algorithm, on MPI's own files and on protected
ones; what is in the files, and which algorithm the job log says has served them."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "intercept"), str(TESTS / "records")]
import launch  # noqa: E402
import records  # noqa: E402

NODES = TESTS.parent / "tools" / "nodes.py"
SKIP, LEFT_OVER = 77, 99  # of nodes.py
RANKS = 4
ALGORITHMS = ("window", "process", "individual", "single", "automatic")


def served_by(algorithm, may_progress):
    """Who may serve where no two ranks share memory. `may_progress`: whether this MPI's one-sided operations over TCP need no help of
    their target depends on how it was built."""
    if algorithm in ("process", "individual", "single"):
        return {algorithm}
    return {"process", "window"} if may_progress else {"process"}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Job:
    """One run on fresh directories: a plain file's, a protected one's, and its two targets."""

    def __init__(self, options, root, **settings):
        self.options, self.root = options, root
        self.plain, self.protected, self.log = root / "plain", root / "protected", root / "log"
        targets = [root / "target0", root / "target1"]
        for directory in (self.plain, self.protected, self.log, *targets):
            directory.mkdir()
        self.settings = {"HOLDFAST_PROTECT": "mirror:2", "HOLDFAST_TARGETS": ",".join(map(str, targets)),
                         "HOLDFAST_PATH": str(self.protected / "*"), "HOLDFAST_ALLOW_SHARED_TARGET": "1", "HOLDFAST_STRIPING_UNIT": "12288",
                         "HOLDFAST_CONFIG": "", "HOLDFAST_LOG_DIRECTORY": str(self.log), "LD_PRELOAD": ":".join([options.library, *options.preload]), **settings}

    def run_on(self, nodes, launcher_options, *program):
        launcher = [launch.command(self.options.mpicc, RANKS)[0], *launcher_options, "-n", str(RANKS)]
        command = [sys.executable, "-B", str(NODES), "--count", str(nodes), "--", *launcher, "env",
                   *(f"{k}={v}" for k, v in self.settings.items()), *map(str, program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=self.options.timeout)
        if done.returncode == SKIP:
            raise Skipped(done.stderr.strip())
        return done

    def run(self, *program):
        done = self.run_on(RANKS, [], *program)
        if done.returncode != 0:
            raise Failed(f"exit {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")

    def served(self):
        """Path -> the algorithms that the job log has for it."""
        found = {}
        for line in (self.log / "shared-pointers.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["ranks"] == RANKS:  # the programs also look at files from one rank alone
                found.setdefault(pathlib.Path(entry["file"]), set()).add(entry["served"])
        return found


def check_served(job, paths, wanted):
    served = job.served()
    for path in paths:
        if not served.get(path) or not served[path] <= wanted:
            raise Failed(f"{path.name} in {path.parent.name}: served by {served.get(path)}, not {wanted}")


def all_calls(options, root, algorithm):
    """tests/mpi/frontend/shared.c: records, work, all calls against a model, groups, mistakes."""
    job = Job(options, root, HOLDFAST_SHARED_POINTER=algorithm)
    job.run(options.shared, job.plain, job.protected, 60, 12, 24)
    check_served(job, [folder / name for folder in (job.plain, job.protected) for name in ("records", "work", "model")],
                 served_by(algorithm, options.may_progress))


def self_describing(options, root, algorithm):
    """tests/mpi/records/writer.c: nonblocking, ordered and strided writes with other accesses in between; each record is verified."""
    job = Job(options, root, HOLDFAST_SHARED_POINTER=algorithm)
    each = 120
    paths = [job.plain / "out", job.protected / "out"]
    for path in paths:
        job.run(options.writer, path, each, 60, RANKS, "mixed")
    copied = root / "copied"
    copied.write_bytes(subprocess.run([options.holdfast, "cat", str(paths[1])], stdout=subprocess.PIPE, check=True).stdout)
    for path in (paths[0], copied):
        records.check(path, RANKS, [each] * RANKS)
    check_served(job, paths, served_by(algorithm, options.may_progress))
    for directory in (job.plain, job.protected):
        if left := records.leftovers(directory):
            raise Failed(f"left behind: {left}")


def arguments(*programs):
    parser = argparse.ArgumentParser()
    for name in ("mpicc", "library", *programs):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--preload", action="append", default=[], help="a library that lies behind ours")
    parser.add_argument("--timeout", type=int, default=120, help="of one job, in seconds")
    return parser


def run_all(cases, run):
    """Each case in a fresh directory: run(root, *case). The exit code of the test."""
    failures = 0
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="holdfast-nodes-test-") as name:
            try:
                run(pathlib.Path(name), *case)
            except Skipped as reason:
                print(reason)
                return SKIP
            except (Failed, ValueError, OSError, subprocess.SubprocessError) as error:
                print(f"{', '.join(getattr(part, '__name__', str(part)) for part in case)}: {error}")
                failures += 1
    return 1 if failures else 0


def main():
    parser = arguments("holdfast", "writer", "shared")
    parser.add_argument("--may-progress", action="store_true", help="nobody knows of this MPI's one-sided operations whether they need help")
    parser.add_argument("--only", default=",".join(ALGORITHMS))
    options = parser.parse_args()
    # all_calls checks when positions move, which logs do at other times.
    cases = [(case, algorithm) for algorithm in options.only.split(",") for case in (all_calls, self_describing)
             if case is self_describing or algorithm not in ("individual", "single")]
    return run_all(cases, lambda root, case, algorithm: case(options, root, algorithm))


if __name__ == "__main__":
    sys.exit(main())
