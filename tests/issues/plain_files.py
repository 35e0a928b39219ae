#!/usr/bin/env python3
"""What programs of strangers do with plain files, natively, with buffers and with protected files.

  plain_files.py --build BUILD CASE

A CASE is a function below. What it returns has to be the same in all three ways, and is held against what is protected in the end.
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time

JOB_SECONDS = 60
KILLS = 30
NOBODY = 65534
HERE = os.path.dirname(os.path.abspath(__file__))


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


def spawned(scene):
    done = scene.program("files_that_posix_spawn_opens_are_the_programs_own", scene.at("file.dat"))
    scene.must_be_protected("file.dat", "file.dat.new")
    return done, scene.content("file.dat"), scene.content("file.dat.new")


SUBPROCESS = """
import os, subprocess, sys
path = sys.argv[1]
with open(path, "w") as f:
    f.write("one\\n")
with open(path, "a") as f:
    subprocess.run(["sh", "-c", "echo two"], stdout=f, check=True)
    subprocess.run(["sh", "-c", "echo three"], stdout=f, check=True, close_fds=False)
with open(path) as f:
    print(subprocess.run(["cat"], stdin=f, stdout=subprocess.PIPE, check=True).stdout)
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo four"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, path, os.O_WRONLY | os.O_APPEND, 0)])
print(os.waitpid(pid, 0)[1], open(path).read())
"""


def subprocesses(scene):
    done = scene.python(SUBPROCESS, scene.at("file.dat"))
    scene.must_be_protected("file.dat")
    return done, scene.content("file.dat")


EMPTIED = """
import subprocess, sys
with open(sys.argv[1], "w") as f:
    f.write("one\\n")
subprocess.run(["/bin/true"], env={"HOME": "/"})
with open(sys.argv[1], "a") as f:
    subprocess.run(["/bin/true"], stdout=f, env={})
    subprocess.run(["/bin/true"], stdout=f)
subprocess.run(["sh", "-c", "exec env -i /bin/true >>" + sys.argv[1]])
"""


def emptied_environments(scene):
    """What is started without the library is not served: each such start says so, and no other."""
    done = scene.python(EMPTIED, scene.at("file.dat"))
    scene.must_be_protected("file.dat")
    told = [line for line in scene.said.splitlines() if "/bin/true" in line and "lacks LD_PRELOAD" in line]
    closed = [line for line in told if "are closed to it" in line]
    expected = {"native": (0, 0), "buffers": (3, 1), "protected": (3, 1)}[scene.way]
    if (len(told), len(closed)) != expected:
        raise Failed(f"{len(told)} lines, {len(closed)} of them of descriptors, and not {expected}: {scene.said}")
    return done


def names_in(scene):
    return scene.run("ls", "-A", scene.files)


REPLACED = """
import os, sys, tempfile
path = sys.argv[1]
for text in ("one", "two" * 5000):
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False) as f:
        f.write(text)
    os.replace(f.name, path)
print(len(open(path).read()), os.listdir(os.path.dirname(path)))
"""


def renamed(scene):
    done = scene.program("renames_into_the_policy", scene.files)
    scene.must_be_protected("a.dat", "b.dat", "direct.dat", "empty.dat")
    contents = [scene.content(name) for name in ("a.dat", "b.dat", "direct.dat", "empty.dat")]
    replaced = scene.python(REPLACED, scene.at("directory.dat/replaced.dat"))
    scene.must_be_protected("directory.dat/replaced.dat")
    moved = scene.run("sh", "-c", "for i in 1 2 3; do echo checkpoint $i > ck.tmp; mv ck.tmp ck.dat; done; cat ck.dat; mkdir in; mv ck.dat in; "
                                  "cat in/*.dat")
    scene.must_be_protected("in/ck.dat")
    if scene.said and scene.way != "native":
        raise Failed("something was said")
    return done, contents, replaced, moved, names_in(scene)


OPEN = """
import os, sys
with open("x.tmp", "w") as f:
    f.write("before the rename\\n")
    f.flush()
    os.rename("x.tmp", "x.dat")
    f.write("after the rename\\n")
print(open("x.dat").read())
"""


def renamed_while_open(scene):
    results = [scene.python(OPEN), scene.content("x.dat")]
    if scene.way == "protected" and scene.said.count("is open for writing while it gets this name") != 1:
        raise Failed("nothing was said of a file that stays plain")
    linked = scene.run("sh", "-c", "echo second > y.tmp; ln y.tmp y.dat; cat y.dat")
    if scene.way == "protected" and scene.said.count("is a second name of a plain file") != 1:
        raise Failed("nothing was said of a second name")
    return results, linked


def renames_that_fail(scene):
    """With two of three targets gone no file can be made: everything is as it was."""
    made = scene.run("sh", "-c", "echo old > x.dat; echo new > x.tmp")
    if scene.way != "protected":
        return made
    targets = scene.targets.split(",")
    for target in targets[:2]:
        os.rename(target, target + ".away")
    code, _ = scene.python("import os; os.rename('x.tmp', 'x.dat')")
    again, _ = scene.python("import os; os.rename('x.tmp', 'y.dat')")
    for target in targets[:2]:
        os.rename(target + ".away", target)
    left = scene.run("sh", "-c", "cat x.dat x.tmp; ls")
    if code == 0 or again == 0 or left != (0, "old\nnew\nx.dat\nx.tmp\n"):
        raise Failed(f"{code}, {again}, left is {left}")
    scene.must_be_protected("x.dat")
    return made


REFUSED = """
import errno, os, shutil, sys, tempfile
def content(name):
    try:
        with open(name) as file: return file.read()
    except OSError as error: return errno.errorcode[error.errno]
def make(name, text):
    with open(name, "w") as file: file.write(text)
def rename(start, goal):
    try: done = os.rename(start, goal)
    except OSError as error: done = errno.errorcode[error.errno]
    print(os.path.basename(start), goal, done, content(start), content(goal), flush=True)
elsewhere = tempfile.mkdtemp(dir="/dev/shm")
for name in ("a.dat", "b.dat", "open.dat"): make(name, name)
for name in ("new.tmp", "new.dat"): make(os.path.join(elsewhere, name), "new")
held = open("open.dat")
for name in ("new.tmp", "new.dat"):
    for goal in ("a.dat", "open.dat"): rename(os.path.join(elsewhere, name), goal)
shutil.rmtree(elsewhere)
os.mkdir("directory")
make("plain.tmp", "plain")
for start, goal in (("directory", "a.dat"), ("a.dat", "directory"), ("a.dat", "b.dat/"), ("a.dat", "new/"), ("a.dat/", "b.dat"), ("plain.tmp", "b.dat/"),
                    ("nothing", "a.dat"), ("a.dat", "nothing/a.dat"), ("a.dat", "open.dat/.")):
    rename(start, goal)
os.mkdir("only_read")
make("only_read/plain.txt", "plain")
make("only_read/c.dat", "c.dat")
os.chmod("only_read", 0o555)
for start, goal in (("only_read/plain.txt", "a.dat"), ("only_read/plain.txt", "open.dat"), ("only_read/plain.txt", "new.dat"), ("only_read/c.dat", "a.dat"),
                    ("a.dat", "only_read/c.dat"), (sys.argv[1], "a.dat"), (sys.argv[1], "open.dat"), (sys.argv[1], "new.dat")):
    rename(start, goal)
os.chmod("only_read", 0o755)
print(held.read(), sorted(os.listdir(".")))
os.symlink("somewhere", "link")
rename("link", "a.dat")
print(os.readlink("a.dat"), sorted(os.listdir(".")))
"""


def renames_that_are_refused(scene):
    """Whatever the kernel refuses, both names lead to what they led to."""
    sticky = os.path.join(os.path.dirname(os.path.dirname(scene.files)), f"sticky.{scene.way}")  # somebody else's
    os.mkdir(sticky)
    os.chmod(sticky, 0o1777)
    theirs = os.path.join(sticky, "theirs.txt")
    with open(theirs, "w", encoding="utf-8") as file:
        file.write("theirs")
    done = scene.as_nobody(scene.python, REFUSED, theirs if os.getuid() == 0 else "nothing")
    scene.must_be_protected("b.dat", "open.dat", "only_read/c.dat")
    return done, scene.content("open.dat"), scene.content("b.dat")


def renamed_without_a_policy(scene):
    """A program that asks for nothing itself: what it puts in the place of a protected file is protected as that was."""
    made = scene.run("sh", "-c", "echo old > x.dat")
    prefix, scene.prefix = scene.prefix, [scene.holdfast, "run", "--"] if scene.prefix else []
    done = scene.run("sh", "-c", "echo new > x.tmp; mv x.tmp x.dat; cat x.dat; ls -A")
    scene.prefix = prefix
    scene.must_be_protected("x.dat")
    return made, done


def renames_that_are_killed(scene):
    """Wherever it is killed, the name leads to the old content or to the new one, whole."""
    old, new = ("".join(f"{word} {i}\n" for i in range(3000)) for word in ("old", "new"))
    for name, text in (("old.txt", old), ("new.txt", new)):
        with open(scene.at(name), "w", encoding="utf-8") as file:
            file.write(text)
    killed = 0
    for number in range(KILLS if scene.way == "protected" else 0):
        scene.run("sh", "-c", "rm -f x.dat; cat old.txt > x.dat; cp new.txt x.tmp")
        started = subprocess.Popen(scene.prefix + ["/bin/mv", "-f", "x.tmp", "x.dat"], cwd=scene.files, stderr=subprocess.DEVNULL)
        time.sleep(0.004 + number * 0.04 / KILLS)
        started.kill()
        killed += started.wait() != 0
        code, text = scene.content("x.dat")
        if code != 0 or text not in (old, new):
            raise Failed(f"kill {number}: exit code {code}, {len(text)} bytes")
    if scene.way == "protected" and killed == 0:
        raise Failed("nothing was killed")
    # What the killed ones have left shows nowhere, and goes with the directory.
    return scene.run("sh", "-c", f"rm -f x.dat x.tmp; ls -A; cd ..; rm -r {scene.files} && echo gone")


APPENDS_OF_A_CHILD = """
import os, sys
mine = os.open("x.dat", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
other = os.open("x.dat", os.O_RDWR)
if "parent" in sys.argv: os.write(mine, b"before")
go, went = os.pipe(), os.pipe()
if os.fork() == 0:
    for word in (b" one", b" two"):
        os.read(go[0], 1)
        os.write(mine, word)
        os.write(went[1], b"x")
    os._exit(0)
if "parent" in sys.argv: os.write(mine, b" parent")
for _ in range(2):
    os.write(go[1], b"x")
    os.read(went[0], 1)
    print(os.fstat(mine).st_size, os.pread(other, 100, 0))
os.wait()
end = os.lseek(other, 0, os.SEEK_END)
os.pwrite(other, b" after", end)
"""


def appends_of_a_child(scene):
    """A process and its child append through one descriptor. What the parent wrote behind the end that it knew lay over the child's bytes."""
    seen = []
    for who in ("parent", "child"):
        seen.append(scene.run(sys.executable, "-c", APPENDS_OF_A_CHILD, who))
        seen.append(scene.content("x.dat"))
        scene.run("rm", "x.dat")
    return seen


def raw_appends(scene):
    """What lands in the note at a protected file's path is told to whoever opens the file, and to `status`, and is left where it is."""
    made = scene.run("sh", "-c", "echo content > x.dat")
    appended = scene.program("appends_by_raw_system_calls_are_told", "x.dat", "appended\n")
    if scene.way != "protected":
        return made, appended
    for command in (("cat", "x.dat"), ("sh", "-c", "echo more >> x.dat")):
        scene.said = ""
        code, _ = scene.run(*command)
        if code == 0 or "9 bytes behind" not in scene.said or "holdfast repair --revert" not in scene.said:
            raise Failed(f"{command}: {code}, {scene.said}")
    scene.said = ""
    code, said = scene.run(scene.holdfast, "status", scene.at("x.dat"), served=False)
    if code == 0 or "holdfast repair --revert" not in said + scene.said:
        raise Failed(f"status: {code}, {said} {scene.said}")
    with open(scene.at("x.dat"), "rb") as file:
        if not file.read().endswith(b"\nappended\n"):
            raise Failed("what was appended is gone")
    scene.run(scene.holdfast, "repair", "--revert", scene.at("x.dat"), served=False)
    if scene.content("x.dat") != (0, "content\n"):
        raise Failed("the content has not come back")
    scene.must_be_protected("x.dat")
    return made, appended


def of_note(scene, name):
    """What stands at the path, as those see it whom nobody serves: permissions, owner, group."""
    state = os.lstat(scene.at(name))
    return oct(state.st_mode & 0o7777), state.st_uid, state.st_gid


def must_be(said, wanted):
    if said != wanted:
        raise Failed(f"is {said}, not {wanted}")


MODES = """
import os, sys
show = lambda: print(oct(os.stat("x.dat").st_mode), oct(os.lstat("x.dat").st_mode), os.access("x.dat", os.W_OK), os.access("x.dat", os.R_OK | os.W_OK),
                     os.access("x.dat", os.W_OK, effective_ids=True), os.access("x.dat", os.X_OK))
with open("x.dat", "w") as file:
    file.write("content")
    os.fchmod(file.fileno(), 0o640)
    print(oct(os.fstat(file.fileno()).st_mode))
show()
for mode in (0o600, 0o444, 0o755, 0o555, 0o644):
    os.chmod("x.dat", mode)
    show()
    try:
        with open("x.dat", "a") as file:
            print(oct(os.fstat(file.fileno()).st_mode), file.write("more"))
        os.truncate("x.dat", 100)
    except OSError as why:
        print(why.strerror)
    if mode == 0o444:
        for cut in (lambda: os.truncate("x.dat", 5), lambda: os.close(os.open("x.dat", os.O_RDONLY | os.O_TRUNC))):
            try:
                cut()
            except OSError as why:
                print(why.strerror, os.stat("x.dat").st_size)
try:
    os.setxattr("x.dat", "user.kept", b"first", follow_symlinks=False)
    os.setxattr("x.dat", "user.gone", b"second")
    os.removexattr("x.dat", "user.gone")
except OSError as why:
    print("no attributes here" if why.errno == 95 else why.strerror)
os.utime("x.dat", (1000, 2000))
os.chmod("x.dat", 0o664)
with open("x.dat") as file:
    print(os.fstat(file.fileno()).st_mtime, os.stat("x.dat").st_mtime, os.listxattr("x.dat"))
with open("y.dat", "w", opener=lambda path, flags: os.open(path, flags, 0o777)) as file:
    file.write("other content")
print(oct(os.stat("y.dat").st_mode))
os.chmod("y.dat", 0o666)
os.umask(0o77)
os.rename("y.dat", "z.dat")
print(oct(os.stat("z.dat").st_mode))
for name in ("x.dat", "z.dat"):
    os.chmod(name, 0o644)
"""


def note_permissions(scene):
    """Nobody may write to the note at the path, and every call that is served shows and obeys the file's own permissions."""
    done = scene.as_nobody(scene.python, MODES)
    if scene.way == "protected":
        must_be(of_note(scene, "x.dat")[0], "0o444")
        must_be(of_note(scene, "z.dat")[0], "0o444")
        code, _ = scene.as_nobody(scene.program_unserved, "appends_by_raw_system_calls_are_told", "x.dat", "lost\n")
        if code == 0:
            raise Failed("a program that is not served wrote to the note")
    # Nobody served: what stands at the path can be removed as any file.
    return done, scene.as_nobody(scene.content, "x.dat"), scene.as_nobody(scene.run, "rm", "z.dat", served=False)[0]


def notes_made_writable(scene):
    """As an earlier version left them, or their user's chmod without Holdfast: no edit, and what is wanted of the file."""
    made = scene.run("sh", "-c", "echo content > x.dat; chmod 640 x.dat")
    os.chmod(scene.at("x.dat"), 0o600)
    shown = scene.run("sh", "-c", "stat -c %a x.dat; cat x.dat; echo more >> x.dat; stat -c %a x.dat")
    scene.run(*(scene.holdfast, "export") if scene.way == "protected" else ("cp",), scene.at("x.dat"), "plain", served=False)
    must_be(of_note(scene, "plain")[0], "0o600")
    os.chmod(scene.at("x.dat"), 0o644 if scene.way != "protected" else 0o444)
    if scene.way == "protected":
        scene.must_be_protected("x.dat")
    return made, shown, scene.content("x.dat")


def written_notes(scene):
    """Who is not served and may write everywhere, as root may: whatever was done to the note is told, and the file is what it was."""
    made = scene.run("sh", "-c", "seq 1000 > x.dat")
    whole = scene.content("x.dat")
    if scene.way != "protected":
        return made, whole
    with open(scene.at("x.dat"), "rb") as file:
        note = file.read()
    changes = {"appended": note + b"more\n", "begun anew": b"x\n", "cut": note[:200], "emptied": b"", "written over": note[:60] + b"XXXX" + note[64:],
               "written over at its beginning": b"XXXX" + note[4:], "longer than any note": note + b"x" * 5000}
    for what, content in changes.items():
        if os.getuid() != 0:
            os.chmod(scene.at("x.dat"), 0o600)
        time.sleep(0.02)
        with open(scene.at("x.dat"), "r+b") as file:
            file.truncate(0)
            file.write(content)
        # A file that has not even the beginning of a note is read as it is: its reader cannot know of another.
        readers = [("cat", "x.dat")] if content.startswith(note[:16]) and 256 <= len(content) <= 4096 else []
        for command in (*readers, ("sh", "-c", "echo more >> x.dat"), ("sh", "-c", "echo more > x.dat")):
            scene.said = ""
            code, _ = scene.run(*command)
            if code == 0 or "holdfast repair --revert" not in scene.said or scene.said.count("holdfast:") != 1:
                raise Failed(f"{what}, {command}: {code}, {scene.said}")
        code, said = scene.run(scene.holdfast, "status", scene.at("x.dat"), served=False)
        if code == 0 or "holdfast repair --revert" not in said + scene.said:
            raise Failed(f"{what}, status: {code}, {said} {scene.said}")
        with open(scene.at("x.dat"), "rb") as file:
            must_be(file.read(), content)
        must_be(scene.run(scene.holdfast, "repair", "--revert", scene.at("x.dat"), served=False)[0], 0)
        must_be(scene.content("x.dat"), whole)
        scene.must_be_protected("x.dat")
    return made, whole


def owners_of_notes(scene):
    """A note that is renewed keeps the owner that it was given."""
    if os.getuid() != 0:
        return None
    made = scene.run("sh", "-c", "echo content > x.dat")
    os.chown(scene.at("x.dat"), NOBODY, NOBODY)
    renewed = scene.run("sh", "-c", "chmod 4750 x.dat; echo more >> x.dat; mv x.dat y.dat; echo yet more >> y.dat; stat -c '%u %g %a' y.dat")
    if scene.way == "protected":
        must_be(of_note(scene, "y.dat")[1:], (NOBODY, NOBODY))
        scene.must_be_protected("y.dat")
    return made, renewed, scene.content("y.dat")


MEMBER = """
import os
os.utime("x.dat")
try:
    os.setxattr("x.dat", "user.kept", b"of the member's")
except OSError as why:
    print("no attributes here" if why.errno == 95 else why.strerror)
with open("x.dat", "a") as file:
    file.write("the member's\\n")
state = os.stat("x.dat")
print(oct(state.st_mode), state.st_uid, state.st_gid)
"""


def notes_of_groups(scene):
    """Who is in a file's group and may write it does what he may natively, and does not become the owner."""
    if os.getuid() != 0:
        return None
    made = scene.run("sh", "-c", "umask 002; echo content > x.dat; chmod 664 x.dat")
    shared = scene.as_member(scene.python, MEMBER)
    must_be(of_note(scene, "x.dat"), ("0o664", 0, NOBODY))
    again = scene.run("sh", "-c", "echo the owner\\'s >> x.dat; chmod 644 x.dat; chmod 664 x.dat; stat -c '%u %g %a' x.dat")
    scene.must_be_protected("x.dat")
    # As an earlier version left it, and as its owner makes it without Holdfast.
    second = scene.run("sh", "-c", "echo content > y.dat")
    os.chmod(scene.at("y.dat"), 0o664)
    written = scene.as_member(scene.run, "sh", "-c", "echo more >> y.dat; stat -c '%u %g %a' y.dat")
    must_be(of_note(scene, "y.dat"), ("0o664", 0, NOBODY))
    scene.must_be_protected("y.dat")
    return made, shared, again, second, written, scene.content("x.dat"), scene.content("y.dat")


def acl_of(*entries):
    """An ACL as the kernel takes it: version 2, then a tag, permissions and an id each, all little-endian."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def notes_with_acls(scene):
    """One more user may write: also after the owner has written, and the group never."""
    anybody = 0xffffffff
    acl = acl_of((1, 6, anybody), (2, 6, NOBODY), (4, 4, anybody), (16, 6, anybody), (32, 4, anybody))
    made = scene.run("sh", "-c", "echo content > x.dat")
    try:
        os.setxattr(scene.at("x.dat"), "system.posix_acl_access", acl)
    except OSError as why:
        print(f"no ACLs here: {why}")
        return None
    written = scene.run("sh", "-c", "echo more >> x.dat; chmod 600 x.dat; chmod 664 x.dat; echo yet more >> x.dat; stat -c %a x.dat")
    must_be(os.getxattr(scene.at("x.dat"), "system.posix_acl_access"), acl)
    scene.must_be_protected("x.dat")
    return made, written, scene.content("x.dat")


UNREADABLE = """
import os
def show():
    try:
        open("x.dat", "a").write("more")
        said = "written"
    except OSError as why:
        said = why.strerror
    print(oct(os.stat("x.dat").st_mode), os.access("x.dat", os.R_OK), os.access("x.dat", os.W_OK), said)
open("x.dat", "w").write("content")
for modes in ((0, 0o400), (0, 0o600), (0o200, 0o444), (0, 0o40, 0o640)):
    for mode in modes:
        os.chmod("x.dat", mode)
    show()
"""


def note_mode(scene):
    """What a note that cannot be renewed cannot say is refused; what its own bits say is done."""
    done = scene.as_nobody(scene.python, UNREADABLE)
    must_be(scene.said, "")
    if scene.way != "protected" or os.getuid() != 0:
        return done
    scene.as_nobody(scene.run, "sh", "-c", "echo content > r.dat; chmod 644 r.dat")
    targets = scene.targets.split(",")

    def told(what, mode, shown, name="r.dat"):
        scene.said = ""
        code, said = scene.as_nobody(scene.run, "sh", "-c", f"chmod {mode} {name}; code=$?; stat -c %a {name}; exit $code")
        lines = [line for line in scene.said.splitlines() if line.startswith("holdfast:")]
        refused = mode != shown
        if (code != 0) != refused or said != f"{shown}\n" or len(lines) != refused:
            raise Failed(f"{what}, {mode}: {code}, {said}, {scene.said}")

    def without_the_directory():
        os.chmod(scene.files, 0o555)
        told("in a directory that may not be written", "444", "644")
        told("in a directory that may not be written", "755", "755")
        os.chmod(scene.files, 0o755)

    def without_targets():
        for target in targets:
            os.rename(target, target + ".away")
        prefix, scene.prefix = scene.prefix, [scene.holdfast, "run", "--"]
        told("without targets", "555", "555")
        told("without targets", "700", "700")
        scene.prefix = prefix
        for target in targets:
            os.rename(target + ".away", target)

    without_the_directory()
    told("with everything there", "644", "644")
    os.chmod(scene.at("r.dat"), 0o644)
    told("with everything there", "755", "755")
    without_targets()
    scene.as_nobody(scene.run, "cp", "-p", "r.dat", "copy.dat", served=False)
    told("a copied note", "400", "700", "copy.dat")
    scene.must_be_protected("r.dat")
    return done


def attributes_of_notes(scene):
    """What was done to the note by us is written down: it has not been touched since."""
    made = scene.as_nobody(scene.run, "sh", "-c", "echo content > x.dat")
    done = scene.as_nobody(scene.python, "import os; os.setxattr('x.dat', 'user.one', b'1'); os.setxattr('x.dat', 'user.two', b'2'); "
                                         "os.removexattr('x.dat', 'user.one'); print(os.listxattr('x.dat'))")
    if scene.way == "protected":
        with open(scene.at(".x.dat.holdfast/manifest"), encoding="utf-8") as file:
            said = file.read()
        if str(os.stat(scene.at("x.dat")).st_ctime_ns) not in said:
            raise Failed("its time is not in the manifest")
    return made, done


def go_programs(scene):
    """A Go program that is linked dynamically loads the library and calls nothing of it: one line says so."""
    done = scene.program("program_like_one_of_go", "y.dat", "by raw calls\n")
    if scene.said.count("is a Go program") != (scene.way == "protected"):
        raise Failed("was not told once")
    return done, scene.content("y.dat")


def descriptor_names(scene):
    done = scene.program("names_of_descriptors_lead_to_their_files", scene.at("x.dat"))
    shells = scene.run("sh", "-c", "echo one > y.dat; exec 5>>y.dat; echo two > /dev/fd/5; cat /dev/fd/5; exec 6<y.dat; cat /dev/fd/6; "
                                   "cat /proc/self/fd/6; cat /dev/stdin < y.dat; (echo three >> /dev/stdout) >> y.dat; cat y.dat; "
                                   "cat /proc/$$/fd/6; sh -c 'echo four >> /proc/$PPID/fd/5; exit 0'; echo five >&5; cat y.dat")
    scene.must_be_protected("y.dat")
    return done, shells, scene.content("y.dat"), names_in(scene)


def no_settings(scene):
    """A value that means nothing ends a process at its start, with one line and nothing written; natively it is nobody's."""
    for variable, value in (("HOLDFAST_PROTECT", "rs:x"), ("HOLDFAST_BUFFER", "many"), ("HOLDFAST_STRIPING_UNIT", "-1")):
        scene.said = ""
        name = variable + ".dat"
        code, _ = scene.run("sh", "-c", f"{variable}={value} /bin/cp /etc/hostname {name}; code=$?; test ! -e {name} && exit $code")
        if scene.way != "native":
            lines = [line for line in scene.said.splitlines() if line.startswith("holdfast:") and variable in line and "allowed is" in line]
            if code != 78 or len(lines) != 1 or len(scene.said.splitlines()) != 1:
                raise Failed(f"{variable}={value}: exit code {code}, {scene.said}")
    return ""


FULL = """
import errno, os
def refused(path):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
    except OSError as why:
        return errno.errorcode[why.errno]
file, filling = os.open("x.dat", os.O_RDWR | os.O_CREAT, 0o644), []
while not refused("/dev/null"):
    filling.append(os.open("/dev/null", os.O_RDONLY))
for part in range(100):
    os.write(file, bytes([part]) * 1000)
os.fsync(file)
os.ftruncate(file, 50001)
os.fsync(file)
os.pwrite(file, b"in between", 2345)
os.fsync(file)
print(os.pread(file, 20, 2340), os.fstat(file).st_size, refused("y.dat"), refused("x.dat"), refused("/dev/null"))
print(filling and [os.close(fd) for fd in filling[:len(filling) // 2]] and refused("y.dat"))
os.write(file, b"end")
os.close(file)
"""


LOWERED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
"""
# Where the limit is lowered while files are open, numbers of Holdfast's may become free for the program after that.
FULL_FOR_A_WHILE = FULL.replace(', refused("y.dat"), refused("x.dat"), refused("/dev/null"))', ")").replace(' and refused("y.dat")', " and None")
ANOTHER = """
import os
another = os.open("z.dat", os.O_RDWR | os.O_CREAT, 0o644)
"""

FULL_OF_LARGE_WRITES = """
import os
file = os.open("x.dat", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, bytes(range(256)) * 12000), os.fsync(file)
try:
    while os.open("/dev/null", os.O_RDONLY):
        pass
except OSError as why:
    print(why)
for part in range(3):
    print(os.pwrite(file, bytes([part]) * 2500000, part * 1000003), os.fsync(file))
os.close(file)
"""


def full_tables_of_few(scene):
    """Where a process may have few descriptors, no target is lost either: a file that would need more is not opened to be written."""
    done = []
    for scheme, targets, limit in (("mirror:2", 2, 48), ("rs:4+2", 6, 96)):
        command = ("sh", "-c", f'ulimit -n {limit}; exec /usr/bin/python3 -c "$0"', FULL_OF_LARGE_WRITES)
        if scene.way != "protected":
            done += [scene.run(*command), scene.content("x.dat")]
            os.unlink(scene.at("x.dat"))
            continue
        scene.protect(scheme, targets)
        done.append(scene.run(*command))
        code, said = scene.run(scene.holdfast, "status", scene.at("x.dat"), served=False)
        if code != 0:
            raise Failed(f"status of a file of {scheme} with {limit} descriptors: {code}, {said}")
        done.append(scene.content("x.dat"))
        scene.run(scene.holdfast, "rm", scene.at("x.dat"), served=False)
    if scene.said:
        raise Failed(f"was said: {scene.said}")
    if scene.way == "protected":
        code, _ = scene.run("sh", "-c", "ulimit -n 64; echo few > few.dat")
        if code == 0 or "few.dat: a process that writes it needs 80 descriptors, and this one may have 64; allow more" not in scene.said:
            raise Failed(f"a file that needs more is made with {code}: {scene.said}")
        if os.listdir(scene.files):
            raise Failed(f"what is refused leaves {os.listdir(scene.files)}")
    return done


def full_tables(scene):
    """A program that has used up all its descriptors is refused the next one, and what it has open serves on: on all targets."""
    done = []
    for limit, script in ((100, FULL), (1024, FULL), (1024, LOWERED + FULL), (1024, ANOTHER + LOWERED + FULL_FOR_A_WHILE)):
        done.append(scene.run("sh", "-c", f'ulimit -n {limit}; exec /usr/bin/python3 -c "$0"', script))
        if any("no descriptors left" not in line for line in scene.said.splitlines()):
            raise Failed("something else was said")
        for name in ("x.dat", "y.dat", "z.dat"):
            if not os.path.exists(scene.at(name)):
                continue
            scene.must_be_protected(name)
            code, said = scene.run(scene.holdfast, "status", scene.at(name), served=False) if scene.way == "protected" else (0, "")
            if code != 0:
                raise Failed(f"status of {name} with {limit} descriptors: {code}, {said}")
            done.append(scene.content(name))
            if scene.way == "protected":
                scene.run(scene.holdfast, "rm", scene.at(name), served=False)
            else:
                os.unlink(scene.at(name))
    return done


CASES = {
    "full_descriptor_tables": full_tables,
    "full_descriptor_tables_of_few": full_tables_of_few,
    "files_that_posix_spawn_opens": spawned,
    "files_of_subprocesses": subprocesses,
    "emptied_environments": emptied_environments,
    "appends_by_raw_system_calls": raw_appends,
    "appends_of_a_child_are_seen_by_its_parent": appends_of_a_child,
    "nobody_may_write_to_a_note": note_permissions,
    "a_note_made_writable_is_no_edit": notes_made_writable,
    "what_is_written_to_a_note_is_told": written_notes,
    "a_renewed_note_keeps_its_owner": owners_of_notes,
    "a_group_that_may_write_does_as_natively": notes_of_groups,
    "a_renewed_note_keeps_its_acl": notes_with_acls,
    "a_chmod_that_a_note_cannot_say_is_refused": note_mode,
    "attributes_of_a_note_are_no_edit": attributes_of_notes,
    "programs_of_go": go_programs,
    "names_of_descriptors": descriptor_names,
    "renames_into_the_policy": renamed,
    "renames_of_open_files": renamed_while_open,
    "renames_that_fail": renames_that_fail,
    "renames_that_are_refused": renames_that_are_refused,
    "renames_that_are_killed": renames_that_are_killed,
    "renames_without_a_policy": renamed_without_a_policy,
    "settings_that_mean_nothing_end_a_process": no_settings,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("case", choices=CASES)
    options = parser.parse_args()
    failed, native = 0, None
    with tempfile.TemporaryDirectory(prefix="holdfast-issues-") as scratch:
        os.chmod(scratch, 0o755)
        for way in ("native", "buffers", "protected"):
            scene = Scene(options.build, os.path.join(scratch, way), way)
            try:
                result = CASES[options.case](scene)
                native = native or result
                if result != native:
                    raise Failed(f"is\n{result}\nnot\n{native}")
            except (Failed, subprocess.TimeoutExpired) as why:
                failed += 1
                print(f"{options.case}, {way}: {why}\n{scene.said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
