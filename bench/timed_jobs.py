#!/usr/bin/env python3
"""Runs a command in so many new directories side by side, and prints what all took together as the benchmarks' programs do.

  timed_jobs.py [--own-code FILE] COUNT RANKS INPUT... -- COMMAND...

INPUT: a file that each directory gets. `seconds` and `cpu_seconds` are of the commands and of all processes that they have waited for.
--own-code: `cpu_seconds` is what all took together for each second in which FILE's code ran, by samples of Linux's perf. FILE is the program or its library. The
program does the same work in any case, so a processor that changes its speed changes nothing of that.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time


def samples(data, file):
    """(all, those in code of files whose names begin so) of what perf has recorded."""
    told = subprocess.run(["perf", "report", "-i", data, "--stdio", "-q", "-F", "sample,dso"], capture_output=True, text=True, check=True).stdout
    found = [(int(words[0]), words[1]) for words in map(str.split, told.splitlines()) if len(words) > 1]
    return sum(count for count, _ in found), sum(count for count, name in found if name.startswith(file))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--own-code", metavar="FILE")
    parser.add_argument("count", type=int)
    parser.add_argument("ranks", type=int)
    parser.add_argument("inputs", nargs="*")
    end = sys.argv.index("--")
    options, command = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    if options.own_code and not shutil.which("perf"):
        sys.exit("failed: perf is not here; install the package linux-perf")
    if options.own_code:
        # perf itself ends up to a second after its command.
        command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", "perf.data", "--", "sh", "-c", '"$@" && date +%s.%N > ended', "sh", *command]
    places = [tempfile.mkdtemp(prefix="holdfast-bench-") for _ in range(options.count)]
    try:
        for place in places:
            for file in options.inputs:
                shutil.copy(file, place)
        started = time.time()
        jobs = [subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for place in places]
        said = [job.communicate()[1] for job in jobs]
        ended = time.time()
        for job, text in zip(jobs, said):
            if job.returncode:
                sys.exit(text.decode(errors="replace")[-2000:])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = used.ru_utime + used.ru_stime
        if options.own_code:
            found = [samples(os.path.join(place, "perf.data"), options.own_code) for place in places]
            processor = sum(every for every, _ in found) / sum(own for _, own in found)
            ended = max(float(pathlib.Path(place, "ended").read_text(encoding="ascii")) for place in places)
    finally:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
    print(json.dumps({"seconds": ended - started, "cpu_seconds": processor, "bytes": 0, "ranks": options.ranks, "peak_rss_bytes": used.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
