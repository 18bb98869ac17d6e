#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Random programs end with the same bytes and the same errors with libswap as without.

usage: random_programs_test.py --program BIN --libswap SO [--simgpu DIR] [--first SEED] [--count N | --total N] [--kept]

Programs run many in one process, with a budget that forces swapping and, in some cases, delays that force
bad timing. --count: so many of each case, as it is. --total: so many of all cases together, with budgets of
20 to 90 % and further delays drawn for each process. --kept: those that have failed before. A program that
differs is shrunk, and kept in tests/preload/random/kept/, from where it is run ever after.
"""
import argparse
import concurrent.futures
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "random"), str(HERE.parents[1] / "scripts")]
import preloading  # noqa: E402
from shrink import shrink  # noqa: E402

KEPT = HERE / "random" / "kept"
LIVE_MIB = 40  # what a program has at most, unless its case says otherwise
PROCESS = 40  # programs of one process, where many are run

# name: budget, what else is set, options of the program (and of the run it is compared with)
CASES = {
    "at_90_percent": ("36MiB", {}, []),
    "at_50_percent": ("20MiB", {}, []),
    "at_30_percent": ("12MiB", {}, []),
    "at_20_percent": ("8MiB", {}, []),
    "with_slow_fetches": ("20MiB", {"SIMGPU_DELAYS": "h2d:every3=2ms"}, []),
    "with_slow_evictions": ("20MiB", {"SIMGPU_DELAYS": "d2h:every2=3ms"}, []),
    "with_slow_kernels": ("20MiB", {"SIMGPU_DELAYS": "kernel:every5=4ms"}, []),
    "with_everything_verified": ("20MiB", {"LIBSWAP_VERIFY": "1"}, []),
    # There an operation that needs more than the budget is out of memory: all buffers are less.
    "without_host_numa": ("36MiB", {"SIMGPU_HOST_NUMA": "0"}, ["--live", "32"]),
    "with_three_threads": ("20MiB", {"SIMGPU_DELAYS": "h2d:every7=1ms"}, ["--threads", "3"]),
    "on_two_devices": ("14MiB", {}, ["--devices", "2"]),
    "on_two_devices_with_slow_copies": ("10MiB", {"SIMGPU_DELAYS": "h2d:every3=2ms,d2h:every4=2ms"}, ["--devices", "2", "--threads", "2"]),
    "by_hand_over": ("14MiB", {"LIBSWAP_MOVE": "hand-over"}, []),
    "by_the_careful_way": ("14MiB", {"LIBSWAP_MOVE": "careful"}, []),
    "with_a_cache": ("12MiB", {}, ["--cached"]),
    "with_a_cache_that_tells_nothing": ("16MiB", {}, ["--cached", "--untold"]),
    "with_a_cache_and_threads": ("16MiB", {"SIMGPU_DELAYS": "kernel:every5=2ms,h2d:every7=1ms"}, ["--cached", "--threads", "3"]),
}
FIXED_BUDGET = {"without_host_numa"}


class Run:
    """Programs with and without libswap: `words` say which, to the program."""

    def __init__(self, options):
        self.options = options

    def once(self, memory, settings, words, devices):
        """Lines of the programs, everything said, and the exit status of one process."""
        libswap = self.options.libswap if "LIBSWAP_BUDGET" in settings else None
        if self.options.simgpu:
            environment = preloading.environment_without("LIBSWAP_", "SIMGPU_") | preloading.on_stand_ins(self.options.simgpu, libswap)
            environment |= {"SIMGPU_MEMORY": memory, "SIMGPU_DEVICES": devices}
        else:
            environment = preloading.environment_without("LIBSWAP_")
            environment["LD_PRELOAD"] = preloading.ld_preload(libswap, environment.get("LD_PRELOAD"))
        environment |= settings
        try:
            done = subprocess.run([self.options.program, *words], env=environment, capture_output=True, text=True, errors="replace", timeout=self.options.timeout)
        except subprocess.TimeoutExpired as expired:
            return (expired.stdout or b"").decode().splitlines(), "hangs", -1
        return done.stdout.splitlines(), done.stderr, done.returncode

    def differs(self, budget, settings, words, must_swap=True):
        """None, or what is different: (line without, line with, what was said)."""
        devices = "2" if "--devices" in words or not must_swap else "1"
        expected, said, code = self.once("512MiB", {}, words, devices)
        if code != 0:
            return f"exit {code}", "(not run)", said
        settings = {"LIBSWAP_BUDGET": budget, "LIBSWAP_MIN_SWAP": "64K", "LIBSWAP_VERBOSE": "1"} | settings
        lines, said, code = self.once("64MiB", settings, words, devices)
        for i, line in enumerate(expected):
            if i >= len(lines) or lines[i] != line:
                return line, lines[i] if i < len(lines) else f"(nothing, exit {code})", said
        if code != 0:
            return "exit 0", f"exit {code}", said
        if must_swap and (" in 0.0 MiB" in said or "in " not in said):
            return "swapping", "no swapping", said
        return None

    def text(self, words):
        """The programs themselves."""
        return subprocess.run([self.options.program, "--print", *words], env={}, capture_output=True, text=True, check=True).stdout.splitlines()

    def text_differs(self, budget, settings, lines, tries=1):
        with tempfile.NamedTemporaryFile("w", suffix=".program") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            for _ in range(tries):
                found = self.differs(budget, settings, [file.name], must_swap=False)
                if found and found[1] != "(not run)":
                    return found
        return None


def keep(run, name, budget, settings, words, first, failed):
    """Shrinks the program number `failed`, or all up to it where it takes them, and keeps the result."""
    shape = words[words.index("--count") + 2 :]

    def text(begin, count):
        return run.text(["--first", str(begin), "--count", str(count), *shape])

    for lines in (text(failed, 1), text(first, failed - first + 1)):
        failures = sum(run.text_differs(budget, settings, lines) is not None for _ in range(5))
        if failures:
            break
    else:
        return "it does not fail again"
    tries = 1 if failures == 5 else 6
    lines = shrink(lines, lambda tried: run.text_differs(budget, settings, tried, tries) is not None, run.options.shrink_seconds)
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{name}-{failed}.program"
    extra = " ".join(f"{key}={value}" for key, value in settings.items())
    file.write_text(f"# budget {budget} {extra}\n" + "\n".join(lines) + "\n")
    return f"{len(lines)} steps, kept as {file}"


def run_case(run, name, budget, settings, shape, first, count):
    """What to say of these programs, and whether they end the same."""
    words = ["--first", str(first), "--count", str(count), *shape]
    found = run.differs(budget, settings, words)
    title = f"{name}: {count} programs from {first} at {budget}"
    if not found:
        return f"{title} end the same", True
    said = f"{title} differ ({settings})\n  without libswap: {found[0]}\n  with:            {found[1]}\n  said: {found[2][-1500:]}"
    if found[0].startswith("program") and run.options.shrink_seconds > 0:
        failed = int(found[0].split()[1])
        said += f"\n  smallest: {keep(run, name, budget, settings, words, first, failed)}"
    return said, False


def drawn(name, first):
    """The case with a budget and delays of this process's own."""
    source = random.Random(first)
    budget, settings, shape = CASES[name]
    if name not in FIXED_BUDGET:
        budget = f"{max(LIVE_MIB * source.randint(20, 90) // 100 // (2 if '--devices' in shape else 1), 8)}MiB"
    delays = [f"{what}:every{source.choice([2, 3, 5, 7, 11])}={source.choice([20, 200, 1000, 3000])}us" for what in source.sample(["kernel", "h2d", "d2h", "d2d", "memset", "host"], 3)]
    if source.randrange(3):
        settings = settings | {"SIMGPU_DELAYS": ",".join([settings.get("SIMGPU_DELAYS", ""), *delays]).strip(",")}
    return budget, settings, shape


def processes(options):
    """Name, budget, settings, shape, first seed and count of each process to run."""
    first = options.first
    if not options.total:
        for name, case in CASES.items():
            if not options.case or name in options.case:
                yield name, *case, first, options.count
        return
    names = [name for name in CASES if not options.case or name in options.case]
    left = options.total
    while left > 0:
        name = names[(first // PROCESS) % len(names)]
        count = min(PROCESS, left)
        yield name, *drawn(name, first), first, count
        first += count
        left -= count


def run_kept(run):
    """The programs that have failed before, each with the settings it failed with."""
    failed = 0
    files = sorted(KEPT.glob("*.program"))
    for file in files:
        _, _, budget, *words = file.read_text().splitlines()[0].split()
        settings = dict(word.split("=", 1) for word in words)
        found = run.text_differs(budget, settings, file.read_text().splitlines(), tries=3)
        print(f"{file.name}: {'differs: ' + str(found) if found else 'ends the same'}", flush=True)
        failed += found is not None
    print(f"{len(files)} kept programs, {failed} differ")
    return failed


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--simgpu", help="folder of the stand-ins; without it: the driver that programs find here")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--total", type=int, help="programs of all cases together")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--timeout", type=int, default=400, help="seconds of one process")
    parser.add_argument("--shrink-seconds", type=float, default=300, help="0: a failing program is not shrunk")
    options = parser.parse_args()
    run = Run(options)
    if options.kept:
        return 1 if run_kept(run) else 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_case, run, *process) for process in processes(options)]):
            said, same = done.result()
            print(said, flush=True)
            failed += not same
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
