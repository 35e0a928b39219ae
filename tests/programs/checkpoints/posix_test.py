#!/usr/bin/env python3
"""One checkpoint file of all ranks, which each of them opens by the C library, on simulated nodes.

  posix_test.py --build BUILD FLAVOUR LAUNCHER...
"""
import os
import shutil
import sys

from checkpoints_test import main
from shared_test import drained, nothing_is_left_half, while_a_node_is_lost

PATTERN = "shared:ck/ck.{step}"
RANKS = 4


def program(case):
    return case.program(case.options.flavour, "posix")


def native(case, *words):
    """The files that the program by itself leaves."""
    return native_of(case, program(case), *words)


def native_of(case, *words):
    at = case.scratch + "/native/ck"
    shutil.rmtree(at, ignore_errors=True)
    os.makedirs(at)
    case.call("sh", "-c", "cd native && exec \"$@\"", "sh", *case.options.launcher, *words)
    files = {}
    for name in os.listdir(at):
        with open(f"{at}/{name}", "rb") as file:
            files[int(name.split(".")[1])] = file.read()
    return files


def states(case):
    return {step: state for step, (state, _) in case.states(PATTERN).items()}


def however_they_open_it(case):
    wanted = native(case, "run", "3", "0", "create")
    for how in ("trunc", "first", "create", "stdio"):
        done = case.job(program(case), "run", "3", "0", how, pattern=PATTERN)
        case.expect(f"{how}: lines", [line for line in done.stderr.splitlines() if "not whole" in line or "busy" in line], [])
        case.expect(f"{how}: checkpoints", states(case), {1: "superseded", 2: "superseded", 3: "whole"})
        case.expect(f"{how}: plain files", os.listdir(case.scratch + "/ck"), [])
        nothing_is_left_half(case)
        case.expect(f"{how}: damage", "0 findings" in case.call(case.holdfast, "checkpoints", "--verify").stdout, True)
        for step, content in wanted.items():
            case.expect(f"{how}: the bytes of step {step}", drained(case, step) == content, True)
        case.job(program(case), "run", "3", "0", how, pattern=PATTERN, options=("--resume",))
        for step in wanted:
            case.call(case.holdfast, "checkpoints", "--drop", str(step))
            os.remove(f"{case.scratch}/ck/ck.{step}")
        shutil.rmtree(case.scratch + "/holdfast-nodes")


def a_late_rank_goes_on_with_the_file(case):
    """When all others have closed it."""
    wanted = native(case, "run", "2", "0", "create")
    case.job(program(case), "late", pattern=PATTERN)
    case.expect("checkpoints", states(case), {1: "superseded", 2: "whole"})
    for step in (1, 2):
        case.expect(f"the bytes of step {step}", drained(case, step) == wanted[step], True)


def a_rank_dies_while_it_writes(case):
    """What the others have closed is no checkpoint: its bytes are missing."""
    done = case.job(program(case), "torn", pattern=PATTERN, options=("--restarts", "1"))
    case.expect("what was whole is found", done.stdout.count("found"), 1)
    case.expect("what is not is named", "neither opened nor listed from here on: checkpoint 2" in done.stderr, True)
    nothing_is_left_half(case)


def two_nodes_are_lost(case):
    wanted = native(case, "run", "6", "0", "create")[6]
    done = case.job(program(case), "run", "6", "900", "trunc", pattern=PATTERN, nodes=6, scheme="rs:4+2",
                    options=("--simulate-loss", "1,4@2", "--restarts", "1"))
    case.expect("the nodes were lost", "node n4 is lost now" in done.stderr, True)
    begun = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("begins after")]
    case.expect("the second attempt's beginning", len(begun) == 2 and begun[0] == 0 and begun[1] >= 2, True)
    case.expect("the bytes", drained(case, 6) == wanted, True)
    nothing_is_left_half(case)


def a_node_without_ranks_is_lost_while_they_write(case):
    """Its units are borne, and steps become whole: the job goes on."""
    wanted = native(case, "run", "5", "0", "create")[5]
    status, said = while_a_node_is_lost(case, PATTERN, program(case), "run", "5", "900", "first")
    case.expect(f"the job's end, which has said\n{said}\n", (status, "ends after step 5" in said), (0, True))
    case.expect("what is kept", states(case), {4: "superseded", 5: "whole"})
    case.expect("the bytes", drained(case, 5) == wanted, True)


def slots_are_written_anew_and_in_place(case):
    wanted = native(case, "slots")
    case.job(program(case), "slots", pattern=PATTERN)
    found = states(case)
    case.expect("the newest", found[3], "whole")
    for step in (1, 2):
        case.expect(f"the bytes of step {step}", drained(case, step) == wanted[step], True)
    case.expect("what was added", sorted(drained(case, 3).splitlines()), sorted(wanted[3].splitlines()))
    case.call(case.holdfast, "checkpoints", "--repair", "2")
    case.call(case.holdfast, "checkpoints", "--drop", "1")


def what_else_a_program_does_with_it(case):
    wanted = native(case, "calls")
    case.job(program(case), "calls", pattern=PATTERN)
    case.expect("checkpoints", states(case), {1: "superseded", 4: "whole"})
    for step in (1, 4):
        case.expect(f"the bytes of step {step}", drained(case, step) == wanted[step], True)


def fortran(case):
    words = case.program(case.options.flavour, "direct_f")
    if not os.path.exists(words):
        return
    wanted = native_of(case, words)
    case.job(words, pattern=PATTERN)
    case.expect("Fortran's checkpoints", states(case), {1: "superseded", 2: "whole"})
    for step in (1, 2):
        case.expect(f"the bytes of Fortran's step {step}", drained(case, step) == wanted[step], True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(however_they_open_it, a_late_rank_goes_on_with_the_file, a_rank_dies_while_it_writes, two_nodes_are_lost, a_node_without_ranks_is_lost_while_they_write,
         slots_are_written_anew_and_in_place, what_else_a_program_does_with_it, fortran)
