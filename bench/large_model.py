"""Does a hub with a large model still answer? Light replicas, each a process, on loopback.

    bench/large_model.py build/release/bin [--replicas 2] [--elements 124M] [--steps 40] [--dir]

Prints one JSON object: reconnections, the round trip of pings as replicas see it, and the peak memory of every process
in models (4 bytes for each parameter). Exits 1 if a replica reconnected, if the p99 of the round trips is over 100 ms, or
if the hub needed more than 3 models. `--late` adds a replica in the middle, which is given a snapshot.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from hub_scale import SCENARIO

MOST_ROUND_TRIP_S = 0.1
MOST_HUB_MODELS = 3.0
TIME_LIMIT_S = 900
FACTORS = {"K": 10**3, "M": 10**6, "G": 10**9}


def count_of(text: str) -> int:
    factor = FACTORS.get(text[-1].upper(), 1)
    return int(float(text[:-1]) * factor) if factor > 1 else int(text)


class Process:
    """A program that prints events. Notes them, and the most memory that it had while it ran."""

    def __init__(self, command: list):
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
        self.events: list[dict] = []
        self.changed = threading.Condition()
        self.peak_bytes = 0
        self.is_over = False
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.read, self.watch_memory)]
        for thread in self.threads:
            thread.start()

    def read(self) -> None:
        for line in self.process.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def watch_memory(self) -> None:
        status = Path(f"/proc/{self.process.pid}/status")
        while not self.is_over:
            try:
                lines = status.read_text().splitlines()
            except OSError:
                return
            for line in lines:
                if line.startswith("VmHWM:"):
                    self.peak_bytes = int(line.split()[1]) * 1024
            time.sleep(0.1)

    def of_kind(self, kind: str) -> list[dict]:
        return [event for event in self.events if event["event"] == kind]

    def wait_for(self, is_reached, timeout_s: float) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: self.is_over or is_reached(), timeout_s)
            return is_reached()


def run(arguments, directory: Path) -> dict:
    elements = count_of(arguments.elements)
    replicas = arguments.replicas + arguments.late
    scenario = directory / "large.toml"
    scenario.write_text(SCENARIO.format(steps=arguments.steps, replicas=replicas))
    place = ["--dir", directory / "hub"] if arguments.dir else []
    hub = Process([arguments.bin / "longhaul", "hub", scenario, "--listen", "127.0.0.1:0", "--recipe", arguments.recipe,
                   "--start-with", arguments.replicas, "--json", "--rounds", *place])
    others: list[Process] = []

    def start(name: str) -> None:
        others.append(Process([arguments.bin / "longhaul_light_replica", "--hub", address, "--name", name,
                               "--elements", elements, "--step-time", "1ms", "--json"]))
    began = time.monotonic()
    try:
        hub.wait_for(lambda: hub.of_kind("listening"), 30)
        address = hub.of_kind("listening")[0]["address"]
        for i in range(arguments.replicas):
            start(f"light-{i}")
        if arguments.late:
            hub.wait_for(lambda: len(hub.of_kind("round")) >= arguments.steps // 4, TIME_LIMIT_S)
            start("late")
        for other in others:
            other.process.wait(TIME_LIMIT_S)
        hub.process.wait(60)
    finally:
        for one in [hub, *others]:
            one.process.kill()
            for thread in one.threads:
                thread.join(10)
    finished = [event for other in others for event in other.of_kind("finished")]
    trips = sorted(trip for event in finished for trip in event["round_trips_s"])
    status = hub.of_kind("status")[-1]
    model = 4 * elements
    return {
        "elements": elements,
        "replicas": replicas,
        "steps": len(hub.of_kind("round")),
        "time_s": round(time.monotonic() - began, 1),
        "finished": len(finished),
        "digests": sorted({event["digest"] for event in finished}),
        "reconnections": sum(event["reconnections"] for event in finished),
        "restarts": sum(event["restarts"] for event in finished),
        "pings": len(trips),
        "ping_p50_ms": round(1000 * statistics.median(trips), 1) if trips else None,
        "ping_p99_ms": round(1000 * trips[int(0.99 * (len(trips) - 1))], 1) if trips else None,
        "ping_most_ms": round(1000 * trips[-1], 1) if trips else None,
        "hub_models": round(hub.peak_bytes / model, 2),
        "replica_models": [round(other.peak_bytes / model, 2) for other in others],
        "mismatches": status["mismatches"],
        "rejected": status["rejected"],
        "exit_codes": [one.process.returncode for one in [hub, *others]],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=Path)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--elements", default="124M")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--recipe", default="static:keep_ratio=0.01:delay_steps=2")
    parser.add_argument("--dir", action="store_true", help="with a journal")
    parser.add_argument("--late", action="store_true", help="one more replica joins after a quarter of the steps")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        result = run(arguments, Path(directory))
    print(json.dumps(result))
    is_well = (result["finished"] == result["replicas"] and len(result["digests"]) == 1 and not result["reconnections"]
               and not any(result["exit_codes"]) and not result["mismatches"] and not result["rejected"])
    is_awake = (result["ping_p99_ms"] or 1e9) <= 1000 * MOST_ROUND_TRIP_S
    return 0 if is_well and is_awake and result["hub_models"] <= MOST_HUB_MODELS else 1


if __name__ == "__main__":
    sys.exit(main())
