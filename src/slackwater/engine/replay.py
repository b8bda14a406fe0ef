"""Recorded streams through an engine, without Spark: the `replay` of each kind of query.

`recorded` owns times and checks: each time is converted and each row checked there, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.compensation.observation import Estimator
from slackwater.compensation.weights import load_weights, save_weights
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.base import AnyEngine
from slackwater.engine.checks import BAD_TIME, Checks, check_zones
from slackwater.engine.factory import join_engine
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output, counts, late_table, rejects_table, slack_table
from slackwater.engine.report import Report, report
from slackwater.engine.result_schema import result_columns
from slackwater.engine.scale import Clock, typical, warn_of_units
from slackwater.engine.window import WindowEngine
from slackwater.errors import DataError
from slackwater.events.batch import (
    Batch,
    as_table,
    check_time_column,
    flat,
    in_arrival_order,
    time_in_units,
)
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.kernels.records import I64
from slackwater.metrics.counters import Metrics
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.join import JoinQuery
from slackwater.query.stream import by_stream
from slackwater.query.units import Duration
from slackwater.query.window import WindowQuery


def recorded(
    query: AnyQuery, tables: Mapping[str, Any], arrival: str | None
) -> tuple[Batch, list[I64]]:
    """The tables as one batch in arrival order; see `JoinQuery.replay` for the order."""
    tables = by_stream(query.streams, tables)
    unknown = sorted(set(tables) - set(query.names))
    if unknown:
        msg = f"there is no stream {', '.join(unknown)}; streams are {', '.join(query.names)}"
        raise DataError(msg)
    missing = [name for name in query.names if name not in tables]
    if missing:
        msg = f"there is no data for stream {', '.join(missing)}; got {', '.join(tables) or 'none'}"
        raise DataError(msg)
    arrow = []
    for stream in query.streams:
        table = as_table(tables[stream.name], stream.name)
        arrow.append(table.replace_schema_metadata().combine_chunks())
    schemas = [table.schema for table in arrow]
    for stream, schema in zip(query.streams, schemas, strict=True):
        check_time_column(stream.name, stream.ts, schema)
    result_columns(query, schemas)  # raises what an engine would raise before it checks rows
    checks = Checks(query, schemas)
    checked = [checks.check(s, table) for s, table in enumerate(arrow)]
    arrivals, clocks = [], list[Clock]()
    for stream, table, rows in zip(query.streams, arrow, checked, strict=True):
        usable = rows.reason != BAD_TIME
        clocks += _clock(stream.name, stream.ts, rows.ts, usable)
        if arrival is None:
            arrivals.append(_local_time(rows.ts, usable))
        else:
            arrivals.append(_arrival(table, stream.name, arrival, query))
            clocks += _clock(stream.name, arrival, arrivals[-1], np.ones(len(rows.ts), bool))
    check_zones(query, schemas)
    warn_of_units(clocks, query.unit)
    # without an arrival column the rows of a table arrive in table order
    within = [np.arange(len(c.ts)) if arrival is None else c.ts for c in checked]
    return in_arrival_order(arrow, checked, arrivals, within)


def schemas_of(query: AnyQuery, batch: Batch) -> dict[str, pa.Schema]:
    """The schema of each stream of a batch, by name."""
    return dict(zip(query.names, (table.schema for table in batch.tables), strict=True))


def _clock(stream: str, column: str, ts: I64, good: Any) -> list[Clock]:
    time = typical(ts, good)
    return [] if time is None else [Clock(f"column {column!r} of stream {stream!r}", time)]


def _arrival(table: pa.Table, stream: str, column: str, query: AnyQuery) -> I64:
    check_time_column(stream, column, table.schema)
    values, good = time_in_units(flat(table.column(column)), query.unit)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        msg = f"stream {stream!r}: arrival column {column!r} must be set, row {row} is not"
        raise DataError(msg)
    return values


def _local_time(ts: I64, good: Any) -> I64:
    """Largest usable time so far: a stream delivers its newest events as they happen."""
    usable = np.where(good, ts, np.iinfo(np.int64).min)
    return np.maximum.accumulate(usable) if len(usable) else usable


def replay_join(
    query: JoinQuery,
    tables: Mapping[str, Any],
    arrival: str | None,
    limits: Limits = DEFAULT_LIMITS,
) -> Run:
    """Feed all rows in arrival order, then flush."""
    batch, orders = recorded(query, tables, arrival)
    engine = join_engine(query, schemas_of(query, batch), limits=limits)
    output = Output(engine.shape)
    for part in at_once(batch, engine):
        with LoadMeter(engine):
            output.extend(engine.feed(part))
    output.extend(engine.flush())
    return Run(query, batch, orders, output, engine.metrics(), has_arrival=arrival is not None)


def at_once(batch: Batch, engine: AnyEngine) -> Iterable[Batch]:
    """The batch; where load is measured, cut into the intervals in which it is.

    The load is that of streams that arrive as they were recorded.
    """
    shedder = engine.shedder
    if (
        shedder is None
        or not shedder.uses_measured_load
        or batch.arrival is None
        or not len(batch.arrival)
    ):
        return [batch]
    begin, end = int(batch.arrival[0]), int(batch.arrival[-1])
    ends = np.arange(begin + shedder.every, end + shedder.every + 1, shedder.every)
    return batch.cut(np.searchsorted(batch.arrival, ends).tolist())


def replay_window(query: WindowQuery, tables: Mapping[str, Any], arrival: str | None) -> WindowRun:
    """Feed all rows in arrival order, then flush."""
    batch, orders = recorded(query, tables, arrival)
    engine = WindowEngine(query, schemas_of(query, batch))
    output = engine.feed(batch)
    output.extend(engine.flush())
    buffered = engine.reorder.average_buffered
    return WindowRun(query, output, engine.metrics(), buffered, orders[0].tolist())


def replay_aggregate(
    query: AggregateQuery,
    tables: Mapping[str, Any],
    arrival: Any,
    weights: str | Path | None = None,
) -> AggregateRun:
    """Feed all rows in arrival order, then flush; an estimator may begin with `weights`."""
    if not isinstance(arrival, str):
        msg = f"a deadline is a time of arrival: arrival= must name a column, got {arrival!r}"
        raise DataError(msg)
    batch, orders = recorded(query, tables, arrival)
    engine = AggregateEngine(query, schemas_of(query, batch))
    compensator = engine.compensator
    assert compensator is not None  # nothing is added up elsewhere
    if weights is not None:
        load_weights(compensator.estimator, weights)
    output = engine.feed(batch)
    output.extend(engine.flush())
    return AggregateRun(query, orders, output, engine.metrics(), compensator.estimator)


# ---- what a replay gave


@dataclass(frozen=True)
class Run:
    """A finished replay of a join."""

    query: JoinQuery
    batch: Batch
    orders: list[I64]  # for each stream, which row of its table was the n-th to arrive
    output: Output
    metrics: Metrics
    has_arrival: bool

    @cached_property
    def results(self) -> pa.Table:
        """The results, in result-time order but for late ones; the counts with select="count".

        With emit="eager" results are in the order of arrivals.
        """
        return self.output.table

    @cached_property
    def produced(self) -> pa.Table:
        """How many results were made for each result time: (result_ts, n)."""
        return counts(self.output.made, _COUNTS)

    @cached_property
    def slack(self) -> pa.Table:
        """K over event time: (ts, k), a row for each change."""
        return slack_table(self.output.slacks)

    @cached_property
    def late(self) -> pa.Table:
        """Late events: stream, ts, late_by, kept, lost, exact."""
        return late_table(self.output.late, self.query.names)

    @cached_property
    def rejected(self) -> pa.Table:
        """Rows that could not take part: stream, row of its table, reason."""
        return rejects_table(self.output.rejected, self.query.names, self.orders)

    def report(
        self,
        target: float = 0.95,
        over: Duration = "1 minute",
        every: Duration = "1 second",
    ) -> Report:
        """Compare with the exact truth, the join of the sorted input.

        Parameters
        ----------
        target
            Γ, the recall that should be reached.
        over
            P: recall is measured over the last P of result time.
        every
            L: a measurement each L.

        Returns
        -------
        Report
            Recall, the share of measurements that reach the target, latency and slack.

        Raises
        ------
        QueryError
            If the target is not a share, or a duration is too short.
        """
        return report(self, target, over, every)


@dataclass(frozen=True)
class WindowRun:
    """A finished replay of windows over one stream."""

    query: WindowQuery
    output: Output
    metrics: Metrics
    average_buffered: float  # events that waited, on average over all arrivals
    order: list[int]  # which row of the table was the n-th to arrive

    @cached_property
    def results(self) -> pa.Table:
        """The aggregates, by the end of their windows."""
        return self.output.table

    @cached_property
    def late(self) -> pa.Table:
        """Events that were dropped: stream, ts, late_by."""
        return late_table(self.output.late, self.query.names).select(["stream", "ts", "late_by"])

    @cached_property
    def rejected(self) -> pa.Table:
        """Rows that could not take part: stream, row of the table, reason."""
        return rejects_table(self.output.rejected, self.query.names, [np.array(self.order)])

    @property
    def drop_ratio(self) -> float:
        """The share of the events that was dropped."""
        stream = self.metrics.streams[self.query.names[0]]
        arrived = stream.in_order + stream.late_dropped + stream.buffered
        return stream.late_dropped / max(1, arrived)

    @cached_property
    def slack(self) -> pa.Table:
        """How far the heartbeat was behind its base: (ts, k), a row for each change."""
        return slack_table(self.output.slacks)


@dataclass(frozen=True)
class AggregateRun:
    """A finished replay of aggregates over joined windows."""

    query: AggregateQuery
    orders: list[I64]  # for each stream, which row of its table was the n-th to arrive
    output: Output
    metrics: Metrics
    estimator: Estimator | None = None  # as it is at the end

    def save_weights(self, path: str | Path) -> None:
        """Write what the network of ``compensate="mlp"`` has learnt, with its recipe.

        Parameters
        ----------
        path
            The file, JSON; ``query.replay(…, weights=path)`` begins with it.

        Raises
        ------
        QueryError
            If the estimator has no weights.
        """
        save_weights(self.estimator, path)

    @cached_property
    def results(self) -> pa.Table:
        """All rows, in the order in which they were given out."""
        return self.output.table

    @cached_property
    def early(self) -> pa.Table:
        """The rows that were given out at deadlines."""
        return self.results.filter(pc.invert(self.results.column("exact")))

    @cached_property
    def exact(self) -> pa.Table:
        """The rows of complete windows."""
        return self.results.filter(self.results.column("exact"))

    @cached_property
    def rejected(self) -> pa.Table:
        """Rows that could not take part: stream, row of its table, reason."""
        return rejects_table(self.output.rejected, self.query.names, self.orders)


_COUNTS = pa.schema([pa.field("result_ts", pa.int64()), pa.field("n", pa.int64())])
