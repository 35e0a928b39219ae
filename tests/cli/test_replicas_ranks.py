"""holdfast run --replicas: MPI programs that are there several times, and what they send each other."""
import os
import re
import shutil
import subprocess
import time
import unittest

from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
HEAT = os.path.join(os.path.dirname(__file__), "../../examples/heat.c")
INDEPENDENT = os.path.join(os.path.dirname(__file__), "independent.c")
MESSAGES = os.path.join(os.path.dirname(__file__), "messages.c")
SHAPE = ["60", "80", "60", "2"]


class ReplicatedRanks(ReplicatedTest):
    def heat(self, name, launcher):
        subprocess.run([f"mpicc.{name}", "-O2", HEAT, "-o", self.path("heat")], check=True)
        subprocess.run([*launcher, "./heat", "native", *SHAPE], cwd=self.dir, env=self.env, check=True, capture_output=True)
        return ["./heat", "out", *SHAPE, "--pause-ms", "60"]

    def test_a_rank_that_is_killed_is_survived_and_the_file_is_the_native_one(self):
        for name, launcher in self.launchers():
            for team, rank in ((0, 1), (1, 0)):
                with self.subTest(name, team=team, rank=rank):
                    command = self.heat(name, launcher)
                    job = self.start(*launcher, *command, rests=True)
                    process = self.process_of(team, rank, 2)
                    time.sleep(0.5)
                    self.strike(process)
                    out, err = job.communicate(timeout=60)
                    self.assertEqual(job.returncode, 0, err)
                    self.assertEqual(out, "heat: 31 frames in out\n")
                    self.assertIn(f"rank {rank} of team {team}", err)
                    with open(self.path("out"), "rb") as one, open(self.path("native"), "rb") as other:
                        self.assertEqual(one.read(), other.read())
                    os.unlink(self.path("out"))
                    shutil.rmtree(self.path("state"))

    def test_output_that_is_gathered_goes_on_with_the_other_team(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                command = self.heat(name, launcher)
                job = self.start("--gather-output", "all", *launcher, *command, rests=True)
                process = self.process_of(0, 0, 2)
                time.sleep(0.3)
                self.strike(process)
                out, err = job.communicate(timeout=60)
                self.assertEqual((job.returncode, out), (0, ""), err)
                # The MPI of the team that was struck may complain, on standard error, of the rank that it talked to.
                printed = [line for line in self.read("all").splitlines() if " err] " not in line]
                self.assertRegex("\n".join(printed), r"\A\[\S+ rank 0 out\] heat: 31 frames in out\Z")
                shutil.rmtree(self.path("state"))

    def test_a_protected_file_of_all_ranks_is_written_by_one_team(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                command = self.heat(name, launcher)[:-2]
                self.replicas("--protect", "rs:4+2", *self.targets(), *launcher, *command)
                with open(self.path("native"), "rb") as other:
                    self.assertEqual(self.exported("out"), other.read())
                self.replicas("--protect", "rs:4+2", *self.targets(), *launcher, *command, "--restart")
                self.holdfast("rm", self.path("out"))

    def test_a_team_that_is_killed_is_replaced_as_the_writer_of_a_protected_file(self):
        for name, launcher in self.launchers():
            for team, rank in ((0, 1), (0, 0), (1, 0)):
                with self.subTest(name, team=team, rank=rank):
                    command = self.heat(name, launcher)
                    job = self.start("--protect", "rs:4+2", *self.targets(), *launcher, *command, rests=True)
                    process = self.process_of(team, rank, 2)
                    time.sleep(0.6)
                    self.strike(process)
                    out, err = job.communicate(timeout=100)
                    self.assertEqual(job.returncode, 0, err)
                    self.assertEqual(out, "heat: 31 frames in out\n")
                    with open(self.path("native"), "rb") as other:
                        self.assertEqual(self.exported("out"), other.read())
                    self.holdfast("rm", self.path("out"))
                    shutil.rmtree(self.path("state"))

    def independent(self, name):
        program = self.path(f"independent.{name}")
        subprocess.run([f"mpicc.{name}", "-O1", INDEPENDENT, "-o", program], check=True)
        return program

    def check_independent(self, content, records):
        self.assertEqual(len(content), records * 2 * 5000)
        for number in range(records * 2):
            text = content[number * 5000:(number + 1) * 5000]
            head = f"record {number // 2} of rank {number % 2}".encode() + b"\0"
            self.assertEqual(text, head + bytes([97 + (number // 2 + number % 2) % 26]) * (5000 - len(head)))

    def test_ranks_that_write_each_for_itself(self):
        protect = ["--protect", "rs:2+1", *self.targets(3)]
        for name, launcher in self.launchers():
            program = self.independent(name)
            for atomic in ("0", "1"):
                for options in ([], protect):
                    with self.subTest(name, atomic=atomic, protected=bool(options)):
                        job = self.start(*options, *launcher, program, "out", "25", "60", atomic, rests=True)
                        process = self.process_of(0, 1, 2)
                        time.sleep(0.5)
                        self.strike(process)
                        out, err = job.communicate(timeout=100)
                        self.assertEqual(job.returncode, 0, err)
                        self.assertEqual(sorted(out.splitlines()), ["rank 0 is done", "rank 1 is done"])
                        if options:
                            self.check_independent(self.exported("out"), 25)
                        else:
                            with open(self.path("out"), "rb") as file:
                                self.check_independent(file.read(), 25)
                        if options:
                            self.holdfast("rm", self.path("out"))
                        else:
                            os.unlink(self.path("out"))
                        shutil.rmtree(self.path("state"))

    def test_reads_and_writes_that_are_shared_out_give_the_same_file(self):
        shape = ["300", "200", "40", "4"]
        protocols = ["--read-protocol", "distributed-chunked", "--write-protocol", "distributed"]
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.heat(name, launcher)
                for restart in ([], ["--restart"]):
                    subprocess.run([*launcher, "./heat", "native2", *shape, *restart], cwd=self.dir, env=self.env, check=True, capture_output=True)
                self.replicas(*protocols, *launcher, "./heat", "out", *shape, replicas=3)
                shutil.rmtree(self.path("state"))
                job = self.start(*protocols, *launcher, "./heat", "out", *shape, "--restart", "--pause-ms", "150", replicas=3, rests=True)
                process = self.process_of(1, 0, 2)
                time.sleep(0.6)
                self.strike(process)
                _, err = job.communicate(timeout=100)
                self.assertEqual(job.returncode, 0, err)
                with open(self.path("out"), "rb") as one, open(self.path("native2"), "rb") as other:
                    self.assertEqual(one.read(), other.read())
                self.assertIn("out: read distributed-chunked, write distributed", self.holdfast("status", "--job", expect=1).stdout)
                for left in ("out", "native2"):
                    os.unlink(self.path(left))
                shutil.rmtree(self.path("state"))

    def test_launchers_do_not_race_for_one_directory(self):
        """Open MPI's ends where another one makes it at the same moment."""
        for name, launcher in self.launchers(1):
            if name != "openmpi":
                continue
            self.replicas(*launcher, "sh", "-c", "echo $OMPI_MCA_orte_tmpdir_base > place.$$", expect=None)
            places = {self.read(file).strip() for file in os.listdir(self.dir) if file.startswith("place.")}
            self.assertEqual(len(places), 2)
            for place in places:
                self.assertIn("holdfast-team-", place)
                self.assertFalse(os.path.exists(place), "it goes with the job")

    def test_ranks_beyond_the_cores_give_their_turns_away(self):
        """Each launcher of Open MPI counts its own ranks only. What the user says stands."""
        cores = len(os.sched_getaffinity(0))
        says = ["sh", "-c", "[ $OMPI_COMM_WORLD_RANK != 0 ] || echo turns: $OMPI_MCA_mpi_yield_when_idle."]
        for ranks, given, expected in ((cores, None, "1"), (cores, "0", "0"), (cores // 2, None, "")):
            for name, launcher in self.launchers(ranks):
                if name != "openmpi" or ranks == 0:
                    continue
                self.env.pop("OMPI_MCA_mpi_yield_when_idle", None)
                if given:
                    self.env["OMPI_MCA_mpi_yield_when_idle"] = given
                done = self.replicas(*launcher, *says, expect=None)
                self.assertIn(f"turns: {expected}.", done.stdout, done.stderr)

    def test_cores_are_dealt_out_where_they_suffice(self):
        says = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("there is one core")
        for name, launcher in self.launchers(1):
            with self.subTest(name):
                done = self.replicas(*launcher, *says, expect=None)
                if "of its processors" not in done.stderr:
                    self.skipTest(f"the cores are threads of one: {done.stderr}")
                parts = re.findall(r" team [01] has ([0-9-]+)", done.stderr)
                self.assertIn(done.stdout.split()[-1], parts)
                self.assertEqual(len(set(parts)), 2)
                bound = self.replicas(*launcher, *(["--bind-to", "none"] if name == "openmpi" else ["-bind-to", "none"]), *says, expect=None)
                self.assertNotIn("of its processors", bound.stderr)
        self.assertNotIn("of its processors", self.replicas(PROGRAM, "clocks", replicas=len(cores) + 1).stderr)

    def test_an_abort_is_the_programs_own(self):
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.heat(name, launcher)
                done = self.replicas(*launcher, "./heat", "out", "1", expect=None)
                self.assertNotIn(done.returncode, (0, 120, 121))
                self.assertIn("usage: heat OUTPUT", done.stderr)

    def compile(self, mpi, program, source):
        with open(self.path(f"{program}.c"), "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run([f"mpicc.{mpi}", f"{program}.c", "-o", program], cwd=self.dir, check=True)

    def test_a_rank_that_ends_with_an_error_ends_the_job_with_it(self):
        """Now and then MPICH's launcher ends with the signal by which it has ended the other ranks."""
        source = """#include <mpi.h>
                #include <stdlib.h>
                int main(int count, char** words) {
                  int rank;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  if (rank == 1) exit(3);
                  MPI_Barrier(MPI_COMM_WORLD);
                  return MPI_Finalize();
                }"""
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.compile(name, "exits", source)
                for _ in range(8):
                    self.replicas(*launcher, "./exits", expect=3)

    def test_an_error_for_which_the_mpi_ends_the_program_is_the_programs_own(self):
        source = """#include <mpi.h>
                int main(int count, char** words) {
                  int rank;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
                  MPI_Barrier(MPI_COMM_WORLD);
                  return MPI_Finalize();
                }"""
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.compile(name, "errs", source)
                native = subprocess.run([*launcher, "./errs"], cwd=self.dir, env=self.env, capture_output=True, timeout=60)
                self.assertNotEqual(native.returncode, 0)
                for _ in range(4):
                    done = self.replicas(*launcher, "./errs", expect=native.returncode)
                    self.assertNotIn("has died", done.stderr)

    def test_what_a_program_writes_under_the_launchers_number_is_no_abort(self):
        # MPICH's ranks tell their launcher of an abort by a line in a descriptor. Its number may be another file's, later.
        source = """#include <fcntl.h>
                #include <mpi.h>
                #include <stdlib.h>
                #include <unistd.h>
                int main(int count, char** words) {
                  int rank;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  const char* number = getenv("PMI_FD");
                  MPI_Finalize();
                  if (rank == 0) {
                    int fd = open("words", O_WRONLY | O_CREAT | O_TRUNC, 0600);
                    if (number) dup2(fd, atoi(number)), fd = atoi(number);
                    if (write(fd, "cmd=abort is a word\\n", 20) != 20) return 1;
                  }
                  return 0;
                }"""
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.compile(name, "words-of", source)
                self.replicas(*launcher, "./words-of")
                self.assertEqual(self.read("words"), "cmd=abort is a word\n")

    def test_a_second_program_in_the_place_of_a_rank_is_refused(self):
        with open(self.path("tool.c"), "w") as file:
            file.write("""#include <mpi.h>
                int main(int count, char** words) { return MPI_Init(&count, &words) + MPI_Finalize(); }""")
        for name, launcher in self.launchers(1):
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "tool.c", "-o", "tool"], cwd=self.dir, check=True)
                done = self.replicas(*launcher, "sh", "-c", "./tool; ./tool", expect=2)
                self.assertIn("cannot be one of several replicas: process", done.stderr)

    def test_a_race_of_ranks_that_no_replica_can_repeat_is_named(self):
        """Each team's ranks come to the counter in another order."""
        with open(self.path("counts.c"), "w", encoding="utf-8") as file:
            file.write("""#include <fcntl.h>
                #include <mpi.h>
                #include <stdio.h>
                #include <string.h>
                #include <sys/syscall.h>
                #include <time.h>
                #include <unistd.h>
                static int is_of_team(char team) {
                  static char all[1 << 16];
                  long got = syscall(SYS_read, (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY), all, sizeof all), at = 0;
                  for (; at < got; at += (long)strlen(all + at) + 1)
                    if (!strncmp(all + at, "HOLDFAST_REPLICA=", 17)) return all[at + 17] == team;
                  return 0;
                }
                int main(int count, char** words) {
                  int rank, one = 1, before = -1, *counter;
                  char name[16];
                  MPI_Win window;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
                  *counter = 0;
                  MPI_Barrier(MPI_COMM_WORLD);
                  if (is_of_team('0' + rank)) MPI_Barrier(MPI_COMM_WORLD);
                  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
                  MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
                  MPI_Win_unlock(0, window);
                  if (!is_of_team('0' + rank)) MPI_Barrier(MPI_COMM_WORLD);
                  snprintf(name, sizeof name, "out%d", rank);
                  FILE* file = fopen(name, "w");
                  fprintf(file, "%d\\n", before);
                  fclose(file);
                  MPI_Win_free(&window);
                  return MPI_Finalize();
                }""")
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "counts.c", "-o", "counts"], cwd=self.dir, check=True)
                done = self.replicas(*launcher, "./counts", expect=120)
                self.assertIn("; this rank has used MPI_Fetch_and_op, whose order among ranks replicas cannot repeat", done.stderr)

    def test_another_program_or_library_in_one_team_is_named(self):
        """Which one a team gets a script says, as nodes with disks of their own may."""
        with open(self.path("says.c"), "w", encoding="utf-8") as file:
            file.write("#include <mpi.h>\n#include <stdio.h>\nint says(void);\nint main(int c, char** v) {"
                       "MPI_Init(&c, &v); FILE* f = fopen(\"out\", \"w\"); fprintf(f, \"%d\\n\", FROM); fclose(f); MPI_Finalize(); return 0 * says(); }\n")
        for name, launcher in self.launchers(1):
            with self.subTest(name):
                for which in "01":
                    os.makedirs(self.path(which), exist_ok=True)
                    for what in ("-shared -fPIC -DMAKES -o libsays.so", "-o says"):
                        source = ["-x", "c", "-"] if "MAKES" in what else ["-DFROM=" + which, "../says.c", "-L.", "-lsays", "-Wl,--build-id"]
                        subprocess.run([f"mpicc.{name}", *what.split(), *source], cwd=self.path(which), check=True, text=True,
                                       input=f"int says(void) {{ return {which}; }}")
                shutil.copy(self.path("0/says"), self.path("1/same"))
                script = 'case $HOLDFAST_REPLICA in 1*) export LD_LIBRARY_PATH=1; exec %s;; *) export LD_LIBRARY_PATH=0; exec 0/says;; esac'
                done = self.replicas(*launcher, "sh", "-c", script % "1/says", expect=120)
                there = f"{self.path('0/says')}"
                self.assertRegex(done.stderr, f"rank 0 of team [01] runs another program than team [01]: .*{re.escape(there)}")
                self.assertFalse(os.path.exists(self.path("out")))
                done = self.replicas(*launcher, "sh", "-c", script % "1/same")
                self.assertRegex(done.stderr, "holdfast: team [01] has another libsays.so than team [01]: what they compute may have other last bits")
                self.assertEqual(done.stderr.count("libsays.so"), 1)
                os.unlink(self.path("out"))

    def test_a_program_that_ends_with_an_error_is_no_loss(self):
        """Launchers end the ranks that are left when one has ended so."""
        with open(self.path("fails.c"), "w") as file:
            file.write("""#include <mpi.h>
                #include <unistd.h>
                int main(int count, char** words) {
                  int rank;
                  MPI_Init(&count, &words);
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                  MPI_Finalize();
                  if (rank == 1) sleep(2);
                  return 3;
                }""")
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", "fails.c", "-o", "fails"], cwd=self.dir, check=True)
                native = subprocess.run([*launcher, "./fails"], cwd=self.dir, env=self.env, capture_output=True, check=False).returncode
                done = self.replicas(*launcher, "./fails", expect=None)
                self.assertEqual(done.returncode, native, done.stderr)
                self.assertNotIn("has died", done.stderr)

    # ------------------------------------------------------------------------------------------------ messages

    def messages_program(self, name):
        program = self.path(f"messages.{name}")
        subprocess.run([f"mpicc.{name}", "-O1", MESSAGES, "-o", program], check=True)
        return program

    def check_messages(self, how):
        """Each rank has ended, and what each worker was told is what the master has written that it told."""
        files = [self.read(f"out.{rank}").splitlines() for rank in range(3)]
        for file in files:
            self.assertEqual(file[-1], "end")
        if how == "mixed":
            self.assertEqual(files[0][-2].split()[:2], ["cancelled", "1"])
            return
        if how == "later":
            self.assertGreater(len(files[0]), 30)
            return
        told = {1: [], 2: []}
        for word, source, _, digest in (line.split() for line in files[0][:-1]):
            if word not in ("noes", "turn"):
                told[int(source) // 100 if word == "request" else int(source)].append(digest)
        for rank in (1, 2):
            self.assertEqual([line.split()[1] for line in files[rank][:-1]], told[rank])

    def decided(self, how):
        for name, launcher in self.launchers(3):
            program = self.messages_program(name)
            for replicas in (2, 3):
                with self.subTest(name, replicas=replicas):
                    done = self.replicas(*launcher, program, how, "out", "40", replicas=replicas)
                    self.assertRegex(done.stdout, r"^done [0-9]+\n$")
                    self.check_messages(how)
            with self.subTest(name, killed=True):
                shutil.rmtree(self.path("state"))
                job = self.start(*launcher, program, how, "out", "100", "15", rests=True)
                process = self.process_of(0, 0, 3)
                time.sleep(0.4)
                self.strike(process)
                _, err = job.communicate(timeout=60)
                self.assertEqual(job.returncode, 0, err)
                self.assertIn(f"rank 0 of team 0 (process {process}", err)
                self.check_messages(how)

    def test_who_a_message_comes_from_is_the_same_in_all(self):
        self.decided("receive")

    def test_clocks_that_are_awaited_from_the_beginning_hold_nothing_up(self):
        for name, launcher in list(self.launchers(3))[:1]:
            self.replicas("--clock", "strict", *launcher, self.messages_program(name), "receive", "out", "20")
            self.check_messages("receive")

    def test_what_a_look_for_messages_says_is_the_same_in_all(self):
        self.decided("probe")

    def test_which_requests_are_complete_is_the_same_in_all(self):
        self.decided("request")

    def test_receives_from_anybody_beside_all_other_calls(self):
        self.decided("mixed")

    def test_how_often_something_was_not_over_yet_is_the_same_in_all(self):
        self.decided("later")

    # ------------------------------------------------------------------------------------------------ refused

    def test_an_unknown_launcher_is_refused_with_the_words_to_use(self):
        for name, _ in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", HEAT, "-o", self.path("heat")], check=True)
                done = self.holdfast("run", "--replicas", "2", "nice", "-n", "4", "./heat", "out", *SHAPE, expect=2)
                self.assert_one_sentence(done.stderr, "'nice' is no launcher that --replicas knows: begin with mpirun, mpiexec, orterun or prterun")
                self.assertFalse(os.path.exists(self.path("out")))

    def test_variables_before_a_launcher_or_a_program_are_set_for_it(self):
        with open(self.path("says.c"), "w", encoding="utf-8") as file:
            file.write('#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n'
                       'int main(void) { MPI_Init(NULL, NULL); printf("%s %s\\n", getenv("A"), getenv("B")); return MPI_Finalize(); }\n')
        for name, launcher in self.launchers():
            with self.subTest(name):
                subprocess.run([f"mpicc.{name}", self.path("says.c"), "-o", self.path("says")], check=True)
                self.assertEqual(self.replicas("env", "A=1", "B=x=y z", *launcher, "./says").stdout, 2 * "1 x=y z\n")
                self.assertEqual(self.replicas("env", "A=1", "env", "B=2", "./says").stdout, "1 2\n")
        words = ["env", "A=1", PROGRAM, "names"]
        self.assertIn("mkdir ok", self.replicas("--restart-command", f"env A=1 {PROGRAM} names", *words).stdout)
        done = self.holdfast("run", "--replicas", "2", "--restart-command", f"env A=2 {PROGRAM} names", *words, expect=2)
        self.assert_one_sentence(done.stderr, "--restart-command sets A=2, and the command does not: write it before 'holdfast run'")


if __name__ == "__main__":
    unittest.main()
