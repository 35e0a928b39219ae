"""On the first node of a cluster (tests/tools/nodes.py), one node for each team: file servers of one bandwidth, and the sides of the measurements.

A server is a token bucket (bench/throttlefs.c) before one directory that all nodes share; what comes back together counts at all of them. `one`: all nodes
are clients of the same server. `many`: each node is the client of a server of its own, as where a file is striped over servers and each replica asks another
one. Prints what each run said, and the bytes that each server has read and written."""
import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time
import zlib

MIB = 1 << 20
SIZES = (64 << 10, 256 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
LEAST, PERIOD, FILE = 8 * MIB, 16 * MIB, 64 * MIB
RATE = 50_000_000  # bytes a second, of each server
REPLICAS = (2, 3)
READS = {"one": ("simple", "read-and-distribute", "chained", "chunked-and-chained", "distributed-chunked", "auto"),
         "many": ("simple", "distributed-chunked", "auto")}
WRITES = ("simple", "distributed", "distributed-separate", "auto")
QUICK_SIZES = (64 << 10, 4 * MIB, 64 * MIB)


def pattern():
    """What bench/protocols_bench.c has at each byte: it comes again every 16 MiB."""
    return b"".join(struct.pack("<Q", (i * 0x9E3779B97F4A7C15 + 1) & 0xFFFFFFFFFFFFFFFF) for i in range(PERIOD // 8))


def processor_time():
    """(idle or taken by niced processes, all) of all processors, in ticks."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[1] + ticks[3] + ticks[4], sum(ticks)


class Servers:
    def __init__(self, build, sizes):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.build, self.sizes = build, sizes
        self.holdfast, self.program = build / "bin" / "holdfast", build / "bin" / "bench" / "protocols_bench.openmpi"
        self.directory = self.root / "files"
        self.mounts = {kind: self.root / kind for kind in ("one", "many")}
        self.processes = []
        os.environ.update(XDG_STATE_HOME=str(self.root / "state"), HOLDFAST_SHARED_MOUNTS=",".join(map(str, self.mounts.values())))
        for path in (self.directory, *self.mounts.values()):
            path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", self.directory], check=True)  # for the nodes' servers, which take it over by its descriptor
        self.nodes = max(REPLICAS)
        for node in range(1, self.nodes + 1):
            self.mount(node, "one", "server-one")
            self.mount(node, "many", f"server-{node}")
        self.pattern = pattern()
        (self.directory / "in").write_bytes(self.pattern * (FILE // PERIOD))

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def on(self, node, *command):
        holder = (self.root / f"node{node}.pid").read_text()
        return ["nsenter", "-t", holder, "--net", "--uts", "--ipc", "--mount", *map(str, command)]

    def mount(self, node, kind, server):
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        command = self.on(node, self.build / "bin" / "bench" / "throttlefs", RATE, f"/proc/self/fd/{handle}", self.mounts[kind], self.root / server)
        self.processes.append(subprocess.Popen(command, pass_fds=(handle,), stderr=subprocess.PIPE, text=True))
        os.close(handle)
        for _ in range(500):
            if subprocess.run(self.on(node, "mountpoint", "-q", self.mounts[kind]), check=False).returncode == 0:
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.mounts[kind]} is not a mount on node {node}")

    def moved(self):
        """server -> (bytes read, bytes written) so far."""
        return {file.name: struct.unpack("<QQ", file.read_bytes()[:16]) for file in sorted(self.root.glob("server-*"))}

    def command(self, replicas, protocol, mode, kind, *options):
        hosts = ",".join(f"node{i + 1}" for i in range(replicas or 1))
        job = ["mpirun.openmpi", "--host", hosts, "-n", "1", self.program, "--mode", mode, "--path", self.mounts[kind] / ("in" if mode == "read" else "out"),
               "--sizes", ",".join(map(str, self.sizes)), *options]
        if replicas:
            job = [self.holdfast, "run", "--replicas", replicas, f"--{mode}-protocol", protocol, *job]
        return list(map(str, job))

    def verify_written(self):
        for size in self.sizes:
            path, bytes_ = self.directory / f"out.{size}", max(size, LEAST)
            content = path.read_bytes()
            if len(content) != bytes_ or zlib.crc32(content) != zlib.crc32((self.pattern * (bytes_ // PERIOD + 1))[:bytes_]):
                raise SystemExit(f"{path.name} is not what was written")
        left = [path.name for path in self.directory.iterdir() if "holdfast" in path.name]
        if left:
            raise SystemExit(f"left over: {', '.join(left)}")

    def run(self, replicas, protocol, mode, kind, *options):
        for path in self.directory.glob("out*"):
            path.unlink()
        before, ticks = self.moved(), processor_time()
        done = subprocess.run(self.command(replicas, protocol, mode, kind, *options), capture_output=True, text=True, timeout=300, check=False, cwd=self.root,
                              stdin=subprocess.DEVNULL)
        after, ticks_after = self.moved(), processor_time()
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or len(lines) != 1:
            raise SystemExit(f"{kind}, {mode}, {protocol}, R={replicas} ended with {done.returncode}: {done.stderr[-2000:]}")
        if mode == "write":
            self.verify_written()
        said = json.loads(lines[0])
        said["idle"] = (ticks_after[0] - ticks[0]) / max(1, ticks_after[1] - ticks[1])
        said["servers"] = {name: [b - a for a, b in zip(before[name], after[name])] for name in after if after[name] != before[name]}
        return said


def sides(mode):
    """(replicas, protocol, servers): 0 replicas are the program by itself."""
    made = [(0, "plain", "one")]
    for kind in ("one", "many"):
        made += [(replicas, protocol, kind) for protocol in (READS[kind] if mode == "read" else WRITES) for replicas in REPLICAS]
        if mode == "read" and kind == "one":
            made.append((3, "extended-simple", kind))
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mode", choices=("read", "write"), required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="sides whose name has this in it")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    servers = Servers(options.build.resolve(), QUICK_SIZES if options.quick else SIZES)
    order = random.Random(options.seed)
    chosen = {f"{protocol} {replicas} {kind}": (replicas, protocol, kind) for replicas, protocol, kind in sides(options.mode)}
    chosen = {name: side for name, side in chosen.items() if options.only in name or name.startswith("plain")}
    results = {name: [] for name in chosen}
    try:
        for repetition in range(options.repetitions):
            names = list(chosen)
            order.shuffle(names)
            for name in names:
                said = servers.run(chosen[name][0], chosen[name][1], options.mode, chosen[name][2], *(["--verify"] if options.mode == "read" and repetition == 0 else []))
                results[name].append(said)
                print(f"{name}: " + " ".join(f"{1e-6 * max(int(size), LEAST) / seconds:.1f}" for size, seconds in said["of"].items())
                      + f" MB/s, idle {said['idle']:.2f}, " + ", ".join(f"{n} {r >> 20}+{w >> 20}" for n, (r, w) in said["servers"].items()), file=sys.stderr, flush=True)
        print(json.dumps(results))
    finally:
        servers.close()
        shutil.rmtree(servers.root / "state", ignore_errors=True)


if __name__ == "__main__":
    main()
