#!/usr/bin/env python3
"""docs/events.md against the programs: every event and key that they print is on the page, and the other way round.

usage: events_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import collections
import datetime
import json
import pathlib
import re
import signal
import unittest

from command import LONGHAUL
from guests import HONEST, Guests, Process

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/events.md"
SOURCES = [*sorted((ROOT / "apps").rglob("*.cpp")), ROOT / "bench/light_replica.cpp",
           *sorted((ROOT / "longhaul/hub").glob("*.cpp")), *sorted((ROOT / "longhaul/lab").glob("*.cpp"))]
# Calls that make an event, with its name in place.
MAKES_EVENT = r'\b(?:print_event|event_line|event|tell|log\.write)\(\s*"(\w+)"'


def page_events():
    """(program, event) -> keys, as the page has them."""
    events, owners = {}, []
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            owners = []
        if heading := re.fullmatch(r"### `(\w+)` \((.*)\)", line):
            owners = [(program, heading[1]) for program in heading[2].split(", ")]
            for owner in owners:
                if owner in events:
                    raise AssertionError(f"{PAGE.name}: two sections for {owner}")
                events[owner] = set()
        if row := re.match(r"\| `([^`]+)` \|", line):
            for owner in owners:
                events[owner].add(row[1])
    return events


def keys_of(event, prefix=""):
    keys = set()
    for key, value in event.items():
        keys.add(prefix + key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                keys |= keys_of(one, f"{prefix}{key}[]." if isinstance(value, list) else f"{prefix}{key}.")
    return keys


def keys_in_source(name):
    """Of each call that makes the event with its keys in place."""
    found = []
    for source in SOURCES:
        text = source.read_text()
        for call in re.finditer(MAKES_EVENT, text):
            if call[1] == name:
                found.append(set(re.findall(r'\{\{?"(\w+)",', text[call.end():text.index(";", call.end())])))
    return found


class Page(unittest.TestCase):
    def test_has_every_event_of_the_sources_and_no_other(self):
        sources = "".join(source.read_text() for source in SOURCES)
        documented = {event for _, event in page_events()}
        self.assertLessEqual(set(re.findall(MAKES_EVENT, sources)), documented, "not on the page")
        self.assertFalse([event for event in documented if f'"{event}"' not in sources], "only on the page")


class Programs(Guests):
    """Runs all programs that print events, with what can happen to them in a few seconds."""

    def gather(self, program, events):
        for event in events:
            event = dict(event)
            name = event.pop("event")
            if program == "lab":
                self.assertNotIn("time", event)
            else:
                self.check_time(event.pop("time"))
            self.seen[program, name] |= keys_of(event)
            for key in keys_of(event):
                if key.split(".")[-1] == "digest" and "[]" not in key and name != "study":
                    self.assertRegex(event[key], r"^[0-9a-f]{16}$")

    def check_time(self, text):
        self.assertRegex(text, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        time = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.assertLess(abs(now - time), datetime.timedelta(minutes=10))

    def hub(self, *arguments, port=0):
        hub = Process(self, LONGHAUL, "hub", "smoke", "--listen", f"127.0.0.1:{port}", "--json", "--rounds",
                      "--status-every", "100ms", "--set", "replica.step_time=20ms", *arguments)
        hub.port = hub.until(lambda event: event["event"] == "listening", "the hub listens")["port"]
        return hub

    def run_train(self):
        """Three replicas, with checkpoints and copies to evaluate; the hub is killed and comes back."""
        settings = ("--dir", "run", "--set", "train.steps=60", "--set", "train.stop=steps", "--set", "eval.every=10")
        hub = self.hub(*settings)
        replicas = [Process(self, LONGHAUL, "train", "--hub", f"127.0.0.1:{hub.port}", "--name", f"r{slot}", "--slot", slot,
                            "--json", "--paced", "--checkpoint", "checkpoints", "--checkpoint-every", 10,
                            *(("--stamps", self.directory) if slot == 0 else ())) for slot in range(3)]
        hub.until(lambda event: event["event"] == "round" and event["step"] >= 10, "rounds close")
        hub.end()
        again = self.hub(*settings, port=hub.port)
        for replica in replicas:
            self.assertEqual(replica.wait(), 0, replica.errors)
            self.gather("train", replica.events)
        self.assertEqual(again.wait(), 0, again.errors)
        self.gather("hub", hub.events + again.events)
        digests = [one["digest"] for event in again.events if event["event"] == "round" for one in event["contributors"]]
        self.assertTrue(digests)
        for digest in digests:
            self.assertRegex(digest, r"^[0-9a-f]{16}$")

    def run_light(self):
        hub = self.hub("--set", "train.steps=5", "--start-with", 2)
        honest = Process(self, HONEST, "--json", "--replicas", 2, "--hub", f"127.0.0.1:{hub.port}")
        self.assertEqual(honest.wait(), 0, honest.errors)
        self.gather("light_replica", honest.events)
        hub.child.send_signal(signal.SIGINT)
        hub.wait()

    def run_lab(self):
        done = self.longhaul("lab", "smoke", "--recipe", "auto,streaming-diloco", "--set", "train.steps=30", "--out", "lab")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.gather("lab", map(json.loads, (self.directory / "lab/events.jsonl").read_text().splitlines()))

    def test_print_what_the_page_says(self):
        self.seen = collections.defaultdict(set)
        self.run_train()
        self.run_light()
        self.run_lab()
        documented = page_events()
        self.assertFalse(set(self.seen) - set(documented), "events that are not on the page")
        for owner, keys in documented.items():
            with self.subTest(event=owner):
                if owner in self.seen:
                    self.assertEqual(self.seen[owner], keys)
                else:  # too rare for this test: what the source says
                    flat = {key for key in keys if "[]" not in key}
                    self.assertTrue(any(flat <= found for found in keys_in_source(owner[1])),
                                    f"{sorted(flat)} are not in one call: {keys_in_source(owner[1])}")

    def test_an_hour_of_a_quiet_run_is_under_a_megabyte(self):
        """tests/hub/status_pace_test.cpp counts the statuses of an hour: at most 365."""
        hub = Process(self, LONGHAUL, "hub", "smoke", "--listen", "127.0.0.1:0", "--json", "--recipe", "static", "--set",
                      "train.steps=150")
        port = hub.until(lambda event: event["event"] == "listening", "the hub listens")["port"]
        light = Process(self, HONEST, "--json", "--replicas", 3, "--hub", f"127.0.0.1:{port}", "--step-time", "20ms")
        self.assertEqual(light.wait(), 0, light.errors)
        self.assertEqual(hub.wait(), 0, hub.errors)
        self.assertEqual({event["event"] for event in hub.events}, {"listening", "plan", "status", "finished"})
        statuses = [event for event in hub.events if event["event"] == "status"]
        self.assertLess(len(statuses), 15)  # in 3 s: they come, they train, they leave
        self.assertEqual(statuses[-1]["next_round"], 150)  # the last one is of the end
        self.assertLess(365 * max(len(json.dumps(status)) for status in statuses), 1_000_000)


if __name__ == "__main__":
    unittest.main()
