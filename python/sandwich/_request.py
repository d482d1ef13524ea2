# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Requests that a model serves."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sandwich import _library
from sandwich._errors import UnavailableError, make_error
from sandwich._handle import Handle
from sandwich._options import token_array, token_pointer
from sandwich._results import (
    Completion,
    FinishReason,
    Token,
    Usage,
    make_completion,
)

# In the order of sandwich_finish_reason.
_FINISH_REASONS: tuple[FinishReason | None, ...] = (
    None,
    "end_of_text",
    "stopped",
    "max_tokens",
    "context_full",
)

# Between them, Python looks for signals.
_WAIT_SECONDS = 0.1


class Request:
    """A prompt that is being continued."""

    def __init__(self, model: Handle, prompt: Sequence[int], options: Any) -> None:
        ids = token_array(prompt)
        self._continuations = options.continuations
        self._tells_log_probabilities = bool(options.sampling.contents.log_probabilities)
        # The library has it read by one thread at a time.
        self._reading = threading.Lock()
        with model.use() as value:
            self._handle = Handle(
                "request",
                "request_submit",
                value,
                token_pointer(ids),
                len(ids),
                ctypes.byref(options),
            )

    def close(self) -> None:
        """Cancels it, unless it has ended."""
        # Who waits for an event is told at once.
        self.cancel()
        self._handle.close()

    def cancel(self) -> None:
        """Ends it with CancelledError, unless it has ended."""
        with suppress(UnavailableError), self._handle.use() as value:
            _library.library().sandwich_request_cancel(value)

    def next(self) -> Token | Usage:
        """The next token, or the request's end. Raises what it ended with."""
        while True:
            event = self._poll(_WAIT_SECONDS)
            if event is not None:
                return event

    async def next_async(self) -> Token | Usage:
        """As `next`, while other tasks go on."""
        # They do, too, where there is always an event already.
        await asyncio.sleep(0)
        while True:
            event = self._poll(0)
            if event is not None:
                return event
            await self._wait_until_ready()

    def complete(self) -> Completion:
        """All that comes of it. Raises what it ends with."""
        tokens: list[Token] = []
        while isinstance(event := self.next(), Token):
            tokens.append(event)
        return make_completion(tokens, event, self._continuations)

    async def complete_async(self) -> Completion:
        """As `complete`, while other tasks go on."""
        tokens: list[Token] = []
        while isinstance(event := await self.next_async(), Token):
            tokens.append(event)
        return make_completion(tokens, event, self._continuations)

    def _poll(self, seconds: float) -> Token | Usage | None:
        event = ctypes.POINTER(_library.Event)()
        with self._handle.use() as value, self._reading:
            _library.call("request_next", value, seconds, ctypes.byref(event))
            if not event:
                return None
            if event.contents.token:
                return self._read_token(event.contents.token.contents)
            return _read_end(event.contents.end.contents)

    async def _wait_until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        descriptor = ctypes.c_int()
        with self._handle.use() as value:
            _library.call("request_descriptor", value, ctypes.byref(descriptor))
            # Its own, as another task may close the request meanwhile.
            own = os.dup(descriptor.value)
        try:
            loop.add_reader(own, lambda: ready.done() or ready.set_result(None))
            try:
                await ready
            finally:
                loop.remove_reader(own)
        finally:
            os.close(own)

    def _read_token(self, token: _library.Token) -> Token:
        log_probability, top = None, None
        if self._tells_log_probabilities:
            log_probability = token.log_probability
            top = {each.token: each.value for each in token.top[: token.top_count]}
        return Token(
            token_id=token.token,
            text=ctypes.string_at(token.piece, token.piece_bytes).decode(),
            text_index=token.text_index,
            finish_reason=_FINISH_REASONS[token.finish_reason],
            log_probability=log_probability,
            top_log_probabilities=top,
        )


def _read_end(end: _library.RequestEnd) -> Usage:
    if end.status != 0:
        raise make_error(end.status, end.error.decode("utf-8", "replace"))
    return Usage(
        queue_seconds=end.queue_seconds,
        prefill_seconds=end.prefill_seconds,
        decode_seconds=end.decode_seconds,
        prompt_tokens=end.prompt_tokens,
        cached_tokens=end.cached_tokens,
        generated_tokens=end.generated_tokens,
        preemptions=end.preemptions,
    )
