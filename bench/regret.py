#!/usr/bin/env python3
"""How far `auto` stays behind the best fixed plan in hindsight, over many courses of bandwidth.

usage: regret.py LONGHAUL OUT [--scenario NAME] [--seed 1,2,3] [--set table.key=value …] [--recorded FILE.csv:COUNT …]

Trains a grid of fixed plans once for each seed (FIXED/seed-N; kept and reused, also by other studies: how a fixed plan
learns does not depend on the links), then, for each trace, times them on it by replay and runs `auto`. A recorded
file has rows of trace,t_s,mbps; the COUNT traces that are spread evenly over the file are taken. Prints a Markdown
table and writes OUT/regret.json. What is there already is not run again.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import sys

from lab_runs import lab_runs

SECONDS = 120  # of a made trace; it repeats
PLANS = ",".join(f"static:keep_ratio={ratio}:delay_steps={delay}"
                 for ratio in ("0.0003", "0.001", "0.003", "0.01", "0.03", "0.1") for delay in (2, 3, 4, 6))
UNTIL_TARGET = ("--set", "train.stop=target", "--set", "train.steps=1000")


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


class Study:
    def __init__(self, options):
        self.options = options
        self.seeds = options.seed.split(",")
        self.settings = [word for setting in options.set for word in ("--set", setting)]
        self.fixed = options.fixed or options.out / "fixed"

    def lab(self, out, *arguments):
        return lab_runs(self.options.longhaul, self.options.scenario, out, *arguments, threads=self.options.threads)

    def train_fixed(self, seed):
        self.lab(self.fixed / f"seed-{seed}", "--recipe", PLANS, "--seed", seed, *UNTIL_TARGET)

    def judge(self, trace, out):
        """Mean times to the target over the seeds, by recipe; only of those that reach it on every seed."""
        links = (*self.settings, "--set", f"link.trace={trace}")
        runs = []
        for seed in self.seeds:
            runs += self.lab(out / f"auto-{seed}", "--recipe", "auto", "--seed", seed, *UNTIL_TARGET, *links)
            runs += self.lab(out / f"fixed-{seed}", "--replay", str(self.fixed / f"seed-{seed}"), *links)
        times = {}
        for run in runs:
            times.setdefault(run["recipe"], []).append(run["time_to_target_s"])
        return {recipe: sum(found) / len(found) for recipe, found in times.items()
                if len(found) == len(self.seeds) and None not in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scenario", default="fashion-wan")
    parser.add_argument("--seed", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], metavar="table.key=value")
    parser.add_argument("--fixed", type=pathlib.Path, help="where the fixed plans are (default: OUT/fixed)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--traces", default="", help="only those whose name contains this")
    parser.add_argument("--recorded", action="append", default=[], metavar="FILE.csv:COUNT")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    study = Study(options)
    for seed in study.seeds:
        study.train_fixed(seed)
    traces = list(made_traces())
    for recorded in options.recorded:
        path, _, count = recorded.rpartition(":")
        traces.extend(recorded_traces(path, int(count)))
    results = []
    print("| trace | variation | best fixed plan | auto | regret |\n|---|---|---|---|---|", flush=True)
    for i, (name, rows) in enumerate(traces):
        if options.traces not in name:
            continue
        file = (options.out / f"trace{i}.csv").resolve()
        file.write_text("t_s,mbps\n" + "".join(f"{time:.3f},{rate:.6f}\n" for time, rate in rows))
        times = study.judge(file, options.out / f"trace{i}")
        auto = times.pop("auto", None)
        best = min(times, key=times.get)
        regret = None if auto is None else auto / times[best] - 1
        results.append({"trace": name, "variation": variation(rows), "best_fixed": best, "best_fixed_s": times[best],
                        "auto_s": auto, "regret": regret})
        shown = "not reached | " if auto is None else f"{auto:.1f} s | {100 * regret:+.1f} %"
        print(f"| {name} | {variation(rows):.2f} | {times[best]:.1f} s "
              f"({best.removeprefix('static:').replace(':', ', ')}) | {shown} |", flush=True)
    (options.out / "regret.json").write_text(json.dumps(results, indent=1) + "\n")
    regrets = [result["regret"] for result in results]
    if None in regrets:
        sys.exit("regret.py: auto missed the target somewhere")
    print(f"\n{len(regrets)} traces: mean regret {100 * sum(regrets) / len(regrets):+.1f} %, "
          f"worst {100 * max(regrets):+.1f} %, best {100 * min(regrets):+.1f} %")


if __name__ == "__main__":
    main()
