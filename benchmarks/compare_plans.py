#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves the same requests with artifacts that differ in their plans, in turn.

    compare_plans.py A.sandwich B.sandwich ... [--trace=lmsys] [--requests=24]
        [--requests-per-second=100] [--rounds=5] [--cpu-quota=PERCENT]

Each round replays other requests once with each artifact, and begins with
another one. Prints the medians of the speed, prompts and generated tokens
together, of the mean latency, and of both ratios to the first artifact within a
round, which hold when the machine's speed drifts. --cpu-quota limits all
processes together to so many percent of a CPU, as a container's limit does
(150: one and a half CPUs); that needs root. Run it on an idle machine.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys


@contextlib.contextmanager
def cpu_quota(percent):
    """Runs what is inside in a cgroup of its own."""
    if percent is None:
        yield
        return
    period = 100000
    quota = period * percent // 100
    root = pathlib.Path("/sys/fs/cgroup")
    version1 = (root / "cpu/cpu.cfs_quota_us").exists() or \
        (root / "cpu/tasks").exists()
    parent = root / "cpu" if version1 else root
    group = parent / f"sandwich-compare-plans-{os.getpid()}"
    try:
        group.mkdir()
        if version1:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {period}")
    except OSError as error:
        sys.exit(f"{group}: no cgroup with a CPU quota can be made: {error}")
    own = pathlib.Path("/proc/self/cgroup").read_text()
    before = parent / next(
        line.split(":", 2)[2].lstrip("/") for line in own.splitlines()
        if ("cpu" in line.split(":")[1].split(",") if version1
            else line.startswith("0::")))
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def replay(arguments, artifact, seed):
    command = [arguments.sandwich_run, "replay", artifact, "--json", "-q",
               f"--trace={arguments.trace}", f"--requests={arguments.requests}",
               f"--requests-per-second={arguments.requests_per_second}",
               f"--seed={seed}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{artifact}: {result.stderr.strip()}")
    output = json.loads(result.stdout)
    tokens = output["prompt_tokens"] + output["output_tokens"]
    return tokens / output["seconds"], output["latency_ms"]["mean"]


def main():
    binaries = os.path.join(os.path.dirname(__file__), "../build/release/bin")
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifacts", nargs="+", metavar="ARTIFACT")
    parser.add_argument("--sandwich-run",
                        default=os.path.join(binaries, "sandwich-run"))
    parser.add_argument("--trace", default="lmsys")
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--requests-per-second", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-quota", type=int, metavar="PERCENT")
    arguments = parser.parse_args()

    rounds = []
    with cpu_quota(arguments.cpu_quota):
        for seed in range(1, arguments.rounds + 1):
            shift = seed % len(arguments.artifacts)
            order = arguments.artifacts[shift:] + arguments.artifacts[:shift]
            rounds.append({artifact: replay(arguments, artifact, seed)
                           for artifact in order})
    first = arguments.artifacts[0]
    print(f"{'artifact':<30} {'tokens/s':>9} {'ratio':>6} {'latency ms':>11} "
          f"{'ratio':>6}")
    for artifact in arguments.artifacts:
        def median(value):
            return statistics.median(value(figures) for figures in rounds)
        print(f"{os.path.basename(artifact):<30} "
              f"{median(lambda f: f[artifact][0]):9.1f} "
              f"{median(lambda f: f[artifact][0] / f[first][0]):6.2f} "
              f"{median(lambda f: f[artifact][1]):11.1f} "
              f"{median(lambda f: f[artifact][1] / f[first][1]):6.2f}")


if __name__ == "__main__":
    main()
