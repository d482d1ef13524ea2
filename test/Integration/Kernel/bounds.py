# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that reach beyond their arrays, with bounds that are checked.

    bounds.py SOURCE
"""
import os
import sys

import numpy as np

SOURCE = sys.argv[1]
sys.path.insert(0, SOURCE + "/python")
import sandwich  # noqa: E402

RANDOM = np.random.default_rng(1)

# What reaches beyond, in which line, of arrays of 37 and 5 times 37 numbers.
WRONG = {
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    for i in blocks(n, LANES):
        y[i] = x[i + 1]
""": 3,
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    for i in blocks(0, n + 3, LANES):
        v = x[i] * 2.0
        y[i] = v
""": 3,
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    for i in range(n):
        y[i - 1] = x[i]
""": 3,
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    for row in range(rows + 1):
        for i in blocks(n, LANES):
            y[i] = m[row, i]
""": 4,
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    few = scratch(f32, 2 * LANES)
    for i in blocks(n, LANES):
        few[i] = x[i]
        y[i] = few[i]
""": 4,
    """def wrong(x: f32[n], m: f32[rows, n], y: f32[n], LANES: tune(4, 8, 16)):
    for i in range(0, n, 4):
        rows_here = block(i, 4)
        y[block(i, LANES, n)] = sum(m[rows_here, block(i, LANES, n)], axis=0)
""": 4,
}


def guarded(*shape):
    """An array, and all of memory around it."""
    size = int(np.prod(shape))
    memory = np.full(size + 2048, 7.0, np.float32)
    inside = memory[1024:1024 + size]
    inside[...] = RANDOM.standard_normal(size)
    return memory, inside.reshape(shape)


def main():
    for text, line in WRONG.items():
        kernel = sandwich.Kernel(text)
        for lanes in 4, 8, 16:
            memories, arrays = zip(guarded(37), guarded(5, 37), guarded(37))
            before = [each.copy() for each in memories]
            try:
                kernel.checked(*arrays, LANES=lanes)
                sys.exit(f"nothing is found in\n{text}")
            except sandwich.Error as error:
                if f"line {line} " not in str(error):
                    sys.exit(f"{error}, but it is line {line} of\n{text}")
            for old, now, size in zip(before, memories, (37, 5 * 37, 37)):
                old[1024:1024 + size] = now[1024:1024 + size]
                if not np.array_equal(old, now):
                    sys.exit(f"memory beside an array was written by\n{text}")
    # What is right computes the same, checked or not.
    for name in "rms_norm", "softmax", "contiguous_attention":
        kernel = sandwich.load_kernel(os.path.join(SOURCE, f"kernels/{name}.kernel"))
        if name == "contiguous_attention":
            arguments = [RANDOM.standard_normal(shape).astype(np.float32)
                         for shape in ((5, 32), (32, 70), (70, 32))] + [0.2]
            given = {"DIM": 32, "CAUSAL": 1}
            result = np.zeros((5, 32), np.float32)
        else:
            arguments = [RANDOM.standard_normal((5, 70)).astype(np.float32)]
            if name == "rms_norm":
                arguments += [RANDOM.standard_normal(70).astype(np.float32), 1e-5]
            given = {}
            result = np.zeros((5, 70), np.float32)
        kernel(*arguments, result, **given)
        expected = result.copy()
        result[...] = 0
        kernel.checked(*arguments, result, **given)
        if not np.array_equal(result, expected):
            sys.exit(f"{name} computes something else where bounds are checked")
    print("OK")


main()
