"""`make bench`: measures all groups, keeps the raw results in BUILD/bench-results.json, writes the table, the plots and the
raw results beside them. A build that has no results of its own begins with those, so a part can be measured again.

Options: --quick (small files, fewer lines, at most three minutes), --only GROUP,..., --list, --out DIRECTORY (default
docs), --redraw (table and plots from the kept results, of which --only replaces a part), --seed N (the order of the runs)."""
import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import time

import agent_links
import agents
import cases
import coding
import nodes
import plain_calls
import profiled
import report
import shared
import shared_logs
import teams
import teams_page
from checkpoints import lines as checkpoints, page as checkpoints_page
from gluster.groups import agents as peers_and_agents, peers
from harness import Failed, Skip, compare, run_group
from protocols import lines as protocols, page as protocols_page
from workloads import Bench

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = {"checkpoints-": checkpoints_page, "protocols-": protocols_page, "teams-": teams_page}  # of groups whose names begin so; all others are in the one table


def page_of(group):
    return next((page for begin, page in PAGES.items() if group.startswith(begin)), report)


def say(words):
    print(words, file=sys.stderr, flush=True)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--list", action="store_true")
    p.add_argument("--out", default=os.path.join(os.path.dirname(HERE), "docs"))
    p.add_argument("--redraw", action="store_true")
    p.add_argument("--seed", type=int, default=int(time.time()))
    return p.parse_args()


def all_groups(options):
    groups = cases.all_groups(options.quick)
    groups["coding"] = coding.lines
    groups["agents"] = agents.lines
    groups.update(agent_links.groups())
    groups.update(shared.groups(options.quick))
    groups.update(nodes.groups(options.quick))
    groups.update(checkpoints.groups())
    groups.update(protocols.groups())
    groups.update(plain_calls.groups())
    groups.update(profiled.groups())
    groups.update(teams.groups())
    groups.update(shared_logs.groups(options.quick))
    if os.environ.get("PEERS") == "1":
        groups.update({f"peers-{mode}": peers(mode) for mode in ("write", "read")})
        groups.update({f"peers-agents-{mode}": peers_and_agents(mode) for mode in ("write", "read")})
        groups.update({f"peers-agents-200mbit-{mode}": peers_and_agents(mode, "200mbit") for mode in ("write", "read")})
    return groups


def measure(name, make, bench):
    """The lines of one group; what cannot run is a line that says why."""
    group = None
    try:
        group = make(bench)
        if isinstance(group, list):  # measured by a program of its own
            return group
        results = run_group(group, bench.say, bench.seed)
        for side, runs in results.items():
            if not isinstance(runs, str):
                say(f"  {side}: " + " ".join(f"{r['seconds']:.3f}" for r in runs) + " s, processor "
                    + " ".join(f"{r['cpu_seconds']:.2f}" for r in runs))
        return [compare(row, results) for row in group.rows]
    except (Skip, Failed, OSError) as reason:
        return [{"what": name, "kind": "time", "limit": None, "note": name, "met": None, "skipped": str(reason)}]
    finally:
        if group is not None and not isinstance(group, list) and group.clean:
            group.clean()


def measure_all(options, chosen):
    bench = Bench(os.path.abspath(options.build), options.quick, say, options.seed)
    lines_by_group = {}
    for name, make in chosen.items():
        started = time.monotonic()
        lines_by_group[name] = measure(name, make, bench)
        for line in lines_by_group[name]:
            say(f"{line['what']}: {report.fmt_value(line)}, wanted {report.fmt_limit(line)}, {report.fmt_rates(line)}, "
                f"memory {report.fmt_memory(line)}{'  ' + line['skipped'] if 'skipped' in line else ''}")
        say(f"  [{name}: {time.monotonic() - started:.0f} s]")
    return lines_by_group


def facts(options):
    """Of the run that measured one group."""
    revision = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {"kind": "quick" if options.quick else "full", "date": datetime.date.today().isoformat(), "revision": revision or "unknown",
            "load": os.getloadavg()[0], "cores": os.cpu_count(), "linux": platform.release().split("-")[0]}


def told(facts_by_group):
    """One sentence for each revision at which groups were measured."""
    runs = {}
    for name, f in facts_by_group.items():
        runs.setdefault((f["date"], f["revision"], f["kind"], f["cores"], f["linux"]), []).append((name, f["load"]))
    sentences = ["Open MPI with 4 ranks unless a line says otherwise. A group of lines is measured in one run; groups that a change has touched are measured again."]
    for (date, revision, kind, cores, linux), groups in sorted(runs.items(), key=lambda run: -len(run[1])):
        names = "all other groups" if len(runs) > 1 and len(groups) == max(map(len, runs.values())) else ", ".join(name for name, _ in groups)
        load = max(load for _, load in groups)
        sentences.append(f"{date}, revision {revision}, {kind} size, {cores} cores (load at most {load:.0f} at the end of a group), Linux {linux}: {names if len(runs) > 1 else 'all groups'}.")
    return "\n\n".join(sentences)


def read_kept(*paths):
    """The last runs' lines, so that a group that was measured again takes its old lines' place."""
    for path in paths:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                return json.load(text)
    return {"facts": {}, "lines": {}}


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    groups = all_groups(options)
    if options.list:
        print("\n".join(groups))
        return 0
    kept = os.path.join(options.build, "bench-results.json")
    published = os.path.join(options.out, "benchmarks", "results.json")
    stored = read_kept(kept, published) if options.redraw or options.only else {"facts": {}, "lines": {}}
    if not options.redraw:
        wanted = options.only.split(",") if options.only else list(groups)
        unknown = [w for w in wanted if w not in groups]
        if unknown:
            sys.exit(f"no such group: {', '.join(unknown)}; see bench/run.sh --list")
        for name in wanted:  # kept after each group, so that a run that is stopped has not been for nothing
            stored["lines"].update(measure_all(options, {name: groups[name]}))
            stored["facts"][name] = facts(options)
            with open(kept, "w", encoding="utf-8") as text:
                json.dump(stored, text, indent=1)
    if options.only:
        say("only a part was measured: --redraw puts it into the table")
        return 0
    lines_by_group = {name: stored["lines"][name] for name in groups if name in stored["lines"]}
    notes = report.read_notes(os.path.join(HERE, "notes.txt"))
    for writer in (report, *PAGES.values()):
        chosen = {name: lines for name, lines in lines_by_group.items() if page_of(name) is writer}
        if chosen:
            writer.write(options.out, chosen, told({name: stored["facts"][name] for name in chosen}), notes)
    with open(published, "w", encoding="utf-8") as text:
        json.dump({"facts": {name: stored["facts"][name] for name in lines_by_group}, "lines": lines_by_group}, text, indent=1)
        text.write("\n")
    say(f"wrote the pages in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
