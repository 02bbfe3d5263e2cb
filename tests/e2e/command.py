"""What the tests of the command line share: running the program in a directory of its own."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LONGHAUL = pathlib.Path(sys.argv.pop(1)).resolve() / "longhaul"
DEADLINE_S = 90


class CommandTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="longhaul_e2e_")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def longhaul(self, *arguments):
        return subprocess.run([LONGHAUL, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE_S,
                              cwd=self.directory)

    def assert_refused(self, done, *expected, code=2):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, f"one clear line, got: {done.stderr}")
        for text in expected:
            self.assertIn(text, lines[0])
