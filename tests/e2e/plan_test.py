#!/usr/bin/env python3
"""`longhaul plan` as a user meets it.

usage: plan_test.py DIRECTORY_OF_LONGHAUL
"""
import json
import unittest
import xml.dom.minidom

from command import CommandTest

GPT2_OVER_A_WAN = ("plan", "--params", "124M", "--step-time", "250ms", "--bandwidth", "500mbit", "--latency", "30ms")
KEYS = {"keep_ratio", "delay_steps", "period_steps", "step_time_s", "efficiency", "reason"}


class PlanCommand(CommandTest):
    def planned(self, *arguments):
        done = self.longhaul(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_says_what_and_why(self):
        done = self.longhaul(*GPT2_OVER_A_WAN)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        for text in ("keep ratio", "delay", "step time", "because", "d-sgd"):
            self.assertIn(text, done.stdout)

    def test_json_has_the_promised_keys(self):
        plan = self.planned(*GPT2_OVER_A_WAN)
        self.assertLessEqual(KEYS, plan.keys())
        self.assertEqual(plan["codec"], "top_k/bf16")
        self.assertGreater(plan["relative_steps"], 1)
        self.assertGreater(plan["efficiency"], 0.95)
        self.assertAlmostEqual(plan["efficiency"], 0.25 / plan["step_time_s"], places=6)

    def test_every_recipe_has_a_plan(self):
        for recipe, keep_ratio, delay_steps in (("d-sgd", 1, 0), ("static", 0.05, 3), ("cocktail", 0.02, 1),
                                                ("accordion", 0.99, 0), ("dga", 1, 4), ("olco3-tc", 0.05, 8),
                                                ("diloco", 1, 0)):
            plan = self.planned(*GPT2_OVER_A_WAN, "--recipe", recipe)
            self.assertEqual((plan["recipe"], plan["keep_ratio"], plan["delay_steps"]),
                             (recipe, keep_ratio, delay_steps))
        for recipe in ("auto", "deco", "deco-late", "deco-ahead", "frozen", "random-plan"):
            plan = self.planned(*GPT2_OVER_A_WAN, "--recipe", recipe)
            self.assertTrue(0.0003 <= plan["keep_ratio"] < 0.1, plan)

    def test_a_period_spreads_the_bytes(self):
        # Dense updates once in 30 steps: 30 steps of computing, two latencies, and 496 MB up and down.
        plan = self.planned(*GPT2_OVER_A_WAN, "--recipe", "diloco")
        self.assertEqual(plan["period_steps"], 30)
        self.assertIsNone(plan["relative_steps"])  # nobody has run what would tell
        self.assertAlmostEqual(plan["step_time_s"], (30 * 0.25 + 0.06 + 2 * 496e6 / 62.5e6) / 30, places=3)

    def test_d_sgd_waits_for_the_network(self):
        # 496 MB up and as much down over 62.5 MB/s, two latencies, one step.
        plan = self.planned(*GPT2_OVER_A_WAN, "--recipe", "d-sgd")
        self.assertAlmostEqual(plan["step_time_s"], 2 * 496e6 / 62.5e6 + 0.06 + 0.25, places=3)

    def test_a_slower_link_keeps_less(self):
        slow = self.planned(*GPT2_OVER_A_WAN, "--down", "100mbit")
        self.assertLess(slow["keep_ratio"], self.planned(*GPT2_OVER_A_WAN)["keep_ratio"])

    def test_understands_the_units_that_people_write(self):
        plain = self.planned(*GPT2_OVER_A_WAN)
        for written in ("500Mbit", "500Mbps", "500 Mbit/s", "62.5MB/s"):
            words = list(GPT2_OVER_A_WAN)
            words[words.index("500mbit")] = written
            self.assertEqual(self.planned(*words), plain, written)

    def test_doubts_a_model_that_is_too_small(self):
        words = ["124" if word == "124M" else word for word in GPT2_OVER_A_WAN]
        done = self.longhaul(*words)
        self.assertEqual(done.returncode, 0)
        self.assertIn("did you mean 124M?", done.stderr)

    def test_a_map_needs_no_link(self):
        done = self.longhaul(*GPT2_OVER_A_WAN[:5], "--map")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, self.longhaul(*GPT2_OVER_A_WAN, "--map").stdout)
        for text in ("124000000 parameters", "upload bandwidth", "one-way latency"):
            self.assertIn(text, done.stdout)

    def test_draws_a_map(self):
        done = self.longhaul(*GPT2_OVER_A_WAN, "--map")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("auto: % of the time spent computing", done.stdout)
        done = self.longhaul(*GPT2_OVER_A_WAN, "--map", "--out", "map.svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        drawn = xml.dom.minidom.parse(str(self.directory / "map.svg"))
        texts = [text.firstChild.data for text in drawn.getElementsByTagName("text")]
        self.assertEqual((texts.count("upload bandwidth"), texts.count("one-way latency")), (2, 2))
        self.assertTrue(any("124000000 parameters" in text for text in texts), texts)
        self.assertGreater(len(drawn.getElementsByTagName("rect")), 100)

    def test_a_map_replaces_no_file_of_others(self):
        words = GPT2_OVER_A_WAN + ("--map", "--out")
        for _ in range(2):  # over its own
            self.assertEqual(self.longhaul(*words, "map.svg").returncode, 0)
        thesis = self.directory / "thesis.svg"
        thesis.write_text("<svg>mine</svg>")
        self.assert_refused(self.longhaul(*words, "thesis.svg"), "--out", "thesis.svg", "did not write it", "--force")
        self.assertEqual(thesis.read_text(), "<svg>mine</svg>")
        self.assertEqual(self.longhaul(*words, "thesis.svg", "--force").returncode, 0)
        self.assert_refused(self.longhaul(*words, "/dev/full"), "--out", "a device")
        done = self.longhaul(*words, "-")
        self.assertEqual((done.returncode, done.stderr), (0, "map: -\n"))
        xml.dom.minidom.parseString(done.stdout)

    def test_nonsense_is_refused(self):
        def with_(option, value):
            words = list(GPT2_OVER_A_WAN)
            words[words.index(option) + 1] = value
            return words

        for words, *expected in (
                (with_("--bandwidth", "0mbit"), "--bandwidth", "more than 0"),
                (with_("--latency", "-30ms"), "--latency"),
                (with_("--step-time", "0s"), "--step-time", "more than 0"),
                (with_("--params", "0"), "--params", "1 to 10000B"),
                (with_("--params", "many"), "--params"),
                (with_("--bandwidth", "500"), "--bandwidth", "unit"),
                (GPT2_OVER_A_WAN + ("--min-ratio", "0.5", "--max-ratio", "0.1"), "--max-ratio", "--min-ratio"),
                (GPT2_OVER_A_WAN + ("--min-ratio", "0"), "--min-ratio", "at least"),
                (GPT2_OVER_A_WAN + ("--min-ratio", "1e-310"), "--min-ratio", "at least"),
                (GPT2_OVER_A_WAN + ("--codec", "threshold/bf16"), "--codec", "lab"),
                (with_("--params", "18446744073709551615"), "--params", "10000B"),
                (with_("--latency", "1e308s"), "--latency", "duration"),
                (GPT2_OVER_A_WAN + ("--replicas", "0"), "--replicas"),
                (GPT2_OVER_A_WAN + ("--recipe", "fast"), "--recipe", "auto"),
                (GPT2_OVER_A_WAN + ("--recipe", "ideal"), "--recipe", "link"),
                (GPT2_OVER_A_WAN + ("--recipe", "olco3-vq"), "--recipe", "layers"),
                (GPT2_OVER_A_WAN + ("--out", "map.svg"), "--out", "--map"),
                (GPT2_OVER_A_WAN[:-2], "--latency", "--map"),
                (with_("--bandwidth", "500mb"), "--bandwidth", "mbit", "MB/s"),
                (GPT2_OVER_A_WAN[:5] + ("--map", "--down", "1gbit"), "--down", "--bandwidth"),
        ):
            with self.subTest(words=words):
                self.assert_refused(self.longhaul(*words), *expected)


if __name__ == "__main__":
    unittest.main()
