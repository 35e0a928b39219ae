"""Six GlusterFS servers, each in a network namespace of its own, and mounts of what they export.

All traffic stays in namespaces made here: one for the clients, which holds a bridge, and one for each server. `close` ends
every process by its id, unmounts, and deletes the namespaces; it is called on failure too."""
import json
import os
import shutil
import subprocess

from gluster import volumes
from harness import Failed, Skip
from places import stop, stored_bytes, wait_for

SERVERS = 6


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Cluster:
    """`rate`: of each server's link and direction, as tc writes it."""

    def __init__(self, root, rate=None):
        self.rate = rate
        if os.geteuid() != 0:
            raise Skip("GlusterFS's servers need root (network namespaces, trusted attributes)")
        for tool in ("glusterfsd", "glusterfs", "ip", "nsenter"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed (Debian: glusterfs-server, iproute2)")
        self.root = root
        self.tag = f"hfb{os.getpid() % 100000}"
        self.namespaces, self.processes, self.mounts = [], [], []
        self.bricks = [os.path.join(root, f"brick{i}") for i in range(SERVERS)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(SERVERS)]
        try:
            self._network()
            self._servers()
            self.plain = [self._mount(f"plain{i}", volumes.plain(a)) for i, a in enumerate(self.addresses)]
            self.disperse = self._mount("disperse", volumes.disperse(self.addresses, 2))
            self.replica = self._mount("replica", volumes.replicate(self.addresses[:3]))
        except BaseException:
            self.close()
            raise

    def _namespace(self, name):
        run("ip", "netns", "add", name)
        self.namespaces.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def _network(self):
        self.client = f"{self.tag}c"
        self._namespace(self.client)
        run("ip", "-n", self.client, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.client, "addr", "add", "10.77.0.254/24", "dev", "br0")
        run("ip", "-n", self.client, "link", "set", "br0", "up")
        for i, address in enumerate(self.addresses):
            server = f"{self.tag}s{i}"
            self._namespace(server)
            run("ip", "-n", self.client, "link", "add", f"to{i}", "type", "veth", "peer", "name", "eth0", "netns", server)
            run("ip", "-n", self.client, "link", "set", f"to{i}", "master", "br0", "up")
            run("ip", "-n", server, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", server, "link", "set", "eth0", "up")
            for namespace, link in ((server, "eth0"), (self.client, f"to{i}")) if self.rate else ():
                run("ip", "netns", "exec", namespace, "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", self.rate, "burst", "256kb",
                    "latency", "50ms")

    def _start(self, namespace, name, text, command):
        """nsenter, unlike `ip netns exec`, leaves the mounts where everybody sees them."""
        path = os.path.join(self.root, f"{name}.vol")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        log = os.path.join(self.root, f"{name}.log")
        self.processes.append(subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{namespace}", *command[:1], "-N", "-f", path, "-l", log, "-p",
             os.path.join(self.root, f"{name}.pid"), *command[1:]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def _servers(self):
        for i, brick in enumerate(self.bricks):
            for export in volumes.EXPORTS:
                os.makedirs(os.path.join(brick, export))
            self._start(f"{self.tag}s{i}", f"server{i}", volumes.server(brick, self.addresses[i]), ["glusterfsd"])
        for i in range(SERVERS):
            wait_for(lambda i=i: f":{volumes.PORT}" in run("nsenter", f"--net=/run/netns/{self.tag}s{i}", "ss", "-ltn"), 15,
                     f"server {i} does not listen")

    @property
    def inside(self):
        return ["nsenter", f"--net=/run/netns/{self.client}"]

    def start_agents(self, bench, widths):
        """Of Holdfast, one a server, with a directory for each width: width -> (directories on the first bricks, their addresses)."""
        os.environ["HOLDFAST_AGENTS"] = os.path.join(self.root, "agents")
        self.holdfast = bench.holdfast
        for i, brick in enumerate(self.bricks):
            served = [os.path.join(brick, f"agent-{width}") for width in widths]
            for directory in served:
                os.makedirs(directory)
            run("nsenter", f"--net=/run/netns/{self.tag}s{i}", bench.holdfast, "agents", "start", "--node", f"g{i}", *served)
        directories = {width: [os.path.join(brick, f"agent-{width}") for brick in self.bricks[:width]] for width in widths}
        return {width: (there, [f"g{i}:{directory}" for i, directory in enumerate(there)]) for width, there in directories.items()}

    def _mount(self, name, text):
        mount = os.path.join(self.root, f"mount-{name}")
        os.makedirs(mount)
        self.mounts.append(mount)
        # The kernel forgets a file's pages at each open, so that every read is one from the servers.
        self._start(self.client, name, text, ["glusterfs", "--fopen-keep-cache=off", mount])
        wait_for(lambda: os.path.ismount(mount) and self._answers(mount), 20, f"{mount} is not a mount")
        return mount

    def _answers(self, mount):
        try:
            probe = os.path.join(mount, ".probe")
            os.mkdir(probe)
            os.rmdir(probe)
            return True
        except OSError:
            return False

    def assert_mounted(self):
        for mount in self.mounts:
            if not os.path.ismount(mount):
                raise Failed(f"{mount} is no longer a mount")

    def stored(self, export):
        """Bytes on all bricks; Gluster's own hard links and housekeeping count once or not at all."""
        return stored_bytes([os.path.join(brick, export) for brick in self.bricks])

    def wire_bytes(self):
        """(to the servers, from the servers), as the clients' ends of the links count them."""
        links = json.loads(run("ip", "-n", self.client, "-s", "-j", "link", "show"))
        ours = [link["stats64"] for link in links if link["ifname"].startswith("to")]
        return sum(s["tx"]["bytes"] for s in ours), sum(s["rx"]["bytes"] for s in ours)

    def close(self):
        if os.environ.pop("HOLDFAST_AGENTS", None):
            environment = {**os.environ, "HOLDFAST_AGENTS": os.path.join(self.root, "agents")}
            subprocess.run([*self.inside, self.holdfast, "agents", "stop"], env=environment, stdout=subprocess.DEVNULL, check=False)
        for mount in self.mounts:
            if os.path.ismount(mount):
                subprocess.run(["umount", "-l", mount], check=False)
        for process in self.processes:
            stop(process)
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], check=False)
        self.processes, self.namespaces = [], []
