"""Runs of the lab for the studies in this folder."""
import json
import pathlib
import subprocess
import sys


def lab_runs(longhaul, scenario, out, *arguments, threads=1):
    """The runs of a study of the lab; those of an earlier time if they are there."""
    results = pathlib.Path(out) / "results.json"
    if not (results.exists() and json.loads(results.read_text()).get("runs")):
        command = [str(longhaul), "lab", scenario, *arguments, "--threads", str(threads), "--out", str(out), "--json"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return json.loads(results.read_text())["runs"]
