# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tokens as they are made."""

from collections.abc import AsyncIterator, Iterator
from types import TracebackType

from sandwich._request import Request
from sandwich._results import Token, Usage


class _Stream:
    def __init__(self, request: Request) -> None:
        self._request = request
        #: How the request was served, once all tokens were taken.
        self.usage: Usage | None = None

    def cancel(self) -> None:
        """Ends the request, from any thread: the stream raises CancelledError
        after the tokens that there are."""
        self._request.cancel()


class TokenStream(_Stream, Iterator[Token]):
    """The tokens of a request, in the order in which they are made. One that is
    left before its end is to be closed, or used in a `with`."""

    def __next__(self) -> Token:
        if self._request.closed:
            raise StopIteration
        try:
            event = self._request.next()
        except BaseException:
            self.close()
            raise
        if isinstance(event, Token):
            return event
        self.usage = event
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Cancels the request, unless it has ended."""
        self._request.close()

    def __enter__(self) -> "TokenStream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncTokenStream(_Stream, AsyncIterator[Token]):
    """As TokenStream, for one task at a time. Cancelling a task that waits for a
    token cancels the request."""

    async def __anext__(self) -> Token:
        if self._request.closed:
            raise StopAsyncIteration
        try:
            event = await self._request.next_async()
        except BaseException:
            self._request.close()
            raise
        if isinstance(event, Token):
            return event
        self.usage = event
        self._request.close()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancels the request, unless it has ended."""
        self._request.close()

    async def __aenter__(self) -> "AsyncTokenStream":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._request.close()
