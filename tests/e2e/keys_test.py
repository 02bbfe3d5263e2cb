#!/usr/bin/env python3
"""`longhaul keys` as a user meets it, and its files in the hands of Python's TLS.

usage: keys_test.py DIRECTORY_OF_LONGHAUL
"""
import hashlib
import json
import os
import pathlib
import ssl
import stat
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest

FILES = {"ca.key", "ca.crt", "hub.key", "hub.crt", "members.json"}
ADDRESS = "hub.example.org:4242"


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def shake_hands(client, server, host):
    """Both sides of a TLS handshake in memory; returns the common name that the server saw."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server, server_hostname=host),
            server.wrap_bio(to_server, to_client, server_side=True)]
    waiting = list(ends)
    for _ in range(20):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    if waiting:
        raise AssertionError("the handshake does not end")
    subject = ends[1].getpeercert()["subject"]
    return dict(pair for names in subject for pair in names)["commonName"]


class KeysCommand(CommandTest):
    def done(self, *arguments):
        done = self.longhaul("keys", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, *arguments):
        return self.longhaul("keys", *arguments)

    def invite(self, hub, name, *options):
        self.done("invite", hub, name, ADDRESS, *options)
        return json.loads((self.directory / f"{name}.invite").read_text())


class Files(KeysCommand):
    def test_are_the_owners_alone_whatever_the_umask(self):
        for umask in (0o000, 0o022, 0o077):
            with self.subTest(umask=oct(umask)):
                hub = f"hub{umask}"
                for words in (("init", hub), ("invite", hub, f"r{umask}", ADDRESS), ("revoke", hub, f"r{umask}")):
                    subprocess.run([LONGHAUL, "keys", *words], cwd=self.directory, umask=umask, check=True,
                                   stdout=subprocess.DEVNULL, timeout=DEADLINE_S)
                self.assertEqual({file.name for file in (self.directory / hub).iterdir()}, FILES)
                self.assertEqual(mode_of(self.directory / hub), 0o700)
                for file in (self.directory / hub).iterdir():
                    self.assertEqual(mode_of(file), 0o600, file)
                self.assertEqual(mode_of(self.directory / f"r{umask}.invite"), 0o600)

    def test_are_made_once(self):
        self.done("init", "hub")
        before = (self.directory / "hub" / "ca.key").read_bytes()
        self.assert_refused(self.refused("init", "hub"), "hub", "already", code=1)
        self.assertEqual((self.directory / "hub" / "ca.key").read_bytes(), before)

    def test_a_key_that_others_can_read_is_refused_with_the_remedy(self):
        self.done("init", "hub")
        os.chmod(self.directory / "hub" / "ca.key", 0o644)
        self.assert_refused(self.refused("invite", "hub", "berlin", ADDRESS), "chmod 600 hub/ca.key", code=1)
        os.chmod(self.directory, 0o755)
        self.assert_refused(self.refused("init", "."), "chmod 700", code=1)

    def test_the_hub_keeps_only_a_digest_of_the_token(self):
        self.done("init", "hub")
        invite = self.invite("hub", "berlin")
        members = json.loads((self.directory / "hub" / "members.json").read_text())["members"]
        self.assertEqual(members[0]["token_sha256"], hashlib.sha256(invite["token"].encode()).hexdigest())
        for file in (self.directory / "hub").iterdir():
            self.assertNotIn(invite["token"], file.read_text())

    def test_invites_at_the_same_time_do_not_lose_each_other(self):
        self.done("init", "hub")
        names = [f"replica{i}" for i in range(8)]
        started = {name: subprocess.Popen([LONGHAUL, "keys", "invite", "hub", name, ADDRESS], cwd=self.directory,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name in names}
        invited = {name for name, process in started.items() if process.wait(DEADLINE_S) == 0}
        self.assertTrue(invited)
        self.assertEqual({member["name"] for member in self.json("list", "hub")["members"]}, invited)
        self.assertEqual({file.stem for file in self.directory.glob("*.invite")}, invited)


class Invites(KeysCommand):
    def test_hold_all_that_a_replica_needs(self):
        self.done("init", "hub", "--host", "hub.example.org")
        invite = self.invite("hub", "berlin")
        self.assertEqual((invite["format"], invite["version"], invite["name"], invite["address"]),
                         ("longhaul invite", 1, "berlin", ADDRESS))
        self.assertEqual(len(bytes.fromhex(invite["token"])), 32)
        fields = ("name", "address", "token", "ca_certificate", "certificate", "key")
        digest = hashlib.sha256(b"".join(invite[field].encode() + b"\0" for field in fields))
        self.assertEqual(invite["sha256"], digest.hexdigest())

    def test_a_name_is_invited_again_only_when_told(self):
        self.done("init", "hub")
        first = self.invite("hub", "berlin")
        self.assert_refused(self.refused("invite", "hub", "berlin", ADDRESS), "berlin", "--replace", code=1)
        self.assertNotEqual(self.invite("hub", "berlin", "--replace")["token"], first["token"])

    def test_a_file_is_not_overwritten_unasked(self):
        self.done("init", "hub")
        (self.directory / "berlin.invite").write_text("mine")
        self.assert_refused(self.refused("invite", "hub", "berlin", ADDRESS), "berlin.invite", "--replace", code=1)
        made = self.json("invite", "hub", "berlin", ADDRESS, "--out", "other.invite", "--days", "30")
        self.assertEqual((made["name"], made["file"], made["address"]), ("berlin", "other.invite", ADDRESS))
        self.assertEqual((self.directory / "berlin.invite").read_text(), "mine")

    def test_are_listed_and_revoked(self):
        self.done("init", "hub")
        self.assertIn("Nobody", self.done("list", "hub"))
        self.assertEqual(self.json("list", "hub"), {"members": []})
        self.invite("hub", "oslo")
        self.invite("hub", "berlin")
        self.assertIn("berlin", self.done("revoke", "hub", "berlin"))
        berlin, oslo = self.json("list", "hub")["members"]
        self.assertEqual((berlin["name"], berlin["state"]), ("berlin", "revoked"))
        self.assertEqual((oslo["name"], oslo["state"], oslo["revoked"]), ("oslo", "valid", None))
        self.assertEqual(self.json("revoke", "hub", "berlin")["revoked"], berlin["revoked"])
        rows = self.done("list", "hub").splitlines()
        self.assertEqual(rows[0].split(), ["name", "issued", "expires", "state"])
        self.assertEqual(rows[1].split()[:4:3], ["berlin", "revoked"])
        self.assert_refused(self.refused("revoke", "hub", "paris"), "paris", "not invited", code=1)


class Handshakes(KeysCommand):
    def client(self, invite):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(cadata=invite["ca_certificate"])
        pem = self.directory / "client.pem"
        pem.write_text(invite["certificate"] + invite["key"])
        context.load_cert_chain(pem)
        return context

    def server(self, hub):
        files = pathlib.Path(self.directory, hub)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files / "ca.crt")
        context.load_cert_chain(files / "hub.crt", files / "hub.key")
        return context

    def test_succeed_between_the_hub_and_whom_it_invited(self):
        self.done("init", "hub", "--host", "Hub.Example.org", "--host", "192.0.2.7", "--host", "2001:db8::7")
        invite = self.invite("hub", "berlin")
        for host in ("hub.example.org", "192.0.2.7", "2001:db8::7", "localhost", "127.0.0.1"):
            with self.subTest(host=host):
                self.assertEqual(shake_hands(self.client(invite), self.server("hub"), host), "berlin")
        with self.assertRaisesRegex(ssl.SSLError, "Hostname mismatch"):
            shake_hands(self.client(invite), self.server("hub"), "elsewhere.example.org")

    def test_an_address_that_the_hub_did_not_know_works_after_its_invite(self):
        self.done("init", "hub")
        self.assertIn("restart", self.done("invite", "hub", "berlin", ADDRESS))
        invite = json.loads((self.directory / "berlin.invite").read_text())
        self.assertEqual(shake_hands(self.client(invite), self.server("hub"), "hub.example.org"), "berlin")

    def test_fail_with_another_authority(self):
        self.done("init", "hub")
        self.done("init", "other")
        invite, foreign = self.invite("hub", "berlin"), self.invite("other", "oslo")
        with self.assertRaisesRegex(ssl.SSLError, "CERTIFICATE_VERIFY_FAILED"):
            shake_hands(self.client(foreign), self.server("hub"), "localhost")
        # Of the other authority, but with the right idea of the hub's: the hub refuses.
        forged = dict(foreign, ca_certificate=invite["ca_certificate"])
        with self.assertRaisesRegex(ssl.SSLError, "CERTIFICATE_VERIFY_FAILED"):
            shake_hands(self.client(forged), self.server("hub"), "localhost")

    def test_fail_without_a_certificate(self):
        self.done("init", "hub")
        invite = self.invite("hub", "berlin")
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        stranger.load_verify_locations(cadata=invite["ca_certificate"])
        with self.assertRaisesRegex(ssl.SSLError, "PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            shake_hands(stranger, self.server("hub"), "localhost")

    def test_a_replica_cannot_pose_as_the_hub(self):
        self.done("init", "hub")
        invite = self.invite("hub", "localhost")
        posing = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client(invite)  # leaves its certificate and key in client.pem
        posing.load_cert_chain(self.directory / "client.pem")
        with self.assertRaisesRegex(ssl.SSLError, "unsuitable certificate purpose|unsupported certificate purpose"):
            shake_hands(self.client(invite), posing, "localhost")


class WrongUse(KeysCommand):
    def test_is_refused_on_one_line(self):
        self.done("init", "hub")
        for words, *expected in (
                ((), "subcommand"),
                (("make",), "init, invite, revoke, list", "make"),
                (("init",), "DIR"),
                (("init", "new", "--host", "10.0.0.256"), "host", "10.0.0.256"),
                (("init", "new", "--host", "a,DNS:b"), "host"),
                (("init", "new", "extra"), "extra"),
                (("invite", "hub"), "NAME"),
                (("invite", "hub", "berlin"), "HOST:PORT"),
                (("invite", "hub", "a/b", ADDRESS), "name", "a/b"),
                (("invite", "hub", "..", ADDRESS), "name"),
                (("invite", "hub", "x" * 65, ADDRESS), "64"),
                (("invite", "hub", "a\nb", ADDRESS), "a?b"),
                (("invite", "hub", "berlin", "hub.example.org"), "HOST:PORT"),
                (("invite", "hub", "berlin", "hub.example.org:0"), "65535"),
                (("invite", "hub", "berlin", "2001:db8::7:4242"), "HOST:PORT"),
                (("invite", "hub", "berlin", ADDRESS, "--days", "0"), "--days"),
                (("invite", "hub", "berlin", ADDRESS, "--days", "soon"), "--days"),
                (("invite", "hub", "berlin", ADDRESS, "--out", "hub"), "directory"),
                (("revoke", "hub"), "NAME"),
                (("revoke", "hub", "a b"), "name"),
                (("list",), "DIR"),
        ):
            with self.subTest(words=words):
                self.assert_refused(self.refused(*words), *expected)
        self.assertFalse((self.directory / "new").exists())

    def test_what_is_missing_fails_on_one_line(self):
        self.done("init", "hub")
        for words, *expected in (
                (("invite", "none", "berlin", ADDRESS), "none", "keys init"),
                (("list", "none"), "none", "keys init"),
                (("revoke", "none", "berlin"), "none"),
                (("init", "none/hub"), "none/hub"),
                (("invite", "hub", "berlin", ADDRESS, "--out", "none/berlin.invite"), "none/berlin.invite"),
        ):
            with self.subTest(words=words):
                self.assert_refused(self.refused(*words), *expected, code=1)

    def test_help_has_examples(self):
        for words in (("--help",), ("init", "--help"), ("invite", "--help"), ("revoke", "--help"), ("list", "--help")):
            self.assertIn("longhaul keys", self.done(*words).split("Example", 1)[1])


if __name__ == "__main__":
    unittest.main()
