#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what the latency model says of steps with what they take here.

    compare_predictions.py MODEL [MODEL...] [--dtype=bf16|f32] [--rounds=5]

The steps are those that a plan's JSON predicts: prompts of 128 and 512 tokens, and
decode steps of 1, 8 and 32 sequences that hold 128 tokens each. The machine is
measured, and the step predicted with it, before and after each step that is run. A
shared machine is another one at times (what two cores of a virtual one read may jump
by two thirds for seconds), so a run counts only where both predictions agree; it is
repeated until each step has its rounds. Prints the medians over rounds of the
predicted and of the measured milliseconds, and of their ratio within a round, and
how many runs did not count. Run it on an idle machine.
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
# By what share two predictions of a step may differ where the machine was the same.
AGREE = 0.05
# Runs for each round before the machine is called too unsteady.
TRIES = 8


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


def measure(artifact, step):
    """The milliseconds of `step`."""
    if step["phase"] == "prefill":
        tests = ["-p", str(step["tokens"]), "-n", "0"]
    else:
        tests = ["-p", "0", "-n", str(TOKENS), "--context", str(CONTEXT),
                 "-s", str(step["sequences"])]
    result = run("sandwich-run", "bench", artifact, "--json", "-r", "1", *tests)
    name, tokens = test_of(step)
    (test,) = result["results"]
    assert test["test"] == name, test
    return 1000 * tokens / test["tokens_per_second"]


def predict(model, dtype, machine):
    """The best plan for the machine as it is now."""
    plan = run("sandwich-compile", model, "--plan-only", "--json",
               f"--dtype={dtype}", "--top-k=1", f"--measure-machine={machine}")
    if "instances" in plan["configurations"][0]:
        sys.exit("the best plan has several instances, which is not what would "
                 "be measured")
    return plan


def cores_of(plan):
    """Those of each process of a plan, by phase."""
    best = plan["configurations"][0]
    return best["prefill_cores"], best["decode_cores"]


class Comparison:
    """What was predicted and measured of one step, in milliseconds."""

    def __init__(self):
        self.predicted, self.measured = [], []
        self.dropped = 0

    def add(self, before, after, measured):
        """Counts a run between two predictions if they agree."""
        if abs(before - after) > AGREE * min(before, after):
            self.dropped += 1
            return
        self.predicted.append((before + after) / 2)
        self.measured.append(measured)

    def ratio(self):
        return statistics.median(
            predicted / measured
            for predicted, measured in zip(self.predicted, self.measured))


def compare(model, dtype, rounds, folder):
    """Prints the comparison of one model."""
    machine = os.path.join(folder, "machine.json")
    cores = os.path.join(folder, "plan.json")
    artifact = os.path.join(folder, "model.sandwich")
    plan = predict(model, dtype, machine)
    with open(cores, "w", encoding="utf-8") as file:
        json.dump(plan, file)
    subprocess.run(["sandwich-compile", model, "--quiet", "-o", artifact,
                    f"--dtype={dtype}", f"--plan={cores}"], check=True)
    before = predict(model, dtype, machine)
    print(f"{model}, {dtype}, medians of {rounds} rounds:")
    for index, step in enumerate(plan["steps"]):
        name = test_of(step)[0]
        comparison = Comparison()
        for _ in range(TRIES * rounds):
            taken = measure(artifact, step)
            after = predict(model, dtype, machine)
            # Another plan would have other steps than the artifact's.
            if cores_of(before) == cores_of(after) == cores_of(plan):
                comparison.add(before["steps"][index]["predicted_ms"],
                               after["steps"][index]["predicted_ms"], taken)
            else:
                comparison.dropped += 1
            before = after
            if len(comparison.measured) == rounds:
                break
        else:
            sys.exit(f"{name}: the machine was seldom the same before and after "
                     f"a run ({len(comparison.measured)} of {TRIES * rounds} "
                     "times)")
        print(f"  {name:12} predicted "
              f"{statistics.median(comparison.predicted):8.2f} ms, measured "
              f"{statistics.median(comparison.measured):8.2f} ms, ratio "
              f"{comparison.ratio():.3f}, {comparison.dropped} runs dropped",
              flush=True)


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
