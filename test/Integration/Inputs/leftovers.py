# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the processes that a test has started leave behind.

A test calls `mark_processes` before it starts any. Other tests may run at the
same time.
"""
import glob
import os
import uuid

VARIABLE = "SANDWICH_TEST_PROCESSES"


def mark_processes():
    """Marks all processes that are started from now on, and those that they
    start. Returns the mark."""
    os.environ[VARIABLE] = uuid.uuid4().hex
    return os.environ[VARIABLE]


def marked_processes(mark):
    """Those that run; one that has ended and was not waited for does not."""
    entry = f"{VARIABLE}={mark}".encode()
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/environ", "rb") as file:
                if entry in file.read().split(b"\0"):
                    found.append(int(os.path.basename(folder)))
        except OSError:  # ended meanwhile, or another user's
            continue
    return found


def holds_rank_memory(process):
    """Whether `process` has the memory that ranks share mapped or open, which
    is what keeps it: it has no name."""
    name = "/memfd:sandwich-ranks"
    try:
        with open(f"/proc/{process}/maps", encoding="utf-8") as file:
            if name in file.read():
                return True
        for descriptor in glob.glob(f"/proc/{process}/fd/*"):
            try:
                if os.readlink(descriptor).startswith(name):
                    return True
            except FileNotFoundError:  # closed meanwhile
                continue
    except OSError:
        pass
    return False


def holders_of_rank_memory(mark):
    return [p for p in marked_processes(mark) if holds_rank_memory(p)]
