# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Models that serve requests."""

import ctypes
import numbers
from collections.abc import Sequence
from os import PathLike
from typing import TypeAlias, Unpack, cast, overload

from sandwich import _library
from sandwich._errors import OverloadedError
from sandwich._loaded import LoadedArtifact, Weights, make_load_options
from sandwich._options import (
    GenerationOptions,
    check_positive,
    check_range,
    make_generation_options,
)
from sandwich._request import Request
from sandwich._results import Completion, Statistics
from sandwich._streams import AsyncTokenStream, TokenStream

#: Text, or token ids.
Prompt: TypeAlias = str | Sequence[int]


def _is_batch(prompt: Prompt | Sequence[Prompt]) -> bool:
    """Whether it is several prompts: a sequence whose elements are no numbers."""
    return not isinstance(prompt, str) and not any(
        isinstance(element, numbers.Number) for element in prompt[:1]
    )


class Model(LoadedArtifact):
    """A model that sandwich-compile made, and the thread that serves its requests.

    All may be called from any thread; requests are computed together. `close`, which
    the end of a `with` calls, ends them with CancelledError. Errors are raised as
    `sandwich.Error` and what inherits from it, whose text says what to change.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        max_sequences: int | None = None,
        max_waiting_requests: int | None = None,
        kv_memory: int | None = None,
        prefix_cache: bool = True,
        first_token_objective: float | None = None,
        token_objective: float | None = None,
        restart_ranks: bool = False,
        weights: Weights = "default",
        rank_program: str | PathLike[str] | None = None,
        verify_weights: bool = False,
    ) -> None:
        """Loads the artifact in the folder `path`.

        `max_sequences` is how many texts are continued at a time, by default as
        many as a step takes, and `max_waiting_requests` how many requests may wait
        for that, 256. `kv_memory` is how many bytes their keys and values may take,
        by default enough for four texts of the whole context, as far as memory is
        available; more than is available is an error. `prefix_cache` keeps them for
        prompts that begin alike.
        With `first_token_objective`, in seconds, requests that are predicted to
        wait longer for their first token are refused with OverloadedError; with
        `token_objective` prompts of others delay a text's next token no longer
        than so many seconds.
        With `restart_ranks`, ranks of which one fails are started anew: texts that
        had begun end with UnavailableError, other requests go on waiting.
        `weights` says where the weights lie: "mapped" shares them with other
        processes, "huge-pages" makes a copy that is faster to read.
        `rank_program` is the sandwich-run that runs the other ranks of an artifact
        for several, by default the first one of: in the library's folder, in the
        `bin` beside that folder, in the `bin` beside `lib` where that is the folder
        around it, in the folder of Python. It must be of the same build as the
        library.
        `verify_weights` reads all weights and compares them with their checksum
        first.
        """
        load_options = make_load_options(weights, kv_memory, rank_program, verify_weights)
        for name, count in (
            ("max_sequences", max_sequences),
            ("max_waiting_requests", max_waiting_requests),
        ):
            if count is not None:
                check_range(name, count, 1, 2**64 - 1)
        for name, seconds in (
            ("first_token_objective", first_token_objective),
            ("token_objective", token_objective),
        ):
            if seconds is not None:
                check_positive(name, seconds)
        serving_options = _library.make_structure(
            _library.ServingOptions,
            max_sequences=max_sequences or 0,
            max_waiting_requests=max_waiting_requests or 0,
            no_prefix_cache=not prefix_cache,
            restart_ranks=restart_ranks,
            first_token_objective=first_token_objective or 0.0,
            token_objective=token_objective or 0.0,
        )
        super().__init__("model", path, load_options, serving_options)

    @overload
    def generate(
        self, prompt: Prompt, **options: Unpack[GenerationOptions]
    ) -> Completion: ...

    @overload
    def generate(
        self, prompt: Sequence[Prompt], **options: Unpack[GenerationOptions]
    ) -> list[Completion]: ...

    def generate(
        self, prompt: Prompt | Sequence[Prompt], **options: Unpack[GenerationOptions]
    ) -> Completion | list[Completion]:
        """Continues a prompt, which is text or token ids, or several prompts at
        the same time, with the same options.

        Several are taken as the queue has room for them. If one of them fails, the
        others are cancelled.
        """
        if not _is_batch(prompt):
            return self._generate_all([cast(Prompt, prompt)], options)[0]
        return self._generate_all(cast(Sequence[Prompt], prompt), options)

    @overload
    async def generate_async(
        self, prompt: Prompt, **options: Unpack[GenerationOptions]
    ) -> Completion: ...

    @overload
    async def generate_async(
        self, prompt: Sequence[Prompt], **options: Unpack[GenerationOptions]
    ) -> list[Completion]: ...

    async def generate_async(
        self, prompt: Prompt | Sequence[Prompt], **options: Unpack[GenerationOptions]
    ) -> Completion | list[Completion]:
        """As `generate`, while other tasks go on. Cancelling the task cancels the
        requests."""
        if not _is_batch(prompt):
            return (await self._generate_all_async([cast(Prompt, prompt)], options))[0]
        return await self._generate_all_async(cast(Sequence[Prompt], prompt), options)

    def stream(
        self, prompt: Prompt, **options: Unpack[GenerationOptions]
    ) -> TokenStream:
        """Continues a prompt and yields each token as it is made."""
        return TokenStream(self._submit(prompt, options))

    def stream_async(
        self, prompt: Prompt, **options: Unpack[GenerationOptions]
    ) -> AsyncTokenStream:
        """As `stream`, for `async for`."""
        return AsyncTokenStream(self._submit(prompt, options))

    def statistics(self) -> Statistics:
        """What was served since the model was loaded, and is being served."""
        told = _library.make_structure(_library.Statistics)
        with self._handle.use() as value:
            _library.call("model_statistics", value, ctypes.byref(told))
        return Statistics(
            **{
                name: getattr(told, name)
                for name, *_ in told._fields_
                if name != "struct_size"
            }
        )

    def _submit(self, prompt: Prompt, options: GenerationOptions) -> Request:
        return Request(
            self._handle,
            self._token_ids(prompt, options),
            make_generation_options(options),
        )

    def _token_ids(self, prompt: Prompt, options: GenerationOptions) -> Sequence[int]:
        if not isinstance(prompt, str):
            return prompt
        return self.tokenize(
            prompt, parse_special_tokens=options.get("parse_special_tokens", False)
        )

    def _generate_all(
        self, prompts: Sequence[Prompt], options: GenerationOptions
    ) -> list[Completion]:
        requests: list[Request] = []
        completions: list[Completion] = []
        try:
            for prompt in prompts:
                ids = self._token_ids(prompt, options)
                while not self._add_request(requests, completions, ids, options):
                    completions.append(requests[len(completions)].complete())
            while len(completions) < len(requests):
                completions.append(requests[len(completions)].complete())
            return completions
        finally:
            for request in requests:
                request.close()

    async def _generate_all_async(
        self, prompts: Sequence[Prompt], options: GenerationOptions
    ) -> list[Completion]:
        requests: list[Request] = []
        completions: list[Completion] = []
        try:
            for prompt in prompts:
                ids = self._token_ids(prompt, options)
                while not self._add_request(requests, completions, ids, options):
                    completions.append(await requests[len(completions)].complete_async())
            while len(completions) < len(requests):
                completions.append(await requests[len(completions)].complete_async())
            return completions
        finally:
            for request in requests:
                request.close()

    def _add_request(
        self,
        requests: list[Request],
        completions: list[Completion],
        ids: Sequence[int],
        options: GenerationOptions,
    ) -> bool:
        """Submits a request more; false where the queue has no room until one of
        `requests`, of which the first are `completions`, has ended."""
        try:
            requests.append(Request(self._handle, ids, make_generation_options(options)))
        except OverloadedError:
            if len(completions) == len(requests):
                raise
            return False
        return True
