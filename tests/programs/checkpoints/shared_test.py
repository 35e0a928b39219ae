#!/usr/bin/env python3
"""One checkpoint file of all ranks of a real MPI program, on simulated nodes.

  shared_test.py --build BUILD FLAVOUR LAUNCHER...
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from checkpoints_test import main

PATTERN = "ck/ck.{step}"
SHARED = "shared:" + PATTERN


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
    seen = list(os.walk(case.scratch + "/holdfast-nodes"))
    left = [os.path.join(at, name) for at, _, names in seen for name in names if name == "growing"]
    case.expect("files that were never completed", left, [])
    # A node that was lost while a file was begun keeps its place in it, where others have completed it.
    complete = {os.path.basename(at) for at, _, names in seen if "manifest" in names}
    left = [at for at, _, names in seen if os.path.basename(at).startswith("ck.") and not names and os.path.basename(at) not in complete]
    case.expect("directories of files that were never begun", left, [])


def rules(case):
    case.job(program(case), "10", pattern=PATTERN)
    case.expect("checkpoints", case.states(PATTERN), {10: ("superseded", 1), 11: ("superseded", 1), 13: ("whole", 1), 14: ("superseded", 1)})
    case.expect("plain files", os.listdir(case.scratch + "/ck"), [])
    nothing_is_left_half(case)
    case.expect("damage", "0 findings" in case.call(case.holdfast, "checkpoints", "--verify").stdout, True)
    # Each is like any other checkpoint.
    case.call(case.holdfast, "checkpoints", "--repair", "11")
    case.call(case.holdfast, "checkpoints", "--drop", "10")
    case.expect("checkpoints", sorted(case.states(PATTERN)), [11, 13, 14])


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


def the_newest_is_what_was_written_last(case):
    """By all, or by one."""
    case.job(program(case), "mixed", pattern=PATTERN)
    case.expect("checkpoints", {step: state for step, (state, _) in case.states(PATTERN).items()}, {10: "whole", 20: "superseded", 30: "superseded"})


def ranks_that_open_it_once_more(case):
    case.job(program(case), "joined", "10", "waits", pattern=SHARED)
    case.expect("checkpoints", case.states(SHARED)[10], ("whole", 1))
    nothing_is_left_half(case)
    for pattern in (PATTERN, "ck/*"):
        done = case.job(program(case), "joined", "10", pattern=pattern)
        case.expect("what is said", "has it open still: it is not protected" in done.stderr, True)
        if pattern == PATTERN:
            case.expect("checkpoints", {step: state for step, (state, _) in case.states(PATTERN).items()},
                        {10: "whole", 11: "superseded", 12: "superseded", 13: "superseded"})
            case.call(case.holdfast, "checkpoints", "--verify")
        nothing_is_left_half(case)


def what_cannot_be_read_is_passed_over(case):
    """One bit of the first unit on each of more nodes than the scheme bears."""
    case.job(program(case), "run", "3", "0", pattern=PATTERN)
    units = sorted(glob.glob(case.scratch + "/holdfast-nodes/n*/ck.3-*/data"))
    for unit in units[:2]:
        with open(unit, "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
    done = case.job(program(case), "run", "4", "0", pattern=PATTERN, options=("--resume", "--restarts", "1"))
    case.expect("attempts", ["attempt 2 begins with checkpoint 3" in done.stderr, "attempt 3 begins with checkpoint 2" in done.stderr], [True, True])
    case.expect("what is said", "ck/ck.3 is damaged beyond what rs:2+1 tolerates" in done.stderr and "back to checkpoint 2" in done.stderr, True)
    case.expect("where the program begins", [line for line in done.stdout.splitlines() if "step" in line], ["begins after step 2", "ends after step 4"])


def by_the_patterns_word(case):
    """Also where one rank opens the file, and beside a file of each rank."""
    case.job(program(case), "10", pattern=SHARED)
    case.expect("checkpoints", case.states(PATTERN), {10: ("superseded", 1), 11: ("superseded", 1), 13: ("whole", 1)})
    listed = case.call(case.holdfast, "checkpoints", SHARED).stdout
    case.expect("by the pattern's own text", "whole" in listed, True)
    refused = case.job("true", pattern="shared:ck/ck.{step}.{rank}", launched=False, expect=2)
    case.expect("the refusal", "each rank has a file of its own" in refused.stderr, True)


def by_whatever_opens(case):
    """By MPI and by others, by all, some and one: as natively."""
    case.call("mkdir", "-p", "native/ck")
    case.call("sh", "-c", "cd native && exec \"$@\"", "sh", *case.options.launcher, program(case), "opens", "10")
    case.job(program(case), "opens", "10", pattern=SHARED)
    case.expect("checkpoints", case.states(SHARED), {10: ("superseded", 1), 11: ("whole", 1)})
    for step in (10, 11):
        with open(f"{case.scratch}/native/ck/ck.{step}", "rb") as file:
            case.expect(f"the bytes of step {step}", drained(case, step) == file.read(), True)
    nothing_is_left_half(case)


def slots_that_are_truncated_when_all_have_them_open(case):
    for how in ("ftruncate", "size", "anew"):
        for count in (4, 5):
            done = case.job(program(case), "slots", str(count), how, pattern=SHARED)
            case.expect(f"slot {1 + count % 2} is the newest of {count} by {how}", f"checkpoint {1 + count % 2} is whole" in done.stderr, True)
            nothing_is_left_half(case)


def while_a_node_is_lost(case, pattern, *words):
    """Runs a job on simulated nodes whose sixth, which has no ranks, is lost for good while they write. Returns its status and what it has said."""
    job = subprocess.Popen([case.holdfast, "run", "--simulate-nodes", "6", "--protect", "rs:4+2", "--checkpoint", pattern, "--drain", "none",
                            "--keep", "2", "--", *case.options.launcher, *words],
                           cwd=case.scratch, env=case.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _ in range(300):
        # That n6 has begun to protect as well: where it cannot, nobody knows what it has.
        if all(glob.glob(f"{case.scratch}/holdfast-nodes/{sign}") for sign in ("n1/ck.1-*/manifest", "n6/.checkpoints/*/*/boot")):
            break
        time.sleep(0.1)
    agents = json.loads(case.call(case.holdfast, "agents", "status", "--json").stdout)
    for note in glob.glob(case.env["HOLDFAST_AGENTS"] + "/n6.*.ag*"):  # nobody starts it again
        os.remove(note)
    os.kill(next(agent["process"] for agent in agents if agent["node"] == "n6"), signal.SIGKILL)
    while os.path.exists(case.scratch + "/holdfast-nodes/n6"):  # ranks that have its files open still add to them
        shutil.rmtree(case.scratch + "/holdfast-nodes/n6", ignore_errors=True)
    said, _ = job.communicate(timeout=150)
    return job.returncode, said


def a_node_without_ranks_is_lost_while_they_write(case):
    """Its units are borne, and the file is whole: the job goes on."""
    wanted = native(case, 5)
    status, said = while_a_node_is_lost(case, PATTERN, program(case), "run", "5", "600")
    case.expect(f"the job's end, which has said\n{said}\n", (status, "ends after step 5" in said), (0, True))
    case.expect("what is kept", case.states(PATTERN), {4: ("superseded", 1), 5: ("whole", 1)})
    case.expect("the bytes", drained(case, 5) == wanted, True)


def nodes_without_room(case):
    """The step that finds no room fails, with the program's call; the one before stays."""
    mounted = []
    try:
        for node in ("n1", "n2", "n3", "n4"):
            at = f"{case.scratch}/holdfast-nodes/{node}"
            os.makedirs(at)
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", at], capture_output=True, check=False).returncode != 0:
                return  # nothing can be mounted here
            mounted.append(at)
        words = [case.holdfast, "run", "--simulate-nodes", "4", "--protect", "rs:2+1", "--checkpoint", PATTERN, "--drain", "none", "--keep", "99", "--",
                 *case.options.launcher, program(case), "run", "40", "0"]
        done = subprocess.run(words, cwd=case.scratch, env=case.env, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, check=False)
        case.expect("the program's end is an error", done.returncode != 0, True)
        case.expect("it is said why", "no space" in done.stderr.lower(), True)
        whole = [step for step, (state, _) in case.states(PATTERN).items() if state in ("whole", "superseded")]
        case.expect("steps of before are whole", len(whole) > 0, True)
        looked = subprocess.run([case.holdfast, "checkpoints", "--verify"], cwd=case.scratch, env=case.env, capture_output=True, text=True, check=False)
        case.expect("damage", [line for line in looked.stdout.splitlines() if "0 findings" not in line], [])
        case.expect("versions that can be read", looked.returncode in (0, 1), True)
        nothing_is_left_half(case)
    finally:
        subprocess.run([case.holdfast, "agents", "stop"], env=case.env, capture_output=True, check=False)
        for at in mounted:
            subprocess.run(["umount", "-l", at], check=False)


def it_is_whole_with_the_files_of_other_patterns(case):
    case.job(program(case), "run", "2", "0", pattern=PATTERN, options=("--checkpoint", "ck/of.{step}.{rank}"), expect=123)
    case.expect("without a file of each rank", {step: state for step, (state, _) in case.states(PATTERN).items()}, {1: "protected", 2: "protected"})
    done = case.job(program(case), "run", "1", "0", pattern=PATTERN, options=("--checkpoint", "ck/of.{step}.{rank}", "--resume"), expect=123)
    case.expect("it begins", "begins after step 0" in done.stdout, True)


def one_by_one(case):
    """Files that are protected by themselves, which all ranks open together."""
    wanted = native(case, 6)
    case.job(program(case), "10", pattern="ck/*")
    listed = json.loads(case.call(case.holdfast, "checkpoints", "--json").stdout)["checkpoints"]
    case.expect("files", {os.path.basename(one["file"]): one["state"] for one in listed}, {f"ck.{step}": "protected" for step in (10, 11, 13)})
    case.expect("damage", "0 findings" in case.call(case.holdfast, "checkpoints", "--verify").stdout, True)
    case.call(case.holdfast, "checkpoints", "--drop", "ck/*")
    case.job(program(case), "torn", "5", pattern="ck/*", options=("--restarts", "1"))
    done = case.job(program(case), "run", "6", "700", pattern="ck/*", nodes=8, scheme="rs:4+2", options=("--simulate-loss", "1,4@3", "--restarts", "1"))
    begun = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("begins after")]
    case.expect("the second attempt's beginning", len(begun) == 2 and begun[0] == 0 and begun[1] >= 3, True)
    case.call(case.holdfast, "checkpoints", "--drain", "ck/ck.6")
    with open(case.scratch + "/ck/ck.6", "rb") as file:
        case.expect("the bytes", file.read() == wanted, True)
    nothing_is_left_half(case)


def hdf5(case):
    words = case.program(case.options.flavour, "hdf5_parallel")
    if not os.path.exists(words):
        return
    os.makedirs(case.scratch + "/native")
    case.call(*case.options.launcher, words, "native/ck.1")
    case.job(words, "ck/ck.1", pattern="ck/ck.{step}.h5")
    case.expect("HDF5's checkpoints", case.states("ck/ck.{step}.h5"), {1: ("whole", 1)})
    case.call(case.holdfast, "checkpoints", "--drain", "1")
    with open(case.scratch + "/native/ck.1.h5", "rb") as plain, open(case.scratch + "/ck/ck.1.h5", "rb") as ours:
        case.expect("HDF5's bytes", ours.read() == plain.read(), True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(rules, the_newest_is_what_was_written_last, two_nodes_are_lost, a_rank_dies_while_it_writes, by_the_patterns_word, by_whatever_opens, slots_that_are_truncated_when_all_have_them_open, ranks_that_open_it_once_more, what_cannot_be_read_is_passed_over, a_node_without_ranks_is_lost_while_they_write, nodes_without_room,
         it_is_whole_with_the_files_of_other_patterns, one_by_one, hdf5)
