#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tells the ranks of one build from those of another is made of all rooms
that the runtime may include.

    check_ranks_build.py SOURCE_DIR
"""
import os
import re
import sys

source = sys.argv[1]
sys.path.insert(0, os.path.join(source, "scripts"))
import check_layering


def read(path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


table = check_layering.read_table(read("docs/Architecture.md"))
rooms, seen = set(), {"Runtime/Ranks"}
while seen - rooms:
    rooms |= seen
    seen = rooms.union(*(table[room] for room in rooms))
# One header, which is beside those of Runtime.
rooms = rooms - {"Runtime/PhaseABI"} | {"Runtime"}
listed = re.search(r"foreach\(hashed_room ([\w/\s]+)\)",
                   read("lib/Runtime/Communication/CMakeLists.txt"))
assert listed and set(listed[1].split()) == rooms, (listed, rooms)
