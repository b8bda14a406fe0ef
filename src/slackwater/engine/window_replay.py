"""A recorded stream through its windows, without Spark: `WindowQuery.replay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.output import Output, late_table, rejects_table
from slackwater.engine.replay import recorded
from slackwater.engine.window import WindowEngine
from slackwater.metrics.counters import Metrics
from slackwater.query.window import WindowQuery


def replay(query: WindowQuery, table: Any, arrival: str | None) -> WindowRun:
    """Feed all rows in arrival order, then flush."""
    tables = table if isinstance(table, Mapping) else {query.names[0]: table}
    batch, orders = recorded(query, tables, arrival)
    engine = WindowEngine(query, {query.names[0]: batch.tables[0].schema})
    output = engine.feed(batch)
    output.extend(engine.flush())
    buffered = engine.reorder.average_buffered
    return WindowRun(query, output, engine.metrics(), buffered, orders[0].tolist())


@dataclass(frozen=True)
class WindowRun:
    """A finished replay."""

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
        seen = self.metrics.streams[self.query.names[0]]
        return seen.late_dropped / max(1, seen.in_order + seen.late_dropped + seen.buffered)

    def slack(self) -> pa.Table:
        """How far the heartbeat was behind its base: (ts, k), a row for each change."""
        ts, k = zip(*self.output.slacks, strict=True) if self.output.slacks else ((), ())
        return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.int64())})
