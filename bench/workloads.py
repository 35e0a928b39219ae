"""Turns "write 1 GiB in 64 KiB blocks under rs:4+2" into sides: a native one and protected ones of the same work."""
import os
import shutil
import subprocess
from dataclasses import dataclass, field

from harness import Failed, Side
from places import stored_bytes

MIB = 1 << 20


@dataclass
class Bench:
    build: str
    quick: bool
    say: object
    seed: int

    def path(self, name):
        return os.path.join(self.build, "bin", name)

    @property
    def holdfast(self):
        return self.path("holdfast")

    def job(self, ranks, program, *options, mpi="openmpi"):
        binary = os.path.join(self.build, "bin", "bench", f"{program}.{mpi}")
        return launcher(mpi, ranks) + [binary, *map(str, options)]

    def pick(self, quick, full):
        return quick if self.quick else full


def launcher(mpi, ranks):
    if mpi == "mpich":
        return ["mpiexec.mpich", "-n", str(ranks)]
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *as_root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


@dataclass
class Protection:
    scheme: str
    targets: list
    fast: bool = False
    addresses: list = field(default_factory=list)  # of the same directories, where node agents serve them
    inside: list = field(default_factory=list)     # the command that runs another one where these can be reached

    @property
    def volume(self):
        """Bytes on targets per byte of data, at the least."""
        if self.scheme.startswith("mirror:"):
            return float(self.scheme[len("mirror:"):])
        k, m = map(int, self.scheme[len("rs:"):].split("+"))
        return (k + m) / k

    def run(self, bench, command, *options):
        close = ["--close", "fast"] if self.fast else []
        targets = ",".join(self.addresses or self.targets)
        return [*self.inside, bench.holdfast, "run", "--protect", self.scheme, "--targets", targets, *close, *options, "--", *command]


def remove_native(paths):
    for path in paths:
        if os.path.lexists(path):
            os.unlink(path)


def remove_protected(bench, protection, paths):
    """Removes the files as a user would; whatever that leaves is cleared, so that no run profits from the last one."""
    there = [path for path in paths if os.path.lexists(path)]
    if there:
        subprocess.run([*protection.inside, bench.holdfast, "rm", *there], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    for path in paths:
        sidecar = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.holdfast")
        shutil.rmtree(sidecar, ignore_errors=True)
        remove_native([path])
    if stored_bytes(protection.targets) > MIB:
        for target in protection.targets:
            for name in os.listdir(target):
                full = os.path.join(target, name)
                shutil.rmtree(full) if os.path.isdir(full) else os.unlink(full)


def native_write(bench, place, paths, command, verify):
    def check():
        sizes = sum(os.path.getsize(p) for p in paths)
        return {"volume": sizes}

    return Side(command, before=lambda: (remove_native(paths), place.settle()), check=check, verify=verify,
                after=lambda: remove_native(paths))


def protected_write(bench, place, protection, paths, command, verify, total_bytes, options=()):
    def check():
        stored = stored_bytes(protection.targets)
        if stored < protection.volume * total_bytes:
            raise Failed(f"only {stored} bytes lie on the targets; {protection.scheme} of {total_bytes} needs more")
        return {"volume": stored}

    return Side(protection.run(bench, command, *options), before=lambda: (remove_protected(bench, protection, paths), place.settle()),
                check=check, verify=protection.run(bench, verify, *options), after=lambda: remove_protected(bench, protection, paths))


def write_sides(bench, place, total_bytes, block, protections, *, durable, ranks=4, strided=False, mpi="openmpi"):
    """name -> Side for the native program and for it under each protection (name -> Protection)."""
    options = ["--bytes", total_bytes, "--block", block] + (["--strided"] if strided else [])
    sync = ["--sync"] if durable else []

    def job(mode, path, *more):
        return bench.job(ranks, "mpiio_bench", "--mode", mode, "--path", path, *options, *more, mpi=mpi)

    plain = place.file("native.dat")
    sides = {"native": native_write(bench, place, [plain], job("write", plain, *sync), job("read", plain, "--verify"))}
    for name, protection in protections.items():
        path = place.file(f"{name}.dat")
        sides[name] = protected_write(bench, place, protection, [path], job("write", path, *sync),
                                      job("read", path, "--verify"), total_bytes)
    return sides


def btio_sides(bench, place, points, steps, protections, *, ranks=4):
    total_bytes = steps * points ** 3 * 5 * 8

    def job(mode, path, *more):
        return bench.job(ranks, "btio_like", "--mode", mode, "--path", path, "--points", points, "--steps", steps, *more)

    plain = place.file("native.dat")
    sides = {"native": native_write(bench, place, [plain], job("write", plain, "--sync"), job("read", plain, "--verify"))}
    for name, protection in protections.items():
        path = place.file(f"{name}.dat")
        sides[name] = protected_write(bench, place, protection, [path], job("write", path, "--sync"),
                                      job("read", path, "--verify"), total_bytes)
    return sides


def file_each_sides(bench, place, writers, bytes_each, block, protections, *, durable):
    """Each writer has a file of its own, as in figure 6 of Son et al.; with one writer it is figure 5."""
    total_bytes = writers * bytes_each
    sync = ["--sync"] if durable else []

    def job(mode, paths, *more):
        return bench.job(writers, "mpiio_bench", "--file-per-process", "--mode", mode, "--path", ",".join(paths),
                         "--bytes", total_bytes, "--block", block, *more)

    plain = [place.file(f"native{w}.dat") for w in range(writers)]
    sides = {"native": native_write(bench, place, plain, job("write", plain, *sync), job("read", plain, "--verify"))}
    for name, protection in protections.items():
        paths = [place.file(f"{name}-{w}.dat") for w in range(writers)]
        sides[name] = protected_write(bench, place, protection, paths, job("write", paths, *sync),
                                      job("read", paths, "--verify"), total_bytes)
    return sides
