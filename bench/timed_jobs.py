#!/usr/bin/env python3
"""Runs a command in so many new directories side by side, and prints what all took together as the benchmarks' programs do.

  timed_jobs.py COUNT RANKS INPUT... -- COMMAND...

INPUT: a file that each directory gets. `seconds` and `cpu_seconds` are of the commands and of all processes that they have waited for.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time


def main():
    words = sys.argv[1:]
    inputs, command = words[2:words.index("--")], words[words.index("--") + 1:]
    places = [tempfile.mkdtemp(prefix="holdfast-bench-") for _ in range(int(words[0]))]
    try:
        for place in places:
            for file in inputs:
                shutil.copy(file, place)
        started = time.monotonic()
        jobs = [subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for place in places]
        said = [job.communicate()[1] for job in jobs]
        seconds = time.monotonic() - started
    finally:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
    for job, text in zip(jobs, said):
        if job.returncode:
            sys.exit(text.decode(errors="replace")[-2000:])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "bytes": 0, "ranks": int(words[1]),
                      "peak_rss_bytes": used.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
