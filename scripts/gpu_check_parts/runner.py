# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Runs programs and steps, each within its limit of time."""
import os
import pathlib
import signal
import subprocess
import time

import preloading
from gpu_check_parts import machine

TARGETS = ["libswap.so", "tools/swapctl", "microbench/gpu_questions", "examples/train_cnn/train_cnn",
           "tests/preload/random_programs", "tests/preload/memory_cases_test", "tests/preload/capture_cases_test",
           "tests/simgpu/driver/driver_conformance_test"]
KEPT_OUTPUT = 4000  # characters of what a failing step said


class StepFailed(Exception):
    """A step that did not do what it must; `found` is what it found out all the same."""

    def __init__(self, why, found=None):
        super().__init__(why)
        self.found = found


class StepSkipped(Exception):
    """A step that cannot be run here."""


def build(root, folder, limit):
    """Builds what the steps run; None, or why that is not possible."""
    commands = [["ninja", "-C", folder, *TARGETS]]
    if not (folder / "build.ninja").exists():
        commands.insert(0, ["meson", "setup", "--wrap-mode=nodownload", folder, root])
    for command in commands:
        try:
            done = subprocess.run([str(word) for word in command], timeout=limit)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"cannot build: {error} (--build names a build that is there)"
        if done.returncode != 0:
            return f"{command[0]} ended with {done.returncode}"
    return None


class Runner:
    def __init__(self, root, folder, limit, quick, python):
        self.root, self.build, self.quick, self.python = root, folder, quick, python
        self.results = None
        self.begun = time.monotonic()
        self.limit = limit
        self.deadline = self.begun + limit
        self.preload = [name for name in os.environ.get("LD_PRELOAD", "").split(":") if name]
        self.environment = preloading.environment_without("LIBSWAP_")
        libraries = [*machine.library_folders(folder), os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))

    def seconds_used(self):
        return time.monotonic() - self.begun

    def run(self, command, limit, libswap=None, environment=None):
        """The finished process, with its output. libswap: settings of it, None: without. Raises StepFailed at the
        limit; whatever the command started is ended then."""
        settings = dict(self.environment, **(environment or {}))
        preload = [name for name in self.preload if name != os.environ.get(preloading.FIRST)]
        if libswap is not None:
            preload.insert(0, str(self.build / "libswap.so"))
            settings.update(libswap)
        settings["LD_PRELOAD"] = preloading.ld_preload(*preload)
        words = [str(word) for word in command]
        limit = min(limit, self.deadline - time.monotonic())
        if limit <= 1:
            raise StepSkipped("no time left")
        with subprocess.Popen(words, env=settings, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True, cwd=self.root) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise TimeoutError(f"{pathlib.Path(words[0]).name} took more than {limit:.0f} s") from None
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def must(self, *arguments, **options):
        """run(), and StepFailed where the program fails."""
        done = self.run(*arguments, **options)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()[-KEPT_OUTPUT:]
            raise StepFailed(f"{pathlib.Path(done.args[0]).name} ended with {done.returncode}: {said}")
        return done

    def program(self, name):
        path = self.build / name
        if not path.exists():
            raise StepSkipped(f"{name} is not built")
        return path

    def step(self, step):
        """What came of the step."""
        print(f"== {step.name}", flush=True)
        begun = time.monotonic()
        outcome = {"step": step.name, "status": "done", "seconds": 0, "found": None}
        try:
            if self.deadline - begun <= 1:
                raise StepSkipped("no time left")
            outcome["found"] = step.work(self)
        except StepSkipped as skipped:
            outcome.update(status="skipped", why=str(skipped))
        except TimeoutError as late:
            outcome.update(status="timed out", why=str(late))
        except StepFailed as failure:
            outcome.update(status="failed", why=str(failure), found=failure.found)
        except Exception as error:  # a fault of a step's own must not cost the others
            outcome.update(status="failed", why=f"{type(error).__name__}: {error}")
        outcome["seconds"] = round(time.monotonic() - begun, 2)
        print(f"   {outcome['status']}{': ' + outcome['why'] if 'why' in outcome else ''}", flush=True)
        return outcome
