"""Recorded streams through joined windows, without Spark: `AggregateQuery.replay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.output import Output, rejects_table
from slackwater.engine.replay import recorded
from slackwater.errors import DataError
from slackwater.kernels.records import I64
from slackwater.metrics.counters import Metrics
from slackwater.query.aggregate import AggregateQuery


def replay(query: AggregateQuery, tables: Mapping[str, Any], arrival: Any) -> AggregateRun:
    """Feed all rows in arrival order, then flush."""
    if not isinstance(arrival, str):
        msg = f"a deadline is a time of arrival: arrival= must name a column, got {arrival!r}"
        raise DataError(msg)
    batch, orders = recorded(query, tables, arrival)
    engine = AggregateEngine(
        query, dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    )
    output = engine.feed(batch)
    output.extend(engine.flush())
    return AggregateRun(query, orders, output, engine.metrics())


@dataclass(frozen=True)
class AggregateRun:
    """A finished replay."""

    query: AggregateQuery
    orders: list[I64]  # for each stream, which row of its table was the n-th to arrive
    output: Output
    metrics: Metrics

    @cached_property
    def results(self) -> pa.Table:
        """The results, in the order in which they were given out."""
        return self.output.table

    @cached_property
    def early(self) -> pa.Table:
        """The results at the deadlines."""
        return self.results.filter(pc.invert(self.results.column("exact")))

    @cached_property
    def exact(self) -> pa.Table:
        """The results of complete windows."""
        return self.results.filter(self.results.column("exact"))

    @cached_property
    def rejected(self) -> pa.Table:
        """Rows that could not take part: stream, row of its table, reason."""
        return rejects_table(self.output.rejected, self.query.names, self.orders)
