#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a small Hugging Face folder of an encoder with random weights.

    make_encoder.py OUT_DIR --family bert --set hidden_size=384 ...

The families, by what publishes them:

    bert                  BertModel: BGE, E5, GTE, all-MiniLM
    bert-reranker         BertForSequenceClassification: ms-marco-MiniLM
    xlm-roberta           XLMRobertaModel: BGE-M3, multilingual-E5
    xlm-roberta-reranker  XLMRobertaForSequenceClassification: bge-reranker
    jina                  jina-embeddings-v3: XLM-RoBERTa with rotary positions
                          and an adapter of each task
    jina-reranker         jina-reranker-v2: the same with a classifier and
                          without adapters
    qwen3                 Qwen3-Embedding: a decoder, pooled at its last token

A family that is no reranker also gets the files of sentence-transformers.
`--prefix yes` and `no` say whether names begin with the name that the base
model has within a larger one ("bert.", "roberta.", "model."); by default they
do where the published folders do. `--old-names` writes what checkpoints of 2019
have: gamma and beta of layer norms, a tensor of position ids, and what was the
head of the pretraining.
"""
import argparse
import json
import os

import numpy as np

import make_checkpoint
from make_checkpoint import encode, write_checkpoint

ENCODER = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 320,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
BERT = dict(ENCODER, architectures=["BertModel"], model_type="bert",
            max_position_embeddings=512, type_vocab_size=2, pad_token_id=0,
            layer_norm_eps=1e-12, position_embedding_type="absolute")
XLM_ROBERTA = dict(ENCODER, architectures=["XLMRobertaModel"],
                   model_type="xlm-roberta", max_position_embeddings=514,
                   type_vocab_size=1, pad_token_id=1, bos_token_id=0,
                   eos_token_id=2, layer_norm_eps=1e-5,
                   position_embedding_type="absolute")
TASKS = {
    "retrieval.query":
        "Represent the query for retrieving evidence documents: ",
    "retrieval.passage": "Represent the document for retrieval: ",
    "separation": "",
    "classification": "",
    "text-matching": "",
}
FLASH = "jinaai/xlm-roberta-flash-implementation--"
# The published configuration of jina-embeddings-v3 has no model_type: its
# auto_map names the class.
JINA = dict(XLM_ROBERTA, position_embedding_type="rotary",
            rotary_emb_base=20000.0, max_position_embeddings=8194,
            use_flash_attn=True, auto_map={
                "AutoConfig": FLASH +
                              "configuration_xlm_roberta.XLMRobertaFlashConfig",
                "AutoModel": FLASH + "modeling_lora.XLMRobertaLoRA"},
            lora_adaptations=list(TASKS), task_instructions=TASKS, lora_rank=4,
            lora_alpha=1, lora_dropout_p=0.0, load_trained_adapters=True,
            lora_main_params_trainable=False, emb_pooler=None,
            matryoshka_dimensions=[16, 32, 64], truncate_dim=None)
del JINA["model_type"]
LABELS = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
RERANKER = dict(architectures=["XLMRobertaForSequenceClassification"], **LABELS)
JINA_RERANKER = dict({name: value for name, value in JINA.items()
                      if "lora" not in name and name != "task_instructions"},
                     **RERANKER)
JINA_RERANKER["auto_map"] = {
    "AutoConfig": JINA["auto_map"]["AutoConfig"],
    "AutoModelForSequenceClassification":
        FLASH + "modeling_xlm_roberta.XLMRobertaForSequenceClassification"}
QWEN3 = dict(make_checkpoint.DEFAULTS, architectures=["Qwen3ForCausalLM"],
             model_type="qwen3", head_dim=16, attention_bias=False,
             rms_norm_eps=1e-6, rope_theta=1000000.0, tie_word_embeddings=True,
             max_position_embeddings=1024)

# Name: configuration, the base model's name, whether names begin with it, and
# how its vectors are pooled (None: it has a head that scores).
FAMILIES = {
    "bert": (BERT, "bert.", False, "cls"),
    "bert-reranker": (
        dict(BERT, architectures=["BertForSequenceClassification"], **LABELS),
        "bert.", True, None),
    "xlm-roberta": (XLM_ROBERTA, "roberta.", False, "cls"),
    "xlm-roberta-reranker": (dict(XLM_ROBERTA, **RERANKER), "roberta.", True,
                             None),
    "jina": (JINA, "roberta.", True, "mean"),
    "jina-reranker": (JINA_RERANKER, "roberta.", True, None),
    "qwen3": (QWEN3, "model.", False, "lasttoken"),
}
PROMPTS = {
    "bert": {"query": "query: ", "document": ""},
    "xlm-roberta": {},
    "jina": TASKS,
    "qwen3": {
        "query": "Instruct: Given a web search query, retrieve relevant "
                 "passages that answer the query\nQuery:",
        "document": ""},
}

# Deviations beside those of weights, which keep the deviation of what they
# multiply. An embedding's are small enough for layer_norm_eps to show.
WORDS, POSITIONS, BIAS, NORM = 0.05, 0.03, 0.1, 0.1
# Larger queries and keys give attention that is not uniform.
SHARPNESS = 1.5


def norm(name, size):
    """Name, shape, mean and deviation of a layer norm's tensors."""
    yield name + ".weight", (size,), 1, NORM
    yield name + ".bias", (size,), 0, NORM


def linear(name, rows, columns, gain=1.0):
    yield name + ".weight", (rows, columns), 0, gain * columns**-0.5
    yield name + ".bias", (rows,), 0, BIAS


def embeddings(config):
    hidden = config["hidden_size"]
    yield ("embeddings.word_embeddings.weight", (config["vocab_size"], hidden),
           0, WORDS)
    if config["position_embedding_type"] == "absolute":
        yield ("embeddings.position_embeddings.weight",
               (config["max_position_embeddings"], hidden), 0, POSITIONS)
    yield ("embeddings.token_type_embeddings.weight",
           (config["type_vocab_size"], hidden), 0, POSITIONS)


def bert_layers(config):
    """BERT's tensors, and XLM-RoBERTa's."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    yield from embeddings(config)
    yield from norm("embeddings.LayerNorm", hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}."
        for name, gain in (("query", SHARPNESS), ("key", SHARPNESS),
                           ("value", 1.0)):
            yield from linear(f"{prefix}attention.self.{name}", hidden, hidden,
                              gain)
        yield from linear(prefix + "attention.output.dense", hidden, hidden)
        yield from norm(prefix + "attention.output.LayerNorm", hidden)
        yield from linear(prefix + "intermediate.dense", inner, hidden)
        yield from linear(prefix + "output.dense", hidden, inner)
        yield from norm(prefix + "output.LayerNorm", hidden)


def flash_layers(config):
    """The tensors of Jina's implementation of XLM-RoBERTa."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    yield from embeddings(config)
    yield from norm("emb_ln", hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layers.{layer}."
        # Rows: all queries, all keys, all values.
        yield from linear(prefix + "mixer.Wqkv", 3 * hidden, hidden, SHARPNESS)
        yield from linear(prefix + "mixer.out_proj", hidden, hidden)
        yield from norm(prefix + "norm1", hidden)
        yield from linear(prefix + "mlp.fc1", inner, hidden)
        yield from linear(prefix + "mlp.fc2", hidden, inner)
        yield from norm(prefix + "norm2", hidden)


def with_adapters(config, tensors):
    """Every matrix becomes the original of a parametrization beside the two
    factors of what each task adds to it."""
    tasks, rank = len(config["lora_adaptations"]), config["lora_rank"]
    for name, shape, mean, deviation in tensors:
        if len(shape) == 1:
            yield name, shape, mean, deviation
            continue
        prefix = name.replace(".weight", ".parametrizations.weight.")
        rows, columns = shape
        yield prefix + "original", shape, mean, deviation
        if name.startswith("embeddings."):
            # An embedding adds A @ B, a linear layer B @ A.
            yield prefix + "0.lora_A", (tasks, rows, rank), 0, 1.0
            yield prefix + "0.lora_B", (tasks, rank, columns), 0, deviation
        else:
            yield prefix + "0.lora_A", (tasks, rank, columns), 0, columns**-0.5
            yield prefix + "0.lora_B", (tasks, rows, rank), 0, 0.5


def pooler(config):
    return linear("pooler.dense", config["hidden_size"], config["hidden_size"])


def qwen3_layers(config):
    decoder = dict(config, architectures=["Qwen3ForCausalLM"],
                   tie_word_embeddings=True)
    for name, shape, deviation in make_checkpoint.tensors(decoder):
        mean = 0
        if deviation is None:
            mean, deviation = 1, NORM
        yield name.removeprefix("model."), shape, mean, deviation


def classifier(family, config):
    hidden, labels = config["hidden_size"], len(config["id2label"])
    if family == "bert-reranker":
        yield from linear("classifier", labels, hidden)
    else:
        yield from linear("classifier.dense", hidden, hidden)
        yield from linear("classifier.out_proj", labels, hidden)


def tensors(family, config, prefixed, old_names):
    """Yields name, shape, mean and deviation."""
    base = {"bert": bert_layers, "xlm-roberta": bert_layers,
            "jina": flash_layers, "qwen3": qwen3_layers}[
                family.removesuffix("-reranker")](config)
    entries = list(base)
    # XLM-RoBERTa's classifier takes the place of its pooler.
    if family in ("bert", "bert-reranker", "xlm-roberta", "jina"):
        entries += pooler(config)
    if config.get("lora_adaptations"):
        entries = list(with_adapters(config, entries))
    for name, shape, mean, deviation in entries:
        if old_names:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta")
        if prefixed:
            name = FAMILIES[family][1] + name
        yield name, shape, mean, deviation
    if "id2label" in config:
        yield from classifier(family, config)
    if old_names:
        hidden = config["hidden_size"]
        yield from linear("cls.predictions.transform.dense", hidden, hidden)
        yield from linear("cls.seq_relationship", 2, hidden)


def random_tensors(arguments, config, prefixed):
    random = np.random.default_rng(arguments.seed)
    entries = []
    for name, shape, mean, deviation in tensors(
            arguments.family, config, prefixed, arguments.old_names):
        values = random.standard_normal(shape, dtype=np.float32)
        values = np.float32(mean) + np.float32(deviation) * values
        entries.append((name, arguments.dtype, shape,
                        encode(values, arguments.dtype)))
    if arguments.old_names:
        count = config["max_position_embeddings"]
        name = "embeddings.position_ids"
        if prefixed:
            name = FAMILIES[arguments.family][1] + name
        entries.append((name, "I64", (1, count),
                        np.arange(count, dtype="<i8").tobytes()))
    return entries


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def write_sentence_transformers(arguments, config):
    """What tells how vectors are made of the last layer's states."""
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    if arguments.normalize == "yes":
        modules.append(("Normalize", "2_Normalize"))
    modules = [{"idx": index, "name": str(index), "path": path,
                "type": "sentence_transformers.models." + kind}
               for index, (kind, path) in enumerate(modules)]
    if arguments.family == "jina":
        modules[0].update(type="custom_st.Transformer", kwargs=["task"])
    write_json(arguments.out, "modules.json", modules)
    modes = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens",
             "mean_sqrt_len": "mean_sqrt_len_tokens",
             "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
    write_json(arguments.out, "1_Pooling/config.json", dict(
        {"word_embedding_dimension": config["hidden_size"]},
        **{"pooling_mode_" + flag: mode == arguments.pooling
           for mode, flag in modes.items()}, include_prompt=True))
    if arguments.normalize == "yes":
        os.makedirs(os.path.join(arguments.out, "2_Normalize"), exist_ok=True)
    write_json(arguments.out, "sentence_bert_config.json", {
        "max_seq_length": config["max_position_embeddings"] -
                          (2 if "roberta" in arguments.family else 0),
        "do_lower_case": False})
    write_json(arguments.out, "config_sentence_transformers.json", {
        "__version__": {"sentence_transformers": "3.1.0",
                        "transformers": "4.41.2", "pytorch": "2.3.1"},
        "prompts": PROMPTS[arguments.family], "default_prompt_name": None,
        "similarity_fn_name": "cosine"})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--family", choices=FAMILIES, default="bert")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=JSON")
    parser.add_argument("--dtype", default="F32",
                        choices=("F32", "F16", "BF16"))
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prefix", choices=("yes", "no"))
    parser.add_argument("--old-names", action="store_true")
    parser.add_argument("--pooling", choices=(
        "cls", "mean", "max", "mean_sqrt_len", "weightedmean", "lasttoken"))
    parser.add_argument("--normalize", choices=("yes", "no"), default="yes")
    parser.add_argument("--bare", action="store_true",
                        help="write no files of sentence-transformers")
    arguments = parser.parse_args()

    defaults, _, prefixed, pooling = FAMILIES[arguments.family]
    config = dict(defaults, torch_dtype={
        "F32": "float32", "F16": "float16", "BF16": "bfloat16"}[
            arguments.dtype])
    for assignment in arguments.set:
        field, value = assignment.split("=", 1)
        try:
            config[field] = json.loads(value)
        except json.JSONDecodeError:
            config[field] = [value] if field == "architectures" else value
    if arguments.prefix:
        prefixed = arguments.prefix == "yes"
    write_checkpoint(arguments.out, config,
                     random_tensors(arguments, config, prefixed),
                     arguments.shards)
    if pooling and not arguments.bare:
        arguments.pooling = arguments.pooling or pooling
        write_sentence_transformers(arguments, config)


if __name__ == "__main__":
    main()
