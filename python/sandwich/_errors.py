# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What is raised, by what a program can do about it: the statuses of the C
interface."""


class Error(Exception):
    """What went wrong, in one sentence. Of this class itself: files, memory or
    the system are at fault."""


class InvalidArgumentError(Error, ValueError):
    """The call is wrong, whenever it is made."""


class ContextExceededError(Error):
    """More tokens than the model's context."""


class CacheFullError(Error):
    """More tokens than the KV cache holds."""


class CancelledError(Error):
    """Somebody took the request back, or closed the model."""


class DeadlineExceededError(Error, TimeoutError):
    """The request's timeout has passed, or cannot be met."""


class OverloadedError(Error):
    """Too many requests are waiting; later there may be fewer."""


class UnavailableError(Error):
    """The model computes nothing any more: it is closed, one of its ranks has
    ended, or this process is a fork of the one that loaded it."""


class InternalError(Error):
    """The model computed what is no number, or a bug."""


# In the order of sandwich_status, whose 0 is no error.
_CLASSES: tuple[type[Error], ...] = (
    Error,
    InvalidArgumentError,
    ContextExceededError,
    CacheFullError,
    CancelledError,
    DeadlineExceededError,
    OverloadedError,
    UnavailableError,
    InternalError,
)


def make_error(status: int, message: str) -> Error:
    """The exception for a `sandwich_status` that is not SANDWICH_OK."""
    return _CLASSES[status - 1 if 0 < status <= len(_CLASSES) else 0](message)
