#!/usr/bin/env python3
"""`rehearse` when something goes wrong: on purpose, by mistake, or because someone presses Ctrl-C.

usage: rehearse_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import books
from command import DEADLINE_S, LONGHAUL, CommandTest

SMALL = ("--set", "train.stop=steps", "--set", "train.steps=6", "--set", "replica.step_time=300ms")


def children_of(pid):
    """Living processes whose parent is `pid`: what they run -> id."""
    found = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found[(status.parent / "cmdline").read_text().replace("\0", " ")] = int(status.parent.name)
        except OSError:
            continue  # it ended meanwhile
    return found


def sockets_of(pid):
    targets = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            targets.add(os.readlink(descriptor))
        except OSError:
            continue
    return {target for target in targets if target.startswith("socket:")}


class RehearseTest(CommandTest):
    def start(self, *arguments):
        process = subprocess.Popen([LONGHAUL, "rehearse", *map(str, arguments), "--out", "r"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def ended(self, process, code):
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, err)
        self.assertEqual(children_of(process.pid), {})
        return out, err

    def child(self, process, text):
        """Waits for a child whose command line has it."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline and process.poll() is None:
            for command, child in children_of(process.pid).items():
                if text in command:
                    return child
        self.fail(f"no child {text}")

    def results(self):
        return json.loads((self.directory / "r/results.json").read_text())["runs"]

    def left_behind(self):
        return [str(path) for path in self.directory.glob("r/*/*") if path.suffix != ".log"]


class Mishaps(RehearseTest):
    def test_ctrl_c_while_it_starts(self):
        rehearse = self.start("smoke", "--recipe", "d-sgd")
        self.child(rehearse, "--evaluate")
        rehearse.send_signal(signal.SIGINT)
        self.ended(rehearse, 130)

    def test_what_was_done_stays_when_a_later_run_fails(self):
        rehearse = self.start("smoke", "--recipe", "d-sgd,static", *SMALL)
        os.kill(self.child(rehearse, "--recipe static"), signal.SIGKILL)
        _, err = self.ended(rehearse, 1)
        self.assertIn("static: hub ended with 137", err)
        self.assertEqual([run["recipe"] for run in self.results()], ["d-sgd"])
        self.assertEqual(self.left_behind(), [])

    def test_a_replica_that_leaves_before_the_run_is_over(self):
        rehearse = self.start("smoke", "--recipe", "d-sgd", "--set", "train.steps=100000", "--set", "target.value=0.99")
        rehearse.stderr.readline()  # all are there
        os.kill(self.child(rehearse, "replica-1"), signal.SIGINT)
        _, err = self.ended(rehearse, 1)
        self.assertIn("replica-1 ended with 130", err)

    def test_replicas_do_not_hold_the_sockets_of_relays(self):
        rehearse = self.start("smoke", "--recipe", "d-sgd", "--set", "train.steps=100000", "--set", "target.value=0.99")
        rehearse.stderr.readline()
        relays = sockets_of(rehearse.pid)
        self.assertGreaterEqual(len(relays), 3)
        self.assertEqual(relays & sockets_of(self.child(rehearse, "replica-2")), set())
        rehearse.send_signal(signal.SIGINT)
        self.ended(rehearse, 130)

    def test_a_trace_beside_the_scenario_is_found(self):
        smoke = (LONGHAUL.parent.parent / "share/longhaul/scenarios/smoke.toml").read_text()
        (self.directory / "s").mkdir()
        (self.directory / "s/own.toml").write_text(smoke.replace("[link]", "[link]\ntrace = \"own.csv\""))
        (self.directory / "s/own.csv").write_text("t_s,mbps\n0,1\n1,2\n2,1\n")
        self.ended(self.start("s/own.toml", "--recipe", "static", *SMALL), 0)

    def test_a_run_that_diverges_says_so(self):
        rehearse = self.start("smoke", "--recipe", "d-sgd", "--set", "train.steps=100000", "--set", "train.lr=1e38", "--set",
                              "target.value=0.99")
        self.ended(rehearse, 0)
        run = self.results()[0]
        self.assertEqual((run["status"], run["final_loss"]), ("diverged", None))


class Report(RehearseTest):
    """What a rehearsal tells at its end comes from what its processes did."""

    def test_has_real_times_a_time_line_and_the_digest(self):
        rehearse = self.start("smoke", "--recipe", "static:delay_steps=2", "--set", "train.stop=steps", "--set", "train.steps=30",
                              "--set", "replica.step_time=100ms", "--set", "link.latency=40ms")
        out, _ = self.ended(rehearse, 0)
        run, = self.results()
        self.assertIn("Real time, emulated links", out)
        self.assertIn(f"all {run['replicas']} models equal (digest {run['digest']})", out)
        page = (self.directory / "r/report.html").read_text()
        self.assertIn("Longhaul rehearsal · smoke", page)
        self.assertIn("Predicted and measured", page)
        head, row = (self.directory / "r/results.csv").read_text().splitlines()
        self.assertEqual(dict(zip(head.split(","), row.split(","), strict=True))["digest"], run["digest"])

        events = [json.loads(line) for line in (self.directory / "r/events.jsonl").read_text().splitlines()]
        spans = [event for event in events if event["event"] == "activity"]
        for replica in range(run["replicas"]):
            kinds = {span["activity"] for span in spans if span["replica"] == replica}
            self.assertLessEqual({"compute", "send", "receive"}, kinds, replica)
        for span in spans:
            self.assertGreaterEqual(span["end_s"], span["begin_s"])
        # On the clock of the run a message takes at least its latency, and its mean comes after it.
        sent = {(span["replica"], span["step"]): span for span in spans if span["activity"] == "send"}
        for mean in (span for span in spans if span["activity"] == "receive"):
            self.assertGreaterEqual(mean["end_s"] - mean["begin_s"], 0.04 - 1e-6)
            if update := sent.get((mean["replica"], mean["step"])):
                self.assertLessEqual(update["end_s"], mean["begin_s"] + 1e-3)
        # The parts of a step are a step, with some room for what a busy machine does between them.
        for one in run["time_by_replica"]:
            self.assertGreater(one["computing_s"], 0.9 * 0.1 * run["steps"])
            self.assertLess(sum(one.values()) - one["communicating_s"], 1.1 * run["virtual_s"])

    def test_of_a_recipe_by_layer_measures_what_was_hidden(self):
        words = ("smoke", "--recipe", "wfbp,dreamddp:period_steps=4", "--set", "train.stop=steps", "--set", "train.steps=16", "--set",
                 "replica.step_time=200ms")
        self.ended(self.start(*words), 0)
        events = [json.loads(line) for line in (self.directory / "r/events.jsonl").read_text().splitlines()]
        self.assertEqual([event["step"] for event in events if event["event"] == "step"], 2 * list(range(1, 17)))
        lab = self.longhaul("lab", *words, "--json")
        for run, expected in zip(self.results(), json.loads(lab.stdout)["runs"], strict=True):
            self.assertIsNotNone(run["predicted_step_time_s"])
            self.assertEqual(run["part_names"], expected["part_names"])
            self.assertEqual(len(run["schedule_names"]), run["period_steps"])
            self.assertAlmostEqual(run["hidden_share"], expected["hidden_share"], delta=0.15)
            self.assertAlmostEqual(expected["hidden_share"], expected["planned_hidden_share"], delta=0.1)


class LocalSteps(RehearseTest):
    def test_they_end_with_the_bits_of_the_lab(self):
        words = ("smoke", "--recipe", "olco3-tc,olco3-vq,streaming-diloco", "--set", "train.stop=steps", "--set",
                 "train.steps=62", "--set", "replica.step_time=60ms")
        self.ended(self.start(*words), 0)
        lab = self.longhaul("lab", *words, "--json")
        self.assertEqual(lab.returncode, 0, lab.stderr)
        self.assertEqual([run["digest"] for run in self.results()],
                         [run["digest"] for run in json.loads(lab.stdout)["runs"]])

    def test_the_last_step_makes_one_model_of_all(self):
        words = ("smoke", "--recipe", "olco3-tc", "--set", "train.stop=steps", "--set", "train.steps=18", "--set",
                 "replica.step_time=60ms", "--set", "train.final_average=yes")
        self.ended(self.start(*words), 0)
        lab = self.longhaul("lab", *words, "--json")
        self.assertEqual(self.results()[0]["digest"], json.loads(lab.stdout)["runs"][0]["digest"])
        self.assert_refused(self.longhaul("lab", "smoke", "--recipe", "diloco:period_steps=8", "--set",
                                          "train.final_average=yes"),
                            "train.final_average", "diloco")


class Faults(RehearseTest):
    def test_it_survives_its_own_faults(self):
        rehearse = self.start("smoke", "--recipe", "deco", "--set", "train.steps=100000", "--faults", 6, "--books", "--json")
        _, err = self.ended(rehearse, 0)
        self.assertIn("fault 6: ", err)
        self.assertIn("6 faults, ", err)
        run = self.results()[0]
        self.assertEqual(run["status"], "done")
        self.assertIsNotNone(run["time_to_target_s"])
        self.assertEqual(self.left_behind(), [str(self.directory / "r/deco-1/books")])
        books.main(self.directory / "r/deco-1/books")

    def test_local_steps_survive_them_too(self):
        rehearse = self.start("smoke", "--recipe", "olco3-oc", "--set", "train.steps=100000", "--faults", 4, "--fault-seed", 2)
        _, err = self.ended(rehearse, 0)
        self.assertIn("4 faults, ", err)
        self.assertIsNotNone(self.results()[0]["time_to_target_s"])

    def test_wrong_use(self):
        for arguments, *expected in (
                (("--faults", 3, "--set", "train.stop=steps"), "--faults", "target"),
                (("--for", "soon"), "--for", "soon"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul("rehearse", "smoke", *arguments), *expected)


if __name__ == "__main__":
    unittest.main()
