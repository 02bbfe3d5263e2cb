#!/usr/bin/env python3
"""The small commands around a run: `status`, `probe`, `export`, and how a hub ends and owns its directory. No torch.

usage: visits_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import os
import re
import signal
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL
from guests import HONEST, Guests, Hub, Process

RELAY = LONGHAUL.parent / "longhaul_test_relay"


class Status(Guests):
    def test_before_and_during_a_run(self):
        hub = Hub(self)
        done = self.longhaul("status", "--hub", hub.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("waits for its replicas", done.stdout)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        hub.goes_on()
        self.rude(hub, "protocol")
        done = self.longhaul("status", "--hub", hub.address, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        status = json.loads(done.stdout)
        self.assertGreater(status["next_round"], 5)
        self.assertEqual((status["scenario"], status["recipe"], status["parameters"]), ("smoke", "static", 1000))
        self.assertEqual(status["refused"], 1)
        self.assertEqual([replica["name"] for replica in status["replicas"]], ["honest-0", "honest-1"])
        self.assertTrue(all(replica["enrolled"] for replica in status["replicas"]))
        # The events of the hub have the same keys.
        event = hub.status_with(lambda status: True, "a status")
        self.assertEqual(set(event) - {"event", "time"}, set(status))
        text = self.longhaul("status", "--hub", hub.address).stdout
        self.assertIn("honest-1", text)
        self.assertIn("because", text)
        self.end_in_order(hub, honest)

    def test_only_for_those_who_are_invited(self):
        self.assertEqual(self.longhaul("keys", "init", "keys").returncode, 0)
        hub = Hub(self, "--keys", "keys")
        self.assertEqual(self.longhaul("keys", "invite", "keys", "a", hub.address).returncode, 0)
        self.assertEqual(self.longhaul("status", "--invite", "a.invite").returncode, 0)
        self.assertEqual(self.longhaul("keys", "revoke", "keys", "a").returncode, 0)
        for command in ("status", "probe"):
            self.assert_refused(self.longhaul(command, "--invite", "a.invite"), "revoked", code=1)
            self.assert_refused(self.longhaul(command, "--hub", hub.address), "expect TLS", code=1)

    def test_wrong_use(self):
        for command in ("status", "probe"):
            for arguments, *expected in (
                    ((), "--invite", "--hub"),
                    (("--hub", "nonsense"), "--hub", "HOST:PORT"),
                    (("--hub", "127.0.0.1:7", "--invite", "x"), "--invite", "--hub"),
                    (("--no-such-option",), "--no-such-option")):
                with self.subTest(command=command, arguments=arguments):
                    self.assert_refused(self.longhaul(command, *arguments), *expected)
            self.assert_refused(self.longhaul(command, "--hub", "127.0.0.1:9"), "127.0.0.1:9", code=1)
            self.assertIn("Examples:", self.longhaul(command, "--help").stdout)
        self.assert_refused(self.longhaul("probe", "--hub", "127.0.0.1:9", "--params", "many"), "--params")

    def test_versions_are_named(self):
        versions = re.search(r"wire version \d+, protocol version (\d+)", self.longhaul("--version").stdout)
        spoken = int(versions[1])
        hub = Hub(self)
        why = self.rude(hub, "protocol")[0]["why"]
        self.assertRegex(why, rf"protocol {spoken}, .*protocol {spoken + 1}")


class Watch(Guests):
    def test_keeps_watching_while_the_hub_is_away(self):
        def is_status(event):
            return event.get("scenario") == "smoke"

        hub = Hub(self)
        watch = Process(self, LONGHAUL, "status", "--hub", hub.address, "--watch", "200ms", "--json")
        watch.until(is_status, "a status")
        watch.until(is_status, "another one", seen=1)
        hub.child.kill()
        hub.wait()
        watch.says("longhaul status: ")
        seen = len(watch.events)
        again = Process(self, LONGHAUL, "hub", "smoke", "--listen", hub.address, "--json")
        again.until(lambda event: event["event"] == "listening", "another hub is there")
        watch.until(is_status, "the hub is back", seen)
        watch.child.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(), 130)

    def test_ends_when_the_run_is_done(self):
        hub = Hub(self, "--dir", "run", recipe="d-sgd", steps=30)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        self.assertEqual(honest.wait(), 0, honest.errors)
        self.assertEqual(hub.wait(), 0, hub.errors)
        # A hub on the directory of a run that is done waits for those who missed its end.
        again = Process(self, LONGHAUL, "hub", "smoke", "--listen", "127.0.0.1:0", "--json", "--recipe", "d-sgd",
                        "--set", "train.steps=30", "--set", "replica.step_time=20ms", "--dir", "run", "--patience", "1h")
        port = again.until(lambda event: event["event"] == "listening", "the hub listens")["port"]
        done = self.longhaul("status", "--hub", f"127.0.0.1:{port}", "--watch", "100ms")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("The run is done.\n"))

    def test_blocks_follow_each_other_in_a_pipe(self):
        hub = Hub(self)
        with subprocess.Popen([LONGHAUL, "status", "--hub", hub.address, "--watch", "100ms"], stdout=subprocess.PIPE,
                              text=True) as watch:
            self.addCleanup(watch.kill)
            heads = []
            for line in watch.stdout:
                heads += [line] if line.startswith("run ") else []
                if len(heads) == 3:
                    break
            watch.send_signal(signal.SIGINT)
            rest = watch.stdout.read()
            self.assertEqual(watch.wait(timeout=DEADLINE_S), 130)
        self.assertEqual(len(set(heads)), 1)
        self.assertNotIn("\033", rest)

    def test_wrong_use(self):
        self.assert_refused(self.longhaul("status", "--hub", "127.0.0.1:9", "--watch", "5m"), "--watch", "min")
        self.assert_refused(self.longhaul("status", "--hub", "127.0.0.1:9", "--watch"), "127.0.0.1:9", code=1)


class Probe(Guests):
    def test_measures_the_link_while_a_run_goes_on(self):
        hub = Hub(self)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        hub.goes_on()
        done = self.longhaul("probe", "--hub", hub.address, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        link = json.loads(done.stdout)
        self.assertGreater(link["round_trip_s"], 0)
        self.assertAlmostEqual(link["latency_s"], link["round_trip_s"] / 2)
        for direction in ("up", "down"):
            self.assertGreater(link[direction]["bits_per_s"], 1e6)
        # The hub knows the model and the pace.
        self.assertEqual(link["parameters"], 1000)
        self.assertGreater(link["step_time_s"], 0)
        self.assertTrue(link["plan"]["reason"])
        hub.goes_on()
        self.end_in_order(hub, honest)

    def test_measures_each_direction_of_a_slow_link(self):
        hub = Hub(self)
        relay = Process(self, RELAY, "--to", hub.port, "--up", "8mbit", "--down", "20mbit", "--latency", "40ms")
        port = relay.until(lambda event: event["event"] == "listening", "the link is there")["port"]
        done = self.longhaul("probe", "--hub", f"127.0.0.1:{port}", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        link = json.loads(done.stdout)
        self.assertAlmostEqual(link["up"]["bits_per_s"] / 8e6, 1, delta=0.1)
        self.assertAlmostEqual(link["down"]["bits_per_s"] / 20e6, 1, delta=0.1)
        self.assertGreaterEqual(link["round_trip_s"], 0.08)
        self.assertLess(link["round_trip_s"], 0.16)
        self.assertIn("measures", done.stderr)  # it takes more than two seconds, and says what it does

    def test_says_what_auto_would_choose_for_another_model(self):
        hub = Hub(self)
        done = self.longhaul("probe", "--hub", hub.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tell --params", done.stdout)
        done = self.longhaul("probe", "--hub", hub.address, "--params", "124M", "--step-time", "250ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("round trip", "up ", "down ", "keep ratio", "because"):
            self.assertIn(text, done.stdout)


class Export(Guests):
    def test_writes_the_model_that_the_replicas_ended_with(self):
        hub = Hub(self, "--dir", "run", recipe="d-sgd", steps=30)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        self.assertEqual(honest.wait(), 0, honest.errors)
        self.assertEqual(hub.wait(), 0, hub.errors)
        digest = {event["digest"] for event in honest.events if event["event"] == "finished"}
        done = self.longhaul("export", "run", "--out", "model.safetensors", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual({told["digest"]}, digest)
        self.assertEqual((told["parameters"], told["step"]), (1000, 30))
        # A plain file: a header as JSON, and one tensor.
        bytes_ = (self.directory / "model.safetensors").read_bytes()
        length = int.from_bytes(bytes_[:8], "little")
        header = json.loads(bytes_[8:8 + length])
        header.pop("__metadata__", None)
        self.assertEqual(header, {"shared": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}})
        # And a snapshot alone, which is of an earlier step.
        snapshot = next((self.directory / "run").glob("snapshot-*.safetensors"))
        self.assertEqual(self.longhaul("export", snapshot, "--out", "early.safetensors").returncode, 0)

    def test_writes_to_files_of_its_own_links_and_standard_output_only(self):
        hub = Hub(self, "--dir", "run", recipe="d-sgd", steps=3)
        self.assertEqual(self.honest("--hub", hub.address, "--name", "honest").wait(), 0)
        self.assertEqual(hub.wait(), 0, hub.errors)
        out = self.directory / "model.safetensors"
        for _ in range(2):  # over its own
            self.assertEqual(self.longhaul("export", "run", "--out", out).returncode, 0)
        (self.directory / "thesis").write_text("mine")
        self.assert_refused(self.longhaul("export", "run", "--out", "thesis"), "--out", "did not write it", "--force")
        self.assertEqual((self.directory / "thesis").read_text(), "mine")
        self.assertEqual(self.longhaul("export", "run", "--out", "thesis", "--force").returncode, 0)
        self.assertEqual((self.directory / "thesis").read_bytes(), out.read_bytes())
        os.mkfifo(self.directory / "fifo")
        (self.directory / "null").symlink_to("/dev/null")
        for path, kind in (("fifo", "a FIFO"), ("null", "a device"), ("run", "a directory"), ("/dev/full", "a device")):
            self.assert_refused(self.longhaul("export", "run", "--out", path, "--force"), "--out", path, kind)
        self.assertTrue((self.directory / "fifo").is_fifo())
        (self.directory / "link").symlink_to("linked")
        self.assertEqual(self.longhaul("export", "run", "--out", "link").returncode, 0)
        self.assertEqual((self.directory / "linked").read_bytes(), out.read_bytes())
        for name in ("-", "/dev/stdout"):
            done = subprocess.run([LONGHAUL, "export", "run", "--out", name], capture_output=True, cwd=self.directory)
            self.assertEqual((done.returncode, done.stdout), (0, out.read_bytes()))
            self.assertIn(b"digest", done.stderr)

    def test_wrong_use(self):
        (self.directory / "empty").mkdir()
        (self.directory / "text").write_text("nothing of ours, and longer than a header")
        self.assert_refused(self.longhaul("export", "empty", "--out", "m"), "empty", code=1)
        self.assert_refused(self.longhaul("export", "nowhere", "--out", "m"), "nowhere", code=1)
        self.assert_refused(self.longhaul("export", "text", "--out", "m"), "text", code=1)
        self.assert_refused(self.longhaul("export", "empty"), "--out")
        self.assertFalse((self.directory / "m").exists())


class Logs(Guests):
    def lines(self, *arguments):
        """What a hub says until a replica has come and gone."""
        hub = Process(self, LONGHAUL, "hub", "smoke", "--listen", "127.0.0.1:0", "--json", "--start-with", 1, "--patience",
                      "0s", "--set", "train.steps=3", "--set", "replica.step_time=1ms", *arguments)
        port = hub.until(lambda event: event["event"] == "listening", "the hub listens")["port"]
        light = Process(self, HONEST, "--json", "--hub", f"127.0.0.1:{port}")
        self.assertEqual(light.wait(), 0, light.errors)
        self.assertEqual(hub.wait(), 0, hub.errors)
        return hub.errors

    def test_lines_have_date_time_and_zone_and_their_level_can_be_chosen(self):
        lines = self.lines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning) hub: ")
        self.assertEqual(self.lines("--log-level", "warning", "--dir", "run"), [])
        self.assertEqual(self.lines("--quiet", "--dir", "quiet"), [])

    def test_wrong_use(self):
        for command in (("hub", "smoke"), ("train",), ("lab", "smoke"), ("rehearse", "smoke")):
            with self.subTest(command=command):
                self.assert_refused(self.longhaul(*command, "--log-level", "loud"), "--log-level", "warning", "loud")
                self.assert_refused(self.longhaul(*command, "--log-level", "info", "--quiet"), "--log-level", "--quiet")


class Ending(Guests):
    def test_a_new_directory_is_for_its_owner_only(self):
        Hub(self, "--dir", "new/run/")
        self.assertEqual((self.directory / "new/run").stat().st_mode & 0o777, 0o700)

    def test_an_interrupt_before_the_start_is_told_to_who_waits(self):
        hub = Hub(self, start_with=3)
        honest = Process(self, HONEST, "--json", "--hub", hub.address, "--name", "honest", "--replicas", 2)
        hub.status_with(lambda status: [replica["connected"] for replica in status["replicas"]] == [True, True],
                        "they are here")
        hub.child.send_signal(signal.SIGINT)
        self.assertEqual(hub.wait(), 130)
        self.assertEqual(honest.wait(), 1)
        self.assertIn("ended before it started", honest.errors[0])

    def test_a_second_interrupt_ends_at_once(self):
        hub = Hub(self)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        hub.goes_on()
        honest.child.send_signal(signal.SIGSTOP)  # it will not finish
        self.addCleanup(honest.child.send_signal, signal.SIGCONT)
        hub.child.send_signal(signal.SIGINT)
        hub.says("interrupted")
        hub.child.send_signal(signal.SIGINT)
        self.assertEqual(hub.wait(), -signal.SIGINT)

    def test_one_directory_one_hub(self):
        hub = Hub(self, "--dir", "deep/run")
        done = self.longhaul("hub", "smoke", "--listen", "127.0.0.1:0", "--dir", "deep/run")
        self.assert_refused(done, "deep/run", "another hub", code=1)
        hub.child.kill()
        hub.wait()
        Hub(self, "--dir", "deep/run")  # a hub that was killed leaves no lock behind

    def test_lines_for_people_are_few(self):
        hub = Process(self, LONGHAUL, "hub", "smoke", "--listen", "127.0.0.1:0", "--recipe", "static", "--set",
                      "train.steps=100", "--set", "replica.step_time=5ms", "--start-with", 2)
        port = hub.says("listening on").rpartition(":")[2]
        honest = self.honest("--hub", f"127.0.0.1:{port}", "--name", "honest")
        self.assertEqual(honest.wait(), 0, honest.errors)
        self.assertEqual(hub.wait(), 0, hub.errors)
        self.assertLess(len(hub.errors), 12, hub.errors)


if __name__ == "__main__":
    unittest.main()
