#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares artifacts of small random encoders with the reference.

    check_encoders.py FOLDER [FAMILY...] [--target NAME] [--alone COUNT]

Writes and removes what it needs in FOLDER. For each family, or those that are
named: batches of texts of many lengths, in f32 and in bf16; each text alone, or
the last COUNT, gives what it gives in a batch.
"""
import argparse
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "..", "Inputs")
sys.path.append(INPUTS)
import compare_logits

VOCABULARY = 320
LENGTHS = 1, 2, 15, 16, 17, 33, 75, 1, 100, 3

# Name, arguments of make_encoder.py, output, and what --dtype=f32 may differ.
MODELS = [
    ("bert", ["--family", "bert"], "vectors"),
    ("bert-mean", ["--family", "bert", "--pooling", "mean", "--normalize", "no",
                   "--set", 'hidden_act="gelu_new"'], "vectors"),
    ("bert-tokens", ["--family", "bert", "--old-names"], "tokens"),
    ("bert-reranker", ["--family", "bert-reranker"], "scores"),
    ("bert-one-layer", ["--family", "bert", "--set", "num_hidden_layers=1"],
     "vectors"),
    ("xlm-roberta", ["--family", "xlm-roberta", "--shards", "2"], "vectors"),
    ("xlm-roberta-reranker", ["--family", "xlm-roberta-reranker", "--set",
                              'id2label={"0": "a", "1": "b", "2": "c"}'],
     "scores"),
    ("jina-reranker", ["--family", "jina-reranker"], "scores"),
    ("jina", ["--family", "jina"], "vectors"),
    ("jina retrieval.query", ["--family", "jina"], "vectors"),
    ("jina text-matching", ["--family", "jina"], "vectors"),
    ("qwen3", ["--family", "qwen3"], "vectors"),
    ("qwen3-tokens", ["--family", "qwen3"], "tokens"),
]


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {result.stderr}")
    return result.stdout


def make_ids(types):
    """Lines of token ids; 1 is padding, which texts do not have."""
    generator = random.Random(7)
    lines = []
    for length in LENGTHS:
        ids = [generator.randrange(2, VOCABULARY) for _ in range(length)]
        if types > 1:
            split = generator.randrange(length + 1)
            lines.append(json.dumps([ids, [0] * split +
                                     [1] * (length - split)]))
        else:
            lines.append(json.dumps(ids))
    return "\n".join(lines) + "\n"


def check(folder, target, alone, name, arguments, output):
    task = ["--task", name.split()[1]] if " " in name else []
    model, ids = (os.path.join(folder, part) for part in ("model", "ids"))
    run("rm", "-rf", model)
    run(sys.executable, "-B", os.path.join(INPUTS, "make_encoder.py"), model,
        *arguments)
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        types = json.load(file).get("type_vocab_size", 1)
    with open(ids, "w", encoding="utf-8") as file:
        file.write(make_ids(types))
    reference = os.path.join(INPUTS, "encoder_reference.py")
    expected = os.path.join(folder, "expected")
    with open(expected, "w", encoding="utf-8") as file:
        file.write(run(sys.executable, "-B", reference, "run", model, ids,
                       "--output", output, *task))
    artifact, actual = (os.path.join(folder, part)
                        for part in ("model.sandwich", "actual"))
    tokens = ["--tokens"] if output == "tokens" else []
    for dtype, threads, limits in (
            ("f32", 3, ["--difference", "1e-5"]),
            ("bf16", 1, ["--cosine", "0.999"])):
        if output == "scores":
            limits = ["--raw-difference", "2e-5" if dtype == "f32" else "0.1"]
        run("sandwich-compile", model, "-q", f"--dtype={dtype}",
            f"--threads={threads}", f"--target={target}", "-o", artifact, *task)
        embed = [*compare_logits.runner_of(artifact), "embed", artifact,
                 "--ids", *tokens]
        with open(actual, "w", encoding="utf-8") as file:
            file.write(run(*embed, "--file", ids))
        print(name, dtype, threads, run(
            sys.executable, "-B", reference, "compare", expected, actual,
            *limits), end="", flush=True)
    # One after another, each in a batch of its own; sums of other orders.
    lines = make_ids(types).splitlines(keepends=True)[-alone:]
    results = [run(*embed, "--file", "-", input=line) for line in lines]
    with open(expected, "w", encoding="utf-8") as file:
        file.write("".join(results))
    with open(actual, encoding="utf-8") as file:
        batched = file.readlines()
    # Of each text one line, or one for each of its tokens.
    count = sum(len(result.splitlines()) for result in results)
    with open(actual, "w", encoding="utf-8") as file:
        file.writelines(batched[-count:])
    limits = (["--raw-difference", "1e-2"] if output == "scores"
              else ["--cosine", "0.9999"])
    print(name, "alone", run(
        sys.executable, "-B", reference, "compare", expected, actual,
        *limits), end="", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("families", nargs="*")
    parser.add_argument("--target", default="host")
    parser.add_argument("--alone", type=int, default=0,
                        help="texts that run alone as well (0: all)")
    given = parser.parse_args()
    for name, arguments, output in MODELS:
        if not given.families or name in given.families:
            check(given.folder, given.target, given.alone, name, arguments,
                  output)


if __name__ == "__main__":
    main()
