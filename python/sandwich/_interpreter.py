# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The words of kernels as Python functions on numpy: a kernel's text runs as the
program that it looks like. Slow, without a compiler, and with every access checked."""

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sandwich._errors import InvalidArgumentError

# What numbers of a type are computed as; bf16 is f32 that is rounded.
_NUMPY: Mapping[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.float32,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}


def _round_bf16(numbers: Any) -> Any:
    """f32 with the digits of bf16, ties to even."""
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(numbers), numbers, rounded.astype(np.uint32).view(np.float32))


class Range:
    """`size` neighbors from `start` on, of which those before `end` are there."""

    def __init__(self, start: int, size: int, end: int | None = None) -> None:
        self.start, self.size = start, size
        self.count = size if end is None else max(0, min(size, end - start))

    def positions(self) -> "Value":
        return Value(self.start + np.arange(self.size), "index")

    def inside(self) -> "Value":
        return Value(np.arange(self.size) < self.count, "i1")

    def _shift(self, by: Any) -> "Range":
        moved = Range(self.start + int(_plain(by)), self.size)
        moved.count = self.count
        return moved

    def __add__(self, other: Any) -> Any:
        return self._shift(other) if _is_index(other) else self.positions() + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._shift(-_plain(other)) if _is_index(other) else self.positions() - other

    def __getitem__(self, key: Any) -> "Value":
        return self.positions()[key]


def _is_index(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, Value) and value.kind == "index" and value.array.ndim == 0
    )


def _plain(value: Any) -> Any:
    """A number of Python, of a single index."""
    return value.array.item() if isinstance(value, Value) else value


def _operator(function: Callable[[Any, Any], Any], kind: str | None = None) -> Any:
    def compute(self: Any, other: Any) -> Any:
        values = unify(self, other)
        with np.errstate(all="ignore"):
            return Value(function(*(each.array for each in values)), kind or values[0].kind)

    return compute


def _reflected(function: Callable[[Any, Any], Any]) -> Any:
    return _operator(lambda a, b: function(b, a))


class Value:
    """A number or a block of them."""

    __array_ufunc__ = None

    def __init__(self, array: Any, kind: str) -> None:
        self.kind = kind
        self.array = np.asarray(array, _NUMPY[kind])
        if kind == "bf16":
            self.array = _round_bf16(self.array)

    __add__, __radd__ = _operator(np.add), _reflected(np.add)
    __sub__, __rsub__ = _operator(np.subtract), _reflected(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply), _reflected(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.divide), _reflected(np.divide)
    __floordiv__ = _operator(np.floor_divide)
    __rfloordiv__ = _reflected(np.floor_divide)
    __mod__, __rmod__ = _operator(np.mod), _reflected(np.mod)
    __and__, __rand__ = _operator(np.bitwise_and), _reflected(np.bitwise_and)
    __or__, __ror__ = _operator(np.bitwise_or), _reflected(np.bitwise_or)
    __xor__, __rxor__ = _operator(np.bitwise_xor), _reflected(np.bitwise_xor)
    __lshift__, __rshift__ = _operator(np.left_shift), _operator(np.right_shift)
    __lt__, __le__ = _operator(np.less, "i1"), _operator(np.less_equal, "i1")
    __gt__, __ge__ = _operator(np.greater, "i1"), _operator(np.greater_equal, "i1")
    __eq__, __ne__ = _operator(np.equal, "i1"), _operator(np.not_equal, "i1")
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> "Value":
        return Value(-self.array, self.kind)

    def __invert__(self) -> "Value":
        return Value(~self.array, self.kind)

    def __bool__(self) -> bool:
        return bool(self.array)

    def __index__(self) -> int:
        return int(self.array)

    def __getitem__(self, key: Any) -> "Value":
        return Value(self.array[key], self.kind)


for _name in (
    *("mul", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne", "rsub", "rmul"),
    *("rfloordiv", "rmod", "and", "or", "xor", "rand", "ror", "rxor", "lshift", "rshift"),
):
    setattr(
        Range,
        f"__{_name}__",
        lambda self, other, name=_name: getattr(self.positions(), f"__{name}__")(other),
    )


def unify(*operands: Any) -> list[Value]:
    """With one type: numbers of Python have that of the others."""
    values = [each.positions() if isinstance(each, Range) else each for each in operands]
    kinds = {each.kind for each in values if isinstance(each, Value)}
    if len(kinds) > 1:
        raise InvalidArgumentError(f"{' and '.join(sorted(kinds))} do not go together")
    if kinds:
        kind = kinds.pop()
    elif any(isinstance(each, float) for each in values):
        kind = "f32"
    else:
        kind = "i1" if isinstance(values[0], bool) else "index"
    return [each if isinstance(each, Value) else Value(each, kind) for each in values]


def _are_places(place: Any) -> bool:
    """Whether it is several places: a range, or a block of indices."""
    return isinstance(place, Range) or (
        isinstance(place, Value) and place.kind == "index" and place.array.ndim == 1
    )


def _count_of(places: Any) -> int:
    return places.size if isinstance(places, Range) else len(places.array)


class Memory:
    """An array that a kernel reads and writes."""

    def __init__(self, array: Any, kind: str, name: str) -> None:
        self.array, self.kind, self.name = array, kind, name

    def _places(self, key: Any) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """Indices for numpy, which of them are there, and axes that are added."""
        items = key if isinstance(key, tuple) else (key,)
        indices = [each for each in items if each is not None]
        if len(indices) != self.array.ndim:
            raise InvalidArgumentError(
                f"{self.name} has {self.array.ndim} dimensions, not {len(indices)}"
            )
        ranges = [each for each in indices if _are_places(each)]
        there = np.ones([_count_of(each) for each in ranges], np.bool_)
        places = []
        axis = -1
        for each, extent in zip(indices, self.array.shape):
            if not _are_places(each):
                place, inside = np.asarray(int(_plain(each))), np.asarray(True)
            else:
                axis += 1
                shape = [1] * len(ranges)
                shape[axis] = _count_of(each)
                if isinstance(each, Range):
                    place = (each.start + np.arange(each.size)).reshape(shape)
                    inside = (np.arange(each.size) < each.count).reshape(shape)
                else:
                    place, inside = each.array.reshape(shape), np.ones(shape, np.bool_)
                there = there & inside
            if ((place < 0) | (place >= extent))[inside].any():
                raise InvalidArgumentError(
                    f"{self.name} is reached at {place[inside].tolist()} in a dimension "
                    f"of {extent}"
                )
            places.append(np.where(inside, place, 0))
        axes = tuple(
            None if each is None else slice(None)
            for each in items
            if each is None or _are_places(each)
        )
        return tuple(places), there, axes

    def __getitem__(self, key: Any) -> Value:
        places, there, axes = self._places(key)
        if there.size == 0 or 0 in self.array.shape:
            numbers = np.zeros(there.shape, self.array.dtype)
        else:
            numbers = np.where(there, self.array[places], self.array.dtype.type(0))
        if self.kind == "bf16" and numbers.dtype == np.uint16:
            numbers = (np.asarray(numbers, np.uint32) << np.uint32(16)).view(np.float32)
        return Value(numbers[axes], self.kind)

    def __setitem__(self, key: Any, value: Any) -> None:
        places, there, _ = self._places(key)
        if not isinstance(value, Value):
            value = unify(value, Value(0, self.kind))[0]
        if value.kind != self.kind:
            raise InvalidArgumentError(f"{self.name} is of {self.kind}, not {value.kind}")
        numbers = np.broadcast_to(value.array, there.shape)
        if self.kind == "bf16" and self.array.dtype == np.uint16:
            numbers = (np.ascontiguousarray(numbers).view(np.uint32) >> 16).astype(np.uint16)
        shape = np.broadcast_shapes(there.shape, *(each.shape for each in places))
        chosen = tuple(np.broadcast_to(each, shape)[there] for each in places)
        self.array[chosen] = numbers[there]


def _elementwise(function: Callable[..., Any]) -> Callable[..., Value]:
    def compute(*operands: Any) -> Value:
        values = unify(*operands)
        with np.errstate(all="ignore"):
            return Value(function(*(each.array for each in values)), values[0].kind)

    return compute


def _erf(numbers: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(numbers)


def _fma(a: Any, b: Any, c: Any) -> Any:
    # Rounded once, but where 53 bits do not hold the sum.
    return a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)


def _reduction(function: Callable[..., Any]) -> Callable[..., Value]:
    def compute(block: Any, axis: int | None = None) -> Value:
        value = unify(block)[0]
        wide = value.array
        if wide.dtype.kind == "f":
            wide = wide.astype(np.float64)
        return Value(function(wide, axis=axis), value.kind)

    return compute


def _conversion(kind: str) -> Callable[..., Any]:
    def convert(number: Any, unsigned: bool = False) -> Any:
        if not isinstance(number, (Value, Range)):
            return Value(number, kind)
        value = unify(number)[0]
        array = value.array
        if unsigned and array.dtype.kind == "i":
            array = array.view(f"u{array.dtype.itemsize}")
        if array.dtype.kind == "f" and _NUMPY[kind] in (np.int8, np.int16, np.int32):
            array = array.astype(np.int64)
        with np.errstate(all="ignore"):
            return Value(array.astype(_NUMPY[kind]), kind)

    return convert


def _where(condition: Any, yes: Any, no: Any) -> Value:
    values = unify(yes, no)
    return Value(
        np.where(unify(condition)[0].array, values[0].array, values[1].array), values[0].kind
    )


def _loop(*bounds: Any) -> Iterator[int]:
    return iter(builtins.range(*(int(_plain(each)) for each in bounds)))


def _blocks(*bounds: Any) -> Iterator[Range]:
    *limits, size = (int(_plain(each)) for each in bounds)
    first, end = (0, limits[0]) if len(limits) == 1 else limits
    return (Range(start, size, end) for start in builtins.range(first, end, size))


def _block(start: Any, size: Any, end: Any = None) -> Range:
    return Range(int(_plain(start)), int(size), None if end is None else int(_plain(end)))


def _full(number: Any, *sizes: int) -> Value:
    value = unify(number)[0]
    return Value(np.broadcast_to(value.array, sizes), value.kind)


def _size(number: int) -> int:
    return number


def _scratch(convert: Any, *sizes: int, pairs: bool = False) -> Memory:
    del pairs  # How it lies is no matter here.
    kind = convert.__name__
    # What it holds at first is unknown: a kernel must not go by it.
    return Memory(np.full(sizes, 77, _NUMPY[kind]), kind, "scratch")


def _bitcast(number: Value, convert: Any) -> Value:
    kind, array = convert.__name__, number.array
    if number.kind == "bf16":
        array = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "bf16":
        array = (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
        return Value(array, kind)
    return Value(np.ascontiguousarray(array).view(_NUMPY[kind]).reshape(array.shape), kind)


def _without_sign(function: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    """Of integers as though they had none."""

    def compute(a: Any, b: Any) -> Any:
        unsigned = f"u{a.dtype.itemsize}"
        return function(a.view(unsigned), b.view(unsigned)).view(a.dtype)

    return _elementwise(compute)


def _divide(a: Any, b: Any) -> Any:
    """Towards zero, as C does."""
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _settle(value: Any) -> Any:
    """A variable's value: a number that is written out is of f32, or an index."""
    return Value(value, "f32") if isinstance(value, float) else value


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise InvalidArgumentError(f"does not hold: {message}")


class _Settle(ast.NodeTransformer):
    """Makes variables numbers of a type, and of a kernel's other statements what Python
    may run in their place."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.value, ast.Tuple):
            name = ast.Name("_settle", ast.Load())
            node.value = ast.Call(name, [node.value], [])
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """An error of ours, however Python runs."""
        self.generic_visit(node)
        name = ast.Name("_require", ast.Load())
        return ast.Expr(ast.Call(name, [node.test, node.msg or ast.Constant("")], []))

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Prefetching reaches nothing, wherever that would be."""
        return ast.Pass() if isinstance(node.value, ast.Call) else node


def _interleave(lhs: Any, rhs: Any) -> Value:
    values = unify(lhs, rhs)
    pairs = np.stack(np.broadcast_arrays(*(each.array for each in values)), axis=-1)
    return Value(pairs.reshape(*pairs.shape[:-2], -1), values[0].kind)


def _matmul(lhs: Value, rhs: Value, sums: Value | None = None) -> Value:
    """Of rows of several dimensions, too."""
    columns = rhs.array.reshape(-1, rhs.array.shape[-1])
    products = lhs.array.astype(np.float64) @ columns.astype(np.float64)
    return Value(products if sums is None else sums.array + products, "f32")


def _make_words() -> dict[str, Any]:
    words: dict[str, Any] = {
        "range": _loop,
        "unroll": _loop,
        "blocks": _blocks,
        "block": _block,
        "inside": Range.inside,
        "positions": Range.positions,
        "zeros": lambda *sizes: _full(0.0, *sizes),
        "full": _full,
        "size": _size,
        "scratch": _scratch,
        "bitcast": _bitcast,
        "where": _where,
        "interleave": _interleave,
        "matmul": _matmul,
        "broadcast": lambda block, *sizes: Value(
            np.broadcast_to(block.array, sizes), block.kind
        ),
        "inf": float("inf"),
        "nan": float("nan"),
        "fma": _elementwise(_fma),
        "maximum": _elementwise(np.maximum),
        "minimum": _elementwise(np.minimum),
        "rsqrt": _elementwise(lambda x: 1 / np.sqrt(x)),
        "erf": _elementwise(_erf),
        "round": _elementwise(np.rint),
        "divide": _elementwise(_divide),
        "remainder": _elementwise(np.fmod),
        "divide_unsigned": _without_sign(np.floor_divide),
        "remainder_unsigned": _without_sign(np.mod),
        "shift_right_unsigned": _without_sign(np.right_shift),
        "_settle": _settle,
        "_require": _require,
    }
    for name in ("exp", "exp2", "log", "log2", "sqrt", "tanh", "sin", "cos", "abs"):
        words[name] = _elementwise(getattr(np, name))
    for name in ("floor", "ceil", "trunc"):
        words[name] = _elementwise(getattr(np, name))
    for name in ("sum", "prod", "max", "min"):
        words[name] = _reduction(getattr(np, name))
    for kind in _NUMPY:
        words[kind] = _conversion(kind)
        words[kind].__name__ = kind
    return words


def interpret(
    text: str, name: str, types: Mapping[str, str], sizes: Mapping[str, int], arguments: Any
) -> None:
    """Runs the kernel `name` of `text` with arguments that are checked: memory and
    numbers in their order, each with its type. `types` and `sizes` are what its names
    are."""
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef) and function.name == name:
            break
    else:
        raise InvalidArgumentError(f"there is no kernel {name}")
    function.decorator_list = []
    kept = []
    for argument in function.args.args:
        annotation = argument.annotation
        argument.annotation = None
        word = annotation.func.id if isinstance(annotation, ast.Call) else None  # type: ignore[attr-defined]
        if word in ("tune", "type") or (
            isinstance(annotation, ast.Name) and annotation.id == "constant"
        ):
            continue
        kept.append(argument)
    function.args.args, function.args.defaults = kept, []
    words = _make_words()
    for alias, kind in types.items():
        words[alias] = words[kind]
    words.update(sizes)
    function = _Settle().visit(function)
    module = ast.fix_missing_locations(ast.Module([function], []))
    exec(compile(module, f"<kernel {name}>", "exec"), words)
    words[name](
        *(
            Memory(value, kind, argument.arg)
            if isinstance(value, np.ndarray)
            else value if kind == "index" else Value(value, kind)
            for argument, (value, kind) in zip(kept, arguments)
        )
    )
