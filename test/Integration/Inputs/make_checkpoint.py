#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a small Hugging Face checkpoint with random weights.

    make_checkpoint.py OUT_DIR --set hidden_size=896 --set qkv_bias=true ...

Every field of config.json can be set; `--dtype`, `--shards` and `--seed` choose
how the weights are stored. `--scale NAME=FACTOR` multiplies the weights whose
names contain NAME, after which the model may compute what no narrow type holds.
With `--storable FORMAT`, such as int4-g32-f16, the values of matmuls' weights are
some that a weight in that format holds as they are; with `--storable-tables FORMAT`
those of tables that no matmul multiplies.
"""
import argparse
import json
import os
import struct

import numpy as np

DEFAULTS = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def tensors(config):
    """Yields name, shape and standard deviation (None: a norm's scale)."""
    hidden = config["hidden_size"]
    inner = config["intermediate_size"]
    heads = config["num_attention_heads"]
    kv_heads = config["num_key_value_heads"]
    head = config.get("head_dim") or hidden // heads
    family = config["architectures"][0]
    bias = family == "Qwen2ForCausalLM" or config.get("attention_bias", False)
    # A tied head of unit deviation would make logits too large to compare.
    yield ("model.embed_tokens.weight", (config["vocab_size"], hidden),
           hidden**-0.5 if config["tie_word_embeddings"] else 1.0)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (hidden,), None
        for name, rows in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            shape = (rows * head, hidden)
            yield f"{prefix}self_attn.{name}_proj.weight", shape, hidden**-0.5
            if bias:
                yield f"{prefix}self_attn.{name}_proj.bias", shape[:1], 0.5
        if family == "Qwen3ForCausalLM":
            yield prefix + "self_attn.q_norm.weight", (head,), None
            yield prefix + "self_attn.k_norm.weight", (head,), None
        yield (prefix + "self_attn.o_proj.weight", (hidden, heads * head),
               (heads * head)**-0.5)
        if bias and family != "Qwen2ForCausalLM":
            yield prefix + "self_attn.o_proj.bias", (hidden,), 0.5
        yield prefix + "post_attention_layernorm.weight", (hidden,), None
        yield prefix + "mlp.gate_proj.weight", (inner, hidden), hidden**-0.5
        yield prefix + "mlp.up_proj.weight", (inner, hidden), hidden**-0.5
        yield prefix + "mlp.down_proj.weight", (hidden, inner), inner**-0.5
    yield "model.norm.weight", (hidden,), None
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden), hidden**-0.5


def encode(values, dtype):
    if dtype == "F32":
        return values.tobytes()
    if dtype == "F16":
        return values.astype(np.float16).tobytes()
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(
        np.uint16).tobytes()


def write_safetensors(path, entries):
    header, offset = {}, 0
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for *_, data in entries:
            file.write(data)


def float8_values():
    """What the numbers 0 to 126 of E4M3 stand for."""
    numbers = np.arange(127)
    exponent, mantissa = numbers // 8, numbers % 8
    return np.where(exponent == 0, mantissa * 2.0**-9,
                    (1 + mantissa / 8) * 2.0**(exponent - 7.0))


def to_float8(values):
    """The numbers of E4M3 next to `values`."""
    table = float8_values()
    numbers = np.abs(np.abs(values)[..., None] - table).argmin(axis=-1)
    return (numbers + 128 * (values < 0)).astype(np.uint8)


def from_float8(numbers):
    return float8_values()[numbers % 128] * np.where(numbers < 128, 1.0, -1.0)


def storable(random, shape, deviation, storage):
    """Values that a weight in `storage` holds as they are: every group has the
    least number, or the largest of fp8, and scales have few bits."""
    number, group, _, *offset = storage.split("-")
    rows, columns = shape
    size = columns if group == "row" else int(group.removeprefix("g"))
    groups = (rows, columns // size, 1)
    if number == "fp8":
        scale = (2.0 ** np.round(np.log2(4 * deviation / 448)) *
                 random.integers(512, 1024, size=groups) / 512)
        drawn = random.standard_normal((rows, columns // size, size))
        stored = from_float8(to_float8(drawn * deviation / scale))
        stored[:, :, 0] = 448
        return (stored * scale).reshape(shape).astype(np.float32)
    levels = 1 << int(number.removeprefix("int"))
    stored = random.integers(levels, size=(rows, columns // size, size))
    stored[:, :, 0] = 0
    # A normal distribution's range, cut into levels.
    scale = 2.0 ** np.round(np.log2(4 * deviation / levels))
    if offset:
        # Minima are multiples of the scale, so that sums are exact.
        stored[:, :, 1] = levels - 1
        values = (stored + random.integers(-levels // 2 - 1, 2 - levels // 2,
                                            size=groups)) * scale
    else:
        scale *= random.integers(512, 1024, size=groups) / 512
        values = (stored - levels // 2) * scale * random.choice((-1, 1), groups)
    return values.reshape(shape).astype(np.float32)


def random_tensors(config, dtype, seed, scales=(), storage=None,
                   table_storage=None):
    """Name, dtype, shape and bytes of every tensor, as write_safetensors takes
    them. `scales` are parts of names, and factors; `storage` is what `storable`
    takes, of what is multiplied, and `table_storage` of other tables."""
    random = np.random.default_rng(seed)
    entries = []
    for name, shape, deviation in tensors(config):
        values = random.standard_normal(shape, dtype=np.float32)
        if deviation is None:
            values = 1 + np.float32(0.1) * values
        else:
            values *= np.float32(deviation)
        for part, factor in scales:
            if part in name:
                values *= np.float32(factor)
        multiplied = len(shape) == 2 and (config["tie_word_embeddings"]
                                          or "embed" not in name)
        format_ = storage if multiplied else table_storage
        if format_ and len(shape) == 2:
            values = storable(random, shape, deviation, format_)
            entries.append((name, "F32", shape, encode(values, "F32")))
            continue
        entries.append((name, dtype, shape, encode(values, dtype)))
    return entries


def write_checkpoint(out, config, entries, shards=1):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    if shards == 1:
        write_safetensors(os.path.join(out, "model.safetensors"), entries)
        return
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = entries[shard::shards]
        write_safetensors(os.path.join(out, file), part)
        weight_map.update({entry[0]: file for entry in part})
    with open(os.path.join(out, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file)


def set_fields(config, assignments):
    """Does what `--set FIELD=JSON` asks for."""
    for assignment in assignments:
        field, value = assignment.split("=", 1)
        try:
            config[field] = json.loads(value)
        except json.JSONDecodeError:
            config[field] = value
        if field == "architectures":
            config[field] = [value]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=JSON")
    parser.add_argument("--dtype", default="BF16",
                        choices=("F32", "F16", "BF16"))
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", action="append", default=[],
                        metavar="NAME=FACTOR")
    parser.add_argument("--storable", metavar="FORMAT")
    parser.add_argument("--storable-tables", metavar="FORMAT")
    arguments = parser.parse_args()

    config = dict(DEFAULTS)
    set_fields(config, arguments.set)
    scales = [(name, float(factor)) for name, factor in
              (scale.split("=", 1) for scale in arguments.scale)]
    write_checkpoint(arguments.out, config,
                     random_tensors(config, arguments.dtype, arguments.seed,
                                    scales, arguments.storable,
                                    arguments.storable_tables),
                     arguments.shards)


if __name__ == "__main__":
    main()
