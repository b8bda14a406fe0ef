"""Windows and aggregates over them as SQL: from the definition alone, by code that is not ours.

Each event is repeated for every window that holds it; the rest is GROUP BY. This oracle does not
support windows in tuples, nor windows that end at each event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.aggregate import result_schema
from slackwater.engine.output import RESULT_TS, time_type
from slackwater.events.batch import flat, time_in_units
from slackwater.kernels.records import I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.functions import Aggregate
from slackwater.query.window import WindowQuery
from slackwater.testing.sql_condition import NotSqlError

_EDGE = "#edge"  # of the window that a row is in: its start, or for one stream its end


def windows_by_sql(base: Any, query: WindowQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Compute all windows of one stream, by a connection to DuckDB."""
    length, step = query.length, query.step
    if not isinstance(length, int) or not isinstance(step, int):
        msg = "windows in tuples, or at each event"
        raise NotSqlError(msg)
    [stream] = query.streams
    table = tables[stream.name]
    # the first end not before t; where windows do not hold their end, behind it
    shift = step - 1 if query.bounds == "(]" else step
    base.register(
        "s0", _spread(query, 0, table, list(query.by), length, step, shift, query.bounds == "(]")
    )
    by = ", ".join(map(_quoted, [_EDGE, *query.by]))
    values = [f"{_aggregate(how, '')} AS {_quoted(name)}" for name, how in query.select.items()]
    found = base.sql(f"SELECT {by}, {', '.join(values)} FROM s0 GROUP BY {by} ORDER BY {by}")
    made = found.to_arrow_table().rename_columns([RESULT_TS, *query.by, *query.select])
    time = made.column(RESULT_TS).cast(time_type(query, [table.schema]))
    return made.set_column(0, RESULT_TS, time)


def aggregates_by_sql(base: Any, query: AggregateQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Compute the join of each window, aggregated, by a connection to DuckDB."""
    streams = range(len(query.streams))
    keys, group, groups = query.keys[0], query.group_stream, query.group_columns
    for s, name in enumerate(query.names):
        read = [*keys.columns[s], *(groups if s == group else ())]
        spread = _spread(query, s, tables[name], read, query.length, query.step, 0)
        base.register(f"s{s}", spread)
    own = [f"s{group}.{_quoted(column)} AS g{i}" for i, column in enumerate(groups)]
    edge = _quoted(_EDGE)
    equal = [f"s0.{edge} = s{s}.{edge}" for s in streams[1:]]
    equal += [
        f"s0.{_quoted(first)} = s{s}.{_quoted(column)}"
        for s in streams[1:]
        for first, column in zip(keys.columns[0], keys.columns[s], strict=True)
    ]
    values = []
    for i, how in enumerate(query.select.values()):
        place = "" if how.column is None else f"s{query.place(how.column)[0]}."
        column = None if how.column is None else query.place(how.column)[1]
        values.append(f"{_aggregate(Aggregate(how.function, column), place)} AS v{i}")
    names = ", ".join(["e", *(f"g{i}" for i in range(len(own)))])
    window = ", ".join([f"s0.{edge} AS e", *own])
    joined = f"SELECT {window}, {', '.join(values)} FROM {', '.join(f's{s}' for s in streams)} "
    joined += f"WHERE {' AND '.join(equal)} GROUP BY ALL"
    # windows without any result have a row too: those of all streams, or all groups of one
    holders = streams if group is None else [group]
    there = " UNION ".join(
        f"SELECT DISTINCT {', '.join([f's{s}.{edge} AS e', *own])} FROM s{s}" for s in holders
    )
    every = f"SELECT * FROM ({there}) LEFT JOIN ({joined}) USING ({names}) ORDER BY {names}"
    return _in_result_schema(query, tables, base.sql(every).to_arrow_table())


def _in_result_schema(
    query: AggregateQuery, tables: Mapping[str, pa.Table], found: pa.Table
) -> pa.Table:
    """Return the columns of `replay`: observed, low and high are the value itself."""
    schema = result_schema(query, [tables[name].schema for name in query.names])
    start = found.column("e").combine_chunks().cast(pa.int64())
    end = pa.array(start.to_numpy() + query.length)
    columns: dict[str, Any] = {"window_start": start, "window_end": end}
    columns |= {name: found.column(f"g{i}") for i, name in enumerate(query.group_columns)}
    for i, (name, how) in enumerate(query.select.items()):
        value = found.column(f"v{i}")
        value = value if how.function == "avg" else value.fill_null(0)
        columns |= dict.fromkeys([name, f"{name}_observed", f"{name}_low", f"{name}_high"], value)
    columns["completeness"] = pa.array(np.ones(found.num_rows))
    columns["exact"] = pa.array(np.ones(found.num_rows, bool))
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _spread(
    query: WindowQuery | AggregateQuery,
    stream: int,
    table: pa.Table,
    not_null: Sequence[str],
    length: int,
    step: int,
    shift: int,
    open_start: bool = False,
) -> pa.Table:
    """Return the rows that can take part, once for each window that holds them.

    An edge at a multiple of `step` identifies a window: with a `shift` its end, the first of which
    is `t + shift` rounded down; without, its start. `open_start` makes windows ``(]``, not ``[)``.
    """
    ts, good = time_in_units(flat(table.column(query.streams[stream].ts)), query.unit)
    for name in not_null:
        good = good & np.asarray(table.column(name).is_valid())
    rows = np.flatnonzero(good)
    first = (ts[rows] + shift) // step * step
    parts: list[tuple[I64, I64]] = []
    for n in range(-(-length // step) + 1):
        if shift:
            edge = first + n * step
            low, high = edge - length, edge
        else:
            edge = first - n * step
            low, high = edge, edge + length
        t = ts[rows]
        inside = (low < t) & (t <= high) if open_start else (low <= t) & (t < high)
        parts.append((rows[inside], edge[inside]))
    row, edges = (np.concatenate(column) for column in zip(*parts, strict=True))
    spread = table.take(row).append_column(_EDGE, pa.array(edges))
    return spread.append_column("#t", pa.array(ts[row])).append_column("#row", pa.array(row))


def _aggregate(how: Aggregate, place: str) -> str:
    if how.column is None:
        return "count(*)"
    column = f"{place}{_quoted(how.column)}"
    if how.function in ("first", "last"):
        return f'{how.function}({column} ORDER BY "#t", "#row")'
    function = {"stddev": "stddev_samp"}.get(how.function, how.function)
    return f"{function}({column})"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
