"""Nodes for the measurements of checkpoints: network namespaces with links of a known rate and a tmpfs each (tests/tools/nodes.py), an agent on each,
and processes there that are asked for one thing at a time."""
import json
import os
import pathlib
import subprocess
import sys
import time

HEADERS = 14 + 20 + 32  # of Ethernet, IP and TCP, of what the kernel hands to a link at once

# Takes what comes and says when it has all.
SINK = """
import socket, threading
server = socket.create_server(("0.0.0.0", 7000))
print("ready", flush=True)
def take(link):
    left = int(link.recv(64))
    link.sendall(b"!")
    while left > 0:
        left -= len(link.recv(1 << 20))
    link.sendall(b"!")
    link.close()
while True:
    threading.Thread(target=take, args=(server.accept()[0],)).start()
"""

# Sends so many bytes to a sink when it is told to.
SOURCE = """
import socket, sys, time
print("ready", flush=True)
zeros = memoryview(bytes(1 << 20))
for line in sys.stdin:
    host, left = line.split()
    left = int(left)
    began = time.monotonic()
    link = socket.create_connection((host, 7000))
    link.sendall(str(left).encode())
    link.recv(1)
    while left > 0:
        left -= link.send(zeros[:left])
    link.recv(1)
    link.close()
    print('{"seconds": %f}' % (time.monotonic() - began), flush=True)
"""


def processor_time():
    """(idle or taken by niced processes, all) of all processors, in ticks: what is measured is not niced, and gets these when it wants them."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[1] + ticks[3] + ticks[4], sum(ticks)


class Worker:
    """A process on a node; `ask` gives it a line and takes its answer."""

    def __init__(self, command, environment):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def wait_until_ready(self):
        if self.process.stdout.readline() != "ready\n":
            self.fail()
        return self

    def fail(self):
        self.process.kill()
        raise SystemExit(f"{' '.join(map(str, self.command[6:]))} has ended: {self.process.stderr.read()}")

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.fail()
        return json.loads(line)

    def end(self):
        self.process.kill()
        self.process.communicate()


def ask_all(workers, line):
    """All at once; (seconds until the last one has answered, the answers)."""
    began = time.monotonic()
    for worker in workers:
        worker.tell(line)
    answers = [worker.answer() for worker in workers]
    return time.monotonic() - began, answers


class Nodes:
    """On the first node of a cluster."""

    def __init__(self, build, count):
        self.root = pathlib.Path(os.environ["TMPDIR"])
        self.work = self.root / "work"
        self.work.mkdir()
        self.build, self.count = build, count
        self.holdfast = build / "bin" / "holdfast"
        os.environ.update(HOLDFAST_AGENTS=str(self.work / "agents"), HOLDFAST_DEADLINE="120s", HOLDFAST_JOBS=str(self.work / "jobs"))
        self.workers, self.kept = [], {}

    def close(self):
        for worker in self.workers:
            worker.end()
        subprocess.run([self.holdfast, "agents", "stop"], capture_output=True, check=False)

    def on(self, node, *command, directory=None):
        holder = (self.root / f"node{node}.pid").read_text()
        return ["nsenter", "-t", holder, "--net", "--uts", "--ipc", "--mount", f"--wd={directory or self.work}", *map(str, command)]

    def run(self, *command, node=1, directory=None):
        done = subprocess.run(self.on(node, *command, directory=directory), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    @staticmethod
    def host(node):
        return f"10.99.0.{node}"

    def start_agents(self, nodes, *directories, suffix=""):
        for node in nodes:
            self.run("mkdir", "-p", *directories, node=node)
            self.run(self.holdfast, "agents", "start", "--node", f"n{node}{suffix}", *directories, node=node)

    def make_file(self, node, path, size):
        self.run("sh", "-c", f"head -c {size} /dev/urandom >{path}", node=node)

    def worker(self, node, *command):
        made = Worker(self.on(node, *command), {})
        self.workers.append(made)
        return made.wait_until_ready()

    def workers_of(self, commands):
        """Of (node, command...) side by side, for some wait for each other at their begin."""
        made = [Worker(self.on(node, *command), {}) for node, *command in commands]
        self.workers += made
        return [one.wait_until_ready() for one in made]

    def bench(self, node, what, **options):
        return (node, self.build / "bin" / "bench" / "checkpoint_bench", what, *(f"{name}={value}" for name, value in options.items()))

    def payload(self):
        """Bytes that all links have taken so far without the headers of what carried them, sent by nodes."""
        total = 0
        for node in range(1, self.count + 1):
            for line in self.run("cat", "/proc/net/dev", node=node).splitlines():
                if line.strip().startswith("eth0:"):
                    words = line.split(":")[1].split()
                    total += int(words[8]) - HEADERS * int(words[9])
        return total

    def start_plain(self):
        """A sink and a source on each node, for what plain TCP takes."""
        self.sinks = self.workers_of([(node, sys.executable, "-c", SINK) for node in range(1, self.count + 1)])
        self.sources = self.workers_of([(node, sys.executable, "-c", SOURCE) for node in range(1, self.count + 1)])

    def send_plainly(self, moves):
        """`moves`: (from, to, bytes), all at once."""
        began = time.monotonic()
        for origin, to, size in moves:
            self.sources[origin - 1].tell(f"{self.host(to)} {size}")
        for origin, _, _ in moves:
            self.sources[origin - 1].answer()
        return time.monotonic() - began


def measure(sides, repetitions, nodes, again=None):
    """Sides in turn. name -> list of what they say, with the payload on the links, and the idle share of the processors where they do not say it. The side
    `again` has two turns, the second one as "NAME again": how much equal sides differ."""
    if again:
        sides = {**sides, f"{again} again": sides[again]}
    results = {name: [] for name in sides}
    for _ in range(repetitions):
        for name, work in sides.items():
            sent, before = nodes.payload(), processor_time()
            said = work()
            after = processor_time()
            said.setdefault("idle", (after[0] - before[0]) / max(1, after[1] - before[1]))
            said["payload"] = nodes.payload() - sent
            results[name].append(said)
            print(f"{name}: {said['seconds']:.3f} s, idle {said['idle']:.2f}", file=sys.stderr, flush=True)
    return results
