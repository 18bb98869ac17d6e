#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""A program whose device code is broken ends with libswap as it does without: same exit, same output, no line of ours.

usage: broken_programs_test.py --program BIN --libswap SO --simgpu DIR

BIN carries its PTX as it is, not compressed (nvcc --compress-mode=none); copies of it are broken in several ways.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

FAT_BINARY = bytes.fromhex("50ed55ba")  # the container's magic number, as it lies in the file
PTX = b".version "


def cut(data, begin, count):
    return data[:begin] + bytes(count) + data[begin + count :]


def broken(data):
    """(what is wrong, the program)"""
    text = data.find(PTX, data.find(FAT_BINARY))
    container = data.rfind(FAT_BINARY, 0, text)
    end = data.find(b"\0", text)
    assert 0 < container < text < end, "no PTX in plain text"
    middle = (text + end) // 2
    yield "cut off in the middle of its PTX", cut(data, middle, end - middle)
    yield "cut off behind its header", cut(data, container + 16, end - container - 16)
    yield "a container of no known kind", cut(data, container, 4)
    yield "an image longer than the container", data[: container + 8] + (1 << 40).to_bytes(8, "little") + data[container + 16 :]
    yield "an instruction that PTX does not have", data[:text] + data[text:end].replace(b"ld.param", b"l!.param") + data[end:]
    yield "a kernel that is not there", data[:text] + data[text:end].replace(b".entry _Z", b".entry _Y") + data[end:]


def run(program, options, settings, with_libswap):
    environment = preloading.environment_without("LIBSWAP_", "SIMGPU_")
    environment |= preloading.on_stand_ins(options.simgpu, options.libswap if with_libswap else None) | {"SIMGPU_MEMORY": "96MiB"}
    done = subprocess.run([program, "2"], env=environment | settings, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "libswap", "simgpu"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    whole = run(options.program, options, {}, False)
    if whole[0] != 0:
        print(f"the whole program exits {whole[0]}\n{whole[2]}")
        return 1
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, data in broken(pathlib.Path(options.program).read_bytes()):
            program = pathlib.Path(folder) / "program"
            program.write_bytes(data)
            program.chmod(0o755)
            without = run(program, options, {}, False)
            if without == whole:
                failed += 1
                print(f"{what}: not broken at all")
            for settings in ({}, {"LIBSWAP_BUDGET": "24MiB"}):
                count += 1
                if (with_libswap := run(program, options, settings, True)) != without:
                    failed += 1
                    print(f"{what}, {settings}: without {without}\nwith {with_libswap}")
    print(f"{count} runs of broken programs, {failed} not as without libswap")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
