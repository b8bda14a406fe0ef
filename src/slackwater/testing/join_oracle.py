"""The exact results of a join by SQL of DuckDB, from the definition of each kind alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.engine.identity import ranks
from slackwater.engine.result_schema import RESULT_TS, time_type
from slackwater.events.batch import flat, time_in_units
from slackwater.joins.projection import Projection
from slackwater.joins.where_plan import never_true
from slackwater.query.expression import Column
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS
from slackwater.testing.sql_condition import NotSqlError, as_sql

_NEAREST = "abs(t0 - t1), t1 <= t0 DESC, rank DESC, r1 DESC"  # the best as-of partner comes first


def join_by_sql(
    base: Any, query: JoinQuery, tables: Mapping[str, pa.Table]
) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Return the true results, and which of them have no partner.

    Raises
    ------
    NotSqlError
        If DuckDB cannot say what the query says.
    """
    if query.has_tuple_windows:
        msg = "windows in tuples"
        raise NotSqlError(msg)
    for s, name in enumerate(query.names):
        base.register(f"s{s}", _input(query, s, tables[name]))
    members = base.sql(f"{_sql(query)} ORDER BY t").to_arrow_table()
    return _results(query, tables, members), _alone(query, members)


def _alone(query: JoinQuery, members: pa.Table) -> NDArray[np.bool_]:
    """Return which rows say that an event has no partner."""
    alone = np.zeros(members.num_rows, bool)
    for s in range(2) if any(query.preserved) else ():
        alone |= np.asarray(flat(members.column(f"r{s}")).is_null())
    return alone


def _reads(query: JoinQuery, stream: int) -> list[str]:
    """Return the columns of a stream that the join reads, besides the time."""
    keys = [column for key in query.keys for column in key.columns.get(stream, ())]
    condition = query.condition
    name = query.names[stream]
    others = [] if condition is None else [c for s, c in sorted(condition.columns) if s == name]
    return list(dict.fromkeys([*keys, *others]))


def _input(query: JoinQuery, stream: int, table: pa.Table) -> pa.Table:
    """Return row number, time, end of the first window that holds it, and the columns it reads.

    Rows that cannot take part are left out: those without a usable time; and those with nulls,
    unless they have rows also without a partner.
    """
    ts, good = time_in_units(flat(table.column(query.streams[stream].ts)), query.unit)
    slide = query.slide_units
    shift = slide if query.bounds == "[)" else slide - 1
    read = _reads(query, stream)
    columns = {name: table.column(name) for name in read}
    condition = query.condition
    for name, column in columns.items():
        own = Column(query.names[stream], name)
        is_key = any(name in key.columns.get(stream, ()) for key in query.keys)
        is_needed = is_key or condition is None or never_true(condition.tree, own)
        if is_needed and not query.preserved[stream]:
            good = good & np.asarray(column.is_valid())
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            msg = f"{name} has NaN, which SQL orders above every number"
            raise NotSqlError(msg)
    rows = pa.table({"#row": np.arange(len(ts)), "#t": ts, "#end": (ts + shift) // slide * slide})
    if query.how == "asof" and stream == 1:
        rank = ranks(table, query.streams[1].id)
        rows = rows.append_column("#rank", pa.array(rank))
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows.filter(pa.array(good))


def _sql(query: JoinQuery) -> str:
    """Return SQL with one result per row: its row in each stream, and its time."""
    if query.how == "asof":
        return _asof(query)
    pairs = _pairs(query)
    if query.how == "inner":
        return pairs
    if query.how == "semi":
        return f"WITH pairs AS ({pairs}) SELECT r0, min(t) AS t FROM pairs GROUP BY r0"
    parts = ["SELECT r0, r1, t FROM pairs"] if query.how in WITH_PAIRS else []
    for s in (0, 1):
        if query.preserved[s]:
            shown = [f'"#row" AS r{s}' if s == of else f"NULL AS r{of}" for of in (0, 1)]
            due = f'"#t" + {query.lengths[s]} AS t'
            parts.append(
                f'SELECT {", ".join(shown)}, {due} FROM s{s} ANTI JOIN pairs ON "#row" = r{s}'
            )
    return f"WITH pairs AS MATERIALIZED ({pairs}) {' UNION ALL '.join(parts)}"


def _pairs(query: JoinQuery, more: str = "") -> str:
    """Return SQL with all members that belong together, and the time of the newest."""
    streams = range(len(query.streams))
    tests = _equal_keys(query)
    # each member is in its window at the end of the first window that holds the newest one
    tests += [
        f"{_column(other, '#end')} <= {_column(s, '#t')} + {query.lengths[s]}"
        for s in streams
        for other in streams
    ]
    if query.gap is not None:
        later = f"{_column(1, '#t')} - {_column(0, '#t')}"
        tests.append(f"{later} BETWEEN {query.gap[0]} AND {query.gap[1]}")
    if isinstance(query.where, str):
        places = {name: f"s{s}" for s, name in enumerate(query.names)}
        tests.append(as_sql(query.where, places))
    elif query.where is not None:
        msg = "a function"
        raise NotSqlError(msg)
    rows = ", ".join(f"{_column(s, '#row')} AS r{s}" for s in streams)
    newest = ", ".join(_column(s, "#t") for s in streams)
    tables = ", ".join(f"s{s}" for s in streams)
    found = f"SELECT {rows}, greatest({newest}) AS t{more} FROM {tables}"
    return f"{found} WHERE {' AND '.join(tests)}"


def _equal_keys(query: JoinQuery) -> list[str]:
    return [
        f"{_column(key.streams[0], first)} = {_column(other, column)}"
        for key in query.keys
        for other in key.streams[1:]
        for first, column in zip(key.columns[key.streams[0]], key.columns[other], strict=True)
    ]


def _asof(query: JoinQuery) -> str:
    """Return SQL with a row for each left event: its nearest right one, or null."""
    columns = 's0."#t" AS t0, s1."#t" AS t1, s1."#rank" AS rank'
    if query.where is not None:
        near = _pairs(query, f", {columns}")
    else:
        sides = {"backward": [">="], "forward": ["<="], "nearest": [">=", "<="]}[query.direction]
        near = " UNION ALL ".join(_asof_join(query, side, columns) for side in sides)
    first = f"row_number() OVER (PARTITION BY r0 ORDER BY {_NEAREST}) = 1"
    best = f"SELECT r0, r1 FROM near QUALIFY {first}"
    return (
        f"WITH near AS ({near}), best AS ({best}) "
        f'SELECT "#row" AS r0, r1, "#t" + {query.lengths[0]} AS t FROM s0 LEFT JOIN best '
        'ON "#row" = r0'
    )


def _asof_join(query: JoinQuery, side: str, columns: str) -> str:
    """Return SQL with the nearest right event on one side of each left one."""
    equal = _equal_keys(query)
    keys = sorted({column for key in query.keys for column in key.columns.get(1, ())})
    same = ", ".join([_column(1, "#t"), *(_column(1, key) for key in keys)])
    first = f"row_number() OVER (PARTITION BY {same} ORDER BY {_column(1, '#rank')} DESC, "
    once = f"SELECT * FROM s1 QUALIFY {first}{_column(1, '#row')} DESC) = 1"
    tests = " AND ".join([*equal, f"{_column(0, '#t')} {side} {_column(1, '#t')}"])
    most = max(length or 0 for length in query.lengths)
    within = f"abs({_column(0, '#t')} - {_column(1, '#t')}) <= {most}"
    return (
        f"SELECT {_column(0, '#row')} AS r0, {_column(1, '#row')} AS r1, {columns} "
        f"FROM s0 ASOF JOIN ({once}) s1 ON {tests} WHERE {within}"
    )


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
    shown = [(s, name) for s, name in enumerate(query.names) if query.shows(s)]
    rows_of = [tables[name].take(members.column(f"r{s}")) for s, name in shown]
    if query.listed:
        projection = Projection(query, schemas)
        named = zip(projection.fields, projection.of_members(rows_of), strict=True)
        return pa.table(columns | {field.name: column for field, column in named})
    for (_, name), rows in zip(shown, rows_of, strict=True):
        columns |= {f"{name}_{column}": rows.column(column) for column in rows.column_names}
    return pa.table(columns)
