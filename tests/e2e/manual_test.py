#!/usr/bin/env python3
"""What the program says about itself: `scenarios`, `recipes`, `help`, `man`, `completion` and `--print-config`.

usage: manual_test.py DIRECTORY_OF_LONGHAUL [CLASS_OF_TESTS…]
"""
import json
import pathlib
import shutil
import subprocess
import unittest

from command import DEADLINE_S, LONGHAUL, CommandTest

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "scenarios"
COMMANDS = {"plan", "lab", "hub", "train", "status", "scenarios", "recipes", "help", "man", "completion", "keys"}


class Told(CommandTest):
    def told(self, *arguments):
        done = self.longhaul(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout


class Catalogue(Told):
    def test_scenarios_are_listed_and_shown(self):
        names = sorted(file.stem for file in SCENARIOS.glob("*.toml"))
        listed = json.loads(self.told("scenarios", "--json"))["scenarios"]
        self.assertEqual([scenario["name"] for scenario in listed], names)
        self.assertTrue(all(scenario["title"] and scenario["recipes"] for scenario in listed))
        text = self.told("scenarios")
        for name in names:
            self.assertIn(name, text)
            self.assertEqual(self.told("scenarios", "show", name), (SCENARIOS / f"{name}.toml").read_text())
        shown = json.loads(self.told("scenarios", "show", "smoke", "--json"))
        self.assertEqual((shown["replicas"], shown["steps"]), (3, 24))
        self.assert_refused(self.longhaul("scenarios", "show", "smok"), "did you mean smoke?")

    def test_recipes_are_listed_and_shown(self):
        listed = {recipe["name"]: recipe for recipe in json.loads(self.told("recipes", "--json"))["recipes"]}
        self.assertGreaterEqual(len(listed), 27)
        self.assertEqual((listed["d-sgd"]["codec"], listed["d-sgd"]["delay_steps"]), ("dense/fp32", 0))
        self.assertEqual((listed["auto"]["planner"], listed["auto"]["delay_steps"]), ("auto", None))
        self.assertEqual(listed["sparseloco"]["residual_decay"], 0.95)
        text = self.told("recipes")
        self.assertLessEqual(max(map(len, text.splitlines())), 110)
        for name in listed:
            self.assertIn(f"\n{name} ", "\n" + text)
            self.assertIn(listed[name]["codec"], self.told("recipes", "show", name))
        self.assert_refused(self.longhaul("recipes", "show", "dilco"), "did you mean diloco?")


class Manual(Told):
    def completions(self, *words):
        """What bash offers for the last of the words behind `longhaul`."""
        script = self.directory / "longhaul.bash"
        script.write_text(self.told("completion", "bash"))
        words = ("longhaul", *words)
        done = subprocess.run(
            ["bash", "-c", 'source "$1"; COMP_CWORD=$2; shift 2; COMP_WORDS=("$@"); _longhaul; echo "${COMPREPLY[@]}"',
             "bash", script, str(len(words) - 1), *words], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_bash_completes_commands_options_and_names(self):
        subprocess.run(["bash", "-n"], input=self.told("completion", "bash"), text=True, check=True)
        self.assertEqual(self.completions("pl"), {"plan"})
        self.assertLessEqual(COMMANDS, self.completions(""))
        self.assertEqual(self.completions("plan", "--par"), {"--params"})
        self.assertEqual(self.completions("lab", "fashion-w"), {"fashion-wan"})
        self.assertEqual(self.completions("lab", "smoke", "--recipe", "olco3-o"), {"olco3-oc"})
        self.assertEqual(self.completions("keys", "inv"), {"invite"})
        self.assertIn("--replace", self.completions("keys", "invite", "--re"))
        self.assertEqual(self.completions("hub", "smoke", "--dir", ""), set())  # bash offers files
        self.assertEqual(self.completions("completion", "z"), {"zsh"})

    def test_other_shells_know_the_same(self):
        for shell in ("zsh", "fish"):
            script = self.told("completion", shell)
            for name in COMMANDS | {"fashion-wan", "olco3-oc", "params"}:
                self.assertIn(name, script)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)

    def test_man_pages_render(self):
        for words in ((), ("plan",), ("keys",), ("keys", "invite"), ("lab",)):
            page = self.told("man", *words)
            for head in (".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXIT STATUS"):
                self.assertEqual(page.count("\n" + head) + page.startswith(head), 1, head)
            self.assertTrue(page.isascii())
            if not shutil.which("groff"):
                continue
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        for command in COMMANDS:
            self.assertIn(f".SS longhaul {command}\n", self.told("man"))
        self.assertIn("\\-\\-params", self.told("man", "plan"))

    def test_help_is_the_help_of_a_command(self):
        for words in ((), ("plan",), ("keys", "invite")):
            self.assertEqual(self.told("help", *words), self.told(*words, "--help"))

    def test_the_build_writes_what_an_install_takes(self):
        share = LONGHAUL.parent.parent / "share"
        for path, words in (("man/man1/longhaul.1", ("man",)),
                            ("bash-completion/completions/longhaul", ("completion", "bash")),
                            ("zsh/site-functions/_longhaul", ("completion", "zsh")),
                            ("fish/vendor_completions.d/longhaul.fish", ("completion", "fish"))):
            self.assertEqual((share / path).read_text(), self.told(*words), path)


class Install(Told):
    def test_an_installed_program_finds_its_files(self):
        subprocess.run(["cmake", "--install", LONGHAUL.parent.parent, "--prefix", self.directory / "usr"], check=True,
                       capture_output=True, timeout=DEADLINE_S)
        done = subprocess.run([self.directory / "usr/bin/longhaul", "lab", "smoke", "--print-config"],
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, self.told("lab", "smoke", "--print-config"))
        self.assertTrue((self.directory / "usr/share/man/man1/longhaul.1").exists())


class PrintConfig(Told):
    def test_is_a_scenario_that_prints_the_same(self):
        for command in ("lab", "rehearse", "hub"):
            for file in SCENARIOS.glob("*.toml"):
                with self.subTest(command=command, scenario=file.stem):
                    printed = self.told(command, file.stem, "--print-config")
                    (self.directory / "again.toml").write_text(printed)
                    self.assertEqual(self.told(command, "again.toml", "--print-config"), printed)

    def test_has_settings_and_recipes_applied(self):
        printed = self.told("lab", "smoke", "--set", "link.up=1Mbps", "--recipe", "static, auto", "--seed", 7,
                            "--print-config")
        for line in ('up = "1mbit"', 'recipes = ["static", "auto"]', "seed = 7", "steps = 24"):
            self.assertIn(line + "\n", printed)
        self.assertFalse((self.directory / "longhaul-results").exists())
        printed = self.told("hub", "smoke", "--recipe", "static:delay_steps=2", "--seed", 9, "--print-config")
        for line in ('recipes = ["static:delay_steps=2"]', "seed = 9"):
            self.assertIn(line + "\n", printed)
        self.assertIn('stop = "target"\n', self.told("rehearse", "smoke", "--print-config"))


if __name__ == "__main__":
    unittest.main()
