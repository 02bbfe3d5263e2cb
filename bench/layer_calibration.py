#!/usr/bin/env python3
"""How `auto` comes to choose schedules of layers: what they cost in steps, and how good the choice is.

usage: layer_calibration.py LONGHAUL OUT fit     [--scenario NAME,…] [--seed 1,2,3] [--periods 2,4,8,16] [--set table.key=value …]
       layer_calibration.py LONGHAUL OUT choices [--scenario NAME]
       layer_calibration.py LONGHAUL OUT regret  [--scenario NAME] [--seed 1] [--set table.key=value …]

fit: trains d-sgd, dreamddp and dreamddp-late with each period until the target, and fits N = 1 + a·τ + d·(H - 1) to their steps
over those of d-sgd (least squares over all runs, the mean of d-sgd's seeds being 1). The row is kLayers of plan/iteration_model.cpp.
choices: what auto chooses at the start, and the time of a step that it predicts, on links from slow to fast and near to far.
regret: at some of these links, the time to the target of auto against the best of all fixed recipes. Those are trained once, and
auto on each link. Recipes that send the whole model are timed by replay. The time of a recipe by layer is its steps to the target
times the length of a step, which 24 steps on each link show. (The schedules of dreamddp follow the link, so its steps may differ.)

Links are given by α, the dense updates that a step carries, and β, the round trip in steps. A model of 124M parameters in steps of
1 s has α 0.0025 at 10 Mbit/s and 2.5 at 10 Gbit/s. What is there already in OUT is not run again.
"""
import argparse
import json
import pathlib
import statistics

from lab_runs import lab_runs

UNTIL_TARGET = ("--set", "train.stop=target")
STEP_S = 0.15
PARAMETERS = 101_122
ALPHAS = (0.0025, 0.025, 0.25, 2.5, 25)
BETAS = (0.01, 0.05, 0.2)
POINTS = ((0.025, 0.01), (0.25, 0.01), (0.25, 0.2), (2.5, 0.01), (2.5, 0.2), (25, 0.01))
WHOLE = ("d-sgd", "d-sgd-bf16", "d-ef-sgd", "dd-sgd", "dd-ef-sgd", "dga", "static", "local-sgd", "cocod-sgd", "pipe-sgd",
         "overlap-local-sgd", "olco3-oc", "olco3-tc", "olco3-vq", "diloco", "streaming-diloco", "sparseloco", "cocktail")
PARTS = ("wfbp", "local-sgd-parts", "plsgd-enp", "dreamddp", "dreamddp-late")
PERIOD = 8  # of the recipes by layer


def link(alpha, beta):
    """The settings of such a link."""
    rate = alpha * 4 * PARAMETERS * 8 / STEP_S
    words = (f"link.up={rate:.0f}bit", f"link.down={rate:.0f}bit", f"link.latency={1e3 * beta * STEP_S / 2:.4f}ms")
    return [word for setting in words for word in ("--set", setting)]


def steps_by_recipe(options, scenario):
    recipes = [f"{name}:period_steps={period}" for period in options.periods.split(",") for name in options.recipes.split(",")]
    recipes.append("d-sgd")
    settings = [word for setting in options.set for word in ("--set", setting)]
    found = {}
    for seed in options.seed.split(","):
        for run in lab_runs(options.longhaul, scenario, options.out / f"fit-{scenario}-{seed}", "--recipe", ",".join(recipes),
                            "--seed", seed, *UNTIL_TARGET, *settings, threads=options.threads):
            found.setdefault(run["recipe"], []).append(run)
    return found


def fit(options):
    points = []
    print("| scenario | recipe | H | τ | steps to the target | over d-sgd |\n|---|---|---|---|---|---|")
    for scenario in options.scenario.split(","):
        found = steps_by_recipe(options, scenario)
        base = statistics.mean(run["steps_to_target"] for run in found["d-sgd"])
        for recipe, runs in found.items():
            steps = [run["steps_to_target"] for run in runs]
            if None in steps:
                print(f"| {scenario} | {recipe} | | | not reached on every seed | |")
                continue
            period = runs[0]["period_steps"]
            delays = sorted({run["delay_steps"] for run in runs})
            if recipe != "d-sgd":
                points += [(run["delay_steps"], period - 1, run["steps_to_target"] / base - 1) for run in runs]
            print(f"| {scenario} | {recipe.split(':')[0]} | {period} | {', '.join(map(str, delays))} | "
                  f"{', '.join(f'{one:.0f}' for one in steps)} | {statistics.mean(steps) / base:.2f} |")
    tt = sum(t * t for t, _, _ in points)
    th = sum(t * h for t, h, _ in points)
    hh = sum(h * h for _, h, _ in points)
    ty = sum(t * y for t, _, y in points)
    hy = sum(h * y for _, h, y in points)
    determinant = tt * hh - th * th
    per_step, drift = (0, hy / hh) if determinant == 0 else ((ty * hh - hy * th) / determinant, (hy * tt - ty * th) / determinant)
    off = statistics.mean((y - per_step * t - drift * h) ** 2 for t, h, y in points) ** 0.5
    print(f"\n{len(points)} runs: a = {per_step:.4f} a step of delay, d = {drift:.4f} a step of the period; "
          f"the runs are {off:.2f} off, root mean square")
    (options.out / "fit.json").write_text(json.dumps({"per_step": per_step, "drift": drift, "points": points}, indent=1) + "\n")


def plan_text(plan):
    text = f"δ {plan['keep_ratio']:.3g}, τ {plan['delay_steps']}, H {plan['period_steps']}"
    return text + (", by layer" if plan["schedule"] else "")


def choices(options):
    print("| α, β | auto's first plan | predicted step |\n|---|---|---|")
    for alpha in ALPHAS:
        for beta in BETAS:
            run, = lab_runs(options.longhaul, options.scenario, options.out / f"choice-{alpha}-{beta}", "--recipe", "auto",
                            "--set", "train.steps=500", "--set", "train.stop=target", "--set", "target.value=0.01",
                            *link(alpha, beta), threads=options.threads)
            first = run["plans"][0]
            print(f"| {alpha:g}, {beta:g} | {plan_text(first)} | {1e3 * first['predicted_step_time_s']:.0f} ms |", flush=True)


class Regret:
    def __init__(self, options, seed):
        self.options = options
        self.seed = seed
        self.settings = [word for setting in options.set for word in ("--set", setting)]

    def lab(self, out, recipes, *words):
        """The runs of these recipes, in their order."""
        options = self.options
        return lab_runs(options.longhaul, options.scenario, options.out / f"regret-{self.seed}" / out, "--recipe", ",".join(recipes),
                        "--seed", self.seed, *self.settings, *words, threads=options.threads)

    def train(self):
        self.lab("whole", WHOLE, *UNTIL_TARGET)
        self.steps = {run["recipe"]: run["steps_to_target"] for run in self.lab("parts", PARTS, *UNTIL_TARGET)}

    def times_at(self, alpha, beta):
        """Seconds to the target by recipe, and the run of auto."""
        options, place, words = self.options, f"at-{alpha:g}-{beta:g}", link(alpha, beta)
        runs = lab_runs(options.longhaul, options.scenario, options.out / f"regret-{self.seed}" / place / "whole", "--replay",
                        str(options.out / f"regret-{self.seed}" / "whole"), *self.settings, *words)
        times = {run["recipe"]: run["time_to_target_s"] for run in runs}
        if alpha * PERIOD >= 1:  # else their line alone takes longer than computing, and compression does not
            for run in self.lab(f"{place}/parts", PARTS, "--set", f"train.steps={3 * PERIOD}", "--set", "train.stop=steps", *words):
                steps = self.steps[run["recipe"]]
                times[run["recipe"]] = None if steps is None else steps * run["virtual_s"] / run["steps"]
        auto, = self.lab(f"{place}/auto", ("auto",), *UNTIL_TARGET, *words)
        return {recipe: time for recipe, time in times.items() if time is not None}, auto


def regret(options):
    results = []
    print("| α, β | auto | time | best fixed | time | regret |\n|---|---|---|---|---|---|", flush=True)
    for seed in options.seed.split(","):
        study = Regret(options, seed)
        study.train()
        for alpha, beta in POINTS:
            times, run = study.times_at(alpha, beta)
            best, auto = min(times, key=times.get), run["time_to_target_s"]
            behind = None if auto is None else auto / times[best] - 1
            results.append({"alpha": alpha, "beta": beta, "seed": seed, "auto_s": auto, "plan": plan_text(run), "times_s": times,
                            "best": best, "regret": behind})
            shown = ("not reached", "") if auto is None else (f"{auto:.1f} s", f"{100 * behind:+.1f} %")
            print(f"| {alpha:g}, {beta:g} | {plan_text(run)} | {shown[0]} | {best} | {times[best]:.1f} s | {shown[1]} |", flush=True)
            (options.out / "layer_regret.json").write_text(json.dumps(results, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("what", choices=("fit", "choices", "regret"))
    parser.add_argument("--scenario", default="fashion-layers")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--periods", default="2,4,8,16")
    parser.add_argument("--recipes", default="dreamddp,dreamddp-late")
    parser.add_argument("--set", action="append", default=[], metavar="table.key=value")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    {"fit": fit, "choices": choices, "regret": regret}[options.what](options)


if __name__ == "__main__":
    main()
