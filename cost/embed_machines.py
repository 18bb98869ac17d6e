#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Writes what cost/machine.cpp knows of the shipped machine profiles, as rows of its table.

  embed_machines.py OUTPUT PROFILE.json...
"""
import json
import pathlib
import sys

PLAIN = ('h2d_gbps', 'd2h_gbps', 'h2d_duplex_gbps', 'd2h_duplex_gbps', 'transfer_latency_us', 'map_us_per_gib', 'unmap_us_per_gib')
CEILINGS = ('fp32_tflops', 'mem_gbps', 'launch_latency_us', 'tf32_tflops', 'fp16_tflops', 'fp64_tflops')
REMAP = ('map_us', 'map_us_per_gib', 'set_access_us', 'set_access_us_per_gib', 'unmap_us', 'unmap_us_per_gib')


def numbers(profile, keys):
    return ', '.join(repr(float(profile[key])) for key in keys)


def main():
    output, *profiles = sys.argv[1:]
    rows = []
    for path in profiles:
        profile = json.loads(pathlib.Path(path).read_text())
        name = pathlib.Path(path).stem
        rows.append(f'{{"{name}", {numbers(profile, PLAIN)}, {{{numbers(profile, CEILINGS)}}}, {{{numbers(profile["vmm"], REMAP)}}}}},\n')
    pathlib.Path(output).write_text(''.join(rows))


if __name__ == '__main__':
    main()
