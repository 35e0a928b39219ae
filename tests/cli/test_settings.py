"""holdfast settings shows what is in force and where it came from; what is written of settings elsewhere is what it says."""
import json
import os
import re
import unittest

from command import CommandTest

ROOT = os.path.join(os.path.dirname(__file__), "../..")


def text_of(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


class ShowsSettings(CommandTest):
    def setUp(self):
        super().setUp()
        with open(self.path("holdfast.toml"), "w") as f:
            f.write('protect = "mirror:2"\nplacement = "separate"\ntargets = ["a", "b"]\ndeadline = 3\n')

    def rows(self, *words, **how):
        lines = self.holdfast("settings", *words, **how).stdout.splitlines()
        return {row[0]: row[1:] for row in (re.split(r" {2,}", line.strip()) for line in lines[1:]) if len(row) > 1}

    def test_each_value_and_where_it_came_from(self):
        rows = self.rows(env={"HOLDFAST_DEADLINE": "90", "HOLDFAST_PATH": "*.dat"})
        self.assertEqual(rows["protect"], ["holdfast.toml", "mirror:2"])
        self.assertEqual(rows["targets"], ["holdfast.toml", f"{os.path.realpath(self.dir)}/a,{os.path.realpath(self.dir)}/b"])
        self.assertEqual(rows["deadline"], ["HOLDFAST_DEADLINE", "90s"])
        self.assertEqual(rows["path"], ["HOLDFAST_PATH", "*.dat"])
        self.assertEqual(rows["close"], ["default", "durable"])
        self.assertEqual(rows["lock_patience"], ["default", "10min"])
        self.assertEqual(rows["striping_unit"], ["default", "1MiB"])

    def test_another_file_and_none(self):
        with open(self.path("other.toml"), "w") as f:
            f.write('replication_factor = 3\n')
        rows = self.rows("--config", "other.toml")
        self.assertEqual(rows["replication_factor"], ["other.toml", "3"])
        self.assertEqual(rows["protect"], ["other.toml", "mirror:3"])
        told = json.loads(self.holdfast("settings", "--json", "--config", "other.toml", "protect").stdout)
        self.assertEqual(told["settings"][0]["value"], "mirror:3")
        self.assertEqual(self.rows(env={"HOLDFAST_CONFIG": ""})["protect"], ["default", "none"])

    def test_all_about_one(self):
        shown = self.holdfast("settings", "close", "cb_nodes").stdout
        for words in ("durable or fast", "--close HOW", "HOLDFAST_CLOSE", "holdfast_close", "--cb-nodes N", "HOLDFAST_CB_NODES"):
            self.assertIn(words, shown)
        self.assertNotIn("deadline", shown)
        self.assert_one_sentence(self.holdfast("settings", "elephant", expect=3).stderr, "elephant", "holdfast settings")

    def test_for_a_machine(self):
        told = json.loads(self.holdfast("settings", "--json", env={"HOLDFAST_CLOSE": "fast"}).stdout)
        by_key = {each["key"]: each for each in told["settings"]}
        self.assertEqual(told["file"], "holdfast.toml")
        self.assertEqual((by_key["close"]["value"], by_key["close"]["from"], by_key["close"]["default"]), ("fast", "HOLDFAST_CLOSE", "durable"))
        self.assertEqual(by_key["deadline"]["value"], "3000ms")
        self.assertEqual(by_key["locks"]["hint"], "")
        self.assertEqual(by_key["replication_factor"]["option"], "--replication-factor N")
        self.assertEqual(len(by_key), len(self.rows()))
        one = json.loads(self.holdfast("settings", "--json", "deadline").stdout)
        self.assertEqual([each["key"] for each in one["settings"]], ["deadline"])

    def test_what_makes_no_sense_is_said(self):
        env = {"HOLDFAST_REPLICATION_FACTOR": "3", "HOLDFAST_PROTECT": "rs:2+1"}
        done = self.holdfast("settings", expect=3, env=env)
        self.assert_one_sentence(done.stderr, "replication_factor 3", "rs:2+1")
        self.assertIn("HOLDFAST_PROTECT", done.stdout)
        self.assert_one_sentence(self.holdfast("settings", expect=3, env={"HOLDFAST_CLOSE": "later"}).stderr, "HOLDFAST_CLOSE", "durable or fast")

    def test_keys_are_proposed(self):
        proposed = [line.split("\t")[0] for line in self.holdfast("__complete", "settings", "striping").stdout.splitlines()]
        self.assertEqual(proposed, ["striping_unit", "striping_factor"])


class WhatTheJobGets(CommandTest):
    def setUp(self):
        super().setUp()
        self.make_installation()
        self.library("posix")

    def job(self, *options, env):
        lines = self.holdfast("run", *options, "env", env=env).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith("HOLDFAST_"))

    def test_an_option_that_asks_for_the_default_wins_over_the_variable(self):
        env = {"HOLDFAST_CLOSE": "fast", "HOLDFAST_DEADLINE": "3", "HOLDFAST_PATIENCE": "7"}
        got = self.job("--close", "durable", "--deadline", "10s", env=env)
        self.assertEqual((got.get("HOLDFAST_CLOSE"), got.get("HOLDFAST_DEADLINE")), (None, None))
        self.assertEqual(got["HOLDFAST_PATIENCE"], "7")

    def test_the_scheme_of_an_option_wins_over_the_other_key_of_schemes(self):
        targets = self.make_targets(3)
        got = self.job("--protect", "rs:2+1", "--targets", ",".join(targets), env={"HOLDFAST_REPLICATION_FACTOR": "3"})
        self.assertEqual((got["HOLDFAST_PROTECT"], got.get("HOLDFAST_REPLICATION_FACTOR")), ("rs:2+1", None))

    def test_it_wins_over_the_file_too(self):
        with open(self.path("holdfast.toml"), "w") as f:
            f.write('close = "fast"\npatience = 7\n')
        got = self.job("--close", "durable", env={})
        self.assertEqual((got.get("HOLDFAST_CLOSE"), got["HOLDFAST_PATIENCE"], got["HOLDFAST_CONFIG"]), (None, "7", ""))


class WhatIsWritten(CommandTest):
    def test_the_page_of_the_docs_is_the_table(self):
        self.assertEqual(text_of("docs/settings.md"), self.holdfast("settings", "--markdown").stdout,
                         "run: holdfast settings --markdown > docs/settings.md")

    def test_the_man_page_has_the_records(self):
        page = text_of("packaging/holdfast.1")
        begin, end = '.\\" These are the records: holdfast __man_settings\n', '.\\" The records end here.\n'
        self.assertEqual(page.split(begin)[1].split(end)[0], self.holdfast("__man_settings").stdout,
                         "put the output of holdfast __man_settings between the two comments of packaging/holdfast.1")

    def test_each_setting_has_words_and_each_option_of_a_setting_stands_in_the_table(self):
        table = self.holdfast("settings", "--markdown").stdout
        rows = [[cell.strip(" `") for cell in re.split(r" \|(?= |$)", line[1:])] for line in table.splitlines() if line.startswith("| `")]
        self.assertGreater(len(rows), 30)
        for key, _option, variable, _hint, _allowed, _default, does, *rest in rows:
            self.assertEqual(variable, "HOLDFAST_" + key.upper())
            self.assertRegex(does, r"^\S.{15,}\.$", key)
            self.assertEqual(rest, [""], key)
        options = set(re.findall(r"^ +(--[\w-]+)", self.holdfast("run", "--help").stdout.split("Settings:")[1], re.MULTILINE))
        self.assertEqual(options, {row[1].split()[0] for row in rows})


if __name__ == "__main__":
    unittest.main()
