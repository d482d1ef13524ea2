#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for AVX2 and AVX-512 as code for another CPU, raised to vectors of no
instruction set, compared with what the interpreter computes.

    raised.py compile FOLDER CPU COMPILER_OPTION...
    raised.py run FOLDER CPU

`run` needs nothing of Sandwich, so that it may run emulated.
"""
import ctypes
import os
import pickle
import sys

import numpy

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
import kernels

# Those whose powers of e are polynomials when compiled.
APPROXIMATE = {"attention": 2e-6}


def library(folder, function, cpu):
    return os.path.join(folder, f"{function}.{cpu}.so")


def compile_kernels(folder, cpu, *options):
    os.makedirs(folder, exist_ok=True)
    saved = {}
    for source, function, features, cases in kernels.KERNELS:
        path = os.path.join(folder, function)
        kernels.import_kernel(source, function, features, path + ".mlir")
        kernels.run("sandwich-opt", path + ".mlir", "--kernel-to-vector",
                    "--canonicalize", "--cse", "--loops-to-llvm", "-o",
                    path + ".llvm.mlir")
        kernels.run("mlir-translate", "--mlir-to-llvmir", path + ".llvm.mlir",
                    "-o", path + ".ll")
        kernels.run("clang-22", "-O2", "-w", "-shared", "-fPIC", *options,
                    path + ".ll", "-lm", "-o", library(folder, function, cpu))
        saved[function] = []
        for arguments, _, _ in cases():
            results = kernels.copy(arguments)
            kernels.interpret(path + ".mlir", function, results, folder)
            saved[function].append((arguments, results))
    with open(os.path.join(folder, "cases"), "wb") as file:
        pickle.dump(saved, file)


def call(code, function, arguments):
    """Calls it with memrefs where there are arrays."""
    words = []
    for argument in arguments:
        if isinstance(argument, numpy.ndarray):
            pointer = ctypes.c_void_p(argument.ctypes.data)
            words += [pointer, pointer, ctypes.c_int64(0),
                      ctypes.c_int64(argument.nbytes), ctypes.c_int64(1)]
        elif isinstance(argument, float):
            words.append(ctypes.c_float(argument))
        else:
            words.append(ctypes.c_int64(argument))
    code[function](*words)


def run_kernels(folder, cpu):
    with open(os.path.join(folder, "cases"), "rb") as file:
        saved = pickle.load(file)
    for function, cases in saved.items():
        code = ctypes.CDLL(library(folder, function, cpu))
        for arguments, expected in cases:
            results = kernels.copy(arguments)
            call(code, function, results)
            for one, other in zip(results, expected):
                if function in APPROXIMATE:
                    assert numpy.allclose(one, other, APPROXIMATE[function],
                                          APPROXIMATE[function]), function
                else:
                    assert numpy.array_equal(one, other), function
        print(function, len(cases))
    print("OK")


if __name__ == "__main__":
    {"compile": compile_kernels, "run": run_kernels}[sys.argv[1]](*sys.argv[2:])
