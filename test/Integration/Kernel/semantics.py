#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of Inputs/semantics.cpp, compiled, interpreted, written again,
and raised where they can be, on the same memory.

    semantics.py FOLDER
"""
import ctypes
import os
import re
import sys

sys.path.append(os.path.dirname(os.path.realpath(__file__)))
from random_programs import compile_library, raise_kernels, run

SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                      "Inputs/semantics.cpp")
COUNT = 64


def fresh_memory():
    return (ctypes.c_int32 * COUNT)(*(i * 7 % 23 - 6 for i in range(COUNT)))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    with open(SOURCE, encoding="utf-8") as file:
        names = re.findall(r'extern "C" void (\w+)\(', file.read())
    run("sandwich-import", SOURCE, "-m", "avx2", "-o", path("kernel.mlir"),
        *("--function=" + name for name in names))
    run("sandwich-import", path("kernel.mlir"), "--emit=cpp", "-o",
        path("again.cpp"))
    libraries = [compile_library(source, library) for source, library in
                 ((SOURCE, path("original.so")),
                  (path("again.cpp"), path("again.so")))]
    raised, raised_names = raise_kernels(folder, SOURCE)
    for name in names:
        memory = fresh_memory()
        with open(path("memory"), "wb") as file:
            file.write(bytes(memory))
        run("sandwich-interpret-kernel", path("kernel.mlir"), name, "-a",
            "file:" + path("memory"))
        with open(path("memory"), "rb") as file:
            interpreted = list((ctypes.c_int32 * COUNT).from_buffer_copy(
                file.read()))
        original, again = [], []
        for library, result in zip(libraries, (original, again)):
            memory = fresh_memory()
            library[name](memory)
            result.extend(memory)
        assert interpreted == original, f"{name} interpreted: {interpreted} " \
            f"instead of {original}"
        assert again == original, f"{name} written again: {again} instead of " \
            f"{original}"
        if name in raised_names:
            memory = fresh_memory()
            pointer = ctypes.cast(memory, ctypes.c_void_p)
            raised[name](pointer, pointer, ctypes.c_int64(0),
                         ctypes.c_int64(4 * COUNT), ctypes.c_int64(1))
            assert list(memory) == original, f"{name} raised: {list(memory)} " \
                f"instead of {original}"
        print(name, "raised" if name in raised_names else "")
    print("OK")


main(sys.argv[1])
