#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Random programs end with the same bytes and the same errors with libswap as without.

usage: random_programs_test.py --program BIN --libswap SO --simgpu DIR [--first SEED] [--count N | --total N]

Each case runs all programs in one process, with a budget that forces swapping and, in some, delays that
force bad timing: --count programs each, or --total in all, each case its own. The first program that
differs is shrunk to the fewest steps that still differ.
"""
import argparse
import os
import subprocess
import sys

# name, budget, what else is set, options of the program (and of the run it is compared with)
CASES = [
    ("at_90_percent", "36MiB", {}, []),
    ("at_50_percent", "20MiB", {}, []),
    ("at_30_percent", "12MiB", {}, []),
    ("at_20_percent", "8MiB", {}, []),
    ("with_slow_fetches", "20MiB", {"SIMGPU_DELAYS": "h2d:every3=2ms"}, []),
    ("with_slow_evictions", "20MiB", {"SIMGPU_DELAYS": "d2h:every2=3ms"}, []),
    ("with_slow_kernels", "20MiB", {"SIMGPU_DELAYS": "kernel:every5=4ms"}, []),
    ("with_everything_verified", "20MiB", {"LIBSWAP_VERIFY": "1"}, []),
    # There an operation that needs more than the budget is out of memory: pointer tables here name 28 MiB.
    ("without_host_numa", "36MiB", {"SIMGPU_HOST_NUMA": "0"}, []),
    ("with_three_threads", "20MiB", {"SIMGPU_DELAYS": "h2d:every7=1ms"}, ["--threads", "3", "--live", "12"]),
    ("on_two_devices", "14MiB", {}, ["--devices", "2"]),
    ("on_two_devices_with_slow_copies", "10MiB", {"SIMGPU_DELAYS": "h2d:every3=2ms,d2h:every4=2ms"}, ["--devices", "2"]),
]


class Runner:
    def __init__(self, options):
        self.options = options
        self.references = {}

    def run(self, memory, settings, words):
        """Lines of the programs and everything said, from one process."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LIBSWAP_", "SIMGPU_")) or k == "LIBSWAP_TEST_PRELOAD_FIRST"}
        first = environment.pop("LIBSWAP_TEST_PRELOAD_FIRST", "")
        stand_ins = [f"{self.options.simgpu}/{name}" for name in ("libcuda.so.1", "libcudart.so.13")]
        preload = [first] if first else []
        preload += ([self.options.libswap] if "LIBSWAP_BUDGET" in settings else []) + stand_ins
        environment |= {"LD_PRELOAD": ":".join(preload), "LD_LIBRARY_PATH": self.options.simgpu, "SIMGPU_MEMORY": memory} | settings
        if "--devices" in words:
            environment["SIMGPU_DEVICES"] = words[words.index("--devices") + 1]
        try:
            done = subprocess.run([self.options.program, *words], env=environment, capture_output=True, text=True, errors="replace", timeout=400)
        except subprocess.TimeoutExpired as expired:
            return (expired.stdout or b"").decode().splitlines(), "hangs", -1
        return done.stdout.splitlines(), done.stderr, done.returncode

    def reference(self, words):
        key = tuple(words)
        if key not in self.references:
            lines, said, code = self.run("512MiB", {}, words)
            if code != 0:
                raise RuntimeError(f"without libswap: exit {code}\n{said}")
            self.references[key] = lines
        return self.references[key]

    def differs(self, case, words):
        """None, or what is different: (line without, line with, what was said)."""
        name, budget, settings, extra = case
        expected = self.reference(words + extra)
        settings = {"LIBSWAP_BUDGET": budget, "LIBSWAP_MIN_SWAP": "64K", "LIBSWAP_VERBOSE": "1"} | settings
        lines, said, code = self.run("64MiB", settings, words + extra)
        for i, line in enumerate(expected):
            if i >= len(lines) or lines[i] != line:
                return line, lines[i] if i < len(lines) else f"(nothing, exit {code})", said
        if code != 0:
            return "exit 0", f"exit {code}", said
        if " in 0.0 MiB" in said or "in " not in said:
            return "swapping", "no swapping", said
        return None

    def shrink(self, case, seed):
        """The fewest steps of that program that still differ."""
        low, high = 0, 60
        while low + 1 < high:
            middle = (low + high) // 2
            found = self.differs(case, [str(seed), "1", "--ops", str(middle)])
            low, high = (low, middle) if found and found[0] != "swapping" else (middle, high)
        return high


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap", "simgpu"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--total", type=int, help="programs of all cases together")
    parser.add_argument("--case", action="append", help="only this one")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case[0] for case in CASES))
        return 0
    runner = Runner(options)
    failed = 0
    first, count = options.first, options.count
    if options.total:
        count = -(-options.total // len(CASES))
    for case in CASES:
        if options.case and case[0] not in options.case:
            continue
        found = runner.differs(case, [str(first), str(count)])
        print(f"{case[0]}: {count} programs {'differ' if found else 'end the same'}", flush=True)
        first += count if options.total else 0
        if not found:
            continue
        failed += 1
        print(f"  without libswap: {found[0]}\n  with:            {found[1]}\n  said: {found[2][-1500:]}")
        if found[0].startswith("program"):
            seed = found[0].split()[1]
            options_of_it = " ".join(["--ops", str(runner.shrink(case, seed)), *case[3]])
            print(f"  smallest: random_programs {seed} 1 {options_of_it}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
