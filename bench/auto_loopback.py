"""`auto` on a link that is faster than anything it was made for: hub and replicas on 127.0.0.1, nothing paced.

    bench/auto_loopback.py build/release/bin [--replicas 2] [--seconds 60] [--scenario smoke]

Prints one JSON object: how often the plan changed (the first plan does not count), and for the second half of the time
the measured step, the predicted one, and how much of their time the replicas wait. Each step counts with what the hub
predicted for it at its time, so both figures are means over the same steps, whatever plans were in force.
Exits 1 if the plan changed more than 5 times a minute or the prediction is off by more than a quarter.
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

MOST_CHANGES_A_MINUTE = 5
MOST_OFF = 0.25
START_S = 60  # until the first round has closed
END_S = 30


class Events:
    """What a hub says, as it comes."""

    def __init__(self, hub: subprocess.Popen):
        self.address = ""
        self.listening = threading.Event()
        self.started = threading.Event()
        self.plans: list[dict] = []
        self.rounds: list[tuple[float, int]] = []  # time and step
        self.statuses: list[tuple[float, dict]] = []  # by the time of the round before
        self.thread = threading.Thread(target=self.read, args=(hub.stdout,), daemon=True)
        self.thread.start()

    def read(self, lines) -> None:
        for line in lines:
            event = json.loads(line)
            if event["event"] == "listening":
                self.address = event["address"]
                self.listening.set()
            elif event["event"] == "plan":
                self.plans.append(event)
            elif event["event"] == "round":
                self.rounds.append((event["time_s"], event["step"]))
                self.started.set()
            elif event["event"] == "status" and self.rounds:
                self.statuses.append((self.rounds[-1][0], event))
        self.listening.set()
        self.started.set()


def run(binaries: Path, scenario: str, replicas: int, seconds: float, directory: str) -> Events:
    """A run of so many seconds."""
    longhaul = str(binaries.resolve() / "longhaul")
    hub = subprocess.Popen([longhaul, "hub", scenario, "--listen", "127.0.0.1:0", "--recipe", "auto", "--start-with",
                            str(replicas), "--set", "train.steps=100000000", "--set", "train.stop=steps", "--json", "--rounds"],
                           stdout=subprocess.PIPE, text=True, cwd=directory)
    events = Events(hub)
    processes = [hub]
    try:
        events.listening.wait(START_S)
        if not events.address:
            return events
        for number in range(replicas):
            processes.append(subprocess.Popen(
                [longhaul, "train", "--hub", events.address, "--name", f"replica-{number}", "--slot", str(number)],
                stderr=subprocess.DEVNULL, cwd=directory))
        events.started.wait(START_S)
        time.sleep(seconds)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(END_S)
        events.thread.join(END_S)
    return events


def mean_prediction(rounds: list[tuple[float, int]], predictions: list[tuple[float, float]]) -> float:
    """Over the steps of these rounds; a prediction is in force until the next one."""
    total, steps, at = 0.0, 0, 0
    for (_, before), (time_s, step) in zip(rounds, rounds[1:]):
        while at + 1 < len(predictions) and predictions[at + 1][0] < time_s:
            at += 1
        total += (step - before) * predictions[at][1]
        steps += step - before
    return total / steps


def result_of(events: Events, seconds: float) -> dict:
    half = [one for one in events.rounds if one[0] >= seconds / 2]
    measured = (half[-1][0] - half[0][0]) / (half[-1][1] - half[0][1])
    late = [status for time_s, status in events.statuses if time_s >= seconds / 2] or [events.statuses[-1][1]]
    predicted = mean_prediction(half, [(time_s, status["predicted_step_time_s"]) for time_s, status in events.statuses
                                       if status.get("predicted_step_time_s")])
    waiting = [replica["waiting_share"] for status in late for replica in status["replicas"]]
    plans = [{key: plan[key] for key in ("time_s", "keep_ratio", "delay_steps", "period_steps", "merge",
                                         "predicted_step_time_s")} for plan in events.plans]
    return {
        "seconds": seconds,
        "plan_changes": len(plans) - 1,
        "measured_step_s": measured,
        "predicted_step_s": predicted,
        "predicted_over_measured": predicted / measured,
        "waiting_share": statistics.mean(waiting),
        "plans": plans[:20],
        "reason": events.plans[-1]["reason"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=Path)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--scenario", default="smoke")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        events = run(arguments.bin, arguments.scenario, arguments.replicas, arguments.seconds, directory)
    if len(events.rounds) < 10 or events.rounds[-1][0] < 0.6 * arguments.seconds or not events.statuses:
        print("no run came about", file=sys.stderr)
        return 1
    result = result_of(events, arguments.seconds)
    print(json.dumps(result, indent=1))
    is_calm = result["plan_changes"] <= MOST_CHANGES_A_MINUTE * max(1.0, arguments.seconds / 60)
    return 0 if is_calm and abs(result["predicted_over_measured"] - 1) <= MOST_OFF else 1


if __name__ == "__main__":
    sys.exit(main())
