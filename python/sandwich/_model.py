# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Loaded models."""

import ctypes
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Literal

import numpy
import numpy.typing

from sandwich import _library
from sandwich._library import SandwichError

__all__ = ["Model", "SandwichError"]

_WEIGHTS = {"default": 0, "mapped": 1, "huge-pages": 2}


def _check_range(name: str, value: int, low: int, high: int) -> None:
    """ctypes would wrap what does not fit."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; it must be from {low} to {high}")


def _token_array(token_ids: Sequence[int]) -> numpy.typing.NDArray[numpy.int32]:
    ids = numpy.asarray(token_ids)
    if ids.ndim != 1 or (ids.size and not numpy.issubdtype(ids.dtype, numpy.integer)):
        raise ValueError("token ids must be a sequence of integers")
    limits = numpy.iinfo(numpy.int32)
    if ids.size and (ids.min() < limits.min or ids.max() > limits.max):
        raise SandwichError("a token id is outside the vocabulary")
    return numpy.ascontiguousarray(ids, dtype=numpy.int32)


def _pointer(ids: numpy.typing.NDArray[numpy.int32]) -> "ctypes._Pointer[ctypes.c_int32]":
    return ids.ctypes.data_as(_library.c_int32_p)


class Model:
    """A model that sandwich-compile made.

    A model may be used from several threads; their steps run one after
    another. Errors are raised as `SandwichError`, whose text says what to
    change.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        max_sequences: int = 4,
        kv_memory: int | None = None,
        weights: Literal["default", "mapped", "huge-pages"] = "default",
        rank_program: str | PathLike[str] | None = None,
        verify_weights: bool = False,
    ) -> None:
        """Loads the artifact in the folder `path`.

        `max_sequences` is how many generations may be under way at the same
        time, each with the model's whole context as far as memory is available;
        it takes no memory before it is needed. `kv_memory` is how many bytes
        they may take together instead; more than is available is an error.
        `weights` says where the weights lie: "mapped" shares them
        with other processes, "huge-pages" makes a copy that is faster to read.
        `rank_program` is the sandwich-run that runs the other ranks of an artifact
        for several, by default the first one of: in the library's folder, in the
        `bin` beside that folder, in the `bin` beside `lib` where that is the folder
        around it, in the folder of Python. It must be of the same build as the
        library.
        `verify_weights` reads all weights and compares them with their checksum
        first.
        """
        if weights not in _WEIGHTS:
            raise ValueError(f"weights is {weights!r}; it must be one of {[*_WEIGHTS]}")
        _check_range("max_sequences", max_sequences, 1, 2**64 - 1)
        if kv_memory is not None:
            _check_range("kv_memory", kv_memory, 1, 2**64 - 1)
        options = _library.LoadOptions(
            struct_size=ctypes.sizeof(_library.LoadOptions),
            max_sequences=max_sequences,
            weights=_WEIGHTS[weights],
            kv_memory=kv_memory or 0,
            rank_program=None if rank_program is None else _library.check_path(rank_program),
            verify_weights=verify_weights,
        )
        self._handle = _library.Handle(
            "model", "model_load", _library.check_path(path), ctypes.byref(options)
        )
        self._library = _library.library()

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self._library.sandwich_model_name(self._handle.value).decode()

    @property
    def vocab_size(self) -> int:
        """Number of logits of a token."""
        return self._library.sandwich_model_vocab_size(self._handle.value)

    @property
    def context_length(self) -> int:
        """Tokens that a prompt and its continuation may have together."""
        return self._library.sandwich_model_context_length(self._handle.value)

    def tokenize(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        parse_special_tokens: bool = False,
    ) -> list[int]:
        """The token ids of `text`.

        `add_special_tokens` adds those that begin a sequence. Special tokens
        written out in `text` are text like any other, so that what a user types
        cannot end a turn; `parse_special_tokens` takes them for those tokens, as
        a template needs it.
        """
        flags = _library.TOKENIZE_ADD_SPECIAL * bool(add_special_tokens)
        flags |= _library.TOKENIZE_PARSE_SPECIAL * bool(parse_special_tokens)
        encoded = text.encode()
        tokens = _library.c_int32_p()
        count = ctypes.c_size_t()
        _library.call(
            "tokenize",
            self._handle.value,
            encoded,
            len(encoded),
            flags,
            ctypes.byref(tokens),
            ctypes.byref(count),
        )
        try:
            return tokens[: count.value]
        finally:
            self._library.sandwich_free(tokens)

    def detokenize(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool = True
    ) -> str:
        """The text of `token_ids`."""
        ids = _token_array(token_ids)
        text = ctypes.c_void_p()
        size = ctypes.c_size_t()
        _library.call(
            "detokenize",
            self._handle.value,
            _pointer(ids),
            len(ids),
            skip_special_tokens,
            ctypes.byref(text),
            ctypes.byref(size),
        )
        try:
            return ctypes.string_at(text.value or 0, size.value).decode()
        finally:
            self._library.sandwich_free(text)

    def logits(self, token_ids: Sequence[int]) -> numpy.typing.NDArray[numpy.float32]:
        """The logits after each of `token_ids`, [tokens, vocab_size]."""
        ids = _token_array(token_ids)
        rows = numpy.empty((len(ids), self.vocab_size), dtype=numpy.float32)
        sequence = self._sequence()
        _library.call(
            "sequence_feed",
            sequence.value,
            _pointer(ids),
            len(ids),
            rows.ctypes.data_as(_library.c_float_p),
        )
        return rows

    def generate_tokens(
        self,
        token_ids: Sequence[int],
        *,
        max_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        ignore_end_of_text: bool = False,
    ) -> Iterator[int]:
        """Continues `token_ids` and yields each new token.

        Temperature 0 always takes the most probable token. Higher ones draw
        among the `top_k` most probable (0: all) and among those that together
        reach the probability `top_p`; the same `seed` draws the same.
        """
        if max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        if not 0 < top_p <= 1:
            raise ValueError("top_p must be above 0 and at most 1")
        _check_range("top_k", top_k, 0, 2**32 - 1)
        _check_range("seed", seed, 0, 2**64 - 1)
        ids = _token_array(token_ids)
        options = _library.SamplingOptions(
            struct_size=ctypes.sizeof(_library.SamplingOptions),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )
        sampler = _library.Handle("sampler", "sampler_create", ctypes.byref(options))
        sequence = self._sequence()
        return self._continue(sequence, sampler, ids, max_tokens, ignore_end_of_text)

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        ignore_end_of_text: bool = False,
        parse_special_tokens: bool = False,
    ) -> Iterator[str]:
        """Continues `prompt` and yields pieces of text as they are made.

        Pieces are whole characters; together they are what the tokens that
        `generate_tokens` yields for the same arguments add to the prompt's text.
        `parse_special_tokens` is as in `tokenize`.
        """
        ids = _token_array(
            self.tokenize(prompt, parse_special_tokens=parse_special_tokens)
        )
        tokens = self.generate_tokens(
            ids,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            ignore_end_of_text=ignore_end_of_text,
        )
        decoder = _library.Handle("decoder", "decoder_create", self._handle.value, True)
        _library.call("decoder_skip", decoder.value, _pointer(ids), len(ids))
        return self._decode(decoder, tokens)

    def _sequence(self) -> _library.Handle:
        return _library.Handle("sequence", "sequence_create", self._handle.value)

    def _continue(
        self,
        sequence: _library.Handle,
        sampler: _library.Handle,
        ids: numpy.typing.NDArray[numpy.int32],
        max_tokens: int,
        ignore_end_of_text: bool,
    ) -> Iterator[int]:
        token = ctypes.c_int32()
        for left in range(max_tokens, 0, -1):
            _library.call(
                "sequence_feed", sequence.value, _pointer(ids), len(ids), None
            )
            _library.call(
                "sampler_sample", sampler.value, sequence.value, ctypes.byref(token)
            )
            if not ignore_end_of_text and self._library.sandwich_model_is_end_token(
                self._handle.value, token
            ):
                return
            yield token.value
            length = self._library.sandwich_sequence_length(sequence.value)
            if left > 1 and length == self.context_length:
                return
            ids = numpy.array([token.value], dtype=numpy.int32)

    def _decode(self, decoder: _library.Handle, tokens: Iterator[int]) -> Iterator[str]:
        text = ctypes.c_void_p()
        size = ctypes.c_size_t()

        def piece() -> str:
            return ctypes.string_at(text.value or 0, size.value).decode()

        for token in tokens:
            _library.call(
                "decoder_add",
                decoder.value,
                token,
                ctypes.byref(text),
                ctypes.byref(size),
            )
            if size.value:
                yield piece()
        _library.call(
            "decoder_finish", decoder.value, ctypes.byref(text), ctypes.byref(size)
        )
        if size.value:
            yield piece()
