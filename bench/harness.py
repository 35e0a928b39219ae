"""Runs things in turn and compares them: the only part that takes times.

A *side* is one way to do the same work (natively, protected, through a peer). A *group* is a set of sides that are run
in turn, in an order shuffled anew for each repetition, after one warm-up each that also verifies the data. A *row*
compares one side with another by the median of the ratios of each repetition, so that a busy machine disturbs both.
"""
import json
import os
import random
import signal
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Optional


class Skip(Exception):
    """This cannot be measured here; the text says why and goes into the table."""


class Failed(Exception):
    """A run that did not do its work: never a number."""


@dataclass
class Side:
    command: list
    environment: dict = field(default_factory=dict)
    before: Optional[Callable] = None   # outside the clock: settle caches, remove the last run's file
    check: Optional[Callable] = None    # outside the clock: raises Failed; may return facts, e.g. {"volume": bytes}
    verify: Optional[list] = None       # a command that reads back every byte; run once, at the warm-up
    after: Optional[Callable] = None
    wall: bool = False                  # take the whole command's time instead of the program's own
    once: bool = False                  # its one run, which takes minutes, is its result for all repetitions
    timeout_s: float = 240              # a run without an end by then has no result


@dataclass
class Row:
    what: str
    ours: str            # names of sides
    base: str
    kind: str = "time"   # "time": ours/base <= limit; "cpu": the same of processor time; "least": of the
                         # least times, where noise is larger than what is looked for; "rate": base time/ours time >= limit;
                         # "extra": ours - base <= limit seconds; "closed": as "time", with what closing took, where
                         # the program's clock runs over the calls alone
    limit: Optional[float] = None
    note: str = ""       # key into notes.txt
    volume: Optional[float] = None      # bytes on targets per byte of data, that must at least be there


@dataclass
class Group:
    name: str
    title: str
    sides: dict
    rows: list
    repetitions: int = 5
    clean: Optional[Callable] = None


def run_command(command, environment, timeout_s=240):
    """Runs one command in a process group of its own, so that a hung job is ended whole and nothing else is."""
    started = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except BaseException as reason:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if isinstance(reason, subprocess.TimeoutExpired):
            raise Failed(f"no result in {timeout_s:.0f} s") from None
        raise
    elapsed = time.monotonic() - started
    if process.returncode != 0:
        lines = (err + out).strip().splitlines()
        telling = [l for l in lines if "holdfast" in l or "failed" in l] or lines
        raise Failed(f"exit {process.returncode}: {' '.join(telling[:2])[:300]}")
    return out, elapsed


def last_json(out):
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("the program printed no result")
    return json.loads(lines[-1])


def run_side(side, expected_bytes=None):
    if side.before:
        side.before()
    out, elapsed = run_command(side.command, side.environment, side.timeout_s)
    result = last_json(out)
    result["wall_seconds"] = elapsed
    if side.wall:
        result["seconds"] = elapsed
    if expected_bytes is not None and result["bytes"] != expected_bytes:
        raise Failed(f"{result['bytes']} bytes moved, not {expected_bytes}")
    if side.check:
        result.update(side.check() or {})
    return result


def warm_up(side):
    """The first run of a side, whose data is read back and compared. Its time is a result of sides that run once alone."""
    result = run_side(side)
    if side.verify:
        out, _ = run_command(side.verify, side.environment, side.timeout_s)
        if not last_json(out)["verified"]:
            raise Failed("the data was not verified")
    if side.after:
        side.after()
    return result


def run_group(group, say, seed):
    """Returns name -> list of results, one per repetition; a side that fails or cannot run has a string instead."""
    order = random.Random(seed)
    results = {}
    for name, side in group.sides.items():
        try:
            first = warm_up(side)
            results[name] = [first] if side.once else []
        except (Failed, Skip) as reason:
            say(f"  {name}: {reason}")
            results[name] = str(reason)
    for repetition in range(group.repetitions):
        names = [n for n in group.sides if not isinstance(results[n], str) and not group.sides[n].once]
        order.shuffle(names)
        for name in names:
            side = group.sides[name]
            try:
                results[name].append(run_side(side))
                if side.after:
                    side.after()
            except Failed as reason:
                say(f"  {name}: {reason}")
                results[name] = str(reason)
    return results


def quartile_spread(values):
    """Half the distance between the quartiles, relative to the median: the noise that the table states."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    middle = statistics.median(values)
    return (high - low) / 2 / abs(middle) if middle else 0.0


def time_of(row, result):
    if row.kind == "cpu":
        return result["cpu_seconds"]
    return result["seconds"] + (result["close_seconds"] if row.kind == "closed" else 0)


def ratios_of(row, ours, base):
    if len(base) == 1:
        base = base * len(ours)  # it runs once
    pairs = [(time_of(row, a), time_of(row, b)) for a, b in zip(ours, base)]
    if row.kind == "least":
        return [min(a for a, _ in pairs) / min(b for _, b in pairs)]
    if row.kind in ("time", "cpu", "closed"):
        return [a / b for a, b in pairs]
    if row.kind == "rate":
        return [b / a for a, b in pairs]
    return [a - b for a, b in pairs]


def beyond_own_data(runs):
    """Peak resident size of a process without the data that the program itself holds (sides may differ in ranks)."""
    return max(r["peak_rss_bytes"] - r["bytes"] // r["ranks"] for r in runs)


def compare(row, results):
    """One line of the table as a dictionary; `met` is None where nothing was measured or no limit was set."""
    line = {"what": row.what, "kind": row.kind, "limit": row.limit, "note": row.note, "met": None}
    ours, base = results.get(row.ours, "not run"), results.get(row.base, "not run")
    for side in (ours, base):
        if isinstance(side, str):
            line["skipped"] = side
            return line
    values = ratios_of(row, ours, base)
    line["value"], line["noise"], line["repetitions"] = statistics.median(values), quartile_spread(values), len(ours)
    for name, side in (("ours", ours), ("base", base)):
        seconds = statistics.median(r["seconds"] + (r["close_seconds"] if row.kind == "closed" else 0) for r in side)
        line[f"{name}_seconds"] = seconds
        line[f"{name}_rate"] = side[0]["bytes"] / seconds / 1e6
    line["bytes"] = ours[0]["bytes"]
    cpu = [statistics.median(r["cpu_seconds"] for r in side) for side in (ours, base)]
    line["cpu"] = cpu[0] / cpu[1] if cpu[1] else None
    line["memory"] = beyond_own_data(ours) - beyond_own_data(base)
    if "volume" in ours[0]:
        line["volume"] = statistics.median(r["volume"] / r["bytes"] for r in ours)
    if row.limit is not None:
        line["met"] = line["value"] >= row.limit if row.kind == "rate" else line["value"] <= row.limit
    return line
