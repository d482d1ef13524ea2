#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times Sandwich and llama.cpp in turn on the same weights.

    compare_llama_cpp.py --artifact X.sandwich --gguf X.gguf \\
        --llama-bench PATH [-p 16,128,512] [-n 32] [--rounds 5] [--threads 2]

Each round runs both programs once, Sandwich first in even rounds. Prints the
median tokens per second of each, and the median of the ratios taken within a
round, which holds when the machine's speed drifts. Run it on an idle machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed: {result.stderr.strip()}")
    return json.loads(result.stdout)


def sandwich(arguments):
    output = run([arguments.sandwich_run, "bench", arguments.artifact,
                  "-p", arguments.p, "-n", arguments.n, "-r", "1", "--json"])
    for entry in output["results"]:
        if "bandwidth_ratio" in entry:
            bandwidth.append(entry["bandwidth_ratio"])
    return {entry["test"]: entry["tokens_per_second"]
            for entry in output["results"]}


def llama_cpp(arguments):
    output = run([arguments.llama_bench, "-m", arguments.gguf,
                  "-t", str(arguments.threads), "-p", arguments.p,
                  "-n", arguments.n, "-r", "1", "-o", "json"])
    return {(f"pp{entry['n_prompt']}" if entry["n_prompt"] else
             f"tg{entry['n_gen']}"): entry["avg_ts"] for entry in output}


bandwidth = []


def main():
    binaries = os.path.join(os.path.dirname(__file__), "../build/release/bin")
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artifact", required=True)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--sandwich-run",
                        default=os.path.join(binaries, "sandwich-run"))
    parser.add_argument("-p", default="16,128,512")
    parser.add_argument("-n", default="32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: the machine is not idle, load {load:.1f}",
              file=sys.stderr)
    plan = run([arguments.sandwich_run, "inspect", arguments.artifact,
                "--json"])
    for phase in plan["phases"]:
        if phase["threads"] != arguments.threads:
            sys.exit(f"{arguments.artifact}: {phase['name']} was compiled for "
                     f"{phase['threads']} threads, not {arguments.threads}")
    ours, theirs = [], []
    for number in range(arguments.rounds):
        order = [(sandwich, ours), (llama_cpp, theirs)]
        for program, results in order if number % 2 == 0 else order[::-1]:
            results.append(program(arguments))
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)

    print(f"{'test':8} {'Sandwich':>10} {'llama.cpp':>10} {'ratio':>7}")
    for test in ours[0]:
        ratio = statistics.median(a[test] / b[test]
                                  for a, b in zip(ours, theirs))
        print(f"{test:8} {statistics.median(a[test] for a in ours):10.2f} "
              f"{statistics.median(b[test] for b in theirs):10.2f} "
              f"{ratio:7.2f}")
    if bandwidth:
        print("decode reads weights at "
              f"{100 * statistics.median(bandwidth):.0f}% of the read "
              "bandwidth measured beside it")


main()
