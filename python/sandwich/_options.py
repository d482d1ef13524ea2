# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""How texts are generated."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy
import numpy.typing

from sandwich import _library
from sandwich._errors import InvalidArgumentError


class GenerationOptions(TypedDict, total=False):
    """The options of `Model.generate` and its like; none is necessary."""

    #: Of each text at most; 128.
    max_tokens: int
    #: Texts that continue the prompt, each by itself, the first with the seed, the
    #: next with that plus one, and so on; 1.
    continuations: int
    #: 0 always takes the most probable token, otherwise divides the logits; 0.
    temperature: float
    #: Chooses among so many of the most probable tokens; 0 among all.
    top_k: int
    #: Chooses among the most probable tokens that together reach this
    #: probability; 1 among all.
    top_p: float
    #: Leaves out tokens less than so many times as probable as the first; 0.
    min_p: float
    #: The same seed makes the same choices; 0.
    seed: int
    #: Divides the logits above zero of tokens in the prompt or the text, and
    #: multiplies the others; 1.
    repetition_penalty: float
    #: Subtracted from the logit of a token for each time it was generated, and once
    #: for tokens that were; from -2 to 2.
    frequency_penalty: float
    presence_penalty: float
    #: Added to the logits of tokens, from -100 to 100 or minus infinity.
    logit_bias: Mapping[int, float]
    #: Tokens that end a text are barred until so many are generated; 0.
    min_tokens: int
    #: Tells the logarithm of each token's probability, and those of so many of the
    #: most probable ones, from 0 to 20.
    log_probabilities: int | None
    #: Texts end with the first of these that is complete in them.
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    #: Whether what ended the text is part of it.
    include_stop_in_text: bool
    #: Goes on when the model ends its text.
    ignore_end_of_text: bool
    #: Takes special tokens written out in a prompt for those tokens.
    parse_special_tokens: bool
    #: Higher comes earlier, from 0 to 7.
    priority: int
    #: Seconds after which the request ends, ready or not.
    timeout: float | None
    #: Requests with other ones share no prefix in the cache.
    prefix_salt: int


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raises InvalidArgumentError for what ctypes would wrap."""
    if not low <= value <= high:
        raise InvalidArgumentError(f"{name} is {value}; it must be from {low} to {high}")


def check_positive(name: str, value: float) -> None:
    """Raises InvalidArgumentError for what is 0, the default of the library, or
    less."""
    if value <= 0:
        raise InvalidArgumentError(f"{name} is {value}; it must be above 0")


def token_array(token_ids: Sequence[int]) -> numpy.typing.NDArray[numpy.int32]:
    """`token_ids` as the library takes them."""
    ids = numpy.asarray(token_ids)
    if ids.ndim != 1 or (ids.size and not numpy.issubdtype(ids.dtype, numpy.integer)):
        raise InvalidArgumentError("token ids must be a sequence of integers")
    limits = numpy.iinfo(numpy.int32)
    if ids.size and (ids.min() < limits.min or ids.max() > limits.max):
        raise InvalidArgumentError("a token id is outside the vocabulary")
    return numpy.ascontiguousarray(ids, dtype=numpy.int32)


def token_pointer(
    ids: numpy.typing.NDArray[numpy.int32],
) -> "ctypes._Pointer[ctypes.c_int32]":
    return ids.ctypes.data_as(_library.c_int32_p)


def _make_sampling(options: dict[str, Any]) -> Any:
    top_p = options.pop("top_p", 1.0)
    check_positive("top_p", top_p)
    repetition_penalty = options.pop("repetition_penalty", 1.0)
    check_positive("repetition_penalty", repetition_penalty)
    top_k = options.pop("top_k", 0)
    check_range("top_k", top_k, 0, 2**32 - 1)
    seed = options.pop("seed", 0)
    check_range("seed", seed, 0, 2**64 - 1)
    min_tokens = options.pop("min_tokens", 0)
    check_range("min_tokens", min_tokens, 0, 2**64 - 1)
    log_probabilities = options.pop("log_probabilities", None)
    if log_probabilities is not None:
        check_range("log_probabilities", log_probabilities, 0, 2**32 - 1)
    biases = options.pop("logit_bias", {})
    ids = token_array(list(biases))
    return _library.make_structure(
        _library.SamplingOptions,
        min_tokens=min_tokens,
        logit_bias=(_library.LogitBias * len(biases))(
            *zip(ids.tolist(), biases.values(), strict=True)
        ),
        logit_bias_count=len(biases),
        repetition_penalty=repetition_penalty,
        frequency_penalty=options.pop("frequency_penalty", 0.0),
        presence_penalty=options.pop("presence_penalty", 0.0),
        temperature=options.pop("temperature", 0.0),
        min_p=options.pop("min_p", 0.0),
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        log_probabilities=log_probabilities is not None,
        top_log_probabilities=log_probabilities or 0,
    )


def _make_stop(options: dict[str, Any]) -> Any:
    stop = options.pop("stop", ())
    strings = [string.encode() for string in ([stop] if isinstance(stop, str) else stop)]
    if any(b"\0" in string for string in strings):
        raise InvalidArgumentError("a stop string holds a zero character")
    ids = token_array(options.pop("stop_token_ids", ()))
    return _library.make_structure(
        _library.StopOptions,
        strings=(ctypes.c_char_p * len(strings))(*strings),
        string_count=len(strings),
        tokens=(ctypes.c_int32 * len(ids))(*ids.tolist()),
        token_count=len(ids),
        include_in_text=options.pop("include_stop_in_text", False),
        ignore_end_of_text=options.pop("ignore_end_of_text", False),
    )


def make_generation_options(options: GenerationOptions) -> Any:
    """`options` as the library takes them. Raises InvalidArgumentError for what C
    cannot say, and TypeError for an option that there is not."""
    left: dict[str, Any] = dict(options)
    left.pop("parse_special_tokens", None)
    max_tokens = left.pop("max_tokens", 128)
    check_range("max_tokens", max_tokens, 1, 2**64 - 1)
    continuations = left.pop("continuations", 1)
    check_range("continuations", continuations, 1, 2**32 - 1)
    priority = left.pop("priority", 0)
    check_range("priority", priority, 0, 2**32 - 1)
    prefix_salt = left.pop("prefix_salt", 0)
    check_range("prefix_salt", prefix_salt, 0, 2**64 - 1)
    timeout = left.pop("timeout", None)
    if timeout is not None:
        check_positive("timeout", timeout)
    made = _library.make_structure(
        _library.GenerationOptions,
        max_tokens=max_tokens,
        continuations=continuations,
        priority=priority,
        timeout_seconds=timeout or 0.0,
        prefix_salt=prefix_salt,
        sampling=ctypes.pointer(_make_sampling(left)),
        stop=ctypes.pointer(_make_stop(left)),
    )
    if left:
        raise TypeError(f"there is no option {next(iter(left))!r}")
    return made
