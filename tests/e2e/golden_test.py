#!/usr/bin/env python3
"""Loss curves of the lab are those of tests/e2e/golden/loss_curves.json: a change of learning is noticed, on purpose or not.

usage: golden_test.py DIRECTORY_OF_LONGHAUL              compare
       golden_test.py DIRECTORY_OF_LONGHAUL --rewrite    write the file anew, after a change that is meant
"""
import json
import pathlib
import sys
import tempfile
import unittest

from command import CommandTest

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden/loss_curves.json"
RECIPES = ("d-sgd", "static", "olco3-oc")
# Relative. Kernels of other processors round differently, and a rounding may move an element across the threshold of a
# top-k. OpenBLAS kernels for Prescott, Nehalem and Haswell and ATen without SIMD differ by at most 2.5e-4 here.
TOLERANCE = 2e-3


class LossCurves(CommandTest):
    def curves(self, *settings):
        done = self.longhaul("lab", "smoke", "--recipe", ",".join(RECIPES), "--seed", 1, "--set", "train.stop=steps", *settings,
                             "--out", "out", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = json.loads((self.directory / "out/results.json").read_text())["runs"]
        return {run["recipe"]: [[point["step"], round(point["loss"], 6)] for point in run["evaluations"]] for run in runs}

    def test_are_those_of_the_golden_file(self):
        curves = self.curves()
        golden = json.loads(GOLDEN.read_text())
        self.assertEqual(set(curves), set(golden))
        for recipe, points in golden.items():
            self.assertGreater(len(points), 10)
            self.assertEqual([step for step, _ in curves[recipe]], [step for step, _ in points], recipe)
            for (step, loss), (_, expected) in zip(curves[recipe], points, strict=True):
                self.assertLess(abs(loss / expected - 1), TOLERANCE, f"{recipe}, step {step}: {loss} instead of {expected}")

    def test_notice_a_learning_rate_that_is_2_percent_off(self):
        golden = json.loads(GOLDEN.read_text())
        for recipe, points in self.curves("--set", "train.lr=0.0051").items():
            off = max(abs(loss / expected - 1) for (_, loss), (_, expected) in zip(points, golden[recipe], strict=True))
            self.assertGreater(off, TOLERANCE, recipe)


def rewrite():
    test = LossCurves()
    with tempfile.TemporaryDirectory() as directory:
        test.directory = pathlib.Path(directory)
        curves = test.curves()
    GOLDEN.parent.mkdir(exist_ok=True)
    rows = [f'  "{recipe}": {json.dumps(points)}' for recipe, points in curves.items()]
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    rewrite() if "--rewrite" in sys.argv else unittest.main()
