#!/usr/bin/env python3
"""What programs of strangers do with plain files.

  plain_files.py --build BUILD CASE

A CASE is a function below; `scene.py` runs it three ways.
"""
import os
import subprocess
import sys
import time

from scene import Failed, main

KILLS = 30


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


CASES = {
    "files_that_posix_spawn_opens": spawned,
    "files_of_subprocesses": subprocesses,
    "emptied_environments": emptied_environments,
    "appends_by_raw_system_calls": raw_appends,
    "appends_of_a_child_are_seen_by_its_parent": appends_of_a_child,
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


if __name__ == "__main__":
    main(__doc__, CASES)
