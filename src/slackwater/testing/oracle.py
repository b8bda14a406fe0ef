"""The exact results of a query over recorded streams, as if nothing were late.

DuckDB computes them where it is installed and supports the query: other code than ours, from the
definition alone. Otherwise our own engine runs on the sorted input; the property tests compare it
with naive oracles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import singledispatch
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.aggregate_replay import replay as aggregates
from slackwater.engine.output import RESULT_TS, time_type
from slackwater.engine.replay import recorded
from slackwater.engine.report import truth
from slackwater.engine.window_replay import replay as windows
from slackwater.events.batch import flat, time_in_units
from slackwater.joins.projection import Projection
from slackwater.kernels.records import I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import NoSlack
from slackwater.query.join import JoinQuery
from slackwater.query.window import AnyQuery, WindowQuery
from slackwater.testing.sql_condition import NotSqlError, as_sql
from slackwater.testing.window_oracle import aggregates_by_sql, windows_by_sql

DUCKDB = "DuckDB"
EMBEDDED = "the embedded engine, on sorted input"
_NOW = "__arrival"


class Exact(NamedTuple):
    """The true results, and what computed them."""

    table: pa.Table
    oracle: str
    begin: int  # the first event time
    end: int  # the last one


def exact(query: AnyQuery, tables: Mapping[str, pa.Table]) -> Exact:
    """Compute all true results over `tables`, in the columns that `replay` returns."""
    begin, end = _span(query, tables)
    found = _by_duckdb(query, tables)
    if found is not None:
        return Exact(found, DUCKDB, begin, end)
    return Exact(_by_engine(query, tables), EMBEDDED, begin, end)


def _times(query: AnyQuery, tables: Mapping[str, pa.Table]) -> list[tuple[I64, Any]]:
    """Return the event times of each stream, and which of them are usable."""
    return [time_in_units(flat(tables[s.name].column(s.ts)), query.unit) for s in query.streams]


def _span(query: AnyQuery, tables: Mapping[str, pa.Table]) -> tuple[int, int]:
    usable = np.concatenate([ts[good] for ts, good in _times(query, tables)])
    return (int(usable.min()), int(usable.max())) if len(usable) else (0, 0)


# ---- our own engine, on sorted input


@singledispatch
def _by_engine(query: AnyQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Compute the true results by our own engine."""
    raise NotImplementedError(type(query))


@_by_engine.register
def _(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    batch, _ = recorded(query, tables, None)
    return truth(query, batch, query.select)[0].table


@_by_engine.register
def _(query: WindowQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    return windows(replace(query, goal=NoSlack()), _sorted(query, tables), None).results


@_by_engine.register
def _(query: AggregateQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    in_order = _sorted(query, tables)
    at_once = {
        stream.name: in_order[stream.name].append_column(_NOW, in_order[stream.name][stream.ts])
        for stream in query.streams
    }
    complete = replace(query, late="emit", retention=0, compensate=None)
    return aggregates(complete, at_once, _NOW).exact


def _sorted(query: AnyQuery, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the rows that have a time, sorted by event time; the sort is stable."""
    found = {}
    for stream, (ts, good) in zip(query.streams, _times(query, tables), strict=True):
        order = np.argsort(ts, kind="stable")
        found[stream.name] = tables[stream.name].take(order[good[order]])
    return found


# ---- DuckDB


def _by_duckdb(query: AnyQuery, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """Compute the true results by DuckDB; None if it is missing or does not support the query."""
    if find_spec("duckdb") is None:
        return None
    import duckdb  # noqa: PLC0415  not everybody has it

    base = duckdb.connect()
    try:
        base.execute("SET enable_progress_bar = false")
        return _BY_SQL[type(query)](base, query, tables)
    except (duckdb.Error, NotSqlError):
        return None  # a type or a function that DuckDB does not have
    finally:
        base.close()


def _join_by_sql(base: Any, query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    if query.has_tuple_windows:
        msg = "windows in tuples"
        raise NotSqlError(msg)
    for s, name in enumerate(query.names):
        base.register(f"s{s}", _input(query, s, tables[name]))
    return _results(query, tables, base.sql(_sql(query)).to_arrow_table())


_BY_SQL: dict[type, Callable[[Any, Any, Mapping[str, pa.Table]], pa.Table]] = {
    JoinQuery: _join_by_sql,
    WindowQuery: windows_by_sql,
    AggregateQuery: aggregates_by_sql,
}


def _reads(query: JoinQuery, stream: int) -> list[str]:
    """Return the columns of a stream that the join reads, besides the time."""
    keys = [column for key in query.keys for column in key.columns.get(stream, ())]
    condition = query.condition
    name = query.names[stream]
    others = [] if condition is None else [c for s, c in sorted(condition.columns) if s == name]
    return list(dict.fromkeys([*keys, *others]))


def _input(query: JoinQuery, stream: int, table: pa.Table) -> pa.Table:
    """Return row number, time, end of the first window that holds it, and the columns it reads.

    Rows that cannot take part are left out: those without a usable time, and nulls.
    """
    ts, good = time_in_units(flat(table.column(query.streams[stream].ts)), query.unit)
    slide = query.slide_units
    shift = slide if query.bounds == "[)" else slide - 1
    read = _reads(query, stream)
    columns = {name: table.column(name) for name in read}
    for name, column in columns.items():
        good = good & np.asarray(column.is_valid())
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            msg = f"{name} has NaN, which SQL orders above every number"
            raise NotSqlError(msg)
    own = pa.table({"#row": np.arange(len(ts)), "#t": ts, "#end": (ts + shift) // slide * slide})
    for name, column in columns.items():
        own = own.append_column(name, column)
    return own.filter(pa.array(good))


def _sql(query: JoinQuery) -> str:
    """Return SQL with one result per row: its row in each stream, and its time."""
    streams = range(len(query.streams))
    tests = [
        f"{_column(key.streams[0], first)} = {_column(other, column)}"
        for key in query.keys
        for other in key.streams[1:]
        for first, column in zip(key.columns[key.streams[0]], key.columns[other], strict=True)
    ]
    # each member is in its window at the end of the first window that holds the newest one
    tests += [
        f"{_column(other, '#end')} <= {_column(s, '#t')} + {query.lengths[s]}"
        for s in streams
        for other in streams
    ]
    if isinstance(query.where, str):
        places = {name: f"s{s}" for s, name in enumerate(query.names)}
        tests.append(as_sql(query.where, places))
    elif query.where is not None:
        msg = "a function"
        raise NotSqlError(msg)
    rows = ", ".join(f"{_column(s, '#row')} AS r{s}" for s in streams)
    newest = ", ".join(_column(s, "#t") for s in streams)
    tables = ", ".join(f"s{s}" for s in streams)
    found = f"SELECT {rows}, greatest({newest}) AS t FROM {tables}"
    return f"{found} WHERE {' AND '.join(tests)} ORDER BY t"


def _column(stream: int, name: str) -> str:
    quoted = name.replace('"', '""')
    return f's{stream}."{quoted}"'


def _results(query: JoinQuery, tables: Mapping[str, pa.Table], members: pa.Table) -> pa.Table:
    schemas = [tables[name].schema for name in query.names]
    time = members.column("t").combine_chunks().cast(pa.int64()).cast(time_type(query, schemas))
    if query.select == "count":
        counted = pa.table({RESULT_TS: time}).group_by(RESULT_TS).aggregate([([], "count_all")])
        return counted.rename_columns([RESULT_TS, "n"])
    columns = {RESULT_TS: time}
    rows_of = [tables[name].take(members.column(f"r{s}")) for s, name in enumerate(query.names)]
    if query.listed:
        projection = Projection(query, schemas)
        named = zip(projection.fields, projection.of_members(rows_of), strict=True)
        return pa.table(columns | {field.name: column for field, column in named})
    for name, rows in zip(query.names, rows_of, strict=True):
        columns |= {f"{name}_{column}": rows.column(column) for column in rows.column_names}
    return pa.table(columns)
