"""The columns of results that a query asks for by name: columns of streams, and sums over them.

Evaluated on whole columns of Arrow, so that results are the same with and without Spark. What is
null stays null.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.errors import DataError, QueryError
from slackwater.events.batch import flat
from slackwater.joins.columns import is_vector
from slackwater.query.expression import VECTOR_FUNCTIONS, Column, Expression, column_of
from slackwater.query.join import JoinQuery

Columns = Mapping[Column, pa.Array]


class Item(NamedTuple):
    """A column of the results."""

    name: str
    source: str  # as an expression
    column: Column | None  # the column of a stream that it is, if it is one
    reads: frozenset[Column]


class Projection:
    """The columns that `query.select` lists; ``stream.*`` stands for all of a stream."""

    def __init__(self, query: JoinQuery, schemas: Sequence[pa.Schema]) -> None:
        self._schemas = dict(zip(query.names, schemas, strict=True))
        self.items = [item for name, text in query.listed for item in self._items(name, text)]
        empty = {
            (stream, field.name): pa.array([], field.type)
            for stream, schema in self._schemas.items()
            for field in schema
        }
        columns = self.evaluate(empty)
        self.fields = [self._field(*pair) for pair in zip(self.items, columns, strict=True)]

    def _items(self, name: str, text: str) -> list[Item]:
        stream, _, column = text.partition(".")
        if column == "*":
            return [
                Item(f"{stream}_{c}", f"{stream}.{c}", (stream, c), frozenset([(stream, c)]))
                for c in self._schemas[stream].names
            ]
        reads = Expression.parse(text, "select").columns
        for read_stream, read in sorted(reads):
            if read not in self._schemas[read_stream].names:
                listed = ", ".join(self._schemas[read_stream].names)
                msg = (
                    f"select reads {read_stream}.{read}, but stream {read_stream!r} has no column "
                    f"{read!r}; it has {listed}"
                )
                raise QueryError(msg)
        node = ast.parse(text.strip(), mode="eval").body
        return [Item(name, text.strip(), column_of(node), reads)]

    def _field(self, item: Item, column: pa.Array) -> pa.Field:
        if item.column is not None:
            stream, name = item.column
            return self._schemas[stream].field(name).with_name(item.name)
        return pa.field(item.name, column.type)

    def read(self, stream: str) -> list[str]:
        """The columns of `stream` that results need."""
        needed = {column for item in self.items for column in item.reads}
        return [c for c in self._schemas[stream].names if (stream, c) in needed]

    def of_members(self, tables: Sequence[pa.Table]) -> list[pa.Array]:
        """The columns of results, from their members, stream by stream."""
        return self.evaluate(
            {
                (stream, name): flat(table.column(name))
                for stream, table in zip(self._schemas, tables, strict=True)
                for name in table.column_names
            }
        )

    def evaluate(self, columns: Columns) -> list[pa.Array]:
        """The columns of results, from those of their members."""
        return [self._evaluated(item, columns) for item in self.items]

    @staticmethod
    def _evaluated(item: Item, columns: Columns) -> pa.Array:
        if item.column is not None:
            return columns[item.column]
        n = len(next(iter(columns.values())))
        try:
            value = _value(ast.parse(item.source, mode="eval").body, columns)
        except pa.ArrowNotImplementedError as error:
            kinds = ", ".join(f"{s}.{c} {columns[s, c].type}" for s, c in sorted(item.reads))
            msg = f"select cannot compute {item.source} of {kinds}"
            raise QueryError(msg) from error
        except pa.ArrowInvalid as error:  # a sum that does not fit
            msg = f"select cannot compute {item.source}: {error}"
            raise DataError(msg) from error
        return pa.repeat(value, n) if isinstance(value, pa.Scalar) else value


# ---- expressions


def _value(node: ast.expr, columns: Columns) -> Any:
    """The value of a checked expression: a column, or a scalar."""
    column = column_of(node)
    if column is not None:
        return columns[column]
    match node:
        case ast.Constant():
            return pa.scalar(node.value)
        case ast.BinOp():
            left, right = _value(node.left, columns), _value(node.right, columns)
            return _ARITHMETIC[type(node.op)](left, right)
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_value(node.operand, columns))
        case ast.BoolOp():
            both = pc.and_kleene if isinstance(node.op, ast.And) else pc.or_kleene
            return reduce(both, [_value(value, columns) for value in node.values])
        case ast.Compare():
            values = [_value(value, columns) for value in (node.left, *node.comparators)]
            compared = [
                _COMPARISONS[type(op)](values[i], values[i + 1]) for i, op in enumerate(node.ops)
            ]
            return reduce(pc.and_kleene, compared)
        case ast.Call():
            values = [_value(value, columns) for value in node.args]
            return _CALLS[ast.unparse(node.func)](*values)
    raise AssertionError(ast.unparse(node))  # `Expression.parse` lets nothing else through


def _float(value: Any) -> Any:
    return value.cast(pa.float64())


def _divide(left: Any, right: Any) -> Any:
    return pc.divide(_float(left), _float(right))


def _floored(left: Any, right: Any) -> Any:
    return pc.floor(_divide(left, right))


def _remainder(left: Any, right: Any) -> Any:
    return pc.subtract(_float(left), pc.multiply(_floored(left, right), _float(right)))


def _power(left: Any, right: Any) -> Any:
    return pc.power(_float(left), _float(right))


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: pc.add_checked,
    ast.Sub: pc.subtract_checked,
    ast.Mult: pc.multiply_checked,
    ast.Div: _divide,
    ast.FloorDiv: _floored,
    ast.Mod: _remainder,
    ast.Pow: _power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: pc.negate_checked,
    ast.UAdd: lambda value: value,
    ast.Not: pc.invert,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: pc.equal,
    ast.NotEq: pc.not_equal,
    ast.Lt: pc.less,
    ast.LtE: pc.less_equal,
    ast.Gt: pc.greater,
    ast.GtE: pc.greater_equal,
}


def _smallest(*values: Any) -> Any:
    return pc.min_element_wise(*values, skip_nulls=False)


def _largest(*values: Any) -> Any:
    return pc.max_element_wise(*values, skip_nulls=False)


def _hypot(x: Any, y: Any) -> Any:
    return pc.sqrt(pc.add(_power(x, pa.scalar(2)), _power(y, pa.scalar(2))))


def _dist(x: Any, y: Any, u: Any, v: Any) -> Any:
    return _hypot(pc.subtract(_float(x), _float(u)), pc.subtract(_float(y), _float(v)))


def _of_vectors(function: str) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        a, b = _matrix(left, function), _matrix(right, function)
        if a.shape != b.shape and len(a):
            msg = f"select: {function} takes two vectors of the same length, got "
            raise DataError(msg + f"{a.shape[1]} and {b.shape[1]}")
        with np.errstate(invalid="ignore", divide="ignore"):
            return pa.array(_VECTORS[function](a, b))

    return compute


def _matrix(column: Any, function: str) -> Any:
    if not is_vector(column.type):
        msg = f"select: {function} takes vectors, lists of numbers; got {column.type}"
        raise QueryError(msg)
    lengths = pc.unique(pc.list_value_length(column))
    values = pc.list_flatten(column)
    if column.null_count or values.null_count or len(lengths) > 1:
        msg = f"select: {function} takes vectors of one length without nulls"
        raise DataError(msg)
    width = lengths[0].as_py() if len(lengths) else 0
    return values.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(len(column), width)


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=1)


_VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "dot": _dot,
    "cosine": lambda a, b: _dot(a, b) / np.sqrt(_dot(a, a) * _dot(b, b)),
    "l2": lambda a, b: np.sqrt(_dot(a - b, a - b)),
}
_CALLS: dict[str, Callable[..., Any]] = {
    "abs": pc.abs_checked,
    "min": _smallest,
    "max": _largest,
    "dist": _dist,
    "hypot": _hypot,
    "sqrt": lambda x: pc.sqrt(_float(x)),
    "exp": lambda x: pc.exp(_float(x)),
    "log": lambda x: pc.ln(_float(x)),
    "floor": lambda x: pc.floor(_float(x)),
    "ceil": lambda x: pc.ceil(_float(x)),
    "sin": lambda x: pc.sin(_float(x)),
    "cos": lambda x: pc.cos(_float(x)),
    "tan": lambda x: pc.tan(_float(x)),
    "atan2": lambda y, x: pc.atan2(_float(y), _float(x)),
    **{name: _of_vectors(name) for name in VECTOR_FUNCTIONS},
}
