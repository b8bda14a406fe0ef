"""`where`, split between Arrow and native code.

Pairs are tested by native code, which has numbers; times and intervals are whole microseconds. What
reads texts, or needs Arrow for another reason, is computed for the rows of one stream when they
arrive, and becomes one more number of theirs. Texts of two streams can only be equal or not: two
hashes of 64 bits stand for each.

>>> from slackwater.query.expression import parse, text_of
>>> kinds = {Column("a", "s"): Type.TEXT, Column("a", "x"): Type.INTEGER}
>>> made = plan(parse("a.x > 1 and (a.s like 'X%' or b.x < 2)"), lambda c: kinds.get(c, Type.FLOAT))
>>> [text_of(part) for part in made.parts], sorted(map(str, made.required))
(['a.x > 1', "a.`a.s like 'X%'` or b.x < 2"], ['a.x'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from slackwater.errors import QueryError
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
    Type,
    columns_of,
    text_of,
    type_of,
    vector_call,
)
from slackwater.query.expression.nodes import NUMBER_FUNCTIONS, children
from slackwater.query.expression.types import TypeOf

_NATIVE = (Type.BOOLEAN, Type.INTEGER, Type.FLOAT, Type.TIME, Type.INTERVAL, Type.NULL)
_HASHES = (1, 2)


class Computed(NamedTuple):
    """A number of a stream's rows that Arrow computes."""

    tree: Node
    hashed: int = 0  # which hash of a text; 0: the value itself
    can_be_null: bool = True


class WherePlan(NamedTuple):
    """What native code tests, and what is computed before."""

    parts: tuple[Node, ...]  # conditions that must all be true
    computed: Mapping[Column, Computed]  # columns in them that Arrow computes
    required: frozenset[Column]  # a row with a null in one of them is in no result
    types: Mapping[Column, Type]  # of all columns in the parts


def plan(tree: Node, kind_of: TypeOf) -> WherePlan:
    """Split a condition over columns of these types.

    Raises
    ------
    QueryError
        Values of these types cannot be compared, or only Arrow could compute it for pairs.
    """
    kind = type_of(tree, kind_of)
    if kind in (Type.TEXT, Type.TIME, Type.INTERVAL):
        msg = f"where must be true or false, got {text_of(tree)}, a {kind.value}"
        raise QueryError(msg)
    read = columns_of(tree)
    required = frozenset(column for column in read if never_true(tree, column))
    splitter = _Splitter(kind_of, read - required)
    parts = tuple(map(splitter.split, tree.operands if isinstance(tree, And) else (tree,)))
    types = {c: splitter.types.get(c) or kind_of(c) for part in parts for c in columns_of(part)}
    return WherePlan(parts, splitter.computed, required, types)


class _Splitter:
    def __init__(self, kind_of: TypeOf, nullable: frozenset[Column]) -> None:
        self._kind_of = kind_of
        self._nullable = nullable
        self.computed: dict[Column, Computed] = {}
        self.types: dict[Column, Type] = {}

    def split(self, node: Node) -> Node:
        """The node with what Arrow computes as columns."""
        if vector_call(node) is not None or self._is_native(node):
            return node
        kind = type_of(node, self._kind_of)
        streams = {column.stream for column in columns_of(node)}
        if len(streams) == 1 and kind in _NATIVE:
            return self._column(streams.pop(), node, kind)
        match node:
            case Compare(operands, operators) if len(operators) > 1:
                pairs = zip(operators, pairwise(operands), strict=True)
                return And(tuple(self.split(Compare(pair, (sign,))) for sign, pair in pairs))
            case Compare((left, right), (sign,)) if self._are_texts(left, right):
                return self._same_text(node, left, right, sign)
            case In(operand, options):
                return Or(tuple(self.split(Compare((operand, each), ("==",))) for each in options))
            case IsNull(Call("concat", arguments)):
                return Or(tuple(self.split(IsNull(each)) for each in arguments))
        if kind not in _NATIVE or not _can_be_native(node):
            self._refuse(node)
        return _rebuilt(node, self.split)

    def _is_native(self, node: Node) -> bool:
        if vector_call(node) is not None:
            return True
        own = type_of(node, self._kind_of) in _NATIVE and _can_be_native(node)
        return own and all(map(self._is_native, children(node)))

    def _are_texts(self, *nodes: Node) -> bool:
        kinds = {type_of(node, self._kind_of) for node in nodes}
        return kinds <= {Type.TEXT, Type.NULL}

    def _column(self, stream: str, node: Node, kind: Type, hashed: int = 0) -> Column:
        name = text_of(node) + f" #{hashed}" * bool(hashed)
        column = Column(stream, name)
        can_be_null = may_be_null(node, self._nullable)
        self.computed[column] = Computed(node, hashed, can_be_null)
        self.types[column] = Type.INTEGER if hashed else kind
        return column

    def _same_text(self, node: Node, left: Node, right: Node, sign: str) -> Node:
        """Texts of two streams, which native code knows by their hashes."""
        streams = [{column.stream for column in columns_of(side)} for side in (left, right)]
        if sign not in ("==", "!=") or any(len(of) != 1 for of in streams):
            self._refuse(node)
        same = And(
            tuple(
                Compare(
                    (
                        self._column(min(streams[0]), left, Type.TEXT, hashed),
                        self._column(min(streams[1]), right, Type.TEXT, hashed),
                    ),
                    ("==",),
                )
                for hashed in _HASHES
            )
        )
        return same if sign == "==" else Not(same)

    def _refuse(self, node: Node) -> NoReturn:
        msg = (
            f"where cannot compute {text_of(node)} for each pair of events: texts of two streams "
            "can be equal or not (=, <>, IN); other functions of texts take one stream. Compute "
            "it before the join, or filter the results"
        )
        raise QueryError(msg)


def _can_be_native(node: Node) -> bool:
    """Whether native code knows what the node itself does."""
    return not isinstance(node, Call) or node.function in (*NUMBER_FUNCTIONS, "coalesce")


def _rebuilt(node: Node, split: Callable[[Node], Node]) -> Node:
    """The node with its operands split."""
    match node:
        case Negate(operand) | Not(operand) | IsNull(operand):
            return replace(node, operand=split(operand))
        case Binary(_, left, right):
            return replace(node, left=split(left), right=split(right))
        case Compare(operands) | And(operands) | Or(operands):
            return replace(node, operands=tuple(map(split, operands)))
        case Call(_, arguments):
            return replace(node, arguments=tuple(map(split, arguments)))
        case Case(branches, otherwise):
            made = tuple((split(test), split(value)) for test, value in branches)
            return Case(made, split(otherwise))
    return node


# ---- nulls


def may_be_null(node: Node, nullable: frozenset[Column]) -> bool:
    """Whether a value can be null if these columns can."""

    def of(child: Node) -> bool:
        return may_be_null(child, nullable)

    match node:
        case Column():
            return node in nullable
        case Literal(value):
            return value is None
        case Moment() | IsNull():
            return False
        case Call("log"):
            return True
        case Call("coalesce" | "min" | "max", arguments):
            return all(map(of, arguments))
        case Case(branches, otherwise):
            return of(otherwise) or any(of(value) for _, value in branches)
    return any(map(of, children(node)))


def null_with(node: Node, column: Column) -> bool:
    """Whether a value is null wherever this column is."""
    match node:
        case Column():
            return node == column
        case Literal(value):
            return value is None
        case Call("coalesce" | "min" | "max", arguments) | And(arguments) | Or(arguments):
            return all(null_with(each, column) for each in arguments)
        case Case(branches, otherwise):
            return all(null_with(each, column) for each in (otherwise, *_values(branches)))
        case In(operand):
            return null_with(operand, column)
        case Compare(operands, operators) if len(operators) > 1:
            return all(null_with(each, column) for each in operands)
        case IsNull():
            return False
    return any(null_with(child, column) for child in children(node))


def never_true(node: Node, column: Column) -> bool:
    """Whether a condition is never true where this column is null."""
    match node:
        case And(operands):
            return any(never_true(each, column) for each in operands)
        case Or(operands):
            return all(never_true(each, column) for each in operands)
        case Not(operand):
            return never_false(operand, column)
        case Compare(operands):
            return any(null_with(each, column) for each in operands)
        case Literal(value):
            return not value
    return null_with(node, column)


def never_false(node: Node, column: Column) -> bool:
    """Whether a condition is never false where this column is null."""
    match node:
        case And(operands):
            return all(never_false(each, column) for each in operands)
        case Or(operands):
            return any(never_false(each, column) for each in operands)
        case Not(operand):
            return never_true(operand, column)
        case IsNull(operand):
            return null_with(operand, column)
        case Literal(value):
            return value is None or bool(value)
    return null_with(node, column)


def _values(branches: Any) -> Iterator[Node]:
    return (value for _, value in branches)
