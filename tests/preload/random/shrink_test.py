#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Failing programs become as small as they can be, and still fail."""
import random
import unittest

from shrink import shrink


def numbers(line):
    return [int(number) for number in line.split()[1:]]


def noise(count, seed=1):
    source = random.Random(seed)
    return [f"mix {source.randrange(4)} " + " ".join(str(source.randrange(40000)) for _ in range(10)) for _ in range(count)]


class Shrink(unittest.TestCase):
    def test_leaves_the_steps_that_matter_alone_and_in_order(self):
        lines = ["program 1 1 0", *noise(40), "free 2 7 0", *noise(30, 2), "launch 0 3 1", *noise(10, 3)]

        def fails(tried):
            names = [line.split()[0] for line in tried]
            return "free" in names and "launch" in names[names.index("free") :]

        self.assertEqual(shrink(lines, fails), ["free 0 0 0", "launch 0 0 0"])

    def test_halves_ranges_to_the_least_that_fails(self):
        lines = [*noise(5), "set 1 3 70000 5000000 9 1"]
        smallest = shrink(lines, lambda tried: any(line.startswith("set") and numbers(line)[3] >= 4096 for line in tried))
        self.assertEqual(len(smallest), 1)
        self.assertLess(numbers(smallest[0])[3], 2 * 4096)
        self.assertGreaterEqual(numbers(smallest[0])[3], 4096)

    def test_uses_as_few_streams_as_fail(self):
        lines = [f"set {stream} {slot} 0 1 0 0" for stream in range(4) for slot in range(3)]
        smallest = shrink(lines, lambda tried: len({numbers(line)[0] for line in tried}) >= 2)
        self.assertEqual(len(smallest), 2)
        self.assertEqual(sorted(numbers(line)[0] for line in smallest), [0, 1])

    def test_does_not_lose_a_failure_that_needs_everything(self):
        lines = noise(7)
        self.assertEqual(len(shrink(lines, lambda tried: len(tried) == 7)), 7)

    def test_stops_in_time(self):
        lines = noise(100)
        calls = []

        def fails(tried):
            calls.append(1)
            return True

        self.assertEqual(shrink(lines, fails, seconds=0), lines)
        self.assertEqual(calls, [])


if __name__ == "__main__":
    unittest.main()
