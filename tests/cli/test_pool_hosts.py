"""holdfast run --local: which nodes a pool has, and how agents are started there, by what hosts, launchers and batch systems say."""
import os
import signal
import socket
import subprocess
import time
import unittest

from pooled import PooledTest


class PoolHosts(PooledTest):
    def test_hosts_come_from_a_file_or_from_the_resource_manager(self):
        with open(self.path("hostfile"), "w") as file:
            file.write("n1 slots=4\nn2:4\n# nobody\nn3\nn3\n")
        self.run_on("hostfile", "echo a > a.dat")
        self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"})
        self.env["SLURM_JOB_NODELIST"] = "n[1-2],n03"
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--local", self.path("disk-{node}"), "--with", "env ON={node}", "--", "sh", "-c"]
        self.holdfast(*run, "echo b > b.dat")
        self.assertEqual(set(self.members("b.dat")), {"n1", "n2", "n03"})
        del self.env["SLURM_JOB_NODELIST"]
        for names, nodes in ((["n1.site.example"] * 2 + ["n2.site.example", "n3.site.example"], {"n1", "n2", "n3"}),
                             (["n1.a.example", "n1.b.example", "n3.a.example"], {"n1.a.example", "n1.b.example", "n3.a.example"})):
            with open(self.path("pbs"), "w") as file:
                file.writelines(f"{name}\n" for name in names)
            self.env["PBS_NODEFILE"] = self.path("pbs")
            self.holdfast(*run, "echo c > c.dat")
            self.assertEqual(set(self.members("c.dat")), nodes)
            self.holdfast("rm", "c.dat")
            self.holdfast("agents", "stop")

    def test_this_machine_is_known_by_its_long_name_too(self):
        """Nobody has to be told how to start an agent here."""
        apart = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--uts"]
        if subprocess.run([*apart, "hostname", "n1.site.example"], capture_output=True).returncode != 0:
            self.skipTest("no namespace for the name of the machine")
        command = f"hostname n1.site.example; {self.binary} run --protect mirror:1 --path '*.dat' --local '{self.path('disk-{node}')}' " \
                  "--hosts n1.site.example -- sh -c 'echo a > a.dat' && " + f"{self.binary} status a.dat"
        done = subprocess.run([*apart, "sh", "-c", command], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"n1.site.example:{self.path('disk-n1.site.example')}", done.stdout)

    SRUN = """#!/usr/bin/env python3
# Stands for Slurm: a process for each node, with the node's name, until all have ended.
import os, subprocess, sys
words = sys.argv[1:]
options = [word for word in words if word.startswith("--")][:10]
open(os.environ["SEEN"], "w").write(" ".join(options))
nodes = next(word for word in words if word.startswith("--nodelist=")).split("=")[1].split(",")
command = words[next(i for i, word in enumerate(words) if not word.startswith("--")):]
for task in [subprocess.Popen(command, env=dict(os.environ, SLURMD_NODENAME=node)) for node in nodes]:
    task.wait()
"""

    def be_in_a_slurm_job(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/srun"), "w") as file:
            file.write(self.SRUN)
        os.chmod(self.path("bin/srun"), 0o755)
        self.env.update(SLURM_JOB_ID="17", SLURM_JOB_NODELIST="n[1-3]", SEEN=self.path("seen"), PATH=self.path("bin") + ":" + self.env["PATH"])

    def test_agents_that_the_user_starts_in_a_slurm_job_are_a_step_too(self):
        self.be_in_a_slurm_job()
        refused = self.holdfast("agents", "start", "disk-{node}", expect=3)
        self.assertIn("disk-n1 cannot be served", refused.stderr)
        self.assertIn("no agent serves 1 directory on n1, n2, n3", refused.stderr)
        said = self.holdfast("agents", "start", "--make", "disk-{node}")
        self.assertEqual(said.stdout.split(), [f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2, 3)])
        with open(self.path("seen")) as file:
            self.assertIn("--nodelist=n1,n2,n3", file.read())
        self.env.update(SLURM_STEP_ID="3", SLURMD_NODENAME="n9")  # in a task of a step it means the task's node
        self.assertEqual(self.holdfast("agents", "start", "--make", "disk-{node}").stdout, f"n9:{self.path('disk-n9')}\n")

    def test_agents_of_named_nodes_are_started_by_a_command(self):
        said = self.holdfast("agents", "start", "--make", "--hosts", "n[1-2]", "--with", "env ON={node}", self.path("disk-{node}"))
        self.assertEqual(said.stdout.split(), [f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2)])
        for options, words in ((["--hosts", "n3"], ["no agent serves 1 directory on n3: say how a command is run there, with --with 'ssh {node}'"]),
                               (["--with", "env ON={node}"], ["--with says how agents of other nodes are started, and not which nodes"])):
            self.assert_one_sentence(self.holdfast("agents", "start", *options, "/d-{node}", expect=3).stderr, *words)

    def test_agents_of_a_slurm_job_are_a_step_of_their_own(self):
        self.be_in_a_slurm_job()
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--local", self.path("disk-{node}"), "--drain", "none", "--", "sh", "-c"]
        self.holdfast(*run, "echo a > a.dat")
        self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"})
        with open(self.path("seen")) as file:
            options = file.read()
        for option in ("--overlap", "--no-kill", "--kill-on-bad-exit=0", "--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--nodelist=n1,n2,n3"):
            self.assertIn(option, options)
        process = self.agent_of("n2")
        os.kill(process, signal.SIGKILL)
        deadline = time.time() + 10
        while self.agent_of("n2") == process and time.time() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.holdfast("cat", "a.dat").stdout, "a\n")
        self.holdfast("verify", "a.dat")

    def test_a_slurm_step_of_many_nodes_is_asked_for_in_few_words(self):
        """One by one they would be longer than a word may be."""
        nodes = "node-of-a-long-name-[1-9000]"
        self.make_command("srun", f'echo "$@" > {self.path("seen")}; exit 1')
        self.env.update(SLURM_JOB_ID="17", SLURM_JOB_NODELIST=nodes)
        self.holdfast("agents", "start", "disk-{node}", expect=3)
        with open(self.path("seen")) as file:
            self.assertIn(f" --nodes=9000 --ntasks=9000 --ntasks-per-node=1 --nodelist={nodes} ", file.read())

    def test_a_slurm_step_that_fails_is_told_with_its_own_words(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/srun"), "w") as file:
            file.write("#!/bin/sh\necho srun: error: nodes are busy >&2\nexit 1\n")
        os.chmod(self.path("bin/srun"), 0o755)
        self.env.update(SLURM_JOB_ID="17", SLURM_JOB_NODELIST="n[1-3]", PATH=self.path("bin") + ":" + self.env["PATH"])
        refused = self.holdfast("run", "--protect", "rs:2+1", "--local", self.path("disk-{node}"), "--", "true", expect=2)
        self.assertIn("srun: error: nodes are busy", refused.stderr)

    def make_command(self, name, *lines):
        os.makedirs(self.path("bin"), exist_ok=True)
        with open(self.path("bin", name), "w") as file:
            file.write("#!/bin/sh\n" + "".join(line + "\n" for line in lines))
        os.chmod(self.path("bin", name), 0o755)
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"].replace(self.path("bin") + ":", "")

    def make_launchers(self):
        """Of both kinds, and of Slurm: they run the program here, once. What goes to a node is written down."""
        for name, says in (("mpirun", "mpirun (Open MPI) 4.1.4"), ("mpiexec", "HYDRA build details: Version: 4.0.2"), ("srun", "slurm 22.05.8")):
            self.make_command(name, f'[ "$1" = --version ] && {{ echo "{says}"; exit; }}', 'while [ "$1" != sh ]; do shift; done', 'exec "$@"')
        for name in ("ssh", "rsh-agent", "pbs_tmrsh", "blaunch"):
            self.make_command(name, f'echo {name} $1 >> "$SEEN"', "shift", 'exec sh -c "$*"')
        self.env["SEEN"] = self.path("reached")

    def run_by(self, launcher, *options, expect=0, script="echo a > a.dat", scheme="rs:2+1"):
        return self.holdfast("run", "--protect", scheme, "--path", "*.dat", "--local", self.path("disk-{node}"), "--library", "posix", "--drain", "none", *options,
                             "--", *launcher, "sh", "-c", script, expect=expect)

    def reached(self):
        """And from now on nobody has been."""
        with open(self.path("reached")) as file:
            lines = sorted(file.read().splitlines())
        os.remove(self.path("reached"))
        return lines

    def test_the_launchers_nodes_are_those_of_the_job(self):
        self.make_launchers()
        with open(self.path("hosts"), "w") as file:
            file.write("# ours\nn1.site slots=2\nn2.site slots=2\nn3.site\n")
        ways = [(["mpirun", "--host", "n1:2,n2,n3", "-n", "4"], {}), (["mpiexec", "-f", "hosts", "-n", "4"], {}),
                (["mpirun", "-n", "2"], {"OMPI_MCA_orte_default_hostfile": "hosts"}), (["mpiexec", "-n", "2"], {"HYDRA_HOST_FILE": "hosts"})]
        for launcher, variables in ways:
            self.env.update(variables)
            self.run_by(launcher)
            for name in variables:
                del self.env[name]
            self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"}, launcher)
            self.assertEqual(self.reached(), ["ssh n1", "ssh n2", "ssh n3"])
            self.holdfast("rm", "a.dat")
            if not variables:
                self.run_by(launcher, script="true")
                self.assertFalse(os.path.exists(self.path("reached")), "they run by now")
            self.holdfast("agents", "stop")
        self.env["OMPI_MCA_plm_rsh_agent"] = "no-such-agent : rsh-agent"
        self.run_by(ways[0][0])
        self.assertEqual(self.reached(), ["rsh-agent n1", "rsh-agent n2", "rsh-agent n3"])

    def test_this_node_is_one_of_the_launchers_by_any_of_its_names(self):
        self.make_launchers()
        self.run_by(["mpirun", "--host", f"n1,localhost,{socket.gethostname()}", "-n", "3"], "--node-name", "me", scheme="mirror:2")
        self.assertEqual(set(self.members("a.dat")), {"n1", "me"})
        self.assertEqual(self.reached(), ["ssh n1"])
        alone = self.run_by(["mpirun", "--host", "localhost:4", "-n", "4"], expect=2)
        self.assertIn("rs:2+1 needs 3 nodes and this is one", alone.stderr)

    def test_what_the_user_says_of_nodes_goes_before_what_the_launcher_is_told(self):
        self.make_launchers()
        self.run_by(["mpirun", "--host", "n1,n2,n3"], "--hosts", "n4,n5,n6", "--with", "env ON={node}")
        self.assertEqual(set(self.members("a.dat")), {"n4", "n5", "n6"})
        self.run_by(["mpirun", "--host", "n1,n2,n3"], "--with", "env ON={node}", script="echo b > b.dat")
        self.assertEqual(set(self.members("b.dat")), {"n1", "n2", "n3"})
        self.assertFalse(os.path.exists(self.path("reached")))

    def test_steps_outside_of_an_allocation_name_their_nodes_and_no_way_there(self):
        self.make_launchers()
        told = self.run_by(["srun", "-w", "n[1-3]", "-n", "3"], expect=2)
        self.assertIn("no command is known that starts agents on n1, n2, n3: name one with --with 'ssh {node}'", told.stderr)
        self.run_by(["srun", "--nodelist=n[1-3]", "-n", "3"], "--with", "env ON={node}")
        self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"})

    def test_a_way_that_leads_to_no_node_is_named(self):
        self.make_launchers()
        self.make_command("ssh", 'echo "ssh: connect to host $1 port 22: Connection refused" >&2', "exit 255")
        told = self.run_by(["mpirun", "--host", "n1,n2,n3"], expect=2)
        self.assertIn("ssh: connect to host n1 port 22", told.stderr)
        self.assertIn("'ssh {node}' has not brought up agents on n1, n2, n3: name another command with --with", told.stderr)

    def test_batch_systems_reach_their_own_nodes(self):
        self.make_launchers()
        with open(self.path("hosts"), "w") as file:
            file.write("n1\nn1\nn2\nn3\n")
        for variable, way in (("PBS_NODEFILE", "pbs_tmrsh"), ("LSB_DJOB_HOSTFILE", "blaunch")):
            self.env[variable] = self.path("hosts")
            self.run_by(["mpirun", "--host", "n9", "-n", "2"])
            del self.env[variable]
            self.assertEqual(self.reached(), [f"{way} n1", f"{way} n2", f"{way} n3"])
            self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"})
            self.holdfast("agents", "stop")


if __name__ == "__main__":
    unittest.main()
