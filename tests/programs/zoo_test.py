#!/usr/bin/env python3
"""A zoo of ordinary programs: each case of zoo/ runs natively and under `holdfast run` in several ways, in an empty directory. Output,
exit status, names, contents, sizes, kinds and permissions of what it leaves have to be the same.

  zoo_test.py --build BUILD [--keep] [--verbose] [--way WAY]... [CASE...]

A case is a script of zoo/ (bash, perl or Python by its ending); zoo/*.c and *.f90 are compiled and stand on its PATH. Lines at its
head, behind `#:`, say what is different there:
  glob GLOB         what --path says (default: everything in the directory)
  needs PROGRAM...  left out where one of them is not there
  ways WAY...       only these
  refused WAY...    ends with a status that is not 0 there, and says why in a line of Holdfast's; nothing else is compared
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent / "zoo"
SHELLS = {".sh": "bash", ".py": "/usr/bin/python3", ".pl": "perl"}
WAYS = {
    "nothing": [],
    "buffer": ["--buffer", "4x64KiB"],
    "mirror": ["--protect", "mirror:2"],
    "rs": ["--protect", "rs:2+1"],
    "mirror-buffer": ["--protect", "mirror:2", "--buffer", "3x64KiB"],
    "rs-buffer": ["--protect", "rs:2+1", "--buffer", "4x64KiB"],
    "rs-lost": ["--protect", "rs:2+1", "--buffer", "2x64KiB"],  # and a target goes while it runs
}
SECONDS = 120  # a program that hangs; on a busy machine the longest takes a quarter of it


def has_numpy():
    return subprocess.run([SHELLS[".py"], "-c", "import numpy"], capture_output=True).returncode == 0


class Case:
    def __init__(self, path):
        self.path, self.name = path, path.name
        said = [line[2:].split() for line in path.read_text().splitlines() if line.startswith("#:")]
        self.says = {words[0]: words[1:] for words in said}

    def lacks(self, path):
        return [tool for tool in self.says.get("needs", []) if not (has_numpy() if tool == "numpy" else shutil.which(tool, path=path))]

    def ways(self):
        return self.says.get("ways", list(WAYS))


def run(command, directory, environment):
    """Status, output, and what standard error says: the program's lines and Holdfast's."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                   env=environment, start_new_session=True)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = f"still running after {SECONDS} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0), errors.seek(0)
        lines = errors.read().decode(errors="replace").splitlines()
        ours = [line for line in lines if line.startswith("holdfast: ")]
        return status, output.read(), [line for line in lines if line not in ours], ours


class Zoo:
    def __init__(self, build, scratch, verbose):
        self.build, self.scratch, self.verbose = build, pathlib.Path(scratch), verbose
        self.holdfast = str(build / "bin" / "holdfast")
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "LD_PRELOAD"))}
        self.environment = {**clean, "PATH": f"{self.bin}:{clean['PATH']}", "LC_ALL": "C.UTF-8", "ZOO": str(HERE),
                            "PYTHONDONTWRITEBYTECODE": "1"}

    def compile(self):
        for source in sorted(HERE.glob("*.c")) + sorted(HERE.glob("*.f90")):
            compiler = "cc" if source.suffix == ".c" else "gfortran"
            if shutil.which(compiler):
                subprocess.run([compiler, "-O1", "-w", "-o", self.bin / source.stem, source, "-lpthread"], check=True, cwd=self.scratch)

    def command(self, case):
        return [SHELLS[case.path.suffix], str(case.path)]

    def run_natively(self, case):
        place = self.scratch / case.name / "native"
        (place / "w").mkdir(parents=True)
        status, output, errors, _ = run(self.command(case), place / "w", self.environment)
        return status, output, errors, self.tree(place / "w", {})

    def run_under(self, case, way):
        place = self.scratch / case.name / way
        (place / "w").mkdir(parents=True)
        targets = [place / f"t{i}" for i in range(2 if "mirror" in way else 3)]
        glob = case.says.get("glob", [f"{place}/w/*"])
        environment = {**self.environment, "HOLDFAST_STRIPING_UNIT": "64KiB", "HOLDFAST_CONFIG": ""}
        arguments = [self.holdfast, "run", *WAYS[way]]
        if "--protect" in arguments:
            for target in targets:
                target.mkdir()
            arguments += ["--targets", ",".join(map(str, targets))]
        if way != "nothing":
            for one in glob:
                arguments += ["--path", one]
        lost = targets[-1] if way.endswith("lost") else None
        if lost:
            environment["ZOO_LOST"] = str(lost)
        status, output, errors, ours = run([*arguments, "--", *self.command(case)], place / "w", environment)
        if lost and lost.exists():
            shutil.rmtree(lost)  # the case has not done it in its middle
        return status, output, errors, self.tree(place / "w", environment), ours

    def content(self, path, environment):
        if not environment or not os.path.lexists(self.sidecar(path)):
            return path.read_bytes()
        done = subprocess.run([self.holdfast, "cat", str(path)], env=environment, capture_output=True, timeout=SECONDS)
        return done.stdout if done.returncode == 0 else b"cannot be read: " + done.stderr

    def mode(self, path, environment):
        """The file's own, as a program under Holdfast sees it: to others the note in its place is not to be written."""
        done = subprocess.run([self.holdfast, "run", "--", "stat", "-c", "%a", str(path)], env=environment, capture_output=True, timeout=SECONDS)
        return int(done.stdout, 8) if done.returncode == 0 else 0

    @staticmethod
    def sidecar(path):
        name = os.fsencode(path.name)
        return os.path.join(os.fsencode(path.parent), b"." + name + b".holdfast")

    def tree(self, root, environment):
        """What lies below: name -> what it is."""
        found = {}
        for directory, directories, files in os.walk(root):
            directories[:] = [name for name in directories if not (name.startswith(".") and name.endswith(".holdfast"))]
            for name in files + directories:
                path = pathlib.Path(directory, name)
                state = path.lstat()
                ours = bool(environment) and os.path.lexists(self.sidecar(path))
                if stat.S_ISDIR(state.st_mode):
                    what = ("directory",)
                elif stat.S_ISLNK(state.st_mode) and not ours:
                    what = ("link", os.readlink(path))
                elif stat.S_ISREG(state.st_mode) or ours:
                    mode = None if stat.S_ISLNK(state.st_mode) else self.mode(path, environment) if ours else stat.S_IMODE(state.st_mode)
                    what = ("file", mode, self.content(path, environment))
                else:
                    what = ("special", stat.S_IFMT(state.st_mode))
                found[str(path.relative_to(root))] = what
        return found


def text(content, most=160):
    return repr(content[:most]) + (f" ... {len(content)} bytes" if len(content) > most else "")


def different_files(native, ours):
    said = []
    for name in sorted(set(native) | set(ours)):
        here, there = native.get(name), ours.get(name)
        if here is None or there is None:
            said.append(f"{name!r} is " + ("missing" if there is None else f"there and was not to be: {text(there[-1]) if there[0] == 'file' else there}"))
        elif here[0] == there[0] == "file":
            if here[2] != there[2]:
                at = next((i for i, (a, b) in enumerate(zip(here[2], there[2])) if a != b), min(len(here[2]), len(there[2])))
                said.append(f"{name!r} differs from byte {at} on: {len(here[2])} bytes natively, here {len(there[2])}: "
                            f"{text(here[2][at:], 60)} / {text(there[2][at:], 60)}")
            elif here[1] != there[1] and there[1] is not None:
                said.append(f"{name!r} has permissions {there[1]:o} and was to have {here[1]:o}")
        elif here != there:
            said.append(f"{name!r} is {there[:2]} and was to be {here[:2]}")
    return said


def different_lines(native, ours):
    lines = difflib.ndiff(*(one.decode(errors="replace").splitlines() for one in (native, ours)))
    return [line[:200] for line in lines if line[0] in "+-"][:12]


def compare(case, way, native, ours):
    if way in case.says.get("refused", []):
        said = []
        if ours[0] == 0:
            said.append("was to be refused and was not")
        if not ours[4]:
            said.append("is refused without a line that says why")
        return said
    said = []
    if native[0] != ours[0]:
        said.append(f"ended with {ours[0]}, natively with {native[0]}")
    if native[1] != ours[1]:
        said.append("prints, and - what was missing:\n    " + "\n    ".join(different_lines(native[1], ours[1])))
    if native[2] != ours[2]:
        said.append(f"says {ours[2][:6]}, natively {native[2][:6]}")
    return said + different_files(native[3], ours[3])


def try_case(zoo, case, ways):
    said = []
    native = zoo.run_natively(case)
    for way in ways:
        begun = time.monotonic()
        ours = zoo.run_under(case, way)
        wrong = compare(case, way, native, ours)
        if wrong:
            said.append(f"{case.name}, {way}:\n  " + "\n  ".join(wrong + [f"({line})" for line in ours[4][:5]]))
        elif zoo.verbose:
            print(f"{case.name} {way} {time.monotonic() - begun:.2f} s", *ours[4][:6], sep="\n    ", flush=True)
    if native[0] != 0:
        said.append(f"{case.name} ended natively with {native[0]}: {native[2][:5]}")
    return said


def chosen_ways(options, number, case):
    ways = [way for way in case.ways() if not options.way or way in options.way]
    if not options.some or len(ways) <= 3:
        return ways
    protected = [way for way in ways if way not in ("nothing", "buffer")]
    return [way for way in ways if way == "buffer"] + [protected[number % len(protected)]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--way", action="append", choices=list(WAYS))
    parser.add_argument("--some", action="store_true", help="each case natively, and in two ways by turns: what one minute allows")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    cases = [Case(path) for path in sorted(HERE.iterdir()) if path.suffix in SHELLS]
    if options.case:
        cases = [case for case in cases if case.name in options.case or case.path.stem in options.case]
    scratch = tempfile.mkdtemp(prefix="holdfast-zoo.")
    os.chmod(scratch, 0o755)
    wrong = []
    try:
        zoo = Zoo(options.build.resolve(), scratch, options.verbose)
        zoo.compile()
        for case in list(cases):
            if lacks := case.lacks(zoo.environment["PATH"]):
                print(f"{case.name} is left out: not installed: {' '.join(lacks)}")
                cases.remove(case)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for said in pool.map(lambda numbered: try_case(zoo, numbered[1], chosen_ways(options, *numbered)), enumerate(cases)):
                for one in said:
                    print(one, flush=True)
                wrong += said
    finally:
        if options.keep:
            print(scratch)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{len(cases)} cases, {len(wrong)} differences")
    sys.exit(1 if wrong or not cases else 0)


if __name__ == "__main__":
    main()
