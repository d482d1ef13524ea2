# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Kernels written in Python's syntax, run on numpy arrays by compiled code."""

import ast
import ctypes
import inspect
import itertools
import json
import math
import os
import tempfile
import textwrap
import threading
from collections.abc import Callable, Mapping
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

import numpy as np

from sandwich._compile import find_program, run_program
from sandwich._errors import Error, InvalidArgumentError
from sandwich._interpreter import interpret

# By the names that numpy has; bf16 is what ml_dtypes calls bfloat16, or its bits.
_LARGEST_SIZE = 2**32
_TYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "uint16": "bf16",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
}
# Numbers that are no memory.
_NUMBERS: Mapping[str, Any] = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "index": ctypes.c_int64,
}


class _Code:
    """A kernel for some types, compiled for some parameters."""

    def __init__(self, path: Path, name: str) -> None:
        self._library = ctypes.CDLL(str(path))
        self.entry = self._library[f"sandwich_kernel_{name}"]
        self.entry.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
        # 0, or a line where bounds are checked.
        self.entry.restype = ctypes.c_int64


class Kernel:
    """A kernel of the high level (docs/Kernels.md has its language).

    Called with numpy arrays and numbers in the order of its arguments, it computes, and
    writes the arrays that it sets. Parameters, constants and sizes that code is to be
    made for are given by name: `rms_norm(x, weight, 1e-5, y, LANES=16)`.
    """

    def __init__(self, text: str, name: str | None = None) -> None:
        """Of `text`, which is Python's syntax; `name` says which, where there are
        several. What is wrong with it is raised as Error."""
        self._folder = tempfile.TemporaryDirectory(prefix="sandwich-kernel-")
        self._source = Path(self._folder.name) / "text.kernel"
        self._source.write_text(text, encoding="utf-8")
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._codes: dict[Any, _Code] = {}
        # For each choice of types.
        self._tuned: dict[tuple[str, ...], dict[str, int]] = {}
        self._descriptions: dict[tuple[str, ...], Any] = {}
        self._choices = {} if name is None else {"--kernel": name}
        self.text = text
        description = self._describe(())
        self.name: str = description["name"]
        self.__name__ = self.name
        self.__doc__ = description["documentation"]
        self._type_names = self._find_type_names()

    def _find_type_names(self) -> dict[str, str]:
        """The arguments, each with `T` of its `T[...]`, for those that have a choice of
        types."""
        try:
            body = ast.parse(self.text).body
        except SyntaxError as error:
            raise Error(f"line {error.lineno}: {error.msg}, as Python has it") from None
        for function in body:
            if isinstance(function, ast.FunctionDef) and function.name == self.name:
                break
        else:
            return {}
        chosen = {
            argument.arg
            for argument in function.args.args
            if isinstance(argument.annotation, ast.Call)
            and isinstance(argument.annotation.func, ast.Name)
            and argument.annotation.func.id == "type"
        }
        names = {}
        for argument in function.args.args:
            annotation = argument.annotation
            if isinstance(annotation, ast.Subscript):
                annotation = annotation.value
            if isinstance(annotation, ast.Name) and annotation.id in chosen:
                names[argument.arg] = annotation.id
        return names

    def _arguments(self) -> list[str]:
        options = [f"{option}={value}" for option, value in self._choices.items()]
        return [str(self._source), *options]

    def _run(self, *options: str) -> str:
        """sandwich-compile-kernel on the text, whose places errors tell."""
        try:
            program = find_program("sandwich-compile-kernel")
            return run_program([program, *self._arguments(), *options])
        except Error as error:
            raise Error(str(error).replace(f"{self._source}:", "line ")) from None

    def _describe(self, types: tuple[str, ...]) -> Any:
        """Its arguments and parameters for `--type` options."""
        with self._lock:
            if types not in self._descriptions:
                path = Path(self._folder.name) / f"{next(self._numbers)}.json"
                self._run(*types, f"--description={path}")
                self._descriptions[types] = json.loads(path.read_text(encoding="utf-8"))
            return self._descriptions[types]

    def _check(self, arguments: tuple[Any, ...]) -> tuple[tuple[str, ...], Any]:
        """The types that `arguments` are of, and the description that fits."""
        described = self._describe(())["arguments"]
        if len(arguments) != len(described):
            raise InvalidArgumentError(
                f"{self.name} takes {len(described)} arguments, not {len(arguments)}: "
                + ", ".join(each["name"] for each in described)
            )
        chosen: dict[str, str] = {}
        for each, argument in zip(described, arguments):
            name = self._type_names.get(each["name"])
            if name is not None and isinstance(argument, np.ndarray):
                chosen.setdefault(name, _TYPES.get(argument.dtype.name, "none"))
        types = tuple(f"--type={name}={chosen[name]}" for name in sorted(chosen))
        return types, self._describe(types)

    def _sizes(
        self, described: Any, arguments: tuple[Any, ...], known: Mapping[str, int]
    ) -> dict[str, int]:
        """What the names of sizes are, of arrays that are checked."""
        for each, argument in zip(described, arguments):
            if "sizes" not in each:
                continue
            where = f"argument {each['name']} of {self.name}"
            if not isinstance(argument, np.ndarray):
                raise InvalidArgumentError(f"{where} must be an array of numpy")
            if (
                _TYPES.get(argument.dtype.name) != each["type"]
                or not argument.dtype.isnative
            ):
                raise InvalidArgumentError(
                    f"{where} is of {argument.dtype}, and must be of {each['type']}"
                )
            if argument.ndim != len(each["sizes"]):
                raise InvalidArgumentError(
                    f"{where} has {argument.ndim} dimensions, and must have "
                    f"{len(each['sizes'])}"
                )
            if not argument.flags.c_contiguous or not argument.flags.aligned:
                raise InvalidArgumentError(f"{where} must be contiguous")
            if each["written"] and not argument.flags.writeable:
                raise InvalidArgumentError(f"{where} is written, and must be writeable")
        sizes = dict(known)
        for each, argument in zip(described, arguments):
            for size, extent in zip(each.get("sizes", ()), getattr(argument, "shape", ())):
                if size.isidentifier():
                    sizes.setdefault(size, extent)
        for each, argument in zip(described, arguments):
            for size, extent in zip(each.get("sizes", ()), getattr(argument, "shape", ())):
                factors = size.split(" * ")
                unknown = [
                    name for name in factors if not name.isdigit() and name not in sizes
                ]
                if unknown:
                    raise InvalidArgumentError(f"{self.name} needs {unknown[0]}=")
                wanted = math.prod(
                    int(name) if name.isdigit() else sizes[name] for name in factors
                )
                if extent != wanted:
                    raise InvalidArgumentError(
                        f"argument {each['name']} of {self.name} has {extent} numbers "
                        f"in a dimension of {size}, which is {wanted}"
                    )
        return sizes

    def _known(
        self, types: tuple[str, ...], description: Any, given: Mapping[str, int]
    ) -> dict[str, int]:
        """What parameters are, as they are given, tuned or untuned."""
        names = {each["name"] for each in description["parameters"]}
        for each in description["arguments"]:
            names.update(size for size in each.get("sizes", ()) if size.isidentifier())
        for name in given:
            if name not in names:
                raise InvalidArgumentError(
                    f"{self.name} has no parameter and no size {name}"
                )
        return {**self._tuned.get(types, {}), **given}

    def _compile(
        self, types: tuple[str, ...], known: Mapping[str, int], checked: bool
    ) -> _Code:
        key = (types, tuple(sorted(known.items())), checked)
        with self._lock:
            if key not in self._codes:
                path = Path(self._folder.name) / f"{next(self._numbers)}.so"
                options = [f"--parameter={name}={value}" for name, value in key[1]]
                if checked:
                    options.append("--check-bounds")
                self._run(*types, *options, f"--output={path}")
                self._codes[key] = _Code(path, self.name)
            return self._codes[key]

    def _untuned(self, description: Any) -> dict[str, int]:
        return {
            each["name"]: each["untuned"]
            for each in description["parameters"]
            if "untuned" in each
        }

    def __call__(self, *arguments: Any, **parameters: int) -> None:
        """Computes. Arrays are contiguous, of the types and sizes that the kernel
        says; those that it sets are written. Anything else is raised as
        InvalidArgumentError, and nothing is computed."""
        self._call(arguments, parameters, checked=False)

    def checked(self, *arguments: Any, **parameters: int) -> None:
        """Computes as a call does, and reaches nothing beyond the arrays: where the
        kernel would, it reads zero and writes nothing there, and Error tells the line
        in the end. What is proven to be within bounds is not checked, so that most
        kernels are as fast."""
        line = self._call(arguments, parameters, checked=True)
        if line:
            raise Error(f"line {line} of {self.name} reaches beyond an array")

    def _call(
        self, arguments: tuple[Any, ...], parameters: Mapping[str, int], checked: bool
    ) -> int:
        types, description = self._check(arguments)
        known = self._known(types, description, parameters)
        untuned = self._untuned(description)
        self._sizes(description["arguments"], arguments, {**untuned, **known})
        code = self._compile(types, known, checked)
        kept: list[Any] = []
        pointers = (ctypes.c_void_p * len(arguments))()
        for number, (each, argument) in enumerate(
            zip(description["arguments"], arguments)
        ):
            if "sizes" in each:
                strides = [step // argument.itemsize for step in argument.strides]
                words = [argument.ctypes.data, argument.ctypes.data, 0]
                value: Any = (ctypes.c_int64 * (3 + 2 * argument.ndim))(
                    *words, *argument.shape, *strides
                )
            else:
                value = self._number(each, argument)
            kept.append(value)
            pointers[number] = ctypes.addressof(value)
        return int(code.entry(pointers))

    def _number(self, described: Any, argument: Any) -> Any:
        kind = _NUMBERS.get(described["type"])
        if kind is None:
            raise InvalidArgumentError(
                f"{self.name} takes a number of {described['type']}, which Python cannot "
                "give"
            )
        try:
            value = kind(argument)
            fits = value.value == argument or (
                isinstance(value.value, float)
                and (not math.isinf(value.value) or math.isinf(argument))
            )
        except (TypeError, OverflowError):
            fits = False
        if not fits:
            raise InvalidArgumentError(
                f"argument {described['name']} of {self.name} must be a number of "
                f"{described['type']}, not {argument!r}"
            )
        return value

    def interpret(self, *arguments: Any, **parameters: int) -> None:
        """The same, by Python and numpy in place of compiled code: slow, with every
        access to memory checked, and wherever Python's debugger stops."""
        types, description = self._check(arguments)
        known = self._known(types, description, parameters)
        untuned = self._untuned(description)
        sizes = self._sizes(description["arguments"], arguments, {**untuned, **known})
        for each in description["parameters"]:
            if each["name"] not in sizes:
                raise InvalidArgumentError(f"{self.name} needs {each['name']}=")
        described = description["arguments"]
        interpret(
            self.text,
            self.name,
            {
                name: next(
                    each["type"] for each in described if each["name"] == argument
                )
                for argument, name in self._type_names.items()
            },
            sizes,
            [(value, each["type"]) for each, value in zip(described, arguments)],
        )

    def tune(
        self, *arguments: Any, seconds: float = 30, **parameters: int
    ) -> dict[str, int]:
        """Measures choices of the parameters that are not given with random numbers in
        arrays as large as these, for `seconds` at most. The best are used from now on,
        and returned."""
        types, description = self._check(arguments)
        known = {
            name: value
            for name, value in self._known(types, description, parameters).items()
            if name in parameters
        }
        untuned = self._untuned(description)
        sizes = self._sizes(description["arguments"], arguments, {**untuned, **known})
        dimensions = {
            size
            for each in description["arguments"]
            for size in each.get("sizes", ())
            if size.isidentifier()
        } - {each["name"] for each in description["parameters"]}
        options = [f"--parameter={name}={value}" for name, value in known.items()]
        options += [
            f"--size={name}={sizes[name]}" for name in sorted(dimensions - set(known))
        ]
        # Integers say how far loops go.
        options += [
            f"--size={each['name']}={min(max(int(argument), 0), _LARGEST_SIZE)}"
            for each, argument in zip(description["arguments"], arguments)
            if "sizes" not in each and each["type"][0] == "i"
        ]
        message = self._run(*types, *options, "--tune", f"--seconds={seconds}")
        # "NAME: LANES=16 ROWS=4, 12.3 us a call, ..."
        choices = message.split(":", 1)[1].split(",", 1)[0].split()
        best = {name: int(value) for name, value in (each.split("=") for each in choices)}
        with self._lock:
            self._tuned.setdefault(types, {}).update(best)
        return best


def kernel(function: Callable[..., Any]) -> Kernel:
    """Makes a kernel of a function whose text is one. Its annotations are not Python's:
    `from __future__ import annotations` keeps them from being computed.

    >>> from __future__ import annotations
    >>> import sandwich
    >>> @sandwich.kernel
    ... def scale(x: f32[n], by: f32, y: f32[n], LANES: tune(8, 16, 32) = 16):
    ...     for i in blocks(n, LANES):
    ...         y[i] = x[i] * by  # doctest: +SKIP
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise InvalidArgumentError(
            f"the text of {function!r} is not to be found: {error}"
        ) from None
    return Kernel(text)


def load_kernel(path: str | PathLike[str], name: str | None = None) -> Kernel:
    """The kernel of a file, or `name` of several."""
    try:
        text = Path(os.fspath(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{fsdecode(path)}: {error}") from None
    return Kernel(text, name)
