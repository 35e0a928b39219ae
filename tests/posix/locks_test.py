#!/usr/bin/env python3
"""Locks of protected files, and of plain ones with buffers, keep processes of one node apart, and what one wrote under a lock the next one sees.

usage: locks_test.py LIBRARY HOLDFAST
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, HOLDFAST = map(os.path.abspath, sys.argv[1:3])
# What the file is: a stub, a link to a whole copy, the data themselves beside their redundancy, a plain one with buffers.
KINDS = {"stub": ("rs:2+1", 3, "none"), "stub with buffers": ("rs:2+1", 3, "2x100k"), "link": ("mirror:2", 2, "none"),
         "beside": ("mirror:2", 0, "none"), "plain": ("none", 0, "2x100k")}
LOCKS = """
import errno, fcntl, os, struct, subprocess, sys, time
def ofd(fd, command, kind): fcntl.fcntl(fd, command, struct.pack('hhqqi4x', kind, os.SEEK_SET, 0, 0, 0))
def here(fd, command): os.lseek(fd, 0, os.SEEK_SET); os.lockf(fd, command, 0)  # from the position on
WAYS = {
  'flock': (lambda fd: fcntl.flock(fd, fcntl.LOCK_EX), lambda fd: fcntl.flock(fd, fcntl.LOCK_UN), lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)),
  'lockf': (lambda fd: here(fd, os.F_LOCK), lambda fd: here(fd, os.F_ULOCK), lambda fd: here(fd, os.F_TLOCK)),
  'fcntl': (lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX), lambda fd: fcntl.lockf(fd, fcntl.LOCK_UN), lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)),
  'ofd': (lambda fd: ofd(fd, fcntl.F_OFD_SETLKW, fcntl.F_WRLCK), lambda fd: ofd(fd, fcntl.F_OFD_SETLKW, fcntl.F_UNLCK), lambda fd: ofd(fd, fcntl.F_OFD_SETLK, fcntl.F_WRLCK)),
}
def refused(fd, way):
  try: WAYS[way][2](fd)
  except OSError as error: assert error.errno in (errno.EAGAIN, errno.EACCES), error; return True
  return False
def other(code, **more):  # in another process
  return subprocess.run([sys.executable, '-c', open('locks.py').read() + code], check=True, capture_output=True, text=True, **more).stdout.strip()
"""


class Locks(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-locks."))
        self.addCleanup(shutil.rmtree, self.root)

    def place(self, kind):
        scheme, count, buffer = KINDS[kind]
        self.home = self.root / str(len(os.listdir(self.root)))
        targets = [self.home / f"t{i}" for i in range(count)]
        for d in (self.home, *targets):
            d.mkdir()
        (self.home / "locks.py").write_text(LOCKS)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env = dict(clean, LC_ALL="C", HOLDFAST_PROTECT=scheme, HOLDFAST_CONFIG="", HOLDFAST_STRIPING_UNIT="65536", HOLDFAST_PATH="*.dat",
                        HOLDFAST_CLOSE="fast", HOLDFAST_ALLOW_SHARED_TARGET="1", HOLDFAST_BUFFER=buffer, LD_PRELOAD=LIBRARY)
        if count:
            self.env["HOLDFAST_TARGETS"] = ",".join(map(str, targets))

    def python(self, script):
        done = subprocess.run([sys.executable, "-c", LOCKS + script], cwd=self.home, env=self.env, capture_output=True, text=True, timeout=60)
        # That a second process has the file open is news, and said.
        errors = [line for line in done.stderr.splitlines() if "goes without buffers" not in line]
        self.assertEqual((done.returncode, errors), (0, []))
        return done.stdout.strip()

    def for_each_kind(self, check, ways=("flock", "lockf", "fcntl", "ofd"), each_with_each=False):
        """Kinds differ in us, ways in the kernel: each with each where both matter, else every one at least once."""
        for i, kind in enumerate(KINDS):
            for way in ways if each_with_each else (ways[i % len(ways)], ways[(i + 2) % len(ways)]) if len(ways) > 1 else ways:
                with self.subTest(kind=kind, way=way):
                    self.place(kind)
                    check(way)

    def test_processes_that_count_under_a_lock_lose_nothing(self):
        def check(way):
            (self.home / "count.py").write_text(LOCKS + f"""
lock, unlock, _ = WAYS['{way}']
fd = os.open('count.dat', os.O_RDWR | os.O_CREAT, 0o666)
for i in range(10):
  lock(fd)
  now = int(os.pread(fd, 20, 0) or b'0')
  os.pwrite(fd, b'%020d' % (now + 1), 0)
  os.pwrite(fd, b'line %06d\\n' % now, os.fstat(fd).st_size)  # each behind what the others wrote
  unlock(fd)
""")
            self.python("os.write(os.open('count.dat', os.O_WRONLY | os.O_CREAT), b'0' * 20)")
            jobs = [subprocess.Popen([sys.executable, "count.py"], cwd=self.home, env=self.env, stderr=subprocess.PIPE, text=True) for _ in range(3)]
            for job in jobs:
                _, error = job.communicate(timeout=60)
                self.assertEqual((job.returncode, [line for line in error.splitlines() if "goes without buffers" not in line]), (0, []))
            lines = self.python("print(open('count.dat').read())")
            self.assertEqual(lines, "%020d" % 30 + "".join("line %06d\n" % i for i in range(30)).rstrip("\n"))
        self.for_each_kind(check, each_with_each=True)

    def test_a_lock_keeps_another_process_out_until_it_is_given_up(self):
        def check(way):
            self.assertEqual(self.python(f"""
way = '{way}'
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x' * 1000); os.fsync(fd)
ask = "fd = os.open('a.dat', os.O_RDWR); print(refused(fd, '" + way + "'), os.fstat(fd).st_size)"
print(other(ask))
WAYS[way][0](fd); print(other(ask))
os.pwrite(fd, b'y', 1000); WAYS[way][1](fd); print(other(ask))
WAYS[way][0](fd); os.close(fd); print(other(ask))
"""), "False 1000\nTrue 1000\nFalse 1001\nFalse 1001")
        self.for_each_kind(check)

    def test_closing_any_number_of_the_file_gives_up_the_processs_locks_and_only_those(self):
        def check(way):
            expected = {"fcntl": "False", "lockf": "False"}.get(way, "True")
            self.assertEqual(self.python(f"""
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x')
WAYS['{way}'][0](fd)
os.close(os.open('a.dat', os.O_RDONLY))
os.close(os.dup(fd))
print(other("print(refused(os.open('a.dat', os.O_RDWR), '{way}'))"))
"""), expected)
        self.for_each_kind(check)

    def test_what_a_child_of_fork_has_of_the_locks_is_as_natively(self):
        script = """
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x')
WAYS['@'][0](fd)
if os.fork() == 0:
  print(refused(fd, '@'), flush=True)   # its own already, where locks belong to the open file
  os._exit(0)
os.wait()
print(other("print(refused(os.open('a.dat', os.O_RDWR), '@'))"))
"""

        def check(way):
            (self.home / "native").mkdir()
            shutil.copy(self.home / "locks.py", self.home / "native")
            expected = subprocess.run([sys.executable, "-c", LOCKS + script.replace("@", way)], cwd=self.home / "native", capture_output=True, text=True).stdout
            self.assertEqual(self.python(script.replace("@", way)), expected.strip())
        self.for_each_kind(check)

    def test_ranges_apart_are_in_nobodys_way(self):
        def check(way):
            self.assertEqual(self.python(f"""
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x' * 100)
def take(fd, start, whence=0): fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, start, whence)
take(fd, 0); take(fd, -10, os.SEEK_END)
print(other('''
fd = os.open('a.dat', os.O_RDWR)
for start in 0, 5, 10, 80, 85, 95, 100:
  try: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, start); print('got', end=' ')
  except OSError: print('not', end=' ')
l = struct.unpack('hhqqi4x', fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 100, 0)))
print(l[0] == fcntl.F_WRLCK, l[2:4], l[4] == os.getppid())
'''))
"""), "not not got got not not got True (0, 10) True")
        self.for_each_kind(check, ("fcntl",))

    def test_the_shells_way_with_a_lock_file_works(self):
        """flock(1) locks a descriptor that it has inherited, and ends; the shell holds the lock."""
        def check(_):
            script = """
exec 9>>lock.dat
flock 9
flock -n lock.dat echo got || echo refused
flock -u 9
flock -n lock.dat echo got || echo refused
(flock -n 8 && echo inside; flock -n lock.dat echo got || echo refused) 8>>lock.dat
flock -n lock.dat echo got || echo refused
"""
            done = subprocess.run(["bash", "-c", script], cwd=self.home, env=self.env, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.stdout.split(), done.stderr), (["refused", "got", "inside", "refused", "got"], ""))
        self.for_each_kind(check, ("flock",))

    def test_who_waits_for_a_lock_can_be_ended(self):
        def check(way):
            self.assertEqual(self.python(f"""
import signal
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x')
WAYS['{way}'][0](fd)
waiting = subprocess.Popen([sys.executable, '-c', open('locks.py').read() + "fd = os.open('a.dat', os.O_RDWR); print('now', flush=True); WAYS['{way}'][0](fd)"], stdout=subprocess.PIPE)
waiting.stdout.readline(); time.sleep(0.2); waiting.terminate(); print(waiting.wait(10))
"""), "-15")
        self.for_each_kind(check)

    def test_the_file_keeps_its_lock_when_it_is_renamed_and_synced(self):
        def check(way):
            self.assertEqual(self.python(f"""
fd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o666); os.write(fd, b'x')
WAYS['{way}'][0](fd)
os.write(fd, b'y' * 100000); os.fsync(fd); os.rename('a.dat', 'b.dat')
print(other("print(refused(os.open('b.dat', os.O_RDWR), '{way}'))"))
"""), "True")
        self.for_each_kind(check)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
