#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that were written in C and C++ for one instruction set, raised to text
whose widths, rows and blocks are parameters: for all of them, compiled and run by
Python, they compute what their source does.

    widened.py SOURCE FOLDER
"""
import itertools
import math
import os
import re
import sys

import numpy as np

SOURCE, FOLDER = sys.argv[1:]
sys.path.insert(0, SOURCE + "/python")
sys.path.append(os.path.dirname(os.path.realpath(__file__)))
import kernels  # noqa: E402
import sandwich  # noqa: E402

# The kernel, and what is a parameter of it.
EXPECTED = {
    "dot.c": ["LANES", "ROWS"],
    "exponentials.c": ["LANES"],
    "rms_norm.cpp": ["LANES"],
    "attention.cpp": ["LANES", "ROWS", "BLOCK_N"],
}


def shaped(text, name, array):
    """`array` as large as the text says of the argument `name`."""
    sizes = re.search(rf"\b{name}: \w+\[([^\]]*)\]", text).group(1).split(", ")
    array = array.reshape(-1)
    return array.reshape(-1, int(sizes[1])) if len(sizes) > 1 else array


def choices(parameters):
    every = list(itertools.product(*parameters.values()))
    # All pairs of neighbors, but not everything.
    return [dict(zip(parameters, each)) for each in every[:: max(1, len(every) // 24)]]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for source, function, features, cases in kernels.KERNELS:
        path = os.path.join(FOLDER, function + ".kernel")
        if source not in EXPECTED:
            continue
        kernels.run("sandwich-import", os.path.join(kernels.INPUTS, source),
                    "--function", function, "--emit=text", "-o", path,
                    *(word for each in features for word in ("-m", each)))
        kernel = sandwich.load_kernel(path)
        names = re.findall(r"(\w+): \w+(?:\[.*?\])?[,)]", kernel.text.split("tune(")[0])
        parameters = {name: [int(each) for each in numbers.split(", ")] for name, numbers
                      in re.findall(r"(\w+): tune\(([^)]*)\)", kernel.text)}
        assert list(parameters) == EXPECTED[source], parameters
        count = 0
        for arguments, result, expected in cases():
            arguments = [shaped(kernel.text, name, each)
                         if isinstance(each, np.ndarray) else each
                         for name, each in zip(names, arguments)]
            for each in choices(parameters):
                runs = [kernel]
                if count % 16 == 0:
                    runs.append(kernel.interpret)
                for run in runs:
                    arguments[result][...] = 0
                    run(*arguments, **each)
                    computed = arguments[result].reshape(np.shape(expected))
                    error = np.abs(computed - expected).max(initial=0)
                    largest = np.abs(expected).max(initial=1e-30)
                    if not error <= 4e-6 * math.sqrt(max(1, len(arguments[1]))
                                                     if source == "dot.c" else 1) \
                            * largest:
                        sys.exit(f"{function} {each}: error {error} of {largest}")
                count += 1
        print(function, count)
    print("OK")


main()
