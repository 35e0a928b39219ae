"""Shared file pointers between nodes: the time of one claim against the network's round trip, on four network namespaces with links of
1 Gbit/s and half a millisecond each way (tests/tools/nodes.py), one rank on each."""
import os
import subprocess
import sys

from harness import Group, Row, Side, Skip
from places import Place

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = os.path.join(os.path.dirname(HERE), "tests", "tools", "nodes.py")
RANKS, RATE, DELAY_US = 4, "1gbit", 500
LIMIT = 1.3  # round trips; one is the ideal


def cluster(bench):
    return [sys.executable, "-B", CLUSTER, "--count", str(RANKS), "--rate", RATE, "--delay-us", str(DELAY_US),
            "--relay", bench.path("delaying_relay")]


def preloaded(bench, mpi):
    """Debian's MPICH over TCP often stays in MPI_Finalize for ever, natively too."""
    return os.path.join(bench.build, "lib", "libleave_at_finalize.so") if mpi == "mpich" else ""


def side(bench, place, mpi, mode, algorithm=None):
    each = bench.pick(60, 200)
    path = place.file(f"{mpi}-{mode}-{algorithm}.dat")

    def before():
        if os.path.exists(path):
            os.unlink(path)

    program = [f"mpiexec.{mpi}", "-n", str(RANKS), bench.path(f"bench/nodes_bench.{mpi}"), "--mode", mode, "--path", path, "--each", str(each)]
    run = [bench.holdfast, "run", "--"] if algorithm else []
    environment = [f"LD_PRELOAD={preloaded(bench, mpi)}"] + ([f"HOLDFAST_SHARED_POINTER={algorithm}"] if algorithm else [])
    return Side([*cluster(bench), "env", *environment, *run, *program], before=before)


def check(bench):
    probe = subprocess.run([*cluster(bench), "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise Skip(probe.stderr.strip().removeprefix("nodes.py: skipped, ") or "no cluster of namespaces can be made here")


def service(mpi):
    def group(bench):
        check(bench)
        place = Place("/var/tmp", "disk")  # a node's /dev/shm is its own
        sides = {"rtt": side(bench, place, mpi, "rtt")}
        rows = []
        # What serves `window` is the MPI's one-sided operations, or what takes over where they make no progress.
        for algorithm in ("window", "process"):
            for mode, who in (("claim", "one rank at a time"), ("crowd", f"{RANKS - 1} ranks at once")):
                name = f"{algorithm} {mode}"
                sides[name] = side(bench, place, mpi, mode, algorithm)
                rows.append(Row(f"a record's write between nodes, {algorithm}, {mpi}, {who}: against one round trip", name, "rtt", "time", LIMIT,
                                "nodes"))
        return Group(f"nodes-{mpi}", f"Shared pointers between nodes: {mpi}", sides, rows, bench.pick(3, 5), place.close)

    return group


def groups(_quick):
    return {f"nodes-{mpi}": service(mpi) for mpi in ("openmpi", "mpich")}
