#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at the processes of ARTIFACT, which has 4 ranks, and lets them fail in
all ways.

    faults.py ARTIFACT
"""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../Inputs"))
import leftovers

RANKS = 4
# How often each rank is killed.
MOMENTS = 20
MARK = leftovers.mark_processes()
# What a group may take to find out and to end.
SECONDS = 2.0


class Group:
    """A sandwich-run that works until it is ended, and its ranks."""

    def __init__(self, artifact):
        self.process = subprocess.Popen(
            ["sandwich-run", "bench", artifact, "-p", "16", "-n", "16",
             "-r", "1000000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ranks = []
        deadline = time.monotonic() + 30
        while len(self.ranks) < RANKS - 1:
            assert time.monotonic() < deadline, "ranks do not start"
            assert self.process.poll() is None, self.process.communicate()
            self.ranks = self.children()
            time.sleep(0.002)

    def children(self):
        """Process identifiers by rank."""
        found = {}
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == self.process.pid and b"rank" in words:
                number = [w for w in words if w.startswith(b"--rank=")]
                found[int(number[0].split(b"=")[1])] = int(name)
        return [found[rank] for rank in sorted(found)]

    def ends_with(self, what, since):
        """The error, which has to match `what`."""
        _, errors = self.process.communicate(timeout=30)
        seconds = time.monotonic() - since
        assert seconds < SECONDS, f"took {seconds:.1f} s: {errors}"
        lines = [l for l in errors.splitlines() if l.startswith("error: ")]
        assert self.process.returncode == 1, (self.process.returncode, errors)
        assert len(lines) == 1 and re.search(what, lines[0]), errors
        self.leaves_nothing()

    def leaves_nothing(self):
        deadline = time.monotonic() + SECONDS
        alive = self.ranks
        while alive and time.monotonic() < deadline:
            time.sleep(0.01)
            alive = [rank for rank in alive if is_alive(rank)]
        assert not alive, f"processes {alive} are left"

    def shares_memory(self):
        """Whether all processes have it, when all have loaded."""
        holders = leftovers.holders_of_rank_memory(MARK)
        return {self.process.pid, *self.ranks} <= set(holders)


def weights_in_memory(processes):
    """Proportional set size of weights.bin in all `processes` together."""
    total = 0
    for process in processes:
        ours = False
        with open(f"/proc/{process}/smaps", encoding="utf-8") as file:
            for line in file:
                if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    ours = line.rstrip().endswith("weights.bin")
                elif ours and line.startswith("Pss:"):
                    total += int(line.split()[1]) << 10
    return total


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def main():
    artifact = sys.argv[1]
    moments = random.Random(1)

    # One copy of the weights, for all processes and both phases.
    group = Group(artifact)
    time.sleep(1)
    held = weights_in_memory([group.process.pid, *group.ranks])
    packed = os.path.getsize(os.path.join(artifact, "weights.bin"))
    assert 0.5 * packed < held <= 1.02 * packed, (held, packed)
    assert group.shares_memory()
    group.process.kill()
    group.process.communicate()
    group.leaves_nothing()

    # Each rank at random moments: while it loads, and while it works.
    for rank in [*range(1, RANKS)] * MOMENTS:
        group = Group(artifact)
        time.sleep(moments.uniform(0, 0.5))
        since = time.monotonic()
        os.kill(group.ranks[rank - 1], signal.SIGKILL)
        group.ends_with(rf"rank {rank} \(process {group.ranks[rank - 1]}\) was "
                        r"killed by signal 9 \(SIGKILL\)", since)

    # One that hangs.
    group = Group(artifact)
    time.sleep(1)
    since = time.monotonic()
    os.kill(group.ranks[1], signal.SIGSTOP)
    group.ends_with(r"rank 2 \(process \d+\) does not answer", since)

    # The launcher.
    for _ in range(3):
        group = Group(artifact)
        time.sleep(moments.uniform(0, 0.5))
        group.process.kill()
        group.process.communicate()
        group.leaves_nothing()

    # Two at once do not meet; one ends by Ctrl-C, for the whole terminal.
    first, second = Group(artifact), Group(artifact)
    time.sleep(0.5)
    for process in [*first.ranks, first.process.pid]:
        os.kill(process, signal.SIGINT)
    output, errors = first.process.communicate(timeout=30)
    assert first.process.returncode == 1 and "interrupted" in errors, errors
    first.leaves_nothing()
    assert second.process.poll() is None
    second.process.kill()
    second.process.communicate()
    second.leaves_nothing()

    left = leftovers.marked_processes(MARK)
    assert not left, f"processes {left} are left"


main()
