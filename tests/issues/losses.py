#!/usr/bin/env python3
"""Runs one program of this folder natively, then with protected files, and looks at every byte that it leaves.

  losses.py --build BUILD [--mpi MPI] [--times N] [--protect SCHEME] FACT VARIANT

A FACT is a program's name; its own first lines say what it does. The native run must be right too: it is the reference. Then, N times on fresh
targets: the program finds what it has written, `export` gives the native run's bytes, and `verify` finds nothing.
"""
import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs"))
from matrix import Failed, launcher, run  # noqa: E402

JOB_SECONDS = 100
RECORDS = 150  # that each appending process writes


class Scene:
    """A directory for the program's file, `prefix` before each command that starts it, and what is done with the file afterwards."""

    def __init__(self, options, directory, protected):
        os.mkdir(directory)
        self.options, self.directory, self.protected = options, directory, protected
        self.file = os.path.join(directory, "file")
        self.holdfast = os.path.join(options.build, "bin", "holdfast")
        self.program = os.path.join(options.build, "tests", "issues", options.mpi or "plain", options.fact)
        self.prefix = []
        if protected:
            targets = [os.path.join(directory, f"t{i}") for i in range(options.targets)]
            for target in targets:
                os.mkdir(target)
            self.prefix = [self.holdfast, "run", "--protect", options.protect, "--striping-unit", "4096", "--targets", ",".join(targets),
                           "--path", self.file, "--"]

    def beside(self, name):
        """A path for what the program and this driver tell each other, under no policy."""
        return os.path.join(self.directory, name)

    def job(self, ranks, *arguments):
        return self.prefix + launcher(self.options.mpi, ranks) + [self.program, self.file, *arguments]

    def side_by_side(self, commands, meanwhile=None):
        """All at once; each must end with 0. `meanwhile(processes)` is called when they run."""
        started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    start_new_session=True) for command in commands]
        try:
            if meanwhile:
                meanwhile(started)
            said = [process.communicate(timeout=JOB_SECONDS)[0] for process in started]
        except subprocess.TimeoutExpired:
            raise Failed(f"did not end within {JOB_SECONDS} s: {commands}") from None
        finally:
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.wait()
        for process, command, text in zip(started, commands, said):
            if process.returncode:
                raise Failed(f"exit code {process.returncode}: {' '.join(command)}\n{text[-2000:]}")

    def bytes(self, name):
        """The file's content as a plain file, after `verify` has found nothing."""
        if not self.protected:
            return self.file
        run([self.holdfast, "verify", self.file])
        plain = self.beside(name)
        run([self.holdfast, "export", self.file, plain])
        return plain


def one_job(scene):
    run(scene.job(2, scene.options.variant), seconds=JOB_SECONDS)


def four_ranks(scene):
    run(scene.job(4, scene.options.variant), seconds=JOB_SECONDS)
    scene.bytes("verified")


def two_openers(scene):
    if scene.options.variant != "two_jobs":
        run(scene.job(4, "ranks", scene.options.variant), seconds=JOB_SECONDS)
        return
    run(scene.job(1, "create"), seconds=JOB_SECONDS)
    meeting = scene.beside("meeting")
    scene.side_by_side([scene.job(2, "job", "0", meeting), scene.job(2, "job", "1", meeting)])
    run(scene.job(1, "check"), seconds=JOB_SECONDS)


def repair_beside(scene):
    go = scene.beside("go")

    def repair_again_and_again(processes):
        while not os.path.exists(go) and processes[0].poll() is None:
            time.sleep(0.01)
        while processes[0].poll() is None:
            done = subprocess.run([scene.holdfast, "repair", scene.file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=JOB_SECONDS, check=False)
            if done.returncode != 0 and processes[0].poll() is None:
                raise Failed(f"repair beside the job, exit code {done.returncode}: {done.stdout}")

    scene.side_by_side([scene.job(2, go)], repair_again_and_again if scene.protected else None)


def appends(scene):
    meeting = scene.beside("meeting")
    both = [scene.prefix + [scene.program, scene.file, scene.options.variant, str(who), str(RECORDS), meeting] for who in (0, 1)]
    scene.side_by_side(both)
    run(scene.prefix + [scene.program, scene.file, "check", "2", str(RECORDS)])
    run([scene.program, scene.bytes("appended"), "check", "2", str(RECORDS)])


FACTS = {
    "a_row_written_whole_and_then_in_part_keeps_both": one_job,
    "a_seek_of_the_shared_pointer_shows_what_was_written_through_it": four_ranks,
    "two_openers_of_disjoint_bytes_lose_nothing": two_openers,
    "a_repair_beside_a_job_takes_nothing_back": repair_beside,
    "appends_of_two_processes_do_not_overlap": appends,
}
# Their records may lie in another order at each run.
IN_ANY_ORDER = {"a_seek_of_the_shared_pointer_shows_what_was_written_through_it", "appends_of_two_processes_do_not_overlap"}


def one_time(options, scratch, native, number):
    directory = os.path.join(scratch, str(number))
    scene = Scene(options, directory, protected=True)
    FACTS[options.fact](scene)
    if options.fact not in IN_ANY_ORDER and not filecmp.cmp(native.file, scene.bytes("exported"), shallow=False):
        raise Failed("the exported file differs from the native run's, and verify has found nothing")
    shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--mpi", help="mpich or openmpi, for programs of MPI")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--protect", default="rs:2+1")
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("fact", choices=FACTS)
    parser.add_argument("variant")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as scratch:
        try:
            native = Scene(options, os.path.join(scratch, "native"), protected=False)
            FACTS[options.fact](native)
        except Failed as why:
            print(f"natively: {why}")
            return 1
        for number in range(options.times):
            try:
                one_time(options, scratch, native, number)
            except Failed as why:
                failed += 1
                print(f"{options.fact} {options.variant}: run {number + 1}: {why}", flush=True)
    print(f"{options.fact} {options.variant}: {failed} of {options.times} runs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
