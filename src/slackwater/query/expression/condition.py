"""A condition in the parts that can be tried one by one.

It is split at its top-level ``and``, so that each part is tried as soon as its streams are bound.

>>> condition = Condition.parse("dist(a.x, a.y, b.x, b.y) < 5 and a.x > 0")
>>> [sorted(part.streams) for part in condition.parts]
[['a', 'b'], ['a']]
>>> sorted(map(str, condition.columns))
['a.x', 'a.y', 'b.x', 'b.y']
>>> Condition.parse("cosine(a.v, b.v) > 0.8").parts[0].calls
frozenset({VectorCall(function='cosine', left=Column(stream='a', name='v'), \
right=Column(stream='b', name='v'))})
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.query.expression.nodes import (
    VECTOR_FUNCTIONS,
    And,
    Binary,
    Call,
    Column,
    Compare,
    Literal,
    Node,
    children,
    columns_of,
    walk,
)
from slackwater.query.expression.parser import parse
from slackwater.query.expression.printer import text_of


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

    tree: Node

    @property
    def source(self) -> str:
        """Its text."""
        return text_of(self.tree)

    @property
    def numbers(self) -> frozenset[Column]:
        """The columns that it reads as numbers."""
        return frozenset(_numbers(self.tree))

    @property
    def calls(self) -> frozenset[VectorCall]:
        """Where it reads vectors."""
        return frozenset(filter(None, map(vector_call, walk(self.tree))))

    @property
    def columns(self) -> frozenset[Column]:
        """All columns it reads."""
        return columns_of(self.tree)

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(column.stream for column in self.columns)

    @property
    def band(self) -> Band | None:
        """The band it is, if it is one.

        >>> Condition.parse("abs(a.x - b.y) <= 1").parts[0].band
        Band(left=Column(stream='a', name='x'), right=Column(stream='b', name='y'), width=1.0)
        """
        match self.tree:
            case Compare(
                (Call("abs", (Binary("-", Column() as left, Column() as right),)), Literal(limit)),
                ("<" | "<=",),
            ) if left.stream != right.stream and isinstance(limit, int | float):
                return Band(left, right, float(limit))
        return None


@dataclass(frozen=True)
class Condition:
    """A condition as a tree."""

    tree: Node

    @classmethod
    def parse(cls, text: str, what: str = "where") -> Condition:
        """The condition that a text is; `what` names it in errors."""
        return cls(parse(text, what))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The conditions that must all hold."""
        tree = self.tree
        return tuple(map(Part, tree.operands if isinstance(tree, And) else (tree,)))

    @property
    def columns(self) -> frozenset[Column]:
        """All columns it reads."""
        return columns_of(self.tree)


def vector_call(node: Node) -> VectorCall | None:
    """The function of vectors that a node is, if it is one."""
    match node:
        case Call(name, (Column() as left, Column() as right)) if name in VECTOR_FUNCTIONS:
            return VectorCall(name, left, right)
    return None


def _numbers(node: Node) -> Iterator[Column]:
    """The columns outside of functions of vectors."""
    if isinstance(node, Column):
        yield node
    elif vector_call(node) is None:
        for child in children(node):
            yield from _numbers(child)
