"""Directories show the checkpoints that are to be seen in them, whatever way a program looks, and nothing else of the kind."""
import os
import shutil
import sys
import unittest

from checkpoint_test import CheckpointTest

WALKS = os.environ.get("HOLDFAST_WALKS", "")
# One line for each way: its name, then what it shows.
PYTHON = """
import os
print("listdir", *sorted(os.listdir("ck")))
print("files", *sorted(e.name for e in os.scandir("ck") if e.is_file()))
"""


# What tests/posix/walks.c prints names for, and what paths.
BY_NAME = ("readdir_r", "scandir", "seekdir", "getdents", "getdents_number", "fts_children")
BY_PATH = ("glob", "ftw", "nftw", "nftw_depth", "nftw_in_place", "fts", "fts_in_place", "fts_from_here")


class CheckpointListings(CheckpointTest):
    def ways(self, into="seen"):
        """As a script: all the ways, and what `ls` says of sizes."""
        with open(self.path("ways.py"), "w") as file:
            file.write(PYTHON)
        return f"""{{ {sys.executable} ways.py; echo ls $(ls ck); echo shell $(cd ck; echo *); echo find $(find ck -type f | sort)
            for way in {" ".join(BY_NAME + BY_PATH)}; do {WALKS} $way ck > walked || echo $way failed >> wrong; grep "not there" walked >> wrong
              echo $way $(sed 's/ .*//' walked | grep -v '^\\(ck/\\)*[.]*/*$\\|^ck$' | sort); done; ls -l ck | awk '$9 ~ /^ck/ {{print "size", $5}}'
            }} >> {into}
            """

    def assert_all_show(self, names, into="seen"):
        lines = [line.split() for line in self.read(into).splitlines()]
        shown = {words[0]: words[1:] for words in lines if words[0] != "size"}
        expected = {way: names for way in ("listdir", "files", "ls", "shell", *BY_NAME)}
        expected.update({way: [f"ck/{name}" for name in names] for way in ("find", *BY_PATH)})
        for way, found in expected.items():
            self.assertEqual(shown[way], found, way)
        self.assertEqual(self.read("wrong"), "")
        return [words[1] for words in lines if words[0] == "size"]

    def test_a_program_lists_what_it_has_written_and_not_what_it_has_removed(self):
        with open(self.path("ck/plain"), "w"):
            pass
        self.run_job("""echo one > ck/ck.1.0; echo two > ck/ck.2.0; echo three > ck/ck.3.0; rm ck/ck.2.0; exec 3> ck/ck.4.0
            """ + self.ways(), "--keep", "9")
        self.assertEqual(self.assert_all_show(["ck.1.0", "ck.3.0", "ck.4.0", "plain"]), ["4", "6", "0"])

    def test_runs_are_told_apart_by_where_their_files_lie(self):
        self.run_job("echo one > ck/ck.1.0")
        self.assertNotIn("run ", self.holdfast("checkpoints").stdout.replace("  run  ", ""), "there is one only")
        self.run_job("mkdir -p other/1 other/2; echo one > other/1/out.0; echo two > other/2/out.0", pattern="other/{step}/out*")
        shown, listed = self.holdfast("checkpoints").stdout, self.json("checkpoints")["checkpoints"]
        for directory in ("ck", "other"):
            run = next(one["run"] for one in listed if one["directory"] == self.path(directory))
            self.assertIn(f"run {run}: in {self.path(directory)}\n", shown)

    def test_what_other_nodes_have_written_is_listed(self):
        self.run_job("""echo $RANK > ck/ck.1.$RANK; [ $RANK = 1 ] || exit 0
            for i in $(seq 100); do [ -e ck/ck.1.0 ] && break; sleep 0.1; done
            """ + self.ways(), ranks=2)
        self.assert_all_show(["ck.1.0", "ck.1.1"])

    def test_what_another_node_has_closed_is_there_at_once(self):
        """Long before it is protected, and so is what is written to its name again."""
        self.run_job("""until_there() { until [ -e $1 ]; do sleep 0.01; done; }
            for turn in 1 2 3; do
              if [ $RANK = 0 ]; then head -c 40000000 /dev/urandom > ck/ck.1.0; touch closed$turn; md5sum < ck/ck.1.0 >> wrote; until_there read$turn
              else until_there closed$turn; ls ck > listed$turn; md5sum < ck/ck.1.0 >> read; touch read$turn; fi
            done; [ $RANK = 0 ] || echo mine > ck/ck.1.1""", "--drain", "none", ranks=2, at_once=True)
        self.assertEqual(self.read("read"), self.read("wrote"))
        self.assertEqual([self.read(f"listed{turn}") for turn in (1, 2, 3)], ["ck.1.0\n"] * 3)

    def beside_stopped_protectors(self, writes, reads):
        """Rank 0 writes while nothing is protected, and rank 1 looks on another node."""
        return self.run_job(f"""until_there() {{ until [ -e $1 ]; do sleep 0.01; done; }}
            if [ $RANK = 0 ]; then {self.strike_protectors("STOP")}; {writes}; touch closed; until_there looked; {self.strike_protectors("CONT")}
            else until_there closed; {reads}; touch looked; echo mine > ck/ck.1.1; fi""", "--drain", "none", "--deadline", "1s", ranks=2, at_once=True)

    def test_what_nobody_protects_holds_a_reader_up_for_one_deadline(self):
        done = self.beside_stopped_protectors("echo zero > ck/ck.1.0", "cat ck/ck.1.0 2> why; cat ck/ck.1.0 2>> why")
        self.assertEqual(self.read("why").count("resource busy"), 2)
        self.assertIn("ck/ck.1.0 was closed on node n1 and is not protected yet", self.read("why"))
        self.assertIn("checkpoint 1 is whole (2 files", done.stderr)

    def test_what_another_node_has_closed_and_removed_is_not_there(self):
        done = self.beside_stopped_protectors("echo zero > ck/ck.1.0; rm ck/ck.1.0", "ls ck > listed; [ ! -e ck/ck.1.0 ] && echo not >> listed")
        self.assertEqual(self.read("listed"), "not\n")
        self.assertNotIn("not protected yet", done.stderr)

    def test_a_file_that_is_written_again_and_again_is_read(self):
        self.run_job("""if [ $RANK = 0 ]; then until [ -e read ]; do head -c 3000000 /dev/zero > ck/ck.1.0; touch closed; done
            else until [ -e closed ]; do sleep 0.01; done; wc -c < ck/ck.1.0 > got; mv got read; echo mine > ck/ck.1.1; fi""", "--drain", "none", ranks=2, at_once=True)
        self.assertEqual(self.read("read"), "3000000\n")

    def test_after_a_restart_only_the_checkpoint_is_listed_that_it_began_with(self):
        with open(self.path("ck/ck.7.0"), "w") as older:
            older.write("plain, of before\n")
        with open(self.path("ck/plain"), "w"):
            pass
        script = """[ -e tried ] || { touch tried
              for s in 10 20; do echo $s > ck/ck.$s.0; done; """ + self.until("20 *whole") + """
              exec 3> ck/ck.30.0; echo half >&3; kill -9 $$; }
            """ + self.ways()
        self.run_job(script, "--restarts", "1")
        self.assertEqual(self.assert_all_show(["ck.20.0", "plain"]), ["3"])

    def test_what_is_no_file_is_there_in_every_attempt_whatever_its_name(self):
        """Wildcards mean the names of directories, links and pipes as well."""
        script = """mkdir -p ck/1/part; [ -p ck/1/pipe ] || { mkfifo ck/1/pipe; ln -s head ck/1/link; echo one > ck/1/head; echo two > ck/1/part/data; }
            { echo through > ck/1/pipe & } ; timeout 10 cat ck/1/pipe; [ -p ck/1/pipe ] && echo pipe; ls ck/1; cat ck/1/link; find ck -type f | sort
            mkdir ck/1/tmp; mv ck/1/tmp ck/1/other; rmdir ck/1/other; rm ck/1/link; ln -s head ck/1/link"""
        options = ("--checkpoint", "ck/{step}/*/*", "--drain", "none")
        for more in ((), ("--resume",)):
            done = self.run_job(script, *options, *more, nodes=3, scheme="rs:2+1", pattern="ck/{step}/*")
            self.assertEqual(done.stdout.split(), "through pipe head link part pipe one ck/1/head ck/1/part/data".split(), done.stderr)

    def test_a_temporary_file_with_a_checkpoints_name_is_one_in_every_attempt(self):
        script = "mkdir -p ck/$STEP; echo a > ck/$STEP/data; sed -i s/a/b/ ck/$STEP/data; cat ck/$STEP/data; ls ck/$STEP"
        for step, more in ((1, ()), (2, ("--resume",))):
            done = self.run_job(f"STEP={step}; {script}", "--drain", "none", *more, nodes=3, scheme="rs:2+1", pattern="ck/{step}/*")
            self.assertEqual(done.stdout.split(), ["b", "data"], done.stderr)
            self.assertEqual(self.states()[step], "whole")
        self.assertEqual([name for _, _, names in os.walk(self.path("ck")) for name in names], [])

    def test_a_drained_checkpoint_is_listed_once(self):
        self.run_job("echo 1 > ck/ck.1.0")
        self.run_job("echo 2 > ck/ck.2.0; " + self.ways(), "--resume")
        self.assert_all_show(["ck.1.0", "ck.2.0"])
        # And where the nodes have lost it.
        self.lose("n1", "n2", "n3")
        self.assertEqual(self.states()[2], "drained")
        os.mkdir(self.path("second"))
        self.run_job(self.ways("second/seen"), "--resume")
        self.assert_all_show(["ck.2.0"], "second/seen")

    def test_a_program_without_a_checkpoint_sees_a_directory_as_it_is(self):
        for name in ("ck.7.0", "ck.8.0", "plain"):
            with open(self.path("ck", name), "w"):
                pass
        self.run_job(self.ways())
        self.assert_all_show(["ck.7.0", "ck.8.0", "plain"])

    def test_the_directory_is_there_as_soon_as_a_checkpoint_is(self):
        os.rmdir(self.path("ck"))
        self.run_job("echo 1 > ck/ck.1.0; [ -d ck ] && ls ck >> seen", "--drain", "none")
        self.assertEqual(self.read("seen"), "ck.1.0\n")
        os.rmdir(self.path("ck"))
        self.run_job(f"{WALKS} scandir ck >> found; [ -d ck ] && ls ck >> seen", "--resume", "--drain", "none")
        self.assertEqual(self.read("seen"), "ck.1.0\n" * 2)
        self.assertIn("ck.1.0 8\n", self.read("found"))

    def test_a_walk_shows_what_it_is_asked_for_and_no_more(self):
        pattern = "ck/{step}/*"
        script = """mkdir -p ck/1 ck/2/skipped; echo one > ck/1/a; echo two > ck/1/b; echo three > ck/2/c
            for way in fts nftw nftw_depth ftw; do """ + WALKS + """ $way ck | sort > by.$way; done; """ + WALKS + """ nftw_skips ck > by.skips"""
        self.run_job(script, pattern=pattern)
        names = ["ck", "ck/1", "ck/1/a", "ck/1/b", "ck/2", "ck/2/c", "ck/2/skipped"]
        for way in ("fts", "nftw", "nftw_depth", "ftw"):
            lines = [line.split() for line in self.read(f"by.{way}").splitlines()]
            self.assertEqual(sorted({words[0] for words in lines}), names, way)
            self.assertEqual({words[0]: words[-1] for words in lines if words[-1] not in ("-1",)}, {"ck/1/a": "4", "ck/1/b": "4", "ck/2/c": "6"}, way)
        depth = [line.split()[2] for line in self.read("by.nftw").splitlines() if line.startswith("ck/1/a")]
        self.assertEqual(depth, ["2"])
        # After the first file of a directory its other ones are skipped.
        skips = self.read("by.skips").split()
        self.assertEqual(len([name for name in skips if name.startswith("ck/1/")]), 1, skips)

    def test_a_directory_behind_a_link_is_as_any_other(self):
        os.rmdir(self.path("ck"))
        os.makedirs(self.path("far/deep"))
        os.symlink("far/deep", self.path("ck"))
        done = self.run_job("echo 1 > ck/ck.1.0; ls ck > seen; ls far/deep >> seen")
        self.assertIn("checkpoint 1 is whole", done.stderr)
        self.assertEqual(self.read("seen"), "ck.1.0\n" * 2)
        self.assertEqual(self.read("far/deep/ck.1.0"), "1\n")
        self.run_job("cat ck/ck.1.0 > got", "--resume")
        self.assertEqual(self.read("got"), "1\n")
        self.assertEqual(len(self.json("checkpoints", "ck/ck.{step}.{rank}")["checkpoints"]), 1)

    def test_directories_of_steps_are_removed_with_their_files_and_not_before(self):
        pattern = "ck/{step}/rank.{rank}"
        self.run_job("""mkdir ck/10 ck/20; echo a > ck/10/rank.0; echo b > ck/20/rank.0
            rmdir ck/10 2>/dev/null && echo wrong >> seen; ls ck >> seen; ls ck/10 >> seen; rm -r ck/10; ls ck >> seen""", pattern=pattern)
        self.assertEqual(self.read("seen"), "10\n20\nrank.0\n20\n")
        shutil.rmtree(self.path("ck"))
        self.run_job("ls -R ck > again", "--resume", pattern=pattern)
        self.assertEqual(self.read("again"), "ck:\n20\n\nck/20:\nrank.0\n")

    def test_empty_directories_of_other_steps_are_gone_when_a_program_goes_on(self):
        """It makes a directory for each step, and begins with the last one that it finds. It dies in step 30, once."""
        os.mkdir(self.path("case"))
        script = f"""last=$(ls case | sort -n | tail -1); echo "from ${{last:-nothing}}:" $(ls case) >> began
            [ -z "$last" ] || cat case/$last/u case/$last/p >> began || exit 9
            for s in 10 20 30 40; do [ $s -gt ${{last:-0}} ] || continue
              mkdir case/$s; echo $s > case/$s/u
              [ $s != 30 ] || [ -e died ] || {{ touch died; {self.until("20 *whole")}
                exec 3> case/30/p; kill -9 $$; }}
              echo $s > case/$s/p
            done"""
        patterns = ("--checkpoint", "case/{step}/p", "--restarts", "1")
        self.run_job(script, *patterns, nodes=3, scheme="rs:2+1", pattern="case/{step}/u")
        self.assertEqual(self.read("began"), "from nothing:\nfrom 20: 20\n20\n20\n")
        # What is at the paths is what a native run goes on from.
        self.assertEqual([(name, sorted(os.listdir(self.path("case", name)))) for name in os.listdir(self.path("case"))], [("40", ["p", "u"])])
        # Where nothing of it is at the paths its directory comes back.
        shutil.rmtree(self.path("case"))
        self.run_job("ls case case/40 > again", *patterns, "--resume", nodes=3, scheme="rs:2+1", pattern="case/{step}/u")
        self.assertEqual(self.read("again"), "case:\n40\n\ncase/40:\np\nu\n")

    def test_so_they_are_when_a_job_ends_of_which_no_checkpoint_is_whole(self):
        """The next job begins from the start, and so does its program."""
        self.run_job("mkdir -p case/1; exec 3> case/1/u; echo half >&3; kill -9 $$", pattern="case/{step}/u", nodes=3, scheme="rs:2+1", expect=137)
        self.run_job("ls case > began; exit 0", "--resume", pattern="case/{step}/u", nodes=3, scheme="rs:2+1")
        self.assertEqual(self.read("began"), "")

    def test_so_they_are_below_a_directory_for_each_rank_and_where_they_hold_others(self):
        os.mkdir(self.path("case"))
        script = """f=p$RANK/$S/uniform/t; mkdir -p ${f%/t} ck/$S; echo $S > $f; ls p$RANK >> listed
            [ $S = 1 ] && touch p0/1/kept"""
        options = dict(nodes=3, scheme="rs:2+1", pattern="p{rank}/{step}/uniform/t", ranks=2)
        for step, more in ((1, ()), (2, ("--resume",)), (3, ("--resume",))):
            self.run_job(f"S={step}; {script}; true", "--drain", "none", *more, **options)
        self.assertEqual(self.read("listed").split(), ["1", "1", "1", "2", "1", "2", "1", "2", "3", "2", "3"])
        # A plain file of the user's keeps its directory; what no pattern means is not touched.
        found = sorted(os.path.relpath(at, self.dir) for top in ("p0", "p1", "ck") for at, _, _ in os.walk(self.path(top)))
        self.assertEqual(found, ["ck", "ck/1", "ck/2", "ck/3", "p0", "p0/1", "p0/3", "p0/3/uniform", "p1", "p1/3", "p1/3/uniform"])

    def test_what_gave_way_to_newer_ones_can_be_removed(self):
        """Programs that keep a few checkpoints themselves remove one that they wrote a while ago."""
        script = "".join(f"echo {step} > ck/ck.{step}.0; {self.until(f'^ *{step} *whole')}; " for step in (1, 2, 3))
        gone = f"for look in $(seq 100); do {self.command('checkpoints')} 2> /dev/null | grep -q '^ *1 ' || break; sleep 0.1; done; "
        twice = "rm ck/ck.3.0; rm ck/ck.3.0 || echo no such file; echo 3 > ck/ck.3.0"
        said = self.run_job(script + gone + "rm ck/ck.1.0 && echo removed; rm ck/ck.9.0 || echo no such file; " + twice, "--keep", "1", "--drain", "none")
        self.assertEqual(said.stdout, "removed\nno such file\nno such file\n", said.stderr)
        said = self.run_job("rm ck/ck.2.0 && echo removed; rm ck/ck.9.0 || echo no such file", "--resume", "--drain", "none")
        self.assertEqual(said.stdout, "removed\nno such file\n", said.stderr)

    def test_a_directory_of_which_the_program_sees_nothing_is_removed_as_if_it_were_empty(self):
        """Its files were drained before, and stay: they belong to the user."""
        pattern = "ck/{step}/a.{rank}"
        self.run_job("mkdir ck/1; echo 1 > ck/1/a.0", pattern=pattern)
        said = self.run_job("mkdir ck/2; echo 2 > ck/2/a.0; rm ck/1/a.0; ls ck/1; rmdir ck/1 && echo gone; rmdir ck/2 || echo not empty", "--resume", pattern=pattern)
        self.assertEqual(said.stdout, "gone\nnot empty\n", said.stderr)
        self.assertEqual((self.read("ck/1/a.0"), self.read("ck/2/a.0")), ("1\n", "2\n"))

    def unseen_directory(self, pattern):
        """Of step 1, whose drained file the third job does not see."""
        for step, more in (("1", ()), ("2", ("--resume",))):
            self.run_job(f"mkdir ck/{step}; echo {step} > ck/{step}/a.0", *more, pattern=pattern)

    def test_such_a_directory_is_not_listed(self):
        """A rank that dies while its directory gets its name leaves such files as well. A link to a directory is the program's own, and so is a directory that it has just made."""
        pattern, walk = "ck/{step}/a.{rank}", "import os; print(sorted(d for _, ds, _ in os.walk('ck') for d in ds))"
        self.unseen_directory(pattern)
        os.makedirs(self.path("archive"))
        with open(self.path("archive/a.0"), "w") as file:
            file.write("archived\n")
        os.symlink("../archive", self.path("ck/4"))
        walks = "".join(f"{WALKS} {way} ck | sed 's/ .*//; s,/*$,,' | grep -v '^ck$' | sort -u > {way}; " for way in BY_PATH)
        said = self.run_job(f"""mkdir ck/3; ls ck; find ck -type d | sort; {sys.executable} -c "{walk}"; {walks}
            echo new > ck/3/a.0; ls ck""", "--resume", "--drain", "none", pattern=pattern)
        self.assertEqual(said.stdout, "2\n3\n4\nck\nck/2\nck/3\n['2', '3', '4']\n2\n3\n4\n", said.stderr)
        for way in BY_PATH:
            found = [line for line in self.read(way).split() if (line.count("/") == 1 or line.startswith("ck/1")) and "." not in line]
            self.assertEqual(found, ["ck/2", "ck/3", "ck/4"], way)

    def test_another_one_may_get_the_name_of_such_a_directory(self):
        pattern = "ck/{step}/a.{rank}"
        rename = f"{sys.executable} -c \"import os; os.rename('ck/t', 'ck/1')\" 2>> said"
        self.unseen_directory(pattern)
        said = self.run_job(f"""mkdir -p ck/t/below; echo anew > ck/t/a.0; echo head > ck/t/head; exec 3>> ck/t/a.0; {rename}; ls ck/1 ck/t; exec 3>&-
            {rename}; ls ck ck/1; cat ck/1/a.0 ck/1/head""", "--resume", "--drain", "none", pattern=pattern)
        self.assertEqual(said.stdout, "ck/1:\n\nck/t:\na.0\nbelow\nhead\nck:\n1\n2\n\nck/1:\na.0\nbelow\nhead\nanew\nhead\n", said.stderr)
        self.assertEqual(self.read("said").count("Directory not empty"), 1, "while a file in it is open to write")
        self.assertEqual((self.read("ck/1/a.0"), self.read("ck/1/head"), os.path.exists(self.path("ck/t"))), ("1\n", "head\n", False))

    def test_what_a_program_removes_is_not_there_though_its_drained_files_are(self):
        """Of the checkpoint that it has gone on from. Its user's files stay as they were."""
        pattern = "ck/{step}/a.{rank}"
        self.unseen_directory(pattern)
        look = "for d in 1 2; do [ -d ck/$d ] && echo $d is there; done; ls ck"
        makes = f"""{sys.executable} -c "import os; os.mkdir('ck/2')" 2>> said"""
        said = self.run_job(f"""rm ck/2/a.0; [ -d ck/2 ] && ls -A ck/2 && echo empty; echo anew > ck/2/a.0; cat ck/2/a.0
            rm -r ck/2; {look}; cd ck/2 2>> said; ls ck/2 2>> said; rmdir ck/2 2>> said; mv ck/2 ck/9 2>> said; [ -e ck/9 ] || echo not moved
            {makes} && {look}; ls -A ck/2; {makes} || echo taken; rmdir ck/2; {look}; mkdir ck/t; echo other > ck/t/a.0; mv ck/t ck/2; {look}; ls -A ck/2; cat ck/2/a.0
            rm -rf ck/2; mkdir -p ck/2; cp -r ck/2 ck/t2; mv ck/t2 ck/2; ls ck/2; rmdir ck/2/t2; rm -r ck/1 && {look}; mkdir ck/3; echo three > ck/3/a.0""",
                            "--resume", "--drain", "none", pattern=pattern)
        self.assertEqual(said.stdout, "empty\nanew\n1 is there\nnot moved\n1 is there\n2 is there\n2\ntaken\n1 is there\n1 is there\n2 is there\n2\na.0\nother\nt2\n2 is there\n2\n",
                         said.stderr)
        self.assertEqual((self.read("said").count("No such file or directory"), self.read("said").count("can't cd")), (3, 1), self.read("said"))
        self.assertEqual((self.read("ck/1/a.0"), self.read("ck/2/a.0")), ("1\n", "2\n"))
        self.assertEqual([os.listdir(self.path(f"ck/{step}")) for step in (1, 2)], [["a.0"]] * 2)

    def test_notes_of_removed_directories_are_in_those_of_steps_alone(self):
        """The directory above them holds nothing that is seen, either. It is nobody's note who removes that one, and those of a job that was killed are no matter of the next one."""
        pattern = "ck/{step}/a.{rank}"
        self.unseen_directory(pattern)
        said = self.run_job("rm -r ck/2; rmdir ck; rmdir ck; ls -A ck; mkdir ck/3; echo three > ck/3/a.0", "--resume", "--drain", "none", pattern=pattern)
        self.assertEqual((said.stdout, sorted(os.listdir(self.path("ck")))), ("", ["1", "2", "3"]), said.stderr)
        os.makedirs(self.path("ck/4"))
        for step in (2, 4):
            with open(self.path(f"ck/{step}/.holdfast-removed-0123456789abcdef.1"), "w"):
                pass
        said = self.run_job("ls -A ck/2; rm -r ck/2 ck/4; mkdir ck/2 && echo made; echo two > ck/2/a.0", "--drain", "none", pattern=pattern)
        self.assertEqual((said.stdout, os.listdir(self.path("ck/2"))), ("a.0\nmade\n", []), said.stderr)

    def test_a_directory_below_a_steps_own_is_not_there_either(self):
        pattern = "ck/{step}/sub/a.{rank}"
        for step, more in ((1, ()), (2, ("--resume",))):
            self.run_job(f"mkdir -p ck/{step}/sub; echo {step} > ck/{step}/sub/a.0", *more, pattern=pattern)
        said = self.run_job("""rm -r ck/2; [ -e ck/2 ] || echo gone; mkdir ck/2; ls -A ck/2; [ -e ck/2/sub ] || echo empty; rm -r ck/2; mkdir -p ck/2/sub; ls -A ck/2
            rm -r ck/2; rmdir ck/2 2>> said || echo twice; mkdir -p ck/3/sub; echo three > ck/3/sub/a.0""", "--resume", "--drain", "none", pattern=pattern)
        self.assertEqual(said.stdout, "gone\nempty\nsub\ntwice\n", said.stderr)
        self.assertEqual((self.read("ck/2/sub/a.0"), os.listdir(self.path("ck/2"))), ("2\n", ["sub"]))

    def test_empty_directories_of_before_stay_for_a_new_job(self):
        for step in (1, 2, 3):
            os.makedirs(self.path("case", str(step)))
        self.run_job("ls case > began; echo 2 > case/2/u; exit 3", "--resume", pattern="case/{step}/u", nodes=3, scheme="rs:2+1", expect=3)
        self.assertEqual(self.read("began"), "1\n2\n3\n")

    def test_a_directory_that_holds_some_is_moved_by_a_copy(self):
        rename = "import os; os.rename('ck/11', 'ck/12')"
        done = self.run_job(f"""mkdir ck/10 ck/empty; echo data > ck/10/x.0; mv ck/10 ck/11; cat ck/11/x.0 > got; [ ! -e ck/10 ] || echo there >> got
            mv ck/empty ck/20; [ -d ck/20 ] || echo lost >> got; python3 -c "{rename}" 2> error""", pattern="ck/{step}/x.{rank}", expect=1)
        self.assertEqual(self.read("got"), "data\n")
        self.assertIn("Invalid cross-device link", self.read("error"))
        self.assertRegex(self.read("error"), "ck/11: it holds checkpoints, which keep their names: rename each of them")
        self.assertIn("checkpoint 11 is whole (1 file", done.stderr)

    def test_files_whose_directory_gets_its_name_by_a_rename_are_checkpoints(self):
        # As BoxLib and its kin write: all below a temporary directory, which is renamed when all is there. A step that is not complete keeps that name.
        pattern = "ck/chk{step}/Level_*/Cell_{rank}"
        self.run_job("""[ $RANK = 0 ] || exit 0; mkdir -p ck/chk00010.temp/Level_0 ck/chk00010.temp/Level_1 ck/chk00020.temp/Level_0
            for l in 0 1; do for r in 0 1; do echo $l$r > ck/chk00010.temp/Level_$l/Cell_$r; done; done; echo head > ck/chk00010.temp/Header
            mv ck/chk00010.temp ck/chk00010; echo half > ck/chk00020.temp/Level_0/Cell_0
            cat ck/chk00010/Header ck/chk00010/Level_*/Cell_* > seen; ls ck/chk00010/Level_1 >> seen""", "--drain", "none", pattern=pattern, ranks=2)
        self.assertEqual(self.read("seen"), "head\n00\n01\n10\n11\nCell_0\nCell_1\n")
        self.assertEqual((os.listdir(self.path("ck/chk00010/Level_0")), self.read("ck/chk00010/Header")), ([], "head\n"))
        self.assertEqual(self.states(pattern), {10: "whole"})
        shutil.rmtree(self.path("holdfast-nodes/n1"))
        self.run_job("[ $RANK = 0 ] || exit 0; cat ck/chk00010/Level_*/Cell_* > again", "--resume", pattern=pattern, ranks=2)
        self.assertEqual(self.read("again"), "00\n01\n10\n11\n")

    def test_directories_that_have_a_name_of_checkpoints_are_none_when_their_directory_gets_its_name(self):
        patterns = ["ck/chk{step}/*", "ck/chk{step}/Level_*/*"]
        done = self.run_job("""mkdir -p ck/new/Level_0; echo head > ck/new/Header; echo cell > ck/new/Level_0/Cell; ln -s Level_0 ck/new/also
            mv ck/new ck/chk10; cat ck/chk10/Header ck/chk10/Level_0/Cell > seen""", "--checkpoint", patterns[1], "--drain", "none", pattern=patterns[0])
        self.assertEqual(self.read("seen"), "head\ncell\n")
        self.assertNotIn("plain", done.stderr)
        self.assertIn("checkpoint 10 is whole (2 files", done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("ck/chk10"))), ["Level_0", "also"])

    def rename_open(self, end, *options, step=3, pattern="ck/{step}/*", **more):
        """A job that gives directories their names while it has a file in each open to write: up to that step, of which `end` is the end."""
        with open(self.path("renames.py"), "w") as script:
            script.write(f"""
import os, signal, sys
for s in range(1, {step} + 1):
    os.mkdir(f"ck/tmp.{{s}}")
    state = open(f"ck/tmp.{{s}}/state", "w")
    other = os.dup(state.fileno())
    state.write(f"state {{s}}"), state.flush()
    with open(f"ck/tmp.{{s}}/head", "w") as head:
        head.write("head")
    os.rename(f"ck/tmp.{{s}}", f"ck/{{s}}")
    assert sorted(os.listdir(f"ck/{{s}}")) == ["head", "state"] and open(f"ck/{{s}}/state").read() == f"state {{s}}"
    state.write(", the end"), state.flush()
    if s == {step}:
        {end}
    os.close(other), state.close()
""")
        return self.run_job(f"exec {sys.executable} renames.py", "--drain", "none", *options, nodes=3, scheme="rs:2+1", pattern=pattern, **more)

    def found(self, step, pattern="ck/{step}/*"):
        """By a job that goes on from that step, on other nodes' disks."""
        self.lose("n1")
        self.run_job(f"ls ck/{step} > listed; cat ck/{step}/state > got", "--resume", "--drain", "none", nodes=3, scheme="rs:2+1", pattern=pattern)
        return self.read("listed").split(), self.read("got")

    def closes_after_the_rename(self, pattern, files):
        done = self.rename_open("pass", "--keep", "9", pattern=pattern)
        self.assertNotIn("plain", done.stderr)
        self.assertIn(f"checkpoint 3 is whole ({files} file", done.stderr)
        self.assertEqual(self.states(pattern), {1: "superseded", 2: "superseded", 3: "whole"})
        self.assertEqual(self.found(3, pattern), (["head", "state"], "state 3, the end"))

    def test_a_file_that_is_open_when_its_directory_gets_its_name_belongs_to_the_checkpoint_when_it_is_closed(self):
        self.closes_after_the_rename("ck/{step}/*", 2)

    def test_so_it_does_where_it_is_the_only_one(self):
        self.closes_after_the_rename("ck/{step}/state", 1)

    def test_so_it_does_where_its_process_ends_well_without_a_close(self):
        done = self.rename_open("os._exit(0)")
        self.assertIn("checkpoint 3 is whole (2 files", done.stderr)
        self.assertEqual(self.found(3), (["head", "state"], "state 3, the end"))

    def test_one_that_gets_another_name_before_it_is_closed_is_none(self):
        done = self.rename_open("os.rename('ck/3/state', 'ck/3/.moved')", pattern="ck/{step}/state")
        self.assertIn("checkpoint 2 is whole (1 file", done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("ck/3"))), [".moved", "head"])

    def test_where_it_is_never_closed_its_checkpoint_is_not_whole(self):
        self.rename_open("os.kill(os.getpid(), signal.SIGKILL)", "--keep", "9", expect=137)
        self.assertEqual(self.states(), {1: "superseded", 2: "whole", 3: "torn"})
        self.assertEqual(self.found(2), (["head", "state"], "state 2, the end"))

    def test_where_another_process_writes_on_its_checkpoint_is_not_whole(self):
        done = self.rename_open("import subprocess; subprocess.Popen(['sleep', '5'], stdout=state.fileno(), stderr=subprocess.DEVNULL)", "--keep", "9", expect=123)
        self.assertRegex(done.stderr, r"ck/3/state: a program has .*open to write")
        self.assertIn("the program has ended well, and checkpoint 3 is not protected", done.stderr)
        self.assertEqual(self.states(), {1: "superseded", 2: "whole", 3: "torn"})

    def test_one_that_is_open_under_its_former_name_is_not_written_by_its_new_one_as_well(self):
        done = self.rename_open("os.system('echo more >> ck/3/state; echo $? > status')")
        self.assertNotEqual(self.read("status"), "0\n")
        self.assertIn("ck/3/state: it has been open to write since before its directory got its name", done.stderr)

    def test_files_of_a_directory_that_gets_its_name_and_are_open_stay_plain(self):
        done = self.run_job("""[ $RANK = 0 ] || exit 0; mkdir ck/a; (until [ -e go ]; do sleep 0.1; done; mv ck/a ck/10) & exec 3> ck/a/x.0; echo x >&3
            echo y > ck/a/x.1; touch go; wait; cat ck/10/x.0 ck/10/x.1 > got""",
                            "--drain", "none", pattern="ck/{step}/x.{rank}", ranks=2, expect=123)
        self.assertRegex(done.stderr, r"ck/10/x.0: a program has .*open to write.*; it stays a plain file")
        self.assertEqual(self.states("ck/{step}/x.{rank}"), {10: "torn"})
        self.assertEqual((self.read("got"), os.listdir(self.path("ck/10"))), ("x\ny\n", ["x.0"]))


if __name__ == "__main__":
    unittest.main()
