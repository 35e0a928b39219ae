#!/usr/bin/env python3
"""What programs and people do to the note at a protected file's path: its owner, its mode, its bytes.

  notes.py --build BUILD CASE

A CASE is a function below; `scene.py` runs it three ways.
"""
import os
import struct
import time

from scene import NOBODY, Failed, main



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


CASES = {
    "nobody_may_write_to_a_note": note_permissions,
    "a_note_made_writable_is_no_edit": notes_made_writable,
    "what_is_written_to_a_note_is_told": written_notes,
    "a_renewed_note_keeps_its_owner": owners_of_notes,
    "a_group_that_may_write_does_as_natively": notes_of_groups,
    "a_renewed_note_keeps_its_acl": notes_with_acls,
    "a_chmod_that_a_note_cannot_say_is_refused": note_mode,
    "attributes_of_a_note_are_no_edit": attributes_of_notes,
}


if __name__ == "__main__":
    main(__doc__, CASES)
