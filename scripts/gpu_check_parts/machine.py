# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""The device, its computer, and where its libraries are."""
import glob
import json
import os
import pathlib
import platform
import re
import subprocess
import sys


def on_simgpu():
    """Whether scripts/simgpu started us."""
    return bool(os.environ.get("SIMGPU_LIBRARIES"))


def driver_folder():
    """Where the loader finds the driver, or None. Programs of the build folder name that of the stand-ins as a place
    to look for it, which the loader asks before its own."""
    command = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1'); print(open('/proc/self/maps').read())"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    found = re.search(r"(/\S*)/libcuda\.so\.\S+", said)
    return found.group(1) if found else None


def library_folders(build):
    """Folders for LD_LIBRARY_PATH in front of what it has: the driver's, and those of a runtime and cuBLAS."""
    if on_simgpu():
        return []
    python_folders = glob.glob(f"{sys.prefix}/lib/python3*/site-packages/nvidia/*/lib")
    for folder in sys.path:
        python_folders += glob.glob(f"{folder}/nvidia/*/lib")
    candidates = [build / "lib", *filter(None, [os.environ.get("CUDA_HOME")]), "/usr/local/cuda/lib64", *python_folders]
    wanted = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13")
    folders = [driver_folder()]
    for name in wanted:
        holds = [str(folder) for folder in candidates if (pathlib.Path(folder) / name).exists()]
        folders += [folder for folder in holds[:1] if folder not in folders]
    return list(filter(None, folders))


def describe(check):
    """What the driver and nvidia-smi say of the device; None without one."""
    done = check.run([check.program("microbench/gpu_questions"), "--describe"], 60)
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
        return None
    card = json.loads(done.stdout)
    if not on_simgpu():
        card["nvidia_smi"] = nvidia_smi()
    return card


def nvidia_smi():
    fields = ["driver_version", "pcie.link.gen.current", "pcie.link.width.current", "clocks.sm", "clocks.mem",
              "power.limit", "ecc.mode.current", "mig.mode.current", "persistence_mode"]
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = said.stdout.strip().splitlines()
    return dict(zip(fields, (value.strip() for value in lines[0].split(",")))) if lines else {}


def host():
    """The computer around it."""
    processor = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {"processor": processor, "processors": os.cpu_count(), "memory_bytes": memory, "kernel": platform.release()}


def folder_name(card):
    return re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")
