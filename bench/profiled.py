"""What the profile costs: a call, and jobs. Each side runs under `holdfast run`, with the profile and without, on files that nobody serves."""
import os
import subprocess

from harness import Failed, Group, Row, Side
from places import Place
from workloads import MIB, remove_native

LIMIT_NS = 80


def under(bench, place, name, profiled, command):
    """`command` under `holdfast run`; with the profile, its log has to be there, and to have the file."""
    if not profiled:
        return [bench.holdfast, "run", *command]
    return [bench.holdfast, "run", "--log", os.path.join(place.root, f"{name}.hflog"), "--profile-exclude", "!" + os.path.join(place.root, "*"), *command]


def side(bench, place, name, profiled, make_command, path, fresh):
    def before():
        if fresh:
            remove_native([path])
        elif not os.path.exists(path):
            with open(path, "wb") as out:
                out.write(b"x" * (2 * MIB))
        place.settle()

    def check():
        if not profiled:
            return
        told = subprocess.run([bench.holdfast, "report", "--csv", os.path.join(place.root, f"{name}.hflog")], capture_output=True, text=True, check=True)
        if path not in told.stdout:
            raise Failed(f"the profile says nothing of {path}: it was not counted")

    return Side(under(bench, place, name, profiled, make_command(path)), before=before, check=check)


def calls(bench):
    place = Place("/dev/shm", "tmpfs")
    count = bench.pick(200_000, 1_000_000)
    # Words, and how many calls are counted for each that the program makes: below MPI-IO the MPI's own is one too.
    kinds = {"write": ("consecutive 512-byte writes", 1), "read": ("consecutive 512-byte reads", 1), "scatter": ("512-byte pwrites at random places", 1),
             "fwrite": ("consecutive 512-byte fwrites", 1), "putc": ("characters by putc", 1),
             "mpi": ("512-byte MPI_File_write_at, consecutive", 2), "mpi-scatter": ("512-byte MPI_File_write_at at random places", 2)}
    sides, rows = {}, []
    for kind, (words, counted) in kinds.items():
        for profiled in (False, True):
            name = f"{kind}{'-profiled' if profiled else ''}"
            sides[name] = side(bench, place, name, profiled, lambda path, kind=kind: bench.job(1, "calls_bench", "--mode", kind, "--path", path, "--calls", count),
                               place.file(f"{name}.dat"), False)
        limit = LIMIT_NS * count * counted / 1e9
        rows.append(Row(f"profile, {count:,} {words}, tmpfs: {LIMIT_NS} ns a call that is counted = {limit:.3f} s", f"{kind}-profiled", kind, "extra", limit,
                        "profile-mpi-call" if counted > 1 else "profile-call"))
    return Group("profile-calls", "Profile", sides, rows, bench.pick(3, 7), place.close)


def jobs(bench):
    place = Place("/dev/shm", "tmpfs")
    total = bench.pick(256, 1024) * MIB
    kinds = {
        "ior": ("an IOR-like job of 4 ranks, 1 MiB blocks", 1.01,
                lambda path: bench.job(4, "mpiio_bench", "--mode", "write", "--path", path, "--bytes", total, "--block", MIB)),
        "large": ("a serial program, 16 MiB writes", 1.01,
                  lambda path: [bench.path("bench/posix_bench"), "--mode", "write", "--path", path, "--bytes", str(total), "--piece", str(16 * MIB)]),
        "small": ("a serial program, 512-byte writes", None,  # judged by the call, above
                  lambda path: [bench.path("bench/posix_bench"), "--mode", "write", "--path", path, "--bytes", str(total // 4), "--piece", "512"]),
    }
    sides, rows = {}, []
    for kind, (words, limit, command) in kinds.items():
        for profiled in (False, True):
            name = f"{kind}{'-profiled' if profiled else ''}"
            sides[name] = side(bench, place, name, profiled, command, place.file(f"{name}.dat"), True)
        rows.append(Row(f"profile, {words}, tmpfs, against the same without", f"{kind}-profiled", kind, "least", limit, "profile-job"))
    return Group("profile-jobs", "Profile", sides, rows, bench.pick(5, 15), place.close)


def groups():
    return {"profile-calls": calls, "profile-jobs": jobs}
