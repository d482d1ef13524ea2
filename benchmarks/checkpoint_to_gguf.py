#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the weights of a Llama checkpoint as GGUF, to time llama.cpp on them.

    checkpoint_to_gguf.py MODEL_DIR OUT.gguf --gguf-py LLAMA_CPP/gguf-py

Takes one model.safetensors of bf16 LlamaForCausalLM weights and keeps them bit
for bit. The vocabulary is made up: the file serves benchmarks on token ids, not
text. Needs numpy and the gguf package of a llama.cpp checkout.
"""
import argparse
import json
import os
import re
import struct
import sys

import numpy as np

NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.weight", name)
    if layer:
        return f"blk.{layer[1]}.{NAMES[layer[2]]}.weight"
    return NAMES[name]


def open_safetensors(path):
    """From each tensor's name to its bits as uint16, mapped."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "BF16":
            sys.exit(f"{path}: {name} is {entry['dtype']}, not BF16")
        begin, end = entry["data_offsets"]
        tensors[name] = data[begin:end].view(np.uint16).reshape(entry["shape"])
    return tensors


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("output")
    parser.add_argument("--gguf-py", required=True)
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.gguf_py)
    import gguf

    with open(os.path.join(arguments.model, "config.json")) as file:
        config = json.load(file)
    tensors = open_safetensors(
        os.path.join(arguments.model, "model.safetensors"))
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    vocab = config["vocab_size"]

    writer = gguf.GGUFWriter(arguments.output, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_vocab_size(vocab)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>"] +
                          [f"\u2581{i}".encode() for i in range(3, vocab)])
    writer.add_token_scores([-float(i) for i in range(vocab)])
    kinds = gguf.TokenType
    writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] +
                           [kinds.NORMAL] * (vocab - 3))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    for name, bits in tensors.items():
        if bits.ndim == 1:
            values = (bits.astype(np.uint32) << 16).view(np.float32)
            writer.add_tensor(gguf_name(name), values)
            continue
        # GGUF keeps the two channels of a rotation side by side, Hugging Face
        # in the two halves of a head.
        rotated = {"q_proj": heads, "k_proj": kv_heads}.get(
            name.split(".")[-2])
        if rotated:
            rows, columns = bits.shape
            bits = bits.reshape(rotated, 2, rows // rotated // 2,
                                columns).swapaxes(1, 2).reshape(rows, columns)
        # As bytes: the package knows no bf16 arrays.
        writer.add_tensor(gguf_name(name),
                          np.ascontiguousarray(bits).view(np.uint8),
                          raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
