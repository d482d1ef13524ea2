#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast hand-written kernels are that were raised to loops over vectors and
compiled for this CPU, beside what clang -O3 makes of their source, in turn.

    raised_kernels.py [--rounds N]

The kernels are those of test/Integration/Kernel, for AVX2 and AVX-512.
"""
import argparse
import ctypes
import os
import sys
import tempfile
import time

import numpy

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.append(os.path.join(SOURCE, "test/Integration/Kernel"))
import kernels
import raised

random = numpy.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype(numpy.float32)


def cases():
    """The arguments of each function, of the size of a step's work."""
    x, y, _ = kernels.quantized_rows(4096)
    zeros = kernels.zeros
    return {
        "dot": [65536, zeros(1), floats(65536), floats(65536)],
        "exponentials": [4 * 40000, floats(40000), floats(1) + 4,
                         zeros(40000), zeros(1)],
        "rms_norm": [zeros(64, 2048), floats(64, 2048), floats(2048), 1e-5, 64,
                     2048],
        "dot_4_8": [32 * 4096, zeros(1), x, y],
        "attention": [floats(64), floats(4096, 64), floats(4096, 64), zeros(64),
                      4096, 0.125],
    }


def seconds(call):
    begin = time.perf_counter()
    for _ in range(20):
        call()
    return (time.perf_counter() - begin) / 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print("| kernel | clang -O3, µs | raised, µs | |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        raised.compile_kernels(folder, "native", "-march=native", "-O3")
        for source, function, _, _ in kernels.KERNELS:
            library = os.path.join(folder, function + ".so")
            kernels.run("clang-22" if source.endswith(".c") else "clang++-22",
                        "-O3", "-w", "-shared", "-fPIC", "-DNDEBUG",
                        "-march=native", os.path.join(kernels.INPUTS, source),
                        "-lm", "-o", library)
            original = ctypes.CDLL(library)
            code = ctypes.CDLL(raised.library(folder, function, "native"))
            arguments = cases()[function]
            calls = [lambda: kernels.call(original, function, arguments),
                     lambda: raised.call(code, function, arguments)]
            best = [min(times) for times in zip(*(
                [seconds(call) for call in calls] for _ in range(rounds)))]
            print(f"| {function} | {best[0] * 1e6:.1f} | {best[1] * 1e6:.1f} | "
                  f"{best[0] / best[1]:.2f} times |")


main()
