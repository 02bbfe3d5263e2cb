#!/usr/bin/env python3
"""Adds up the books of replicas and what the hub says of its rounds: every update that was submitted is in
exactly one mean, or came back to its replica; nothing counts twice; every replica merged every round once.

An update whose life ended before it heard of it (its process was killed, or its state replaced) is in one mean or
in none. Rounds of which a killed hub could not tell any more are found by what is in their mean.

usage: books.py DIRECTORY    as `longhaul rehearse --books` leaves it
"""
import collections
import itertools
import json
import pathlib
import sys

# Of |Σ what was sent - members · mean| against Σ |what was sent|, in float32.
TOLERANCE = 1e-5
NUMBERS = ("sum", "projection")


class Unbalanced(Exception):
    """The books do not add up."""


def demand(is_so, what):
    if not is_so:
        raise Unbalanced(what)


def read(*paths):
    """Entries of books, each with its life: (slot, process, number). A line that a killed process did not end is not there."""
    entries = []
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            entry["life"] = (entry["slot"], entry["process"], entry["life"])
            entries.append(entry)
    return entries


class Books:
    def __init__(self, entries, rounds):
        self.rounds = {}
        for event in rounds:
            name = (event["step"], event["part"])
            demand(name not in self.rounds, f"round {name} closed twice")
            self.rounds[name] = event
        self.submitted = collections.defaultdict(dict)  # (step, part) -> (life) -> entry
        self.merged = collections.defaultdict(dict)
        self.finished = {}
        for entry in entries:
            name, life = (entry["step"], entry["part"]), entry["life"]
            if entry["event"] in ("submitted", "merged"):
                book = self.submitted if entry["event"] == "submitted" else self.merged
                demand(life not in book[name], f"life {life}: round {name} was {entry['event']} twice")
                book[name][life] = entry
            elif entry["event"] == "finished":
                self.finished[life] = entry

    def returned(self):
        return [entry for lives in self.merged.values() for entry in lives.values() if entry["returned"] is not None]

    def check(self):
        self.check_lives()
        for name in sorted(set(self.submitted) | set(self.merged) | set(self.rounds)):
            self.check_updates(name)
            self.check_mean(name)

    def check_lives(self):
        """Each life merges rounds in order and each once; those that ended in order end equal, and balanced."""
        rounds_of = collections.defaultdict(list)
        for name in sorted(self.merged):
            for life in self.merged[name]:
                rounds_of[life].append(name)
        rounds = sorted(set(self.merged) | set(self.rounds))  # not every step has one
        for life, merged in rounds_of.items():
            between = [name for name in rounds if merged[0] <= name <= merged[-1]]
            demand(merged == between, f"life {life} did not merge every round")
        demand(len({(end["digest"], end["step"]) for end in self.finished.values()}) <= 1, "models differ at the end")
        for life, end in self.finished.items():
            demand(end["unsettled"] == 0, f"life {life}: updates on their way at the end")
            demand(end["imbalance"] is not None and end["imbalance"] < TOLERANCE,
                   f"life {life}: imbalance {end['imbalance']}")

    def check_updates(self, name):
        """In one mean, or returned: not both, and not neither."""
        contributions = self.contributions(name)
        for life, sent in self.submitted[name].items():
            settled = self.merged[name].get(life)
            if settled is None:
                demand(life not in self.finished, f"life {life}: what became of its update of round {name}?")
            elif contributions is not None:
                is_in = (life[0], sent["digest"]) in contributions
                is_back = settled["returned"] == sent["digest"]
                demand(is_in != is_back, f"life {life}, round {name}: {'both' if is_in else 'neither'} in the mean and back")
        for life, settled in self.merged[name].items():
            demand(settled["returned"] is None or life in self.submitted[name],
                   f"life {life}, round {name}: something came back that was not sent")

    def contributions(self, name):
        """(slot, digest) of what is in the mean; None: the hub did not tell."""
        if name not in self.rounds:
            return None
        told = [(one["slot"], one["digest"]) for one in self.rounds[name]["contributors"]]
        demand(len({slot for slot, _ in told}) == len(told), f"round {name}: a replica is in it twice")
        demand(len(told) <= self.rounds[name]["members"], f"round {name}: more contributors than members")
        return set(told)

    def check_mean(self, name):
        means = list(self.merged[name].values())
        if not means:
            return
        demand(len({mean["digest"] for mean in means}) == 1, f"round {name}: its mean differs between replicas")
        contributions = self.contributions(name)
        if contributions is None:
            demand(any(self.adds_up(means[0], sent, members) for sent, members in self.guesses(name)),
                   f"round {name}, of which the hub could not tell: nothing that was sent adds up to its mean")
            return
        sent = []
        for slot, digest in contributions:
            found = [entry for life, entry in self.submitted[name].items() if life[0] == slot and entry["digest"] == digest]
            demand(found, f"round {name}: nobody sent what slot {slot} is said to have contributed")
            sent.append(found[0])
        demand(self.adds_up(means[0], sent, self.rounds[name]["members"]), f"round {name}: not the mean of what was sent")

    def guesses(self, name):
        """Who may be in the mean: those to whom nothing came back, and any of those who did not live to hear of it."""
        known, open_ = [], []
        for life, sent in self.submitted[name].items():
            settled = self.merged[name].get(life)
            if settled is None:
                open_.append(sent)
            elif settled["returned"] is None:
                known.append(sent)
        for count in range(len(open_) + 1):
            for some in itertools.combinations(open_, count):
                for members in range(max(1, len(known) + count), len({life[0] for life in self.submitted[name]}) + 3):
                    yield known + list(some), members

    @staticmethod
    def adds_up(mean, sent, members):
        scale = sum(entry["magnitude"] for entry in sent) or 1.0
        return all(abs(members * mean[number] - sum(entry[number] for entry in sent)) <= TOLERANCE * scale
                   for number in NUMBERS)


def main(directory):
    rounds = [json.loads(line) for line in (directory / "rounds").read_text().splitlines()]
    ledger = Books(read(*directory.glob("replica-*")), rounds)
    ledger.check()
    sent = sum(len(lives) for lives in ledger.submitted.values())
    unheard = sum(life not in ledger.merged[name] for name, lives in ledger.submitted.items() for life in lives)
    worst = max(end["imbalance"] for end in ledger.finished.values())
    print(f"{len(ledger.merged)} rounds, {sent} updates: each in one mean or returned ({len(ledger.returned())}), "
          f"but for {unheard} whose process did not live to hear of it; accounts balance to {worst:.1e}")


if __name__ == "__main__":
    try:
        main(pathlib.Path(sys.argv[1]))
    except Unbalanced as wrong:
        sys.exit(f"books.py: {wrong}")
