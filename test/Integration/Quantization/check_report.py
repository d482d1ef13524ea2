#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the figures of a report against the reference.

    check_report.py MODEL_DIR ARTIFACT TEXT FIRST_TOKEN REPORT.json REPORT.html

The report must be of TEXT from its token number FIRST_TOKEN on; predictions are
those of `sandwich-run logits`.
"""
import json
import os
import subprocess
import sys
import xml.dom.minidom

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
from divergence import measure, read_tokens  # noqa: E402


def main():
    model, artifact, text, first, json_report, html_report = sys.argv[1:]
    with open(json_report, encoding="utf-8") as file:
        report = json.load(file)
    said = report["predictions"]
    assert said["text"] == text and said["first_token"] == int(first)
    ids = read_tokens(model, text)[int(first):][:said["tokens"]]
    assert len(ids) == said["tokens"]
    expected = measure(model, artifact, ids)
    for name, value in (
            ("mean", said["divergence"]["mean"]),
            ("p99", said["divergence"]["p99"]),
            ("max", said["divergence"]["max"]),
            ("agreement", said["top1_agreement"]),
            ("perplexity", said["perplexity"]),
            ("original_perplexity", said["original_perplexity"])):
        print(f"{name}: {value}, expected {expected[name]}")
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-7)

    manifest = json.loads(subprocess.run(
        ["sandwich-run", "inspect", artifact, "--json"], check=True,
        stdout=subprocess.PIPE).stdout)
    errors = {tensor["name"]: tensor["rounding"]["errors"]
              for tensor in manifest["tensors"] if "rounding" in tensor}
    assert {w["name"]: w["errors"] for w in report["weights"]} == errors
    page = xml.dom.minidom.parse(html_report)
    cells = [rect for rect in page.getElementsByTagName("rect")
             if rect.getElementsByTagName("title")]
    assert len(cells) == sum(len(layers) for layers in errors.values())
    shown = page.toxml()
    assert f"{said['divergence']['mean']:.3e}" in shown
    assert f"{said['perplexity']:.4f}" in shown


if __name__ == "__main__":
    main()
