#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""docs/issue-log.md and the tests agree: each row's number stands in a comment of a test, or among the rows without one; the
tests that the log names are there.

    issue_log_test.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
# A comment that begins with numbers, alone or before what they mean: "// 24, 53: ...", "// 52", "64: ..." of a docstring.
COMMENT = re.compile(r'^\s*(?://+|#|""")?\s*(?:The kind of )?(\d+(?:(?:, | and )\d+)*)(?::(?: |$)|$| of docs/issue-log)|[.] (\d+): ')


def numbers(cell):
    """10-12, 20 -> 10, 11, 12, 20"""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", cell):
        yield from range(int(first), int(last or first) + 1)


def rows(text, heading):
    """The table's rows below a heading."""
    table = text.split(heading, 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:] if line.startswith("|")]


def main():
    log = (SOURCE / "docs/issue-log.md").read_text()
    files = [path for path in (SOURCE / "tests").rglob("*") if path.suffix in (".cpp", ".hpp", ".cu", ".py", ".build") and path.is_file()]
    texts = [path.read_text() for path in files if path.name != pathlib.Path(__file__).name]
    named = {number for text in texts for line in text.splitlines() if (found := COMMENT.search(line))
             for number in numbers(found[1] or found[2])}
    tests = set(re.findall(r"TEST(?:_F|_P)?\(\w+, (\w+)\)", "\n".join(texts)))
    whole = "\n".join(texts)
    tested = rows(log, "by number, and the test that stands for it. Numbers are those that comments\nin the tests name; a test is named after the right behaviour.\n\n")
    own = rows(log, "Of the same kinds, thought of here:\n\n")
    untested = rows(log, "Without a test, because it cannot be shown here:\n\n")
    problems = []
    for row in tested:
        problems += [f"row {number} is in no comment of a test" for number in numbers(row[0]) if number not in named]
    for row in tested + own:
        for name in re.findall(r"\b(?:[A-Z][a-z0-9]+){3,}\w*", row[-1]):
            if name not in tests:
                problems.append(f"there is no test {name}")
        for name in re.findall(r"`([^`]+)`", row[-1]):
            known = re.search(rf"'{re.escape(name)}['_ ]", whole) or re.search(rf"\b{re.escape(name)}_(?:test|cases)", whole)
            if not known and name not in tests:
                problems.append(f"there is no test {name}")
    if not (len(tested) > 20 and own and untested):
        problems.append("the log cannot be read")
    print("\n".join(problems) or f"{len(tested)} rows, all with their tests")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
