#!/usr/bin/env python3
"""Runs a command on a cluster of its own on this machine: each node has a network, a host name and a /dev/shm of its own, and
they are joined by links that only they use. All of it lies in namespaces of this process (no name of it is seen outside) and goes
with it, whatever ends it.

usage: nodes.py [--count N] [--rate RATE] [--delay-us N --relay PROGRAM] [--find MARK] COMMAND...

COMMAND runs on the first node. `mpirun -n N` there puts one rank on each node, over TCP, under MPICH and Open MPI: the environment
says so. Exit code: the command's; 77 where no namespaces can be made; 99 where a process or a file in /dev/shm is left over.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SKIP, LEFT_OVER = 77, 99
INSIDE = "HOLDFAST_NODES_INSIDE"

# What a remote shell is to a launcher: drop the options, take the host, run the rest there with a bare environment, and with random addresses.
REMOTE_SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do [ "$1" = -l ] && shift; shift; done
host=$1; shift
exec env -i PATH="$PATH" HOME="$HOME" TMPDIR=%(root)s nsenter -t "$(cat %(root)s/$host.pid)" --net --uts --ipc --mount --wd="$PWD" setarch linux64 sh -c "$*"
"""


def space_of(process, kind):
    return os.readlink(f"/proc/{process}/ns/{kind}")


def holder_of(root, node):
    """For a test within a cluster, whose temporary directory `root` is: the process that keeps the node up."""
    return int((root / f"{node}.pid").read_text())


def signal_all(root, node, number, but=None):
    """Sends a signal to all processes of a node, but those that have the bytes `but` in their command line."""
    holder = holder_of(root, node)
    space = space_of(holder, "uts")
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            process = int(entry.name)
            if process != holder and space_of(process, "uts") == space and (but is None or but not in (entry / "cmdline").read_bytes()):
                os.kill(process, number)
        except OSError:
            pass  # has ended meanwhile


def quiet(*command):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Cluster:
    def __init__(self, options, root):
        self.options, self.root, self.holders, self.relay = options, root, [], None

    def build(self):
        names = [f"node{i + 1}" for i in range(self.options.count)]
        hosts = "127.0.0.1 localhost\n" + "".join(f"10.99.0.{i + 1} {name}\n" for i, name in enumerate(names))
        (self.root / "hosts").write_text(hosts)
        (self.root / "hostfile").write_text("".join(f"{name} slots=1\n" for name in names))
        (self.root / "hydra").write_text("".join(f"{name}:1\n" for name in names))
        shell = self.root / "remote-shell"
        shell.write_text(REMOTE_SHELL % {"root": self.root})
        shell.chmod(0o700)
        quiet("mount", "--bind", str(self.root / "hosts"), "/etc/hosts")
        quiet("ip", "link", "set", "lo", "up")
        if self.options.delay_us == 0:
            quiet("ip", "link", "add", "switch", "type", "bridge")
            quiet("ip", "link", "set", "switch", "up")
        for i, name in enumerate(names):
            self.add_node(i, name)
        if self.options.delay_us:
            self.start_relay()
        for i, name in enumerate(names):
            self.shape(i)
            self.wait_for_link(i, name)

    def add_node(self, i, name):
        # Says a line once it has its namespaces, then waits until it is killed.
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-c",
                                   f"hostname {name} && mount -t tmpfs none /dev/shm && ip link set lo up && echo up && exec sleep infinity"],
                                  stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "up\n":
            raise OSError(f"{name} cannot be made")
        for kind in ("net", "uts", "ipc", "mnt"):  # what follows must never reach the machine's own
            if space_of(holder.pid, kind) == space_of("self", kind):
                raise OSError(f"{name} has no {kind} namespace of its own")
        (self.root / f"{name}.pid").write_text(str(holder.pid))
        if self.options.delay_us == 0:
            quiet("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            quiet("ip", "link", "set", f"port{i}", "master", "switch", "up")
        else:
            self.on(i, "ip", "tuntap", "add", "eth0", "mode", "tun")
        self.on(i, "ip", "addr", "add", f"10.99.0.{i + 1}/24", "dev", "eth0")
        self.on(i, "ip", "link", "set", "eth0", "up")

    def wait_for_link(self, i, name):
        """A device that was just joined counts as unplugged for a moment; an MPI that looks then does without it."""
        for _ in range(500):
            seen = subprocess.run(["nsenter", "-t", str(self.holders[i].pid), "--net", "ip", "link", "show", "eth0"], capture_output=True, text=True).stdout
            if "LOWER_UP" in seen and "NO-CARRIER" not in seen:
                return
            time.sleep(0.01)
        raise OSError(f"the link of {name} does not come up")

    def shape(self, i):
        if not self.options.rate:
            return
        shape = ["tbf", "rate", self.options.rate, "burst", "256kb", "latency", "50ms"]
        self.on(i, "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", *shape)
        self.on(i, "tc", "qdisc", "add", "dev", "eth0", "parent", "1:1", "pfifo_fast")  # as a node's own device has it
        if self.options.delay_us == 0:
            quiet("tc", "qdisc", "add", "dev", f"port{i}", "root", *shape)

    def start_relay(self):
        """A program that holds the other end of every node's link and lets each packet wait."""
        self.relay = subprocess.Popen([self.options.relay, str(self.options.delay_us), *(str(h.pid) for h in self.holders)],
                                      stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "up\n":
            raise OSError("the delaying relay has not come up")

    def on(self, i, *command):
        return quiet("nsenter", "-t", str(self.holders[i].pid), "--net", *command)

    def environment(self):
        shell, hostfile = str(self.root / "remote-shell"), str(self.root / "hostfile")
        return {
            "TMPDIR": str(self.root),
            # Open MPI 4
            "OMPI_MCA_plm_rsh_agent": shell, "OMPI_MCA_orte_default_hostfile": hostfile, "OMPI_MCA_oob_tcp_if_include": "eth0",
            "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "eth0",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Open MPI 5
            "PRTE_MCA_plm_ssh_agent": shell, "PRTE_MCA_prte_default_hostfile": hostfile, "PRTE_MCA_prte_if_include": "eth0",
            **({"PRTE_MCA_rmaps_default_mapping_policy": "ppr:1:node"} if self.options.count > 1 else {}), "PRTE_MCA_hwloc_default_binding_policy": "none",
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # MPICH. Without the transports' names it goes round the network through shared memory.
            "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": shell, "HYDRA_HOST_FILE": str(self.root / "hydra"), "HYDRA_IFACE": "eth0",
            "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0",
        }

    def run(self, command):
        job = subprocess.Popen(["nsenter", "-t", str(self.holders[0].pid), "--net", "--uts", "--ipc", "--mount", f"--wd={os.getcwd()}", *command],
                               env={**os.environ, **self.environment()})
        return reap_until(job)

    def leftovers(self, mark):
        """Processes that the command has left (in our process namespace there is nobody else), and files in /dev/shm."""
        own = {os.getpid(), *(h.pid for h in self.holders), *([self.relay.pid] if self.relay else [])}
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(entry.name) in own or (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                    continue
                found.append("process " + (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                pass  # has ended meanwhile
        for holder in self.holders:
            listing = pathlib.Path(f"/proc/{holder.pid}/root/dev/shm")
            found += [f"/dev/shm/{p.name}" for p in listing.iterdir() if "holdfast" in p.name]
        return [one for one in found if mark in one]


def reap_until(job):
    """We are the first process of our namespace: orphans come to us. Returns the job's exit code."""
    code = None
    while code is None:
        ended, status = os.wait()
        if ended == job.pid:
            code = job.returncode = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def inside(options):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="holdfast-nodes-") as name:
        cluster = Cluster(options, pathlib.Path(name))
        try:
            cluster.build()
        except (OSError, subprocess.CalledProcessError) as reason:
            print(f"nodes.py: skipped, no cluster can be made here: {reason}", file=sys.stderr)
            return SKIP
        code = cluster.run(options.command)
        left = []
        for _ in range(300):  # what ends with the job may take its time
            left = cluster.leftovers(options.find)
            if not left:
                return code
            time.sleep(0.01)
        for one in left:
            print(f"nodes.py: left over: {one}", file=sys.stderr)
        return code or LEFT_OVER


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--rate", help="of each link and direction, as tc writes it: 1gbit")
    parser.add_argument("--delay-us", type=int, default=0, help="of each packet from node to node")
    parser.add_argument("--relay", help="the program tests/tools/delaying_relay.c")
    parser.add_argument("--find", default="", metavar="MARK", help="only what has this in its command line or name counts as left over")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if os.getpid() == 1 and os.environ.get(INSIDE, space_of("self", "net")) != space_of("self", "net"):
        return inside(options)
    space = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*space, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        print(f"nodes.py: skipped, no namespaces can be made here: {probe.stderr.strip()}", file=sys.stderr)
        return SKIP
    os.environ[INSIDE] = space_of("self", "net")  # so that we know there that it is another
    os.execvp(space[0], [*space, sys.executable, "-B", os.path.abspath(__file__), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
