"""Many light replicas on one machine against a hub that is a process of its own.

    bench/hub_scale.py build/release/bin [--replicas 64] [--rounds 200] [--elements 250000]

Prints one JSON object: the hub's memory (RSS) after round 20 and after the last, how long a round takes, and what
went wrong, which must be nothing. Exits 1 if the memory has grown by more than a tenth, or a replica failed.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

EARLY_ROUND = 20
MOST_GROWTH = 1.1
TIME_LIMIT_S = 900

SCENARIO = """
recipes = ["d-sgd"]
[model]
name = "softmax"
[data]
kind = "fashion-mnist"
[train]
lr = 0.001
steps = {steps}
step_time = "1ms"
[target]
metric = "loss"
value = 0.001
[link]
up = "1gbit"
down = "1gbit"
latency = "1ms"
[[replica]]
count = {replicas}
"""


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


class Watched:
    """Reads the hub's events as they come, and its memory at the rounds that count."""

    def __init__(self, hub: subprocess.Popen, rounds: int):
        self.hub = hub
        self.marks = {EARLY_ROUND, rounds}
        self.port = threading.Event()
        self.address = ""
        self.times: list[float] = []
        self.memory: dict[int, float] = {}
        self.status: dict = {}
        self.short_rounds = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        for line in self.hub.stdout:
            event = json.loads(line)
            if event["event"] == "listening":
                self.address = event["address"]
                self.port.set()
            elif event["event"] == "round":
                self.times.append(event["time_s"])
                self.short_rounds += len(event["contributors"]) < event["members"]
                if len(self.times) in self.marks:
                    self.memory[len(self.times)] = rss_mib(self.hub.pid)
            elif event["event"] == "status":
                self.status = event
        self.port.set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=Path)
    parser.add_argument("--replicas", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--elements", type=int, default=250_000, help="4 bytes each")
    parser.add_argument("--recipe", default="d-sgd")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scenario = Path(directory) / "scale.toml"
        scenario.write_text(SCENARIO.format(steps=arguments.rounds, replicas=arguments.replicas))
        hub = subprocess.Popen(
            [arguments.bin / "longhaul", "hub", scenario, "--listen", "127.0.0.1:0", "--recipe", arguments.recipe,
             "--json", "--rounds"], stdout=subprocess.PIPE, text=True)
        watched = Watched(hub, arguments.rounds)
        watched.port.wait(30)
        if not watched.address:
            return 1
        try:
            replicas = subprocess.run(
                [arguments.bin / "longhaul_light_replica", "--hub", watched.address, "--name", "light", "--replicas",
                 str(arguments.replicas), "--elements", str(arguments.elements), "--step-time", "1ms", "--json"],
                stdout=subprocess.PIPE, text=True, timeout=TIME_LIMIT_S)
            hub.wait(60)
        finally:
            hub.kill()
        watched.thread.join(10)
    finished = [event for event in map(json.loads, replicas.stdout.splitlines()) if event["event"] == "finished"]
    rounds = [after - before for before, after in zip(watched.times, watched.times[1:])]
    result = {
        "replicas": arguments.replicas,
        "update_bytes": 4 * arguments.elements,
        "rounds": len(watched.times),
        "hub_rss_mib": watched.memory,
        "round_p50_s": round(statistics.median(rounds), 4),
        "round_p99_s": round(sorted(rounds)[int(0.99 * (len(rounds) - 1))], 4),
        "finished": len(finished),
        "digests": len({event["digest"] for event in finished}),
        "rounds_without_someone": watched.short_rounds,
        "rejected": watched.status.get("rejected"),
        "refused": watched.status.get("refused"),
        "mismatches": watched.status.get("mismatches"),
        "reconnections": sum(event["reconnections"] for event in finished),
        "exit_codes": [hub.returncode, replicas.returncode],
    }
    print(json.dumps(result))
    early, late = (watched.memory.get(mark, float("nan")) for mark in (EARLY_ROUND, arguments.rounds))
    is_clean = (len(finished) == arguments.replicas and result["digests"] == 1 and result["exit_codes"] == [0, 0]
                and not watched.short_rounds and not result["rejected"] and not result["mismatches"])
    return 0 if is_clean and late <= MOST_GROWTH * early else 1


if __name__ == "__main__":
    sys.exit(main())
