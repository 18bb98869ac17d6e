#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""PyTorch's CUDA wheel, unchanged, on simgpu and under libswap.

usage: torch_test.py --python BIN --libswap SO --simgpu SCRIPT --build DIR --case NAME
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import preloading  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parents[1] / "examples" / "train.py"
SCENARIOS = HERE / "scenarios.py"
MODELS = {
    "gpt": ["--model", "gpt", "--layers", "4", "--width", "128", "--batch", "8", "--context", "64", "--vocabulary", "256"],
    # ResNet-18: of a narrower one hardly a tensor is large enough to be moved.
    "resnet": ["--model", "resnet", "--layers", "2", "--width", "64", "--batch", "8", "--image", "64"],
}
NARROW_RESNET = ["--model", "resnet", "--layers", "2", "--width", "16", "--batch", "8", "--image", "48"]
# All of its kernels have true results: embeddings of at most 3,072 indices.
MIDDLING_GPT = ["--model", "gpt", "--layers", "4", "--width", "256", "--batch", "24", "--context", "128", "--vocabulary", "256", "--steps", "4"]
# What LIBSWAP_TORCH stands for. Runs to compare with are given the same: what opaque kernels fill depends on how
# far it is to the end of an allocation.
ALLOCATORS = {
    "split": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:21"},
    "async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "uncached": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "leave": {},
}
# What training scripts do, by flags of examples/train.py.
VARIANTS = {
    "accumulate": ["gpt", "--accumulate", "2"],
    "validate": ["gpt", "--validate-every", "2"],
    "variable": ["gpt", "--variable"],
    "checkpoint": ["gpt", "--checkpoint"],
    "save_on_cpu": ["gpt", "--save-on-cpu", "--attention", "sdpa"],
    "workers": ["gpt", "--workers", "2"],
    "fused": ["gpt", "--implementation", "fused"],
    "loop": ["gpt", "--implementation", "loop"],
    "sgd": ["gpt", "--optimizer", "sgd"],
    "sdpa": ["gpt", "--attention", "sdpa"],
    "bf16": ["gpt", "--amp", "bf16"],
    "fp16": ["gpt", "--amp", "fp16"],
    "fp16_sdpa": ["gpt", "--amp", "fp16", "--attention", "sdpa"],
    "resnet_bf16": ["resnet", "--amp", "bf16"],
    "resnet_checkpoint": ["resnet", "--checkpoint"],
    "benchmark": ["resnet", "--benchmark"],
}
# In which ways a scenario is run with libswap, if not in one.
SETTINGS = {"profiler": [{}, {"LIBSWAP_CUPTI": "on"}]}
# Networks whose kernels all have the results of a GPU: losses are those of the CPU.
TRUE_NETWORKS = ["experts", "recommender", "tagger", "volumes"]
NETWORKS = [*TRUE_NETWORKS, "attending"]
# What both runs fill memory with that was never written, so that they may be compared bit for bit.
FILL = "0xA5"
MOST_SECONDS = 1500


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


class Runner:
    def __init__(self, options):
        self.options = options

    def run(self, words, memory="1GiB", settings=None, **how):
        """What the program wrote to standard output. `settings` None: without libswap."""
        return self.started(words, memory, {} if settings is None else self.swapping(settings), **how).stdout

    def swapping(self, settings):
        """None instead of a value: that is not set."""
        wanted = {"LD_PRELOAD": self.options.libswap, "LIBSWAP_FILL": FILL, "LIBSWAP_HOST_LIMIT": "2GiB"} | settings
        return {name: value for name, value in wanted.items() if value is not None}

    def start(self, words, memory, settings, stderr=subprocess.PIPE):
        environment = preloading.environment_without("LIBSWAP_", "SIMGPU_", "PYTORCH_")
        command = [self.options.simgpu, "--memory", memory, "--build", self.options.build, "--", self.options.python,
                   *map(str, words)]
        return subprocess.Popen(command, env=environment | settings, stdout=subprocess.PIPE, stderr=stderr,
                                text=True, errors="replace")

    def started(self, words, memory, settings, **how):
        """What it wrote; a program that fails fails the test."""
        process = self.start(words, memory, settings, **how)
        out, err = process.communicate(timeout=MOST_SECONDS)
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit status {process.returncode}\n{out}\n{err}")
        return subprocess.CompletedProcess(process.args, 0, out, err)

    def plain(self, words, allocator="split", **settings):
        """Without libswap, the allocator as libswap would set it."""
        return self.started(words, "1GiB", ALLOCATORS[allocator] | settings)

    def swapped(self, words, budget_mib, stderr=subprocess.PIPE, **settings):
        """With libswap and a budget; and its summary."""
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder) / "summary.json"
            settings = {"LIBSWAP_BUDGET": f"{int(budget_mib)}MiB", "LIBSWAP_SUMMARY": str(summary)} | settings
            said = self.run(words, settings=settings, stderr=stderr)
            return said, json.loads(summary.read_text())

    def train(self, words, **how):
        return Training(self.run([TRAIN, *words], **how))


class Training:
    def __init__(self, said):
        self.printed = re.findall(r"^(?:step|validation) \d+ loss (\S+)", said, re.M)
        self.losses = [float(x) for x in self.printed]
        self.digest = re.search(r"^digest (\w+)", said, re.M).group(1)
        peak = re.search(r"allocated peak ([\d.]+) MiB", said)
        self.peak_mib = float(peak.group(1)) if peak else None


def moved(summary):
    return sum(device["bytes_out"] for device in summary["devices"])


def check_swapped(runner, words, shares, allocator="split", periodic=False):
    """The same results to the bit with less memory, and memory really moved; where steps are the same, that was found."""
    plain = Training(runner.plain([TRAIN, *words], allocator).stdout)
    peak = plain.peak_mib or runner.train(words).peak_mib  # without its cache PyTorch does not count
    for share in shares:
        said, summary = runner.swapped([TRAIN, *words], peak * share, stderr=subprocess.STDOUT, LIBSWAP_VERBOSE="1", LIBSWAP_TORCH=allocator)
        training = Training(said)
        check(training.printed == plain.printed, f"at {share}: {training.printed} for {plain.printed}")  # "nan" is no number
        check(training.digest == plain.digest, f"at {share}: digest {training.digest} for {plain.digest}")
        check(moved(summary) > 0, f"at {share}: nothing was swapped")
        early, late = ("found an iteration" in part for part in said.split("\nstep 3 "))  # a longer one is found later
        check(not periodic or early and not late, f"at {share}: the iteration was not found in the first three steps:\n{said}")


def check_learns(runner, words, steps, tolerance, progress):
    words = [*words, "--steps", str(steps)]
    here = runner.train(words)
    cpu = runner.train([*words, "--device", "cpu"])
    off = max(abs(a - b) for a, b in zip(here.losses, cpu.losses))
    check(len(here.losses) == steps and off < tolerance, f"losses differ by {off}: {here.losses} and {cpu.losses}")
    check(here.losses[-1] < here.losses[0] - progress, f"nothing was learnt: {here.losses}")


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


def attention(runner):
    """Half precision by flash attention, and float32 by another kernel, whose outputs lie differently when they were
    saved on the CPU: against float32 on the CPU."""
    said = runner.run(["-c", """
import contextlib, torch
from torch.nn.functional import scaled_dot_product_attention
torch.manual_seed(1)
for kind, limit in ((torch.float16, 4e-3), (torch.bfloat16, 4e-2), (torch.float32, 1e-4)):
    for causal, keys, heads in ((False, 48, 4), (True, 40, 4), (True, 40, 2)):
        q, k, v = (torch.randn(2, n, length, 32).to(kind) for n, length in ((4, 40), (heads, keys), (heads, keys)))
        grad, results = torch.randn(2, 4, 40, 32).to(kind), []
        for device in ("cuda", "cpu"):
            inputs = [x.to(device, torch.float32 if device == "cpu" else kind).requires_grad_() for x in (q, k, v)]
            rows = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
            with torch.autograd.graph.save_on_cpu() if kind == torch.float32 else contextlib.nullcontext():
                out = scaled_dot_product_attention(*rows, is_causal=causal, enable_gqa=heads != 4)
            out.backward(grad.to(device, out.dtype))
            results.append([x.float().cpu() for x in (out, *(y.grad for y in inputs))])
        print(kind, causal, heads, all((a - b).abs().max() < limit for a, b in zip(*results)))
"""])
    check(said.count("True\n") == 9, said)


def transforms(runner):
    """Fourier transforms and what is done with them, against the CPU."""
    said = runner.run(["-c", """
import torch
torch.manual_seed(1)
real, waves = torch.randn(3, 4, 12, 35), torch.randn(3, 4, 12, 35, dtype=torch.cfloat)
for call, x in (
    (torch.fft.rfft2, real),
    (lambda x: torch.fft.rfftn(x, dim=(1, 2, 3)), real),
    (lambda x: torch.fft.irfft(x, n=69), waves),
    (torch.fft.ifft, waves),
    (lambda x: torch.fft.fft(x, dim=1), waves),
    (torch.fft.fftn, waves.to(torch.cdouble)),
    (lambda x: torch.fft.fft(x[..., :31], norm="ortho"), waves),
    (lambda x: torch.einsum("bixy,ioxy->boxy", x, x[:1].expand(4, 4, 12, 35)), waves),
    (lambda x: x[0, 0] @ x[0, 0].mH, waves),
    (lambda x: x.conj() * x.flip(0).transpose(0, 1).transpose(1, 0) * 2j, waves),
):
    here, there = call(x), call(x.cuda()).cpu()
    print((here - there).abs().max() < 1e-5 * here.abs().max())
"""])
    check(said.split() == ["tensor(True)"] * 10, said)


def allocators(runner):
    """What LIBSWAP_TORCH asks for is what PyTorch does."""
    ask = "import torch; torch.zeros(1, device='cuda'); print(torch.cuda.get_allocator_backend(), torch.cuda.memory_reserved() > 0)"
    for allocator, answer in {"split": "native True", "async": "cudaMallocAsync True", "uncached": "native False",
                              "leave": "native True"}.items():
        said = runner.run(["-c", ask], settings={"LIBSWAP_TORCH": allocator})
        check(said.strip() == answer, f"{allocator}: {said}")
    own = "import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'backend:cudaMallocAsync'; " + ask
    said = runner.run(["-c", own], settings={"LIBSWAP_TORCH": "split"})
    check(said.strip() == "cudaMallocAsync True", said)


def monitoring(runner):
    """What PyTorch asks NVML: devices can be counted before a fork, and who is out of memory is told who has it."""
    said = runner.run(["-c", """
import os, torch
print(torch.cuda.device_count(), torch.cuda.is_initialized(), flush=True)
child = os.fork()
if child == 0:
    print(torch.ones(3, device="cuda").sum().item(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
kept = torch.ones(1 << 22, device="cuda")
try:
    torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print("this process has" in str(error))
"""])
    check(said.split() == ["1", "False", "3.0", "True"], said)


def expandable_segments(runner):
    """Memory that PyTorch maps itself stays where it is, which one line says."""
    words = [TRAIN, *MODELS["gpt"], "--steps", "3"]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    plain = Training(runner.started(words, "1GiB", settings).stdout)
    said = runner.started(words, "1GiB", runner.swapping(settings))
    check(Training(said.stdout).digest == plain.digest, f"{said.stdout} for {plain.digest}")
    check(said.stderr.count("expandable_segments:True takes memory past libswap") == 1, said.stderr)


def gpt_learns(runner):
    check_learns(runner, MODELS["gpt"], 20, 1e-3, 0.5)


def resnet_learns(runner):
    check_learns(runner, NARROW_RESNET, 4, 1e-3, 0.2)


def a_lost_page_shows(runner):
    """The test of these tests: 4 KiB that do not reach the host or come back change the result."""
    words = [TRAIN, *MODELS["resnet"], "--steps", "4"]
    # A tensor to a buffer: of a shared segment's pages many hold nothing that is read again.
    plain = Training(runner.plain(words, "async").stdout)
    programs = 130  # copies: parameters and buffers, at the beginning or end
    with tempfile.TemporaryDirectory() as folder:
        stats = pathlib.Path(folder) / "stats.json"

        def run(**settings):
            said, _ = runner.swapped(words, plain.peak_mib * 0.4, LIBSWAP_TORCH="async", SIMGPU_STATS=str(stats), **settings)
            return Training(said).digest

        check(run() == plain.digest, "other results without a fault")
        counts = json.loads(stats.read_text())["machine"]
        for way, first in (("d2h", 0), ("h2d", programs)):
            ours = counts[way]["count"] - programs
            check(ours > 50, f"{way}: {ours} copies")
            shown = any(run(SIMGPU_DELAYS=f"{way}:{first + ours * part // 8}=lost") != plain.digest for part in (4, 5, 3, 6))
            check(shown, f"{way}: {plain.digest} in any case")


def freed_memory_is_not_moved(runner):
    """What PyTorch's allocator has back is not copied, by either of the settings that keep its cache: the same results, and fewer bytes
    moved than where nobody listens to it. Without a fill: what both runs leave in freed memory differs, so none of it may be read."""
    words = [TRAIN, *MIDDLING_GPT]
    plain = Training(runner.plain(words, SIMGPU_OPAQUE="refuse").stdout)
    for allocator, share in (("split", 0.6), ("leave", 0.4)):
        bytes_moved = {}
        for listens in ("1", "0"):
            said, summary = runner.swapped(words, plain.peak_mib * share, LIBSWAP_TORCH=allocator, LIBSWAP_FILL=None, LIBSWAP_LIFETIMES=listens)
            training = Training(said)
            check(training.digest == plain.digest, f"{allocator} at {share}: digest {training.digest} for {plain.digest}")
            ended = sum(device["contents_ended"] for device in summary["devices"])
            check((ended > 0) == (listens == "1"), f"{allocator}: {ended} contents ended")
            bytes_moved[listens] = moved(summary)
        print(f"{allocator} at {share:.0%}: {bytes_moved['1'] >> 20} MiB out, {bytes_moved['0'] >> 20} MiB without knowing")
        check(bytes_moved["1"] < 0.95 * bytes_moved["0"], f"{allocator} at {share}: {bytes_moved}")


def larger_than_the_device(runner):
    """Out of memory without libswap, the same bits with it: jobs of 1.5 and 3 times the device's memory."""
    for model in MODELS:
        words = [TRAIN, *MODELS[model], "--steps", "5"]
        plain = Training(runner.plain(words).stdout)
        for times in (1.5, 3):
            # What the context and small allocations take besides is not part of the peak.
            memory = f"{max(int(plain.peak_mib / times), 10)}MiB"
            small = runner.start(words, memory, ALLOCATORS["split"])
            complaint = small.communicate(timeout=MOST_SECONDS)[1]
            check(small.returncode != 0 and "out of memory" in complaint, f"{model} in {memory}: {complaint}")
            training = Training(runner.run(words, memory, {}))
            check(training.digest == plain.digest, f"{model} in {memory}: digest {training.digest} for {plain.digest}")


def two_jobs(runner):
    """Two jobs on one device that holds one of them: each has the bits that it has alone."""
    words = {model: [TRAIN, *MODELS[model], "--steps", "5"] for model in MODELS}
    plain = {model: Training(runner.plain(words[model]).stdout) for model in MODELS}
    memory = int(max(training.peak_mib for training in plain.values()) * 1.2)
    with tempfile.TemporaryDirectory() as folder:
        settings = runner.swapping({"SIMGPU_SHARE": f"{folder}/device", "LIBSWAP_BUDGET": f"{memory // 2}MiB"})
        running = {model: runner.start(words[model], f"{memory}MiB", settings) for model in MODELS}
        for model, process in running.items():
            said, complaint = process.communicate(timeout=MOST_SECONDS)
            check(process.returncode == 0, f"{model}: {complaint}")
            digest = Training(said).digest
            check(digest == plain[model].digest, f"{model}: digest {digest} for {plain[model].digest}")


def hooks_are_cheap(runner):
    """What hooks take of the program's threads where all fits, as measured inside, is less than 3 % of its steps. The start, which takes
    longer, drops out: a long run is compared with a short one."""
    for model in MODELS:
        times = []
        for steps in (5, 25):
            with tempfile.TemporaryDirectory() as folder:
                summary = pathlib.Path(folder) / "summary.json"
                settings = ALLOCATORS["split"] | {"LD_PRELOAD": runner.options.libswap, "LIBSWAP_MODE": "observe", "LIBSWAP_SUMMARY": str(summary)}
                said = runner.started([TRAIN, *MODELS[model], "--steps", str(steps)], "1GiB", settings).stdout
                hooks_ms = json.loads(summary.read_text())["hook_ns"] / 1e6
            times.append((hooks_ms, sum(float(x) for x in re.findall(r" time ([\d.]+) ms", said))))
        hooks_ms, steps_ms = (late - early for early, late in zip(*times))
        print(f"{model}: hooks {hooks_ms / 20:.3f} ms of a step's {steps_ms / 20:.1f} ms")
        check(0 < hooks_ms < 0.03 * steps_ms, f"{model}: hooks took {hooks_ms} ms of {steps_ms} ms")


def variant(name):
    model, *flags = VARIANTS[name]
    return lambda runner: check_swapped(runner, [*MODELS[model], "--steps", "5", *flags], [0.6])


def allocator_case(model, allocator):
    return lambda runner: check_swapped(runner, [*MODELS[model], "--steps", "5"], [0.6, 0.4], allocator, periodic=True)


def scenario(name):
    def run(runner):
        plain = runner.plain([SCENARIOS, name])
        peak = int(re.search(r"peak (\d+) MiB", plain.stderr).group(1))
        for settings in SETTINGS.get(name, [{}]):
            said, summary = runner.swapped([SCENARIOS, name], max(peak * 0.6, 16), **settings)
            check(said == plain.stdout, f"{settings}\n{said}\nwithout libswap:\n{plain.stdout}")
            check(moved(summary) > 0 or peak == 0, "nothing was swapped")
    return run


def network(name):
    """The same bits with 60 and 40 % of the memory, and where all kernels are true the losses of the CPU."""
    def run(runner):
        plain = runner.plain([SCENARIOS, name])
        peak = int(re.search(r"peak (\d+) MiB", plain.stderr).group(1))
        for share in (0.6, 0.4):
            said, summary = runner.swapped([SCENARIOS, name], max(peak * share, 8))
            check(said == plain.stdout, f"at {share}\n{said}\nwithout libswap:\n{plain.stdout}")
            check(moved(summary) > 0, f"at {share}: nothing was swapped")
        if name in TRUE_NETWORKS:
            here, cpu = ([float(x) for x in re.findall(r"^loss (\S+)", said, re.M)] for said in (plain.stdout, runner.run([SCENARIOS, name, "cpu"])))
            off = max(abs(a - b) for a, b in zip(here, cpu))
            check(len(here) == len(cpu) > 0 and off < 1e-3, f"losses differ by {off}: {here} and {cpu}")
    return run


CASES = {case.__name__: case for case in (imports, computes, attention, transforms, allocators, expandable_segments, monitoring, gpt_learns, resnet_learns, a_lost_page_shows, hooks_are_cheap, freed_memory_is_not_moved,
                                           larger_than_the_device, two_jobs)}
CASES |= {f"{model}_{allocator}": allocator_case(model, allocator) for model in MODELS for allocator in ALLOCATORS}
CASES |= {f"train_{name}": variant(name) for name in VARIANTS}
CASES |= {f"scenario_{name}": scenario(name)
          for name in ("side_stream", "graph", "compiled", "mem_pool", "profiler", "save", "out_of_memory", "threads",
                       "no_grad_views", "ctypes_runtime", "data_parallel", "indexing", "diffusion", "packed",
                       "generating", "several_models", "rollouts", "spectral")}

CASES |= {f"network_{name}": network(name) for name in NETWORKS}


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
