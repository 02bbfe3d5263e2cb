#!/usr/bin/env python3
"""Recipes beside each other on one scenario, each with the best learning rate of one grid.

usage: compare.py LONGHAUL OUT SCENARIO --recipes a,b,… --lr 0.005,0.01,… [--seed 1,2,3] [--search-seed 11]
                  [--set table.key=value …] [--threads N]

Every recipe is tried with every rate on one seed, up to the target; the rate that gets there first is its rate (none
does: the one with the least loss). With it the recipe runs on the other seeds, for all steps of the scenario. Prints a
Markdown table, the search first, and writes OUT/compare.json. What is there already is not run again: a study that was
stopped goes on.
"""
import argparse
import json
import math
import pathlib

from lab_runs import lab_runs


def merit(run):
    """The less, the better."""
    time, loss = run["time_to_target_s"], run["final_loss"]
    return (math.inf if time is None else time, math.inf if loss is None else loss)


def shown(value, digits):
    return "–" if value is None else f"{value:.{digits}f}"


def three_digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


class Comparison:
    def __init__(self, options):
        self.options = options
        self.settings = [word for setting in options.set for word in ("--set", setting)]

    def runs(self, name, recipe, seeds, *settings):
        return lab_runs(self.options.longhaul, self.options.scenario, self.options.out / name, "--recipe", recipe,
                        "--seed", seeds, *self.settings, *settings, threads=self.options.threads)

    def search(self, recipe):
        """Rate → run on the search seed."""
        return {rate: self.runs(f"{recipe}-search-{rate}", f"{recipe}:lr={rate}", self.options.search_seed,
                                "--set", "train.stop=target")[0]
                for rate in self.options.lr.split(",")}

    def row(self, recipe):
        tried = self.search(recipe)
        rate = min(tried, key=lambda one: merit(tried[one]))
        runs = self.runs(f"{recipe}-{rate}", f"{recipe}:lr={rate}", self.options.seed, "--set", "train.stop=steps")
        return {"recipe": recipe, "lr": rate, "runs": runs,
                "search": {one: run["time_to_target_s"] for one, run in tried.items()}}


def table_row(row):
    runs = row["runs"]
    many = lambda key, digits=0: ", ".join(shown(run[key], digits) for run in runs)
    megabytes = lambda key: three_digits(sum(run[key] for run in runs) / len(runs) / 1e6)
    return (f"| `{row['recipe']}` | {row['lr']} | {many('time_to_target_s', 1)} | {many('steps_to_target')} "
            f"| {1000 * runs[0]['step_time_s']:.0f} ms | {megabytes('bytes_up')}, {megabytes('bytes_down')} "
            f"| {many('final_loss', 3)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("scenario")
    parser.add_argument("--recipes", required=True)
    parser.add_argument("--lr", required=True)
    parser.add_argument("--seed", default="1,2,3")
    parser.add_argument("--search-seed", default="11")
    parser.add_argument("--set", action="append", default=[], metavar="table.key=value")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(options)
    rows = []
    print("| recipe | lr | time (s) | steps | step | MB up, down | final loss |\n|---|---|---|---|---|---|---|", flush=True)
    for recipe in options.recipes.split(","):
        rows.append(comparison.row(recipe))
        print(table_row(rows[-1]), flush=True)
    print(f"\n| recipe | {' | '.join(options.lr.split(','))} |\n|---|{'---|' * len(options.lr.split(','))}")
    for row in rows:
        print(f"| `{row['recipe']}` | {' | '.join(shown(time, 1) for time in row['search'].values())} |")
    (options.out / "compare.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
