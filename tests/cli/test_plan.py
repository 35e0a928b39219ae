"""holdfast plan: histories, intervals and schemes, as a person types it."""
import datetime
import unittest
import xml.etree.ElementTree

from command import CommandTest


class Plan(CommandTest):
    # A supercomputer's half year as published: 141.7 hours between failures, 89.6 between interrupts, over 181 days.
    HOURS = 181 * 24

    def history(self, failures, others):
        begin = datetime.datetime(2009, 2, 1)
        lines = []
        for number, word in [(failures, ""), (others, " maintenance")]:
            for i in range(number):
                when = begin + datetime.timedelta(hours=self.HOURS * (i + 0.5) / number)
                lines.append(when.strftime("%Y-%m-%dT%H:%M:%S") + word)
        with open(self.path("failures.txt"), "w") as file:
            file.write("# a machine\n" + "\n".join(lines) + "\n")

    def test_a_history_becomes_the_table_of_mean_times(self):
        self.history(failures=31, others=18)
        out = self.holdfast("plan", "--history", "failures.txt", "--from", "2009-02-01", "--to", "2009-08-01").stdout
        self.assertIn(f"{self.HOURS / 31:.1f} hours ({self.HOURS / 31 / 24:.1f} days)", out)  # 140.1, 5.8
        self.assertIn(f"{self.HOURS / 49:.1f} hours", out)
        by_month = self.json("plan", "--history", "failures.txt", "--from", "2009-02-01", "--to", "2009-08-01", "--per", "month")
        self.assertEqual([h["begin"] for h in by_month["history"]], [f"2009-0{m}-01" for m in range(2, 8)])
        self.assertEqual(sum(h["failures"] for h in by_month["history"]), 31)
        self.assertEqual(sum(h["interrupts"] for h in by_month["history"]), 49)

    def test_dates_have_one_interval_fewer_between_them(self):
        """The example of docs/plan.md; and a period that the last date cuts has no mean."""
        with open(self.path("failures.txt"), "w") as file:
            file.write("2009-02-14T06:30\n2009-02-20 maintenance\n2009-03-02\n")
        hours = 15 * 24 + 17.5
        out = self.holdfast("plan", "--history", "failures.txt").stdout
        self.assertIn(f"{hours:.1f} hours ({hours / 24:.1f} days)", out)
        self.assertIn(f"{hours / 2:.1f} hours", out)
        by_month = self.json("plan", "--history", "failures.txt", "--per", "month")["history"]
        self.assertEqual([(h["failures"], h["mtbf_seconds"]) for h in by_month], [(0, None), (1, None)])
        self.assertIn("(cut)", self.holdfast("plan", "--history", "failures.txt", "--per", "month").stdout)
        known = self.json("plan", "--history", "failures.txt", "--to", "2009-03-31", "--per", "month")["history"]
        self.assertEqual(known[1]["mtbf_seconds"], 30 * 86400)

    def test_a_history_and_a_checkpoint_give_the_interval(self):
        self.history(failures=31, others=0)
        plan = self.json("plan", "--history", "failures.txt", "--from", "2009-02-01", "--to", "2009-08-01", "--checkpoint", "1TiB",
                         "--bandwidth", "8GiB/s", "--restart", "10min")
        self.assertAlmostEqual(plan["mtbf_seconds"], self.HOURS * 3600 / 31)
        self.assertEqual(plan["checkpoint_seconds"], 128)
        self.assertAlmostEqual(plan["young_seconds"], (2 * 128 * plan["mtbf_seconds"]) ** 0.5)
        self.assertEqual(min(plan["curve"], key=lambda point: point["waste"])["interval_seconds"], plan["daly_seconds"])
        schemes = {s["scheme"]: s for s in plan["schemes"]}
        self.assertEqual(schemes["rs:4+2"]["checkpoint_seconds"], 192)
        self.assertGreater(schemes["mirror:3"]["waste"], schemes["rs:4+2"]["waste"])

    def test_a_part_of_a_machine_fails_less_often(self):
        whole = self.json("plan", "--mtbf", "10h", "--checkpoint", "1GiB", "--bandwidth", "1GiB")
        part = self.json("plan", "--mtbf", "10h", "--nodes", "100", "--of-nodes", "1000", "--checkpoint", "1GiB", "--bandwidth", "1GiB")
        nodes = self.json("plan", "--node-mtbf", "3y", "--nodes", "1000", "--checkpoint", "1GiB", "--bandwidth", "1GiB")
        self.assertEqual(part["mtbf_seconds"], 10 * whole["mtbf_seconds"])
        self.assertAlmostEqual(nodes["mtbf_seconds"], 3 * 365.25 * 24 * 3.6)

    def test_replicas_that_come_back_buy_more_time_and_the_membership_agrees(self):
        jobs = self.json("plan", "replicas", "--ranks", "1000", "--mtbf", "5y", "--relaunch", "4h", "--check")["jobs"]
        team = 5 * 365.25 * 86400 / 1000
        by_kind = {(job["teams"], job["relaunch_seconds"] > 0): job for job in jobs}
        self.assertAlmostEqual(by_kind[1, False]["mean_time_to_interruption_seconds"], team)
        self.assertAlmostEqual(by_kind[2, False]["times_one_team"], 1.5)
        self.assertAlmostEqual(by_kind[2, True]["times_one_team"], (3 + team / 14400) / 2)
        self.assertAlmostEqual(by_kind[2, False]["interrupted"], 0.3996, places=3)
        for job in jobs:
            self.assertLess(abs(job["check"]["z"]), 4)
        from_checkpoints = self.json("plan", "replicas", "--ranks", "1000", "--mtbf", "5y", "--relaunch", "3h", "--checkpoint-every", "2h")["jobs"]
        self.assertEqual([job["relaunch_seconds"] for job in from_checkpoints], [0, 0, 0, 4 * 3600, 4 * 3600])
        self.assertAlmostEqual(from_checkpoints[3]["times_one_team"], jobs[3]["times_one_team"])
        alone = self.holdfast("plan", "replicas", "--ranks", "10", "--mtbf", "5y", "--checkpoint-every", "2h", expect=None).stderr
        self.assert_one_sentence(alone, "--relaunch")
        out = self.holdfast("plan", "replicas", "--ranks", "1000", "--mtbf", "5y", "--relaunch", "10m").stdout
        self.assertIn("1.50x", out)
        self.assertIn("is back in 10m", out)
        self.assert_one_sentence(self.holdfast("plan", "replicas", "--ranks", "10", "--mtbf", "soon", expect=None).stderr, "--mtbf")
        self.assert_one_sentence(self.holdfast("plan", "replicas", "--ranks", "10", expect=3).stderr, "'holdfast plan replicas --help' shows how it goes")

    def test_more_redundancy_buys_time(self):
        out = self.holdfast("plan", "--target-mtbf", "3y", "--targets", "6", "--rebuild", "2d", "--within", "30d").stdout
        self.assertIn("mean time to loss", out)
        self.assertNotIn("rs:8+3", out, "eleven targets do not fit into six")
        schemes = self.json("plan", "--target-mtbf", "3y", "--scheme", "mirror:1,mirror:2,rs:4+2", "--rebuild", "2d")["schemes"]
        years = [s["mean_time_to_loss_seconds"] / (365.25 * 86400) for s in schemes]
        self.assertAlmostEqual(years[0], 3)
        self.assertLess(years[0], years[1])
        self.assertLess(years[1], years[2])

    def test_schemes_are_compared_on_the_same_targets(self):
        schemes = self.json("plan", "--target-mtbf", "3y", "--targets", "6", "--scheme", "mirror:1,mirror:2,mirror:3", "--rebuild", "2d")["schemes"]
        years = [s["mean_time_to_loss_seconds"] / (365.25 * 86400) for s in schemes]
        self.assertAlmostEqual(years[0], 3 / 6, msg="a file lies on all six, whatever its scheme bears")
        self.assertLess(years[0], years[1])
        self.assertLess(years[1], years[2])

    def test_checkpoints_on_the_jobs_own_nodes_are_lost_with_groups_of_nodes(self):
        job = ["plan", "--local", "--nodes", "1000", "--node-mtbf", "5y", "--checkpoint", "1.5TiB", "--bandwidth", "200GiB", "--scheme", "mirror:1,mirror:2,rs:4+2"]
        plain, mirror, coded = self.json(*job, "--rebuild", "1h")["schemes"]
        self.assertEqual(plain["interval_seconds"], coded["interval_seconds"], "redundancy is made in the background")
        self.assertLess(coded["loss_probability"], mirror["loss_probability"])
        self.assertLess(mirror["loss_probability"], plain["loss_probability"])
        within = self.json("plan", "reliability", "--nodes", "1000", "--schemes", "mirror:2", "--node-mtbf", "5y", "--window", "1h")["schemes"][0]["job_loss_in_window"]
        self.assertAlmostEqual(mirror["mean_time_to_loss_seconds"] * within / 3600, 1, places=9)
        # Without --rebuild the next checkpoint ends the time in which more may be lost.
        soon = self.json(*job)["schemes"][1]
        self.assertLess(soon["loss_probability"], mirror["loss_probability"])
        self.assert_one_sentence(self.holdfast(*job, "--targets", "6", expect=3).stderr, "--local needs --nodes", "no --targets")
        self.assert_one_sentence(self.holdfast("plan", "--local", "--mtbf", "1d", "--checkpoint", "1GiB", "--bandwidth", "1GiB", expect=3).stderr, "--local needs --nodes")

    def test_the_terminal_shows_a_curve_with_its_best_point(self):
        out = self.holdfast("plan", "--mtbf", "5.9d", "--checkpoint", "1.5TiB", "--bandwidth", "10GiB", "--restart", "10min").stdout
        self.assertIn("<- best", out)
        self.assertIn("Young", out)

    def test_the_loss_of_nodes_is_reckoned_plotted_and_tried(self):
        command = ["plan", "reliability", "--nodes", "1000", "--schemes", "mirror:4,rs:4+4,rs:8+8"]
        schemes = self.json(*command, "--check", "--svg", "loss.svg", "--node-mtbf", "5y")["schemes"]
        for scheme, chunk, job in zip(schemes, (5.07e-9, 1.69e-9, 4.28e-17), (1.27e-6, 2.11e-7, 3.04e-15)):
            self.assertAlmostEqual(scheme["chunk_loss"] / chunk, 1, places=2)
            self.assertAlmostEqual(scheme["job_loss"] / job, 1, places=2)
            self.assertLessEqual(abs(scheme["check"]["z"]), 4)
            self.assertGreater(scheme["check"]["losses"], 1000)
            self.assertLess(scheme["job_loss_in_window"], 1e-15)
        self.assertEqual([(s["stored"], s["sent"]) for s in schemes], [(4, 3), (2, 1.75), (2, 1.875)])
        plot = xml.etree.ElementTree.parse(self.path("loss.svg")).getroot()
        names = [text.text for text in plot.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("rs:8+8", names)
        self.assertEqual(len(list(plot.iter("{http://www.w3.org/2000/svg}polyline"))), 3)
        self.assertIn("1.27e-06", self.holdfast(*command).stdout)
        for line, mend in ((["--nodes", "4", "--failures", "2", "--schemes", "rs:4+4"], "needs 8 nodes"), (["--nodes", "9", "--failures", "10"], "more than --nodes 9"),
                           (["--nodes", "1", "--failures", "1"], "too few nodes"), (["--nodes", "9", "--failures", "2", "--node-mtbf", "soon"], "--node-mtbf"),
                           (["--nodes", "9", "--failures", "2", "--svg", "no/where.svg"], "no/where.svg")):
            self.assert_one_sentence(self.holdfast("plan", "reliability", *line, expect=3).stderr, mend)

    def test_two_units_on_a_node_and_many_failures_are_reckoned_as_published(self):
        (packed,) = self.json("plan", "reliability", "--nodes", "1000", "--schemes", "rs:4+4", "--units-per-node", "2")["schemes"]
        self.assertEqual(packed["nodes_of_a_row"], 4)
        (alone,) = self.json("plan", "reliability", "--nodes", "9", "--failures", "2", "--schemes", "rs:4+2", "--units-per-node", "7")["schemes"]
        self.assertEqual((alone["nodes_of_a_row"], alone["sent"]), (1, 0))
        self.assertAlmostEqual(packed["chunk_loss"] / 2.87e-6, 1, places=2)
        self.assertAlmostEqual(packed["job_loss"] / 7.18e-4, 1, places=2)
        # For the whole job four copies are better than rs:4+4 where very many nodes fail at once.
        for failures, copies_are_better in ((10, False), (43, False), (44, True), (60, True), (100, True)):
            mirror, coded = self.json("plan", "reliability", "--nodes", "1000", "--schemes", "mirror:4,rs:4+4", "--failures", str(failures))["schemes"]
            self.assertEqual(mirror["job_loss"] < coded["job_loss"], copies_are_better, failures)

    def test_bad_input_is_one_sentence_with_the_mend(self):
        with open(self.path("bad.txt"), "w") as file:
            file.write("2009-01-01\nyesterday\n")
        for line, mend in [
            ([], "--history"),
            (["--checkpoint", "1GiB", "--mtbf", "5h"], "--bandwidth"),
            (["--checkpoint", "1GiB", "--bandwidth", "1GiB"], "--mtbf"),
            (["--mtbf", "often", "--checkpoint", "1GiB", "--bandwidth", "1GiB"], "--mtbf"),
            (["--history", "nowhere.txt"], "nowhere.txt"),
            (["--history", "bad.txt"], "line 2"),
            (["--node-mtbf", "3y"], "--nodes"),
            (["--mtbf", "3y", "--node-mtbf", "3y"], "give one"),
            (["--target-mtbf", "3y", "--scheme", "rs:8+3", "--targets", "6"], "11 targets"),
            (["--target-mtbf", "3y", "--scheme", "raid"], "mirror"),
        ]:
            self.assert_one_sentence(self.holdfast("plan", *line, expect=3).stderr, mend)


if __name__ == "__main__":
    unittest.main()
