#!/usr/bin/env python3
"""Typical mistakes, and what the program says: one line with what was expected or meant.

usage: mistakes_test.py DIRECTORY_OF_LONGHAUL
       mistakes_test.py --table DIRECTORY_OF_LONGHAUL   prints the mistakes and their messages as Markdown
"""
import shlex
import subprocess
import sys
import tempfile
import unittest

PRINTS_TABLE = sys.argv[1:2] == ["--table"]
if PRINTS_TABLE:
    del sys.argv[1]

from command import DEADLINE_S, LONGHAUL, CommandTest  # noqa: E402: takes the directory from sys.argv

PLAN = "plan --params 124M --step-time 250ms --bandwidth 500mbit --latency 30ms"

# Command behind `longhaul`, exit code, fragments of the one line on standard error.
MISTAKES = (
    ("lap", 2, "did you mean lab?"),
    ("rehears smoke --recipe auto", 2, "did you mean rehearse?"),
    ("plan --parms 124M --step-time 1s --map", 2, "unknown option --parms; did you mean --params?"),
    ("lab fasion-wan", 2, "did you mean fashion-wan?", "cifar-wan"),
    ("lab three", 2, "did you mean the file three.toml?"),
    ("lab missing.toml", 2, "missing.toml", "No such file or directory"),
    ("lab smoke --recipes d-sgd", 2, "unknown option --recipes; did you mean --recipe?"),
    ("lab smoke --recipe dsgd", 2, "did you mean d-sgd?", "longhaul recipes"),
    ("lab smoke --recipe magic", 2, "expected one of ideal, d-sgd, ", 'got "magic"'),
    ("lab smoke --recipe diloco:period=20", 2, "did you mean period_steps?"),
    ("lab smoke --set train.step=60", 2, "did you mean train.steps?"),
    ("lab smoke --set link.up=20", 2, "bit, kbit, mbit, gbit, tbit; bytes: B/s", "got 20"),
    ("lab smoke --set link.up=20MB", 2, "bit, kbit, mbit, gbit, tbit; bytes: B/s", "got 20MB"),
    ("lab smoke --set target.value=84", 2, "an accuracy above 0 and at most 1"),
    ("lab smoke --seed 1,1", 2, "each seed once, got 1 twice"),
    ("lab smoke --grid train.lr=0.1,0.1", 2, "each value once, got 0.1 twice"),
    ("lab smoke --print-config --seed 1,2", 2, "expected one seed"),
    (PLAN.replace("500mbit", "500"), 2, "--bandwidth", "a unit (bit, kbit, mbit"),
    (PLAN.replace("30ms", "5m"), 2, "--latency", "(ns, us, ms, s, min, h)"),
    (PLAN.replace(" --latency 30ms", ""), 2, "expected --bandwidth and --latency"),
    (PLAN.replace("124M", "124"), 0, "did you mean 124M?"),
    (PLAN + " --recipe atuo", 2, "--recipe", "did you mean auto?"),
    ("hub smoke --listen 7070", 2, "--listen", "HOST:PORT", "from 0 (the system chooses one) to 65535"),
    ("hub smoke --listen 0.0.0.0:7070", 2, "--keys DIR", "--insecure"),
    ("hub smoke --recipe d-sgd,auto", 2, "a hub runs one recipe"),
    ("hub smoke --least 9", 2, "--least: expected at most 3"),
    ("train", 2, "--invite FILE", "--hub HOST:PORT"),
    ("train --hub 127.0.0.1:9", 2, "--name NAME"),
    ("train --hub 127.0.0.1:9 --name a --checkpoint-every 5m", 2, "--checkpoint-every", "5min"),
    ("status --hub nonsense", 2, "--hub", "HOST:PORT"),
    ("profil smoke", 2, "did you mean profile?"),
    ("profile fasion-wan", 2, "did you mean fashion-wan?"),
    ("profile smoke --step 5", 2, "unknown option --step; did you mean --steps?"),
    ("profile smoke --force", 2, "--out"),
    ("export nowhere --out model.safetensors", 1, "nowhere", "No such file or directory"),
    ("keys list nowhere", 1, "nowhere"),
    ("help lap", 2, "did you mean lab?"),
    ("completion bsh", 2, "did you mean bash?"),
)

THREE = '[target]\nvalue = 0.8\n[[replica]]\ncount = 3\n'


class Mistakes(CommandTest):
    def test_each_is_answered_in_one_line(self):
        (self.directory / "three.toml").write_text(THREE)
        for command, code, *fragments in MISTAKES:
            with self.subTest(command=command):
                done = self.longhaul(*shlex.split(command))
                self.assertEqual(done.returncode, code, done.stderr)
                lines = done.stderr.strip().splitlines()
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertTrue(lines[0].startswith("longhaul"), lines[0])
                if code != 0:
                    self.assertEqual(done.stdout, "")
                for fragment in fragments:
                    self.assertIn(fragment, lines[0])


def print_table():
    print("| command | exit | message |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="longhaul_e2e_") as directory:
        with open(f"{directory}/three.toml", "w") as file:
            file.write(THREE)
        for command, code, *_ in MISTAKES:
            done = subprocess.run([LONGHAUL, *shlex.split(command)], capture_output=True, text=True,
                                  timeout=DEADLINE_S, cwd=directory)
            message = done.stderr.strip().replace("|", "\\|")
            print(f"| `longhaul {command}` | {done.returncode} | {message} |")


if __name__ == "__main__":
    print_table() if PRINTS_TABLE else unittest.main()
