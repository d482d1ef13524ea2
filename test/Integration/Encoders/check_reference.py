#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares encoder_reference.py with transformers, of every family.

    check_reference.py FOLDER

Needs torch and transformers; a folder of each case is made in FOLDER. The
states of all tokens and the scores of heads are compared, as every vector is
made of the states.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

# Nothing is to be looked for elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Inputs")
sys.path.append(INPUTS)
from encoder_reference import differences, load
from reference import read_safetensors

LENGTHS = 1, 7, 75, 512
LIMIT = 1e-5

# Options of make_encoder.py.
CASES = {
    "bert": "--family=bert",
    "bert-names": "--family=bert --prefix=yes --old-names --dtype=BF16",
    "bert-tanh": "--family=bert --set hidden_act=gelu_new --dtype=F16",
    "bert-minilm": "--family=bert --set hidden_size=384 --shards=2 --set "
                   "num_attention_heads=12 --set intermediate_size=1536 --set "
                   "num_hidden_layers=6",
    "bert-odd": "--family=bert --set hidden_size=90 --set "
                "num_attention_heads=5 --set intermediate_size=77",
    "bert-reranker": "--family=bert-reranker",
    "bert-labels": "--family=bert-reranker --set "
                   'id2label={"0":"A","1":"B","2":"C"}',
    "xlm-roberta": "--family=xlm-roberta",
    "xlm-roberta-names": "--family=xlm-roberta --prefix=yes --dtype=BF16",
    "xlm-roberta-reranker": "--family=xlm-roberta-reranker --dtype=F16",
    "jina": "--family=jina",
    "jina-bf16": "--family=jina --dtype=BF16 --set lora_alpha=2 --set "
                 "rotary_emb_base=10000.0",
    "jina-reranker": "--family=jina-reranker",
    "qwen3": "--family=qwen3",
    "qwen3-names": "--family=qwen3 --prefix=yes --dtype=BF16 --set "
                   'architectures=Qwen3Model',
}


def of_transformers(folder, config):
    """transformers' model, in float32, of all of the folder's tensors."""
    scores = config["architectures"][0].endswith("SequenceClassification")
    kind = (transformers.AutoModelForSequenceClassification if scores else
            transformers.AutoModel)
    model, info = kind.from_pretrained(folder, dtype=torch.float32,
                                       output_loading_info=True)
    left = [name for name in info["unexpected_keys"]
            if "cls." not in name and "position_ids" not in name]
    if info["missing_keys"] or left:
        sys.exit(f"{folder}: missing {info['missing_keys']}, left {left}")
    return model.eval()


class Head(torch.nn.Module):
    """XLM-RoBERTa's classifier."""

    def __init__(self, config, tensors):
        super().__init__()
        self.dense, self.out_proj = (
            torch.nn.Linear(config["hidden_size"], size) for size in
            (config["hidden_size"], len(config["id2label"])))
        self.load_state_dict(tensors)

    def forward(self, states):
        return self.out_proj(torch.tanh(self.dense(states[:, 0])))


def of_jina(folder, config, task):
    """transformers' JinaEmbeddingsV3Model, whose weights have the adapter added
    as Jina's LoRAParametrization does; and the head, or None. transformers
    itself does not read Jina's first folders."""
    tensors = {name: torch.tensor(values, dtype=torch.float32) for name, values
               in read_safetensors(os.path.join(folder, "model.safetensors")
                                   ).items()}
    plain, head = {}, {}
    for name, values in tensors.items():
        if ".lora_" in name:
            continue
        if name.endswith(".parametrizations.weight.original"):
            stem = name.removesuffix("original")
            if task is not None:
                factors = [tensors[f"{stem}0.lora_{which}"][task]
                           for which in "BA"]
                if "embeddings" in name:
                    factors.reverse()
                values = values + torch.matmul(*factors) * (
                    config["lora_alpha"] / config["lora_rank"])
            name = stem.replace(".parametrizations.weight.", ".weight")
        if name.startswith("classifier."):
            head[name.removeprefix("classifier.")] = values
            continue
        for old, new in (("roberta.", ""), ("emb_ln", "embeddings.LayerNorm"),
                         ("encoder.layers", "layers"),
                         ("mixer.out_proj", "self_attn.o_proj"),
                         ("norm1", "post_attention_layernorm"),
                         ("norm2", "post_mlp_layernorm")):
            name = name.replace(old, new)
        if "mixer.Wqkv" in name:
            for which, part in zip("qkv", values.chunk(3)):
                plain[name.replace("mixer.Wqkv",
                                   f"self_attn.{which}_proj")] = part
        else:
            plain[name] = values
    fields = ("vocab_size", "hidden_size", "num_hidden_layers", "hidden_act",
              "num_attention_heads", "intermediate_size", "layer_norm_eps",
              "max_position_embeddings", "type_vocab_size", "pad_token_id")
    model = transformers.JinaEmbeddingsV3Model(
        transformers.JinaEmbeddingsV3Config(
            rope_parameters={"rope_type": "default",
                             "rope_theta": config["rotary_emb_base"]},
            **{field: config[field] for field in fields}),
        add_pooling_layer=not head)
    model.load_state_dict(plain)
    return model.eval(), Head(config, head) if head else None


def draw(length, config, random):
    """Random token ids, and types where the model has more than one."""
    ids = random.integers(config["vocab_size"], size=length)
    # Also what the model takes for padding, amid the text.
    ids[length // 2] = config.get("pad_token_id", 0)
    types = None
    if config.get("type_vocab_size", 1) > 1:
        types = (np.arange(length) > length // 3).astype(int)
    return ids, types


@torch.no_grad()
def compute(model, head, ids, types):
    """States, and scores or None, of one text."""
    arguments = {"input_ids": torch.tensor(ids)[None],
                 "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    if types is not None:
        arguments["token_type_ids"] = torch.tensor(types)[None]
    base = getattr(model, model.base_model_prefix, model)
    states = base(**arguments).last_hidden_state
    scores = None
    if base is not model:
        scores = model(**arguments).logits[0].numpy()
    elif head is not None:
        scores = head(states)[0].numpy()
    return states[0].numpy(), scores


def check(folder, task):
    """The largest differences of normalized states, and of scores."""
    reference = load(folder, task)
    config = reference.config
    head = None
    if "rotary_emb_base" in config:
        index = config["lora_adaptations"].index(task) if task else None
        model, head = of_jina(folder, config, index)
    else:
        model = of_transformers(folder, config)
    random = np.random.default_rng(1)
    worst = np.zeros(2)
    for length in LENGTHS:
        ids, types = draw(length, config, random)
        states, scores = compute(model, head, ids, types)
        expected = reference.states(ids, types)
        found = [differences(expected, states)[0],
                 0 if scores is None else
                 np.abs(reference.scores(ids, types) - scores).max()]
        # Means are what the most can be lost in.
        found[0] = max(found[0], differences(expected.mean(0),
                                             states.mean(0))[0])
        worst = np.maximum(worst, found)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for case, options in CASES.items():
        folder = os.path.join(arguments.folder, case)
        subprocess.run([sys.executable, "-B",
                        os.path.join(INPUTS, "make_encoder.py"), folder,
                        *options.split()], check=True)
        tasks = [None]
        if "jina" in case and "reranker" not in case:
            if not hasattr(transformers, "JinaEmbeddingsV3Model"):
                print(f"{case}: skipped, transformers is too old")
                continue
            tasks += ["retrieval.query", "text-matching"]
        for task in tasks:
            states, scores = check(folder, task)
            what = case if task is None else f"{case}, {task}"
            print(f"{what}: states {states:.2g}, scores {scores:.2g}",
                  flush=True)
            if not max(states, scores) <= LIMIT:
                sys.exit(f"{what}: {max(states, scores):.3g} is more than "
                         f"{LIMIT:g}")


if __name__ == "__main__":
    main()
