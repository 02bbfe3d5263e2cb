#!/usr/bin/env python3
"""`longhaul plan` as a user meets it.

usage: plan_test.py DIRECTORY_OF_LONGHAUL
"""
import json
import pathlib
import unittest
import xml.dom.minidom

from command import CommandTest

GPT2_OVER_A_WAN = ("plan", "--params", "124M", "--step-time", "250ms", "--bandwidth", "500mbit", "--latency", "30ms")
FIVE_LAYERS = pathlib.Path(__file__).resolve().parents[2] / "examples/five_layers.json"
# Lines of 1 MB/s; the example of docs/layers.md, times in s.
EXAMPLE = ("plan", "--profile", FIVE_LAYERS, "--period", 2, "--bandwidth", "8mbit", "--latency", "0ms")
GPT2_BY_LAYER = ("plan", "--profile", "gpt2-124m", "--bandwidth", "1gbit", "--latency", "5ms")
BUILT_IN = ("resnet-18", "resnet-50", "gpt2-124m", "llama-175m", "llama-1.3b")
KEYS = {"keep_ratio", "delay_steps", "period_steps", "step_time_s", "efficiency", "reason"}


class Planned(CommandTest):
    def planned(self, *arguments):
        done = self.longhaul(*arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)


class PlanCommand(Planned):
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
                (("plan", "--params", "124M", "--map"), "--step-time", "--profile"),
                (GPT2_OVER_A_WAN + ("--one-way",), "--one-way", "--profile"),
                (GPT2_OVER_A_WAN + ("--period", "2"), "--period", "--profile"),
        ):
            with self.subTest(words=words):
                self.assert_refused(self.longhaul(*words), *expected)


class LayerPlan(Planned):
    def test_auto_weighs_a_schedule_against_a_compressed_model(self):
        slow, fast = (self.planned("plan", "--profile", "gpt2-124m", "--recipe", "auto", "--bandwidth", rate, "--latency", "0.1ms")
                      for rate in ("100mbit", "100gbit"))
        self.assertEqual(slow["schedule"], [])
        self.assertLess(slow["keep_ratio"], 0.1)
        self.assertIn("each layer by itself", slow["reason"])
        self.assertEqual(fast["keep_ratio"], 1)
        self.assertEqual(len(fast["schedule"]), fast["period_steps"])
        self.assertGreater(fast["hidden_share"], 0.99)
        self.assertGreater(fast["relative_steps"], 1)
        self.assertIn("to keep", fast["reason"])
        for plan in (slow, fast):
            self.assertAlmostEqual(plan["exposed_s"], plan["step_time_s"] * (1 - plan["efficiency"]), places=9)

    def step_time(self, recipe, *arguments):
        return self.planned(*EXAMPLE, "--recipe", recipe, *arguments)["step_time_s"]

    def test_the_example_of_the_docs_takes_its_times(self):
        for recipe, step_time_s in (("local-sgd", 42), ("plsgd-enp", 32.5), ("dreamddp", 28.5)):
            self.assertAlmostEqual(self.step_time(recipe, "--one-way"), step_time_s, places=9, msg=recipe)
        self.assertAlmostEqual(self.step_time("dreamddp", "--one-way", "--contiguous"), 30, places=9)
        self.assertAlmostEqual(self.step_time("dreamddp"), 35, places=9)

    def test_json_has_the_promised_keys(self):
        plan = self.planned(*EXAMPLE, "--one-way")
        self.assertLessEqual(KEYS | {"schedule", "exposed_s", "hidden_share", "bound_s"}, plan.keys())
        self.assertEqual((plan["recipe"], plan["period_steps"], plan["keep_ratio"]), ("dreamddp", 2, 1))
        self.assertAlmostEqual(plan["exposed_s"], 28.5 - 24, places=9)
        self.assertAlmostEqual(plan["efficiency"], 24 / 28.5, places=9)
        self.assertAlmostEqual(plan["hidden_share"], 1 - 9 / 36, places=9)
        self.assertLessEqual(plan["bound_s"], 28.5)
        self.assertGreaterEqual(plan["bound_s"], 24)
        self.assertEqual(sorted(sum(plan["schedule"], [])), [f"layer {i}" for i in range(1, 6)])
        self.assertEqual(len(plan["schedule"]), 2)

    def test_every_recipe_by_layer_averages_every_layer_in_the_period_that_is_asked_for(self):
        for recipe in ("local-sgd", "local-sgd-parts", "plsgd-enp", "dreamddp", "dreamddp-late"):
            plan = self.planned(*GPT2_BY_LAYER, "--period", 6, "--recipe", recipe)
            self.assertEqual((plan["recipe"], plan["period_steps"]), (recipe, 6))
            self.assertGreaterEqual(plan["step_time_s"], plan["bound_s"] * (1 - 1e-9))
            self.assertGreaterEqual(plan["bytes_up"], 4 * 124_439_808)
        for recipe in ("d-sgd", "wfbp"):
            self.assertEqual(self.planned(*GPT2_BY_LAYER, "--recipe", recipe)["period_steps"], 1)

    def test_the_period_follows_the_link(self):
        periods = [self.planned(*GPT2_BY_LAYER[:3], "--bandwidth", rate, "--latency", "5ms")["period_steps"]
                   for rate in ("40gbit", "4gbit", "1gbit")]
        self.assertEqual(periods, sorted(set(periods)))
        local = [self.planned(*GPT2_BY_LAYER, "--recipe", recipe)["period_steps"]
                 for recipe in ("local-sgd", "local-sgd-parts")]
        self.assertEqual(local[0], local[1])

    def test_parts_are_those_of_a_run_or_the_layers_of_the_profile(self):
        names = [name for step in self.planned(*GPT2_BY_LAYER, "--period", 6, "--contiguous")["schedule"] for name in step]
        self.assertTrue(any("tokens/" in name for name in names), names)
        self.assertTrue(any(".." in name for name in names), names)
        whole = self.planned(*GPT2_BY_LAYER, "--period", 6, "--contiguous", "--layers", "whole")
        self.assertEqual(sum(map(len, whole["schedule"])), 51)
        pieces = self.planned(*EXAMPLE, "--layers", "cut")
        self.assertLess(pieces["step_time_s"], 35)

    def test_draws_the_schedule(self):
        many = {"layers": [{"name": f"a_layer_with_a_long_name_{i}", "t_fp_s": 0.01, "t_bp_s": 0.02, "bytes": 4e6}
                           for i in range(150)]}
        (self.directory / "many.json").write_text(json.dumps(many))
        link = ("--bandwidth", "1gbit", "--latency", "5ms")
        for words in (EXAMPLE, EXAMPLE + ("--one-way",), EXAMPLE + ("--recipe", "local-sgd"),
                      ("plan", "--profile", "many.json", *link), ("plan", "--profile", "many.json", "--layers", "whole", *link),
                      *((*GPT2_BY_LAYER, "--recipe", recipe) for recipe in ("wfbp", "dreamddp", "dreamddp-late")),
                      *(("plan", "--profile", name, *link) for name in BUILT_IN)):
            with self.subTest(words=words):
                done = self.longhaul(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
                for text in ("because", "step time", "step", "compute |", "< backward", "occupies the line"):
                    self.assertIn(text, done.stdout)
                self.assertEqual("down    |" in done.stdout, "--one-way" not in words)

    def test_the_drawing_of_the_docs_is_what_is_printed(self):
        page = (FIVE_LAYERS.parents[1] / "docs/layers.md").read_text(encoding="utf-8")
        command, shown = page.split("```\n$ longhaul ", 1)[1].split("```", 1)[0].split("\n", 1)
        words = command.replace("examples/five_layers.json", str(FIVE_LAYERS)).split()
        self.assertEqual(self.longhaul(*words).stdout, shown)

    def test_nonsense_is_refused(self):
        broken = {"empty.json": "", "text.json": "five layers", "list.json": "[]", "none.json": '{"layers": []}',
                  "half.json": FIVE_LAYERS.read_text()[:100],
                  "negative.json": FIVE_LAYERS.read_text().replace("7000000", "-7"),
                  "light.json": '{"layers": [{"name": "a", "t_fp_s": 1, "t_bp_s": 1, "bytes": 0}]}'}
        for name, text in broken.items():
            (self.directory / name).write_text(text)
            with self.subTest(file=name):
                self.assert_refused(self.longhaul("plan", "--profile", name, *EXAMPLE[3:]), "--profile", name)
        for words, *expected in (
                (("plan", "--profile", "gpt2", *EXAMPLE[3:]), "--profile", "did you mean gpt2-124m?"),
                (("plan", "--profile", "bert", *EXAMPLE[3:]), "--profile", "resnet-18", "llama-1.3b", ".json"),
                (("plan", "--profile", "nowhere.json", *EXAMPLE[3:]), "nowhere.json", "No such file"),
                (("plan", "--profile", self.directory, *EXAMPLE[3:]), "--profile", self.directory.name),
                (EXAMPLE[:4] + (0,) + EXAMPLE[5:], "--period"),
                (EXAMPLE[:4] + (1001,) + EXAMPLE[5:], "--period"),
                (EXAMPLE[:6] + ("0mbit",) + EXAMPLE[7:], "--bandwidth", "more than 0"),
                (EXAMPLE[:6] + ("1e-300bit",) + EXAMPLE[7:], "--bandwidth", "1e9 s"),
                (EXAMPLE[:5], "--bandwidth", "--latency"),
                (EXAMPLE + ("--params", "124M"), "--params", "--profile"),
                (EXAMPLE + ("--step-time", "1s"), "--step-time", "--profile"),
                (EXAMPLE + ("--codec", "dense/bf16"), "--codec", "--profile"),
                (EXAMPLE + ("--min-ratio", "0.1"), "--profile", "--min-ratio"),
                (EXAMPLE + ("--map",), "--profile", "--map"),
                (EXAMPLE + ("--out", "map.svg"), "--out", "--map"),
                (EXAMPLE + ("--one-way", "--down", "1gbit"), "--down", "--one-way"),
                (EXAMPLE + ("--recipe", "wfbp"), "--period", "wfbp", "every step"),
                (EXAMPLE + ("--recipe", "deco"), "--recipe", "dreamddp", "got deco"),
                (EXAMPLE + ("--recipe", "dreamdpp"), "--recipe", "did you mean dreamddp?"),
                (EXAMPLE + ("--recipe", "plsgd-enp", "--contiguous"), "--contiguous", "dreamddp"),
                (EXAMPLE + ("--layers", "tensors"), "--layers", "whole"),
        ):
            with self.subTest(words=words):
                self.assert_refused(self.longhaul(*words), *expected)


if __name__ == "__main__":
    unittest.main()
