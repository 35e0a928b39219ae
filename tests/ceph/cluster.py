"""A Ceph cluster of its own in a temporary directory, on loopback: a monitor, a manager, three OSDs in memory, a metadata server
and a ceph-fuse mount. Everything is a child of this process, known by its id, and stopped with stop()."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

OSDS = 3
CONFIGURATION = """[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{port}
mon initial members = a
public addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
keyring = {root}/keyring
run dir = {root}
admin socket = {root}/$name.asok
log file = {root}/$name.log
pid file =
mon data = {root}/mon
mgr data = {root}/mgr
osd data = {root}/osd$id
mds data = {root}/mds
osd objectstore = memstore
memstore device bytes = 1073741824
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
mgr initial modules =
osd heartbeat grace = 5
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="holdfast-ceph-")
        self.mount = os.path.join(self.root, "mount")
        self.children = {}

    def start(self):
        fsid = str(uuid.uuid4())
        port = free_port()
        self.configuration = os.path.join(self.root, "ceph.conf")
        with open(self.configuration, "w") as text:
            text.write(CONFIGURATION.format(fsid=fsid, port=port, root=self.root))
        monmap = os.path.join(self.root, "monmap")
        self.call("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{port}]", "--fsid", fsid, monmap)
        os.mkdir(os.path.join(self.root, "mon"))
        self.call("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "-c", self.configuration)
        self.daemon("mon", "ceph-mon", "-i", "a", "-f")
        self.wait_for(lambda: self.ceph("mon", "stat", check=False).returncode == 0, "the monitor")
        os.mkdir(os.path.join(self.root, "mgr"))
        self.daemon("mgr", "ceph-mgr", "-i", "x", "-f")
        for number in range(OSDS):
            identity = str(uuid.uuid4())
            self.ceph("osd", "new", identity, str(number))
            os.mkdir(os.path.join(self.root, f"osd{number}"))
            self.call("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", identity, "-c", self.configuration)
            self.daemon(f"osd{number}", "ceph-osd", "-i", str(number), "-f")
        self.wait_for(lambda: self.count_up() == OSDS, "the OSDs")
        # A rule for each OSD, by a device class of its own: what an administrator does to keep pools apart.
        for number in range(OSDS):
            self.ceph("osd", "crush", "rm-device-class", f"osd.{number}")
            self.ceph("osd", "crush", "set-device-class", f"only{number}", f"osd.{number}")
            self.ceph("osd", "crush", "rule", "create-replicated", f"only{number}", "default", "osd", f"only{number}")
            self.ceph("osd", "pool", "create", f"data{number}", "8", "8", "replicated", f"only{number}")
        self.ceph("osd", "pool", "create", "metadata", "8", "8", "replicated", "only0")
        self.ceph("osd", "pool", "create", "data", "32", "32")
        self.ceph("fs", "new", "files", "metadata", "data")
        for number in range(OSDS):
            self.ceph("fs", "add_data_pool", "files", f"data{number}")
        os.mkdir(os.path.join(self.root, "mds"))
        self.daemon("mds", "ceph-mds", "-i", "m", "-f")
        self.wait_for(lambda: "up:active" in self.ceph("mds", "stat").stdout, "the metadata server")
        os.mkdir(self.mount)
        self.daemon("fuse", "ceph-fuse", "-f", self.mount)
        self.wait_for(lambda: os.path.ismount(self.mount), "the mount")
        for number in range(OSDS):
            os.mkdir(self.pool_directory(number))
            os.setxattr(self.pool_directory(number), "ceph.dir.layout.pool", f"data{number}".encode())
        return self

    def pool_directory(self, number):
        """A directory whose files lie on OSD `number` alone."""
        return os.path.join(self.mount, f"pool{number}")

    def count_up(self):
        return json.loads(self.ceph("osd", "stat", "-f", "json").stdout)["num_up_osds"]

    def osd_of(self, path, object_number):
        """The OSD that an object of a file in the pool `data` lies on."""
        name = f"{os.stat(path).st_ino:x}.{object_number:08x}"
        return json.loads(self.ceph("osd", "map", "data", name, "-f", "json").stdout)["acting"][0]

    def kill(self, name):
        self.children[name].kill()
        self.children.pop(name).wait()

    def call(self, *command, check=True):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def ceph(self, *arguments, check=True):
        return self.call("ceph", "-c", self.configuration, "--connect-timeout", "20", *arguments, check=check)

    def daemon(self, name, program, *arguments):
        with open(os.path.join(self.root, f"{name}.out"), "wb") as output:
            self.children[name] = subprocess.Popen([program, *arguments, "-c", self.configuration], stdin=subprocess.DEVNULL,
                                                   stdout=output, stderr=output, start_new_session=True)

    def wait_for(self, condition, what, seconds=90):
        end = time.monotonic() + seconds
        while not condition():
            for name, child in self.children.items():
                if child.poll() is not None:
                    with open(os.path.join(self.root, f"{name}.out"), errors="replace") as output:
                        raise RuntimeError(f"{name} ended with {child.returncode}: {output.read()[-2000:]}")
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come up within {seconds} s")
            time.sleep(0.2)

    def stop(self):
        # The mount first and hard: what hangs in it ends when its server is gone.
        if "fuse" in self.children:
            self.kill("fuse")
            subprocess.run(["umount", "-l", self.mount], stderr=subprocess.DEVNULL)
        for child in self.children.values():
            child.send_signal(signal.SIGKILL)
            child.wait()
        self.children.clear()
        if not os.path.ismount(self.mount):
            shutil.rmtree(self.root, ignore_errors=True)
