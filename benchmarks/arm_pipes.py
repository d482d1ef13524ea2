#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What share of the multiply pipes the micro-kernels for ARM use, by llvm-mca.

    arm_pipes.py MODEL [--at-least=PERCENT] [--sandwich-compile=FILE]

Compiles MODEL to assembly for each target of 64-bit ARM and takes the micro-kernel
for many rows: of those that read packed input, if any do, the one with most rows, of
equals the one that multiplies most in a round, in the fewest instructions. llvm-mca
tells how many cycles a round takes on a CPU, and how many its multiplications would
take alone; the quotient is printed. With --at-least, ends with an error where one is
lower, but for A64FX, which decodes four instructions a cycle and takes them for
addresses; widening for SVE may use a point less. Needs no ARM CPU: the figures are those
of LLVM's models of the CPUs, which know nothing of caches.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Target, element type of weights, features for llvm-mca, and its names of CPUs that
# have them.
CASES = (
    ("aarch64-neon", "f32", "", "neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 tsv110"),
    ("aarch64-neon", "bf16", "", "neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 tsv110"),
    ("aarch64-neon-bf16", "bf16", "+bf16", "neoverse-n2 neoverse-v1 neoverse-v2"),
    ("aarch64-sve", "f32", "+sve", "neoverse-v1 a64fx"),
    ("aarch64-sve", "bf16", "+sve", "neoverse-v1 a64fx"),
    ("aarch64-sve-bf16", "bf16", "+sve,+bf16", "neoverse-n2 neoverse-v1 neoverse-v2"),
)
# How many points less than --at-least a case may use: a quarter of a cycle in 53 would
# take V1's 90.4% below 90.
LOWER = {("aarch64-sve", "bf16"): 1}
# The one that docs/Targets.md has the figures of; an older one goes on without CPUs that
# it does not know.
OLDEST_LLVM = 22
MULTIPLICATION = re.compile(r"\s(fmla|fmad|bfmmla)\s")
ROUNDS = 200


def inner_loops(body):
    """Those of `body`, lines of a function: lines from a label to a branch back to it
    between which no other loop is."""
    labels = {}
    loops = []
    for number, line in enumerate(body):
        if label := re.match(r"(\.L\w+):", line):
            labels[label.group(1)] = number
        branch = re.match(r"\s(?:b|b\.\w+|cbn?z|tbn?z)\s.*?(\.L\w+)$", line)
        if branch and branch.group(1) in labels:
            loops.append((labels[branch.group(1)], number))
    return [body[first:last + 1] for first, last in loops
            if not any(first <= begin and end <= last and (begin, end) != (first, last)
                       for begin, end in loops)]


def instructions(lines):
    return [line for line in lines if re.match(r"\s[a-z]", line)]


def multiplications(lines):
    return [line for line in lines if MULTIPLICATION.match(line)]


def best_loop(assembly):
    """The name of the micro-kernel for many rows, and its loop over K."""
    lines = [line.split("//")[0].rstrip() for line in assembly.split("\n")]
    best = None
    name = body = None
    for line in lines:
        if start := re.match(r"(ARM_\w+?_(\d+)x\d+\w*):$", line):
            name, body = start.group(1), []
            rows = (not name.endswith("_packed"), -int(start.group(2)))
        elif name and re.match(r"\.Lfunc_end", line):
            for loop in inner_loops(body):
                order = (rows, -len(multiplications(loop)), len(instructions(loop)))
                if best is None or order < best[0]:
                    best = order, name, instructions(loop)
            name = None
        elif name:
            body.append(line)
    if best is None:
        sys.exit("arm_pipes.py: no micro-kernel has a loop")
    return best[1], best[2]


def find_simulator():
    """An llvm-mca that is new enough: the first on the PATH may be of an LLVM that the
    distribution has for other ends."""
    versions = []
    for name in ("llvm-mca", f"llvm-mca-{OLDEST_LLVM}",
                 f"/usr/lib/llvm-{OLDEST_LLVM}/bin/llvm-mca"):
        if path := shutil.which(name):
            told = subprocess.run([path, "--version"], text=True, capture_output=True)
            if version := re.search(r"LLVM version (\d+)", told.stdout):
                versions.append(int(version.group(1)))
                if versions[-1] >= OLDEST_LLVM:
                    return path
    there = f"there is one of LLVM {max(versions)}" if versions else "there is none"
    sys.exit(f"arm_pipes.py: needs llvm-mca of LLVM {OLDEST_LLVM} or later; {there}")


def simulate(simulator, lines, cpu, features, figure):
    """What llvm-mca says of rounds of a loop of `lines`: its `figure`."""
    done = subprocess.run(
        [simulator, "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}",
         f"-mattr={features}", f"-iterations={ROUNDS}"],
        input="\n".join(lines) + "\n", text=True, capture_output=True)
    found = re.search(rf"^{figure}: +([\d.]+)", done.stdout, re.MULTILINE)
    if not found:
        sys.exit(f"arm_pipes.py: llvm-mca for {cpu}: {done.stderr}")
    return float(found.group(1))


def main():
    binaries = os.path.join(os.path.dirname(__file__), "../build/release/bin")
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT")
    parser.add_argument("--sandwich-compile", metavar="FILE",
                        default=os.path.join(binaries, "sandwich-compile"))
    arguments = parser.parse_args()
    simulator = find_simulator()
    low = 0
    for target, dtype, features, cpus in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.s")
            # It has said what is wrong.
            if subprocess.run(
                    [arguments.sandwich_compile, arguments.model, "-q",
                     f"--target={target}", f"--dtype={dtype}", "--threads=1",
                     "--emit=asm", "-o", path]).returncode != 0:
                sys.exit(1)
            with open(path) as file:
                name, loop = best_loop(file.read())
        multiplied = multiplications(loop)
        least = arguments.at_least - LOWER.get((target, dtype), 0)
        print(f"{target} {dtype}: {name}, {len(multiplied)} multiplications in "
              f"{len(loop)} instructions")
        for cpu in cpus.split():
            takes = simulate(simulator, loop, cpu, features, "Total Cycles") / ROUNDS
            limit = simulate(simulator, multiplied, cpu, features, "Block RThroughput")
            share = 100 * limit / takes
            low += cpu != "a64fx" and share < least
            print(f"  {cpu:12} {takes:6.1f} cycles, {limit:5.1f} of multiplications "
                  f"alone: {share:5.1f}%")
    if low:
        sys.exit(f"arm_pipes.py: {low} too low for {arguments.at_least:g}%")


if __name__ == "__main__":
    main()
