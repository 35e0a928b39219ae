"""Runs one of CPython's own test modules in the current directory and writes the outcome of each case.

  python_cases.py MODULE OUTCOMES [CASE...]

OUTCOMES gets a line of JSON for each case as it ends, [name, outcome, what was said], and first whether files here are served:
["", "served" or "plain", ""].
"""
import ctypes
import json
import os
import sys
import unittest

SYS_STAT = {"x86_64": 4, "aarch64": 79}  # aarch64 has newfstatat alone


def size_for_the_kernel(path):
    """The size that the kernel knows of, asked for by a call that no library stands before."""
    buffer = ctypes.create_string_buffer(256)
    libc = ctypes.CDLL(None, use_errno=True)
    machine = os.uname().machine
    arguments = [os.fsencode(path), buffer] if machine == "x86_64" else [-100, os.fsencode(path), buffer, 0]
    if libc.syscall(SYS_STAT[machine], *arguments) != 0:
        raise OSError(ctypes.get_errno(), "stat")
    return int.from_bytes(buffer[48:56], sys.byteorder)


def is_served(path):
    """What was written and not synced is seen by the program; of a file that is served the kernel does not know yet."""
    with open(path, "wb", buffering=0) as file:
        file.write(b"0123456789")
        assert os.stat(path).st_size == 10
        served = size_for_the_kernel(path) != 10
    os.unlink(path)
    return served


class Outcomes(unittest.TestResult):
    def __init__(self, report):
        super().__init__()
        self.report = report
        self.of_case = ("ok", "")

    def startTest(self, test):
        super().startTest(test)
        self.of_case = ("ok", "")

    def stopTest(self, test):
        super().stopTest(test)
        self.report(test.id(), *self.of_case)

    def bad(self, test, kind, error):
        said = self._exc_info_to_string(error, test)[-1500:]
        if isinstance(test, unittest.TestCase):
            self.of_case = (kind, said)
        else:  # of a class or a module that could not be set up
            self.report(test.id(), kind, said)

    def addError(self, test, err):
        self.bad(test, "error", err)

    def addFailure(self, test, err):
        self.bad(test, "failed", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.of_case = ("failed", f"{subtest._subDescription()}: {self._exc_info_to_string(err, test)[-1500:]}")

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase) and self.of_case[0] == "ok":
            self.of_case = ("skipped", reason)

    def addExpectedFailure(self, test, err):
        self.of_case = ("failed as expected", "")

    def addUnexpectedSuccess(self, test):
        self.of_case = ("succeeded unexpectedly", "")


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    module, path, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    # Outside of the policy's directory, and a descriptor that tests which close all others do not know.
    outcomes = open(path, "a", encoding="utf-8", errors="backslashreplace")

    def report(case, outcome, said):
        outcomes.write(json.dumps([case.removeprefix("test."), outcome, said]) + "\n")
        outcomes.flush()

    report("", "served" if is_served("is_served") else "plain", "")
    from test import support
    support.use_resources = []  # no network, no large files, no minutes of processor
    support.verbose = False
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    if chosen:
        wanted = {f"test.{case}" for case in chosen}
        suite = unittest.TestSuite(test for test in flat(suite) if test.id() in wanted)
    suite(Outcomes(report))


if __name__ == "__main__":
    main()
