#!/usr/bin/env python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times Sandwich and other programs in turn on one encoder that embeds.

    compare_encoders.py CHECKPOINT --sandwich X.sandwich [--sandwich ...]
        --peer onnxruntime --peer openvino-f32 --peer openvino-bf16
        [--peer torch-f32] [--peer torch-bf16] [--peer NAME=COMMAND]
        [--batches 1,8,32] [--tokens 75] [--threads 2] [--rounds 5]

CHECKPOINT is a BertModel's folder, as test/Integration/Inputs/make_encoder.py
writes; its texts' vectors are those of the first token, normalized. First all
programs embed the same texts, and their vectors have to agree. Then each round
runs every program on each batch and begins with another program. The table
shows medians over the rounds in ms a batch, and below those of each peer how
many times as fast each Sandwich artifact is: the median of the ratios within a
round, which holds when the machine's speed drifts. Run it on an idle machine.

onnxruntime and OpenVINO read the model as torch.onnx writes it (to --onnx FILE,
kept if it is there: one file for each checkpoint). All run in the Python that
runs this, which needs torch, transformers, numpy, and what else is timed.
openvino-bf16 asks OpenVINO for bf16, which it takes where the CPU has it, and
fails where it does not. A COMMAND of one's own prints `ready`, then reads lines
such as {"texts": [[101, 7, 102]], "repetitions": 3} and answers each with
{"seconds": [...], "vectors": [[...]]}.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

from compare_peers import fail, positive, run, run_json

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("onnxruntime", "openvino-f32", "openvino-bf16", "torch-f32",
         "torch-bf16")
# Of each batch a round times so many texts, at least one batch, behind one that
# is not counted.
ROUND_TEXTS = 16


# The peers' side, in a process for each.


def encoder(checkpoint, dtype):
    """The module that maps ids and mask to normalized vectors."""
    import torch
    import transformers

    class Encoder(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            hidden = self.model(input_ids=ids,
                                attention_mask=mask).last_hidden_state
            return torch.nn.functional.normalize(hidden[:, 0].float(), dim=-1)

    # Tracing wants attention in plain operations.
    attention = "eager" if dtype is None else "sdpa"
    model = transformers.AutoModel.from_pretrained(
        checkpoint, attn_implementation=attention, add_pooling_layer=False)
    return Encoder(model.to(dtype or torch.float32)).eval()


def export(checkpoint, path):
    """Writes beside `path`, so that there is a whole model or none."""
    import torch

    ids = torch.randint(0, 100, (2, 16))
    axes = {0: "texts", 1: "tokens"}
    unfinished = path + ".unfinished"
    torch.onnx.export(
        encoder(checkpoint, None), (ids, torch.ones_like(ids)), unfinished,
        input_names=["ids", "mask"], output_names=["vectors"],
        dynamic_axes={"ids": axes, "mask": axes, "vectors": {0: "texts"}},
        opset_version=17, dynamo=False)
    os.replace(unfinished, path)


def peer_function(name, arguments):
    """What maps an int64 array of ids to vectors."""
    import numpy as np

    kind, _, dtype = name.partition("-")
    if kind == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        session = onnxruntime.InferenceSession(
            arguments.onnx, options, providers=["CPUExecutionProvider"])
        return lambda ids: session.run(
            None, {"ids": ids, "mask": np.ones_like(ids)})[0]
    if kind == "openvino":
        import openvino

        model = openvino.Core().compile_model(arguments.onnx, "CPU", {
            "INFERENCE_NUM_THREADS": arguments.threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": dtype})
        taken = model.get_property(
            "INFERENCE_PRECISION_HINT").get_type_name()
        if taken != dtype:
            sys.exit(f"OpenVINO computes in {taken} here, not in {dtype}")
        request = model.create_infer_request()
        return lambda ids: next(iter(request.infer(
            {"ids": ids, "mask": np.ones_like(ids)}).values()))
    import torch

    torch.set_num_threads(arguments.threads)
    module = encoder(arguments.checkpoint, {
        "f32": torch.float32, "bf16": torch.bfloat16}[dtype])

    def embed(ids):
        with torch.inference_mode():
            return module(torch.from_numpy(ids), None).numpy()

    return embed


def work(name, arguments):
    import numpy as np

    # What libraries print does not belong between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    function = peer_function(name, arguments)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        ids = np.array(request["texts"], np.int64)
        seconds = []
        for _ in range(request["repetitions"]):
            start = time.perf_counter()
            vectors = function(ids)
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"seconds": seconds, "vectors": vectors.tolist()}),
              file=answers, flush=True)


# The side that measures.


class Peer:
    """A process that answers lines."""

    def __init__(self, name, command):
        self.name = name
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True)
        except OSError as error:
            fail(f"{name}: {command[0]}: {error.strerror}")
        if self.process.stdout.readline() != "ready\n":
            fail(f"{name} does not start")

    def ask(self, texts, repetitions):
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"texts": texts, "repetitions": repetitions}),
                  file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            fail(f"{self.name} ended with {self.process.wait()}")
        try:
            answer = json.loads(line)
            return {"seconds": answer["seconds"], "vectors": answer["vectors"]}
        except (ValueError, KeyError, TypeError):
            fail(f"{self.name} answered {line[:60]!r}")

    def vectors(self, texts):
        return self.ask(texts, 1)["vectors"]

    def seconds(self, texts, repetitions):
        return statistics.median(
            self.ask(texts, repetitions + 1)["seconds"][1:])

    def close(self):
        # It may have ended before it read all.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


class Sandwich:
    def __init__(self, artifact, arguments):
        self.name = os.path.normpath(artifact)
        self.artifact = artifact
        self.program = arguments.sandwich_run
        manifest = run_json([self.program, "inspect", artifact, "--json"])
        threads = manifest["phases"][0]["threads"]
        if threads != arguments.threads:
            fail(f"{artifact}: was compiled for {threads} threads, not "
                 f"{arguments.threads}")

    def vectors(self, texts):
        with tempfile.NamedTemporaryFile("w") as file:
            file.writelines(json.dumps(ids) + "\n" for ids in texts)
            file.flush()
            lines = run([self.program, "embed", self.artifact, "--ids",
                         "--file", file.name]).splitlines()
        return [json.loads(line) for line in lines]

    def seconds(self, texts, repetitions):
        report = run_json([
            self.program, "bench-embed", self.artifact,
            "--batches", str(len(texts)), "--tokens", str(len(texts[0])),
            "-r", str(repetitions), "--json"])
        return report["results"][0]["seconds"]


def cosine(one, other):
    product = sum(a * b for a, b in zip(one, other))
    return product / (sum(a * a for a in one) * sum(b * b for b in other))**0.5


def check_agreement(programs, texts, least):
    expected = programs[0].vectors(texts)
    for program in programs[1:]:
        worst = min(map(cosine, expected, program.vectors(texts)))
        print(f"{program.name}: cosine to {programs[0].name} at least "
              f"{worst:.6f}", file=sys.stderr)
        if not worst >= least:
            fail(f"{programs[0].name} and {program.name} do not compute the "
                 "same")


def print_table(programs, batches, seconds):
    print("| ms a batch | " + " | ".join(map(str, batches)) + " |")
    print("|---" * (len(batches) + 1) + "|")
    own = [program for program in programs if isinstance(program, Sandwich)]
    for program in programs:
        times = seconds[program.name]
        print(f"| {program.name} | " + " | ".join(
            f"{statistics.median(times[batch]) * 1e3:.1f}"
            for batch in batches) + " |")
        if program in own:
            continue
        for one in own:
            print(f"| of {one.name} | " + " | ".join(
                "{:.2f}".format(statistics.median(
                    a / b for a, b in zip(times[batch],
                                          seconds[one.name][batch])))
                for batch in batches) + " |")


def positives(text):
    return [positive(number) for number in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--sandwich", action="append", default=[],
                        metavar="ARTIFACT")
    parser.add_argument("--sandwich-run", metavar="PROGRAM", default=os.path.join(
        HERE, "../build/release/bin/sandwich-run"))
    parser.add_argument("--peer", action="append", default=[],
                        help="of " + ", ".join(PEERS) + ", or NAME=COMMAND")
    parser.add_argument("--onnx", metavar="FILE",
                        help="(default: in a folder that is removed)")
    parser.add_argument("--batches", default="1,8,32", type=positives)
    parser.add_argument("--tokens", type=positive, default=75)
    parser.add_argument("--threads", type=positive, default=2,
                        help="of every program; artifacts are compiled for it")
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--least-cosine", type=float, default=0.999)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def start(peer, arguments):
    name, _, command = peer.partition("=")
    if command:
        return Peer(name, shlex.split(command))
    return Peer(name, [
        sys.executable, os.path.abspath(__file__), arguments.checkpoint,
        "--worker", name, "--onnx", arguments.onnx,
        "--threads", str(arguments.threads)])


def vocabulary_of(checkpoint):
    path = os.path.join(checkpoint, "config.json")
    try:
        with open(path) as file:
            return json.load(file)["vocab_size"]
    except (OSError, ValueError, KeyError) as error:
        fail(f"{path}: {error}")


def check_names(arguments):
    names = [os.path.normpath(artifact) for artifact in arguments.sandwich]
    for peer in arguments.peer:
        name, _, command = peer.partition("=")
        if not command and name not in PEERS:
            fail(f"--peer {peer}: is none of {', '.join(PEERS)}, nor a "
                 "NAME=COMMAND")
        names.append(name)
    for name, count in collections.Counter(names).items():
        if count > 1:
            fail(f"'{name}' is there {count} times")


def export_if_needed(arguments):
    reads = {"onnxruntime", "openvino-f32", "openvino-bf16"}
    if os.path.exists(arguments.onnx) or reads.isdisjoint(arguments.peer):
        return
    # In a process of its own, whose memory goes with it.
    exported = subprocess.run([
        sys.executable, os.path.abspath(__file__), arguments.checkpoint,
        "--worker", "export", "--onnx", arguments.onnx])
    if exported.returncode != 0:
        fail(f"{arguments.checkpoint}: could not be exported to "
             f"{arguments.onnx}")


def compare(arguments):
    vocabulary = vocabulary_of(arguments.checkpoint)
    programs = [Sandwich(artifact, arguments)
                for artifact in arguments.sandwich]
    export_if_needed(arguments)
    with contextlib.ExitStack() as running:
        for peer in arguments.peer:
            programs.append(start(peer, arguments))
            running.callback(programs[-1].close)
        generator = random.Random(1)
        texts = [[generator.randrange(5, vocabulary)
                  for _ in range(arguments.tokens)]
                 for _ in range(max(arguments.batches))]
        check_agreement(programs, texts[:4], arguments.least_cosine)
        seconds = {program.name: {batch: [] for batch in arguments.batches}
                   for program in programs}
        for number in range(arguments.rounds):
            shift = number % len(programs)
            for batch in arguments.batches:
                for program in programs[shift:] + programs[:shift]:
                    seconds[program.name][batch].append(program.seconds(
                        texts[:batch], max(1, ROUND_TEXTS // batch)))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    print_table(programs, arguments.batches, seconds)


def main():
    arguments = parse_arguments()
    if arguments.worker == "export":
        return export(arguments.checkpoint, arguments.onnx)
    if arguments.worker:
        return work(arguments.worker, arguments)
    if not arguments.sandwich or not arguments.peer:
        fail("needs at least one --sandwich and one --peer")
    check_names(arguments)
    if arguments.onnx:
        return compare(arguments)
    with tempfile.TemporaryDirectory() as folder:
        arguments.onnx = os.path.join(folder, "model.onnx")
        compare(arguments)


if __name__ == "__main__":
    main()
