#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times OpenVINO GenAI's continuous batching, as `sandwich-run bench -s` does.

    openvino_genai_batched.py DIR [-s 1,8,32] [--context 128] [-n 24] [--threads 2]

DIR holds openvino_model.xml and openvino_tokenizer.xml. Each of the sequences has
a random prompt of its own, all of which go into one step; each further step makes a
token of every sequence, and those steps are timed. Printed are tokens per second of
all sequences together, the median of the rounds; the first round warms up. It
needs a Python that has openvino-genai. Everything runs in bf16, the KV cache too,
whatever precision OpenVINO would choose by itself, or in f32 on CPUs for which it
has no bf16.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import sys
import time

try:
    import numpy
    import openvino
    import openvino_genai
except ImportError as missing:
    sys.exit(f"error: {sys.executable} has no openvino-genai: {missing}")

from openvino_genai_bench import precision  # noqa: E402


def counts(text):
    values = [int(value) for value in text.split(",")]
    if any(value < 1 for value in values):
        raise ValueError(text)
    return values


def load(arguments, configuration):
    most = max(arguments.sequences)
    heads = configuration.get("num_key_value_heads", configuration["num_attention_heads"])
    head_dim = configuration["hidden_size"] // configuration["num_attention_heads"]
    # Keys and values.
    element_bytes = {"bf16": 2, "f32": 4}[precision()]
    token_bytes = 2 * element_bytes * configuration["num_hidden_layers"] * heads * head_dim
    tokens = most * (arguments.context + arguments.generated_tokens + 64)
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = max(256, most * arguments.context)
    scheduler.max_num_seqs = most
    scheduler.enable_prefix_caching = False
    scheduler.dynamic_split_fuse = True
    scheduler.cache_size = 1 + math.ceil(tokens * token_bytes / 2**30)
    return openvino_genai.ContinuousBatchingPipeline(
        str(arguments.model),
        scheduler,
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": precision(),
            "KV_CACHE_PRECISION": precision(),
            "INFERENCE_NUM_THREADS": arguments.threads,
            "PERFORMANCE_HINT": "LATENCY",
        },
    )


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        with open(arguments.model / "config.json") as file:
            configuration = json.load(file)
        self.vocabulary = configuration["vocab_size"]
        self.pipeline = load(arguments, configuration)
        self.requests = 0

    def add(self):
        prompt = [random.randrange(3, self.vocabulary) for _ in range(self.arguments.context)]
        self.requests += 1
        return self.pipeline.add_request(
            self.requests,
            openvino.Tensor(numpy.array([prompt], numpy.int64)),
            openvino_genai.GenerationConfig(
                # The first comes from the step of the prompts.
                max_new_tokens=self.arguments.generated_tokens + 1,
                ignore_eos=True,
                do_sample=False,
            ),
        )

    def measure(self, sequences):
        """Tokens per second of one round."""
        handles = [self.add() for _ in range(sequences)]
        self.pipeline.step()
        if not all(handle.can_read() for handle in handles):
            sys.exit("error: the prompts took more than one step")
        steps = 0
        start = time.perf_counter()
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            steps += 1
        seconds = time.perf_counter() - start
        if steps != self.arguments.generated_tokens:
            sys.exit(f"error: {steps} steps for {self.arguments.generated_tokens} tokens")
        return sequences * steps / seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path, metavar="DIR")
    parser.add_argument("-s", "--sequences", type=counts, default=[1, 8, 32], metavar="N,N")
    parser.add_argument("-c", "--context", type=int, default=128, metavar="N")
    parser.add_argument("-n", "--generated-tokens", type=int, default=24, metavar="N")
    parser.add_argument("-r", "--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    arguments = parser.parse_args()
    random.seed(1)
    bench = Bench(arguments)
    for sequences in arguments.sequences:
        rounds = [bench.measure(sequences) for _ in range(1 + arguments.rounds)][1:]
        name = f"tg{arguments.generated_tokens}@{arguments.context}x{sequences}"
        print(f"{name} {statistics.median(rounds):.2f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
