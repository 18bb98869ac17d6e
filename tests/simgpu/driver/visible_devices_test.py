#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""CUDA_VISIBLE_DEVICES, seen through the driver API, each setting in a process of its own.

    visible_devices_test.py LIBCUDA"""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import preloading  # noqa: E402

NO_DEVICE = 100

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
status = cuda.cuInit(0)
if status:
    sys.exit(f"cuInit {status}")
count = ctypes.c_int()
assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for ordinal in range(count.value):
    uuid, bus = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
    assert cuda.cuDeviceGetUuid_v2(uuid, ordinal) == 0
    assert cuda.cuDeviceGetPCIBusId(bus, 32, ordinal) == 0
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
    at = ctypes.c_int(-1)
    assert cuda.cuPointerGetAttribute(ctypes.byref(at), 9, memory) == 0 and at.value == ordinal
    print(bytes(uuid).hex(), bus.value.decode())
"""


def devices(visible, count=3):
    """[(UUID, place on the bus)] of the devices seen, or what cuInit says."""
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    environment |= {"SIMGPU_DEVICES": str(count), "SIMGPU_MEMORY": "64MiB",
                    "LD_PRELOAD": preloading.ld_preload()}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run([sys.executable, "-c", PROGRAM, LIBRARY], env=environment, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    return [tuple(line.split()) for line in done.stdout.splitlines()]


def name(device, characters=36):
    digits = device[0]
    text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return "GPU-" + text[:characters]


class VisibleDevices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = devices(None)

    def test_without_it_all_are_seen_and_differ(self):
        self.assertEqual(len(self.all), 3)
        self.assertEqual(len(set(uuid for uuid, _ in self.all)), 3)
        self.assertEqual(len(set(bus for _, bus in self.all)), 3)

    def test_numbers_choose_and_order(self):
        self.assertEqual(devices("1"), [self.all[1]])
        self.assertEqual(devices("2,0"), [self.all[2], self.all[0]])
        self.assertEqual(devices(" 1 , 2 "), self.all[1:])

    def test_uuids_choose(self):
        self.assertEqual(devices(name(self.all[2])), [self.all[2]])
        self.assertEqual(devices(f"0,{name(self.all[1])}"), self.all[:2])

    def test_a_uuid_that_names_several_names_none(self):
        self.assertEqual(devices(f"0,{name(self.all[1], 8)}"), [self.all[0]])
        self.assertEqual(devices(name(self.all[0], 8), count=1), [self.all[0]])

    def test_what_comes_behind_a_wrong_entry_is_not_seen(self):
        self.assertEqual(devices("1,7,0"), [self.all[1]])
        self.assertEqual(devices("0,-1,1"), [self.all[0]])
        self.assertEqual(devices("2,x"), [self.all[2]])

    def test_nothing_is_seen_where_nothing_is_named_or_one_twice(self):
        for visible in ("", "-1", "none", "1,1", "0,1,0"):
            self.assertEqual(devices(visible), f"cuInit {NO_DEVICE}", visible)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    unittest.main(verbosity=2)
