"""The columns that `where` reads: which they are, where they lie in the log, how they get there.

Numbers are rows of `Arrivals.ints` and `Arrivals.floats`. The vectors of an event lie side by side
in its row of `Arrivals.vectors`, so that comparing two of them reads two runs of memory; behind
each is its norm, so that a cosine is one dot product.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.errors import QueryError
from slackwater.events.batch import flat, is_set, offsets
from slackwater.kernels import vectors as kernels
from slackwater.kernels.records import F64, I64
from slackwater.query.any_query import AnyQuery
from slackwater.query.expression import VECTOR_FUNCTIONS, Column, VectorCall
from slackwater.query.join import JoinQuery
from slackwater.query.stream import Stream

_MATRICES = ("ints", "floats")
_ON_VECTORS = f"{', '.join(VECTOR_FUNCTIONS[:-1])} and {VECTOR_FUNCTIONS[-1]}"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: row `row` of `ints` or `floats`."""

    stream: int
    name: str
    matrix: str
    row: int

    def values(self, column: pa.Array) -> NDArray[np.generic]:
        """The column as it lies there; what is null is 0."""
        values = column.cast(pa.int64() if self.matrix == "ints" else pa.float64())
        if values.null_count:
            values = values.fill_null(0)
        return np.asarray(values.to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class VectorColumn:
    """A column of vectors: components `first` to `first + length` of a row, then the norm."""

    stream: int
    name: str
    first: int
    length: int

    @property
    def end(self) -> int:
        """Behind the norm."""
        return self.first + self.length + 1

    def values(self, column: pa.Array) -> F64:
        """The column as a matrix, a vector per row; what has a flaw is undefined there."""
        components, ends = _opened(column)
        numbers = components.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        fits = np.diff(ends) == self.length
        if fits.all():
            return np.asarray(numbers.reshape(len(column), self.length))
        matrix = np.zeros((len(column), self.length))
        matrix[fits] = numbers[ends[:-1][fits, np.newaxis] + np.arange(self.length)]
        return matrix

    def flaws(self, column: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which vectors are null or have a null in them, and which are of another length."""
        components, ends = _opened(column)
        null = ~is_set(column)
        if components.null_count:
            nulls = np.concatenate([[0], np.cumsum(~is_set(components))])
            null |= np.diff(nulls[ends]) > 0
        return null, np.diff(ends) != self.length


def _opened(column: pa.Array) -> tuple[pa.Array, I64]:
    """The components of all lists in a row, and where each list begins and ends there."""
    ends = offsets(column)
    if ends is None:  # lists of a fixed size
        ends = column.type.list_size * (column.offset + np.arange(len(column) + 1))
    return column.values.slice(ends[0], ends[-1] - ends[0]), ends - ends[0]


class Columns(NamedTuple):
    """All columns that `where` reads."""

    numbers: Sequence[NumberColumn] = ()
    vectors: Sequence[VectorColumn] = ()

    @property
    def widths(self) -> dict[str, int]:
        """How many rows of `ints` and `floats` the log needs, and how wide its `vectors` are."""
        rows = {matrix: [c.row for c in self.numbers if c.matrix == matrix] for matrix in _MATRICES}
        widths = {matrix: max(used, default=-1) + 1 for matrix, used in rows.items()}
        return widths | {"vectors": max((vector.end for vector in self.vectors), default=0)}

    def read(self, stream: int) -> list[str]:
        """The names of those of `stream`."""
        every: list[NumberColumn | VectorColumn] = [*self.numbers, *self.vectors]
        return [column.name for column in every if column.stream == stream]

    def fill(self, stream: int, table: pa.Table, ints: I64, floats: F64, vectors: F64) -> None:
        """Write those of a table of `stream` where conditions look for them."""
        for number in self.numbers:
            if number.stream == stream:
                matrix = ints if number.matrix == "ints" else floats
                matrix[number.row] = number.values(flat(table.column(number.name)))
        for vector in self.vectors:
            if vector.stream == stream:
                components = slice(vector.first, vector.first + vector.length)
                vectors[:, components] = vector.values(flat(table.column(vector.name)))
                kernels.add_norms(vectors, vector.first, vector.length)


def columns_read(query: AnyQuery, schemas: Sequence[pa.Schema]) -> Columns:
    """The columns that `query.where` reads; only a join of events has one."""
    if not isinstance(query, JoinQuery) or query.where is None:
        return Columns()
    if callable(query.where):
        return Columns(_place_numbers(_read_by(query.where, query, schemas), query, schemas))
    parts = query.condition.parts if query.condition else ()
    numbers = {column for part in parts for column in part.numbers}
    calls = {call for part in parts for call in part.calls}
    return Columns(
        _place_numbers(sorted(numbers), query, schemas),
        _place_vectors(sorted(calls), query, schemas),
    )


# ---- numbers


def is_number(kind: pa.DataType) -> bool:
    """Whether `where` can read a column of this type."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_exact(kind: pa.DataType) -> bool:
    return is_number(kind) and not any(
        test(kind) for test in (pa.types.is_uint64, pa.types.is_floating, pa.types.is_decimal)
    )


def _place_numbers(
    wanted: Sequence[Column], query: JoinQuery, schemas: Sequence[pa.Schema]
) -> list[NumberColumn]:
    """Give each wanted column a row of `ints` or `floats`."""
    columns: list[NumberColumn] = []
    for column in wanted:
        s = query.names.index(column.stream)
        kind = _type_of(column, schemas[s])
        if not is_number(kind):
            hint = f"; vectors are for {_ON_VECTORS}" if is_vector(kind) else ""
            msg = f"where reads {column}, which must be numeric, got {kind}{hint}"
            raise QueryError(msg)
        matrix = "ints" if _is_exact(kind) else "floats"
        row = sum(c.stream == s and c.matrix == matrix for c in columns)
        columns.append(NumberColumn(s, column.name, matrix, row))
    return columns


def _type_of(column: Column, schema: pa.Schema) -> pa.DataType:
    stream, name = column
    if name not in schema.names:
        msg = (
            f"where reads {column}, but stream {stream!r} has no column {name!r}; "
            f"it has {', '.join(schema.names)}"
        )
        raise QueryError(msg)
    return schema.field(name).type


def _read_by(
    function: Callable[..., bool], query: JoinQuery, schemas: Sequence[pa.Schema]
) -> list[Column]:
    """Columns the function may read: the numeric ones whose names occur in it."""
    if not inspect.isfunction(function):
        got = type(function).__name__
        msg = f"where must be text or a function made by def or lambda, got {got}"
        raise QueryError(msg)
    takes = len(inspect.signature(function).parameters)
    if takes != len(query.streams):
        names = ", ".join(query.names)
        msg = f"where must take one record per stream ({names}), got {takes} parameters"
        raise QueryError(msg)
    mentioned = set(function.__code__.co_names)
    named = [
        (Column(stream, field.name), field.type)
        for stream, schema in zip(query.names, schemas, strict=True)
        for field in schema
        if field.name in mentioned
    ]
    numbers = [column for column, kind in named if is_number(kind)]
    for column in numbers:
        if column.name.startswith("_"):
            msg = (
                f"where is a function and reads {column}: names in a record must not begin "
                "with _; write the condition as text, or rename the column"
            )
            raise QueryError(msg)
    elsewhere = {column.name for column in numbers}  # the function may mean that number
    for column, kind in named:
        if is_vector(kind) and column.name not in elsewhere:
            msg = (
                f"where is a function and reads {column}, which must be numeric, got {kind}; "
                f"vectors are for conditions as text, with {_ON_VECTORS}"
            )
            raise QueryError(msg)
    return numbers


# ---- vectors


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    tests = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return any(test(kind) for test in tests) and is_number(kind.value_type)


def _place_vectors(
    calls: Collection[VectorCall], query: JoinQuery, schemas: Sequence[pa.Schema]
) -> list[VectorColumn]:
    """Give each column that a function of vectors takes its components of a row."""
    columns: dict[Column, VectorColumn] = {}
    ends = [0] * len(schemas)
    for function, *pair in calls:
        for column in pair:
            s = query.names.index(column.stream)
            if column not in columns:
                length = _length(function, column, query.streams[s], schemas[s])
                columns[column] = VectorColumn(s, column.name, ends[s], length)
                ends[s] = columns[column].end
        left, right = (columns[column].length for column in pair)
        if left != right:
            got = " and ".join(f"{column} of {columns[column].length}" for column in pair)
            msg = f"where: {function} takes two vectors of the same length, got {got}"
            raise QueryError(msg)
    return list(columns.values())


def _length(function: str, column: Column, stream: Stream, schema: pa.Schema) -> int:
    """How many components the vectors of a column have, by its type or as the stream declares."""
    kind = _type_of(column, schema)
    if not is_vector(kind):
        msg = f"where: {function} takes vectors, lists of numbers; got {column} of type {kind}"
        raise QueryError(msg)
    known = kind.list_size if pa.types.is_fixed_size_list(kind) else None
    declared = dict(stream.vectors).get(column.name, known)
    if declared is None:
        msg = (
            f"where: {function} must know how long its vectors are; {column} of type {kind} may "
            f"have any length: give Stream({stream.name!r}, ..., "
            f"vectors={{{column.name!r}: length}})"
        )
        raise QueryError(msg)
    if known not in (None, declared):
        msg = f"stream {stream.name!r}: vectors= gives {column.name} {declared} components, "
        msg += f"got {known} in {kind}"
        raise QueryError(msg)
    return declared
