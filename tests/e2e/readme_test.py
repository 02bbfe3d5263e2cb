#!/usr/bin/env python3
"""What README.md shows the program prints.

usage: readme_test.py DIRECTORY_OF_LONGHAUL README
"""
import pathlib
import re
import shlex
import sys
import unittest

README = pathlib.Path(sys.argv.pop(2)).read_text(encoding="utf-8")

from command import CommandTest


class Readme(CommandTest):
    def test_shows_the_plan_that_is_printed(self):
        command, shown = re.search(r"^```\n\$ longhaul (plan [^\n]*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL).groups()
        done = self.longhaul(*shlex.split(command))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(shown, done.stdout)

    def test_names_commands_and_options_that_exist(self):
        blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines() if line.startswith("longhaul ")]
        self.assertGreater(len(lines), 8)
        for words in lines:
            names = words[1:3] if words[1] == "keys" else words[1:2]
            help_text = self.longhaul(*names, "--help").stdout
            for option in re.findall(r"--[a-z-]+", " ".join(words)):
                with self.subTest(command=" ".join(words)):
                    self.assertIn(option, help_text)


if __name__ == "__main__":
    unittest.main()
