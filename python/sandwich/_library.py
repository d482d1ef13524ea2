# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""libsandwich.so through ctypes; include/sandwich/Runtime/sandwich.h describes
every function."""

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

API_VERSION = 2

TOKENIZE_ADD_SPECIAL = 1
TOKENIZE_PARSE_SPECIAL = 2

c_int32_p = ctypes.POINTER(ctypes.c_int32)
c_float_p = ctypes.POINTER(ctypes.c_float)


class SandwichError(RuntimeError):
    """What was wrong with the input or the machine, in one sentence."""


class LoadOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("max_sequences", ctypes.c_uint64),
        ("kv_cache_tokens", ctypes.c_uint64),
        ("weights", ctypes.c_int),
        ("log", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("kv_memory", ctypes.c_uint64),
        ("rank_program", ctypes.c_char_p),
        ("verify_weights", ctypes.c_int),
    ]


class SamplingOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_uint32),
        ("top_p", ctypes.c_float),
        ("seed", ctypes.c_uint64),
    ]


def check_path(path: "str | bytes | os.PathLike[Any]") -> bytes:
    """`path` as the system takes it. Raises SandwichError if it cannot."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise SandwichError(f"{path!r} holds a zero character; no file has such a name")
    return encoded


def library_path() -> str:
    """Where libsandwich.so is: the file that SANDWICH_LIBRARY names, else in a
    build of the repository that this package is in, else in the `lib` beside the
    folder of sandwich-run, which SANDWICH_BIN names or the PATH has, else where
    the system looks for libraries."""
    named = os.environ.get("SANDWICH_LIBRARY")
    if named:
        return named
    builds = Path(__file__).resolve().parent.parent.parent / "build"
    folders = [builds / preset for preset in ("release", "runtime-only", "debug")]
    for path in (os.environ.get("SANDWICH_BIN"), os.environ.get("PATH")):
        program = path and shutil.which("sandwich-run", path=path)
        if program:
            folders.append(Path(program).resolve().parent.parent)
    for folder in folders:
        built = folder / "lib" / "libsandwich.so"
        if built.exists():
            return str(built)
    return f"libsandwich.so.{API_VERSION}"


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise SandwichError(
            f"cannot load {path} ({error}); build Sandwich, or set SANDWICH_LIBRARY to "
            "the path of libsandwich.so"
        ) from None
    size_p = ctypes.POINTER(ctypes.c_size_t)
    handle, handle_p = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    error_p = ctypes.POINTER(ctypes.c_void_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "api_version": (ctypes.c_uint32, []),
        "free": (None, [ctypes.c_void_p]),
        "model_load": (
            ctypes.c_int,
            [ctypes.c_char_p, ctypes.POINTER(LoadOptions), handle_p, error_p],
        ),
        "model_free": (None, [handle]),
        "model_vocab_size": (ctypes.c_uint64, [handle]),
        "model_context_length": (ctypes.c_uint64, [handle]),
        "model_name": (ctypes.c_char_p, [handle]),
        "model_has_tokenizer": (ctypes.c_int, [handle]),
        "model_is_end_token": (ctypes.c_int, [handle, ctypes.c_int32]),
        "tokenize": (
            ctypes.c_int,
            [
                handle,
                ctypes.c_char_p,
                ctypes.c_size_t,
                ctypes.c_int,
                ctypes.POINTER(c_int32_p),
                size_p,
                error_p,
            ],
        ),
        "detokenize": (
            ctypes.c_int,
            [
                handle,
                c_int32_p,
                ctypes.c_size_t,
                ctypes.c_int,
                handle_p,
                size_p,
                error_p,
            ],
        ),
        "decoder_create": (ctypes.c_int, [handle, ctypes.c_int, handle_p, error_p]),
        "decoder_free": (None, [handle]),
        "decoder_skip": (
            ctypes.c_int,
            [handle, c_int32_p, ctypes.c_size_t, error_p],
        ),
        "decoder_add": (
            ctypes.c_int,
            [handle, ctypes.c_int32, handle_p, size_p, error_p],
        ),
        "decoder_finish": (ctypes.c_int, [handle, handle_p, size_p, error_p]),
        "sequence_create": (ctypes.c_int, [handle, handle_p, error_p]),
        "sequence_free": (None, [handle]),
        "sequence_length": (ctypes.c_uint64, [handle]),
        "sequence_feed": (
            ctypes.c_int,
            [handle, c_int32_p, ctypes.c_size_t, c_float_p, error_p],
        ),
        "sampler_create": (
            ctypes.c_int,
            [ctypes.POINTER(SamplingOptions), handle_p, error_p],
        ),
        "sampler_free": (None, [handle]),
        "sampler_sample": (ctypes.c_int, [handle, handle, c_int32_p, error_p]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(library, "sandwich_" + name)
        except AttributeError:
            raise SandwichError(
                f"{path} is not the library of this package: it has no sandwich_{name}"
            ) from None
        function.restype = result
        function.argtypes = arguments
    version = library.sandwich_api_version()
    if version != API_VERSION:
        raise SandwichError(
            f"{path} has the interface version {version}; this package needs "
            f"{API_VERSION}"
        )
    return library


_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first call. Raises SandwichError if it cannot
    be."""
    global _loaded
    if _loaded is None:
        _loaded = _load()
    return _loaded


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status; what is not OK is raised as a
    SandwichError."""
    error = ctypes.c_void_p()
    status = getattr(library(), "sandwich_" + name)(*arguments, ctypes.byref(error))
    if status == 0:
        return
    message = "unknown error"
    if error.value:
        message = ctypes.string_at(error.value).decode("utf-8", "replace")
        library().sandwich_free(error)
    raise SandwichError(message)


class Handle:
    """Owns what a create function made, and frees it with its free function."""

    def __init__(self, kind: str, create: str, *arguments: Any) -> None:
        self.value = ctypes.c_void_p()
        self._free = getattr(library(), f"sandwich_{kind}_free")
        call(create, *arguments, ctypes.byref(self.value))

    def __del__(self) -> None:
        if getattr(self, "value", None):
            self._free(self.value)
            self.value = ctypes.c_void_p()
