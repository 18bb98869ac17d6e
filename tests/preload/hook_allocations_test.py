#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""hook_allocations_test PROGRAM LIBSWAP SIMGPU BUILD: once tables have grown a launch takes nothing from the heap, where everything
fits and where a plan is being followed, nor does an allocation with its free that is served from what lies ready."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

program, libswap, simgpu, build = sys.argv[1:]
BUFFERS, BUFFER_BYTES, ITERATIONS, LAST = 24, 2 << 20, 24, 4


def run(scratch, settings):
    """(digest, first launches, first pairs, last launches, last pairs) and the device's summary"""
    summary = pathlib.Path(scratch) / "summary.json"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LIBSWAP_")}
    done = subprocess.run([simgpu, "--build", build, "--memory", "512MiB", "--", program, str(BUFFERS), str(ITERATIONS), str(LAST)],
                          env=environment | settings | {"LIBSWAP_SUMMARY": str(summary)}, capture_output=True, text=True)
    found = re.search(r"digest (\w+) first (\d+) (\d+) last (\d+) (\d+)", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    device = json.loads(summary.read_text())["devices"][0] if summary.exists() else None
    return found.groups(), device


if os.environ.get(preloading.FIRST):
    print("the program counts what it takes from the heap, and so does the sanitizer")
    sys.exit(77)
problems = []
with tempfile.TemporaryDirectory() as scratch:
    (expected, *_), _ = run(scratch, {})
    for name, settings in {"everything fits": {}, "a plan is followed": {"LIBSWAP_BUDGET": str(BUFFERS * BUFFER_BYTES * 7 // 10)}}.items():
        (digest, first_launches, first_pairs, launches, pairs), device = run(scratch, {"LD_PRELOAD": libswap} | settings)
        print(f"{name}: {launches} for launches and {pairs} for pairs in the last {LAST} iterations, {first_launches} and {first_pairs} before; "
              f"{device['iterations']} iterations, {device['plans']} plans, {device['evictions']} evictions")
        if digest != expected:
            problems.append(f"{name}: digest {digest}, expected {expected}")
        if int(first_launches) == 0:
            problems.append(f"{name}: nothing is seen of what libswap allocates")
        # Where memory is full, an allocation is not served from what lies ready.
        if int(launches) or (int(pairs) and not settings):
            problems.append(f"{name}: libswap allocates from the heap")
        if settings and (device["plans"] == 0 or device["evictions"] == 0):
            problems.append(f"{name}: it is not")
print("\n".join(problems))
sys.exit(1 if problems else 0)
