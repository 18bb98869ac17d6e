#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""PyTorch's CUDA wheel, unchanged, on simgpu and under libswap.

usage: torch_test.py --python BIN --libswap SO --simgpu SCRIPT --build DIR --case NAME
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TRAIN = pathlib.Path(__file__).resolve().parents[2] / "examples" / "train.py"
GPT = ["--model", "gpt", "--layers", "4", "--width", "128", "--batch", "8", "--context", "64", "--vocabulary", "256"]
# What both runs fill memory with that was never written, so that they may be compared bit for bit.
FILL = "0xA5"


class Runner:
    def __init__(self, options):
        self.options = options

    def run(self, words, memory="1GiB", settings=None, on_gpu=True):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("LIBSWAP_", "SIMGPU_", "PYTORCH_")) or k == "LIBSWAP_TEST_PRELOAD_FIRST"}
        command = [self.options.python, *words]
        if on_gpu:
            command = [self.options.simgpu, "--memory", memory, "--build", self.options.build, "--", *command]
        if settings is not None:
            environment |= {"LD_PRELOAD": self.options.libswap, "LIBSWAP_FILL": FILL, "LIBSWAP_HOST_LIMIT": "2GiB"} | settings
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=1500)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def train(self, words, **how):
        said = self.run([str(TRAIN), *words], **how)
        return Training([float(x) for x in re.findall(r"^step \d+ loss (\S+)", said, re.M)],
                        re.search(r"^digest (\w+)", said, re.M).group(1),
                        re.search(r"reserved peak ([\d.]+) MiB", said))

    def swapped(self, words, share, peak, **settings):
        """The training with a budget of a share of the peak, and how many bytes went out and in."""
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder) / "summary.json"
            budget = f"{int(peak * share)}MiB"
            training = self.train(words, settings={"LIBSWAP_BUDGET": budget, "LIBSWAP_SUMMARY": str(summary)} | settings)
            return training, json.loads(summary.read_text())


class Training:
    def __init__(self, losses, digest, peak):
        self.losses, self.digest = losses, digest
        self.peak_mib = float(peak.group(1)) if peak else None


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def imports(runner):
    said = runner.run(["-c", "import torch; print(torch.cuda.is_available(), torch.zeros(3, device='cuda').tolist())"])
    check(said.strip() == "True [0.0, 0.0, 0.0]", said)


def computes(runner):
    said = runner.run(["-c", """
import torch
torch.manual_seed(1)
a, b = torch.randn(37, 53), torch.randn(53, 29)
for kind in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    x, y = a.to(kind), b.to(kind)
    off = ((x.cuda() @ y.cuda()).cpu().double() - x.double() @ y.double()).abs().max().item()
    print(kind, off < {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 0.2, torch.float16: 0.02}[kind])
batched = torch.bmm(a[None].repeat(3, 1, 1).cuda(), b[None].repeat(3, 1, 1).cuda())
print((batched.cpu() - (a @ b)[None]).abs().max().item() < 1e-4)
print((torch.nn.functional.linear(a.cuda(), b.t().contiguous().cuda(), torch.ones(29).cuda()).cpu() - (a @ b + 1)).abs().max().item() < 1e-4)
"""])
    check(said.split().count("True") == 6 and "False" not in said, said)


def gpt_learns(runner):
    words = [*GPT, "--steps", "20"]
    here = runner.train(words)
    cpu = runner.train([*words, "--device", "cpu"], on_gpu=False)
    off = max(abs(a - b) for a, b in zip(here.losses, cpu.losses))
    check(len(here.losses) == 20 and off < 1e-3, f"losses differ by {off}: {here.losses} and {cpu.losses}")
    check(here.losses[-1] < here.losses[0] - 0.5, f"nothing was learnt: {here.losses}")


def gpt_swapped(runner):
    words = [*GPT, "--steps", "5"]
    plain = runner.train(words)
    for share in (0.6, 0.4):
        training, summary = runner.swapped(words, share, plain.peak_mib)
        check(training.losses == plain.losses, f"at {share}: {training.losses} for {plain.losses}")
        check(training.digest == plain.digest, f"at {share}: digest {training.digest} for {plain.digest}")
        out = sum(device["bytes_out"] for device in summary["devices"])
        check(out > 0, f"at {share}: nothing was swapped")


CASES = {case.__name__: case for case in (imports, computes, gpt_learns, gpt_swapped)}


def main():
    parser = argparse.ArgumentParser()
    for name in ("python", "libswap", "simgpu", "build"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--case", required=True, choices=CASES)
    options = parser.parse_args()
    if not pathlib.Path(options.python).exists():
        print(f"{options.python} does not exist: scripts/test --torch installs it")
        sys.exit(77)
    CASES[options.case](Runner(options))


if __name__ == "__main__":
    main()
