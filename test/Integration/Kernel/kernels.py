#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hand-written kernels: what they compute interpreted, and where this CPU has
their instructions compiled as they are and as they are written again, compared
with numpy and with each other, bit by bit.

    kernels.py FOLDER
"""
import ctypes
import os
import subprocess
import sys

import numpy

INPUTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "Inputs")
AVX2 = ["avx2", "fma", "f16c"]
AVX512 = AVX2 + ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
random = numpy.random.default_rng(1)


def floats(*shape):
    return random.standard_normal(shape).astype(numpy.float32)


def zeros(*shape):
    return numpy.zeros(shape, numpy.float32)


def quantized_rows(blocks):
    """Blocks of 4 and of 8 bits, and their values."""
    scales = random.uniform(0.001, 0.1, (2, blocks)).astype(numpy.float16)
    scales[0, 0] = numpy.float16(3e-6)  # One that is subnormal.
    small = random.integers(0, 16, (blocks, 32))
    large = random.integers(-127, 128, (blocks, 32)).astype(numpy.int8)
    packed = (small[:, :16] | small[:, 16:] << 4).astype(numpy.uint8)
    x = numpy.concatenate([scales[0][:, None].view(numpy.uint8), packed], 1)
    y = numpy.concatenate([scales[1][:, None].view(numpy.uint8),
                           large.view(numpy.uint8)], 1)
    exact = (scales.astype(float).prod(0) *
             ((small - 8) * large.astype(int)).sum(1)).sum()
    return x, y, exact


def dot_cases():
    for n in 0, 1, 31, 32, 100:
        x, y = floats(n), floats(n)
        yield [n, zeros(1), x, y], 1, [x.astype(float) @ y]


def exponentials_cases():
    for n in 1, 16, 31, 32, 77:
        x = floats(n) * 4
        exact = numpy.exp((x - x.max()).astype(float))
        yield [4 * n, x, x.max(keepdims=True), zeros(n), zeros(1)], 3, exact


def rms_norm_cases():
    x, weight = floats(3, 48), floats(48)
    mean = (x.astype(float) ** 2).mean(1, keepdims=True)
    yield [zeros(3, 48), x, weight, 1e-5, 3, 48], 0, \
        x / numpy.sqrt(mean + 1e-5) * weight


def quantized_dot_cases():
    for blocks in 1, 7:
        x, y, exact = quantized_rows(blocks)
        yield [32 * blocks, zeros(1), x, y], 1, [exact]


def attention_cases():
    for tokens in 1, 32, 45:
        q, keys, values = floats(64), floats(tokens, 64), floats(tokens, 64)
        scores = keys.astype(float) @ q / 8
        weights = numpy.exp(scores - scores.max())
        yield [q, keys, values, zeros(64), tokens, 0.125], 3, \
            weights @ values / weights.sum()


# The file, the function, what it needs, and its cases: arguments, which of
# them it writes to, and what should be there.
KERNELS = [("dot.c", "dot", AVX2, dot_cases),
           ("exponentials.c", "exponentials", AVX512, exponentials_cases),
           ("rms_norm.cpp", "rms_norm", AVX2, rms_norm_cases),
           ("quantized_dot.c", "dot_4_8", AVX2, quantized_dot_cases),
           ("attention.cpp", "attention", AVX512, attention_cases)]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}\n{result.stderr}")


def compile_library(source, library, features):
    compiler = "clang-22" if source.endswith(".c") else "clang++-22"
    run(compiler, "-O2", "-w", "-shared", "-fPIC", "-DNDEBUG",
        "-ffp-contract=off", *("-m" + each for each in features), source, "-lm",
        "-o", library)
    return ctypes.CDLL(library)


def call(library, function, arguments):
    def convert(argument):
        if isinstance(argument, numpy.ndarray):
            return argument.ctypes.data_as(ctypes.c_void_p)
        if isinstance(argument, float):
            return ctypes.c_float(argument)
        return ctypes.c_size_t(argument)
    # C++ names of functions say what they take.
    name = function if hasattr(library, function) else MANGLED[function]
    library[name](*map(convert, arguments))


MANGLED = {"rms_norm": "_Z8rms_normPfPKfS1_fii",
           "attention": "_Z9attentionPKfS0_S0_Pfif"}


def interpret(kernel, function, arguments, folder):
    command = ["sandwich-interpret-kernel", kernel, function]
    files = []
    for number, argument in enumerate(arguments):
        if not isinstance(argument, numpy.ndarray):
            command += ["-a", str(argument)]
            continue
        path = os.path.join(folder, f"argument{number}")
        argument.tofile(path)
        files.append((argument, path))
        command += ["-a", "file:" + path]
    run(*command)
    for argument, path in files:
        argument.flat = numpy.fromfile(path, argument.dtype)


def copy(arguments):
    return [numpy.copy(each) if isinstance(each, numpy.ndarray) else each
            for each in arguments]


def import_kernel(source, function, features, output):
    run("sandwich-import", os.path.join(INPUTS, source), "--function", function,
        "-o", output, *(word for each in features for word in ("-m", each)))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(next((line for line in file if line.startswith("flags")),
                         "").split())
    for source, function, features, cases in KERNELS:
        path = os.path.join(INPUTS, source)
        kernel = os.path.join(folder, source + ".mlir")
        again = os.path.join(folder, source + ".again.cpp")
        import_kernel(source, function, features, kernel)
        run("sandwich-import", kernel, "--emit=cpp", "-o", again)
        libraries = []
        if flags.issuperset(features):
            libraries = [compile_library(text, f"{kernel}.{i}.so", features)
                         for i, text in enumerate([path, again])]
        for arguments, written, expected in cases():
            interpreted = copy(arguments)
            interpret(kernel, function, interpreted, folder)
            error = numpy.abs(interpreted[written] - expected).max()
            size = max(numpy.abs(expected).max(), 1)
            assert error < 1e-5 * size, f"{function}: {error} of {size}"
            for library in libraries:
                compiled = copy(arguments)
                call(library, function, compiled)
                for one, other in zip(interpreted, compiled):
                    assert numpy.array_equal(one, other), f"{function} differs"
        print(function, "as C++ computes it" if libraries else "interpreted")
    print("OK")


if __name__ == "__main__":
    main(sys.argv[1])
