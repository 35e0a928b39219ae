#!/usr/bin/env python3
"""Runs one unmodified program natively and under `holdfast run`, with targets taken away, and compares every file it leaves.

  matrix.py --build BUILD PROGRAM MPI [--ranks N] [--keep] [--native-only]

What one row does:
  1. native: the program checks itself; its files are the reference. Failures that an MPI is known to have are in
     KNOWN_NATIVE_FAILURES and are left out of the native run only.
  2. mirror:3 on three targets, nothing lost: no failure at all, same bytes by `holdfast export`, nothing else in the directory;
     then one target goes between this run and the next reader: same bytes.
  3. rs:4+2 on six targets, two of which go while the program waits in its middle: no failure at all, same bytes, status 1;
     repaired onto two new ones: same bytes, status 0, verify 0.
Exit code 77: the row needs something that is not installed.
"""
import argparse
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# (program, mpi): {section: why}. A protected file does all of them right, so there nothing is left out.
KNOWN_NATIVE_FAILURES = {
    ("nonblocking", "mpich"): {
        "testall_until_done": "MPICH 4.0.2 frees a file's request twice in repeated MPI_Testall (assertion in mpir_request.h)"},
    ("sizes", "mpich"): {
        "collective_reads_past_the_end_are_short": "ROMIO's collective reads report the full count past the end",
        "strided_reads_past_the_end_are_short": "ROMIO's data sieving reports the full count past the end"},
    ("sizes", "openmpi"): {
        "collective_reads_past_the_end_are_short": "OMPIO's collective reads report the full count past the end",
        "preallocate_keeps_content": "OMPIO's preallocate leaves a rest of its buffer in the new part of the file"},
    ("access_modes", "openmpi"): {
        "sequential_refuses_other_pointers": "OMPIO lets explicit offsets and seeks pass in MPI_MODE_SEQUENTIAL"},
    ("atomic", "openmpi"): {
        "overlapping_writes_do_not_mix": "OMPIO 4.1 has no atomic mode",
        "strided_overlapping_writes_do_not_mix": "OMPIO 4.1 has no atomic mode"},
    ("errors", "openmpi"): {
        "bad_arguments_are_refused": "OMPIO reports success for a write at a negative offset"},
    ("external32", "openmpi"): {
        "internal_comes_back": "OMPIO 4.1 does not know the representation internal"},
    ("large", "openmpi"): {
        "offsets_beyond_4_gib": "OMPIO cuts MPI_SEEK_END's offset to 32 bits"},
}
RUN_SECONDS = 100


class Failed(Exception):
    pass


class Missing(Exception):
    pass


def launcher(mpi, ranks):
    if mpi == "mpich":
        return ["mpirun.mpich", "-n", str(ranks)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


class Program:
    """How a program is called, and which of its files are compared."""

    def __init__(self, name, mpi, build):
        self.name, self.mpi, self.build = name, mpi, build
        self.pauses = True
        # Files that stay as they are: LAMMPS begins a restart file by fwrite, and what is not empty is not taken over.
        self.is_plain = lambda file: name == "lammps" and ".restart." in file
        self.native_arguments, self.arguments = [], []
        if name in ("heat", "heat_f"):
            self.path = os.path.join(build, "examples", mpi, name)
            self.pauses = False
        elif name == "views.py":
            self.path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", name)
            if subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode:
                raise Missing("mpi4py is not installed (python3-mpi4py)")
        elif name == "lammps":
            self.path = shutil.which("lmp")
            self.pauses = False
            if not self.path:
                raise Missing("LAMMPS is not installed (lammps)")
        else:
            self.path = os.path.join(build, "tests", "programs", mpi, name)
        if not os.path.exists(self.path):
            raise Failed(f"{self.path} was not built")
        for section in KNOWN_NATIVE_FAILURES.get((name, mpi), {}):
            self.native_arguments += ["--skip", section]

    def command(self, directory):
        prefix = os.path.join(directory, "out")
        if self.name in ("heat", "heat_f"):
            return [self.path, prefix + ".heat", "203", "301", "30", "3"]
        if self.name == "views.py":
            return ["/usr/bin/python3", self.path, prefix]
        if self.name == "lammps":
            return [self.path, "-log", "none", "-screen", "none", "-var", "prefix", prefix, "-in",
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries", "melt.lammps")]
        return [self.path, prefix]


def run(command, expected=0, environment=None, seconds=RUN_SECONDS, during=None):
    """Runs a command in its own process group, kills the whole group if it does not end; returns its output."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **(environment or {})}, start_new_session=True)
        ended = True
        try:
            if during:
                during(process)
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if not ended:
        raise Failed(f"did not end within {seconds} s: {' '.join(command)}\n{text[-3000:]}")
    if process.returncode != expected:
        raise Failed(f"exit code {process.returncode} instead of {expected}: {' '.join(command)}\n{text[-3000:]}")
    return text


def visible_files(directory):
    return sorted(name for name in os.listdir(directory) if not name.startswith(".") and not is_target(directory, name))


def is_target(directory, name):
    return os.path.isdir(os.path.join(directory, name))


class Row:
    def __init__(self, program, ranks, scratch):
        self.program, self.ranks, self.scratch = program, ranks, scratch
        self.holdfast = os.path.join(program.build, "bin", "holdfast")
        self.native = os.path.join(scratch, "native")

    def run_native(self):
        os.mkdir(self.native)
        run(launcher(self.program.mpi, self.ranks) + self.program.command(self.native) + self.program.native_arguments)

    def protected_directory(self, name, targets):
        directory = os.path.join(self.scratch, name)
        os.mkdir(directory)
        paths = [os.path.join(self.scratch, f"{name}.targets", f"t{i}") for i in range(targets)]
        for path in paths:
            os.makedirs(path)
        return directory, paths

    def run_protected(self, scheme, directory, targets, lose=()):
        """Runs the program protected. With `lose`, these targets go while it is in its middle."""
        command = [self.holdfast, "run", "--protect", scheme, "--targets", ",".join(targets), "--"]
        command += launcher(self.program.mpi, self.ranks) + self.program.command(directory)
        during = None
        if lose and self.program.pauses:
            flag = os.path.join(self.scratch, "pause")
            command += ["--pause", flag]
            during = lambda process: self.take_away_at(process, flag, lose)
        run(command, environment={"HOLDFAST_STRIPING_UNIT": "64KiB"}, during=during)
        if lose and not self.program.pauses:
            take_away(lose)

    @staticmethod
    def take_away_at(process, flag, lose):
        for _ in range(RUN_SECONDS * 50):
            if os.path.exists(flag):
                take_away(lose)
                os.unlink(flag)
                return
            if process.poll() is not None:
                return  # it failed before its middle: its output says why
            time.sleep(0.02)

    def compare(self, directory, when):
        left = visible_files(self.native)
        there = visible_files(directory)
        extra = [name for name in there if name not in left and not self.program.native_arguments]
        if extra or any(name not in there for name in left):
            raise Failed(f"{when}: the native run leaves {left}, the protected one {there}")
        for name in left:
            exported = os.path.join(self.scratch, "exported")
            if self.program.is_plain(name):
                shutil.copyfile(os.path.join(directory, name), exported)
            else:
                run([self.holdfast, "export", os.path.join(directory, name), exported])
            if not filecmp.cmp(os.path.join(self.native, name), exported, shallow=False):
                raise Failed(f"{when}: {name} differs from the native run's "
                             f"({os.path.getsize(exported)} bytes, native {os.path.getsize(os.path.join(self.native, name))})")
            os.unlink(exported)
        # Files that are gone have left nothing behind.
        for name in os.listdir(directory):
            if name.startswith(".") and name.endswith(".holdfast") and name[1:-len(".holdfast")] not in there:
                raise Failed(f"{when}: {name} is left of a file that was deleted")
        return [name for name in left if not self.program.is_plain(name)]

    def each(self, directory, names, subcommand, expected, *more):
        for name in names:
            run([self.holdfast, subcommand, os.path.join(directory, name), *more], expected=expected)

    def mirrored(self):
        directory, targets = self.protected_directory("mirror", 3)
        self.run_protected("mirror:3", directory, targets)
        names = self.compare(directory, "mirror:3, healthy")
        self.each(directory, names, "status", 0)
        take_away(targets[:1])
        self.compare(directory, "mirror:3, one target lost after the run")

    def coded(self):
        directory, targets = self.protected_directory("rs", 6)
        lost = [targets[1], targets[4]]
        self.run_protected("rs:4+2", directory, targets, lose=lost)
        names = self.compare(directory, "rs:4+2, two targets lost in the middle")
        if not names:
            return
        self.each(directory, names, "status", 1)
        replace = []
        for path in lost:
            new = path + ".new"
            os.mkdir(new)
            replace += ["--replace", f"{path}={new}"]
        first = True
        for name in names:
            run([self.holdfast, "repair", os.path.join(directory, name), *(replace if first else [])])
            first = False
        self.each(directory, names, "status", 0)
        self.each(directory, names, "verify", 0)
        self.compare(directory, "rs:4+2, repaired")


def take_away(targets):
    """Every second one is moved aside (its files stay open), the others are deleted."""
    for number, path in enumerate(targets):
        if number % 2 == 0:
            os.rename(path, path + ".away")
        else:
            shutil.rmtree(path, ignore_errors=True)
            while os.path.exists(path):  # a program that runs may have made something in between
                shutil.rmtree(path, ignore_errors=True)


def neutral(build, mpi, ranks, scratch):
    """Without a policy, or with files that match no --path, holdfast run changes nothing and leaves nothing."""
    program = Program("pointers", mpi, build)
    row = Row(program, ranks, scratch)
    row.run_native()
    target = os.path.join(scratch, "target")
    os.mkdir(target)
    others = {"no-policy": [], "no-match": ["--protect", "mirror:1", "--targets", target, "--path", "/nowhere/*"]}
    for name, options in others.items():
        directory = os.path.join(scratch, name)
        os.mkdir(directory)
        run([row.holdfast, "run", *options, "--"] + launcher(mpi, ranks) + program.command(directory))
        if sorted(os.listdir(directory)) != sorted(os.listdir(row.native)):
            raise Failed(f"{name}: native leaves {sorted(os.listdir(row.native))}, holdfast run {sorted(os.listdir(directory))}")
        for file in os.listdir(directory):
            if not filecmp.cmp(os.path.join(directory, file), os.path.join(row.native, file), shallow=False):
                raise Failed(f"{name}: {file} differs from the native run's")
    data = [name for name in os.listdir(target) if name not in ("holdfast-target.json", ".holdfast-set.lock")]
    if data:
        raise Failed(f"a target that no file uses holds {data} beside its marker")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--ranks", type=int, default=0, help="2 under MPICH, 4 under Open MPI")
    parser.add_argument("--keep", action="store_true", help="leave the files where they are, for a look at them")
    parser.add_argument("--native-only", action="store_true")
    parser.add_argument("program")
    parser.add_argument("mpi", choices=["mpich", "openmpi"])
    options = parser.parse_args()
    ranks = options.ranks or (2 if options.mpi == "mpich" else 4)
    scratch = tempfile.mkdtemp(prefix="holdfast-programs-")
    try:
        build = os.path.abspath(options.build)
        if options.program == "neutral":
            neutral(build, options.mpi, ranks, scratch)
            return 0
        row = Row(Program(options.program, options.mpi, build), ranks, scratch)
        row.run_native()
        if not options.native_only:
            row.mirrored()
            row.coded()
        return 0
    except Missing as error:
        print(f"skipped: {error}")
        return 77
    except Failed as error:
        print(f"FAILED: {options.program} on {options.mpi} with {ranks} ranks\n{error}")
        return 1
    finally:
        if options.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
