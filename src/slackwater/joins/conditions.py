"""`where`, compiled: each step of a walk filters its candidates with native code.

For every step that can apply part of the condition there is one *site*: a loop over candidate
events in which the columns of the events chosen before are constants. All sites of a query are one
compiled function, called through a pointer: the join kernel itself is compiled once, for all of
them.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any, NoReturn

import numba
import pyarrow as pa
from numba import types

from slackwater.errors import ConditionError, QueryError
from slackwater.events.log import Log
from slackwater.joins.columns import Columns, NumberColumn, columns_read, plan_of
from slackwater.joins.numba_source import LIBRARY, Source
from slackwater.joins.visit_order import steps_from
from slackwater.kernels.records import EVENT, NONE, TS
from slackwater.query.expression import Column, Part, VectorCall
from slackwater.query.join import JoinQuery
from slackwater.query.stream import Stream

Scan = Any  # (site, begin, end, entry, at, arrivals, hits) -> number of hits; None: all pass
Sites = dict[tuple[frozenset[int], int], int]
_MOST_REORDERED = 5  # streams: the sites of all orders double with each one
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # in numba's messages, where colorama is installed
_COMPILE = {"error_model": "python", "nogil": True, "_nrt": False}


@dataclass(frozen=True)
class Conditions:
    """The compiled condition of a query over streams of known schemas."""

    columns: Columns
    scan: Scan
    sites: Sites = field(default_factory=dict)

    def site_of(self, bound: frozenset[int], stream: int) -> int:
        """The site of a step that finds `stream` when `bound` are chosen; NONE: no condition."""
        return self.sites.get((bound, stream), NONE)


@dataclass(frozen=True)
class _Test:
    """Part of the condition as source text, and the streams it reads."""

    source: str
    streams: frozenset[int]


def compile_conditions(query: JoinQuery, schemas: Sequence[pa.Schema]) -> Conditions:
    """Compile `query.where` for these schemas; queries that differ elsewhere share it.

    Load shedding may change the orders of the join: then there are sites for all of them.
    """
    reach = (0,) * len(query.streams) if query.gap is None else query.lengths
    streams = tuple(
        Stream(s.name, "ts", length, vectors=s.vectors)
        for s, length in zip(query.streams, reach, strict=True)
    )
    plain = JoinQuery(streams, query.on, query.where, between=query.gap)
    return _compile_conditions(plain, tuple(schemas), may_reorder(query))


def may_reorder(query: JoinQuery) -> bool:
    """Whether load shedding may change the join's orders: where results are walked, of few streams.

    Counting multiplies the leaves of the join tree, in whatever order.
    """
    walks = query.select != "count" or query.has_condition
    return query.shedding is not None and walks and len(query.streams) <= _MOST_REORDERED


@lru_cache(maxsize=256)
def _compile_conditions(
    query: JoinQuery, schemas: tuple[pa.Schema, ...], every_order: bool
) -> Conditions:
    if not query.has_condition:
        return Conditions(Columns(), None)
    columns = columns_read(query, schemas)
    if callable(query.where):
        tests, names = _function_test(query.where, query, columns.numbers)
    else:
        tests, names = _text_tests(query, schemas, columns), dict(LIBRARY)
    if query.gap is not None:
        low, high = query.gap
        tests.insert(0, _Test(f"{low} <= t1 - t0 <= {high}", frozenset({0, 1})))
    source, sites = _scan_source(tests, columns.numbers, query, every_order)
    exec(compile(source, "<where>", "exec"), names)  # built from a checked tree, or calls `where`
    try:
        scan = compile_scan(names["scan"])
    except numba.core.errors.NumbaError as error:
        reason = _reason(error)
        msg = f"where cannot be compiled ({reason}); it may use numbers, math and plain Python"
        raise QueryError(msg) from error
    if callable(query.where):
        _check_truth(names["where"])
    return Conditions(columns, scan, sites)


def _reason(error: Exception) -> str:
    """The line of numba's message that gives the cause: behind the steps that failed."""
    lines = (line.strip() for line in _COLOURS.sub("", str(error)).splitlines())
    causes = (line for line in lines if line and not line.startswith("Failed in "))
    return next(causes, type(error).__name__)


def _check_truth(function: Any) -> None:
    """Refuse a function whose result is always true, or never, because it is no number."""
    for signature in getattr(function, "nopython_signatures", ()):  # none where nothing is compiled
        kind = signature.return_type
        inner = kind.type if isinstance(kind, types.Optional) else kind
        if not isinstance(inner, types.Boolean | types.Integer | types.Float):
            msg = f"where must return true or false, or a number, got {kind}"
            raise QueryError(msg)


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


def raise_for_row(query: JoinQuery, log: Log, event: int, error: Exception) -> NoReturn:
    """Say which row a condition failed for; what no condition raises goes on as it is."""
    if not isinstance(error, ArithmeticError) and not callable(query.where):
        raise error  # only a user's function can raise something else
    at = event - log.base
    msg = (
        f"where raised {type(error).__name__} ({error}) for row {log.row[at]} of stream "
        f"{query.names[log.stream[at]]!r}, ts {log.ts[at]}; "
        "it must be defined for all events that meet"
    )
    raise ConditionError(msg) from error


# ---- text


def _text_tests(query: JoinQuery, schemas: Sequence[pa.Schema], columns: Columns) -> list[_Test]:
    parts = plan_of(query, tuple(schemas)).parts if query.condition else ()
    numbers = {Column(query.names[c.stream], c.name): c for c in columns.numbers}
    values: dict[Column | VectorCall, str] = {k: _variable(c) for k, c in numbers.items()}
    vectors = {Column(query.names[c.stream], c.name): c for c in columns.vectors}
    width = columns.widths["vectors"]
    for call in frozenset().union(*(Part(part).calls for part in parts)):
        a, b = vectors[call.left], vectors[call.right]
        ends = f"place{a.stream}, {a.first}, place{b.stream}, {b.first}"
        # As a constant, the length would unroll short loops into code without vector registers.
        values[call] = f"{call.function}(vectors, {ends}, width - {width - a.length})"
    nulls = {key: _null(c) for key, c in numbers.items() if c.null_row != NONE}
    source = Source(values, nulls)
    return [
        _Test(source.true(part.tree), frozenset(map(query.names.index, part.streams)))
        for part in sorted(map(Part, parts), key=lambda part: bool(part.calls))  # numbers first
    ]


# ---- a user's function


def _function_test(
    function: Callable[..., bool], query: JoinQuery, columns: Sequence[NumberColumn]
) -> tuple[list[_Test], dict[str, Any]]:
    names: dict[str, Any] = {"where": numba.njit(function, **_COMPILE)}
    records = []
    for s, stream in enumerate(query.names):
        own = [column for column in columns if column.stream == s]
        names[f"Record{s}"] = namedtuple(stream, [column.name for column in own])  # noqa: PYI024
        records.append(f"Record{s}({', '.join(map(_variable, own))})")
    every = frozenset(range(len(query.streams)))
    return [_Test(f"where({', '.join(records)})", every)], names


# ---- source


def _scan_source(
    tests: Sequence[_Test], numbers: Sequence[NumberColumn], query: JoinQuery, every_order: bool
) -> tuple[str, Sites]:
    """One function with a loop for each step of the plan that has a test to apply."""
    lines = [
        "def scan(site, begin, end, entry, at, arrivals, hits):",
        "    base, ints, floats = arrivals.base, arrivals.ints, arrivals.floats",
        "    vectors, width = arrivals.vectors, arrivals.vectors.shape[1]",
        *(["    event = arrivals.event"] if query.gap else []),
        "    n = 0",
    ]
    sites: Sites = {}
    for bound, found in _all_steps(query) if every_order else _planned_steps(query):
        now = [test for test in tests if _applies(test, bound, found)]
        if now and (bound, found) not in sites:
            lines += _loop(len(sites), now, numbers, bound, found, query.gap is not None)
            sites[bound, found] = len(sites)
    return "\n".join([*lines, "    return n", ""]), sites


def _planned_steps(query: JoinQuery) -> Iterator[tuple[frozenset[int], int]]:
    """What is bound before each step of the plan, and what it finds."""
    for start in range(len(query.streams)):
        bound = frozenset([start])
        for step in steps_from(start, query.keys):
            yield bound, step.stream
            bound |= {step.stream}


def _all_steps(query: JoinQuery) -> Iterator[tuple[frozenset[int], int]]:
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
    numbers: Sequence[NumberColumn],
    bound: frozenset[int],
    found: int,
    with_times: bool,
) -> list[str]:
    read = frozenset().union(*(test.streams for test in tests))
    constants = [
        line
        for s in sorted(read & bound)
        for line in _load(s, f"at[{s}] - base", numbers, with_times)
    ]
    variables = _load(found, f"entry[i, {EVENT}] - base", numbers, with_times)
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


def _load(stream: int, place: str, numbers: Sequence[NumberColumn], with_time: bool) -> list[str]:
    """Source that finds the event of `stream`, and reads its numbers into their variables.

    They are Python's numbers also without numba.
    """
    lines = [f"place{stream} = {place}"]
    if with_time:
        lines.append(f"t{stream} = int(event[place{stream}, {TS}])")
    for number in numbers:
        if number.stream == stream:
            kind = "int" if number.matrix == "ints" else "float"
            value = f"{kind}({number.matrix}[{number.row}, place{stream}])"
            lines.append(f"{_variable(number)} = {value}")
            if number.null_row != NONE:
                lines.append(f"{_null(number)} = ints[{number.null_row}, place{stream}] != 0")
    return lines


def _variable(number: NumberColumn) -> str:
    return f"v{number.stream}_{number.matrix}{number.row}"


def _null(number: NumberColumn) -> str:
    return f"n{number.stream}_{number.null_row}"
