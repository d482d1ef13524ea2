#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times a model with OpenVINO GenAI; compare_peers.py calls it.

    openvino_genai_bench.py bench DIR [-p 16,128,512] [-n 32] [--threads 2]
    openvino_genai_bench.py continue DIR --steps 4 < PROMPT.json
    openvino_genai_bench.py version DIR

DIR holds openvino_model.xml. `bench` prints tokens per second of each test as one
JSON object; `continue` reads a prompt, a list of token ids, and prints for each
greedy step the token and its log-probability. It needs a Python that has
openvino-genai, and no tokenizer.

Everything runs in bf16, the KV cache too, whatever precision OpenVINO would
choose by itself, or in f32 on CPUs for which it has no bf16; the rest is as its
LATENCY hint says. Of a prompt the time to
the first token counts, of generation the mean time of the tokens after that: a
sampled token more than a forward pass, which is some microseconds.
"""
import argparse
import json
import random
import sys
import tempfile

try:
    import numpy
    import openvino
    import openvino_genai
except ImportError as missing:
    sys.exit(f"error: {sys.executable} has no openvino-genai: {missing}")


def precision():
    """bf16, or f32 on CPUs for which OpenVINO has no bf16."""
    capabilities = openvino.Core().get_property("CPU",
                                                "OPTIMIZATION_CAPABILITIES")
    return "bf16" if "BF16" in capabilities else "f32"


def load(arguments):
    # A tokenizer without models is enough for prompts of token ids.
    with tempfile.TemporaryDirectory() as empty:
        tokenizer = openvino_genai.Tokenizer(empty)
    return openvino_genai.LLMPipeline(
        arguments.model, tokenizer, "CPU",
        ATTENTION_BACKEND=arguments.attention,
        INFERENCE_PRECISION_HINT=precision(),
        KV_CACHE_PRECISION=precision(),
        INFERENCE_NUM_THREADS=arguments.threads,
        PERFORMANCE_HINT="LATENCY")


def generate(pipeline, prompt, tokens, **options):
    ids = numpy.array([prompt], numpy.int64)
    return pipeline.generate(
        openvino_genai.TokenizedInputs(
            openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids))),
        openvino_genai.GenerationConfig(
            max_new_tokens=tokens, ignore_eos=True, do_sample=False, **options))


def bench(arguments):
    pipeline = load(arguments)
    generator = random.Random(0)

    def metrics(length, tokens):
        """Of the second of two runs."""
        for _ in range(2):
            # Other tokens each time, as blocks of equal prompts may be shared;
            # random weights know no more than the 320 tokens of the smallest.
            prompt = [generator.randrange(3, 320) for _ in range(length)]
            result = generate(pipeline, prompt, tokens)
        return result.perf_metrics

    figures = {}
    for length in map(int, arguments.p.split(",")):
        milliseconds = metrics(length, 1).get_ttft().mean
        figures[f"pp{length}"] = 1e3 * length / milliseconds
    for tokens in map(int, arguments.n.split(",")):
        milliseconds = metrics(1, tokens + 1).get_tpot().mean
        figures[f"tg{tokens}"] = 1e3 / milliseconds
    return figures


def continue_prompt(arguments):
    pipeline = load(arguments)
    prompt = json.load(sys.stdin)
    steps = []
    before = 0.0
    for length in range(1, arguments.steps + 1):
        # The score is the sum of the log-probabilities that are asked for.
        result = generate(pipeline, prompt, length, logprobs=1)
        steps.append({"token": result.tokens[0][-1],
                      "log_probability": result.scores[0] - before})
        before = result.scores[0]
    return steps


def version(_):
    return {"version": openvino_genai.__version__}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"bench": bench, "continue": continue_prompt,
                "version": version}
    parser.add_argument("command", choices=commands)
    parser.add_argument("model", metavar="DIR")
    parser.add_argument("--attention", choices=["SDPA", "PA"], default="SDPA")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-p", default="16,128,512")
    parser.add_argument("-n", default="32")
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    try:
        answer = commands[arguments.command](arguments)
    except RuntimeError as failure:
        sys.exit(f"error: {arguments.model}: " +
                 str(failure).strip().splitlines()[-1])
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
