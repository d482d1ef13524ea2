#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves the same requests with artifacts that differ in their plans, in turn.

    compare_plans.py A.sandwich B.sandwich ... [--trace=sharegpt]
        [--requests=4] [--rounds=16] [--requests-per-second=RATE]
        [--cpu-quota=PERCENT]

Each round replays the next requests of the trace once with each artifact, and
begins with another one: the defaults go once through the trace that plans are
for. With --requests-per-second each round has requests of its own. Prints the
medians over rounds of the speed, prompts and generated tokens together, of the
mean latency, and of both ratios to the first artifact within a round, which hold
when the machine's speed drifts; of the latency's ratio also the quarter and three
quarters. --cpu-quota limits all processes together to so many percent of a CPU,
as a container's limit does (150: one and a half CPUs); that needs root. Run it on
an idle machine.
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
    own = pathlib.Path("/proc/self/cgroup").read_text()
    before = parent / next(
        line.split(":", 2)[2].lstrip("/") for line in own.splitlines()
        if ("cpu" in line.split(":")[1].split(",") if version1
            else line.startswith("0::")))
    # Limits of the one it was in hold in version 1; version 2 allows no
    # processes beside other groups.
    group = (before if version1 else before.parent) / \
        f"sandwich-compare-plans-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        sys.exit(f"{group}: cannot be made: {error}")
    try:
        if version1:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {period}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    except OSError as error:
        sys.exit(f"{group}: {error}")
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def replay(arguments, artifact, number):
    command = [arguments.sandwich_run, "replay", artifact, "--json", "-q",
               f"--trace={arguments.trace}", f"--requests={arguments.requests}"]
    if arguments.requests_per_second:
        command += [f"--requests-per-second={arguments.requests_per_second}",
                    f"--seed={number + 1}"]
    else:
        command.append(f"--skip={number * arguments.requests}")
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
    def positive(text):
        if int(text) < 1:
            raise argparse.ArgumentTypeError("must be at least 1")
        return int(text)
    parser.add_argument("--trace", default="sharegpt")
    parser.add_argument("--requests", type=positive, default=4)
    parser.add_argument("--requests-per-second", type=float)
    parser.add_argument("--rounds", type=positive, default=16)
    parser.add_argument("--cpu-quota", type=positive, metavar="PERCENT")
    arguments = parser.parse_args()

    rounds = []
    with cpu_quota(arguments.cpu_quota):
        for number in range(arguments.rounds):
            shift = number % len(arguments.artifacts)
            order = arguments.artifacts[shift:] + arguments.artifacts[:shift]
            rounds.append({artifact: replay(arguments, artifact, number)
                           for artifact in order})
    first = arguments.artifacts[0]
    print(f"{'artifact':<30} {'tokens/s':>9} {'ratio':>6} {'latency ms':>11} "
          f"{'ratio':>6}  quarters")
    for artifact in arguments.artifacts:
        def median(value):
            return statistics.median(value(figures) for figures in rounds)
        ratios = sorted(f[artifact][1] / f[first][1] for f in rounds)
        print(f"{os.path.basename(artifact):<30} "
              f"{median(lambda f: f[artifact][0]):9.1f} "
              f"{median(lambda f: f[artifact][0] / f[first][0]):6.2f} "
              f"{median(lambda f: f[artifact][1]):11.1f} "
              f"{statistics.median(ratios):6.3f}  "
              f"{ratios[len(ratios) // 4]:.3f} "
              f"{ratios[3 * len(ratios) // 4]:.3f}")


if __name__ == "__main__":
    main()
