"""The three ways in which a case runs: natively, with buffers and with protected files. What it returns has to be the same in all of them, and is
held against what is protected in the end. For the scripts beside it: `main` serves the command line of each."""
import argparse
import os
import subprocess
import sys
import tempfile

JOB_SECONDS = 60
NOBODY = 65534


class Failed(Exception):
    pass


class Scene:
    """A directory for a program's files, in which those named *.dat* fall under the policy."""

    def __init__(self, build, directory, way):
        os.mkdir(directory)
        self.way, self.holdfast = way, os.path.join(build, "bin", "holdfast")
        self.programs = os.path.join(build, "tests", "issues", "plain")
        self.files = os.path.join(directory, "files")
        os.mkdir(self.files)
        self.prefix = {"native": [], "buffers": [self.holdfast, "run", "--buffer", "4x1MiB", "--path", "*.dat*", "--"]}.get(way)
        self.directory = directory
        if way == "protected":
            self.protect("rs:2+1", 3)
        self.user = None
        self.said = ""  # on standard error, of all so far

    def protect(self, scheme, targets):
        places = [os.path.join(self.directory, f"{scheme.replace(':', '-')}-t{i}") for i in range(targets)]
        for place in places:
            os.makedirs(place, exist_ok=True)
        self.targets = ",".join(places)
        self.prefix = [self.holdfast, "run", "--protect", scheme, "--striping-unit", "4096", "--targets", self.targets, "--path", "*.dat*", "--"]

    def at(self, name):
        return os.path.join(self.files, name)

    def run(self, *command, environment=None, served=True):
        prefix = self.prefix if served else []
        done = subprocess.run(prefix + list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.files, timeout=JOB_SECONDS, env={**os.environ, **(environment or {})}, check=False,
                              user=self.user, group=self.user, extra_groups=None if self.user is None else [])
        self.said += done.stderr.decode(errors="replace")
        return done.returncode, done.stdout.decode(errors="replace").replace(self.files, "FILES")

    def program(self, name, *arguments):
        return self.run(os.path.join(self.programs, name), *arguments)

    def program_unserved(self, name, *arguments):
        return self.run(os.path.join(self.programs, name), *arguments, served=False)

    def must_be_open_to_all(self):
        at = self.holdfast
        while at != "/":
            if not os.stat(at).st_mode & 0o001:
                print(f"{at} is not open to other users")
                sys.exit(77)
            at = os.path.dirname(at)

    def as_nobody(self, run, *arguments, **options):
        """As a user to whom permissions mean something."""
        if os.getuid() != 0:
            return run(*arguments, **options)
        self.must_be_open_to_all()
        for at, _, names in os.walk(os.path.dirname(self.files)):
            for one in [at] + [os.path.join(at, name) for name in names]:
                if os.lstat(one).st_uid != NOBODY:
                    os.lchown(one, NOBODY, NOBODY)
        self.user = NOBODY
        try:
            return run(*arguments, **options)
        finally:
            self.user = None

    def as_member(self, run, *arguments, **options):
        """As a user who owns nothing and is in the group of everything, and may write wherever that may."""
        self.must_be_open_to_all()
        for at, _, names in os.walk(os.path.dirname(self.files)):
            for one in [at] + [os.path.join(at, name) for name in names]:
                os.chown(one, -1, NOBODY)
                if os.path.dirname(one) != self.files or os.path.isdir(one):
                    os.chmod(one, os.stat(one).st_mode | 0o060)
        self.user = NOBODY
        try:
            return run(*arguments, **options)
        finally:
            self.user = None

    def python(self, script, *arguments):
        return self.run("/usr/bin/python3", "-c", script, *arguments)

    def content(self, name):
        return self.run("cat", self.at(name))

    def taken_away(self, name, when):
        """The content of a file that is removed then. A protected one has to have all its targets."""
        code, said = self.run(self.holdfast, "status", self.at(name), served=False) if self.way == "protected" else (0, "")
        if code != 0:
            raise Failed(f"status of {name} {when}: {code}, {said}")
        content = self.content(name)
        if self.way == "protected":
            self.run(self.holdfast, "rm", self.at(name), served=False)
        else:
            os.unlink(self.at(name))
        return content

    def is_protected(self, name):
        return self.run(self.holdfast, "status", self.at(name), served=False)[0] == 0

    def must_be_protected(self, *names):
        if self.way != "protected":
            return
        for name in names:
            if not self.is_protected(name):
                raise Failed(f"{name} is plain")
            code, said = self.run(self.holdfast, "verify", self.at(name), served=False)
            if code != 0:
                raise Failed(f"verify {name}: {said}")


def run_case(build, case, function):
    """The exit code."""
    failed, native = 0, None
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as scratch:
        os.chmod(scratch, 0o755)
        for way in ("native", "buffers", "protected"):
            scene = Scene(build, os.path.join(scratch, way), way)
            try:
                result = function(scene)
                native = native or result
                if result != native:
                    raise Failed(f"is\n{result}\nnot\n{native}")
            except (Failed, subprocess.TimeoutExpired) as why:
                failed += 1
                print(f"{case}, {way}: {why}\n{scene.said}")
    return 1 if failed else 0


def main(description, cases):
    """`cases`: functions of a Scene by name."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("case", choices=cases)
    options = parser.parse_args()
    sys.exit(run_case(options.build, options.case, cases[options.case]))
