"""Shared file pointers: the four write calls by several ranks, under holdfast run, under each MPI's own, and the same ranks
calling pwrite at offsets known beforehand, which is the limit."""

import os

from harness import Group, Row, Skip
from places import Place
from workloads import MIB, launcher, native_write

# name -> (MPI, what the environment says to it). ROMIO is MPICH's, the others are Open MPI's components: Debian's 4.1 and, where
# `make deps` has brought it, 5.
NATIVE = {"ROMIO": ("mpich", {})}
for component in ("sm", "lockedfile", "individual"):
    NATIVE[component] = ("openmpi", {"OMPI_MCA_sharedfp": component})
    NATIVE[f"{component} of Open MPI 5"] = ("openmpi5", {"OMPI_MCA_sharedfp": component})
# Components that lock files or merge logs have been seen to hang.
NATIVE_TIMEOUT_S = 20


def size_text(count):
    return f"{count >> 20} MiB" if count >= MIB else f"{count >> 10} KiB"


def job(bench, mpi, ranks, mode, path, record, each):
    binary = bench.path(f"bench/shared_bench.{mpi}")
    start = launcher(mpi, ranks)
    if mpi == "openmpi5":
        start[0] = os.path.join(bench.build, "mpi", "openmpi", "bin", "mpirun")
    return start + [binary, "--mode", mode, "--path", path, "--record", str(record), "--each", str(each)]


def side(bench, place, name, mpi, ranks, mode, record, each, environment=None, run=None):
    """`run`: the options of holdfast run; None: natively."""
    path = place.file(f"{name}-{mode}.dat")
    check = "verify-ordered" if mode in ("ordered", "split") else "verify"
    command = job(bench, mpi, ranks, mode, path, record, each)
    if run is not None:
        command = [bench.holdfast, "run", *run, "--", *command]
    made = native_write(bench, place, [path], command, job(bench, mpi, ranks, check, path, record, each) if mode != "open" else None)
    made.environment = environment or {}
    return made


def native_side(bench, place, name, ranks, mode, record, each):
    mpi, environment = NATIVE[name]
    made = side(bench, place, name.replace(" ", "-"), mpi, ranks if mpi != "mpich" else 2, mode, record, each, environment)
    made.timeout_s = NATIVE_TIMEOUT_S
    clear = made.before

    def before():
        if not os.path.exists(bench.path(f"bench/shared_bench.{mpi}")):
            raise Skip("Open MPI 5 is not here (make deps brings it)")
        clear()

    made.before = before
    return made


def shared(parent, label, mode, record, ranks=4):
    limit = {"shared": 0.85 if record < MIB else 0.97, "ordered": None}.get(mode)
    better = {"shared": 3.0, "ordered": 1.5}.get(mode)

    def group(bench):
        place = Place(parent, label)
        each = max(4, min(bench.pick(20000, 40000), bench.pick(256, 512) * MIB // record // ranks))
        if mode in ("ordered", "split"):
            each = max(4, each // 10)
        sides, rows = {}, []
        for mpi in ("openmpi", "mpich"):
            n = ranks if mpi == "openmpi" else 2  # MPICH's ranks spin while they wait
            sides[f"{mpi} pwrite"] = side(bench, place, f"{mpi}-pwrite", mpi, n, "pwrite", record, each)
            for algorithm in ("window", "process"):
                sides[f"{mpi} {algorithm}"] = side(bench, place, f"{mpi}-{algorithm}", mpi, n, mode, record, each,
                                                   {"HOLDFAST_SHARED_POINTER": algorithm}, [])
        for name in NATIVE:
            sides[name] = native_side(bench, place, name, ranks, mode, record, each)
        what = f"{mode}, {size_text(record)} records, {label}"
        for mpi in ("openmpi", "mpich"):
            rows.append(Row(f"window, {what}, {mpi}: against pwrite at known offsets", f"{mpi} window", f"{mpi} pwrite", "rate", limit,
                            "shared-limit"))
            rows.append(Row(f"process, {what}, {mpi}: against pwrite at known offsets", f"{mpi} process", f"{mpi} pwrite", "rate", None,
                            "shared-process"))
        for name, (mpi, _) in NATIVE.items():
            wanted = better if mode == "ordered" or name == "ROMIO" else 1.0
            gathers = name.startswith("individual")  # into logs that are merged at close, which the clock leaves out
            ours = "mpich" if mpi == "mpich" else "openmpi"
            rows.append(Row(f"window, {what}, {ours}: against {name}", f"{ours} window", name, "rate",
                            wanted if record < MIB and not gathers else None, "shared-gathers" if gathers else "shared-native"))
        return Group(f"shared-{mode}-{record >> 10}k-{label}", f"Shared pointers: {what}", sides, rows, bench.pick(3, 7), place.close)

    return group


def open_only(mpi):
    def group(bench):
        place = Place("/dev/shm", "tmpfs")
        ranks = 4 if mpi == "openmpi" else 2
        each = bench.pick(100, 1000)
        sides = {"run": side(bench, place, "run", mpi, ranks, "open", 1024, each, None, []),
                 "native pointer": side(bench, place, "nat", mpi, ranks, "open", 1024, each, {"HOLDFAST_SHARED_POINTER": "native"}, []),
                 "native": side(bench, place, "bare", mpi, ranks, "open", 1024, each)}
        rows = [Row(f"open and close without a shared pointer's use, {mpi}: ours against the MPI's", "run", "native pointer", "least", None, "shared-open"),
                Row(f"open and close, {mpi}: holdfast run against none", "run", "native", "least", 1.1, "shared-open"),
                Row(f"open and close, {mpi}: holdfast run against none: processor time", "run", "native", "cpu", 1.1, "shared-open")]
        return Group(f"shared-open-{mpi}", "Shared pointers: open and close", sides, rows, bench.pick(5, 11), place.close)

    return group


def groups(quick):
    made = {}
    for mode in ("shared", "ordered") if quick else ("shared", "ishared", "ordered", "split"):
        for record in (1 << 10, MIB) if quick or mode != "shared" else (1 << 10, 64 << 10, MIB, 16 * MIB):
            made[f"shared-{mode}-{record >> 10}k"] = shared("/dev/shm", "tmpfs", mode, record)
    if not quick:
        made["shared-disk"] = shared("/var/tmp", "disk", "shared", 1 << 10)
        for ranks in (1, 2, 8):
            made[f"shared-ranks-{ranks}"] = shared("/dev/shm", f"tmpfs, {ranks} rank{'s' if ranks > 1 else ''}", "shared", 1 << 10, ranks)
    for mpi in ("openmpi", "mpich"):
        made[f"shared-open-{mpi}"] = open_only(mpi)
    return made
