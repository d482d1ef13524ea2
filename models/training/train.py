#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the bundled model on the Jargon File and writes it as a Hugging Face folder.

Needs Debian's packages python3-torch, python3-numpy and dict-jargon. Weights, gradients
and optimizer are float32; matrices are multiplied in bfloat16, which is quick on CPUs
that have AVX512_BF16. On others use --multiply float32 and install libopenblas0-pthread,
because Debian's torch multiplies float32 through whatever libblas.so.3 the system has.

The run keeps a checkpoint in its work folder and continues from it when started again
with the same settings; --steps may still be changed before the learning rate falls.
With the same settings, machine and thread count the result is the same.
"""

import argparse
import ctypes
import fcntl
import json
import math
import os
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    sys.exit(f"error: {error}; install Debian's python3-torch and run with /usr/bin/python3")

import corpus
from llama import LlamaConfig, LlamaForCausalLM, generate
from model_folder import read_model, write_and_rename, write_model
from tokenizer import SPECIAL_TOKENS, Tokenizer, train_merges

REPOSITORY = Path(__file__).resolve().parents[2]
HELD_OUT_SHARE = 0.05
# The last quarter of the steps sees windows as long as the model's context; shorter
# ones before that save time.
SHORT_WINDOW = 256
SHORT_WINDOW_SHARE = 0.75
# The learning rate is constant until this share of the steps and then falls to zero.
CONSTANT_SHARE = 0.6
WARM_UP_STEPS = 100
SAMPLE_PROMPTS = ("hacker:", "compiler:", "Real Programmers")
SAMPLE_TOKENS = 80
SAMPLE_TEMPERATURE = 0.8


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--dictionary", type=Path, default=corpus.DEFAULT_DICTIONARY, help="text to learn (default: %(default)s)")
    add("--output", type=Path, default=REPOSITORY / "models/jargon-llama", help="model folder (default: %(default)s)")
    add(
        "--work",
        type=Path,
        default=REPOSITORY / "build/jargon-llama-training",
        help="folder of the checkpoint (default: %(default)s)",
    )
    add("--export-only", action="store_true", help="train no further, write the model as the checkpoint has it")
    add("--steps", type=int, default=2200, help="optimizer steps (default: %(default)s)")
    add("--batch-tokens", type=int, default=2048, help="tokens in a step (default: %(default)s)")
    add("--vocabulary", type=int, default=3072, help="vocabulary size (default: %(default)s)")
    add("--learning-rate", type=float, default=1.5e-3, help="peak learning rate (default: %(default)s)")
    add("--dropout", type=float, default=0.15, help="dropout in training (default: %(default)s)")
    add("--weight-decay", type=float, default=0.1, help="AdamW weight decay (default: %(default)s)")
    add(
        "--multiply",
        choices=("bfloat16", "float32"),
        default="bfloat16",
        help="type of matrix products in training (default: %(default)s)",
    )
    add("--seed", type=int, default=1, help="seed of the split, weights, order and dropout (default: %(default)s)")
    add("--threads", type=int, default=1, help="threads; two are slower on a busy machine (default: %(default)s)")
    add("--checkpoint-every", type=int, default=100, help="steps between checkpoints (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.threads < 1 or arguments.checkpoint_every < 1:
        parser.error("--steps, --threads and --checkpoint-every must be at least 1")
    if arguments.vocabulary < 256 + len(SPECIAL_TOKENS):
        parser.error(f"--vocabulary must be at least {256 + len(SPECIAL_TOKENS)}: all bytes and the special tokens")
    if arguments.batch_tokens < 1 or arguments.batch_tokens % LlamaConfig.max_position_embeddings:
        parser.error(f"--batch-tokens must be a multiple of the context, {LlamaConfig.max_position_embeddings}")
    if not 0 <= arguments.dropout < 1:
        parser.error("--dropout must be at least 0 and less than 1")
    return arguments


def set_threads(count: int) -> None:
    """Sets torch's threads and, where libblas.so.3 is OpenBLAS, its own as well."""
    torch.set_num_threads(count)
    try:
        ctypes.CDLL("libblas.so.3").openblas_set_num_threads(count)
    except (OSError, AttributeError):
        print("note: libblas.so.3 is not OpenBLAS, so float32 products are about 20 times slower", flush=True)


def settings_of(arguments: argparse.Namespace) -> dict[str, object]:
    """The arguments that a checkpoint must agree with."""
    names = ("batch_tokens", "vocabulary", "learning_rate", "dropout", "weight_decay", "multiply", "seed")
    return {name: getattr(arguments, name) for name in names}


class TokenStream:
    """The entries in a new random order for each epoch, end to end, as one long text."""

    def __init__(self, entries: list[list[int]], seed: int):
        self.entries = entries
        self.seed = seed
        self.epoch_tokens = sum(map(len, entries))
        self.epochs: dict[int, torch.Tensor] = {}

    def epoch(self, number: int) -> torch.Tensor:
        if number not in self.epochs:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
            order = torch.randperm(len(self.entries), generator=generator).tolist()
            # A batch reaches into the next epoch at most, so two are enough to keep.
            self.epochs = {key: value for key, value in self.epochs.items() if key == number - 1}
            self.epochs[number] = torch.tensor([id for index in order for id in self.entries[index]])
        return self.epochs[number]

    def read(self, start: int, count: int) -> torch.Tensor:
        """Returns `count` tokens of the endless text, from token `start` on."""
        parts = []
        while count > 0:
            number, offset = divmod(start, self.epoch_tokens)
            part = self.epoch(number)[offset : offset + count]
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return torch.cat(parts)


def learning_rate(step: int, arguments: argparse.Namespace) -> float:
    """Rises linearly over the warm-up, stays, and falls linearly to zero at the end."""
    falling_steps = (1 - CONSTANT_SHARE) * arguments.steps
    return arguments.learning_rate * min(1, (step + 1) / WARM_UP_STEPS, (arguments.steps - step) / falling_steps)


@torch.no_grad()
def mean_loss(model: LlamaForCausalLM, entries: list[list[int]]) -> tuple[float, int]:
    """Returns nats per token over the entries laid end to end, and the token count.

    The text is cut into windows of the model's context; the first token of a window is
    given, not predicted.
    """
    was_training = model.training
    model.eval()
    text = torch.tensor([id for entry in entries for id in entry])
    total, count = 0.0, 0
    for window in text.split(model.config.max_position_embeddings):
        if len(window) > 1:
            logits = model(window[None, :-1])[0].float()
            total += functional.cross_entropy(logits, window[1:], reduction="sum").item()
            count += len(window) - 1
    model.train(was_training)
    return total / count, count


def matrix_products(arguments: argparse.Namespace) -> torch.autocast:
    """The context in which matrix products are of the type asked for."""
    return torch.autocast("cpu", torch.bfloat16, enabled=arguments.multiply == "bfloat16")


def build_optimizer(model: LlamaForCausalLM, arguments: argparse.Namespace) -> torch.optim.AdamW:
    """AdamW; norms, whose weights scale and do not project, are not decayed."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    groups = [
        {"params": matrices, "weight_decay": arguments.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=arguments.learning_rate, betas=(0.9, 0.98), foreach=True)


def save_checkpoint(path: Path, state: dict[str, object]) -> None:
    beside = path.with_name(path.name + ".partial")
    torch.save(state, beside)
    os.replace(beside, path)


def load_checkpoint(path: Path, settings: dict[str, object], steps: int) -> dict | None:
    if not path.exists():
        return None
    try:
        state = torch.load(path)
    except Exception as error:
        sys.exit(f"error: {path}: not a readable checkpoint ({error}); remove it to start again")
    if state["steps"] != steps and state["step"] > CONSTANT_SHARE * min(state["steps"], steps):
        sys.exit(f"error: {path}: --steps was {state['steps']} and cannot change now that the learning rate falls")
    if state["settings"] != settings:
        differing = [name for name in settings if state["settings"].get(name) != settings[name]]
        sys.exit(f"error: {path}: made with another --{differing[0].replace('_', '-')}; remove it to start again")
    return state


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def train(
    model: LlamaForCausalLM,
    stream: TokenStream,
    held_out: list[list[int]],
    arguments: argparse.Namespace,
    state: dict,
    checkpoint: Path,
) -> None:
    """Runs the steps that are left and keeps `state`, and the checkpoint, up to date."""
    optimizer = build_optimizer(model, arguments)
    if "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
    model.train()
    context = model.config.max_position_embeddings
    begun, first_step, seconds_before = time.monotonic(), state["step"], state["seconds"]
    running_loss = None
    for step in range(first_step, arguments.steps):
        window = SHORT_WINDOW if step < SHORT_WINDOW_SHARE * arguments.steps else context
        tokens = stream.read(step * arguments.batch_tokens, arguments.batch_tokens + 1)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments)
        with matrix_products(arguments):
            logits = model(tokens[:-1].view(-1, window))
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        if not math.isfinite(value):
            sys.exit(f"error: the loss is {value} at step {step}; try a smaller --learning-rate")
        running_loss = value if running_loss is None else 0.95 * running_loss + 0.05 * value

        done = step + 1
        elapsed = time.monotonic() - begun
        if done % 10 == 0 or done == arguments.steps:
            left = elapsed / (done - first_step) * (arguments.steps - done)
            epochs = done * arguments.batch_tokens / stream.epoch_tokens
            print(
                f"step {done}/{arguments.steps}  epoch {epochs:.1f}  loss {running_loss:.3f}  "
                f"{(done - first_step) * arguments.batch_tokens / elapsed:.0f} tokens/s  left {duration(left)}",
                flush=True,
            )
        if done % arguments.checkpoint_every == 0 or done == arguments.steps:
            state.update(
                step=done,
                seconds=seconds_before + elapsed,
                model=model.state_dict(),
                optimizer=optimizer.state_dict(),
                random=torch.get_rng_state(),
            )
            save_checkpoint(checkpoint, state)
        if done % (2 * arguments.checkpoint_every) == 0:
            with matrix_products(arguments):
                held_out_loss, _ = mean_loss(model, held_out)
            print(f"step {done}/{arguments.steps}  held-out loss {held_out_loss:.3f}", flush=True)


def samples(model: LlamaForCausalLM, tokenizer: Tokenizer, seed: int) -> list[tuple[str, str, str]]:
    """Returns (how it was chosen, prompt, continuation) for each prompt and way."""
    generator = torch.Generator().manual_seed(seed)
    result = []
    for name, temperature in (("greedy", 0.0), (f"temperature {SAMPLE_TEMPERATURE}", SAMPLE_TEMPERATURE)):
        for prompt in SAMPLE_PROMPTS:
            ids = generate(
                model, tokenizer.encode(prompt), SAMPLE_TOKENS, tokenizer.end_of_text, temperature, generator
            )
            result.append((name, prompt, tokenizer.decode(ids)))
    return result


def model_card(folder: Path, facts: dict[str, object], texts: list[tuple[str, str, str]]) -> str:
    """Returns the model card; every figure in it was measured on the written folder."""
    shape = json.loads((folder / "config.json").read_text())
    quoted = "\n\n".join(
        f"{name}, **{prompt}**\n\n" + "\n".join(f"> {line}" for line in (prompt + text).split("\n"))
        for name, prompt, text in texts
    )
    return f"""---
license: other
license_name: apache-2.0-with-llvm-exceptions
license_link: ../../LICENSE
language: en
pipeline_tag: text-generation
---

# jargon-llama

A very small language model that Sandwich compiles in its demo and tests. It has learnt
the look and the words of a dictionary of hackers' slang; what it says is not true.

| | |
|---|---|
| architecture | LlamaForCausalLM: {shape["num_hidden_layers"]} layers, hidden {shape["hidden_size"]}, \
{shape["num_attention_heads"]} heads of {shape["head_dim"]} with {shape["num_key_value_heads"]} key-value heads, \
intermediate {shape["intermediate_size"]}, tied embeddings |
| parameters | {facts["parameters"]:,} |
| weights | bfloat16, {(folder / "model.safetensors").stat().st_size:,} bytes |
| context | {shape["max_position_embeddings"]} tokens |
| tokenizer | byte-level BPE, {shape["vocab_size"]} tokens, trained on the same text |
| training | {facts["steps"]} steps of {facts["batch_tokens"]} tokens ({facts["epochs"]:.1f} epochs), \
{facts["minutes"]:.0f} minutes by the clock, CPU threads: {facts["threads"]} |
| training loss | {facts["training_loss"]:.3f} nats per token, on a sample of as many entries as are held out |
| held-out loss | {facts["held_out_loss"]:.3f} nats per token, {facts["bits_per_byte"]:.3f} bits per byte \
({facts["held_out_entries"]} entries, {facts["held_out_tokens"]:,} tokens) |

Losses are those of the bfloat16 weights in this folder.

## Data and licence

The Jargon File, version 4.4.7 (29 December 2003), as packaged by Debian (`dict-jargon`).
The Jargon File is in the public domain. {facts["training_entries"]} entries were used for training and
{facts["held_out_entries"]} held out; pronunciations, tables, code set apart and drawings were left out.

The model is part of Sandwich and under its licence, Apache
License v2.0 with LLVM Exceptions.

The text is the slang of its time and place, some of it crude, and the model repeats it.

## Making it again

    {facts["command"]}

Start a prompt as an entry starts (`hacker:`) for a definition. Prompts get
`<|begin_of_text|>` in front; an entry ends with `<|end_of_text|>`.

## Samples

{quoted}
"""


def main() -> None:
    arguments = parse_arguments()
    set_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    checkpoint = arguments.work / "checkpoint.pt"
    arguments.work.mkdir(parents=True, exist_ok=True)
    settings = settings_of(arguments)
    # Held until the process ends; two trainings would overwrite each other's checkpoints.
    lock = open(arguments.work / "lock", "w")
    if not arguments.export_only:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"error: {arguments.work}: another training uses this folder")

    entries = corpus.parse_entries(corpus.read_dictionary(arguments.dictionary))
    training_texts, held_out_texts = corpus.split_entries(entries, HELD_OUT_SHARE, arguments.seed)
    if not training_texts or not held_out_texts:
        sys.exit(f"error: {arguments.dictionary}: only {len(entries)} entries found; not the Jargon File")
    state = load_checkpoint(checkpoint, settings, arguments.steps)
    if state is None:
        if arguments.export_only:
            sys.exit(f"error: {checkpoint}: no such file; nothing to export yet")
        print(f"training the tokenizer on {len(training_texts)} entries", flush=True)
        merges = train_merges(training_texts, arguments.vocabulary - 256 - len(SPECIAL_TOKENS))
        state = {"settings": settings, "merges": merges, "step": 0, "seconds": 0.0}
    state["steps"] = arguments.steps
    tokenizer = Tokenizer(state["merges"])
    training, held_out = (
        [[*tokenizer.encode(text), tokenizer.end_of_text] for text in texts]
        for texts in (training_texts, held_out_texts)
    )
    stream = TokenStream(training, arguments.seed)
    config = LlamaConfig(vocab_size=tokenizer.vocabulary_size)
    model = LlamaForCausalLM(config, arguments.dropout)
    if "model" in state:
        model.load_state_dict(state["model"])
    print(f"{model.parameter_count():,} parameters, {stream.epoch_tokens:,} training tokens, {asdict(config)}")

    if not arguments.export_only:
        if state["step"]:
            print(f"continuing from step {state['step']} of {checkpoint}", flush=True)
        train(model, stream, held_out, arguments, state, checkpoint)

    write_model(arguments.output, model, tokenizer)
    model, tokenizer = read_model(arguments.output)
    held_out_loss, held_out_tokens = mean_loss(model, held_out)
    held_out_bytes = sum(len(text.encode()) for text in held_out_texts)
    nats = held_out_loss * sum(map(len, held_out))
    facts = {
        "parameters": model.parameter_count(),
        "steps": state["step"],
        "batch_tokens": arguments.batch_tokens,
        "epochs": state["step"] * arguments.batch_tokens / stream.epoch_tokens,
        "minutes": state["seconds"] / 60,
        "threads": arguments.threads,
        "training_loss": mean_loss(model, training[:: max(1, len(training) // len(held_out))])[0],
        "training_entries": len(training),
        "held_out_loss": held_out_loss,
        "held_out_tokens": held_out_tokens,
        "held_out_entries": len(held_out),
        "bits_per_byte": nats / math.log(2) / held_out_bytes,
        "command": "models/training/train.py"
        + "".join(
            " " + shlex.join((f"--{name.replace('_', '-')}", str(value)))
            for name, value in {"steps": arguments.steps, **settings}.items()
        ),
    }
    texts = samples(model, tokenizer, arguments.seed)
    write_and_rename(arguments.output / "README.md", model_card(arguments.output, facts, texts).encode())
    print(json.dumps(facts, indent=2))
    for name, prompt, text in texts:
        print(f"[{name}] {prompt}{text}\n")
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    try:
        main()
    except (corpus.CorpusError, ValueError) as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; start again with the same settings to continue from the last checkpoint")
