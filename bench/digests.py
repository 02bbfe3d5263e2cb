#!/usr/bin/env python3
"""The digest of the final model for every recipe: what a change of the engine must keep.

usage: digests.py LONGHAUL [--out FILE] [--compare FILE] [--steps 60]

Runs all recipes in the lab (smoke and fashion-wan, 60 steps each) and those with a fixed plan over a hub (a rehearsal of
smoke on links that cost next to nothing: a fixed plan does not depend on them). Prints one JSON object {run: digest}; with
--compare also each run whose digest differs from FILE, and exits 1 if there is one. Digests depend on the CPU, because
libtorch does: compare two programs on one machine.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

FAST_LINKS = tuple(f"{table}.{key}" for table in ("link", "replica") for key in ("up=1gbit", "down=1gbit", "latency=1ms")) + (
    "train.step_time=5ms", "replica.step_time=5ms", "train.stop=steps")


def runs_of(longhaul, command, scenario, recipes, settings):
    """The runs of results.json."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(longhaul), command, scenario, "--recipe", ",".join(recipes), "--out", folder, "--quiet", "--json"]
        for setting in settings:
            words += ["--set", setting]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)} ended with {done.returncode}")
        return json.loads(done.stdout)["runs"]


def digests_of(longhaul, steps):
    listed = subprocess.run([str(longhaul), "recipes", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    recipes = json.loads(listed.stdout)["recipes"]
    names = [recipe["name"] for recipe in recipes]
    fixed = [recipe["name"] for recipe in recipes if recipe["planner"] == "none" and recipe["name"] != "ideal"]
    found = {}
    for command, scenario, chosen, settings in (
            ("lab", "smoke", names, (f"train.steps={steps}",)),
            ("lab", "fashion-wan", names, (f"train.steps={steps}", "train.stop=steps")),
            ("rehearse", "smoke", fixed, FAST_LINKS + (f"train.steps={steps}",))):
        for run in runs_of(longhaul, command, scenario, chosen, settings):
            found[f"{command} {scenario} {run['recipe']}"] = run["digest"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("longhaul", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    found = digests_of(arguments.longhaul, arguments.steps)
    text = json.dumps(found, indent=1)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    if not arguments.compare:
        return 0
    before = json.loads(arguments.compare.read_text(encoding="utf-8"))
    different = [run for run in sorted(before.keys() | found.keys()) if before.get(run) != found.get(run)]
    for run in different:
        print(f"differs: {run}: {before.get(run)} before, {found.get(run)} now", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
