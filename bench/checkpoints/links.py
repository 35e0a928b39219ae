"""What is measured of checkpoints on links of a known rate. As a program it is what runs on the first node: it prints one line of JSON, for each side what
each repetition took."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import Nodes, ask_all, measure, processor_time  # noqa: E402

MIB = 1 << 20
GROUP = 4
SCHEMES = {"rep-2": "mirror:2", "rep-3": "mirror:3", "rep-4": "mirror:4", "rs-4": "rs:4+4", "rs-8": "rs:8+8"}
NODES = {"algorithms": GROUP, "unshaped": GROUP, "discarded": 1, "chunks": 17, "writers": 17, "local": 8, "stencil": 8, "rebuild": 7, "packs": 6}
CHUNKS = [128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20]
WRITERS = [1, 2, 4, 8, 16]


def width_of(scheme):
    kind, numbers = scheme.split(":")
    return int(numbers) if kind == "mirror" else sum(map(int, numbers.split("+")))


def data_units_of(scheme):
    return int(scheme[len("rs:"):].split("+")[0]) if scheme.startswith("rs:") else 1


# ---- the two algorithms, k = m = 4 on groups of 4: each node writes a checkpoint at once

def algorithms(nodes, options):
    everybody = range(1, GROUP + 1)
    ring = "/dev/shm/ring"
    nodes.start_agents(everybody, "/dev/shm/a", ring)
    nodes.start_agents(everybody, "/dev/shm/b", suffix="b")  # two of the eight units of a row lie on each node
    nodes.start_plain()
    for node in everybody:
        nodes.make_file(node, f"{ring}/source", options.bytes)
    members = ",".join([f"n{node}:/dev/shm/a" for node in everybody] + [f"n{node}b:/dev/shm/b" for node in everybody])
    low = nodes.workers_of([nodes.bench(n, "protect", own=f"n{n}:/dev/shm/a", nodes=members, scheme="rs:4+4", unit=MIB, file=f"{ring}/source", rank=n)
                            for n in everybody])
    spread = nodes.workers_of([nodes.bench(n, "distributed", rank=n - 1, group=GROUP, own=f"n{n}:{ring}", right=f"n{n % GROUP + 1}:{ring}",
                                           right_host=nodes.host(n % GROUP + 1), port=7100 + n, right_port=7100 + n % GROUP + 1, unit=MIB) for n in everybody])
    ask_all(spread, "join")

    def write_low():
        _, said = ask_all(low, "write")
        ask_all(low, "drop")
        return {key: max(one[key] for one in said) for key in ("seconds", "prepare", "read")}

    def write_spread():
        _, said = ask_all(spread, "code")
        return {key: max(one[key] for one in said) for key in ("seconds", "read", "code", "wait")}

    def plain(share):
        return lambda: {"seconds": nodes.send_plainly([(n, n % GROUP + 1, int(share * options.bytes)) for n in everybody])}

    # Once, outside the clock: what half of the nodes had is made anew from the others.
    ask_all(low, "write")
    ask_all(low, "check")
    coding, _ = ask_all(low, "code"), ask_all(low, "drop")
    ask_all(spread, "code")
    ask_all(spread[:1], "check=" + ",".join(f"n{n}:{ring}" for n in everybody))
    results = measure({"low": write_low, "distributed": write_spread, "low plainly": plain(1.5), "distributed plainly": plain(3.0)}, options.repetitions, nodes,
                      "low")
    for said in results["low"]:
        said["code"] = max(one["seconds"] for one in coding[1])
    return results


def unshaped(nodes, options):
    """The same where links have no bound: the processors are the limit."""
    return algorithms(nodes, options)


# ---- what protecting takes beside its reading, coding and hashing: the directories take all units and keep none

def discarded(nodes, options):
    disk, source = "/dev/shm/disk", "/dev/shm/source"
    letters = "abcdefgh"[:width_of(SCHEMES["rs-4"])]
    for letter in letters:
        nodes.start_agents([1], disk + letter, suffix=letter)
    nodes.make_file(1, source, options.bytes)
    members = ",".join(f"n1{letter}:{disk}{letter}" for letter in letters)
    worker = nodes.worker(*nodes.bench(1, "protect", own=f"n1a:{disk}a", nodes=members, scheme=SCHEMES["rs-4"], unit=MIB, file=source, rank=0, discard=1))

    def ask(*lines):
        return {"seconds": sum(ask_all([worker], line)[1][0]["seconds"] for line in lines)}

    def write():
        said = ask("write")
        ask_all([worker], "drop")
        return said

    def copy():
        began = time.monotonic()
        nodes.run("cp", source, source + ".copy")
        return {"seconds": time.monotonic() - began}
    write()
    return measure({"protected": write, "its parts": lambda: ask("read", "code"), "copied": copy}, options.repetitions, nodes, "protected")


# ---- all units and copies on other nodes than the writer's

class Remote:
    def __init__(self, nodes, size):
        self.nodes, self.size = nodes, size
        everybody = range(1, nodes.count + 1)
        nodes.start_agents(everybody, "/dev/shm/disk")
        self.have_file = set()

    def workers(self, scheme, chunk, writers):
        commands = []
        for node in range(1, writers + 1):
            if node not in self.have_file:
                self.nodes.make_file(node, "/dev/shm/source", self.size)
                self.have_file.add(node)
            others = [f"n{(node - 1 + i) % self.nodes.count + 1}:/dev/shm/disk" for i in range(1, width_of(scheme) + 1)]
            commands.append(self.nodes.bench(node, "protect", own=others[0], nodes=",".join(others), scheme=scheme, unit=chunk // data_units_of(scheme),
                                             file="/dev/shm/source", rank=node))
        workers = self.nodes.workers_of(commands)
        ask_all(workers, "write")  # it makes the connections
        ask_all(workers[:1], "check")
        ask_all(workers, "drop")
        return workers

    @staticmethod
    def side(workers):
        def write():
            _, said = ask_all(workers, "write")
            ask_all(workers, "drop")
            return {"seconds": max(one["seconds"] for one in said), "mean": statistics.mean(one["seconds"] for one in said)}
        return write


def remote(nodes, options, cases):
    """`cases`: label -> (chunk, writers). All schemes of one case in turn."""
    place, results = Remote(nodes, options.bytes), {}
    for label, (chunk, writers) in cases.items():
        sides, all_workers = {}, []
        for name, scheme in SCHEMES.items():
            workers = place.workers(scheme, chunk, writers)
            sides[f"{name} {label}"] = place.side(workers)
            all_workers += workers
        results.update(measure(sides, options.repetitions, nodes, f"rs-4 {label}"))
        for worker in all_workers:
            worker.end()
            nodes.workers.remove(worker)
    return results


def chunks(nodes, options):
    return remote(nodes, options, {str(chunk): (chunk, 1) for chunk in CHUNKS})


def writers(nodes, options):
    return remote(nodes, options, {str(count): (512 << 10, count) for count in WRITERS})


# ---- programs under `holdfast run`

def ticks_of(*names):
    """Processor time of the cluster's processes of these names, in seconds: whoever ends before is forgotten."""
    total = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue  # has ended meanwhile
        if text[text.index("(") + 1:text.rindex(")")] in names:
            total += sum(map(int, text.rsplit(")", 1)[1].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


class Job:
    """A program, as it is or under `holdfast run`: what it prints, and the seconds of the whole command."""

    def __init__(self, nodes, command, scheme=None):
        self.nodes, self.command, self.scheme = nodes, command, scheme

    def run(self, meanwhile=lambda: None):
        # A plain program writes to the same kind of file system, in a directory beside the nodes' own.
        directory = "/dev/shm/job" if self.scheme else "/dev/shm/plain"
        for node in range(1, self.nodes.count + 1):
            self.nodes.run("sh", "-c", "rm -rf /dev/shm/plain /dev/shm/job /dev/shm/hf; mkdir -p /dev/shm/plain/ck /dev/shm/job/ck", node=node)
        command = list(map(str, self.command))
        if self.scheme:
            names = ",".join(f"node{i}" for i in range(1, self.nodes.count + 1))
            command = [self.nodes.holdfast, "run", "--protect", self.scheme, "--local", "/dev/shm/hf", "--hosts", names, "--with",
                       f"{self.nodes.root}/remote-shell {{node}}", "--checkpoint", "ck/ck.{step}.{rank}", "--drain", "none", "--", *command]
        began = time.monotonic()
        with open(self.nodes.work / "said", "w+", encoding="utf-8") as said:
            job = subprocess.Popen(self.nodes.on(1, *command, directory=directory), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            seen = meanwhile()
            code = job.wait(timeout=600)
            whole = time.monotonic() - began
            said.seek(0)
            text = said.read()
        if code != 0:
            raise SystemExit(f"{command} ended with {code}: {text}")
        if self.scheme:
            self.nodes.run(self.nodes.holdfast, "agents", "stop")
        return {"whole": whole, "said": text, "seen": seen}


def local(nodes, options):
    """One rank that writes checkpoints; it rests after each, while what it has written is protected."""
    writer = [str(nodes.build / "bin" / "bench" / "checkpoint_writer"), "16", str(options.bytes), "250"]

    def side(scheme):
        def run():
            said = Job(nodes, writer, scheme).run()
            printed = next(one for one in said["said"].splitlines() if one.startswith("{"))
            return {"seconds": said["whole"], **json.loads(printed)}
        return run
    return measure({"plain": side(None), "protected": side("rs:4+2"), "again": side(None)}, options.repetitions, nodes)


STENCIL_RANKS, STENCIL_STEPS, COLUMNS = 4, 12, 256
# Each rank notes when its program began and ended.
CLOCK = 'begin=$(date +%s.%N); "$@" && echo "$begin $(date +%s.%N)" >CLOCK.part && mv CLOCK.part CLOCK.$OMPI_COMM_WORLD_RANK'


class Stencil:
    """Jacobi on four nodes, with a checkpoint half-way."""

    def __init__(self, nodes, size):
        self.nodes, self.rows = nodes, size // (COLUMNS * 8)

    def run(self, scheme, every, pause_us):
        clock = self.nodes.work / "clock"
        for old in self.nodes.work.glob("clock.*"):
            old.unlink()
        hosts = ",".join(f"node{i}" for i in range(1, STENCIL_RANKS + 1))
        program = [self.nodes.build / "examples" / "openmpi" / "jacobi_checkpoint", STENCIL_STEPS, every, self.rows, pause_us]
        command = ["mpirun.openmpi", "--host", hosts, "-n", STENCIL_RANKS, "sh", "-c", CLOCK.replace("CLOCK.part", f"{clock}.part$OMPI_COMM_WORLD_RANK").replace(
            "CLOCK.", f"{clock}."), "sh", *program]
        said = Job(self.nodes, command, scheme).run(lambda: self.agents_until_end(clock))
        times = [list(map(float, (clock.parent / f"clock.{rank}").read_text().split())) for rank in range(STENCIL_RANKS)]
        begin, end = min(begin for begin, _ in times), max(end for _, end in times)
        agents, samples = said["seen"]
        return {"seconds": end - begin, "whole": said["whole"], "agents": agents, "idle": self.idle_between(begin, end, samples),
                "checksum": said["said"].split("checksum ")[1].split()[0]}

    @staticmethod
    def agents_until_end(clock):
        """What agents and protectors have taken of the processors when the last rank ends; and all processors' time, from moment to moment."""
        before, samples, deadline = 0.0, [], time.monotonic() + 500
        while len(list(clock.parent.glob("clock.[0-9]"))) < STENCIL_RANKS and time.monotonic() < deadline:
            before = ticks_of("agent", "protector")
            samples.append((time.time(), *processor_time()))
            time.sleep(0.05)
        return before, samples

    @staticmethod
    def idle_between(begin, end, samples):
        """The idle share of the processors while the program ran: what is protected after its end counts for nothing."""
        inside = [one for one in samples if begin <= one[0] <= end]
        if len(inside) < 2:
            return 1.0
        (_, first_idle, first_all), (_, last_idle, last_all) = inside[0], inside[-1]
        return (last_idle - first_idle) / max(1, last_all - first_all)


def stencil(nodes, options):
    """The checkpoint's plain write takes about a twentieth of the run: steps rest as long as that takes. Runs with several are compared with none, as one write is
    shorter than equal runs differ."""
    jacobi, half, never, several = Stencil(nodes, options.bytes), STENCIL_STEPS // 2 + 1, STENCIL_STEPS + 1, 4

    def least(every):
        return min(jacobi.run(None, every, 0)["seconds"] for _ in range(3))
    without, with_several = least(never), least(STENCIL_STEPS // several)
    write = max(0.02, (with_several - without) / several)
    pause_us = max(0, int((19 * write - without) / STENCIL_STEPS * 1e6))
    print(f"a plain write takes {write:.3f} s beside {without:.3f} s; pauses of {pause_us} us", file=sys.stderr, flush=True)
    cases = {"plain": (None, half), "without": (None, never), "rs-4": ("rs:4+4", half), "rep-4": ("mirror:4", half)}
    results = measure({name: lambda scheme=scheme, every=every: jacobi.run(scheme, every, pause_us) for name, (scheme, every) in cases.items()},
                      options.repetitions, nodes, "plain")
    if len({one["checksum"] for said in results.values() for one in said}) != 1:
        raise SystemExit("the stencil's result is not always the same")
    return results


# ---- a lost node made anew on a spare

def rebuild(nodes, options):
    """Six nodes have protected a file each with rs:4+2 over all six. One goes with its disk, and what it held is made anew over the others and the spare."""
    count, lost, disk = nodes.count - 1, nodes.count - 1, "/dev/shm/disk"
    spare = nodes.count
    everybody = range(1, count + 1)
    nodes.start_agents(range(1, spare + 1), disk)
    nodes.start_plain()
    for node in everybody:
        nodes.make_file(node, "/dev/shm/source", options.bytes)
    first = ",".join(f"n{node}:{disk}" for node in everybody)
    then = ",".join(f"n{spare if node == lost else node}:{disk}" for node in everybody)

    def end(workers):
        for worker in workers:
            worker.end()
            nodes.workers.remove(worker)

    def lose_and_renew():
        writing = nodes.workers_of([nodes.bench(n, "protect", own=f"n{n}:{disk}", nodes=first, scheme="rs:4+2", file="/dev/shm/source", rank=n - 1)
                                    for n in everybody])
        ask_all(writing, "write")
        end(writing)
        nodes.run(nodes.holdfast, "agents", "stop", f"n{lost}")
        nodes.run("rm", "-rf", disk, node=lost)
        # The lost node's share of the files is the spare's, which stands in its place.
        renewing = nodes.workers_of([nodes.bench(spare if n == lost else n, "renew", nodes=then, rank=n - 1) for n in everybody])
        seconds, said = ask_all(renewing, "renew")
        if sum(one["renewed"] for one in said) != count:
            raise SystemExit(f"not all files were made anew: {said}")
        ask_all(renewing, "drop")
        end(renewing)
        nodes.run("sh", "-c", f"rm -rf {disk}/* {disk}/.[a-z]*", node=spare)
        nodes.start_agents([lost], disk)
        return {"seconds": seconds}

    def plain():
        return {"seconds": nodes.send_plainly([(1, spare, count * options.bytes // 4)])}
    return measure({"rebuilt": lose_and_renew, "sent to the spare": plain}, options.repetitions, nodes, "rebuilt")


# ---- small files of many ranks of one node

def packs(nodes, options):
    """64 files of one step of one node, each protected by itself or as many together as wait."""
    disk, files = "/dev/shm/disk", 64
    everybody = range(1, nodes.count + 1)
    nodes.start_agents(everybody, disk)
    members = ",".join(f"n{node}:{disk}" for node in everybody)
    worker = nodes.worker(*nodes.bench(1, "small", own=f"n1:{disk}", nodes=members, scheme="rs:4+2", files=files, bytes=options.bytes))

    def side(how):
        said = ask_all([worker], how)[1][0]
        ask_all([worker], "drop")
        return said
    side("together")
    return measure({how: lambda how=how: side(how) for how in ("together", "alone")}, options.repetitions, nodes, "together")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--what", choices=NODES, required=True)
    parser.add_argument("--bytes", type=int, default=32 * MIB)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    nodes = Nodes(options.build.resolve(), NODES[options.what])
    try:
        print(json.dumps(globals()[options.what](nodes, options)))
    finally:
        nodes.close()
        shutil.rmtree(nodes.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
