#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks artifacts' logits against those of the interpreter.

    check_interpreter.py MODEL_DIR MODEL.mlir [ARTIFACT...] [--tokens N]
                         [--chunks 0,13,1] [--reference]
                         [limits of compare_logits.py]

Each artifact, and with --reference the reference of these tests, takes the same
N random tokens as `sandwich-interpret` does with the model IR, at once (0) and
in pieces of the other lengths.
"""
import argparse
import json
import os

import numpy as np

import compare_logits
from reference import Reference


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("ir")
    parser.add_argument("artifacts", nargs="*")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--chunks", default="0,13,1")
    parser.add_argument("--reference", action="store_true")
    compare_logits.add_limits(parser)
    arguments = parser.parse_args()
    limits = compare_logits.limits_of(arguments)

    with open(os.path.join(arguments.model, "config.json")) as file:
        vocab = json.load(file)["vocab_size"]
    ids = np.random.default_rng(2).integers(vocab, size=arguments.tokens)
    ids[:2] = 0, vocab - 1
    for chunk in map(int, arguments.chunks.split(",")):
        expected = compare_logits.run(
            ["sandwich-interpret", arguments.ir, "--checkpoint",
             arguments.model], ids, chunk, vocab)
        if arguments.reference:
            compare_logits.check(f"the reference in pieces of {chunk}",
                                 expected,
                                 Reference(arguments.model).logits(ids), limits)
        for artifact in arguments.artifacts:
            what = f"{os.path.basename(artifact)} in pieces of {chunk}"
            actual = compare_logits.run(["sandwich-run", "logits", artifact],
                                        ids, chunk, vocab)
            compare_logits.check(what, expected, actual, limits)


main()
