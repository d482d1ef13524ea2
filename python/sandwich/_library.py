# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""libsandwich.so through ctypes; include/sandwich/Runtime/sandwich.h describes
every function and structure."""

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

from sandwich._errors import Error, InvalidArgumentError, make_error

API_VERSION = 3

TOKENIZE_ADD_SPECIAL = 1
TOKENIZE_PARSE_SPECIAL = 2

c_int32_p = ctypes.POINTER(ctypes.c_int32)
c_float_p = ctypes.POINTER(ctypes.c_float)


class LoadOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("weights", ctypes.c_int),
        ("verify_weights", ctypes.c_int),
        ("kv_memory", ctypes.c_uint64),
        ("rank_program", ctypes.c_char_p),
        ("log", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
    ]


class ServingOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("max_sequences", ctypes.c_uint64),
        ("max_waiting_requests", ctypes.c_uint64),
        ("no_prefix_cache", ctypes.c_int),
        ("restart_ranks", ctypes.c_int),
        ("first_token_objective", ctypes.c_double),
        ("token_objective", ctypes.c_double),
    ]


class Statistics(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("requests", ctypes.c_uint64),
        ("refused_requests", ctypes.c_uint64),
        ("generated_tokens", ctypes.c_uint64),
        ("waiting_requests", ctypes.c_uint64),
        ("running_requests", ctypes.c_uint64),
        ("running_texts", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("used_blocks", ctypes.c_uint64),
        ("steps", ctypes.c_uint64),
        ("preemptions", ctypes.c_uint64),
        ("prompt_tokens", ctypes.c_uint64),
        ("cached_prompt_tokens", ctypes.c_uint64),
    ]


class LogitBias(ctypes.Structure):
    _fields_ = [("token", ctypes.c_int32), ("bias", ctypes.c_float)]


class SamplingOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("min_tokens", ctypes.c_uint64),
        ("logit_bias", ctypes.POINTER(LogitBias)),
        ("logit_bias_count", ctypes.c_size_t),
        ("repetition_penalty", ctypes.c_float),
        ("frequency_penalty", ctypes.c_float),
        ("presence_penalty", ctypes.c_float),
        ("temperature", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("top_k", ctypes.c_uint32),
        ("top_p", ctypes.c_float),
        ("seed", ctypes.c_uint64),
        ("log_probabilities", ctypes.c_int),
        ("top_log_probabilities", ctypes.c_uint32),
    ]


class StopOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("strings", ctypes.POINTER(ctypes.c_char_p)),
        ("string_count", ctypes.c_size_t),
        ("tokens", c_int32_p),
        ("token_count", ctypes.c_size_t),
        ("include_in_text", ctypes.c_int),
        ("ignore_end_of_text", ctypes.c_int),
    ]


class GenerationOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("max_tokens", ctypes.c_uint64),
        ("continuations", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("timeout_seconds", ctypes.c_double),
        ("prefix_salt", ctypes.c_uint64),
        ("sampling", ctypes.POINTER(SamplingOptions)),
        ("stop", ctypes.POINTER(StopOptions)),
        ("on_event", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
    ]


class LogProbability(ctypes.Structure):
    _fields_ = [("token", ctypes.c_int32), ("value", ctypes.c_float)]


class Token(ctypes.Structure):
    _fields_ = [
        ("text_index", ctypes.c_uint32),
        ("token", ctypes.c_int32),
        ("piece", ctypes.c_void_p),
        ("piece_bytes", ctypes.c_size_t),
        ("finish_reason", ctypes.c_int),
        ("log_probability", ctypes.c_float),
        ("top", ctypes.POINTER(LogProbability)),
        ("top_count", ctypes.c_size_t),
    ]


class RequestEnd(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int),
        ("error", ctypes.c_char_p),
        ("queue_seconds", ctypes.c_double),
        ("prefill_seconds", ctypes.c_double),
        ("decode_seconds", ctypes.c_double),
        ("prompt_tokens", ctypes.c_uint64),
        ("cached_tokens", ctypes.c_uint64),
        ("generated_tokens", ctypes.c_uint64),
        ("preemptions", ctypes.c_uint64),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("token", ctypes.POINTER(Token)),
        ("end", ctypes.POINTER(RequestEnd)),
    ]


def make_structure(kind: type[Any], **fields: Any) -> Any:
    """A structure that the library reads, with its size."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)


def check_path(path: "str | bytes | os.PathLike[Any]") -> bytes:
    """`path` as the system takes it. Raises InvalidArgumentError if it cannot."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgumentError(
            f"{path!r} holds a zero character; no file has such a name"
        )
    return encoded


def library_path() -> str:
    """Where libsandwich.so is: the file that SANDWICH_LIBRARY names, else the one
    that this package carries, else in a build of the repository that it is in, else
    in the `lib` beside the folder of sandwich-run, which SANDWICH_BIN names or the
    PATH has, else where the system looks for libraries."""
    named = os.environ.get("SANDWICH_LIBRARY")
    if named:
        return named
    package = Path(__file__).resolve().parent
    builds = package.parent.parent / "build"
    folders = [package]
    folders += [builds / preset for preset in ("release", "runtime-only", "debug")]
    for path in (os.environ.get("SANDWICH_BIN"), os.environ.get("PATH")):
        program = path and shutil.which("sandwich-run", path=path)
        if program:
            folders.append(Path(program).resolve().parent.parent)
    name = f"libsandwich.so.{API_VERSION}"
    for folder in folders:
        found = folder / "lib" / name
        if found.exists():
            return str(found)
    return name


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Error(
            f"cannot load {path} ({error}); build Sandwich, or set SANDWICH_LIBRARY to "
            "the path of libsandwich.so"
        ) from None
    size, size_p = ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)
    handle, handle_p = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    status, error_p = ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)
    load_p = ctypes.POINTER(LoadOptions)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "api_version": (ctypes.c_uint32, []),
        "free": (None, [ctypes.c_void_p]),
        "model_load": (
            status,
            [
                ctypes.c_char_p,
                load_p,
                ctypes.POINTER(ServingOptions),
                handle_p,
                error_p,
            ],
        ),
        "model_free": (None, [handle]),
        "model_describe": (handle, [handle]),
        "model_statistics": (status, [handle, ctypes.POINTER(Statistics), error_p]),
        "evaluator_load": (status, [ctypes.c_char_p, load_p, handle_p, error_p]),
        "evaluator_free": (None, [handle]),
        "evaluator_describe": (handle, [handle]),
        "evaluator_logits": (status, [handle, c_int32_p, size, c_float_p, error_p]),
        "vocab_size": (ctypes.c_uint64, [handle]),
        "context_length": (ctypes.c_uint64, [handle]),
        "name": (ctypes.c_char_p, [handle]),
        "tokenize": (
            status,
            [
                handle,
                ctypes.c_char_p,
                size,
                ctypes.c_int,
                ctypes.POINTER(c_int32_p),
                size_p,
                error_p,
            ],
        ),
        "detokenize": (
            status,
            [handle, c_int32_p, size, ctypes.c_int, handle_p, size_p, error_p],
        ),
        "request_submit": (
            status,
            [
                handle,
                c_int32_p,
                size,
                ctypes.POINTER(GenerationOptions),
                handle_p,
                error_p,
            ],
        ),
        "request_next": (
            status,
            [
                handle,
                ctypes.c_double,
                ctypes.POINTER(ctypes.POINTER(Event)),
                error_p,
            ],
        ),
        "request_descriptor": (
            status,
            [handle, ctypes.POINTER(ctypes.c_int), error_p],
        ),
        "request_cancel": (None, [handle]),
        "request_free": (None, [handle]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(library, "sandwich_" + name)
        except AttributeError:
            raise Error(
                f"{path} is not the library of this package: it has no sandwich_{name}"
            ) from None
        function.restype = result
        function.argtypes = arguments
    version = library.sandwich_api_version()
    if version != API_VERSION:
        raise Error(
            f"{path} has the interface version {version}; this package needs "
            f"{API_VERSION}"
        )
    return library


_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first call. Raises Error if it cannot be."""
    global _loaded
    if _loaded is None:
        _loaded = _load()
    return _loaded


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises what is not OK."""
    error = ctypes.c_void_p()
    status = getattr(library(), "sandwich_" + name)(*arguments, ctypes.byref(error))
    if status == 0:
        return
    message = "there is not enough memory"
    if error.value:
        message = ctypes.string_at(error.value).decode("utf-8", "replace")
        library().sandwich_free(error)
    raise make_error(status, message)
