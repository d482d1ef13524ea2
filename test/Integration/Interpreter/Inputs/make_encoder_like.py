#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints model IR of a decoder with an encoder's operations in their places.

    make_encoder_like.py DECODER.mlir
"""
import re
import sys


def main():
    with open(sys.argv[1]) as file:
        text = file.read()
    # A norm's weight is its bias as well: the checkpoint has no other.
    text = re.sub(r"lm\.rms_norm (%\w+), (@[\w.]+)(\[%\w+\])? epsilon (\S+) : "
                  r"(\S+) -> \S+",
                  lambda m: f"lm.layer_norm {m[1]}, {m[2]} bias {m[2]}"
                            f"{m[3] or ''} epsilon {m[4]} : {m[5]}", text)
    text = re.sub(r"(blocks %\w+ scale \S+)", r"\1 bidirectional", text)
    # Both projections are activated, each by a kind of its own, and added.
    text = re.sub(r"(%\w+) = lm\.silu_mul (%\w+), (%\w+) : (\S+)",
                  r"%exact = lm.gelu \2 <exact> : \4\n"
                  r"      %tanh = lm.gelu \3 <tanh> : \4\n"
                  r"      \1 = lm.add %exact, %tanh : \4", text)
    sys.stdout.write(text)


main()
