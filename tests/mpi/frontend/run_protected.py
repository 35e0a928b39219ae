#!/usr/bin/env python3
"""Runs one self-checking MPI program on two fresh directories: MPI's own files in one, protected files in the other."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "intercept"))
import launch  # noqa: E402


def environment(options, root):
    settings = {
        "HOLDFAST_PROTECT": options.scheme,
        "HOLDFAST_TARGETS": ",".join(str(root / f"target{i}") for i in range(options.targets)),
        "HOLDFAST_PATH": str(root / "protected" / "*"),
        "HOLDFAST_ALLOW_SHARED_TARGET": "1",
        # Small and no power of ten, so that rows begin and end in the middle of everything.
        "HOLDFAST_STRIPING_UNIT": str(options.unit),
        "HOLDFAST_CONFIG": "",
        "LD_PRELOAD": launch.preload(options.library),
    }
    settings.update(pair.split("=", 1) for pair in options.set)
    return {**os.environ, **settings}, settings


def servers(library, root):
    """Ids of the pointer servers of this job: they stay in the directory in which it was started, and other tests run beside this one."""
    program = pathlib.Path(library).resolve().parent.parent / "libexec" / "holdfast" / "pointer-server"
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "exe").readlink() == program and (entry / "cwd").readlink() == root:
                found.add(int(entry.name))
        except OSError:
            pass  # it has ended, or is somebody else's
    return found


def members_lost(root):
    """Manifests by which a member has missed something, of files that were open while their process had no descriptors left (errors.c)."""
    manifests = [path.read_text() for path in root.glob("target*/*/manifest")]
    return [text for text in manifests if re.search(r'/kept\d+"', text) and re.search(r'"stale":\s*true', text)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpicc", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--scheme", default="rs:4+2")
    parser.add_argument("--targets", type=int, default=6)
    parser.add_argument("--unit", type=int, default=12288)
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-frontend-") as name:
        root = pathlib.Path(name).resolve()
        for folder in ["native", "protected"] + [f"target{i}" for i in range(options.targets)]:
            (root / folder).mkdir()
        inherited, settings = environment(options, root)
        # The launcher itself runs without the library; the ranks get it by the environment that `env` gives them.
        command = launch.command(options.mpicc, options.ranks) + ["env"] + [f"{k}={v}" for k, v in settings.items()]
        inherited.pop("LD_PRELOAD")
        command += options.program + [str(root / "native"), str(root / "protected")]
        run = subprocess.run(command, env=inherited, cwd=root, timeout=230, stderr=subprocess.PIPE, text=True)
        print(run.stderr, file=sys.stderr, end="", flush=True)
        for _ in range(200):
            if not servers(options.library, root):
                break
            time.sleep(0.01)
        else:
            print("a pointer server has outlived its job")
            return 1
        if "lacks LD_PRELOAD" in run.stderr:
            print("a helper of the library itself is complained of")
            return 1
        if without := members_lost(root):
            print(f"a target counts as lost, though nobody has taken any away: {without}")
            return 1
        left = [p for p in (root / "native").iterdir() if p.name.endswith(".holdfast")]
        if left:
            print(f"a native file was protected: {left}")
            return 1
        return run.returncode


if __name__ == "__main__":
    sys.exit(main())
