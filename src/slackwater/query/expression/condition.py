"""Conditions as text: ``abs(quotes.px - trades.px) < 1 and quotes.size > 0``.

The grammar is a small part of Python's: numbers, ``stream.column``, arithmetic, comparisons,
``and``/``or``/``not`` and the functions listed here, three of which take columns of vectors. It is
split at its top-level ``and`` into parts, so that each part is tried as soon as its streams are
bound.

>>> condition = Expression.parse("dist(a.x, a.y, b.x, b.y) < 5 and a.x > 0")
>>> [sorted(part.streams) for part in condition.parts]
[['a', 'b'], ['a']]
>>> sorted(condition.columns)
[('a', 'x'), ('a', 'y'), ('b', 'x'), ('b', 'y')]
>>> Expression.parse("cosine(a.v, b.v) > 0.8").parts[0].calls
frozenset({VectorCall(function='cosine', left=('a', 'v'), right=('b', 'v'))})
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from slackwater.errors import QueryError

Column = tuple[str, str]  # stream and column

VECTOR_FUNCTIONS = ("dot", "cosine", "l2")  # each takes two columns of vectors
FUNCTIONS = {
    "abs": 1, "min": None, "max": None, "dist": 4, "sqrt": 1, "exp": 1, "log": 1, "floor": 1,
    "ceil": 1, "sin": 1, "cos": 1, "tan": 1, "atan2": 2, "hypot": 2,
    **dict.fromkeys(VECTOR_FUNCTIONS, 2),
}  # fmt: skip
_NODES = (
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Load,
)  # fmt: skip
_LONGEST = 10_000  # characters; what is longer can exhaust Python's own parser
_DEEPEST = 100  # operators inside each other; what comes later goes down the tree by recursion
_MOST = 500  # names and numbers; compiling takes longer than in proportion
_LARGEST = 2**63


class Band(NamedTuple):
    """``abs(left - right)`` is at most `width`: what an index sorted by value is good for."""

    left: Column
    right: Column
    width: float


class VectorCall(NamedTuple):
    """A function of two vectors."""

    function: str
    left: Column
    right: Column


@dataclass(frozen=True)
class Part:
    """One of the conditions that are joined by ``and``."""

    source: str
    numbers: frozenset[Column]  # the columns it reads as numbers
    calls: frozenset[VectorCall]  # and where it reads vectors

    @property
    def columns(self) -> frozenset[Column]:
        """All columns it reads."""
        return self.numbers.union(*((call.left, call.right) for call in self.calls))

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(stream for stream, _ in self.columns)

    @property
    def band(self) -> Band | None:
        """The band it is, if it is one.

        >>> Expression.parse("abs(a.x - b.y) <= 1").parts[0].band
        Band(left=('a', 'x'), right=('b', 'y'), width=1.0)
        """
        node = ast.parse(self.source, mode="eval").body
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Lt | ast.LtE):
            return None
        distance, limit = node.left, node.comparators[0]
        if len(node.ops) > 1 or not isinstance(limit, ast.Constant):
            return None
        if not isinstance(distance, ast.Call) or ast.unparse(distance.func) != "abs":
            return None
        difference = distance.args[0]
        if not isinstance(difference, ast.BinOp) or not isinstance(difference.op, ast.Sub):
            return None
        left, right = column_of(difference.left), column_of(difference.right)
        if left is None or right is None or left[0] == right[0]:
            return None
        return Band(left, right, float(limit.value))  # type: ignore[arg-type]

    def rewritten(self, sources: Mapping[Column | VectorCall, str]) -> str:
        """The source with each ``stream.column`` and each function of vectors replaced."""
        tree = ast.parse(self.source, mode="eval")
        return ast.unparse(_Rewrite(sources).visit(tree))


class _Rewrite(ast.NodeTransformer):
    def __init__(self, sources: Mapping[Column | VectorCall, str]) -> None:
        self._sources = sources

    def visit(self, node: ast.AST) -> ast.AST:
        found = _vector_call(node) or column_of(node)
        if found is None:
            return self.generic_visit(node)
        return ast.parse(self._sources[found], mode="eval").body


@dataclass(frozen=True)
class Expression:
    """A parsed condition."""

    text: str
    parts: tuple[Part, ...]

    @property
    def columns(self) -> frozenset[Column]:
        """All (stream, column) pairs it reads."""
        return frozenset().union(*(part.columns for part in self.parts))

    @classmethod
    def parse(cls, text: str, what: str = "where") -> Expression:
        """Parse `text`, or say what is wrong with it; `what` names it in errors."""
        if len(text) > _LONGEST:
            msg = f"{what} may have {_LONGEST:,} characters, got {len(text):,}"
            raise QueryError(msg)
        try:
            body = tree_of(text)
        except (SyntaxError, ValueError) as error:
            detail = getattr(error, "msg", None) or str(error)
            msg = f"{what} does not parse: {detail} in {text!r}"
            raise QueryError(msg) from error
        except (RecursionError, MemoryError) as error:  # Python's parser says it in both ways
            raise _too_deep(what, text) from error
        if _is_deep(body):
            raise _too_deep(what, text)
        leaves = sum(isinstance(node, ast.Name | ast.Constant) for node in ast.walk(body))
        if leaves > _MOST:
            msg = f"{what} may have {_MOST} names and numbers, got {leaves} in {text[:40]!r}…"
            raise QueryError(msg)
        _check(body, text, what)
        tops = body.values if _is_and(body) else [body]
        parts = tuple(
            Part(ast.unparse(top), frozenset(_numbers(top)), frozenset(_calls(top))) for top in tops
        )
        return cls(text, parts)


def tree_of(text: str) -> ast.expr:
    """The tree of an expression, chains of the same connector as one."""
    tree: ast.expr = _Flat().visit(ast.parse(text.strip(), mode="eval").body)
    return tree


class _Flat(ast.NodeTransformer):
    """``a and (b and c)`` as ``a and b and c``."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:  # noqa: N802  as `ast` calls it
        self.generic_visit(node)
        values: list[ast.expr] = []
        for value in node.values:
            same = isinstance(value, ast.BoolOp) and type(value.op) is type(node.op)
            values += value.values if same else [value]  # type: ignore[attr-defined]
        return ast.BoolOp(node.op, values)


def _is_deep(tree: ast.AST) -> bool:
    """Whether it is deeper than allowed; without recursion, which might be too deep itself."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _too_deep(what: str, text: str) -> QueryError:
    most = f"{_DEEPEST} operators inside each other"
    return QueryError(f"{what} is nested too deeply, at most {most}: {text[:40]!r}…")


def _is_and(node: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def column_of(node: ast.AST) -> Column | None:
    """The ``stream.column`` that a node is, if it is one."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, node.attr
    return None


def _vector_call(node: ast.AST) -> VectorCall | None:
    """The function of vectors that a checked node is."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in VECTOR_FUNCTIONS
    ):
        left, right = map(column_of, node.args)
        if left is not None and right is not None:
            return VectorCall(node.func.id, left, right)
    return None


def _calls(node: ast.AST) -> Iterator[VectorCall]:
    return filter(None, map(_vector_call, ast.walk(node)))


def _numbers(node: ast.AST) -> Iterator[Column]:
    """The columns outside of functions of vectors."""
    column = column_of(node)
    if column is not None:
        yield column
    elif _vector_call(node) is None:
        for child in ast.iter_child_nodes(node):
            yield from _numbers(child)


def _check(node: ast.AST, text: str, what: str) -> None:
    """Raise for anything outside the grammar."""
    if column_of(node) is not None:
        return
    if isinstance(node, ast.Name):
        msg = f"{what} must name columns as stream.column, got {node.id!r} in {text!r}"
        raise QueryError(msg)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float):
            if isinstance(node.value, int) and node.value >= _LARGEST:
                msg = f"{what} may hold whole numbers below 2**63, got {node.value} in {text!r}"
                raise QueryError(msg)
            return
        msg = f"{what} may only hold numbers, got {node.value!r} in {text!r}"
        raise QueryError(msg)
    if isinstance(node, ast.Call):
        _check_call(node, text, what)
        for argument in node.args:
            _check(argument, text, what)
        return
    if not isinstance(node, _NODES):
        msg = (
            f"{what} may use arithmetic, comparisons, and/or/not and {', '.join(FUNCTIONS)}; "
            f"got {type(node).__name__} in {text!r}"
        )
        raise QueryError(msg)
    for child in ast.iter_child_nodes(node):
        _check(child, text, what)


def _check_call(node: ast.Call, text: str, what: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS or node.keywords:
        msg = f"{what} knows the functions {', '.join(FUNCTIONS)}; got {name!r} in {text!r}"
        raise QueryError(msg)
    takes = FUNCTIONS[name]
    if takes is not None and len(node.args) != takes:
        msg = f"{what}: {name} takes {takes} arguments, got {len(node.args)} in {text!r}"
        raise QueryError(msg)
    for argument in node.args if name in VECTOR_FUNCTIONS else ():
        if column_of(argument) is None:
            got = ast.unparse(argument)
            msg = f"{what}: {name} takes columns of vectors, stream.column, got {got} in {text!r}"
            raise QueryError(msg)
