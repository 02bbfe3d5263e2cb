#!/usr/bin/env python3
"""The figures of docs/papers.md follow from docs/results/papers.json. Needs no build.

usage: papers_test.py REPOSITORY
"""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))

import papers


def recipe(times, steps=(100, 100, 100)):
    return {"lr": "0.02", "search": {}, "runs": [
        {"time_to_target_s": time, "steps_to_target": step, "steps": 100, "replicas": 4, "parameters": 1000, "bytes_up": 4e6,
         "step_time_s": 0.06, "efficiency": 1.0, "hidden_share": 0.5, "planned_hidden_share": 0.4} for time, step in zip(times, steps)]}


class Committed(unittest.TestCase):
    def test_pages_follow_from_the_results(self):
        results = json.loads(papers.RESULTS.read_text(encoding="utf-8"))
        for page, text in papers.outputs(results).items():
            with self.subTest(page=page.name):
                self.assertEqual(page.read_text(encoding="utf-8"), text, "run bench/papers.py --draw")

    def test_every_row_has_its_place_and_every_claim_its_row(self):
        page = papers.PAGES[0].read_text(encoding="utf-8")
        names = {row.name for row in papers.ROWS}
        for name in names:
            self.assertIn(f"### {name}\n", page)
            self.assertIn(f"<!-- papers:{name} -->\n", page)
        self.assertLessEqual({row for _, _, row, _ in papers.CLAIMS}, names)

    def test_results_say_where_they_come_from(self):
        for name, row in json.loads(papers.RESULTS.read_text(encoding="utf-8")).items():
            with self.subTest(row=name):
                self.assertTrue(row["version"] and row["machine"])
                for found in row["recipes"].values():
                    self.assertIn([run["seed"] for run in found["runs"]], ([1, 2, 3], [1]))


class Figures(unittest.TestCase):
    def test_a_factor_is_of_medians_and_has_its_range_by_seed(self):
        self.assertEqual(papers.factor(recipe([10, 20, 60]), recipe([5, 2, 4])), (5.0, 2.0, 15.0))

    def test_a_target_that_most_seeds_missed_gives_no_factor(self):
        self.assertIsNone(papers.factor(recipe([10, 20, 60]), recipe([5, None, None])))
        self.assertEqual(papers.factor(recipe([10, 20, 60]), recipe([5, 4, None])), (4.0, 2.0, 5.0))
        self.assertIn("not reached", papers.factor_text(recipe([None, None, 60]), recipe([5, 4, 3])))

    def test_a_table_shows_a_miss(self):
        table = "\n".join(papers.lab_table({"deco": recipe([5.04, None, 4], (80, None, 70))}))
        self.assertIn("| 5.0, not reached, 4.0 | 80, not reached, 70 | 60 ms | 100 % | 10 | 50.0 % | 40.0 % |", table)


if __name__ == "__main__":
    unittest.main()
