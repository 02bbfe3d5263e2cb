#!/usr/bin/env python3
"""Replicas that are killed, stopped or cut off, and hubs that are killed, as real processes: training goes on, and the
books of all add up.

usage: faults_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import copy
import random
import signal
import time
import unittest

import books
from fault_run import SILENCE_S, FaultTest

TICKS_S = 1.5  # of both ends and of the status, on a busy machine


class Killed(FaultTest):
    # 550 kB per update on a link of 10 Mbit/s, 0.4 s: far more than what the system holds on its way.
    elements = 500_000
    recipe = "d-ef-sgd:keep_ratio=0.5"

    def kill_during_upload(self, slot):
        """Kills it when a part of an update has passed; the step of that update."""
        replica, link = self.alive[slot], self.links[slot]
        for _ in range(20):
            replica.wait(lambda event: event["event"] == "step", len(replica.events))
            before = link.command("passed")["up"]
            sent = [entry for entry in self.entries() if entry["event"] == "submitted" and entry["slot"] == slot][-1]
            passed = 0
            deadline = time.monotonic() + 5
            while passed < 0.1 * sent["bytes"] and time.monotonic() < deadline:
                passed = link.command("passed")["up"] - before
            if passed < 0.4 * sent["bytes"]:
                self.kill(slot)
                mine = [entry for entry in self.entries() if entry["event"] == "submitted" and entry["slot"] == slot]
                return mine[-1]
        self.fail("no upload was caught")

    def test_a_replica_is_killed_during_an_upload_and_comes_back_without_a_checkpoint(self):
        self.start_hub()
        for slot in range(3):
            self.link(slot, "--up", "10mbit", "--down", "200mbit", "--latency", "5ms")
            self.start_replica(slot)
        self.reaches(3)
        cut_short = self.kill_during_upload(2)
        killed = time.monotonic()
        without = self.hub.wait(lambda event: event["event"] == "round" and event["step"] >= cut_short["step"],
                                len(self.hub.events), timeout=SILENCE_S + TICKS_S)
        self.assertLess(time.monotonic() - killed, SILENCE_S + TICKS_S)
        self.assertNotIn(2, [one["slot"] for one in without["contributors"]])
        self.goes_on(2)
        self.start_replica(2)
        self.enrolled(2)
        self.goes_on(3)
        ledger = self.finish(restarts={0: 0, 1: 0, 2: 1})
        self.assertNotIn(cut_short["digest"], [one["digest"] for event in self.rounds() for one in event["contributors"]])
        self.assertIn(2, [one["slot"] for one in ledger.rounds[max(ledger.rounds)]["contributors"]])


class Lost(FaultTest):
    replicas = 4

    def test_two_of_four_replicas_are_lost(self):
        self.start_all("--patience", "1s")
        self.reaches(30)
        self.kill(1)
        self.kill(3)
        self.goes_on(30, timeout=SILENCE_S + TICKS_S + 30 * 0.2)
        self.finish(restarts={0: 0, 2: 0})


class Joining(FaultTest):
    def test_a_late_joiner_gets_the_model_and_takes_part(self):
        self.start_hub("--start-with", 2)
        for slot in (0, 1):
            self.start_replica(slot)
        self.reaches(30)
        self.start_replica(2)
        self.enrolled(2)
        self.goes_on(10)
        ledger = self.finish(restarts={0: 0, 1: 0, 2: 1})
        self.assertIn(2, [one["slot"] for one in ledger.rounds[max(ledger.rounds)]["contributors"]])


class HubKilled(FaultTest):
    def test_the_hub_is_killed_and_goes_on_from_its_journal(self):
        self.start_all()
        self.reaches(30)
        for _ in range(2):
            before = self.next_round()
            self.restart_hub()
            self.enrolled()
            self.reaches(before + 20)
        self.finish(restarts={0: 0, 1: 0, 2: 0})


class Away(FaultTest):
    """A replica is away for a while, and lives."""
    step_time = "50ms"
    seconds = SILENCE_S + 2

    def away(self, begin, end):
        self.start_hub()
        self.link(2)
        for slot in range(3):
            self.start_replica(slot)
        self.reaches(20)
        begin()
        began, seen = time.monotonic(), len(self.hub.events)
        # The rounds that wait for it go on when it has been silent for long enough.
        self.hub.wait(lambda event: event["event"] == "round" and 2 not in [one["slot"] for one in event["contributors"]],
                      seen, timeout=SILENCE_S + TICKS_S)
        self.passes(max(0, began + self.seconds - time.monotonic()))
        end()
        self.enrolled()
        self.goes_on(10)
        ledger = self.finish(restarts={0: 0, 1: 0, 2: 0})
        self.assertTrue(ledger.returned(), "else the test tests little")

    def cut(self):
        self.away(lambda: self.links[2].command("cut"), lambda: self.links[2].command("restore"))

    def stop(self):
        self.away(lambda: self.alive[2].signal(signal.SIGSTOP), lambda: self.alive[2].signal(signal.SIGCONT))


class Cut(Away):
    def test_a_link_is_cut_silently_and_restored(self):
        self.cut()


class Stopped(Away):
    def test_a_process_is_stopped_and_continued(self):
        self.stop()


class AwayForLong(Away):
    def test_a_link_is_cut_silently_for_20_s(self):
        self.seconds = 20
        self.cut()

    def test_a_process_is_stopped_for_10_s(self):
        self.seconds = 10
        self.stop()


class AtRandom(FaultTest):
    """Fifty faults, two at a time at most, from a seed."""
    faults, seed = 50, 1

    def begin(self, kind, slot):
        """What ends it."""
        if kind == "kill":
            self.kill(slot)
            return lambda: self.start_replica(slot)
        if kind == "stop":
            self.alive[slot].signal(signal.SIGSTOP)
            return lambda: self.alive[slot].signal(signal.SIGCONT)
        if kind == "cut":
            self.links[slot].command("cut")
            return lambda: self.links[slot].command("restore")
        if kind == "drop":
            self.links[slot].command("drop")
        return lambda: None

    def start_again(self):
        """Who asked what there is to do while the hub was away, and so did not get to start."""
        for slot, replica in self.alive.items():
            if replica.process.poll() is not None:
                self.assertEqual(replica.named("started"), [], replica.errors)
                self.start_replica(slot)

    def test_fifty_faults_in_one_run_lose_nothing(self):
        random_ = random.Random(self.seed)
        self.start_hub()
        for slot in range(self.replicas):
            self.link(slot)
            self.start_replica(slot)
        self.reaches(20)
        under_way = {}  # slot -> (when it ends, how)
        for number in range(self.faults):
            kind = random_.choice(("kill", "kill", "stop", "stop", "cut", "cut", "drop", "hub"))
            slot = random_.choice([slot for slot in range(self.replicas) if slot not in under_way])
            length = random_.uniform(0, SILENCE_S + 2)
            with self.subTest(number=number, kind=kind, slot=slot, length=length):
                if kind == "hub":
                    self.restart_hub()
                else:
                    under_way[slot] = (time.monotonic() + length, self.begin(kind, slot))
            self.passes(random_.uniform(0, 1.5))
            while len(under_way) > 1 or any(end < time.monotonic() for end, _ in under_way.values()):
                slot = min(under_way, key=lambda slot: under_way[slot][0])
                end, undo = under_way.pop(slot)
                self.passes(max(0, end - time.monotonic()))
                undo()
        for _, undo in under_way.values():
            undo()
        self.start_again()
        self.enrolled()
        self.goes_on(10)
        ledger = self.finish()
        last, _ = max(ledger.merged)
        self.assertEqual({(step, 0) for step in range(last + 1)}, set(ledger.merged) | set(ledger.rounds))
        self.assertGreater(len(ledger.returned()), 0, "else the test tests little")


class Noticing(FaultTest):
    """The books notice mistakes."""
    step_time = "50ms"

    def test_an_update_that_came_back_and_is_forgotten(self):
        self.start_hub()
        self.link(2)
        for slot in range(3):
            self.start_replica(slot, *(["--lose-returned"] if slot == 2 else []))
        self.reaches(20)
        seen = len(self.hub.events)
        self.links[2].command("cut")
        self.hub.wait(lambda event: event["event"] == "round" and len(event["contributors"]) < 3, seen)
        self.links[2].command("restore")
        self.enrolled()
        self.goes_on(10)
        with self.assertRaisesRegex(books.Unbalanced, "imbalance"):
            self.finish()
        entries, rounds = self.entries(), self.rounds()
        for entry in entries:  # forgive that one
            if entry["event"] == "finished":
                entry["imbalance"] = 0
        books.Books(copy.deepcopy(entries), rounds).check()
        self.notices_false_entries(entries, rounds)

    def notices_false_entries(self, entries, rounds):
        back = next(entry for entry in entries if entry["event"] == "merged" and entry["returned"] is not None)
        full = next(event for event in rounds if len(event["contributors"]) == 3 and event["step"] == 5)
        merged = next(entry for entry in entries if entry["event"] == "merged" and entry["step"] == full["step"])
        for what, change in {
                "neither": lambda: back.update(returned=None),
                "both": lambda: merged.update(returned=next(one["digest"] for one in full["contributors"]
                                                            if one["slot"] == merged["slot"])),
                "not the mean": lambda: full.update(members=4),
                "in it twice": lambda: full["contributors"].append(full["contributors"][0]),
                "differs between": lambda: merged.update(digest="another"),
                "closed twice": lambda: rounds.append(full),
                "merged twice": lambda: entries.append(merged),
                "every round": lambda: entries.remove(merged),
        }.items():
            with self.subTest(what), self.assertRaisesRegex(books.Unbalanced, what):
                saved = copy.deepcopy((back, full, merged)), list(entries), list(rounds)
                try:
                    change()
                    books.Books(entries, rounds).check()
                finally:
                    for entry, before in zip((back, full, merged), saved[0]):
                        entry.clear()
                        entry.update(before)
                    entries[:], rounds[:] = saved[1], saved[2]


if __name__ == "__main__":
    unittest.main()
