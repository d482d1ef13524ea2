# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Logits of texts."""

import threading
from collections.abc import Sequence
from os import PathLike

import numpy
import numpy.typing

from sandwich import _library
from sandwich._loaded import LoadedArtifact, Weights, make_load_options
from sandwich._options import token_array, token_pointer


class Evaluator(LoadedArtifact):
    """A model that computes the logits of texts, instead of continuing prompts."""

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        kv_memory: int | None = None,
        weights: Weights = "default",
        rank_program: str | PathLike[str] | None = None,
        verify_weights: bool = False,
    ) -> None:
        """Loads the artifact in the folder `path`; the options are those of
        `Model`."""
        super().__init__(
            "evaluator",
            path,
            make_load_options(weights, kv_memory, rank_program, verify_weights),
        )
        # The library computes one text at a time.
        self._computing = threading.Lock()

    def logits(self, token_ids: Sequence[int]) -> numpy.typing.NDArray[numpy.float32]:
        """The logits after each of `token_ids`, [tokens, vocab_size]."""
        ids = token_array(token_ids)
        rows = numpy.empty((len(ids), self.vocab_size), dtype=numpy.float32)
        with self._handle.use() as value, self._computing:
            _library.call(
                "evaluator_logits",
                value,
                token_pointer(ids),
                len(ids),
                rows.ctypes.data_as(_library.c_float_p),
            )
        return rows
