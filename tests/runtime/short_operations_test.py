#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""short_operations_test PROGRAM LIBSWAP SIMGPU BUILD: operations of 3 us on 1.7 times the memory there is end with the same
bytes, and blocks come into memory that others are still copied from, so that the host does not wait for the copies."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

program, libswap, simgpu, build = sys.argv[1:]
BUFFERS, BUFFER_BYTES = 48, 2 << 20


def run(settings):
    environment = preloading.environment_without("LIBSWAP_")
    done = subprocess.run([simgpu, "--build", build, "--memory", "256MiB", "--", program, str(BUFFERS), "24", "8"],
                          env=environment | settings, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return re.search(r"digest (\w+)", done.stdout)[1], float(re.search(r"round ([\d.]+) ms", done.stdout)[1])


with tempfile.TemporaryDirectory() as scratch:
    summary = pathlib.Path(scratch) / "summary.json"
    expected, unlimited_ms = run({})
    digest, round_ms = run({"LD_PRELOAD": preloading.ld_preload(libswap), "LIBSWAP_SUMMARY": str(summary),
                            "LIBSWAP_BUDGET": str(BUFFERS * BUFFER_BYTES * 6 // 10)})
    device = json.loads(summary.read_text())["devices"][0]
print(f"a round takes {unlimited_ms} ms, at 60 % {round_ms} ms; {device['fetches']} fetches, {device['hand_overs']} by hand-over")
problems = []
if digest != expected:
    problems.append(f"digest {digest}, expected {expected}")
if device["hand_overs"] < device["fetches"] // 2:
    problems.append("few of the fetches came into memory that was handed over")
print("\n".join(problems))
sys.exit(1 if problems else 0)
