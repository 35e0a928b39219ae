#!/usr/bin/env python3
"""LAMMPS as it is: its restart files, of which each rank writes one, survive two nodes, and it goes on from them.

  lammps_test.py --build BUILD FLAVOUR LAUNCHER...
"""
import os
import re
import shutil
import sys

from checkpoints_test import main

# `{every}`: it would be through before two nodes are lost.
COMMON = """pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
restart 100 ck/melt.*.%
run 600 upto {every}
write_dump all custom final id x y z vx vy vz modify sort id format float %.17g
"""
BEGIN = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 5 0 5 0 5
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
"""
PATTERNS = ("ck/melt.{step}.{rank}", "ck/melt.{step}.base")


def goes_on_without_two_nodes(case):
    if not shutil.which("lmp"):
        sys.exit(77)
    for name, first, every in (("begin", BEGIN, 'every 100 "shell sleep 0.7"'), ("again", "read_restart ck/melt.${step}.%\n", "")):
        with open(f"{case.scratch}/{name}", "w") as script:
            script.write(first + COMMON.replace("{every}", every))
    lmp = ["lmp", "-log", "none", "-screen", "none", "-in"]
    again = " ".join([*case.options.launcher, *lmp, "again", "-var", "step", "{step}"])
    os.mkdir(case.scratch + "/ck")
    done = case.job(*lmp, "begin", pattern=PATTERNS[0], nodes=8, scheme="rs:4+2",
                    options=("--checkpoint", PATTERNS[1], "--simulate-loss", "1,4@200", "--restarts", "1", "--restart-with", again))
    case.expect("plain files", os.listdir(case.scratch + "/ck"), [])
    begun = re.search("attempt 2 begins with checkpoint ([0-9]+)", done.stderr)
    case.expect(f"the second attempt's beginning, in\n{done.stderr}\n", begun is not None and int(begun[1]) >= 200, True)
    ranks = case.options.launcher[-1]
    case.expect("the newest", case.states(PATTERNS[0])[600], ("whole", int(ranks) + 1))

    # By itself LAMMPS goes on from its own files of that step.
    os.makedirs(case.scratch + "/native/ck")
    for name in ("begin", "again"):
        shutil.copy(f"{case.scratch}/{name}", case.scratch + "/native")
    case.call("sh", "-c", f"cd native && {' '.join([*case.options.launcher, *lmp])} begin && {again.replace('{step}', begun[1])}")
    with open(case.scratch + "/final") as ours, open(case.scratch + "/native/final") as native:
        case.expect("where the atoms are", ours.read() == native.read(), True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(goes_on_without_two_nodes)
