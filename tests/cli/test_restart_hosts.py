"""Restarts on other nodes: the launcher of a job that is started again is told of nodes that are there. The nodes here are agents of one machine, each
with a name of its own; the launchers are scripts that run the ranks one after another, each as if on its node."""
import os
import subprocess
import sys
import unittest

from command import CommandTest

PATTERN = "ck/ck.{step}.{rank}"
LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && { printf '%s\\n' "$SAYS"; exit; }
echo "$@" >> "$SEEN"
for word; do words=$word; done
hosts= n=0
while [ $# -gt 1 ]; do
    case $1 in
    -x) shift 2 ;;
    --oversubscribe) shift ;;
    --host | -hosts) hosts=$2; shift 2 ;;
    -f | --hostfile) hosts=$(tr '\\n' , < $2 | sed 's/ slots=/:/g'); shift 2 ;;
    --host=*) hosts=${1#--host=}; shift ;;
    --nodes=*) shift ;;
    --nodelist=*) hosts=${1#--nodelist=}; shift ;;
    -w) hosts=$(echo $2 | sed 's/n\\[1-3\\]/n1,n2,n3/'); shift 2 ;;
    *) break ;;
    esac
done
while [ $# -gt 2 ]; do case $1 in -*) shift ;; *) [ "$1" = sh ] && break; shift ;; esac; done
places=
for host in $(echo $hosts | tr , ' '); do
    slots=1; case $host in *:*) slots=${host#*:}; host=${host%:*} ;; esac
    while [ $slots -gt 0 ]; do places="$places $host"; slots=$((slots - 1)); n=$((n + 1)); done
done
export PMI_SIZE=$n RANK=0
for SLURMD_NODENAME in $places; do
    export SLURMD_NODENAME PMI_RANK=$RANK
    "$@" || exit $?
    RANK=$((RANK + 1))
done
"""
# The first attempt ends with the loss of a node, once its checkpoint is whole.
PROGRAM = """
if [ -e ck/ck.10.$RANK ]; then cat ck/ck.10.$RANK >> got; echo $SLURMD_NODENAME >> on; exit 0; fi
echo content of $RANK > ck/ck.10.$RANK
[ $RANK -lt $((PMI_SIZE - 1)) ] && exit 0
unset LD_PRELOAD
while ! "$HOLDFAST" checkpoints | grep -q whole; do sleep 0.1; done
agent=$(sed -n 's/^process //p' "$HOLDFAST_AGENTS"/n2.*.agent)
kill -9 $(cut -d' ' -f4 /proc/$agent/stat) $agent
rm -rf "$DISK-n2"
exit 9
"""


class RestartHosts(CommandTest):
    def setUp(self):
        super().setUp()
        self.env.update(HOLDFAST_AGENTS=self.path("agents"), SEEN=self.path("seen"), HOLDFAST=str(self.binary), DISK=self.path("disk"))
        for variable in ("SLURM_JOB_NODELIST", "SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"):
            self.env.pop(variable, None)
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))
        os.mkdir(self.path("ck"))
        os.mkdir(self.path("bin"))

    def make_launcher(self, name, says):
        with open(self.path("bin", name), "w") as file:
            file.write(LAUNCHER)
        os.chmod(self.path("bin", name), 0o755)
        self.env.update(SAYS=says, PATH=self.path("bin") + ":" + self.env["PATH"])

    def run_job(self, nodes, *command, options=(), ranks=3, expect=0):
        """What the launcher was told at the restart, and on which nodes its ranks were."""
        done = self.holdfast("run", "--protect", "rs:2+2", "--local", self.path("disk-{node}"), "--hosts", nodes, "--with", "env ON={node}", "--checkpoint", PATTERN,
                             "--restarts", "1", "--deadline", "2s", "--library", "posix", *options, "--", *command, "sh", "-c", PROGRAM, expect=expect)
        self.assertTrue(os.path.exists(self.path("got")), done.stderr)
        with open(self.path("got")) as got:
            self.assertEqual(got.read(), "".join(f"content of {rank}\n" for rank in range(ranks)), done.stderr)
        with open(self.path("seen")) as seen, open(self.path("on")) as on:
            said = [line for line in seen.read().splitlines() if line.startswith("-")]
            self.assertEqual(len(said), 2, said)
            return said[1], on.read().split()

    def test_a_spare_node_takes_the_place_of_a_lost_one(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        said, on = self.run_job("n[1-6]", "mpirun", "--host", "n1,n2,n3", "-n", "3")
        self.assertEqual((on[0], on[2]), ("n1", "n3"), "who is there keeps its ranks")
        self.assertIn(on[1], ("n4", "n5", "n6"))
        self.assertIn(f"--host n1,{on[1]},n3 -n 3 sh", said)
        self.assertIn("-x LD_PRELOAD", said)

    def test_without_a_spare_the_others_take_its_ranks(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        said, on = self.run_job("n[1-4]", "mpirun", "--host=n1,n2:2,n3,n4", "-n", "5", ranks=5, expect=None)
        self.assertIn("--host n1:2,n3:2,n4", said)
        self.assertEqual(on, ["n1", "n1", "n3", "n3", "n4"])

    def test_in_an_allocation_without_a_spare_they_may_have_more_ranks_than_places(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        self.env["SLURM_JOB_NODELIST"] = "n[1-4]"
        said, on = self.run_job("n[1-4]", "mpirun", "--host", "n1,n2,n3,n4", "-n", "4", ranks=4)
        self.assertIn("--host n1:2,n3,n4 --oversubscribe -n 4 sh", said)
        self.assertEqual(on, ["n1", "n1", "n3", "n4"])

    def make_way_without_n2(self, once=None):
        """For `--with`: n2 is not reached, or only once this file is there."""
        there, lost = self.path("there"), f"[ -e {once} ] && " if once else ""
        with open(there, "w") as file:
            file.write(f'#!/bin/sh\n[ "$1" = n2 ] && {lost}exit 255\nshift; exec sh -c "$*"\n')
        os.chmod(there, 0o755)
        return there

    def test_a_run_that_goes_on_later_has_its_hosts_rewritten_too(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        there = self.make_way_without_n2(once="gone")
        job = ["run", "--protect", "rs:2+2", "--local", self.path("disk-{node}"), "--hosts", "n[1-6]", "--with", f"{there} {{node}}", "--checkpoint", PATTERN,
               "--deadline", "2s", "--library", "posix"]
        program = ["--", "mpirun", "--host", "n1,n2,n3", "-n", "3", "sh", "-c", PROGRAM]
        self.holdfast(*job, *program, expect=9)
        with open(self.path("gone"), "w"):
            pass
        self.holdfast(*job, "--resume", *program)
        with open(self.path("seen")) as seen, open(self.path("on")) as on:
            said, on = [line for line in seen.read().splitlines() if line.startswith("-")][-1], on.read().split()
        self.assertEqual((on[0], on[2]), ("n1", "n3"), "who is there keeps its ranks")
        self.assertIn(on[1], ("n4", "n5", "n6"))
        self.assertIn(f"--host n1,{on[1]},n3 -n 3 sh", said)

    def test_a_node_that_is_lost_before_the_first_attempt_has_no_ranks_either(self):
        """What a rank wrote there nobody would keep."""
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        there = self.make_way_without_n2()
        done = self.holdfast("run", "--protect", "rs:2+2", "--local", self.path("disk-{node}"), "--hosts", "n[1-6]", "--with", f"{there} {{node}}", "--checkpoint", PATTERN,
                             "--deadline", "2s", "--library", "posix", "--", "mpirun", "--host", "n1,n2,n3", "-n", "3", "sh", "-c", "echo content of $RANK > ck/ck.10.$RANK")
        with open(self.path("seen")) as seen:
            self.assertRegex(seen.read().splitlines()[-1], r"--host n1,n[456],n3 -n 3 sh")
        self.assertIn("no agent answers on n2: mpirun is given the nodes that are there", done.stderr)
        self.assertIn("checkpoint 10 is whole (3 files", done.stderr)
        for rank in range(3):
            with open(self.path(f"ck/ck.10.{rank}")) as file:
                self.assertEqual(file.read(), f"content of {rank}\n")

    def test_a_slurm_job_that_may_end_with_a_node_is_told_of(self):
        """Slurm does not say whether a job was begun with --no-kill; salloc's command line and the batch script do."""
        self.make_launcher("srun", "slurm 22.05.8")
        with open(self.path("bin/scontrol"), "w") as file:
            file.write('#!/bin/sh\n[ "$1 $2 $3" = "write batch_script 17" ] && cat script\n')
        os.chmod(self.path("bin/scontrol"), 0o755)
        os.symlink(sys.executable, self.path("bin/salloc"))
        run = [str(self.binary), "run", "--protect", "rs:2+1", "--local", self.path("disk-{node}"), "--hosts", "n[1-3]", "--with", "env ON={node}", "--checkpoint", PATTERN,
               "--library", "posix", "--drain", "none"]
        self.env.update(SLURM_JOB_ID="17", SLURM_JOB_NODELIST="n[1-3]")

        def is_told(*began, script="", restarts="1", **environment):
            with open(self.path("script"), "w") as file:
                file.write(script)
            done = subprocess.run([*began, *run, "--restarts", restarts, "--", "true"], cwd=self.dir, env={**self.env, **environment}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = done.stderr.count("holdfast: Slurm ends a job that loses a node, and then nothing is started again; begin the job with salloc --no-kill")
            self.assertLess(told, 2)
            return told == 1

        salloc = [self.path("bin/salloc"), "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[sys.argv.index('holdfast') + 1:]).returncode)"]
        for options, told in (([], True), (["-Qk"], False), (["-N3", "--no-kill"], False), (["--no-kill=off"], True), (["-N3", "-J", "-pk"], True)):
            self.assertEqual(is_told(*salloc, *options, "holdfast"), told, options)
        self.assertTrue(is_told(script="#!/bin/sh\n#SBATCH -N 3\nsrun --no-kill ./app\n"))
        self.assertFalse(is_told(script="#!/bin/sh\n#SBATCH -N 3 --no-kill # they may die\nsrun ./app\n"))
        self.assertFalse(is_told(SBATCH_NO_KILL="1"))
        self.assertFalse(is_told(restarts="0"))

    def test_a_file_of_hosts_is_read(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        with open(self.path("hosts"), "w") as file:
            file.write("n1 slots=1\nn2 slots=2\n")
        said, on = self.run_job("n[1-5]", "mpirun", "--hostfile", "hosts", "-n", "3")
        self.assertEqual(on[0], "n1")
        self.assertEqual(on[1], on[2])
        self.assertIn(f"--host n1:1,{on[1]}:2 -n 3", said)

    def test_hydra_is_told_in_its_own_words(self):
        self.make_launcher("mpiexec", "HYDRA build details:\n    Version:                                 4.0.2")
        said, on = self.run_job("n[1-5]", "mpiexec", "-hosts", "n1,n2,n3", "-n", "3")
        self.assertIn(f"-hosts n1,{on[1]},n3 -n 3", said)
        self.assertIn(on[1], ("n4", "n5"))

    def test_srun_is_given_nodes_of_the_allocation_that_are_there(self):
        self.make_launcher("srun", "slurm 22.05.8")
        self.env["SLURM_JOB_NODELIST"] = "n[1-5]"
        said, on = self.run_job("n[1-5]", "srun", "-w", "n[1-3]", "-N3", "-n3")
        self.assertIn(f"--nodes=3 --nodelist=n1,{on[1]},n3 -n3", said)

    def test_a_program_may_have_another_command_for_restarts(self):
        self.make_launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        with open(self.path("again"), "w") as file:
            file.write("#!/bin/sh\necho step $1 >> told\nshift\nexec mpirun \"$@\"\n")
        os.chmod(self.path("again"), 0o755)
        with open(self.path("program"), "w") as file:
            file.write(PROGRAM)
        said, _ = self.run_job("n[1-6]", "mpirun", "--host", "n1,n2,n3", "-n", "3", ranks=5,
                               options=("--restart-with", "./again {step} --host {nodes} -n 5 sh -c '[ -e ck/ck.10.$RANK ] && cat ck/ck.10.$RANK >> got; "
                                                          "echo content of $RANK >> got.$RANK; echo x >> on; [ $RANK -lt 3 ] || cat got.$RANK >> got'"))
        self.assertRegex(said, r"--host n\d,n\d,n\d,n\d,n\d -n 5")
        self.assertNotIn("n2", said)
        with open(self.path("told")) as told:
            self.assertEqual(told.read(), "step 10\n")

    def test_one_that_is_not_there_is_named(self):
        done = self.holdfast("run", "--protect", "rs:2+1", "--simulate-nodes", "3", "--checkpoint", PATTERN, "--library", "posix", "--restarts", "1",
                             "--restart-with", "./again {step}", "--", "sh", "-c", "mkdir -p ck; echo 1 > ck/ck.1.0; exit 3", expect=122)
        self.assertIn("./again cannot be started", done.stderr)
        with open(self.path("ck/ck.1.0")) as drained:
            self.assertEqual(drained.read(), "1\n")

    def test_what_cannot_be_told_is_started_as_it_is_and_said(self):
        self.make_launcher("launch", "")
        refused = self.holdfast("run", "--protect", "rs:2+2", "--simulate-nodes", "4", "--checkpoint", PATTERN, "--restart-with", "./again {other}", "--", "true", expect=2)
        self.assert_one_sentence(refused.stderr, "--restart-with './again {other}' is no command", "{step} and {nodes}")
        refused = self.holdfast("run", "--restart-with", "./again", "--", "true", expect=2)
        self.assertIn("--restart-with is about checkpoints", refused.stderr)


if __name__ == "__main__":
    unittest.main()
