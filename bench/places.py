"""Where the bytes go: directories on a disk, on tmpfs or behind throttled mounts, and what lies there afterwards."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

from harness import Failed, Skip


def settle(path):
    """Writes out what earlier runs left dirty on this file system, outside every clock."""
    subprocess.run(["sync", "-f", path], check=False)


def warm(paths):
    """Reads every byte of these files and directories: page-cached lines need them there, and some systems take pages that
    look idle back even while memory is free."""
    for path in paths:
        for parent, _, names in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [], [os.path.basename(path)])]:
            for name in names:
                with open(os.path.join(parent, name), "rb", buffering=0) as data:
                    while data.read(1 << 20):
                        pass


def stored_bytes(directories):
    """Allocated bytes of all files below: a sparse file counts only what it holds, a hard-linked one once."""
    seen = {}
    for directory in directories:
        for parent, _, names in os.walk(directory):
            for name in names:
                facts = os.lstat(os.path.join(parent, name))
                seen[facts.st_dev, facts.st_ino] = min(facts.st_size, facts.st_blocks * 512)
    return sum(seen.values())


class Place:
    """A scratch directory on one file system with a native file, a user's directory and target directories."""

    def __init__(self, parent, label):
        if not os.access(parent, os.W_OK):
            raise Skip(f"{parent} cannot be written here")
        self.label = label
        self.root = tempfile.mkdtemp(prefix="holdfast-bench-", dir=parent)

    def file(self, name):
        os.makedirs(os.path.join(self.root, "user"), exist_ok=True)
        return os.path.join(self.root, "user", name)

    def targets(self, tag, count):
        """Fresh or existing directories for a target set of its own."""
        directories = [os.path.join(self.root, f"{tag}-target{i}") for i in range(count)]
        for directory in directories:
            os.makedirs(directory, exist_ok=True)
        return directories

    def settle(self):
        settle(self.root)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} after {seconds} s")
        time.sleep(0.02)


def stop(process):
    """Ends a process that we started, by its id, and waits for it."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ThrottledTargets:
    """Mounts with the same fixed bandwidth each: a pass-through with a token bucket before a directory on tmpfs."""

    def __init__(self, program, place, count, bytes_per_second):
        if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.W_OK):
            raise Skip("no FUSE here: throttled targets cannot be mounted")
        if not os.path.exists(program):
            raise Skip("the throttling pass-through is not built (libfuse3-dev is missing)")
        self.processes, self.mounts, self.backing = [], [], []
        try:
            for i in range(count):
                self._mount(program, place, i, bytes_per_second)
        except BaseException:
            self.close()
            raise

    def _mount(self, program, place, i, bytes_per_second):
        backing = os.path.join(place.root, f"backing{i}")
        mount = os.path.join(place.root, f"throttled{i}")
        os.makedirs(backing)
        os.makedirs(mount)
        self.processes.append(subprocess.Popen([program, str(bytes_per_second), backing, mount], stderr=subprocess.DEVNULL))
        self.mounts.append(mount)
        self.backing.append(backing)
        wait_for(lambda: os.path.ismount(mount), 10, f"{mount} is not a mount")

    def assert_mounted(self):
        for mount in self.mounts:
            if not os.path.ismount(mount):
                raise Failed(f"{mount} is no longer a mount")

    def close(self):
        for mount in self.mounts:
            if os.path.ismount(mount):
                subprocess.run(["fusermount3", "-uz", mount], check=False)
        for process in self.processes:
            stop(process)
        self.processes = []
