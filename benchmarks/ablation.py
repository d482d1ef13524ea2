#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ablation of the Sandwich paper (section 7.4, table 1) on this machine.

    ablation.py MODEL_DIR [--ranks=2] [--threads=N] [--plan=auto|FILE.json]
        [--evaluator=modelled] [--tune=quick] [--tuning-seconds=S]
        [--dtype=bf16] [--max-tokens-per-step=512] [--sequences 1,8] [-n 32]
        [--context=128] [--rounds=9] [--out FOLDER] [--json FILE]

Each row adds to the one before what a user can choose:

    plain                    --ranks processes of --threads threads that sum by
                             copies to a master, and untuned schedules
    + communication          sums that start at each rank's neighbour
    + service configuration  the processes and cores of a plan: the best that
                             sandwich-compile --plan-only finds, or a file
    + kernel tuning          schedules measured here, none of which shares K
                             among threads
    + split-k                the same search with thread grids that share K

The tuned rows have a file of schedules each, as a search goes on from all that
its file has. A team of one thread has no split-k; where the plan's decode teams
are so small, a second table has the last rows for one process of all threads.

Each round runs `sandwich-run bench` once with each row, and begins with another
one. Prints Markdown: processes x threads of decode, the decode matmuls whose
schedules share K at each number of sequences, and for each number of sequences
the tokens/s of all together, as median and quarters over rounds, and the median
of the ratio to the row before within a round, which holds when the machine's
speed drifts. --out keeps artifacts, plan and schedules, so that the next run
does not tune again. Run it on an idle machine.
"""
import argparse
import collections
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

# `options` is a tuple of sandwich-compile's.
Variant = collections.namedtuple("Variant",
                                 "name artifact collectives options")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {result.stderr.strip()}")
    return result.stdout


def read_plan(path):
    """The cores of each process in decode, of the plan's best."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["configurations"][0]["decode_cores"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"{path}: is no plan of sandwich-compile --plan-only --json: "
                 f"{error}")


def find_plan(arguments, folder):
    if arguments.plan != "auto":
        return arguments.plan
    path = os.path.join(folder, "plan.json")
    plan = run([arguments.sandwich_compile, arguments.model, "--plan-only",
                "--json", f"--evaluator={arguments.evaluator}",
                f"--dtype={arguments.dtype}"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(plan)
    return path


def tuned(arguments, folder, strategy, name):
    options = [f"--tune={arguments.tune}", f"--strategy={strategy}",
               "--schedules=" + os.path.join(folder, name + ".schedules")]
    if arguments.tuning_seconds:
        options.append(f"--tuning-seconds={arguments.tuning_seconds}")
    return tuple(options)


def tuned_rows(arguments, folder, team, suffix):
    """The rows from kernel tuning on, for what `team` says."""
    return [Variant(name, file + suffix, "rank-shifted",
                    team + tuned(arguments, folder, strategy, file + suffix))
            for name, file, strategy in (
                ("+ kernel tuning", "tuned", "sandwich-without-split-k"),
                ("+ split-k", "split-k", "sandwich"))]


def make_tables(arguments, folder):
    """Lists of variants by the headings of their tables."""
    plan = find_plan(arguments, folder)
    decode = read_plan(plan)
    plain = (f"--tensor-parallel={arguments.ranks}",
             f"--threads={arguments.threads}")
    planned = (f"--plan={plan}",)
    tables = {"Table 1 of the paper": [
        Variant("plain", "plain", "master-copies", plain),
        Variant("+ communication", "plain", "rank-shifted", plain),
        Variant("+ service configuration", "planned", "rank-shifted", planned),
        *tuned_rows(arguments, folder, planned, "")]}
    if max(map(len, decode)) > 1:
        return tables
    print("Teams of one thread share no K, so split-k changes nothing in this "
          "plan's decode.")
    threads = arguments.ranks * arguments.threads
    if threads > 1:
        alone = (f"--threads={threads}",)
        tables[f"Split-k in one process of {threads} threads"] = [
            Variant("untuned", "alone", "rank-shifted", alone),
            *tuned_rows(arguments, folder, alone, "-alone")]
    return tables


def compile_variants(arguments, folder, variants):
    """The artifacts for which --tuning-seconds was too short."""
    incomplete = []
    for name, options in {each.artifact: each.options
                          for each in variants}.items():
        print(f"compiling {name}", file=sys.stderr)
        command = [arguments.sandwich_compile, arguments.model, "-o",
                   os.path.join(folder, name + ".sandwich"),
                   f"--dtype={arguments.dtype}",
                   f"--max-tokens-per-step={arguments.max_tokens_per_step}",
                   *options]
        # Tuning takes long; whoever waits sees how far it is.
        with subprocess.Popen(command, stderr=subprocess.PIPE,
                              text=True) as process:
            for line in process.stderr:
                print("  " + line, end="", file=sys.stderr)
                if line.startswith("the budget for tuning was spent"):
                    incomplete.append(name)
        if process.returncode != 0:
            sys.exit(f"{shlex.join(command)}: failed, see above")
    return incomplete


def artifact_of(folder, variant):
    return os.path.join(folder, variant.artifact + ".sandwich")


def shared_k(arguments, folder, variant):
    """How many of decode's matmuls share K at each number of sequences."""
    facts = json.loads(run([arguments.sandwich_run, "inspect",
                            artifact_of(folder, variant), "--json"]))
    schedules = next(phase["schedules"] for phase in facts["phases"]
                     if phase["name"] == "decode")
    schedules = [each for each in schedules
                 if each["text"].startswith("#gemm.schedule<")]
    def shares(schedule):
        grid = schedule["text"].split("threads = [")[1].split("]")[0]
        return int(grid.split(",")[2]) > 1
    counts = [sum(shares(each) for each in schedules
                  if each["rows_from"] <= sequences and
                  not 0 < each["rows_to"] < sequences)
              for sequences in arguments.sequences]
    matmuls = len({each["matmul"] for each in schedules})
    return f"{', '.join(map(str, counts))} of {matmuls}"


def bench(arguments, folder, variant):
    """The output of a run, with tokens per second by number of sequences."""
    output = json.loads(run([
        arguments.sandwich_run, "bench", artifact_of(folder, variant), "-p",
        "0", "-n", str(arguments.generated), "-c", str(arguments.context),
        "-s", ",".join(map(str, arguments.sequences)), "-r", "1",
        f"--collectives={variant.collectives}", "--json"]))
    output["speeds"] = {
        sequences: result["tokens_per_second"]
        for sequences, result in zip(arguments.sequences, output["results"])}
    return output


def measure(arguments, folder, variants):
    rounds = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        shift = number % len(variants)
        order = variants[shift:] + variants[:shift]
        outputs = {each: bench(arguments, folder, each) for each in order}
        rounds.append({each: outputs[each] for each in variants})
    return rounds


def team_of(output):
    """What the ranks' threads in decode were when they had loaded."""
    sizes = {len(rank["decode_cores"]) for rank in output["ranks"]}
    return f"{len(output['ranks'])} x {', '.join(map(str, sorted(sizes)))}"


def figures(rounds, variant, before, sequences):
    """Median, quarters, and the ratio to the row before."""
    speeds = sorted(each[variant]["speeds"][sequences] for each in rounds)
    low, high = speeds[len(speeds) // 4], speeds[3 * len(speeds) // 4]
    ratio = before and statistics.median(
        each[variant]["speeds"][sequences] / each[before]["speeds"][sequences]
        for each in rounds)
    return [f"{statistics.median(speeds):.2f}", f"{low:.2f} to {high:.2f}",
            f"{ratio:.3f}" if ratio else ""]


def print_table(arguments, folder, heading, variants, rounds):
    columns = ["", "collectives", "ranks x threads", "matmuls with split-k"]
    for sequences in arguments.sequences:
        columns += [f"{sequences} seq., tokens/s", "quarters", "ratio"]
    rows = [columns, ["---"] * len(columns)]
    for before, variant in zip([None, *variants], variants):
        output = rounds[0][variant]
        rows.append([variant.name, output.get("collectives", "none"),
                     team_of(output), shared_k(arguments, folder, variant)])
        for sequences in arguments.sequences:
            rows[-1] += figures(rounds, variant, before, sequences)
    print(f"\n{heading}:\n")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def parse_arguments():
    def positive(text):
        if int(text) < 1:
            raise argparse.ArgumentTypeError("must be at least 1")
        return int(text)
    def numbers(text):
        return [positive(number) for number in text.split(",")]
    binaries = os.path.join(os.path.dirname(__file__), "../build/release/bin")
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR")
    for program in ("sandwich-run", "sandwich-compile"):
        parser.add_argument("--" + program,
                            default=os.path.join(binaries, program))
    parser.add_argument("--ranks", type=positive, default=2)
    parser.add_argument("--threads", type=positive,
                        help="of each rank; default: as CPUs suffice for")
    parser.add_argument("--plan", default="auto", metavar="auto|FILE.json")
    parser.add_argument("--evaluator", default="modelled",
                        choices=("modelled", "measured", "both"))
    parser.add_argument("--tune", default="quick", choices=("quick", "full"))
    parser.add_argument("--tuning-seconds", type=positive)
    parser.add_argument("--dtype", default="bf16", choices=("bf16", "f32"))
    parser.add_argument("--max-tokens-per-step", type=positive, default=512)
    parser.add_argument("--sequences", type=numbers, default=[1, 8])
    parser.add_argument("-n", "--generated", type=positive, default=32)
    parser.add_argument("--context", type=positive, default=128)
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.threads is None:
        cpus = len(os.sched_getaffinity(0))
        arguments.threads = max(cpus // arguments.ranks, 1)
    return arguments


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or temporary
        os.makedirs(folder, exist_ok=True)
        tables = make_tables(arguments, folder)
        variants = [each for table in tables.values() for each in table]
        incomplete = compile_variants(arguments, folder, variants)
        rounds = measure(arguments, folder, variants)
        for heading, table in tables.items():
            print_table(arguments, folder, heading, table, rounds)
    if incomplete:
        print("\nNot all was tuned in the given time, and the rest is as "
              f"untuned, in: {', '.join(incomplete)}.")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump([{each.artifact + ", " + each.collectives: output
                        for each, output in one.items()} for one in rounds],
                      file, indent=1)


if __name__ == "__main__":
    main()
