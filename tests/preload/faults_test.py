#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""A failure at each driver call that libswap makes, one at a time: the program ends right or with an error.

64: a step of a move that fails leaves everything as it was before.

usage: faults_test.py --program BIN --libswap SO --simgpu DIR --functions runtime/driver.def --case NAME

First the program runs without libswap, for its digest, then with it, for how often each driver function is
called; then once for every function and place, with that call failing. It may end with the right digest, or
with an error that it reports. It may not hang, crash, end with other bytes, or say anything else.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

HANGS_AFTER = 40  # seconds; a run takes less than one on a quiet machine

# What is set, and which places of each function's uses fail.
EVERYWHERE = ("1", "2", "3", "5", "middle", "last", "1+", "2+", "5+", "middle+")
SOME = ("1", "2", "middle", "1+", "middle+")
CASES = {
    "swapping": ({}, EVERYWHERE),
    "verifying": ({"LIBSWAP_VERIFY": "1", "LIBSWAP_FILL": "0x5A"}, SOME),
    "without_host_numa": ({"SIMGPU_HOST_NUMA": "0"}, SOME),
}
# Out of memory, invalid value, not supported, unknown.
CODES = (2, 1, 801, 999)

SAID = re.compile(r"libswap: (warning|error): |victim: .*: cudaError\w+$|victim: .*: cuda\w+$")


class Runner:
    def __init__(self, options, settings):
        self.options = options
        self.settings = settings

    def run(self, with_libswap, **settings):
        """(exit code or None for a hang, stdout, stderr, seconds)"""
        keep = preloading.environment_without("LIBSWAP_", "SIMGPU_")
        keep |= preloading.on_stand_ins(self.options.simgpu, self.options.libswap if with_libswap else None)
        if with_libswap:
            keep |= {"SIMGPU_MEMORY": "24MiB", "LIBSWAP_BUDGET": "14MiB", "LIBSWAP_MIN_SWAP": "64K", "LIBSWAP_HOST_LIMIT": "256MiB"} | self.settings
        begun = time.monotonic()
        try:
            done = subprocess.run([self.options.program, self.options.rounds], env=keep | settings, capture_output=True, text=True, timeout=HANGS_AFTER)
        except subprocess.TimeoutExpired as expired:
            return None, "", (expired.stderr or b"").decode(errors="replace"), HANGS_AFTER
        return done.returncode, done.stdout, done.stderr, time.monotonic() - begun


def wrong(result, digest):
    """None, or what is wrong with the way a run ended."""
    code, out, said, _ = result
    if code is None:
        return "hangs"
    if code < 0:
        return f"crashes with signal {-code}"
    strange = [line for line in said.splitlines() if not SAID.match(line)]
    if strange:
        return f"says '{strange[0]}'"
    if code == 0:
        return None if out == digest else f"ends with {out.strip() or 'nothing'}"
    if "victim: " not in said:
        return f"exits with {code} and no error"
    return None if out == "" else f"exits with {code} after {out.strip()}"


def places(count, wanted):
    found = []
    for place in wanted:
        onwards = "+" if place.endswith("+") else ""
        word = place.rstrip("+")
        number = {"middle": (count + 1) // 2, "last": count}.get(word) or int(word)
        if number <= count and f"{number}{onwards}" not in found:
            found.append(f"{number}{onwards}")
    return found


def functions_of(path, counts):
    names = re.findall(r"DRIVER_FUNCTION\((\w+), \w+, \"(\w*)\"\)", open(path).read())
    return [name for pair in names for name in pair if counts.get(name)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap", "simgpu", "functions"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--case", choices=CASES, default="swapping")
    parser.add_argument("--function", action="append", help="only this one")
    parser.add_argument("--rounds", default="2")
    parser.add_argument("--jobs", type=int, default=3)
    options = parser.parse_args()
    settings, wanted = CASES[options.case]
    runner = Runner(options, settings)

    code, digest, said, _ = runner.run(False)
    if code != 0 or said:
        print(f"without libswap: exit {code}\n{said}")
        return 1
    with tempfile.NamedTemporaryFile(suffix=".json") as file, tempfile.NamedTemporaryFile(suffix=".json") as summary:
        result = runner.run(True, SIMGPU_STATS=file.name, LIBSWAP_SUMMARY=summary.name)
        if found := wrong(result, digest):
            print(f"without a failure: {found}\n{result[2]}")
            return 1
        counts = json.load(open(file.name))["calls"]
    if counts.get("cuMemUnmap", 0) < 20:
        print(f"too little is swapped for this test to mean anything: {counts}")
        return 1

    specs = []
    for function in functions_of(options.functions, counts):
        if options.function and function not in options.function:
            continue
        for place in places(counts[function], wanted):
            code = CODES[len(specs) % len(CODES)]
            # There it is no failure, but how the driver says that there are no more parameters.
            if function == "cuFuncGetParamInfo" and place.endswith("+") and code == 1:
                code = 801
            specs.append(f"{function}:{place}={code}")
    right = failed = 0
    slowest = (0, "")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for spec, result in zip(specs, pool.map(lambda spec: runner.run(True, SIMGPU_FAULTS=spec), specs)):
            slowest = max(slowest, (result[3], spec))
            if found := wrong(result, digest):
                failed += 1
                print(f"SIMGPU_FAULTS={spec}: {found}\n  {result[2].strip()[-600:]}", flush=True)
            elif result[0] == 0:
                right += 1
    print(f"{options.case}: {len(specs)} failures; {right} times the right bytes, {len(specs) - right - failed} times the driver's error, "
          f"{failed} times wrong; the slowest {slowest[0]:.1f} s ({slowest[1]})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
