"""Functions as users write them: aggregates over the events of a window, and those of expressions.

>>> avg("serviceTime")
Aggregate(function='avg', column='serviceTime')
>>> count()
Aggregate(function='count', column=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.expression.functions import (
    atan2,
    ceil,
    cos,
    cosine,
    dist,
    dot,
    exp,
    floor,
    greatest,
    hypot,
    l2,
    least,
    log,
    sin,
    sqrt,
    tan,
)

__all__ = [
    "Aggregate",
    "Function",
    "atan2",
    "avg",
    "ceil",
    "cos",
    "cosine",
    "count",
    "dist",
    "dot",
    "exp",
    "first",
    "floor",
    "greatest",
    "hypot",
    "l2",
    "largest",
    "last",
    "least",
    "log",
    "sin",
    "smallest",
    "sqrt",
    "stddev",
    "tan",
    "total",
]

Function = Literal["count", "sum", "avg", "min", "max", "stddev", "first", "last"]


@dataclass(frozen=True)
class Aggregate:
    """A function of the values of a column in a window; nulls do not take part."""

    function: Function
    column: str | None = None

    def __post_init__(self) -> None:
        if self.function not in get_args(Function):
            listed = ", ".join(get_args(Function))
            msg = f"an aggregate must be one of {listed}, got {self.function!r}"
            raise QueryError(msg)
        named = isinstance(self.column, str) and bool(self.column)
        if not named and not (self.function == "count" and self.column is None):
            msg = f"{self.function} needs the name of a column, got {self.column!r}"
            raise QueryError(msg)


def count(column: str | None = None) -> Aggregate:
    """How many events there are, or how many have a value in `column`."""
    return Aggregate("count", column)


def total(column: str) -> Aggregate:
    """The sum; null if no event has a value."""
    return Aggregate("sum", column)


def avg(column: str) -> Aggregate:
    """The mean."""
    return Aggregate("avg", column)


def smallest(column: str) -> Aggregate:
    """The smallest value; NaN is larger than every number."""
    return Aggregate("min", column)


def largest(column: str) -> Aggregate:
    """The largest value; NaN is larger than every number."""
    return Aggregate("max", column)


def stddev(column: str) -> Aggregate:
    """The standard deviation of the sample; null for less than two values."""
    return Aggregate("stddev", column)


def first(column: str) -> Aggregate:
    """The value of the first event of the window, null if that is null."""
    return Aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value of the last event of the window, null if that is null."""
    return Aggregate("last", column)
