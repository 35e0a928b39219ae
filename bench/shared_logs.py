"""Record logs of shared file pointers (`individual`, `single`): appending before anything is merged, and all of it with the close that
merges, against the same ranks writing a POSIX file each. Both sides are durable when they have closed."""
import glob
import os

from harness import Failed, Group, Row, Side
from places import Place
from shared import job, size_text
from workloads import MIB, native_write, remove_native

ALGORITHMS = ("individual", "single")
APPEND_LIMIT = 0.95
MERGED_LIMIT = 2.2


def own_files(bench, place, mpi, ranks, record, each):
    path = place.file(f"{mpi}-own.dat")

    def clear():
        remove_native(glob.glob(glob.escape(path) + ".*"))

    def check():
        sizes = sum(os.path.getsize(p) for p in glob.glob(glob.escape(path) + ".*"))
        if sizes != record * each * ranks:
            raise Failed(f"{sizes} bytes lie in the files of the ranks, not {record * each * ranks}")
        return {"volume": sizes}

    return Side(job(bench, mpi, ranks, "own", path, record, each), before=lambda: (clear(), place.settle()), check=check,
                verify=job(bench, mpi, ranks, "verify-own", path, record, each), after=clear)


def shared_file(bench, place, name, mpi, ranks, record, each, environment, run):
    path = place.file(f"{mpi}-{name}.dat")
    command = ([bench.holdfast, "run", "--"] if run else []) + job(bench, mpi, ranks, "shared", path, record, each)
    made = native_write(bench, place, [path], command, job(bench, mpi, ranks, "verify", path, record, each))
    made.environment = environment
    return made


def logs(mpi, parent, label, record, ranks):
    what = f"{size_text(record)} records, {label}, {mpi}, {ranks} ranks"

    def group(bench):
        place = Place(parent, label)
        each = max(4, min(bench.pick(20000, 40000), bench.pick(256, 512) * MIB // record // ranks))
        sides = {"own files": own_files(bench, place, mpi, ranks, record, each)}
        rows = []
        for algorithm in ALGORITHMS:
            sides[algorithm] = shared_file(bench, place, algorithm, mpi, ranks, record, each, {"HOLDFAST_SHARED_POINTER": algorithm}, True)
            rows += [Row(f"{algorithm}, {what}: append before merging, against a POSIX file for each rank", algorithm, "own files", "rate",
                         APPEND_LIMIT, "logs-append"),
                     Row(f"{algorithm}, {what}: with the merge, against these files", algorithm, "own files", "closed", MERGED_LIMIT,
                         "logs-merged")]
        if mpi == "openmpi":
            sides["OMPIO individual"] = shared_file(bench, place, "ompio", mpi, ranks, record, each,
                                                    {"OMPI_MCA_sharedfp": "individual"}, False)
            sides["OMPIO individual"].timeout_s = 30
            rows.append(Row(f"individual, {what}: with the merge, against OMPIO's individual", "individual", "OMPIO individual", "closed",
                            1.0, "logs-native"))
        return Group(f"logs-{mpi}-{record >> 10}k-{label}", f"Record logs: {what}", sides, rows, bench.pick(3, 7), place.close)

    return group


def groups(quick):
    made = {}
    for parent, label in (("/dev/shm", "tmpfs"), ("/var/tmp", "disk")):
        for record in (1 << 10, MIB) if quick else (1 << 10, 64 << 10, MIB, 16 * MIB):
            made[f"logs-{record >> 10}k-{label}"] = logs("openmpi", parent, label, record, 4)
    if not quick:
        made["logs-mpich"] = logs("mpich", "/dev/shm", "tmpfs", 1 << 10, 2)
        for ranks in (1, 8):
            made[f"logs-ranks-{ranks}"] = logs("openmpi", "/dev/shm", "tmpfs", 1 << 10, ranks)
    return made
