#!/usr/bin/env python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares embeddings of whole shapes with transformers in float32.

    encoder_fidelity.py bert-base|bge-large-zh|xlm-r-base|jina-v3 [--folder DIR]

Makes a random checkpoint of the shape (make_encoder.py of the tests), compiles
it with weights in f32 and in bf16, and embeds texts of 1, 75 and 512 random
tokens, and of 8,192 where the model takes them. Prints the largest difference
of normalized vectors and the largest distance of a cosine from 1, and whether
each text alone gives the bits that it gives in the batch. Needs torch,
transformers and numpy of PyPI, and sandwich-compile and sandwich-run in the
PATH. All goes into DIR, up to 8 GB, which is removed afterwards.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

MAKE_ENCODER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                            "test", "Integration", "Inputs", "make_encoder.py")
BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
            intermediate_size=3072)
LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
             intermediate_size=4096)
# Family of make_encoder.py, the fields of its configuration that differ, class
# of transformers, pooling.
SHAPES = {
    "bert-base": ("bert", dict(BASE, vocab_size=30522), "BertModel", "cls"),
    "bge-large-zh": ("bert", dict(LARGE, vocab_size=21128), "BertModel",
                     "cls"),
    "xlm-r-base": ("xlm-roberta", dict(BASE, vocab_size=250002),
                   "XLMRobertaModel", "mean"),
    # What a task adds to the weights is a matter of test/Integration/Encoders.
    "jina-v3": ("jina", dict(LARGE, vocab_size=250002, lora_adaptations=None,
                             matryoshka_dimensions=[1024]),
                "JinaEmbeddingsV3Model", "mean"),
}


def make_checkpoint(folder, family, fields, pooling):
    settings = [argument for name, value in fields.items()
                for argument in ("--set", f"{name}={json.dumps(value)}")]
    subprocess.run([sys.executable, "-B", MAKE_ENCODER, folder, "--family",
                    family, "--pooling", pooling, *settings], check=True)


def load(folder, class_name, fields):
    model_class = getattr(transformers, class_name)
    # transformers knows this one by a configuration of its own.
    config = None
    if class_name == "JinaEmbeddingsV3Model":
        config = transformers.JinaEmbeddingsV3Config(
            **{name: fields[name] for name in (*LARGE, "vocab_size")})
    model, report = model_class.from_pretrained(folder, config=config,
                                                output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report[kind]:
            sys.exit(f"error: transformers: {kind}: {sorted(report[kind])}")
    return model.eval()


def expected(model, pooling, texts):
    vectors = []
    with torch.inference_mode():
        for ids in texts:
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            vector = hidden[0] if pooling == "cls" else hidden.double().mean(0)
            vectors.append(torch.nn.functional.normalize(
                vector.double(), dim=-1).numpy())
    return vectors


def embed(artifact, texts, folder):
    """The lines that sandwich-run prints."""
    path = f"{folder}/ids"
    with open(path, "w") as file:
        file.writelines(json.dumps(ids) + "\n" for ids in texts)
    return subprocess.run(
        ["sandwich-run", "embed", artifact, "--ids", "--file", path],
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def compare(name, dtype, folder, texts, reference):
    artifact = f"{folder}/{dtype}.sandwich"
    subprocess.run(["sandwich-compile", f"{folder}/model", "-o", artifact,
                    f"--dtype={dtype}", "--quiet"], check=True)
    lines = embed(artifact, texts, folder)
    by_length = {}
    for ids, line, vector in zip(texts, lines, reference):
        ours = np.array(json.loads(line))
        difference = np.abs(ours - vector).max()
        distance = 1 - ours @ vector / np.linalg.norm(ours)
        before = by_length.get(len(ids), (0, 0))
        by_length[len(ids)] = (max(before[0], difference),
                               max(before[1], distance))
    for length, (difference, distance) in by_length.items():
        print(f"{name} {dtype}, {length} tokens: difference {difference:.1e}, "
              f"1 - cosine {distance:.1e}", flush=True)
    alone = [embed(artifact, [ids], folder)[0] for ids in texts]
    print(f"{name} {dtype}: each text alone as in the batch: "
          f"{'yes' if alone == lines else 'NO'}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--folder", help="where files go (default: $TMPDIR)")
    arguments = parser.parse_args()
    family, fields, class_name, pooling = SHAPES[arguments.shape]
    lengths = [1, 75, 512] + ([8192] if family == "jina" else [])
    random = np.random.default_rng(5)
    texts = [random.integers(5, fields["vocab_size"] - 5, length).tolist()
             for length in lengths for _ in range(3 if length < 1000 else 1)]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        make_checkpoint(f"{folder}/model", family, fields, pooling)
        reference = expected(load(f"{folder}/model", class_name, fields),
                             pooling, texts)
        for dtype in ("f32", "bf16"):
            compare(arguments.shape, dtype, folder, texts, reference)


if __name__ == "__main__":
    main()
