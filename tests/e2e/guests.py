"""What tests of a hub share: processes whose events are read as they come, honest replicas without torch, rude ones."""
import json
import signal
import subprocess
import threading
import time

from command import DEADLINE_S, LONGHAUL, CommandTest

HONEST = LONGHAUL.parent / "longhaul_light_replica"
RUDE = LONGHAUL.parent / "longhaul_rude_replica"


class Process:
    """A child whose lines are read as they come."""

    def __init__(self, test, program, *arguments):
        self.child = subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=test.directory)
        self.events = []
        self.errors = []
        self.news = threading.Condition()
        self.readers = [threading.Thread(target=self.read, args=arguments)
                        for arguments in ((self.child.stdout, self.events, json.loads),
                                          (self.child.stderr, self.errors, str.strip))]
        for reader in self.readers:
            reader.start()
        test.addCleanup(self.end)

    def read(self, pipe, lines, parse):
        for line in pipe:
            with self.news:
                lines.append(parse(line))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def end(self):
        self.child.kill()
        self.wait()
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.stderr.close()

    def wait(self):
        code = self.child.wait(timeout=DEADLINE_S)
        for reader in self.readers:
            reader.join()
        return code

    def until(self, claim, what, seen=0):
        """Waits for an event after the first `seen` ones that makes `claim` true, and returns it."""
        deadline = time.monotonic() + DEADLINE_S
        with self.news:
            while True:
                for event in self.events[seen:]:
                    if claim(event):
                        return event
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0 or (self.child.poll() is not None and not self.readers[0].is_alive()):
                    raise AssertionError(f"{what}: not in time, last: {self.events[-1:]} {self.errors[-5:]}")
                self.news.wait(min(left, 1))

    def says(self, text):
        """Waits for a line on standard error, and returns it."""
        deadline = time.monotonic() + DEADLINE_S
        with self.news:
            while not (lines := [line for line in self.errors if text in line]):
                left = deadline - time.monotonic()
                if left <= 0 or not self.readers[1].is_alive():
                    raise AssertionError(f"{text}: not said in time, but: {self.errors[-5:]}")
                self.news.wait(min(left, 1))
            return lines[0]

    def says_once(self, text):
        """Waits for a line on standard error, and for no other one like it so far."""
        self.says(text)
        if len(lines := self.lines_with(text)) != 1:
            raise AssertionError(f"{text}: said {len(lines)} times: {self.errors}")

    def lines_with(self, text):
        with self.news:
            return [line for line in self.errors if text in line]


class Hub(Process):
    def __init__(self, test, *arguments, start_with=2, recipe="static", steps=1_000_000):
        # Without end, almost: an interrupt lets everyone finish the step they are in.
        super().__init__(test, LONGHAUL, "hub", "smoke", "--listen", "127.0.0.1:0", "--json", "--recipe", recipe,
                         "--set", f"train.steps={steps}", "--set", "replica.step_time=20ms", "--start-with", start_with,
                         "--patience", "0s", "--status-every", "100ms", *arguments)
        self.port = self.until(lambda event: event["event"] == "listening", "the hub listens")["port"]
        self.address = f"127.0.0.1:{self.port}"

    def status_with(self, claim, what):
        return self.until(lambda event: event["event"] == "status" and claim(event), what)

    def count(self, key):
        """As it is now: the hub tells of a moment ago, so the third that comes is awaited."""
        with self.news:
            seen = len(self.events)
        came = []
        self.until(lambda event: event["event"] == "status" and (came.append(event) or len(came) > 2), "a status", seen)
        return came[-1][key]

    def goes_on(self):
        """Rounds close from now on."""
        rounds = self.count("next_round")
        self.status_with(lambda status: status["next_round"] > rounds + 5, "training goes on")


class Guests(CommandTest):
    def honest(self, *arguments):
        return Process(self, HONEST, "--json", "--replicas", 2, *arguments)

    def rude(self, hub, lie, *arguments):
        rude = Process(self, RUDE, "--hub", hub.address, "--lie", lie, *arguments)
        self.assertEqual(rude.wait(), 0, rude.errors)
        return rude.events

    def end_in_order(self, hub, honest):
        """The honest ones finish with the same model, and nothing of theirs was refused."""
        hub.child.send_signal(signal.SIGINT)
        self.assertEqual(honest.wait(), 0, honest.errors)
        digests = [event["digest"] for event in honest.events if event["event"] == "finished"]
        self.assertEqual(len(digests), 2)
        self.assertEqual(len(set(digests)), 1)
        self.assertEqual(hub.wait(), 130, hub.errors)
        last = [event for event in hub.events if event["event"] == "status"][-1]
        for replica in last["replicas"]:
            if replica["name"].startswith("honest"):
                self.assertEqual((replica["rejected"], replica["returned"]), (0, 0), replica)
        self.assertEqual(last["mismatches"], 0)
