"""`where`, compiled: each step of a walk filters its candidates with native code.

For every step that can apply part of the condition there is one *site*: a loop over candidate
events in which the columns of the events chosen before are constants. All sites of a query are one
compiled function, called through a pointer: the join kernel itself is compiled once, for all of
them.
"""

from __future__ import annotations

import inspect
import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from slackwater.errors import QueryError
from slackwater.events import flat
from slackwater.joins.plan import steps_from
from slackwater.kernels.records import EVENT, F64, I64, NONE
from slackwater.log import Log
from slackwater.query import Query, Stream
from slackwater.window_query import WindowQuery

Scan = Any  # (site, begin, end, entry, at, arrivals, hits) -> number of hits; None: all pass
Sites = dict[tuple[frozenset[int], int], int]
_MOST_REORDERED = 5  # streams: the sites of all orders double with each one
_COMPILE = {"error_model": "python", "nogil": True, "_nrt": False}


@dataclass(frozen=True)
class NumberColumn:
    """Where a column that `where` reads lies in the log: row `row` of `ints` or `floats`."""

    stream: int
    name: str
    matrix: str
    row: int

    @property
    def variable(self) -> str:
        """Its name in compiled source."""
        return f"v{self.stream}_{self.matrix}{self.row}"

    def load(self, place: str) -> str:
        """Source that reads it into its variable, as a Python number also without numba."""
        kind = "int" if self.matrix == "ints" else "float"
        return f"{self.variable} = {kind}({self.matrix}[{self.row}, {place}])"


@dataclass(frozen=True)
class Conditions:
    """The compiled condition of a query over streams of known schemas."""

    columns: list[NumberColumn]
    scan: Scan
    sites: Sites = field(default_factory=dict)

    @property
    def widths(self) -> dict[str, int]:
        """How many rows of `ints` and `floats` the log needs."""
        rows = {matrix: [c.row for c in self.columns if c.matrix == matrix] for matrix in _MATRICES}
        return {matrix: max(used, default=-1) + 1 for matrix, used in rows.items()}

    def read(self, stream: int) -> list[str]:
        """The columns of `stream` that the condition reads."""
        return [column.name for column in self.columns if column.stream == stream]

    def fill(self, stream: int, table: pa.Table, ints: I64, floats: F64) -> None:
        """Write the numbers of a table of `stream` where the condition looks for them."""
        for column in self.columns:
            if column.stream == stream:
                values = ints if column.matrix == "ints" else floats
                values[column.row] = _numbers(table, column)

    def site_of(self, bound: frozenset[int], stream: int) -> int:
        """The site of a step that finds `stream` when `bound` are chosen; NONE: no condition."""
        return self.sites.get((bound, stream), NONE)


@dataclass(frozen=True)
class _Test:
    """Part of the condition as source text, and the streams it reads."""

    source: str
    streams: frozenset[int]


def columns_read(query: Query | WindowQuery, schemas: Sequence[pa.Schema]) -> list[NumberColumn]:
    """The columns that `query.where` reads; the query of a window has none."""
    if isinstance(query, WindowQuery) or query.where is None:
        return []
    if callable(query.where):
        return _place(_read_by(query.where, query, schemas), query, schemas)
    parts = query.condition.parts if query.condition else ()
    return _place(sorted({pair for part in parts for pair in part.columns}), query, schemas)


def compile_conditions(query: Query, schemas: Sequence[pa.Schema]) -> Conditions:
    """Compile `query.where` for these schemas; queries that differ elsewhere share it.

    Load shedding may change the orders of the join: then there are sites for all of them.
    """
    streams = tuple(Stream(name, "ts", 0) for name in query.names)
    plain = Query(streams, query.on, query.where)
    return _compile_conditions(plain, tuple(schemas), may_reorder(query))


def may_reorder(query: Query) -> bool:
    """Whether load shedding may change the join's orders: where results are walked, of few streams.

    Counting multiplies the leaves of the join tree, in whatever order.
    """
    walks = query.select == "*" or query.where is not None
    return query.shedding is not None and walks and len(query.streams) <= _MOST_REORDERED


@lru_cache(maxsize=256)
def _compile_conditions(
    query: Query, schemas: tuple[pa.Schema, ...], every_order: bool
) -> Conditions:
    if query.where is None:
        return Conditions([], None)
    columns = columns_read(query, schemas)
    if callable(query.where):
        tests, names = _function_test(query.where, query, columns)
    else:
        parts = query.condition.parts if query.condition else ()
        variables = {(query.names[c.stream], c.name): c.variable for c in columns}
        tests = [
            _Test(part.renamed(variables), frozenset(map(query.names.index, part.streams)))
            for part in parts
        ]
        names = dict(_LIBRARY)
    source, sites = _scan_source(tests, columns, query, every_order)
    exec(compile(source, "<where>", "exec"), names)  # built from a checked tree, or calls `where`
    try:
        scan = compile_scan(names["scan"])
    except numba.core.errors.NumbaError as error:
        reason = str(error).strip().splitlines()[-1]
        msg = f"where cannot be compiled ({reason}); it may use numbers, math and plain Python"
        raise QueryError(msg) from error
    return Conditions(columns, scan, sites)


def compile_scan(function: Callable[..., Any]) -> Scan:
    """`function` compiled for the one signature that the join kernel calls."""
    if numba.config.DISABLE_JIT:
        return function
    return numba.njit(scan_signature(), **_COMPILE)(function)


def scan_signature() -> Any:
    """The numba type of a compiled condition."""
    vector = types.Array(types.int64, 1, "C")
    records = numba.typeof(Log().records())
    entries = types.Array(types.int64, 2, "C")
    return types.int64(types.int64, types.int64, types.int64, entries, vector, records, vector)


# ---- columns

_MATRICES = ("ints", "floats")


def is_number(kind: pa.DataType) -> bool:
    """Whether `where` can read a column of this type."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_exact(kind: pa.DataType) -> bool:
    return is_number(kind) and not any(
        test(kind) for test in (pa.types.is_uint64, pa.types.is_floating, pa.types.is_decimal)
    )


def _place(
    wanted: Sequence[tuple[str, str]], query: Query, schemas: Sequence[pa.Schema]
) -> list[NumberColumn]:
    """Give each wanted (stream, column) a row of `ints` or `floats`."""
    columns: list[NumberColumn] = []
    for stream, name in wanted:
        s = query.names.index(stream)
        if name not in schemas[s].names:
            msg = (
                f"where reads {stream}.{name}, but stream {stream!r} has no column {name!r}; "
                f"it has {', '.join(schemas[s].names)}"
            )
            raise QueryError(msg)
        kind = schemas[s].field(name).type
        if not is_number(kind):
            msg = f"where reads {stream}.{name}, which must be numeric, got {kind}"
            raise QueryError(msg)
        matrix = "ints" if _is_exact(kind) else "floats"
        row = sum(c.stream == s and c.matrix == matrix for c in columns)
        columns.append(NumberColumn(s, name, matrix, row))
    return columns


# ---- a user's function

_LIBRARY: Mapping[str, Any] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "floor": math.floor, "ceil": math.ceil,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan2": math.atan2, "hypot": math.hypot,
    "dist": numba.njit(lambda x, y, u, v: math.sqrt((x - u) ** 2 + (y - v) ** 2)),
}  # fmt: skip


def _read_by(
    function: Callable[..., bool], query: Query, schemas: Sequence[pa.Schema]
) -> list[tuple[str, str]]:
    """Columns the function may read: the numeric ones whose names occur in it."""
    takes = len(inspect.signature(function).parameters)
    if takes != len(query.streams):
        names = ", ".join(query.names)
        msg = f"where must take one record per stream ({names}), got {takes} parameters"
        raise QueryError(msg)
    mentioned = set(function.__code__.co_names)
    return [
        (stream, column.name)
        for stream, schema in zip(query.names, schemas, strict=True)
        for column in schema
        if column.name in mentioned and is_number(column.type)
    ]


def _function_test(
    function: Callable[..., bool], query: Query, columns: Sequence[NumberColumn]
) -> tuple[list[_Test], dict[str, Any]]:
    names: dict[str, Any] = {"where": numba.njit(function, **_COMPILE)}
    records = []
    for s, stream in enumerate(query.names):
        own = [column for column in columns if column.stream == s]
        names[f"Record{s}"] = namedtuple(stream, [column.name for column in own])  # noqa: PYI024
        records.append(f"Record{s}({', '.join(column.variable for column in own)})")
    every = frozenset(range(len(query.streams)))
    return [_Test(f"where({', '.join(records)})", every)], names


# ---- source


def _scan_source(
    tests: Sequence[_Test], columns: Sequence[NumberColumn], query: Query, every_order: bool
) -> tuple[str, Sites]:
    """One function with a loop for each step of the plan that has a test to apply."""
    lines = [
        "def scan(site, begin, end, entry, at, arrivals, hits):",
        "    base, ints, floats = arrivals.base, arrivals.ints, arrivals.floats",
        "    n = 0",
    ]
    sites: Sites = {}
    for bound, found in _all_steps(query) if every_order else _planned_steps(query):
        now = [test for test in tests if _applies(test, bound, found)]
        if now and (bound, found) not in sites:
            lines += _loop(len(sites), now, columns, bound, found)
            sites[bound, found] = len(sites)
    return "\n".join([*lines, "    return n", ""]), sites


def _planned_steps(query: Query) -> Iterator[tuple[frozenset[int], int]]:
    """What is bound before each step of the plan, and what it finds."""
    for start in range(len(query.streams)):
        bound = frozenset([start])
        for step in steps_from(start, query.keys):
            yield bound, step.stream
            bound |= {step.stream}


def _all_steps(query: Query) -> Iterator[tuple[frozenset[int], int]]:
    """The same for all orders."""
    streams = range(len(query.streams))
    for size in range(1, len(streams)):
        for bound in map(frozenset, combinations(streams, size)):
            yield from ((bound, found) for found in streams if found not in bound)


def _applies(test: _Test, bound: frozenset[int], found: int) -> bool:
    """A test is tried when its last stream is found; a test of one stream as early as possible."""
    if test.streams <= bound:  # its streams were bound by the starting event alone
        return len(bound) == 1
    return test.streams <= bound | {found}


def _loop(
    site: int,
    tests: Sequence[_Test],
    columns: Sequence[NumberColumn],
    bound: frozenset[int],
    found: int,
) -> list[str]:
    read = frozenset().union(*(test.streams for test in tests))
    constants = [c.load(f"at[{c.stream}] - base") for c in columns if c.stream in read & bound]
    variables = [c.load(f"entry[i, {EVENT}] - base") for c in columns if c.stream == found]
    condition = " and ".join(f"({test.source})" for test in tests)
    return [
        f"    if site == {site}:",
        *(f"        {line}" for line in constants),
        "        for i in range(begin, end):",
        *(f"            {line}" for line in variables),
        "            hits[n] = i",
        f"            if {condition}:",
        "                n += 1",
    ]


def _numbers(table: pa.Table, number: NumberColumn) -> NDArray[np.generic]:
    to = pa.int64() if number.matrix == "ints" else pa.float64()
    values = flat(table.column(number.name)).cast(to)
    if values.null_count:
        values = values.fill_null(0)
    return np.asarray(values.to_numpy(zero_copy_only=False))
