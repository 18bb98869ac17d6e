#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""arena_test TRAINER LIBSWAP SIMGPU BUILD: a trainer whose activations are parts of one allocation ends with the same bytes as with
one allocation per tensor, and is at most a tenth slower, at 60 and at 40 % of its memory, in simulated time."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
from preloading import FAST_HOST, environment_without, ld_preload  # noqa: E402

TRAINER, LIBSWAP, SIMGPU, BUILD = sys.argv[1:5]
SIZE = ["--channels", "64", "--batch", "192", "--iterations", "16"]
MOST_SLOWER = 1.10
TRIES = 3  # iteration times differ a little from run to run


def run(alloc, settings):
    """(digest, peak in bytes, iteration in ms)"""
    command = [SIMGPU, "--build", BUILD, *FAST_HOST, "--memory", "64MiB", "--", TRAINER, "--alloc", alloc, *SIZE]
    done = subprocess.run(command, env=environment_without("LIBSWAP_", "SIMGPU_") | settings, capture_output=True, text=True, timeout=300)
    found = [re.search(rf"^{what}", done.stdout, re.MULTILINE) for what in (r"digest (\w+)", r"peak (\d+)", r"iteration (\S+) ms")]
    if done.returncode or not all(found):
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    digest, peak, iteration = (match.group(1) for match in found)
    return digest, int(peak), float(iteration)


class Arena(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.digest, cls.peak, _ = run("once", {})

    def swapped(self, alloc, percent):
        """The iteration in ms, and the device's summary."""
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder) / "summary.json"
            settings = {"LD_PRELOAD": ld_preload(LIBSWAP), "LIBSWAP_BUDGET": str(self.peak * percent // 100), "LIBSWAP_SUMMARY": str(summary)}
            digest, _, iteration = run(alloc, settings)
            device = json.loads(summary.read_text())["devices"][0]
        self.assertEqual(digest, self.digest)
        self.assertGreater(device["evictions"], 0)
        return iteration

    def compare(self, percent):
        for _ in range(TRIES):
            apart, together = self.swapped("once", percent), self.swapped("arena", percent)
            print(f"{percent} %: {apart} ms with an allocation for each, {together} ms with one for all", file=sys.stderr)
            if together <= MOST_SLOWER * apart:
                return
        self.fail(f"{together} ms against {apart} ms")

    def test_at_60_percent(self):
        self.compare(60)

    def test_at_40_percent(self):
        self.compare(40)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
