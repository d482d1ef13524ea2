#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels, each with something that may be got wrong where widths become
parameters: what their text computes for all of its parameters is compared with
what clang makes of the source, and which parameters there are with what is right.

    widened_sources.py SOURCE FOLDER
"""
import ctypes
import os
import subprocess
import sys

import numpy as np

SOURCE, FOLDER = sys.argv[1:]
sys.path.insert(0, SOURCE + "/python")
sys.path.append(os.path.dirname(os.path.realpath(__file__)))
import kernels  # noqa: E402
import sandwich  # noqa: E402
import widened  # noqa: E402

RANDOM = np.random.default_rng(1)
HEADERS = "#include <immintrin.h>\n#include <math.h>\n#include <stddef.h>\n" \
          "#include <stdint.h>\n#define LOAD(p) _mm256_loadu_ps(p)\n" \
          "#define ADD(a, b) _mm256_add_ps(a, b)\n" \
          "#define SET(x) _mm256_set1_ps(x)\n" \
          "#define ZERO _mm256_setzero_ps()\n" \
          "static inline float sum(__m256 v) { float x[8]; _mm256_storeu_ps(x, v);" \
          " return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));" \
          " }\n"


def floats(count):
    return RANDOM.standard_normal(count).astype(np.float32)


def zeros(count):
    return np.zeros(count, np.float32)


# What it is about, the parameters, the source of `void f(...)`, its arguments.
SOURCES = [
    ("a sum", "LANES",
     "void f(const float *x, float *y, int n) { __m256 a = ZERO;"
     "for (int i = 0; i < n; i += 8) a = ADD(a, LOAD(x + i)); y[0] = sum(a); }",
     [floats(160), zeros(1), 160]),
    ("sums that are multiplied and added", "LANES",
     "void f(const float *x, const float *y, float *z, int n) {"
     "__m256 a = ZERO, c = ZERO; for (int i = 0; i < n; i += 8) {"
     "a = ADD(a, LOAD(x + i)); c = ADD(c, LOAD(y + i)); }"
     "z[0] = sum(_mm256_fmadd_ps(a, SET(0.5f), c)); }",
     [floats(160), floats(160), zeros(1), 160]),
    ("lanes of a sum that are chosen", "",
     "void f(const float *x, float *z, int n) { __m256 a = ZERO, c = ZERO;"
     "for (int i = 0; i < n; i += 8) { a = ADD(a, LOAD(x + i));"
     "c = ADD(c, _mm256_mul_ps(LOAD(x + i), LOAD(x + i))); }"
     "__m256 m = _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), SET(3),"
     "_CMP_LT_OQ); z[0] = sum(_mm256_blendv_ps(a, ADD(a, c), m)); }",
     None),
    ("the largest, of numbers below zero", "LANES",
     "void f(const float *x, float *y, int n) { __m256 a = SET(-INFINITY);"
     "for (int i = 0; i < n; i += 8) a = _mm256_max_ps(a, LOAD(x + i));"
     "float l[8], m = -INFINITY; _mm256_storeu_ps(l, a);"
     "m = l[0]; m = m > l[1] ? m : l[1]; m = m > l[2] ? m : l[2];"
     "m = m > l[3] ? m : l[3]; m = m > l[4] ? m : l[4]; m = m > l[5] ? m : l[5];"
     "m = m > l[6] ? m : l[6]; m = m > l[7] ? m : l[7]; y[0] = m; }",
     [-np.abs(floats(72)) - 1, zeros(1), 72]),
    ("copies", "LANES",
     "void f(const float *x, float *y, float *z, int n) { __m256 a = ZERO, b = ZERO;"
     "for (int i = 0; i < n; i += 16) { __m256 u = LOAD(x + i), v = LOAD(x + i + 8);"
     "_mm256_storeu_ps(y + i, ADD(u, u)); _mm256_storeu_ps(y + i + 8, ADD(v, v));"
     "a = _mm256_fmadd_ps(u, u, a); b = _mm256_fmadd_ps(v, v, b); }"
     "z[0] = sum(ADD(a, b)); }",
     [floats(160), zeros(160), zeros(1), 160]),
    ("a copy that is none", "",
     "void f(const float *x, float *z, int n) { __m256 a = ZERO, b = ZERO;"
     "for (int i = 0; i < n; i += 16) { a = ADD(a, LOAD(x + i));"
     "b = _mm256_sub_ps(b, LOAD(x + i + 8)); } z[0] = sum(ADD(a, b)); }",
     [floats(160), zeros(1), 160]),
    ("copies whose sums go apart", "",
     "void f(const float *x, float *z, int n) { __m256 a = ZERO, b = ZERO;"
     "for (int i = 0; i < n; i += 16) { a = ADD(a, LOAD(x + i));"
     "b = ADD(b, LOAD(x + i + 8)); } z[0] = sum(a); z[1] = sum(b); }",
     [floats(160), zeros(2), 160]),
    ("copies that read what they wrote, in another order", "",
     "void f(const float *x, float *y, float *z, int n) {"
     "for (int i = 0; i < n; i += 16) { _mm256_storeu_ps(y + i, LOAD(x + i));"
     "_mm256_storeu_ps(z + i, LOAD(y + i)); _mm256_storeu_ps(z + i + 8, LOAD(y + i + 8));"
     "_mm256_storeu_ps(y + i + 8, LOAD(x + i + 8)); } }",
     [floats(160), floats(160), zeros(160), 160]),
    ("a place of another turn", "",
     "void f(float *x, int n) { for (int i = 0; i + 8 < n; i += 8)"
     "_mm256_storeu_ps(x + i + 1, LOAD(x + i)); }",
     [floats(161), 161]),
    ("what is not there times infinity", "LANES",
     "void f(const float *x, float *z, int n) { __m256 a = ZERO;"
     "for (int i = 0; i < n; i += 8) a = ADD(a, _mm256_mul_ps(LOAD(x + i),"
     "SET(INFINITY))); z[0] = sum(a); }",
     [np.abs(floats(24)) + 1, zeros(1), 24]),
    ("turns at once", "ROWS",
     "void f(const float *x, float *y, int n) { for (int j = 0; j < n; ++j)"
     "y[j] = x[j] * x[j] + x[j + 1]; }",
     [floats(100), zeros(99), 99]),
    ("turns that write places of others", "",
     "void f(const float *x, const float *w, float *y, int n) {"
     "for (int j = 0; j < n; ++j) for (int k = 0; k < 4; k += 2)"
     "y[j + k] = x[j] * w[k]; }",
     [floats(20), floats(4), zeros(24), 20]),
    ("turns that depend on the one before", "",
     "void f(float *x, int n) { for (int j = 1; j < n; ++j) x[j] += x[j - 1]; }",
     [floats(50), 50]),
    ("vectors of rows, and numbers of other rows", "LANES ROWS",
     "void f(const float *x, float *y, float *z, int n) { __m256 a = ZERO;"
     "for (int j = 0; j < n; ++j) y[j] = x[8 * j];"
     "for (int i = 0; i < n; i++) a = ADD(a, LOAD(x + 8 * i)); z[0] = sum(a); }",
     None),
    ("groups, each with its own result", "ROWS",
     "void f(const float *x, float *y, int n) { float t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32; float m = 0;"
     "for (int j = 0; j < s; ++j) m = m > x[i + j] ? m : x[i + j]; t += m; }"
     "y[0] = t; }",
     [floats(100), zeros(1), 100]),
    ("groups that write by number", "ROWS",
     "void f(const float *x, float *y, int n) { for (int i = 0; i < n; i += 32) {"
     "int s = n - i < 32 ? n - i : 32; float m = 0;"
     "for (int j = 0; j < s; ++j) m = m > x[i + j] ? m : x[i + j]; y[i / 32] = m; } }",
     [floats(100), zeros(4), 100]),
    ("groups whose turns are counted", "ROWS",
     "void f(const float *x, float *y, int n) { float c = 0, t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "for (int j = 0; j < s; ++j) t += x[i + j]; c += 1.0f; } y[0] = c; y[1] = t; }",
     [floats(100), zeros(2), 100]),
    ("tiles that are only summed up", "ROWS BLOCK",
     "void f(const float *x, float *y, int n) { float t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "for (int j = 0; j < s; ++j) t += x[i + j]; } y[0] = t; }",
     [floats(100), zeros(1), 100]),
    ("a softmax, online", "ROWS BLOCK",
     "void f(const float *x, float *y, int n) { float m = -1e30f, t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "float l = m; for (int j = 0; j < s; ++j) l = x[i + j] > l ? x[i + j] : l;"
     "t *= expf(m - l); for (int j = 0; j < s; ++j) t += expf(x[i + j] - l); m = l; }"
     "y[0] = t; y[1] = m; }",
     [floats(100), zeros(2), 100]),
    ("a softmax that is scaled too late", "ROWS",
     "void f(const float *x, float *y, int n) { float m = -1e30f, t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "float l = m; for (int j = 0; j < s; ++j) l = x[i + j] > l ? x[i + j] : l;"
     "for (int j = 0; j < s; ++j) t += expf(x[i + j] - l); t *= expf(m - l); m = l; }"
     "y[0] = t; y[1] = m; }",
     [floats(100), zeros(2), 100]),
    ("a sum of each turn that begins with that before", "",
     "void f(const float *x, float *y, int n) { float t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32; float a = t;"
     "for (int j = 0; j < s; ++j) t = a + x[i + j]; } y[0] = t; }",
     [floats(100), zeros(1), 100]),
    ("a softmax of another largest number", "ROWS",
     "void f(const float *x, float *y, int n) { float m = -1e30f, t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "float old = m; for (int j = 0; j < s; ++j) m = old > x[i + j] ? old : x[i + j];"
     "t *= expf(old - m); for (int j = 0; j < s; ++j) t += expf(x[i + j] - m); }"
     "y[0] = t; }",
     [floats(100), zeros(1), 100]),
    ("a softmax of two powers", "ROWS",
     "void f(const float *x, float *y, int n) { float m = -1e30f, t = 0;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "float old = m; for (int j = 0; j < s; ++j) m = m > x[i + j] ? m : x[i + j];"
     "t *= exp2f(old - m); for (int j = 0; j < s; ++j) t += expf(x[i + j] - m); }"
     "y[0] = t; }",
     [floats(100), zeros(1), 100]),
    ("sums of which a part is scaled", "LANES ROWS",
     "void f(const float *x, const float *v, float *y, int n) { float m = -1e30f;"
     "for (int i = 0; i < n; i += 32) { int s = n - i < 32 ? n - i : 32;"
     "float old = m; for (int j = 0; j < s; ++j) m = m > x[i + j] ? m : x[i + j];"
     "float c = expf(old - m); for (int k = 0; k < 2; ++k)"
     "_mm_storeu_ps(y + 8 * k, _mm_mul_ps(_mm_loadu_ps(y + 8 * k), _mm_set1_ps(c)));"
     "for (int j = 0; j < s; ++j) { __m256 w = SET(expf(x[i + j] - m));"
     "for (int k = 0; k < 2; ++k) _mm256_storeu_ps(y + 8 * k, ADD(LOAD(y + 8 * k),"
     "_mm256_mul_ps(w, LOAD(v + 16 * (i + j) + 8 * k)))); } } }",
     [floats(70), floats(70 * 16), zeros(16), 70]),
    ("counting by a bound that is computed", "LANES ROWS",
     "void f(const float *x, float *y, int n) { __m256 a = ZERO; int i = 0;"
     "for (; i < n - 7; i += 8) a = ADD(a, LOAD(x + i)); float t = sum(a);"
     "for (; i < n; ++i) t += x[i]; y[0] = t; }",
     [floats(83), zeros(1), 83]),
    ("counting by sizes", "LANES ROWS",
     "void f(const float *x, float *y, size_t n) { __m256 a = ZERO; size_t i = 0;"
     "for (; i + 8 <= n; i += 8) a = ADD(a, LOAD(x + i)); float t = sum(a);"
     "for (; i < n; ++i) t += x[i]; y[0] = t; }",
     [floats(83), zeros(1), 83]),
    ("counting bytes down", "LANES",
     "void f(size_t bytes, const float *x, float *y) {"
     "for (; bytes >= 32; bytes -= 32) { _mm256_storeu_ps(y, ADD(LOAD(x), LOAD(x)));"
     "x += 8; y += 8; } }",
     [4 * 80, floats(80), zeros(80)]),
    ("counting up to a number, from below zero", "",
     "void f(const float *x, float *y) { float t = 0;"
     "for (int i = -8; i != 0; ++i) t += x[i + 8]; y[0] = t; }",
     [floats(8), zeros(1)]),
    ("counts whose difference is no int", "",
     "void f(float *y, int a, int b) { float c = 0;"
     "for (int i = a; i <= b; i += 1000000) c += 1; y[0] = c; }",
     [zeros(1), -2000000000, 1000000000]),
    ("a size that is no size", "",
     "void f(const float *x, float *y, int64_t m) { float t = 0;"
     "for (size_t i = m; i < 20; i += 4) t += x[i]; y[0] = t; }",
     None),
    ("a size before the first one", "",
     "void f(const float *x, float *y, size_t m) { float t = 0;"
     "for (size_t i = 0; i - 1 < m; ++i) t += x[i]; y[0] = t; }",
     None),
    ("an index that is cut off", "",
     "void f(const float *x, float *y) { y[0] = x[(uint8_t)(16 * 17)]; }",
     [floats(300), zeros(1)]),
    ("a byte that overflows", "",
     "void f(const float *x, float *y, int8_t c) { int8_t d = c; ++d;"
     "y[0] = x[d + 150]; }",
     [floats(400), zeros(1), 127]),
    ("numbers that are repeated more than once", "",
     "void f(int n, const float *x, float *y) { __m256 m = LOAD(y);"
     "for (int i = 0; i < n; ++i) m = ADD(_mm256_mul_ps(m, SET(x[i])), SET(x[i]));"
     "_mm256_storeu_ps(y, m); }",
     [10, floats(10), zeros(8)]),
    ("what is doubled again and again", "",
     "void f(const float *x, float *y, long k) {" + "k = k + k;" * 40 +
     "float v = x[k & 7];" + "v = v * v;" * 40 + "y[0] = v; }",
     [floats(8) / 8, zeros(1), 1]),
]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for number, (about, names, source, arguments) in enumerate(SOURCES):
        path = os.path.join(FOLDER, f"source{number}")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(HEADERS + source + "\n")
        machine = [word for each in ("avx2", "fma") for word in ("-m", each)]
        result = subprocess.run(
            ["sandwich-import", path + ".c", "--function", "f", *machine, "--emit=text",
             "-o", path + ".kernel"], capture_output=True, text=True, timeout=120)
        if arguments is None:
            # What is refused is so with a reason, and what is not is not compared.
            assert result.returncode in (0, 1), (about, result)
            continue
        if result.returncode:
            sys.exit(f"{about}: {result.stderr}")
        kernel = sandwich.load_kernel(path + ".kernel")
        text = widened.Text(path + ".kernel")
        if " ".join(text.parameters) != names:
            sys.exit(f"{about}: its parameters are {list(text.parameters)}")
        subprocess.run(["clang-22", "-O2", "-w", "-shared", "-fPIC", "-mavx2", "-mfma",
                        "-ffp-contract=off", path + ".c", "-lm", "-o", path + ".so"],
                       check=True)
        expected = kernels.copy(arguments)
        ctypes.CDLL(path + ".so").f(
            *(ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray)
              else ctypes.c_int64(each) for each in expected))
        for count, chosen in enumerate(text.choices()):
            runs = [kernel, kernel.interpret] if count % 7 == 0 else [kernel]
            for run in runs:
                given = text.shaped(kernels.copy(arguments))
                run(*given, **chosen)
                for one, other in zip(given, expected):
                    if isinstance(other, np.ndarray) and not np.allclose(
                            one.reshape(-1), other, 2e-5, 2e-5, equal_nan=True):
                        sys.exit(f"{about} {chosen}: {one} is not {other}")
        print(about)
    print("OK")


main()
