"""A node agent against plain TCP (agent_bench.cpp, Google Benchmark), as lines of the same table: one client, one agent, loopback. The repetitions are
interleaved at random, so that each pair was taken in turn."""
import collections
import json
import os
import statistics

from harness import Skip, quartile_spread, run_command

PAIRS = (("writes of 1 MiB by a node agent, against plain TCP into the same directory", "write", 0.8, 1 << 20),
         ("reads of 1 MiB by a node agent, against plain TCP", "read", 0.8, 1 << 20),
         ("small calls by a node agent, against a bare ping-pong", "small", 0.5, 1))


def measure(bench):
    """benchmark name -> calls per second, one number for each repetition."""
    program = bench.path("bench/agent_bench")
    if not os.path.exists(program):
        raise Skip("agent_bench is not built (ninja agent_bench; needs libbenchmark-dev)")
    out, _ = run_command([program, "--benchmark_format=json", f"--benchmark_repetitions={bench.pick(3, 9)}",
                          "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.2"], {})
    rates = collections.defaultdict(list)
    for run in json.loads(out)["benchmarks"]:
        if run["run_type"] == "iteration":
            rates[run["name"].split("/")[0]].append(1e9 / run["real_time"])
    return rates


def line(what, ours, base, limit, size):
    values = [a / b for a, b in zip(ours, base)]
    value = statistics.median(values)
    return {"what": what, "kind": "rate", "limit": limit, "note": "agent", "met": value >= limit, "value": value,
            "noise": quartile_spread(values), "repetitions": len(values),
            "base_rate": statistics.median(base) * size / 1e6, "ours_rate": statistics.median(ours) * size / 1e6,
            "base_seconds": 1 / statistics.median(base), "ours_seconds": 1 / statistics.median(ours)}


def lines(bench):
    """Beside each pair its least times, and what the plain side says of itself: one repetition against the next."""
    rates, table = measure(bench), []
    for what, name, limit, size in PAIRS:
        ours, base = rates[f"{name}_agent"], rates[f"{name}_plain"]
        table += [line(what, ours, base, limit, size),
                  {**line(f"{what}: least times", [max(ours)], [max(base)], 0, size), "limit": None, "met": None},
                  {**line("the plain side of that against itself, one repetition after the other", base[1:], base, 0, size), "limit": None, "met": None}]
    return table
