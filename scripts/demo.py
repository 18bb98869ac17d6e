#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Trains past device memory, and shows it.

Installs what is missing, builds, and runs examples/train_cnn four ways:

  unlimited  memory without limit
  small      a device of 70 % of the memory that the program asks for: out of memory
  swap60     the same small device, with libswap and LIBSWAP_BUDGET at 60 % of what the program asks for
  swap40     the same at 40 %

On a GPU if there is one and its driver, else on simgpu, whose times are simulated: they follow from the machine
profile, not from this computer. Exit status 1 if a run does not do what it must.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import preloading

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_SLOWDOWN = 1.3  # at 60 %, on simgpu
MIB = 1 << 20


def say(text=""):
    print(text, flush=True)


def fail(text):
    sys.exit(f"demo: {text}")


def build(folder):
    say("== setup")
    subprocess.run([ROOT / "scripts/setup"], check=True)
    say("== build")
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", "--wrap-mode=nodownload", folder, ROOT], check=True)
    libraries = [f"simgpu/lib/{name}" for name in ("libcuda.so.1", "libcudart.so.13", "libcublas.so.13")]
    subprocess.run(["ninja", "-C", folder, "libswap.so", "examples/train_cnn/train_cnn", *libraries], check=True)


def find_gpu():
    """The first GPU's name and the environment that its programs need, or None."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(query, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if names.returncode != 0 or not names.stdout.strip():
        return None
    cuda = subprocess.run([ROOT / "scripts/find_cuda"], capture_output=True, text=True, check=True).stdout.strip()
    libraries = pathlib.Path(cuda) / "lib64"
    if not (libraries / "libcublas.so.13").exists():
        say(f"demo: there is a GPU, but no cuBLAS in {libraries}: using simgpu")
        return None
    path = os.pathsep.join(filter(None, [str(libraries), os.environ.get("LD_LIBRARY_PATH")]))
    return names.stdout.splitlines()[0].strip(), {"LD_LIBRARY_PATH": path}


class Runner:
    def __init__(self, folder, scratch, gpu, machine, arguments):
        self.folder, self.scratch, self.gpu, self.machine, self.arguments = folder, scratch, gpu, machine, arguments

    def command(self, memory_bytes, with_libswap):
        """The program on a device of that much memory, None: all there is. A GPU's own memory does not shrink: there
        the program takes all but that much before it begins, or libswap's budget alone is the limit."""
        program = [self.folder / "examples/train_cnn/train_cnn", *self.arguments]
        if self.gpu:
            return program + (["--leave", str(memory_bytes)] if memory_bytes and not with_libswap else [])
        limit = ["--memory", str(memory_bytes)] if memory_bytes else []
        return [ROOT / "scripts/simgpu", "--build", self.folder, "--machine", self.machine, *preloading.FAST_HOST, *limit, "--", *program]

    def run(self, name, memory_bytes=None, budget_bytes=None):
        result_file, summary_file = self.scratch / f"{name}.json", self.scratch / f"{name}-libswap.json"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LIBSWAP_")}
        environment.pop("LD_PRELOAD", None)
        environment.update(self.gpu[1] if self.gpu else {})
        what = "no limit" if memory_bytes is None else f"device of {memory_bytes / MIB:.1f} MiB"
        if budget_bytes:
            environment.update(LD_PRELOAD=str(self.folder / "libswap.so"), LIBSWAP_BUDGET=str(budget_bytes),
                               LIBSWAP_SUMMARY=str(summary_file))
            what += f", libswap with a budget of {budget_bytes / MIB:.1f} MiB"
        say(f"== {name}: {what}")
        command = self.command(memory_bytes, bool(budget_bytes)) + ["--json", str(result_file)]
        output = []
        with subprocess.Popen([str(word) for word in command], env=environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            for line in process.stdout:
                output.append(line)
                say("  " + line.rstrip())
        results = json.loads(result_file.read_text()) if result_file.exists() else {}
        summary = json.loads(summary_file.read_text()) if summary_file.exists() else {}
        return {
            "run": name,
            "exit": process.returncode,
            "loss": results["losses"][-1] if results else None,
            "digest": results.get("digest"),
            "peak_bytes": results.get("peak_bytes"),
            "device_bytes": budget_bytes or memory_bytes or results.get("device_bytes"),
            "moved_bytes": sum(d["bytes_out"] + d["bytes_in"] for d in summary.get("devices", [])),
            "iteration_ms": results.get("iteration_ms"),
            "slowdown": None,
        }, "".join(output)


def print_table(rows):
    def megabytes(value):
        return "-" if value is None else f"{value / MIB:,.1f}"

    def cells(row):
        result = "finished" if row["exit"] == 0 else row["result"]
        return [row["run"], result, "-" if row["loss"] is None else f"{row['loss']:.6f}", row["digest"] or "-",
                megabytes(row["peak_bytes"]), megabytes(row["device_bytes"]), megabytes(row["moved_bytes"]),
                "-" if row["iteration_ms"] is None else f"{row['iteration_ms']:.3f}",
                "-" if row["slowdown"] is None else f"{row['slowdown']:.3f}"]

    head = ["run", "result", "final loss", "weight digest", "peak MiB", "memory MiB", "moved MiB", "iteration ms", "slowdown"]
    table = [head] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    say()
    for line in table:
        say("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(line, widths))).rstrip())
    say()
    say("memory: the device's, or the budget. moved: to the host and back, over the whole run. iteration: median, by CUDA")
    say("events. slowdown: of an iteration, against memory without limit.")


def explain_link(machine, peak_bytes, iteration_ms):
    """What the link allows at 60 %: what is over the budget at the worst moment must leave and come back each time."""
    file = pathlib.Path(machine) if machine.endswith(".json") else ROOT / f"simgpu/machines/{machine}.json"
    profile = json.loads(file.read_text())
    over_bytes = 0.4 * peak_bytes
    out_ms = over_bytes / profile["d2h_gbps"] / 1e6
    in_ms = over_bytes / profile["h2d_gbps"] / 1e6
    say(f"The link of {file.stem} ({profile['d2h_gbps']:g} GB/s out, {profile['h2d_gbps']:g} in): at 60 % the "
        f"{over_bytes / MIB:.1f} MiB over the budget take at least")
    say(f"{out_ms:.2f} ms out and {in_ms:.2f} ms back, beside an iteration of {iteration_ms:.2f} ms without limit: "
        f"they fit beside the computing ({(out_ms + in_ms) / iteration_ms:.0%} of it).")


def problems_of(rows, small_output, on_simgpu):
    by_name = {row["run"]: row for row in rows}
    problems = [f"{name} failed" for name in ("unlimited", "swap60", "swap40") if name in by_name and by_name[name]["exit"] != 0]
    if "small" in by_name and (by_name["small"]["exit"] == 0 or "out of memory" not in small_output):
        problems.append("small did not run out of memory")
    finished = [row for row in rows if row["exit"] == 0]
    if len({row["digest"] for row in finished}) > 1:
        problems.append("the weights differ")
    for name in ("swap60", "swap40"):
        if name in by_name and by_name[name]["exit"] == 0 and by_name[name]["moved_bytes"] == 0:
            problems.append(f"{name} moved nothing")
    slowdown = by_name.get("swap60", {}).get("slowdown")
    if on_simgpu and slowdown is not None and slowdown > MOST_SLOWDOWN:
        problems.append(f"swap60 is slower than {MOST_SLOWDOWN:g} times the run without limit")
    return problems


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--simgpu", action="store_true", help="use simgpu even where there is a GPU")
    parser.add_argument("--machine", default="pcie4-a100", help="machine profile for simgpu (pcie4-a100)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR", help="build folder (build)")
    parser.add_argument("trainer", nargs="*", help="arguments for train_cnn, after --")
    arguments = parser.parse_args()

    folder = arguments.build.resolve()
    try:
        build(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        fail(error)
    gpu = None if arguments.simgpu else find_gpu()
    say(f"== running on {gpu[0]}" if gpu else f"== no GPU and driver in use: running on simgpu, times are simulated ({arguments.machine})")

    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(folder, pathlib.Path(scratch), gpu, arguments.machine, arguments.trainer)
        unlimited, _ = runner.run("unlimited")
        unlimited["slowdown"] = 1.0 if unlimited["exit"] == 0 else None
        rows, small_output = [unlimited], ""
        if unlimited["exit"] == 0:
            peak = unlimited["peak_bytes"]
            small_bytes = peak * 7 // 10
            small, small_output = runner.run("small", small_bytes)
            rows.append(small)
            for name, percent in (("swap60", 60), ("swap40", 40)):
                row, _ = runner.run(name, small_bytes, peak * percent // 100)
                if row["exit"] == 0:
                    row["slowdown"] = round(row["iteration_ms"] / unlimited["iteration_ms"], 4)
                rows.append(row)

    for row in rows:
        row["result"] = "out of memory" if row["run"] == "small" and "out of memory" in small_output else f"exit {row['exit']}"
    print_table(rows)
    if unlimited["exit"] == 0 and not gpu:
        explain_link(arguments.machine, unlimited["peak_bytes"], unlimited["iteration_ms"])
    for row in rows:
        del row["result"]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    problems = problems_of(rows, small_output, not gpu)
    for problem in problems:
        say(f"demo: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
