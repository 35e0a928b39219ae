"""Files over node agents on links of a known rate (tests/tools/nodes.py: a network namespace and a tmpfs for each node), against plain TCP that moves
the same bytes between the same nodes; and how many round trips a small file costs where each takes a millisecond.

As a program it is what runs on the first node: it prints, for each side, the seconds of each repetition, and the share of the processors' time
that was idle meanwhile."""
import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CLUSTER = HERE.parent / "tests" / "tools" / "nodes.py"
NODES, K, M = 6, 4, 2  # and a spare
ALONE, OTHERS = 1, list(range(2, NODES + 1))
PIECE = 4 << 20
SMALL = 64 << 10

WRITER = """
import os, sys
piece = os.urandom(%d)
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
for _ in range(int(sys.argv[2]) // len(piece)):
    os.write(file, piece)
os.close(file)
""" % PIECE

SMALL_WRITER = """
import os, sys, time
piece = os.urandom(%d)
def write(name):
    began = time.monotonic()
    file = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(file, piece)
    os.close(file)
    return time.monotonic() - began
write("first.dat")  # it makes the connections
print(" ".join(str(write(f"{i}.dat")) for i in range(int(sys.argv[1]))))
""" % SMALL

# A sink takes what comes and says when it has all; a source sends so many bytes to who asks.
PEER = """
import socket, sys
server = socket.create_server(("0.0.0.0", 7000))
zeros = bytes(1 << 20)
print("ready", flush=True)
while True:
    link, _ = server.accept()
    how, size = link.recv(64).decode().split()
    left = int(size)
    if how == "take":
        link.sendall(b"!")
        while left > 0:
            left -= len(link.recv(1 << 20))
        link.sendall(b"!")
    elif how == "give":
        while left > 0:
            left -= link.send(zeros[:left])
    else:
        while link.recv(1):
            link.sendall(b"!")
    link.close()
"""


# ---- on the first node

class Inside:
    def __init__(self, options):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.work = self.root / "work"
        self.work.mkdir()
        self.holdfast = options.build / "bin" / "holdfast"
        self.bytes, self.repetitions = options.bytes, options.repetitions
        os.environ["HOLDFAST_AGENTS"] = str(self.work / "agents")
        self.peers = []
        for node in range(1, NODES + 2):
            self.start_agent(node)
        for node in OTHERS + [NODES + 1]:
            peer = subprocess.Popen(self.on(node, sys.executable, "-c", PEER), stdout=subprocess.PIPE, text=True)
            self.peers.append(peer)
            peer.stdout.readline()

    def close(self):
        for peer in self.peers:
            peer.kill()
            peer.wait()
        subprocess.run([self.holdfast, "agents", "stop"], capture_output=True)

    def on(self, node, *command):
        holder = (self.root / f"node{node}.pid").read_text()
        return ["nsenter", "-t", holder, "--net", "--uts", "--ipc", "--mount", f"--wd={self.work}", *map(str, command)]

    def run(self, *command, node=1):
        done = subprocess.run(self.on(node, *command), capture_output=True, text=True, timeout=200)
        if done.returncode > 1:  # a degraded file's status is 1
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def disk(self, node):
        return f"/dev/shm/disk{node}"

    def address(self, node):
        return f"n{node}:{self.disk(node)}"

    def start_agent(self, node):
        self.run("mkdir", "-p", self.disk(node), node=node)
        self.run(self.holdfast, "agents", "start", "--node", f"n{node}", self.disk(node), node=node)

    def protected(self, *command):
        targets = ",".join(self.address(node) for node in range(1, NODES + 1))
        return [self.holdfast, "run", "--protect", f"rs:{K}+{M}", "--targets", targets, "--path", "*.dat", "--", *command]

    # ---- sides: each returns seconds

    @staticmethod
    def timed(work):
        began = time.monotonic()
        work()
        return time.monotonic() - began

    def move_plainly(self, nodes, how, size):
        """So many bytes in all, to or from all those nodes at once."""
        def move(node):
            link = socket.create_connection((f"10.99.0.{node}", 7000))
            left = size // len(nodes)
            link.sendall(f"{how} {left}".encode())
            if how == "take":
                link.recv(1)
                zeros = memoryview(bytes(1 << 20))
                while left > 0:
                    left -= link.send(zeros[:left])
                link.recv(1)
            else:
                while left > 0:
                    left -= len(link.recv(1 << 20))
            link.close()
        threads = [threading.Thread(target=move, args=(node,)) for node in nodes]
        return self.timed(lambda: ([t.start() for t in threads], [t.join() for t in threads]))

    def write(self, name="out.dat", node=1):
        return self.timed(lambda: self.run(*self.protected(sys.executable, "-c", WRITER, name, self.bytes), node=node))

    def write_on_all(self):
        threads = [threading.Thread(target=self.write, args=(f"of{node}.dat", node)) for node in range(1, NODES + 1)]
        return self.timed(lambda: ([t.start() for t in threads], [t.join() for t in threads]))

    def read(self):
        return self.timed(lambda: self.run("sh", "-c", f"{self.holdfast} cat out.dat >/dev/null"))

    def lose(self, *nodes):
        for node in nodes:
            self.run(self.holdfast, "agents", "stop", f"n{node}")
            self.run("rm", "-rf", self.disk(node), node=node)

    def mend(self, *nodes):
        for node in nodes:
            self.start_agent(node)
            self.run(self.holdfast, "repair", "out.dat", "--replace", f"{self.address(node)}={self.address(node)}")

    def read_degraded(self):
        self.lose(NODES - 1, NODES)
        seconds = self.read()
        self.mend(NODES - 1, NODES)
        return seconds

    def rebuild(self):
        spare, lost = self.address(NODES + 1), self.address(NODES)
        self.lose(NODES)
        seconds = self.timed(lambda: self.run(self.holdfast, "repair", "out.dat", "--replace", f"{lost}={spare}"))
        self.start_agent(NODES)
        self.run(self.holdfast, "repair", "out.dat", "--replace", f"{spare}={lost}")
        self.lose(NODES + 1)
        self.start_agent(NODES + 1)  # empty again, as a replacement has to be
        return seconds

    def bandwidths(self):
        size = self.bytes
        share = size // K  # of one member
        return {
            "sent plainly": lambda: self.move_plainly(OTHERS, "take", share * (NODES - 1)),  # its own unit of each row stays here
            "written": self.write,
            "received plainly": lambda: self.move_plainly(OTHERS, "give", size * (NODES - 1) // NODES),
            "read": self.read,
            "received from three": lambda: self.move_plainly(OTHERS[:K - 1], "give", share * (K - 1)),
            "read degraded": self.read_degraded,
            "written on all": self.write_on_all,
            "sent to the spare": lambda: self.move_plainly([NODES + 1], "take", share),
            "rebuilt": self.rebuild,
        }

    def round_trip(self):
        with socket.create_connection(("10.99.0.2", 7000)) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(b"echo 0")
            time.sleep(0.1)
            times = []
            for _ in range(50):
                began = time.monotonic()
                link.sendall(b"?")
                link.recv(1)
                times.append(time.monotonic() - began)
        return statistics.median(times)

    def small_files(self):
        seconds = self.run(*self.protected(sys.executable, "-c", SMALL_WRITER, 20)).split()
        for path in self.work.glob("*.dat"):
            self.run(self.holdfast, "rm", path)
        return statistics.median(map(float, seconds))

    def measure(self, sides):
        idle, results = [], {name: [] for name in sides}
        for _ in range(self.repetitions):
            for name, work in sides.items():
                before = processor_time()
                results[name].append(work())
                after = processor_time()
                idle.append((name, (after[0] - before[0]) / max(1, after[1] - before[1])))
        return {"seconds": results, "idle": {name: statistics.median(share for of, share in idle if of == name) for name in sides}}


def processor_time():
    """(idle, all) of all processors, in ticks."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def inside():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--what", choices=("bandwidths", "rounds"), required=True)
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    here = Inside(options)
    try:
        sides = here.bandwidths() if options.what == "bandwidths" else {"round trip": here.round_trip, "small file": here.small_files}
        print(json.dumps(here.measure(sides)))
    finally:
        here.close()
        shutil.rmtree(here.work)


# ---- for the table

LINES = (  # what, ours, base, least ratio of rates, whether by each node
    ("rs:4+2 written by one node", "written", "sent plainly", 0.9, 1),
    ("rs:4+2 read by one node", "read", "received plainly", 0.9, 1),
    ("rs:4+2 read by one node, two nodes lost", "read degraded", "received from three", 0.9, 1),
    ("six nodes write at once, against six times one", "written on all", "written", 0.85, NODES),
    ("a lost node rebuilt on a spare, against the spare's link", "rebuilt", "sent to the spare", 0.7, 1),
)


def run_cluster(bench, what, *options, rate=None, delay_us=0, size=0):
    from harness import Skip, run_command
    cluster = [sys.executable, "-B", str(CLUSTER), "--count", str(NODES + 1)]
    cluster += ["--rate", rate] if rate else []
    cluster += ["--delay-us", str(delay_us), "--relay", bench.path("delaying_relay")] if delay_us else []
    probe = subprocess.run([*cluster, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise Skip(probe.stderr.strip().removeprefix("nodes.py: skipped, ") or "no cluster of namespaces can be made here")
    out, _ = run_command([*cluster, sys.executable, "-B", __file__, "--build", bench.build, "--what", what, "--repetitions", str(bench.pick(2, 5)),
                          "--bytes", str(size), *options], {}, 600)
    return json.loads(out.splitlines()[-1])


def line(what, values, limit, ours, base, size, kind="rate", note="agent-links"):
    from harness import quartile_spread
    value = statistics.median(values)
    return {"what": what, "kind": kind, "limit": limit, "note": note, "met": value >= limit if kind == "rate" else value <= limit, "value": value,
            "noise": quartile_spread(values), "repetitions": len(values), "base_seconds": statistics.median(base),
            "ours_seconds": statistics.median(ours), "base_rate": size / statistics.median(base) / 1e6,
            "ours_rate": size / statistics.median(ours) / 1e6}


def bandwidth_lines(rate):
    def lines(bench):
        size = bench.pick(32, 64 if rate == "200mbit" else 256) << 20
        measured = run_cluster(bench, "bandwidths", rate=rate, size=size)
        table = []
        for what, ours, base, limit, writers in LINES:
            a, b = measured["seconds"][ours], measured["seconds"][base]
            bound = measured["idle"][ours] < 0.1
            made = line(f"{what}, links of {rate}{' (CPU-bound, not met or missed)' if bound else ''}", [y / x for x, y in zip(a, b)], limit, a, b, size)
            if bound:
                made["met"] = None
            if writers > 1:
                made["ours_rate"] *= writers
            idle = f"processors idle for {100 * measured['idle'][ours]:.0f} % of the time"
            table += [made, {**line(f"{what}, links of {rate}: least times, {idle}", [min(b) / min(a)], 0, a, b, size), "limit": None, "met": None}]
        for base in dict.fromkeys(base for _, _, base, _, _ in LINES if base != "written"):
            times = measured["seconds"][base]
            table.append({**line(f"{base}, links of {rate}: against itself, one time after the other", [x / y for x, y in zip(times, times[1:])], 0, times[1:], times, size),
                          "limit": None, "met": None})
        return table
    return lines


def round_lines(bench):
    short, long = (run_cluster(bench, "rounds", delay_us=delay)["seconds"] for delay in (500, 5000))
    ours, base = short["small file"], short["round trip"]
    # What each round trip adds, whatever the processors need beside it.
    rounds = [(y - x) / (b - a) for x, y, a, b in zip(ours, long["small file"], base, long["round trip"])]
    return [line("a file of 64 KiB made, written and closed over agents, rs:4+2: round trips one behind another", rounds, 8, long["small file"],
                 long["round trip"], SMALL, "time", "agent-rounds"),
            {**line("the same: its time, in round trips of 1 ms", [x / y for x, y in zip(ours, base)], 0, ours, base, SMALL, "time", "agent-rounds"),
             "limit": None, "met": None}]


def groups():
    return {"agent-links-200": bandwidth_lines("200mbit"), "agent-links-1000": bandwidth_lines("1gbit"), "agent-rounds": round_lines}


if __name__ == "__main__":
    inside()
