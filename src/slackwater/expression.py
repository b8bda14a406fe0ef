"""Conditions as text: ``abs(quotes.px - trades.px) < 1 and quotes.size > 0``.

The grammar is a small part of Python's: numbers, ``stream.column``, arithmetic, comparisons,
``and``/``or``/``not`` and the functions listed here. It is split at its top-level ``and`` into
parts, so that each part is tried as soon as its streams are bound.

>>> condition = Expression.parse("dist(a.x, a.y, b.x, b.y) < 5 and a.x > 0")
>>> [sorted(part.streams) for part in condition.parts]
[['a', 'b'], ['a']]
>>> sorted(condition.columns)
[('a', 'x'), ('a', 'y'), ('b', 'x'), ('b', 'y')]
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from slackwater.errors import QueryError

FUNCTIONS = {
    "abs": 1, "min": None, "max": None, "dist": 4, "sqrt": 1, "exp": 1, "log": 1, "floor": 1,
    "ceil": 1, "sin": 1, "cos": 1, "tan": 1, "atan2": 2, "hypot": 2,
}  # fmt: skip
_NODES = (
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Load,
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One of the conditions that are joined by ``and``."""

    source: str
    columns: frozenset[tuple[str, str]]

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(stream for stream, _ in self.columns)

    def renamed(self, variables: Mapping[tuple[str, str], str]) -> str:
        """The source with each ``stream.column`` replaced by a plain variable."""
        tree = ast.parse(self.source, mode="eval")
        return ast.unparse(_Rename(variables).visit(tree))


class _Rename(ast.NodeTransformer):
    def __init__(self, variables: Mapping[tuple[str, str], str]) -> None:
        self._variables = variables

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802  the visitor's own name
        column = _column(node)
        return node if column is None else ast.Name(self._variables[column])


@dataclass(frozen=True)
class Expression:
    """A parsed condition."""

    text: str
    parts: tuple[Part, ...]

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """All (stream, column) pairs it reads."""
        return frozenset().union(*(part.columns for part in self.parts))

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Parse `text`, or say what is wrong with it and where."""
        try:
            body = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            detail = getattr(error, "msg", None) or str(error)
            msg = f"where does not parse: {detail} in {text!r}"
            raise QueryError(msg) from error
        _check(body, text)
        tops = body.values if _is_and(body) else [body]
        parts = tuple(Part(ast.unparse(top), frozenset(_columns(top))) for top in tops)
        return cls(text, parts)


def _is_and(node: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _column(node: ast.AST) -> tuple[str, str] | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, node.attr
    return None


def _columns(node: ast.AST) -> Iterator[tuple[str, str]]:
    for inner in ast.walk(node):
        column = _column(inner)
        if column is not None:
            yield column


def _check(node: ast.AST, text: str) -> None:
    """Raise for anything outside the grammar."""
    if _column(node) is not None:
        return
    if isinstance(node, ast.Name):
        msg = f"where must name columns as stream.column, got {node.id!r} in {text!r}"
        raise QueryError(msg)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float):
            return
        msg = f"where may only hold numbers, got {node.value!r} in {text!r}"
        raise QueryError(msg)
    if isinstance(node, ast.Call):
        _check_call(node, text)
        for argument in node.args:
            _check(argument, text)
        return
    if not isinstance(node, _NODES):
        msg = (
            f"where may use arithmetic, comparisons, and/or/not and {', '.join(FUNCTIONS)}; "
            f"got {type(node).__name__} in {text!r}"
        )
        raise QueryError(msg)
    for child in ast.iter_child_nodes(node):
        _check(child, text)


def _check_call(node: ast.Call, text: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS or node.keywords:
        msg = f"where knows the functions {', '.join(FUNCTIONS)}; got {name!r} in {text!r}"
        raise QueryError(msg)
    takes = FUNCTIONS[name]
    if takes is not None and len(node.args) != takes:
        msg = f"where: {name} takes {takes} arguments, got {len(node.args)} in {text!r}"
        raise QueryError(msg)
