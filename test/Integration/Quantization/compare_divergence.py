#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that an artifact predicts a text as the original does, or nearly.

    compare_divergence.py MODEL_DIR TEXT ONE OTHER FACTOR

The mean divergence of OTHER, over four stretches of TEXT, must be at most FACTOR
times that of ONE.
"""
import os
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
from divergence import measure, read_tokens  # noqa: E402


def main():
    model, text, one, other, factor = sys.argv[1:]
    ids = read_tokens(model, text)
    stretches = [ids[begin:begin + 256] for begin in range(0, 1024, 256)]
    means = [np.mean([measure(model, artifact, stretch)["mean"]
                      for stretch in stretches]) for artifact in (one, other)]
    print(f"{os.path.basename(one)}: {means[0]:.5f}, "
          f"{os.path.basename(other)}: {means[1]:.5f}")
    if means[1] > float(factor) * means[0]:
        sys.exit(f"the second is more than {factor} of the first")


if __name__ == "__main__":
    main()
