#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what artifacts say that rounding has done to their weights.

    check_rounding.py MODEL_DIR ARTIFACT [OTHER]

Of the weights that are one tensor of the checkpoint, or several one below the
other, unpacks the integers of ARTIFACT, of one rank, and compares them with the
checkpoint's values. OTHER, which may be of several ranks, must say the same.
"""
import json
import os
import re
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "Inputs"))
from reference import read_safetensors  # noqa: E402


def inspect(artifact):
    return json.loads(subprocess.run(
        ["sandwich-run", "inspect", artifact, "--json"], check=True,
        stdout=subprocess.PIPE).stdout)


def unpack_group(numbers, bits, panel, tile, k_step, k_pack):
    """Bytes of a group's numbers, [panel, k] integers as they are stored."""
    if bits == 4:
        lines = numbers.reshape(-1, 1, 64)
        numbers = np.concatenate([lines & 15, lines >> 4], 1).reshape(-1)
    k = numbers.size // panel
    order = numbers.reshape(k // k_step, panel // tile, k_step // k_pack, tile,
                            k_pack)
    return order.transpose(1, 3, 0, 2, 4).reshape(panel, k)


def unpack(layer, dtype, columns, packing):
    """Bytes of a layer, the values that they stand for, [rows, columns]."""
    bits, group, scale, minimum = re.fullmatch(
        r"int([48])-g(\d+)-(f16|f32)(-minimum)?", dtype).groups()
    bits, group = int(bits), int(group)
    panel = packing[0]
    scale_bytes = panel * {"f16": 2, "f32": 4}[scale]
    number_bytes = panel * group * bits // 8
    size = number_bytes + scale_bytes * (2 if minimum else 1)
    groups = columns // group
    panels = layer.size // (groups * size)
    pieces = layer[:panels * groups * size].reshape(panels, groups, size)
    values = np.empty((panels, panel, groups, group))
    for i in range(panels):
        for j in range(groups):
            piece = pieces[i, j]
            floats = piece[number_bytes:].view("<" + scale[0] + str(
                int(scale[1:]) // 8)).astype(np.float64).reshape(-1, panel)
            numbers = unpack_group(piece[:number_bytes], bits, *packing)
            base = floats[1] if minimum else -(1 << bits - 1) * floats[0]
            values[i, :, j] = floats[0][:, None] * numbers + base[:, None]
    return values.reshape(panels * panel, columns)


def expected_errors(tensor, weights, checkpoint):
    """Of each layer."""
    packing = [int(size) for size in re.findall(r"= (\d+)", tensor["layout"])]
    *layers, rows, columns = tensor["shape"]
    count = layers[0] if layers else 1
    raw = weights[tensor["offset"]:tensor["offset"] + tensor["bytes"]]
    for layer, part in enumerate(raw.reshape(count, -1)):
        values = np.concatenate([checkpoint[name.replace("{}", str(layer))]
                                 for name in tensor["sources"]])
        stored = unpack(part, tensor["dtype"], columns, packing)[:len(values)]
        yield np.linalg.norm(stored - values) / np.linalg.norm(values)


def main():
    model, artifact, *other = sys.argv[1:]
    checkpoint = read_safetensors(os.path.join(model, "model.safetensors"))
    weights = np.fromfile(os.path.join(artifact, "weights.bin"), np.uint8)
    tensors = inspect(artifact)["tensors"]
    checked = 0
    for tensor in tensors:
        quantized = tensor["dtype"].startswith("int")
        assert quantized == ("rounding" in tensor), tensor["name"]
        # Rows of gates and their values alternate.
        if not quantized or "gate" in tensor["name"]:
            continue
        said = tensor["rounding"]
        assert not said["kept"]
        expected = list(expected_errors(tensor, weights, checkpoint))
        print(f"{tensor['name']}: {said['errors']}, expected {expected}")
        np.testing.assert_allclose(said["errors"], expected, rtol=1e-6)
        checked += 1
    assert checked >= 4, checked
    for each in other:
        others = {other["name"]: other for other in inspect(each)["tensors"]}
        for tensor in tensors:
            if "rounding" in tensor:
                np.testing.assert_allclose(
                    others[tensor["name"]]["rounding"]["errors"],
                    tensor["rounding"]["errors"], rtol=1e-9)


if __name__ == "__main__":
    main()
