#!/usr/bin/env python3
"""Two nodes and a file system whose locks stop at the node: real MPI programs, and every byte that they leave.

  nodes_without_locks.py --build BUILD --mpi MPI [--locks WAY] [--remember SECONDS] [--fails] CASE

A node is a mount, host name and process namespace with a boot id of its own, and a mount of its own of one FUSE file system (tests/tools/faultfs.c)
over the same directories. Targets and the file's path lie on it. The kernel grants locks there for each mount by itself.

  two_jobs       one on each node, both write the same rows at once, and sync
  one_job        its ranks are on both nodes
  reads          the same, and they read after each sync what the others wrote, with what their nodes remember in between
  repair_beside  `repair` on one node, again and again, beside a job on the other
  killed_here    a job is killed in a sync, under the lock: the next one on its node goes on at once
  killed_there   the same, and one on the other node says who holds the lock; with the user's word it goes on
  killed_between a job is killed outside of the lock: one on the other node goes on at once, though nobody can know that the first is dead

With `--fails` the case has to fail, in one of N runs: that is how it ends with `--locks kernel`, and what the names are for. Exit code 77: no FUSE or namespaces here.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs"))
from matrix import Failed, launcher  # noqa: E402

SKIP = 77
SECONDS = 120
PROGRAM = "two_openers_of_disjoint_bytes_lose_nothing"
READER = "a_rank_on_another_node_reads_what_was_synced"
REPAIRED = "a_repair_beside_a_job_takes_nothing_back"
NODE = """mount --make-rprivate / && mount -t proc proc /proc && mount --bind {boot} /proc/sys/kernel/random/boot_id &&
hostname {name} && echo up && exec sleep infinity"""


class Skipped(Exception):
    pass


def wait_until(true, what, seconds=SECONDS):
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.01)


class Node:
    """`enter` before a command runs it there."""

    def __init__(self, scene, name):
        boot, self.name = scene.at(f"boot-{name}"), name
        with open(boot, "w", encoding="ascii") as file:
            file.write(f"{uuid.uuid4()}\n")
        self.holder = subprocess.Popen(["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", NODE.format(boot=boot, name=name)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            raise Skipped(f"no namespaces can be made here: {self.holder.stderr.read().strip()}")
        with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children", encoding="ascii") as file:
            self.first = file.read().split()[0]
        for kind in ("mnt", "uts", "pid"):
            if os.readlink(f"/proc/{self.first}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}"):
                raise Skipped(f"{name} has no {kind} namespace of its own")
        self.enter = ["nsenter", "-t", self.first, "--mount", "--uts", "--pid", "--wd=/"]
        self.control = scene.at(f"control-{name}")
        self.server = subprocess.Popen([*self.enter, *scene.server(self.control)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.server.poll() is not None or self.run("mountpoint", "-q", scene.mount).returncode == 0, "the mount", 10)
        if self.server.poll() is not None:
            raise Skipped("FUSE cannot be mounted here")

    def run(self, *command, seconds=SECONDS, **how):
        return subprocess.run([*self.enter, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, check=False, **how)

    def order(self, rules):
        with open(self.control + ".new", "w", encoding="ascii") as file:
            file.write(rules + "\n")
        os.rename(self.control + ".new", self.control)

    def kill_all(self, word):
        """SIGKILL for every process of this node whose command has the word in it."""
        space = os.readlink(f"/proc/{self.first}/ns/pid")
        for process in [p for p in os.listdir("/proc") if p.isdigit() and p != self.first]:
            try:
                with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
                    command = file.read()
                if word in command and os.readlink(f"/proc/{process}/ns/pid") == space and int(process) != self.server.pid:
                    os.kill(int(process), signal.SIGKILL)
            except OSError:
                pass  # has ended meanwhile

    def end(self):
        self.order("")
        self.holder.kill()  # its first process goes with it, and so do all others there, and the mount
        self.holder.wait()
        if hasattr(self, "server"):
            self.server.wait(10)


class Scene:
    def __init__(self, options, root):
        self.options, self.root, self.nodes = options, root, []
        self.mount, self.backing = self.at("mount"), self.at("backing")
        for directory in (self.mount, self.backing, *(os.path.join(self.backing, name) for name in ("t0", "t1", "t2", "home"))):
            os.mkdir(directory)
        self.file = os.path.join(self.mount, "home", "file")
        self.holdfast = os.path.join(options.build, "bin", "holdfast")
        self.targets = ",".join(os.path.join(self.mount, f"t{i}") for i in range(3))
        self.environment = {**os.environ, "HOLDFAST_LOCKS": options.locks, "HOLDFAST_LOCK_PATIENCE": "60s"}

    def at(self, name):
        return os.path.join(self.root, name)

    def server(self, control):
        return [os.path.join(self.options.build, "bin", "faultfs"), self.backing, self.mount, "--control", control, "-f", "--cached",
                f"--remember={self.options.remember}", "-oallow_other"]

    def program(self, name):
        return os.path.join(self.options.build, "tests", "issues", self.options.mpi, name)

    def job(self, node, ranks, program, *arguments, wrapper=()):
        run = [self.holdfast, "run", "--protect", "rs:2+1", "--striping-unit", "4096", "--targets", self.targets, "--path", self.file, "--"]
        return [*node.enter, *run, *launcher(self.options.mpi, ranks), *wrapper, self.program(program), self.file, *arguments]

    def start(self, command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment,
                                start_new_session=True)

    def end(self, process, seconds=SECONDS):
        try:
            said = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the launcher's; what it has started on the nodes goes with them
            process.wait()
            raise Failed(f"did not end within {seconds} s: {process.args}") from None
        if process.returncode != 0:
            raise Failed(f"exit code {process.returncode}: {' '.join(process.args[-8:])}\n{said[-1500:]}")
        return said

    def must(self, command, seconds=SECONDS):
        return self.end(self.start(command), seconds)

    def command(self, node, *arguments):
        return node.run(self.holdfast, *arguments, env=self.environment)

    def check(self, node):
        """All bytes, from a node; and `verify` finds nothing."""
        self.must(self.job(node, 1, PROGRAM, "check"))
        verified = self.command(node, "verify", self.file)
        if verified.returncode != 0:
            raise Failed(f"verify: {verified.stdout}")


def two_jobs(scene):
    one, two = scene.nodes
    scene.must(scene.job(one, 1, PROGRAM, "create"))
    meeting = scene.at("meeting")
    both = [scene.start(scene.job(node, 2, PROGRAM, "job", str(group), meeting)) for group, node in enumerate((one, two))]
    for process in both:
        scene.end(process)
    scene.check(two)


# Ranks in different namespaces share no memory, which Open MPI does not notice when a window is made. The preload is for Debian's MPICH over
# TCP, which may never come back from MPI_Finalize.
OVER_TCP = {"UCX_TLS": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_osc": "pt2pt"}
ON_ITS_NODE = """#!/bin/sh
set -- {firsts} "$@"
rank=${{PMI_RANK:-${{OMPI_COMM_WORLD_RANK:-0}}}}
[ $((rank % 2)) = 0 ] && node=$1 || node=$2
shift 2
exec nsenter -t "$node" --mount --uts --pid --wd=/ env LD_PRELOAD="$LD_PRELOAD:{more}" "$@"
"""


def on_both_nodes(scene, program, *arguments):
    """The launcher is on a third node, for nobody can enter a process namespace that is not below his own."""
    wrapper = scene.at("on-its-node")
    more = os.path.join(scene.options.build, "lib", "libleave_at_finalize.so") if scene.options.mpi == "mpich" else ""
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(ON_ITS_NODE.format(firsts=" ".join(node.first for node in scene.nodes), more=more))
    os.chmod(wrapper, 0o755)
    scene.environment.update(OVER_TCP)
    outside = Launchers(scene)
    try:
        scene.must(scene.job(outside, 4, program, *arguments, wrapper=[wrapper]))
    finally:
        outside.end()
    for name in OVER_TCP:
        del scene.environment[name]


def one_job(scene):
    on_both_nodes(scene, PROGRAM, "ranks", "at_once_looked")
    scene.check(scene.nodes[1])


def reads(scene):
    on_both_nodes(scene, READER)
    verified = scene.command(scene.nodes[1], "verify", scene.file)
    if verified.returncode != 0:
        raise Failed(f"verify: {verified.stdout}")


class Launchers(Node):
    """A node that has the machine's own processes."""

    def __init__(self, scene):
        self.name, self.control = "launcher", scene.at("control-launcher")
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && echo up && exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        self.holder.stdout.readline()
        self.first = str(self.holder.pid)
        self.enter = ["nsenter", "-t", self.first, "--mount", "--wd=/"]
        self.server = subprocess.Popen([*self.enter, *scene.server(self.control)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.run("mountpoint", "-q", scene.mount).returncode == 0, "the mount", 10)

    def end(self):
        self.server.terminate()
        self.server.wait(10)
        self.holder.kill()
        self.holder.wait()


def repair_beside(scene):
    one, two = scene.nodes
    go = scene.at("go")
    job = scene.start(scene.job(one, 2, REPAIRED, go))
    wait_until(lambda: os.path.exists(go) or job.poll() is not None, "the job's beginning")
    repairs = 0
    while job.poll() is None:
        done = scene.command(two, "repair", scene.file)
        repairs += 1
        if done.returncode != 0 and job.poll() is None:
            job.kill()
            raise Failed(f"repair beside the job: {done.stdout}")
    scene.end(job)
    print(f"{repairs} repairs beside the job")
    verified = scene.command(two, "verify", scene.file)
    if verified.returncode != 0:
        raise Failed(f"verify: {verified.stdout}")


def lock_names(scene):
    return [os.path.join(root, name) for root, _, names in os.walk(scene.backing) for name in names if name == "lock.held"]


def kill_in_a_sync(scene):
    """A job on the first node, killed while it holds the file's lock."""
    one, _ = scene.nodes
    scene.must(scene.job(one, 1, PROGRAM, "create"))
    meeting = scene.at("meeting")
    job = scene.start(scene.job(one, 1, PROGRAM, "job", "0", meeting))
    wait_until(lambda: os.path.exists(meeting + ".0") or job.poll() is not None, "the job's opening")
    one.order("fsync hang")
    with open(meeting + ".1", "w", encoding="ascii"):
        pass
    wait_until(lambda: lock_names(scene) or job.poll() is not None, "the job's sync")
    time.sleep(0.3)  # it hangs there; this is for the companions to be in their calls
    one.kill_all(PROGRAM)
    job.communicate(timeout=30)
    one.order("")
    if scene.options.locks != "kernel" and not lock_names(scene):
        raise Failed("the killed job has left no name of a lock, so this shows nothing")


def killed_between(scene):
    """Not under the lock: only its presence is left, which nobody on another node can prove to be dead. It keeps nobody from writing."""
    one, two = scene.nodes
    scene.must(scene.job(one, 1, PROGRAM, "create"))
    meeting = scene.at("meeting")
    job = scene.start(scene.job(one, 2, PROGRAM, "job", "0", meeting))
    wait_until(lambda: os.path.exists(meeting + ".0") or job.poll() is not None, "the job's opening")
    one.kill_all(PROGRAM)
    job.communicate(timeout=30)
    with open(meeting + ".0", "w", encoding="ascii"):
        pass
    for _ in range(3):
        scene.must(other_half(scene, two))
    verified = scene.command(two, "verify", scene.file)
    if verified.returncode != 0:
        raise Failed(f"verify: {verified.stdout}")
    broken = scene.command(two, "repair", "--break-locks", scene.file)
    if broken.returncode != 0 or "writer." not in broken.stdout:
        raise Failed(f"repair --break-locks: {broken.returncode} {broken.stdout}")
    left_by_nobody(scene)


def other_half(scene, node, ranks=2):
    return scene.job(node, ranks, PROGRAM, "job", "1", scene.at("meeting"))


def killed_here(scene):
    kill_in_a_sync(scene)
    began = time.time()
    scene.must(other_half(scene, scene.nodes[0]), seconds=30)
    print(f"the next job on the node has taken {time.time() - began:.1f} s")
    left_by_nobody(scene)


def killed_there(scene):
    kill_in_a_sync(scene)
    scene.environment["HOLDFAST_LOCK_PATIENCE"] = "2s"
    refused = scene.start(other_half(scene, scene.nodes[1], ranks=1))
    said = refused.communicate(timeout=60)[0]
    for word in ("lock.held is held by process", "of node1 since", "holdfast repair --break-locks"):
        if refused.returncode == 0 or word not in said:
            raise Failed(f"the other node's job ends with {refused.returncode} and does not say '{word}': {said}")
    broken = scene.command(scene.nodes[1], "repair", "--break-locks", scene.file)
    if broken.returncode != 0 or "removed " not in broken.stdout or "node1" not in broken.stdout:
        raise Failed(f"repair --break-locks: {broken.returncode} {broken.stdout}")
    scene.must(other_half(scene, scene.nodes[1]))
    left_by_nobody(scene)


def left_by_nobody(scene):
    verified = scene.command(scene.nodes[1], "verify", scene.file)
    if verified.returncode != 0:
        raise Failed(f"verify: {verified.stdout}")
    left = [os.path.join(root, name) for root, _, names in os.walk(scene.backing) for name in names if ".held" in name or ".claim." in name]
    if left:
        raise Failed(f"names of locks are left: {left}")


CASES = {case.__name__: case for case in (two_jobs, one_job, reads, repair_beside, killed_here, killed_there, killed_between)}


def play(options):
    root = tempfile.mkdtemp(prefix="holdfast-nodes-")
    os.chmod(root, 0o755)
    scene = Scene(options, root)
    try:
        for name in ("node1", "node2"):
            scene.nodes.append(Node(scene, name))
        CASES[options.case](scene)
    finally:
        for node in scene.nodes:
            node.end()
        shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--mpi", required=True)
    parser.add_argument("--locks", default="auto")
    parser.add_argument("--remember", type=int, default=5, help="seconds for which the nodes believe what they have seen of names")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--fails", action="store_true")
    parser.add_argument("case", choices=CASES)
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: needs root and FUSE")
        return SKIP
    failed = 0
    for _ in range(options.times):
        try:
            play(options)
        except Skipped as why:
            print(f"skipped: {why}")
            return SKIP
        except Failed as why:
            failed += 1
            print(f"{options.case}: {why}", flush=True)
            if options.fails:
                break
    print(f"{options.case} with locks {options.locks}: {failed} of {options.times} runs failed")
    return int((failed == 0) if options.fails else (failed > 0))


if __name__ == "__main__":
    sys.exit(main())
