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
from numpy.typing import NDArray

from slackwater.engine.replay import recorded, replay_aggregate, replay_join, replay_window
from slackwater.engine.report import truth
from slackwater.events.batch import flat, time_in_units
from slackwater.kernels.records import I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.goals import NoSlack, Slack
from slackwater.query.join import JoinQuery
from slackwater.query.window import WindowQuery
from slackwater.testing.join_oracle import join_by_sql
from slackwater.testing.sql_condition import NotSqlError
from slackwater.testing.window_oracle import aggregates_by_sql, windows_by_sql

DUCKDB = "DuckDB"
EMBEDDED = "the embedded engine, on sorted input"
_NOW = "__arrival"

Truth = tuple[pa.Table, NDArray[np.bool_]]  # rows, and which of them have no partner


class Exact(NamedTuple):
    """The true results, and what computed them."""

    table: pa.Table
    oracle: str
    begin: int  # the first event time
    end: int  # the last one
    alone: NDArray[np.bool_]  # rows that say that an event has no partner


def exact(query: AnyQuery, tables: Mapping[str, pa.Table]) -> Exact:
    """Compute all true results over `tables`, in the columns that `replay` returns."""
    begin, end = _span(query, tables)
    found = _by_duckdb(query, tables)
    table, alone = found or _by_engine(query, tables)
    return Exact(table, DUCKDB if found else EMBEDDED, begin, end, alone)


def _times(query: AnyQuery, tables: Mapping[str, pa.Table]) -> list[tuple[I64, Any]]:
    """Return the event times of each stream, and which of them are usable."""
    return [time_in_units(flat(tables[s.name].column(s.ts)), query.unit) for s in query.streams]


def _span(query: AnyQuery, tables: Mapping[str, pa.Table]) -> tuple[int, int]:
    usable = np.concatenate([ts[good] for ts, good in _times(query, tables)])
    return (int(usable.min()), int(usable.max())) if len(usable) else (0, 0)


# ---- our own engine, on sorted input


@singledispatch
def _by_engine(query: AnyQuery, tables: Mapping[str, pa.Table]) -> Truth:
    """Compute the true results by our own engine."""
    raise NotImplementedError(type(query))


@_by_engine.register
def _(query: JoinQuery, tables: Mapping[str, pa.Table]) -> Truth:
    if query.how == "inner":
        batch, _ = recorded(query, tables, None)
        table = truth(query, batch, query.select)[0].table
        return table, np.zeros(table.num_rows, bool)
    options: dict[str, Any] = {"late": "count", "emit": "ordered", "result_id": False}
    in_order, streams = replace(query, goal=Slack(0), **options), _sorted(query, tables)
    table = replay_join(in_order, streams, None).results
    return table, _alone(in_order, streams)


def _alone(query: JoinQuery, streams: Mapping[str, pa.Table]) -> NDArray[np.bool_]:
    """Return which results lack a member: the time of an event is never null."""
    rows = replay_join(replace(query, select="*"), streams, None).results
    alone = np.full(rows.num_rows, query.how == "anti")
    for s, stream in enumerate(query.streams):
        if query.shows(s):
            alone |= np.asarray(flat(rows.column(f"{stream.name}_{stream.ts}")).is_null())
    return alone


@_by_engine.register
def _(query: WindowQuery, tables: Mapping[str, pa.Table]) -> Truth:
    run = replay_window(replace(query, goal=NoSlack()), _sorted(query, tables), None)
    return run.results, np.zeros(run.results.num_rows, bool)


@_by_engine.register
def _(query: AggregateQuery, tables: Mapping[str, pa.Table]) -> Truth:
    in_order = _sorted(query, tables)
    at_once = {
        stream.name: in_order[stream.name].append_column(_NOW, in_order[stream.name][stream.ts])
        for stream in query.streams
    }
    complete = replace(query, late="emit", retention=0, compensate=None)
    found = replay_aggregate(complete, at_once, _NOW).exact
    return found, np.zeros(found.num_rows, bool)


def _sorted(query: AnyQuery, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the rows that have a time, sorted by event time; the sort is stable."""
    found = {}
    for stream, (ts, good) in zip(query.streams, _times(query, tables), strict=True):
        order = np.argsort(ts, kind="stable")
        found[stream.name] = tables[stream.name].take(order[good[order]])
    return found


# ---- DuckDB


def _by_duckdb(query: AnyQuery, tables: Mapping[str, pa.Table]) -> Truth | None:
    """Compute the true results by DuckDB; None if it is missing or does not support the query."""
    if find_spec("duckdb") is None:
        return None
    import duckdb  # noqa: PLC0415  optional

    base = duckdb.connect()
    try:
        base.execute("SET enable_progress_bar = false")
        if isinstance(query, JoinQuery):
            return join_by_sql(base, query, tables)
        table = _BY_SQL[type(query)](base, query, tables)
        return table, np.zeros(table.num_rows, bool)
    except (duckdb.Error, NotSqlError):
        return None  # a type or a function that DuckDB does not have
    finally:
        base.close()


_BY_SQL: dict[type, Callable[[Any, Any, Mapping[str, pa.Table]], pa.Table]] = {
    WindowQuery: windows_by_sql,
    AggregateQuery: aggregates_by_sql,
}
