#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Where a program takes more than half of its budget, and no profile of the device is there, libswap has it measured: once, beside
the program, and never otherwise.

    measuring_test.py SHORT_OPERATIONS LIBSWAP SIMGPU BUILD
"""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

PROGRAM, LIBSWAP, SIMGPU, BUILD = sys.argv[1:5]
SWAPCTL = os.path.join(BUILD, "tools", "swapctl")
BUFFERS, BUFFER_MIB, MACHINE = 16, 2, "pcie3-v100"
PEAK_MIB = BUFFERS * BUFFER_MIB
A_MINUTE_S = 70  # and a little more: a measurement ends itself after one
MEASURED = "was measured: planning with"


def came_true(condition):
    end = time.monotonic() + A_MINUTE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Measuring(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"

    def environment(self, settings):
        return preloading.environment_without("LIBSWAP_", "SIMGPU_") | {"XDG_CACHE_HOME": str(self.cache)} | settings

    def start(self, settings, rounds=12, libswap=LIBSWAP):
        environment = self.environment({
            "LD_PRELOAD": preloading.ld_preload(libswap), "LIBSWAP_BUDGET": f"{PEAK_MIB * 6 // 10}MiB", "LIBSWAP_MEASURE": "on",
            "LIBSWAP_VERBOSE": "1", "LIBSWAP_SUMMARY": str(self.folder / "summary")} | settings)
        command = [SIMGPU, "--build", BUILD, "--memory", "640MiB", "--machine", MACHINE, "--", PROGRAM, str(BUFFERS), "24", str(rounds)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process):
        """(digest, what libswap said, the machine that was planned for)"""
        said, complaints = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, complaints)
        machine = json.loads((self.folder / "summary").read_text())["devices"][0]["machine"]
        return re.search(r"digest (\w+)", said).group(1), complaints, machine

    def profiles(self):
        return list(self.cache.glob("libswap/GPU-*.json"))

    def start_until(self, condition, start):
        """A measurement has the lowest priority, so on a busy machine it may get nothing done in its minute."""
        for _ in range(5):
            start()
            if came_true(condition):
                return
            for failed in self.cache.glob("libswap/*.failed"):
                failed.unlink()
        self.fail("it was never measured")

    def start_unmeasured(self):
        self.assertIn("has no profile", self.end(self.start({}))[1])

    def start_two(self):
        for process in [self.start({"LIBSWAP_SUMMARY": str(self.folder / name)}) for name in ("a", "b")]:
            process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0)

    def measured_by_hand(self):
        subprocess.run([SIMGPU, "--build", BUILD, "--memory", "640MiB", "--machine", MACHINE, "--", SWAPCTL, "bench"],
                       env=self.environment({}), check=True, capture_output=True, timeout=300)
        return self.profiles()[0]

    def with_swapctl(self, script):
        """libswap as it is installed, beside another swapctl."""
        (self.folder / "lib").mkdir()
        (self.folder / "bin").mkdir()
        library, program = self.folder / "lib" / "libswap.so", self.folder / "bin" / "swapctl"
        shutil.copy(LIBSWAP, library)
        program.write_text("#!/bin/sh\n" + script + "\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(library)

    def test_is_done_once(self):
        self.start_until(self.profiles, self.start_unmeasured)
        self.assertRegex(self.profiles()[0].name, r"^GPU-[0-9a-f-]{36}-\d+\.json$")
        written = self.profiles()[0].stat().st_mtime_ns
        _, said, machine = self.end(self.start({}))
        self.assertEqual(machine, str(self.profiles()[0]))
        self.assertNotIn("has no profile", said)
        self.assertEqual(self.profiles()[0].stat().st_mtime_ns, written)

    def test_by_two_programs_at_a_time_leaves_one_profile(self):
        self.start_until(self.profiles, self.start_two)
        self.assertEqual(len(self.profiles()), 1)
        json.loads(self.profiles()[0].read_text())

    def test_changes_what_is_planned_for(self):
        kept = self.folder / "kept.json"
        shutil.move(self.measured_by_hand(), kept)
        libswap = self.with_swapctl(f'cp {kept} "$3.part"; mv "$3.part" "$3"')
        plain, _, machine = self.end(self.start({"LIBSWAP_MEASURE": "off"}))
        self.assertEqual(machine, "built in")
        digest, said, machine = self.end(self.start({}, libswap=libswap))
        self.assertIn(MEASURED, said)
        self.assertEqual(machine, str(self.profiles()[0]))
        self.assertEqual(self.end(self.start({}, libswap=libswap))[0], plain)
        self.assertTrue(digest)

    def test_that_fails_costs_one_line(self):
        libswap = self.with_swapctl('echo there is no device > "$3.failed"')
        for _ in range(2):  # the second time without trying
            _, said, machine = self.end(self.start({"LIBSWAP_VERBOSE": "0"}, libswap=libswap))
            lines = [line for line in said.splitlines() if line.startswith("libswap:")]
            self.assertEqual(len(lines), 1, said)
            self.assertIn("could not be measured (there is no device): planning with the figures built in", lines[0])
            self.assertEqual(machine, "built in")

    def test_that_hangs_or_dies_harms_nobody(self):
        digests = set()
        for script in ("sleep 100 & echo $! > $3.pid; wait", "kill -9 $$"):
            libswap = self.with_swapctl(script)
            begun = time.monotonic()
            digest, said, machine = self.end(self.start({}, libswap=libswap))
            digests.add(digest)
            self.assertLess(time.monotonic() - begun, 90)
            self.assertEqual(machine, "built in")
            self.assertNotIn("could not be measured", said)
            for pid in self.cache.glob("libswap/*.pid"):
                subprocess.run(["kill", pid.read_text().strip()], check=False)
            shutil.rmtree(self.folder / "lib")
            shutil.rmtree(self.folder / "bin")
        self.assertEqual(digests, {self.end(self.start({"LIBSWAP_MEASURE": "off"}))[0]})

    def test_heals_a_profile_that_is_none(self):
        path = self.measured_by_hand()
        whole = path.read_text()
        for text in ("", whole[:len(whole) // 2], "[]", '{"format": "libswap-device/1"}', "\0" * 100):
            path.write_text(text)
            self.start_until(lambda: path.read_text().startswith("{") and path.read_text().endswith("}\n"), self.start_unmeasured)

    def test_is_not_done_where_it_is_not_wanted(self):
        for settings in ({"LIBSWAP_MEASURE": "off"}, {"LIBSWAP_MODE": "observe"}, {"LIBSWAP_MODE": "off"}, {"LIBSWAP_IPC": "1"},
                         {"LIBSWAP_MEASURE": "auto"}, {"LIBSWAP_BUDGET": f"{PEAK_MIB * 4}MiB"}, {"XDG_CACHE_HOME": "/proc/nothing"}):
            process = self.start(settings)
            _, complaints = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, complaints)
            self.assertNotIn("has no profile: ", complaints if "XDG_CACHE_HOME" not in settings else "", settings)
        self.assertFalse(self.cache.exists())

    def test_says_nothing_where_everything_fits(self):
        process = self.start({"LIBSWAP_BUDGET": f"{PEAK_MIB * 4}MiB", "LIBSWAP_VERBOSE": "0"})
        _, complaints = process.communicate(timeout=300)
        self.assertEqual(complaints, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
