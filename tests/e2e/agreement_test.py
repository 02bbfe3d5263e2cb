#!/usr/bin/env python3
"""The rehearsal confirms what the lab predicts: step time and time to target within 10 %.

Real processes keep a pace here, so the test needs the machine for itself. If a figure is off and other programs used
the processors meanwhile, the test fails with MACHINE TOO BUSY: then nothing was measured, and nothing is known.

usage: agreement_test.py DIRECTORY_OF_LONGHAUL
"""
import json
import os
import pathlib
import resource
import unittest

from command import CommandTest

SCENARIO = ("smoke", "--recipe", "d-sgd,dd-ef-sgd,static", "--set", "replica.step_time=150ms")
FIGURES = ("step_time_s", "time_to_target_s")
TOLERANCE = 0.1
# Replicas of the scenario wait for more than half of each step, so this much for others delays none of them by 10 %.
MOST_FOR_OTHERS = 0.15


def processor_seconds():
    """(of all programs, of our children) since they began; the first counts all cores."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return busy, ours.ru_utime + ours.ru_stime


def off_by(measured, predicted):
    if measured is None or predicted is None:
        return 0.0 if measured == predicted else float("inf")
    return abs(measured / predicted - 1)


class Agreement(CommandTest):
    def runs(self, command):
        done = self.longhaul(command, *SCENARIO, "--json", "--out", command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {run["recipe"]: run for run in json.loads(done.stdout)["runs"]}

    def test_lab_and_rehearsal_agree(self):
        lab = self.runs("lab")
        self.assertTrue(all(run["time_to_target_s"] for run in lab.values()), "the target is never reached")
        begin, (busy, ours) = os.times().elapsed, processor_seconds()
        rehearsal = self.runs("rehearse")
        took = os.times().elapsed - begin
        busy, ours = (after - before for after, before in zip(processor_seconds(), (busy, ours)))
        others = (busy - ours) / (took * os.cpu_count())

        # The lab's figures, and what the rehearsal itself predicts of its step time by formula.
        expected = [(recipe, figure, run[figure], f"lab {figure}") for recipe, run in lab.items() for figure in FIGURES]
        expected += [(recipe, "step_time_s", run["predicted_step_time_s"], "predicted_step_time_s")
                     for recipe, run in rehearsal.items()]
        is_off = False
        for recipe, figure, predicted, name in expected:
            measured = rehearsal[recipe][figure]
            off = off_by(measured, predicted)
            is_off |= off > TOLERANCE
            print(f"{recipe:10} {name:22} {predicted:7.4g} s, rehearsal {'never' if measured is None else format(measured, '.4g')} s, "
                  f"off by {100 * off:.1f} %{'  <-- too far' if off > TOLERANCE else ''}", flush=True)
        print(f"other programs used {100 * others:.0f} % of the processors", flush=True)
        if not is_off:
            return
        if others > MOST_FOR_OTHERS:
            self.fail(f"MACHINE TOO BUSY: other programs used {100 * others:.0f} % of the processors; nothing was measured")
        self.fail(f"lab and rehearsal differ by more than {100 * TOLERANCE:.0f} % on a machine that was free")


if __name__ == "__main__":
    unittest.main()
