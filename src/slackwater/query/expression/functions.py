"""The functions of expressions, for those that are built with `col`; `abs` is Python's own.

They are in `sw.functions`, beside the aggregates. What text calls `min` and `max` is `least` and
`greatest` here, as in SQL: `min` and `max` are aggregates.

>>> from slackwater.query.expression.operators import col
>>> sqrt(col("a.x")) < least(col("b.x"), 5)
Expression('sqrt(a.x) < min(b.x, 5)')
"""

from __future__ import annotations

from slackwater.errors import QueryError
from slackwater.query.expression.nodes import Call, Column
from slackwater.query.expression.operators import Expression, Operand, node_of
from slackwater.query.expression.printer import text_of


def sqrt(x: Operand) -> Expression:
    """The square root."""
    return _call("sqrt", x)


def exp(x: Operand) -> Expression:
    """The number e to the power of `x`."""
    return _call("exp", x)


def log(x: Operand) -> Expression:
    """The natural logarithm."""
    return _call("log", x)


def floor(x: Operand) -> Expression:
    """The largest whole number that is not above `x`."""
    return _call("floor", x)


def ceil(x: Operand) -> Expression:
    """The smallest whole number that is not below `x`."""
    return _call("ceil", x)


def sin(x: Operand) -> Expression:
    """The sine."""
    return _call("sin", x)


def cos(x: Operand) -> Expression:
    """The cosine of an angle; that of two vectors is `cosine`."""
    return _call("cos", x)


def tan(x: Operand) -> Expression:
    """The tangent."""
    return _call("tan", x)


def atan2(y: Operand, x: Operand) -> Expression:
    """The angle of the point (x, y)."""
    return _call("atan2", y, x)


def hypot(x: Operand, y: Operand) -> Expression:
    """The distance of the point (x, y) from the origin."""
    return _call("hypot", x, y)


def dist(x1: Operand, y1: Operand, x2: Operand, y2: Operand) -> Expression:
    """The distance of the points (x1, y1) and (x2, y2)."""
    return _call("dist", x1, y1, x2, y2)


def least(x: Operand, *others: Operand) -> Expression:
    """The smallest of several values; null if one is."""
    return _call("min", x, *others)


def greatest(x: Operand, *others: Operand) -> Expression:
    """The largest of several values; null if one is."""
    return _call("max", x, *others)


def dot(left: Expression, right: Expression) -> Expression:
    """The dot product of two columns of vectors."""
    return _of_vectors("dot", left, right)


def cosine(left: Expression, right: Expression) -> Expression:
    """The cosine of the angle of two columns of vectors."""
    return _of_vectors("cosine", left, right)


def l2(left: Expression, right: Expression) -> Expression:
    """The Euclidean distance of two columns of vectors."""
    return _of_vectors("l2", left, right)


def _call(function: str, *arguments: Operand) -> Expression:
    return Expression(Call(function, tuple(map(node_of, arguments))))


def _of_vectors(function: str, *arguments: Expression) -> Expression:
    for argument in map(node_of, arguments):
        if not isinstance(argument, Column):
            msg = f"{function} takes columns of vectors, stream.column, got {text_of(argument)}"
            raise QueryError(msg)
    return _call(function, *arguments)
