#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""An installation is libswap.so and swapctl, and the bare name works where the loader looks.

usage: install_test.py BUILD_FOLDER LIBSWAP_SO SWAPCTL (both built)
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def run(command, **environment):
    return subprocess.run(command, env={"PATH": os.environ["PATH"], "LC_ALL": "C"} | environment, capture_output=True,
                          text=True)


def main(build, *_built):
    with tempfile.TemporaryDirectory() as folder:
        done = run(["meson", "install", "-C", build, "--no-rebuild", "--tags", "swap", "--destdir", folder])
        check(done.returncode == 0, done.stdout + done.stderr)
        files = sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file())
        check([path.name for path in files] == ["swapctl", "libswap.so"], files)
        library = files[1].parent
        check(run([files[0], "--version"]).returncode == 0, "the installed swapctl does not start")
        # A program that the loader has found libswap.so for has it in its memory map.
        found = run(["cat", "/proc/self/maps"], LD_PRELOAD=preloading.ld_preload("libswap.so"), LD_LIBRARY_PATH=str(library),
                    ASAN_OPTIONS="detect_leaks=0")
        check(str(library.resolve() / "libswap.so") in found.stdout and not found.stderr, found.stdout + found.stderr)
        # The line that the README's help begins with.
        missing = run(["true"], LD_PRELOAD=f"{folder}/none/libswap.so")
        check("cannot be preloaded" in missing.stderr, missing.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
