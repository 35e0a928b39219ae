#!/usr/bin/env python3
"""One checkpoint file of all ranks of a real MPI program, on simulated nodes.

  shared_test.py --build BUILD FLAVOUR LAUNCHER...
"""
import os
import sys

from checkpoints_test import main

PATTERN = "ck/ck.{step}"


def program(case):
    return case.program(case.options.flavour, "shared")


def native(case, steps):
    """The bytes that the program by itself writes."""
    os.makedirs(case.scratch + "/native/ck")
    case.call("sh", "-c", f"cd native && exec \"$@\"", "sh", *case.options.launcher, program(case), "run", str(steps), "0")
    with open(f"{case.scratch}/native/ck/ck.{steps}", "rb") as file:
        return file.read()


def drained(case, step):
    case.call(case.holdfast, "checkpoints", "--drain", str(step))
    with open(f"{case.scratch}/ck/ck.{step}", "rb") as file:
        return file.read()


def nothing_is_left_half(case):
    left = [os.path.join(at, name) for at, _, names in os.walk(case.scratch + "/holdfast-nodes") for name in names if name == "growing"]
    case.expect("files that were never completed", left, [])


def rules(case):
    case.job(program(case), "10", pattern=PATTERN)
    case.expect("checkpoints", case.states(PATTERN), {10: ("superseded", 1), 11: ("superseded", 1), 13: ("whole", 1)})
    case.expect("plain files", os.listdir(case.scratch + "/ck"), [])
    nothing_is_left_half(case)
    case.expect("damage", "0 findings" in case.call(case.holdfast, "checkpoints", "--verify").stdout, True)
    # Each is like any other checkpoint.
    case.call(case.holdfast, "checkpoints", "--repair", "11")
    case.call(case.holdfast, "checkpoints", "--drop", "10")
    case.expect("checkpoints", sorted(case.states(PATTERN)), [11, 13])


def two_nodes_are_lost(case):
    wanted = native(case, 6)
    done = case.job(program(case), "run", "6", "700", pattern=PATTERN, nodes=6, scheme="rs:4+2", options=("--simulate-loss", "1,4@2", "--restarts", "1"))
    case.expect("the nodes were lost", "node n4 is lost now" in done.stderr, True)
    begun = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("begins after")]
    case.expect("the second attempt's beginning", len(begun) == 2 and begun[0] == 0 and begun[1] >= 2, True)
    case.expect("the bytes", drained(case, 6) == wanted, True)
    nothing_is_left_half(case)


def a_rank_dies_while_it_writes(case):
    done = case.job(program(case), "torn", "5", pattern=PATTERN, options=("--restarts", "1"))
    case.expect("what was whole is found", done.stdout.count("found"), 1)
    case.expect("checkpoints", case.states(PATTERN)[5], ("whole", 1))
    nothing_is_left_half(case)


def by_the_patterns_word(case):
    """Also where one rank opens the file, and beside a file of each rank."""
    case.job(program(case), "10", pattern="shared:ck/ck.{step}")
    case.expect("checkpoints", case.states(PATTERN), {10: ("superseded", 1), 11: ("superseded", 1), 13: ("whole", 1)})
    listed = case.call(case.holdfast, "checkpoints", "shared:ck/ck.{step}").stdout
    case.expect("by the pattern's own text", "whole" in listed, True)
    refused = case.job("true", pattern="shared:ck/ck.{step}.{rank}", launched=False, expect=2)
    case.expect("the refusal", "each rank has a file of its own" in refused.stderr, True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(rules, two_nodes_are_lost, a_rank_dies_while_it_writes, by_the_patterns_word)
