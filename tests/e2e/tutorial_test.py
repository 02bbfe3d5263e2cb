#!/usr/bin/env python3
"""docs/tutorial.md as a reader runs it: its code blocks, in order, with TLS, each machine a directory of its own.

usage: tutorial_test.py DIRECTORY_OF_LONGHAUL TUTORIAL

A comment above a block says where it runs: `on the hub`, `on each machine` (berlin stands for its name), `on NAME`; with `, keeps
running` it is not waited for. `Ctrl-C on the hub` stops the hub in the middle of the run. What is substituted: the hub's
address by 127.0.0.1, its port by a free one, and scp by a copy between directories.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

TUTORIAL = pathlib.Path(sys.argv.pop(2)).read_text(encoding="utf-8")

from command import DEADLINE_S, LONGHAUL, CommandTest

MACHINES = ("berlin", "oslo", "paris")
SCP = """#!/bin/sh
exec cp "$1" "../${2%%:*}/"
"""
MARK = re.compile(r"<!-- ((?:on|Ctrl-C on|all) [^>]*?) -->(?:\n```sh\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Tutorial(CommandTest):
    def setUp(self):
        super().setUp()
        tools = self.directory / "tools"
        for place in (tools, *(self.directory / name for name in ("hub", *MACHINES))):
            place.mkdir()
        (tools / "scp").write_text(SCP)
        (tools / "scp").chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{tools}:{LONGHAUL.parent}:{os.environ['PATH']}")
        self.port = str(free_port())
        self.running = {}  # place → its process
        self.printed = {}  # place → what its last command printed
        self.least_round = 0  # of a hub that goes on
        self.ran = []

    def start(self, place, text):
        for word, by in (("hub.example.org", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("7070", self.port)):
            text = text.replace(word, by)
        self.ran.append(f"{place}$ {text.strip()}")
        with open(self.directory / f"{place}.log", "w+", encoding="utf-8") as log:
            process = subprocess.Popen(["bash", "-ec", text], cwd=self.directory / place, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def output(self, place, process, code):
        """What the process printed; it ends with this code."""
        process.wait(timeout=DEADLINE_S)
        text = (self.directory / f"{place}.log").read_text(encoding="utf-8")
        self.assertEqual(process.returncode, code, "\n".join([*self.ran, text[-5000:]]))
        return text

    def status(self):
        """What a reader sees with `longhaul status`, or nothing while the hub is not there."""
        invite = self.directory / "berlin" / "berlin.invite"
        done = subprocess.run([LONGHAUL, "status", "--invite", invite, "--json"], capture_output=True, text=True,
                              timeout=DEADLINE_S)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def wait_for(self, claim, is_so):
        """Asks the hub until it is so: each question takes a connection, so this does not spin."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so(self.status()):
            for place, process in self.running.items():
                self.assertIsNone(process.poll(), f"{place} ended before {claim}")
            self.assertLess(time.monotonic(), deadline, claim)

    def stop_the_hub(self):
        self.wait_for("the run goes on", lambda status: status.get("next_round", 0) > 50)
        os.killpg(self.running["hub"].pid, signal.SIGINT)
        self.all_end(hub=130, replica=75)
        for name in MACHINES:
            self.assertTrue((self.directory / name / f"longhaul-checkpoints/{name}.safetensors").exists(), name)
        self.least_round = 50

    def all_end(self, hub, replica):
        for place, process in self.running.items():
            self.printed[place] = self.output(place, process, hub if place == "hub" else replica)
        self.running = {}

    def run_block(self, where, text):
        place = where.partition(",")[0].removeprefix("on ").removeprefix("the ")
        names = MACHINES if place == "each machine" else (place,)
        for name in names:
            process = self.start(name, text.replace("berlin", name) if place == "each machine" else text)
            if "keeps running" in where:
                self.running[name] = process
                if name == "hub":
                    self.wait_for("the hub listens", bool)
                    self.assertGreaterEqual(self.status()["next_round"], self.least_round)
            else:
                self.printed[name] = self.output(name, process, 0)

    def test_works_block_by_block(self):
        blocks = MARK.findall(TUTORIAL)
        self.assertEqual(TUTORIAL.count("```sh"), sum(bool(text) for _, text in blocks), "a block without a place")
        for where, text in blocks:
            if "not in the test" in where:
                continue
            if where == "Ctrl-C on the hub":
                self.stop_the_hub()
            elif where.startswith("all"):
                self.all_end(hub=0, replica=0)
                closing = self.printed["hub"]
                self.assertIn("the run is done: it reached its target", closing)
            else:
                self.run_block(where, text)
        self.assertGreater((self.directory / "hub/model.safetensors").stat().st_size, 4 * 100_000)
        score = re.search(r"accuracy \d+\.\d+ %, loss \d+\.\d+ \(10000 held-out samples\)", self.printed["hub"])
        self.assertTrue(score, self.printed["hub"])
        self.assertIn(score.group(), closing, "evaluate prints the closing figure of the run")


if __name__ == "__main__":
    unittest.main()
