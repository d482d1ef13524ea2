#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tuning the parameters of the library's kernels is worth on this machine: each
kernel as untuned, and with the best of its choices, on one core and random numbers.

    kernel_parameters.py [--seconds S] [KERNEL...]

Programs are those of SANDWICH_BIN, or on the PATH.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# Of a model of 1 to 3 billion weights: one token, and a prompt.
CASES = {
    "rms_norm": [("rows=1", "channels=2048"), ("rows=256", "channels=2048")],
    "layer_norm": [("rows=1", "channels=1024"), ("rows=256", "channels=1024")],
    "softmax": [("rows=1", "channels=32000"), ("rows=256", "channels=512")],
    "silu_mul": [("rows=1", "channels=5504"), ("rows=256", "channels=5504")],
    "add": [("rows=1", "channels=2048"), ("rows=256", "channels=2048")],
    "contiguous_attention": [("queries=1", "keys=1024"), ("queries=16", "keys=1024"),
                             ("queries=256", "keys=256"), ("queries=512", "keys=2048")],
}
CONSTANTS = {"contiguous_attention": ("DIM=64", "CAUSAL=1")}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30,
                        help="the most for one kernel and size (%(default)s)")
    parser.add_argument("kernel", nargs="*", choices=[[], *CASES],
                        help="all by default")
    arguments = parser.parse_args()
    program = shutil.which("sandwich-compile-kernel", path=os.environ.get(
        "SANDWICH_BIN", os.environ["PATH"]))
    if not program:
        sys.exit("error: sandwich-compile-kernel is not to be found; set SANDWICH_BIN")
    print("| kernel | sizes | untuned | tuned | times as fast | parameters | measured | "
          "seconds |\n|---|---|---|---|---|---|---|---|")
    for kernel in arguments.kernel or CASES:
        for sizes in CASES[kernel]:
            command = [program, f"{SOURCE}/kernels/{kernel}.kernel", "--tune",
                       f"--seconds={arguments.seconds}"]
            command += [f"--parameter={each}" for each in CONSTANTS.get(kernel, ())]
            command += [f"--size={each}" for each in sizes]
            result = subprocess.run(command, capture_output=True, text=True)
            told = re.search(r": (.*), (\S+) us a call, untuned (\S+) us "
                             r"\((\d+) measurements in (\S+) s", result.stderr)
            if result.returncode != 0 or not told:
                sys.exit(f"{' '.join(command)}: {result.stderr}")
            best, untuned = float(told[2]), float(told[3])
            print(f"| `{kernel}` | {', '.join(sizes)} | {untuned:.4g} us | {best:.4g} us "
                  f"| {untuned / best:.2f} | {told[1]} | {told[4]} | {told[5]} |",
                  flush=True)


if __name__ == "__main__":
    main()
