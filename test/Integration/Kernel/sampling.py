#!/usr/bin/env python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what kernels/sampling.kernel draws with the definition in Sampler.h by numpy.

Logits are random, some minus infinity; options are of all kinds; vocabularies are smaller and
larger than a block. All of a kernel's choices of parameters are tried.
"""
import os
import sys

SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "python"))

import numpy as np
import sandwich


def weights_left(logits, temperature, top_k, top_p, min_p):
    """What the options leave of softmax(logits / temperature), which is not normalized."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    order = [i for i in np.lexsort((np.arange(len(logits)), -logits))
             if weights[i] > 0 and weights[i] >= min_p]
    if top_k > 0:
        order = order[:top_k]
    if top_p < 1:
        reached = np.cumsum(weights[order])
        order = order[:np.searchsorted(reached, top_p * reached[-1]) + 1]
    left = np.zeros_like(weights)
    left[order] = weights[order]
    return left


def main():
    kernel = sandwich.load_kernel(os.path.join(SOURCE, "kernels/sampling.kernel"))
    random = np.random.default_rng(1)
    compared = differing = 0
    for case in range(240):
        vocabulary = int(random.integers(1, 700))
        logits = random.normal(0, random.uniform(0.1, 5), vocabulary).astype(np.float32)
        logits[random.random(vocabulary) < 0.1] = -np.inf
        logits[random.integers(vocabulary)] = 1
        temperature = np.float32(random.uniform(0.2, 2))
        if case % 5 == 0:
            # Many are equal, both zeros among them.
            logits = np.where(np.isinf(logits), logits, np.round(logits) * np.float32(-1))
        elif case % 5 == 1:
            # Nearly all weights are, but no logits.
            temperature = np.float32(1e8)
        top_k = int(random.choice([0, 1, 5, 50, 1000]))
        top_p = np.float32(random.choice([1, 0.9, 0.5, 0.1]))
        min_p = np.float32(random.choice([0, 0.05]))
        left = weights_left(logits, temperature, top_k, top_p, min_p)
        shares = np.cumsum(left) / left.sum()
        for place in [0.0, np.nextafter(1.0, 0)] + list(random.random(4)):
            token = np.full(1, -1, np.int32)
            kernel(logits, float(temperature), top_k, float(top_p), float(min_p), place,
                   np.full(vocabulary, np.nan, np.float32), token,
                   LANES=(16, 32, 64, 128)[case % 4])
            drawn = int(token[0])
            assert 0 <= drawn < vocabulary and logits[drawn] > -np.inf, (case, drawn)
            # Weights of f32 move borders between tokens, and between those left and not.
            expected = min(int(np.searchsorted(shares, place, side="right")), vocabulary - 1)
            before = shares[drawn - 1] if drawn else 0
            assert before - 1e-4 <= place <= shares[drawn] + 1e-4, (case, place, drawn, expected)
            compared += 1
            differing += drawn != expected
    # Borders are rarely that near, but at the last place.
    assert differing <= compared // 20, (differing, compared)
    print(f"{compared} tokens are right")


if __name__ == "__main__":
    main()
