"""Serial programs with plain calls: small writes through buffers against large ones, on plain and protected files and where every call
takes long; byte-swapped Fortran writes; what a call costs that concerns no file of ours."""
import os
import subprocess

from cases import both_schemes
from harness import Failed, Group, Row, Side, Skip, run_command
from places import Place, stop, wait_for
from workloads import MIB, Protection, native_write, protected_write, remove_native, remove_protected

BUFFERS = ["--buffer", "4x16MiB"]
SMALL, LARGE = 512, 16 * MIB


def job(bench, mode, path, total, piece, *more):
    return [bench.path("bench/posix_bench"), "--mode", mode, "--path", path, "--bytes", str(total), "--piece", str(piece), *more]


def plain_side(bench, place, name, total, piece, options=None):
    path = place.file(f"{name}.dat")
    under = [] if options is None else [bench.holdfast, "run", *options, "--path", path]

    def check():
        if os.path.getsize(path) != total:
            raise Failed(f"{os.path.getsize(path)} bytes are in the file, not {total}")

    return Side(under + job(bench, "write", path, total, piece), before=lambda: (remove_native([path]), place.settle()), check=check,
                verify=job(bench, "read", path, total, MIB, "--verify"), after=lambda: remove_native([path]))


def small_writes(bench):
    place = Place("/dev/shm", "tmpfs")
    total = bench.pick(64, 1024) * MIB
    sides = {"large": plain_side(bench, place, "large", total, LARGE), "small": plain_side(bench, place, "small", total, SMALL),
             "buffered": plain_side(bench, place, "buffered", total, SMALL, BUFFERS)}
    rows = [Row("512-byte writes through buffers, plain file, tmpfs, against 16 MiB writes", "buffered", "large", "rate", 0.7, "posix"),
            Row("512-byte writes without buffers, plain file, tmpfs, against 16 MiB writes", "small", "large", "rate", None, "posix")]
    return Group("posix-plain", "Plain calls", sides, rows, bench.pick(3, 7), place.close)


def protected_side(bench, place, name, total, piece, options):
    path = place.file(f"{name}.dat")
    protection = Protection("rs:4+2", place.targets(name, 6))

    def under(command):
        return protection.run(bench, command, *options, "--path", path)

    return Side(under(job(bench, "write", path, total, piece)), before=lambda: (remove_protected(bench, protection, [path]), place.settle()),
                verify=under(job(bench, "read", path, total, MIB, "--verify")), after=lambda: remove_protected(bench, protection, [path]))


def protected_writes(bench):
    place = Place("/dev/shm", "tmpfs")
    total = bench.pick(64, 512) * MIB
    sides = {"large": protected_side(bench, place, "large", total, LARGE, []),
             "small": protected_side(bench, place, "small", total, SMALL, []),
             "buffered": protected_side(bench, place, "buffered", total, SMALL, BUFFERS)}
    rows = [Row("512-byte writes through buffers, rs:4+2, tmpfs, against row-aligned 16 MiB writes", "buffered", "large", "rate", 0.8, "posix"),
            Row("512-byte writes without buffers, rs:4+2, tmpfs, against row-aligned 16 MiB writes", "small", "large", "rate", None, "posix")]
    return Group("posix-protected", "Plain calls", sides, rows, bench.pick(3, 5), place.close)


class DelayedMount:
    """A file system each of whose calls takes half a millisecond longer."""

    def __init__(self, bench, place):
        program = bench.path("faultfs")
        if not os.path.exists(program) or not os.access("/dev/fuse", os.W_OK):
            raise Skip("no FUSE here: a file system with slow calls cannot be mounted")
        self.mount, backing, control = (os.path.join(place.root, n) for n in ("slow", "slow-backing", "slow-control"))
        os.makedirs(self.mount)
        os.makedirs(backing)
        with open(control, "w", encoding="utf-8") as rules:
            rules.write("any delay 0.5\n")
        self.process = subprocess.Popen([program, backing, self.mount, "--control", control, "-f"], stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.ismount(self.mount), 10, f"{self.mount} is not a mount")

    def close(self):
        if os.path.ismount(self.mount):
            subprocess.run(["fusermount3", "-uz", self.mount], check=False)
        stop(self.process)


def slow_calls(bench):
    place = Place("/dev/shm", "tmpfs")
    slow = DelayedMount(bench, place)
    total = bench.pick(4, 64) * MIB
    sides = {}
    for name, options in (("small", None), ("buffered", ["--buffer", "4x64MiB"])):
        path = os.path.join(slow.mount, f"{name}.dat")
        under = [] if options is None else [bench.holdfast, "run", *options, "--path", path]
        sides[name] = Side(under + job(bench, "write", path, total, SMALL), before=lambda path=path: remove_native([path]),
                           verify=job(bench, "read", path, total, MIB, "--verify"), once=options is None, timeout_s=900)

    def clean():
        slow.close()
        place.close()

    rows = [Row("512-byte writes where each call takes 0.5 ms: with four buffers of 64 MiB against without", "buffered", "small", "rate",
                200 if total >= 64 * MIB else None, "posix-slow")]
    return Group("posix-slow", "Plain calls", sides, rows, 3, clean)


def each_its_file(bench, place, processes, total, protections, fast):
    """Processes that write a file each by write(2), in pieces of 1 MiB; without `fast` fsync ends the native ones' and close the protected ones'."""
    each = total // processes

    def sides_of(name, protection):
        path = place.file(f"{name.replace(':', '-')}.dat")  # a colon separates globs
        paths = [f"{path}.{i}" for i in range(processes)]
        many = ["--processes", str(processes)]

        def command(mode, *more):
            return job(bench, mode, path, each, MIB, *many, *more)

        if protection is None:
            sync = [] if fast else ["--sync"]
            return native_write(bench, place, paths, command("write", *sync), command("read", "--verify"))
        return protected_write(bench, place, protection, paths, command("write"), command("read", "--verify"), total, ["--path", f"{path}.*"])

    sides = {name: sides_of(name, protection) for name, protection in (("native", None), *protections.items())}
    path, sync = place.file("copies.dat"), [] if fast else ["--sync"]
    copies = [f"{path}.{i}{more}" for i in range(processes) for more in ("", ".1", ".2")]
    sides["copies"] = native_write(bench, place, copies, job(bench, "write", path, each, MIB, "--processes", str(processes), "--copies", "3", *sync), None)
    return sides


def file_per_process(parent, label, durable):
    limits = {"mirror:3": 3.1, "rs:4+2": 1.7 if durable else 2.0}

    def group(bench):
        place = Place(parent, label)
        protections = both_schemes(place, "p", not durable)
        sides = each_its_file(bench, place, 4, bench.pick(64, 1024) * MIB, protections, not durable)
        ending = "durable" if durable else "cached"
        rows = [Row(f"{scheme}, 4 processes that write a file each by write(2), {ending}, {label}, 1 MiB pieces", scheme, "native", "time", limits[scheme],
                    f"{scheme}-{ending}-{label}") for scheme in protections]
        rows += [Row(f"three plain copies of each of these files, {ending}, {label}: what {'the disk' if label == 'disk' else label} bears", "copies", "native",
                     "time", None, "posix-copies"),
                 Row(f"mirror:3, 4 processes that write a file each, {ending}, {label}, against these three plain copies", "mirror:3", "copies", "time", 1.1,
                     "posix-copies")]
        return Group(f"posix-each-{label}-{ending}", "Plain calls", sides, rows, bench.pick(3, 5), place.close)

    return group


def many_small_files(bench):
    """One process that makes, writes and closes files of 64 KiB one after another, each durable before the next."""
    place = Place("/var/tmp", "disk")
    files, each = bench.pick(100, 1000), 64 << 10

    def command(path, mode, *more):
        return job(bench, mode, path, each, each, "--files", str(files), *more)

    path = place.file("plain.dat")
    paths = [f"{path}.{i}" for i in range(files)]
    sides = {"native": native_write(bench, place, paths, command(path, "write", "--sync"), command(path, "read", "--verify"))}
    for name, protection in both_schemes(place, "s", False).items():
        path = place.file(f"{name.replace(':', '-')}.dat")
        paths = [f"{path}.{i}" for i in range(files)]
        sides[name] = protected_write(bench, place, protection, paths, command(path, "write"), command(path, "read", "--verify"), files * each,
                                      ["--path", f"{path}.*"])
    rows = [Row(f"{name}, {files} files of 64 KiB, each made, written and closed, durable, disk, against plain files with an fsync each", name, "native", "time",
                4.0, "posix-small") for name in sides if name != "native"]
    return Group("posix-small-disk", "Plain calls", sides, rows, bench.pick(3, 5), place.close)


def streams(bench):
    """What IOR does with its POSIX interface: processes that write and read a file each in large pieces, none of them ours."""
    place = Place("/dev/shm", "tmpfs")
    each, processes = bench.pick(64, 256) * MIB, 2
    sides, rows = {}, []
    for mode in ("write", "read"):
        path = place.file(f"{mode}.dat")
        paths = [f"{path}.{i}" for i in range(processes)]
        command = job(bench, mode, path, each, MIB, "--processes", str(processes))
        make = job(bench, "write", path, each, MIB, "--processes", str(processes))
        for name, whole in ((f"native {mode}", command), (f"run {mode}", [bench.holdfast, "run", *BUFFERS, "--path", "*.named", *command])):
            if mode == "write":
                sides[name] = native_write(bench, place, paths, whole, None)
            else:
                sides[name] = Side(whole, before=lambda make=make, paths=paths: os.path.exists(paths[0]) or run_command(make, {}))
        rows += [Row(f"IOR-like streams of files under no policy, {mode} of 1 MiB by two processes, tmpfs: {what}", f"run {mode}", f"native {mode}", kind, 1.02,
                     f"no-policy-{kind}") for kind, what in (("least", "least times"), ("cpu", "processor time"))]
    return Group("posix-streams", "Plain calls", sides, rows, bench.pick(7, 21), place.close)


def swapped(bench):
    if not os.path.exists(bench.path("bench/endian")):
        raise Skip("no gfortran here")
    place = Place("/dev/shm", "tmpfs")
    megabytes = str(bench.pick(64, 512))
    sides = {}
    for name, mode, options in (("apart", "apart", None), ("swapped", "swapped", None), ("buffered", "swapped", BUFFERS)):
        path = place.file(f"{name}.dat")
        under = [] if options is None else [bench.holdfast, "run", *options, "--path", path]
        sides[name] = Side(under + [bench.path("bench/endian"), mode, path, megabytes],
                           before=lambda path=path: (remove_native([path]), place.settle()), after=lambda path=path: remove_native([path]))
    rows = [Row("byte-swapped Fortran writes through buffers against native-endian large writes and the swap by itself, tmpfs", "buffered",
                "apart", "time", 1.2, "posix-swap"),
            Row("the same without buffers", "swapped", "apart", "time", None, "posix-swap")]
    return Group("posix-swap", "Plain calls", sides, rows, bench.pick(3, 7), place.close)


def passing(bench):
    place = Place("/dev/shm", "tmpfs")
    path = place.file("other.dat")
    with open(path, "wb") as out:
        out.write(b"x" * 4096)
    calls = 1_000_000
    command = job(bench, "pass", path, calls, 1)
    sides = {"native": Side(command), "run": Side([bench.holdfast, "run", *BUFFERS, "--path", "*.named", *command])}
    rows = [Row("a million one-byte reads of a file under no policy, 60 ns a call = 0.060 s", "run", "native", "extra", 0.060, "posix-pass")]
    return Group("posix-pass", "Plain calls", sides, rows, bench.pick(5, 11), place.close)


def names(bench):
    """Opening to write, closing and a stat, of a file that no glob names."""
    place = Place("/dev/shm", "tmpfs")
    path = place.file("other.dat")
    with open(path, "wb") as out:
        out.write(b"x" * 4096)
    command = job(bench, "names", path, bench.pick(20_000, 100_000), 1)
    sides = {"native": Side(command), "run": Side([bench.holdfast, "run", "--", *command]),
             "globs": Side([bench.holdfast, "run", *BUFFERS, "--path", "*.named:/scratch/*.named", *command])}
    rows = [Row(f"open, close and stat of a file under no policy, {what}: {how}", side, "native", kind, None, "posix-names")
            for side, what in (("run", "no globs"), ("globs", "beside globs")) for kind, how in (("least", "least times"), ("cpu", "processor time"))]
    return Group("posix-names", "Plain calls", sides, rows, bench.pick(5, 11), place.close)


def groups():
    return {"posix-plain": small_writes, "posix-protected": protected_writes, "posix-slow": slow_calls, "posix-swap": swapped,
            "posix-pass": passing, "posix-names": names, "posix-streams": streams, "posix-each-tmpfs-durable": file_per_process("/dev/shm", "tmpfs", True),
            "posix-each-disk-durable": file_per_process("/var/tmp", "disk", True), "posix-small-disk": many_small_files}
