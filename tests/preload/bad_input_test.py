#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Settings and drivers that make no sense get one clear line, and the program runs as without libswap.

usage: bad_input_test.py --program BIN --libswap SO --simgpu DIR
"""
import argparse
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

LARGE, SMALL = "96MiB", "24MiB"  # the program needs 34 MiB
RIGHT, REFUSED = "right", "out of memory"

# device memory, settings, how the program ends, what the one line says
CASES = [
    (LARGE, {"LIBSWAP_BUDGET": "nonsense"}, RIGHT, "LIBSWAP_BUDGET='nonsense' is not understood"),
    (SMALL, {"LIBSWAP_BUDGET": "nonsense"}, RIGHT, "LIBSWAP_BUDGET='nonsense' is not understood"),
    (LARGE, {"LIBSWAP_BUDGET": "0"}, RIGHT, "LIBSWAP_BUDGET='0' is not understood"),
    (LARGE, {"LIBSWAP_BUDGET": "101%"}, RIGHT, "LIBSWAP_BUDGET='101%' is not understood"),
    (LARGE, {"LIBSWAP_BUDGET": "-5"}, RIGHT, "LIBSWAP_BUDGET='-5' is not understood"),
    (SMALL, {"LIBSWAP_BUDGET": "1TiB"}, RIGHT, "LIBSWAP_BUDGET of .* is more than device 0 has"),
    (LARGE, {"LIBSWAP_BUDGET": "100KiB"}, RIGHT, "a budget of .* keeps everything on the host"),
    (LARGE, {"LIBSWAP_HOST_LIMIT": "1MiB"}, RIGHT, "LIBSWAP_HOST_LIMIT"),
    (SMALL, {"LIBSWAP_HOST_LIMIT": "1MiB"}, REFUSED, "LIBSWAP_HOST_LIMIT"),
    (LARGE, {"LIBSWAP_HOST_LIMIT": "much"}, RIGHT, "LIBSWAP_HOST_LIMIT='much' is not understood"),
    (LARGE, {"LIBSWAP_MODE": "fast"}, RIGHT, "LIBSWAP_MODE='fast' is not understood"),
    (LARGE, {"LIBSWAP_MIN_SWAP": "x"}, RIGHT, "LIBSWAP_MIN_SWAP='x' is not understood"),
    (SMALL, {"LIBSWAP_TRACE": "/nowhere/t"}, RIGHT, "cannot write the trace /nowhere/t"),
    (SMALL, {"LIBSWAP_SUMMARY": "/nowhere/s"}, RIGHT, "cannot write the summary to /nowhere/s"),
    (SMALL, {"LIBSWAP_LOG_FILE": "/nowhere/l"}, RIGHT, "cannot open LIBSWAP_LOG_FILE '/nowhere/l'"),
    (LARGE, {"SIMGPU_VMM": "0"}, RIGHT, "device 0 is not swapped: it has no virtual memory management"),
    (SMALL, {"SIMGPU_VMM": "0"}, REFUSED, "device 0 is not swapped: it has no virtual memory management"),
    (SMALL, {"SIMGPU_FAULTS": "cuMemCreate:1+=801"}, REFUSED, "device 0 is not swapped: its memory cannot be mapped"),
    (LARGE, {"SIMGPU_FAULTS": "cuMemMap:1+=801"}, RIGHT, "device 0 is not swapped: its memory cannot be mapped"),
    (SMALL, {"SIMGPU_HOST_NUMA": "0"}, RIGHT, "device 0 cannot map host memory .HOST_NUMA."),
]


def run(options, memory, settings, with_libswap):
    environment = preloading.environment_without("LIBSWAP_", "SIMGPU_")
    environment |= preloading.on_stand_ins(options.simgpu, options.libswap if with_libswap else None) | {"SIMGPU_MEMORY": memory}
    return subprocess.run([options.program, "2"], env=environment | settings, capture_output=True, text=True, timeout=60)


def wrong(done, digest, ends, line):
    """None, or what is not as it should be."""
    lines = done.stderr.splitlines()
    ours = [said for said in lines if said.startswith("libswap: ")]
    if len(ours) != 1 or not re.search(line, ours[0]):
        return f"wanted one line with '{line}'"
    if ends == RIGHT:
        return None if (done.returncode, done.stdout, len(lines)) == (0, digest, 1) else "wanted the right bytes"
    refused = done.returncode == 3 and done.stdout == "" and "cudaErrorMemoryAllocation" in done.stderr
    return None if refused else "wanted out of memory"


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap", "simgpu"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    reference = run(options, LARGE, {}, False)
    small = run(options, SMALL, {}, False)
    if reference.returncode != 0 or small.returncode != 3:
        print(f"without libswap: exits {reference.returncode} and {small.returncode}\n{reference.stderr}{small.stderr}")
        return 1
    failed = 0
    for memory, settings, ends, line in CASES:
        done = run(options, memory, settings, True)
        if found := wrong(done, reference.stdout, ends, line):
            failed += 1
            print(f"{settings} on {memory}: {found}, but exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{len(CASES)} bad inputs, {failed} not answered well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
