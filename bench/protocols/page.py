"""docs/benchmarks-protocols.md and its figures, from the lines that were measured last. The figures are like those of Böhm and Engelmann, "File I/O for MPI
Applications in Redundant Execution Scenarios"."""
import os

import report
from report import COLOURS, GRID, svg, text

INTRO = """# Benchmarks: protocols of redundant execution

Made by `bench/run.sh --only GROUP,...` for the groups `protocols-*`, and `--redraw`. One rank reads or writes a file in calls of one size. It is there twice or three times, each
team on a node of its own, which is a network namespace of one machine. Links between nodes have no limit but the processors.

**The servers** are a stand-in: a FUSE mount on each node (`bench/throttlefs.c`) over one directory in memory. A server lets 50 MB/s through, for all its clients together, and
counts the bytes. Idle time of 2 ms at most is made up for, as by a server that reads a little ahead; nothing is cached. *One server*: all nodes are clients of the same one. *R
servers*: each node is the client of one of its own, as where a file is striped over servers and each replica asks another. What a mount copies within itself
(`copy_file_range`, the join of Distributed Separate Write) costs nothing and is not counted, as where servers share blocks.

Each cell is the rate against that of the program by itself on one server, with the same calls. For `auto` it is against the best protocol that was named. Sides ran in turn, in
shuffled order. Ratios are of the least times of all repetitions, as other work on the machine can only add to a time. Of each size 8 MiB are moved, and one call at least; the clock runs to
the end of the close. One process measures all sizes, small ones first. What was written is compared, and what was read. **Bold** cells miss what is wanted.

"""


def cell(line):
    if "value" not in line:
        return "not measured"
    words = f"{line['value']:.2f}" if line["kind"] == "rate" else report.fmt_value(line)
    return f"**{words}**" if line["met"] is False else words


def wanted(line):
    return f"≥ {line['limit']:.2f}" if line["limit"] is not None else "–"


def remark(lines, notes):
    """Of those that miss first."""
    found = [report.reason(line, notes) for line in sorted(lines, key=lambda one: one["met"] is not False)]
    return next((words for words in found if words), "")


def by_size(lines, notes):
    """Rows of lines that differ in nothing but their size."""
    sizes = list(dict.fromkeys(line["size"] for line in lines))
    rows = [f"| what | wanted | {' | '.join(sizes)} | idle | n | remark |", "| --- |" + " --- |" * (len(sizes) + 4)]
    for label in dict.fromkeys(line["label"] for line in lines):
        of = {line["size"]: line for line in lines if line["label"] == label}
        one = next(iter(of.values()))
        cells = [label, wanted(one), *(cell(of[size]) if size in of else "–" for size in sizes), f"{100 * one['idle']:.0f} %", str(one["repetitions"]),
                 remark(of.values(), notes)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def value(line):
    if "value" not in line:
        return "not measured"
    if line["kind"] == "counted":
        return f"{line['value']:.3f}"
    return f"{line['value']:.3f} s" if line["kind"] == "pause" else report.fmt_value(line)


def limit(line):
    if line["limit"] is None or line["kind"] not in ("counted", "pause"):
        return report.fmt_limit(line)
    return "1 ± 0.01" if line["kind"] == "counted" else f"≤ {line['limit']:g} s"


def others(lines, notes):
    rows = ["| what | measured | wanted | met | n | remark |", "| --- | --- | --- | --- | --- | --- |"]
    for line in lines:
        cells = [line["what"], value(line), limit(line), report.fmt_met(line), str(line.get("repetitions", 0)), report.reason(line, notes)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def curves(title, names, series):
    """`series`: name -> (rates by size, colour, dashes)."""
    width, height, left, top, bottom = 680, 400, 60, 40, 300
    highest = max(rate for rates, _, _ in series.values() for rate in rates.values()) * 1.1
    xs = {name: left + 20 + i * (width - left - 60) / max(1, len(names) - 1) for i, name in enumerate(names)}
    body = [text(left, 22, title, size=14), text(width / 2, bottom + 36, "bytes of a call", "middle"), text(8, top - 6, "MB/s", size=11)]
    for tick in range(6):
        y = bottom - tick * (bottom - top) / 5
        body.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(left - 6, y + 4, f"{highest * tick / 5:.3g}", "end", size=11))
    body += [text(x, bottom + 18, name, "middle", size=11) for name, x in xs.items()]
    for i, (name, (rates, colour, dashes)) in enumerate(series.items()):
        placed = [(xs[size], bottom - rate / highest * (bottom - top)) for size, rate in rates.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        x, y = left + i % 3 * 205, height - 46 + i // 3 * 17
        body.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 28}" y2="{y - 4}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
        body.append(text(x + 33, y, name, size=11))
    return svg(width, height + 10, body)


def figure(rates, title, kind, protocols):
    """`protocols`: those drawn, and how they are called there."""
    series = {"None (1x)": (rates["plain 0 one"], "#333", "")}
    for i, (protocol, name) in enumerate(protocols):
        for replicas, dashes in ((2, ""), (3, "6 4")):
            found = rates.get(f"{protocol} {replicas} {kind}")
            if found:
                series[f"{name} ({replicas}x)"] = (found, COLOURS[i % len(COLOURS)], dashes)
    return curves(title, list(rates["plain 0 one"]), series)


FIGURES = (
    ("protocols-read-one.svg", "read", "Reads, one server (as figure 10)", "one", (("simple", "Simple"), ("chunked-and-chained", "Chunked & Chained"))),
    ("protocols-read-many.svg", "read", "Reads, a server for each replica (as figure 11)", "many", (("simple", "Simple"), ("distributed-chunked", "Distributed Chunked"))),
    ("protocols-write-one.svg", "write", "Writes, one server (as figure 12)", "one", (("simple", "Simple"), ("distributed", "Distributed"))),
    ("protocols-write-many.svg", "write", "Writes, a server for each replica (as figure 13)", "many",
     (("simple", "Simple"), ("distributed", "Distributed"), ("distributed-separate", "Distributed Separate"))),
)


def figures(lines_by_group):
    drawn = {}
    for name, mode, title, kind, protocols in FIGURES:
        rates = lines_by_group.get(f"protocols-{mode}", [{}])[0].get("figure")
        if rates:
            drawn[name] = figure(rates, title, kind, protocols)
    return drawn


def write(directory, lines_by_group, facts, notes):
    lines = [line for of_group in lines_by_group.values() for line in of_group]
    drawn = figures(lines_by_group)
    for name, drawing in drawn.items():
        with open(os.path.join(directory, "benchmarks", name), "w", encoding="utf-8") as out:
            out.write(drawing)
    with open(os.path.join(directory, "benchmarks-protocols.md"), "w", encoding="utf-8") as out:
        out.write(INTRO + facts + "\n\n**" + report.verdict(lines) + "**\n\n")
        sized = [line for line in lines if "size" in line]
        if sized:
            out.write(by_size(sized, notes) + "\n")
        out.write(others([line for line in lines if "size" not in line], notes))
        for name in drawn:
            out.write(f"\n![{name[:-4]}](benchmarks/{name})\n")
