# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a machine of so many equal cores of one CPU as hwloc's XML."""

import sys


def bitmap(first: int, count: int = 1) -> str:
    """The text of the CPUs from `first` as hwloc writes sets."""
    words = []
    bits = ((1 << count) - 1) << first
    while bits:
        words.append(f"0x{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))


def sets(cpus: str) -> str:
    return (
        f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="0x1" complete_nodeset="0x1"'
    )


cores = int(sys.argv[1])
whole = bitmap(0, cores)
lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
    '<topology version="2.0">',
    f'<object type="Machine" os_index="0" {sets(whole)} allowed_cpuset="{whole}" '
    'allowed_nodeset="0x1" gp_index="1">',
    f'<object type="NUMANode" os_index="0" {sets(whole)} gp_index="2" '
    'local_memory="1073741824"/>',
]
for core in range(cores):
    own = bitmap(core)
    lines += [
        f'<object type="Core" os_index="{core}" {sets(own)} gp_index="{2 * core + 3}">',
        f'<object type="PU" os_index="{core}" {sets(own)} gp_index="{2 * core + 4}"/>',
        "</object>",
    ]
lines += ["</object>", "</topology>", ""]
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write("\n".join(lines))
