"""docs/benchmarks-teams.md, from the lines that were measured last."""
import os
import statistics

import report

INTRO = """# Benchmarks: two teams

Made by `bench/run.sh --only GROUP,...` for the groups `teams-*`, and `--redraw`. `holdfast run --replicas 2` is measured against two plain jobs side by side, placed alike. All
that was started counts, launchers and hub too. Sides ran in turn, in shuffled order.

The heat equation and LAMMPS run as fast as their processor, and that changes its speed by a tenth and more from job to job. What their own code does is the same in any job. So Linux's perf
takes a thousand samples a second of all processes, and *a second of its own code* is the measure: all samples against those in the program's code. The least times of whole jobs stand beside
it, with their noise. These jobs run for some ten seconds, and those of HPC Challenge for a quarter of a minute.

The lines of a message are told by the ring's own clock. They are of the quickest of 5,000 rounds of 2,000 messages. The noise is what plain jobs that are the same differ by. A line is judged
only where that is two hundredths at most: *not decided* otherwise.

"""
NOISE = 0.02


def fmt_value(line):
    if "value" not in line:
        return "not measured"
    return f"{line['value']:+.3f} µs" if line["kind"] == "extra" else f"{line['value']:.3f} ×"


def fmt_limit(line):
    if line["limit"] is None:
        return "–"
    return f"≤ {line['limit']:.2f} µs" if line["kind"] == "extra" else f"≤ {line['limit']:.2f} ×"


def fmt_sides(line):
    if "value" not in line:
        return "–"
    unit = "µs" if line["note"] == "teams-messages" else "s"
    return f"{line['base_seconds']:.3f} → {line['ours_seconds']:.3f} {unit}"


def noise_of(line, lines):
    """What equal plain jobs of the same program differ by, in the same measure."""
    program = line["what"].split(": ")[0]
    found = [one for one in lines if one["what"].startswith(program + ": plain against plain") and one["kind"] == line["kind"] and "value" in one]
    return found[0]["value"] if found else None


def is_decided(line, lines):
    noise = noise_of(line, lines)
    return noise is None or abs(noise - 1) <= NOISE


def fmt_met(line, lines):
    return report.fmt_met(line) if line["met"] is None or is_decided(line, lines) else "not decided"


def table(lines, notes):
    rows = ["| what | measured | wanted | met | noise | other side → ours | n | remark |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for line in lines:
        if "plain against plain" in line["what"]:
            continue
        noise = noise_of(line, lines)
        cells = [line["what"], fmt_value(line), fmt_limit(line), fmt_met(line, lines), f"{noise:.3f} ×" if noise else "–", fmt_sides(line), str(line.get("repetitions", 0)),
                 report.reason(line, notes)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def mean(lines, words):
    """Of the processor times of all programs but the ring, where the noise lets them be judged."""
    found = [line for line in lines if words in line["what"] and line["kind"] == "cpu" and not line["what"].startswith("ring") and "value" in line]
    values = [line["value"] for line in found if is_decided(line, lines)]
    return f"{statistics.geometric_mean(values):.3f} ×" if values else "not measured"


def write(directory, lines_by_group, facts, notes):
    lines = [line for of_group in lines_by_group.values() for line in of_group]
    with open(os.path.join(directory, "benchmarks-teams.md"), "w", encoding="utf-8") as out:
        out.write(INTRO + facts + "\n\n" + table(lines, notes))
        out.write(f"\nGeometric means of the processor times that are judged, without the ring: {mean(lines, 'two teams against')} with teams (≤ 1.03 × wanted). "
                  f"With `--compare messages` {mean(lines, '--compare messages')} (≤ 1.05 × wanted).\n")
        out.write("\n" + notes.get("teams-page", "") + "\n" if "teams-page" in notes else "")
