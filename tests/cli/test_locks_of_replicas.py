"""holdfast run --replicas: a lock of fcntl, lockf or flock is taken once for all replicas of a rank, and outlives its leader."""
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from replicated import ReplicatedTest

SOURCE = os.path.join(os.path.dirname(__file__), "locks.c")
HOWS = ("record", "open", "lockf", "flock", "beside", "try")

DATABASE = """
import sqlite3
db = sqlite3.connect("db")
db.execute("create table t(a int, b text)")
for i in range(40):
    db.execute("insert into t values(?, ?)", (i, "x" * i))
    db.commit()
db.execute("delete from t where a < 10")
db.commit()
db.execute("vacuum")
db.close()
"""


CONTAINER = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]

COMPUTES = """
import fcntl, subprocess

def shows_a_lock(fd):
    try:
        with open(f"/proc/self/fdinfo/{fd}") as file:
            return "lock:" in file.read()
    except OSError:
        return False

lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
child = subprocess.Popen(["flock", "lock", "true"])
if not any(shows_a_lock(fd) for fd in range(1024)):
    for _ in range(10**8):
        pass
print("done", file=open("out", "w"), flush=True)
fcntl.flock(lock, fcntl.LOCK_UN)
child.wait()
"""


class LocksOfReplicas(ReplicatedTest):
    def locks(self, name=None):
        compiler = [f"mpicc.{name}", "-DWITH_MPI"] if name else ["cc"]
        subprocess.run([*compiler, SOURCE, "-o", self.path("locks")], check=True)
        return self.path("locks")

    def check_counter(self, ranks, times):
        self.assertEqual(int(self.read("counter")), ranks * times)
        seen = [int(line) for rank in range(ranks) for line in self.read(f"seen.{rank}").splitlines()]
        self.assertEqual(sorted(seen), list(range(ranks * times)))

    def clear(self):
        for name in os.listdir(self.dir):
            if name in ("counter", "linked", "beside") or name.startswith("seen."):
                os.unlink(self.path(name))

    def until(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def counted(self):
        return int(self.read("counter") or 0) if os.path.exists(self.path("counter")) else 0

    def is_locked(self):
        with open(self.path("counter"), "rb+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            return False

    def test_every_kind_of_lock_is_taken_once(self):
        program = self.locks()
        for how in HOWS:
            with self.subTest(how):
                self.replicas(program, how, "5", "0")
                self.check_counter(1, 5)
                self.clear()

    def test_a_database_is_the_native_one(self):
        self.replicas(sys.executable, "-c", DATABASE)
        replicated = self.path("db")
        os.rename(replicated, self.path("db.replicated"))
        subprocess.run([sys.executable, "-c", DATABASE], cwd=self.dir, check=True)
        with open(self.path("db"), "rb") as native, open(self.path("db.replicated"), "rb") as file:
            self.assertEqual(native.read(), file.read())
        with sqlite3.connect(self.path("db.replicated")) as database:
            self.assertEqual(database.execute("pragma integrity_check").fetchall(), [("ok",)])

    def test_a_lock_outlives_the_leader_that_has_taken_it(self):
        program = self.locks()
        job = self.start(program, "record", "1", "-1")
        self.until(lambda: os.path.exists(self.path("counter")) and self.is_locked())
        process = self.process_of(0, 0)
        os.kill(process, signal.SIGKILL)
        self.until(lambda: not os.path.exists(f"/proc/{process}"))
        self.until(self.is_locked)
        open(self.path("go"), "w").close()
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertIn("team 1 goes on alone", err)
        self.assertFalse(self.is_locked())
        self.check_counter(1, 1)

    def test_a_lock_that_another_process_holds_is_waited_for_and_refused_alike(self):
        program = self.locks()
        for how in ("record", "try"):
            with self.subTest(how):
                with open(self.path("counter"), "wb+") as file:
                    fcntl.lockf(file, fcntl.LOCK_EX)
                    job = self.start(program, how, "5", "0")
                    self.process_of(0, 0)
                    time.sleep(0.5)
                    self.assertIsNone(job.poll())
                    os.kill(self.process_of(0, 0), signal.SIGKILL)  # it waits for the lock, and so does the next one
                    time.sleep(0.5)
                    self.assertIsNone(job.poll())
                _, err = job.communicate(timeout=60)
                self.assertEqual(job.returncode, 0, err)
                self.check_counter(1, 5)
                self.clear()

    def check_script(self, enter=()):
        """Each team has a child that takes the lock: what the shell writes meanwhile its twin does not come to."""
        script = "exec 9>lock; flock 9; echo one >> out; flock -u 9; echo two >> out"
        done = subprocess.run([*enter, self.binary, "run", "--replicas", "2", "/bin/bash", "-c", script], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read("out"), "one\ntwo\n", done.stderr)
        self.assertRegex(done.stderr, rf"rank 0 of team [01] cannot go on: flock waits for a lock of {self.path('lock')}, which its twin has by a process of "
                                      r"its own: .*; let the program itself take the lock; team [01] goes on alone")

    def test_a_script_that_has_a_lock_by_a_child_costs_a_team_and_ends(self):
        self.check_script()

    def test_a_script_that_has_a_lock_by_a_child_ends_where_the_kernel_does_not_show_who_has_it(self):
        """In a container /proc/locks knows no process that has ended, and nobody who waits for what it took."""
        if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs namespaces of its own")
        self.check_script(CONTAINER)

    def test_a_program_that_has_a_lock_and_computes_while_its_child_waits_goes_on(self):
        """The follower computes, and its child waits for what the leader has for both: its twin, which is done, waits for it."""
        done = self.replicas(sys.executable, "-c", COMPUTES)
        self.assertEqual(self.read("out"), "done\n")
        self.assertNotIn("goes on alone", done.stderr)

    def test_ranks_exclude_each_other_while_a_team_is_lost(self):
        for name, launcher in self.launchers():
            for how, options in (("linked", []), ("beside", ["--relaunch", "1"])):
                with self.subTest(name, how=how, options=options):
                    open(self.path("counter"), "w").close()
                    os.link(self.path("counter"), self.path("linked"))
                    job = self.start(*options, *launcher, self.locks(name), how, "15", "20")
                    process = self.process_of(0, 0, 2)
                    self.until(lambda: self.counted() > 5)
                    os.kill(process, signal.SIGKILL)
                    _, err = job.communicate(timeout=60)
                    self.assertEqual(job.returncode, 0, err)
                    self.check_counter(2, 15)
                    self.clear()


if __name__ == "__main__":
    unittest.main()
