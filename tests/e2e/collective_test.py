#!/usr/bin/env python3
"""`longhaul train --collective`: ranks as processes on this machine, compared with the lab, killed and resumed.

usage: collective_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import threading
import time
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest

SAME_PACE = ("--set", "train.step_time=20ms", "--set", "replica.step_time=20ms")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def torchrun(rank, size, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


class Rank:
    """One process, whose events are read as they come."""

    def __init__(self, directory, arguments, environment):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PMI"))}
        self.process = subprocess.Popen([LONGHAUL, "train", *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE, cwd=directory, env=kept | environment)
        self.events = []
        self.errors = ""
        self.fresh = queue.Queue()
        self.threads = [threading.Thread(target=self._read_events), threading.Thread(target=self._read_errors)]
        for thread in self.threads:
            thread.start()

    def _read_events(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            self.fresh.put(event)
        self.fresh.put(None)

    def _read_errors(self):
        self.errors = self.process.stderr.read()

    def await_event(self, name, **least):
        while True:
            event = self.fresh.get(timeout=DEADLINE_S)
            if event is None:
                raise AssertionError(f"ended without {name}: {self.errors}")
            if event["event"] == name and all(event[key] >= value for key, value in least.items()):
                return event

    def ignores(self, number):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
        return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)

    def wait(self):
        code = self.process.wait(timeout=DEADLINE_S)
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def of(self, name):
        return [event for event in self.events if event["event"] == name]


# A model of more than one layer, and a short run. The settings of a rank and of the lab.
LAYERS = ("--set", "model.name=mlp", "--set", "train.lr=0.02", "--set", "train.steps=20")


class CollectiveCommand(CommandTest):
    def start(self, size, *arguments, environment=torchrun):
        port = free_port()
        ranks = [Rank(self.directory, ("--collective", "smoke", "--set", f"replica.count={size // 2}", "--json",
                                       *arguments), environment(rank, size, port)) for rank in range(size)]
        for rank in ranks:
            self.addCleanup(lambda process=rank.process: process.poll() is None and process.kill())
        return ranks

    def finish(self, ranks):
        """The one digest that all ranks end with."""
        digests = set()
        for rank in ranks:
            self.assertEqual(rank.wait(), 0, rank.errors)
            last = rank.events[-1]
            self.assertEqual(last["event"], "finished")
            self.assertRegex(last["digest"], "^[0-9a-f]{16}$")
            digests.add(last["digest"])
        self.assertEqual(len(digests), 1, digests)
        return digests.pop()

    def lab(self, size, recipes, *arguments):
        done = self.longhaul("lab", "smoke", "--recipe", recipes, "--json", "--set", f"replica.count={size // 2}",
                             *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {run["recipe"]: run["digest"] for run in json.loads(done.stdout)["runs"]}


class SameBits(CollectiveCommand):
    def test_fixed_plans_end_with_the_digest_of_the_lab(self):
        for size in (2, 4):
            for recipe, digest in self.lab(size, "d-sgd,static,olco3-oc").items():
                with self.subTest(size=size, recipe=recipe):
                    self.assertEqual(self.finish(self.start(size, "--recipe", recipe)), digest)

    def test_layers_that_travel_on_their_own_do_too(self):
        for recipe, digest in self.lab(2, "wfbp,local-sgd-parts,plsgd-enp", *LAYERS).items():
            with self.subTest(recipe=recipe):
                self.assertEqual(self.finish(self.start(2, "--recipe", recipe, *LAYERS)), digest)

    def test_a_schedule_that_follows_the_link_is_the_same_on_all_ranks(self):
        for recipe in ("dreamddp", "dreamddp-late"):
            with self.subTest(recipe=recipe):
                self.finish(self.start(2, "--recipe", recipe, *LAYERS))

    def test_seed_settings_and_another_launcher_count_too(self):
        def srun(rank, size, _):
            return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_LOCALID": str(rank)}

        other = ("--seed", 7, "--set", "train.batch=8", "--set", "train.steps=60")
        digest = self.lab(2, "streaming-diloco", *other)["streaming-diloco"]
        ranks = self.start(2, "--recipe", "streaming-diloco", *other, "--rendezvous", f"127.0.0.1:{free_port()}",
                           environment=srun)
        self.assertEqual(self.finish(ranks), digest)

    def test_auto_decides_alike_on_all_ranks(self):
        for size in (2, 4):
            ranks = self.start(size, "--recipe", "auto", "--set", "train.steps=200")
            self.finish(ranks)
            self.assertEqual([rank.events[-1]["steps"] for rank in ranks], [200] * size)
            self.assertEqual({event["slot"] for rank in ranks for event in rank.of("started")}, set(range(size)))
            self.assertTrue(ranks[0].of("evaluation"))


class AllReduce(CollectiveCommand):
    def test_gradients_of_two_equal_ranks_end_with_the_digest_of_the_lab(self):
        for recipe, digest in self.lab(2, "d-sgd,wfbp", *LAYERS).items():
            with self.subTest(recipe=recipe):
                self.assertEqual(self.finish(self.start(2, "--recipe", recipe, "--all-reduce", *LAYERS)), digest)

    def test_a_run_ends_with_one_model_and_again_with_the_same(self):
        digests = {self.finish(self.start(4, "--recipe", "plsgd-enp", "--all-reduce", *LAYERS)) for _ in range(2)}
        self.assertEqual(len(digests), 1)
        self.finish(self.start(2, "--recipe", "local-sgd", "--all-reduce", *LAYERS))

    def accuracies(self, recipe):
        """At the end, with gathered updates and by all-reduce."""
        scores = []
        for way in ((), ("--all-reduce",)):
            ranks = self.start(2, "--recipe", recipe, *LAYERS, "--set", "train.steps=200", *way)
            self.finish(ranks)
            scores.append(ranks[0].of("evaluation")[-1]["accuracy"])
        return scores

    def test_layers_learn_as_much_as_with_gathered_updates(self):
        gathered, reduced = self.accuracies("plsgd-enp")  # its schedule does not follow the link
        self.assertGreater(gathered, 0.6)
        self.assertAlmostEqual(gathered, reduced, delta=0.03)

    def test_dreamddp_learns_either_way(self):
        for accuracy in self.accuracies("dreamddp"):
            self.assertGreater(accuracy, 0.6)

    def test_all_ranks_must_ask_for_it(self):
        port = free_port()
        ranks = [Rank(self.directory, ("--collective", "smoke", "--set", "replica.count=1", "--recipe", "d-sgd",
                                       *(("--all-reduce",) if rank else ())), torchrun(rank, 2, port))
                 for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.wait(), 1)
            self.assertIn("rank 1 has another scenario, recipe, seed", rank.errors)

    def test_recipes_that_it_cannot_average_are_refused(self):
        for recipe, why in (("static", "sums dense/fp32, not top_k/bf16"), ("dreamddp-late", "takes no delay"),
                            ("pipe-sgd", "takes no delay"), ("diloco:period_steps=4", "needs merge rule late or optimizer"),
                            ("auto", "sums dense/fp32")):
            with self.subTest(recipe=recipe):
                self.assert_refused(self.longhaul("train", "--collective", "smoke", "--recipe", recipe, "--all-reduce"),
                                    "--all-reduce", why)

    def test_without_a_collective_there_is_none(self):
        self.assert_refused(self.longhaul("train", "--hub", "127.0.0.1:1", "--name", "a", "--all-reduce"),
                            "--all-reduce")


class Killed(CollectiveCommand):
    def kill(self, number):
        ranks = self.start(4, "--recipe", "static", "--set", "train.steps=1000000")
        for rank in ranks:
            rank.await_event("step", step=3)
            self.assertTrue(rank.ignores(signal.SIGPIPE), "a rank that is gone would end it while it writes")
        ranks[number].process.kill()
        killed = time.monotonic()
        for rank in ranks[:number] + ranks[number + 1:]:
            self.assertEqual(rank.wait(), 1, rank.errors)
            self.assertLess(time.monotonic() - killed, 10)
            lines = rank.errors.strip().splitlines()
            self.assertEqual(len(lines), 1, rank.errors)
            self.assertIn(f"rank {number} is gone", lines[0])
            self.assertIn("--checkpoint DIR", lines[0])
        ranks[number].wait()

    def test_a_rank_ends_the_run_of_the_others_by_name(self):
        self.kill(2)

    def test_so_does_the_rank_that_has_the_store(self):
        self.kill(0)


class Resuming(CollectiveCommand):
    STEPS = ("--set", "train.steps=120")
    KEEPING = ("--checkpoint", "kept", "--checkpoint-every", 10)

    def kill_between(self, recipe, *arguments):
        """Rank 1 is killed when its newest checkpoint is one older than that of rank 0."""
        ranks = self.start(2, "--recipe", recipe, *self.STEPS, *SAME_PACE, "--paced", *self.KEEPING, *arguments)
        step = ranks[0].await_event("checkpoint", step=20)["step"]
        ranks[1].process.kill()
        self.assertEqual(ranks[0].wait(), 1)
        self.assertIn("--resume", ranks[0].errors)
        ranks[1].wait()
        # As if it had been killed before it had written it.
        newest = self.directory / "kept/rank-1.safetensors"
        previous = self.directory / "kept/rank-1.previous.safetensors"
        self.assertTrue(previous.exists())
        newest.unlink()
        return step

    def test_goes_on_at_the_newest_step_that_all_have(self):
        for recipe, digest in self.lab(2, "static,olco3-oc,olco3-tc", *self.STEPS).items():
            with self.subTest(recipe=recipe):
                step = self.kill_between(recipe)
                ranks = self.start(2, "--recipe", recipe, *self.STEPS, *SAME_PACE, *self.KEEPING, "--resume")
                self.assertEqual(self.finish(ranks), digest)
                starts = {event["step"] for rank in ranks for event in rank.of("started")}
                self.assertEqual(len(starts), 1)
                self.assertLess(starts.pop(), step + 10)
                self.assertTrue(all(event["resumed"] for rank in ranks for event in rank.of("started")))

    def test_means_in_place_go_on_too(self):
        way = ("--all-reduce", "--set", "model.name=mlp")
        for recipe in ("wfbp", "plsgd-enp"):
            with self.subTest(recipe=recipe):
                whole = self.finish(self.start(2, "--recipe", recipe, *self.STEPS, *SAME_PACE, *way))
                self.kill_between(recipe, *way)
                resumed = (*self.STEPS, *SAME_PACE, *self.KEEPING, "--resume")
                self.assertEqual(self.finish(self.start(2, "--recipe", recipe, *resumed, *way)), whole)

    def test_a_checkpoint_of_gathered_updates_is_none_of_means_in_place(self):
        self.kill_between("local-sgd")
        ranks = self.start(2, "--recipe", "local-sgd", *self.STEPS, *SAME_PACE, *self.KEEPING, "--resume",
                           "--all-reduce")
        for rank in ranks:
            self.assertEqual(rank.wait(), 1)
            self.assertIn("means", rank.errors)

    def test_a_checkpoint_that_is_gone_is_missed_by_name(self):
        self.kill_between("static")
        (self.directory / "kept/rank-1.previous.safetensors").unlink()
        for rank in self.start(2, "--recipe", "static", *self.STEPS, *SAME_PACE, *self.KEEPING, "--resume"):
            self.assertEqual(rank.wait(), 1)
            self.assertIn("rank 1 has none", rank.errors)


class Refusals(CollectiveCommand):
    def test_another_number_of_ranks_than_replicas(self):
        for rank in self.start(2, "--set", "replica.count=2"):
            self.assertEqual(rank.wait(), 2)
            self.assertIn("started 2 ranks", rank.errors)
            self.assertIn("has 4 replicas", rank.errors)

    def test_no_launcher(self):
        self.assert_refused(self.longhaul("train", "--collective", "smoke"), "WORLD_SIZE", "SLURM_PROCID")

    def test_one_file_for_the_checkpoints_of_all(self):
        self.assert_refused(self.longhaul("train", "--collective", "smoke", "--checkpoint", "a.safetensors"),
                            "--checkpoint", "directory")

    def test_options_of_a_hub(self):
        done = self.longhaul("train", "--collective", "smoke", "--hub", "127.0.0.1:1", "--name", "a")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--collective", done.stderr)

    def test_ranks_of_different_jobs(self):
        port = free_port()
        ranks = [Rank(self.directory, ("--collective", "smoke", "--set", "replica.count=1", "--seed", rank),
                      torchrun(rank, 2, port)) for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.wait(), 1)
            self.assertIn("rank 1 has another scenario, recipe, seed", rank.errors)


if __name__ == "__main__":
    unittest.main()
