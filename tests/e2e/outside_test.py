#!/usr/bin/env python3
"""A project outside the tree finds an installed Longhaul, with no package that its components do not need.

usage: outside_test.py BUILD_DIRECTORY CMAKE COMPILER
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, CMAKE, COMPILER = pathlib.Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1), sys.argv.pop(1)
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/outside"
NEEDED = {"libhwy", "libxxhash"}  # by pkg-config
NOT_NEEDED = ("Protobuf", "gRPC", "Torch", "OpenSSL", "ZLIB", "CLI11", "tomlplusplus")
UNKNOWN = """cmake_minimum_required(VERSION 3.25)
project(Unknown LANGUAGES CXX)
find_package(Longhaul REQUIRED COMPONENTS codec cupola)
"""


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, **options)


class Outside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="longhaul_outside_")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        installed = run(CMAKE, "--install", BUILD, "--component", "libraries", "--prefix", cls.directory / "usr")
        if installed.returncode:
            raise RuntimeError(installed.stderr)

    def only_needed_packages(self):
        """An environment in which pkg-config knows the needed packages and no others."""
        known = self.directory / "pkgconfig"
        known.mkdir()
        for package in NEEDED:
            found = run("pkg-config", "--variable=pcfiledir", package).stdout.strip()
            (known / f"{package}.pc").symlink_to(pathlib.Path(found) / f"{package}.pc")
        return {**os.environ, "PKG_CONFIG_LIBDIR": str(known), "PKG_CONFIG_PATH": ""}

    def configure(self, source, name, *options, **settings):
        return run(CMAKE, "-S", source, "-B", self.directory / name, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                   f"-DCMAKE_PREFIX_PATH={self.directory / 'usr'}", *options, **settings)

    def test_the_example_configures_builds_and_runs(self):
        # CMake fails where a package that is disabled is required.
        absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in NOT_NEEDED]
        configured = self.configure(EXAMPLE, "build", *absent, env=self.only_needed_packages())
        self.assertEqual(configured.returncode, 0, configured.stderr)
        built = run(CMAKE, "--build", self.directory / "build")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        done = run(self.directory / "build/plan_and_compress")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"keep ratio 0\.\d+, delay \d+: .+\n\d+ bytes instead of 4000000\n")

    def test_a_session_trains_a_model_of_its_own_over_a_hub(self):
        configured = self.configure(EXAMPLE / "session", "session", "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
        self.assertEqual(configured.returncode, 0, configured.stderr)
        built = run(CMAKE, "--build", self.directory / "session")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        hub = subprocess.Popen([BUILD / "bin/longhaul", "hub", "smoke", "--set", "replica.count=1", "--set", "train.steps=400",
                                "--set", "train.stop=steps", "--recipe", "d-sgd", "--listen", "127.0.0.1:0", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(hub.kill)
        address = json.loads(hub.stdout.readline())["address"]
        replicas = [subprocess.Popen([self.directory / "session/join_hub", address, name], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for name in ("one", "two")]
        for replica in replicas:
            self.addCleanup(replica.kill)
            out, errors = replica.communicate(timeout=120)
            self.assertEqual(replica.returncode, 0, errors)
            slope, offset = map(float, re.fullmatch(r"y = (\S+) x (\S+)\n", out).groups())
            self.assertAlmostEqual(slope, 3, delta=0.3)
            self.assertAlmostEqual(offset, -2, delta=0.3)
        hub.communicate(timeout=60)
        self.assertEqual(hub.returncode, 0)

    def test_an_unknown_component_is_named(self):
        source = self.directory / "unknown"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(UNKNOWN)
        configured = self.configure(source, "unknown_build")
        self.assertNotEqual(configured.returncode, 0)
        self.assertIn("cupola", configured.stderr)

    def test_targets_ask_for_cxx20_and_know_nothing_of_the_build(self):
        files = list((self.directory / "usr").glob("**/Longhaul_*.cmake"))
        self.assertGreaterEqual({file.stem for file in files},
                                {f"Longhaul_{module}" for module in ("base", "codec", "link", "round", "plan")})
        for file in (file for file in files if not re.search(r"-[a-z]+\.cmake$", file.name)):
            text = file.read_text()
            self.assertIn('INTERFACE_COMPILE_FEATURES "cxx_std_20"', text, file.name)
            self.assertNotIn(str(BUILD), text, file.name)
            self.assertNotIn(str(EXAMPLE.parents[1]), text, file.name)


if __name__ == "__main__":
    unittest.main()
