#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times Sandwich and other programs in turn on the same weights.

    compare_peers.py --sandwich X.sandwich [--sandwich X-tuned.sandwich]
        [--llama-cpp X.gguf --llama-cpp-bin DIR]
        [--openvino X.openvino --openvino-python PYTHON]
        [-p 16,128,512] [-n 32] [--rounds 5] [--threads 2] [--json FILE]

First all programs continue the same prompts, of the lengths that -p names, and
have to agree: while they choose the same tokens, the log-probabilities of all
tokens that two of them tell may differ by --tolerance; where they part, they have
to part between tokens that are as good as equal.

Then each round runs every program once and begins with another one. The table
shows medians of tokens per second over the rounds, and below those of each peer
how many times as fast the first Sandwich artifact is: the median of the ratios
within a round, which holds when the machine's speed drifts. ppN is a prompt of N
tokens, of whose last the logits are wanted; tgN generates N tokens one by one.
Run it on an idle machine.

  --sandwich   an artifact for as many threads as --threads says
  --llama-cpp  a GGUF file, timed with llama-bench. Its continuation comes from
               llama-server, on a port of the loopback interface; where
               llama-bench alone is there, --no-check leaves that out
  --openvino   a folder with OpenVINO's IR, run by OpenVINO GenAI in bf16, f32
               where the CPU has none, once with each of its two attention back
               ends (--openvino-attention)

Each of the three may be given several times. Models that are not the same, as
weights of 4 or 8 bits, can be timed in turn with --no-check.
benchmarks/README.md tells how to make these files.
"""
import argparse
import array
import datetime
import functools
import heapq
import json
import math
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent

# As many tokens of each step are compared, and as many steps.
TOP = 50
STEPS = 4


def fail(message):
    sys.exit(f"error: {message}")


def run(command, **options):
    """What a program that must succeed writes on its standard output."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["nothing was said"]
        fail(f"{command[0]} failed with {result.returncode}: {lines[-1]}")
    return result.stdout


def run_json(command, **options):
    output = run(command, **options)
    try:
        return json.loads(output)
    except ValueError:
        fail(f"{command[0]} wrote no JSON: {output[:80]!r}")


class Program:
    """What is timed: a program with a model."""

    def __init__(self, name, model, arguments):
        self.name = name
        self.model = model
        self.arguments = arguments

    def describe(self):
        """Its version, or what else tells builds apart; fails where the program
        or the model cannot be used."""
        raise NotImplementedError

    def measure(self):
        """Tokens per second of each test."""
        raise NotImplementedError

    def continuation(self, prompt):
        """For each of STEPS greedy steps the token that was chosen and the
        log-probabilities of the likeliest tokens, of as many as are known."""
        raise NotImplementedError


class Sandwich(Program):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.read_bandwidth = []

    def describe(self):
        program = self.arguments.sandwich_run
        self.manifest = run_json([program, "inspect", self.model, "--json"])
        for phase in self.manifest["phases"]:
            if phase["threads"] != self.arguments.threads:
                fail(f"{self.model}: {phase['name']} was compiled for "
                     f"{phase['threads']} threads, not {self.arguments.threads}")
        return run([program, "--version"]).strip()

    def measure(self):
        output = run_json([
            self.arguments.sandwich_run, "bench", self.model,
            "-p", self.arguments.p, "-n", self.arguments.n, "-r", "1", "--json"])
        self.read_bandwidth += [
            entry["bandwidth_ratio"] for entry in output["results"]
            if "bandwidth_ratio" in entry]
        return {entry["test"]: entry["tokens_per_second"]
                for entry in output["results"]}

    def continuation(self, prompt):
        program = self.arguments.sandwich_run
        tokens = run_json([
            program, "generate", self.model, "--token-ids",
            ",".join(map(str, prompt)), f"--max-tokens={STEPS}",
            "--temperature=0", "--ignore-eos", "--json"])["tokens"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "logits")
            sequence = prompt + tokens[:-1]
            run([program, "logits", self.model, "--token-ids",
                 ",".join(map(str, sequence)), "--out", path])
            row_bytes = os.path.getsize(path) // len(sequence)
            rows = []
            with open(path, "rb") as file:
                file.seek(row_bytes * (len(prompt) - 1))
                for _ in tokens:
                    rows.append(array.array("f", file.read(row_bytes)))
        return [(token, likeliest(row)) for token, row in zip(tokens, rows)]


def likeliest(logits):
    """The log-probabilities of the TOP likeliest tokens."""
    largest = max(logits)
    whole = largest + math.log(sum(math.exp(x - largest) for x in logits))
    best = heapq.nlargest(TOP, range(len(logits)), logits.__getitem__)
    return {token: logits[token] - whole for token in best}


class LlamaCpp(Program):
    def program(self, name):
        folder = self.arguments.llama_cpp_bin
        path = os.path.join(folder, name) if folder else name
        found = shutil.which(path)
        if not found:
            fail(f"{path} is not there; name the folder of llama.cpp's programs "
                 "with --llama-cpp-bin")
        return found

    def describe(self):
        if not os.path.isfile(self.model):
            fail(f"{self.model}: there is no such GGUF file")
        self.bench = self.program("llama-bench")
        if self.arguments.check:
            self.server = self.program("llama-server")
        entry = run_json(self.command("1", "0"))[0]
        return f"build {entry['build_number']} ({entry['build_commit']})"

    def command(self, prompts, generated):
        return [self.bench, "-m", self.model,
                "-t", str(self.arguments.threads), "-p", prompts,
                "-n", generated, "-r", "1", "-o", "json"]

    def measure(self):
        return {(f"pp{entry['n_prompt']}" if entry["n_prompt"] else
                 f"tg{entry['n_gen']}"): entry["avg_ts"] for entry in
                run_json(self.command(self.arguments.p, self.arguments.n))}

    def continuation(self, prompt):
        # It tells no port that it chose by itself.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with tempfile.TemporaryFile("w+") as log:
            server = subprocess.Popen(
                [self.server, "-m", self.model, "--host", "127.0.0.1",
                 "--port", str(port), "-t", str(self.arguments.threads),
                 "-c", str(len(prompt) + STEPS), "-np", "1"],
                stdout=log, stderr=log)
            try:
                answer = self.ask(server, log, f"http://127.0.0.1:{port}", {
                    "prompt": prompt, "n_predict": STEPS, "n_probs": TOP,
                    "temperature": -1, "ignore_eos": True})
            finally:
                server.terminate()
                server.wait()
        return [(step["id"], {entry["id"]: entry["logprob"]
                              for entry in step["top_logprobs"]})
                for step in answer["completion_probabilities"]]

    def ask(self, server, log, address, request):
        """The answer of a server that has just been started."""
        # A proxy of the environment is none for the loopback interface.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            if server.poll() is not None:
                log.seek(0)
                lines = log.read().strip().splitlines() or ["nothing was said"]
                fail(f"{self.server} failed with {server.returncode}: "
                     f"{lines[-1]}")
            try:
                opener.open(f"{address}/health").close()
                break
            except (urllib.error.URLError, ConnectionError):
                # It refuses connections, and then is unavailable, until the
                # model is loaded.
                time.sleep(0.1)
        request = urllib.request.Request(
            f"{address}/completion", json.dumps(request).encode(),
            {"Content-Type": "application/json"})
        try:
            with opener.open(request) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError) as error:
            fail(f"{self.server} did not answer: {error}")


class OpenVINO(Program):
    def __init__(self, attention, *arguments):
        super().__init__(*arguments)
        self.attention = attention

    def run(self, command, *options, **more):
        # What it writes beside its JSON object is not of interest.
        return run_json(
            [self.arguments.openvino_python, str(HERE / "openvino_genai_bench.py"),
             command, self.model, "--attention", self.attention,
             "--threads", str(self.arguments.threads), *options], **more)

    def describe(self):
        if not os.path.isfile(os.path.join(self.model, "openvino_model.xml")):
            fail(f"{self.model}: there is no openvino_model.xml in it")
        return self.run("version")["version"]

    def measure(self):
        return self.run("bench", "-p", self.arguments.p, "-n", self.arguments.n)

    def continuation(self, prompt):
        answer = self.run("continue", "--steps", str(STEPS),
                          input=json.dumps(prompt))
        return [(step["token"], {step["token"]: step["log_probability"]})
                for step in answer]


def disagreement(one, other, tolerance):
    """How far two continuations are apart in the log-probability of any token
    that both tell, and why they do not agree, or None."""
    largest = 0.0
    for number, ((token, known), (other_token, other_known)) in enumerate(
            zip(one, other), start=1):
        # Where one tells more than its choice, the other's choice is among that.
        missing = next((token for token, among in
                        ((token, other_known), (other_token, known))
                        if len(among) > 1 and token not in among), None)
        if missing is not None:
            return largest, (f"step {number}: token {missing}, the likeliest of "
                             f"one, is not among the {TOP} likeliest of the other")
        for both in known.keys() & other_known.keys():
            largest = max(largest, abs(known[both] - other_known[both]))
        if largest > tolerance:
            return largest, (f"step {number}: log-probabilities differ by "
                             f"{largest:.3g}")
        if token != other_token:
            for first, second, among in ((token, other_token, known),
                                         (other_token, token, other_known)):
                gap = among[first] - among.get(second, among[first])
                if gap > tolerance:
                    return largest, (f"step {number}: one chose {token}, the "
                                     f"other {other_token}, which are {gap:.3g} "
                                     "apart")
            break
    return largest, None


def check_agreement(programs, vocabulary, arguments):
    """Fails unless every program continues prompts as the first does; returns
    how far each is from it."""
    differences = {program.name: {} for program in programs[1:]}
    for length in map(int, arguments.p.split(",")):
        generator = random.Random(length)
        # Below 3 are the tokens that begin and end a text.
        prompt = [generator.randrange(3, vocabulary) for _ in range(length)]
        expected = programs[0].continuation(prompt)
        for program in programs[1:]:
            largest, reason = disagreement(
                expected, program.continuation(prompt), arguments.tolerance)
            if reason:
                fail(f"{programs[0].name} and {program.name} do not compute the "
                     f"same after {length} tokens: {reason}; what may be is "
                     f"{arguments.tolerance:g} (--tolerance)")
            differences[program.name][f"pp{length}"] = largest
    for name, of_lengths in differences.items():
        print(f"{name} continues as {programs[0].name} does: log-probabilities "
              f"differ by at most {max(of_lengths.values()):.3g}",
              file=sys.stderr)
    return differences


def processor():
    """This CPU as it calls itself."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def print_table(report):
    """As Markdown, so that it can go into a page as it is."""
    programs = report["programs"]
    tests = list(programs[0]["results"])
    rows = [["tokens per second", *tests]]
    for program in programs:
        for label, figure in ((program["name"], "median"), ("ratio", "ratio")):
            if figure in program["results"][tests[0]]:
                rows.append([label, *(rounded(program["results"][test][figure])
                                      for test in tests)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in
                                zip(row, widths)) + " |")


def rounded(figure):
    """With as many digits as say something."""
    return f"{figure:.0f}" if figure >= 100 else \
        f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}"


def selected_programs(arguments):
    """All programs with all their models, each with a name of its own."""
    kinds = [("Sandwich", arguments.sandwich, Sandwich),
             ("llama.cpp", arguments.llama_cpp, LlamaCpp)]
    kinds += [(f"OpenVINO GenAI {attention}", arguments.openvino,
               functools.partial(OpenVINO, attention))
              for attention in arguments.openvino_attention.split(",")]
    programs = [program(name if len(models) == 1 else
                        f"{name} {pathlib.Path(model).stem}", model, arguments)
                for name, models, program in kinds for model in models]
    names = [program.name for program in programs]
    for name in names:
        if names.count(name) > 1:
            fail(f"there are two of '{name}': give the models other names")
    return programs


def measure(programs, rounds):
    """The speeds of each program in each round."""
    speeds = {program.name: [] for program in programs}
    for number in range(rounds):
        shift = number % len(programs)
        for program in programs[shift:] + programs[:shift]:
            figures = program.measure()
            first = speeds[programs[0].name]
            if first and figures.keys() != first[0].keys():
                fail(f"{program.name} measured {sorted(figures)}, not "
                     f"{sorted(first[0])}")
            speeds[program.name].append(figures)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return speeds


def results(own, first):
    """Medians, what they are of, and the ratios of the first program to this."""
    table = {}
    for test in first[0]:
        table[test] = {
            "median": statistics.median(figures[test] for figures in own),
            "samples": [figures[test] for figures in own]}
        if own is not first:
            table[test]["ratio"] = statistics.median(
                a[test] / b[test] for a, b in zip(first, own))
    return table


def numbers(text):
    """Positive numbers with commas between, as all programs take them."""
    values = text.split(",")
    if not all(value.isdecimal() and int(value) > 0 for value in values):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of positive numbers such as 16,128")
    return ",".join(str(int(value)) for value in values)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no positive number")
    return int(text)


def attentions(text):
    if not set(text.split(",")) <= {"SDPA", "PA"}:
        raise argparse.ArgumentTypeError(f"'{text}' is not of SDPA and PA")
    return text


def parse_arguments():
    parser = argparse.ArgumentParser(
        usage="compare_peers.py --sandwich ARTIFACT ... [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sandwich", action="append", required=True,
                        metavar="ARTIFACT")
    parser.add_argument("--sandwich-run", metavar="PROGRAM", default=str(
        HERE / "../build/release/bin/sandwich-run"))
    parser.add_argument("--llama-cpp", action="append", default=[],
                        metavar="GGUF")
    parser.add_argument("--llama-cpp-bin", metavar="DIR",
                        help="where llama-bench and llama-server are "
                        "(default: on the PATH)")
    parser.add_argument("--openvino", action="append", default=[], metavar="DIR")
    parser.add_argument("--openvino-python", metavar="PYTHON",
                        default=sys.executable,
                        help="a Python that has openvino-genai (default: this)")
    parser.add_argument("--openvino-attention", type=attentions,
                        default="SDPA,PA", metavar="SDPA,PA")
    parser.add_argument("-p", type=numbers, default="16,128,512",
                        help="prompt lengths (default: %(default)s)")
    parser.add_argument("-n", type=numbers, default="32",
                        help="generated tokens (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, default=5,
                        help="(default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=2,
                        help="of every program (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=0.1,
                        help="of log-probabilities (default: %(default)s)")
    parser.add_argument("--no-check", dest="check", action="store_false",
                        help="measures without comparing what is computed")
    parser.add_argument("--json", metavar="FILE",
                        help="also writes the table, every sample and how far "
                        "the programs were apart")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: the machine is not idle, load {load:.1f}",
              file=sys.stderr)
    if arguments.json:
        try:
            open(arguments.json, "a").close()
        except OSError as error:
            fail(f"{arguments.json}: {error.strerror}")
    programs = selected_programs(arguments)
    versions = {program.name: program.describe() for program in programs}
    vocabulary = programs[0].manifest["model"]["vocab_size"]
    differences = check_agreement(programs, vocabulary, arguments) \
        if arguments.check else None
    speeds = measure(programs, arguments.rounds)

    first = speeds[programs[0].name]
    report = {
        "date": datetime.date.today().isoformat(), "cpu": processor(),
        "load": load, "threads": arguments.threads, "rounds": arguments.rounds,
        "tolerance": arguments.tolerance, "differences": differences,
        "programs": [{"name": program.name, "model": program.model,
                      "version": versions[program.name],
                      "results": results(speeds[program.name], first)}
                     for program in programs]}
    print_table(report)
    for program in programs:
        if isinstance(program, Sandwich) and program.read_bandwidth:
            print(f"decode of {program.name} reads weights at "
                  f"{100 * statistics.median(program.read_bandwidth):.0f}% of "
                  "the read bandwidth measured beside it")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        fail("interrupted")
    except LookupError as missing:
        fail(f"a program wrote JSON without {missing}: it is of a version that "
             "this knows nothing of")
