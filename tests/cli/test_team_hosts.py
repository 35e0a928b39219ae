"""Where the teams of `holdfast run --replicas` run: the hosts of the command, dealt out. The launchers are scripts that write down what they are told."""
import os
import subprocess
import unittest

from command import CommandTest, debian_mpis

LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && { printf '%s\\n' "$SAYS"; exit; }
team=${HOLDFAST_REPLICA%% *}
env | grep -E '^(OMPI_MCA_coll|MPIR_CVAR)_' | sort > "$SEEN.$team.sums"
echo "$@" > "$SEEN.$team"
while [ $# -gt 1 ]; do
    case $1 in --hostfile | -f | -machinefile) cp "$2" "$SEEN.$team.hosts" ;; esac
    shift
done
"""
# What is told to MPIs whose nodes differ from team to team.
TOLD = {
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM": "sched_binomial",
    "MPIR_CVAR_ISCAN_INTRA_ALGORITHM": "sched_recursive_doubling",
    "MPIR_CVAR_SCAN_INTRA_ALGORITHM": "recursive_doubling",
    "OMPI_MCA_coll_han_priority": "0",
    "OMPI_MCA_coll_hcoll_enable": "0",
    "OMPI_MCA_coll_ucc_enable": "0",
}
SUMS = os.path.join(os.path.dirname(__file__), "sums.c")
OPEN_MPI, HYDRA = "mpirun (Open MPI) 4.1.4", "HYDRA build details:\n    Version: 4.0.2"


class TeamHosts(CommandTest):
    def setUp(self):
        super().setUp()
        self.env.update(SEEN=self.path("seen"), XDG_STATE_HOME=self.path("state"))
        for variable in ("SLURM_JOB_NODELIST", "SLURM_JOB_ID", "SLURM_JOB_CPUS_PER_NODE", "SLURM_NTASKS", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "OMPI_MCA_orte_default_hostfile",
                         "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"):
            self.env.pop(variable, None)
        os.mkdir(self.path("bin"))
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]

    def deal(self, says, *options, teams=2, expect=0, more=()):
        """What each team's launcher was told of hosts, and what was said."""
        name = "mpirun" if says == OPEN_MPI else "mpiexec"
        with open(self.path("bin", name), "w") as file:
            file.write(LAUNCHER)
        os.chmod(self.path("bin", name), 0o755)
        done = self.holdfast("run", "--replicas", str(teams), "--library", "posix", *more, "--", name, *options, "sh", "-c", "exit 0", expect=expect,
                             env={"SAYS": says})
        told = []
        for team in range(teams if expect == 0 else 0):
            with open(self.path(f"seen.{team}")) as seen:
                words = seen.read().split()
            while "-x" in words:
                del words[words.index("-x"):words.index("-x") + 2]
            told.append(" ".join(words[:words.index("sh")]))
        return told, done.stderr

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def hosts_of(self, team):
        return self.read(f"seen.{team}.hosts").splitlines()

    def write(self, name, *lines):
        with open(self.path(name), "w") as file:
            file.write("".join(line + "\n" for line in lines))
        return name

    def test_each_team_has_hosts_of_its_own(self):
        told, said = self.deal(OPEN_MPI, "--host", "n1,n2,n3,n4", "-n", "2")
        self.assertEqual(told, ["--host n1,n2 -n 2", "--host n3,n4 -n 2"])
        self.assertRegex(said, r"\Aholdfast: team 0 on n1, n2, team 1 on n3, n4; the loss of this node, \S+, where they are started, is not survived\n")
        told, said = self.deal(HYDRA, "-hosts", "n1:2,n2:2,n3:2", "-n", "2", teams=3)
        self.assertEqual(told, ["-hosts n1:2 -n 2", "-hosts n2:2 -n 2", "-hosts n3:2 -n 2"])

    def test_cores_are_bound_as_ever_where_no_node_is_shared(self):
        told, _ = self.deal(OPEN_MPI, "--host", "n1,n2", "-n", "2")
        self.assertEqual(told, ["--bind-to none --host n1,n2 -n 2"] * 2)

    def test_addresses_are_hosts(self):
        told, _ = self.deal(HYDRA, "-hosts", "10.0.0.1,10.0.0.2", "-n", "1")
        self.assertEqual(told, ["-hosts 10.0.0.1 -n 1", "-hosts 10.0.0.2 -n 1"])

    def test_a_host_by_several_names_is_one(self):
        told, _ = self.deal(OPEN_MPI, "--host", "n1,n1.site,n2,n2.site", "-n", "2")
        self.assertEqual(told, ["--host n1,n1.site -n 2", "--host n2,n2.site -n 2"])

    def test_too_few_hosts_are_shared_and_it_is_said(self):
        told, said = self.deal(OPEN_MPI, "--host", "n1,n2", "-n", "2", teams=3)
        self.assertEqual(told, ["--bind-to none --host n1,n2 -n 2"] * 3)
        self.assertIn("3 teams on nodes of their own need as many nodes, and the command has 2: they run side by side on n1, n2, and the loss of a node is not survived",
                      said)

    def test_hosts_without_room_are_shared_and_it_is_said(self):
        told, said = self.deal(OPEN_MPI, "--host", "n1,n2", "-n", "2")
        self.assertEqual(told, ["--bind-to none --host n1,n2 -n 2"] * 2)
        self.assertIn("each of 2 teams needs room for 2 ranks, and n1 has room for 1 (say how many a node takes: n1:2)", said)
        told, _ = self.deal(OPEN_MPI, "--oversubscribe", "--host", "n1,n2", "-n", "2")
        self.assertEqual(told, ["--oversubscribe --host n1 -n 2", "--oversubscribe --host n2 -n 2"])
        told, _ = self.deal(HYDRA, "-ppn", "2", "-hosts", "n1,n2", "-n", "2")
        self.assertEqual(told, ["-ppn 2 -hosts n1 -n 2", "-ppn 2 -hosts n2 -n 2"])
        told, _ = self.deal(OPEN_MPI, "--map-by", "ppr:1:node", "--host", "n1:8,n2:8", "-n", "2")
        self.assertEqual(told, ["--bind-to none --map-by ppr:1:node --host n1:8,n2:8 -n 2"] * 2)

    def test_without_a_number_of_ranks_they_are_shared(self):
        told, said = self.deal(OPEN_MPI, "--host", "n1,n2")
        self.assertEqual(told, ["--bind-to none --host n1,n2"] * 2)
        self.assertIn("how many ranks a team has is not said (-n)", said)

    def test_what_is_left_over_is_named(self):
        told, said = self.deal(OPEN_MPI, "--host=n1,n2,n3,n4,n5", "-n", "2")
        self.assertEqual(told, ["--host n1,n2 -n 2", "--host n3,n4 -n 2"])
        self.assertIn("; not used: n5", said)

    def test_parts_of_other_sizes_are_named(self):
        _, said = self.deal(OPEN_MPI, "--host", "n1:2,n2:3", "-n", "2")
        self.assertIn("their nodes take different numbers of ranks", said)
        for team in range(2):
            self.assertEqual(self.read(f"seen.{team}.sums").splitlines(), sorted(f"{name}={value}" for name, value in TOLD.items()))
        self.deal(OPEN_MPI, "--host", "n1:2,n2:2", "-n", "2")
        self.assertEqual(self.read("seen.0.sums"), "")

    def test_mpich_does_not_add_up_by_nodes_then(self):
        """Nodes of one machine, as it can be told to see them."""
        launcher = dict(debian_mpis()).get("mpich")
        if not launcher:
            self.skipTest("no MPICH here")
        subprocess.run(["mpicc.mpich", SUMS, "-o", self.path("sums")], check=True)

        def sums(nodes, **more):
            """Of each call."""
            told = {"MPIR_CVAR_NUM_CLIQUES": str(nodes), "MPIR_CVAR_CLIQUES_BY_BLOCK": "1", **more}
            lines = subprocess.run([*launcher, "-n", "4", "./sums"], env={**self.env, **told}, cwd=self.dir, check=True, capture_output=True, text=True).stdout
            return {call: [line for line in lines.splitlines() if line.startswith(f"{call} ")] for call in ("Allreduce", "Reduce", "Ireduce", "Scan", "Iscan")}
        one, three = sums(1), sums(3)
        same = [call for call in one if one[call] == three[call]]
        self.assertEqual(same, [], "it need not be told, or the program does not show it")
        self.assertEqual(sums(1, **TOLD), sums(3, **TOLD))

    def test_a_files_words_go_with_its_hosts(self):
        self.write("hosts", "# the site's", "n1 slots=2 user=me", "n2 slots=2", "", "n3 slots=2", "n4 slots=2 max_slots=4")
        told, _ = self.deal(OPEN_MPI, "--hostfile", "hosts", "-n", "3")
        self.assertEqual([words.split()[0] for words in told], ["--hostfile"] * 2)
        self.assertEqual((self.hosts_of(0), self.hosts_of(1)), (["n1 slots=2 user=me", "n2 slots=2"], ["n3 slots=2", "n4 slots=2 max_slots=4"]))
        self.assertFalse(os.path.exists(told[0].split()[1]), "it goes with the job")
        self.write("hosts", "n1:2", "n2:2")
        self.deal(HYDRA, "-f", "hosts", "-n", "2")
        self.assertEqual((self.hosts_of(0), self.hosts_of(1)), (["n1:2"], ["n2:2"]))

    def test_hosts_of_a_variable_are_dealt_too(self):
        self.env["OMPI_MCA_orte_default_hostfile"] = self.path(self.write("hosts", "n1 slots=1", "n2 slots=1"))
        told, _ = self.deal(OPEN_MPI, "-n", "1")
        self.assertTrue(told[0].startswith("--hostfile /"), told)
        self.assertEqual((self.hosts_of(0), self.hosts_of(1)), (["n1 slots=1"], ["n2 slots=1"]))

    def test_nodes_of_an_allocation_are_dealt_too(self):
        self.env["SLURM_JOB_NODELIST"] = "n[1-4]"
        told, _ = self.deal(HYDRA, "-n", "4")
        self.assertEqual(told, ["-hosts n1:2,n2:2 -n 4", "-hosts n3:2,n4:2 -n 4"])

    def test_hosts_of_several_programs_are_dealt_together(self):
        told, _ = self.deal(OPEN_MPI, "--host", "n1,n2", "-n", "1", "true", ":", "--host", "n2:2,n1:2", "-n", "1")
        self.assertEqual(told, ["--host n1 -n 1 true : --host n1:2 -n 1", "--host n2 -n 1 true : --host n2:2 -n 1"])

    def steps(self, *options, teams=2, expect=0):
        """As deal, for srun."""
        with open(self.path("bin", "srun"), "w") as file:
            file.write(LAUNCHER)
        os.chmod(self.path("bin", "srun"), 0o755)
        done = self.holdfast("run", "--replicas", str(teams), "--library", "posix", "--", "srun", *options, "sh", "-c", "exit 0", expect=expect)
        told = []
        for team in range(teams if expect == 0 else 0):
            with open(self.path(f"seen.{team}")) as seen:
                told.append(seen.read().split(" sh ")[0])
        return told, done.stderr

    def test_steps_of_an_allocation_have_nodes_of_their_own(self):
        self.env.update(SLURM_JOB_NODELIST="n[1-5]", SLURM_JOB_ID="7")
        told, said = self.steps("-n4", "--mpi=pmix")
        self.assertEqual(told, ["--nodes=2 --nodelist=n1,n2 --exact --no-kill -n4 --mpi=pmix", "--nodes=2 --nodelist=n3,n4 --exact --no-kill -n4 --mpi=pmix"])
        self.assertIn("team 0 on n1, n2, team 1 on n3, n4; the loss of this node", said)
        self.assertEqual(said.count("nor that of any node where Slurm's job was begun without --no-kill; not used: n5"), 1)
        told, _ = self.steps("-N", "1", teams=3)
        self.assertEqual(told, [f"--nodes=1 --nodelist=n{node} --exact --no-kill" for node in (1, 2, 3)])
        told, _ = self.steps("-w", "n[2-3]", "-n", "1")
        self.assertEqual(told, ["--nodes=1 --nodelist=n2 --exact --no-kill -n 1", "--nodes=1 --nodelist=n3 --exact --no-kill -n 1"])

    def test_steps_on_nodes_of_other_sizes_are_named(self):
        for sizes, differ in (("2(x3),4", True), ("2,4,2,4", False), ("2(x4)", False), ("2(x3)", False)):
            self.env.update(SLURM_JOB_NODELIST="n[1-4]", SLURM_JOB_ID="7", SLURM_JOB_CPUS_PER_NODE=sizes)
            _, said = self.steps("-n4")
            self.assertEqual("their nodes take different numbers of ranks" in said, differ, (sizes, said))
            self.assertEqual(bool(self.read("seen.1.sums")), differ, sizes)

    def test_steps_without_nodes_of_their_own_share_them(self):
        self.env.update(SLURM_JOB_NODELIST="n[1-3]", SLURM_JOB_ID="7")
        told, said = self.steps("-N2", "-n2")
        self.assertEqual(told, ["--overlap --cpu-bind=none -N2 -n2"] * 2)
        self.assertIn("2 teams on nodes of their own need 4 nodes, and there are 3: they run side by side on n1, n2, n3, and the loss of a node is not survived", said)
        _, said = self.steps()
        self.assertIn("how many ranks or nodes a team has is not said (-n, -N)", said)
        self.env["SLURM_NTASKS"] = "2"
        told, _ = self.steps()
        self.assertEqual(told, [f"--nodes=1 --nodelist=n{node} --exact --no-kill" for node in (1, 2)])

    def test_steps_need_an_allocation(self):
        _, said = self.steps("-n", "2", expect=2)
        self.assert_one_sentence(said, "srun and --replicas need an allocation")

    def test_this_node_alone_is_shared(self):
        _, said = self.deal(OPEN_MPI, "--host", "localhost:4", "-n", "1")
        self.assertIn("2 teams share this node; its loss is not survived", said)

    def test_more_ranks_than_cores_are_said(self):
        cores = len(os.sched_getaffinity(0))
        there = f"there {'is' if cores == 1 else 'are'} {cores} core"
        _, said = self.deal(OPEN_MPI, "-n", str(cores))
        self.assertIn(f"its loss is not survived; all their ranks are {2 * cores}, and {there}", said)
        if cores > 1:
            _, said = self.deal(OPEN_MPI, "-n", str(cores // 2))
            self.assertNotIn("core", said)

    def test_a_file_that_names_no_host_is_refused(self):
        for options in (("--hostfile", "missing"), ("--host", ",")):
            _, said = self.deal(OPEN_MPI, *options, "-n", "1", expect=2)
            self.assert_one_sentence(said, f"'{' '.join(options)}' names no host")

    def test_spare_hosts_that_are_of_no_use_are_refused(self):
        for spare, relaunch, hosts, word in (("n9", "0", "n1,n2", "--spare-hosts is about teams that are started again: give --relaunch too"),
                                             (",", "1", "n1,n2", "--spare-hosts is ',', which names no host"),
                                             ("n9", "1", "localhost:4", "--spare-hosts is about teams on several nodes, and all are on this one")):
            _, said = self.deal(OPEN_MPI, "--host", hosts, "-n", "1", expect=2, more=("--relaunch", relaunch, "--spare-hosts", spare))
            self.assert_one_sentence(said, word)

    def test_a_team_on_nodes_of_its_own_may_come_back(self):
        told, _ = self.deal(OPEN_MPI, "--host", "n1,n2", "-n", "1", more=("--relaunch", "1", "--spare-hosts", "n9"))
        self.assertEqual(told, ["--host n1 -n 1", "--host n2 -n 1"])


if __name__ == "__main__":
    unittest.main()
