#!/usr/bin/env python3
"""aio.h on protected files, and on plain ones with buffers, answers as on plain ones.

usage: aio_test.py LIBRARY AIO HOLDFAST
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY, AIO, HOLDFAST = map(os.path.abspath, sys.argv[1:4])


class Aio(unittest.TestCase):
    def test_every_call_answers_as_natively(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-aio.") as place:
            root = pathlib.Path(place)
            clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
            expected = subprocess.run([AIO, root / "native.dat"], env=clean, capture_output=True, text=True, timeout=60)
            self.assertEqual(expected.returncode, 0)
            for number, (scheme, count, buffer) in enumerate((("rs:2+1", 3, "none"), ("mirror:2", 2, "2x100k"), ("none", 0, "2x100k"), ("none", 0, "none"))):
                with self.subTest(scheme=scheme, buffer=buffer):
                    targets = [root / f"t{number}.{i}" for i in range(count)]
                    for d in targets:
                        d.mkdir()
                    env = dict(clean, HOLDFAST_PROTECT=scheme, HOLDFAST_CONFIG="", HOLDFAST_STRIPING_UNIT="65536", HOLDFAST_PATH="*.dat",
                               HOLDFAST_CLOSE="fast", HOLDFAST_BUFFER=buffer)
                    if count:
                        env["HOLDFAST_TARGETS"] = ",".join(map(str, targets))
                    ours = root / f"ours{number}.dat"
                    done = subprocess.run([AIO, ours], env=dict(env, LD_PRELOAD=LIBRARY), capture_output=True, text=True, timeout=60)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected.stdout, ""))
                    kept = subprocess.run([HOLDFAST, "cat", ours] if count else ["cat", ours], env=env, capture_output=True, check=True).stdout
                    self.assertEqual(kept, (root / "native.dat").read_bytes())
                    self.assertEqual(ours.with_name(ours.name + ".other").read_bytes(), b"a" * 2000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
