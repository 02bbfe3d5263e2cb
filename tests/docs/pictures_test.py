#!/usr/bin/env python3
"""README's table, sentence and pictures follow from docs/results/fashion-wan.json. Needs no build.

usage: pictures_test.py REPOSITORY
"""
import json
import math
import pathlib
import sys
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))

import charts
import pictures


def run(recipe, seed, time, steps=100):
    return {"recipe": recipe, "seed": seed, "status": "done", "lr": 0.02, "replicas": 4, "steps": steps, "time_to_target_s": time,
            "steps_to_target": None if time is None else steps, "step_time_s": 0.06, "efficiency": 1.0, "bytes_up": 4e5, "keep_ratio": 0.01}


def study(**times):
    runs = [run(name.replace("_", "-"), seed, time) for name, all_times in times.items() for seed, time in enumerate(all_times, 1)]
    spans = [["compute", 0.0, 0.06, 0, 0.0, 0.0], ["send", 0.06, 0.3, 0, 0.01, 0.06], ["wait", 0.06, 0.4, 0, 0.0, 0.0]]
    lines = {"d-sgd": {"delay_steps": 0, "spans": spans}, "auto": {"delay_steps": 2, "spans": spans}}
    return {"about": "A study.", "target": {"metric": "accuracy", "value": 0.84}, "runs": runs, "timelines": lines}


class Committed(unittest.TestCase):
    def test_files_follow_from_the_results(self):
        results = json.loads(pictures.RESULTS.read_text(encoding="utf-8"))
        self.assertEqual(pictures.written(results), pictures.RESULTS.read_text(encoding="utf-8"))
        for path, text in pictures.outputs(results).items():
            with self.subTest(file=path.name):
                self.assertEqual(path.read_text(encoding="utf-8"), text, "run bench/pictures.py --draw")

    def test_results_say_where_they_come_from(self):
        results = json.loads(pictures.RESULTS.read_text(encoding="utf-8"))
        for key in ("command", "version", "machine"):
            self.assertTrue(results[key])
        self.assertEqual({run["recipe"] for run in results["runs"]}, {name.partition(":")[0] for name in pictures.RECIPES})
        self.assertEqual({run["seed"] for run in results["runs"]}, {1, 2, 3})


class Tables(unittest.TestCase):
    def test_say_what_is_within_noise_and_what_is_not(self):
        table = pictures.table(study(ideal=[15, 20, 28], auto=[17, 19, 21], d_sgd=[340, 470, 660]))
        self.assertIn("| **`auto`** | 19.0 s (17.0–21.0) | 24.7 |", table)
        self.assertIn("`ideal` overlaps with that of `auto`", table)
        apart = pictures.table(study(ideal=[10, 11, 12], auto=[17, 19, 21], d_sgd=[340, 470, 660]))
        self.assertNotIn("noise", apart)

    def test_say_how_many_seeds_did_not_reach_the_target(self):
        results = study(ideal=[1, 2, 3], auto=[17, None, 21], d_sgd=[340, 470, 660], local_sgd=[None, 5, None])
        table = pictures.table(results)
        self.assertIn("| 21.0 s (17.0–not reached; 1 of 3 seeds did not reach it) |", table)
        self.assertIn("| `local-sgd` | not reached by 2 of 3 seeds | – |", table)
        self.assertTrue(math.isinf(charts.rows_of(results)[-1].median))


class Charts(unittest.TestCase):
    def test_are_well_formed_and_hold_every_recipe(self):
        results = study(ideal=[15, 20, 28], auto=[17, None, 21], d_sgd=[340, 470, 660], diloco=[None, None, 4])
        for theme in charts.THEMES:
            picture = xml.etree.ElementTree.fromstring(charts.bars(results, theme))
            words = " ".join(picture.itertext())
            for name in ("Longhaul auto", "DiLoCo", "synchronous SGD", "not reached by 2 of 3 seeds", "21.0 s, not reached by 1 of 3"):
                self.assertIn(name, words)
            xml.etree.ElementTree.fromstring(charts.timeline(results, theme))

    def test_a_bar_is_as_long_as_its_time(self):
        picture = xml.etree.ElementTree.fromstring(charts.bars(study(ideal=[10], auto=[50], d_sgd=[100]), "light"))
        bars = [float(rect.get("width")) for rect in picture.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertAlmostEqual(bars[1] / bars[0], 5, delta=0.01)
        self.assertAlmostEqual(bars[2] / bars[1], 2, delta=0.01)


if __name__ == "__main__":
    unittest.main()
