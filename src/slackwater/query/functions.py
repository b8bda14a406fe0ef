"""Functions as users write them: aggregates over the events of a window, and of expressions.

They have the names that SQL gives them, so some shadow those of Python: import the module, not its
names.

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
    "max",
    "last",
    "least",
    "log",
    "sin",
    "min",
    "sqrt",
    "stddev",
    "tan",
    "sum",
]

Function = Literal["count", "sum", "avg", "min", "max", "stddev", "first", "last"]


@dataclass(frozen=True)
class Aggregate:
    """A function of the values of a column in a window; nulls do not take part.

    Parameters
    ----------
    function
        ``"count"``, ``"sum"``, ``"avg"``, ``"min"``, ``"max"``, ``"stddev"``, ``"first"`` or
        ``"last"``.
    column
        The column whose values it takes; None counts events.

    Raises
    ------
    QueryError
        For another function, or if a function other than ``"count"`` has no column.

    Examples
    --------
    >>> Aggregate("avg", "price") == avg("price")
    True
    """

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
    """Count events, or values that are not null.

    Parameters
    ----------
    column
        None: all events. Otherwise those with a value in this column.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> count()
    Aggregate(function='count', column=None)
    """
    return Aggregate("count", column)


def sum(column: str) -> Aggregate:
    """The sum; null if no event has a value.

    Parameters
    ----------
    column
        A column of numbers.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> sum("amount")
    Aggregate(function='sum', column='amount')
    """
    return Aggregate("sum", column)


def avg(column: str) -> Aggregate:
    """The mean; null if no event has a value.

    Parameters
    ----------
    column
        A column of numbers.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> avg("price")
    Aggregate(function='avg', column='price')
    """
    return Aggregate("avg", column)


def min(column: str) -> Aggregate:
    """The smallest value; NaN is larger than every number.

    Parameters
    ----------
    column
        A column of numbers.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> min("price")
    Aggregate(function='min', column='price')
    """
    return Aggregate("min", column)


def max(column: str) -> Aggregate:
    """The largest value; NaN is larger than every number.

    Parameters
    ----------
    column
        A column of numbers.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> max("price")
    Aggregate(function='max', column='price')
    """
    return Aggregate("max", column)


def stddev(column: str) -> Aggregate:
    """The standard deviation of the sample; null for less than two values.

    Parameters
    ----------
    column
        A column of numbers.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> stddev("price")
    Aggregate(function='stddev', column='price')
    """
    return Aggregate("stddev", column)


def first(column: str) -> Aggregate:
    """The value of the first event of the window, null if that is null.

    Parameters
    ----------
    column
        A column of any type.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> first("symbol")
    Aggregate(function='first', column='symbol')
    """
    return Aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value of the last event of the window, null if that is null.

    Parameters
    ----------
    column
        A column of any type.

    Returns
    -------
    Aggregate
        A value of ``select=``.

    Examples
    --------
    >>> last("symbol")
    Aggregate(function='last', column='symbol')
    """
    return Aggregate("last", column)
