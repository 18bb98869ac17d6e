#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""scripts/gpu_check on simgpu: every step runs, and what comes out is what simgpu is known to do.

    gpu_check_test.py GPU_CHECK BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

GPU_CHECK, BUILD = (pathlib.Path(word) for word in sys.argv[1:3])
sys.path.insert(0, str(GPU_CHECK.parent))
from gpu_check_parts import pack, report, runner, steps  # noqa: E402


class OnSimgpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # PyTorch has tests of its own, and takes minutes here.
        only = ",".join(name for name in steps.names() if not name.startswith("torch"))
        cls.run_ = subprocess.run([GPU_CHECK, "--simgpu", "--build", BUILD, "--results", cls.folder.name, "--only", only,
                                   "--limit", "800"], capture_output=True, text=True, timeout=850)
        cls.results = pathlib.Path(cls.folder.name)
        text = (cls.results / "gpu_check.json").read_text() if (cls.results / "gpu_check.json").exists() else "{}"
        cls.whole = json.loads(text)
        cls.steps = {step["step"]: step for step in cls.whole.get("steps", [])}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_runs_every_step(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stdout + self.run_.stderr)
        self.assertEqual({name: step["status"] for name, step in self.steps.items()},
                         {name: "done" for name in steps.names() if not name.startswith("torch")}, self.run_.stdout)

    def test_names_the_device(self):
        self.assertIn("simgpu", self.whole["device"]["name"])
        self.assertGreater(self.whole["seconds"], 0)

    def test_answers_as_simgpu_behaves(self):
        facts = {key: step["found"]["facts"] for key, step in self.steps.items() if step["found"] and "facts" in step["found"]}
        self.assertEqual(self.steps["two_addresses"]["found"]["answer"], "yes")
        self.assertTrue(facts["waits"]["cuMemUnmap"].startswith("does not wait"), facts["waits"])
        self.assertTrue(facts["waits"]["cuMemFree"].startswith("waits"), facts["waits"])
        inside = facts["mapping_in_captures"]
        self.assertTrue(inside["cuMemAlloc"].startswith("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), inside)
        self.assertEqual(inside["cuMemMap, RELAXED"], "CUDA_SUCCESS; the capture goes on")
        self.assertIn("half from there", " ".join(facts["host_memory"]))

    def test_gets_every_time_from_cupti(self):
        came, tagged = self.steps["cupti"]["found"]["facts"]["operations whose times came with their tags"].split(" of ")
        self.assertEqual(came, tagged)

    def test_measures_the_same_calls_as_the_benchmarks(self):
        rows = {row["name"]: row["median"] for row in self.steps["chunk_costs"]["found"]["tables"][0]["rows"]}
        self.assertGreater(rows["cuMemCreate, 16 MiB"], rows["cuMemMap, 16 MiB"])

    def test_trains_to_the_same_weights(self):
        found = self.steps["train_cnn"]["found"]
        self.assertEqual(len({row["digest"] for row in found.values()}), 1)
        self.assertGreater(found["40 %"]["libswap"]["bytes_in"], 0)

    def test_writes_a_table_and_plots(self):
        text = (self.results / "gpu_check.md").read_text()
        for name in self.steps:
            self.assertIn(f"| {name} |", text)
        self.assertTrue((self.results / "link.svg").exists())


class Steps(unittest.TestCase):
    def setUp(self):
        self.check = runner.Runner(GPU_CHECK.parent.parent, BUILD, 60, quick=True, python=None)

    def test_end_at_their_limit_with_all_they_started(self):
        begun = time.monotonic()
        late = self.check.step(steps.Step("late", lambda check: check.run(["sh", "-c", "sleep 60 & sleep 60"], 2)))
        self.assertEqual(late["status"], "timed out")
        self.assertLess(time.monotonic() - begun, 10)

    def test_that_fail_say_why_and_stop_nothing(self):
        failed = self.check.step(steps.Step("failing", lambda check: check.must(["sh", "-c", "echo broken >&2; exit 3"], 5)))
        self.assertEqual((failed["status"], "broken" in failed["why"]), ("failed", True))
        wrong = self.check.step(steps.Step("wrong", lambda check: 1 / 0))
        self.assertIn("ZeroDivisionError", wrong["why"])
        self.assertEqual(self.check.step(steps.Step("next", lambda check: {"ok": 1}))["status"], "done")
        whole = report.record({"name": "x", "driver_version": 13000, "memory_bytes": 0}, {"processors": 1, "processor": ""},
                              [failed, wrong], 1, True)
        self.assertIn("| failing | failed |", report.table(whole))

    def test_are_skipped_where_no_time_is_left(self):
        self.check.deadline = time.monotonic()
        self.assertEqual(self.check.step(steps.Step("any", lambda check: {}))["status"], "skipped")

    def test_of_what_is_not_built_are_skipped(self):
        self.check.build = pathlib.Path("/nonexistent")
        self.assertEqual(self.check.step(steps.question("waits"))["status"], "skipped")


class Pack(unittest.TestCase):
    def test_holds_what_the_steps_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(pack.pack(BUILD, pathlib.Path(folder)), 0)
            for name in runner.TARGETS:
                self.assertTrue(os.access(pathlib.Path(folder) / name, os.R_OK), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
