"""Checkpoints on links of 200 Mbit/s, as lines of a table and figures of a page of their own (docs/benchmarks-checkpoints.md): ratios of least times, for
other work on the machine can only add to a time."""
import json
import os
import statistics
import subprocess
import sys

from harness import Skip, quartile_spread, run_command

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import links  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "tools", "nodes.py")
RATE = "200mbit"
BUSY = 0.1  # less than this share of the processors idle: the line says nothing about links
MIB = 1 << 20


def measured(bench, what, size, repetitions, rate=RATE):
    program = bench.path("bench/checkpoint_bench")
    if not os.path.exists(program):
        raise Skip("checkpoint_bench is not built (ninja checkpoint_bench)")
    cluster = [sys.executable, "-B", CLUSTER, "--count", str(links.NODES[what]), *(["--rate", rate] if rate else [])]
    probe = subprocess.run([*cluster, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(probe.stderr.strip().removeprefix("nodes.py: skipped, ") or "no cluster of namespaces can be made here")
    out, _ = run_command([*cluster, sys.executable, "-B", os.path.join(HERE, "links.py"), "--build", bench.build, "--what", what, "--bytes", str(size),
                          "--repetitions", str(repetitions)], {}, 1800)
    return json.loads(out.splitlines()[-1])


def least(said, key="seconds"):
    return min(one[key] for one in said)


def line(what, ours, base, limit, note, kind="rate", size=0, scale=1.0, bound=True):
    """`ours` and `base`: what repetitions took. The ratio is of rates (base / ours) or of times, of least ones."""
    a, b = least(ours), least(base)
    value = scale * (b / a if kind == "rate" else a / b)
    pairs = [y["seconds"] / x["seconds"] if kind == "rate" else x["seconds"] / y["seconds"] for x, y in zip(ours, base)]
    idle = statistics.median(one["idle"] for one in ours) if "idle" in ours[0] else None
    met = None if limit is None or (bound and idle is not None and idle < BUSY) else value >= limit if kind == "rate" else value <= limit
    return {"what": what, "kind": kind, "limit": limit, "note": note, "met": met, "value": value, "noise": quartile_spread(pairs), "repetitions": len(ours),
            "base_seconds": b, "ours_seconds": a, "base_rate": size / b / 1e6, "ours_rate": size / a / 1e6, **({} if idle is None else {"idle": idle})}


def again_line(what, said, name, kind="rate", size=0):
    """Of a side that had two turns in each repetition."""
    return line(f"{what}, against itself: the noise", said[f"{name} again"], said[name], None, "ck-again", kind, size, bound=False)


def share_line(what, value, limit, note, repetitions):
    """Of bytes: measured over what is expected."""
    return {"what": what, "kind": "time", "limit": limit, "note": note, "met": limit and abs(value - 1) <= limit - 1, "value": value, "noise": 0.0,
            "repetitions": repetitions, "base_seconds": 0, "ours_seconds": 0, "base_rate": 0, "ours_rate": 0}


def algorithms(bench):
    size = bench.pick(16, 64) * MIB
    said = measured(bench, "algorithms", size, bench.pick(2, 5))
    low, spread = said["low"], said["distributed"]
    everything = links.GROUP * size
    made = [line("low-communication against distributed, k = m = 4, groups of 4 nodes that all write", low, spread, 1.7, "ck-algorithms", size=everything),
            line("low-communication against plain TCP with the same bytes", low, said["low plainly"], None, "ck-plain", size=everything),
            line("distributed against plain TCP with the same bytes", spread, said["distributed plainly"], None, "ck-plain", size=everything),
            again_line("low-communication", said, "low", size=everything)]
    for name, runs, each in (("low-communication", low, 1.5), ("distributed", spread, 3.0)):
        value = statistics.median(one["payload"] for one in runs) / (each * everything)
        made.append(share_line(f"{name}: payload on the links, of {each:g} bytes for each byte", value, 1.01, "ck-payload", len(runs)))
    for name, runs in (("low-communication", low), ("distributed", spread)):
        best = min(runs, key=lambda one: one["seconds"])
        parts = {"read": best["read"], "code": best["code"]}
        parts["links, targets"] = max(0.0, best["seconds"] - sum(parts.values()))
        made[0].setdefault("figure", {})[name] = parts
    return made


def unshaped(bench):
    size = bench.pick(16, 64) * MIB
    said = measured(bench, "unshaped", size, bench.pick(2, 5), rate=None)
    return [line("low-communication against distributed where the processors are the limit, k = m = 4, groups of 4 nodes that all write", said["low"], said["distributed"],
                 1.24, "ck-unshaped", size=links.GROUP * size, bound=False),
            again_line("low-communication there", said, "low", size=links.GROUP * size)]


def discarded(bench):
    size = bench.pick(64, 256) * MIB
    said = measured(bench, "discarded", size, bench.pick(2, 7), rate=None)
    return [line("protecting into directories that keep nothing, against its reading, coding and hashing alone: rs:4+4", said["protected"], said["its parts"], 0.8,
                 "ck-discarded", size=size, bound=False),
            line("the same against a plain copy of the file (cp) over tmpfs", said["protected"], said["copied"], None, "ck-copied", size=size, bound=False),
            again_line("protecting into directories that keep nothing", said, "protected", size=size)]


def throughputs(said, size, label_of):
    """name of a scheme -> label -> MB/s of one writer; from the least of the repetitions' means where there are several writers."""
    rates = {}
    for side, runs in said.items():
        if side.endswith(" again"):
            continue
        name, label = side.split(" ")
        rates.setdefault(name, {})[label_of(label)] = size / min(one["mean"] for one in runs) / 1e6
    return rates


def chunks(bench):
    size = bench.pick(8, 32) * MIB
    said = measured(bench, "chunks", size, bench.pick(1, 3))
    at = str(512 << 10)
    made = [line(f"{ours} against {base}, one writer, all units remote, chunks of 512 KiB", said[f"{ours} {at}"], said[f"{base} {at}"], limit, "ck-remote", size=size)
            for ours, base, limit in (("rs-4", "rep-4", 1.7), ("rs-4", "rep-2", 0.9), ("rs-8", "rep-4", 1.6))]
    largest = str(links.CHUNKS[-1])
    made += [line(f"{ours} against {base}, one writer, all units remote, chunks of 2 MiB", said[f"{ours} {largest}"], said[f"{base} {largest}"], limit, "ck-remote",
                  size=size) for ours, base, limit in (("rs-4", "rep-4", 1.7), ("rs-4", "rep-2", 0.9), ("rs-8", "rep-4", 1.6))]
    made.append(again_line("rs-4, one writer, chunks of 512 KiB", said, f"rs-4 {at}", size=size))
    made[0]["figure"] = throughputs(said, size, lambda chunk: f"{int(chunk) >> 10} KiB")
    return made


def writers(bench):
    size = bench.pick(8, 16) * MIB
    said = measured(bench, "writers", size, bench.pick(1, 3))
    made = [line(f"rs-4 against rep-4, {count} writer{'s' if count > 1 else ''}, all units remote, chunks of 512 KiB", said[f"rs-4 {count}"], said[f"rep-4 {count}"],
                 1.8 if count == 8 else None, "ck-writers", size=count * size) for count in links.WRITERS]
    made.append(again_line("rs-4, 8 writers", said, "rs-4 8", size=8 * size))
    made[0]["figure"] = throughputs(said, size, str)
    return made


def local(bench):
    size = 8 * MIB  # larger ones are hardly ever written undisturbed on a busy machine
    said = measured(bench, "local", size, bench.pick(2, 7))

    def of(name, key):
        return [{"seconds": min(one[key])} for one in said[name]]
    made = []
    for name, words in (("protected", "a checkpoint's writes, against plain ones, while earlier ones are protected"), ("again", "plain against plain: the noise")):
        made.append(line(words, of(name, "writes"), of("plain", "writes"), 0.97 if name == "protected" else None, "ck-local", size=size))
    for pick, words in ((min, "least"), (statistics.median, "median")):
        ours, base = (pick([pick(one["doors"]) for one in said[name]]) for name in ("protected", "plain"))
        made.append({"what": f"open and close of a checkpoint, {words} times: 200 µs more", "kind": "extra", "limit": 200e-6, "note": "ck-doors", "met": ours - base <= 200e-6,
                     "value": ours - base, "noise": 0.0, "repetitions": len(said["plain"]), "base_seconds": base, "ours_seconds": ours, "base_rate": 0, "ours_rate": 0})
    return made


def stencil(bench):
    size = bench.pick(32, 96) * MIB
    said = measured(bench, "stencil", size, bench.pick(1, 5))
    cores = os.cpu_count()
    plain = least(said["plain"])
    made = [line("the stencil with one checkpoint written plainly, against none: a twentieth", said["plain"], said["without"], None, "ck-stencil", "time", size)]
    for name in ("rs-4", "rep-4"):
        best = min(said[name], key=lambda one: one["seconds"])
        limit = 1 + 1.2 * best["agents"] / (cores * best["seconds"])
        made.append(line(f"the stencil with its checkpoint protected in the background by {name}, against plainly written", said[name], said["plain"],
                         round(limit, 3) if name == "rs-4" else None, "ck-stencil", "time", size))
    whole = {name: [{"seconds": one["whole"]} for one in said[name]] for name in ("rs-4", "rep-4")}
    made.append(line("the whole job until its checkpoint is protected: rs-4 against rep-4", whole["rs-4"], whole["rep-4"], 1.0, "ck-stencil-whole", size=size))
    made.append(again_line("the stencil with its checkpoint plainly written", said, "plain", "time", size))
    made[0]["figure"] = {name: {"program": least(said[name]), "protecting after its end": least(said[name], "whole") - least(said[name])} for name in ("rs-4", "rep-4")}
    made[0]["figure"]["plain"] = {"program": plain, "protecting after its end": 0.0}
    return made


def rebuild(bench):
    size = bench.pick(16, 32) * MIB
    said = measured(bench, "rebuild", size, bench.pick(2, 3))
    return [line("what a lost node held of six files (rs:4+2) made anew, against its bytes sent plainly to the spare", said["rebuilt"], said["sent to the spare"], 0.7,
                 "ck-rebuild", size=6 * size // 4),
            again_line("making it anew", said, "rebuilt", size=6 * size // 4)]


def packs(bench):
    made = []
    for size in (4 << 10, 64 << 10):
        said = measured(bench, "packs", size, bench.pick(2, 5))
        commits = {how: said[how][-1]["commits"] for how in ("alone", "together")}
        made.append(line(f"64 files of {size >> 10} KiB of one node and step protected together, against each by itself (rs:4+2): {commits['together']} commit against "
                         f"{commits['alone']}", said["together"], said["alone"], None, "ck-packs", size=64 * size, bound=False))
        made.append(again_line(f"64 files of {size >> 10} KiB together", said, "together", size=64 * size))
    return made


def groups():
    return {f"checkpoints-{name}": make for name, make in (("local", local), ("algorithms", algorithms), ("unshaped", unshaped), ("discarded", discarded), ("chunks", chunks), ("writers", writers),
                                                           ("stencil", stencil), ("rebuild", rebuild), ("packs", packs))}
