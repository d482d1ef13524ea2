# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What models return."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["end_of_text", "stopped", "max_tokens", "context_full"]


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token."""

    token_id: int
    #: What it adds to the text: whole characters, without what may become a stop
    #: string; with all that was held back where the text ends.
    text: str
    #: Which of the continuations got it, from 0.
    text_index: int = 0
    #: Why the text ends with this token, if it does.
    finish_reason: FinishReason | None = None
    #: With `log_probabilities`: of this token, and of the most probable ones.
    log_probability: float | None = None
    top_log_probabilities: dict[int, float] | None = None


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """One continuation of a prompt."""

    text: str
    #: The token that ended the text is one of them.
    token_ids: list[int]
    finish_reason: FinishReason | None
    #: With `log_probabilities`, of each token.
    log_probabilities: list[float] | None = None
    top_log_probabilities: list[dict[int, float]] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """How a request was served."""

    #: From its coming to its first step, from there to the first token, and from
    #: there to the end.
    queue_seconds: float
    prefill_seconds: float
    decode_seconds: float
    prompt_tokens: int
    #: Of the prompt, found in the prefix cache.
    cached_tokens: int
    #: Of all continuations.
    generated_tokens: int
    preemptions: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What came of a prompt."""

    #: One for each of the `continuations` asked for.
    texts: list[GeneratedText]
    usage: Usage

    @property
    def text(self) -> str:
        """Of the first continuation."""
        return self.texts[0].text

    @property
    def token_ids(self) -> list[int]:
        """Of the first continuation."""
        return self.texts[0].token_ids

    @property
    def finish_reason(self) -> FinishReason | None:
        """Of the first continuation."""
        return self.texts[0].finish_reason


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of a model, since it was loaded."""

    requests: int
    refused_requests: int
    generated_tokens: int
    #: Now.
    waiting_requests: int
    running_requests: int
    running_texts: int
    #: Of the KV cache, and those that running requests have.
    blocks: int
    used_blocks: int
    steps: int
    #: How often a request lost its blocks to another and was computed again.
    preemptions: int
    #: Of prompts, and those found in the prefix cache.
    prompt_tokens: int
    cached_prompt_tokens: int


def make_completion(tokens: list[Token], usage: Usage, continuations: int) -> Completion:
    """The texts that `tokens`, of all continuations in any order, are."""
    texts: list[list[Token]] = [[] for _ in range(continuations)]
    for token in tokens:
        texts[token.text_index].append(token)
    return Completion([_make_text(of_text) for of_text in texts], usage)


def _make_text(tokens: list[Token]) -> GeneratedText:
    log_probabilities = [
        token.log_probability for token in tokens if token.log_probability is not None
    ]
    tops = [
        token.top_log_probabilities
        for token in tokens
        if token.top_log_probabilities is not None
    ]
    return GeneratedText(
        text="".join(token.text for token in tokens),
        token_ids=[token.token_id for token in tokens],
        finish_reason=tokens[-1].finish_reason if tokens else None,
        log_probabilities=log_probabilities or None,
        top_log_probabilities=tops or None,
    )
