#!/usr/bin/env python3
"""Runs one unmodified program natively and under `holdfast run`, with targets taken away, and compares every file it leaves.

  matrix.py --build BUILD PROGRAM MPI [--mpicc WRAPPER] [--ranks N] [--keep] [--native-only]

What one row does:
  1. native: the program checks itself; its files are the reference. Failures that an MPI is known to have are in
     KNOWN_NATIVE_FAILURES and are left out of the native run only.
  2. mirror:3 on three targets, nothing lost: no failure at all, same bytes by `holdfast export`, nothing else in the directory;
     then one target goes between this run and the next reader: same bytes.
  3. rs:4+2 on six targets, two of which go while the program waits in its middle: no failure at all, same bytes, status 1;
     repaired onto two new ones: same bytes, status 0, verify 0.
The programs neutral, beyond, killed, mending, installed, serial and single are scenarios of their own; see the functions of that name. Exit code 77: the row needs something that is not installed.
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from targets import delete

# (program, MPI or its family): {section: why}. A protected file does all of them right, so there nothing is left out.
KNOWN_NATIVE_FAILURES = {
    ("nonblocking", "mpich"): {
        "testall_until_done": "MPICH 4.0.2 frees a file's request twice in repeated MPI_Testall (assertion in mpir_request.h)"},
    ("sizes", "mpich"): {
        "collective_reads_past_the_end_are_short": "ROMIO's collective reads report the full count past the end",
        "strided_reads_past_the_end_are_short": "ROMIO's data sieving reports the full count past the end"},
    ("access_modes", "mpich5"): {
        "create_excl_refuses_what_exists": "MPICH 5.0 gives other ranks than 0 an error code of rank 0's, whose class is another there",
        "nothing_to_open": "the same"},
    ("errors", "mpich5"): {
        "a_handler_is_called_with_the_error": "MPICH 5.0 reports success for a write to a read-only file"},
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
tools = None  # the folder of mpicc, mpirun and perhaps python, where the MPI is not Debian's


class Failed(Exception):
    pass


class Missing(Exception):
    pass


def family(mpi):
    # mpich5 is one of mpich; the standard ABI is served by MPICH here.
    return "mpich" if mpi == "mpiabi" else mpi.rstrip("0123456789")


def launcher(mpi, ranks):
    """`mpi` is a Debian package's (mpich, openmpi), or one that --mpicc has named (mpich5, openmpi5)."""
    if family(mpi) == "mpich":
        return [os.path.join(tools, "mpiexec") if tools else "mpirun.mpich", "-n", str(ranks)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    start = os.path.join(tools, "mpirun") if tools else "mpirun.openmpi"
    return [start, *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


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
            self.python = os.path.join(tools, "python3") if tools else "/usr/bin/python3"
            if not os.path.exists(self.python) or subprocess.run([self.python, "-c", "import mpi4py"], capture_output=True).returncode:
                raise Missing(f"mpi4py is not installed for {self.python}")
        elif name == "lammps":
            self.path = shutil.which("lmp")
            self.pauses = False
            if not self.path:
                raise Missing("LAMMPS is not installed (lammps)")
        else:
            self.path = os.path.join(build, "tests", "programs", mpi, name)
        if not os.path.exists(self.path):
            raise Failed(f"{self.path} was not built")
        for known in {mpi, family(mpi)} | ({"mpich5"} if mpi == "mpiabi" else set()):
            for section in KNOWN_NATIVE_FAILURES.get((name, known), {}):
                self.native_arguments += ["--skip", section]

    def command(self, directory):
        prefix = os.path.join(directory, "out")
        if self.name in ("heat", "heat_f"):
            return [self.path, prefix + ".heat", "203", "301", "30", "3"]
        if self.name == "views.py":
            return [self.python, self.path, prefix]
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
            delete(path)


def neutral(build, mpi, ranks, scratch):
    """Without a policy, or with files that match no --path, holdfast run changes nothing and leaves nothing, whoever keeps the shared pointer."""
    target = os.path.join(scratch, "target")
    os.mkdir(target)
    others = {"no-policy": [], "no-match": ["--protect", "mirror:1", "--targets", target, "--path", "/nowhere/*"]}
    names = ["pointers", "split"] + [f"view_{way}_f" for way in ("mpif", "use_mpi", "f08")]
    for name in names:
        if not os.path.exists(os.path.join(build, "tests", "programs", mpi, name)):
            continue  # Fortran comes with Debian's MPIs only
        os.mkdir(os.path.join(scratch, name))
        row = Row(Program(name, mpi, build), ranks, os.path.join(scratch, name))
        row.run_native()
        for other, options in others.items():
            neutral_run(row, other, options)
            neutral_run(row, other + "-process", options, {"HOLDFAST_SHARED_POINTER": "process"})
    data = [name for name in os.listdir(target) if name not in ("holdfast-target.json", ".holdfast-set.lock")]
    if data:
        raise Failed(f"a target that no file uses holds {data} beside its marker")


def neutral_run(row, name, options, environment=None):
    directory = os.path.join(row.scratch, name)
    os.mkdir(directory)
    run([row.holdfast, "run", *options, "--"] + launcher(row.program.mpi, row.ranks) + row.program.command(directory), environment=environment)
    if sorted(os.listdir(directory)) != sorted(os.listdir(row.native)):
        raise Failed(f"{name}: native leaves {sorted(os.listdir(row.native))}, holdfast run {sorted(os.listdir(directory))}")
    for file in os.listdir(directory):
        if not filecmp.cmp(os.path.join(directory, file), os.path.join(row.native, file), shallow=False):
            raise Failed(f"{name}: {file} differs from the native run's")


def restart(row, name, expected=0):
    """heat, 203 x 301, twelve more steps from its own last frame; protected where `name` is not native."""
    program = row.program
    directory = os.path.join(row.scratch, name)
    command = launcher(program.mpi, row.ranks) + program.command(directory)[:4] + ["12", "3", "--restart"]
    if name != "native":
        targets = ",".join(os.path.join(row.scratch, f"{name}.targets", f"t{i}") for i in range(6))
        command = [row.holdfast, "run", "--protect", "rs:4+2", "--targets", targets, "--"] + command
    run(command, expected=expected)


def beyond(build, mpi, ranks, scratch):
    """A program restarts from its file with M targets gone and goes on; with M + 1 gone everybody says no, and nothing is lost."""
    row = Row(Program("heat", mpi, build), ranks, scratch)
    row.run_native()
    restart(row, "native")
    directory, targets = row.protected_directory("rs", 6)
    row.run_protected("rs:4+2", directory, targets, lose=[targets[0], targets[3]])
    restart(row, "rs")
    row.compare(directory, "rs:4+2, restarted with two targets gone")
    os.rename(targets[5], targets[5] + ".aside")
    path = os.path.join(directory, "out.heat")
    exported = os.path.join(scratch, "exported")
    run([row.holdfast, "status", path], expected=2)
    for refused in ([row.holdfast, "export", path, exported], [row.holdfast, "cat", path]):
        done = subprocess.run(refused, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=RUN_SECONDS)
        if done.returncode == 0 or not done.stderr:
            raise Failed(f"three targets are gone, and this succeeded or said nothing: {' '.join(refused)}")
    restart(row, "rs", expected=1)
    os.rename(targets[5] + ".aside", targets[5])
    row.compare(directory, "rs:4+2, one of the three is back")


def processes_with(argument):
    """Ids of the processes that have this argument: those of a job in a scratch directory of its own."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as arguments:
                if entry.isdigit() and argument.encode() in arguments.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            pass  # it has ended
    return found


def killed(build, mpi, ranks, scratch):
    """Every process of a job is killed while it goes on writing a file: what was there at the last close is whole."""
    row = Row(Program("heat", mpi, build), ranks, scratch)
    row.run_native()
    directory, targets = row.protected_directory("rs", 6)
    row.run_protected("rs:4+2", directory, targets)
    path = os.path.join(directory, "out.heat")
    before = open(os.path.join(row.native, "out.heat"), "rb").read()
    for seconds in (2.0, 3.1):
        command = [row.holdfast, "run", "--protect", "rs:4+2", "--targets", ",".join(targets), "--"]
        command += launcher(mpi, ranks) + row.program.command(directory)[:4] + ["600", "3", "--restart", "--pause-ms", "100"]
        with open(os.path.join(scratch, "log"), "wb") as log:
            job = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        time.sleep(seconds)
        ended = job.poll() is not None
        while processes_with(path):
            for process in processes_with(path):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
        job.wait()
        if ended:
            raise Failed("the job ended before it could be killed:\n" + open(os.path.join(scratch, "log")).read())
        run([row.holdfast, "verify", path])
        after = subprocess.run([row.holdfast, "cat", path], stdout=subprocess.PIPE, check=True, timeout=RUN_SECONDS).stdout
        if after[:len(before)] != before:
            raise Failed("what was closed before the job was killed is not what it was")
    take_away(targets[:2])
    after = subprocess.run([row.holdfast, "cat", path], stdout=subprocess.PIPE, check=True, timeout=RUN_SECONDS).stdout
    if after[:len(before)] != before:
        raise Failed("with two targets lost beside the kill, the file is not what it was")


def mending(build, mpi, ranks, scratch):
    """A file is repaired, twice, while a job writes it: both end, nothing is lost, and a repair after the job makes it healthy."""
    row = Row(Program("heat", mpi, build), ranks, scratch)
    row.run_native()
    directory, targets = row.protected_directory("rs", 6)
    path = os.path.join(directory, "out.heat")
    lost = [targets[1], targets[4]]

    def repair(process, *replace):
        if process.poll() is not None:
            raise Failed("the job ended before the repair could begin")
        done = subprocess.run([row.holdfast, "repair", path, *replace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=RUN_SECONDS)
        if done.returncode not in (0, 1):  # the job may write on without the targets that it had lost
            raise Failed(f"repair beside a job: exit code {done.returncode}\n{done.stdout}")

    def lose_and_repair(process):
        while process.poll() is None and sum(len(files) for _, _, files in os.walk(targets[0])) < 5:
            time.sleep(0.02)
        time.sleep(0.5)
        take_away(lost)
        replace = []
        for old in lost:
            os.mkdir(old + ".new")
            replace += ["--replace", f"{old}={old}.new"]
        time.sleep(0.5)
        repair(process, *replace)
        time.sleep(0.5)
        repair(process)

    command = [row.holdfast, "run", "--protect", "rs:4+2", "--targets", ",".join(targets), "--"] + launcher(mpi, ranks)
    run(command + row.program.command(directory) + ["--pause-ms", "500"], environment={"HOLDFAST_STRIPING_UNIT": "64KiB"},
        during=lose_and_repair)
    row.compare(directory, "repaired while it was written")
    run([row.holdfast, "repair", path])
    row.each(directory, ["out.heat"], "status", 0)
    row.each(directory, ["out.heat"], "verify", 0)
    row.compare(directory, "repaired after the job")
    take_away([targets[0], targets[3]])
    row.compare(directory, "repaired, and two others lost")


def installed(build, mpi, ranks, scratch):
    """What `make install` puts into a prefix runs from there."""
    row = Row(Program("pointers", mpi, build), ranks, scratch)
    prefix = os.path.join(scratch, "prefix")
    run(["cmake", "--install", build, "--prefix", prefix, "--strip"])
    for path in ("bin/holdfast", "share/man/man1/holdfast.1", "include/holdfast/holdfast.h"):
        if not os.path.exists(os.path.join(prefix, path)):
            raise Failed(f"{path} was not installed")
    row.holdfast = os.path.join(prefix, "bin", "holdfast")
    text = run([row.holdfast, "run", "--", "sh", "-c", "echo $LD_PRELOAD"])
    if not text.startswith(prefix):
        raise Failed(f"the library is not the installed one: {text}")
    row.run_native()
    row.mirrored()


# Ordinary tools and a serial reader, preloaded: they see the file that the program wrote.
SERIAL = r"""
set -eu
cd "$1"
[ "$(stat -c %s out.explicit)" = "$2" ]
cmp out.explicit ../native/out.explicit
/usr/bin/python3 - <<'END'
import os
ours, native = open("out.explicit", "rb"), open("../native/out.explicit", "rb")
ours.seek(70001); native.seek(70001)
assert ours.read(90000) == native.read(90000), "a seek and a read differ from native"
descriptor = os.open("out.explicit", os.O_RDWR)
there = os.pread(descriptor, 5, 70001)
os.pwrite(descriptor, b"other", 70001)
assert os.pread(descriptor, 5, 70001) == b"other"
os.pwrite(descriptor, there, 70001)
os.close(descriptor)
os.rename("out.explicit", "out.renamed")
assert not os.path.exists("out.explicit") and os.path.getsize("out.renamed") == native.seek(0, 2)
os.truncate("out.renamed", 123456)
os.rename("out.renamed", "out.explicit")
os.unlink("out.ordered")
END
"""


def serial(build, mpi, ranks, scratch):
    """stat, reading, writing, rename, truncate and unlink by ordinary programs under `holdfast run` act on the protected file."""
    row = Row(Program("pointers", mpi, build), ranks, scratch)
    row.run_native()
    directory, targets = row.protected_directory("rs", 6)
    row.run_protected("rs:4+2", directory, targets, lose=[targets[2], targets[5]])
    size = os.path.getsize(os.path.join(row.native, "out.explicit"))
    run([row.holdfast, "run", "--protect", "rs:4+2", "--targets", ",".join(targets), "--", "bash", "-c", SERIAL, "bash",
         directory, str(size)])
    os.truncate(os.path.join(row.native, "out.explicit"), 123456)
    os.unlink(os.path.join(row.native, "out.ordered"))
    row.compare(directory, "after rename, truncate and unlink")


def single(build, mpi, ranks, scratch):
    """In one directory with redundancy apart, the path holds the plain file: the bytes are there with no Holdfast present."""
    row = Row(Program("collective", mpi, build), ranks, scratch)
    row.run_native()
    for scheme in ("mirror:2", "rs:2+1"):
        directory = os.path.join(scratch, scheme.replace(":", "-"))
        os.mkdir(directory)
        run([row.holdfast, "run", "--protect", scheme, "--allow-shared-target", "--placement", "separate", "--"] +
            launcher(mpi, ranks) + row.program.command(directory), environment={"HOLDFAST_STRIPING_UNIT": "64KiB"})
        names = row.compare(directory, f"{scheme} in one directory")
        row.each(directory, names, "status", 0)
        for name in names:
            if not filecmp.cmp(os.path.join(directory, name), os.path.join(row.native, name), shallow=False):
                raise Failed(f"{scheme} in one directory: {name} is not the plain file")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--ranks", type=int, default=0, help="2 under MPICH, 4 under Open MPI")
    parser.add_argument("--keep", action="store_true", help="leave the files where they are, for a look at them")
    parser.add_argument("--native-only", action="store_true")
    parser.add_argument("program")
    parser.add_argument("--mpicc", help="the compiler wrapper of an MPI that is not Debian's; its launcher lies beside it")
    parser.add_argument("mpi", help="mpich, openmpi, or the name of the MPI of --mpicc: mpich5, openmpi5")
    options = parser.parse_args()
    ranks = options.ranks or (2 if family(options.mpi) == "mpich" else 4)
    if options.mpicc:
        global tools
        tools = os.path.dirname(os.path.abspath(options.mpicc))
    scratch = tempfile.mkdtemp(prefix="holdfast-programs-")
    try:
        build = os.path.abspath(options.build)
        scenario = {"neutral": neutral, "beyond": beyond, "killed": killed, "mending": mending,
                    "installed": installed, "serial": serial, "single": single}.get(options.program)
        if scenario:
            scenario(build, options.mpi, ranks, scratch)
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
