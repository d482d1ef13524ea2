#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that were written in C and C++ for one instruction set, raised to text
whose widths, rows and blocks are parameters: whatever these are, the kernels
compute what numpy does.

    widened.py check SOURCE FOLDER               compiled, and run by Python
    widened.py compile FOLDER TARGET CLANG_OPTION...   for another CPU
    widened.py run FOLDER TARGET

`run` needs nothing of Sandwich, so that it may run emulated.
"""
import ctypes
import itertools
import os
import pickle
import re
import sys

import numpy as np

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
import kernels  # noqa: E402

# What is a parameter of a kernel, and how far sums of floats may be off, as a
# part of the largest number.
EXPECTED = {
    "dot": (["LANES", "ROWS"], 2e-5),
    "exponentials": (["LANES"], 2e-6),
    "rms_norm": (["LANES"], 2e-6),
    "attention": (["LANES", "ROWS", "BLOCK_N"], 4e-6),
}


class Text:
    """A kernel's text in a file, and what it says."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        head = self.text.split("tune(")[0]
        self.arguments = re.findall(r"(\w+): \w+(?:\[.*?\])?[,)]", head)
        tuned = re.findall(r"(\w+): tune\(([^)]*)\)", self.text)
        self.parameters = {name: [int(each) for each in numbers.split(", ")]
                           for name, numbers in tuned}

    @classmethod
    def of(cls, folder, source, function, features):
        """That of one of the kernels of this folder."""
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, function + ".kernel")
        kernels.run("sandwich-import", os.path.join(kernels.INPUTS, source),
                    "--function", function, "--emit=text", "-o", path,
                    *(word for each in features for word in ("-m", each)))
        text = cls(path)
        assert list(text.parameters) == EXPECTED[function][0], text.parameters
        return text

    def choices(self, count=None):
        """Of all parameters: every one, or about so many."""
        every = list(itertools.product(*self.parameters.values()))
        count = count or len(every)
        step = max(1, len(every) // count)
        return [dict(zip(self.parameters, each)) for each in every[::step]]

    def shaped(self, arguments):
        """Arrays as large as the text says of them."""
        result = []
        for name, each in zip(self.arguments, arguments):
            if isinstance(each, np.ndarray):
                sizes = re.search(rf"\b{name}: \w+\[([^\]]*)\]", self.text)
                sizes = sizes.group(1).split(", ")
                each = each.reshape(-1, *map(int, sizes[1:]))
            result.append(each)
        return result


def compare(function, choice, computed, expected):
    error = np.abs(computed.reshape(np.shape(expected)) - expected).max(initial=0)
    largest = np.abs(expected).max(initial=1e-30)
    if not error <= EXPECTED[function][1] * max(1, largest):
        sys.exit(f"{function} {choice}: error {error} of {largest}")


def check(source, folder):
    sys.path.insert(0, source + "/python")
    import sandwich
    for file, function, features, cases in kernels.KERNELS:
        if function not in EXPECTED:
            continue
        text = Text.of(folder, file, function, features)
        kernel = sandwich.load_kernel(text.path)
        for arguments, result, expected in cases():
            arguments = text.shaped(arguments)
            for number, choice in enumerate(text.choices(24)):
                # Python takes its time.
                for run in (kernel, kernel.interpret)[:1 + (number % 16 == 0)]:
                    arguments[result][...] = 0
                    run(*arguments, **choice)
                    compare(function, choice, arguments[result], expected)
        print(function)
    print("OK")


def compile_kernels(folder, target, *options):
    saved = []
    for file, function, features, cases in kernels.KERNELS:
        if function not in EXPECTED:
            continue
        text = Text.of(folder, file, function, features)
        for number, choice in enumerate(text.choices(4)):
            path = os.path.join(folder, f"{function}.{target}.{number}")
            kernels.run("sandwich-compile-kernel", text.path, "--target", target,
                        *(f"--parameter={name}={value}"
                          for name, value in choice.items()),
                        "--emit=object", "-o", path + ".o")
            kernels.run("clang-22", "-shared", *options, path + ".o", "-lm", "-o",
                        path + ".so")
            for arguments, result, expected in cases():
                saved.append((path + ".so", function, choice,
                              text.shaped(arguments), result, expected))
    with open(os.path.join(folder, f"{target}.cases"), "wb") as file:
        pickle.dump(saved, file)


def call(code, function, arguments):
    """By pointers to numbers, and to what describes memory."""
    words = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            strides = [step // each.itemsize for step in each.strides]
            words.append((ctypes.c_int64 * (3 + 2 * each.ndim))(
                each.ctypes.data, each.ctypes.data, 0, *each.shape, *strides))
        elif isinstance(each, float):
            words.append(ctypes.c_float(each))
        else:
            words.append(ctypes.c_int64(each))
    code[f"sandwich_kernel_{function}"](
        (ctypes.c_void_p * len(words))(*map(ctypes.addressof, words)))


def run_kernels(folder, target):
    with open(os.path.join(folder, f"{target}.cases"), "rb") as file:
        saved = pickle.load(file)
    for path, function, choice, arguments, result, expected in saved:
        call(ctypes.CDLL(path), function, arguments)
        compare(function, choice, arguments[result], expected)
    print(*EXPECTED, sep="\n")
    print("OK")


if __name__ == "__main__":
    {"check": check, "compile": compile_kernels,
     "run": run_kernels}[sys.argv[1]](*sys.argv[2:])
