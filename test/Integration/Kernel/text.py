# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the kernels of the library with numpy.

    text.py SOURCE
"""
import sys

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


def check_attention(kernel):
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
                check("attention", kernel, (query, key, value, dim**-0.5, y), y,
                      weight @ value / weight.sum(1, keepdims=True), 2e-6, DIM=dim,
                      CAUSAL=causal, ROWS=rows, KEYS=keys_at_once, LANES=lanes)


def main():
    for name in "rms_norm", "layer_norm", "softmax", "silu_mul", "rotate", "attention":
        kernel = sandwich.load_kernel(f"{SOURCE}/kernels/{name}.kernel")
        globals()["check_" + name](kernel)
        print(name, "is right")


if __name__ == "__main__":
    main()
