"""The coding kernels, measured by Google Benchmark (bench/coding_bench.cpp), as lines of the same table."""
from harness import Skip


def lines(bench):
    raise Skip("coding_bench is not built")
