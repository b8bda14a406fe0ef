"""The numba back end of expressions: a tree as source that is plain Python and compiles.

SQL's conditions have three values. Each becomes two sources of two values: where it is true, and
where it is false; elsewhere it is null. Each value has a source that says whether it is null, which
is looked at before the value. Most are never null, and then nothing is left of this.

Numbers are Python's, so that it also runs without numba.

>>> from slackwater.query.expression import Column, parse
>>> source_of(parse("abs(a.x - 1) < 2 or not a.x"), {Column("a", "x"): "v0"})
'((abs((v0 - 1)) < 2) or (v0 == 0))'
>>> Source({Column("a", "x"): "v0"}, {Column("a", "x"): "n0"}).true(parse("a.x < 2 or a.x is null"))
'(((not n0) and (v0 < 2)) or n0)'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numba

from slackwater.errors import QueryError
from slackwater.kernels import vectors as kernels
from slackwater.query.expression import (
    And,
    Binary,
    Call,
    Case,
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
    VectorCall,
    is_condition,
    text_of,
    vector_call,
)

_TRUE, _FALSE = "True", "False"
_LONGEST = 50_000  # characters; where nulls are tested, sources grow faster than trees


def _bounded(make: Callable[[Source, Node], str]) -> Callable[[Source, Node], str]:
    """Refuse a tree whose source would be too long to be compiled."""

    def made(self: Source, node: Node) -> str:
        found = make(self, node)
        if len(found) > _LONGEST:
            msg = f"where is too large to be compiled: {text_of(node)[:60]}…"
            raise QueryError(msg)
        return found

    return made


def _below(x: Any, y: Any) -> Any:
    """X < y; NaN is above all other numbers."""
    return x < y or (y != y and x == x)  # noqa: PLR0124


def _same(x: Any, y: Any) -> Any:
    return x == y or (x != x and y != y)  # noqa: PLR0124


def _div(x: Any, y: Any) -> Any:
    """X / y, rounded towards 0."""
    floor = x // y
    return floor + 1 if floor < 0 and floor * y != x else floor


def _mod(x: Any, y: Any) -> Any:
    """The rest, with the sign of x."""
    rest = x % y
    return rest - y if rest != 0 and (rest < 0) != (x < 0) else rest


def _min_of(x: Any, y: Any) -> Any:
    return y if y < x or x != x else x  # noqa: PLR0124


def _max_of(x: Any, y: Any) -> Any:
    return y if x < y or y != y else x  # noqa: PLR0124


def _known(choose: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The choice between values of which one may be null; the flags say which."""

    def chosen(x: Any, no_x: bool, y: Any, no_y: bool) -> Any:
        if no_x:
            return y
        return x if no_y else choose(x, y)

    return numba.njit(chosen)  # type: ignore[no-any-return]


_MIN, _MAX = numba.njit(_min_of), numba.njit(_max_of)

# What the source calls, besides Python's own abs.
LIBRARY: Mapping[str, Any] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "floor": math.floor, "ceil": math.ceil,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan2": math.atan2, "hypot": math.hypot,
    "dist": numba.njit(lambda x, y, u, v: math.sqrt((x - u) ** 2 + (y - v) ** 2)),
    "below": numba.njit(_below), "same": numba.njit(_same),
    "min_of": _MIN, "max_of": _MAX, "min_known": _known(_MIN), "max_known": _known(_MAX),
    "truncated": numba.njit(_div, error_model="python"),
    "remainder": numba.njit(_mod, error_model="python"),
    "dot": kernels.dot, "cosine": kernels.cosine, "l2": kernels.l2,
}  # fmt: skip
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def source_of(node: Node, sources: Mapping[Column | VectorCall, str]) -> str:
    """The source of a checked tree whose columns are never null."""
    source = Source(sources, {})
    return source.true(node) if is_condition(node) else source.value(node)


class Source:
    """The sources of trees.

    Parameters
    ----------
    values
        Those of columns and functions of vectors.
    nulls
        Whether a column is null, for those that may be.
    """

    def __init__(
        self, values: Mapping[Column | VectorCall, str], nulls: Mapping[Column, str]
    ) -> None:
        self._values = values
        self._nulls = nulls

    # ---- conditions

    @_bounded
    def true(self, node: Node) -> str:
        """Where a condition is true."""
        match node:
            case Literal(bool(value)):
                return str(value)
            case Not(operand):
                return self.false(operand)
            case And(operands):
                return _all(map(self.true, operands))
            case Or(operands):
                return _any(map(self.true, operands))
            case IsNull(operand):
                return self.null(operand)
            case Compare():
                return _all(self._pairs(node, is_true=True))
            case In(operand, options):
                return _any(self.true(Compare((operand, each), ("==",))) for each in options)
        return _all([_not(self.null(node)), f"({self.value(node)} != 0)"])

    @_bounded
    def false(self, node: Node) -> str:
        """Where a condition is false."""
        match node:
            case Literal(bool(value)):
                return str(not value)
            case Not(operand):
                return self.true(operand)
            case And(operands):
                return _any(map(self.false, operands))
            case Or(operands):
                return _all(map(self.false, operands))
            case IsNull(operand):
                return _not(self.null(operand))
            case Compare():
                return _any(self._pairs(node, is_true=False))
            case In(operand, options):
                return _all(self.false(Compare((operand, each), ("==",))) for each in options)
        return _all([_not(self.null(node)), f"({self.value(node)} == 0)"])

    def _pairs(self, node: Compare, *, is_true: bool) -> list[str]:
        pairs = zip(node.operators, pairwise(node.operands), strict=True)
        return [
            _all(
                [
                    *(_not(self.null(side)) for side in pair),
                    self._compared(sign if is_true else _OPPOSITE[sign], *pair),
                ]
            )
            for sign, pair in pairs
        ]

    def _compared(self, sign: str, left: Node, right: Node) -> str:
        """A comparison of values that are not null, NaN above all others."""
        x, y = self.value(left), self.value(right)
        if vector_call(left) or vector_call(right):  # of NaN components nothing is known
            return f"({x} {sign} {y})"
        if isinstance(left, Literal | Moment):
            x, y, sign, right = y, x, _TURNED[sign], left
        if isinstance(right, Literal | Moment):  # no NaN: below it a comparison is Python's
            return f"(not ({x} {_OPPOSITE[sign]} {y}))" if sign in (">", ">=") else f"({x} {sign} {y})"  # fmt: skip  # noqa: E501
        return {
            "==": f"same({x}, {y})", "!=": f"(not same({x}, {y}))",
            "<": f"below({x}, {y})", ">": f"below({y}, {x})",
            "<=": f"(not below({y}, {x}))", ">=": f"(not below({x}, {y}))",
        }[sign]  # fmt: skip

    # ---- values

    @_bounded
    def null(self, node: Node) -> str:
        """Where a value is null."""
        call = vector_call(node)
        if call is not None:
            return _FALSE
        match node:
            case Column():
                return self._nulls.get(node, _FALSE)
            case Literal(value):
                return _TRUE if value is None else _FALSE
            case Moment() | IsNull():
                return _FALSE
            case Negate(operand):
                return self.null(operand)
            case Binary(_, left, right):
                return _any([self.null(left), self.null(right)])
            case Call("coalesce" | "min" | "max", arguments):
                return _all(map(self.null, arguments))
            case Call("log", (argument,)):
                return _any([self.null(argument), f"({self.value(argument)} <= 0)"])
            case Call(_, arguments):
                return _any(map(self.null, arguments))
            case Case(branches, otherwise):
                return self._chosen(branches, self.null, self.null(otherwise))
        return _all([_not(self.true(node)), _not(self.false(node))])  # a condition

    @_bounded
    def value(self, node: Node) -> str:
        """The value, where it is not null."""
        call = vector_call(node)
        if call is not None:
            return self._values[call]
        match node:
            case Column():
                return self._values[node]
            case Literal(value):
                if value is None:
                    return "0"
                return "1e309" if value == math.inf else repr(value)
            case Moment(_, micros):
                return repr(micros)
            case Negate(operand):
                return f"(-{self.value(operand)})"
            case Binary("div", left, right):
                return f"truncated({self.value(left)}, {self.value(right)})"
            case Binary("%", left, right):
                return f"remainder({self.value(left)}, {self.value(right)})"
            case Binary("**", left, right):
                return f"(float({self.value(left)}) ** float({self.value(right)}))"
            case Binary(operator, left, right):
                return f"({self.value(left)} {operator} {self.value(right)})"
            case Case(branches, otherwise):
                return self._chosen(branches, self.value, self.value(otherwise))
            case Call("coalesce", arguments):
                return self._first(arguments)
            case Call("min" | "max" as function, arguments):
                return self._extreme(function, arguments)
            case Call(function, arguments):
                return f"{function}({', '.join(map(self.value, arguments))})"
        return self.true(node)  # a condition as 0 or 1

    def _chosen(self, branches: Any, of: Any, otherwise: str) -> str:
        found = otherwise
        for test, value in reversed(branches):
            then = of(value)
            found = then if then == found else f"({then} if {self.true(test)} else {found})"
        return found

    def _first(self, arguments: tuple[Node, ...]) -> str:
        *others, found = map(self.value, arguments)
        for argument, value in zip(reversed(arguments[:-1]), reversed(others), strict=True):
            is_null = self.null(argument)
            found = value if is_null == _FALSE else f"({found} if {is_null} else {value})"
        return found

    def _extreme(self, function: str, arguments: tuple[Node, ...]) -> str:
        """The least or greatest of those that are not null."""
        found, is_null = self.value(arguments[0]), self.null(arguments[0])
        for argument in arguments[1:]:
            value, other = self.value(argument), self.null(argument)
            if is_null == other == _FALSE:
                found = f"{function}_of({found}, {value})"
                continue
            guarded = value if other == _FALSE else f"(0 if {other} else {value})"
            found = f"{function}_known({found}, {is_null}, {guarded}, {other})"
            is_null = _all([is_null, other])
        return found


def _all(sources: Iterable[str]) -> str:
    known = [source for source in sources if source != _TRUE]
    if _FALSE in known:
        return _FALSE
    return _connected(" and ", known) if known else _TRUE


def _any(sources: Iterable[str]) -> str:
    known = [source for source in sources if source != _FALSE]
    if _TRUE in known:
        return _TRUE
    return _connected(" or ", known) if known else _FALSE


def _connected(sign: str, sources: list[str]) -> str:
    return sources[0] if len(sources) == 1 else f"({sign.join(sources)})"


def _not(source: str) -> str:
    return {_TRUE: _FALSE, _FALSE: _TRUE}.get(source) or f"(not {source})"
