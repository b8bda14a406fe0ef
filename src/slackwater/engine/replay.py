"""Recorded streams through the engine, without Spark: `JoinQuery.replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.base import AnyEngine
from slackwater.engine.checks import BAD_TIME, Checks, check_zones
from slackwater.engine.join import JoinEngine
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output, counts, late_table, rejects_table
from slackwater.engine.report import Report, report
from slackwater.engine.scale import Clock, typical, warn_of_units
from slackwater.errors import DataError
from slackwater.events.batch import (
    Batch,
    as_table,
    check_time_column,
    flat,
    in_arrival_order,
    time_in_units,
)
from slackwater.kernels.records import I64
from slackwater.metrics.counters import Metrics
from slackwater.query.join import JoinQuery, by_stream
from slackwater.query.units import Duration
from slackwater.query.window import AnyQuery


def replay(query: JoinQuery, tables: Mapping[str, Any], arrival: str | None) -> Run:
    """Feed all rows in arrival order, then flush."""
    batch, orders = recorded(query, tables, arrival)
    engine = JoinEngine(
        query, dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    )
    output = Output(engine.shape)
    for part in at_once(batch, engine):
        with LoadMeter(engine):
            output.extend(engine.feed(part))
    output.extend(engine.flush())
    return Run(query, batch, orders, output, engine.metrics(), has_arrival=arrival is not None)


def at_once(batch: Batch, engine: AnyEngine) -> Iterable[Batch]:
    """All of it; or as much as comes in the time between two looks at the load, if it is measured.

    The load is that of streams that arrive as they were recorded.
    """
    shedder = engine.shedder
    if shedder is None or not shedder.is_told or batch.arrival is None or not len(batch.arrival):
        return [batch]
    begin, end = int(batch.arrival[0]), int(batch.arrival[-1])
    looks = np.arange(begin + shedder.every, end + shedder.every + 1, shedder.every)
    return batch.cut(np.searchsorted(batch.arrival, looks).tolist())


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
    checks = Checks(query, [table.schema for table in arrow])
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
    check_zones(query, [table.schema for table in arrow])
    warn_of_units(clocks, query.unit)
    # without an arrival column the rows of a table arrive in table order
    within = [np.arange(len(c.ts)) if arrival is None else c.ts for c in checked]
    return in_arrival_order(arrow, checked, arrivals, within)


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


@dataclass(frozen=True)
class Run:
    """A finished replay."""

    query: JoinQuery
    batch: Batch
    orders: list[I64]  # for each stream, which row of its table was the n-th to arrive
    output: Output
    metrics: Metrics
    has_arrival: bool

    @cached_property
    def results(self) -> pa.Table:
        """The results, in result-time order but for late ones; the counts with select="count"."""
        return self.output.table

    def produced(self) -> pa.Table:
        """How many results were made for each result time: (result_ts, n)."""
        return counts(self.output.made, _COUNTS)

    def slack(self) -> pa.Table:
        """K over event time: (ts, k), a row for each change."""
        ts, k = zip(*self.output.slacks, strict=True) if self.output.slacks else ((), ())
        return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.int64())})

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
        gamma: float = 0.95,
        period: Duration = "1 minute",
        every: Duration = "1 second",
    ) -> Report:
        """Compare with the exact truth, the join of the sorted input.

        Parameters
        ----------
        gamma
            Γ, the recall that should be reached.
        period
            P: recall is measured over the last P of result time.
        every
            L: a measurement each L.
        """
        return report(self, gamma, period, every)


_COUNTS = pa.schema([pa.field("result_ts", pa.int64()), pa.field("n", pa.int64())])
