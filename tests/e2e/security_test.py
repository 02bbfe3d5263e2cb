#!/usr/bin/env python3
"""Who gets in, and what those do who should not: real processes, real sockets, honest replicas that train on meanwhile.

usage: security_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import socket
import ssl
import unittest

from command import DEADLINE_S
from guests import HONEST, RUDE, Guests, Hub, Process

NO_TLS = "certificate missing, of another authority, or no TLS"


class Strangers(Guests):
    """On a hub with keys."""

    def setUp(self):
        super().setUp()
        for keys in ("keys", "other-keys"):
            self.assertEqual(self.longhaul("keys", "init", keys).returncode, 0)
        self.hub = Hub(self, "--keys", "keys")
        invites = [self.invite("keys", name) for name in ("honest-0", "honest-1")]
        self.training = self.honest("--invite", invites[0], "--invite", invites[1])
        self.hub.goes_on()

    def invite(self, keys, name, file=None):
        file = file or f"{name}.invite"
        done = self.longhaul("keys", "invite", keys, name, self.hub.address, "--out", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.directory / file

    def refused_strangers(self, count, line):
        """So many connections were counted, and told of in one line."""
        self.hub.status_with(lambda status: status["strangers"] >= count, f"{count} strangers: {line}")
        self.hub.says_once(line)

    def fails(self, *expected, program=HONEST, arguments):
        process = Process(self, program, *arguments)
        self.assertEqual(process.wait(), 1)
        self.assertEqual(len(process.errors), 1, process.errors)
        for text in expected:
            self.assertIn(text, process.errors[0])

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.hub.port), timeout=DEADLINE_S) as peer:
            peer.sendall(data)
            while peer.recv(4096):
                pass

    def test_who_was_not_invited_is_refused_and_counted_and_nobody_else_notices(self):
        hub = self.hub
        # Each comes three times, and is told of once.
        for attempt in range(3):
            self.send(b"GET / HTTP/1.0\r\n\r\n")
        self.refused_strangers(3, "HTTP without TLS")
        for attempt in range(3):
            self.send(bytes(range(40, 240)))
        self.refused_strangers(6, "does not speak TLS")
        for attempt in range(3):
            socket.create_connection(("127.0.0.1", hub.port), timeout=DEADLINE_S).close()
        self.refused_strangers(9, "hung up before TLS")
        for attempt in range(3):
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            with socket.create_connection(("127.0.0.1", hub.port), timeout=DEADLINE_S) as plain:
                with self.assertRaises((ssl.SSLError, ConnectionError, EOFError)):
                    with context.wrap_socket(plain) as peer:
                        if not peer.recv(1):
                            raise EOFError
        self.refused_strangers(12, "showed no certificate")
        counted = hub.count("strangers")
        foreign = self.invite("other-keys", "honest-0", "foreign.invite")
        self.fails(NO_TLS, arguments=("--invite", foreign))
        self.hub.status_with(lambda status: status["strangers"] > counted, "another authority")
        counted = hub.count("strangers")
        self.fails("it closed at once; does it expect TLS (an invite)?", arguments=("--hub", hub.address))
        self.hub.status_with(lambda status: status["strangers"] > counted, "no TLS")
        hub.goes_on()
        self.assertEqual(hub.count("refused"), 0)
        self.end_in_order(hub, self.training)

    def test_wrong_tokens_and_revoked_names_are_refused_for_good(self):
        hub = self.hub
        invite = self.invite("keys", "third")
        text = json.loads(invite.read_text())
        for attempt in range(3):
            events = Process(self, RUDE, "--invite", invite, "--lie", "token")
            self.assertEqual(events.wait(), 0)
            last = events.events[-1]
            self.assertEqual((last["event"], last["why"], last["is_final"]), ("refused", "wrong token", True))
        hub.status_with(lambda status: status["refused"] >= 3, "the tokens are counted")
        hub.says_once("refused third: wrong token")
        self.assertEqual(self.longhaul("keys", "revoke", "keys", "third").returncode, 0)
        self.fails("revoked", arguments=("--invite", invite))
        hub.says_once("refused third: revoked")
        # Nothing secret is in what the hub says.
        self.assertFalse(hub.lines_with(text["token"]))
        hub.goes_on()
        self.end_in_order(hub, self.training)


class Liars(Guests):
    """Of those who are in: what they send is refused, counted, told of once, and in no mean."""

    def test_lies_in_updates(self):
        hub = Hub(self)
        honest = self.honest("--hub", hub.address, "--name", "honest", "--slot", 0)
        hub.goes_on()
        for lie, line in (("nan", "not finite"), ("infinity", "not finite"), ("digest", "digest does not match"),
                          ("count", "1001 elements, expected 1000"), ("length", "wrong length")):
            with self.subTest(lie=lie):
                before = hub.count("rejected")
                events = self.rude(hub, lie, "--rounds", 5)
                self.assertEqual((events[-1]["event"], events[-1]["rounds"]), ("done", 5), events)
                rounds = [event for event in events if event["event"] == "round"]
                self.assertFalse(any(event["is_own_in"] for event in rounds), rounds)
                hub.status_with(lambda status: status["rejected"] >= before + 4, "updates are counted")
                hub.says_once(line)
        for lie, line in (("size", "a transfer of 1099511627776 bytes"), ("outside", "outside of its transfer"),
                          ("twice", "came twice"), ("crumbs", "smaller than 1024 bytes"), ("ahead", "a step that nobody can have reached"), ("garbage", "unknown cargo 77")):
            with self.subTest(lie=lie):
                before = hub.count("rejected")
                events = self.rude(hub, lie, "--times", 3)
                self.assertEqual([event["event"] for event in events].count("closed"), 3, events)
                hub.status_with(lambda status: status["rejected"] >= before + 3, "chunks are counted")
                hub.says_once(line)
        self.assertEqual(self.rude(hub, "frame")[-1]["event"], "closed")  # more than gRPC takes
        hub.goes_on()
        self.end_in_order(hub, honest)

    def test_lies_when_joining(self):
        hub = Hub(self)
        honest = self.honest("--hub", hub.address, "--name", "honest", "--slot", 0)
        hub.goes_on()
        for lie, why in (("protocol", "protocol"), ("wire", "version"), ("name", "name"), ("lanes", "lanes"),
                         ("elements", "parameters")):
            with self.subTest(lie=lie):
                before = hub.count("refused")
                events = self.rude(hub, lie, "--times", 3)
                self.assertEqual([event["event"] for event in events], ["refused"] * 3)
                self.assertTrue(events[0]["is_final"])
                self.assertIn(why, events[0]["why"])
                hub.status_with(lambda status: status["refused"] == before + 3, "joins are counted")
                hub.says_once(events[0]["why"])
        for lie in ("first", "session"):
            before = hub.count("refused")
            self.assertEqual(self.rude(hub, lie)[-1]["event"], "closed")
            hub.status_with(lambda status: status["refused"] == before + 1, "first frames are counted")
        hub.goes_on()
        self.end_in_order(hub, honest)

    def test_lies_of_the_first_who_comes(self):
        hub = Hub(self)
        # It says how large the model is, and what it begins with.
        events = self.rude(hub, "elements")
        self.assertEqual(events[-1]["event"], "refused")
        self.assertIn("parameters", events[-1]["why"])
        events = self.rude(hub, "model")
        self.assertEqual(events[-1]["event"], "closed", events)
        hub.status_with(lambda status: status["rejected"] >= 1, "the model is counted")
        hub.says_once("another digest than it told")
        honest = self.honest("--hub", hub.address, "--name", "honest")
        hub.goes_on()
        self.end_in_order(hub, honest)


class PlainPort(Guests):
    def test_tls_and_garbage_are_refused_and_nobody_else_notices(self):
        hub = Hub(self)
        honest = self.honest("--hub", hub.address, "--name", "honest")
        hub.goes_on()
        strangers = ((b"GET / HTTP/1.0\r\n\r\n", "another HTTP"), (bytes(range(1, 250)), "does not speak HTTP/2"),
                     (b"\x16\x03\x01\x02\x00\x01\x00", "speaks TLS"))
        for i, (data, why) in enumerate(strangers):
            for attempt in range(3):  # and is told of once
                with socket.create_connection(("127.0.0.1", hub.port), timeout=DEADLINE_S) as peer:
                    peer.sendall(data)
                    while peer.recv(4096):
                        pass
            hub.status_with(lambda status: status["strangers"] >= 3 * (i + 1), why)
            hub.says_once(why)
        self.assertEqual(self.longhaul("keys", "init", "keys").returncode, 0)
        self.assertEqual(self.longhaul("keys", "invite", "keys", "third", hub.address).returncode, 0)
        third = Process(self, HONEST, "--invite", "third.invite")
        self.assertEqual(third.wait(), 1)
        self.assertEqual(len(third.errors), 1, third.errors)
        self.assertIn(NO_TLS, third.errors[0])
        hub.goes_on()
        self.end_in_order(hub, honest)


if __name__ == "__main__":
    unittest.main()
