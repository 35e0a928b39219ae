"""How replicas share files, as lines of a table and figures of a page of their own (docs/benchmarks-protocols.md): ratios of least times, for other work on the
machine can only add to a time. `limit` is wanted of rates, and of what is counted (1 for each byte) to a hundredth."""
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from cases import throttled_place
from harness import Failed, Group, Row, Side, Skip, quartile_spread, run_command
from places import Place, stop, wait_for
from workloads import MIB, launcher, remove_native

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "tools", "nodes.py")
SERVER = {"one": "one server", "many": "R servers"}
LEAST = {  # of the rate of the program by itself, on one server
    "read": {("one", "read-and-distribute"): lambda replicas: 0.9, ("one", "chunked-and-chained"): lambda replicas: 0.9,
             ("many", "distributed-chunked"): lambda replicas: 0.9 * replicas},
    "write": {("one", "simple"): lambda replicas: 0.95, ("many", "distributed"): lambda replicas: 0.9 * replicas,
              ("many", "distributed-separate"): lambda replicas: 0.9 * replicas},
}
LEAST_AUTO = 0.95
NAMES = {"none": "None", "simple": "Simple", "extended-simple": "Extended Simple", "read-and-distribute": "Read & Distribute", "chained": "Chained",
         "chunked-and-chained": "Chunked & Chained", "distributed-chunked": "Distributed Chunked", "distributed": "Distributed",
         "distributed-separate": "Distributed Separate", "auto": "auto"}


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size >> 10} KiB"


def measured(bench, mode):
    """name of a side -> what its runs said."""
    for program in ("bench/throttlefs", "bench/protocols_bench.openmpi"):
        if not os.path.exists(bench.path(program)):
            raise Skip(f"{os.path.basename(program)} is not built")
    cluster = [sys.executable, "-B", CLUSTER, "--count", str(max(servers.REPLICAS))]
    probe = subprocess.run([*cluster, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(probe.stderr.strip().removeprefix("nodes.py: skipped, ") or "no cluster of namespaces can be made here")
    out, _ = run_command([*cluster, sys.executable, "-B", os.path.join(HERE, "servers.py"), "--build", bench.build, "--mode", mode, "--seed", str(bench.seed),
                          "--repetitions", str(bench.pick(1, 3)), *(["--quick"] if bench.quick else [])], {}, 1800)
    return json.loads(out.splitlines()[-1])


def of(runs, size):
    return [run["of"][str(size)] for run in runs]


def line(label, size, ours, base, limit, note, idle):
    """`ours` and `base`: what repetitions took of pieces of this size."""
    moved, a, b = max(size, servers.LEAST), min(ours), min(base)
    return {"what": f"{label}, calls of {size_text(size)}", "label": label, "size": size_text(size), "kind": "rate", "limit": limit, "note": note,
            "met": None if limit is None else b / a >= limit, "value": b / a, "noise": quartile_spread([y / x for x, y in zip(ours, base)]), "repetitions": len(ours),
            "base_seconds": b, "ours_seconds": a, "base_rate": moved / b / 1e6, "ours_rate": moved / a / 1e6, "idle": idle}


def counted(label, runs, mode, expected, note):
    """Bytes that all servers moved, for each byte of the program."""
    at = 0 if mode == "read" else 1
    value = statistics.median(sum(moved[at] for moved in run["servers"].values()) / run["bytes"] for run in runs)
    return {"what": f"{label}: bytes {'read from' if mode == 'read' else 'written to'} all servers, for each byte", "kind": "counted", "limit": expected, "note": note,
            "met": abs(value - expected) <= 0.01 * expected, "value": value, "noise": 0.0, "repetitions": len(runs), "base_seconds": 0, "ours_seconds": 0, "base_rate": 0,
            "ours_rate": 0}


def sides_of(said, replicas, kind):
    """protocol -> its runs."""
    found = {name.split(" ")[0]: runs for name, runs in said.items() if name.split(" ")[1:] == [str(replicas), kind]}
    return {protocol: found[protocol] for protocol in NAMES if protocol in found}


def lines_of(said, mode, replicas, kind):
    made, sides, plain = [], sides_of(said, replicas, kind), said["plain 0 one"]
    sizes = [int(size) for size in plain[0]["of"]]
    what = f"{'reads' if mode == 'read' else 'writes'}, R={replicas}, {SERVER[kind]}"
    for protocol, runs in sides.items():
        note = f"protocols-{mode}-{kind}-{protocol}"
        idle = statistics.median(run["idle"] for run in runs)
        limit = LEAST[mode].get((kind, protocol))
        if protocol != "auto":
            made += [line(f"{NAMES[protocol]}, {what}", size, of(runs, size), of(plain, size), limit(replicas) if limit else None, note, idle) for size in sizes]
            continue
        for size in sizes:
            best = min((other for other in sides if other != "auto"), key=lambda other: min(of(sides[other], size)))
            made.append(line(f"auto, against the best of them, {what}", size, of(runs, size), of(sides[best], size), LEAST_AUTO, note, idle))
    for protocol, runs in sides.items():
        if LEAST[mode].get((kind, protocol)):
            made.append(counted(f"{NAMES[protocol]}, {what}", runs, mode, 1, f"protocols-bytes-{protocol}"))
    return made


def shared(mode):
    def lines(bench):
        said = measured(bench, mode)
        made = []
        for kind in ("one", "many"):
            for replicas in servers.REPLICAS:
                made += lines_of(said, mode, replicas, kind)
        made[0]["figure"] = {name: {size_text(int(size)): max(int(size), servers.LEAST) / min(of(runs, size)) / 1e6 for size in runs[0]["of"]}
                             for name, runs in said.items()}
        return made
    return lines


# ---- what else replicas cost

def command(bench, *options, replicas=None, ranks=1, clock="decided"):
    job = [*launcher("openmpi", ranks), bench.path("bench/protocols_bench.openmpi"), *map(str, options)]
    return [bench.holdfast, "run", "--replicas", str(replicas), "--clock", clock, *job] if replicas else job


def start_up(bench):
    place = Place("/dev/shm", "tmpfs")
    job = command(bench, "--mode", "clock", "--count", 1)
    sides, rows = {}, []
    for replicas in servers.REPLICAS:
        side_by_side = " & ".join([" ".join(job)] * replicas) + " & wait"
        sides[f"teams {replicas}"] = Side(command(bench, "--mode", "clock", "--count", 1, replicas=replicas), wall=True)
        sides[f"launchers {replicas}"] = Side(["sh", "-c", side_by_side], wall=True)
        rows.append(Row(f"start-up and end of {replicas} teams of a rank, against {replicas} launchers side by side", f"teams {replicas}", f"launchers {replicas}", "extra",
                        0.1, "protocols-start"))
    return Group("protocols-start", "Start of teams", sides, rows, bench.pick(3, 9), place.close)


def clock(bench):
    count = bench.pick(200_000, 2_000_000)
    sides = {"plain": Side(command(bench, "--mode", "clock", "--count", count)), "teams": Side(command(bench, "--mode", "clock", "--count", count, replicas=2))}
    rows = [Row(f"the time, asked for {count:,} times by a rank of two teams: 0.2 µs each = {0.2e-3 * count:.0f} ms", "teams", "plain", "extra", 0.2e-6 * count, "protocols-clock")]
    return Group("protocols-clock", "A clock", sides, rows, bench.pick(3, 5))


def waits(bench):
    """What a rank waits for with its twins, or with the hub: before a send that follows a clock (--clock strict), and for its turn to append."""
    place = Place("/dev/shm", "tmpfs")
    sends, appends, path = bench.pick(1000, 10_000), bench.pick(500, 5000), place.file("log")
    of_sends, of_appends = ["--mode", "sends", "--count", sends], ["--mode", "appends", "--count", appends, "--path", path]

    def before():
        remove_native([path])
    sides = {f"sends {clock}": Side(command(bench, *of_sends, replicas=2, ranks=2, clock=clock)) for clock in ("decided", "strict")}
    for ranks in (1, 2):
        sides[f"appends {ranks}"] = Side(command(bench, *of_appends, replicas=2, ranks=ranks), before=before)
        sides[f"appends {ranks} plain"] = Side(command(bench, *of_appends, ranks=ranks), before=before)
    rows = [Row(f"{sends:,} messages there and back, each after a clock, R=2: --clock strict against decided", "sends strict", "sends decided", "extra", None, "protocols-waits")]
    for ranks, what in ((1, "one rank, which asks nobody"), (2, "each of two ranks, in turns")):
        rows.append(Row(f"{appends:,} lines appended by {what}, R=2, against none", f"appends {ranks}", f"appends {ranks} plain", "extra", None, "protocols-waits"))
    return Group("protocols-waits", "Waits for twins and the hub", sides, rows, bench.pick(3, 5), place.close)


def small_writes(bench):
    """In memory, where a flush is a copy, and on a mount of a bandwidth of its own, also by a program that does something else meanwhile."""
    place, mounts, clean = throttled_place(bench, 1)
    buffers, sides, rows = ["--buffer", "4x1MiB", "--path", place.root + "/**"], {}, []
    out, mounted = place.file("out"), os.path.join(mounts.mounts[0], "out")
    for name, where, path, size, rest in (("tmpfs", "tmpfs", out, bench.pick(64, 256), 0), ("mount", "a mount of 150 MB/s", mounted, bench.pick(32, 64), 0),
                                          ("rests", "a mount of 150 MB/s, 5 ms of rest after each MiB", mounted, bench.pick(32, 64), 5000)):
        job = command(bench, "--mode", "write", "--path", path, "--sizes", 512, "--least", size * MIB, "--rest", rest)

        def before(path=path):
            remove_native([path + ".512"])
        sides[f"plain {name}"] = Side([bench.holdfast, "run", *buffers, *job], before=before)
        sides[f"teams {name}"] = Side([bench.holdfast, "run", "--replicas", "2", *buffers, *job], before=before)
        rows.append(Row(f"writes of 512 bytes behind buffers, R=2, against buffers without replicas, {where}", f"teams {name}", f"plain {name}", "least", 1.05,
                        f"protocols-small-{name}"))
    return Group("protocols-small", "Small writes", sides, rows, bench.pick(3, 7), clean)


def processes(bench, environment):
    """team -> its rank's process"""
    done = subprocess.run([bench.holdfast, "status", "--job", "--json"], capture_output=True, text=True, check=False, env=environment)
    teams = json.loads(done.stdout)["teams"] if done.returncode in (0, 1, 3) and done.stdout.startswith("{") else []
    return {team["team"]: rank["process"] for team in teams for rank in team["ranks"]}


def longest_pause(bench, directory, number, seconds):
    """Between two calls on a file, where the leader gets this signal after a second."""
    environment = {**os.environ, "XDG_STATE_HOME": directory}
    job = subprocess.Popen(command(bench, "--mode", "calls", "--path", os.path.join(directory, "calls"), "--seconds", seconds, replicas=2), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        wait_for(lambda: len(processes(bench, environment)) == 2, 20, "no two teams")
        time.sleep(1)
        os.kill(processes(bench, environment)[0], number)
        out, err = job.communicate(timeout=60)
    except BaseException:
        os.killpg(job.pid, signal.SIGTERM)
        stop(job)
        raise
    lines = [text for text in out.splitlines() if text.startswith("{")]
    if job.returncode != 0 or len(lines) != 1 or "goes on alone" not in err:
        raise Failed(f"the job ended with {job.returncode}: {err[:300]}")
    return json.loads(lines[0])["longest"]


def fail_over(bench):
    made = []
    for number, seconds, what, limit, times in ((signal.SIGKILL, 3, "is killed", 0.5, bench.pick(2, 5)), (signal.SIGSTOP, 15, "hangs, deadline 10 s", 10.0, 1)):
        pauses = []
        for _ in range(times):
            with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir="/dev/shm") as directory:
                pauses.append(longest_pause(bench, directory, number, seconds))
        value = max(pauses)
        made.append({"what": f"the longest pause between two calls on a file where the leader {what}", "kind": "pause", "limit": limit, "note": "protocols-pause",
                     "met": value <= limit, "value": value, "noise": 0.0, "repetitions": times, "base_seconds": 0, "ours_seconds": value, "base_rate": 0, "ours_rate": 0})
    return made


def groups():
    return {"protocols-read": shared("read"), "protocols-write": shared("write"), "protocols-start": start_up, "protocols-clock": clock, "protocols-waits": waits, "protocols-small": small_writes,
            "protocols-failover": fail_over}
