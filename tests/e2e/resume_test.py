#!/usr/bin/env python3
"""Replicas and hubs that are stopped or killed and go on from their checkpoints.

usage: resume_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import pathlib
import shutil
import signal
import socket
import unittest

from command import DEADLINE_S
from hub_test import HubCommand

STEPS = 60
QUICK = ("--set", f"train.steps={STEPS}", "--set", "replica.step_time=20ms")


class ResumeCommand(HubCommand):
    def train(self, port, slot, *arguments):
        return self.start("train", "--hub", f"127.0.0.1:{port}", "--name", f"r{slot}", "--slot", slot, "--json", "--resume",
                          "--paced", *arguments)

    def train_all(self, port, *arguments):
        return [self.train(port, slot, *arguments) for slot in range(3)]

    def event(self, process, is_it):
        """Its next event for which is_it holds."""
        while line := process.stdout.readline():
            event = json.loads(line)
            if is_it(event):
                return event
        self.fail(f"it ended: {process.stderr.read()}")

    def step(self, process, least):
        return self.event(process, lambda e: e["event"] == "step" and e["step"] >= least)

    def rest(self, process, code):
        """The events up to its end."""
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, err)
        return [json.loads(line) for line in out.splitlines()]

    def stop(self, replicas):
        """Ctrl-C for all; the events up to their ends."""
        for replica in replicas:
            replica.send_signal(signal.SIGINT)
        return [self.rest(replica, 130) for replica in replicas]

    def kill(self, processes):
        for process in processes:
            process.kill()
            process.wait()

    def lab_digest(self, recipe):
        lab = self.longhaul("lab", "smoke", "--recipe", recipe, "--json", *QUICK)
        self.assertEqual(lab.returncode, 0, lab.stderr)
        return json.loads(lab.stdout)["runs"][0]["digest"]

    def assert_ends_as_the_lab(self, replicas, digest):
        for replica in replicas:
            events = self.rest(replica, 0)
            self.assertTrue(next(e for e in events if e["event"] == "started")["resumed"])
            self.assertFalse([e for e in events if e["event"] == "replaced"])
            finished = next(e for e in events if e["event"] == "finished")
            self.assertEqual((finished["steps"], finished["differing_updates"], finished["digest"]), (STEPS, 0, digest))


class SameBits(ResumeCommand):
    """All rounds are full (--least 3): as if nobody had ever stopped."""

    def test_all_replicas_are_stopped_and_come_back(self):
        hub, port = self.hub("--recipe", "static", "--least", 3, *QUICK)
        replicas = self.train_all(port)
        for replica in replicas:
            self.step(replica, 15)
        for events in self.stop(replicas):
            self.assertEqual(events[-1]["event"], "checkpoint")
        self.assert_ends_as_the_lab(self.train_all(port), self.lab_digest("static"))
        self.ended(hub)

    def test_all_are_killed_and_the_hub_with_them(self):
        # In the middle of a period, and what the hub has held back of means goes with it.
        hub, port = self.hub("--recipe", "olco3-tc", "--least", 3, "--dir", "run", *QUICK)
        replicas = self.train_all(port, "--checkpoint-every", 10)
        for replica in replicas:
            saved = self.event(replica, lambda e: e["event"] == "checkpoint")
            self.step(replica, saved["step"] + 4)  # these it does again
        self.kill([hub, *replicas])
        hub, port = self.hub("--recipe", "olco3-tc", "--least", 3, "--dir", "run", *QUICK)
        self.assert_ends_as_the_lab(self.train_all(port), self.lab_digest("olco3-tc"))
        self.ended(hub)
        again = self.longhaul("hub", "smoke", "--listen", "127.0.0.1:0", "--recipe", "olco3-tc", "--least", 3, "--dir", "run",
                              "--patience", "0.1s", "--set", "train.stop=steps", *QUICK)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("the run is done", again.stderr)
        self.assertNotIn("starts when", again.stderr)


class Stopping(ResumeCommand):
    """Ctrl-C at the hub: replicas keep what is theirs, and everything goes on later."""

    def stopped(self, recipe):
        """A hub and its replicas in the middle of a run, after Ctrl-C at the hub; their events."""
        hub, port = self.hub("--recipe", recipe, "--least", 3, "--dir", "run", *QUICK)
        replicas = self.train_all(port)
        for replica in replicas:
            self.step(replica, 15)
        hub.send_signal(signal.SIGINT)
        ends = [[event for event in self.rest(replica, 75) if event["event"] != "evaluation"] for replica in replicas]
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 130)
        self.assertIn("go on with `longhaul hub --dir run --listen 127.0.0.1:0 --least 3`", hub.stderr.read())
        return ends

    def test_goes_on_with_the_bits_of_a_run_that_never_stopped(self):
        for recipe in ("static", "olco3-tc", "streaming-diloco"):
            with self.subTest(recipe=recipe):
                ends = self.stopped(recipe)
                self.assertEqual({tuple(e["event"] for e in events[-3:]) for events in ends},
                                 {("checkpoint", "finished", "stopped")})
                self.assertEqual({events[-2]["cause"] for events in ends}, {"stopped"})
                self.assertEqual(len({events[-2]["digest"] for events in ends}), 1)
                self.assertEqual({events[-1]["step"] for events in ends}, {events[-3]["step"] for events in ends})
                hub = self.start("hub", "--dir", "run", "--listen", "127.0.0.1:0", "--least", 3, "--json")
                port = json.loads(hub.stdout.readline())["port"]
                self.drain(hub)
                self.assert_ends_as_the_lab(self.train_all(port), self.lab_digest(recipe))
                self.ended(hub)
                shutil.rmtree(self.directory / "run")
                shutil.rmtree(self.directory / "longhaul-checkpoints")

    def test_what_was_asked_for_again_must_be_as_it_was(self):
        self.stopped("static")
        for arguments, *expected in (
                (("--set", "train.steps=61"), "train.steps 60", "asked for is 61", "`longhaul hub --dir run` alone"),
                (("--set", "train.lr=1"), "train.lr not set", "asked for is 1"),
                (("--recipe", "auto"), "the recipe static", "auto"),
                (("--seed", 3), "the seed 1", "3"),
                (("smoke", "--recipe", "static"), "replica.step_time 20ms", "none"),
                (("fashion-wan",), "the scenario smoke", "fashion-wan"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul("hub", "--dir", "run", "--listen", "127.0.0.1:0", *arguments), *expected)
        self.assert_refused(self.longhaul("hub"), "expected a scenario", "--dir")
        self.assert_refused(self.longhaul("hub", "--dir", "elsewhere"), "elsewhere", "expected a scenario")

    def test_people_are_told_how_to_go_on(self):
        hub, port = self.hub("--recipe", "static", *QUICK, "--set", "train.steps=100000")
        words = ("train", "--hub", f"127.0.0.1:{port}", "--paced", "--name")
        replicas = [self.start(*words, "a", "--resume"), self.start(*words, "b"), self.train(port, 2)]
        self.step(replicas[2], 3)
        hub.send_signal(signal.SIGINT)
        said = []
        for replica in replicas:
            said.append(replica.communicate(timeout=DEADLINE_S)[1])
            self.assertEqual(replica.returncode, 75, said)
        self.assertRegex(said[0], "stopped by the hub at step [0-9]+ of 100000; go on with "
                                  f"`longhaul {' '.join(words)} a --resume`")
        self.assertIn("without a checkpoint", said[1])
        self.assertIn("without --dir the run cannot go on", hub.stderr.read())

    def test_the_command_to_go_on_keeps_evaluation_off(self):
        hub, _ = self.hub("--dir", "run", "--no-evaluation")
        hub.send_signal(signal.SIGINT)
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 130)
        self.assertIn("go on with `longhaul hub --dir run --listen 127.0.0.1:0 --no-evaluation`", hub.stderr.read())

    def test_before_the_start(self):
        hub, port = self.hub("--dir", "run")
        replica = self.train(port, 0)  # the other two do not come
        self.assertIn("replica r0 is here", hub.stderr.readline())
        hub.send_signal(signal.SIGINT)
        self.assertEqual(self.rest(replica, 75)[-1]["event"], "stopped")
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 130)

    def test_nobody_is_waited_for_if_nobody_is_here(self):
        hub, port = self.hub("--recipe", "static", "--dir", "run", *QUICK, "--patience", "1h")
        replicas = self.train_all(port)
        self.step(replicas[0], 3)
        self.kill(replicas)
        gone = 0
        while gone < 3:
            gone += "is gone" in hub.stderr.readline()
        hub.send_signal(signal.SIGINT)
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 130)
        self.assertIn("no replica is here, so it stops at once", hub.stderr.read())


class Waiting(ResumeCommand):
    """A replica that comes before its hub, or beside another one of its name."""

    def test_a_replica_waits_for_its_hub(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        replicas = self.train_all(port)
        for replica in replicas:
            said = replica.stderr.readline()
            self.assertIn(f"hub at 127.0.0.1:{port}: it does not answer (connection refused); trying again", said)
        hub = self.start("hub", "smoke", "--recipe", "static", "--listen", f"127.0.0.1:{port}", "--json", *QUICK)
        self.drain(hub)
        self.assertEqual(len({self.finished(replica)["digest"] for replica in replicas}), 1)
        self.ended(hub)

    def test_ctrl_c_ends_the_wait(self):
        replica = self.train(9, 0)
        self.assertIn("does not answer", replica.stderr.readline())
        replica.send_signal(signal.SIGINT)
        self.rest(replica, 130)

    def test_two_of_one_name(self):
        hub, port = self.hub("--recipe", "static", *QUICK)
        first = self.train(port, 0)
        self.assertIn("no --dir", hub.stderr.readline())
        self.assertIn("replica r0 is here", hub.stderr.readline())
        second = self.train(port, 0)
        err = second.communicate(timeout=DEADLINE_S)[1]
        self.assertEqual(second.returncode, 1, err)
        self.assertIn("another replica of this name is here", err)
        self.assertIsNone(first.poll())

    @staticmethod
    def started(lines):
        """The event of that name. Others may come before it."""
        return next(event for event in map(json.loads, lines) if event["event"] == "started")

    def test_goes_on_with_the_threads_of_its_checkpoint(self):
        hub, port = self.hub("--recipe", "static", *QUICK, "--set", "train.steps=100000")
        replicas = [self.train(port, 0, "--threads", 3), *(self.train(port, slot) for slot in (1, 2))]
        self.step(replicas[1], 3)
        replicas[0].send_signal(signal.SIGINT)
        out, err = replicas[0].communicate(timeout=DEADLINE_S)
        self.assertEqual(replicas[0].returncode, 130, err)
        self.assertEqual(self.started(out.splitlines())["threads"], 3)
        self.assertEqual(self.started(replicas[2].stdout)["threads"], 1)  # the hub is on this machine
        words = ("train", "--hub", f"127.0.0.1:{port}", "--name", "r0", "--resume", "--paced", "--json")
        for asked, used in (((), 3), (("--threads", 2), 2)):
            replica = self.start(*words, *asked)
            self.assertEqual(self.started(replica.stdout)["threads"], used)
            replica.send_signal(signal.SIGINT)
            out, err = replica.communicate(timeout=DEADLINE_S)
            self.assertEqual(replica.returncode, 130, err)
            self.assertEqual("--threads 2 from a run with 3" in err, used == 2, err)

    def test_ctrl_c_says_how_to_go_on(self):
        hub, port = self.hub("--recipe", "static", "--set", "train.steps=100000")
        words = ("train", "--hub", f"127.0.0.1:{port}", "--name", "a", "--checkpoint", "here")
        replica = self.start(*words)
        others = [self.train(port, slot) for slot in (1, 2)]
        self.step(others[0], 3)
        replica.send_signal(signal.SIGINT)
        err = replica.communicate(timeout=DEADLINE_S)[1]
        self.assertEqual(replica.returncode, 130, err)
        self.assertRegex(err, "interrupted at step [0-9]+ of 100000; go on with "
                              f"`longhaul {' '.join(words)} --resume`")


class GoingOn(ResumeCommand):
    def test_one_is_killed_and_comes_back_while_the_others_go_on(self):
        hub, port = self.hub("--recipe", "static", "--set", "train.steps=100000", "--set", "replica.step_time=20ms")
        replicas = self.train_all(port, "--checkpoint-every", 5)
        saved = self.event(replicas[2], lambda e: e["event"] == "checkpoint")
        self.step(replicas[2], saved["step"] + 3)
        self.kill(replicas[2:])
        replicas[2] = self.train(port, 2)
        started = self.event(replicas[2], lambda e: e["event"] == "started")
        self.assertTrue(started["resumed"])
        self.assertGreaterEqual(started["step"], saved["step"])
        self.event(replicas[2], lambda e: e["event"] == "step" and not e["took_part"])
        self.event(replicas[2], lambda e: e["event"] == "step" and e["took_part"])
        hub.send_signal(signal.SIGINT)
        ends = [next(event for event in self.rest(replica, 75) if event["event"] == "finished") for replica in replicas]
        self.assertEqual(len({end["digest"] for end in ends}), 1)
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 130)

    def test_auto_goes_on_without_a_jump_in_loss(self):
        hub, port = self.hub("--recipe", "auto", "--least", 3, *QUICK)
        replicas = self.train_all(port)
        before = []
        while len(before) < 40:
            before.append(self.step(replicas[0], 1))
        self.stop(replicas)
        replicas = self.train_all(port)
        after = [e for e in self.rest(replicas[0], 0) if e["event"] == "step"]

        def mean(steps):
            return sum(step["loss"] for step in steps) / len(steps)
        # The first model has a loss of ln 10 = 2.3.
        self.assertLess(mean(after[:10]), 1.5 * mean(before[-10:]))
        digests = {self.finished(replica)["digest"] for replica in replicas[1:]}
        self.assertEqual(len(digests), 1)
        self.ended(hub)


class CtrlC(ResumeCommand):
    def test_the_second_one_ends_it_at_once(self):
        hub, port = self.hub("--set", "replica.step_time=1h", "--recipe", "static")
        replicas = self.train_all(port)
        for replica in replicas:
            self.event(replica, lambda e: e["event"] == "started")
        replicas[0].send_signal(signal.SIGINT)
        # Two signals at once would be one: it must have noticed the first.
        caught = 1 << (signal.SIGINT - 1)
        while int(self.process_status(replicas[0].pid, "SigCgt"), 16) & caught:
            self.assertIsNone(replicas[0].poll())
        replicas[0].send_signal(signal.SIGINT)
        self.assertEqual(replicas[0].wait(timeout=DEADLINE_S), -signal.SIGINT)

    @staticmethod
    def process_status(pid, key):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line.split()[1] for line in lines if line.startswith(key))

    def test_it_does_not_wait_for_a_hub_that_does_not_start(self):
        hub, port = self.hub()
        replica = self.train(port, 0)  # the other two do not come
        self.assertIn("no --dir", hub.stderr.readline())
        self.assertIn("replica r0 is here", hub.stderr.readline())
        replica.send_signal(signal.SIGINT)
        self.rest(replica, 130)


class Divergence(ResumeCommand):
    def test_it_is_told_and_ends_the_replica(self):
        hub, port = self.hub("--recipe", "d-sgd", "--set", "train.lr=1e38", "--set", "replica.step_time=1ms", "--set",
                             "train.steps=1000")
        for replica in self.train_all(port):
            out, err = replica.communicate(timeout=DEADLINE_S)
            self.assertEqual(replica.returncode, 1, err)
            self.assertIn("diverged", err)
            losses = [event["loss"] for event in map(self.strict_json, out.splitlines()) if event["event"] == "step"]
            self.assertIn(None, losses)  # NaN is not JSON

    def strict_json(self, line):
        return json.loads(line, parse_constant=lambda constant: self.fail(f"{constant} is not JSON"))


class Refusals(ResumeCommand):
    def test_a_checkpoint_of_another_run(self):
        hub, port = self.hub("--recipe", "static", *QUICK)
        replicas = self.train_all(port)
        self.step(replicas[0], 3)
        self.stop(replicas)
        self.kill([hub])
        for other, *expected in (
                (("--recipe", "static", "--seed", 2, *QUICK), "seed '1', here '2'"),
                (("--recipe", "d-sgd", *QUICK), "recipe 'static', here 'd-sgd'"),
                (("--recipe", "static", *QUICK, "--set", "model.name=mlp"), "settings '', here 'model.name=mlp'"),
                (("--recipe", "static", *QUICK), "another run", "anew", "longhaul-checkpoints/r0.safetensors", "--checkpoint"),
        ):
            with self.subTest(other=other):
                hub, port = self.hub(*other)
                refused = self.longhaul("train", "--hub", f"127.0.0.1:{port}", "--name", "r0", "--resume")
                self.assert_refused(refused, *expected, code=1)
                self.kill([hub])
        (self.directory / "longhaul-checkpoints/r0.safetensors").write_text("damaged")
        hub, port = self.hub("--recipe", "static", *QUICK)
        refused = self.longhaul("train", "--hub", f"127.0.0.1:{port}", "--name", "r0", "--resume")
        self.assert_refused(refused, "r0.safetensors", code=1)
        self.kill([hub])

    def test_wrong_use(self):
        for every in ("often", "0", "-1s"):
            refused = self.longhaul("train", "--hub", "127.0.0.1:7", "--name", "a", f"--checkpoint-every={every}")
            self.assert_refused(refused, "--checkpoint-every", every)


if __name__ == "__main__":
    unittest.main()
