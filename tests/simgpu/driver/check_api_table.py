#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Compares api.def with the toolkit's headers and with what the built library exports."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HEADERS = ['cudaTypedefs.h', 'cudaProfilerTypedefs.h', 'cudaEGLTypedefs.h', 'cudaGLTypedefs.h', 'cudaVDPAUTypedefs.h']

# Functions that have no typedef in the headers of CUDA 13.0.
WITHOUT_TYPEDEF = re.compile(r'cu(Coredump|Green|Dev(Sm)?Resource)|DevResource|GreenCtx|AsyncNotification'
                             r'|cuCtx(Record|Wait)Event')


def typedef_rows(include):
    rows = set()
    for header in HEADERS:
        for line in (include / header).read_text().splitlines():
            match = re.match(r'\s*typedef CUresult \(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)\s*\(', line)
            if match and not match[1].startswith('cuWGL'):
                rows.add((match[1], int(match[2]), int(match[3] is not None)))
    return rows


def exports(library):
    listing = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True)
    return {line.split()[2] for line in listing.stdout.splitlines()}


def complain(what, names):
    if names:
        print(f'{what}: {sorted(names)}')
    return bool(names)


def main():
    table, library, include = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    found = re.findall(r'^SIMGPU_API\((\w+), (\w+), (\d+), ([01])\)', Path(table).read_text(), re.MULTILINE)
    rows = {(base, int(version), int(per_thread)) for _, base, version, per_thread in found}
    symbols = {symbol for symbol, *_ in found}
    bad = complain('in the headers, not in the table', typedef_rows(include) - rows)
    unknown = {row for row in rows - typedef_rows(include) if not WITHOUT_TYPEDEF.search(row[0])}
    bad |= complain('in the table, not in the headers', unknown)
    built = exports(library)
    bad |= complain('in the table, not exported', symbols - built)
    bad |= complain('exported, not in the table', {name for name in built - symbols if not name.startswith('simgpu')})
    by_base = defaultdict(list)
    for symbol, base, version, per_thread in found:
        by_base[base, per_thread].append((int(version), symbol))
    unsorted = {base for (base, _), entries in by_base.items() if entries != sorted(entries)}
    bad |= complain('not in order of versions', unsorted)
    stub = include.parent / 'lib64' / 'stubs' / 'libcuda.so'
    if stub.exists():
        bad |= complain('in the stub library, not in the table', exports(str(stub)) - symbols)
        # The stub library is without the graphics interfaces.
        graphics = re.compile(r'GL|VDPAU|Egl')
        extra = {name for name in symbols - exports(str(stub)) if not graphics.search(name)}
        bad |= complain('in the table, not in the stub library', extra)
    print(f'{len(found)} functions')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
