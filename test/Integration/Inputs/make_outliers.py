#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model of the same function, some channels of which are large.

    make_outliers.py MODEL_DIR OUT [CHANNELS [FACTOR]]

After each norm CHANNELS of the channels are FACTOR times as large, as a few are in
most large models, and what multiplies them is as much smaller. Where FACTOR is a
power of two that changes no logit.
"""
import os
import shutil
import sys

import numpy as np

from make_checkpoint import write_safetensors
from reference import read_safetensors

READERS = {"input_layernorm": ("self_attn.q_proj", "self_attn.k_proj",
                               "self_attn.v_proj"),
           "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj")}


def main():
    model, out = sys.argv[1:3]
    count, factor = (int(text) for text in (sys.argv[3:] + ["8", "16"])[:2])
    tensors = read_safetensors(os.path.join(model, "model.safetensors"))
    random = np.random.default_rng(1)
    for name in list(tensors):
        norm = name.removesuffix(".weight").rpartition(".")
        for reader in READERS.get(norm[2], ()):
            tensors[f"{norm[0]}.{reader}.weight"] = tensors[
                f"{norm[0]}.{reader}.weight"].copy()
        if norm[2] not in READERS:
            continue
        large = random.choice(tensors[name].size, count, replace=False)
        tensors[name] = tensors[name].copy()
        tensors[name][large] *= factor
        for reader in READERS[norm[2]]:
            tensors[f"{norm[0]}.{reader}.weight"][:, large] /= factor
    shutil.copytree(model, out)
    os.remove(os.path.join(out, "model.safetensors"))
    write_safetensors(
        os.path.join(out, "model.safetensors"),
        [(name, "F32", list(values.shape), values.astype("<f4").tobytes())
         for name, values in tensors.items()])


if __name__ == "__main__":
    main()
