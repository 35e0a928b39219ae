#!/usr/bin/env python3
"""Records through the shared pointer with the algorithms individual and single: jobs that end, that merge later, and that are killed."""
import argparse
import itertools
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "intercept"))
import launch  # noqa: E402
import records  # noqa: E402


class Case:
    def __init__(self, options, ranks, algorithm, merge, count, mode, scheme=None):
        self.options, self.ranks, self.algorithm, self.merge = options, ranks, algorithm, merge
        self.count, self.mode, self.scheme = count, mode, scheme

    def __str__(self):
        return f"{self.ranks} ranks, {self.algorithm}, merge={self.merge}, {self.mode}, {self.scheme or 'plain'}"

    def environment(self, root):
        settings = {"HOLDFAST_SHARED_POINTER": self.algorithm, "HOLDFAST_MERGE": self.merge, "HOLDFAST_CONFIG": "",
                    "HOLDFAST_MAX_METADATA_RECORDS": "500", "LD_PRELOAD": launch.preload(self.options.library)}
        if self.scheme:
            targets = [root / f"t{i}" for i in range(6)]
            for target in targets:
                target.mkdir()
            settings.update(HOLDFAST_PROTECT=self.scheme, HOLDFAST_TARGETS=",".join(map(str, targets)), HOLDFAST_ALLOW_SHARED_TARGET="1",
                            HOLDFAST_STRIPING_UNIT="12288")
        return settings

    def holdfast(self, *arguments):
        return subprocess.run([self.options.holdfast, *map(str, arguments)], capture_output=True, timeout=60)

    def merged(self, path):
        done = self.holdfast("merge", path)
        if done.returncode != 0:
            raise ValueError(f"merge: {done.stderr.decode()}")
        return done.stdout.decode()

    def content(self, path):
        if not self.scheme:
            return path
        plain = path.with_name("plain")
        plain.write_bytes(self.holdfast("cat", path).stdout)
        return plain

    def run(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-records-") as name:
            root = pathlib.Path(name)
            path = root / "out"
            settings = self.environment(root)
            command = launch.command(self.options.mpicc, self.ranks) + ["env"] + [f"{k}={v}" for k, v in settings.items()]
            command += [self.options.writer, str(path), str(self.count), "60", str(self.ranks), self.mode]
            # A group of its own: `kill` ends all of it.
            job = subprocess.run(command, capture_output=True, timeout=200, start_new_session=True)
            if self.mode == "kill":
                self.check_killed(path)
            elif job.returncode != 0:
                raise ValueError(f"the job failed: {job.stderr.decode()}")
            else:
                if self.merge == "later":
                    self.merged(path)
                records.check(self.content(path), self.ranks, [self.count] * self.ranks)
            if left := records.leftovers(root):
                raise ValueError(f"left behind: {left}")

    def check_killed(self, path):
        told = []
        for rank in range(self.ranks):
            lines = pathlib.Path(f"{path}.acknowledged.{rank}").read_text().split()
            told.append(len(lines))
        if max(told) == self.count:
            raise ValueError("nobody was killed")
        self.merged(path)
        records.check(self.content(path), self.ranks, told, exactly=False, gaps_allowed=True)
        if "nothing to merge" not in self.merged(path):
            raise ValueError("a second merge found something")


class Refusals(Case):
    """What `holdfast merge` refuses, with one sentence, and changes nothing by."""

    def write(self, path):
        command = launch.command(self.options.mpicc, self.ranks) + ["env"] + [f"{k}={v}" for k, v in self.environment(path.parent).items()]
        subprocess.run(command + [self.options.writer, str(path), "40", "60", "1", "ordered"], capture_output=True, timeout=100, check=True)

    def refused(self, path, word):
        before = path.read_bytes() if path.exists() else None
        done = self.holdfast("merge", path)
        lines = done.stderr.decode().splitlines()
        if done.returncode == 0 or len(lines) != 1 or word not in lines[0]:
            raise ValueError(f"expected a refusal with '{word}', got {done.returncode}: {lines}")
        if before is not None and path.read_bytes() != before:
            raise ValueError(f"refused ({word}), and changed all the same")

    def run(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-records-") as name:
            path = pathlib.Path(name) / "out"
            self.refused(path, "no such file")
            self.write(path)
            path.write_bytes(b"x" * 100)
            self.refused(path, "changed")
            path.rename(path.with_name("kept"))
            self.refused(path, "gone")
            path.write_bytes(b"another file")
            self.refused(path, "replaced")
            path.unlink()
            self.write(path)
            self.refused(path, "earlier run")
            if self.holdfast("merge", "--discard", path).returncode != 0 or records.leftovers(name):
                raise ValueError("--discard left something")
            if "nothing to merge" not in self.merged(path):
                raise ValueError("there is something to merge after --discard")
            self.write(path)
            self.cut_short(path)
            self.merged(path)
            records.check(path, self.ranks, [40] * self.ranks)

    def cut_short(self, path):
        """A merge that finds no more room in the middle: the file may not grow beyond some bytes."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        done = subprocess.run([self.options.holdfast, "merge", str(path)], capture_output=True, timeout=60, preexec_fn=limit)
        if done.returncode == 0 or b"nothing is lost" not in done.stderr:
            raise ValueError(f"a merge without room: {done.returncode}, {done.stderr}")


class Together(Case):
    """Logs that serve two files stay until both are merged, in either order; a link is as good as the file that it leads to."""

    def write(self, path):
        settings = self.environment(path.parent)
        command = launch.command(self.options.mpicc, self.ranks) + ["env"] + [f"{k}={v}" for k, v in settings.items()]
        subprocess.run(command + [self.options.writer, str(path), "50", "60", "1", self.mode], capture_output=True, timeout=100, check=True)

    def run(self):
        for order in ((0, 1), (1, 0)):
            with tempfile.TemporaryDirectory(prefix="holdfast-records-") as name:
                paths = [pathlib.Path(name) / "out", pathlib.Path(name) / "out.second"]
                self.write(paths[0])
                first, last = paths[order[0]], paths[order[1]]
                told = self.merged(first)
                if f"holdfast merge {last}" not in told:
                    raise ValueError(f"merge does not say what its log stays for: {told}")
                told = self.merged(last)
                if "stays" in told:
                    raise ValueError(f"the log of merged files stays: {told}")
                for path in paths:
                    records.check(self.content(path), self.ranks, [50] * self.ranks)
                self.nothing_left(pathlib.Path(name))

    @staticmethod
    def nothing_left(root):
        left = [str(p) for p in root.rglob("*")
                if p.name.startswith(("single-", "records.")) or p.name.endswith(".holdfast-records")]
        if left:
            raise ValueError(f"left behind: {left}")


class Link(Together):
    """Opened through a link: the logs lie beside the file, and both names lead to them."""

    def run(self):
        for by_link in (True, False):
            with tempfile.TemporaryDirectory(prefix="holdfast-records-") as name:
                root = pathlib.Path(name)
                (root / "far").mkdir()
                (root / "far/out").touch()
                (root / "between").symlink_to("far/out")
                (root / "link").symlink_to(root / "between")
                self.write(root / "link")
                if not records.leftovers(root / "far") or records.leftovers(root):
                    raise ValueError("the logs do not lie beside the file")
                self.merged(root / "link" if by_link else root / "far/out")
                records.check(root / "far/out", self.ranks, [50] * self.ranks)
                self.nothing_left(root)


def main():
    parser = argparse.ArgumentParser()
    for name in ("mpicc", "library", "holdfast", "writer"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--records", type=int, default=600, help="of each rank")
    parser.add_argument("--schemes", default="", help="also protected: mirror:2,rs:4+2")
    options = parser.parse_args()
    if os.environ.get("HOLDFAST_TEST_LONG"):
        options.ranks = "1,2,4"
        options.schemes = options.schemes and "mirror:2,rs:4+2"
    failures = 0
    schemes = [None] + [s for s in options.schemes.split(",") if s]
    cases = [Refusals(options, 2, "individual", "later", 0, "refusals")]
    cases += [Together(options, 2, "single", "later", 0, "two", scheme) for scheme in schemes]
    cases += [Link(options, 2, algorithm, "later", 0, "independent") for algorithm in ("individual", "single")]
    for ranks, algorithm, merge, mode, scheme in itertools.product(map(int, options.ranks.split(",")), ("individual", "single"),
                                                                  ("close", "later"), ("mixed", "ordered", "kill"), schemes):
        count = options.records if mode != "ordered" else max(options.records // 10, 1)
        cases.append(Case(options, ranks, algorithm, merge, count, mode, scheme))
    for case in cases:
        try:
            case.run()
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            print(f"{case}: {error}")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
