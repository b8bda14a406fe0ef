"""The type of each node, given those of the columns.

>>> from slackwater.query.expression.parser import parse
>>> type_of(parse("a.x + 1"), lambda column: Type.INTEGER)
<Type.INTEGER: 'whole number'>
>>> type_of(parse("abs(a.x / 2) < b.x"), lambda column: Type.INTEGER)
<Type.BOOLEAN: 'true or false'>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NoReturn

from slackwater.errors import QueryError
from slackwater.query.expression.nodes import (
    TEXT_FUNCTIONS,
    TIME_FUNCTIONS,
    VECTOR_FUNCTIONS,
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
    children,
)
from slackwater.query.expression.printer import text_of


class Type(Enum):
    """What a value can be."""

    BOOLEAN = "true or false"
    INTEGER = "whole number"
    FLOAT = "float"
    TEXT = "text"
    TIME = "time"  # a timestamp or a date
    INTERVAL = "interval"
    NULL = "null"
    VECTOR = "vector"
    OTHER = "another type"  # binary, maps and so on: only the back end knows what it can do


NUMBERS = (Type.BOOLEAN, Type.INTEGER, Type.FLOAT)
_OF_ITS_ARGUMENTS = ("abs", "min", "max", "coalesce")
_OF_TEXTS = {"length": Type.INTEGER} | dict.fromkeys(
    ("startswith", "endswith", "contains", "like"), Type.BOOLEAN
)
_WHOLE = ("floor", "ceil")
_LITERALS = {
    bool: Type.BOOLEAN, int: Type.INTEGER, float: Type.FLOAT, str: Type.TEXT,
    type(None): Type.NULL,
}  # fmt: skip
TypeOf = Callable[[Column], Type]


def type_of(node: Node, type_of_column: TypeOf, what: str = "where") -> Type:
    """The type of a node.

    Parameters
    ----------
    node
        A tree that was checked.
    type_of_column
        The type of each column.
    what
        What the tree is, for errors.

    Raises
    ------
    QueryError
        Values of these types cannot stand there; the error names the place.
    """
    match node:
        case Column():
            return type_of_column(node)
        case Literal():
            return _LITERALS[node.kind]
        case Moment("interval"):
            return Type.INTERVAL
        case Moment():
            return Type.TIME
    types = [type_of(child, type_of_column, what) for child in children(node)]
    for child, kind in zip(children(node), types, strict=True):
        _check_vector(node, child, kind, what)
    match node:
        case And() | Or() | Not():
            for child, kind in zip(children(node), types, strict=True):
                if kind in (Type.TEXT, Type.TIME, Type.INTERVAL):
                    _refuse(node, f"{text_of(child)} is a {kind.value}, no condition", what)
            return Type.BOOLEAN
        case IsNull():
            return Type.BOOLEAN
        case Compare(operands) | In(options=operands):
            sides = operands if isinstance(node, Compare) else (node.operand, *operands)
            _common(node, sides, types, what)
            return Type.BOOLEAN
        case Case(branches):
            values = [*types[1::2][: len(branches)], types[-1]]
            shown = [*(value for _, value in branches), node.otherwise]
            return _common(node, shown, values, what)
        case Negate():
            return types[0] if types[0] is Type.INTERVAL else _number(node, types, what)
        case Binary():
            return _of_binary(node, types, what)
        case Call(function):
            return _of_call(node, function, types, what)
    raise AssertionError(node)


def is_condition(node: Node) -> bool:
    """Whether it is true or false whatever its columns are."""
    is_literal = isinstance(node, Literal) and node.kind is bool
    is_test = isinstance(node, Call) and _OF_TEXTS.get(node.function) is Type.BOOLEAN
    return is_literal or is_test or isinstance(node, Compare | Not | And | Or | IsNull | In)


def _of_binary(node: Binary, types: list[Type], what: str) -> Type:
    sign, (left, right) = node.operator, types
    if Type.TIME in types or Type.INTERVAL in types:
        if sign == "-" and left is right is Type.TIME:
            return Type.INTERVAL
        if left is right is Type.INTERVAL and sign in "+-":
            return Type.INTERVAL
        if {left, right} == {Type.TIME, Type.INTERVAL} and (sign == "+" or left is Type.TIME):
            return Type.TIME if sign in "+-" else _refuse(node, "no such arithmetic of times", what)
        _refuse(node, "a time and an INTERVAL can be added, two times subtracted", what)
    widest = _number(node, types, what)
    if sign in ("/", "**"):
        return Type.OTHER if widest is Type.OTHER else Type.FLOAT
    return widest


def _of_call(node: Call, function: str, types: list[Type], what: str) -> Type:
    if function in VECTOR_FUNCTIONS:
        return Type.FLOAT
    if function in TEXT_FUNCTIONS:
        first = types[:1] if function == "substring" else types
        for argument, kind in zip(node.arguments, first, strict=False):
            if kind not in (Type.TEXT, Type.NULL, Type.OTHER):
                _refuse(node, f"{text_of(argument)} is a {kind.value}, no text", what)
        return _OF_TEXTS.get(function, Type.TEXT)
    if function in TIME_FUNCTIONS:
        if types[0] not in (Type.TIME, Type.OTHER):
            _refuse(node, f"{text_of(node.arguments[0])} is a {types[0].value}, no time", what)
        return Type.INTEGER
    if function in ("min", "max", "coalesce"):
        found = _common(node, node.arguments, types, what)
        is_number = found is Type.BOOLEAN and function != "coalesce"
        return Type.INTEGER if is_number else found
    widest = _number(node, types, what)
    if function in _OF_ITS_ARGUMENTS or widest is Type.OTHER:
        return widest
    return Type.INTEGER if function in _WHOLE else Type.FLOAT


def _common(node: Node, sides: Sequence[Node], types: Sequence[Type], what: str) -> Type:
    """The type that values have in common which are compared or chosen from."""
    known = {kind for kind in types if kind is not Type.NULL}
    if Type.OTHER in known:
        return Type.OTHER
    if not known:
        return Type.NULL
    if known <= set(NUMBERS):
        return next(iter(known)) if len(known) == 1 else _widest(list(known))
    if len(known) == 1:
        return known.pop()
    shown = ", ".join(
        f"{text_of(side)} is a {kind.value}" for side, kind in zip(sides, types, strict=True)
    )
    hint = ""
    if Type.TIME in known and Type.TEXT in known:
        hint = "; a time is written TIMESTAMP '2026-01-31 12:00:00'"
    return _refuse(node, f"values of different types: {shown}{hint}", what)


def _number(node: Node, types: list[Type], what: str) -> Type:
    for child, kind in zip(children(node), types, strict=True):
        if kind in (Type.TEXT, Type.TIME, Type.INTERVAL):
            _refuse(node, f"{text_of(child)} is a {kind.value}, no number", what)
    return _widest(types)


def _refuse(node: Node, why: str, what: str) -> NoReturn:
    msg = f"{what}: {why}; got {text_of(node)}"
    raise QueryError(msg)


def _check_vector(node: Node, child: Node, kind: Type, what: str) -> None:
    of_vectors = isinstance(node, Call) and node.function in VECTOR_FUNCTIONS
    if of_vectors == (kind is Type.VECTOR) or isinstance(node, IsNull):
        return
    if of_vectors:
        assert isinstance(node, Call)
        got = f"got {text_of(child)} of type {kind.value}"
        msg = f"{what}: {node.function} takes vectors, lists of numbers; {got}"
    else:
        listed = f"{', '.join(VECTOR_FUNCTIONS[:-1])} and {VECTOR_FUNCTIONS[-1]}"
        msg = f"{what}: the vector {text_of(child)} is for {listed}; got {text_of(node)}"
    raise QueryError(msg)


def _widest(types: list[Type]) -> Type:
    """The type of numbers that are added up or chosen from; booleans count as whole numbers."""
    if Type.OTHER in types:
        return Type.OTHER
    return Type.FLOAT if Type.FLOAT in types else Type.INTEGER
