# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""What scripts and tests put before the programs that they start."""
import os

# Names a sanitizer's runtime, which must be the first library of all; scripts/test --sanitize sets it.
FIRST = "LIBSWAP_TEST_PRELOAD_FIRST"
# Options of scripts/simgpu for who judges simulated times: they hold the processor time of the program's threads, and that holds
# what others took the processor away for.
FAST_HOST = ("--host-speed", "100")
STAND_INS = ("libcuda.so.1", "libcudart.so.13")


def ld_preload(*libraries):
    """LD_PRELOAD for these libraries, in their order; empty names are left out."""
    return ":".join(str(name) for name in (os.environ.get(FIRST), *libraries) if name)


def environment_without(*prefixes):
    """This process's environment without the settings that begin so; what FIRST says is kept, for scripts/simgpu."""
    return {name: value for name, value in os.environ.items() if name == FIRST or not name.startswith(prefixes)}


def on_stand_ins(folder, libswap=None):
    """Settings by which a program finds simgpu's driver and runtime in a folder, behind libswap where that is given."""
    return {"LD_PRELOAD": ld_preload(libswap, *(f"{folder}/{name}" for name in STAND_INS)), "LD_LIBRARY_PATH": str(folder)}
