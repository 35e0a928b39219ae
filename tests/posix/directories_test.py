#!/usr/bin/env python3
"""A directory that holds protected files looks as a directory of plain ones: commands natively and under the library, compared.

usage: directories_test.py LIBRARY WALKS HOLDFAST
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, WALKS, HOLDFAST = map(os.path.abspath, sys.argv[1:4])
FILES = {"a.dat": 300_000, "b.dat": 10, ".c.dat": 5000, "sub/d.dat": 70_000, "sub/deep/e.dat": 0}  # bytes
PLAIN = {"plain": 6, "sub/other": 10}
# What the file at the path is: a stub, a link to a whole copy, the data themselves, a stub beside the data.
KINDS = {"stub": ("rs:2+1", 3), "link": ("mirror:2", 2), "beside": ("mirror:2", 0), "stub beside": ("rs:2+1", 0)}
MAKE = "import os, sys\nfor name, count in " + repr({**FILES, **PLAIN}) + ".items():\n  open(name, 'wb').write((name.encode() * count)[:count])"


class Directories(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-directories."))
        self.addCleanup(shutil.rmtree, self.root)

    def places(self, kind):
        """A native directory and one with protected files; both called `dir`, with the same content."""
        scheme, count = KINDS[kind]
        self.made = getattr(self, "made", 0) + 1
        base = self.root / str(self.made)
        targets = [base / f"t{i}" for i in range(count)]
        for d in (*targets, *(base / way / "dir" / "sub" / "deep" for way in ("native", "ours"))):
            d.mkdir(parents=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env = dict(clean, LC_ALL="C", HOLDFAST_PROTECT=scheme, HOLDFAST_CONFIG="", HOLDFAST_STRIPING_UNIT="65536",
                        HOLDFAST_PATH="*.dat", HOLDFAST_CLOSE="fast", HOLDFAST_ALLOW_SHARED_TARGET="1", HOLDFAST_DEADLINE="60s")
        if count:
            self.env["HOLDFAST_TARGETS"] = ",".join(map(str, targets))
        native, ours = base / "native", base / "ours"
        self.run_in(native / "dir", False, sys.executable, "-c", MAKE)
        self.run_in(ours / "dir", True, sys.executable, "-c", MAKE)
        for name in FILES:  # they are protected indeed
            self.assertTrue((ours / "dir" / name).with_name(f".{pathlib.Path(name).name}.holdfast").exists(), name)
        return native, ours, targets

    def run_in(self, directory, preloaded, *words):
        env = dict(self.env, LD_PRELOAD=LIBRARY) if preloaded else self.env
        done = subprocess.run(list(map(str, words)), cwd=directory, env=env, capture_output=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def compare(self, native, ours, *words, ordered=False):
        expected, got = (self.run_in(where, preloaded, *words) for where, preloaded in ((native, False), (ours, True)))
        if not ordered:
            expected, got = ((code, sorted(out.splitlines()), error) for code, out, error in (expected, got))
        self.assertEqual(got, expected, words)

    def for_each_kind(self, check):
        for kind in KINDS:
            with self.subTest(kind=kind):
                check(*self.places(kind))

    def test_listings_show_the_files_alone(self):
        def check(native, ours, _):
            self.compare(native, ours, "ls", "-AR", "dir")
            self.compare(native, ours, "ls", "-AF", "dir")
            self.compare(native, ours, "find", "dir", "-type", "f", "-size", "-400k")
            self.compare(native, ours, "find", "dir", "-not", "-type", "d", "-printf", "%p %y %s\n")
            self.compare(native, ours, "find", "dir", "-type", "l")
            self.compare(native, ours, "du", "-ab", "--exclude=sub", "--exclude=dir", "dir/a.dat", "dir/.c.dat")
            self.compare(native, ours, "bash", "-c", "shopt -s dotglob globstar; echo dir/**; for f in dir/*.dat; do test -f $f && ! test -L $f && wc -c $f; done")
            self.compare(native, ours, sys.executable, "-c",
                         "import os\nfor d, s, f in os.walk('dir'): print(d, sorted(s), sorted(f))\n"
                         "for e in os.scandir('dir'): print(e.name, e.is_file(follow_symlinks=False), e.is_symlink(), e.is_dir())\n"
                         "for n in os.listdir('dir'): p = os.path.join('dir', n); print(os.path.islink(p), os.path.realpath(p) == os.path.abspath(p))")
            self.compare(native, ours, "readlink", "dir/a.dat")
        self.for_each_kind(check)

    def test_the_c_librarys_own_walks_show_the_files_alone(self):
        def check(native, ours, _):
            for how in ("getdents", "getdents_number", "seekdir", "readdir_r", "scandir", "nftw", "nftw_depth", "nftw_in_place", "ftw", "fts", "fts_in_place",
                        "fts_from_here", "fts_children", "glob"):
                with self.subTest(how=how):
                    self.compare(native, ours, WALKS, how, "dir")
        self.for_each_kind(check)

    def content(self, directory):
        return self.run_in(directory, True, "bash", "-c", "shopt -s dotglob globstar; for f in **; do test -f $f && md5sum $f; done")

    def test_copies_and_archives_hold_the_content(self):
        def check(native, ours, _):
            for words in (("cp", "-r", "dir", "copy.r"), ("cp", "-a", "dir", "copy.a"),
                          (sys.executable, "-c", "import shutil; shutil.copytree('dir', 'copy.t')"),
                          ("tar", "-cf", "dir.tar", "dir"), ("bash", "-c", "tar -c dir | tar -x --one-top-level=untarred")):
                self.compare(native, ours, *words)
            self.compare(native, ours, "bash", "-c", "tar -tf dir.tar | sort")
            for where in (native, ours):  # it holds times
                (where / "dir.tar").unlink()
            self.assertEqual(self.content(ours), self.content(native))
        self.for_each_kind(check)

    def test_trees_are_removed_whole(self):
        for remove in (("rm", "-r", "dir"), (sys.executable, "-c", "import shutil; shutil.rmtree('dir')"),
                       ("bash", "-c", "rm dir/*.dat dir/.c.dat dir/plain; rm -r dir/sub; rmdir dir"), ("find", "dir", "-delete")):
            def check(native, ours, targets):
                self.compare(native, ours, *remove)
                self.assertEqual(os.listdir(ours), [])
                for target in targets:
                    self.assertEqual([e.name for e in os.scandir(target) if e.is_dir()], [])
            with self.subTest(remove=remove):
                self.for_each_kind(check)

    def test_a_directory_that_shows_something_is_not_removed(self):
        def check(native, ours, _):
            self.compare(native, ours, "rmdir", "dir")
            self.assertEqual(self.content(ours / "dir"), self.content(native / "dir"))
        self.for_each_kind(check)

    def test_a_directory_of_leftovers_alone_is_removed(self):
        def check(native, ours, _):
            for where in (native, ours):
                (where / "empty").mkdir()
            left = ours / "empty" / ".gone.dat.holdfast"
            left.mkdir()
            for name in ("lock", "new.123.1"):
                (left / name).touch()
            self.compare(native, ours, "ls", "-A", "empty")
            self.compare(native, ours, "rmdir", "empty")
            self.assertFalse((ours / "empty").exists())
        self.for_each_kind(check)

    def test_a_users_directory_of_such_a_name_is_shown(self):
        def check(native, ours, _):
            for where in (native, ours):
                (where / "mine" / ".thing.holdfast").mkdir(parents=True)
                (where / "mine" / ".thing.holdfast" / "mine too").touch()
            self.compare(native, ours, "ls", "-AR", "mine")
            self.compare(native, ours, "rmdir", "mine")
            self.compare(native, ours, "rm", "-r", "mine")
        self.for_each_kind(check)

    def test_a_file_whose_entry_is_gone_is_listed_by_its_sidecar(self):
        native, ours, _ = self.places("stub")
        os.unlink(ours / "dir" / "a.dat")
        self.compare(native, ours, "ls", "-A", "dir")
        self.compare(native, ours, "cp", "-r", "dir", "copy")
        self.compare(native, ours, "cat", "copy/a.dat")
        self.compare(native, ours, "rm", "-r", "dir")

    def test_a_directory_is_renamed_with_its_files(self):
        def check(native, ours, _):
            self.compare(native, ours, "mv", "dir", "moved")
            self.assertEqual(self.content(ours), self.content(native))
            append = "for n in ('a.dat', 'sub/d.dat'): open('moved/' + n, 'ab').write(b'more')"
            self.compare(native, ours, sys.executable, "-c", append)
            # Another of the same name in the old place is another file.
            self.compare(native, ours, sys.executable, "-c", "import os; os.mkdir('dir'); open('dir/a.dat', 'wb').write(b'new')")
            self.assertEqual(self.content(ours), self.content(native))
            self.compare(native, ours, "ls", "-AR")
            self.compare(native, ours, "mv", "moved", "dir")  # into it
            self.compare(native, ours, "rm", "-r", "dir/a.dat")
            self.assertEqual(self.content(ours), self.content(native))
            for name in ("a.dat", "sub/d.dat"):
                subprocess.run([HOLDFAST, "verify", ours / "dir" / "moved" / name], env=self.env, check=True, capture_output=True)
        self.for_each_kind(check)

    def test_open_files_go_with_a_directory_that_is_renamed(self):
        script = ("import os, subprocess, sys\n"
                  "f = open('dir/a.dat', 'r+b', buffering=0); g = open('dir/new.dat', 'wb'); f.write(b'one')\n"
                  "RENAME\n"
                  "f.write(b'two'); g.write(b'g' * 100000); os.fsync(f.fileno()); f.write(b'three')\n"
                  "os.mkdir('dir'); open('dir/a.dat', 'wb').write(b'another'); f.seek(0); print(f.read(20)); f.close(); g.close()\n"
                  "print(os.stat('moved/a.dat').st_size, sorted(os.listdir('moved')), sorted(os.listdir('dir')), open('moved/a.dat', 'rb').read(20))")
        for rename in ("os.rename('dir', 'moved')", "subprocess.run(['mv', 'dir', 'moved'], check=True)"):
            def check(native, ours, _):
                self.compare(native, ours, sys.executable, "-c", script.replace("RENAME", rename), ordered=True)
                self.assertEqual(self.content(ours), self.content(native))
            with self.subTest(rename=rename):
                self.for_each_kind(check)

    def test_a_directory_goes_while_a_file_in_it_is_open(self):
        script = ("import os, shutil\n"
                  "f = open('dir/a.dat', 'r+b', buffering=0); g = open('dir/sub/d.dat', 'rb', buffering=0); f.write(b'one')\n"
                  "os.unlink('dir/a.dat'); print(sorted(os.listdir('dir'))); shutil.rmtree('dir'); print(os.listdir('.'))\n"
                  "f.write(b'two'); f.seek(0); print(f.read(20), len(f.read()), len(g.read()))")

        def check(native, ours, _):
            self.compare(native, ours, sys.executable, "-c", script, ordered=True)
            self.assertEqual(os.listdir(ours), [])
        self.for_each_kind(check)

    def test_what_a_killed_process_left_of_a_nameless_file_goes_with_its_directory(self):
        def check(native, ours, targets):
            script = "import os; f = open('dir/a.dat', 'r+b', buffering=0); os.unlink('dir/a.dat'); os.kill(os.getpid(), 9)"
            self.compare(native, ours, sys.executable, "-c", script)
            self.compare(native, ours, "ls", "-A", "dir")
            self.compare(native, ours, "rm", "-r", "dir")
            self.assertEqual(os.listdir(ours), [])
            for target in targets:
                self.assertEqual([e.name for e in os.scandir(target) if e.is_dir()], [])
        self.for_each_kind(check)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
