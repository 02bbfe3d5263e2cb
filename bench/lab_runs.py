"""Runs of the lab for the studies in this folder."""
import json
import pathlib
import subprocess
import sys

GO_ON = ("--resume", "--checkpoint-every", "100")


def lab_runs(longhaul, scenario, out, *arguments, threads=1):
    """The runs of a study of the lab. Training that an earlier time has done in `out` is not done again."""
    known = () if "--replay" in arguments else GO_ON
    command = [str(longhaul), "lab", scenario, *arguments, *known, "--threads", str(threads), "--out", str(out), "--json"]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from here")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return json.loads((pathlib.Path(out) / "results.json").read_text())["runs"]
