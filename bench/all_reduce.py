#!/usr/bin/env python3
"""Ranks of a collective on one machine: the time of a step and its bytes, gathered and by all-reduce.

    unshare --net bench/all_reduce.py build/release/bin [--rate 400mbit] [--step-time 150ms] [--ranks 2] [--steps 64] [--json]

Needs a network namespace of its own (`unshare --map-root-user --net` for those who are not root), so that its loopback
carries these ranks only and may have a rate: that of all ranks and both directions together. All ranks share the
processors of this machine. With --step-time they stand in for machines that compute a step so long, layer by layer in
shares of the bytes; `late_steps` took longer by themselves. One line for each recipe and way: the mean time of a step of
rank 0 without the first quarter, and bytes on the loopback for each step, TCP's own included.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import tempfile
from pathlib import Path

RUNS = (("d-sgd", False), ("wfbp", False), ("local-sgd", False), ("dreamddp", False), ("wfbp", True), ("local-sgd", True),
        ("dreamddp", True))
BURST = "256kb"  # no less than a packet of the loopback


def set_up(rate: str | None) -> None:
    names = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    if names != ["lo"]:
        raise SystemExit("start it with `unshare --net`: this network has " + ", ".join(names))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if rate:
        subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate, "burst", BURST, "latency", "50ms"],
                       check=True)


def loopback_bytes() -> int:
    return int(Path("/proc/net/dev").read_text().splitlines()[-1].split(":")[1].split()[0])


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run(binaries: Path, recipe: str, all_reduce: bool, arguments: argparse.Namespace, directory: str) -> dict:
    """The times of the steps of rank 0, and all bytes."""
    port = free_port()
    command = [str(binaries.resolve() / "longhaul"), "train", "--collective", "smoke", "--recipe", recipe, "--json",
               "--set", f"replica.count={arguments.ranks // 2}", "--set", f"train.steps={arguments.steps}", "--set", "eval.every=10", "--set", "eval.samples=1",
               "--set", f"train.batch={arguments.batch}", "--set", "model.name=" + arguments.model, "--set", f"model.width={arguments.width}", "--threads", "1",
               *(["--all-reduce"] if all_reduce else [])]
    if arguments.step_time:
        command += ["--paced", "--set", "train.step_time=" + arguments.step_time, "--set", "replica.step_time=" + arguments.step_time]
    ranks = []
    for rank in range(arguments.ranks):
        place = {"RANK": str(rank), "WORLD_SIZE": str(arguments.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, text=True,
                                      cwd=directory, env=os.environ | place))
    before = loopback_bytes()
    times = []
    late = None
    for line in ranks[0].stdout:
        event = json.loads(line)
        if event["event"] == "step":
            times.append(event["time_s"])
        elif event["event"] == "finished":
            late = event["late_steps"]
    if any(rank.wait() != 0 for rank in ranks):
        raise SystemExit(f"{recipe}: a rank has failed")
    steps = [after - earlier for earlier, after in zip(times, times[1:])][len(times) // 4:]
    return {"recipe": recipe, "means": "all-reduce" if all_reduce else "gathered", "ranks": arguments.ranks,
            "model": f"{arguments.model} of width {arguments.width}", "rate": arguments.rate, "computing": arguments.step_time,
            "late_steps": late, "step_time_s": round(statistics.mean(steps), 4),
            "bytes_per_step": round((loopback_bytes() - before) / arguments.steps)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rate", help="of the loopback, such as 400mbit (default: as fast as it is)")
    parser.add_argument("--step-time", help="that a step computes, such as 150ms (default: as long as it takes)")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    arguments = parser.parse_args()
    set_up(arguments.rate)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for recipe, all_reduce in RUNS:
            rows.append(run(arguments.binaries, recipe, all_reduce, arguments, directory))
            if not arguments.json:
                print(json.dumps(rows[-1]), flush=True)
    if arguments.json:
        print(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
