#!/usr/bin/env python3
"""Plain programs under the preloaded library.

usage: posix_test.py LIBRARY PROTECT DOORS RANDOM_CALLS IMAGES HOLDFAST
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, PROTECT, DOORS, RANDOM_CALLS, IMAGES, HOLDFAST = sys.argv[1:7]
HERE = pathlib.Path(__file__).resolve().parent
CONTENT = random.Random(1).randbytes(3_000_017)


class Plain(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-posix."))
        self.addCleanup(shutil.rmtree, self.root)
        self.home = self.root / "home"
        self.home.mkdir()
        self.file = self.home / "out.dat"
        (self.root / "plain").write_bytes(CONTENT)

    def protect(self, scheme="rs:4+2", targets=6, **more):
        dirs = [self.root / f"t{i}" for i in range(targets)]
        for d in dirs:
            d.mkdir()
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env = dict(clean, HOLDFAST_PROTECT=scheme, HOLDFAST_CONFIG="", HOLDFAST_STRIPING_UNIT="65536",
                        LC_ALL="C", **more)
        if targets:
            self.env["HOLDFAST_TARGETS"] = ",".join(map(str, dirs))
        made = subprocess.run([PROTECT, self.file], env=self.env, input=CONTENT, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr.decode())

    def run_under(self, *command, code=0, **more):
        done = subprocess.run(list(map(str, command)), env=dict(self.env, LD_PRELOAD=LIBRARY), capture_output=True,
                              cwd=self.home, timeout=120, **more)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{command}: {done.stdout[-500:]} {done.stderr.decode()}")
        return done

    def lose(self, *numbers):
        for i in numbers:
            shutil.rmtree(self.root / f"t{i}")

    def test_every_reading_door_answers_as_on_a_plain_file(self):
        self.protect()
        self.run_under(DOORS, self.file, self.root / "plain")

    def test_doors_on_a_stub_also_map(self):
        self.protect()
        self.env["STUB"] = "1"
        self.run_under(DOORS, self.file, self.root / "plain")

    def test_doors_work_with_targets_lost(self):
        self.protect()
        self.lose(0, 3)
        self.run_under(DOORS, self.file, self.root / "plain")

    def test_doors_work_when_the_linked_copy_is_lost(self):
        self.protect("mirror:3", 3)
        self.lose(0)
        self.assertFalse(self.file.exists())  # the link dangles for everybody else
        self.run_under(DOORS, self.file, self.root / "plain")

    def test_tools_read_the_content(self):
        self.protect()
        self.assertEqual(self.run_under("cat", self.file).stdout, CONTENT)
        self.assertEqual(self.run_under("cat", "out.dat").stdout, CONTENT)
        self.assertEqual(self.run_under("head", "-c", "100000", self.file).stdout, CONTENT[:100000])
        self.assertEqual(self.run_under("tail", "-c", "1000", self.file).stdout, CONTENT[-1000:])
        self.assertEqual(self.run_under("wc", "-c", self.file).stdout.split()[0], str(len(CONTENT)).encode())
        self.assertEqual(self.run_under("stat", "-c", "%s", self.file).stdout, f"{len(CONTENT)}\n".encode())
        self.run_under("cmp", self.file, self.root / "plain")

    def test_python_reads_the_content(self):
        self.protect()
        script = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
        self.assertEqual(self.run_under(sys.executable, "-c", script, self.file).stdout, CONTENT)

    def test_python_with_children_keeps_its_descriptor(self):
        self.protect()
        script = ("import subprocess, sys; f = open(sys.argv[1], 'rb', buffering=0); f.read(10);"
                  "subprocess.run(['true'], close_fds=True); sys.stdout.buffer.write(f.read(10))")
        self.assertEqual(self.run_under(sys.executable, "-c", script, self.file).stdout, CONTENT[10:20])

    def test_a_program_that_closes_all_descriptors_closes_its_own(self):
        self.protect()
        for close_all in ("for fd in range(3, 400):\n  if fd != f.fileno():\n    try: os.close(fd)\n    except OSError: pass",
                          "os.closerange(3, f.fileno()); os.closerange(f.fileno() + 1, 400)"):
            script = ("import os, sys\nf = open(sys.argv[1], 'rb', buffering=0)\nhead = f.read(10)\n" + close_all +
                      # What it opens next gets the lowest free numbers.
                      "\nmine = [open(f'mine{i}', 'w+b', buffering=0) for i in range(30)]\nrest = b''"
                      "\nwhile piece := f.read(100000): rest += piece"
                      "\nfor i in range(30): assert mine[i].read() == b''; os.unlink(f'mine{i}')"
                      "\nsys.stdout.buffer.write(head + rest)")
            done = self.run_under(sys.executable, "-c", script, self.file)
            self.assertEqual(done.stdout, CONTENT)
            self.assertEqual(done.stderr, b"")

    def test_a_program_that_chooses_its_numbers_takes_none_of_holdfasts(self):
        """dup2 onto a number that a program knows to be free closes what stands there."""
        for buffer in ("none", "2x100k"):
            with self.subTest(buffer=buffer):
                self.setUp()
                self.protect(HOLDFAST_PATH="out.*", HOLDFAST_BUFFER=buffer)
                self.python("import os\nf = os.open('out.dat', os.O_RDWR | os.O_TRUNC); g = os.open('mine', os.O_RDWR | os.O_CREAT)\n"
                            "def take():\n  for n in range(3, 200):\n    if n not in (f, g): os.dup2(g, n)\n"
                            "os.write(f, b'a' * 1000000); take(); os.write(f, b'b' * 1000000); os.fsync(f); take(); os.pwrite(f, b'c' * 10, 5)\n"
                            "assert os.pread(f, 20, 0) == b'aaaaaccccccccccaaaaa'; os.close(f); os.close(g)\n"
                            "for n in range(3, 200):\n  if n not in (f, g): os.write(n, b'x')\n"
                            "assert os.stat('mine').st_size == 195")
                self.assertEqual(self.content(self.file), b"aaaaa" + b"c" * 10 + b"a" * 999985 + b"b" * 1000000)

    def test_a_shells_redirection_reaches_the_child(self):
        self.protect()
        self.assertEqual(self.run_under("bash", "-c", "cat < out.dat").stdout, CONTENT)

    def test_cp_makes_a_plain_copy(self):
        self.protect()
        self.run_under("cp", self.file, self.home / "copy")
        self.assertEqual((self.home / "copy").read_bytes(), CONTENT)

    def test_mv_moves_the_protected_file(self):
        self.protect()
        self.run_under("mv", self.file, self.home / "new.dat")
        self.assertEqual(sorted(os.listdir(self.home)), [".new.dat.holdfast", "new.dat"])
        self.assertEqual(self.run_under("cat", "new.dat").stdout, CONTENT)

    def test_rm_removes_the_protected_file(self):
        self.protect()
        self.run_under("rm", self.file)
        self.assertEqual(os.listdir(self.home), [])
        for i in range(6):
            self.assertEqual([e for e in os.scandir(self.root / f"t{i}") if e.is_dir()], [])

    def test_truncate_cuts_the_protected_file(self):
        self.protect()
        self.run_under(sys.executable, "-c", "import os; os.truncate('out.dat', 100000)")
        self.assertEqual(self.run_under("cat", self.file).stdout, CONTENT[:100000])

    def test_a_copied_stub_reads_and_is_not_cut(self):
        self.protect()
        shutil.copy(self.file, self.home / "copy")
        self.assertEqual(self.run_under("cat", "copy").stdout, CONTENT)
        done = self.run_under(sys.executable, "-c", "import os; os.truncate('copy', 100)", code=1)
        self.assertIn(b"copy of the stub", done.stderr)
        self.assertEqual(self.run_under("cat", "out.dat").stdout, CONTENT)

    def content(self, path):
        """What the file holds, by the command and with no library in between."""
        return subprocess.run([HOLDFAST, "cat", path], env=self.env, capture_output=True, check=True).stdout

    def python(self, script, code=0, **more):
        return self.run_under(sys.executable, "-c", script, code=code, **more)

    def test_an_existing_file_is_written_where_a_descriptor_says(self):
        self.protect()
        self.python("import os; f = os.open('out.dat', os.O_RDWR); os.pwrite(f, b'new', 1000000); os.lseek(f, -2, 2);"
                    "os.write(f, b'tail'); assert os.pread(f, 5, 999999)[1:4] == b'new'; os.close(f)")
        expected = bytearray(CONTENT)
        expected[1000000:1000003] = b"new"
        expected[-2:] = b"tail"
        self.assertEqual(self.content(self.file), expected)

    def test_append_truncate_and_exclusive_keep_their_meaning(self):
        self.protect()
        self.python("import os; f = os.open('out.dat', os.O_WRONLY | os.O_APPEND); os.write(f, b'abc'); os.close(f)")
        self.assertEqual(self.content(self.file), CONTENT + b"abc")
        done = self.python("import os; os.open('out.dat', os.O_WRONLY | os.O_CREAT | os.O_EXCL)", code=1)
        self.assertIn(b"FileExistsError", done.stderr)
        self.python("open('out.dat', 'wb').write(b'short')")
        self.assertEqual(self.content(self.file), b"short")

    def test_a_file_that_a_glob_names_is_protected_at_creation_and_others_are_not(self):
        self.protect(HOLDFAST_PATH="new.*")
        self.python("import os; f = os.open('new.dat', os.O_CREAT | os.O_WRONLY, 0o640); os.write(f, b'x' * 1000000); os.close(f);"
                    "open('other', 'w').write('plain')")
        self.assertEqual((self.home / "other").read_text(), "plain")
        self.assertEqual(self.run_under("stat", "-c", "%a", "new.dat").stdout, b"640\n")
        self.assertEqual((self.home / "new.dat").stat().st_mode & 0o777, 0o440)
        self.lose(1, 4)
        self.assertEqual(self.content(self.home / "new.dat"), b"x" * 1000000)
        self.assertEqual(self.run_under("cat", "new.dat").stdout, b"x" * 1000000)

    def test_a_plain_file_that_holds_something_stays_plain_and_says_so(self):
        self.protect(HOLDFAST_PATH="new.*")
        (self.home / "new.dat").write_bytes(b"before")
        done = self.python("open('new.dat', 'ab').write(b' and after')")
        self.assertEqual((self.home / "new.dat").read_bytes(), b"before and after")
        self.assertIn(b"holdfast import", done.stderr)

    def test_what_a_shell_does_with_files(self):
        self.protect(HOLDFAST_PATH="out.*")
        native, ours = self.root / "n", self.root / "p"
        for directory in (native, ours):
            directory.mkdir()
        words = ["bash", HERE / "redirections.sh"]
        expected = subprocess.run(words, cwd=native, capture_output=True, check=True, env=self.env)
        done = subprocess.run(words, cwd=ours, capture_output=True, env=dict(self.env, LD_PRELOAD=LIBRARY), timeout=200)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.stdout.decode(), expected.stdout.decode())
        for name in os.listdir(native):
            if not name.endswith(".gz"):  # it keeps the time
                self.assertEqual(self.content(ours / name), (native / name).read_bytes(), name)

    def test_files_live_through_freopen_fork_exec_and_exits(self):
        self.protect(HOLDFAST_PATH="out.*")
        whole = b"whole"
        for way, code, expected in (
                ("with_stdout", 0, b"by printf, by write, by a child, at exit"), ("with_stdin", 0, b"12 words"),
                ("with_a_stream", 0, b"appended"), ("through_fork", 0, b"parent child parent"), ("through_exec", 0, b"before after"),
                ("through_spawn", 0, b"parent child parent"), ("all_closed", 0, b"all of it"), ("behind_our_back", 0, whole),
                ("quick", 0, whole), ("exec_that_fails", 0, b"before after"), ("aborted", -6, whole), ("terminated", -15, whole)):
            with self.subTest(way=way):
                path = self.home / f"out.{way}"
                done = self.run_under(IMAGES, way, path, code=code)
                self.assertEqual(self.content(path), expected)
                self.assertEqual(done.stderr, b"")

    def test_children_that_outlive_who_started_them_go_on_writing(self):
        self.protect(HOLDFAST_PATH="out.*")
        child = "import os, sys, time\nos.write(1, b'first '); time.sleep(0.4); os.write(1, b'second '); print('third', flush=True); print('fourth', file=sys.stderr)"
        (self.home / "child.py").write_text(child)
        ways = {"fork": "import os\nif os.fork() == 0: exec(open('child.py').read())",
                "spawn": f"import os; os.posix_spawn('{sys.executable}', ['{sys.executable}', 'child.py'], os.environ)",
                "vfork": f"import subprocess; subprocess.Popen(['{sys.executable}', 'child.py'])",
                "system": f"import os; os.system('{sys.executable} child.py &')",
                "popen": f"import os; os.write(1, b''); p = os.popen('{sys.executable} child.py >&2', 'w')"}
        for way, start in ways.items():
            with self.subTest(way=way):
                script = f"import os; os.write(1, b'before '); print('buffered ', end='', flush=True)\n{start}\nos._exit(0)"
                path = self.home / f"out.{way}"
                self.run_under("bash", "-c", f"'{sys.executable}' -c \"$0\" > '{path}' 2>&1", script)
                for _ in range(100):
                    if self.content(path).endswith(b"fourth\n"):
                        break
                    time.sleep(0.1)
                self.assertEqual(self.content(path), b"before buffered first second third\nfourth\n")

    def test_a_plain_file_with_buffers_goes_on_through_exec_whatever_its_name_is_by_then(self):
        for change, name in (("os.rename('out.a', 'other')", "other"), ("os.link('out.a', 'other'); os.unlink('out.a')", "other")):
            with self.subTest(change=change):
                self.setUp()
                self.protect(HOLDFAST_PATH="out.*", HOLDFAST_BUFFER="2x100k")
                self.env["HOLDFAST_PROTECT"] = "none"
                then = "import os; os.write(9, b'after '); os.lseek(9, 0, 0); print(os.read(9, 100)); os.lseek(9, 0, 2); os.write(9, b'end')"
                done = self.python("import os, sys\nf = os.open('out.a', os.O_RDWR | os.O_CREAT); os.dup2(f, 9); os.write(9, b'before ')\n"
                                   f"{change}\nos.execv(sys.executable, [sys.executable, '-c', {then!r}])")
                self.assertEqual(done.stdout, b"b'before after '\n")
                self.assertEqual((self.home / name).read_bytes(), b"before after end")

    def test_chains_of_programs_write_one_behind_the_other(self):
        for buffer in ("none", "2x100k"):
            for protect in (True, False):
                with self.subTest(buffer=buffer, protect=protect):
                    self.setUp()
                    self.protect(HOLDFAST_PATH="out.*", HOLDFAST_BUFFER=buffer)
                    if not protect:
                        self.env["HOLDFAST_PROTECT"] = "none"
                    chain = ("echo one; /bin/echo two; (echo three; /bin/echo four); seq 5 6 | cat; bash -c 'echo seven; exec /bin/echo eight'; "
                             f"'{sys.executable}' -c \"import subprocess, sys; print('nine', flush=True); subprocess.run(['/bin/echo', 'ten'])\"; "
                             "env echo eleven; find . -maxdepth 0 -exec echo twelve \\;")
                    self.run_under("bash", "-c", chain + " ; :", code=0)
                    self.run_under("bash", "-c", f"bash -c \"$0\" > out.chain; {{ {chain}; }} >> out.chain; exec >> out.chain; {chain}", chain)
                    once = b"one\ntwo\nthree\nfour\n5\n6\nseven\neight\nnine\nten\neleven\ntwelve\n"
                    kept = self.content(self.home / "out.chain") if protect else (self.home / "out.chain").read_bytes()
                    self.assertEqual(kept, once * 3)

    def test_random_calls_answer_as_on_plain_files(self):
        """A seed decides calls, sizes and places; every answer, errno and byte is compared with the native run of the seed."""
        first = int(os.environ.get("POSIX_SEED", 1))
        # Buffers of a few pages are emptied and filled all the time; those of a plain file stand before the file itself.
        for scheme, targets, buffer, flush in (("rs:4+2", 6, "none", "full"), ("mirror:2", 2, "none", "full"), ("none", 0, "2x4096", "full"),
                                               ("none", 0, "3x200000", "needed"), ("none", 0, "3x60000", "10ms"), ("rs:4+2", 6, "3x4096", "10ms"),
                                               ("mirror:2", 2, "2x100000", "full"), ("mirror:2", 2, "2x100000", "needed")):
            for seed in range(first, first + int(os.environ.get("POSIX_SEEDS", 2))):
                with self.subTest(scheme=scheme, seed=seed, buffer=buffer, flush=flush):
                    native, ours = self.root / f"n{scheme}{seed}{buffer}{flush}", self.root / f"p{scheme}{seed}{buffer}{flush}"
                    places = [self.root / f"{scheme[:2]}{seed}.{buffer}.{flush}.{i}" for i in range(targets)]
                    for d in (native, ours, *places):
                        d.mkdir()
                    expected = subprocess.run([RANDOM_CALLS, str(seed), "250", native], capture_output=True, check=True)
                    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
                    env = dict(clean, HOLDFAST_PROTECT=scheme, HOLDFAST_CONFIG="", HOLDFAST_STRIPING_UNIT="65536", HOLDFAST_PATH="out.*",
                               HOLDFAST_TARGETS=",".join(map(str, places)), HOLDFAST_CLOSE="fast", HOLDFAST_BUFFER=buffer,
                               HOLDFAST_BUFFER_FLUSH=flush)
                    done = subprocess.run([RANDOM_CALLS, str(seed), "250", ours], env=dict(env, LD_PRELOAD=LIBRARY),
                                          capture_output=True, timeout=300)
                    self.assertEqual(done.stderr, b"")
                    differ = [f"{a!r} is to be {b!r}" for a, b in zip(done.stdout.splitlines(), expected.stdout.splitlines()) if a != b]
                    self.assertEqual(differ[:1], [])
                    self.assertEqual(len(done.stdout), len(expected.stdout))
                    for name in os.listdir(native):
                        cat = [HOLDFAST, "cat"] if targets else ["cat"]
                        kept = subprocess.run([*cat, ours / name], env=env, capture_output=True, check=True).stdout
                        self.assertEqual(kept, (native / name).read_bytes(), name)

    def test_a_stub_moved_without_us_still_reads(self):
        self.protect()
        os.rename(self.file, self.home / "elsewhere")
        self.assertEqual(self.run_under("cat", "elsewhere").stdout, CONTENT)

    def test_a_removed_entry_still_reads(self):
        self.protect()
        os.unlink(self.file)
        self.assertEqual(self.run_under("cat", self.file).stdout, CONTENT)
        self.assertEqual(self.run_under("stat", "-c", "%s", self.file).stdout, f"{len(CONTENT)}\n".encode())

    def test_a_users_link_to_a_stub_reads_and_is_removed_alone(self):
        self.protect()
        os.symlink("out.dat", self.home / "alias")
        self.assertEqual(self.run_under("cat", "alias").stdout, CONTENT)
        self.run_under("rm", "alias")
        self.assertEqual(self.run_under("cat", "out.dat").stdout, CONTENT)

    def test_beyond_the_code_reading_fails_with_a_message(self):
        self.protect()
        self.lose(0, 1, 2)
        done = self.run_under("cat", self.file, code=1)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"holdfast:", done.stderr)

    def test_a_single_directory_is_plain_for_readers_and_written_with_its_redundancy(self):
        self.protect("mirror:2", 0, HOLDFAST_ALLOW_SHARED_TARGET="1")
        self.assertEqual(self.file.read_bytes(), CONTENT)
        self.python("f = open('out.dat', 'ab'); f.write(b'more'); f.close()")
        self.assertEqual(self.file.read_bytes(), CONTENT + b"more")
        subprocess.run([HOLDFAST, "verify", self.file], env=self.env, check=True, capture_output=True)

    def test_other_files_behave_natively(self):
        self.protect()
        self.run_under("bash", "-c", "set -e; echo a > x; echo b >> x; cp x y; mv y z; cat z; rm x; test -e z; ! test -e x")
        self.assertEqual((self.home / "z").read_text(), "a\nb\n")
        done = self.run_under("cat", "nowhere", code=1)
        self.assertIn(b"No such file", done.stderr)
        small = self.home / "small"
        small.write_bytes(b"x" * 1000)
        self.assertEqual(self.run_under("cat", small).stdout, b"x" * 1000)

    def test_what_a_plain_open_costs_is_one_look(self):
        """Opening a large plain file to read it adds one fstat, and nothing more."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        self.protect()
        big = self.home / "big"
        big.write_bytes(b"x" * 100000)
        script = "import os\nfor i in range(100):\n  os.close(os.open('big', os.O_RDONLY))"
        done = self.run_under("strace", "-c", "-f", sys.executable, "-c", script)
        counts = {line.split()[-1]: int(line.split()[3]) for line in done.stderr.decode().splitlines()
                  if line.split()[3:4] and line.split()[3].isdigit()}
        native = subprocess.run(["strace", "-c", "-f", sys.executable, "-c", script], cwd=self.home, env=self.env,
                                capture_output=True, check=True)
        before = {line.split()[-1]: int(line.split()[3]) for line in native.stderr.decode().splitlines()
                  if line.split()[3:4] and line.split()[3].isdigit()}
        self.assertLess(counts["pread64"] - before.get("pread64", 0), 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[7:], verbosity=2)
