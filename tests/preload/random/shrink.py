# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Makes a failing random program smaller: fewer steps, fewer streams and threads, smaller numbers.

Every step of such a program is total, so that whatever is left is a program too.
"""
import time

SETTING = "program"


def shrink(lines, fails, seconds=600.0):
    """The smallest lines found for which fails(lines) still holds, as it must for the given ones."""
    deadline = time.monotonic() + seconds
    attempt = _Attempts(lines, fails, deadline)
    while not attempt.is_over():
        before = attempt.best
        _drop_steps(attempt)
        _use_fewer_streams(attempt)
        _halve_numbers(attempt)
        if attempt.best == before:
            break
    return attempt.best


class _Attempts:
    def __init__(self, lines, fails, deadline):
        self.best = list(lines)
        self._fails = fails
        self._deadline = deadline
        self._seen = {}

    def is_over(self):
        return time.monotonic() > self._deadline

    def take(self, lines):
        """Whether these lines fail too; then they are the best."""
        key = "\n".join(lines)
        if lines == self.best or self.is_over():
            return False
        if key not in self._seen:
            self._seen[key] = self._fails(lines)
        if self._seen[key]:
            self.best = lines
        return self._seen[key]


def _drop_steps(attempt):
    """Runs of steps, from half of them down to single ones."""
    length = max(len(attempt.best) // 2, 1)
    while True:
        at = 0
        dropped = False
        while at < len(attempt.best):
            if attempt.take(attempt.best[:at] + attempt.best[at + length :]):
                dropped = True
            else:
                at += length
        if length == 1 and not dropped:
            return
        if not dropped or length > len(attempt.best):
            length = max(length // 2, 1)


def _numbers(line):
    name, *numbers = line.split()
    return name, [int(number) for number in numbers]


def _line(name, numbers):
    return " ".join([name, *map(str, numbers)])


def _use_fewer_streams(attempt):
    """A stream's steps all together on another: the first number of a step is its stream."""
    for stream in (3, 2, 1):
        for other in range(stream):
            lines = []
            for line in attempt.best:
                name, numbers = _numbers(line)
                if name != SETTING and numbers and numbers[0] % 4 == stream:
                    numbers[0] = other
                lines.append(_line(name, numbers))
            if attempt.take(lines):
                break


def _halve_numbers(attempt):
    at = 0
    while at < len(attempt.best):
        count = len(_numbers(attempt.best[at])[1])
        for i in range(count):
            _halve_number(attempt, at, i)
        at += 1


def _halve_number(attempt, at, i):
    def with_number(value):
        name, numbers = _numbers(attempt.best[at])
        numbers[i] = value
        return attempt.best[:at] + [_line(name, numbers)] + attempt.best[at + 1 :]

    value = _numbers(attempt.best[at])[1][i]
    if value == 0 or attempt.take(with_number(0)):
        return
    while value > 1 and attempt.take(with_number(value // 2)):
        value //= 2
    if value > 1:
        attempt.take(with_number(value - 1))
