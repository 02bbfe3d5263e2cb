#!/usr/bin/env python3
"""Hub and replicas as real processes: `hub`, `train` and `rehearse` as users meet them.

usage: hub_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest


def children_of(pid):
    """Ids of the living processes whose parent is `pid`."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


class HubCommand(CommandTest):
    def start(self, *arguments):
        process = subprocess.Popen([LONGHAUL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.directory)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def hub(self, *arguments):
        """A hub that listens, and its port."""
        # The target would end some runs before their last step.
        hub = self.start("hub", "smoke", "--listen", "127.0.0.1:0", "--json", "--set", "train.stop=steps", *arguments)
        event = json.loads(hub.stdout.readline())
        self.assertEqual(event["event"], "listening")
        self.drain(hub)
        return hub, event["port"]

    def drain(self, hub):
        """Its events are not asked for."""
        reader = threading.Thread(target=lambda: hub.stdout.read())
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(hub.kill)  # before, as the reader ends with the hub

    def ended(self, hub):
        self.assertEqual(hub.wait(timeout=DEADLINE_S), 0)

    def finished(self, process):
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, err)
        return next(json.loads(line) for line in out.splitlines() if '"finished"' in line)


class Training(HubCommand):
    def test_replicas_end_with_the_digest_of_the_lab(self):
        lab = self.longhaul("lab", "smoke", "--recipe", "static", "--json")
        self.assertEqual(lab.returncode, 0, lab.stderr)
        # On machines of one's own a step takes what it takes, whatever the scenario says.
        hub, port = self.hub("--recipe", "static", "--set", "replica.step_time=10min")
        replicas = [self.start("train", "--hub", f"127.0.0.1:{port}", "--name", f"r{slot}", "--slot", slot, "--json")
                    for slot in range(3)]
        digests = {self.finished(replica)["digest"] for replica in replicas}
        self.assertEqual(digests, {json.loads(lab.stdout)["runs"][0]["digest"]})
        self.ended(hub)

    def test_a_killed_replica_does_not_stop_the_others(self):
        hub, port = self.hub("--set", "train.steps=100", "--patience", "1s")
        replicas = [self.start("train", "--hub", f"127.0.0.1:{port}", "--name", f"r{slot}", "--slot", slot, "--json",
                               "--paced") for slot in range(3)]
        while '"step":10,' not in replicas[2].stdout.readline():
            pass
        replicas[2].kill()
        results = [self.finished(replica) for replica in replicas[:2]]
        self.assertEqual({result["steps"] for result in results}, {100})
        self.assertEqual(len({result["digest"] for result in results}), 1)
        self.ended(hub)

    def test_mutual_tls_with_invites(self):
        self.assertEqual(self.longhaul("keys", "init", "keys").returncode, 0)
        hub, port = self.hub("--keys", "keys", "--set", "train.steps=5", "--recipe", "d-sgd")
        invites = []
        for name in ("a", "b", "c"):
            done = self.longhaul("keys", "invite", "keys", name, f"127.0.0.1:{port}")
            self.assertEqual(done.returncode, 0, done.stderr)
            invites.append(self.directory / f"{name}.invite")
        self.assert_refused(self.longhaul("train", "--hub", f"127.0.0.1:{port}", "--name", "a"), "hub at", code=1)
        replicas = [self.start("train", "--invite", invite, "--json") for invite in invites]
        self.assertEqual(len({self.finished(replica)["digest"] for replica in replicas}), 1)
        self.ended(hub)


class Rehearsing(HubCommand):
    def test_rehearsal_writes_its_report_and_leaves_nothing_behind(self):
        rehearse = self.start("rehearse", "smoke", "--recipe", "d-sgd", "--set", "train.steps=6", "--set",
                              "replica.step_time=300ms", "--json", "--out", "r")
        out, err = rehearse.communicate(timeout=DEADLINE_S)
        self.assertEqual(rehearse.returncode, 0, err)
        run = json.loads(out)["runs"][0]
        self.assertEqual(run["steps"], 6)
        self.assertGreater(run["predicted_step_time_s"], 0.3)  # agreement_test.py compares it with step_time_s
        self.assertIn("<html", (self.directory / "r/report.html").read_text())
        self.assertEqual(children_of(rehearse.pid), [])

    def test_its_children_die_with_it(self):
        rehearse = self.start("rehearse", "smoke", "--recipe", "auto", "--set", "train.steps=100000", "--out", "r")
        rehearse.stderr.readline()  # progress: all are there
        children = children_of(rehearse.pid)
        self.assertGreaterEqual(len(children), 5)
        rehearse.kill()
        rehearse.wait()
        for child in children:
            try:
                descriptor = os.pidfd_open(child)
            except ProcessLookupError:
                continue
            self.addCleanup(os.close, descriptor)
            self.assertTrue(select.select([descriptor], [], [], DEADLINE_S)[0], f"process {child} lives on")

    def test_ctrl_c_ends_it_in_order(self):
        rehearse = self.start("rehearse", "smoke", "--recipe", "auto", "--set", "train.steps=100000", "--out", "r")
        rehearse.stderr.readline()
        rehearse.send_signal(signal.SIGINT)
        out, err = rehearse.communicate(timeout=DEADLINE_S)
        self.assertEqual(rehearse.returncode, 130, err)
        self.assertIn("interrupted", out)


class HubRefusals(HubCommand):
    def test_wrong_use(self):
        for arguments, *expected in (
                (("hub", "no-such-scenario"), "no-such-scenario"),
                (("hub", "smoke", "--listen", "0.0.0.0:7070"), "--keys", "--insecure"),
                (("hub", "smoke", "--listen", "nonsense"), "--listen", "HOST:PORT"),
                (("hub", "smoke", "--recipe", "d-gsd"), "d-gsd", "d-sgd"),
                (("hub", "smoke", "--recipe", "auto,d-sgd"), "one recipe", "auto,d-sgd"),
                (("hub", "smoke", "--recipe", "ideal"), "--recipe", "for the lab"),
                (("hub", "smoke", "--keys", "k", "--insecure"), "--insecure", "not together with --keys"),
                (("hub", "smoke", "--patience", "long"), "--patience", "long"),
                (("hub", "smoke", "--seed", "-1"), "--seed", "whole number", "-1"),
                (("hub", "smoke", "--start-with", "4"), "--start-with", "at most 3"),
                (("hub", "smoke", "--least", "0"), "--least", "at least 1"),
                (("hub", "smoke", "--least", "4"), "--least", "at most 3"),
                (("hub", "smoke", "--bogus"), "unknown option --bogus"),
                (("train",), "--invite", "--hub"),
                (("train", "--hub", "127.0.0.1:7"), "--name"),
                (("train", "--hub", "127.0.0.1:7", "--name", "a b"), "--name", "a b"),
                (("train", "--hub", "127.0.0.1:7", "--name", "a", "--slot", "-1"), "--slot", "whole number"),
                (("rehearse", "no-such-scenario"), "no-such-scenario"),
                (("rehearse", "smoke", "--faults", "many"), "--faults", "whole number", "many"),
                (("rehearse", "smoke", "--recipe", "d-gsd"), "d-gsd"),
                (("rehearse", "smoke", "--set", "train.lr=fast"), "train.lr"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.longhaul(*arguments), *expected)

    def test_a_hub_that_is_not_there(self):
        self.assert_refused(self.longhaul("train", "--hub", "127.0.0.1:9", "--name", "a", "--wait", "0s"),
                            "127.0.0.1:9: it does not answer (connection refused)", code=1)
        self.assert_refused(self.longhaul("train", "--hub", "a.invalid:9", "--name", "a", "--wait", "0s"),
                            "cannot find the host a.invalid", code=1)
        self.assert_refused(self.longhaul("train", "--hub", "127.0.0.1:9", "--name", "a", "--wait", "soon"), "--wait", "soon")

    def test_something_else_on_that_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def answer():
                with server.accept()[0] as visitor:
                    visitor.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    visitor.recv(1000)
            answering = threading.Thread(target=answer)
            answering.start()
            done = self.longhaul("status", "--hub", f"127.0.0.1:{server.getsockname()[1]}")
            answering.join()
        self.assert_refused(done, "something else than a hub answers", code=1)

    def test_data_that_is_not_there(self):
        hub, port = self.hub()
        done = self.longhaul("train", "--hub", f"127.0.0.1:{port}", "--name", "a", "--data", "nowhere")
        self.assert_refused(done, "nowhere", "train: --data DIR", code=1)


if __name__ == "__main__":
    unittest.main()
