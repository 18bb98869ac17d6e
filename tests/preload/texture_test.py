#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""A program that reads through texture objects computes the same at budgets that do not hold it, and what its textures
are made of stays on the device, counted.

usage: texture_test.py --program BIN --libswap SO --simgpu DIR
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

TEXTURES = 8 << 20  # two buffers of 4 MiB; ten others pass by
# A program that reads an evicted texel faults where host memory cannot be mapped in its place.
CASES = {
    "fits": {"LIBSWAP_BUDGET": "64MiB"},
    "24 MiB": {"LIBSWAP_BUDGET": "24MiB"},
    "20 MiB, verified": {"LIBSWAP_BUDGET": "20MiB", "LIBSWAP_VERIFY": "1"},
    "24 MiB, without mapped host memory": {"LIBSWAP_BUDGET": "24MiB", "SIMGPU_HOST_NUMA": "0"},
}


def run(options, settings, libswap=None):
    environment = preloading.environment_without("LIBSWAP_", "SIMGPU_")
    environment |= preloading.on_stand_ins(options.simgpu, libswap) | {"SIMGPU_MEMORY": "96MiB"}
    return subprocess.run([options.program], env=environment | settings, capture_output=True, text=True, timeout=120)


def wrong(done, expected, device, name):
    """None, or what is not as it should be."""
    if (done.returncode, done.stdout) != (0, expected):
        return f"exit {done.returncode} with {done.stdout!r}, not {expected!r}"
    if "from now on" in done.stderr:
        return "libswap stopped moving memory"
    if device["stays for textures"] != TEXTURES:
        return f"{device['stays for textures']} bytes stay for textures, not {TEXTURES}"
    if "stays on the device: 8.0 MiB for textures" not in done.stderr:
        return "the summary does not say what stays"
    return "nothing was moved" if name != "fits" and device["evictions"] == 0 else None


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap", "simgpu"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    reference = run(options, {})
    if reference.returncode != 0 or not reference.stdout:
        print(f"without libswap: exit {reference.returncode}\n{reference.stderr}")
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder, "summary.json")
        for name, settings in CASES.items():
            settings = settings | {"LIBSWAP_SUMMARY": str(summary), "LIBSWAP_VERBOSE": "1", "LIBSWAP_HOST_LIMIT": "256MiB",
                                   "LIBSWAP_MIN_SWAP": "64K"}
            done = run(options, settings, options.libswap)
            device = json.loads(summary.read_text())["devices"][0] if done.returncode == 0 else None
            if found := wrong(done, reference.stdout, device, name):
                failed += 1
                print(f"{name}: {found}\n{done.stderr}")
    print(f"{len(CASES)} budgets, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
