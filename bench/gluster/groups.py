"""Against GlusterFS's own redundancy on the same bricks: the program runs natively on Gluster's disperse 4+2 and replica 3
volumes, and protected by rs:4+2 and mirror:3 on the plain mounts of the same six servers."""
import os

from gluster.cluster import Cluster
from harness import Failed, Group, Row, Side, run_command
from places import Place
from workloads import MIB, Protection, native_write, protected_write, remove_native

PAIRS = (("disperse 4+2", "rs:4+2", "disperse", "ec", 6, 1.5), ("replica 3", "mirror:3", "replica", "afr", 3, 3.0))


def counted(cluster, side, total_bytes, volume, export, reads):
    """The bytes must really cross the wire and, for writes, lie on the bricks."""
    before, check, seen = side.before, side.check, {}

    def start():
        if before:
            before()
        seen["sent"], seen["received"] = cluster.wire_bytes()

    def end():
        facts = (check() if check and not reads else {}) or {}
        cluster.assert_mounted()
        sent, received = (now - then for now, then in zip(cluster.wire_bytes(), (seen["sent"], seen["received"])))
        moved = received if reads else sent
        if moved < total_bytes * (1.0 if reads else volume):
            raise Failed(f"only {moved} bytes crossed the wire")
        if not reads:
            facts["volume"] = cluster.stored(export)
            if facts["volume"] < 0.99 * volume * total_bytes:
                raise Failed(f"only {facts['volume']} bytes lie on the bricks")
        return facts

    side.before, side.check = start, end
    return side


def agent_sides(bench, cluster, place, total, mode):
    """The program natively on Gluster's volumes, and protected over node agents that serve directories of the same bricks."""
    served = cluster.start_agents(bench, [width for *_, width, _ in PAIRS])
    sides = {}
    for peer, scheme, mount, export, width, volume in PAIRS:
        directories, addresses = served[width]
        protection = Protection(scheme, directories, addresses=addresses, inside=cluster.inside)
        theirs, ours = os.path.join(getattr(cluster, mount), f"{mode}.dat"), place.file(f"{mode}-{width}.dat")

        def job(mode, path, *more):
            return bench.job(4, "mpiio_bench", "--mode", mode, "--path", path, "--bytes", total, "--block", MIB, *more)

        if mode == "write":
            sides[peer] = native_write(bench, place, [theirs], job("write", theirs, "--sync"), job("read", theirs, "--verify"))
            sides[scheme] = protected_write(bench, place, protection, [ours], job("write", ours, "--sync"), job("read", ours, "--verify"), total)
        else:
            run_command(job("write", theirs, "--sync"), {})
            sides[peer] = Side(job("read", theirs), verify=job("read", theirs, "--verify"))
            run_command(protection.run(bench, job("write", ours, "--sync")), {})
            sides[scheme] = Side(protection.run(bench, job("read", ours)), verify=protection.run(bench, job("read", ours, "--verify")))
        counted(cluster, sides[peer], total, volume, export, mode == "read")
        counted(cluster, sides[scheme], total, volume, f"agent-{width}", mode == "read")
    return sides


def agents(mode, rate=None):
    """Node agents against GlusterFS, on links of that rate or as fast as the processors are. A mirror is as many bytes as theirs: a tie."""
    wanted = {"rs:4+2": 0.97 if rate else 1.5, "mirror:3": 0.97}
    name = f"peers-agents-{rate + '-' if rate else ''}{mode}"
    size = (32, 96) if rate else (96, 768)

    def group(bench):
        place = Place("/dev/shm", "tmpfs")
        cluster = None

        def clean():
            if cluster:
                cluster.close()
            place.close()

        try:
            cluster = Cluster(place.root, rate)
            sides = agent_sides(bench, cluster, place, bench.pick(*size) * MIB, mode)
        except BaseException:
            clean()
            raise
        where = f"links of {rate}" if rate else "links without a limit"
        rows = [Row(f"{scheme} {mode} over node agents, against Gluster's {peer} on the same bricks, {where}", scheme, peer, "rate", wanted[scheme],
                    f"peers-agents{'-shaped' if rate else ''}") for peer, scheme, *_ in PAIRS]
        return Group(name, "Peers", sides, rows, bench.pick(3, 5), clean)

    return group


def raw_side(bench, cluster, total, mode, width, volume):
    """What these mounts bear: the volume of bytes that the scheme moves, by plain MPI-IO, one rank and file a mount."""
    paths = [os.path.join(mount, f"raw-{mode}-{width}") for mount in cluster.plain[:width]]
    moved = int(total * volume) if mode == "write" else total

    def job(mode, *more):
        return bench.job(width, "mpiio_bench", "--file-per-process", "--mode", mode, "--path", ",".join(paths), "--bytes", moved,
                         "--block", MIB, *more)

    if mode == "read":
        run_command(job("write", "--sync"), {})
        return Side(job("read"), verify=job("read", "--verify"))
    return Side(job("write", "--sync"), before=lambda: remove_native(paths), after=lambda: remove_native(paths))


def make_sides(bench, cluster, place, total, mode):
    sides = {}
    for peer, scheme, mount, export, width, volume in PAIRS:
        protection = Protection(scheme, [os.path.join(m, f"{mode}-{width}") for m in cluster.plain[:width]])
        for directory in protection.targets:
            os.makedirs(directory)
        theirs, ours = os.path.join(getattr(cluster, mount), f"{mode}.dat"), place.file(f"{mode}-{width}.dat")

        def job(mode, path, *more):
            return bench.job(4, "mpiio_bench", "--mode", mode, "--path", path, "--bytes", total, "--block", MIB, *more)

        if mode == "write":
            sides[peer] = native_write(bench, place, [theirs], job("write", theirs, "--sync"), job("read", theirs, "--verify"))
            sides[scheme] = protected_write(bench, place, protection, [ours], job("write", ours, "--sync"),
                                            job("read", ours, "--verify"), total)
        else:
            run_command(job("write", theirs, "--sync"), {})
            sides[peer] = Side(job("read", theirs), verify=job("read", theirs, "--verify"))
            try:
                run_command(protection.run(bench, job("write", ours, "--sync")), {})
            except Failed as reason:
                bench.say(f"  {scheme}: {reason}")
            sides[scheme] = Side(protection.run(bench, job("read", ours)), verify=protection.run(bench, job("read", ours, "--verify")))
        sides[f"raw {scheme}"] = raw_side(bench, cluster, total, mode, width, volume)
        counted(cluster, sides[peer], total, volume, export, mode == "read")
        counted(cluster, sides[scheme], total, volume, "plain", mode == "read")
    return sides


def peers(mode):
    wanted = {"rs:4+2": {"write": 1.5, "read": 2.0}, "mirror:3": {"write": 0.95, "read": 0.95}}

    def group(bench):
        place = Place("/dev/shm", "tmpfs")
        try:
            cluster = Cluster(place.root)
        except BaseException:
            place.close()
            raise

        def clean():
            cluster.close()
            place.close()

        try:
            sides = make_sides(bench, cluster, place, bench.pick(96, 1024 if mode == "write" else 768) * MIB, mode)
        except BaseException:
            clean()
            raise
        rows = []
        for peer, scheme, *_ in PAIRS:
            rows += [Row(f"{scheme} {mode} on six GlusterFS mounts, against Gluster's {peer} on the same bricks", scheme, peer, "rate",
                         wanted[scheme][mode], f"peers-{mode}-{scheme}"),
                     Row(f"as many bytes as {scheme} moves, by plain {mode}s of one file a mount, against {peer}: the limit of these mounts",
                         f"raw {scheme}", peer, "rate", None, "peers-raw"),
                     Row(f"{scheme} {mode} on six GlusterFS mounts, against these plain {mode}s", scheme, f"raw {scheme}", "time", None,
                         "peers-raw")]
        return Group(f"peers-{mode}", "Peers", sides, rows, bench.pick(3, 5), clean)

    return group
