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
import json
import os
import platform
import subprocess
import sys
import tempfile

import numpy as np


def run(command, ids, chunk, vocab):
    """The logits that `command` writes for ids, in pieces of chunk or whole."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        command = command + ["--out", out, "--token-ids",
                             ",".join(map(str, ids))]
        if chunk:
            command += ["--chunk", str(chunk)]
        subprocess.run(command, check=True)
        return np.fromfile(out, "<f4").reshape(-1, vocab)


def runner_of(artifact):
    """The command that runs `artifact`: sandwich-run, or what SANDWICH_RUN_AARCH64
    tells where it is for that architecture and this machine is another."""
    told = subprocess.run(["sandwich-run", "inspect", "--json", artifact],
                          check=True, stdout=subprocess.PIPE)
    target = json.loads(told.stdout)["target"]["name"]
    if target.startswith("aarch64") and platform.machine() != "aarch64":
        return [os.environ["SANDWICH_RUN_AARCH64"]]
    return ["sandwich-run"]


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def compare(reference, actual):
    """The three figures that the options limit, in the order of their help."""
    p, q = log_softmax(reference), log_softmax(actual)
    top = np.argsort(-p, axis=-1)[:, :50]
    top_difference = np.abs(np.take_along_axis(p, top, -1) -
                            np.take_along_axis(q, top, -1)).max()
    divergence = (np.exp(p) * (p - q)).sum(-1).mean()
    return top_difference, divergence, np.abs(reference - actual).max()


def check(what, reference, actual, limits):
    """Prints the figures; exits where one is beyond its limit."""
    if reference.shape != actual.shape or not len(reference):
        sys.exit(f"{what}: shapes differ: {reference.shape}, {actual.shape}")
    if not np.isfinite(actual).all():
        sys.exit(f"{what}: logits are not finite")
    figures = compare(reference, actual)
    print(f"{what}: positions {len(reference)}, top-50 log-probability "
          "difference {:.3g}, mean KL {:.3g}, logit difference {:.3g}".format(
              *figures), flush=True)
    for figure, limit in zip(figures, limits):
        if limit is not None and not figure <= limit:
            sys.exit(f"{what}: {figure:.3g} is more than {limit:.3g}")


def add_limits(parser):
    parser.add_argument("--top-difference", type=float)
    parser.add_argument("--kl", type=float)
    parser.add_argument("--largest-difference", type=float)


def limits_of(arguments):
    return (arguments.top_difference, arguments.kl,
            arguments.largest_difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("actual")
    parser.add_argument("--vocab", type=int, required=True)
    add_limits(parser)
    arguments = parser.parse_args()
    reference, actual = (
        np.fromfile(path, "<f4").reshape(-1, arguments.vocab)
        for path in (arguments.reference, arguments.actual))
    check(arguments.actual, reference, actual, limits_of(arguments))


if __name__ == "__main__":
    main()
