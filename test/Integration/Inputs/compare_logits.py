#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares two files of logits, raw float32 [tokens, vocab].

    compare_logits.py REFERENCE ACTUAL --vocab N [--top-difference X] [--kl X]
                      [--largest-difference X]

--top-difference limits the largest difference of log-probability among the
reference's top 50 of each position; --kl the mean Kullback-Leibler divergence
of ACTUAL from REFERENCE; --largest-difference that of any two logits.
"""
import argparse
import sys

import numpy as np


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("actual")
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--top-difference", type=float)
    parser.add_argument("--kl", type=float)
    parser.add_argument("--largest-difference", type=float)
    arguments = parser.parse_args()
    load = lambda path: np.fromfile(path, "<f4").reshape(-1, arguments.vocab)
    reference, actual = load(arguments.reference), load(arguments.actual)
    if reference.shape != actual.shape or not len(reference):
        sys.exit(f"shapes differ: {reference.shape} and {actual.shape}")
    if not np.isfinite(actual).all():
        sys.exit("logits are not finite")

    p, q = log_softmax(reference), log_softmax(actual)
    top = np.argsort(-p, axis=-1)[:, :50]
    difference = np.abs(np.take_along_axis(p, top, -1) -
                        np.take_along_axis(q, top, -1)).max()
    divergence = (np.exp(p) * (p - q)).sum(-1).mean()
    largest = np.abs(reference - actual).max()
    print(f"positions {len(p)}, top-50 log-probability difference "
          f"{difference:.3g}, mean KL {divergence:.3g}, logit difference "
          f"{largest:.3g}")
    for value, limit in ((difference, arguments.top_difference),
                         (divergence, arguments.kl),
                         (largest, arguments.largest_difference)):
        if limit is not None and not value <= limit:
            sys.exit(f"{value:.3g} is more than {limit:.3g}")


main()
