"""The table (Markdown) and the plots (SVG, written by hand: no library needed) from the lines that the harness made."""
import html
import os

INTRO = """# Benchmarks

[Checkpoints](benchmarks-checkpoints.md) and the [protocols of redundant execution](benchmarks-protocols.md) have pages of their own.

Made by `make bench` (`bench/run.sh --quick`: smaller files, some minutes). Every line is a **ratio** of two things that
ran in turn in one run, in shuffled order. Unless a line says otherwise, they are the protected program and the same program natively on the same file
system. Stated are the median of the ratios of all repetitions and, as ±, half the distance between their quartiles:
the noise. Absolute rates come from a small busy machine and mean little.

*Durable*: both sides end in `MPI_File_sync`. *Cached*: neither waits for the disk (`--close fast` on the protected side). The clock runs from before
`MPI_File_open` until after `MPI_File_close`. Data is made before it. What a side wrote is read back and compared once. After every protected
write the bytes that really lie on the targets are counted (*volume*: bytes there for each byte of data). *CPU*: the processor
time of all ranks and threads while the clock ran, over the native one's. Other work on the machine disturbs it least. *Memory*: the largest peak resident size of a
process less that of the native one. Wanted is at most 64 MiB or two rows, whichever is larger.

"""


def fmt_limit(line):
    if line["limit"] is None:
        return "–"
    if line["kind"] == "extra":
        return f"≤ {line['limit'] * 1000:.0f} ms more"
    return f"{'≥' if line['kind'] == 'rate' else '≤'} {line['limit']:.2f} ×"


def fmt_value(line):
    if "value" not in line:
        return "not measured"
    if line["kind"] == "extra":
        return f"{line['value'] * 1000:+.0f} ms (± {abs(line['noise'] * line['value']) * 1000:.0f})"
    return f"{line['value']:.2f} × (± {100 * line['noise']:.0f} %)"


def fmt_rates(line):
    if "value" not in line:
        return "–"
    if line["ours_rate"] == 0 and line["base_seconds"] < 0.01:
        return f"{line['base_seconds'] * 1e6:.0f} → {line['ours_seconds'] * 1e6:.0f} µs"
    if line["kind"] == "extra" or line["ours_rate"] == 0:
        return f"{line['base_seconds'] * 1000:.0f} → {line['ours_seconds'] * 1000:.0f} ms"
    amount = f", {line['bytes'] >> 20} MiB" if line.get("bytes") else ""
    return f"{line['base_rate']:.0f} → {line['ours_rate']:.0f} MB/s{amount}"


def fmt_met(line):
    return {None: "–", True: "yes", False: "**no**"}[line["met"]]


def fmt_memory(line):
    return f"{line['memory'] / 2**20:+.0f} MiB" if "memory" in line else "–"


def read_notes(path):
    """`key: sentence` a line; a key may end in * to serve all lines that begin so."""
    notes = {}
    if os.path.exists(path):
        for text in open(path, encoding="utf-8"):
            if ":  " in text and not text.startswith("#"):
                key, sentence = text.split(":  ", 1)
                notes[key.strip()] = sentence.strip()
    return notes


def reason(line, notes):
    if "skipped" in line:
        return f"skipped: {line['skipped']}"
    for key, sentence in notes.items():
        missed_only = key.endswith("!")
        name = key.rstrip("!")
        fits = line["note"].startswith(name[:-1]) if name.endswith("*") else line["note"] == name
        if fits and not (missed_only and line["met"] is not False):
            return sentence
    return ""


def table(lines, notes):
    out = ["| what | ratio | wanted | met | native → ours | CPU | volume | memory | n | remark |",
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for line in lines:
        volume = f"{line['volume']:.2f}" if "volume" in line else "–"
        cpu = f"{line['cpu']:.2f}" if line.get("cpu") else "–"
        cells = [line["what"], fmt_value(line), fmt_limit(line), fmt_met(line), fmt_rates(line), cpu, volume, fmt_memory(line),
                 str(line.get("repetitions", 0)), reason(line, notes)]
        out.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(out) + "\n"


def verdict(lines):
    judged = [l for l in lines if l["met"] is not None]
    met = sum(1 for l in judged if l["met"])
    skipped = sum(1 for l in lines if "skipped" in l)
    return f"{met} of {len(judged)} limits met; {skipped} lines not measured."


# --- plots

INK, GRID, COLOURS = "#333", "#ddd", ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#999999"]


def svg(width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(body)}</svg>\n')


def text(x, y, words, anchor="start", colour=INK, size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{html.escape(words)}</text>'


def bars(lines):
    """Every judged line: how far it is from its limit; a bar that ends left of the line at 1 meets it."""
    judged = [l for l in lines if "value" in l and l["limit"] is not None]
    row, left, scale = 20, 470, 250
    height = 60 + row * len(judged)
    body = [text(10, 20, "Measured over wanted (costs) or wanted over measured (rates): up to the line at 1 the limit is met", size=13)]
    for i, line in enumerate(judged):
        y = 40 + i * row
        cost = line["limit"] / line["value"] if line["kind"] == "rate" else line["value"] / line["limit"]
        drawn = min(max(cost, 0.0), 1.6)
        colour = COLOURS[2] if line["met"] else COLOURS[1]
        body.append(text(left - 8, y + 12, line["what"], "end", size=11))
        body.append(f'<rect x="{left}" y="{y + 2}" width="{drawn * scale:.1f}" height="{row - 6}" fill="{colour}"/>')
        body.append(text(left + drawn * scale + 5, y + 12, fmt_value(line), size=11))
    body.append(f'<line x1="{left + scale}" y1="32" x2="{left + scale}" y2="{height - 15}" stroke="{INK}" stroke-dasharray="4 3"/>')
    return svg(left + int(1.6 * scale) + 150, height, body)


def curves(title, x_label, y_label, names, series):
    """`names`: the x positions' labels, evenly spaced (they grow by factors); `series`: name -> values, None for a gap."""
    width, height, left, top, bottom = 640, 360, 60, 40, 300
    values = [v for points in series.values() for v in points if v is not None]
    if not values or not names:
        return None
    highest = max(values) * 1.1
    xs = [left + 20 + i * (width - left - 60) / max(1, len(names) - 1) for i in range(len(names))]
    body = [text(left, 22, title, size=14), text(width / 2, height - 12, x_label, "middle"), text(8, top - 6, y_label, size=11)]
    for tick in range(6):
        y = bottom - tick * (bottom - top) / 5
        body.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(left - 6, y + 4, f"{highest * tick / 5:.3g}", "end", size=11))
    body += [text(x, bottom + 18, n, "middle", size=11) for x, n in zip(xs, names)]
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        placed = [(x, bottom - v / highest * (bottom - top)) for x, v in zip(xs, points) if v is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        body.append(text(left + 20 + i * (170 if len(series) < 4 else 110), height - 30, name, colour=colour))
    return svg(width, height, body)


def figure_series(lines_by_group, prefix):
    groups = [(name, lines) for name, lines in lines_by_group.items() if name.startswith(prefix)]
    lines = [l[0] for _, l in groups]
    labels = [name[len(prefix):] for name, _ in groups]
    return labels, {"native": [l.get("base_seconds") for l in lines], "mirror:3": [l.get("ours_seconds") for l in lines]}


def block_series(lines_by_group):
    groups = [(name[len("block-"):], lines) for name, lines in lines_by_group.items() if name.startswith("block-")]
    series = {"mirror:3": [l[0].get("value") for _, l in groups], "rs:4+2": [l[1].get("value") for _, l in groups]}
    return [name for name, _ in groups], series


def plots(lines_by_group):
    """file name -> SVG; a plot without data is left out."""
    every = [line for lines in lines_by_group.values() for line in lines]
    made = {"limits.svg": bars(every)}
    labels, series = block_series(lines_by_group)
    made["block-size.svg"] = curves("Durable write time over native, by block size (tmpfs)", "block size in bytes", "× native", labels, series)
    labels, series = figure_series(lines_by_group, "figure5-")
    made["file-size.svg"] = curves("One writer, by file size (as figure 5 of Son et al.)", "file size in MiB", "seconds", labels, series)
    labels, series = figure_series(lines_by_group, "figure6-")
    made["writers.svg"] = curves("Writers with a file each (as figure 6 of Son et al.)", "writers", "seconds", labels, series)
    return {name: drawing for name, drawing in made.items() if drawing}


def write(directory, lines_by_group, facts, notes):
    every = [line for lines in lines_by_group.values() for line in lines]
    drawings = plots(lines_by_group)
    folder = os.path.join(directory, "benchmarks")
    os.makedirs(folder, exist_ok=True)
    for name, drawing in drawings.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(drawing)
    with open(os.path.join(directory, "benchmarks.md"), "w", encoding="utf-8") as out:
        out.write(INTRO + facts + "\n\n**" + verdict(every) + "**\n\n" + table(every, notes) + "\n")
        for name in drawings:
            out.write(f"![{name[:-4]}](benchmarks/{name})\n")
