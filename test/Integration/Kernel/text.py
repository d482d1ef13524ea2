# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the kernels of the library with numpy.

    text.py SOURCE
"""
import math
import sys
import threading

import numpy as np

SOURCE = sys.argv[1]
sys.path.insert(0, SOURCE + "/python")
import sandwich  # noqa: E402

RANDOM = np.random.default_rng(1)


def random(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def check(name, kernel, arguments, output, expected, tolerance, **parameters):
    for run in kernel, kernel.interpret:
        output[...] = 0
        run(*arguments, **parameters)
        result = from_bf16(output) if output.dtype == np.uint16 else output
        error = np.abs(result.astype(np.float64) - expected).max()
        if not error <= tolerance * max(1e-30, np.abs(expected).max()):
            sys.exit(f"{name} {parameters}: error {error}")


def check_rms_norm(kernel):
    for rows, channels in (1, 1), (3, 7), (5, 31), (2, 64), (3, 333):
        for lanes in 8, 16, 32, 64:
            for kind in "f32", "f16", "bf16":
                x = random(rows, channels)
                if kind == "bf16":
                    x = to_bf16(x)
                elif kind == "f16":
                    x = x.astype(np.float16)
                exact = (from_bf16(x) if kind == "bf16" else x).astype(np.float64)
                weight, y = random(channels), np.zeros_like(x)
                mean = (exact**2).mean(1, keepdims=True)
                check("rms_norm", kernel, (x, weight, 1e-5, y), y,
                      exact / np.sqrt(mean + 1e-5) * weight,
                      {"f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}[kind], LANES=lanes)


def check_layer_norm(kernel):
    for rows, channels in (1, 2), (3, 7), (5, 31), (2, 64), (3, 333):
        for lanes in 8, 16, 32, 64:
            x = random(rows, channels) + np.float32(100)
            weight, bias, y = random(channels), random(channels), np.zeros_like(x)
            exact = x.astype(np.float64)
            centered = exact - exact.mean(1, keepdims=True)
            variance = (centered**2).mean(1, keepdims=True)
            check("layer_norm", kernel, (x, weight, bias, 1e-5, y), y,
                  centered / np.sqrt(variance + 1e-5) * weight + bias, 3e-4,
                  LANES=lanes)


def check_softmax(kernel):
    for rows, channels in (1, 1), (3, 7), (5, 31), (2, 64), (3, 333):
        for lanes in 8, 16, 32, 64:
            x = 10 * random(rows, channels)
            y = np.zeros_like(x)
            weight = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
            check("softmax", kernel, (x, y), y,
                  weight / weight.sum(1, keepdims=True), 1e-5, LANES=lanes)


def check_silu_mul(kernel):
    for lanes in 8, 16, 32, 64:
        gate, up = random(3, 77), random(3, 77)
        y = np.zeros_like(gate)
        check("silu_mul", kernel, (gate, up, y), y,
              gate / (1 + np.exp(-gate.astype(np.float64))) * up, 1e-6, LANES=lanes)


def check_rotate(kernel):
    for half in 3, 8, 16, 40:
        for lanes in 8, 16, 32:
            x, table = random(3, 2, 2 * half), random(3, 2 * half)
            y = np.zeros_like(x)
            cosine, sine = table[:, None, :half], table[:, None, half:]
            lower, upper = x[..., :half], x[..., half:]
            check("rotate", kernel, (x, table, y), y,
                  np.concatenate([lower * cosine - upper * sine,
                                  upper * cosine + lower * sine], -1),
                  1e-6, HALF=half, LANES=lanes)


def check_contiguous_attention(kernel):
    for queries, keys, dim, causal in ((1, 1, 8, 0), (1, 17, 64, 1), (5, 5, 64, 1),
                                       (13, 40, 20, 1), (9, 33, 32, 0)):
        for rows in 1, 2, 4, 8:
            for keys_at_once, lanes in (16, 8), (64, 64), (32, 16):
                query, key = random(queries, dim), random(dim, keys)
                value, y = random(keys, dim), np.zeros((queries, dim), np.float32)
                scores = query.astype(np.float64) @ key * dim**-0.5
                if causal:
                    seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
                    scores = np.where(seen, scores, -np.inf)
                weight = np.exp(scores - scores.max(1, keepdims=True))
                check("contiguous_attention", kernel, (query, key, value, dim**-0.5, y), y,
                      weight @ value / weight.sum(1, keepdims=True), 2e-6, DIM=dim,
                      CAUSAL=causal, ROWS=rows, KEYS=keys_at_once, LANES=lanes)


def paged(keys, values, table, blocks, pair):
    """Keys and values [heads, positions, dim] as a cache with its blocks in any order."""
    heads, positions, dim = keys.shape
    key = np.full((blocks, heads, dim // pair, pair, 16), np.nan, np.float32)
    value = np.full((blocks, heads, 16, pair, dim // pair), np.nan, np.float32)
    for position in range(positions):
        block, place = table[position // 16], position % 16
        key[block, ..., place] = keys[:, position].reshape(heads, -1, pair)
        value[block, :, place] = values[:, position].reshape(heads, -1, pair).swapaxes(1, 2)
    return key, value


class PagedAttention:
    """Random arguments of attention, and what they give."""

    def __init__(self, tokens, heads, group, dim, context, causal, kind):
        blocks, pair = (context + 15) // 16, 2 if kind == "bf16" else 1
        self.shape = tokens, heads, group, dim
        table = np.random.default_rng(3).permutation(blocks + 2)[:blocks].astype(np.int32)
        query = random(tokens, heads, group, dim)
        keys, values = random(heads, context, dim), random(heads, context, dim)
        scales = np.zeros((2, blocks + 2, heads, 16 if kind == "i8" else 0), np.float32)
        if kind == "bf16":
            keys, values = from_bf16(to_bf16(keys)), from_bf16(to_bf16(values))
        elif kind == "f16":
            keys, values = keys.astype(np.float16), values.astype(np.float16)
        elif kind == "i8":
            numbers = np.random.default_rng(4)
            scales[:] = numbers.uniform(0.001, 0.02, scales.shape)
            keys = numbers.integers(-127, 128, keys.shape).astype(np.float32)
            values = numbers.integers(-127, 128, values.shape).astype(np.float32)
        key, value = paged(keys, values, table, blocks + 2, pair)
        if kind == "bf16":
            key, value = to_bf16(key), to_bf16(value)
        elif kind in ("f16", "i8"):
            to = np.float16 if kind == "f16" else np.int8
            with np.errstate(invalid="ignore"):
                key, value = key.astype(to), value.astype(to)
        keys, values = keys.astype(np.float64), values.astype(np.float64)
        if kind == "i8":
            place = table[np.arange(context) // 16], slice(None), np.arange(context) % 16
            keys *= scales[0][place].T[..., None]
            values *= scales[1][place].T[..., None]
        scores = np.einsum("thgd,hpd->thgp", query, keys) * dim**-0.5
        if causal:
            seen = np.arange(context) <= np.arange(tokens)[:, None] + context - tokens
            scores = np.where(seen[:, None, None, :], scores, -np.inf)
        self.largest = scores.max(-1, keepdims=True)
        weight = np.exp(scores - self.largest)
        self.sums = np.einsum("thgp,hpd->thgd", weight, values)
        self.total = weight.sum(-1, keepdims=True)
        self.constants = dict(GROUP=group, DIM=dim, PAIRS=dim // pair, PAIR=pair,
                              SCALES=scales.shape[-1], CAUSAL=causal, TOKENS=tokens)
        self.inputs = query, key, value, *scales, table, context, dim**-0.5
        self.y = np.zeros_like(query)

    def partial(self, width):
        return np.zeros((*self.shape[:-1], width), np.float32)

    def queries(self, rows):
        """As many, in whole tiles."""
        return (self.shape[0] * self.shape[2] + rows - 1) // rows * rows


def check_attention(kernel):
    for tokens, heads, group, dim, context, causal, kind, parameters in (
            (1, 2, 1, 8, 1, 1, "f32", dict(ROWS=1, KEYS=1, CHUNK=2, PARTS=2, CHANNELS=4)),
            (1, 3, 4, 64, 100, 1, "f32", dict(ROWS=4, KEYS=2, CHUNK=4, LANES=64)),
            (1, 2, 4, 32, 70, 1, "bf16", dict(ROWS=2, KEYS=3, CHUNK=3, CHANNELS=4, PARTS=4)),
            (1, 2, 2, 32, 90, 1, "i8", dict(ROWS=2, KEYS=2, CHUNK=2, CHANNELS=4)),
            (5, 1, 3, 64, 37, 1, "f16", dict(ROWS=5, KEYS=2, CHUNK=2)),
            (7, 1, 2, 96, 50, 1, "bf16", dict(ROWS=3, KEYS=1, CHUNK=2, LANES=32)),
            (6, 1, 2, 20, 33, 0, "bf16", dict(ROWS=6, KEYS=1, CHUNK=8, LANES=16)),
            (9, 2, 1, 20, 20, 1, "i8", dict(ROWS=4, KEYS=1, CHUNK=1, LANES=16))):
        case = PagedAttention(tokens, heads, group, dim, context, causal, kind)
        constants = dict(case.constants, BLOCK=16, HEADS=heads,
                         QUERIES=case.queries(parameters["ROWS"]), STREAMS=int(tokens == 1))
        check("attention", kernel, (*case.inputs, case.y, case.partial(0)), case.y,
              case.sums / case.total, 4e-6, PARTIAL=0, **constants, **parameters)
        partial = case.partial(dim + 2)
        check("attention", kernel, (*case.inputs, case.y, partial), partial,
              np.concatenate([case.sums, case.largest, case.total], -1), 1e-5,
              PARTIAL=dim + 2, **constants, **parameters)
    # Memory of its own would be too small, or some channels read twice.
    for name, value, message in (("QUERIES", 10, "QUERIES are no whole tiles of ROWS"),
                                 ("CHANNELS", 16, "PAIRS are no multiple of CHANNELS")):
        wrong = {**constants, **parameters, "PARTIAL": dim + 2, name: value}
        for run in kernel, kernel.interpret:
            try:
                run(*case.inputs, case.y, partial, **wrong)
            except sandwich.Error as error:
                assert message in str(error), error
            else:
                sys.exit("an assertion that does not hold is no error")


def check_matrix_attention(kernel):
    for tokens, heads, group, dim, context, causal, kind, parameters in (
            (1, 1, 1, 16, 1, 1, "bf16", dict(ROWS=1, KEYS=1, CHUNK=1, COLUMNS=8, STEP=2)),
            (5, 2, 3, 64, 37, 1, "bf16", dict(ROWS=4, KEYS=2, CHUNK=2, COLUMNS=32, STEP=8)),
            (9, 1, 2, 80, 70, 1, "bf16", dict(ROWS=6, KEYS=1, CHUNK=3, COLUMNS=40, STEP=4)),
            (13, 1, 1, 32, 13, 1, "bf16", dict(ROWS=12, KEYS=2, CHUNK=4, COLUMNS=16, STEP=16)),
            (6, 1, 2, 64, 33, 0, "bf16", dict(ROWS=6, KEYS=2, CHUNK=2, COLUMNS=32, STEP=1)),
            (7, 2, 2, 48, 50, 1, "i8", dict(ROWS=5, KEYS=2, CHUNK=4, COLUMNS=48, STEP=8)),
            (7, 1, 2, 48, 40, 1, "f32", dict(ROWS=2, KEYS=1, CHUNK=2, COLUMNS=24, STEP=4))):
        case = PagedAttention(tokens, heads, group, dim, context, causal, kind)
        constants = dict(case.constants, QUERIES=case.queries(parameters["ROWS"]),
                         CHANNEL_PAIRS=dim // 2,
                         PANELS=parameters["CHUNK"] // parameters["KEYS"])
        check("matrix_attention", kernel, (*case.inputs, case.y, case.partial(0)), case.y,
              case.sums / case.total, 1.5e-2, PARTIAL=0, **constants, **parameters)
    # What is no number is told, and makes none of what others see.
    query = case.inputs[0].copy()
    query[3, 0, 1, 5] = np.nan
    kernel(query, *case.inputs[1:], case.y, case.partial(0), PARTIAL=0, **constants,
           **parameters)
    assert np.isnan(case.y[3, 0, 1]).all(), case.y[3, 0, 1]
    assert np.isfinite(np.delete(case.y, 3, 0)).all() and np.isfinite(case.y[3, 0, 0]).all()


MATMUL = """
def product(a: T[rows, 2 * PAIRS], b: T[2 * PAIRS, N], y: f32[rows, N], T: type(f32, f16, bf16),
            PAIRS: constant, N: constant, IN_PAIRS: constant, COMPUTED: constant, ROWS: tune(1, 3, 16)):
    k = block(0, 2 * PAIRS)
    n = block(0, N)
    weights = scratch(T, PAIRS, 2, N, pairs=True)
    for p in range(PAIRS):
        weights[p, block(0, 2), n] = b[block(2 * p, 2), n]
    for first in range(0, rows, ROWS):
        r = block(first, ROWS, rows)
        whole = block(minimum(first, maximum(rows - ROWS, 0)), ROWS)
        if COMPUTED == 1:
            x = T(f32(a[r, k]) * 2.0)
            if IN_PAIRS == 1:
                y[r, n] = matmul(x, weights[block(0, PAIRS), block(0, 2), n], y[r, n])
            else:
                y[r, n] = matmul(x, b[k, n])
        else:
            y[whole, n] = matmul(a[whole, k], weights[block(0, PAIRS), block(0, 2), n])
    if COMPUTED == 2:
        for r in blocks(rows, ROWS):
            y[r, n] = matmul(a[r, k], weights[block(0, PAIRS), block(0, 2), n])
"""


def check_matmul():
    kernel = sandwich.Kernel(MATMUL)
    for rows, pairs, columns in ((1, 1, 1), (3, 4, 16), (16, 8, 40), (7, 5, 8), (17, 16, 64),
                                 (5, 2, 23)):
        for kind in "f32", "f16", "bf16":
            a, b = random(rows, 2 * pairs), random(2 * pairs, columns)
            if kind == "bf16":
                a, b = to_bf16(a), to_bf16(b)
                exact = from_bf16(a).astype(np.float64) @ from_bf16(b)
            else:
                to = np.float32 if kind == "f32" else np.float16
                a, b = a.astype(to), b.astype(to)
                exact = a.astype(np.float64) @ b
            y = np.zeros((rows, columns), np.float32)
            for computed, in_pairs in (0, 0), (1, 0), (1, 1), (2, 0):
                for tile in 1, 3, 16:
                    if computed == 1 or tile <= rows:
                        check("matmul", kernel, (a, b, y), y, exact * (1 + computed % 2), 2e-6,
                              PAIRS=pairs, N=columns, IN_PAIRS=in_pairs, COMPUTED=computed,
                              ROWS=tile)


def check_merge_attention(kernel):
    for parts, rows, dim in (1, 1, 8), (3, 5, 20), (4, 2, 64):
        partial, y = random(parts, rows, dim + 2), np.zeros((rows, dim), np.float32)
        partial[..., dim + 1] += 3
        # A part without positions.
        partial[0, 0] = [0] * dim + [-1e30, 0] if parts > 1 else partial[0, 0]
        exact = partial.astype(np.float64)
        factor = np.exp(exact[..., dim:-1] - exact[..., dim:-1].max(0))
        check("merge_attention", kernel, (partial, y), y,
              (factor * exact[..., :dim]).sum(0) / (factor * exact[..., -1:]).sum(0), 1e-6,
              WIDTH=dim + 2, DIM=dim)


def check_gelu(kernel):
    x = np.linspace(-9, 9, 5 * 37).reshape(5, 37).astype(np.float32)
    exact = x.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)
    error = np.vectorize(math.erf)
    for is_exact, expected in ((1, exact * (1 + error(exact / np.sqrt(2))) / 2),
                               (0, exact * (1 + np.tanh(inner)) / 2)):
        y = np.zeros_like(x)
        check("gelu", kernel, (x, y), y, expected, 2e-6, EXACT=is_exact)


def check_tanh(kernel):
    x, y = random(3, 37), np.zeros((3, 37), np.float32)
    check("tanh", kernel, (x, y), y, np.tanh(x.astype(np.float64)), 1e-6)


def check_round(kernel):
    x, y = random(3, 37), np.zeros((3, 37), np.uint16)
    kernel(x, y)
    bits = x.view(np.uint32)
    assert (y == ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)).all()


def check_cases():
    """Kernels that were wrong once, and what they make of 0, 1, 2 and so on."""
    cases = {
        # The range of each turn, where it is the first thing in it.
        """
def k(x: f32[n], y: f32[n]):
    for i in unroll(0, 16, 4):
        r = block(i, 4)
        y[r] = x[r] * 2.0
""": lambda x: np.where(np.arange(x.size) < 16, 2 * x, 0),
        """
def k(x: f32[n], y: f32[n]):
    for c in blocks(n // 16, 8):
        for j in range(0, 16, 4):
            r = block(j, 4)
            y[r] = x[r] + 1.0
""": lambda x: np.where(np.arange(x.size) < 16, x + 1, 0),
        # Lanes that are not there divide by nothing.
        """
def k(x: i32[n], y: i32[n]):
    for i in blocks(n, 8):
        y[i] = where(x[i] != 0, 100 // x[i], 7) + x[i] % 3 + divide(i32(0 - i), x[i] + 1)
""": lambda x: np.where(x != 0, 100 // np.maximum(x, 1), 7) + x % 3 - x // (x + 1),
        """
def k(x: i32[n], y: i32[n]):
    smallest = i32(-2147483648)
    for i in range(n):
        y[i] = smallest % (0 - (x[i] * 0 + 1)) + remainder(smallest, 0 - (x[i] * 0 + 1)) + x[i]
""": lambda x: x,
        # Every turn has its own memory, and all turns share it.
        """
def k(x: f32[n], y: f32[n]):
    for j in unroll(20):
        s = scratch(f32, 100, 100)
        s[99, 99] = x[j]
        y[j] = s[99, 99]
""": lambda x: np.where(np.arange(x.size) < 20, x, 0),
        """
def k(x: f32[n], y: f32[n]):
    a = 16777217.0
    for i in range(n):
        y[i] = x[i] + (a + 1.0) * 0.0
""": lambda x: x,
    }
    for text, expected in cases.items():
        kind = np.int32 if "x: i32" in text else np.float32
        x = np.arange(37, dtype=kind)
        y = np.zeros_like(x)
        check(text, sandwich.Kernel(text), (x, y), y, expected(x), 0)


def check_words():
    """Every function, of every type that it is for, with lanes that are not there."""
    functions = {"exp": 1, "exp2": 1, "log": 1, "log2": 1, "sqrt": 1, "rsqrt": 1,
                 "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "abs": 1, "floor": 1,
                 "ceil": 1, "trunc": 1, "round": 1, "maximum": 2, "minimum": 2, "fma": 3}
    for kind, dtype in ("f32", np.float32), ("f64", np.float64), ("f16", np.float16):
        x = (np.abs(random(13)) + 0.3).astype(dtype)
        wanted = {"f32": list(functions),
                  "f64": ["sqrt", "abs", "floor", "ceil", "trunc", "round", "maximum",
                          "minimum", "fma"],
                  "f16": ["abs", "maximum", "minimum"]}[kind]
        for name in functions:
            operands = ", ".join(["x[i]", "x[i] + x[i]", "x[i]"][:functions[name]])
            text = (f"def k(x: {kind}[n], y: {kind}[n]):\n    for i in blocks(n, 8):\n"
                    f"        y[i] = {name}({operands})\n")
            if name not in wanted:
                refuse(text, f"line 3:16: error: '{name}' is not for {kind}")
                continue
            y, exact = np.zeros_like(x), np.zeros_like(x)
            kernel = sandwich.Kernel(text)
            kernel.interpret(x, exact)
            check(f"{name} of {kind}", kernel, (x, y), y, exact.astype(np.float64),
                  {"f32": 1e-5, "f64": 1e-15, "f16": 0}[kind])
    x = np.array([-200, -149.5, -130, -126, -1.5, 0, 0.25, 100, 127.5, 128, 300],
                 np.float32)
    y = np.zeros_like(x)
    sandwich.Kernel("def k(x: f32[n], y: f32[n]):\n    for i in blocks(n, 4):\n"
                    "        y[i] = exp2(x[i])\n")(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, np.exp2(x.astype(np.float64)).astype(np.float32),
                                   rtol=3e-7, atol=1e-44)
    words = {"divide_unsigned": lambda a, b: a.view("u4") // b.view("u4"),
             "remainder_unsigned": lambda a, b: a.view("u4") % b.view("u4"),
             "shift_right_unsigned": lambda a, b: a.view("u4") >> b.view("u4")}
    x = np.arange(-6, 7, dtype=np.int32)
    for name, function in words.items():
        kernel = sandwich.Kernel(
            f"def k(x: i32[n], y: i32[n]):\n    for i in blocks(n, 8):\n"
            f"        y[i] = {name}(x[i], 3)\n")
        y = np.zeros_like(x)
        exact = function(x, np.full_like(x, 3)).view("i4")
        check(name, kernel, (x, y), y, exact.astype(np.float64), 0)


def refuse(text, message, *arguments):
    try:
        sandwich.Kernel(text)(*arguments)
    except sandwich.Error as error:
        # Of the place only the line is the same wherever the text lies.
        if message.split(": ")[-1] in str(error):
            return
        sys.exit(f"{text}: {error}")
    sys.exit(f"{text}: is not refused")


def check_refusals():
    """What does not fit is refused before anything runs."""
    text = "def k(x: f32[n], by: f32, y: f32[n], A: tune(1, 2)):\n    y[0] = x[0] * by\n"
    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    fixed = y.copy()
    fixed.flags.writeable = False
    refuse(text, "k takes 3 arguments, not 2: x, by, y", x, y)
    refuse(text, "must be a number of f32, not 'a'", x, "a", y)
    refuse(text, "must be a number of f32, not 1e+300", x, 1e300, y)
    refuse(text, "has 2 numbers in a dimension of n, which is 3", x, 1, y[:2])
    refuse(text, "is of float64, and must be of f32", x.astype(np.float64), 1, y)
    refuse(text, "is of >f4, and must be of f32", x.astype(">f4"), 1, y)
    refuse(text, "must be contiguous", np.ones(6, np.float32)[::2], 1, y)
    refuse(text, "is written, and must be writeable", x, 1, fixed)
    refuse(text, "must be an array of numpy", [1, 2, 3], 1, y)
    kernel = sandwich.Kernel(text)
    for given, message in (({"B": 1}, "k has no parameter and no size B"),
                           ({"A": 3}, "must not have A = 3, which is no choice")):
        try:
            kernel(x, 1, y, **given)
        except sandwich.Error as error:
            assert message in str(error), error
        else:
            sys.exit(f"{given} is not refused")
    for wrong, message in (
            ("def k(x: f32[n]):\n    for i in range(4):\n        x[n + i] = 1.0\n",
             "x is reached at [3] in a dimension of 3"),):
        try:
            sandwich.Kernel(wrong).interpret(x)
        except sandwich.Error as error:
            assert message in str(error), error
        else:
            sys.exit(f"{wrong} is not refused")
    # Nothing to tune is no error, and choices of none are found.
    assert sandwich.Kernel("def k(x: f32[n]):\n    x[0] = 1.0\n").tune(x) == {}
    assert set(sandwich.Kernel(text).tune(x, 1, y)) == {"A"}


def check_threads():
    """Several threads compile one kernel for several constants and types."""
    kernel = sandwich.Kernel(
        "def k(x: T[n], y: T[n], C: constant, T: type(f32, f64)):\n"
        "    for i in blocks(n, 8):\n        y[i] = x[i] * T(C)\n")
    results = {}

    def run(constant, dtype):
        y = np.zeros(16, dtype)
        kernel(np.ones(16, dtype), y, C=constant)
        results[constant, dtype] = y

    threads = [threading.Thread(target=run, args=(c, d))
               for c in range(1, 5) for d in (np.float32, np.float64)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for (constant, _), y in results.items():
        assert (y == constant).all(), (constant, y)
    assert len(results) == 8


def main():
    check_cases()
    check_words()
    check_refusals()
    check_threads()
    check_matmul()
    for name in ("rms_norm", "layer_norm", "softmax", "silu_mul", "rotate", "attention",
                 "matrix_attention", "contiguous_attention", "merge_attention", "gelu", "tanh", "round"):
        kernel = sandwich.load_kernel(f"{SOURCE}/kernels/{name}.kernel")
        globals()["check_" + name](kernel)
        print(name, "is right")


if __name__ == "__main__":
    main()
