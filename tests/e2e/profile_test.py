#!/usr/bin/env python3
"""`longhaul profile` measures the layers of a scenario's model and writes what it has measured.

usage: profile_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import signal
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest

QUICK = ("--steps", 2, "--threads", 1)
CNN_LAYERS = ["out", "hidden", "conv2", "conv1"]


class Measuring(CommandTest):
    def profile(self, *arguments):
        done = self.longhaul("profile", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_table_for_people(self):
        lines = self.profile("fashion-wan", *QUICK).splitlines()
        self.assertEqual(lines[0].split()[:4], ["layer", "forward", "backward", "bytes"])
        self.assertEqual([line.split()[0] for line in lines[1:6]], [*CNN_LAYERS, "all"])
        self.assertIn("batch 32", lines[7])
        self.assertIn("with hooks", lines[7])

    def test_json_has_the_layers_in_backward_order_and_the_file_is_the_same(self):
        printed = json.loads(self.profile("fashion-wan", *QUICK, "--json", "--out", "profile.json"))
        self.assertEqual(json.loads((self.directory / "profile.json").read_text()), printed)
        self.assertEqual(set(printed), {"layers", "batch", "overhead_share"})
        self.assertEqual(printed["batch"], 32)
        self.assertTrue(0 < printed["overhead_share"] < 1, printed["overhead_share"])
        self.assertEqual([layer["name"] for layer in printed["layers"]], CNN_LAYERS)
        self.assertEqual(sum(layer["bytes"] for layer in printed["layers"]), 4 * 101_122)
        for layer in printed["layers"]:
            self.assertEqual(set(layer), {"name", "t_fp_s", "t_bp_s", "bytes"})
            self.assertGreater(min(layer["t_fp_s"], layer["t_bp_s"]), 0)

    def test_settings_choose_the_model_and_its_tied_embedding_counts_once(self):
        shown = json.loads(self.profile("text-wan", *QUICK, "--json", "--set", "model.layers=1", "--set", "train.batch=3"))
        self.assertEqual(shown["batch"], 3)
        names = [layer["name"] for layer in shown["layers"]]
        self.assertEqual((names[0], names[1], names[-2:]), ("norm", "block1.down", ["positions", "tokens"]))
        self.assertEqual(sum(layer["bytes"] for layer in shown["layers"]),
                         4 * (73 * 128 + 64 * 128 + 12 * 128 * 128 + 13 * 128 + 256))

    def test_standard_output_takes_the_file(self):
        done = self.longhaul("profile", "smoke", *QUICK, "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["layers"]), 1)
        self.assertIn("of a step", done.stderr)

    def test_its_own_file_is_replaced_and_no_other(self):
        mine = self.directory / "mine.json"
        mine.write_text('{"layers": "my notes"}')
        self.assert_refused(self.longhaul("profile", "smoke", *QUICK, "--out", mine), "--out", "mine.json", "--force")
        self.assertEqual(mine.read_text(), '{"layers": "my notes"}')
        for arguments in (("--force",), ()):
            mine_before = mine.read_text()
            self.profile("smoke", *QUICK, "--out", mine, *arguments)
            self.assertNotEqual(mine.read_text(), mine_before)
            self.assertIn("overhead_share", json.loads(mine.read_text()))


class Refusals(CommandTest):
    def test_wrong_use(self):
        self.assert_refused(self.longhaul("profile"), "scenario")
        self.assert_refused(self.longhaul("profile", "smok"), "did you mean smoke?")
        self.assert_refused(self.longhaul("profile", "smoke", "--steps", 0), "--steps")
        self.assert_refused(self.longhaul("profile", "smoke", "--threads", 0), "--threads")
        self.assert_refused(self.longhaul("profile", "smoke", "--force"), "--out")
        self.assert_refused(self.longhaul("profile", "smoke", "--set", "train.batchs=3"), "did you mean train.batch?")
        self.assert_refused(self.longhaul("profile", "text-wan", "--set", "model.heads=7"), "heads does not divide width")
        self.assert_refused(self.longhaul("profile", "smoke", "--out", self.directory), "expected a file", "directory")

    def test_failures(self):
        self.assert_refused(self.longhaul("profile", "smoke", "--set", "data.path=/nowhere"), "/nowhere", code=1)
        self.assert_refused(self.longhaul("profile", "smoke", *QUICK, "--out", "nowhere/profile.json"),
                            "nowhere/profile.json", code=1)


class CtrlC(CommandTest):
    def test_long_work_tells_how_far_it_is_and_can_be_interrupted(self):
        child = subprocess.Popen([LONGHAUL, "profile", "fashion-wan", "--steps", "10000", "--out", "profile.json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(child.kill)
        told = child.stderr.readline()  # after 2 s
        self.assertIn("profile of fashion-wan: step", told)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=DEADLINE_S)
        self.assertEqual((child.returncode, out), (130, ""))
        self.assertTrue(err.endswith("longhaul profile: interrupted\n"), err)
        self.assertFalse((self.directory / "profile.json").exists())


if __name__ == "__main__":
    unittest.main()
