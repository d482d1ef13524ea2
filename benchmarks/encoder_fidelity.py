#!/usr/bin/env python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares embeddings of whole shapes with transformers in float32.

    encoder_fidelity.py bert-base|bge-large-zh|xlm-r-base|jina-v3 [--folder DIR]

Makes a random checkpoint of the shape, compiles it with weights in f32 and in
bf16, and embeds texts of 1, 75 and 512 random tokens, and of 8,192 where the
model takes them. Prints the largest difference of normalized vectors and the
largest distance of a cosine from 1, and whether each text alone gives the bits
that it gives in the batch. Needs torch and transformers of PyPI, and
sandwich-compile and sandwich-run in the PATH. All goes into DIR, up to 8 GB,
which is removed afterwards.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import torch
import transformers


def shapes():
    """Class, configuration, pooling and lengths of each shape."""
    t = transformers
    lengths = [1, 75, 512]
    large = dict(hidden_size=1024, num_hidden_layers=24,
                 num_attention_heads=16, intermediate_size=4096)
    return {
        "bert-base": (t.BertModel, t.BertConfig(), "cls", lengths),
        "bge-large-zh": (t.BertModel, t.BertConfig(vocab_size=21128, **large),
                         "cls", lengths),
        "xlm-r-base": (t.XLMRobertaModel,
                       t.XLMRobertaConfig(
                           vocab_size=250002, max_position_embeddings=514,
                           type_vocab_size=1, layer_norm_eps=1e-5),
                       "mean", lengths),
        "jina-v3": (t.JinaEmbeddingsV3Model, t.JinaEmbeddingsV3Config(),
                    "mean", lengths + [8192]),
    }


def randomize(model):
    """Values at which no part of a layer is without effect."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            if "orm" in name and name.endswith("weight"):
                parameter.copy_(1 + 0.1 * noise)
            elif name.endswith("bias") or "embeddings" in name:
                parameter.copy_(0.05 * noise)
            else:
                parameter.copy_(0.04 * noise)


def write_checkpoint(folder, model, config, pooling):
    model.save_pretrained(folder)
    if isinstance(config, transformers.JinaEmbeddingsV3Config):
        # As the model was published, whose names save_pretrained writes.
        same = ["vocab_size", "hidden_size", "num_hidden_layers",
                "num_attention_heads", "intermediate_size", "hidden_act",
                "max_position_embeddings", "type_vocab_size", "layer_norm_eps",
                "pad_token_id"]
        published = {name: getattr(config, name) for name in same}
        published.update(architectures=["XLMRobertaModel"],
                         model_type="xlm-roberta",
                         position_embedding_type="rotary",
                         rotary_emb_base=20000.0)
        with open(f"{folder}/config.json", "w") as file:
            json.dump(published, file)
    os.makedirs(f"{folder}/1_Pooling")
    with open(f"{folder}/1_Pooling/config.json", "w") as file:
        json.dump({"word_embedding_dimension": config.hidden_size,
                   "pooling_mode_cls_token": pooling == "cls",
                   "pooling_mode_mean_tokens": pooling == "mean"}, file)
    modules = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    with open(f"{folder}/modules.json", "w") as file:
        json.dump([{"idx": i, "name": str(i), "path": path,
                    "type": "sentence_transformers.models." + module}
                   for i, (path, module) in enumerate(zip(paths, modules))],
                  file)


def expected(model, pooling, texts):
    vectors = []
    with torch.inference_mode():
        for ids in texts:
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            vector = hidden[0] if pooling == "cls" else hidden.mean(0)
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=shapes())
    parser.add_argument("--folder", help="where files go (default: $TMPDIR)")
    arguments = parser.parse_args()
    model_class, config, pooling, lengths = shapes()[arguments.shape]
    torch.manual_seed(7)
    model = model_class(config, add_pooling_layer=False).eval()
    randomize(model)
    random = np.random.default_rng(5)
    texts = [random.integers(5, config.vocab_size - 5, length).tolist()
             for length in lengths for _ in range(3 if length < 1000 else 1)]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        write_checkpoint(f"{folder}/model", model, config, pooling)
        reference = expected(model, pooling, texts)
        del model
        for dtype in ("f32", "bf16"):
            compare(arguments.shape, dtype, folder, texts, reference)


if __name__ == "__main__":
    main()
