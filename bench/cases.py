"""What is measured, and what is wanted: one function per group. Limits are ratios; a row without one is information."""
import os
import shutil

from harness import Group, Row, Side, run_command
from places import Place, ThrottledTargets, warm
from workloads import MIB, Protection, btio_sides, file_each_sides, native_write, write_sides

DISK, TMPFS = "/var/tmp", "/dev/shm"
BLOCKS = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]


def size_text(count):
    return f"{count >> 20} MiB" if count >= MIB else f"{count >> 10} KiB"


def harness_itself(bench):
    place = Place(TMPFS, "tmpfs")
    total = bench.pick(64, 256) * MIB
    plain = write_sides(bench, place, total, MIB, {}, durable=False)["native"]
    again = write_sides(bench, place, total, MIB, {}, durable=False)["native"]
    return Group("self", "The harness itself", {"native": plain, "again": again},
                 [Row("native against native (the harness' own test: must be 1)", "again", "native", "time", None, "self")],
                 bench.pick(5, 11), place.close)


def no_policy(bench):
    place = Place(TMPFS, "tmpfs")
    total = bench.pick(128, 256) * MIB
    sides = {}
    for mode in ("write", "read"):
        path = place.file(f"{mode}.dat")
        job = bench.job(4, "mpiio_bench", "--mode", mode, "--path", path, "--bytes", total, "--block", 64 << 10)
        make = bench.job(4, "mpiio_bench", "--mode", "write", "--path", path, "--bytes", total, "--block", MIB)
        for name, command in ((f"native {mode}", job), (f"run {mode}", [bench.holdfast, "run", "--", *job])):
            if mode == "write":
                sides[name] = native_write(bench, place, [path], command, None)
            else:
                sides[name] = Side(command, before=lambda make=make, path=path: os.path.exists(path) or run_command(make, {}))
    rows = [Row(f"no policy, {mode}, 64 KiB blocks, tmpfs: {what}", f"run {mode}", f"native {mode}", kind, 1.02, f"no-policy-{kind}")
            for mode in ("write", "read") for kind, what in (("least", "least times"), ("cpu", "processor time"))]
    return Group("no-policy", "A file under no policy", sides, rows, bench.pick(7, 21), place.close)


def start_up(bench):
    place = Place(TMPFS, "tmpfs")
    job = bench.job(4, "mpiio_bench")
    protection = Protection("rs:4+2", place.targets("start", 6))
    sides = {"native": Side(job, wall=True),
             "run": Side([bench.holdfast, "run", "--", *job], wall=True),
             "protect": Side(protection.run(bench, job), wall=True)}
    rows = [Row("start-up and end of a job of 4 ranks, no policy", "run", "native", "extra", 0.030, "start-up"),
            Row("start-up and end of a job of 4 ranks, rs:4+2 named", "protect", "native", "extra", 0.030, "start-up")]
    return Group("start-up", "Start of a job", sides, rows, bench.pick(5, 15), place.close)


def write_rows(label, durable, limits):
    ending = "durable" if durable else "cached"
    key = "durable" if durable else "cached"
    return [Row(f"{scheme} write, {ending}, {label}", scheme, "native", "time", limits[scheme], f"{scheme}-{key}-{label.split(',')[0]}")
            for scheme in ("mirror:3", "rs:4+2")]


def both_schemes(place, tag, fast):
    return {"mirror:3": Protection("mirror:3", place.targets(f"{tag}-m", 3), fast),
            "rs:4+2": Protection("rs:4+2", place.targets(f"{tag}-r", 6), fast)}


def plain_copies(bench, place, total, durable):
    """The native program writes each block to three files, in turn: as many bytes as mirror:3, and nothing of ours."""
    path = place.file("copies.dat")
    paths = [path, f"{path}.1", f"{path}.2"]
    sync = ["--sync"] if durable else []
    job = bench.job(4, "mpiio_bench", "--mode", "write", "--path", path, "--bytes", total, "--block", MIB, "--copies", 3, *sync)
    return native_write(bench, place, paths, job, None)


def writes(parent, label, durable):
    limits = {"mirror:3": 3.1, "rs:4+2": 1.7 if durable else 2.0}

    def group(bench):
        place = Place(parent, label)
        total = bench.pick(64, 1024) * MIB
        sides = write_sides(bench, place, total, MIB, both_schemes(place, "w", not durable), durable=durable)
        ending = "durable" if durable else "cached"
        rows = write_rows(f"{label}, 1 MiB blocks", durable, limits)
        if parent == DISK:
            sides["copies"] = plain_copies(bench, place, total, durable)
            rows += [Row(f"three plain copies written natively by the same program, {ending}, disk: what the disk bears", "copies",
                         "native", "time", None, "copies"),
                     Row(f"mirror:3 write, {ending}, disk, against these three plain copies", "mirror:3", "copies", "time", 1.1, "copies")]
        return Group(f"write-{label}-{ending}", f"Writes, {label}", sides, rows, bench.pick(3, 5), place.close)

    return group


def write_block(parent, label, block, durable):
    limits = {"mirror:3": 3.1, "rs:4+2": 1.7 if durable else 2.0}

    def group(bench):
        place = Place(parent, label)
        total = bench.pick(64, 512) * MIB
        sides = write_sides(bench, place, total, block, both_schemes(place, "b", not durable), durable=durable)
        return Group(f"block-{block >> 10}k", "Writes by block size", sides,
                     write_rows(f"{label}, {size_text(block)} blocks", durable, limits), bench.pick(3, 3), place.close)

    return group


def collective(bench):
    place = Place(TMPFS, "tmpfs")
    total = bench.pick(64, 512) * MIB
    sides = write_sides(bench, place, total, MIB, both_schemes(place, "c", True), durable=False, strided=True)
    rows = [Row(f"{s} write, strided collective, cached, tmpfs, 1 MiB blocks", s, "native", "time", None, "collective")
            for s in ("mirror:3", "rs:4+2")]
    return Group("collective", "Collective strided writes", sides, rows, bench.pick(3, 5), place.close)


def bt_io(bench):
    place = Place(TMPFS, "tmpfs")
    points, steps = bench.pick((48, 3), (96, 10))
    sides = btio_sides(bench, place, points, steps, both_schemes(place, "bt", False))
    rows = [Row(f"BT-IO-like nested strided view, {scheme}, collective writes, durable, tmpfs", scheme, "native", "time", limit, "btio")
            for scheme, limit in (("mirror:3", 3.0 * 1.15), ("rs:4+2", 1.5 * 1.15))]
    return Group("bt-io", "Nested strided view", sides, rows, bench.pick(3, 7), place.close)


def other_mpi(bench):
    place = Place(TMPFS, "tmpfs")
    total = bench.pick(64, 512) * MIB
    sides = write_sides(bench, place, total, MIB, both_schemes(place, "mp", False), durable=True, ranks=2, mpi="mpich")
    rows = [Row(f"{s} write, durable, tmpfs, 1 MiB blocks, MPICH, 2 ranks", s, "native", "time", limit, "mpich")
            for s, limit in (("mirror:3", 3.1), ("rs:4+2", 1.7))]
    return Group("mpich", "The other MPI", sides, rows, bench.pick(3, 5), place.close)


def read_group(bench, place, name, title, total, mode, block, variants, rows, repetitions, cached=True):
    """Files are written once, outside every clock; `variants`: name -> (Protection or None, members to take away). `cached`:
    each run finds its files in the page cache."""
    sides = {}
    for variant, (protection, lost) in variants.items():
        path = place.file(f"{variant.replace(' ', '-')}.dat")
        command = bench.job(4, "mpiio_bench", "--mode", mode, "--path", path, "--bytes", total, "--block", block)
        make = bench.job(4, "mpiio_bench", "--mode", "write", "--path", path, "--bytes", total, "--block", MIB, "--sync")
        wrap = (lambda c, p=protection: p.run(bench, c)) if protection else (lambda c: c)
        write_once = maker(wrap(make), protection, lost)
        files = (protection.targets[lost:] if protection else [path]) if cached else []
        sides[variant] = Side(wrap(command), verify=wrap(command + ["--verify"]),
                              before=lambda write_once=write_once, files=files: (write_once(), warm(files)))
    return Group(name, title, sides, rows, repetitions, place.close)


def maker(command, protection, lost):
    """Writes the file before its first use, then takes `lost` members away for good."""
    done = []

    def make():
        if done:
            return
        run_command(command, {})
        for member in (protection.targets[:lost] if protection else []):
            shutil.rmtree(member)
        done.append(True)

    return make


def cached_reads(bench):
    place = Place(DISK, "disk")
    variants = {"native": (None, 0),
                "healthy": (Protection("rs:4+2", place.targets("h", 6)), 0),
                "degraded": (Protection("rs:4+2", place.targets("d", 6)), 2),
                "mirror": (Protection("mirror:3", place.targets("m", 3)), 0)}
    rows = [Row("rs:4+2 healthy read, verified, from page cache", "healthy", "native", "rate", 0.65, "read-healthy"),
            Row("rs:4+2 degraded read (two targets gone), from page cache", "degraded", "native", "rate", 0.45, "read-degraded"),
            Row("mirror:3 healthy read, verified, from page cache", "mirror", "native", "rate", None, "read-mirror")]
    return read_group(bench, place, "read", "Reads", bench.pick(256, 1024) * MIB, "read", MIB, variants, rows, bench.pick(3, 7))


def random_reads(bench):
    place = Place(DISK, "disk")
    variants = {"native": (None, 0),
                "rs:4+2": (Protection("rs:4+2", place.targets("r", 6)), 0),
                "mirror:3": (Protection("mirror:3", place.targets("m", 3)), 0)}
    rows = [Row(f"{s} random read of 64 KiB, verified, from page cache", s, "native", "time", 1.4, "random")
            for s in ("mirror:3", "rs:4+2")]
    return read_group(bench, place, "random", "Random reads", bench.pick(256, 512) * MIB, "random", 64 << 10, variants, rows,
                      bench.pick(3, 7))


def throttled_place(bench, count):
    place = Place(TMPFS, "tmpfs")
    try:
        mounts = ThrottledTargets(bench.path("bench/throttlefs"), place, count, 150 * 1000 * 1000)
    except BaseException:
        place.close()
        raise

    def clean():
        mounts.close()
        place.close()

    return place, mounts, clean


def throttled_mirror(bench):
    """The native program has one throttled target; the protected one has as many as copies, each as fast as that one."""
    place, mounts, clean = throttled_place(bench, 4)
    total = bench.pick(64, 512) * MIB
    protection = Protection("mirror:3", mounts.mounts[1:])
    sides = write_sides(bench, place, total, MIB, {"mirror:3": protection}, durable=True)
    path = os.path.join(mounts.mounts[0], "native.dat")

    def job(mode, *more):
        return bench.job(4, "mpiio_bench", "--mode", mode, "--path", path, "--bytes", total, "--block", MIB, *more)

    sides["native"] = native_write(bench, place, [path], job("write", "--sync"), job("read", "--verify"))
    add_check(sides["mirror:3"], mounts.assert_mounted)
    rows = [Row("mirror:3 write, durable, each target throttled to 150 MB/s", "mirror:3", "native", "time", 1.2, "throttled-mirror")]
    return Group("throttled-mirror", "Throttled targets", sides, rows, bench.pick(3, 5), clean)


def add_check(side, more):
    before = side.check
    side.check = lambda: (more(), before() if before else {})[1]


def throttled_reads(bench):
    """What the targets can give is measured by an MPI program that reads one plain file from each of them at once."""
    place, mounts, clean = throttled_place(bench, 6)
    total = bench.pick(96, 768) * MIB
    healthy, degraded = (Protection("rs:4+2", [f"{m}/{n}" for m in mounts.mounts]) for n in ("h", "d"))
    for directory in healthy.targets + degraded.targets:
        os.makedirs(directory)
    group = read_group(bench, place, "throttled-read", "Throttled targets", total, "read", MIB,
                       {"healthy": (healthy, 0), "degraded": (degraded, 2)}, [], bench.pick(3, 5), cached=False)
    for count in (4, 6):
        paths = [f"{m}/raw{count}.dat" for m in mounts.mounts[-count:]]

        def job(mode):
            return bench.job(count, "mpiio_bench", "--file-per-process", "--mode", mode, "--path", ",".join(paths),
                             "--bytes", total, "--block", MIB)

        group.sides[f"raw{count}"] = Side(job("read"), verify=job("read") + ["--verify"],
                                          before=maker(job("write"), None, 0))
    for side in group.sides.values():
        add_check(side, mounts.assert_mounted)
    group.rows = [
        Row("rs:4+2 healthy read from throttled targets, against four of them (as much as the data needs)",
            "healthy", "raw4", "rate", 0.97, "throttled-read"),
        Row("rs:4+2 healthy read from throttled targets, against all six", "healthy", "raw6", "rate", None, "throttled-read-six"),
        Row("rs:4+2 degraded read (two gone), against the four that are left", "degraded", "raw4", "rate", 0.9, "throttled-degraded")]
    group.clean = clean
    return group


def one_writer(bytes_each):
    def group(bench):
        place = Place(TMPFS, "tmpfs")
        sides = file_each_sides(bench, place, 1, bytes_each, MIB,
                                {"mirror:3": Protection("mirror:3", place.targets("f", 3))}, durable=True)
        rows = [Row(f"mirror:3, 1 writer, file of {size_text(bytes_each)}, durable, tmpfs", "mirror:3", "native", "time", None, "figure5")]
        return Group(f"figure5-{bytes_each >> 20}", "Figure 5: file size", sides, rows, 3, place.close)

    return group


def many_writers(writers):
    def group(bench):
        place = Place(TMPFS, "tmpfs")
        bytes_each = bench.pick(16, 128) * MIB
        sides = file_each_sides(bench, place, writers, bytes_each, MIB,
                                {"mirror:3": Protection("mirror:3", place.targets("f", 3))}, durable=True)
        rows = [Row(f"mirror:3, {writers} writer{'s' if writers > 1 else ''}, a file of {size_text(bytes_each)} each, durable, tmpfs",
                    "mirror:3", "native", "time", None, "figure6")]
        return Group(f"figure6-{writers}", "Figure 6: writers", sides, rows, 3, place.close)

    return group


def all_groups(quick):
    """name -> function that makes the group, in the order of the table."""
    groups = {"self": harness_itself, "no-policy": no_policy, "start-up": start_up}
    for parent, label in ((DISK, "disk"), (TMPFS, "tmpfs")):
        for durable in (True, False):
            if quick and (label, durable) in (("disk", False), ("tmpfs", True)):
                continue
            groups[f"write-{label}-{'durable' if durable else 'cached'}"] = writes(parent, label, durable)
    groups.update({"collective": collective, "bt-io": bt_io, "read": cached_reads, "random": random_reads,
                   "throttled-mirror": throttled_mirror, "throttled-read": throttled_reads, "mpich": other_mpi})
    for block in ([64 << 10, 16 << 20] if quick else BLOCKS):
        groups[f"block-{block >> 10}k"] = write_block(TMPFS, "tmpfs", block, True)
    for mebibytes in ((1, 64) if quick else (1, 4, 16, 64, 256, 512)):
        groups[f"figure5-{mebibytes}"] = one_writer(mebibytes * MIB)
    for writers in ((1, 4) if quick else (1, 2, 4, 8)):
        groups[f"figure6-{writers}"] = many_writers(writers)
    return groups
