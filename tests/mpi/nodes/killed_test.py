#!/usr/bin/env python3
"""The shared pointer in a process of its own, and a SIGKILL: to the server, or to rank 0 beside it. Each on four nodes and on one; the
namespaces show whatever is left over (tests/tools/nodes.py ends with an error then)."""
import array
import re
import sys

import nodes_test
from nodes_test import Failed, Job

DEADLINE_S = 3
SLACK_S = 2  # a busy machine's


def killed_server(job, nodes):
    """Every call on the pointer fails with one sentence on each rank; all else goes on, and a new open has a new server."""
    done = job.start(nodes, "server", job.plain, job.protected)
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    told = [line for line in done.stderr.splitlines() if "keeps the shared file pointer" in line]
    if not 2 <= len(told) <= 2 * nodes_test.RANKS:  # of two files
        raise Failed(f"{len(told)} sentences: {told}")


def killed_root(job, nodes):
    """The MPI ends the job, or every other rank has an error within the deadline. What was acknowledged is in the file."""
    path = job.plain / "out"
    done = job.start(nodes, "root", path)
    survivors = re.findall(r"rank (\d+): (\d+) records, then (.*) after (\d+) ms", done.stdout)
    all_told = len(survivors) == nodes_test.RANKS - 1
    if done.returncode == nodes_test.LEFT_OVER or (done.returncode == 0 and not all_told):
        raise Failed(f"exit {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    acknowledged = [50] * nodes_test.RANKS
    for rank, count, error, ms in survivors:
        acknowledged[int(rank)] = int(count)
        if error != "MPI_ERR_IO" or int(ms) > (DEADLINE_S + SLACK_S) * 1000:
            raise Failed(f"rank {rank} was told {error} after {ms} ms")
    words = array.array("i", path.read_bytes())
    there = set(zip(words[::2], words[1::2]))
    lost = [(rank, number) for rank, count in enumerate(acknowledged) for number in range(count) if (rank, number) not in there]
    if lost:
        raise Failed(f"acknowledged and lost: {lost[:5]}")


class KillJob(Job):
    def start(self, nodes, *arguments):
        on_one = ["--map-by", ":OVERSUBSCRIBE"] if nodes == 1 and self.options.openmpi else []
        survive = ["-disable-auto-cleanup"] if not self.options.openmpi and arguments[0] == "root" else []
        return self.run_on(nodes, [*on_one, *survive], self.options.killed, *arguments)


def main():
    parser = nodes_test.arguments("killed")
    parser.add_argument("--openmpi", action="store_true")
    options = parser.parse_args()
    cases = [(case, nodes) for case in (killed_server, killed_root) for nodes in (4, 1)]
    return nodes_test.run_all(cases, lambda root, case, nodes: case(
        KillJob(options, root, HOLDFAST_SHARED_POINTER="process", HOLDFAST_DEADLINE=f"{DEADLINE_S}s"), nodes))


if __name__ == "__main__":
    sys.exit(main())
