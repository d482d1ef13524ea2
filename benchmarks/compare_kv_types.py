#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the element type of the KV cache costs: speed and accuracy.

    compare_kv_types.py MODEL_DIR [--targets x86-64-avx2,x86-64-avx512]
        [--threads=2] [--prompts 16,512] [-n 32] [--context 2048] [--rounds=7]
        [--text FILE] [--tokens=256]

Compiles the checkpoint for each target with a cache of each type. Accuracy is
that of the logits of random tokens, or of those of --text, against the same
program with a cache of f32: the mean and the largest Kullback-Leibler divergence
of a position, and the percentage of positions with the same most probable token,
each with the prompt in one piece (prefill) and token by token (decode). Speed is
that of `sandwich-run bench`, the types in turn, each round beginning with another
one: medians of tokens per second over rounds, and of the ratio to f16 within a
round, which holds when the machine's speed drifts. Run it on an idle machine;
--rounds=0 leaves speed out, --tokens=0 accuracy. Needs python3-numpy.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TYPES = ("f32", "f16", "bf16", "int8")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


def chosen_tokens(arguments, vocabulary):
    if arguments.text is None:
        random = np.random.default_rng(1)
        return random.integers(vocabulary, size=arguments.tokens)
    tokenizer = os.path.join(arguments.model, "tokenizer.json")
    return run(arguments.sandwich_run, "tokenize", "--special-tokens",
               f"--tokenizer={tokenizer}",
               f"--file={arguments.text}").split()[:arguments.tokens]


def log_probabilities(arguments, artifact, tokens, chunk, folder):
    """Natural logarithms, [tokens, vocabulary]."""
    out = os.path.join(folder, "logits")
    run(arguments.sandwich_run, "logits", artifact, f"--out={out}",
        "--token-ids=" + ",".join(map(str, tokens)), *chunk)
    logits = np.fromfile(out, "<f4").reshape(len(tokens), -1)
    logits = logits.astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def print_accuracy(arguments, artifacts, tokens, folder):
    for phase, chunk in (("prefill", []), ("decode", ["--chunk=1"])):
        expected = None
        for kind, artifact in artifacts.items():
            actual = log_probabilities(arguments, artifact, tokens, chunk,
                                       folder)
            if expected is None:
                expected = actual
                continue
            divergences = (np.exp(expected) * (expected - actual)).sum(-1)
            same = 100 * np.mean(expected.argmax(-1) == actual.argmax(-1))
            print(f"  {phase:<12} {kind:<5} KL mean {divergences.mean():.2e} "
                  f"largest {divergences.max():.2e}, same top-1 {same:.1f}%",
                  flush=True)


def speeds(arguments, artifact):
    """Tokens per second of each test."""
    output = json.loads(run(
        arguments.sandwich_run, "bench", artifact, "-p", arguments.prompts,
        "-n", str(arguments.generated), "--context", arguments.context,
        "-r", "1", "--json"))
    return {result["test"]: result["tokens_per_second"]
            for result in output["results"]}


def print_speeds(arguments, artifacts):
    rounds = []
    for number in range(arguments.rounds):
        kinds = list(artifacts)
        shift = number % len(kinds)
        rounds.append({kind: speeds(arguments, artifacts[kind])
                       for kind in kinds[shift:] + kinds[:shift]})
    for test in rounds[0][TYPES[0]] if rounds else ():
        for kind in artifacts:
            median = statistics.median(each[kind][test] for each in rounds)
            ratio = statistics.median(each[kind][test] / each["f16"][test]
                                      for each in rounds)
            print(f"  {test:<12} {kind:<5} {median:10.2f} tokens/s, "
                  f"{ratio:.3f} of f16", flush=True)


def main():
    binaries = os.path.join(os.path.dirname(__file__), "../build/release/bin")
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR")
    for program in ("sandwich-run", "sandwich-compile"):
        parser.add_argument("--" + program,
                            default=os.path.join(binaries, program))
    parser.add_argument(
        "--targets", default="x86-64-avx2,x86-64-avx512,x86-64-avx512-bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompts", default="16,512")
    parser.add_argument("-n", "--generated", type=int, default=32)
    parser.add_argument("--context", default="2048")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--text", metavar="FILE")
    parser.add_argument("--tokens", type=int, default=256)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        for target in arguments.targets.split(","):
            artifacts = {}
            for kind in TYPES:
                artifacts[kind] = os.path.join(folder,
                                               f"{target}-{kind}.sandwich")
                run(arguments.sandwich_compile, arguments.model, "-q",
                    f"--output={artifacts[kind]}", f"--target={target}",
                    f"--threads={arguments.threads}", f"--kv-dtype={kind}")
            facts = {kind: json.loads(run(arguments.sandwich_run, "inspect",
                                          artifact, "--json"))
                     for kind, artifact in artifacts.items()}
            print(target + ": bytes of a token in the cache: " + ", ".join(
                f"{kind} {fact['kv_cache']['block_bytes'] // fact['kv_cache']['block_tokens']}"
                for kind, fact in facts.items()), flush=True)
            if arguments.tokens > 0:
                vocabulary = facts["f32"]["model"]["vocab_size"]
                print_accuracy(arguments, artifacts,
                               chosen_tokens(arguments, vocabulary), folder)
            print_speeds(arguments, artifacts)
            for artifact in artifacts.values():
                shutil.rmtree(artifact)


if __name__ == "__main__":
    main()
