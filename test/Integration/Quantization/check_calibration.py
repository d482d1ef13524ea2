#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks mean squares of channels against the reference's.

    check_calibration.py MODEL_DIR MODEL.mlir
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
from reference import Reference  # noqa: E402


class Observer(Reference):
    """Keeps what each matrix is multiplied with."""

    def __init__(self, folder):
        super().__init__(folder)
        self.means = {}

    def linear(self, x, name):
        self.means[name + ".weight"] = np.mean(x * x, axis=0)
        return super().linear(x, name)


def main():
    model, module = sys.argv[1:]
    ids = np.random.default_rng(7).integers(300, size=150)
    expected = Observer(model)
    logits = expected.logits(ids)
    with tempfile.TemporaryDirectory() as folder:
        found, out = os.path.join(folder, "means"), os.path.join(folder, "out")
        subprocess.run(
            ["sandwich-interpret", module, "--checkpoint", model, "--out", out,
             "--mean-squares", found,
             "--token-ids", ",".join(str(token) for token in ids)], check=True)
        with open(found, encoding="utf-8") as file:
            means = json.load(file)
        interpreted = np.fromfile(out, "<f4").reshape(logits.shape)
    np.testing.assert_allclose(interpreted, logits, rtol=1e-4, atol=1e-4)
    assert set(means) == set(expected.means), sorted(means)
    for name, values in expected.means.items():
        np.testing.assert_allclose(means[name], values, rtol=1e-5)
    print(f"{len(means)} tensors have the reference's mean squares")


if __name__ == "__main__":
    main()
