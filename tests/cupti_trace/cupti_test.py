#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""The engine times operations by CUPTI where it may, by events where it may not; plans with what it measured, and tells how far
its models are off.

    cupti_test.py LIBSWAP SIMGPU BUILD USES_CUPTI
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

LIBSWAP, SIMGPU, BUILD, USES_CUPTI = sys.argv[1:5]
SOURCE = pathlib.Path(SIMGPU).resolve().parent.parent
SWAPCTL = os.path.join(BUILD, "tools/swapctl")
TRAINER = os.path.join(BUILD, "examples/train_cnn/train_cnn")


class Run:
    """A training, what it and libswap said, libswap's summary, and the times of operations in its trace."""

    def __init__(self, settings, preload=(), cache="/nonexistent", machine="pcie4-a100", iterations=24, data=False, libswap=True,
                 program=("--batch", "60", "--channels", "64")):
        with tempfile.TemporaryDirectory() as folder:
            summary, trace = pathlib.Path(folder, "summary.json"), pathlib.Path(folder, "trace")
            environment = preloading.environment_without("LIBSWAP_")
            environment["XDG_CACHE_HOME"] = cache
            if libswap:
                environment |= {"LD_PRELOAD": preloading.ld_preload(LIBSWAP, *preload), "LIBSWAP_BUDGET": "60MiB", "LIBSWAP_SUMMARY": str(summary),
                                "LIBSWAP_TRACE": str(trace), "LIBSWAP_VERBOSE": "2"}
            command = [SIMGPU, "--build", BUILD, *preloading.FAST_HOST, "--memory", "1GiB", "--machine", machine]
            command += [] if data else ["--no-data"]
            program = [TRAINER, "--iterations", str(iterations)] + (list(program) if data else [])
            run = subprocess.run([*command, "--", *program], env=environment | settings, capture_output=True, text=True, timeout=300)
            if run.returncode != 0:
                raise AssertionError(run.stderr)
            self.said = run.stderr
            self.digest = next(line for line in run.stdout.splitlines() if line.startswith("digest"))
            self.median_us = 1000 * next(float(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("iteration")
                                         and "median" in line)
            self.peak_bytes = next(int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("peak"))
            if summary.exists():
                self.summary = json.loads(summary.read_text())["devices"][0]
            if trace.exists():
                self.read(trace)

    def read(self, trace):
        """Events tell how long an operation took, CUPTI when it ran."""
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        times = [event for event in events if event.get("e") == "time"]
        self.times = [event["op"] for event in times]
        self.by_cupti = sum(event["start"] != 0 for event in times)
        self.by_events = len(times) - self.by_cupti
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "picture.json")
            subprocess.run([SWAPCTL, "trace", trace, "-o", picture], check=True, capture_output=True)
            self.drawn = [event for event in json.loads(picture.read_text())["traceEvents"] if event["ph"] == "X"]
        self.planned = [(event["predicted_us"], event["compute_us"]) for event in events if event.get("e") == "plan"]


class Times(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.by_cupti = Run({"LIBSWAP_CUPTI": "on"})
        cls.by_events = Run({"LIBSWAP_CUPTI": "off"})

    def test_come_from_cupti_where_it_may_be_used(self):
        self.assertGreater(self.by_cupti.summary["timed_by_cupti"], 1000, self.by_cupti.said)
        self.assertGreater(self.by_cupti.by_cupti, 1000)
        self.assertEqual(self.by_cupti.said.count("operations are timed by CUPTI"), 1)

    def test_come_from_events_where_it_may_not(self):
        self.assertEqual(self.by_events.summary["timed_by_cupti"], 0)
        self.assertEqual(self.by_events.by_cupti, 0)
        self.assertGreater(self.by_events.by_events, 1000)
        self.assertNotIn("CUPTI is", self.by_events.said)
        self.assertNotIn("timed by", self.by_events.said)

    def test_are_what_the_plan_is_made_of(self):
        """Both ways, and what an iteration really takes where nothing moves, agree."""
        fits = Run({}, libswap=False)
        for run in (self.by_cupti, self.by_events):
            self.assertGreater(run.summary["plans"], 0, run.said)
            self.assertTrue(run.planned)
            self.assertLess(abs(run.planned[-1][1] / fits.median_us - 1), 0.1, f"{run.planned} for {fits.median_us}")

    def test_forecast_the_iterations(self):
        """At 60 % of the peak, where the device waits for little but itself. With data the host is far ahead of the device; no
        operation of an iteration is without a time."""
        run = Run({"LIBSWAP_CUPTI": "on", "LIBSWAP_BUDGET": "40MiB"}, data=True, iterations=14, program=["--batch", "96", "--channels", "128"])
        self.assertLess(40 * 2**20 / run.peak_bytes, 0.65)
        operations = int(re.search(r"iteration of (\d+) operations, .*: planned", run.said).group(1))
        self.assertGreater(run.summary["timed_by_cupti"], 2 * operations, run.said)
        self.assertEqual(set(range(2 * operations)) - set(run.times), set())
        last = [time for time in run.summary["last_iterations"] if time["predicted_us"] > 0]
        self.assertGreater(len(last), 6, run.said)
        off = statistics.median(abs(time["us"] / time["predicted_us"] - 1) for time in last)
        self.assertLess(off, 0.05, last)

    def test_end_cupti_with_the_learning(self):
        self.assertIn("CUPTI is out of the process again", self.by_cupti.said)
        # And what is timed after that, is timed by events.
        self.assertGreater(self.by_cupti.by_events, 0)

    def test_are_drawn_beside_what_was_moved_meanwhile(self):
        """Simulated time is not the host's, but of the same length within minutes; the clocks are years apart."""
        for run in (self.by_cupti, self.by_events):
            drawn = {event["name"] for event in run.drawn}
            self.assertLessEqual({"evict", "fetch"}, drawn)
            self.assertGreater(len(drawn), 5)  # operations besides
            self.assertGreaterEqual(min(event["ts"] for event in run.drawn), 0)
            self.assertLess(max(event["ts"] for event in run.drawn), 600e6)

    def test_change_no_result(self):
        unlimited = Run({}, libswap=False, data=True, iterations=6)
        for how in ("on", "off"):
            swapped = Run({"LIBSWAP_CUPTI": how, "LIBSWAP_BUDGET": "12MiB", "LIBSWAP_MIN_SWAP": "64K"}, data=True, iterations=6)
            self.assertEqual(swapped.digest, unlimited.digest)
            self.assertGreater(swapped.summary["bytes_out"], 0)
            self.assertEqual(swapped.summary["timed_by_cupti"] > 0, how == "on")
            self.assertGreater(swapped.summary["plans"], 0)

    def test_are_compared_with_the_models(self):
        """Events around an operation also hold what the host took to issue it: a busy host shows in the means."""
        for run in (self.by_cupti, self.by_events):
            for kind in ("other kernels", "matrix products"):
                self.assertGreater(run.summary["operation_errors"][kind]["count"], 20)
                self.assertLess(run.summary["operation_errors"][kind]["mean_percent"], 10, run.summary["operation_errors"])
            for direction in ("out", "in"):
                self.assertGreater(run.summary["copy_errors"][direction]["count"], 16)
                self.assertLess(run.summary["copy_errors"][direction]["mean_percent"], 5, run.summary["copy_errors"])
            self.assertIn("link (built in) against copies: out", run.said)
            self.assertIn("times of operations, earlier against later ones: matrix products", run.said)

    # 87, 88, 89: whoever else wants CUPTI has it.
    def test_come_from_events_beside_a_profiler(self):
        run = Run({"CUDA_INJECTION64_PATH": "/nonexistent"})
        self.assertEqual(run.summary["timed_by_cupti"], 0)
        self.assertEqual(run.said.count("timed by events: CUDA_INJECTION64_PATH is set"), 1)
        self.assertGreater(run.by_events, 1000)

    def test_come_from_events_where_the_program_uses_cupti(self):
        run = Run({}, preload=[USES_CUPTI])
        self.assertEqual(run.summary["timed_by_cupti"], 0)
        self.assertEqual(run.said.count("uses CUPTI"), 1)
        self.assertGreater(run.by_events, 1000)

    def test_are_not_taken_while_everything_fits(self):
        run = Run({"LIBSWAP_BUDGET": "1GiB", "LIBSWAP_TRACE": "", "LIBSWAP_CUPTI": "on"})
        self.assertNotIn("timed by", run.said)
        self.assertEqual(run.summary["timed_by_cupti"], 0)


class Link(unittest.TestCase):
    """The engine plans for the machine that the benchmarks measured, or for one built in; copies tell it otherwise."""

    def machine(self, folder, factor):
        """One whose link is slower than the one built in."""
        profile = json.loads((SOURCE / "simgpu/machines/pcie4-a100.json").read_text())
        for key in ("h2d_gbps", "d2h_gbps", "h2d_duplex_gbps", "d2h_duplex_gbps"):
            profile[key] /= factor
        path = pathlib.Path(folder, "slow.json")
        path.write_text(json.dumps(profile))
        return str(path)

    def test_that_was_measured_is_what_plans_are_made_for(self):
        with tempfile.TemporaryDirectory() as cache:
            machine = self.machine(cache, 2)
            environment = dict(os.environ, XDG_CACHE_HOME=cache)
            subprocess.run([SIMGPU, "--build", BUILD, *preloading.FAST_HOST, "--memory", "640MiB", "--machine", machine, "--",
                            os.path.join(BUILD, "tools/swapctl"), "bench", "--quick"],
                           env=environment, check=True, capture_output=True, timeout=300)
            run = Run({}, cache=cache, machine=machine)
            self.assertTrue(run.summary["machine"].startswith(cache + "/libswap/GPU-"), run.summary["machine"])
            self.assertIn(f"link ({run.summary['machine']}) against copies", run.said)
            for direction in ("out", "in"):
                self.assertLess(run.summary["copy_errors"][direction]["mean_percent"], 5, run.summary["copy_errors"])
            self.assertNotIn("times what the link's model says", run.said)

    def test_that_is_slower_than_known_is_planned_for_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            known = Run({})
            slower = Run({}, machine=self.machine(folder, 1.25), iterations=32)
        self.assertNotIn("times what the link's model says", known.said)
        told = re.search(r"copies to the host take 1\.2[0-9]? .*times what the link's model says, to the device 1\.2", slower.said)
        self.assertTrue(told, slower.said)
        # On a busy machine already the first plan may be made of it.
        plans = [found.start() for found in re.finditer(r"iteration of \d+ operations, .*: planned ", slower.said)]
        self.assertGreater(plans[-1], told.start(), slower.said)
        # The plan says so, and the iterations keep to it.
        self.assertGreater(slower.planned[-1][0], 1.1 * known.planned[-1][0])
        last = [time for time in slower.summary["last_iterations"] if time["predicted_us"] > 0][-5:]
        self.assertTrue(last)
        # A busy host delays single ones.
        self.assertLess(min(abs(time["us"] / time["predicted_us"] - 1) for time in last), 0.15)
        for direction in ("out", "in"):
            self.assertGreater(slower.summary["copy_errors"][direction]["mean_percent"], 12)
            self.assertLess(slower.summary["copy_errors_of_plans"][direction]["mean_percent"],
                            slower.summary["copy_errors"][direction]["mean_percent"])

    def test_that_becomes_slow_is_noticed(self):
        """From the 1000th on, each copy out takes 40 us longer: a half of what one of 2 MiB takes."""
        run = Run({"SIMGPU_DELAYS": "d2h:1000+=40us"}, iterations=64)
        self.assertIn("times what the link's model says, to the device 1.0", run.said)
        self.assertGreater(run.summary["copy_errors"]["out"]["ratio"], 1.2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
