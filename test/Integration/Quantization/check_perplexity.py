#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks `sandwich-run perplexity` against the reference.

    check_perplexity.py MODEL_DIR TEXT ARTIFACT=LIMIT...

LIMIT is how much an artifact's perplexity may differ from the reference's, as a
share of it.
"""
import json
import os
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
from reference import Reference  # noqa: E402


def expected_perplexity(reference, ids, window, stride):
    """Scores, in each window, what those before it did not have."""
    nats, scored, begin = [], 1, 0
    while scored < len(ids):
        end = min(begin + window, len(ids))
        logits = reference.logits(ids[begin:end])
        logits = logits - logits.max(-1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        nats += [-logs[i - begin - 1, ids[i]] for i in range(scored, end)]
        scored = end
        begin = min(begin + stride, end - 1)
    assert len(nats) == len(ids) - 1
    return np.exp(np.mean(nats))


def main():
    model, text, *artifacts = sys.argv[1:]
    tokens = subprocess.run(
        ["sandwich-run", "tokenize", "--tokenizer",
         os.path.join(model, "tokenizer.json"), "--file", text],
        check=True, capture_output=True, text=True).stdout
    ids = np.array([int(token) for token in tokens.split()])
    reference = Reference(model)
    for window, stride in (100, 50), (64, 64):
        expected = expected_perplexity(reference, ids, window, stride)
        for artifact in artifacts:
            path, limit = artifact.split("=")
            measured = json.loads(subprocess.run(
                ["sandwich-run", "perplexity", path, "--text", text,
                 f"--window={window}", f"--stride={stride}", "--json"],
                check=True, stdout=subprocess.PIPE).stdout)
            assert measured["tokens"] == len(ids) - 1
            difference = measured["perplexity"] / expected - 1
            print(f"{os.path.basename(path)}: {measured['perplexity']:.4f}, "
                  f"expected {expected:.4f}, {100 * difference:+.3f}%")
            if abs(difference) > float(limit):
                sys.exit(f"{path}: differs by more than {limit}")


if __name__ == "__main__":
    main()
