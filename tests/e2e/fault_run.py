"""A hub, light replicas and links as real processes, and what can befall them."""
import json
import signal
import subprocess
import threading
import time

import books
from command import DEADLINE_S, LONGHAUL, CommandTest

SILENCE_S = 5.0  # after which either side takes the other for gone

SCENARIO = """
title = "Faults"
recipes = ["dd-ef-sgd"]
[model]
name = "softmax"
[data]
kind = "fashion-mnist"
[train]
batch = 1
lr = 0.002
optimizer = "momentum"
steps = 1000000
step_time = "{step_time}"
[eval]
every = 10
samples = 200
[target]
metric = "accuracy"
value = 0.5
[link]
up = "1gbit"
down = "1gbit"
latency = "1ms"
[[replica]]
count = {replicas}
"""


class Process:
    """A process whose events (lines of JSON) are read as they come."""

    def __init__(self, test, program, *arguments):
        self.events = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([LONGHAUL.parent / program, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors = []
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=self.read_errors)]
        for reader in self.readers:
            reader.start()
        test.addCleanup(self.end)

    def read(self):
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue  # it was killed in the middle of a line
            with self.changed:
                self.events.append((time.monotonic(), event))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def read_errors(self):
        self.errors.extend(self.process.stderr)

    def end(self):
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def kill(self):
        """SIGKILL; all that it had told is read."""
        self.process.kill()
        self.process.wait()
        self.readers[0].join()

    def signal(self, number):
        self.process.send_signal(number)

    def command(self, line):
        """For a relay: done when it has answered."""
        start = len(self.events)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.wait(lambda event: event["event"] == line, start)

    def wait(self, is_so, start=0, timeout=DEADLINE_S):
        """The first event from number `start` on that is so."""
        deadline = time.monotonic() + timeout
        with self.changed:
            at = start
            while True:
                for _, event in self.events[at:]:
                    at += 1
                    if is_so(event):
                        return event
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and at == len(self.events) and not self.readers[0].is_alive()):
                    raise AssertionError(f"not told of: {self.process.args}\n" + "".join(self.errors[-20:]))
                self.changed.wait(min(left, 0.2))

    def named(self, name):
        return [event for _, event in list(self.events) if event["event"] == name]


class FaultTest(CommandTest):
    replicas = 3
    elements = 1000
    step_time = "20ms"
    recipe = "dd-ef-sgd:keep_ratio=0.05:delay_steps=3"

    def setUp(self):
        super().setUp()
        self.hubs, self.rounds_before, self.port = [], [], 0
        self.alive, self.links, self.lives = {}, {}, []

    # The parts.
    def start_hub(self, *arguments):
        (self.directory / "faults.toml").write_text(SCENARIO.format(replicas=self.replicas, step_time=self.step_time))
        hub = Process(self, "longhaul", "hub", self.directory / "faults.toml", "--listen", f"127.0.0.1:{self.port}", "--dir",
                      self.directory / "hub", "--recipe", self.recipe, "--json", "--rounds", "--status-every", "100ms",
                      *arguments)
        self.port = hub.wait(lambda event: event["event"] == "listening")["port"]
        self.hubs.append(hub)

    @property
    def hub(self):
        return self.hubs[-1]

    def link(self, slot, *arguments):
        self.links[slot] = Process(self, "longhaul_test_relay", "--to", self.port, *arguments)
        self.links[slot].port = self.links[slot].wait(lambda event: event["event"] == "listening")["port"]

    def start_replica(self, slot, *arguments):
        port = self.links[slot].port if slot in self.links else self.port
        replica = Process(self, "longhaul_light_replica", "--hub", f"127.0.0.1:{port}", "--name", f"r{slot}", "--slot", slot,
                          "--elements", self.elements, "--book", self.directory / f"book-{slot}", "--json", *arguments)
        self.alive[slot] = replica
        self.lives.append(replica)

    def start_all(self, *arguments):
        self.start_hub(*arguments)
        for slot in range(self.replicas):
            self.start_replica(slot)

    # What is so.
    def next_round(self):
        return max((event["next_round"] for event in self.hub.named("status")[-1:]), default=0)

    def reaches(self, step, timeout=DEADLINE_S):
        return self.hub.wait(lambda event: event["event"] == "status" and event["next_round"] >= step, timeout=timeout)

    def goes_on(self, rounds=10, timeout=DEADLINE_S):
        self.reaches(self.next_round() + rounds, timeout)

    def enrolled(self, *slots, start=None):
        """Waits until the hub, from now on, says that these are members."""
        wanted = {f"r{slot}" for slot in slots or range(self.replicas)}
        self.hub.wait(lambda event: event["event"] == "status" and wanted <= {
            replica["name"] for replica in event["replicas"] if replica["enrolled"]},
                      len(self.hub.events) if start is None else start)

    def passes(self, seconds):
        """A fault lasts as long as it does."""
        with self.hub.changed:
            self.hub.changed.wait_for(lambda: False, seconds)

    # What befalls them.
    def kill(self, slot):
        self.alive.pop(slot).kill()

    def restart_hub(self):
        self.hub.kill()
        self.start_hub()

    def rounds(self):
        return [event for hub in self.hubs for event in hub.named("round")]

    # The end: everyone finishes the step it is in, and the books add up.
    def finish(self, *, restarts=None):
        self.enrolled(*self.alive)
        self.hub.signal(signal.SIGINT)
        ends = {slot: replica.wait(lambda event: event["event"] == "finished") for slot, replica in self.alive.items()}
        for replica in self.alive.values():
            self.assertEqual(replica.process.wait(timeout=DEADLINE_S), 0, replica.errors)
        self.assertEqual(self.hub.process.wait(timeout=DEADLINE_S), 130, self.hub.errors)
        self.hub.readers[0].join()
        self.assertEqual(len({end["digest"] for end in ends.values()}), 1, ends)
        for hub in self.hubs:
            self.assertEqual({event["mismatches"] for event in hub.named("status")}, {0})
        ledger = books.Books(self.entries(), self.rounds())
        ledger.check()
        self.assertEqual(len(ledger.finished), len(self.alive))
        if restarts is not None:
            self.assertEqual({slot: end["restarts"] for slot, end in ends.items()}, restarts)
        return ledger

    def entries(self):
        return books.read(*self.directory.glob("book-*"))
