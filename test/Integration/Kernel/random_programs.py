#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels in C++, compiled, imported and interpreted, imported, written
as C++ and compiled again, and, those that can be, raised to loops over vectors
and compiled: all must leave the same bytes.

    random_programs.py FOLDER [SEED [COUNT]]

Needs clang++ and a CPU with AVX2. A program has numbers of all types, arrays,
structures, references, lambdas, templates, loops with break and continue, and
intrinsics. Prints OK, or the seed and the function that differs.
"""
import ctypes
import math
import os
import random
import re
import struct
import subprocess
import sys

INTEGERS = ["int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t",
            "int64_t", "uint64_t"]
FLOATS = ["float", "double"]

# What a function reads and writes, and nothing else.
PRELUDE = """#include <immintrin.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

struct Pair {
  float first;
  int32_t second;
};
struct Memory {
  int32_t i[16];
  float f[16];
  double d[8];
  uint32_t u[16];
  int8_t b[32];
  uint16_t h[16];
  int64_t l[8];
  Pair p[4];
  float v[32];
  int32_t w[32];
};
static const int16_t table[2][4] = {{1, -2, 300, 4}, {5, 60, -700}};
union Bits {
  float number;
  uint32_t bits;
};
static inline uint32_t mix(uint32_t a, uint32_t b) {
  if (a > b)
    return a - b;
  return a * 3 + b;
}
static inline float bitsOf(uint32_t a) {
  Bits bits;
  bits.bits = (a & 0x007fffff) | 0x3f800000;
  return bits.number;
}
static inline void bump(int32_t &a, const Pair &by) { a += by.second; }
static inline Pair makePair(float a, int32_t b) {
  Pair pair = {a, b};
  return pair;
}
template <int N, typename T> static inline T scaled(T a) {
  T sum = 0;
  for (int i = 0; i < N; ++i)
    sum += a;
  return sum;
}
struct Vector {
  __m256 lanes;
  explicit Vector(float a) : lanes(_mm256_set1_ps(a)) {}
  explicit Vector(__m256 a) : lanes(a) {}
  Vector operator+(const Vector &other) const {
    return Vector(_mm256_add_ps(lanes, other.lanes));
  }
  float front() const { return _mm256_cvtss_f32(lanes); }
};
"""

# Intrinsics by the type that they give: V floats, W integers, I a number.
VECTORS = {
    "V": ["_mm256_add_ps({V}, {V})", "_mm256_sub_ps({V}, {V})",
          "_mm256_mul_ps({V}, {V})", "_mm256_max_ps({V}, {V})",
          "_mm256_min_ps({V}, {V})", "_mm256_fmadd_ps({V}, {V}, {V})",
          "_mm256_fnmadd_ps({V}, {V}, {V})", "_mm256_set1_ps({F})",
          "_mm256_loadu_ps(m->v + {S})", "_mm256_cvtepi32_ps({W})",
          "_mm256_blendv_ps({V}, {V}, {V})",
          "_mm256_cmp_ps({V}, {V}, _CMP_LT_OQ)",
          "_mm256_permute2f128_ps({V}, {V}, 0x21)",
          "_mm256_shuffle_ps({V}, {V}, _MM_SHUFFLE(2, 0, 3, 1))",
          "_mm256_castsi256_ps({W})", "({V} + {V})", "_mm256_floor_ps({V})",
          "_mm256_insertf128_ps({V}, _mm256_castps256_ps128({V}), 1)"],
    "W": ["_mm256_add_epi32({W}, {W})", "_mm256_sub_epi16({W}, {W})",
          "_mm256_mullo_epi32({W}, {W})", "_mm256_xor_si256({W}, {W})",
          "_mm256_and_si256({W}, {W})", "_mm256_srli_epi32({W}, 3)",
          "_mm256_slli_epi16({W}, 5)", "_mm256_srai_epi32({W}, 7)",
          "_mm256_maddubs_epi16({W}, {W})", "_mm256_madd_epi16({W}, {W})",
          "_mm256_shuffle_epi8({W}, {W})", "_mm256_cmpgt_epi32({W}, {W})",
          "_mm256_set1_epi32({I})", "_mm256_packs_epi32({W}, {W})",
          "_mm256_loadu_si256((const __m256i *)(m->w + {S}))",
          "_mm256_castps_si256({V})", "_mm256_abs_epi8({W})",
          "_mm256_unpacklo_epi8({W}, {W})",
          "_mm256_cvtepi8_epi16(_mm256_castsi256_si128({W}))"],
    "I": ["_mm256_movemask_ps({V})", "_mm256_movemask_epi8({W})",
          "_mm_cvtsi128_si32(_mm256_castsi256_si128({W}))",
          "_mm256_extract_epi32({W}, 5)"],
}


class Program:
    """Writes one function."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}:{number}")
        self.number = number
        self.lines = []
        # From each name to its type.
        self.names = {}
        self.next = 0
        self.depth = 0
        self.in_loop = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, kind):
        self.next += 1
        return f"{kind}{self.next}"

    def variable(self, types):
        found = [n for n, t in self.names.items() if t in types]
        return self.random.choice(found) if found else None

    def index(self, size):
        return f"({self.integer(1)} & {size - 1})"

    def place(self, kinds):
        """An element of memory whose type is one of `kinds`, and that type."""
        elements = {"int32_t": ("i", 16), "float": ("f", 16),
                    "double": ("d", 8), "uint32_t": ("u", 16),
                    "int8_t": ("b", 32), "uint16_t": ("h", 16),
                    "int64_t": ("l", 8)}
        kind = self.random.choice([k for k in elements if k in kinds])
        member, size = elements[kind]
        return f"m->{member}[{self.index(size)}]", kind

    def integer(self, depth=3):
        if depth <= 0 or self.chance(0.2):
            return self.pick(
                str(self.random.randint(-100, 100)),
                f"{self.random.randint(0, 2**32 - 1)}u",
                self.variable(INTEGERS) or "7")
        sub = lambda: self.integer(depth - 1)
        choice = self.random.randrange(14)
        if choice < 4:
            return f"({sub()} {self.pick('+', '-', '*', '&', '|', '^')} {sub()})"
        if choice == 4:
            # Shifts and divisions of which C says what they give.
            return f"((uint32_t){sub()} {self.pick('<<', '>>')} ({sub()} & 15))"
        if choice == 5:
            return f"((uint32_t){sub()} {self.pick('/', '%')} " \
                   f"(((uint32_t){sub()} & 15u) + 1u))"
        if choice == 6:
            return f"({self.pick(*INTEGERS)})({sub()})"
        if choice == 7:
            return self.pick("-", "~", "!") + f"({sub()})"
        if choice == 8:
            return f"({self.condition(depth - 1)} ? {sub()} : {sub()})"
        if choice == 9:
            return f"mix({sub()}, {sub()})"
        if choice == 10:
            return f"table[{self.index(2)}][{self.index(4)}]"
        if choice == 11 and depth > 1:
            return self.vector("I", depth - 2)
        if choice == 12:
            return f"(int32_t)sizeof(Memory) + m->p[{self.index(4)}].second"
        return self.place(INTEGERS)[0]

    def floating(self, depth=3):
        if depth <= 0 or self.chance(0.2):
            return self.pick(f"{self.random.uniform(-4, 4):.3f}f",
                             f"{self.random.uniform(-4, 4):.3f}",
                             self.variable(FLOATS) or "0.5f")
        sub = lambda: self.floating(depth - 1)
        choice = self.random.randrange(11)
        if choice < 3:
            return f"({sub()} {self.pick('+', '-', '*', '/')} {sub()})"
        if choice == 3:
            return f"({self.pick('float', 'double')})({self.integer(depth - 1)})"
        if choice == 4:
            return f"(float)({sub()})"
        if choice == 5:
            return f"({self.condition(depth - 1)} ? {sub()} : {sub()})"
        if choice == 6:
            function = self.pick("fabsf", "floorf", "sqrtf", "truncf",
                                 "nearbyintf")
            return f"{function}((float){sub()})"
        if choice == 7:
            return f"bitsOf({self.integer(depth - 1)})"
        if choice == 8:
            return f"scaled<{self.random.randint(1, 4)}>((float){sub()})"
        if choice == 9 and depth > 1:
            return f"(Vector((float){sub()}) + " \
                   f"Vector({self.vector('V', depth - 2)})).front()"
        return self.place(FLOATS)[0]

    def condition(self, depth=2):
        if depth <= 0:
            return f"({self.integer(0)} {self.pick('<', '==', '>=')} " \
                   f"{self.integer(0)})"
        sub = lambda: self.condition(depth - 1)
        return self.pick(
            lambda: f"({self.integer(depth)} {self.pick('<', '>', '<=', '!=')} "
                    f"{self.integer(depth)})",
            lambda: f"({self.floating(depth)} {self.pick('<', '>=')} "
                    f"{self.floating(depth)})",
            lambda: f"({sub()} && {sub()})", lambda: f"({sub()} || {sub()})",
            lambda: f"(!{sub()})", lambda: f"({self.integer(depth)} != 0)")()

    def vector(self, kind, depth=3):
        if depth <= 0:
            known = self.variable({"V": ["__m256"], "W": ["__m256i"],
                                   "I": []}[kind])
            if known and self.chance(0.7):
                return known
            return {"V": "_mm256_loadu_ps(m->v)", "I": "3",
                    "W": "_mm256_loadu_si256((const __m256i *)m->w)"}[kind]
        text = self.random.choice(VECTORS[kind])
        out = ""
        while "{" in text:
            before, rest = text.split("{", 1)
            hole, text = rest.split("}", 1)
            filler = {"F": lambda: f"(float)({self.floating(depth - 1)})",
                      "I": lambda: f"(int32_t)({self.integer(depth - 1)})",
                      "S": lambda: self.index(16)}.get(
                          hole, lambda: self.vector(hole, depth - 1))
            out += before + filler()
        return out + text

    def emit(self, line):
        self.lines.append("  " * (self.depth + 1) + line)

    def block(self, count, in_loop=False):
        """A block of statements, whose names end with it."""
        outer = dict(self.names)
        self.depth += 1
        self.in_loop += in_loop
        for _ in range(count):
            self.statement()
        self.in_loop -= in_loop
        self.depth -= 1
        self.names = outer

    def statement(self):
        choice = self.random.randrange(18)
        nests = self.depth < 3
        if choice < 3:
            kind = self.pick(*INTEGERS, *FLOATS)
            value = self.floating() if kind in FLOATS else self.integer()
            name = self.name("x")
            self.emit(f"{kind} {name} = ({kind})({value});")
            self.names[name] = kind
        elif choice < 5:
            kind = self.pick("V", "W")
            name = self.name("v")
            value = self.vector(kind)
            kind = "__m256" if kind == "V" else "__m256i"
            self.emit(f"{kind} {name} = {value};")
            self.names[name] = kind
        elif choice < 8:
            target, kind = self.place(INTEGERS + FLOATS)
            self.emit(f"{target} {self.operator(kind)} {self.value(kind)};")
        elif choice == 8 and self.variable(INTEGERS):
            name = self.variable(INTEGERS)
            self.emit(self.pick(f"{name}++;", f"--{name};"))
        elif choice == 9 and self.variable(INTEGERS + FLOATS):
            name = self.variable(INTEGERS + FLOATS)
            kind = self.names[name]
            self.emit(f"{name} {self.operator(kind)} {self.value(kind)};")
        elif choice == 10 and self.variable(["__m256"]):
            self.emit(f"_mm256_storeu_ps(m->v + {self.index(16)}, "
                      f"{self.variable(['__m256'])});")
        elif choice == 11 and self.variable(["__m256i"]):
            self.emit(f"_mm256_storeu_si256((__m256i *)(m->w + "
                      f"{self.index(16)}), {self.variable(['__m256i'])});")
        elif choice == 12 and nests:
            self.emit(f"if {self.condition()} {{")
            self.block(self.random.randint(1, 3))
            if self.chance(0.5):
                self.emit("} else {")
                self.block(self.random.randint(1, 3))
            self.emit("}")
        elif choice == 13 and nests:
            name = self.name("i")
            end = self.random.randint(1, 6)
            hint = self.pick("", "", f"#pragma unroll {end}")
            if hint:
                self.lines.append(hint)
            self.emit(f"for (int {name} = 0; {name} < {end}; ++{name}) {{")
            # It is read, but never written to.
            self.names[name] = "counter"
            self.block(self.random.randint(1, 4), True)
            if self.chance(0.4):
                self.emit(f"  m->i[{name}] += {name};")
            self.emit("}")
            del self.names[name]
        elif choice == 13:
            # One whose index goes on behind the loop.
            name = self.name("k")
            self.emit(f"int32_t {name} = {self.random.randint(-3, 3)};")
            for _ in range(self.random.randint(1, 2)):
                step = self.random.randint(1, 4)
                self.emit(f"for (; {name} < {self.random.randint(-5, 9)}; "
                          f"{name} += {step})")
                self.emit(f"  m->i[{name} & 15] += {name};")
            self.names[name] = "int32_t"
        elif choice == 14 and nests:
            name = self.name("n")
            self.emit(f"int {name} = {self.random.randint(1, 5)};")
            if self.chance(0.5):
                self.emit(f"while ({name}-- > 0) {{")
                self.block(self.random.randint(1, 3), True)
                self.emit("}")
            else:
                self.emit("do {")
                self.block(self.random.randint(1, 3))
                self.emit(f"}} while (--{name} > 0);")
        elif choice == 15 and self.in_loop:
            self.emit(f"if {self.condition()} {self.pick('break', 'continue')};")
        elif choice == 16:
            name, argument = self.name("f"), self.name("a")
            self.names[argument] = "uint32_t"
            value = self.integer(2)
            del self.names[argument]
            self.emit(f"auto {name} = [&](uint32_t {argument}) {{ m->u[0] += "
                      f"{argument}; return (uint32_t){value}; }};")
            self.emit(f"m->u[{self.index(16)}] = {name}({self.integer(1)});")
        elif choice == 17:
            name = self.name("p")
            self.emit(f"Pair {name} = makePair((float)({self.floating(2)}), "
                      f"(int32_t)({self.integer(2)}));")
            self.emit(f"bump(m->i[{self.index(16)}], {name});")
            self.emit(f"m->p[{self.index(4)}] = {name};")
        else:
            self.emit(f"m->f[{self.index(16)}] = std::max(m->f[0], "
                      f"(float)({self.floating(2)}));")

    def operator(self, kind):
        return self.pick("=", "+=", "-=", "*=") if kind in FLOATS else \
            self.pick("=", "+=", "-=", "*=", "^=", "|=", "&=")

    def value(self, kind):
        return f"({kind})({self.floating()})" if kind in FLOATS else \
            self.integer()

    def text(self):
        for _ in range(self.random.randint(4, 12)):
            self.statement()
        return (f'extern "C" void f{self.number}(Memory *m) {{\n' +
                "\n".join(self.lines) + "\n}\n")


SIZE = (16 + 16 + 16 + 16 + 8 + 8 + 16 + 8 + 32 + 32) * 4


def fresh_memory(seed):
    """Numbers of usual sizes: as integers most floats are, too."""
    generator = random.Random(f"memory {seed}")
    memory = b"".join([
        struct.pack("<16i", *(generator.randint(-999, 999) for _ in range(16))),
        struct.pack("<16f", *(generator.uniform(-9, 9) for _ in range(16))),
        struct.pack("<8d", *(generator.uniform(-9, 9) for _ in range(8))),
        struct.pack("<16I", *(generator.getrandbits(32) for _ in range(16))),
        struct.pack("<32b", *(generator.randint(-128, 127) for _ in range(32))),
        struct.pack("<16H", *(generator.getrandbits(16) for _ in range(16))),
        struct.pack("<8q", *(generator.getrandbits(40) for _ in range(8))),
        b"".join(struct.pack("<fi", generator.uniform(-9, 9),
                             generator.randint(-9, 9)) for _ in range(4)),
        struct.pack("<32f", *(generator.uniform(-9, 9) for _ in range(32))),
        struct.pack("<32i", *(generator.getrandbits(30) for _ in range(32)))])
    assert len(memory) == SIZE
    return memory


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}\n{result.stderr}")


def compile_library(source, library):
    # Integers wrap, and floats are what they are in the source.
    run("clang++-22", "-std=gnu++17", "-O1", "-w", "-shared", "-fPIC",
        "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-mavx2",
        "-mfma", "-mf16c", source, "-o", library)
    return ctypes.CDLL(library)


def raise_kernels(folder, source):
    """The library of those functions of `source` in kernel.mlir that are raised
    completely, and their names."""
    path = lambda name: os.path.join(folder, name)
    run("sandwich-opt", path("kernel.mlir"), "--kernel-to-vector",
        "--canonicalize", "--cse", "-o", path("raised.mlir"))
    with open(path("raised.mlir"), encoding="utf-8") as file:
        names = set(re.findall(r"^  func\.func @(\w+)", file.read(), re.M))
    # What stays is left out.
    run("sandwich-import", source, "-m", "avx2", "-m", "fma", "-m", "f16c",
        *(f"--function={each}" for each in sorted(names)), "-o",
        path("some.mlir"))
    run("sandwich-opt", path("some.mlir"), "--kernel-to-vector",
        "--canonicalize", "--cse", "--loops-to-llvm", "-o", path("llvm.mlir"))
    run("mlir-translate", "--mlir-to-llvmir", path("llvm.mlir"), "-o",
        path("raised.ll"))
    run("clang-22", "-O1", "-w", "-shared", "-fPIC", "-march=x86-64-v3",
        path("raised.ll"), "-lm", "-o", path("raised.so"))
    return ctypes.CDLL(path("raised.so")), names


# Where there are floats, and of how many bytes.
FLOATS_AT = [(64, 128, 4), (128, 192, 8)] + \
    [(384 + 8 * i, 388 + 8 * i, 4) for i in range(4)] + [(416, 544, 4)]


def same(left, right):
    """Whether bytes are the same, but for those of floats that are no numbers."""
    left, right = bytearray(left), bytearray(right)
    for begin, end, size in FLOATS_AT:
        for at in range(begin, end, size):
            form = "<f" if size == 4 else "<d"
            if all(math.isnan(struct.unpack_from(form, each, at)[0])
                   for each in (left, right)):
                left[at:at + size] = right[at:at + size]
    return left == right


def main(folder, seed="1", count="40"):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    texts = [Program(seed, i).text() for i in range(int(count))]
    with open(path("original.cpp"), "w", encoding="utf-8") as file:
        file.write(PRELUDE + "\n".join(texts))
    functions = [f"--function=f{i}" for i in range(len(texts))]
    run("sandwich-import", path("original.cpp"), "-m", "avx2", "-m", "fma",
        "-m", "f16c", *functions, "-o", path("kernel.mlir"))
    run("sandwich-import", path("kernel.mlir"), "--emit=cpp", "-o",
        path("again.cpp"))
    original = compile_library(path("original.cpp"), path("original.so"))
    again = compile_library(path("again.cpp"), path("again.so"))
    raised, names = raise_kernels(folder, path("original.cpp"))
    for i in range(len(texts)):
        results = []
        for library in original, again:
            memory = ctypes.create_string_buffer(fresh_memory(i), SIZE)
            library[f"f{i}"](memory)
            results.append(memory.raw)
        with open(path("memory"), "wb") as file:
            file.write(fresh_memory(i))
        run("sandwich-interpret-kernel", path("kernel.mlir"), f"f{i}", "-a",
            "file:" + path("memory"))
        with open(path("memory"), "rb") as file:
            results.append(file.read())
        if f"f{i}" in names:
            memory = ctypes.create_string_buffer(fresh_memory(i), SIZE)
            pointer = ctypes.cast(memory, ctypes.c_void_p)
            raised[f"f{i}"](pointer, pointer, ctypes.c_int64(0),
                            ctypes.c_int64(SIZE), ctypes.c_int64(1))
            results.append(memory.raw)
        for what, result in zip(("written again", "interpreted", "raised"),
                                results[1:]):
            if not same(results[0], result):
                differs = [j for j in range(SIZE) if results[0][j] != result[j]]
                raise SystemExit(f"seed {seed}: f{i} differs {what}, from byte "
                                 f"{differs[0]}")
    print(f"OK, {len(names)} of {len(texts)} raised")


if __name__ == "__main__":
    main(*sys.argv[1:])
