#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what the latency model says of steps with what they take here.

    compare_predictions.py MODEL [MODEL...] [--dtype=bf16|f32] [--rounds=5]

Each round measures the machine, predicts with it, and runs prompts of 128 and 512
tokens and decode steps of 1, 8 and 32 sequences that hold 128 tokens each, the
steps that a plan's JSON predicts; so both see the machine at about the same time.
Prints the medians over rounds of the predicted and of the measured milliseconds,
and of their ratio within a round. Run it on an idle machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOKENS = 32
# Sequences hold 128 tokens on average while they generate.
CONTEXT = 128 - TOKENS // 2


def run(*command):
    """The object of JSON that `command` prints."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def test_of(step):
    """The name of the benchmark that runs a predicted step, and its tokens."""
    if step["phase"] == "prefill":
        return f"pp{step['tokens']}", step["tokens"]
    name = f"tg{TOKENS}@{CONTEXT}"
    if step["sequences"] > 1:
        name += f"x{step['sequences']}"
    return name, step["sequences"]


def measure(artifact, steps):
    """The milliseconds of each of `steps`."""
    prompts = [step["tokens"] for step in steps if step["phase"] == "prefill"]
    sequences = [step["sequences"] for step in steps
                 if step["phase"] == "decode"]
    result = run("sandwich-run", "bench", artifact, "--json", "-r", "1",
                 "-p", ",".join(map(str, prompts)), "-n", str(TOKENS),
                 "--context", str(CONTEXT),
                 "-s", ",".join(map(str, sequences)))
    speeds = {test["test"]: test["tokens_per_second"]
              for test in result["results"]}
    return [1000 * tokens / speeds[name]
            for name, tokens in map(test_of, steps)]


def compare(model, dtype, rounds, folder):
    """Prints the comparison of one model."""
    machine = os.path.join(folder, "machine.json")
    cores = os.path.join(folder, "plan.json")
    artifact = os.path.join(folder, "model.sandwich")
    predicted, measured = {}, {}
    for number in range(rounds):
        plan = run("sandwich-compile", model, "--plan-only", "--json",
                   f"--dtype={dtype}", "--top-k=1",
                   f"--measure-machine={machine}")
        if "instances" in plan["configurations"][0]:
            sys.exit("the best plan has several instances, which is not what "
                     "would be measured")
        if number == 0:
            with open(cores, "w", encoding="utf-8") as file:
                json.dump(plan, file)
            subprocess.run(
                ["sandwich-compile", model, "--quiet", "-o", artifact,
                 f"--dtype={dtype}", f"--plan={cores}"], check=True)
        for step, taken in zip(plan["steps"],
                               measure(artifact, plan["steps"])):
            name = test_of(step)[0]
            predicted.setdefault(name, []).append(step["predicted_ms"])
            measured.setdefault(name, []).append(taken)
    print(f"{model}, {dtype}, median of {rounds} rounds:")
    for name, times in predicted.items():
        ratio = statistics.median(
            time / taken for time, taken in zip(times, measured[name]))
        print(f"  {name:12} predicted {statistics.median(times):8.2f} ms, "
              f"measured {statistics.median(measured[name]):8.2f} ms, "
              f"ratio {ratio:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            compare(model, arguments.dtype, arguments.rounds, folder)


if __name__ == "__main__":
    main()
