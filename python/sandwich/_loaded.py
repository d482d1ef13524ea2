# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What models and evaluators have in common."""

import ctypes
from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

from sandwich import _library
from sandwich._errors import InvalidArgumentError
from sandwich._handle import Handle
from sandwich._options import check_range, token_array, token_pointer

Weights = Literal["default", "mapped", "huge-pages"]

# In the order of sandwich_weights.
_WEIGHTS: tuple[Weights, ...] = ("default", "mapped", "huge-pages")


def make_load_options(
    weights: Weights,
    kv_memory: int | None,
    rank_program: str | PathLike[str] | None,
    verify_weights: bool,
) -> Any:
    """The arguments as the library takes them."""
    if weights not in _WEIGHTS:
        raise InvalidArgumentError(
            f"weights is {weights!r}; it must be one of {[*_WEIGHTS]}"
        )
    if kv_memory is not None:
        check_range("kv_memory", kv_memory, 1, 2**64 - 1)
    return _library.make_structure(
        _library.LoadOptions,
        weights=_WEIGHTS.index(weights),
        verify_weights=verify_weights,
        kv_memory=kv_memory or 0,
        rank_program=None if rank_program is None else _library.check_path(rank_program),
    )


class LoadedArtifact:
    """An artifact that was loaded, for something or other."""

    def __init__(self, kind: str, path: str | PathLike[str], *options: Any) -> None:
        library = _library.library()
        self._describe = getattr(library, f"sandwich_{kind}_describe")
        self._handle = Handle(
            kind, f"{kind}_load", _library.check_path(path), *map(ctypes.byref, options)
        )
        with self._handle.use() as value:
            description = self._describe(value)
            self._name = library.sandwich_name(description).decode()
            self._vocab_size = library.sandwich_vocab_size(description)
            self._context_length = library.sandwich_context_length(description)

    def close(self) -> None:
        """Gives memory and threads back; nothing can be computed any more."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self._name

    @property
    def vocab_size(self) -> int:
        """Number of logits of a token."""
        return self._vocab_size

    @property
    def context_length(self) -> int:
        """Tokens that a prompt and its continuation may have together."""
        return self._context_length

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
        with self._handle.use() as value:
            _library.call(
                "tokenize",
                self._describe(value),
                encoded,
                len(encoded),
                flags,
                ctypes.byref(tokens),
                ctypes.byref(count),
            )
        try:
            return tokens[: count.value]
        finally:
            _library.library().sandwich_free(tokens)

    def detokenize(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool = True
    ) -> str:
        """The text of `token_ids`."""
        ids = token_array(token_ids)
        text = ctypes.c_void_p()
        size = ctypes.c_size_t()
        with self._handle.use() as value:
            _library.call(
                "detokenize",
                self._describe(value),
                token_pointer(ids),
                len(ids),
                skip_special_tokens,
                ctypes.byref(text),
                ctypes.byref(size),
            )
        try:
            return ctypes.string_at(text.value or 0, size.value).decode()
        finally:
            _library.library().sandwich_free(text)
