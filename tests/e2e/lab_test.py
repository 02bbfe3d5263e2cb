#!/usr/bin/env python3
"""`longhaul lab` as a user meets it: exit codes, streams, files, and the same bits on any number of threads.

usage: lab_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import signal
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest

RUN_KEYS = {"recipe", "seed", "replicas", "parameters", "steps", "time_to_target_s", "steps_to_target", "final_loss",
            "final_accuracy", "virtual_s", "efficiency", "bytes_up", "bytes_down", "digest"}


class LabCommand(CommandTest):
    def scenario(self, text):
        path = self.directory / "mine.toml"
        path.write_text(text)
        return path


class SameBits(LabCommand):
    def test_same_digests_every_time_and_on_any_number_of_threads(self):
        digests = set()
        for threads in (1, 1, 2, 3):
            done = self.longhaul("lab", "smoke", "--json", "--threads", threads)
            self.assertEqual(done.returncode, 0, done.stderr)
            digests.add(tuple((run["recipe"], run["digest"], run["virtual_s"])
                              for run in json.loads(done.stdout)["runs"]))
        self.assertEqual(len(digests), 1, digests)
        other = self.longhaul("lab", "smoke", "--json", "--seed", 2)
        self.assertNotIn(json.loads(other.stdout)["runs"][0]["digest"], str(digests))


class Results(LabCommand):
    def test_json_has_the_promised_keys_and_stdout_nothing_else(self):
        done = self.longhaul("lab", "smoke", "--json", "--recipe", "d-sgd,auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = json.loads(done.stdout)["runs"]
        self.assertEqual([run["recipe"] for run in runs], ["d-sgd", "auto"])
        for run in runs:
            self.assertLessEqual(RUN_KEYS, run.keys())
        self.assertEqual(runs[0]["plans"], [])
        self.assertLessEqual(runs[0]["computing"], runs[0]["efficiency"] + 1e-9)
        self.assertIn("steps", runs[1]["plans"][0]["reason"])

    def test_replay_gives_what_a_run_gives(self):
        faster = ("--set", "link.up=2mbit", "--set", "link.latency=5ms")
        for arguments in (("--out", "first"), ("--out", "again", *faster)):
            self.assertEqual(self.longhaul("lab", "smoke", "--recipe", "d-sgd,static", *arguments).returncode, 0)
        done = self.longhaul("lab", "smoke", "--replay", "first", "--out", "replayed", "--json", *faster)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = json.loads((self.directory / "again/results.json").read_text())["runs"]
        for replayed, run in zip(json.loads(done.stdout)["runs"], again, strict=True):
            for key in ("recipe", "digest", "virtual_s", "step_time_s", "time_to_target_s", "bytes_up"):
                self.assertEqual(replayed[key], run[key], key)
        one = self.longhaul("lab", "smoke", "--replay", "first", "--recipe", "static", "--out", "one", "--json")
        self.assertEqual([run["recipe"] for run in json.loads(one.stdout)["runs"]], ["static"])
        self.assert_refused(self.longhaul("lab", "smoke", "--replay", "first", "--seed", "9", "--out", "none"),
                            "no run to replay", code=1)

    def test_replay_keeps_what_it_reads_and_says_what_it_cannot_do(self):
        self.assertEqual(self.longhaul("lab", "smoke", "--recipe", "d-sgd").returncode, 0)
        made = self.directory / "longhaul-results/smoke"
        events = (made / "events.jsonl").read_text()
        replay = ("lab", "smoke", "--replay", made)
        for arguments, expected in ((("--out", made), "reads from there"),
                                    (("--grid", "link.up=1mbit,2mbit"), "--grid"),
                                    (("--set", "train.lr=0.5"), "train.lr")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul(*replay, *arguments), expected)
        for _ in range(2):  # the second one finds all of it there
            done = self.longhaul(*replay, "--resume", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(json.loads(done.stdout)["runs"]), 1)
        self.assertTrue((self.directory / "longhaul-results/smoke-replay/results.json").exists())
        self.assertEqual((made / "events.jsonl").read_text(), events)
        damaged = self.directory / "damaged"
        damaged.mkdir()
        (damaged / "events.jsonl").write_text(events.replace('"period_steps":1', '"period_steps":0'))
        done = self.longhaul("lab", "smoke", "--replay", damaged, "--out", "none")
        self.assertIn("period_steps 0: expected 1 to 10000", done.stderr)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_resume_notices_another_trace(self):
        trace = self.directory / "rates.csv"
        arguments = ("lab", "smoke", "--recipe", "d-sgd", "--set", f"link.trace={trace}", "--out", "kept")
        trace.write_text("0,1\n1,2\n2,1\n")
        self.assertEqual(self.longhaul(*arguments).returncode, 0)
        self.assertEqual(self.longhaul(*arguments, "--resume").returncode, 0)
        trace.write_text("0,1\n1,9\n2,1\n")
        self.assertNotEqual(self.longhaul(*arguments, "--resume").returncode, 0)

    def test_a_lab_that_cannot_begin_leaves_the_results_before_it(self):
        self.assertEqual(self.longhaul("lab", "smoke", "--recipe", "d-sgd", "--out", "kept").returncode, 0)
        before = (self.directory / "kept/results.json").read_bytes(), (self.directory / "kept/events.jsonl").read_bytes()
        for arguments, expected in ((("smoke", "--replay", "nowhere"), "nowhere"),
                                    (("cifar-wan", "--set", "data.path=nowhere"), "data.path")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul("lab", *arguments, "--out", "kept"), expected, code=1)
                after = (self.directory / "kept/results.json").read_bytes(), (self.directory / "kept/events.jsonl").read_bytes()
                self.assertEqual(before, after)

    def test_oracle_judges_against_the_best_fixed_plan_of_an_earlier_run(self):
        plans = "static:keep_ratio=0.05:delay_steps=2,static:keep_ratio=0.1:delay_steps=1"
        self.assertEqual(self.longhaul("lab", "smoke", "--recipe", plans, "--out", "fixed").returncode, 0)
        times = [run["time_to_target_s"]
                 for run in json.loads((self.directory / "fixed/results.json").read_text())["runs"]]
        done = self.longhaul("lab", "smoke", "--oracle", "--replay", "fixed", "--out", "judged", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        oracle = result["oracle"]
        self.assertAlmostEqual(oracle["best_fixed"]["time_s"], min(times))
        auto = next(run["time_to_target_s"] for run in result["runs"] if run["recipe"] == "auto")
        self.assertAlmostEqual(oracle["judged"][0]["regret"], auto / min(times) - 1)
        self.assertGreater(oracle["clairvoyant"]["time_s"], 0)
        done = self.longhaul("lab", "smoke", "--oracle", "--replay", "fixed", "--out", "judged")
        self.assertIn("than the best fixed plan", done.stdout)

    def test_writes_results_report_and_events(self):
        done = self.longhaul("lab", "smoke", "--recipe", "d-sgd", "--out", "there")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.directory / "there/results.json").read_text())
        self.assertEqual([run["recipe"] for run in results["runs"]], ["d-sgd"])
        self.assertIn("<html", (self.directory / "there/report.html").read_text())
        for line in (self.directory / "there/events.jsonl").read_text().splitlines():
            self.assertIn("event", json.loads(line))

    def test_a_target_that_is_not_reached_is_said_and_is_no_failure(self):
        done = self.longhaul("lab", "smoke", "--recipe", "d-sgd", "--set", "target.value=0.999")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not reached", done.stdout)
        done = self.longhaul("lab", "smoke", "--recipe", "d-sgd", "--set", "target.value=0.999", "--json")
        self.assertIsNone(json.loads(done.stdout)["runs"][0]["time_to_target_s"])


class Quiet(LabCommand):
    def test_says_nothing_while_it_runs(self):
        done = self.longhaul("lab", "smoke", "--recipe", "d-sgd", "--set", "train.steps=5", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("report", done.stdout)


class Refusals(LabCommand):
    def test_wrong_scenarios_are_refused_with_the_place_and_what_was_expected(self):
        base = '[link]\nup = "1mbit"\ndown = "1mbit"\nlatency = "10ms"\n[[replica]]\ncount = 2\n'
        for text, *expected in (
                (base + "[train]\nbatches = 3\n", "mine.toml:8", "train.batches", "batch"),
                (base.replace('"1mbit"', '"-1mbit"', 1), "mine.toml:2", "link.up", "expected"),
                (base + "[recipe.dd-ef-sgd]\nkeep_ratio = 0\n", "mine.toml:8", "keep_ratio", "expected"),
                ("[train\n", "mine.toml:1"),
        ):
            with self.subTest(text=text):
                self.assert_refused(self.longhaul("lab", self.scenario(text)), *expected)

    def test_wrong_use_is_refused(self):
        for arguments, *expected in (
                (("lab", "no-such-scenario"), "no-such-scenario", "fashion-wan"),
                (("lab", "smoke", "--recipe", "d-gsd"), "d-gsd", "d-sgd"),
                (("lab", "smoke", "--recipe", "dd-ef-sgd:keep_ratio=0"), "keep_ratio", "expected"),
                (("lab", "smoke", "--recipe", "d-sgd,auto:keep_ratio=0.1"), "keep_ratio", "by itself"),
                (("lab", "smoke", "--recipe", "d-sgd,deco-ahead", "--set", "train.optimizer=adamw"), "ahead", "adamw"),
                (("lab", "smoke", "--set", "train.lr=fast"), "train.lr", "expected"),
                (("lab", "smoke", "--seed", "one"), "--seed"),
                (("lab", "smoke", "--oracle", "--grid", "train.lr=0.1,0.2"), "--oracle", "--grid"),
                (("lab", "smoke", "--threads", "0"), "--threads"),
                (("lab",), "scenario"),
                (("labs",), "labs"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul(*arguments), *expected)

    def test_missing_data_says_where_it_looked(self):
        done = self.longhaul("lab", "smoke", "--set", "data.path=/nowhere")
        self.assert_refused(done, "/nowhere", code=1)

    def test_help_of_everything(self):
        for arguments in (("--help",), ("lab", "--help"), ("bench", "--help"), ("bench", "codec", "--help")):
            done = self.longhaul(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertIn("--help", done.stdout)


class CtrlC(LabCommand):
    def test_ctrl_c_ends_cleanly_and_keeps_what_was_done(self):
        lab = subprocess.Popen([LONGHAUL, "lab", "smoke", "--recipe", "d-sgd", "--set", "train.steps=1000000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(lab.kill)
        first = lab.stderr.readline()  # progress: the run has begun
        self.assertIn("d-sgd", first)
        lab.send_signal(signal.SIGINT)
        out, err = lab.communicate(timeout=DEADLINE_S)
        self.assertEqual(lab.returncode, 130, err)
        results = json.loads((self.directory / "longhaul-results/smoke/results.json").read_text())
        self.assertEqual(results["runs"][0]["status"], "interrupted")
        self.assertIn("report.html", out)
        self.assertIn("the same command with --resume goes on", err)


class Resuming(LabCommand):
    def test_a_study_that_was_interrupted_ends_with_the_results_of_one_that_was_not(self):
        study = ("lab", "smoke", "--recipe", "d-sgd,static", "--set", "train.steps=1000", "--set", "eval.every=10")
        self.assertEqual(self.longhaul(*study, "--out", "whole").returncode, 0)
        lab = subprocess.Popen([LONGHAUL, *study, "--out", "cut", "--checkpoint-every", "20"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(lab.kill)
        checkpoint = self.directory / "cut/checkpoint.safetensors"
        while not checkpoint.exists():
            with self.assertRaises(subprocess.TimeoutExpired):  # it has not ended
                lab.wait(timeout=0.01)
        lab.send_signal(signal.SIGINT)
        lab.communicate(timeout=DEADLINE_S)
        self.assertEqual(lab.returncode, 130)
        self.assertTrue(checkpoint.exists())
        self.assert_refused(self.longhaul(*study, "--out", "cut", "--resume", "--set", "train.lr=0.1"), "--resume",
                            "other settings", code=1)
        for _ in range(2):  # the second one finds nothing to do but to write what a kill may have left out
            (self.directory / "cut/results.json").unlink()
            done = self.longhaul(*study, "--out", "cut", "--resume")
            self.assertEqual(done.returncode, 0, done.stderr)
            whole, cut = (json.loads((self.directory / out / "results.json").read_text()) for out in ("whole", "cut"))
            self.assertEqual(whole, cut)
            self.assertFalse(checkpoint.exists())


if __name__ == "__main__":
    unittest.main()
