"""docs/benchmarks-checkpoints.md and its figures, from the lines that were measured last. The figures are like those of Bautista Gomez et al., "Scalable
Reed-Solomon-based Reliable Local Storage for HPC Applications on IaaS Clouds"."""
import os

import report
from report import COLOURS, GRID, INK, curves, svg, text

NAMES = ("rs-8", "rs-4", "rep-2", "rep-3", "rep-4")
INTRO = """# Benchmarks: checkpoints

Made by `bench/run.sh --only GROUP,...` for the groups `checkpoints-*`, and `--redraw`. Nodes are network namespaces of one machine, with a tmpfs and an agent each. Their
links have 200 Mbit/s in each direction: these, and not the two shared processors, are to be the limit. Other work ran beside it, at a lower
priority. Sides of a line ran in turn in one run. Ratios are of the least times of all repetitions, as other work on the machine can only add to a time. The ± is half the distance
between the quartiles of the repetitions' ratios.
*Not decided*: less than a tenth of the processors was idle, or with niced work, while the line was measured.

`low-communication` is what the protector of a node does: it codes K + M units of a row alone and sends them to their nodes. `distributed` is the algorithm that it is compared
with (`bench/checkpoints/distributed.hpp`). It codes the i-th blocks of the group's nodes together, by partial sums that go round. It has no checksums and no manifest. Its
parity is proved by taking away each half of the nodes (`bench_distributed_parity`). *rs-k* is rs:k+k. *rep-k* is k copies, all of them on other nodes than the writer's.

"""


def fmt_value(line):
    if "value" not in line:
        return "not measured"
    if line["kind"] == "extra":
        return f"{line['value'] * 1e6:+.0f} µs"
    return f"{line['value']:.3f} ×" + (f" (± {100 * line['noise']:.0f} %)" if line["noise"] else "")


def fmt_limit(line):
    if line["limit"] is None:
        return "–"
    if line["kind"] == "extra":
        return f"≤ {line['limit'] * 1e6:.0f} µs"
    if line["note"] == "ck-payload":
        return f"1 ± {line['limit'] - 1:.2f}"
    return f"{'≥' if line['kind'] == 'rate' else '≤'} {line['limit']:.2f} ×"


def fmt_met(line):
    if line["met"] is None and line["limit"] is not None and "value" in line:
        return "not decided"
    return report.fmt_met(line)


def fmt_rates(line):
    if "value" not in line or not line["base_seconds"]:
        return "–"
    if line["kind"] == "extra":
        return f"{line['base_seconds'] * 1e6:.0f} → {line['ours_seconds'] * 1e6:.0f} µs"
    if not line["ours_rate"]:
        return f"{line['base_seconds']:.2f} → {line['ours_seconds']:.2f} s"
    return f"{line['base_rate']:.1f} → {line['ours_rate']:.1f} MB/s"


def table(lines, notes):
    rows = ["| what | ratio | wanted | met | other side → ours | idle | n | remark |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for line in lines:
        idle = f"{100 * line['idle']:.0f} %" if "idle" in line else "–"
        cells = [line["what"], fmt_value(line), fmt_limit(line), fmt_met(line), fmt_rates(line), idle, str(line.get("repetitions", 0)), report.reason(line, notes)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def stacked(title, y_label, columns):
    """`columns`: name -> part -> value, one bar each, from the ground up."""
    width, height, left, top, bottom = 640, 360, 60, 40, 280
    parts = list(dict.fromkeys(part for values in columns.values() for part in values))
    highest = 1.1 * max(sum(values.values()) for values in columns.values())
    body = [text(left, 22, title, size=14), text(8, top - 6, y_label, size=11)]
    for tick in range(6):
        y = bottom - tick * (bottom - top) / 5
        body.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(left - 6, y + 4, f"{highest * tick / 5:.3g}", "end", size=11))
    step = (width - left - 40) / len(columns)
    for i, (name, values) in enumerate(columns.items()):
        x, y = left + step * (i + 0.5), float(bottom)
        for part, value in values.items():
            tall = value / highest * (bottom - top)
            y -= tall
            body.append(f'<rect x="{x - 45:.1f}" y="{y:.1f}" width="90" height="{tall:.1f}" fill="{COLOURS[parts.index(part) % len(COLOURS)]}"/>')
        body.append(text(x, y - 5, f"{sum(values.values()):.2f}", "middle", size=11))
        body.append(text(x, bottom + 18, name, "middle"))
    for i, part in enumerate(parts):
        body.append(f'<rect x="{left + i * 180}" y="{height - 32}" width="12" height="12" fill="{COLOURS[i % len(COLOURS)]}"/>')
        body.append(text(left + 18 + i * 180, height - 22, part, colour=INK))
    return svg(width, height, body)


def rates(title, x_label, found):
    labels = list(next(iter(found.values())))
    return curves(title, x_label, "MB/s of a checkpoint", labels, {name: [found[name].get(label) for label in labels] for name in NAMES if name in found})


def figures(lines_by_group):
    drawn = {}

    def of(group):
        lines = lines_by_group.get(f"checkpoints-{group}", [{}])
        return lines[0].get("figure")
    if of("algorithms"):
        drawn["checkpoint-algorithms.svg"] = stacked("Both algorithms, four nodes at once, k = m = 4 (as figure 2a)", "seconds", of("algorithms"))
    if of("chunks"):
        drawn["checkpoint-chunks.svg"] = rates("One writer, all units on other nodes, by chunk size (as figure 3a)", "chunk", of("chunks"))
    if of("writers"):
        drawn["checkpoint-writers.svg"] = rates("Several writers, chunks of 512 KiB: rate of each (as figure 3b)", "writers", of("writers"))
    if of("stencil"):
        drawn["checkpoint-stencil.svg"] = stacked("The stencil with one checkpoint (as figure 4b)", "seconds", of("stencil"))
    return drawn


def write(directory, lines_by_group, facts, notes):
    lines = [line for of_group in lines_by_group.values() for line in of_group]
    drawn = figures(lines_by_group)
    for name, drawing in drawn.items():
        with open(os.path.join(directory, "benchmarks", name), "w", encoding="utf-8") as out:
            out.write(drawing)
    with open(os.path.join(directory, "benchmarks-checkpoints.md"), "w", encoding="utf-8") as out:
        out.write(INTRO + facts + "\n\n**" + report.verdict(lines) + "**\n\n" + table(lines, notes) + "\n" + PEERS + not_measured(lines_by_group))
        for name in drawn:
            out.write(f"\n![{name[:-4]}](benchmarks/{name})\n")


PEERS = """What measuring has changed: an open asked all nodes for the file, and took 75 to 190 ms where their links were busy. The protector read and coded 32 MiB before it sent any,
and waited for the last node before it read on. Then low-communication was 1.69 times as fast as distributed, and 0.79 times as fast as plain TCP.

Peers: redset, FTI and VELOC are not built here. Their sources are in none of the package registries that could be asked (Debian, PyPI, npm, crates.io). Elsewhere they were
measured on two cores over tmpfs, with four nodes and files of 256 MB of which any two may be lost. There redset codes 990 to 1,390 MB/s and rebuilds 270 to 430 MB/s. FTI codes 140 to 330 MB/s at its level 3, and rebuilds about 60 MB/s.
As these figures are from elsewhere, no ratio is given.
"""

# group -> what it would say
NOT_MEASURED = {"unshaped": "both algorithms where the processors are the limit (wanted: 1.24 times)", "discarded": "protecting into discarding targets"}


def not_measured(lines_by_group):
    left = [words for group, words in NOT_MEASURED.items() if f"checkpoints-{group}" not in lines_by_group]
    return f"\nNot measured: {', and '.join(left)}.\n" if left else ""

