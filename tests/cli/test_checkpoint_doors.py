"""Whatever way a program opens a checkpoint, it gets the local file, and what it has closed is protected."""
import errno
import os
import shutil
import sys
import unittest

from checkpoint_test import CheckpointTest

DOORS = os.environ.get("HOLDFAST_CHECKPOINT_DOORS", "")
NAMES = ("open", "open64", "creat", "creat64", "openat", "fopen", "fopen64", "exclusive", "freopen", "freopen64", "freopen-exclusive", "standard-output", "away")


class CheckpointDoors(CheckpointTest):
    def assert_whole(self, done, steps):
        self.assertEqual(set(self.standings()), set(steps), done.stderr)
        self.assertEqual([name for name in os.listdir(self.path("ck")) if name.startswith("ck.")], [], "nothing lies at the user's path")

    def test_every_door_of_the_c_library_gives_the_local_file(self):
        script = "\n".join(f"{DOORS} {name} ck/ck.{step}.0 'by {name}' || echo {name} >> wrong" for step, name in enumerate(NAMES, 1))
        done = self.run_job(script, "--drain", "none", "--keep", "99", nodes=3, scheme="rs:2+1")
        self.assertFalse(os.path.exists(self.path("wrong")), done.stderr)
        self.assert_whole(done, range(1, len(NAMES) + 1))
        self.assertEqual({step for step, state in self.states().items() if state not in ("whole", "superseded")}, set())
        self.run_job(f"cat ck/ck.{len(NAMES)}.0 > got", "--resume", "--drain", "none", nodes=3, scheme="rs:2+1")
        self.assertEqual(self.read("got"), f"by {NAMES[-1]}")

    def test_what_is_asked_of_a_checkpoints_entry_is_answered(self):
        """Python's copies ask for attributes, and so does ls -l."""
        with open(self.path("asks.py"), "w") as script:
            script.write("""
import ctypes, os, shutil, subprocess
name = "ck/ck.1.0"
with open(name, "w") as file:
    file.write("one")
shutil.copy2(name, "copy")
shutil.copytree("ck", "copies")
shutil.copy2("copy", "ck/ck.2.0")
assert os.listxattr(name, follow_symlinks=False) == os.listxattr(name)
for follows in (True, False):
    try:
        raise SystemExit(os.getxattr(name, "user.none", follow_symlinks=follows))
    except OSError as error:
        print(error.strerror)
assert os.statvfs(name).f_frsize > 0
listed = subprocess.run(["ls", "-l", "ck"], capture_output=True, text=True)
print(listed.returncode, listed.stderr, "ck.1.0" in listed.stdout)
def path_of(name):
    return os.open(name, os.O_PATH)
def real_path(name):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.realpath.restype = ctypes.c_char_p
    at = libc.realpath(name.encode(), None)
    if not at:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return at.decode()
def name_max(name):
    return os.pathconf(name, "PC_NAME_MAX")
os.symlink(name, "link")
assert real_path(name) == real_path("link") == os.path.realpath("ck") + "/ck.1.0"
assert os.fstat(path_of(name)).st_size == 3 and name_max(name) > 0
for ask in (os.listxattr, os.statvfs, path_of, real_path, name_max, os.readlink):
    try:
        ask("ck/ck.9.0")
    except FileNotFoundError as error:
        print(error.strerror)
try:
    os.readlink(name)
except OSError as error:
    print(error.strerror)
""")
        done = self.run_job(f"{sys.executable} asks.py", "--drain", "none", nodes=3, scheme="rs:2+1")
        said = 2 * [os.strerror(errno.ENODATA)] + ["0  True"] + 6 * [os.strerror(errno.ENOENT)] + [os.strerror(errno.EINVAL)]
        self.assertEqual(done.stdout.splitlines(), said, done.stderr)
        self.assertEqual(self.read("copies", "ck.1.0"), "one")
        self.assertEqual(self.states(), {1: "superseded", 2: "whole"})

    def test_a_name_that_ends_in_a_slash_is_no_checkpoint(self):
        script = "echo no > ck/ck.1.0/ || echo refused; echo one > ck/ck.1.0; stat ck/ck.1.0/ || echo refused; cat ck/ck.1.0/ || echo refused; cat ck/ck.1.0"
        done = self.run_job(script, "--drain", "none", nodes=3, scheme="rs:2+1")
        self.assertEqual(done.stdout, "refused\nrefused\nrefused\none\n", done.stderr)
        self.assertEqual(self.states(), {1: "whole"})

    def test_streams_append_at_the_end_and_write_again_what_they_have_read(self):
        with open(self.path("streams.py"), "w") as script:
            script.write("""
import ctypes
c = ctypes.CDLL(None)
c.fopen.restype = c.freopen.restype = ctypes.c_void_p
for called in (c.ftell, c.fclose):
    called.argtypes = [ctypes.c_void_p]
c.fputs.argtypes, c.freopen.argtypes = [ctypes.c_char_p, ctypes.c_void_p], [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
def put(text, stream):
    c.fputs(text, stream)
    assert c.fclose(stream) == 0
for text in (b"one", b"two"):
    stream = c.fopen(b"ck/ck.1.0", b"a")
    print(c.ftell(stream))
    put(text, stream)
put(b"ONE", c.freopen(None, b"r+", c.fopen(b"ck/ck.1.0", b"r")))
""")
        # Once it is protected, what its local copy gets later is in no version.
        script = f"{sys.executable} streams.py && exec 4< ck/ck.1.0 && printf three >> /dev/fd/4 && cat ck/ck.1.0"
        done = self.run_job(script, "--protect-at", "close", nodes=3, scheme="rs:2+1")
        self.assertEqual(done.stdout, "0\n3\nONEtwothree", done.stderr)
        self.assertEqual(self.read("ck", "ck.1.0"), "ONEtwothree")

    def test_a_checkpoint_has_no_second_name(self):
        """A name that a link would give a plain file: what is written by it would be on no node."""
        with open(self.path("links.py"), "w") as script:
            script.write("""
import os
for name in ("plain", "ck/ck.1.0"):
    with open(name, "w") as file:
        file.write("one")
for name, other in (("plain", "ck/ck.2.0"), ("ck/ck.1.0", "other"), ("ck/ck.1.0", "ck/ck.2.0"), ("ck/ck.9.0", "other"), ("none", "ck/ck.2.0")):
    try:
        os.link(name, other)
    except OSError as error:
        print(error.strerror)
""")
        done = self.run_job(f"{sys.executable} links.py", "--drain", "none", nodes=3, scheme="rs:2+1")
        self.assertEqual(done.stdout.splitlines(), 3 * [os.strerror(errno.EPERM)] + 2 * [os.strerror(errno.ENOENT)], done.stderr)
        self.assertEqual(done.stderr.count("gets no second name of a file; give it this name by a rename"), 2, done.stderr)
        self.assertFalse(os.path.exists(self.path("other")))
        self.assertEqual(os.listdir(self.path("ck")), [])

    def has_its_name_alone(self, pattern):
        """As programs lock: by a link, a directory or a pipe, which is made where nothing has its name."""
        with open(self.path("makes.py"), "w") as script:
            script.write("""
import os
for name in ("ck/ck.1.0", "ck/ck.2.0", "plain"):
    with open(name, "w") as file:
        file.write(name)
os.unlink("ck/ck.2.0")
calls = (lambda name: os.symlink("other", name), os.mkdir, os.mkfifo, lambda name: os.mknod(name, 0o600), lambda name: os.link("plain", name))
for call in calls:
    try:
        call("ck/ck.1.0")
        print("made")
    except OSError as error:
        print(error.strerror)
for call, remove in zip(calls[:3], (os.unlink, os.rmdir, os.unlink)):
    for name in ("ck/ck.2.0", "ck/ck.3.0"):
        call(name), remove(name)
print(open("ck/ck.1.0").read(), os.listdir("ck"))
""")
        done = self.run_job(f"{sys.executable} makes.py", nodes=3, scheme="rs:2+1", pattern=pattern)
        self.assertEqual(done.stdout.splitlines(), 5 * [os.strerror(errno.EEXIST)] + ["ck/ck.1.0 ['ck.1.0']"], done.stderr)
        self.assertEqual((os.listdir(self.path("ck")), self.read("ck", "ck.1.0")), (["ck.1.0"], "ck/ck.1.0"))

    def test_a_name_that_a_checkpoint_has_is_no_more_to_be_had(self):
        self.has_its_name_alone("ck/ck.{step}.{rank}")

    def test_nor_is_that_of_a_file_that_is_protected_by_itself(self):
        self.has_its_name_alone("ck/*")

    def test_a_checkpoint_that_is_renamed_to_another_name_is_plain_there(self):
        """As programs keep what they replace: state.0 and state.0.bak."""
        with open(self.path("renames.py"), "w") as script:
            script.write("""
import os
name = "ck/ck.1.0"
for i in range(12):  # protectors take what is closed meanwhile
    with open("ck/tmp", "w") as file:
        file.write(f"state {i}")
    if i:
        os.utime(name, (1e9, 1e9))
        os.rename(name, name + ".bak")
        print(os.path.exists(name), os.stat(name + ".bak").st_mtime)
    os.rename("ck/tmp", name)
print(sorted(os.listdir("ck")), open(name).read(), open(name + ".bak").read())
file = open(name, "a")
try:
    os.rename(name, "elsewhere")
except OSError as error:
    print(error.strerror)
""")
        done = self.run_job(f"{sys.executable} renames.py", "--drain", "none", nodes=3, scheme="rs:2+1")
        said = 11 * ["False 1000000000.0"] + ["['ck.1.0', 'ck.1.0.bak'] state 11 state 10", os.strerror(errno.EBUSY)]
        self.assertEqual(done.stdout.splitlines(), said, done.stderr)
        self.assertEqual((self.read("ck", "ck.1.0.bak"), os.listdir(self.path("ck"))), ("state 10", ["ck.1.0.bak"]))

    def test_so_it_does_where_the_file_is_of_all_ranks(self):
        """There it lies on the nodes. A rank's own opens are each of another checkpoint here."""
        # The C library has no stream on a descriptor of ours that reads and writes: it is said.
        names = [name for name in NAMES if name != "freopen64"]
        script = "\n".join(f"{DOORS} {name} ck/ck.{step} 'by {name}' || echo {name} >> wrong" for step, name in enumerate(names, 1))
        done = self.run_job(script, "--drain", "none", "--keep", "99", nodes=3, scheme="rs:2+1", pattern="shared:ck/ck.{step}")
        self.assertFalse(os.path.exists(self.path("wrong")), done.stderr)
        self.assert_whole(done, range(1, len(names) + 1))
        self.assertEqual({step for step, state in self.states().items() if state not in ("whole", "superseded")}, set())
        self.run_job(f"cat ck/ck.{len(names)} > got", "--resume", "--drain", "none", nodes=3, scheme="rs:2+1", pattern="shared:ck/ck.{step}")
        self.assertEqual(self.read("got"), f"by {names[-1]}")

    def test_a_stream_that_was_a_checkpoint_and_is_another_is_protected_at_once(self):
        """It closes the first one, as fclose does."""
        with open(self.path("away.py"), "w") as script:
            script.write("""
import ctypes, glob, os, time
libc = ctypes.CDLL(None, use_errno=True)
for name, kind in (("fopen", ctypes.c_void_p), ("freopen", ctypes.c_void_p)):
    getattr(libc, name).restype = kind
stream = libc.fopen(b"ck/ck.1.0", b"w")
libc.fputs(b"one", ctypes.c_void_p(stream))
stream = libc.freopen(b"ck/ck.2.0", b"w", ctypes.c_void_p(stream))
libc.fputs(b"two", ctypes.c_void_p(stream))
for look in range(100):
    if glob.glob("holdfast-nodes/n1/.checkpoints/*/1.*/protected/1.0of*"):
        break
    time.sleep(0.1)
else:
    raise SystemExit("the first one is not protected while the stream is open on the second")
os._exit(0)
""")
        self.run_job(f"{sys.executable} away.py", "--drain", "none", nodes=3, scheme="rs:2+1")

    def test_python_writes_and_reads_its_own_way(self):
        with open(self.path("write.py"), "w") as script:
            script.write("""
import os, pathlib, shutil
pathlib.Path("ck/ck.1.0").write_bytes(b"by pathlib")
with open("ck/ck.2.0", "x+b", buffering=0) as file:
    file.write(b"unbuffered")
    file.seek(0)
    assert file.read() == b"unbuffered"
with open("plain", "w") as file:
    file.write("copied")
shutil.copyfile("plain", "ck/ck.3.0")
os.replace("plain", "ck/ck.4.0")
assert sorted(os.listdir("ck")) == ["ck.1.0", "ck.2.0", "ck.3.0", "ck.4.0"], os.listdir("ck")
assert [pathlib.Path(f"ck/ck.{s}.0").read_text() for s in (1, 2, 3, 4)] == ["by pathlib", "unbuffered", "copied", "copied"]
""")
        done = self.run_job(f"{sys.executable} write.py", "--drain", "none", "--keep", "9", nodes=3, scheme="rs:2+1")
        self.assert_whole(done, (1, 2, 3, 4))

    @unittest.skipUnless(shutil.which("gfortran"), "no Fortran compiler")
    def test_fortran_writes_and_reads_its_own_way(self):
        with open(self.path("units.f90"), "w") as source:
            source.write("""
program units
  implicit none
  real(8) :: field(1000), again(1000)
  integer :: number
  field = [(sqrt(real(number, 8)), number = 1, 1000)]
  open(10, file='ck/ck.1.0', form='unformatted', status='replace'); write(10) field; close(10)
  open(10, file='ck/ck.2.0', form='unformatted', access='stream', status='new'); write(10) field; close(10)
  open(10, file='ck/ck.3.0', form='unformatted', access='direct', recl=8000); write(10, rec=1) field; close(10)
  open(10, file='ck/ck.1.0', form='unformatted', status='old', action='read'); read(10) again; close(10)
  if (any(again /= field)) stop 1
  open(10, file='ck/ck.3.0', form='unformatted', access='direct', recl=8000, status='old'); read(10, rec=1) again; close(10)
  if (any(again /= field)) stop 2
  open(10, file='ck/ck.2.0', status='old'); close(10, status='delete')
end program
""")
        self.assertEqual(os.system(f"gfortran -o {self.path('units')} {self.path('units.f90')}"), 0)
        done = self.run_job("./units; [ -e ck/ck.2.0 ] && echo there > wrong", "--drain", "none", "--keep", "9", nodes=3, scheme="rs:2+1", expect=None)
        self.assertFalse(os.path.exists(self.path("wrong")), done.stderr)
        states = self.states()
        self.assertEqual((states[1], states[3]), ("superseded", "whole"), done.stderr)


if __name__ == "__main__":
    unittest.main()
