"""Operators and functions of expressions on Arrow arrays and scalars; Spark's answer is theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.errors import DataError
from slackwater.joins.column_types import is_number, is_time
from slackwater.query.expression import VECTOR_FUNCTIONS

MICROS = pa.timestamp("us", "UTC")
LENGTH = pa.duration("us")

# ---- types


def number(value: Any) -> Any:
    """The value, booleans as 0 and 1."""
    return value.cast(pa.int64()) if pa.types.is_boolean(value.type) else value


def truth(value: Any) -> Any:
    """The value, numbers as whether they are not 0."""
    if pa.types.is_null(value.type):
        return value.cast(pa.bool_())
    is_truth = pa.types.is_boolean(value.type) or not is_number(value.type)
    return value if is_truth else pc.not_equal(value, 0)


def floats(value: Any) -> Any:
    """The value as a 64-bit float."""
    return value.cast(pa.float64())


def micros(value: Any) -> Any:
    """A time or an interval as whole microseconds; without a zone it is UTC."""
    kind = value.type
    if pa.types.is_duration(kind):
        return value.cast(LENGTH, safe=False).cast(pa.int64())
    if is_time(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return value.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return value.cast(pa.int64())  # null


def aligned(values: list[Any]) -> list[Any]:
    """Values of types that can be compared and chosen from: nulls and numbers as the others are."""
    kinds = [value.type for value in values if not pa.types.is_null(value.type)]
    if not kinds or all(kind == kinds[0] for kind in kinds):
        kind = kinds[0] if kinds else pa.null()
        return [value.cast(kind) for value in values]
    if all(map(is_time, kinds)):
        return [micros(value).cast(MICROS) for value in values]
    if all(map(pa.types.is_integer, kinds)) or all(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) for kind in kinds
    ):
        return [value.cast(pa.int64()) for value in values]
    if all(map(is_number, kinds)):
        return [floats(number(value)) for value in values]
    texts = all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds)
    return [value.cast(pa.large_string() if texts else kinds[0]) for value in values]


# ---- comparisons: NaN equals itself and is above all other numbers


def compared(sign: str, left: Any, right: Any) -> Any:
    """A comparison."""
    left, right = aligned([number(left), number(right)])
    if is_time(left.type) or pa.types.is_duration(left.type):
        left, right = micros(left), micros(right)
    found = _COMPARISONS[sign](left, right)
    if not pa.types.is_floating(left.type):
        return found
    nan, other = pc.is_nan(left), pc.is_nan(right)
    strange = {
        "==": pc.and_(nan, other),
        "!=": pc.xor(nan, other),
        "<": pc.and_not(other, nan),
        "<=": other,
        ">": pc.and_not(nan, other),
        ">=": nan,
    }[sign]
    return pc.if_else(pc.or_(nan, other), strange, found)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


# ---- arithmetic


def computed(sign: str, left: Any, right: Any) -> Any:
    """The arithmetic of numbers, times and intervals."""
    if any(is_time(v.type) or pa.types.is_duration(v.type) for v in (left, right)):
        return _of_times(sign, left, right)
    left, right = number(left), number(right)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        left, right = aligned([left, right])
        if pa.types.is_null(left.type):
            return left.cast(pa.int64())
    return _ARITHMETIC[sign](left, right)


def _of_times(sign: str, left: Any, right: Any) -> Any:
    operator = pc.add_checked if sign == "+" else pc.subtract_checked
    found = operator(micros(left), micros(right))
    times = [value.type for value in (left, right) if is_time(value.type)]
    if len(times) != 1:
        return found.cast(LENGTH)
    zone = times[0].tz if pa.types.is_timestamp(times[0]) else None
    return found.cast(pa.timestamp("us", zone))


def _both_whole(left: Any, right: Any) -> bool:
    return bool(pa.types.is_integer(left.type) and pa.types.is_integer(right.type))


def _divide(left: Any, right: Any) -> Any:
    left, right = floats(left), floats(right)
    is_zero = pc.and_(pc.is_valid(left), pc.equal(right, 0.0))
    if pc.any(is_zero).as_py() if not isinstance(is_zero, pa.Scalar) else is_zero.as_py():
        msg = "divide by zero"
        raise pa.ArrowInvalid(msg)
    return pc.divide(left, right)


def _truncated(left: Any, right: Any) -> Any:
    if _both_whole(left, right):
        return pc.divide_checked(left, right)
    return pc.trunc(_divide(left, right))


def _remainder(left: Any, right: Any) -> Any:
    whole = _truncated(left, right)
    if not _both_whole(left, right):
        left, right = floats(left), floats(right)
    return pc.subtract(left, pc.multiply(whole, right))


def _floored(left: Any, right: Any) -> Any:
    if not _both_whole(left, right):
        return pc.floor(_divide(left, right))
    rest = _remainder(left, right)
    is_below = pc.and_(pc.not_equal(rest, 0), pc.xor(pc.less(rest, 0), pc.less(right, 0)))
    return pc.subtract(_truncated(left, right), is_below.cast(pa.int64()))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _divide,
    "//": _floored,
    "%": _remainder,
    "div": _truncated,
    "**": lambda left, right: pc.power(floats(left), floats(right)),
}


# ---- functions


def _extreme(sign: str) -> Callable[..., Any]:
    """The least or the greatest of several values; nulls are left out."""

    def choose(one: Any, other: Any) -> Any:
        is_better = pc.coalesce(compared(sign, other, one), pc.is_null(one))
        return pc.if_else(is_better, other, one)

    return lambda *values: reduce(choose, aligned([number(value) for value in values]))


def _log(x: Any) -> Any:
    x = floats(x)
    return pc.ln(pc.if_else(pc.less_equal(x, 0.0), pa.scalar(None, pa.float64()), x))


def _hypot(x: Any, y: Any) -> Any:
    return pc.sqrt(pc.add(*(pc.multiply(floats(side), floats(side)) for side in (x, y))))


def _dist(x: Any, y: Any, u: Any, v: Any) -> Any:
    return _hypot(pc.subtract(floats(x), floats(u)), pc.subtract(floats(y), floats(v)))


def _part(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part of a time, by UTC."""
    return lambda time: function(micros(time).cast(pa.timestamp("us")))


def _text(value: Any) -> Any:
    return value.cast(pa.string()) if not pa.types.is_large_string(value.type) else value


def _concat(*texts: Any) -> Any:
    empty = pa.scalar("", texts[0].type if not pa.types.is_null(texts[0].type) else pa.string())
    return pc.binary_join_element_wise(*aligned([*texts, empty]), null_handling="emit_null")


def _substring(text: Any, first: Any, length: Any) -> Any:
    start = first.as_py() - 1
    return pc.utf8_slice_codeunits(_text(text), start, start + length.as_py())


def _of_pattern(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A test of a text with a pattern that is the same in all rows."""

    def compute(text: Any, pattern: Any) -> Any:
        if pattern.as_py() is None:
            return pc.and_(truth(pa.scalar(None)), pc.is_null(text))
        return function(_text(text), pattern.as_py())

    return compute


def _of_vectors(function: str) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        a, b = _matrix(left, function), _matrix(right, function)
        if a.shape != b.shape and len(a):
            msg = f"select: {function} takes two vectors of the same length, got "
            raise DataError(msg + f"{a.shape[1]} and {b.shape[1]}")
        with np.errstate(invalid="ignore", divide="ignore"):
            return pa.array(_VECTORS[function](a, b))

    return compute


def _matrix(column: Any, function: str) -> Any:
    lengths = pc.unique(pc.list_value_length(column))
    values = pc.list_flatten(column)
    if column.null_count or values.null_count or len(lengths) > 1:
        msg = f"select: {function} takes vectors of one length without nulls"
        raise DataError(msg)
    width = lengths[0].as_py() if len(lengths) else 0
    return values.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(len(column), width)


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=1)


def _cosine(a: Any, b: Any) -> Any:
    norms = np.sqrt(_dot(a, a) * _dot(b, b))
    return np.divide(_dot(a, b), norms, out=np.zeros(len(norms)), where=norms != 0)


_VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "dot": _dot,
    "cosine": _cosine,
    "l2": lambda a, b: np.sqrt(_dot(a - b, a - b)),
}
CALLS: dict[str, Callable[..., Any]] = {
    "abs": lambda x: pc.abs_checked(number(x)),
    "min": _extreme("<"),
    "max": _extreme(">"),
    "coalesce": lambda *values: pc.coalesce(*aligned(list(values))),
    "dist": _dist,
    "hypot": _hypot,
    "sqrt": lambda x: pc.sqrt(floats(x)),
    "exp": lambda x: pc.exp(floats(x)),
    "log": _log,
    "floor": lambda x: pc.floor(floats(x)).cast(pa.int64()),
    "ceil": lambda x: pc.ceil(floats(x)).cast(pa.int64()),
    "sin": lambda x: pc.sin(floats(x)),
    "cos": lambda x: pc.cos(floats(x)),
    "tan": lambda x: pc.tan(floats(x)),
    "atan2": lambda y, x: pc.atan2(floats(y), floats(x)),
    "lower": lambda text: pc.utf8_lower(_text(text)),
    "upper": lambda text: pc.utf8_upper(_text(text)),
    "trim": lambda text: pc.utf8_trim(_text(text), " "),
    "length": lambda text: pc.utf8_length(_text(text)).cast(pa.int32()),
    "concat": _concat,
    "substring": _substring,
    "startswith": _of_pattern(pc.starts_with),
    "endswith": _of_pattern(pc.ends_with),
    "contains": _of_pattern(pc.match_substring),
    "like": _of_pattern(pc.match_like),
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    **{name: _of_vectors(name) for name in VECTOR_FUNCTIONS},
}
