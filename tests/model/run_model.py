#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Searches the residency model with spin: it must hold, and each broken rule must be found.

usage: run_model.py MODEL.pml NAME...   runs the named cases
       run_model.py --list              names them
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOLDS, FAILS = "holds", "fails"
CASES = {
    # The protocol as it is.
    "launches": (HOLDS, ["-DOPS=2"]),
    "one_stream_for_two_threads": (HOLDS, ["-DOPS=2", "-DSHARED_STREAM", "-DSPONTANEOUS=0"]),
    "operands_on_the_host": (HOLDS, ["-DOPS=2", "-DZERO_COPY", "-DSPONTANEOUS=0"]),
    "unexplained_launches": (HOLDS, ["-DOPS=2", "-DUNEXPLAINED", "-DSPONTANEOUS=0"]),
    "treacherous_launches": (HOLDS, ["-DOPS=1", "-DTREACHEROUS"]),
    "hand_over": (HOLDS, ["-DOPS=2", "-DHAND_OVER", "-DSPONTANEOUS=0"]),
    "hand_over_beside_the_careful_way": (HOLDS, ["-DOPS=1", "-DHAND_OVER", "-DBOTH_WAYS"]),
    "refused_copies": (HOLDS, ["-DOPS=2", "-DHAND_OVER", "-DREFUSED", "-DSPONTANEOUS=0"]),
    "copies_in_advance": (HOLDS, ["-DOPS=2", "-DAHEAD=1", "-DSPONTANEOUS=0"]),
    "copies_in_advance_and_plans": (HOLDS, ["-DOPS=1", "-DAHEAD=2", "-DSPONTANEOUS=1"]),
    "nothing_moves_yet": (HOLDS, ["-DOPS=1", "-DSTILL", "-DHANDLES=2", "-DSPONTANEOUS=2"]),
    "nothing_moves_yet_unexplained_launches": (HOLDS, ["-DOPS=1", "-DSTILL", "-DHANDLES=2", "-DSPONTANEOUS=1", "-DUNEXPLAINED"]),
    # One rule less.
    "without_rule_1": (FAILS, ["-DBREAK_1"]),
    "without_rule_2": (FAILS, ["-DBREAK_2"]),
    "without_rule_3": (FAILS, ["-DBREAK_3"]),
    "without_rule_4": (FAILS, ["-DBREAK_4", "-DZERO_COPY"]),
    "without_rule_6": (FAILS, ["-DBREAK_6"]),
    "without_rule_7": (FAILS, ["-DBREAK_7", "-DSPONTANEOUS=2"]),
    "without_rule_8": (FAILS, ["-DBREAK_8", "-DBREAK_GUARD", "-DUNEXPLAINED"]),
    "without_the_guard": (FAILS, ["-DBREAK_GUARD", "-DTREACHEROUS"]),
    "without_rule_9": (FAILS, ["-DBREAK_9", "-DHAND_OVER", "-DSPONTANEOUS=0"]),
    "without_rule_10": (FAILS, ["-DBREAK_10", "-DHAND_OVER", "-DSPONTANEOUS=0"]),
    "without_rule_10_for_copies_in_advance": (FAILS, ["-DBREAK_10", "-DOPS=2", "-DAHEAD=1", "-DSPONTANEOUS=0"]),
    "without_the_users_of_a_copy_in_advance": (FAILS, ["-DBREAK_AHEAD_USERS", "-DOPS=2", "-DAHEAD=1", "-DSPONTANEOUS=0"]),
    "without_the_host_slot_mapped_again": (FAILS, ["-DBREAK_BACK", "-DHAND_OVER", "-DREFUSED", "-DSPONTANEOUS=0"]),
    "without_rule_11": (FAILS, ["-DBREAK_11", "-DHAND_OVER", "-DBOTH_WAYS", "-DSPONTANEOUS=0"]),
    "without_rule_13": (FAILS, ["-DBREAK_13"]),
    "without_the_count_of_unpinned_launches": (FAILS, ["-DOPS=1", "-DBREAK_COUNT", "-DSTILL", "-DHANDLES=2", "-DSPONTANEOUS=2"]),
    "without_the_count_before_the_look": (FAILS, ["-DOPS=1", "-DBREAK_LOOK", "-DSTILL", "-DHANDLES=2", "-DSPONTANEOUS=2"]),
    "without_the_places_of_unpinned_launches": (FAILS, ["-DOPS=1", "-DBREAK_FLOOR", "-DSTILL", "-DHANDLES=2", "-DSPONTANEOUS=2"]),
}


def search(model, flags):
    """The verifier's output for the model under these flags; raises where a tool fails."""
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *words: subprocess.run(words, cwd=folder, capture_output=True, text=True)
        generated = run("spin", "-a", *flags, str(model))
        if not pathlib.Path(folder, "pan.c").exists():
            raise RuntimeError("spin: " + generated.stdout + generated.stderr)
        built = run("cc", "-O2", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=4096", "-w", "-o", "pan", "pan.c")
        if built.returncode != 0:
            raise RuntimeError("cc: " + built.stderr)
        return run("./pan", "-m1000000").stdout


def check(model, name):
    """None where the case came out as it must, else a sentence."""
    expected, flags = CASES[name]
    output = search(model, flags)
    found = re.search(r"errors: (\d+)", output)
    if not found or "max search depth too small" in output or "out of memory" in output:
        return "the search did not finish:\n" + output
    states = re.search(r"(\d+) states, stored", output)
    first = re.search(r"pan:1: (.*)", output)
    print(f"{name}: errors {found[1]}, {states[1] if states else '?'} states" + (f", {first[1]}" if first else ""), flush=True)
    if expected == HOLDS and found[1] != "0":
        return "the protocol does not hold:\n" + output
    if expected == FAILS and found[1] == "0":
        return "the search did not find the broken rule"
    return None


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return 0
    if not shutil.which("spin"):
        print("skipped: spin is not installed (scripts/setup installs it)")
        return 77
    model = pathlib.Path(sys.argv[1]).resolve()
    os.environ.pop("LD_PRELOAD", None)
    failed = 0
    for name in sys.argv[2:] or CASES:
        problem = check(model, name)
        if problem:
            print(f"FAILED {name}: {problem}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
