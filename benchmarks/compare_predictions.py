#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what the latency model says of steps with what they take here.

    compare_predictions.py MODEL [MODEL...] [--dtype=bf16|f32] [--rounds=5]
        [--machine=FILE.json]

Measures the machine (or reads what was measured before), plans each model with it,
compiles the plan, and runs prompts of 128 and 512 tokens and decode steps of 1, 8
and 32 sequences that hold 128 tokens each, the steps that a plan's JSON predicts.
Prints the predicted milliseconds, the median over rounds of those measured, and
their ratio. Run it on an idle machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

TOKENS = 32
# Sequences hold 128 tokens on average while they generate.
CONTEXT = 128 - TOKENS // 2


def run(*command):
    """The object of JSON that `command` prints."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def test_of(step):
    """The name of the benchmark that runs a predicted step, and its tokens."""
    if step["phase"] == "prefill":
        return f"pp{step['tokens']}", step["tokens"]
    name = f"tg{TOKENS}@{CONTEXT}"
    if step["sequences"] > 1:
        name += f"x{step['sequences']}"
    return name, step["sequences"]


def measure(artifact, steps, rounds):
    """The median milliseconds of each of `steps`."""
    prompts = sorted(step["tokens"] for step in steps
                     if step["phase"] == "prefill")
    sequences = [step["sequences"] for step in steps
                 if step["phase"] == "decode"]
    speeds = {}
    for _ in range(rounds):
        result = run("sandwich-run", "bench", artifact, "--json", "-r", "1",
                     "-p", ",".join(map(str, prompts)), "-n", str(TOKENS),
                     "--context", str(CONTEXT),
                     "-s", ",".join(map(str, sequences)))
        for test in result["results"]:
            speeds.setdefault(test["test"], []).append(
                test["tokens_per_second"])
    return [1000 * tokens / statistics.median(speeds[name])
            for name, tokens in map(test_of, steps)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = arguments.machine
        for model in arguments.models:
            source = f"--machine-parameters={machine}"
            if not machine:
                machine = os.path.join(folder, "machine.json")
                source = f"--measure-machine={machine}"
            plan = run("sandwich-compile", model, "--plan-only", "--json",
                       f"--dtype={arguments.dtype}", source)
            cores = os.path.join(folder, "plan.json")
            with open(cores, "w", encoding="utf-8") as file:
                json.dump(plan, file)
            artifact = os.path.join(folder, "model.sandwich")
            subprocess.run(
                ["sandwich-compile", model, "--quiet", "-o", artifact,
                 f"--dtype={arguments.dtype}", f"--plan={cores}",
                 f"--machine-parameters={machine}"], check=True)
            measured = measure(artifact, plan["steps"], arguments.rounds)
            print(f"{model}, {arguments.dtype}:", flush=True)
            for step, milliseconds in zip(plan["steps"], measured):
                predicted = step["predicted_ms"]
                print(f"  {test_of(step)[0]:12} predicted {predicted:8.2f} ms, "
                      f"measured {milliseconds:8.2f} ms, "
                      f"{predicted / milliseconds:.3f}", flush=True)


if __name__ == "__main__":
    main()
