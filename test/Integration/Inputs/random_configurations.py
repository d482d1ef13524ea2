#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles random configurations and compares their logits with the reference.

    random_configurations.py FOLDER [--count N] [--seed N] [--target NAME]
                             [--dtypes f32,bf16] [--chunks 0,7,1]

Each checkpoint's config.json is written in one of several ways that mean the
same to transformers; the reference reads the plainest. What is misread without
an error shows in the logits. Tokens are fed at once (0) and in pieces of the
other lengths of --chunks.
"""
import argparse
import json
import os
import subprocess

import numpy as np

import compare_logits
import make_checkpoint
from reference import Reference

FAMILIES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral",
            "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3"}
TOKENS = 24
# Of compare_logits.py.
LIMITS = {"f32": (2e-4, None, None), "bf16": (None, 1e-3, None)}


def draw_plain(family, random):
    """A configuration as the reference reads it."""
    kv_heads = int(random.choice((1, 2, 3)))
    heads = kv_heads * int(random.choice((1, 2, 4)))
    head_dim = int(random.choice((8, 16, 24)))
    config = dict(make_checkpoint.DEFAULTS)
    config.update(
        architectures=[family], model_type=FAMILIES[family],
        num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=head_dim, hidden_size=heads * int(random.choice((8, 16, 24))),
        intermediate_size=int(random.choice((40, 96, 120))),
        num_hidden_layers=int(random.choice((1, 2))),
        vocab_size=int(random.choice((64, 101, 320))),
        rms_norm_eps=float(random.choice((1e-6, 1e-5, 1e-2))),
        rope_theta=float(random.choice((100, 10000, 500000))),
        tie_word_embeddings=bool(random.integers(2)))
    if family in ("LlamaForCausalLM", "Qwen3ForCausalLM"):
        config["attention_bias"] = bool(random.integers(2))
    scaling = random.integers(3)
    if scaling == 1:
        config["rope_scaling"] = {"rope_type": "linear", "factor": 2.5}
    elif scaling == 2:
        config["rope_scaling"] = {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
            "high_freq_factor": 3.0, "original_max_position_embeddings": 16}
    return config


def spell(plain, random):
    """The same in other words."""
    config = dict(plain)
    family = config["architectures"][0]
    if random.integers(2):
        config["hidden_act"] = "swish"
    if family == "LlamaForCausalLM" \
            and config["num_key_value_heads"] == config["num_attention_heads"]:
        del config["num_key_value_heads"]
    if config["head_dim"] * config["num_attention_heads"] \
            == config["hidden_size"] and family != "Qwen3ForCausalLM":
        config["head_dim"] = None
    scaling = dict(config.get("rope_scaling") or {})
    spelling = random.integers(3)
    if spelling == 1 and scaling:
        scaling["type"] = scaling.pop("rope_type")
        config["rope_scaling"] = scaling
    elif spelling == 2:
        config.pop("rope_scaling", None)
        config["rope_parameters"] = {
            "rope_type": "default", **scaling,
            "rope_theta": config.pop("rope_theta")}
    # A window that no token of the context reaches.
    if family == "MistralForCausalLM":
        config["sliding_window"] = (None, 64, 4096)[random.integers(3)]
    elif family.startswith("Qwen"):
        config.update(use_sliding_window=bool(random.integers(2)),
                      sliding_window=64,
                      max_window_layers=int(random.integers(3)))
    if random.integers(2):
        config.update(is_causal=True, mlp_bias=False, logit_scale=1.0,
                      attn_logit_softcapping=None, partial_rotary_factor=1.0)
    return config


def check(folder, family, random, arguments):
    plain = draw_plain(family, random)
    spelled = spell(plain, random)
    print(json.dumps(spelled), flush=True)
    entries = make_checkpoint.random_tensors(
        plain, str(random.choice(("F32", "F16", "BF16"))),
        int(random.integers(1000)))
    make_checkpoint.write_checkpoint(folder, plain, entries)
    reference = Reference(folder)
    if plain["tie_word_embeddings"] and random.integers(2):
        entries.append(("lm_head.weight", *entries[0][1:]))
    make_checkpoint.write_checkpoint(folder, spelled, entries)
    ids = random.integers(plain["vocab_size"], size=TOKENS)
    expected = reference.logits(ids)
    artifact = folder + ".sandwich"
    for dtype in arguments.dtypes.split(","):
        subprocess.run(["sandwich-compile", folder, "-q", "-o", artifact,
                        f"--dtype={dtype}", f"--target={arguments.target}",
                        f"--max-tokens-per-step={TOKENS}", "--threads=2"],
                       check=True)
        command = compare_logits.runner_of(artifact) + ["logits", artifact]
        for chunk in map(int, arguments.chunks.split(",")):
            compare_logits.check(
                f"{dtype} in pieces of {chunk}", expected,
                compare_logits.run(command, ids, chunk, plain["vocab_size"]),
                LIMITS[dtype])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="x86-64-avx2")
    parser.add_argument("--dtypes", default="f32")
    parser.add_argument("--chunks", default="0")
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    for index in range(arguments.count):
        check(os.path.join(arguments.folder, f"model-{index}"),
              list(FAMILIES)[index % len(FAMILIES)], random, arguments)


main()
