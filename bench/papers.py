#!/usr/bin/env python3
"""The claims of the four papers beside our own figures: runs the rows of docs/papers.md and rewrites its figures.

usage: papers.py LONGHAUL [--only ROW …] [--work DIR] [--threads N]
       papers.py --draw

A row is a scenario with some recipes. A recipe with several learning rates is tried with each on seed 11, up to the target;
with the rate that gets there first it runs on seeds 1, 2, 3, up to the target. The row `rehearsal` compares a rehearsal
with the lab and needs the machine for itself. Training that DIR (build/papers) holds is not done again, so a study that was
stopped goes on. Figures go to docs/results/papers.json; --draw writes the marked places of docs/papers.md and README.md
anew from that file alone.
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

from compare import merit
from lab_runs import lab_runs
from pictures import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/papers.json"
PAGES = (ROOT / "docs/papers.md", ROOT / "README.md")
SEEDS, SEARCH_SEED = "1,2,3", "11"
KEPT = ("seed", "status", "replicas", "parameters", "steps", "time_to_target_s", "steps_to_target", "step_time_s", "efficiency", "bytes_up",
        "bytes_down", "keep_ratio", "delay_steps", "period_steps", "hidden_share", "exposed_s", "planned_hidden_share", "planned_exposed_s",
        "digest")
REHEARSED = ("step_time_s", "hidden_share", "exposed_s", "late_steps", "predicted_step_time_s", "digest")
PLAIN_SGD = ("train.optimizer=sgd", "train.steps=1000", "target.value=0.78")
NEAR_TEXT = ("link.up=25mbit", "link.down=25mbit", "link.latency=5ms", "train.steps=400", "target.value=2.3")  # C ÷ (H · B) is 1 for H = 8


@dataclasses.dataclass
class Row:
    """Recipes beside each other; each with the learning rates to choose from."""
    name: str
    scenario: str
    settings: tuple
    recipes: dict
    is_rehearsed: bool = False

    def arguments(self):
        return [word for setting in self.settings for word in ("--set", setting)]

    def command(self, verb="lab", seeds=SEEDS):
        """The runs of the row as one command; rates that were searched are written by shown_command()."""
        return ["longhaul", verb, self.scenario, "--seed", seeds, *self.arguments()]


WIDE, LAYERS, TEXT = ("0.01", "0.02", "0.05", "0.1", "0.2"), ("0.02", "0.05", "0.1"), ("0.002", "0.004", "0.008")
STATIC = [f"dd-ef-sgd:keep_ratio={ratio}:delay_steps=4" for ratio in ("0.01", "0.03", "0.1")]
ROWS = (
    Row("deco", "fashion-wan", PLAIN_SGD, {"d-sgd": WIDE, "deco": WIDE}),
    Row("static", "fashion-varying", PLAIN_SGD, {recipe: WIDE[:3] for recipe in ("deco", *STATIC)}),
    # Rates of docs/local_steps.md, searched on the same seed.
    Row("olco3", "fashion-wan", (), {"d-sgd": ("0.02",), "olco3-oc": ("0.01",), "sparseloco": ("0.02",)}),
    Row("olco3-text", "text-wan", (), {"d-sgd": ("0.008",), "olco3-oc": ("0.004",)}),
    Row("dreamddp", "fashion-layers", (), {recipe: LAYERS for recipe in (
        "wfbp", "local-sgd", "local-sgd-parts", "plsgd-enp", "dreamddp", "dreamddp-late")}),
    Row("dreamddp-text", "text-wan", NEAR_TEXT, {recipe: TEXT for recipe in ("wfbp", "local-sgd", "dreamddp")}),
    Row("rehearsal", "fashion-layers", ("train.steps=160", "train.stop=steps"),
        {"wfbp": ("0.02",), "local-sgd": ("0.02",), "dreamddp": ("0.02",)}, is_rehearsed=True),
)


def kept(run, keys=KEPT):
    return {key: run.get(key) for key in keys}


class Study:
    def __init__(self, options):
        self.options = options

    def lab(self, row, name, recipe, seeds, *settings):
        out = self.options.work / row.name / name
        return lab_runs(self.options.longhaul, row.scenario, out, "--recipe", recipe, "--seed", seeds, *row.arguments(), *settings,
                        threads=self.options.threads)

    def recipe(self, row, recipe, rates):
        search = {}
        with_rate = lambda rate: f"{recipe}:lr={rate}"
        until_target = () if row.is_rehearsed else ("--set", "train.stop=target")
        for rate in rates if len(rates) > 1 else ():
            search[rate] = self.lab(row, f"{recipe}-search-{rate}", with_rate(rate), SEARCH_SEED, *until_target)[0]
            print(f"{row.name}: {recipe}, rate {rate}, seed {SEARCH_SEED}: {shown_time(search[rate])}", flush=True)
        rate = min(search, key=lambda one: merit(search[one])) if search else rates[0]
        seeds = "1" if row.is_rehearsed else SEEDS
        runs = self.lab(row, f"{recipe}-{rate}", with_rate(rate), seeds, *until_target)
        print(f"{row.name}: {recipe}, rate {rate}: {', '.join(map(shown_time, runs))}", flush=True)
        return {"lr": rate, "search": {one: run["time_to_target_s"] for one, run in search.items()}, "runs": [kept(run) for run in runs]}

    def rehearse(self, row):
        out = self.options.work / row.name / "rehearsed"
        load = out / "load.json"
        recipes = ",".join(f"{recipe}:lr={rates[0]}" for recipe, rates in row.recipes.items())
        if not load.exists():
            out.mkdir(parents=True, exist_ok=True)
            before = os.getloadavg()[0]
            done = subprocess.run([self.options.longhaul, "rehearse", row.scenario, "--recipe", recipes, "--seed", "1", *row.arguments(),
                                   "--out", str(out)], check=False)
            if done.returncode != 0:
                sys.exit(f"the rehearsal ended with {done.returncode}")
            load.write_text(json.dumps({"before": before}))
        found = json.loads((out / "results.json").read_text())["runs"]
        return {"load_before": json.loads(load.read_text())["before"],
                "runs": {run["recipe"].partition(":")[0]: kept(run, REHEARSED) for run in found}}

    def row(self, row):
        version = subprocess.run([self.options.longhaul, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
        result = {"version": version, "machine": machine(),
                  "recipes": {recipe: self.recipe(row, recipe, rates) for recipe, rates in row.recipes.items()}}
        if row.is_rehearsed:
            result["rehearsed"] = self.rehearse(row)
        return result


def shown_time(run):
    return f"not reached in {run['steps']} steps" if run["time_to_target_s"] is None else f"{run['time_to_target_s']:.1f} s"


def median_of(found, key):
    """Over seeds; what was not reached counts as later than all others. None: not known."""
    values = [run[key] for run in found["runs"]]
    if None in values and not key.endswith(("target_s", "to_target")):
        return None
    middle = statistics.median(math.inf if value is None else value for value in values)
    return None if math.isinf(middle) else middle


def factor(base, of, key="time_to_target_s"):
    """How many times sooner, by medians over seeds, and the least and the most by seed. None: a median is missing."""
    if median_of(base, key) is None or median_of(of, key) is None:
        return None
    by_seed = [a[key] / b[key] for a, b in zip(base["runs"], of["runs"]) if a[key] and b[key]]
    return median_of(base, key) / median_of(of, key), min(by_seed), max(by_seed)


def factor_text(base, of, key="time_to_target_s"):
    found = factor(base, of, key)
    return "target not reached" if found is None else f"{found[0]:.2f} ({found[1]:.2f} to {found[2]:.2f} by seed)"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def listed(runs, key, digits=0):
    return ", ".join("not reached" if run[key] is None else f"{run[key]:.{digits}f}" for run in runs)


def bytes_per_step(found):
    """Up, by parameter, step and replica."""
    return statistics.median(run["bytes_up"] / run["steps"] / run["replicas"] / run["parameters"] for run in found["runs"])


def lab_table(recipes):
    is_by_layer = any(median_of(found, "planned_hidden_share") is not None for found in recipes.values())
    columns = ["recipe", "rate", "time to target, s", "steps", "step", "computing", "bytes up per parameter and step"]
    columns += ["hidden, measured", "planned"] if is_by_layer else []
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, found in recipes.items():
        cells = [f"`{name}`", found["lr"], listed(found["runs"], "time_to_target_s", 1), listed(found["runs"], "steps_to_target"),
                 f"{1e3 * median_of(found, 'step_time_s'):.0f} ms", percent(median_of(found, "efficiency"), 0), f"{bytes_per_step(found):.2g}"]
        if is_by_layer:
            cells += [percent(median_of(found, "hidden_share")), percent(median_of(found, "planned_hidden_share"))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def rehearsal_table(result):
    lines = ["| recipe | step, lab | step, rehearsal | off by | hidden, lab | hidden, rehearsal | late steps | same model |", "|---|---|---|---|---|---|---|---|"]
    for name, found in result["recipes"].items():
        lab, real = found["runs"][0], result["rehearsed"]["runs"][name]
        lines.append(f"| `{name}` | {1e3 * lab['step_time_s']:.1f} ms | {1e3 * real['step_time_s']:.1f} ms "
                     f"| {100 * (real['step_time_s'] / lab['step_time_s'] - 1):+.1f} % | {percent(lab['hidden_share'])} "
                     f"| {percent(real['hidden_share'])} | {real['late_steps']} | {'yes' if lab['digest'] == real['digest'] else 'no'} |")
    return [*lines, "", f"Load of the machine before the rehearsal (one minute, {result['machine']}): {result['rehearsed']['load_before']:.2f}."]


def command_of(row, result):
    recipes = ",".join(f"{recipe}:lr={found['lr']}" for recipe, found in result["recipes"].items())
    verb = "rehearse" if row.is_rehearsed else "lab"
    words = [*row.command(verb, "1" if row.is_rehearsed else SEEDS), *(() if row.is_rehearsed else ("--set", "train.stop=target"))]
    return " ".join([*words[:3], "--recipe", recipes, *words[3:]])


def row_text(row, results):
    result = results.get(row.name)
    if result is None:
        return f"Not run yet: `make papers` or `bench/papers.py build/release/bin/longhaul --only {row.name}`."
    lines = rehearsal_table(result) if row.is_rehearsed else lab_table(result["recipes"])
    searched = [f"`{name}` {', '.join(f'{rate}: ' + ('–' if time is None else f'{time:.1f} s') for rate, time in found['search'].items())}"
                for name, found in result["recipes"].items() if found["search"]]
    if searched:
        lines += ["", f"Search on seed {SEARCH_SEED}, time to the target by rate: {'; '.join(searched)}."]
    return "\n".join([*lines, "", f"`{command_of(row, result)}` ({result['version'].partition(',')[0]}, {result['machine']})"])


def of_static(recipes):
    """Against each fixed plan: the best of them is known in hindsight only."""
    ratio = lambda name: float(name.split("keep_ratio=")[1].split(":")[0])
    return "times sooner than a fixed ratio of " + "; ".join(
        f"{percent(ratio(name), 0)}: {factor_text(recipes[name], recipes['deco'])}" for name in STATIC)


def of_olco3(recipes):
    sync, ours = recipes["d-sgd"], recipes["olco3-oc"]
    return (f"{factor_text(ours, sync, 'steps_to_target')} times the steps, 1/{bytes_per_step(sync) / bytes_per_step(ours):.0f} of the bytes up a step, "
            f"computing {percent(median_of(ours, 'efficiency'), 0)} of the time in place of {percent(median_of(sync, 'efficiency'), 0)}")


def of_sparseloco(recipes):
    ours = recipes["sparseloco"]
    return (f"{bytes_per_step(ours):.2g} bytes and computing {percent(median_of(ours, 'efficiency'))} of the time; "
            f"target reached by {sum(run['time_to_target_s'] is not None for run in ours['runs'])} of {len(ours['runs'])} seeds")


def over(base, of):
    return lambda recipes: f"{factor_text(recipes[base], recipes[of])} times sooner"


# Paper, claim, row, our figure from the recipes of the row.
CLAIMS = (
    ("DeCo-SGD", "up to 5.07 times sooner than D-SGD", "deco", over("d-sgd", "deco")),
    ("DeCo-SGD", "1.37 times sooner than a static strategy", "static", of_static),
    ("DreamDDP", "1.49 to 3.91 times sooner than S-SGD with overlap", "dreamddp", over("wfbp", "dreamddp")),
    ("DreamDDP", "the same", "dreamddp-text", over("wfbp", "dreamddp")),
    ("DreamDDP", "1.16 to 1.56 times sooner than local SGD of the same period", "dreamddp",
     lambda recipes: over("local-sgd", "dreamddp")(recipes) + f"; than local SGD sent in parts {factor_text(recipes['local-sgd-parts'], recipes['dreamddp'])}"),
    ("DreamDDP", "the same", "dreamddp-text", over("local-sgd", "dreamddp")),
    ("OLCO3", "the rate of synchronous SGD, at a fraction of bytes and waiting", "olco3", of_olco3),
    ("OLCO3", "the same", "olco3-text", of_olco3),
    ("SparseLoCo", "9.1e-4 bytes per parameter and step, 94.5 % utilisation", "olco3", of_sparseloco),
)


def summary(results):
    lines = ["| paper | claim | ours | row |", "|---|---|---|---|"]
    for paper, claim, row, ours in CLAIMS:
        found = ours(results[row]["recipes"]) if row in results else "not run yet"
        lines.append(f"| {paper} | {claim} | {found} | [{row}](#{row}) |")
    for claim in ("up to 13 % more accuracy than FedAvg", "3.37 times sooner than FedAvg with Top-K"):
        lines.append(f"| BCRS and OPWA | {claim} | not built yet | |")
    return "\n".join(lines)


def readme_text(results):
    if "deco" not in results:
        return "DeCo-SGD as published is plain SGD: not run yet."
    recipes = results["deco"]["recipes"]
    sync, ours = (median_of(recipes[name], "time_to_target_s") for name in ("d-sgd", "deco"))
    return (f"DeCo-SGD as published (plain SGD, no momentum) reaches 78 % in {ours:.1f} s where D-SGD needs {sync:.0f} s: **{sync / ours:.1f} times "
            f"sooner**; the paper has up to 5.07.\nEvery claim of the papers beside our figure, misses included: [docs/papers.md](docs/papers.md).")


def outputs(results):
    """Page → its text with what stands between markers written anew."""
    places = {"summary": summary(results), "readme": readme_text(results), **{row.name: row_text(row, results) for row in ROWS}}
    pages = {}
    for page in PAGES:
        write = lambda match: f"{match[1]}{places[match[2]]}\n{match[3]}"
        pages[page] = re.sub(r"(<!-- papers:([\w-]+) -->\n).*?(<!-- /papers:\2 -->)", write, page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return pages


def written(results):
    """As JSON with a line per run: differences are readable."""
    return re.sub(r"\{[^{}]*\}", lambda run: " ".join(run[0].split()), json.dumps(results, indent=1)) + "\n"


def draw(results):
    for page, text in outputs(results).items():
        page.write_text(text, encoding="utf-8")
        print(page.relative_to(ROOT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul", nargs="?", type=pathlib.Path)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=[row.name for row in ROWS], metavar="ROW")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/papers")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.draw == (options.longhaul is not None):
        parser.error("expected either LONGHAUL or --draw")
    for row in () if options.draw else ROWS:
        if options.only and row.name not in options.only:
            continue
        found = Study(options).row(row)
        results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(written({**results, row.name: found}), encoding="utf-8")
    draw(json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {})


if __name__ == "__main__":
    main()
