#!/usr/bin/env python3
"""Takes one safeguard after another out of the code and asks whether the simulator notices.

tests/mutants/mutants.toml lists the mutants, docs/testing.md explains them.

  mutants.py --check [NAME ...]   each mutant at its pinned seed: is it caught?
  mutants.py --check --every 12   of each twelve the first; of all, that they still fit the code (`make test`)
  mutants.py --find [NAME ...]    searches seeds 1 to 10,000 of both families for each, and pins what it finds (`make test-long`)
  mutants.py --seed 17 NAME       one mutant at one seed, with what the simulator says
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
PINS = HERE / "pins.json"
TABLE = SOURCE / "docs" / "testing.md"
FILTERS = ("Openers.of_*", "Openers.in_harsh_*")  # of the simulator's schedules, tried in this order
# What no schedule finds, a test may: they meet at once what schedules meet by chance.
TESTS = (("issues_test", "*"), ("unit_engine_test", "*"), ("unit_catalog_test", "*"), ("unit_layout_test", "*"), ("sim_test", "-Openers.*"))
TEST_SECONDS = 300
MOST_SEEDS = 10_000
ROUNDS = (100, 400, 1_500)
SCHEDULE_SECONDS = 60  # a schedule takes milliseconds: what takes as long as this never ends
MOST_UNITS = 6         # lumps and sources that a changed header may be compiled into
FLAGS = ("-O0", "-g0", "-w")  # a schedule is over in milliseconds: compiling takes longer
COMMON_HEADERS = ("algorithm", "atomic", "chrono", "functional", "map", "memory", "mutex", "optional", "set", "span", "string", "thread", "utility",
                  "vector", "fmt/format.h", "fmt/ranges.h")


class Stale(Exception):
    """A mutant that no longer fits the code."""


# --- the table


def read_mutants(names):
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    known = [mutant["name"] for mutant in mutants]
    if len(set(known)) != len(known):
        sys.exit("mutants: two in mutants.toml have the same name")
    for name in names:
        if name not in known:
            sys.exit(f"mutants: mutants.toml has none named {name}")
    return [mutant for mutant in mutants if not names or mutant["name"] in names]


def read_pins():
    return json.loads(PINS.read_text()) if PINS.exists() else {}


def changed_files(mutant):
    """By name: what the mutant makes of each file that it changes."""
    texts = {}
    for edit in edits_of(mutant):
        text = texts.get(edit["file"]) or (SOURCE / edit["file"]).read_text()
        places = list(regardless_of_layout(edit["old"]).finditer(text))
        if len(places) != 1:
            raise Stale(f"{mutant['name']} has to be renewed: the text that it takes out is {len(places)} times in {edit['file']}, not once")
        place = places[0]
        texts[edit["file"]] = text[:place.start()] + edit["new"].strip() + text[place.end():]
    return texts


def regardless_of_layout(text):
    """Finds the same words and signs, however the formatter has broken them into lines."""
    return re.compile(r"\s*".join(re.escape(part) for part in re.findall(r"\w+|[^\w\s]", text)))


def excused(mutant):
    """Why nothing is found: the mutant is `equivalent`, or what would find it is a `gap` of the simulator."""
    return mutant.get("equivalent") or mutant.get("gap")


def edits_of(mutant):
    return mutant.get("edits") or [{key: mutant[key] for key in ("file", "old", "new")}]


# --- building: only what a mutant changes is compiled, without debug information, and the simulator linked anew around it


class Build:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        self.program = self.directory / "bin" / "sim_test"
        if not self.program.exists():
            sys.exit(f"mutants: there is no {self.program}; run: make build")
        commands = json.loads((self.directory / "compile_commands.json").read_text())
        self.commands = {os.path.realpath(entry["file"]): entry["command"] for entry in commands}
        # By source: the lump of its room that it is compiled in (cmake/Together.cmake).
        self.lumps = {source: lump for lump in self.commands if is_lump(lump) for source in sources_of(lump)}
        self.link_lines = {}
        self.included_by = None
        self.made, self.compiled = set(), {}
        self.common = self.compile_common_headers()

    def compile_common_headers(self):
        """What all units include of the system is read once for all mutants: that is half of what one costs."""
        header = self.directory / "mutants" / "common.hpp"
        header.parent.mkdir(exist_ok=True)
        header.write_text("".join(f"#include <{name}>\n" for name in COMMON_HEADERS))
        command = self.command_of(self.unit_of(SOURCE / "src/engine/file_commit.cpp"))
        at = command.index("-c")
        command[at:at + 2] = [*FLAGS, "-x", "c++-header", str(header)]
        command[command.index("-o") + 1] = f"{header}.gch"
        run(command, self.directory, "the common headers do not compile")
        return header

    def unit_of(self, source):
        """What the compiler is given: the source, or the lump that it is in."""
        source = os.path.realpath(source)
        if source in self.commands:
            return source
        if source not in self.lumps:
            raise Stale(f"nothing compiles {source}")
        return self.lumps[source]

    def command_of(self, unit):
        command = shlex.split(self.commands[unit])
        return command[1:] if os.path.basename(command[0]) == "ccache" else command

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.directory, *arguments], check=True, capture_output=True, text=True).stdout

    def units_including(self, header):
        """The library's units whose objects were made with this header."""
        if self.included_by is None:
            self.included_by, unit = {}, None
            for line in self.ninja("-t", "deps").splitlines():
                if not line.startswith(" "):
                    unit = None
                elif unit is None:
                    unit = os.path.realpath(self.directory / line.strip())
                else:
                    self.included_by.setdefault(os.path.realpath(self.directory / line.strip()), set()).add(unit)
        library = str(SOURCE / "src")
        return sorted(unit for unit in self.included_by.get(os.path.realpath(header), ()) if unit.startswith(library) or is_lump(unit))

    def compile(self, unit, source, includes, into):
        command = self.command_of(unit)
        at = command.index("-c")
        command[at + 1] = str(source)
        command[command.index("-o") + 1] = str(into)
        command[at:at] = [*(f"-I{directory}" for directory in includes), *FLAGS, "-include", str(self.common)]
        run(command, self.directory, f"{source} does not compile")

    def link_line_of(self, program):
        if program not in self.link_lines:
            self.link_lines[program] = self.ninja("-t", "commands", "-s", f"bin/{program}").strip().splitlines()[-1]
        return self.link_lines[program]

    def link(self, program, objects, into):
        command = shlex.split(self.link_line_of(program).removeprefix(": && ").removesuffix(" && :"))
        command[command.index("-o") + 1] = str(into)
        # Before the libraries: what they define is not looked for there.
        at = next(i for i, word in enumerate(command) if word.endswith(".a"))
        command[at:at] = [str(name) for name in objects] + ["-Wl,-S"]
        run(command, self.directory, f"{into} does not link")

    def units_of(self, original):
        """What has to be compiled for a changed file."""
        if original.suffix == ".cpp":
            return [self.unit_of(original)]
        including = self.units_including(original)
        if not 0 < len(including) <= MOST_UNITS:
            raise Stale(f"{original} is compiled into {len(including)} units; a mutant has to change one of them instead")
        return including

    def text_for(self, unit, copies, place):
        """What stands for a unit: the copy of a source, or a lump with copies in the place of sources."""
        if unit not in self.lumps.values():
            return copies.get(unit, unit)
        text = pathlib.Path(unit).read_text()
        for source in sources_of(unit):
            text = text.replace(f'"{source}"', f'"{copies.get(source, source)}"')
        lump = place / f"{pathlib.Path(unit).parent.parent.name}.{pathlib.Path(unit).name}"
        lump.write_text(text)
        return lump

    def make(self, mutant, program="sim_test"):
        """The simulator, or another program, with this mutant in it."""
        place = self.directory / "mutants" / mutant["name"]
        made = place / program
        if made not in self.made:
            self.link(program, self.objects_of(mutant, place), made)
            self.made.add(made)
        return made

    def objects_of(self, mutant, place):
        if mutant["name"] in self.compiled:
            return self.compiled[mutant["name"]]
        place.mkdir(parents=True, exist_ok=True)
        units, copies = set(), {}
        for name, text in changed_files(mutant).items():
            copy = place / pathlib.Path(name).relative_to("src")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
            copies[os.path.realpath(SOURCE / name)] = copy
            units.update(self.units_of(SOURCE / name))
        objects = []
        for unit in sorted(units):
            objects.append(place / f"{len(objects)}.o")
            self.compile(unit, self.text_for(unit, copies, place), [place], objects[-1])
        self.compiled[mutant["name"]] = objects
        return objects


def is_lump(unit):
    """Of a room, or of the calls on checkpoints: the front ends' others are no part of the simulator."""
    return re.search(r"/(holdfast_room_\w+|checkpoint_calls)\.dir/Unity/", unit) is not None


def sources_of(lump):
    return re.findall(r'^#include "(.*)"', pathlib.Path(lump).read_text(), re.M)


def run(command, directory, complaint):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise Stale(f"{complaint}:\n{done.stderr[-2000:]}")


# --- running


class Run:
    """What the simulator said: from seed `first` on, until something is found."""

    def __init__(self, program, mutant, filter, first, count):
        self.trace = program.parent / f"{mutant['name']}.trace"
        self.trace.unlink(missing_ok=True)
        self.first = first
        environment = dict(os.environ, SIM_SEED=str(first), SIM_SCHEDULES=str(count), SIM_FAILURES="1", SIM_TRACE=str(self.trace))
        for key in ("SIM_ONLY", "SIM_RESULT"):
            environment.pop(key, None)
        if "only" in mutant:
            environment["SIM_ONLY"] = mutant["only"]
        output = program.parent / f"{mutant['name']}.out"
        with output.open("w") as file:
            process = subprocess.Popen([program, f"--gtest_filter={filter}"], env=environment, stdout=file,
                                       stderr=subprocess.STDOUT)
            self.hangs = self.wait(process)
        self.code = process.returncode
        self.text = output.read_text(errors="replace")
        self.finding, self.seed = self.judge()
        self.trace.unlink(missing_ok=True)

    def wait(self, process):
        """True where a schedule did not end."""
        done, since = -1, time.monotonic()
        while True:
            try:
                process.wait(timeout=0.2)
                return False
            except subprocess.TimeoutExpired:
                now = self.trace.stat().st_size if self.trace.exists() else 0
                if now != done:
                    done, since = now, time.monotonic()
                elif time.monotonic() - since > SCHEDULE_SECONDS:
                    process.kill()
                    process.wait()
                    return True

    def judge(self):
        replay = re.search(r"^Replay: SIM_SEED=(\d+)", self.text, re.M)
        if replay:
            said = re.search(r"^Failed\n(.*)", self.text, re.M)
            return said[1].strip() if said else "a finding", int(replay[1])
        if self.hangs:
            return "it never ends", self.next_seed()
        if self.code < 0 or self.code > 1:
            return f"it crashes ({self.code})", self.next_seed()
        return None, None

    def next_seed(self):
        """The one after the last that came to its end."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return int(lines[-1].split()[0]) + 1 if lines else self.first


def misfit(mutant, pins):
    """None, or why it cannot be tried: its text is no longer there, or nobody has found yet what catches it."""
    try:
        changed_files(mutant)
    except Stale as why:
        return str(why)
    pin = pins.get(mutant["name"], {})
    if excused(mutant) or "test" in pin or "seed" in pin:
        return None
    return f"{mutant['name']} has no pinned seed; run: tests/mutants/mutants.py --find {mutant['name']}"


def check(build, mutant, pins):
    """None, or what is wrong."""
    if excused(mutant):
        return None
    pin = pins[mutant["name"]]
    if "test" in pin:
        if failed := first_failure(build.directory / "bin" / pin["program"], pin["test"]):
            return f"{failed} fails without {mutant['name']}, too"
        caught = first_failure(build.make(mutant, pin["program"]), pin["test"])
        return None if caught else f"{mutant['name']} is not caught by {pin['test']}; run: tests/mutants/mutants.py --find {mutant['name']}"
    sound = run_pin(build.program, mutant, pin)
    if sound.finding:
        return f"seed {pin['seed']} finds something without {mutant['name']}, too: {sound.finding}"
    if not run_pin(build.make(mutant), mutant, pin).finding:
        return f"{mutant['name']} is not caught at seed {pin['seed']}; run: tests/mutants/mutants.py --find {mutant['name']}"
    return None


def filters_of(mutant):
    return (mutant["filter"],) if "filter" in mutant else FILTERS


def run_pin(program, mutant, pin):
    return Run(program, mutant, pin.get("filter", filters_of(mutant)[0]), pin["seed"], 1)


def find(build, mutant, pin, most):
    """The pin: a seed with a finding, or how many there were without. The seed of before first: most changes leave it a good one."""
    if "test" in pin and first_failure(build.make(mutant, pin["program"]), pin["test"]):
        return pin
    if "program" in mutant:
        return find_test(build, mutant, [(mutant["program"], mutant["tests"])]) or {"searched": 0}
    program = build.make(mutant)
    if "seed" in pin:
        found = run_pin(program, mutant, pin)
        if found.finding and not run_pin(build.program, mutant, pin).finding:
            return pin | {"finding": found.finding[:200]}
    for filter in filters_of(mutant):
        if found := find_by(filter, build, program, mutant, pin.get("searched", 0) + 1, most):
            return found
    if most == MOST_SEEDS:
        if found := find_test(build, mutant):
            return found
    return {"searched": most}


def first_failure(program, filter):
    """The first test that fails, or that never ends; None where all pass."""
    try:
        done = subprocess.run([program, f"--gtest_filter={filter}", "--gtest_fail_fast"], capture_output=True, text=True, errors="replace",
                              timeout=TEST_SECONDS)
        output, failed = done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired as endless:
        output, failed = (endless.stdout or b"").decode(errors="replace"), True
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.M)
    named = re.findall(r"^\[  FAILED  \] ([^\s,]+)", output, re.M)
    return (named or begun[-1:] or [filter])[0] if failed else None


def find_test(build, mutant, tests=TESTS):
    for program, filter in tests:
        test = first_failure(build.make(mutant, program), filter)
        # Twice, and not without the mutant: else it is the test that fails now and then.
        if test and first_failure(build.make(mutant, program), test) and not first_failure(build.directory / "bin" / program, test):
            return {"program": program, "test": test}
    return None


def find_by(filter, build, program, mutant, first, most):
    while first <= most:
        found = Run(program, mutant, filter, first, most - first + 1)
        if not found.finding:
            break
        # What a mutant finds the true code must not find.
        if not Run(build.program, mutant, filter, found.seed, 1).finding:
            return {"seed": found.seed, "finding": found.finding[:200]} | ({"filter": filter} if filter != FILTERS[0] else {})
        print(f"mutants: seed {found.seed} finds something in the true code", file=sys.stderr)
        first = found.seed + 1
    return None


def on_all(mutants, task, jobs):
    """Yields (mutant, answer) as they come; an answer may be an exception."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = {pool.submit(task, mutant): mutant for mutant in mutants}
        for done in concurrent.futures.as_completed(tasks):
            yield tasks[done], done.exception() or done.result()


# --- what is told


def table_of(mutants, pins):
    lines = ["| taken out | kind | seed | what is found |", "| --- | --- | --- | --- |"]
    for mutant in mutants:
        pin = pins.get(mutant["name"], {})
        if "test" in pin:
            seed, what = "", f"{pin['program']}: {pin['test']}"
        elif "seed" in pin:
            seed, what = str(pin["seed"]) + family_of(pin), sentence_of(pin["finding"])
        else:
            kind = "changes nothing: " if "equivalent" in mutant else "a gap: "
            seed, what = f"none of {pin.get('searched', 0):,}", kind + (excused(mutant) or "not looked at yet")
        lines.append(f"| {mutant['takes_out']} | {mutant['kind']} | {seed} | {what} |")
    return "\n".join(lines)


def family_of(pin):
    return next((f", {family}" for family in ("harsh", "threads", "Checkpoints") if family in pin.get("filter", "")), "")


def sentence_of(finding):
    """A finding without the numbers of this one run."""
    for pattern, what in FINDINGS:
        if re.search(pattern, finding):
            return what
    return finding.split(":")[0][:60]


FINDINGS = [(r"was whole and is not found", "a whole checkpoint is not found"), (r"begins with, and cannot be read", "a checkpoint cannot be read"),
            (r"it reads as a hole", "bytes become zeros"), (r": byte \d+ is", "old or wrong bytes"), (r"^verify after", "verify finds damage"),
            (r"is lost", "a row is lost"), (r"^the last repair", "repair fails"), (r"gave \d+ bytes, not", "a wrong size"),
            (r"agreed_size", "a wrong size"), (r" failed: ", "a call fails that should not"), (r"status says lost", "status says that the file is lost"),
            (r"half there", "half a write is read"), (r"collective step", "ranks part"), (r"never ends", "it never ends"), (r"crashes", "it crashes")]


def write_table(mutants, pins):
    text = TABLE.read_text()
    begin, end = "<!-- mutants: made by tests/mutants/mutants.py -->\n", "<!-- end of mutants -->"
    before, rest = text.split(begin)
    TABLE.write_text(before + begin + table_of(mutants, pins) + "\n" + end + rest.split(end, 1)[1])


def told(mutant, answer):
    if "test" in answer:
        return f"by {answer['test']} of {answer['program']}" + ("; take its excuse out of mutants.toml" if excused(mutant) else "")
    if "seed" not in answer:
        return f"not in {answer['searched']} seeds"
    excuse = "; take its excuse out of mutants.toml" if excused(mutant) else ""
    return f"seed {answer['seed']}: {answer['finding']}{excuse}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--find", action="store_true")
    mode.add_argument("--seed", type=int)
    mode.add_argument("--table", action="store_true", help="only writes the table in docs/testing.md")
    parser.add_argument("--build", default=SOURCE / "build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--every", type=int, default=1, metavar="N", help="--check builds and runs one of N, and looks whether the others fit the code")
    parser.add_argument("--most", type=int, default=MOST_SEEDS, help="seeds that --find tries")
    parser.add_argument("--excused", action="store_true", help="--find also tries those that are equivalent, or a gap")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    mutants, pins = read_mutants(options.names), read_pins()
    if options.table:
        write_table(read_mutants([]), pins)
        return 0
    build = Build(options.build)
    if options.seed is not None:
        for mutant in mutants:
            for filter in filters_of(mutant):
                print(Run(build.make(mutant), mutant, filter, options.seed, 1).text)
        return 0
    if options.every < 1:
        parser.error("--every takes a number from 1 on")
    return check_all(build, mutants, pins, options) if options.check else find_all(build, mutants, pins, options)


def check_all(build, mutants, pins, options):
    stale = [what for mutant in mutants if (what := misfit(mutant, pins))]
    if stale:
        print("".join(f"mutants: {what}\n" for what in stale), end="")
        return 1
    mutants, jobs = mutants[:: options.every], options.jobs
    wrong = [str(answer) for _, answer in on_all(mutants, lambda mutant: check(build, mutant, pins), jobs) if answer]
    asked = [mutant for mutant in mutants if not excused(mutant)]
    print("".join(f"mutants: {what}\n" for what in wrong) + f"{len(asked) - len(wrong)} of {len(asked)} mutants are caught")
    return 1 if wrong else 0


def find_all(build, mutants, pins, options):
    """In rounds of more and more seeds: what is easily found is pinned early. Those that have an excuse are tried where they are named, or
    with --excused: that takes as long as all the others."""
    known = {mutant["name"] for mutant in read_mutants([])}
    pins = {name: pin for name, pin in pins.items() if name in known}
    left = [mutant for mutant in mutants if options.names or options.excused or not excused(mutant)]
    for mutant in left:
        pins.get(mutant["name"], {}).pop("searched", None)  # the code, or the simulator, may be another one by now
    failed = False
    for most in [seeds for seeds in ROUNDS if seeds < options.most] + [options.most]:
        search = functools.partial(find_from, build, pins, most)
        missed = []
        for mutant, answer in on_all(left, search, options.jobs):
            if isinstance(answer, Exception):
                print(f"mutants: {answer}", flush=True)
                failed = True
                continue
            pins[mutant["name"]] = answer
            caught = "searched" not in answer
            if not caught and "program" not in mutant:
                missed.append(mutant)
            if caught or most == options.most or "program" in mutant:
                print(f"{mutant['name']}: {told(mutant, answer)}", flush=True)
                failed |= caught == bool(excused(mutant))
            PINS.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n")
        left = missed
    write_table(read_mutants([]), pins)
    return 1 if failed else 0


def find_from(build, pins, most, mutant):
    return find(build, mutant, pins.get(mutant["name"], {}), most)


if __name__ == "__main__":
    sys.exit(main())
