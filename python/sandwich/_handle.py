# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the library makes and frees."""

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sandwich import _library
from sandwich._errors import UnavailableError


class _Owner:
    """Frees a handle when nobody uses it any more."""

    def __init__(self, kind: str, value: ctypes.c_void_p) -> None:
        self.kind = kind
        self.value: ctypes.c_void_p | None = value
        self.free = getattr(_library.library(), f"sandwich_{kind}_free")
        self.users = 0
        self.changed = threading.Condition()
        self.process = os.getpid()

    def is_fork(self) -> bool:
        """Whether other threads' locks are held for ever."""
        return os.getpid() != self.process

    def close(self) -> None:
        if self.is_fork():
            value, self.value = self.value, None
        else:
            with self.changed:
                value, self.value = self.value, None
                self.changed.wait_for(lambda: self.users == 0)
        if value is not None:
            self.free(value)


class Handle:
    """Owns what a function of the library made. Any thread may use it, and close
    it: that waits for those who use it."""

    def __init__(self, kind: str, create: str, *arguments: Any) -> None:
        value = ctypes.c_void_p()
        _library.call(create, *arguments, ctypes.byref(value))
        self._owner = _Owner(kind, value)
        finalizer = weakref.finalize(self, self._owner.close)
        # Threads that the end of Python does not wait for may be reading.
        finalizer.atexit = kind != "request"

    def close(self) -> None:
        self._owner.close()

    @contextmanager
    def use(self) -> Iterator[ctypes.c_void_p]:
        """The handle, which is not freed meanwhile. Raises UnavailableError where
        it is closed, or in a fork."""
        owner = self._owner
        if owner.is_fork():
            raise UnavailableError(
                f"this process is a fork of the one that loaded the {owner.kind}; load "
                "it after forking"
            )
        with owner.changed:
            if owner.value is None:
                raise UnavailableError(f"the {owner.kind} is closed")
            value = owner.value
            owner.users += 1
        try:
            yield value
        finally:
            with owner.changed:
                owner.users -= 1
                owner.changed.notify_all()
