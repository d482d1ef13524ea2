# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far predictions of next tokens are from the reference's."""
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(os.path.dirname(__file__))
from reference import Reference  # noqa: E402


def read_tokens(model, text):
    """The ids of a file, by the tokenizer of a checkpoint."""
    printed = subprocess.run(
        ["sandwich-run", "tokenize", "--tokenizer",
         os.path.join(model, "tokenizer.json"), "--file", text],
        check=True, capture_output=True, text=True).stdout
    return [int(token) for token in printed.split()]


def log_probabilities(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def run_artifact(artifact, ids):
    """Logits, [token, vocabulary]."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        subprocess.run(
            ["sandwich-run", "logits", artifact, "--out", out, "--token-ids",
             ",".join(str(token) for token in ids)],
            check=True, stderr=subprocess.DEVNULL)
        return np.fromfile(out, "<f4").astype(np.float64).reshape(
            len(ids), -1)


def measure(model, artifact, ids):
    """The figures that a report of quantization has, by its names."""
    expected = log_probabilities(Reference(model).logits(ids))
    found = log_probabilities(run_artifact(artifact, ids))
    divergences = (np.exp(expected) * (expected - found)).sum(-1)
    rows, following = np.arange(len(ids) - 1), ids[1:]
    return {
        "tokens": len(ids),
        "mean": divergences.mean(),
        "p99": np.sort(divergences)[
            int(np.ceil(0.99 * len(divergences))) - 1],
        "max": divergences.max(),
        "agreement": np.mean(expected.argmax(-1) == found.argmax(-1)),
        "perplexity": np.exp(-found[rows, following].mean()),
        "original_perplexity": np.exp(-expected[rows, following].mean()),
    }
