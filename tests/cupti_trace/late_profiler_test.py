#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""A profiler that begins while libswap's own use of CUPTI is on gets all that it would get without libswap.

    late_profiler_test.py LIBSWAP SIMGPU BUILD OPENS_CUPTI LINKED_AGAINST_CUPTI
"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

LIBSWAP, SIMGPU, BUILD, OPENS, LINKED = sys.argv[1:6]
BEGUN = "operations are timed by CUPTI"
LEFT = "the program begins to use CUPTI"


class Run:
    """What the program's own profiler saw, and what libswap said."""

    def __init__(self, program, first, last, settings=None, iterations=24):
        environment = preloading.environment_without("LIBSWAP_")
        if settings is not None:
            environment |= {"LD_PRELOAD": preloading.ld_preload(LIBSWAP), "LIBSWAP_BUDGET": "20MiB", "LIBSWAP_VERBOSE": "2",
                            "XDG_CACHE_HOME": "/nonexistent"} | settings
        run = subprocess.run([SIMGPU, "--build", BUILD, "--memory", "256MiB", "--", program, str(iterations), str(first), str(last)],
                             env=environment, capture_output=True, text=True, timeout=200)
        if run.returncode != 0:
            raise AssertionError(run.stdout + run.stderr)
        self.said = run.stderr
        self.digest = re.search(r"digest (\w+)", run.stdout).group(1)
        self.operations, self.seen, self.tags_of_others = map(int, re.search(
            r"operations (\d+), seen (\d+), tags of others (\d+)", run.stdout).groups())


class LateProfiler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = Run(OPENS, 2, 20)

    def check(self, run, begins=True):
        self.assertEqual(run.digest, self.plain.digest, run.said)
        self.assertEqual(run.operations, self.plain.operations)
        self.assertEqual(run.seen, self.plain.seen, run.said)
        self.assertEqual(run.said.count(LEFT), 1 if begins else 0, run.said)
        self.assertNotIn("CUPTI is out of the process", run.said)

    def test_sees_all_without_libswap(self):
        self.assertEqual(self.plain.operations, 18 * 21)
        self.assertEqual(self.plain.seen, self.plain.operations)

    def test_that_opens_cupti_while_ours_is_on(self):
        run = Run(OPENS, 2, 20, {})
        self.assertIn(BEGUN, run.said)
        self.check(run)
        self.assertEqual(run.tags_of_others, 0)

    def test_that_is_linked_against_cupti(self):
        run = Run(LINKED, 2, 20, {"LIBSWAP_CUPTI": "on"})
        self.assertIn(BEGUN, run.said)
        self.check(run)
        # By itself ours stays off there.
        run = Run(LINKED, 2, 20, {})
        self.assertNotIn(BEGUN, run.said)
        self.check(run, begins=False)

    def test_that_was_there_first(self):
        """Ours does not begin, whatever the user says."""
        for how in ("auto", "on"):
            run = Run(OPENS, -1, 18, {"LIBSWAP_CUPTI": how})
            self.assertNotIn(BEGUN, run.said)
            self.check(run, begins=False)

    def test_that_comes_when_ours_is_gone(self):
        run = Run(OPENS, 22, 24, {}, iterations=24)
        self.assertEqual(run.operations, 2 * 21)
        self.assertEqual(run.seen, run.operations)
        self.assertEqual(run.digest, self.plain.digest)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
