# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""What is run. Each step returns what it found, or raises; the order is that of worth."""
import dataclasses
import json
import pathlib
import re
import tempfile
import typing

from gpu_check_parts.runner import StepFailed, StepSkipped

QUESTION_SECONDS = 25
BENCH_SECONDS = 130
CASES = ["at_90_percent", "at_50_percent", "at_20_percent", "with_everything_verified", "with_three_threads"]


@dataclasses.dataclass
class Step:
    name: str
    work: typing.Callable


def ask(check, key, libswap=None):
    quick = ["--quick"] if check.quick else []
    program = check.program("microbench/gpu_questions")
    done = check.must([program, "--json", *quick, key], QUESTION_SECONDS, libswap=libswap)
    return json.loads(done.stdout)


def question(key):
    return Step(key, lambda check: ask(check, key))


def launches(check):
    """The same launches bare, under libswap where all fits, and while it records and times them."""
    found = {}
    for name, libswap in (("without libswap", None), ("with libswap, all fits", {}),
                          ("with libswap, observing", {"LIBSWAP_MODE": "observe"})):
        answer = ask(check, "launches", libswap)
        rows = {row["name"]: row for row in answer["tables"][0]["rows"]}
        found[name] = {"host_us": rows["of the host's time"]["median"], "least_host_us": rows["of the host's time"]["minimum"],
                       "device_us": rows["from one to the next on the device"]["median"]}
    return found


def bench(check):
    """swapctl bench, with plots; its profile stays out of the user's cache."""
    program = check.program("tools/swapctl")
    with tempfile.TemporaryDirectory() as cache:
        for depth, limit in ((["--quick"], 60),) if check.quick else ((["--full"], BENCH_SECONDS), (["--quick"], 30)):
            try:
                done = check.must([program, "bench", *depth, "--json", "--svg", check.results], limit,
                                  environment={"XDG_CACHE_HOME": cache})
                return json.loads(done.stdout)
            except TimeoutError as late:
                why = late
    raise why


def conformance(check):
    """Random programs end with the same bytes and errors with libswap as without."""
    program = check.program("tests/preload/random_programs")
    script = check.root / "tests/preload/random_programs_test.py"
    count = 6 if check.quick else 30  # of fewer, none may need more than 90 % of the memory
    said = []
    failed = 0
    for number, case in enumerate(CASES):
        done = check.run([script, "--program", program, "--libswap", check.build / "libswap.so", "--first", 1000 + number * count,
                          "--count", count, "--case", case, "--shrink-seconds", 0], 60)
        said.append(done.stdout.strip() or done.stderr.strip())
        failed += done.returncode != 0
    found = {"cases": said}
    if failed:
        raise StepFailed(f"{failed} of {len(CASES)} cases differ", found)
    return found


PRESSED = {"LIBSWAP_BUDGET": "20MiB", "LIBSWAP_HOST_LIMIT": "512MiB", "LIBSWAP_MIN_SWAP": "64K"}


def cases(name, program_name, libswap, *options):
    def work(check):
        """Programs that test by themselves."""
        program = check.program(program_name)
        with tempfile.TemporaryDirectory() as scratch:
            results = pathlib.Path(scratch) / "results.json"
            done = check.run([program, f"--gtest_output=json:{results}", *options], 90, libswap=libswap)
            if not results.exists():
                raise StepFailed(f"ended with {done.returncode}: {(done.stderr or done.stdout)[-1000:]}")
            suites = json.loads(results.read_text())["testsuites"]
        found = {}
        for suite in suites:
            for test in suite["testsuite"]:
                failures = [failure["failure"] for failure in test.get("failures", [])]
                found[f"{suite['name']}.{test['name']}"] = failures or test["result"].lower()
        bad = [name for name, result in found.items() if isinstance(result, list)]
        if bad or done.returncode != 0:
            raise StepFailed(f"{len(bad)} of {len(found)} fail: {', '.join(bad)}", found)
        return found
    return Step(name, work)


def trainer(check, arguments, libswap=None):
    program = check.program("examples/train_cnn/train_cnn")
    with tempfile.TemporaryDirectory() as scratch:
        results, summary = pathlib.Path(scratch) / "results.json", pathlib.Path(scratch) / "summary.json"
        settings = None if libswap is None else dict(libswap, LIBSWAP_SUMMARY=str(summary))
        check.must([program, *arguments, "--data", check.root / "examples/data/digits.txt", "--json", results], 60, libswap=settings)
        row = json.loads(results.read_text())
        if settings is not None:
            row["libswap"] = json.loads(summary.read_text())["devices"][0]
    return row


def train_cnn(check):
    """examples/train_cnn at full memory, and with libswap at 60 % and 40 % of its peak."""
    arguments = ["--batch", "120", "--iterations", "6", "--channels", "64", "--filter", "3"] if check.quick else \
        ["--batch", "1440", "--iterations", "12", "--channels", "512", "--layers", "12"]
    full = trainer(check, arguments)
    found = {"full": full}
    smallest = {"LIBSWAP_MIN_SWAP": "64K"} if check.quick else {}
    problems = []
    for percent in (60, 40):
        row = trainer(check, arguments, {"LIBSWAP_BUDGET": str(full["peak_bytes"] * percent // 100), **smallest})
        row["slowdown"] = round(row["iteration_ms"] / full["iteration_ms"], 4)
        found[f"{percent} %"] = row
        if row["digest"] != full["digest"]:
            problems.append(f"other weights at {percent} %")
        if row["libswap"]["bytes_out"] == 0:
            problems.append(f"nothing moved at {percent} %")
    if problems:
        raise StepFailed(", ".join(problems), found)
    return found


def find_torch(check):
    """A Python whose PyTorch sees the device."""
    candidates = [check.python] if check.python else [check.build / "torch-venv/bin/python", "/opt/torch/.venv/bin/python3", "python3"]
    for python in candidates:
        try:
            done = check.run([python, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())"], 90)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.split()[-1:] == ["True"]:
            return python, done.stdout.split()[0]
    raise StepSkipped("no Python with a PyTorch that sees the device")


def read_training(text):
    """What examples/train.py printed."""
    steps = re.findall(r"^step \d+ loss (\S+) time (\S+) ms", text, re.M)
    times = sorted(float(time) for _, time in steps[len(steps) // 2:])
    peak = re.search(r"allocated peak (\S+) MiB", text)
    return {"losses": [float(loss) for loss, _ in steps], "digest": (re.search(r"^digest (\S+)", text, re.M) or [None, None])[1],
            "step_ms": times[len(times) // 2] if times else None, "peak_bytes": int(float(peak[1]) * 2**20) if peak else None}


def torch(model):
    # Sizes: several GiB on a GPU; a second or two on simgpu.
    small = {"resnet50": ["--width", "8", "--image", "32", "--batch", "2"],
             "gpt2": ["--layers", "2", "--width", "64", "--heads", "2", "--context", "32", "--vocabulary", "256", "--batch", "2"]}[model]
    large = {"resnet50": ["--batch", "128"], "gpt2": ["--batch", "16"]}[model]

    def train(check, python, extra, libswap=None):
        words = [python, check.root / "examples/train.py", "--model", model, *(small if check.quick else large),
                 "--steps", "4" if check.quick else "10", *extra]
        with tempfile.TemporaryDirectory() as scratch:
            summary = pathlib.Path(scratch) / "summary.json"
            settings = None if libswap is None else dict(libswap, LIBSWAP_SUMMARY=str(summary))
            row = read_training(check.must(words, 90, libswap=settings).stdout)
            if settings is not None:
                row["libswap"] = json.loads(summary.read_text())["devices"][0]
        return row

    def work(check):
        """examples/train.py at full memory, at half its peak with libswap, and with what autograd saves on the CPU."""
        python, version = find_torch(check)
        found = {"torch": version, "full": train(check, python, [])}
        problems = []
        full = found["full"]
        for name, extra, libswap in (("50 % with libswap", [], {"LIBSWAP_BUDGET": str((full["peak_bytes"] or 0) // 2)}),
                                     ("save_on_cpu", ["--save-on-cpu"], None)):
            try:
                row = train(check, python, extra, libswap)
                row["slowdown"] = round(row["step_ms"] / full["step_ms"], 4)
                # cuDNN and PyTorch may add in another order each time: only said.
                row["same_weights"] = row["digest"] == full["digest"]
                found[name] = row
            except (StepFailed, TimeoutError) as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise StepFailed("; ".join(problems), found)
        return found
    return Step(f"torch_{model}", work)


STEPS = [
    question("chunk_costs"), question("waits"), question("two_addresses"), question("mapping_in_captures"),
    question("capture_codes"), question("host_memory"), question("pinned_memory"), Step("launches", launches), question("cupti"),
    Step("conformance", conformance),
    # What the stand-in driver promises. Managed memory is left alone: a card that is asked for too much of it may hang.
    cases("driver_cases", "tests/simgpu/driver/driver_conformance_test", None, "--gtest_filter=-*Managed*:TwoDevices.*"),
    cases("memory_cases", "tests/preload/memory_cases_test", PRESSED),
    cases("capture_cases", "tests/preload/capture_cases_test", PRESSED), Step("bench", bench),
    Step("train_cnn", train_cnn), torch("resnet50"), torch("gpt2"),
]


def names():
    return [step.name for step in STEPS]
