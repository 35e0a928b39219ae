"""The coding kernels, measured by Google Benchmark (coding_bench.cpp), as lines of the same table. Its repetitions are
interleaved at random, so that each pair was taken in turn; processor time is compared, for these loops only compute."""
import collections
import json
import os
import statistics

from harness import Skip, quartile_spread, run_command

SHAPES = (("4", "2"), ("8", "3"), ("16", "8"))
KIB = "1024"


def measure(bench):
    """benchmark name -> its bytes per second of processor time, one per repetition."""
    program = bench.path("bench/coding_bench")
    if not os.path.exists(program):
        raise Skip("coding_bench is not built (ninja coding_bench; needs libbenchmark-dev)")
    repetitions = bench.pick(3, 9)
    out, _ = run_command([program, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
                          f"--benchmark_filter=(encode|reconstruct)_.*KiB:{KIB}|encode_mebibytes", "--benchmark_enable_random_interleaving=true",
                          "--benchmark_min_time=0.05"], {})
    rates = collections.defaultdict(list)
    for run in json.loads(out)["benchmarks"]:
        if run["run_type"] == "iteration":
            rates[run["name"].split("/repeats")[0]].append(1e9 / run["cpu_time"])
    return rates


def line(what, ours, base, k, note):
    """`ours` and `base` in iterations per second; a row of k units of KIB each is what one iteration works on."""
    values = [a / b for a, b in zip(ours, base)]
    row_bytes = k * int(KIB) << 10
    value = statistics.median(values)
    return {"what": what, "kind": "rate", "limit": 0.95, "note": note, "met": value >= 0.95, "value": value,
            "noise": quartile_spread(values), "repetitions": len(values),
            "base_rate": statistics.median(base) * row_bytes / 1e6, "ours_rate": statistics.median(ours) * row_bytes / 1e6,
            "base_seconds": 1 / statistics.median(base), "ours_seconds": 1 / statistics.median(ours)}


def lines(bench):
    rates = measure(bench)
    made = []
    for k, m in SHAPES:
        def of(kind):
            return rates[f"{kind}/k:{k}/m:{m}/KiB:{KIB}"]

        made.append(line(f"encoding {k}+{m}, against plain ISA-L", of("encode_holdfast"), of("encode_isal"), int(k), "encode"))
        made.append(line(f"decoding {k}+{m} ({m} units gone), against plain ISA-L", of("reconstruct_holdfast"), of("reconstruct_isal"),
                         int(k), "decode"))
        made.append(line(f"encoding {k}+{m} in units of 1 MiB, against units of 64 KiB", of("encode_mebibytes"),
                         rates[f"encode_mebibytes/k:{k}/m:{m}/KiB:64"], int(k), "strips"))
        made.append(line(f"decoding {k}+{m}, against encoding", of("reconstruct_holdfast"), of("encode_holdfast"), int(k), "decode"))
    return made
