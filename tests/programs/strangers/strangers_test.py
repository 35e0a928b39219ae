#!/usr/bin/env python3
"""CPython's and glibc's own tests of files, natively and under each policy: a case that passes natively has to pass there too.

  strangers_test.py --build BUILD [--suite python|glibc] [--way WAY]... [--some] [--keep] [--verbose] [UNIT...]

A UNIT is a module of CPython's (test_io) or a program of glibc's (libio/tst-freopen). What may differ stands in may_differ.txt with its reason; an
entry of that list that no longer differs is an error as well. The tests come from scripts/fetch-strangers.sh, or from --python-tests DIR (which
holds test/) and --glibc-source DIR; where they are not to be had the script says so and ends with 77.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import glibc_programs

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
NATIVE = "native"
WAYS = {
    "run": [],
    "buffered": ["--buffer", "4x1MiB"],
    "protected": ["--protect", "rs:2+1", "--close", "fast"],
    "mirrored": ["--protect", "mirror:2", "--close", "fast"],
}
TARGETS = {"protected": 3, "mirrored": 2}
MODULES = """
  test_os test_posix test_posixpath test_genericpath test_shutil test_io test_fileio test_file test_bufio test_univnewlines test_largefile test_mmap
  test_select test_poll test_selectors test_epoll test_fcntl test_codecs test_tempfile test_threadedtempfile test_zipfile test_zipimport test_zipapp
  test_tarfile test_gzip test_bz2 test_lzma test_glob test_pathlib test_filecmp test_fileinput test_linecache test_stat test_subprocess test_pipes
  test_popen
  test_fork1 test_dbm test_dbm_ndbm test_dbm_dumb test_shelve test_marshal test_wave test_sunau test_aifc test_mailbox test_netrc test_configparser
  test_logging test_import test_py_compile test_compileall test_array test_eintr test_cmd_line test_cmd_line_script test_plistlib test_uu
  test_unicode_file test_unicode_file_functions test_httpservers test_tokenize test_imghdr test_runpy test_pkgutil test_sax
""".split()
# What one minute allows: a unit is run natively, and in one way by turns.
SHORT_MODULES = "test_fileio test_file test_fcntl test_mmap test_posix test_univnewlines test_glob test_filecmp".split()
SHORT_PROGRAMS = ["libio/bug-*", "libio/tst-f*", "libio/tst-mmap*", "io/tst-*at", "posix/tst-preadwrite*", "rt/tst-aio[1-5]"]
LEAST_PROGRAMS = 200  # of glibc's have to be there, or the sources have another form
NATIVE_SECONDS, SECONDS = 300, 600


def killed_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(command, directory, environment, seconds):
    """Exit status (None: it did not end in time) and what was said."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment,
                                   start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            killed_group(process)
        said.seek(0)
        return status, said.read().decode(errors="replace")


class PythonModule:
    suite = "python"

    def __init__(self, name, tests, cases=()):
        self.name, self.tests, self.cases = name, tests, list(cases)

    def outcomes(self, place, prefix, environment, seconds, served):
        """Case -> (outcome, what was said), and what is wrong with the run as a whole."""
        report = place / "outcomes"
        command = [*prefix, PYTHON, str(HERE / "python_cases.py"), self.name, str(report), *self.cases]
        status, said = run(command, place / "w", {**environment, "PYTHONPATH": str(self.tests)}, seconds)
        lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        found = {case: (outcome, text) for case, outcome, text in lines}
        state = found.pop("", ("nothing", ""))[0]
        wrong = []
        if state != ("served" if served else "plain"):
            wrong.append(f"files in the test's directory were {state}: {said[-600:]}")
        if status != 0:
            found[f"{self.name}: the run"] = (f"ended with {status} in the middle", said[-1500:])
        else:
            found[f"{self.name}: the run"] = ("ok", "")
        return found, wrong


class GlibcProgram:
    suite = "glibc"

    def __init__(self, name, programs):
        self.name, self.programs = name, programs

    def outcomes(self, place, prefix, environment, seconds, _):
        environment = {**environment, "LOCPATH": str(self.programs.locales), "TIMEOUTFACTOR": "5"}
        for given in (self.programs.src / self.name).parent.glob("*.input"):
            shutil.copy(given, place / "w")
        status, said = run([*prefix, *self.programs.command(self.name)], place / "w", environment, seconds)
        outcome = {0: "ok", 77: "skipped", None: "did not end"}.get(status, f"exit status {status}")
        return {self.name: (outcome, said[-1500:])}, []


class Entry:
    """A line of may_differ.txt: CASE | WAY... | REASON."""

    def __init__(self, line):
        self.case, ways, self.reason = (part.strip() for part in line.split("|", 2))
        self.ways = list(WAYS) if ways == "*" else ways.split()
        assert set(self.ways) <= set(WAYS) and self.reason, line
        self.sometimes = self.reason.startswith("sometimes")
        self.seen = {way: None for way in self.ways}  # None: no such case was run; else whether one differed

    def meets(self, case, way):
        return way in self.ways and fnmatch.fnmatchcase(case, self.case)


def read_entries():
    lines = (HERE / "may_differ.txt").read_text().splitlines()
    return [Entry(line) for line in lines if line.strip() and not line.startswith("#")]


class Strangers:
    def __init__(self, options, scratch, targets):
        self.options, self.scratch, self.targets = options, pathlib.Path(scratch), pathlib.Path(targets)
        self.holdfast = str(options.build / "bin" / "holdfast")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "LD_PRELOAD", "PYTHON"))}
        self.environment = {**clean, "LC_ALL": "C.UTF-8", "HOLDFAST_CONFIG": "", "PYTHONDONTWRITEBYTECODE": "1"}

    def run_unit(self, unit, way, seconds):
        place = self.scratch / unit.name.replace("/", "_") / way
        work = place / "w"
        work.mkdir(parents=True)
        os.chmod(work, 0o777)
        prefix, environment = [], {**self.environment, "TMPDIR": str(work)}
        if way != NATIVE:
            prefix = [self.holdfast, "run", *WAYS[way]]
            targets = [self.targets / unit.name.replace("/", "_") / way / f"t{i}" for i in range(TARGETS.get(way, 0))]
            for target in targets:
                target.mkdir(parents=True)
            if targets:
                prefix += ["--targets", ",".join(map(str, targets)), "--striping-unit", "64KiB"]
            if way != "run":
                prefix += ["--path", f"{work}/*"]
            prefix += ["--"]
        begun = time.monotonic()
        found, wrong = unit.outcomes(place, prefix, environment, seconds, way not in (NATIVE, "run"))
        if self.options.verbose:
            print(f"{unit.name} {way}: {len(found)} cases, {time.monotonic() - begun:.1f} s", flush=True)
        if not self.options.keep:
            shutil.rmtree(place, ignore_errors=True)
            shutil.rmtree(self.targets / unit.name.replace("/", "_") / way, ignore_errors=True)
        return found, wrong

    def try_unit(self, unit, ways):
        """What each case came to: natively and in each way."""
        native, wrong = self.run_unit(unit, NATIVE, NATIVE_SECONDS)
        if unit.suite == "glibc" and native[unit.name][0] != "ok":
            return native, {}, wrong
        by_way = {}
        for way in ways:
            by_way[way], more = self.run_unit(unit, way, SECONDS)
            wrong += [f"{unit.name}, {way}: {one}" for one in more]
        return native, by_way, wrong


def differences(native, by_way, entries):
    """Of one unit: what differs and stands in no entry. Marks the entries that were met."""
    said = []
    for way, found in by_way.items():
        for case, (outcome, _) in native.items():
            if outcome != "ok":
                continue  # it does not pass natively, or cannot be run here
            came_to, text = found.get(case, ("has no outcome", ""))
            differs = came_to != "ok"
            met = [entry for entry in entries if entry.meets(case, way)]
            for entry in met:
                entry.seen[way] = bool(entry.seen[way]) or differs
            if differs and not met:
                said.append(f"{case}, {way}: {came_to}\n    " + "\n    ".join(text.strip().splitlines()[-14:]))
    return said


def units(options):
    found = []
    python_tests = options.python_tests or options.build / "strangers" / "python"
    if options.suite != "glibc":
        if (python_tests / "test" / "test_os.py").exists():
            found += [PythonModule(name, python_tests) for name in (SHORT_MODULES if options.some else MODULES)]
        else:
            print(f"CPython's tests are left out: there is no {python_tests}/test/test_os.py; scripts/fetch-strangers.sh BUILD fetches them")
    source = options.glibc_source or options.build / "strangers" / "glibc"
    if options.suite != "python":
        if (source / "support" / "check.h").exists():
            programs = glibc_programs.Programs(source, options.build / "strangers")
            names = programs.build()
            if len(names) < LEAST_PROGRAMS:
                sys.exit(f"only {len(names)} of glibc's tests could be built; {programs.bin}/*/*.err say why")
            wanted = [name for name in names if not options.some or any(fnmatch.fnmatchcase(name, one) for one in SHORT_PROGRAMS)]
            found += [GlibcProgram(name, programs) for name in wanted]
        else:
            print(f"glibc's tests are left out: there is no {source}/support/check.h; scripts/fetch-strangers.sh BUILD fetches it, "
                  "or --glibc-source says where it is")
    if options.unit:
        found = [unit for unit in found if any(fnmatch.fnmatchcase(unit.name, one) for one in options.unit)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--suite", choices=["python", "glibc"])
    parser.add_argument("--python-tests", type=pathlib.Path)
    parser.add_argument("--glibc-source", type=pathlib.Path)
    parser.add_argument("--way", action="append", choices=list(WAYS))
    parser.add_argument("--some", action="store_true", help="what one minute allows")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("unit", nargs="*")
    options = parser.parse_args()
    chosen = units(options)
    if not chosen:
        sys.exit(77)
    entries = read_entries()
    ways = options.way or list(WAYS)
    scratch = tempfile.mkdtemp(prefix="holdfast-strangers.")
    # Thousands of files that live for a moment: targets in memory take a third of the time.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    targets = tempfile.mkdtemp(prefix="holdfast-strangers.", dir=memory)
    os.chmod(scratch, 0o755)
    wrong, cases, passed_natively = [], 0, 0
    try:
        strangers = Strangers(options, scratch, targets)
        turns = [[ways[number % len(ways)]] if options.some else ways for number in range(len(chosen))]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for native, by_way, said in pool.map(strangers.try_unit, chosen, turns):
                said = said + differences(native, by_way, entries)
                for one in said:
                    print(one, flush=True)
                wrong += said
                cases += len(native)
                passed_natively += sum(outcome == "ok" for outcome, _ in native.values())
    finally:
        if options.keep:
            print(scratch, targets)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(targets, ignore_errors=True)
    everything = not (options.unit or options.some or options.suite or options.way)
    for entry in entries:
        if everything and all(seen is None for seen in entry.seen.values()):
            print(f"note: {entry.case} in may_differ.txt is no case that passes natively here")
        gone = [way for way, seen in entry.seen.items() if seen is False]
        if gone and not entry.sometimes:
            wrong.append(entry.case)
            print(f"{entry.case} no longer differs ({' '.join(gone)}): take it from may_differ.txt")
    print(f"{len(chosen)} units, {cases} cases, {passed_natively} of them pass natively; {len(wrong)} differences that stand in no list")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
