# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""A build for a machine without compilers: programs, stripped, and the CUDA runtime they need."""
import os
import pathlib
import shutil
import subprocess
import sys

from gpu_check_parts.runner import TARGETS

RUNTIME = "libcudart.so.13"


def pack(build, folder):
    """Copies what the steps run; the exit status."""
    missing = [name for name in TARGETS if not (build / name).exists()]
    for name in missing:
        print(f"gpu_check: {name} is not built, left out", file=sys.stderr)
    for name in [name for name in TARGETS if name not in missing]:
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build / name, to)
        subprocess.run(["strip", to], check=False)
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    runtime = pathlib.Path(toolkit) / "lib64" / RUNTIME
    if runtime.exists():
        (folder / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copy(runtime, folder / "lib" / RUNTIME)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB")
    return 1 if "libswap.so" in missing else 0
