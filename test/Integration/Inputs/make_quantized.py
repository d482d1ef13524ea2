#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a small random model whose matrices are integers already.

    make_quantized.py OUT FORMAT [--set FIELD=JSON]... [--tokenizer FOLDER]
                      [--break WHAT]

FORMAT is a type of GGUF tensors, such as Q4_K, or several, Q4_K,Q6_K, which the
layers have in turn: OUT/model.gguf has a model of them. Or it is gptq, gptq_v2,
awq, pack-quantized or int-quantized, perhaps with bits, size of groups and
"symmetric", such as gptq-4-64-symmetric: OUT is a folder of that. In OUT/values
is a folder with the numbers that these stand for, as float32. Integers and scales
are drawn, not rounded from other numbers, so that nothing here is like what reads
them. --tokenizer takes that of a folder with tokenizer.json into the GGUF file,
--break spoils something: see BREAKS.
"""
import argparse
import json
import os
import struct

import numpy as np

import make_checkpoint

F32, F16, BF16 = 0, 1, 30


def halves(x):
    return np.asarray(x, dtype=np.float16)


def drawn_scales(random, shape, size):
    """Numbers of f16 that are `size` on average."""
    return halves(size * random.uniform(0.75, 1.25, shape))


def nibbles(low, high):
    return (low | high << 4).astype(np.uint8)


def high_bits(numbers):
    """The fifth bits of blocks of 32 numbers, in four bytes."""
    return np.packbits(numbers >> 4, axis=-1, bitorder="little")


def small_blocks(random, rows, columns, deviation, bits, minimum):
    """Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0."""
    levels = 1 << bits
    blocks = (rows, columns // 32)
    numbers = random.integers(levels, size=blocks + (32,))
    scale = drawn_scales(random, blocks, deviation * 12**0.5 / levels)
    fields = [scale[..., None].view(np.uint8)]
    value = scale[..., None].astype(np.float64)
    if minimum:
        least = halves(-scale.astype(np.float32) *
                       random.uniform(0.4, 0.6, blocks) * levels)
        fields.append(least[..., None].view(np.uint8))
        values = value * numbers + least[..., None].astype(np.float64)
    else:
        values = value * (numbers - levels // 2)
    if bits == 5:
        fields.append(high_bits(numbers))
    if bits == 8:
        fields.append((numbers - 128).astype(np.int8).view(np.uint8))
    else:
        low = numbers & 15
        fields.append(nibbles(low[..., :16], low[..., 16:]))
    return np.concatenate(fields, -1), values


def six_bit_scales(scales, minima):
    """Eight scales and eight minima of six bits, in twelve bytes."""
    packed = np.zeros(scales.shape[:-1] + (12,), dtype=np.uint8)
    packed[..., 0:4] = scales[..., :4] | (scales[..., 4:] >> 4) << 6
    packed[..., 4:8] = minima[..., :4] | (minima[..., 4:] >> 4) << 6
    packed[..., 8:12] = (scales[..., 4:] & 15) | (minima[..., 4:] & 15) << 4
    return packed


def six_bit_blocks(random, rows, columns, deviation, bits):
    """Q4_K and Q5_K."""
    blocks = (rows, columns // 256)
    levels = 1 << bits
    numbers = random.integers(levels, size=blocks + (8, 32))
    scales = random.integers(32, 64, size=blocks + (8,))
    minima = random.integers(32, 64, size=blocks + (8,))
    scale = drawn_scales(random, blocks, deviation * 12**0.5 / levels / 48)
    least = halves(scale.astype(np.float32) * levels / 2)
    values = (numbers * scales[..., None] * scale[..., None, None].astype(float)
              - minima[..., None] * least[..., None, None].astype(float))
    fields = [scale[..., None].view(np.uint8), least[..., None].view(np.uint8),
              six_bit_scales(scales, minima)]
    if bits == 5:
        # Bit g of byte i is that of number i of group g.
        fields.append(np.packbits(np.swapaxes(numbers >> 4, -1, -2), axis=-1,
                                  bitorder="little").reshape(blocks + (32,)))
    low = numbers & 15
    fields.append(nibbles(low[..., 0::2, :], low[..., 1::2, :])
                  .reshape(blocks + (128,)))
    return np.concatenate(fields, -1), values


def q6_k_blocks(random, rows, columns, deviation):
    blocks = (rows, columns // 256)
    # Halves of 128, quarters of 32, of which 16 share a scale.
    numbers = random.integers(64, size=blocks + (2, 4, 32))
    scales = (random.integers(64, 128, size=blocks + (2, 4, 2)) *
              random.choice((-1, 1), blocks + (2, 4, 2)))
    scale = drawn_scales(random, blocks, deviation * 12**0.5 / 64 / 96)
    values = ((numbers - 32) * np.repeat(scales, 16, axis=-1) *
              scale[..., None, None, None].astype(float))
    low = nibbles(numbers[..., :2, :] & 15, numbers[..., 2:, :] & 15)
    high = sum((numbers[..., quarter, :] >> 4) << 2 * quarter
               for quarter in range(4)).astype(np.uint8)
    return np.concatenate([
        low.reshape(blocks + (128,)), high.reshape(blocks + (64,)),
        scales.reshape(blocks + (16,)).astype(np.int8).view(np.uint8),
        scale[..., None].view(np.uint8)], -1), values


def float_rows(random, rows, columns, deviation, dtype):
    values = random.standard_normal((rows, columns)) * deviation
    data = make_checkpoint.encode(values.astype(np.float32), dtype)
    stored = {"F32": lambda: np.frombuffer(data, "<f4"),
              "F16": lambda: np.frombuffer(data, "<f2"),
              "BF16": lambda: (np.frombuffer(data, "<u2").astype("<u4")
                               << 16).view("<f4")}[dtype]()
    return np.frombuffer(data, np.uint8), stored


# Number, and what draws the blocks and values of a matrix.
GGUF_TYPES = {
    "F32": (F32, lambda *a: float_rows(*a, "F32")),
    "F16": (F16, lambda *a: float_rows(*a, "F16")),
    "BF16": (BF16, lambda *a: float_rows(*a, "BF16")),
    "Q4_0": (2, lambda *a: small_blocks(*a, 4, False)),
    "Q4_1": (3, lambda *a: small_blocks(*a, 4, True)),
    "Q5_0": (6, lambda *a: small_blocks(*a, 5, False)),
    "Q5_1": (7, lambda *a: small_blocks(*a, 5, True)),
    "Q8_0": (8, lambda *a: small_blocks(*a, 8, False)),
    "Q4_K": (12, lambda *a: six_bit_blocks(*a, 4)),
    "Q5_K": (13, lambda *a: six_bit_blocks(*a, 5)),
    "Q6_K": (14, q6_k_blocks),
}

GGUF_LAYERS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GGUF_OUTER = {"model.embed_tokens.weight": "token_embd.weight",
              "model.norm.weight": "output_norm.weight",
              "lm_head.weight": "output.weight"}
FAMILIES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2",
            "Qwen3ForCausalLM": "qwen3"}


def gguf_name(name):
    if name in GGUF_OUTER:
        return GGUF_OUTER[name]
    _, _, layer, rest = name.split(".", 3)
    stem, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{GGUF_LAYERS[stem]}.{kind}"


def to_order_of_heads(values, head):
    """Rows as transformers has them, from neighbours that turn together."""
    pairs = values.reshape(-1, head // 2, 2, *values.shape[1:])
    return np.swapaxes(pairs, 1, 2).reshape(values.shape)


def gguf_string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    """The type of `value` and its bytes; numpy's numbers have their types."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value[0], str):
        return (struct.pack("<IIQ", 9, 8, len(value)) +
                b"".join(map(gguf_string, value)))
    number = 6 if isinstance(value[0], float) else 5
    kind = "<f4" if number == 6 else "<i4"
    return (struct.pack("<IIQ", 9, number, len(value)) +
            np.asarray(value, kind).tobytes())


def write_gguf(path, metadata, tensors, alignment=32):
    """`tensors` are names, shapes, numbers of types, and bytes."""
    text = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        text += gguf_string(key) + gguf_value(value)
    offset = 0
    for name, shape, number, data in tensors:
        text += gguf_string(name) + struct.pack("<I", len(shape))
        text += struct.pack(f"<{len(shape)}Q", *reversed(shape))
        text += struct.pack("<IQ", number, offset)
        offset += len(data) + -len(data) % alignment
    with open(path, "wb") as file:
        file.write(text + b"\0" * (-len(text) % alignment))
        for *_, data in tensors:
            file.write(data + b"\0" * (-len(data) % alignment))


def rope_factors(config):
    """What llama3's scaling divides each frequency by."""
    scaling = config["rope_scaling"]
    head = config["hidden_size"] // config["num_attention_heads"]
    base = config["rope_theta"] ** (-2.0 * np.arange(head // 2) / head)
    turns = scaling["original_max_position_embeddings"] * base / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / (kept + (1 - kept) / scaling["factor"])).astype(np.float32)


def metadata_of(config):
    family = FAMILIES[config["architectures"][0]]
    head = config.get("head_dim")
    metadata = {
        "general.architecture": family,
        "general.alignment": 32,
        f"{family}.block_count": config["num_hidden_layers"],
        f"{family}.embedding_length": config["hidden_size"],
        f"{family}.feed_forward_length": config["intermediate_size"],
        f"{family}.context_length": config["max_position_embeddings"],
        f"{family}.attention.head_count": config["num_attention_heads"],
        f"{family}.attention.head_count_kv": config["num_key_value_heads"],
        f"{family}.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        f"{family}.rope.freq_base": config["rope_theta"],
        "tokenizer.ggml.bos_token_id": config["bos_token_id"],
        "tokenizer.ggml.eos_token_id": config["eos_token_id"],
    }
    if head:
        metadata[f"{family}.attention.key_length"] = head
        metadata[f"{family}.attention.value_length"] = head
    return metadata


def add_tokenizer(metadata, folder, vocab_size):
    """The tokenizer of `folder` as llama.cpp's converters write it."""
    with open(os.path.join(folder, "tokenizer.json")) as file:
        tokenizer = json.load(file)
    ids = dict(tokenizer["model"]["vocab"])
    kinds = {}
    for token in tokenizer["added_tokens"]:
        ids[token["content"]] = token["id"]
        kinds[token["id"]] = 3 if token["special"] else 4
    tokens = [f"[PAD{i}]" for i in range(vocab_size)]
    types = [5] * vocab_size
    for token, number in ids.items():
        tokens[number] = token
        types[number] = kinds.get(number, 1)
    metadata["tokenizer.ggml.tokens"] = tokens
    metadata["tokenizer.ggml.token_type"] = types
    merges = tokenizer["model"]["merges"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge
             for merge in merges]
    if tokenizer["model"].get("byte_fallback"):
        metadata["tokenizer.ggml.model"] = "llama"
        # SentencePiece tells scores, from which merges follow.
        scores = [0.0] * vocab_size
        for rank, pair in enumerate(pairs):
            number = ids["".join(pair)]
            if scores[number] == 0:
                scores[number] = -float(rank + 1)
        metadata["tokenizer.ggml.scores"] = scores
        metadata["tokenizer.ggml.unknown_token_id"] = ids["<unk>"]
    else:
        metadata["tokenizer.ggml.model"] = "gpt2"
        metadata["tokenizer.ggml.pre"] = "llama-bpe"
        metadata["tokenizer.ggml.merges"] = [" ".join(pair) for pair in pairs]
        metadata["tokenizer.ggml.add_bos_token"] = False


def make_gguf(out, config, types, random, tokenizer, broken):
    metadata = metadata_of(config)
    family = metadata["general.architecture"]
    head = (config.get("head_dim") or
            config["hidden_size"] // config["num_attention_heads"])
    if tokenizer:
        add_tokenizer(metadata, tokenizer, config["vocab_size"])
    tensors, values = [], []
    matrices = 0
    for name, shape, deviation in make_checkpoint.tensors(config):
        if len(shape) == 1:
            numbers = random.standard_normal(shape) * 0.1
            value = numbers + (1 if deviation is None else 0)
            value = value.astype(np.float32)
            number, data = F32, value.tobytes()
        else:
            number, draw = GGUF_TYPES[types[matrices % len(types)]]
            matrices += 1
            blocks, value = draw(random, *shape, deviation)
            if broken == "scale" and "layers.1.mlp.up" in name:
                blocks.reshape(shape[0], -1)[3, :2] = 0, 0x7C
            data = blocks.tobytes()
            value = value.reshape(shape)
        tensors.append((gguf_name(name), shape, number, data))
        if family == "llama" and (".q_proj." in name or ".k_proj." in name):
            value = to_order_of_heads(value, head)
        values.append((name, "F32", shape,
                       np.ascontiguousarray(value, np.float32).tobytes()))
    if config.get("rope_scaling"):
        factors = rope_factors(config)
        tensors.append(("rope_freqs.weight", factors.shape, F32,
                        factors.tobytes()))
    if broken == "bias":
        tensors.append(("blk.1.ffn_up.bias", (4,), F32, bytes(16)))
    if broken == "type":
        tensors[3] = (*tensors[3][:2], 16, tensors[3][3])
    if broken == "architecture":
        metadata["general.architecture"] = "gemma"
    if broken == "missing":
        del tensors[4]
    if broken == "alignment":
        metadata["general.alignment"] = 0
    if broken == "tokenizer":
        metadata["tokenizer.ggml.model"] = "rwkv"
        metadata["tokenizer.ggml.tokens"] = ["a"]
    if broken == "experts":
        metadata["llama.expert_count"] = 8
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "model.gguf")
    write_gguf(path, metadata, tensors)
    if broken == "short":
        os.truncate(path, os.path.getsize(path) - 40)
    return values


def pack_words(numbers, bits, axis, order=None):
    """Numbers along `axis` in words of 32 bits, the first in the lowest."""
    numbers = np.moveaxis(numbers, axis, -1).astype(np.uint32)
    count = 32 // bits
    numbers = numbers.reshape(*numbers.shape[:-1], -1, count)
    if order:
        numbers = numbers[..., order]
    shifts = (np.arange(count) * bits).astype(np.uint32)
    words = np.bitwise_or.reduce(numbers << shifts, axis=-1)
    return np.moveaxis(words, -1, axis).astype(np.uint32).view(np.int32)


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def draw_groups(random, shape, deviation, bits, group, symmetric):
    """Integers from 0 on, [rows, groups, size], with scales and zeros."""
    rows, columns = shape
    size = group or columns
    groups = columns // size
    levels = 1 << bits
    numbers = random.integers(levels, size=(rows, groups, size))
    scale = drawn_scales(random, (rows, groups),
                         deviation * 12**0.5 / levels)
    zeros = np.full((rows, groups), levels // 2)
    if not symmetric:
        zeros += random.integers(-2, 3, size=zeros.shape)
    values = ((numbers - zeros[..., None]) *
              scale[..., None].astype(float)).reshape(shape)
    return numbers.reshape(shape), scale, zeros, values


def draw_float8(random, shape, deviation, layout, dtype):
    """Numbers of E4M3 with scales of all, of rows or of blocks."""
    size = {"tensor": shape, "channel": (1, shape[1]),
            "block": (128, 128)}[layout]
    blocks = tuple(-(-whole // part) for whole, part in zip(shape, size))
    scale = (deviation / 100 * random.uniform(0.5, 1, blocks)).astype(np.float32)
    if dtype == "BF16":
        scale = (scale.view(np.uint32) & 0xFFFF0000).view(np.float32)
    spread = np.repeat(np.repeat(scale, size[0], 0), size[1], 1)
    spread = spread[:shape[0], :shape[1]].astype(float)
    drawn = random.standard_normal(shape) * deviation
    numbers = make_checkpoint.to_float8(drawn / spread)
    # All that there are, and subnormal ones among these.
    numbers[0, :254] = np.delete(np.arange(256), (127, 255))
    return numbers, scale, make_checkpoint.from_float8(numbers) * spread


def float8_entries(stem, method, layout, dtype, drawn):
    """The tensors of a module."""
    numbers, scale, _ = drawn
    if layout == "tensor":
        scale = scale.reshape(() if method == "fp8" else (1,))
    suffix = ("_inv" if method == "fp8" and layout == "block" else "")
    entries = [(stem + ".weight", "F8_E4M3", numbers.shape, numbers.tobytes()),
               (stem + ".weight_scale" + suffix, dtype, scale.shape,
                make_checkpoint.encode(scale, dtype))]
    if layout == "tensor":
        entries.append(entry(stem + ".input_scale", "F32",
                             np.array(0.1, np.float32)))
    return entries


def float8_config(method, layout):
    if method == "fp8":
        config = {"quant_method": "fp8", "activation_scheme":
                  "static" if layout == "tensor" else "dynamic"}
        if layout == "block":
            config.update(fmt="e4m3", weight_block_size=[128, 128])
        return config
    inputs = {"num_bits": 8, "type": "float", "symmetric": True,
              "strategy": "tensor" if layout == "tensor" else "token",
              "dynamic": layout != "tensor"}
    weights = {"num_bits": 8, "type": "float", "symmetric": True,
               "dynamic": False, "strategy": layout}
    if layout == "block":
        weights["block_structure"] = [128, 128]
    return {"quant_method": "compressed-tensors", "format": method,
            "ignore": ["lm_head"],
            "config_groups": {"group_0": {
                "targets": ["Linear"], "weights": weights,
                "input_activations": inputs, "output_activations": None}}}


def entry(name, dtype, array):
    return name, dtype, array.shape, np.ascontiguousarray(array).tobytes()


def quantized_entries(stem, method, bits, drawn, symmetric, order):
    """The tensors of a module, `order` of whose columns are `drawn`."""
    numbers, scale, zeros, _ = drawn
    groups = (order // (len(order) // zeros.shape[1])).astype(np.int32)
    if method in ("gptq", "gptq_v2"):
        less = 1 if method == "gptq" else 0
        return [entry(stem + ".qweight", "I32",
                      pack_words(numbers.T, bits, 0)),
                entry(stem + ".qzeros", "I32",
                      pack_words(zeros.T - less, bits, 1)),
                entry(stem + ".scales", "F16", scale.T),
                entry(stem + ".g_idx", "I32", groups)]
    if method == "awq":
        return [entry(stem + ".qweight", "I32",
                      pack_words(numbers.T, bits, 1, AWQ_ORDER)),
                entry(stem + ".qzeros", "I32",
                      pack_words(zeros.T, bits, 1, AWQ_ORDER)),
                entry(stem + ".scales", "F16", scale.T)]
    middle = 1 << bits - 1
    entries = [entry(stem + ".weight_scale", "F16", scale)]
    if method == "pack-quantized":
        entries += [entry(stem + ".weight_packed", "I32",
                          pack_words(numbers, bits, 1)),
                    entry(stem + ".weight_shape", "I64",
                          np.array(numbers.shape))]
        if not symmetric:
            entries.append(entry(stem + ".weight_zero_point", "I32",
                                 pack_words(zeros, bits, 0)))
        entries.append(entry(stem + ".weight_g_idx", "I32", groups))
    else:
        entries.append(entry(stem + ".weight", "I8",
                             (numbers - middle).astype(np.int8)))
        if not symmetric:
            entries.append(entry(stem + ".weight_zero_point", "I8",
                                 (zeros - middle).astype(np.int8)))
    return entries


def quantization_config(method, bits, group, symmetric):
    if method in ("gptq", "gptq_v2"):
        return {"quant_method": "gptq", "bits": bits, "group_size": group or -1,
                "sym": symmetric, "desc_act": False,
                "checkpoint_format": method}
    if method == "awq":
        return {"quant_method": "awq", "bits": bits, "group_size": group or -1,
                "zero_point": not symmetric, "version": "gemm"}
    return {"quant_method": "compressed-tensors", "format": method,
            "ignore": ["lm_head"],
            "config_groups": {"group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": bits, "type": "int",
                            "symmetric": symmetric, "dynamic": False,
                            "strategy": "group" if group else "channel",
                            "group_size": group or None},
                "input_activations": None, "output_activations": None}}}


def make_folder(out, config, spelled, random, broken):
    names = spelled.split("-")
    words = 2 if names[0] in ("pack", "int", "float") else 1
    method, rest = "-".join(names[:words]), names[words:]
    is_float8 = method in ("fp8", "float-quantized")
    if is_float8:
        layout, dtype = rest[0], "BF16" if "bf16" in rest else "F32"
        rest = []
    symmetric, reordered = "symmetric" in rest, "reordered" in rest
    numbers = [int(part) for part in rest if part.isdigit()]
    bits, group = numbers if len(numbers) == 2 else (4, 32)
    entries, values = [], []
    for name, shape, deviation in make_checkpoint.tensors(config):
        stem = name.removesuffix(".weight")
        if len(shape) == 1 or "embed" in name or "lm_head" in name:
            value = random.standard_normal(shape).astype(np.float32)
            value = value * np.float32(deviation) if deviation else 1 + value / 8
            data = make_checkpoint.encode(value, "BF16")
            entries.append((name, "BF16", shape, data))
            values.append((name, "BF16", shape, data))
            continue
        if is_float8:
            drawn = draw_float8(random, shape, deviation, layout, dtype)
            made = float8_entries(stem, method, layout, dtype, drawn)
        else:
            drawn = draw_groups(random, shape, deviation, bits, group,
                                symmetric)
            # Columns and their groups are in the same order.
            order = np.arange(shape[1])
            if reordered:
                random.shuffle(order)
            drawn = (drawn[0][:, order], *drawn[1:3], drawn[3][:, order])
            made = quantized_entries(stem, method, bits, drawn, symmetric,
                                     order)
        if "layers.1.mlp.up" in name:
            made = BREAKS.get(broken, lambda made: made)(made)
        entries += made
        values.append((name, "F32", shape,
                       drawn[-1].astype(np.float32).tobytes()))
    quantized = dict(config)
    quantized["quantization_config"] = (
        float8_config(method, layout) if is_float8 else
        quantization_config(method, bits, group, symmetric))
    if broken == "block-size":
        quantized["quantization_config"]["weight_block_size"] = [128, 24]
    if broken == "bits":
        quantized["quantization_config"]["bits"] = 8
    if broken == "method":
        quantized["quantization_config"]["quant_method"] = "hqq"
    make_checkpoint.write_checkpoint(out, quantized, entries)
    return values


def in_other_order(made):
    return [part if not part[0].endswith("g_idx") else
            (*part[:3], np.frombuffer(part[3], np.int32)[::-1].tobytes())
            for part in made]


def in_group(number):
    """Column 1 is in group `number`."""
    def change(made):
        data = np.int32(number).tobytes()
        return [part if not part[0].endswith("g_idx") else
                (*part[:3], part[3][:4] + data + part[3][8:]) for part in made]
    return change


def with_infinite_scale(made):
    return [part if not part[0].endswith(("scales", "scale")) else
            (*part[:3], b"\x00\x7c" + part[3][2:]) for part in made]


def with_scale(value):
    """The first scale, of F32, is `value`."""
    def change(made):
        first = np.float32(value).tobytes()
        return [part if "weight_scale" not in part[0] else
                (*part[:3], first + part[3][4:]) for part in made]
    return change


def with_nan(made):
    """The number [0, 5] is NaN."""
    return [part if not part[0].endswith(".weight") else
            (*part[:3], part[3][:5] + b"\xff" + part[3][6:]) for part in made]


def with_other_scales(made):
    """Scales have another shape."""
    return [part if "weight_scale" not in part[0] else
            (*part[:2], part[2][::-1], part[3]) for part in made]


def with_bias(value):
    def add(made):
        name = made[0][0].rsplit(".", 1)[0] + ".bias"
        return made + [entry(name, "F16", halves(np.full(8, value)))]
    return add


# What can be done to the tensors of a module.
BREAKS = {
    "bias": with_bias(0.5),
    "no-bias": with_bias(0),
    "order": in_other_order,
    "order-beyond": in_group(8),
    "order-negative": in_group(-1),
    "infinite": with_infinite_scale,
    "infinite-scale": with_scale(np.inf),
    "zero-scale": with_scale(0),
    "negative-scale": with_scale(-0.5),
    "nan-scale": with_scale(np.nan),
    "nan": with_nan,
    "scale-shape": with_other_scales,
    "no-scale": lambda made: [part for part in made if "_scale" not in part[0]],
    "zeros": lambda made: [part for part in made if "zero" not in part[0]],
    "shape": lambda made: [(*part[:2], (1, *part[2]), part[3])
                           for part in made],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("format")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokenizer", metavar="FOLDER")
    parser.add_argument("--break", dest="broken", metavar="WHAT")
    arguments = parser.parse_args()
    config = dict(make_checkpoint.DEFAULTS, hidden_size=256,
                  intermediate_size=512)
    make_checkpoint.set_fields(config, arguments.set)
    random = np.random.default_rng(arguments.seed)
    types = arguments.format.split(",")
    if types[0] in GGUF_TYPES:
        values = make_gguf(arguments.out, config, types, random,
                           arguments.tokenizer, arguments.broken)
    else:
        values = make_folder(arguments.out, config, arguments.format, random,
                             arguments.broken)
    make_checkpoint.write_checkpoint(os.path.join(arguments.out, "values"),
                                     config, values)


if __name__ == "__main__":
    main()
