"""The columns that `where` reads: which they are, where they lie in the log, how they get there.

Numbers are rows of `Arrivals.ints` and `Arrivals.floats`. The vectors of an event lie side by side
in its row of `Arrivals.vectors`, so that comparing two of them reads two runs of memory; behind
each is its norm, so that a cosine is one dot product.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.errors import QueryError
from slackwater.events.batch import flat, is_set, offsets
from slackwater.joins.arrow_functions import micros
from slackwater.joins.arrow_values import evaluate
from slackwater.joins.column_types import is_number, is_time, is_vector, type_in_tree
from slackwater.joins.where_plan import Computed, WherePlan, plan
from slackwater.kernels import vectors as kernels
from slackwater.kernels.records import F64, I64, NONE
from slackwater.query.any_query import AnyQuery
from slackwater.query.expression import (
    VECTOR_FUNCTIONS,
    Column,
    Part,
    Type,
    VectorCall,
    columns_of,
)
from slackwater.query.join import JoinQuery
from slackwater.query.stream import Stream

_MATRICES = ("ints", "floats")
_ON_VECTORS = f"{', '.join(VECTOR_FUNCTIONS[:-1])} and {VECTOR_FUNCTIONS[-1]}"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: row `row` of `ints` or `floats`."""

    stream: int
    name: str  # of a column of the stream, or what Arrow computes
    matrix: str
    row: int
    null_row: int = NONE  # of `ints`: 1 where the number is null; NONE: it never is
    computed: Computed | None = None

    @property
    def reads(self) -> list[str]:
        """The columns of the stream that it needs."""
        if self.computed is None:
            return [self.name]
        return sorted(column.name for column in columns_of(self.computed.tree))

    def fill(self, table: pa.Table, ints: I64, floats: F64) -> None:
        """Write the column where it lies; what is null is 0."""
        column = self._values(table)
        if self.null_row != NONE:
            ints[self.null_row] = np.asarray(pc.is_null(column))
        if self.matrix == "ints":
            times = is_time(column.type) or pa.types.is_duration(column.type)
            numbers = micros(column) if times else column.cast(pa.int64())
        else:
            numbers = column.cast(pa.float64())
        if numbers.null_count:
            numbers = numbers.fill_null(0)
        matrix = ints if self.matrix == "ints" else floats
        matrix[self.row] = numbers.to_numpy(zero_copy_only=False)

    def _values(self, table: pa.Table) -> pa.Array:
        if self.computed is None:
            return flat(table.column(self.name))
        read = {
            column: flat(table.column(column.name)) for column in columns_of(self.computed.tree)
        }
        values = evaluate(self.computed.tree, read, "where")
        return hash_of(values, self.computed.hashed) if self.computed.hashed else values


def hash_of(texts: pa.Array, which: int) -> pa.Array:
    """One of two hashes of each text; null of null."""
    from pandas.util import hash_array  # noqa: PLC0415  takes long, and few conditions need it

    key = f"slackwater hash{which}"  # of 16 bytes
    values = texts.fill_null("").to_numpy(zero_copy_only=False).astype(object)
    found = hash_array(values, hash_key=key, categorize=True).view(np.int64)
    return pa.array(found, mask=~is_set(texts))


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
    required: Sequence[tuple[int, str]] = ()  # a row with a null in one of them is rejected

    @property
    def widths(self) -> dict[str, int]:
        """How many rows of `ints` and `floats` the log needs, and how wide its `vectors` are."""
        rows = {matrix: [c.row for c in self.numbers if c.matrix == matrix] for matrix in _MATRICES}
        rows["ints"] += [column.null_row for column in self.numbers]
        widths = {matrix: max(used, default=-1) + 1 for matrix, used in rows.items()}
        return widths | {"vectors": max((vector.end for vector in self.vectors), default=0)}

    def read(self, stream: int) -> list[str]:
        """The names of those of `stream`."""
        names = [name for s, name in self.required if s == stream]
        names += [n for column in self.numbers if column.stream == stream for n in column.reads]
        names += [vector.name for vector in self.vectors if vector.stream == stream]
        return list(dict.fromkeys(names))

    def fill(self, stream: int, table: pa.Table, ints: I64, floats: F64, vectors: F64) -> None:
        """Write those of a table of `stream` where conditions look for them."""
        for number in self.numbers:
            if number.stream == stream:
                number.fill(table, ints, floats)
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
        read = _read_by(query.where, query, schemas)
        places = [(query.names.index(column.stream), column.name) for column in read]
        return Columns(_place_numbers(read, query, schemas), required=places)
    planned = plan_of(query, tuple(schemas))
    calls = {call for part in planned.parts for call in Part(part).calls}
    numbers = {column for part in planned.parts for column in Part(part).numbers}
    return Columns(
        _place_planned(sorted(numbers), planned, query, schemas),
        _place_vectors(sorted(calls), query, schemas),
        [(query.names.index(s), name) for s, name in sorted(planned.required)],
    )


@lru_cache(maxsize=256)
def plan_of(query: JoinQuery, schemas: tuple[pa.Schema, ...]) -> WherePlan:
    """How the condition of a query is split between Arrow and native code."""
    assert query.condition is not None
    by_name = dict(zip(query.names, schemas, strict=True))
    return plan(
        query.condition.tree, lambda column: type_in_tree(_type_of(column, by_name[column.stream]))
    )


# ---- numbers


def _is_exact(kind: pa.DataType) -> bool:
    return is_number(kind) and not any(
        test(kind) for test in (pa.types.is_uint64, pa.types.is_floating, pa.types.is_decimal)
    )


def _place_numbers(
    wanted: Sequence[Column], query: JoinQuery, schemas: Sequence[pa.Schema]
) -> list[NumberColumn]:
    """Give each of these columns, which are numeric, a row of `ints` or `floats`."""
    columns: list[NumberColumn] = []
    for column in wanted:
        s = query.names.index(column.stream)
        kind = _type_of(column, schemas[s])
        matrix = "ints" if _is_exact(kind) else "floats"
        row = sum(c.stream == s and c.matrix == matrix for c in columns)
        columns.append(NumberColumn(s, column.name, matrix, row))
    return columns


def _place_planned(
    wanted: Sequence[Column], planned: WherePlan, query: JoinQuery, schemas: Sequence[pa.Schema]
) -> list[NumberColumn]:
    """Give each number of a plan a row of `ints` or `floats`, and one more if it may be null."""
    columns: list[NumberColumn] = []
    rows = {(s, matrix): 0 for s in range(len(schemas)) for matrix in _MATRICES}

    def next_row(s: int, matrix: str) -> int:
        rows[s, matrix] += 1
        return rows[s, matrix] - 1

    for column in wanted:
        s = query.names.index(column.stream)
        computed = planned.computed.get(column)
        matrix = "floats" if planned.types[column] is Type.FLOAT else "ints"
        if computed is None:
            can_be_null = column not in planned.required
            kind = _type_of(column, schemas[s])
            matrix = "ints" if _is_exact(kind) or not is_number(kind) else "floats"
        else:
            can_be_null = computed.can_be_null
        row = next_row(s, matrix)
        null_row = next_row(s, "ints") if can_be_null else NONE
        columns.append(NumberColumn(s, column.name, matrix, row, null_row, computed))
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
