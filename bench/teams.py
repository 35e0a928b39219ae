"""What it costs that a job is there twice: two teams against two plain jobs side by side, placed alike.

A full measurement runs for a quarter of a minute a job, as what it costs to start must not be most of what is found; --quick only looks whether all works.
"""
import os
import shutil
import sys

from harness import Group, Row, Side
from workloads import launcher

HERE = os.path.dirname(os.path.abspath(__file__))
REPLICAS, MOST, MOST_COMPARED, MOST_MICROSECONDS = 2, 1.03, 1.05, 0.15


def programs(bench):
    """(name, ranks, input files, command with its arguments) of each that is here."""
    messages = os.path.join(os.path.abspath(bench.build), "bin/bench/sends_bench.openmpi")
    for ranks in (1, 2):
        yield f"ring-{ranks}", ranks, [], [messages, "--mode", "ring", "--rounds", str(bench.pick(1000, 50000) // ranks ** 4)]
        yield f"heat-{ranks}", ranks, [], [messages, "--mode", "heat", "--path", "field", "--cells", "600", "--steps", str(bench.pick(1000, 6000) // ranks), "--every", "250"]
    found = shutil.which("lmp")
    if found:
        steps = str(bench.pick(100, 500))
        yield "LAMMPS-1", 1, [os.path.join(HERE, "melt.lammps")], [found, "-log", "none", "-screen", "none", "-var", "steps", steps, "-in", "melt.lammps"]
    found = shutil.which("hpcc")
    if found:
        yield "HPC Challenge-1", 1, [os.path.join(HERE, bench.pick("hpcc-short", "hpcc"), "hpccinf.txt")], [found]


def own_code(name):
    """The file with the code of one that works at the speed of its processor, which changes by a tenth and more from job to job: it is measured by samples."""
    files = {"heat": "sends_bench", "LAMMPS": "liblammps"}
    return files.get(name.rpartition("-")[0])


def sides(bench, name, ranks, inputs, words):
    job = [*launcher("openmpi", ranks), *words]
    timed = [sys.executable, os.path.join(HERE, "timed_jobs.py"), *(["--own-code", own_code(name)] if own_code(name) else [])]
    turns = {"OMPI_MCA_mpi_yield_when_idle": "1"}  # as teams do it that have more ranks than cores

    def plain():
        return Side([*timed, str(REPLICAS), str(ranks), *inputs, "--", *job], turns)

    def teams(*options):
        return Side([*timed, "1", str(ranks), *inputs, "--", os.path.abspath(bench.holdfast), "run", "--replicas", str(REPLICAS), *options, "--", *job], turns)
    return {f"{name}-teams": teams(), f"{name}-messages": teams("--compare", "messages"), f"{name}-plain": plain(), f"{name}-again": plain()}


def messages_of_ring(bench):
    """(sides, rows) of a ring of one rank by its own clock: each round has been the quickest, so what else runs tells little. A second is a microsecond a message."""
    job = bench.job(1, "sends_bench", "--mode", "ring", "--rounds", bench.pick(1000, 5000))
    started = [bench.holdfast, "run", "--replicas", str(REPLICAS)]
    found = {"message-plain": Side(job), "message-again": Side(job), "message-teams": Side([*started, *job]),
             "message-compared": Side([*started, "--compare", "messages", *job])}
    what, part = "a message of the ring, 1 rank, of the quickest round", "teams-messages"
    return found, [Row(f"{what}: two teams against a plain job", "message-teams", "message-plain", "least", MOST, part),
                   Row(f"{what}: `--compare messages` against two teams without", "message-compared", "message-teams", "extra", MOST_MICROSECONDS, part),
                   Row(f"{what}: plain against plain, the noise", "message-again", "message-plain", "least", None, part)]


def group(bench, part, all_sides, rows):
    return Group(part, "Two teams", all_sides, rows, bench.pick(3, 7))


def messages(bench):
    return group(bench, "teams-messages", *messages_of_ring(bench))


def jobs(part, first_letters):
    """A group of the programs whose names begin so; each is measured by itself, as all together take three quarters of an hour."""
    def measured(bench):
        all_sides, rows = {}, []
        for name, ranks, inputs, words in programs(bench):
            if not name.startswith(first_letters):
                continue
            all_sides.update(sides(bench, name, ranks, inputs, words))
            what = f"{name.rpartition('-')[0]}, {ranks} rank{'s' if ranks > 1 else ''}"
            for kind, how in (("cpu", "processor time for a second of its own code" if own_code(name) else "processor time"), ("least", "least times")):
                rows.append(Row(f"{what}: two teams against two plain jobs: {how}", f"{name}-teams", f"{name}-plain", kind, MOST, part))
                rows.append(Row(f"{what}: with `--compare messages`: {how}", f"{name}-messages", f"{name}-plain", kind, None if "ring" in name else MOST_COMPARED, part))
                rows.append(Row(f"{what}: plain against plain, the noise: {how}", f"{name}-again", f"{name}-plain", kind, None, part))
        return group(bench, part, all_sides, rows)
    return measured


def groups():
    parts = {"teams-ring": "ring", "teams-heat": "heat", "teams-lammps": "LAMMPS", "teams-hpcc": "HPC"}
    return {"teams-messages": messages, **{part: jobs(part, letters) for part, letters in parts.items()}}
