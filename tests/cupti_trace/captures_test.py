#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""86 of docs/issue-log.md: CUPTI is neither switched on nor off while a stream is captured, wherever in the learning that is.

    captures_test.py PROGRAM WATCHED_CUPTI LIBSWAP SIMGPU_FOLDER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

PROGRAM, WATCHED, LIBSWAP, SIMGPU = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
BUFFERS, ROUNDS = 24, 16
# Rounds between which a capture is open; the last one: none.
CAPTURES = [(0, 8), (1, 10), (2, 10), (3, 12), (4, 12), (6, 14), (99, 99)]


def run(folder, window, libswap=None):
    environment = preloading.environment_without("LIBSWAP_", "SIMGPU_") | preloading.on_stand_ins(folder, libswap)
    environment |= {"REAL_CUPTI": str(SIMGPU / "libcupti.so.13"), "SIMGPU_MEMORY": "128MiB", "LIBSWAP_BUDGET": "30MiB",
                    "LIBSWAP_HOST_LIMIT": "256MiB", "LIBSWAP_CUPTI": "on"}
    command = [PROGRAM, BUFFERS, ROUNDS, *window]
    return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=120)


def wrong(done, expected):
    """None, or what is not as it should be."""
    said = re.search(r"watched: (\d+) switched, (\d+) in captures", done.stderr)
    if done.returncode != 0 or done.stdout != expected or not said:
        return f"exit {done.returncode}, {done.stdout!r} instead of {expected!r}"
    if int(said[2]) != 0:
        return f"{said[2]} of {said[1]} switched while a capture was open"
    return None if int(said[1]) > 4 else f"only {said[1]} switched: CUPTI was not used"


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        # libswap looks for CUPTI beside the runtime.
        for name in preloading.STAND_INS:
            os.symlink(SIMGPU / name, pathlib.Path(folder, name))
        os.symlink(WATCHED, pathlib.Path(folder, "libcupti.so.13"))
        expected = run(folder, CAPTURES[-1]).stdout
        for window in CAPTURES:
            done = run(folder, window, LIBSWAP)
            if found := wrong(done, expected):
                failed += 1
                print(f"capture in rounds {window}: {found}\n{done.stderr}")
    print(f"{len(CAPTURES)} runs, {failed} wrong")
    return 1 if failed or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
