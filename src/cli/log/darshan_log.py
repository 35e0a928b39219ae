#!/usr/bin/env python3
"""A Darshan log as Holdfast's own, on standard output: {"log": ..., "places": [...]} or {"error": a sentence}.

Needs the Python package `darshan` (pip install darshan), which brings the library that reads these logs. What a Darshan log does not know
stays zero; where a file is there as MPI-IO and as POSIX, the POSIX calls are those that the MPI made for it: the system's.
"""
import json
import logging
import sys

SIZES = ["0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS"]
MOST_PLACES = 4096


class Row:
    """One record's counters; what was not counted (-1) is 0."""

    def __init__(self, module, values):
        self.prefix, self.values = module.replace("-", "") + "_", values
        self.rank, self.id = int(values["rank"]), int(values["id"])

    def __call__(self, *names):
        return sum(max(0, int(self.values.get(self.prefix + name, 0))) for name in names)

    def ns(self, name):
        return max(0, int(float(self.values.get(self.prefix + "F_" + name, 0)) * 1e9))


def common(out, row, word):
    """Darshan counts the usual sizes (and strides) of reads and writes together: given to the direction with more calls."""
    write = out.get("write_calls", 0) >= out.get("read_calls", 0)
    values = out.setdefault(("write_" if write else "read_") + ("sizes" if word == "ACCESS" else "strides"), {})
    for i in range(1, 5):
        value, count = row(f"{word}{i}_{word}"), row(f"{word}{i}_COUNT")
        if count:
            values[value] = values.get(value, 0) + count


def places_in_file(counters, row, shared):
    """Consecutive, forward and backward calls."""
    processes = max(1, row("OPENS")) if shared else 1
    for name, calls in [("read", row("READS")), ("write", row("WRITES"))]:
        sequential, consecutive = row(f"SEQ_{name.upper()}S"), row(f"CONSEC_{name.upper()}S")
        counters[f"{name}s_consecutive"] = consecutive
        counters[f"{name}s_forward"] = max(0, sequential - consecutive)
        counters[f"{name}s_backward"] = max(0, calls - sequential - processes)
    calls = row("READS", "WRITES")
    if calls:
        counters["reads_misaligned"] = row("FILE_NOT_ALIGNED") * row("READS") // calls
        counters["writes_misaligned"] = row("FILE_NOT_ALIGNED") * row("WRITES") // calls


def shared_counters(row):
    counters = {
        "bytes_read": row("BYTES_READ"), "bytes_written": row("BYTES_WRITTEN"),
        "read_ns": row.ns("READ_TIME"), "write_ns": row.ns("WRITE_TIME"), "metadata_ns": row.ns("META_TIME"),
        "slowest_read_ns": row.ns("MAX_READ_TIME"), "slowest_write_ns": row.ns("MAX_WRITE_TIME"),
        "end_of_reads": row("MAX_BYTE_READ") + 1 if row("MAX_BYTE_READ") else 0,  # 0: not known (MPI-IO)
        "end_of_writes": row("MAX_BYTE_WRITTEN") + 1 if row("MAX_BYTE_WRITTEN") else 0,
        "first_open": row.ns("OPEN_START_TIMESTAMP"), "last_close": row.ns("CLOSE_END_TIMESTAMP"),
        "first_read": row.ns("READ_START_TIMESTAMP"), "last_read": row.ns("READ_END_TIMESTAMP"),
        "first_write": row.ns("WRITE_START_TIMESTAMP"), "last_write": row.ns("WRITE_END_TIMESTAMP"), "turns": row("RW_SWITCHES"),
    }
    return counters


def sizes(counters, row, infix):
    for name in ("read", "write"):
        for i, size in enumerate(SIZES):
            counters[f"{name}_sizes_{i}"] = row(f"SIZE_{name.upper()}_{infix}{size}")


def posix(row, out):
    counters = shared_counters(row)
    counters.update(opens=row("OPENS"), closes=row("OPENS"), reads_independent=row("READS"), writes_independent=row("WRITES"), seeks=row("SEEKS"),
                    stats=row("STATS"), mmaps=row("MMAPS"), syncs=row("FSYNCS", "FDSYNCS"), renames=row("RENAME_SOURCES"))
    places_in_file(counters, row, row.rank < 0)
    sizes(counters, row, "")
    out["alignment"] = max(out["alignment"], row("FILE_ALIGNMENT"))
    return counters


def stdio(row, out):
    counters = shared_counters(row)
    counters.update(opens=row("OPENS", "FDOPENS"), closes=row("OPENS", "FDOPENS"), reads_independent=row("READS"), writes_independent=row("WRITES"),
                    seeks=row("SEEKS"), others=row("FLUSHES"))
    for name, calls in [("read", row("READS")), ("write", row("WRITES"))]:  # a stream goes on where it is, but for seeks
        counters[f"{name}s_consecutive"] = max(0, calls - row("SEEKS") - 1)
        mean = row(f"BYTES_{'READ' if name == 'read' else 'WRITTEN'}") // calls if calls else 0
        bucket = sum(mean > limit for limit in (100, 1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 1e8, 1e9))
        counters[f"{name}_sizes_{bucket}"] = calls
    return counters


def mpiio(row, out):
    counters = shared_counters(row)
    counters.update(opens=row("INDEP_OPENS", "COLL_OPENS"), closes=row("INDEP_OPENS", "COLL_OPENS"), views=row("VIEWS"), syncs=row("SYNCS"))
    for name in ("READS", "WRITES"):
        low = name.lower()
        counters[low + "_independent"] = row("INDEP_" + name, "NB_" + name)
        counters[low + "_collective"] = row("COLL_" + name, "SPLIT_" + name)
        counters[low + "_nonblocking"], counters[low + "_split"] = row("NB_" + name), row("SPLIT_" + name)
    sizes(counters, row, "AGG_")
    return counters


KINDS = {"POSIX": ("posix", posix), "STDIO": ("stdio", stdio), "MPI-IO": ("mpi-io", mpiio)}
MOST = {"slowest_read_ns", "slowest_write_ns", "end_of_reads", "end_of_writes", "last_close", "last_read", "last_write"}
LEAST = {"first_open", "first_read", "first_write"}


def add(into, counters):
    for name, value in counters.items():
        old = into.get(name, 0)
        into[name] = max(old, value) if name in MOST else min(v for v in (old, value) if v) if name in LEAST and (old or value) else old + value


def files_of(module, rows, names):
    interface, counters_of = KINDS[module]
    files = {}
    for row in rows:
        out = files.setdefault(row.id, {"path": names.get(row.id, f"file {row.id}"), "interface": interface, "alignment": 0, "total": {}, "ranks": {}})
        counters = counters_of(row, out)
        out["write_calls"] = sum(v for k, v in counters.items() if k in ("writes_independent", "writes_collective"))
        out["read_calls"] = sum(v for k, v in counters.items() if k in ("reads_independent", "reads_collective"))
        if module != "STDIO":
            common(out, row, "ACCESS")
        if module == "POSIX":
            common(out, row, "STRIDE")
        add(out["total"], counters)
        if row.rank >= 0:
            add(out["ranks"].setdefault(row.rank, {}), counters)
    return files


PLACES = ["consecutive", "forward", "backward", "misaligned"]


def under_mpi(mpi, below):
    """What the MPI made of a file's calls; and where they lay, if it made one of each."""
    for mine, theirs in [(mpi["total"], below["total"])] + [(mpi["ranks"][r], below["ranks"].get(r, {})) for r in mpi["ranks"]]:
        for name in ("read", "write"):
            mine[f"end_of_{name}s"] = theirs.get(f"end_of_{name}s", 0)
            mine[f"system_{name}s"] = theirs.get(f"{name}s_independent", 0)
            mine[f"system_{name}_bytes"] = theirs.get("bytes_read" if name == "read" else "bytes_written", 0)
            mine[f"system_{name}_ns"] = theirs.get(f"{name}_ns", 0)
            if mine.get(f"{name}s_independent", 0) == theirs.get(f"{name}s_independent", 0):
                mine.update({f"{name}s_{place}": theirs.get(f"{name}s_{place}", 0) for place in PLACES})
    for kind in ("read_strides", "write_strides"):
        if kind in below:
            mpi[kind] = below[kind]
    mpi["alignment"] = below["alignment"]


def ranks_table(ranks):
    order = sorted(ranks)
    table = {"rank": order}
    for name in sorted({name for counters in ranks.values() for name in counters}):
        column = [ranks[r].get(name, 0) for r in order]
        if any(column):
            table[name] = column
    return table


def finished(file):
    def by_count(kind):
        return sorted(([v, c] for v, c in file.get(kind, {}).items()), key=lambda pair: -pair[1])
    return {"path": file["path"], "interface": file["interface"], "scheme": "", "shared_pointer": "", "alignment": file["alignment"],
            "total": {k: v for k, v in file["total"].items() if v}, "ranks": ranks_table(file["ranks"]),
            "common_read_sizes": by_count("read_sizes"), "common_write_sizes": by_count("write_sizes"),
            "common_read_strides": by_count("read_strides"), "common_write_strides": by_count("write_strides")}


def rows_of(report, module):
    report.mod_read_all_records(module)
    frames = report.records[module].to_df()
    counters, times = frames["counters"].to_dict("records"), frames["fcounters"].to_dict("records")
    return [Row(module, {**c, **{k: v for k, v in t.items() if k not in ("rank", "id")}}) for c, t in zip(counters, times)]


def places_of(report, names):
    places = [{"path": point, "file_system": {"ext2": "ext4", "ext3": "ext4"}.get(kind, kind)} for point, kind in report.mounts if kind != "rootfs"]
    if "LUSTRE" not in report.modules:
        return places
    report.mod_read_all_lustre_records()
    frame = report.records["LUSTRE"].to_df()
    frame = frame["components"] if "components" in frame else frame["counters"]
    for row in frame.to_dict("records")[:MOST_PLACES]:
        size = row.get("LUSTRE_COMP_STRIPE_SIZE", row.get("LUSTRE_STRIPE_SIZE", 0))
        count = row.get("LUSTRE_COMP_STRIPE_COUNT", row.get("LUSTRE_STRIPE_WIDTH", 0))
        if int(row["id"]) in names and size > 0 and count > 0:
            places.append({"path": names[int(row["id"])], "file_system": "lustre", "stripe_bytes": int(size), "stripe_count": int(count),
                           "devices": max(0, int(row.get("LUSTRE_OSTS", 0)))})
    return places


def convert(darshan, path):
    report = darshan.DarshanReport(path, read_all=False)
    report.read_name_records()
    names = {int(k): v for k, v in report.name_records.items()}
    files = {module: files_of(module, rows_of(report, module), names) for module in KINDS if module in report.modules}
    for file_id, mpi in files.get("MPI-IO", {}).items():
        below = files.get("POSIX", {}).pop(file_id, None)
        if below:
            under_mpi(mpi, below)
    everything = sorted((f for of_module in files.values() for f in of_module.values()),
                        key=lambda f: -(f["total"].get("bytes_read", 0) + f["total"].get("bytes_written", 0)))
    job = report.metadata["job"]
    command = report.metadata["exe"].split()
    log = {"job": {"command": command, "program": command[0] if command else "", "scheme": "", "holdfast": "",
                   "start_ns": int(job["start_time_sec"]) * 10**9, "duration_ns": int(float(job["run_time"]) * 1e9), "ranks": int(job["nprocs"]), "nodes": [],
                   "complete": True, "damaged_pieces": 0},
           "processes": [], "files": [finished(f) for f in everything], "time_line": {"step_ns": 0, "steps": 0, "rows": []}, "operations": [],
           "operations_lost": 0}
    return {"log": log, "places": places_of(report, names)}


def main():
    logging.disable(logging.CRITICAL)
    try:
        import darshan
    except ImportError:
        return {"error": f"Darshan logs are read by the Python package 'darshan', which {sys.executable} does not have: pip install darshan, or name "
                         "another Python by HOLDFAST_PYTHON"}
    try:
        return convert(darshan, sys.argv[1])
    except Exception as error:  # the package raises what it likes for a damaged log
        return {"error": f"the package 'darshan' cannot read it ({type(error).__name__}: {error})"}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: darshan_log.py LOG.darshan")
    json.dump(main(), sys.stdout)
