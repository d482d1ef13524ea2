#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The logits of a checkpoint, from float64 arithmetic on the stored weights.

    reference.py MODEL_DIR TOKEN_ID... [--out FILE] [--greedy N]

--out writes all logits as raw little-endian float32 [tokens, vocab]; --greedy
prints the N most probable next tokens, one after the other.
"""
import argparse
import json
import os
import struct

import numpy as np


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = {
            "F32": lambda raw: np.frombuffer(raw, "<f4"),
            "F16": lambda raw: np.frombuffer(raw, "<f2"),
            # A bfloat16 is the upper half of a float32.
            "BF16": lambda raw: (np.frombuffer(raw, "<u2").astype("<u4")
                                 << 16).view("<f4"),
            # Position ids that old checkpoints of encoders hold.
            "I64": lambda raw: np.frombuffer(raw, "<i8"),
        }[entry["dtype"]](data[begin:end])
        tensors[name] = values.astype(np.float64).reshape(entry["shape"])
    return tensors


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def round_to_int8(x, group):
    """Rows of x in groups of so many channels, each with a scale of its own."""
    groups = x.reshape(-1, group)
    largest = np.abs(groups).max(-1, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1)
    return (np.rint(groups / scales) * scales).reshape(x.shape)


class Reference:
    def __init__(self, folder, rounds_inputs=None, rounds_cache=False):
        """With `rounds_inputs`, "row" or the channels of a group, what weights
        are multiplied with is rounded to int8; with `rounds_cache` the keys and
        values of each head are."""
        self.rounds_inputs = rounds_inputs
        self.rounds_cache = rounds_cache
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)
        self.tensors = {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                self.tensors.update(
                    read_safetensors(os.path.join(folder, file)))
        config = self.config
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head_dim = (config.get("head_dim")
                         or config["hidden_size"] // self.heads)

    def frequencies(self):
        """Radians per position of each pair of channels."""
        theta = self.config.get("rope_theta", 10000.0)
        pairs = np.arange(self.head_dim // 2)
        base = theta ** (-2.0 * pairs / self.head_dim)
        scaling = self.config.get("rope_scaling") or {}
        kind = scaling.get("rope_type") or scaling.get("type") or "default"
        if kind == "default":
            return base
        if kind == "linear":
            return base / scaling["factor"]
        assert kind == "llama3", kind
        # Turns that a pair makes within the context it was trained for.
        turns = (scaling["original_max_position_embeddings"] * base /
                 (2 * np.pi))
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = np.clip((turns - low) / (high - low), 0, 1)
        return kept * base + (1 - kept) * base / scaling["factor"]

    def normalize(self, x, name):
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        scale = self.tensors[name + ".weight"]
        return x / np.sqrt(mean_square + self.config["rms_norm_eps"]) * scale

    def linear(self, x, name):
        if self.rounds_inputs:
            group = (x.shape[-1] if self.rounds_inputs == "row"
                     else int(self.rounds_inputs))
            x = round_to_int8(x, group)
        result = x @ self.tensors[name + ".weight"].T
        if name + ".bias" in self.tensors:
            result = result + self.tensors[name + ".bias"]
        return result

    def project(self, x, prefix, name, heads, turn):
        """Heads of queries, keys or values: [head, token, channel]."""
        heads = self.linear(x, f"{prefix}{name}_proj").reshape(
            len(x), heads, self.head_dim).swapaxes(0, 1)
        if f"{prefix}{name}_norm.weight" in self.tensors:
            heads = self.normalize(heads, f"{prefix}{name}_norm")
        if turn is None:
            return heads
        half = self.head_dim // 2
        turned = (heads[..., :half] + 1j * heads[..., half:]) * turn
        return np.concatenate((turned.real, turned.imag), -1)

    def attention(self, x, prefix, turn):
        queries = self.project(x, prefix, "q", self.heads, turn)
        keys = self.project(x, prefix, "k", self.kv_heads, turn)
        values = self.project(x, prefix, "v", self.kv_heads, None)
        if self.rounds_cache:
            keys = round_to_int8(keys, self.head_dim)
            values = round_to_int8(values, self.head_dim)
        result = np.empty_like(queries)
        future = np.arange(len(x)) > np.arange(len(x))[:, None]
        for head in range(self.heads):
            kv_head = head // (self.heads // self.kv_heads)
            scores = queries[head] @ keys[kv_head].T / self.head_dim**0.5
            result[head] = (softmax(np.where(future, -np.inf, scores))
                            @ values[kv_head])
        joined = result.swapaxes(0, 1).reshape(len(x), -1)
        return self.linear(joined, prefix + "o_proj")

    def feed_forward(self, x, prefix):
        gate = self.linear(x, prefix + "gate_proj")
        up = self.linear(x, prefix + "up_proj")
        return self.linear(gate / (1 + np.exp(-gate)) * up,
                           prefix + "down_proj")

    def states(self, ids):
        """What the last norm gives for every token: [token, channel]."""
        turn = np.exp(1j * np.outer(np.arange(len(ids)), self.frequencies()))
        x = self.tensors["model.embed_tokens.weight"][ids]
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}."
            x = x + self.attention(
                self.normalize(x, prefix + "input_layernorm"),
                prefix + "self_attn.", turn)
            x = x + self.feed_forward(
                self.normalize(x, prefix + "post_attention_layernorm"),
                prefix + "mlp.")
        return self.normalize(x, "model.norm")

    def logits(self, ids):
        head = "lm_head"
        if self.config.get("tie_word_embeddings", False):
            head = "model.embed_tokens"
        return self.linear(self.states(ids), head)

    def greedy(self, ids, count):
        made = []
        for _ in range(count):
            made.append(int(self.logits(list(ids) + made)[-1].argmax()))
        return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("ids", type=int, nargs="+")
    parser.add_argument("--out")
    parser.add_argument("--greedy", type=int, default=0)
    arguments = parser.parse_args()
    reference = Reference(arguments.model)
    if arguments.out:
        reference.logits(arguments.ids).astype("<f4").tofile(arguments.out)
    if arguments.greedy:
        print(*reference.greedy(arguments.ids, arguments.greedy))


if __name__ == "__main__":
    main()
