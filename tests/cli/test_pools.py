"""holdfast run --local: the nodes' own directories as a pool. The nodes here are agents of one machine, each with a name of its own."""
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from command import LOSE_AGENT
from pooled import PooledTest

# Has a file open that is written anew meanwhile.
READER = """
import errno
whole = open("out.dat", "rb").read()
file = open("out.dat", "rb", buffering=0)
file.read(1)
print("open", flush=True)
input()
try:
    while file.read(1 << 16):
        pass
    print("read")
except OSError as error:
    print(errno.errorcode[error.errno])
print("the same" if open("out.dat", "rb").read() == whole else "another")
"""
# The same, of one that has not written by then.
LATE_WRITER = """
import errno, os
file = open("out.dat", "r+b", buffering=0)
print("open", flush=True)
input()
try:
    file.write(b"1")
    os.fsync(file.fileno())
    print("written")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Pools(PooledTest):
    def test_this_node_has_the_name_that_it_is_given(self):
        self.holdfast("run", "--protect", "mirror:1", "--path", "*.dat", "--local", self.path("disk-{node}"), "--node-name", "me", "--",
                      "sh", "-c", "echo one > one.dat; echo $HOLDFAST_NODE > node")
        self.assertEqual(list(self.members("one.dat")), ["me"])
        with open(self.path("node")) as file:
            self.assertEqual(file.read(), f"{socket.gethostname()} me\n")
        # Among others it is the one that needs no other way.
        self.holdfast("run", "--protect", "mirror:2", "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", "me,n2", "--node-name", "me",
                      "--with", "env ON={node}", "--", "sh", "-c", "echo two > two.dat")
        self.assertEqual(sorted(self.members("two.dat")), ["me", "n2"])
        refused = self.holdfast("run", "--node-name", "a:b", "--", "true", expect=2)
        self.assertIn("--node-name is 'a:b'", refused.stderr)

    def test_agents_of_hosts_are_asked_and_ended_here_or_there(self):
        self.holdfast("agents", "start", "--hosts", "n[1-3]", "--with", "env ON={node}", "--make", self.path("disk-{node}"))
        self.assertEqual([agent["node"] for agent in self.json("agents", "status", "--hosts", "n[1-2]")], ["n1", "n2"])
        said = self.holdfast("agents", "status", "--hosts", "n[1-2]", "--with", "env ON={node}").stdout
        self.assertEqual(said.count(" up "), 2, said)
        self.holdfast("agents", "stop", "--hosts", "n1")
        self.holdfast("agents", "stop", "--hosts", "n2", "--with", "env ON={node}")
        self.assertEqual([agent["node"] for agent in self.json("agents", "status")], ["n3"])
        refused = self.holdfast("agents", "stop", "--with", "env ON={node}", expect=3)
        self.assertIn("name them with --hosts", refused.stderr)

    def test_simulated_nodes_that_were_removed_are_made_anew(self):
        words = ["run", "--simulate-nodes", "3", "--protect", "mirror:2", "--path", "*.dat", "--", "sh", "-c", "echo one > one.dat"]
        self.holdfast(*words)
        self.holdfast("rm", "one.dat")
        shutil.rmtree(self.path("holdfast-nodes"))
        self.holdfast(*words)
        self.assertEqual(self.holdfast("cat", "one.dat").stdout, "one\n")

    def test_each_node_gives_its_directory_and_each_file_has_some_of_them(self):
        self.run_on("n[1-8]", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > f$i.dat; done")
        used = set()
        for i in range(1, 13):
            members = self.members(f"f{i}.dat")
            self.assertEqual(len(members), 3)
            used |= set(members)
            self.assertEqual(self.holdfast("cat", f"f{i}.dat").stdout, f"{i}\n")
        self.assertGreater(len(used), 5, used)
        self.holdfast("verify", *(f"f{i}.dat" for i in range(1, 13)))
        listed = self.holdfast("ls", f"n1:{self.path('disk-n1')}").stdout
        self.assertEqual(listed.count(".dat"), sum("n1" in self.members(f"f{i}.dat") for i in range(1, 13)))
        self.assertIn("pool ", self.holdfast("targets", "f1.dat").stdout)
        self.holdfast("rm", *(f"f{i}.dat" for i in range(1, 13)))
        self.assertEqual([n for i in range(1, 9) for n in os.listdir(self.path(f"disk-n{i}")) if ".dat" in n], [])

    def test_agents_that_end_when_nobody_needs_them_wait_for_a_program_that_runs(self):
        """Nobody is connected while it prepares itself, nor between its files."""
        nodes = ["n1", "n2", "n3"]
        directories = [f"{node}:{self.path('disk-' + node)}" for node in nodes]
        for node, directory in zip(nodes, directories):
            self.holdfast("agents", "start", "--make", "--node", node, "--linger", "4", directory.split(":")[1])
        self.holdfast("run", "--protect", "mirror:2", "--path", "*.dat", "--local", ",".join(directories), "--", "sh", "-c",
                      "sleep 7; echo one > one.dat; sleep 7; echo two > two.dat")
        self.assertEqual([self.holdfast("cat", name).stdout for name in ("one.dat", "two.dat")], ["one\n", "two\n"])
        deadline = time.monotonic() + 60
        while glob.glob(self.path("agents", "n*.agent")):  # who asks them is a client
            self.assertLess(time.monotonic(), deadline, "they end after the job")
            time.sleep(0.1)

    def test_a_lost_node_is_replaced_in_the_file_alone(self):
        self.run_on("n1,n2,n3,n4,n5", "echo precious > out.dat")
        members = sorted(self.members())
        spare = sorted({"n1", "n2", "n3", "n4", "n5"} - set(members))
        self.lose(members[0])
        self.assertIn("--onto-live", self.holdfast("status", "out.dat", expect=1).stdout)
        self.holdfast("repair", "out.dat", "--onto-live")
        after = self.members()
        self.assertEqual(set(after) & set(members), set(members[1:]))
        self.assertTrue(set(after) - set(members) <= set(spare), after)
        last = (set(spare) - set(after)).pop()
        self.lose(members[1])
        self.holdfast("repair", "out.dat", "--replace", f"{members[1]}:{self.path('disk-' + members[1])}={last}:{self.path('disk-' + last)}")
        self.lose(members[2])
        self.assertEqual(self.holdfast("cat", "out.dat").stdout, "precious\n")
        refused = self.holdfast("repair", "out.dat", "--onto-live", expect=3)
        self.assert_one_sentence(refused.stderr, "1 lost member", "start agents on more nodes")

    def test_a_file_goes_over_the_nodes_that_live_where_too_few_are_free(self):
        """A file that goes round all nodes but one has nowhere to give the part of the second one that is lost."""
        self.run_on("n[1-6]", "seq 200000 > out.dat; chmod 640 out.dat; touch -d 2020-02-02 out.dat", "--striping-unit", "16k", "--striping-factor", "5", scheme="mirror:2")
        content = self.cat()
        self.assertEqual(len(content), 1288895)
        gone = set()
        for last in (False, True):
            lost = sorted(self.members())[0]
            gone.add(lost)
            self.lose(lost)
            self.assertEqual(self.cat(), content)
            if not last:
                self.assertIn("rebuilt", self.holdfast("repair", "out.dat", "--onto-live").stdout)
        writer = self.begin("run", "--path", "*.dat", "--", sys.executable, "-c", "f = open('out.dat', 'r+b', buffering=0); f.write(b'0'); print('open', flush=True); input()")
        self.assertEqual(writer.stdout.readline(), "open\n")
        refused = self.holdfast("repair", "out.dat", "--onto-live", expect=3)
        self.assert_one_sentence(refused.stderr, "too few nodes are free for its lost members", "out.dat is being written; try again when that program has closed it")
        writer.communicate("\n", timeout=30)
        self.assertEqual(writer.returncode, 0)
        content, looks = b"0" + content[1:], self.looks()
        reader, late = (self.begin("run", "--path", "*.dat", "--", sys.executable, "-c", program) for program in (READER, LATE_WRITER))
        self.assertEqual([job.stdout.readline() for job in (reader, late)], ["open\n"] * 2)
        self.assertIn("written anew over 3 nodes", self.holdfast("repair", "out.dat", "--onto-live").stdout)
        self.holdfast("verify", "out.dat")
        self.assertEqual((self.cat(), self.looks()), (content, looks))
        self.assertEqual(len(self.members()), 3)
        self.assertFalse(gone & set(self.members()))
        told, said = reader.communicate("\n", timeout=30)
        self.assertIn((reader.returncode, told), ((0, "read\nthe same\n"), (0, "ESTALE\nthe same\n")), said)
        told, said = late.communicate("\n", timeout=30)
        self.assertEqual((late.returncode, told), (0, "ESTALE\n"), said)
        self.assertEqual((self.cat(), self.looks()), (content, looks))
        for node in range(1, 7):
            if os.path.exists(self.path(f"disk-n{node}")):
                kept = [name for name in os.listdir(self.path(f"disk-n{node}")) if name.startswith("out.dat-")]
                self.assertEqual(len(kept), f"n{node}" in self.members(), "nothing of the old file is left")
        self.lose(sorted(self.members())[0])
        self.assertIn("rebuilt", self.holdfast("repair", "out.dat", "--onto-live").stdout)
        self.assertEqual(self.cat(), content)

    def looks(self):
        state = os.stat(self.path("out.dat"))
        return (state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns)

    def test_no_two_members_go_to_one_node(self):
        self.run_on("n1,n2,n3,n4,n5,n6", "seq 100000 > out.dat")
        members = sorted(self.members())
        self.holdfast("agents", "stop", *(set(f"n{i}" for i in range(1, 7)) - set(members)))
        for directory in ("spare-a", "spare-b"):
            os.mkdir(self.path(directory))
        self.holdfast("agents", "start", "--node", "n9", self.path("spare-a"), self.path("spare-b"))
        place = {node: f"{node}:{self.path('disk-' + node)}" for node in members}
        a, b = f"n9:{self.path('spare-a')}", f"n9:{self.path('spare-b')}"
        before = self.members()
        refused = self.holdfast("repair", "out.dat", "--replace", f"{place[members[0]]}={a}", "--replace", f"{place[members[1]]}={b}", expect=3)
        self.assert_one_sentence(refused.stderr, "two places", "on one node")
        refused = self.holdfast("repair", "out.dat", "--replace", f"{place[members[0]]}={a}", "--replace", f"{place[members[0]]}={b}", expect=3)
        self.assert_one_sentence(refused.stderr, "name one of them")
        self.assertEqual(self.members(), before)

    def write_racks(self, **racks):
        with open(self.path("racks"), "w") as file:
            file.writelines(f"{node} {rack}\n" for node, rack in racks.items())

    def test_a_lost_node_is_replaced_where_no_row_gets_two_units_in_one_rack(self):
        """Rows of three go round seven members. A rack that has two of them may be the right one: those that share no row with the lost one."""
        self.run_on("n[1-7]", "seq 3000000 > out.dat", "--striping-unit", "64k", "--striping-factor", "7")
        ring = [m["path"].split(":")[0] for m in self.json("status", "out.dat")["files"][0]["members"]]
        self.assertEqual(len(ring), 7)
        self.run_on("n8,n9", "true", scheme="mirror:2")
        racks = dict(zip(ring, ("far", "a", "b", "lost", "c", "d", "far")))
        for place, rack in ((8, "far"), (9, "b")):
            racks[f"n{place}"] = rack
        self.write_racks(**racks)
        self.lose(ring[3])
        self.holdfast("repair", "out.dat", "--onto-live", "--domains", "racks")
        self.assertEqual([m["path"].split(":")[0] for m in self.json("status", "out.dat")["files"][0]["members"]], ring[:3] + ["n8"] + ring[4:])

    def test_a_node_that_no_rack_is_known_of_takes_no_place_and_is_no_hindrance(self):
        self.write_racks(**{f"n{i}": f"r{i}" for i in range(1, 5)})
        self.run_on("n[1-3]", "echo precious > out.dat", "--domains", "racks")
        self.run_on("n4", "true", scheme="mirror:1")
        self.run_on("x1", "true", scheme="mirror:1")  # of another job
        self.lose("n2")
        self.holdfast("repair", "out.dat", "--onto-live", "--domains", "racks")
        self.assertEqual(set(self.members()), {"n1", "n3", "n4"})

    def test_a_node_of_several_directories_is_used_as_long_as_one_of_them_can_be(self):
        addresses = []
        for i in (1, 2, 3):
            pair = [self.path(f"{name}-n{i}") for name in ("good", "bad")]
            for directory in pair:
                os.mkdir(directory)
            self.holdfast("agents", "start", "--node", f"n{i}", *pair)
            addresses += [f"n{i}:{directory}" for directory in pair]
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--local", ",".join(addresses), "--", "sh", "-c"]
        self.holdfast(*run, f"rm -r {self.path('bad-n')}?; for i in 1 2 3 4 5 6 7 8; do echo $i > $i.dat || exit 1; done")
        for i in range(1, 9):
            self.assertEqual([m["state"] for m in self.members(f"{i}.dat").values()], ["ok"] * 3)
            self.assertEqual(len(self.members(f"{i}.dat")), 3)

    def test_a_node_that_was_wiped_and_is_in_use_anew_is_a_lost_member(self):
        self.run_on("n1,n2,n3", "echo precious > out.dat")
        self.lose("n2")
        self.run_on("n1,n2,n3", "echo more > more.dat")
        self.assertEqual([m["state"] for m in self.members("more.dat").values()], ["ok"] * 3)
        lost = self.members(expect=1)["n2"]
        self.assertEqual(lost["state"], "lost")
        self.assertIn("has another identity", lost["why"])
        place = f"n2:{self.path('disk-n2')}"
        self.holdfast("repair", "out.dat", "--replace", f"{place}={place}")
        self.holdfast("verify", "out.dat", "more.dat")

    def test_a_job_on_as_many_nodes_as_a_row_needs_goes_on_without_some(self):
        self.run_on("n1,n2,n3", "echo old > renamed.dat")
        said = self.run_on("n1,n2,n3", f"{LOSE_AGENT}; echo a > a.dat; lose n2; sleep 0.2; echo b > b.dat && echo new > tmp && mv tmp renamed.dat",
                           "--path", "tmp")
        self.assertNotIn("Invalid", said.stderr)
        for name, content in (("a.dat", "a\n"), ("b.dat", "b\n"), ("renamed.dat", "new\n")):
            self.assertEqual(self.holdfast("cat", name).stdout, content)
        self.assertEqual(sorted(m["state"] for m in self.members("b.dat", expect=1).values())[:2], ["ok", "ok"])
        self.run_on("n1,n2,n3", "true")
        place = f"n2:{self.path('disk-n2')}"
        self.holdfast("repair", "b.dat", "--replace", f"{place}={place}")
        self.assertEqual([m["state"] for m in self.members("b.dat").values()], ["ok"] * 3)

    def test_run_has_a_killed_agent_started_again_by_the_users_command(self):
        """Together with what would do so on its node. A directory that is gone is not made anew."""
        lose = f"note=$(ls $HOLDFAST_AGENTS/n2.*.agent); cp $note kept; {LOSE_AGENT}; lose n2; "
        back = "for i in $(seq 100); do cmp -s $note kept || break; sleep 0.1; done; echo b > b.dat"
        self.run_on("n1,n2,n3", lose + "cp kept $note; " + back)
        self.assertEqual({node: m["state"] for node, m in self.members("b.dat").items()}, {"n1": "ok", "n2": "ok", "n3": "ok"})
        self.run_on("n1,n2,n3", lose + f"rm -r {self.path('disk-n2')}; cp kept $note; sleep 4")
        self.assertFalse(os.path.exists(self.path("disk-n2")))

    def test_a_node_that_cannot_join_is_left_out(self):
        """It answers first, and then there is no room for the pool's mark."""
        os.mkdir(self.path("disk-n2"))
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", self.path("disk-n2")], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("disk-n2")], check=True)
        said = self.run_on("n1,n2,n3,n4", "echo a > a.dat")
        self.assertIn("disk-n2 is left out: ", said.stderr)
        self.assertEqual(sorted(self.members("a.dat")), ["n1", "n3", "n4"])
        self.assert_one_sentence(self.run_on("n1,n2,n3", "echo a > b.dat", expect=2).stderr, "rs:2+1 needs 3 nodes and there are 2", "left out")

    def test_files_lie_on_all_nodes_of_a_large_pool(self):
        """One goes round as many as leave room for a repair, which are more than a set can have; any two may be lost."""
        count, ring = 80, 78
        nodes = {f"n{i}" for i in range(1, count + 1)}
        run = ["run", "--simulate-nodes", str(count), "--protect", "rs:4+2", "--path", "*.dat", "--library", "posix"]
        files = [f"f{i}.dat" for i in range(1, 121)]
        self.holdfast(*run, "--", "sh", "-c", "for i in $(seq 120); do echo $i > f$i.dat; done")
        places = {f["path"]: {m["path"].split(":")[0] for m in f["members"]} for f in self.json("status", *files)["files"]}
        self.assertEqual((len(places), {len(place) for place in places.values()}), (len(files), {6}))
        self.assertEqual(set().union(*places.values()), nodes)

        half = 2_000_000
        with open(self.path("halves"), "wb") as file:
            file.write(random.Random(5).randbytes(2 * half))
        write = f"dd if=halves of=ring.dat conv=notrunc bs=100000 count={half // 100000}"
        self.holdfast(*run, "--striping-unit", "16k", "--striping-factor", str(ring), "--", "sh", "-c",
                      f": > ring.dat; {write} & {write} skip={half // 100000} seek={half // 100000}; wait")
        members = [m["path"].split(":")[0] for m in self.json("status", "ring.dat")["files"][0]["members"]]
        self.assertEqual(len(set(members)), ring)
        for node in members:
            parts = [os.path.join(root, name) for root, _, names in os.walk(self.path("holdfast-nodes", node)) for name in names if "ring.dat" in root]
            self.assertGreater(sum(os.stat(part).st_blocks for part in parts if os.path.basename(part) == "data"), 0, f"{node} keeps a part of it")
        with open(self.path("halves"), "rb") as file:
            content = file.read()
        self.assertEqual(self.cat("ring.dat"), content)

        lost = members[3:5]  # neighbours: of the rows of both
        for node in lost:
            self.lose_agent(node)
            shutil.rmtree(self.path("holdfast-nodes", node))
        self.assertEqual(self.cat("ring.dat"), content)
        hurt = [name for name, place in places.items() if place & set(lost)]
        self.assertGreater(len(hurt), 4)
        self.assertEqual(self.holdfast("cat", *files).stdout, "".join(f"{i}\n" for i in range(1, 121)))
        self.holdfast("verify", "ring.dat", *hurt, expect=1)
        self.holdfast("repair", "--onto-live", "ring.dat", *hurt)
        self.holdfast("verify", "ring.dat", *files)
        after = {f["path"]: {m["path"].split(":")[0] for m in f["members"]} for f in self.json("status", "ring.dat", *files)["files"]}
        self.assertFalse(set(lost) & set().union(*after.values()))

    def test_a_node_whose_agent_hangs_is_left_out(self):
        options = ("run", "--simulate-nodes", "4", "--protect", "rs:2+1", "--path", "*.dat", "--library", "posix", "--", "sh", "-c")
        self.holdfast(*options, "echo a > a.dat")
        process = self.agent_of("n2")
        os.kill(process, signal.SIGSTOP)
        self.addCleanup(os.kill, process, signal.SIGCONT)
        self.env["HOLDFAST_DEADLINE"] = "1s"
        said = self.holdfast(*options, "cat a.dat; echo b > b.dat")
        self.assertEqual(said.stdout, "a\n")
        self.assertIn(f"another agent of node n2 serves {self.path('holdfast-nodes/n2')} and does not answer: end it, or bring it back", said.stderr)
        self.assertEqual(sorted(self.members("b.dat")), ["n1", "n3", "n4"])

    def test_a_node_that_is_lost_while_a_job_runs_is_left_out_of_new_files(self):
        self.run_on("n1,n2,n3,n4", f"echo a > a.dat; rm -r {self.path('disk-n4')}/* {self.path('disk-n4')}/.h* {self.path('disk-n4')}/holdfast-target.json;"
                                   "for i in 1 2 3 4 5 6; do echo b > b$i.dat; done")
        for i in range(1, 7):
            self.assertEqual(set(self.members(f"b{i}.dat")), {"n1", "n2", "n3"})
        self.assertEqual(os.listdir(self.path("disk-n4")), [])

    def test_jobs_overlap_on_nodes(self):
        self.run_on("n1,n2,n3", "echo first > a.dat")
        self.run_on("n4,n5,n6", "echo second > b.dat")
        self.run_on("n3,n4,n7", "cat a.dat b.dat > seen; echo third > c.dat")
        self.assertEqual(set(self.members("c.dat")), {"n3", "n4", "n7"})
        with open(self.path("seen")) as seen:
            self.assertEqual(seen.read(), "first\nsecond\n")
        self.holdfast("verify", "a.dat", "b.dat", "c.dat")

    def test_a_job_takes_other_directories_of_nodes_whose_agents_run(self):
        """As a job before it, or beside it, has started them. Each directory has its agent; one of these can be stopped alone."""
        self.run_on("n1,n2,n3", "echo first > a.dat")
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--hosts", "n1,n2,n3", "--with", "env ON={node}"]
        self.holdfast(*run, "--local", self.path("other-{node}"), "--", "sh", "-c", "cat a.dat > seen; echo second > b.dat")
        with open(self.path("seen")) as seen:
            self.assertEqual(seen.read(), "first\n")
        self.assertEqual({m["path"] for m in self.json("status", "b.dat")["files"][0]["members"]}, {f"n{i}:{self.path(f'other-n{i}')}" for i in (1, 2, 3)})
        self.holdfast("verify", "a.dat", "b.dat")
        agents = self.json("agents", "status", "n2")
        self.assertEqual(sorted(agent["directories"][0] for agent in agents), [self.path("disk-n2"), self.path("other-n2")])
        self.holdfast("agents", "stop", f"n2:{self.path('other-n2')}")
        self.assertEqual([agent["directories"] for agent in self.json("agents", "status", "n2")], [[self.path("disk-n2")]])
        self.assertEqual(self.members("a.dat")["n2"]["state"], "ok")
        self.assertEqual(self.members("b.dat", expect=1)["n2"]["state"], "unreached")

    def test_nodes_are_simulated_in_several_directories_at_once(self):
        for place in ("one", "two"):
            os.mkdir(self.path(place))
            done = subprocess.run([self.binary, "run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3", "--", "sh", "-c", f"echo {place} > a.dat"],
                                  cwd=self.path(place), env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        for place in ("one", "two"):
            self.assertEqual(self.holdfast("cat", f"{place}/a.dat").stdout, f"{place}\n")
            self.assertTrue(all(f"{place}/holdfast-nodes" in m["path"] for m in self.json("status", f"{place}/a.dat")["files"][0]["members"]))

    def flip(self, marker, bits):
        """In its uuid. It is as it was before."""
        with open(marker, "r+b") as file:
            before = file.read()
            at = before.index(b'"uuid": "') + 12
            file.seek(at)
            file.write(bytes([before[at] ^ bits]))
        return before

    def test_a_flipped_bit_of_a_marker_takes_nothing_from_it_and_the_next_job_mends_it(self):
        self.run_on("n1,n2,n3", "seq 1000 > out.dat")
        marker = self.path("disk-n2", "holdfast-target.json")
        before = self.flip(marker, 1)
        self.assertEqual(self.members()["n2"]["state"], "ok")
        self.holdfast("verify", "out.dat")
        with open(marker, "rb") as file:
            self.assertNotEqual(file.read(), before, "who only looks writes nothing")
        self.run_on("n1,n2,n3", "seq 1000 > more.dat")
        with open(marker, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(self.members("more.dat")["n2"]["state"], "ok")

    def test_a_damaged_marker_is_told_with_what_mends_it(self):
        self.run_on("n1,n2,n3", "seq 1000 > out.dat")
        self.flip(self.path("disk-n2", "holdfast-target.json"), 3)
        lost = self.members(expect=1)["n2"]
        self.assertEqual(lost["state"], "lost")
        self.assertIn("its holdfast-target.json is damaged: its checksum differs; empty the directory, then run: holdfast repair FILE --replace DIR=DIR",
                      lost["why"])
        for name in os.listdir(self.path("disk-n2")):
            place = self.path("disk-n2", name)
            (shutil.rmtree if os.path.isdir(place) else os.remove)(place)
        place = f"n2:{self.path('disk-n2')}"
        self.holdfast("repair", "out.dat", "--replace", f"{place}={place}")
        self.holdfast("verify", "out.dat")

    def test_the_names_of_more_nodes_than_a_variable_holds_are_told_to_the_program(self):
        self.run_on("n1,n2,n3", "true")
        names = ["n1", "n2", "n3"] + [f"host-{random.getrandbits(800):0200x}" for _ in range(700)]
        with open(self.path("hosts"), "w") as file:
            file.write("\n".join(names))
        self.env["HOLDFAST"] = str(self.binary)
        self.holdfast("run", "--protect", "rs:2+1", "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", self.path("hosts"), "--", "sh", "-c",
                      "echo one > one.dat; [ -n \"$HOLDFAST_LOCAL_2\" ] && exec env -u LD_PRELOAD $HOLDFAST settings --json > seen")
        with open(self.path("seen")) as file:
            [local] = [setting["value"] for setting in json.load(file)["settings"] if setting["key"] == "local"]
        self.assertEqual(sorted(local.split(",")), sorted(f"{name}:{self.path('disk-' + name)}" for name in names))
        self.assertEqual({node: m["state"] for node, m in self.members("one.dat").items()}, {"n1": "ok", "n2": "ok", "n3": "ok"})

    def test_more_names_than_an_environment_holds_are_refused(self):
        with open(self.path("hosts"), "w") as file:
            file.writelines(f"host-{random.getrandbits(800):0200x}\n" for _ in range(20000))
        refused = self.holdfast("run", "--protect", "rs:2+1", "--local", self.path("disk-{node}"), "--hosts", self.path("hosts"), "--", "true", expect=2)
        self.assert_one_sentence(refused.stderr, "the names of 20000 directories are too long for the environment that tells the job of them", "ulimit -s unlimited")

    def test_racks_are_told_by_a_file(self):
        with open(self.path("racks"), "w") as file:
            file.writelines(f"n{i} r{i % 3} p{i % 2}\n" for i in range(1, 7))
        self.run_on("n[1-6]", "for i in 1 2 3 4 5 6; do echo $i > f$i.dat; done", "--domains", "racks")
        for i in range(1, 7):
            self.assertEqual({int(node[1:]) % 3 for node in self.members(f"f{i}.dat")}, {0, 1, 2})
        refused = self.run_on("n[1-7]", "true", "--domains", "racks", expect=2)
        self.assertIn("does not say where node n7 is", refused.stderr)
        with open(self.path("racks"), "w") as file:
            file.writelines(f"n{i} r{i % 2}\n" for i in range(1, 7))
        said = self.run_on("n[1-6]", "true", "--domains", "racks")
        self.assertIn("rs:2+1 does not survive the loss of a rack: at least one rack has 2 of a row's 3 units", said.stderr)

    def test_import_keeps_a_file_in_a_pool(self):
        self.run_on("n1,n2,n3", "true")
        content = self.make_file()
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--local", ",".join(f"n{i}:{self.path(f'disk-n{i}')}" for i in (1, 2, 3)))
        self.lose("n2")
        self.assertEqual(self.cat(), content)

    def test_simulated_nodes_are_a_pool(self):
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes"]
        self.holdfast(*run, "3", "--", "sh", "-c", "echo a > a.dat")
        self.holdfast(*run, "5", "--", "sh", "-c", "cat a.dat > seen; for i in 1 2 3 4 5 6 7 8; do echo $i > f$i.dat; done")
        self.assertEqual(set(self.members("a.dat")), {"n1", "n2", "n3"})
        self.assertGreater(len({node for i in range(1, 9) for node in self.members(f"f{i}.dat")}), 3)

    def test_files_on_simulated_nodes_are_drained_where_that_is_asked_for(self):
        run = ["run", "--protect", "rs:2+1", "--path", "*.dat", "--simulate-nodes", "3"]
        self.env["PBS_JOBID"] = "17.server"  # by itself it means nothing here: these directories stay
        kept = self.holdfast(*run, "--", "sh", "-c", "echo a > a.dat")
        self.assertEqual(kept.stderr, "")
        self.assertEqual(len(self.members("a.dat")), 3)
        self.holdfast(*run, "--drain", "none", "--", "true")
        self.assertEqual(len(self.members("a.dat")), 3)
        self.holdfast(*run, "--drain", "end", "--", "sh", "-c", "echo b > b.dat")
        for name in ("a", "b"):
            with open(self.path(f"{name}.dat")) as file:
                self.assertEqual(file.read(), f"{name}\n")

    def test_bad_input_is_told_in_one_sentence(self):
        host = socket.gethostname().split(".")[0]
        run = ["run", "--protect", "rs:4+2", "--path", "*.dat"]
        alone = self.holdfast(*run, "--local", self.path("disk-{node}"), "--", "true", expect=2)
        self.assert_one_sentence(alone.stderr, f"rs:4+2 needs 6 nodes and this is one ({host})", "--hosts", "--simulate-nodes 6")
        few = self.run_on("n[1-5]", "true", scheme="rs:4+2", expect=2)
        self.assertIn("rs:4+2 needs 6 nodes and there are 5; the largest scheme that fits is rs:3+2", few.stderr)
        nobody = self.holdfast(*run, "--local", self.path("disk-{node}"), "--hosts", "x1,x2,x3,x4,x5,x6", "--", "true", expect=2)
        self.assertIn("no agent of node x1 is known; run there: holdfast agents start --node x1", nobody.stderr)
        self.assertIn("rs:4+2 needs 6 nodes and there are 0 (", nobody.stderr)
        self.assertIn("); start the agents of these nodes, or name others", nobody.stderr)
        one = self.holdfast("run", "--protect", "mirror:1", "--local", "/d-{node}", "--hosts", "x1", "--", "true", expect=2)
        self.assertIn("mirror:1 needs 1 node and there are 0 (", one.stderr)
        file = self.make_file("plain") and self.path("plain")
        self.assertIn(f"{file} is not a directory and cannot be served; name a directory",
                      self.holdfast("run", "--protect", "mirror:1", "--local", file, "--node-name", "me", "--", "true", expect=2).stderr)
        os.mkdir(self.path("shared"))
        shared = self.holdfast("run", "--protect", "mirror:2", "--local", self.path("shared"), "--hosts", "m1,m2", "--with", "env ON={node}", "--", "true",
                               expect=2)
        self.assertIn("is the directory of node m1 by its marker: do the nodes share it? Give each node one of its own", shared.stderr)
        for options, words in ((["--local", "/d-{node}", "--hosts", "n[1-"], ["'n[1-' is no list of nodes"]),
                               (["--local", "/d-{node}", "--targets", "/a,/b,/c,/d,/e,/f", "--hosts", "n1"], ["targets and local say both"]),
                               (["--local", "/d-{node}", "--simulate-nodes", "6"], ["--simulate-nodes and --local say both"]),
                               (["--local", "/d-{nod}", "--hosts", "n1"], ["--local: '/d-{nod}' has {nod}, which stands for nothing; the node's name is {node}"]),
                               (["--local", "/d-{node}-{}", "--hosts", "n1"], ["has {}, which stands"]),
                               (["--local", "n1:/d,/e"], ["names n1:/d of one node and /e of each"])):
            self.assert_one_sentence(self.holdfast(*run, *options, "--", "true", expect=2).stderr, *words)


if __name__ == "__main__":
    unittest.main()
