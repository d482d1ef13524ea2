#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks artifacts' logits against the reference.

    check_logits.py MODEL_DIR ARTIFACT... [--tokens N] [--chunks 0,7,1]
                    [--pieces X] [--agree X] [--rounds-inputs GROUP]
                    [--rounds-cache] [--first-difference X]
                    [limits of compare_logits.py]

Every artifact takes the same N random tokens at once (0) and in pieces of the
other lengths of --chunks; a piece of one token runs the decode phase. --pieces
limits the difference of any logit between pieces and the whole, --agree that
between the artifacts. With --rounds-inputs the reference rounds what it multiplies
with weights to int8, in groups of so many channels, or "row"; with
--rounds-cache the keys and values of each head. What lies between two integers may
be rounded to either, after which all tokens differ, which the other limits are for;
--first-difference limits that of the first tokens' logits.
"""
import argparse
import os

import numpy as np

import compare_logits
from reference import Reference

FIRST_TOKENS = 8


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("artifacts", nargs="+")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--chunks", default="0,7,1")
    parser.add_argument("--pieces", type=float)
    parser.add_argument("--agree", type=float)
    parser.add_argument("--rounds-inputs", metavar="GROUP")
    parser.add_argument("--rounds-cache", action="store_true")
    parser.add_argument("--first-difference", type=float)
    compare_logits.add_limits(parser)
    arguments = parser.parse_args()

    reference = Reference(arguments.model, arguments.rounds_inputs,
                          arguments.rounds_cache)
    vocab = reference.config["vocab_size"]
    random = np.random.default_rng(1)
    ids = random.integers(vocab, size=arguments.tokens)
    # The last rows of the embedding and of the head are the likeliest to be
    # lost.
    ids[:2] = 0, vocab - 1
    expected = reference.logits(ids)
    first = None
    for artifact in arguments.artifacts:
        whole = None
        for chunk in map(int, arguments.chunks.split(",")):
            what = f"{os.path.basename(artifact)} in pieces of {chunk}"
            actual = compare_logits.run(
                compare_logits.runner_of(artifact) + ["logits", artifact],
                ids, chunk, vocab)
            compare_logits.check(what, expected, actual,
                                 compare_logits.limits_of(arguments))
            compare_logits.check(
                f"first tokens of {what}", expected[:FIRST_TOKENS],
                actual[:FIRST_TOKENS],
                (None, None, arguments.first_difference))
            if whole is None:
                whole = actual
            compare_logits.check(what + " and whole", whole, actual,
                                 (None, None, arguments.pieces))
        if first is None:
            first = whole
        compare_logits.check(f"{os.path.basename(artifact)} and the first",
                             first, whole, (None, None, arguments.agree))


main()
