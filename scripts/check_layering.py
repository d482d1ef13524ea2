#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks every #include against the table of rooms in docs/Architecture.md.

    check_layering.py [SOURCE_DIR]

The table's first column names the rooms, lowest first, and its third column
what each may include beside itself: rooms of earlier rows, and `LLVM` for
headers of LLVM, MLIR, clang or lld. Prints one line for each violation and
exits 1 if there is any.
"""
import os
import re
import sys

SUFFIXES = (".h", ".cpp", ".c", ".td")
INCLUDE = re.compile(r'^\s*#?\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
LLVM_PREFIXES = ("llvm/", "llvm-c/", "mlir/", "mlir-c/", "clang/", "clang-c/",
                 "lld/")


class TableError(Exception):
    pass


def read_table(text):
    """From each room to the set of what it may include."""
    table = {}
    rows = iter(text.splitlines())
    for row in rows:
        if re.match(r"\|\s*room\s*\|", row):
            break
    else:
        raise TableError("has no table that begins with '| room |'")
    next(rows)
    for row in rows:
        if not row.startswith("|"):
            break
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        names = re.findall(r"`([^`]+)`", cells[0])
        if len(cells) != 3 or len(names) != 1:
            raise TableError(f"has a row that is not room, holds, may include: "
                             f"{row}")
        allowed = set(re.findall(r"`([^`]+)`", cells[2]))
        for other in allowed - {"LLVM"} - set(table):
            raise TableError(f"lets {names[0]} include {other}, which is no "
                             "room of an earlier row")
        if names[0] in table:
            raise TableError(f"has two rows for {names[0]}")
        table[names[0]] = allowed
    return table


def room_of(path, rooms):
    """The room that holds `path`, a file of the source tree or the target of an
    include: the longest room it lies in, or whose name it has. Headers beside
    a room's folder belong to the only room inside that has none of its own."""
    path = re.sub(r"^(include/sandwich|sandwich|lib)/", "", path)
    stem = path.split(".")[0]
    inside = [room for room in rooms
              if stem == room or path.startswith(room + "/")]
    if inside:
        return max(inside, key=len)
    # include/sandwich/Frontend/Safetensors.h is of Frontend/Checkpoint, as
    # include/sandwich/Frontend/ModelBuilder.h alone is of the other room.
    folder = os.path.dirname(path)
    inner = [room for room in rooms if os.path.dirname(room) == folder]
    return inner[0] if folder and inner else None


def includes(path):
    """The number and the target of each include line."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) or match.group(2), bool(
                    match.group(1))


def check_include(source, path, room, table, target, quoted):
    """What is wrong with the include of `target`, or None."""
    if target.startswith(LLVM_PREFIXES):
        if "LLVM" not in table[room]:
            return f"{room} must not see LLVM, but includes {target}"
        return None
    if target.startswith("sandwich/"):
        other = room_of(target, table)
        if other is None:
            return f"includes {target}, which is in no room"
        if other != room and other not in table[room]:
            return f"{room} must not include {other}, but includes {target}"
        return None
    if quoted and not path.endswith(".td") and not os.path.exists(
            os.path.join(source, os.path.dirname(path), target)):
        return f"includes {target}, which is not beside it"
    if target.startswith(".."):
        return f"includes {target} outside of its folder"
    return None


def check(source):
    """Every violation below `source`, as `file:line: what`."""
    with open(os.path.join(source, "docs/Architecture.md"),
              encoding="utf-8") as file:
        table = read_table(file.read())
    violations, files = [], 0
    for top in ("include", "lib", "tools"):
        for folder, _, names in sorted(os.walk(os.path.join(source, top))):
            for name in sorted(names):
                if not name.endswith(SUFFIXES):
                    continue
                files += 1
                path = os.path.relpath(os.path.join(folder, name), source)
                room = room_of(path, table)
                if room is None:
                    violations.append(f"{path}: is in no room")
                    continue
                for number, target, quoted in includes(
                        os.path.join(source, path)):
                    problem = check_include(source, path, room, table, target,
                                            quoted)
                    if problem:
                        violations.append(f"{path}:{number}: {problem}")
    return violations, files


def main(arguments):
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        print(__doc__)
        return 2
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    source = arguments[0] if arguments else default
    try:
        violations, files = check(source)
    except TableError as error:
        print(f"error: docs/Architecture.md {error}")
        return 1
    except OSError as error:
        print(f"error: {error}")
        return 1
    for violation in violations:
        print(violation)
    if files == 0:
        print(f"error: {source} holds no sources")
        return 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
