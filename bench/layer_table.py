#!/usr/bin/env python3
"""The time of a step by layer schedule: every built-in profile over three links, and the gains of the published setting.

usage: layer_table.py LONGHAUL [--page docs/layers.md]

Asks `longhaul plan --profile` for every figure. Prints Markdown, or puts it between the two comments of the page.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import subprocess
import tempfile

PROFILES = ("resnet-18", "resnet-50", "gpt2-124m", "llama-175m", "llama-1.3b")
PERIODS = (2, 4, 5, 8, 10, 16, 20)
RATES = ("100mbit", "1gbit", "10gbit")
LATENCY = "5ms"
LOADS = (0.8, 0.9, 1, 1.1, 1.25)  # C/(H·B) of the one-way study
EVEN_LAYERS = 48
BEGIN, END = "<!-- tables: bench/layer_table.py -->\n", "<!-- end of tables -->\n"
# Column → how `plan` is asked.
COLUMNS = {
    "local-sgd": ("--recipe", "local-sgd"),
    "local-sgd-parts": ("--recipe", "local-sgd-parts"),
    "plsgd-enp": ("--recipe", "plsgd-enp"),
    "consecutive": ("--contiguous",),
    "dreamddp": (),
    "dreamddp-late": ("--recipe", "dreamddp-late"),
}
PUBLISHED = ("--layers", "whole", "--contiguous")
WHOLE_LAYERS = ("--layers", "whole")
IN_PIECES = ("--layers", "cut")


class Plans:
    """Answers of `longhaul plan --profile`, each asked once; several at a time."""

    def __init__(self, program):
        self.program = program
        self.crew = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.answers = {}

    def ask(self, *words):
        """A promise of the plan as printed."""
        words = tuple(map(str, words))
        if words not in self.answers:
            self.answers[words] = self.crew.submit(self.run, words)
        return self.answers[words]

    def run(self, words):
        done = subprocess.run((self.program, "plan", "--profile", *words, "--json"), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def step_time(promise):
    return promise.result()["step_time_s"]


def written(seconds):
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def listed(numbers):
    return ", ".join(f"{number:g}" for number in numbers)


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def table(head, rows):
    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(map(line, rows)) + "\n"


def profile_table(plans, profile):
    def asked(rate, *words):
        return plans.ask(profile, "--bandwidth", rate, "--latency", LATENCY, *words)

    rows = []
    for rate in RATES:
        every_step = [asked(rate, "--recipe", recipe) for recipe in ("d-sgd", "wfbp")]
        for period in PERIODS:
            cells = [asked(rate, "--period", period, *words) for words in COLUMNS.values()]
            rows.append((rate, period, every_step if period == PERIODS[0] else [], cells))
    computing = every_step[0].result()["step_time_s"] * every_step[0].result()["efficiency"]
    text = f"### `{profile}`: {written(computing)} s of computing\n\n"
    head = ("link", "H", "d-sgd", "wfbp", *COLUMNS, "bound", "bound, late")
    return text + table(head, [
        (rate, str(period), *([written(step_time(cell)) for cell in every_step] or ("", "")),
         *(written(step_time(cell)) for cell in cells),
         *(written(cell.result()["bound_s"]) for cell in cells[-2:]))
        for rate, period, every_step, cells in rows])


def even_profile(directory):
    """Layers that are all alike, F = B/2."""
    path = pathlib.Path(directory) / "even.json"
    path.write_text(json.dumps({"layers": [{"name": f"layer {i}", "t_fp_s": 0.01, "t_bp_s": 0.02, "bytes": 4e6}
                                           for i in range(EVEN_LAYERS, 0, -1)]}))
    return str(path)


def loaded_link(plans, profile, period, load):
    """Options of a link without latency on which C/(H·B) is `load`."""
    plan = plans.ask(profile, "--bandwidth", "1gbit", "--latency", "0ms", "--recipe", "d-sgd", "--one-way").result()
    computing = plan["step_time_s"] * plan["efficiency"]
    backward = 2 / 3 * computing
    return ("--bandwidth", f"{8 * plan['bytes_up'] / (load * period * backward):.9g}bit", "--latency", "0ms")


def best_gain(plans, profile, words, against):
    """The largest ratio of two step times, and the period and load where it is."""
    promises = [(period, load, *(plans.ask(profile, "--period", period, *loaded_link(plans, profile, period, load), *other)
                                 for other in (against, words)))
                for period in PERIODS for load in LOADS]
    return max((step_time(slow) / step_time(fast), period, load) for period, load, slow, fast in promises)


def gain_cell(gain, period, load):
    return f"{gain:.2f} ({period}, {load:g})"


def gain_at_load(plans, profile, period, words, against):
    link = loaded_link(plans, profile, period, 1)
    slow = plans.ask(profile, *link, *against)
    return step_time(slow) / step_time(plans.ask(profile, "--period", period, *link, *words))


def one_way_tables(plans, models):
    local = ("--recipe", "local-sgd", "--one-way")
    ways = {"as published": PUBLISHED, "all sets": WHOLE_LAYERS, "all sets, in pieces": IN_PIECES}
    gain_of = functools.partial(best_gain, plans)
    text = ("### One way, as in an all-reduce: gain over local SGD\n\n"
            f"The largest ratio of the two steps over H = {listed(PERIODS)} and C/(H·B) = {listed(LOADS)}, without latency. In brackets\n"
            "are the H and the C/(H·B) that give it. *As published* is consecutive sets of whole layers, *all sets* is of whole layers, too.\n\n")
    text += table(("profile", *ways), [
        (name, *(gain_cell(*gain_of(profile, (*words, "--one-way"), local)) for words in ways.values()))
        for name, profile in models.items()])
    text += "### One way: gain over wait-free backward, C/(H·B) = 1\n\n"
    wfbp = ("--recipe", "wfbp", "--one-way")
    text += table(("profile", *(f"{way}, H = {period}" for way in ways for period in (5, 10))), [
        (name, *(f"{gain_at_load(plans, profile, period, (*words, '--one-way'), (*words[:2], *wfbp)):.2f}"
                 for words in ways.values() for period in (5, 10)))
        for name, profile in models.items()])
    return text


def two_way_table(plans, models):
    text = ("### Up and down: gain over local SGD, and over local SGD in parts\n\n"
            "The largest ratio over the same H and C/(H·B), without latency. All recipes by layer send pieces.\n\n")
    recipes = {"dreamddp": (), "dreamddp-late": ("--recipe", "dreamddp-late")}
    against = {"local-sgd": ("--recipe", "local-sgd"), "local-sgd-parts": ("--recipe", "local-sgd-parts", *IN_PIECES)}
    return text + table(("profile", *(f"{recipe} over {other}" for recipe in recipes for other in against)), [
        (name, *(gain_cell(*best_gain(plans, profile, (*words, *IN_PIECES), other))
                 for words in recipes.values() for other in against.values()))
        for name, profile in models.items()])


def all_tables(program):
    plans = Plans(program)
    with tempfile.TemporaryDirectory() as directory:
        models = {f"{EVEN_LAYERS} even layers": even_profile(directory), **{name: name for name in PROFILES}}
        return ("".join(profile_table(plans, profile) for profile in PROFILES) + one_way_tables(plans, models) +
                two_way_table(plans, models))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the longhaul program")
    parser.add_argument("--page", type=pathlib.Path, help="the page whose tables are replaced")
    arguments = parser.parse_args()
    tables = all_tables(arguments.program)
    if not arguments.page:
        print(tables, end="")
        return
    before, rest = arguments.page.read_text(encoding="utf-8").split(BEGIN, 1)
    arguments.page.write_text(before + BEGIN + "\n" + tables + END + rest.split(END, 1)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
