# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tokens as they are made."""

from collections.abc import AsyncIterator, Iterator
from types import TracebackType

from sandwich._errors import Error
from sandwich._request import Request
from sandwich._results import Token, Usage


class _Stream:
    def __init__(self, request: Request) -> None:
        self._request = request
        self._closed = False
        #: How the request was served, once all tokens were taken.
        self.usage: Usage | None = None

    def cancel(self) -> None:
        """Ends the request, from any thread: the stream raises CancelledError
        after the tokens that there are."""
        self._request.cancel()

    def _close(self) -> None:
        self._closed = True
        self._request.close()

    def _take(self, event: Token | Usage) -> Token | None:
        """The token; None at the end."""
        if isinstance(event, Token):
            return event
        self.usage = event
        self._close()
        return None


class TokenStream(_Stream, Iterator[Token]):
    """The tokens of a request, in the order in which they are made. One that is
    left before its end is to be closed, or used in a `with`."""

    def __next__(self) -> Token:
        if self._closed:
            raise StopIteration
        try:
            token = self._take(self._request.next())
        except BaseException as error:
            # Another thread may have closed it.
            if self._closed and isinstance(error, Error):
                raise StopIteration from None
            self._close()
            raise
        if token is None:
            raise StopIteration
        return token

    def close(self) -> None:
        """Cancels the request, unless it has ended, and ends the iteration."""
        self._close()

    def __enter__(self) -> "TokenStream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()


class AsyncTokenStream(_Stream, AsyncIterator[Token]):
    """As TokenStream, for one task at a time. Cancelling a task that waits for a
    token cancels the request."""

    async def __anext__(self) -> Token:
        if self._closed:
            raise StopAsyncIteration
        try:
            token = self._take(await self._request.next_async())
        except BaseException as error:
            # Another task may have closed it.
            if self._closed and isinstance(error, Error):
                raise StopAsyncIteration from None
            self._close()
            raise
        if token is None:
            raise StopAsyncIteration
        return token

    async def aclose(self) -> None:
        """Cancels the request, unless it has ended, and ends the iteration."""
        self._close()

    async def __aenter__(self) -> "AsyncTokenStream":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
