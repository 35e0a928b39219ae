"""holdfast report: a job's log on the terminal, for machines and in a browser."""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from command import CommandTest

GOLDEN = os.path.join(os.path.dirname(__file__), "../golden/log-1/job.hflog")
BROWSERS = ["chromium-headless-shell", "chromium", "google-chrome"]


class Report(CommandTest):
    def setUp(self):
        super().setUp()
        self.log = shutil.copy(GOLDEN, self.path("job.hflog"))

    def content(self):
        with open(self.log, "rb") as file:
            return file.read()

    def damage(self, content):
        with open(self.path("bad.hflog"), "wb") as file:
            file.write(content)
        return self.holdfast("report", "bad.hflog", expect=3).stderr

    def test_the_terminal_shows_the_programs_calls_above_the_systems(self):
        out = self.holdfast("report", "job.hflog", text=False).stdout.decode(errors="replace")
        self.assertIn("2 ranks on 2 nodes", out)
        self.assertIn("not all processes ended in order", out)
        self.assertIn("1 piece could not be read", out)
        self.assertIn('File "/scratch/run 7/out.dat" (mpi-io, rs:4+2, 2 ranks)', out)
        lines = out.splitlines()
        rows = [line.split()[0] for line in lines if re.match(r"    (Open|Read|Write|Sync|Metadata|Close|Total|Sys|Buffers|Prefetches|Preflushes) ", line)]
        self.assertEqual(rows[:13], "Open Read Write Sync Metadata Close Total Sys Sys Sys Buffers Prefetches Preflushes".split())
        read = next(line.split() for line in lines if line.startswith("    Read "))
        self.assertEqual(read[1], str(sum(2 * 1000 * i + 1 for i in (2, 3, 4, 5))))  # as the golden log has them
        self.assertIn("5918150 times", out)
        self.assertIn("served by window", out)
        self.assertIn("slowest rank 1", out)

    def test_a_job_that_used_no_file_has_no_ranks_on_no_nodes(self):
        self.holdfast("run", "--log", "empty.hflog", "true")
        out = self.holdfast("report", "empty.hflog").stdout
        self.assertIn("no process used a file that is counted", out)
        self.assertNotIn("rank", out)
        self.assertNotIn("0 nodes", out)
        self.assertNotIn("process,", self.holdfast("advise", "empty.hflog").stdout)

    def test_two_jobs_with_one_log_do_not_mix(self):
        program = "import sys; open(sys.argv[1], 'wb').write(b'x' * 1000000); print('begun', flush=True); sys.stdin.readline()"
        first = self.begin("run", "--log", "same.hflog", sys.executable, "-c", program, "one.dat")
        self.assertEqual(first.stdout.readline(), "begun\n")
        second = self.holdfast("run", "--log", "same.hflog", sys.executable, "-c", program, "two.dat")
        self.assert_one_sentence(second.stderr, "another job that runs writes this log", "goes on without")
        self.assertIsNone(first.poll())
        _, said = first.communicate("\n", timeout=60)
        self.assertEqual(first.returncode, 0, said)
        names = {os.path.basename(f["path"]): f for f in self.json("report", "same.hflog")["files"]}
        self.assertIn("one.dat", names)
        self.assertNotIn("two.dat", names)
        self.assertFalse(os.path.exists(self.path("same.hflog.pieces")))
        self.holdfast("run", "--log", "same.hflog", "true")

    def test_few_files_are_shown_in_full_and_the_rest_is_counted(self):
        out = self.holdfast("report", "job.hflog", "--files", "1", text=False).stdout.decode(errors="replace")
        self.assertNotIn('File "/scratch/input"', out)
        self.assertIn("1 file more; --files 2 shows all", out)

    def test_json_is_the_logs_content(self):
        log = self.json("report", "job.hflog")
        with open(GOLDEN.replace(".hflog", ".json")) as file:
            self.assertEqual(log, json.load(file))

    def test_csv_has_a_line_for_each_file_and_rank(self):
        rows = list(csv.DictReader(io.StringIO(self.holdfast("report", "job.hflog", "--csv").stdout)))
        self.assertEqual([(r["path"], r["rank"]) for r in rows],
                         [("/scratch/run 7/out.dat", "0"), ("/scratch/run 7/out.dat", "1"), ("/scratch/input", "1")])
        self.assertEqual(rows[2]["bytes_read"], "300")

    def test_a_trace_is_what_viewers_read(self):
        self.assertEqual(self.holdfast("report", "job.hflog", "--trace", "job.trace").stdout, "")
        with open(self.path("job.trace")) as file:
            trace = json.load(file)
        events = trace["traceEvents"]
        self.assertEqual({e["ph"] for e in events}, {"M", "C", "X"})
        write = next(e for e in events if e["name"] == "writes_collective")
        self.assertEqual((write["pid"], write["ts"], write["dur"], write["args"]), (0, 5.0, 0.1, {"bytes": 4096, "offset": 1 << 20}))
        self.assertIn({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "rank 1"}}, events)

    def page(self):
        self.holdfast("report", "job.hflog", "--html", "job.html")
        with open(self.path("job.html"), encoding="utf-8") as file:
            return file.read()

    def test_the_page_needs_nothing_from_elsewhere(self):
        page = self.page()
        self.assertEqual(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:)[a-z]+:""", page), [])
        urls = set(re.findall(r"https?://[^\s\"'<]+", page))
        self.assertLessEqual(urls, {"http://www.w3.org/2000/svg"}, "only the name of SVG")

    def drawn(self):
        """The page's content as a browser has made it."""
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if not browser:
            self.skipTest("no browser is installed (apt-get install chromium-headless-shell)")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.path('browser')}", "--enable-logging=stderr",
                   "--virtual-time-budget=5000", "--dump-dom", "file://" + self.path("job.html")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("CONSOLE", done.stderr, "an error in the page's script")
        return done

    def test_a_new_log_has_the_time_of_each_call_about_a_file(self):
        program = "import os; f = os.open('seen.dat', os.O_CREAT | os.O_RDWR); os.write(f, b'x' * 1000); os.lseek(f, 0, 0); os.ftruncate(f, 10); os.fstat(f); os.close(f)"
        self.holdfast("run", "--log", self.log, sys.executable, "-c", program, env={"SLURM_JOB_ID": "4711"})
        log = self.json("report", "job.hflog")
        self.assertEqual(log["job"]["id"], "4711")
        self.assertNotIn("mpi", log["job"])
        total = next(f["total"] for f in log["files"] if f["path"].endswith("/seen.dat"))
        self.assertGreater(total["seek_ns"], 0)
        self.assertGreater(total["resize_ns"], 0)
        self.assertAlmostEqual(sum(total.get(part + "_ns", 0) for part in ("seek", "stat", "view", "resize", "rename", "unlink", "mmap", "other")), total["metadata_ns"], delta=20)
        self.page()
        words = re.sub(r"<[^>]+>", " ", self.drawn().stdout)
        self.assertRegex(words, r"Batch job\s+4711")
        self.assertRegex(words, r"Seek\s+1\s+[\d.]+ [µm]s")
        self.assertNotIn("These in all  ", words)

    def test_the_page_draws_in_a_browser(self):
        self.page()
        done = self.drawn()
        drawn = re.search(r'data-drawn="(\d+)"', done.stdout)
        self.assertIsNotNone(drawn, done.stdout[:2000])
        plots = set(re.findall(r'data-plot="([\w-]+)"', done.stdout))
        self.assertEqual(plots, {"bandwidth", "sizes", "ranks-read", "ranks-written", "files-ranks", "layers", "spans"})
        self.assertEqual(int(drawn.group(1)), len(plots))
        for plot in plots:  # each with something in it
            inside = re.search(rf'data-plot="{plot}".*?</svg>', done.stdout, re.S).group(0)
            self.assertGreater(inside.count("<rect"), 0, plot)
        self.assertIn("/scratch/run 7/out.dat", done.stdout)
        self.assertRegex(done.stdout, r"<td>mpi-io</td><td>\d+</td>")
        # What readers of such pages look for: the job's facts, and of each file sizes, strides, alignment, moments and the time of each call.
        words = re.sub(r"<[^>]+>", " ", done.stdout)
        for fact in [r"Started  \S", r"Nodes  2: alpha, beta", r"Processes  2 processes used files; 1 did not end in order; the counts of 1 process could not be read",
                     r"Policy  rs:4\+2", r"most often\s+4,096 \(12 times\) bytes\s+4,088 \(5,918,150 times\), 512 \(3 times\) bytes",
                     r"strides\s+-4,096 \(2 times\) bytes\s+65,536 \(77 times\), -131,072 \(4 times\) bytes", r"not at a multiple of 1.0 MiB",
                     r"First opened at .*, last closed at", r"served by window", r"first\s+at \d+", r"Only read"]:
            self.assertRegex(words, fact)

    def test_a_damaged_log_is_one_clear_sentence(self):
        whole = self.content()
        self.assert_one_sentence(self.damage(whole[:-100]), "bad.hflog", "100 of its")
        self.assert_one_sentence(self.damage(whole[:20]), "bad.hflog", "damaged")
        self.assert_one_sentence(self.damage(b""), "bad.hflog", "no log of a job")
        self.assert_one_sentence(self.damage(b"#!/bin/sh\n" * 50), "no log of a job")
        self.assert_one_sentence(self.damage(whole[:300] + bytes([whole[300] ^ 4]) + whole[301:]), "checksum")
        self.assert_one_sentence(self.damage(whole[:8] + b"\x07" + whole[9:]), "format 7", "newer")

    def test_what_is_not_there_or_no_log_says_what_to_give(self):
        self.assert_one_sentence(self.holdfast("report", "nowhere.hflog", expect=3).stderr, "nowhere.hflog")
        os.mkdir(self.path("empty"))
        self.assert_one_sentence(self.holdfast("report", "empty", expect=3).stderr, "empty", ".pieces")
        self.assert_one_sentence(self.holdfast("report", "job.hflog", "--html", "no/such/page.html", expect=3).stderr, "page.html")
        self.assert_one_sentence(self.holdfast("report", "job.hflog", "--json", "--csv", expect=3).stderr, "--json")


if __name__ == "__main__":
    unittest.main()
