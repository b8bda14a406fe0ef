"""The type of each node, given those of the columns.

>>> from slackwater.query.expression.parser import parse
>>> type_of(parse("a.x + 1"), lambda column: Type.INTEGER)
<Type.INTEGER: 'whole number'>
>>> type_of(parse("abs(a.x / 2) < b.x"), lambda column: Type.INTEGER)
<Type.BOOLEAN: 'true or false'>
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from slackwater.errors import QueryError
from slackwater.query.expression.nodes import (
    VECTOR_FUNCTIONS,
    And,
    Binary,
    Call,
    Column,
    Compare,
    Literal,
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
    VECTOR = "vector"
    OTHER = "another type"  # texts, times and so on: only the back end knows what it can do


_OF_ITS_ARGUMENTS = ("abs", "min", "max")  # the other functions make floats


def type_of(node: Node, type_of_column: Callable[[Column], Type], what: str = "where") -> Type:
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
        A vector stands where a number must, or the other way round; the error names the place.
    """

    def inner(child: Node) -> Type:
        return type_of(child, type_of_column, what)

    if isinstance(node, Column):
        return type_of_column(node)
    if isinstance(node, Literal):
        return {bool: Type.BOOLEAN, int: Type.INTEGER, float: Type.FLOAT}[node.kind]
    types = [inner(child) for child in children(node)]
    for child, kind in zip(children(node), types, strict=True):
        _check(node, child, kind, what)
    match node:
        case Compare() | Not() | And() | Or():
            return Type.BOOLEAN
        case Binary("/" | "//" | "%" | "**"):
            return Type.FLOAT
        case Call(function) if function not in _OF_ITS_ARGUMENTS:
            return Type.FLOAT
    return _widest(types)


def is_condition(node: Node) -> bool:
    """Whether it is true or false whatever its columns are."""
    is_literal = isinstance(node, Literal) and node.kind is bool
    return is_literal or isinstance(node, Compare | Not | And | Or)


def _check(node: Node, child: Node, kind: Type, what: str) -> None:
    of_vectors = isinstance(node, Call) and node.function in VECTOR_FUNCTIONS
    if of_vectors == (kind is Type.VECTOR):
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
