"""Expressions that are built with Python's operators: ``abs(col("a.x") - col("b.x")) < 1``."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, NoReturn

from slackwater.errors import QueryError
from slackwater.query.expression.limits import LARGEST, check_size
from slackwater.query.expression.moments import micros
from slackwater.query.expression.names import QUOTED, unquoted
from slackwater.query.expression.nodes import (
    And,
    Binary,
    Call,
    Column,
    Compare,
    In,
    IsNull,
    Literal,
    Moment,
    Negate,
    Node,
    Not,
    Or,
    literal,
)
from slackwater.query.expression.parser import parse
from slackwater.query.expression.printer import text_of


def _binary(operator: str) -> Callable[[Expression, Operand], Expression]:
    def apply(self: Expression, other: Operand) -> Expression:
        return Expression(Binary(operator, self.tree, node_of(other)))

    return apply


def _reflected(operator: str) -> Callable[[Expression, Operand], Expression]:
    def apply(self: Expression, other: Operand) -> Expression:
        return Expression(Binary(operator, node_of(other), self.tree))

    return apply


def _comparison(operator: str) -> Callable[[Expression, Any], Any]:
    def apply(self: Expression, other: Any) -> Any:
        return Expression(Compare((self.tree, node_of(other)), (operator,)))

    return apply


class Expression:
    """A condition or a column of results, built from `col` with Python's operators.

    ``+ - * / // % **``, comparisons and `abs` are those of numbers; ``& | ~`` are and, or, not.
    These bind tighter than comparisons: ``(col("a.x") > 0) & (col("b.x") > 0)``. Other functions
    are in `sw.functions`.

    Examples
    --------
    >>> abs(col("a.x") - col("b.x")) < 1
    Expression('abs(a.x - b.x) < 1')
    """

    __slots__ = ("tree",)
    __array_ufunc__ = None  # numpy's numbers leave operators to us
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, tree: Node) -> None:
        check_size(tree, "an expression", "an expression built with operators")
        self.tree = tree

    def __repr__(self) -> str:
        return f"{type(self).__name__}({text_of(self.tree)!r})"

    def __str__(self) -> str:
        return text_of(self.tree)

    def __bool__(self) -> NoReturn:
        msg = (
            f"an expression is true or false only for rows, got {self!r} where Python needs to "
            "know it now; write & | ~ for and, or, not, with parentheses around comparisons, "
            ".between(low, high) for a chain, and functions.least, functions.greatest for min, max"
        )
        raise QueryError(msg)

    __add__, __radd__ = _binary("+"), _reflected("+")
    __sub__, __rsub__ = _binary("-"), _reflected("-")
    __mul__, __rmul__ = _binary("*"), _reflected("*")
    __truediv__, __rtruediv__ = _binary("/"), _reflected("/")
    __floordiv__, __rfloordiv__ = _binary("//"), _reflected("//")
    __mod__, __rmod__ = _binary("%"), _reflected("%")
    __pow__, __rpow__ = _binary("**"), _reflected("**")
    __eq__, __ne__ = _comparison("=="), _comparison("!=")
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def __neg__(self) -> Expression:
        return Expression(Negate(self.tree))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return Expression(Call("abs", (self.tree,)))

    def __and__(self, other: Operand) -> Expression:
        return Expression(And((self.tree, node_of(other))))

    def __rand__(self, other: Operand) -> Expression:
        return Expression(And((node_of(other), self.tree)))

    def __or__(self, other: Operand) -> Expression:
        return Expression(Or((self.tree, node_of(other))))

    def __ror__(self, other: Operand) -> Expression:
        return Expression(Or((node_of(other), self.tree)))

    def __invert__(self) -> Expression:
        return Expression(Not(self.tree))

    def between(self, low: Operand, high: Operand) -> Expression:
        """Whether it is at least `low` and at most `high`.

        Examples
        --------
        >>> col("a.x").between(0, col("b.x"))
        Expression('0 <= a.x <= b.x')
        """
        sides = (node_of(low), self.tree, node_of(high))
        return Expression(Compare(sides, ("<=", "<=")))

    def isin(self, *options: Operand) -> Expression:
        """Whether it equals one of several values.

        Examples
        --------
        >>> col("a.venue").isin("X", "Y")
        Expression("a.venue in ('X', 'Y')")
        """
        return Expression(In(self.tree, tuple(map(node_of, options))))

    def is_null(self) -> Expression:
        """Whether it is null; never null itself.

        Examples
        --------
        >>> ~col("a.x").is_null()
        Expression('a.x is not null')
        """
        return Expression(IsNull(self.tree))

    def like(self, pattern: str) -> Expression:
        """Whether a text has this pattern: ``%`` stands for any signs, ``_`` for one.

        Examples
        --------
        >>> col("a.symbol").like("X%")
        Expression("a.symbol like 'X%'")
        """
        return Expression(Call("like", (self.tree, Literal(pattern))))


Operand = Expression | bool | int | float | str | date | timedelta  # a datetime is a date


def col(stream: str, name: str | None = None) -> Expression:
    """A column of a stream, for the `where` and `select` of a join.

    Parameters
    ----------
    stream
        The column as ``"stream.column"``; or, with `name`, the stream.
    name
        The column, whatever it is called: ``col("quotes", "bid price")``.

    Returns
    -------
    Expression
        To be combined with numbers and others by Python's operators.

    Raises
    ------
    QueryError
        It is not the name of a column.

    Examples
    --------
    >>> col("quotes.price") - col("quotes", "bid price") > 0.5
    Expression('quotes.price - quotes.`bid price` > 0.5')
    """
    if isinstance(stream, str) and isinstance(name, str) and stream.isidentifier() and name:
        return Expression(Column(stream, name))
    if isinstance(stream, str) and name is None:
        own, _, rest = stream.partition(".")
        if own.isidentifier() and (rest.isidentifier() or QUOTED.fullmatch(rest)):
            return Expression(Column(own, unquoted(rest)))
    given = repr(stream) if name is None else f"{stream!r}, {name!r}"
    msg = (
        "col takes 'stream.column', or a stream and the name of its column such as "
        f"col('quotes', 'bid price'), got {given}"
    )
    raise QueryError(msg)


def node_of(operand: Any) -> Node:
    """The tree of an operand: an expression, a number, true or false, a text or a time."""
    if isinstance(operand, Expression):
        return operand.tree
    value = operand.item() if type(operand).__module__ == "numpy" else operand
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, timedelta):
        length = Moment("interval", abs(value) // timedelta(microseconds=1))
        return length if value >= timedelta(0) else Negate(length)
    if isinstance(value, datetime):
        return micros("timestamp", value)
    if isinstance(value, date):
        return micros("date", datetime(value.year, value.month, value.day, tzinfo=UTC))
    if isinstance(value, bool) or (isinstance(value, float) and not math.isnan(value)):
        return literal(value)
    if isinstance(value, numbers.Integral):
        if abs(int(value)) < LARGEST:
            return literal(int(value))
        msg = f"an expression may hold whole numbers below 2**63, got {value}"
        raise QueryError(msg)
    msg = f"an expression is made of expressions, numbers, texts and times, got {operand!r}"
    raise QueryError(msg)


def canonical(given: str | Expression, what: str) -> str:
    """The canonical text of an expression, however it was written; raises what is wrong with it."""
    text = text_of(given.tree) if isinstance(given, Expression) else given
    return text_of(parse(text, what))
