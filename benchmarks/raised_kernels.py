#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast hand-written kernels are that were raised and compiled for this CPU,
beside what clang -O3 makes of their source, in turn: with the lanes that they were
written with (--kernel-to-vector), and as text whose parameters are tuned. The
attention of kernels/ stands beside the one that was raised.

    raised_kernels.py [--rounds N] [--tokens N...]

The kernels are those of test/Integration/Kernel, for AVX2 and AVX-512.
"""
import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.append(os.path.join(SOURCE, "test/Integration/Kernel"))
import kernels
import raised
import widened

random = numpy.random.default_rng(0)

# Calls `entry` again and again, for Python takes a microsecond for one call.
DRIVER = r"""
#include <stdint.h>
#include <stddef.h>
#include <time.h>
double measure(void (*entry)(void *const *), void *const *arguments, int calls) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < calls; ++i)
    entry(arguments);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (end.tv_sec - begin.tv_sec + 1e-9 * (end.tv_nsec - begin.tv_nsec)) / calls;
}
"""
# Entries of the sources' functions: what their arguments are.
ENTRIES = {
    "dot": "*(int *)a[0], a[1], a[2], a[3]",
    "exponentials": "*(size_t *)a[0], a[1], a[2], a[3], a[4]",
    "rms_norm": "(float *)a[0], (float *)a[1], (float *)a[2], *(float *)a[3], "
                "*(int *)a[4], *(int *)a[5]",
    "dot_4_8": "*(int *)a[0], a[1], a[2], a[3]",
    "attention": "(float *)a[0], (float *)a[1], (float *)a[2], (float *)a[3], "
                 "*(int *)a[4], *(float *)a[5]",
}


def floats(*shape):
    return random.standard_normal(shape).astype(numpy.float32)


def aligned(argument):
    """An array at the begin of a cache line, as tensors are; else as it is."""
    if not isinstance(argument, numpy.ndarray):
        return argument
    memory = numpy.empty(argument.nbytes + 64, numpy.uint8)
    first = -memory.ctypes.data % 64
    copy = memory[first:first + argument.nbytes].view(argument.dtype)
    copy[...] = argument.reshape(-1)
    return copy.reshape(argument.shape)


def cases(tokens):
    """The arguments of each function, of the size of a step's work."""
    x, y, _ = kernels.quantized_rows(4096)
    zeros = kernels.zeros
    yield "dot", [65536, zeros(1), floats(65536), floats(65536)]
    yield "exponentials", [4 * 40000, floats(40000), floats(1) + 4, zeros(40000),
                           zeros(1)]
    yield "rms_norm", [zeros(64, 2048), floats(64, 2048), floats(2048), 1e-5, 64,
                       2048]
    yield "dot_4_8", [32 * 4096, zeros(1), x, y]
    for count in tokens:
        yield "attention", [floats(64), floats(count, 64), floats(count, 64),
                            zeros(64), count, 0.125]


def pointers(words):
    return (ctypes.c_void_p * len(words))(*words)


class Benchmark:
    def __init__(self, folder):
        self.folder = folder
        self.kept = []
        driver = os.path.join(folder, "driver")
        with open(driver + ".c", "w", encoding="utf-8") as file:
            file.write(DRIVER)
        kernels.run("clang-22", "-O2", "-shared", "-fPIC", driver + ".c", "-o",
                    driver + ".so")
        self.measure = ctypes.CDLL(driver + ".so").measure
        self.measure.restype = ctypes.c_double

    def number(self, value):
        kind = ctypes.c_float if isinstance(value, float) else ctypes.c_int64
        self.kept.append(kind(value))
        return ctypes.addressof(self.kept[-1])

    def of_source(self, source, function):
        """What clang makes of it, as an entry with plain pointers."""
        path = os.path.join(self.folder, function + ".entry")
        isC = source.endswith(".c")
        with open(path + (".c" if isC else ".cpp"), "w", encoding="utf-8") as file:
            file.write(f'#include "{os.path.join(kernels.INPUTS, source)}"\n'
                       + ("" if isC else 'extern "C" ')
                       + f"void entry(void *const *a) {{ {function}("
                       + ENTRIES[function] + "); }\n")
        kernels.run("clang-22" if isC else "clang++-22", "-O3", "-w", "-shared",
                    "-fPIC", "-DNDEBUG", "-march=native", file.name, "-lm", "-o",
                    path + ".so")
        return ctypes.CDLL(path + ".so").entry

    def plain(self, arguments):
        return pointers([each.ctypes.data if isinstance(each, numpy.ndarray)
                         else self.number(each) for each in arguments])

    def described(self, arguments):
        words = []
        for each in arguments:
            if isinstance(each, numpy.ndarray):
                strides = [step // each.itemsize for step in each.strides]
                self.kept.append((ctypes.c_int64 * (3 + 2 * each.ndim))(
                    each.ctypes.data, each.ctypes.data, 0, *each.shape, *strides))
                words.append(ctypes.addressof(self.kept[-1]))
            else:
                words.append(self.number(each))
        return pointers(words)

    def of_lanes(self, function):
        """Raised to vectors: its arguments are those of memrefs."""
        path = os.path.join(self.folder, function + ".call")
        kinds = {"dot": "immm", "exponentials": "lmmmm", "rms_norm": "mmmfii",
                 "dot_4_8": "immm", "attention": "mmmmif"}[function]
        types = {"i": "int", "l": "int64_t", "f": "float",
                 "m": "void *, void *, int64_t, int64_t, int64_t"}
        given = {"i": "*(int *)a[{0}]", "l": "*(int64_t *)a[{0}]",
                 "f": "*(float *)a[{0}]",
                 "m": "a[{0}], a[{0}], 0, INT64_MAX, 1"}
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(
                "#include <stdint.h>\n"
                f"void {function}({', '.join(types[each] for each in kinds)});\n"
                f"void entry(void *const *a) {{ {function}("
                + ", ".join(given[each].format(number)
                            for number, each in enumerate(kinds)) + "); }\n")
        library = raised.library(self.folder, function, "native")
        kernels.run("clang-22", "-O2", "-w", "-shared", "-fPIC", file.name, library,
                    "-Wl,-rpath," + self.folder, "-o", path + ".so")
        return ctypes.CDLL(path + ".so").entry

    def tuned(self, path, function, options):
        """The entry of a text, tuned, and what was said of that."""
        library = path + ".so"
        result = subprocess.run(["sandwich-compile-kernel", path, "--tune", "-o",
                                 library, *options],
                                capture_output=True, text=True, check=True)
        said = re.match(r"\w+: (.*?), .*measurements in ([\d.]+) s", result.stderr)
        entry = ctypes.CDLL(library)[f"sandwich_kernel_{function}"]
        return entry, said.group(1), float(said.group(2))

    def compare(self, runs, rounds):
        """The best microseconds of each (entry, pointers)."""
        best = [float("inf")] * len(runs)
        for round in range(rounds):
            for number, (entry, given) in enumerate(runs):
                calls = 1
                while round == 0 and self.measure(entry, given, calls) * calls < 2e-3:
                    calls *= 2
                seconds = self.measure(entry, given, max(calls, 50))
                best[number] = min(best[number], seconds * 1e6)
        return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096],
                        help="of attention")
    arguments = parser.parse_args()
    print("| kernel | clang -O3, us | lanes as written, us | times as fast | any width, "
          "tuned, us | times as fast | parameters | tuned in, s |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        raised.compile_kernels(folder, "native", "-march=native", "-O3")
        benchmark = Benchmark(folder)
        known = {each[1]: each for each in kernels.KERNELS}
        for function, given in cases(arguments.tokens):
            given = list(map(aligned, given))
            source, _, features, _ = known[function]
            runs = [(benchmark.of_source(source, function), benchmark.plain(given)),
                    (benchmark.of_lanes(function), benchmark.plain(given))]
            how, seconds = "", ""
            if function in widened.EXPECTED:
                text = widened.Text.of(folder, source, function, features)
                shaped = text.shaped(given)
                sizes = []
                for name, each in zip(text.arguments, shaped):
                    if isinstance(each, numpy.ndarray):
                        size = re.search(rf"\b{name}: \w+\[(\w+)", text.text).group(1)
                        sizes.append(f"--size={size}={each.shape[0]}")
                    elif isinstance(each, int):
                        sizes.append(f"--size={name}={each}")
                entry, how, seconds = benchmark.tuned(text.path, function, sizes)
                runs.append((entry, benchmark.described(shaped)))
            builtin = ""
            if function == "attention":
                tokens = given[4]
                q, keys, values, out = given[:4]
                copy = os.path.join(folder, "builtin.kernel")
                shutil.copy(os.path.join(SOURCE, "kernels/contiguous_attention.kernel"), copy)
                entry, choice, _ = benchmark.tuned(
                    copy, "contiguous_attention",
                    ["--parameter=DIM=64", "--parameter=CAUSAL=0", "--size=queries=1",
                     f"--size=keys={tokens}"])
                columns = aligned(keys.T.copy())
                runs.append((entry, benchmark.described(
                    [q.reshape(1, 64), columns, values, 0.125, out.reshape(1, 64)])))
                builtin = choice
            best = benchmark.compare(runs, arguments.rounds)
            line = [function + (f", {given[4]} tokens" if builtin else ""),
                    f"{best[0]:.2f}", f"{best[1]:.2f}", f"{best[0] / best[1]:.2f}"]
            if how:
                line += [f"{best[2]:.2f}", f"{best[0] / best[2]:.2f}", how,
                         f"{seconds:.1f}"]
            else:
                line += [""] * 4
            print("| " + " | ".join(line) + " |", flush=True)
            if builtin:
                print(f"| attention of kernels/, {given[4]} tokens | | | | "
                      f"{best[3]:.2f} | {best[0] / best[3]:.2f} | {builtin} | |",
                      flush=True)


main()
