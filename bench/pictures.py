#!/usr/bin/env python3
"""The table and the pictures of README.md, from one study of the lab.

usage: pictures.py LONGHAUL [--from DIR] [--work DIR] [--seed 1,2,3] [--set table.key=value …] [--skip-report] [--keep-report DIR]
       pictures.py --draw

Runs `longhaul lab fashion-wan` for the recipes below, each with the best learning rate of docs/results.md, up to the target;
--from takes the results of an earlier --out directory instead. Keeps what it shows in docs/results/fashion-wan.json, and
writes docs/images/*.svg and the marked places of README.md. Then it rehearses the demo and photographs its report
(docs/images/report.png; --keep-report photographs the one in DIR; needs Chromium). --draw writes pictures and
marked places anew from docs/results/fashion-wan.json alone.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import charts

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/fashion-wan.json"
IMAGES = ROOT / "docs/images"
README = ROOT / "README.md"

# The best of 0.005, 0.01, 0.02 and 0.05 on seed 11 (docs/local_steps.md); the scenario's own is 0.02.
RECIPES = ("ideal", "d-sgd", "local-sgd", "diloco:lr=0.005", "streaming-diloco", "auto")
ABOUT = "Fashion-MNIST, a CNN on four replicas, links of 5.4 Mbit/s and 60 ms."
KEPT = ("recipe", "seed", "status", "lr", "replicas", "parameters", "steps", "time_to_target_s", "steps_to_target",
        "step_time_s", "efficiency", "bytes_up", "keep_ratio", "delay_steps", "period_steps", "merge", "codec", "digest")
SHOWN = ("d-sgd", "auto")  # in the time line
BROWSER = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000")


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{model.group(1) if model else 'unknown CPU'}, {os.cpu_count()} cores"


def run(*command):
    done = subprocess.run([str(word) for word in command], check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}; the same command goes on from here")


def study_command(longhaul, seeds, settings):
    chosen = [word for setting in ("train.stop=target", *settings) for word in ("--set", setting)]
    return [str(longhaul), "lab", "fashion-wan", "--recipe", ",".join(RECIPES), "--seed", seeds, *chosen]


def timeline_of(events, recipe):
    """What the first replica of a recipe's first seed did in its first steps, and the plan it began with."""
    spans, plan, is_ours = [], {}, False
    for event in events:
        if event["event"] == "run_started":
            is_ours = event["recipe"].partition(":")[0] == recipe and not spans
        elif is_ours and event["event"] == "plan":
            plan = plan or event
        elif is_ours and event["event"] == "activity" and event["replica"] == 0:
            times = [round(event.get(key, 0), 6) for key in ("begin_s", "end_s", "step", "queued_s", "latency_s")]
            spans.append([event["activity"], *times])
    return {"delay_steps": plan.get("delay_steps", 0), "spans": spans}


def compact(folder, command, version):
    """Runs without curves, and the time lines that are drawn."""
    found = json.loads((folder / "results.json").read_text())
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    runs = [{key: run[key] for key in KEPT} | {"recipe": run["recipe"].partition(":")[0]} for run in found["runs"]]
    return {"command": command, "version": version, "machine": machine(), "about": ABOUT, "scenario": found["scenario"],
            "target": found["target"], "runs": runs, "timelines": {recipe: timeline_of(events, recipe) for recipe in SHOWN}}


def written(results):
    """As JSON with a line per run and time line: differences are readable."""
    rows = lambda values: "[\n" + ",\n".join("  " + json.dumps(value) for value in values) + "\n ]"
    parts = [f" {json.dumps(key)}: " + (rows(value) if key == "runs" else json.dumps(value)) for key, value in results.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def plural(names):
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]


def time_cell(row):
    spread = f"{charts.seconds(row.least).removesuffix(' s')}–{charts.seconds(row.most).removesuffix(' s')}"
    if math.isinf(row.median):
        return f"not reached by {row.missed} of {len(row.runs)} seeds"
    missed = f"; {row.missed} of {len(row.runs)} seeds did not reach it" if row.missed else ""
    return f"{charts.seconds(row.median)} ({spread}{missed})"


def table(results):
    rows = charts.rows_of(results)
    by_name = {row.recipe: row for row in rows}
    slowest, ours = by_name["d-sgd"], by_name["auto"]
    target = f"{100 * results['target']['value']:.0f} %"
    lines = [f"| recipe | time to {target} | times sooner than `d-sgd` | steps | step time | computing | sent up per step and replica | learning rate |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        factor = 0 if math.isinf(row.median) or math.isinf(slowest.median) else slowest.median / row.median
        sent = statistics.median(run["bytes_up"] / run["steps"] / run["replicas"] for run in row.runs) / 1e3
        name = f"**`{row.recipe}`**" if row is ours else f"`{row.recipe}`"
        steps = "–" if row.middle("steps_to_target") is None else f"{row.middle('steps_to_target'):.0f}"
        lines.append(f"| {name} | {time_cell(row)} | {f'{factor:.1f}' if factor else '–'} | {steps} "
                     f"| {1e3 * row.middle('step_time_s'):.0f} ms | {100 * row.middle('efficiency'):.0f} % "
                     f"| {'none: links are free' if row.recipe == 'ideal' else f'{sent:.3g} kB'} | {row.runs[0]['lr']:g} |")
    near = [row.recipe for row in charts.near_to_ours(results)]
    lines += ["", f"Median of {len(ours.runs)} seeds, in brackets the least and the most."]
    if near:
        lines[-1] += (f" The range of {plural(near)} overlaps with that of `auto`: that difference is within seed noise."
                      if len(near) == 1 else
                      f" The ranges of {plural(near)} overlap with that of `auto`: those differences are within seed noise.")
    return "\n".join(lines)


def headline(results):
    by_name = {row.recipe: row for row in charts.rows_of(results)}
    slow, ours = by_name["d-sgd"], by_name["auto"]
    return (f"Over links of 5.4 Mbit/s, plain data-parallel SGD computes {100 * slow.middle('efficiency'):.0f} % of the time and waits for the "
            f"rest. Longhaul sends {100 * ours.middle('keep_ratio'):.2g} % of each\nupdate, applies it a few steps late with a correction, and "
            f"computes {100 * ours.middle('efficiency'):.0f} % of the time: the same accuracy, **{slow.median / ours.median:.0f} times sooner**.")


def marked(text, name, content):
    """The text with what stands between two markers replaced."""
    pattern = re.compile(rf"(<!-- pictures:{name} -->\n).*?(<!-- /pictures:{name} -->)", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        sys.exit(f"{README.name}: expected one place marked pictures:{name}")
    return pattern.sub(lambda found: found.group(1) + content + "\n" + found.group(2), text)


def outputs(results):
    """Path → text of all that follows from the results."""
    files = {IMAGES / f"{name}-{theme}.svg": draw(results, theme)
             for name, draw in (("time-to-target", charts.bars), ("timeline", charts.timeline)) for theme in charts.THEMES}
    readme = marked(README.read_text(encoding="utf-8"), "table", table(results))
    files[README] = marked(readme, "headline", headline(results))
    return files


def draw_all():
    for path, text in outputs(json.loads(RESULTS.read_text(encoding="utf-8"))).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


def photograph(report, picture):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        subprocess.run([*BROWSER, f"--user-data-dir={profile}", "--window-size=1200,1300", f"--screenshot={picture}",
                        pathlib.Path(report).resolve().as_uri()], check=True, timeout=120, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    print(picture.relative_to(ROOT))


def study(options):
    command = study_command(options.longhaul, options.seed, options.set)
    folder = options.taken_from
    if folder is None:
        folder = options.work / "fashion-wan"
        run(*command, "--resume", "--out", folder)
    version = subprocess.run([options.longhaul, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    shown = " ".join(["longhaul", *command[1:]])
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(written(compact(folder, shown, version)), encoding="utf-8")
    print(RESULTS.relative_to(ROOT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("longhaul", nargs="?")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--from", dest="taken_from", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/pictures")
    parser.add_argument("--seed", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], metavar="table.key=value")
    parser.add_argument("--skip-report", action="store_true")
    parser.add_argument("--keep-report", type=pathlib.Path)
    options = parser.parse_args()
    if options.draw == (options.longhaul is not None):
        parser.error("expected either LONGHAUL or --draw")
    if not options.draw:
        study(options)
    draw_all()
    if options.draw or options.skip_report:
        return
    report = options.keep_report or options.work / "demo"
    if options.keep_report is None:
        run(options.longhaul, "rehearse", "--out", report)
    photograph(report / "report.html", IMAGES / "report.png")


if __name__ == "__main__":
    main()
