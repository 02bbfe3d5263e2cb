#!/usr/bin/env python3
"""How far `auto` stays behind the best fixed plan in hindsight, over many courses of bandwidth.

usage: regret.py LONGHAUL OUT [--scenario NAME] [--seed 1,2,3] [--recorded FILE.csv:COUNT …] [--quick]

Trains the grid of fixed plans once (OUT/fixed; kept and reused), then, for each trace, times them on it by replay
and runs `auto` and the planner that knows the links (not with --quick: half the time). A recorded file has rows of trace,t_s,mbps; the COUNT traces
that are spread evenly over the file are taken. Prints a Markdown table and writes OUT/regret.json.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import subprocess
import sys

SECONDS = 120  # of a made trace; it repeats


def rows_of(rate, every=0.5):
    return [(i * every, rate(i * every)) for i in range(int(SECONDS / every))]


def markov(seed, levels, dwell_s):
    """Jumps between levels after exponential times."""
    lot = random.Random(seed)
    rows, time, level = [], 0.0, lot.choice(levels)
    while time < SECONDS:
        rows.append((time, level))
        time += max(0.1, lot.expovariate(1 / dwell_s))
        level = lot.choice([other for other in levels if other != level])
    return rows


def made_traces():
    """Rates are relative: the lab scales each trace to the mean of the scenario's links."""
    yield "constant", rows_of(lambda t: 1)
    yield "step down to a quarter at 8 s", rows_of(lambda t: 4 if t < 8 else 1)
    yield "step up fourfold at 8 s", rows_of(lambda t: 1 if t < 8 else 4)
    yield "step down to a tenth from 6 to 12 s", rows_of(lambda t: 0.1 if 6 <= t < 12 else 1)
    yield "ramp down to a tenth in 30 s", rows_of(lambda t: max(0.1, 1 - 0.03 * t))
    yield "ramp up tenfold in 30 s", rows_of(lambda t: min(1, 0.1 + 0.03 * t))
    yield "square, 1 : 8, every 4 s", rows_of(lambda t: 8 if t % 8 < 4 else 1)
    yield "square, 1 : 3, every 10 s", rows_of(lambda t: 3 if t % 20 < 10 else 1)
    yield "sine, 1 : 9, period 6 s", rows_of(lambda t: 1 + 0.8 * math.sin(2 * math.pi * t / 6), 0.25)
    yield "sine, 1 : 3, period 20 s", rows_of(lambda t: 1 + 0.5 * math.sin(2 * math.pi * t / 20), 0.25)
    for seed, dwell in ((1, 2), (2, 2), (3, 5), (4, 5)):
        yield f"Markov, 1 : 16, dwell {dwell} s, seed {seed}", markov(seed, (1, 4, 16), dwell)


def recorded_traces(path, count):
    traces = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            traces.setdefault(row["trace"], []).append((float(row["t_s"]), float(row["mbps"])))
    # At least a minute long, and alive: a trace whose mean is next to nothing says nothing when scaled.
    names = sorted(name for name, rows in traces.items()
                   if rows[-1][0] - rows[0][0] >= 60 and sum(rate for _, rate in rows) / len(rows) > 0.2)
    for i in range(count):
        name = names[(2 * i + 1) * len(names) // (2 * count)]
        start = traces[name][0][0]
        yield f"{pathlib.Path(path).stem}: {name}", [(time - start, rate) for time, rate in traces[name]]


def variation(rows):
    """Standard deviation over mean of the rate in the first 30 s."""
    end = rows[-1][0]
    rates = [next(rate for time, rate in reversed(rows) if time <= (i * 0.1) % max(end, 0.1)) for i in range(300)]
    mean = sum(rates) / len(rates)
    return math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


def lab(longhaul, *arguments):
    done = subprocess.run([longhaul, "lab", *arguments, "--json"], stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:
        sys.exit(f"regret.py: longhaul lab {' '.join(arguments)} ended with {done.returncode}")
    return json.loads(done.stdout)


def quick_oracle(longhaul, common, fixed, trace, out):
    """What `lab --oracle` says, without the planner that knows the links."""
    setting = ("--set", f"link.trace={trace}")
    arguments = [argument for argument in common if argument != "--oracle"]
    runs = lab(longhaul, *arguments, "--recipe", "auto", "--set", "train.stop=target", *setting, "--out", f"{out}-auto")["runs"]
    runs += lab(longhaul, common[0], "--replay", str(fixed), *setting, "--out", f"{out}-fixed")["runs"]
    seeds = {run["seed"] for run in runs if run["recipe"] == "auto"}
    times = {}
    for run in runs:
        if run["seed"] in seeds:
            times.setdefault(run["recipe"], []).append(run["time_to_target_s"])
    means = {recipe: sum(all_times) / len(seeds) for recipe, all_times in times.items()
             if len(all_times) == len(seeds) and None not in all_times}
    auto = means.pop("auto", None)
    best = min(means, key=means.get)
    return {"best_fixed": {"recipe": best, "time_s": means[best]}, "clairvoyant": {"recipe": "", "time_s": None},
            "judged": [{"recipe": "auto", "time_s": auto, "regret": auto and auto / means[best] - 1}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scenario", default="fashion-wan")
    parser.add_argument("--seed", default="1,2,3")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--recorded", action="append", default=[], metavar="FILE.csv:COUNT")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    common = (options.scenario, "--seed", options.seed, "--oracle")
    fixed = options.out / "fixed"
    if not (fixed / "results.json").exists():
        lab(options.longhaul, *common, "--out", str(fixed))
    traces = list(made_traces())
    for recorded in options.recorded:
        path, _, count = recorded.rpartition(":")
        traces.extend(recorded_traces(path, int(count)))
    results = []
    print("| trace | variation | best fixed plan | clairvoyant | auto | regret |\n|---|---|---|---|---|---|", flush=True)
    for i, (name, rows) in enumerate(traces):
        file = (options.out / f"trace{i}.csv").resolve()
        file.write_text("t_s,mbps\n" + "".join(f"{time:.3f},{rate:.6f}\n" for time, rate in rows))
        out = str(options.out / f"trace{i}")
        if options.quick:
            oracle = quick_oracle(options.longhaul, common, fixed, file, out)
        else:
            oracle = lab(options.longhaul, *common, "--replay", str(fixed), "--set", f"link.trace={file}",
                         "--out", out)["oracle"]
        best, clairvoyant, auto = oracle["best_fixed"], oracle["clairvoyant"], oracle["judged"][-1]
        results.append({"trace": name, "variation": variation(rows), **oracle})
        settings = best["recipe"].removeprefix("static:").replace(":", ", ")
        show = lambda value: "-" if value is None else f"{value:.1f} s"
        regret = "" if auto["regret"] is None else f"{100 * auto['regret']:+.1f} %"
        print(f"| {name} | {variation(rows):.2f} | {show(best['time_s'])} ({settings}) | {show(clairvoyant['time_s'])} "
              f"| {show(auto['time_s'])} | {regret} |", flush=True)
    (options.out / "regret.json").write_text(json.dumps(results, indent=1) + "\n")
    regrets = [result["judged"][-1]["regret"] for result in results]
    if None in regrets:
        sys.exit("regret.py: auto or every fixed plan missed the target somewhere")
    print(f"\n{len(regrets)} traces: mean regret {100 * sum(regrets) / len(regrets):+.1f} %, "
          f"worst {100 * max(regrets):+.1f} %, best {100 * min(regrets):+.1f} %")


if __name__ == "__main__":
    main()
