#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""two_processes_test PROGRAM LIBSWAP SIMGPU BUILD: two processes on one device, which has not enough memory for both. Each ends
with the bytes that it has alone, where their budgets fit side by side and where each believes that the device is its own."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

MIB = 1 << 20
BUFFERS, BUFFER_MIB, OPERATIONS, ROUNDS = 24, 2, 6, 40
PEAK_MIB = BUFFERS * BUFFER_MIB
DEVICE_MIB = PEAK_MIB * 5 // 4


class TwoProcesses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, name, settings, memory_mib=DEVICE_MIB):
        environment = preloading.environment_without("LIBSWAP_", "SIMGPU_")
        environment |= {"SIMGPU_SHARE": str(self.folder / "share"), "LIBSWAP_SUMMARY": str(self.folder / name)} | settings
        command = [SIMGPU, "--build", BUILD, "--memory", f"{memory_mib}MiB", "--", PROGRAM, str(BUFFERS), str(OPERATIONS), str(ROUNDS)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def digest(self, process):
        said, complaints = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, complaints)
        return re.search(r"digest (\w+)", said).group(1), complaints

    def both(self, settings):
        """[(digest, complaints, summary)] of two that run at the same time."""
        settings = {"LD_PRELOAD": preloading.ld_preload(LIBSWAP), "LIBSWAP_FILL": "0xA5"} | settings
        names = ["first", "second"]
        running = [self.start(name, settings) for name in names]
        ended = [self.digest(process) for process in running]
        return [(*end, json.loads((self.folder / name).read_text())["devices"][0]) for end, name in zip(ended, names)]

    def alone(self):
        return self.digest(self.start("alone", {}))[0]

    def test_without_libswap_one_of_them_is_out_of_memory(self):
        running = [self.start(name, {}) for name in ("first", "second")]
        complaints = [process.communicate(timeout=300)[1] for process in running]
        self.assertNotEqual([process.returncode for process in running], [0, 0])
        self.assertTrue(any("out of memory" in complaint for complaint in complaints), complaints)

    def test_budgets_that_fit_side_by_side_are_kept(self):
        expected = self.alone()
        for digest, complaints, device in self.both({"LIBSWAP_BUDGET": f"{PEAK_MIB // 2}MiB"}):
            self.assertEqual(digest, expected)
            self.assertNotIn("taken by others", complaints)
            self.assertGreater(device["evictions"], 0)

    def test_each_goes_on_with_what_the_other_leaves(self):
        expected = self.alone()
        ended = self.both({"LIBSWAP_BUDGET": f"{DEVICE_MIB - 6}MiB"})
        self.assertEqual([digest for digest, *_ in ended], [expected] * 2)
        self.assertTrue(any("taken by others" in complaints for _, complaints, _ in ended), ended)
        self.assertTrue(any(device["evictions"] for *_, device in ended))


if __name__ == "__main__":
    PROGRAM, LIBSWAP, SIMGPU, BUILD = sys.argv[1:5]
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
