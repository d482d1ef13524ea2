#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vectors of an encoder, from float64 arithmetic on the stored weights.

    encoder_reference.py run MODEL_DIR [IDS] [--output vectors|tokens|scores]
                         [--task NAME] [--pooling MODE] [--dimensions N] [--raw]
    encoder_reference.py compare EXPECTED ACTUAL [--difference X] [--cosine X]
                         [--raw-difference X]

`run` reads lines of JSON, of the file IDS or of its input: the token ids of a
text, [2, 7, 3], or with the types of its tokens, [[2, 7, 3], [0, 0, 1]]. For
each it prints a line of JSON: a text's vector, the vectors of its tokens, or
the scores of the model's head before any sigmoid. By default a model with a
head gives scores, and another vectors, pooled and normalized as the folder's
sentence-transformers files tell; without these they are means that are not
normalized. --task chooses an adapter. --dimensions keeps the first values of a
vector, before it is normalized; --raw leaves it as it was pooled.

`compare` reads two such outputs. --difference limits the largest difference of
any two values after both vectors are normalized, --cosine is the smallest
cosine of two vectors, and --raw-difference limits the difference of values as
they are, which is what suits scores. It exits with 1 where a limit is not kept.
"""
import argparse
import json
import math
import os
import sys

import numpy as np

from reference import Reference, softmax

POOLING = {
    "cls": lambda states: states[0],
    "mean": lambda states: states.mean(0),
    "max": lambda states: states.max(0),
    "mean_sqrt_len": lambda states: states.sum(0) / len(states)**0.5,
    # A token's weight is its position, from 1.
    "weightedmean": lambda states: np.average(
        states, axis=0, weights=np.arange(1, len(states) + 1)),
    "lasttoken": lambda states: states[-1],
}
FLAGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean",
         "pooling_mode_max_tokens": "max",
         "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
         "pooling_mode_weightedmean_tokens": "weightedmean",
         "pooling_mode_lasttoken": "lasttoken"}


def gelu(x):
    return x * (1 + np.frompyfunc(math.erf, 1, 1)(x / 2**0.5).astype(float)) / 2


def gelu_tanh(x):
    return x * (1 + np.tanh((2 / np.pi)**0.5 * (x + 0.044715 * x**3))) / 2


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_tanh, "gelu_fast": gelu_tanh,
               "gelu_pytorch_tanh": gelu_tanh,
               "relu": lambda x: np.maximum(x, 0)}


def normalize(vector):
    """Of length 1; zeros stay zeros."""
    return vector / max(np.linalg.norm(vector), 1e-12)


def read_json(folder, *names):
    path = os.path.join(folder, *names)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_pooling(folder):
    """The pooling that modules.json and what it names tell, and whether vectors
    are normalized then."""
    modules = read_json(folder, "modules.json")
    if modules is None:
        return "mean", False
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    assert kinds in (["Transformer", "Pooling"],
                     ["Transformer", "Pooling", "Normalize"]), kinds
    config = read_json(folder, modules[1]["path"], "config.json")
    modes = [mode for flag, mode in FLAGS.items() if config.get(flag)]
    assert len(modes) == 1, modes
    return modes[0], len(kinds) == 3


class Encoder(Reference):
    """BERT, XLM-RoBERTa and Jina's XLM-RoBERTa; `task` is the index of an
    adapter, or None."""

    BASES = "bert.", "roberta."

    def __init__(self, folder, task=None):
        super().__init__(folder)
        if task is not None:
            task = self.config["lora_adaptations"].index(task)
        self.tensors = dict(self.plain(name, task) for name in self.tensors
                            if not name.endswith((".lora_A", ".lora_B")))
        self.rotary = ("embeddings.position_embeddings.weight"
                       not in self.tensors)
        self.activation = ACTIVATIONS[self.config["hidden_act"]]

    def plain(self, name, task):
        """A tensor under the name that it has without a prefix, an adapter and
        old ways to name it."""
        values = self.tensors[name]
        original = ".parametrizations.weight.original"
        if name.endswith(original):
            plain = name.removesuffix(original)
            if task is not None:
                adapter = plain + ".parametrizations.weight.0.lora_"
                first, second = (self.tensors[adapter + which][task]
                                 for which in "AB")
                # An embedding's factors are the other way around.
                if not plain.endswith("_embeddings"):
                    first, second = second, first
                scale = self.config["lora_alpha"] / self.config["lora_rank"]
                values = values + scale * (first @ second)
            name = plain + ".weight"
        for base in self.BASES:
            name = name.removeprefix(base)
        for old, new in (("LayerNorm.gamma", "LayerNorm.weight"),
                         ("LayerNorm.beta", "LayerNorm.bias")):
            name = name.replace(old, new)
        return name, values

    def layer_norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        variance = np.mean(x * x, axis=-1, keepdims=True)
        x = x / np.sqrt(variance + self.config["layer_norm_eps"])
        return x * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def embed(self, ids, types):
        x = (self.tensors["embeddings.word_embeddings.weight"][ids] +
             self.tensors["embeddings.token_type_embeddings.weight"][types])
        if self.rotary:
            return x
        positions = np.arange(len(ids))
        if self.config.get("model_type") != "bert":
            # Tokens that are no padding count from behind padding's position.
            padding = self.config["pad_token_id"]
            kept = ids != padding
            positions = np.where(kept, np.cumsum(kept), 0) + padding
        return x + self.tensors["embeddings.position_embeddings.weight"][
            positions]

    def turn(self, heads):
        """Rotary positions; channel i goes with channel i + head_dim / 2."""
        if not self.rotary:
            return heads
        half = self.head_dim // 2
        base = self.config.get("rotary_emb_base", 10000.0)
        frequencies = base**(-np.arange(half) / half)
        angles = np.exp(1j * np.outer(np.arange(heads.shape[1]), frequencies))
        turned = (heads[..., :half] + 1j * heads[..., half:]) * angles
        return np.concatenate((turned.real, turned.imag), -1)

    def attend(self, queries, keys, values):
        """Every token to every token; arguments are [token, channel]."""
        queries, keys, values = (
            part.reshape(len(part), self.heads, self.head_dim).swapaxes(0, 1)
            for part in (queries, keys, values))
        queries, keys = self.turn(queries), self.turn(keys)
        scores = queries @ keys.swapaxes(1, 2) / self.head_dim**0.5
        return (softmax(scores) @ values).swapaxes(0, 1).reshape(
            values.shape[1], -1)

    def bert_layer(self, x, prefix):
        attended = self.attend(*(
            self.linear(x, f"{prefix}attention.self.{name}")
            for name in ("query", "key", "value")))
        x = self.layer_norm(
            x + self.linear(attended, prefix + "attention.output.dense"),
            prefix + "attention.output.LayerNorm")
        inner = self.activation(self.linear(x, prefix + "intermediate.dense"))
        return self.layer_norm(x + self.linear(inner, prefix + "output.dense"),
                               prefix + "output.LayerNorm")

    def flash_layer(self, x, prefix):
        fused = self.linear(x, prefix + "mixer.Wqkv")
        attended = self.attend(*np.split(fused, 3, -1))
        x = self.layer_norm(
            x + self.linear(attended, prefix + "mixer.out_proj"),
            prefix + "norm1")
        inner = self.activation(self.linear(x, prefix + "mlp.fc1"))
        return self.layer_norm(x + self.linear(inner, prefix + "mlp.fc2"),
                               prefix + "norm2")

    def states(self, ids, types=None):
        """What the last layer gives for every token: [token, channel]."""
        x = self.embed(ids, np.zeros_like(ids) if types is None else types)
        flash = "emb_ln.weight" in self.tensors
        x = self.layer_norm(x, "emb_ln" if flash else "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            if flash:
                x = self.flash_layer(x, f"encoder.layers.{layer}.")
            else:
                x = self.bert_layer(x, f"encoder.layer.{layer}.")
        return x

    def scores(self, ids, types=None):
        """The head's outputs: [label]."""
        first = self.states(ids, types)[0]
        if "classifier.weight" in self.tensors:
            pooled = np.tanh(self.linear(first, "pooler.dense"))
            return self.linear(pooled, "classifier")
        pooled = np.tanh(self.linear(first, "classifier.dense"))
        return self.linear(pooled, "classifier.out_proj")


class Decoder(Reference):
    """Qwen3, whose tensors' names may lack the base model's."""

    def __init__(self, folder):
        super().__init__(folder)
        self.tensors = {"model." + name.removeprefix("model."): values
                        for name, values in self.tensors.items()}

    def states(self, ids, types=None):
        assert types is None, "a decoder's tokens have no types"
        return super().states(ids)


def load(folder, task=None):
    """The reference of whatever model the folder has."""
    config = read_json(folder, "config.json")
    if config.get("model_type") == "qwen3":
        return Decoder(folder)
    return Encoder(folder, task)


class Embedder:
    """Vectors of a folder's model as its sentence-transformers files tell."""

    def __init__(self, folder, task=None, pooling=None, dimensions=None,
                 raw=False):
        self.model = load(folder, task)
        told, self.normalized = read_pooling(folder)
        self.pool = POOLING[pooling or told]
        self.dimensions = dimensions
        self.normalized &= not raw

    def vector(self, ids, types=None):
        vector = self.pool(self.model.states(ids, types))[:self.dimensions]
        return normalize(vector) if self.normalized else vector


def parse_ids(line):
    """Token ids and, or None, their types."""
    value = json.loads(line)
    ids, types = value if isinstance(value[0], list) else (value, None)
    return np.array(ids), None if types is None else np.array(types)


def run(arguments):
    embedder = Embedder(arguments.model, arguments.task, arguments.pooling,
                        arguments.dimensions, arguments.raw)
    output = arguments.output
    if output is None:
        architecture = embedder.model.config["architectures"][0]
        output = ("scores" if architecture.endswith("SequenceClassification")
                  else "vectors")
    compute = {"vectors": embedder.vector, "tokens": embedder.model.states,
               "scores": getattr(embedder.model, "scores", None)}[output]
    for line in arguments.ids:
        if line.strip():
            print(json.dumps(compute(*parse_ids(line)).tolist()))


def read_vectors(file):
    """An array of each line: [channel] or [token, channel]."""
    return [np.array(json.loads(line), dtype=float) for line in file
            if line.strip()]


def normalize_rows(rows):
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)


def differences(expected, actual):
    """Of two arrays of one shape, what the options limit, in their order; the
    cosine as what it lacks of 1."""
    a, b = normalize_rows(expected), normalize_rows(actual)
    return (np.abs(a - b).max(), 1 - (a * b).sum(-1).min(),
            np.abs(expected - actual).max())


def compare(arguments):
    """A line that tells what differs, or None."""
    expected, actual = (read_vectors(file) for file in
                        (arguments.expected, arguments.actual))
    if not expected or len(expected) != len(actual):
        return f"lines differ: {len(expected)}, {len(actual)}"
    results = []
    for line, (a, b) in enumerate(zip(expected, actual), 1):
        if a.shape != b.shape:
            return f"line {line}: shapes differ: {a.shape}, {b.shape}"
        if not np.isfinite(b).all():
            return f"line {line}: values are not finite"
        results.append(differences(a, b))
    results = np.array(results)
    print("{} lines: difference {:.3g}, 1 - cosine {:.3g}, raw difference "
          "{:.3g}".format(len(results), *results.max(0)), flush=True)
    cosine = None if arguments.cosine is None else 1 - arguments.cosine
    for what, figures, limit in zip(
            ("difference", "1 - cosine", "raw difference"), results.T,
            (arguments.difference, cosine, arguments.raw_difference)):
        if limit is not None and not figures.max() <= limit:
            return (f"line {figures.argmax() + 1}: {what} "
                    f"{figures.max():.3g} is more than {limit:.3g}")
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    mode = modes.add_parser("run")
    mode.add_argument("model")
    mode.add_argument("ids", nargs="?", type=argparse.FileType(),
                      default=sys.stdin)
    mode.add_argument("--output", choices=("vectors", "tokens", "scores"))
    mode.add_argument("--task")
    mode.add_argument("--pooling", choices=POOLING)
    mode.add_argument("--dimensions", type=int)
    mode.add_argument("--raw", action="store_true")
    mode = modes.add_parser("compare")
    mode.add_argument("expected", type=argparse.FileType())
    mode.add_argument("actual", type=argparse.FileType())
    mode.add_argument("--difference", type=float)
    mode.add_argument("--cosine", type=float)
    mode.add_argument("--raw-difference", type=float)
    arguments = parser.parse_args()
    if arguments.mode == "run":
        run(arguments)
        return
    problem = compare(arguments)
    if problem:
        sys.exit(f"{arguments.actual.name}: {problem}")


if __name__ == "__main__":
    main()
