#!/usr/bin/env python3
"""A run over the hub evaluates, ends at its target, and its exported model scores the same.

usage: evaluate_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import pathlib
import struct
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest
from guests import Process

# The pace leaves time to score between two evaluations; the target is within reach, and not at once.
RUN = ("smoke", "--listen", "127.0.0.1:0", "--recipe", "static", "--set", "train.steps=2000", "--set",
       "replica.step_time=10ms", "--patience", "0s")
TARGET = 0.6


def header_of(file):
    """Names of tensors with their shapes, and the metadata, of a safetensors file."""
    data = pathlib.Path(file).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = json.loads(header.pop("__metadata__")["longhaul"])
    return {name: entry["shape"] for name, entry in header.items()}, metadata


class EvaluateTest(CommandTest):
    def hub(self, *arguments):
        hub = Process(self, LONGHAUL, "hub", *RUN, "--json", *arguments)
        self.port = hub.until(lambda e: e["event"] == "listening", "the hub listens")["port"]
        return hub

    def replica(self, slot, *arguments):
        return ("train", "--hub", f"127.0.0.1:{self.port}", "--name", f"r{slot}", "--slot", slot, "--paced", *arguments)

    def json(self, *arguments):
        done = self.longhaul(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Target(EvaluateTest):
    def test_a_run_ends_at_its_target_also_when_the_evaluating_replica_is_killed(self):
        ends_at = ("--dir", "run", "--set", f"target.value={TARGET}", "--set", "train.lr=0.0002")
        hub = self.hub(*ends_at)
        replicas = [Process(self, LONGHAUL, *self.replica(slot, "--json")) for slot in range(3)]
        replicas[0].until(lambda e: e["event"] == "evaluation", "replica 0 evaluates")
        first = hub.until(lambda e: e["event"] == "evaluation", "the hub tells it")
        self.assertEqual((first["samples"], first["step"] % 2), (200, 0))
        replicas[0].child.kill()
        seen = len(hub.events)
        told = hub.until(lambda e: e["event"] == "evaluation", "replica 1 takes over", seen)
        status = self.json("status", "--hub", f"127.0.0.1:{self.port}")
        self.assertGreaterEqual(status["evaluation"]["step"], told["step"])
        self.assertEqual(status["steps"], 2000)
        self.assertGreater(status["steps_per_s"], 0)
        finished = replicas[1].until(lambda e: e["event"] == "finished", "replica 1 finishes")
        end = hub.until(lambda e: e["event"] == "finished", "the run ends")
        self.assertEqual(hub.wait(), 0)
        self.assertEqual((finished["cause"], end["cause"]), ("target", "target"))
        self.assertLess(end["steps"], 2000)
        self.assertEqual((end["steps"], end["digest"]), (finished["steps"], finished["digest"]))
        self.assertEqual(end["samples"], 10_000, "the closing figure is of all held-out data")
        scores = [e["accuracy"] for e in hub.events if e["event"] == "evaluation" and e["samples"] == 200]
        means = [sum(scores[i:i + 3]) / 3 for i in range(len(scores) - 2)]
        self.assertGreaterEqual(max(means), TARGET)
        self.assert_scores_as(end)
        again = Process(self, LONGHAUL, "hub", *RUN, "--json", *ends_at)
        self.assertEqual(again.wait(), 0, "a hub on this directory knows that the run is done")

    def assert_scores_as(self, end):
        exported = self.json("export", "run", "--out", "model.safetensors")
        self.assertEqual(exported["digest"], end["digest"])
        score = self.json("evaluate", "model.safetensors", "smoke")
        self.assertAlmostEqual(score["accuracy"], end["accuracy"], delta=1e-6)
        self.assertAlmostEqual(score["loss"], end["loss"], delta=1e-6)
        self.assertEqual((score["samples"], score["digest"]), (10_000, end["digest"]))


class ForPeople(EvaluateTest):
    def run_to_the_end(self, *arguments):
        """What the hub and its replicas say when they have ended."""
        hub = self.hub("--set", "train.steps=40", "--set", "train.stop=steps", *arguments)
        replicas = [subprocess.Popen([LONGHAUL, *map(str, self.replica(slot, "--save", f"{slot}.safetensors"))],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory)
                    for slot in range(3)]
        for replica in replicas:
            self.addCleanup(replica.kill)
        said = [replica.communicate(timeout=DEADLINE_S) for replica in replicas]
        self.assertEqual([replica.returncode for replica in replicas], [0, 0, 0], said)
        self.assertEqual(hub.wait(), 0)
        return hub, said

    def test_replicas_end_with_a_table_and_the_model_has_names(self):
        hub, said = self.run_to_the_end()
        for out, err in said:
            self.assertIn("all 40 steps are done", out)
            self.assertIn("steps/s", out)
            self.assertNotIn("{", out + err)
        self.assertIn("10000 held-out samples", said[0][0])
        shapes, origin = header_of(self.directory / "0.safetensors")
        self.assertEqual(sorted(shapes.values()), [[10], [10, 784]])
        self.assertEqual((origin["scenario"], origin["recipe"], origin["seed"], origin["step"]), ("smoke", "static", "1", 40))
        score = self.json("evaluate", "0.safetensors", "smoke")
        self.assertEqual(score["digest"], origin["digest"])
        self.assertIn(f"accuracy {100 * score['accuracy']:.2f} %", said[0][0])

    def test_scoring_does_not_change_the_bits_of_training(self):
        digests = set()
        for arguments in ((), ("--no-evaluation",)):
            hub, _ = self.run_to_the_end(*arguments)
            digests.add(next(e["digest"] for e in hub.events if e["event"] == "finished"))
            is_scored = any(e["event"] == "evaluation" for e in hub.events)
            self.assertEqual(is_scored, not arguments)
        self.assertEqual(len(digests), 1)


class Refusals(EvaluateTest):
    def test_wrong_models(self):
        file = self.directory / "model.safetensors"
        header = json.dumps({"out.bias": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()
        file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(12))
        self.assert_refused(self.longhaul("evaluate", file, "smoke"), "layer", "expected", "[10]", code=1)
        file.write_text("nonsense")
        self.assert_refused(self.longhaul("evaluate", file, "smoke"), "safetensors", code=1)
        self.assert_refused(self.longhaul("evaluate", "none.safetensors", "smoke"), "none.safetensors", code=1)
        self.assert_refused(self.longhaul("evaluate", file, "no-such-scenario"), "no-such-scenario")
        self.assert_refused(self.longhaul("evaluate", file), "scenario")


if __name__ == "__main__":
    unittest.main()
