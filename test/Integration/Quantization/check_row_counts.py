#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks weights of every format, multiplied by every number of rows from 1 to 64.

    check_row_counts.py FOLDER TARGET[:float] ... [--formats FORMAT,...|--integers]

For each format a model of one layer is written into FOLDER whose weights it holds
as they are, compiled for every target, and fed a text in pieces of 1, 2, 3 and so
on up to 64 tokens. The logits of every token are compared with those of a plain
reference, which rounds what integers are multiplied with. With `:float` behind it a
target multiplies floats; `--integers` leaves out the formats of floats.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
import compare_logits  # noqa: E402
from reference import Reference  # noqa: E402

# Both ends of the sizes of groups, scales of both types, with a minimum and without.
FORMATS = ["int8-g16-f16", "int8-g32-f16", "int8-g128-f32", "int8-row-f32",
           "int8-g32-f16-minimum", "int8-row-f32-minimum", "int4-g16-f16",
           "int4-g32-f16", "int4-g128-f16", "int4-row-f32", "int4-g32-f16-minimum",
           "int4-g16-f32-minimum", "fp8-row-f32", "fp8-g128-f16"]
PIECES = range(1, 65)
VOCABULARY = 83
# Of the log-probability of any of the 50 likeliest tokens: where only the order of
# additions differs; where bf16 is multiplied; and where what lies between two
# integers may have been rounded to either, or more rows are multiplied as floats.
# Rows that are lost or mixed up differ by more than 1.
LIMITS = {"float": 2e-4, "bf16": 0.3, "integer": 0.3}


def arithmetic_of(artifact):
    told = subprocess.run(["sandwich-run", "inspect", artifact], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    if "by inputs as int8" in told:
        return "integer"
    return "bf16" if "_BF16_" in told else "float"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--integers", dest="formats", action="store_const",
                        const=",".join(f for f in FORMATS if f.startswith("int")))
    arguments = parser.parse_args()
    model = os.path.join(arguments.folder, "model")
    artifact = os.path.join(arguments.folder, "model.sandwich")
    ids = np.random.default_rng(3).integers(VOCABULARY, size=sum(PIECES))
    for storage in arguments.formats.split(","):
        subprocess.run(
            [sys.executable,
             os.path.join(os.path.dirname(__file__), "..", "Inputs",
                          "make_checkpoint.py"), model, "--storable", storage]
            + [word for field in (
                f"vocab_size={VOCABULARY}", "num_hidden_layers=1",
                "hidden_size=128", "intermediate_size=256",
                f"max_position_embeddings={len(ids)}")
               for word in ("--set", field)], check=True)
        group = storage.split("-")[1].removeprefix("g")
        expected = {None: Reference(model).logits(ids)}
        for target in arguments.targets:
            name, _, activations = target.partition(":")
            command = ["sandwich-compile", model, "-q", "-o", artifact,
                       f"--dtype={storage}", "--embedding-dtype=bf16",
                       "--kv-dtype=f32", "--threads=2", f"--target={name}"]
            if activations:
                command.append(f"--activations={activations}")
            subprocess.run(command, check=True)
            arithmetic = arithmetic_of(artifact)
            rounded = group if arithmetic == "integer" else None
            if rounded not in expected:
                expected[rounded] = Reference(model, rounded).logits(ids)
            actual = compare_logits.run(
                compare_logits.runner_of(artifact) + ["logits", artifact], ids,
                ",".join(map(str, PIECES)), VOCABULARY)
            compare_logits.check(f"{storage}, {target} ({arithmetic})",
                                 expected[rounded], actual,
                                 (LIMITS[arithmetic], 1e-3, None))


main()
