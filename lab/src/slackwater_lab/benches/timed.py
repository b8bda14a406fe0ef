"""What the cases of `bench core` share: their options, and a join that is ready to be timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from slackwater.engine.factory import join_engine
from slackwater.engine.replay import recorded
from slackwater.events.batch import Batch
from slackwater.metrics.counters import Metrics
from slackwater.query.join import JoinQuery

_WARM_UP = 20_000  # arrivals that call every kernel once
_QUICK = 50  # so many times less data


@dataclass(frozen=True)
class CoreOptions:
    """The options of a benchmark."""

    seed: int
    quick: bool = False

    @property
    def runs(self) -> int:
        """How many runs the best is taken from."""
        return 1 if self.quick else 7

    def size(self, full: int) -> int:
        """How much data: `full`, or little of it."""
        return full // _QUICK if self.quick else full

    def at_least(self, floor: float) -> float | None:
        """A limit, if there is enough data to measure against it."""
        return None if self.quick else floor

    at_most = at_least


class Timed:
    """A query over recorded streams, ready to be timed."""

    def __init__(self, query: JoinQuery, tables: Mapping[str, pa.Table]) -> None:
        self._query = query
        in_order, _ = recorded(query, tables, "arrival")
        events = tuple(table.drop_columns(["arrival"]) for table in in_order.tables)
        self._batch = Batch(events, in_order.stream)
        self._schemas = {name: events[i].schema for i, name in enumerate(query.names)}
        self.rows = len(self._batch.stream)
        self.best = float("inf")  # seconds
        self.metrics = Metrics()
        self._once(next(self._batch.slices(_WARM_UP)))

    def run(self, times: int = 1) -> Timed:
        """Run it, and set `best` and `metrics`."""
        for _ in range(times):
            seconds, self.metrics = self._once(self._batch)
            self.best = min(self.best, seconds)
        return self

    @property
    def rows_per_second(self) -> int:
        """At the best time."""
        return round(self.rows / self.best)

    def _once(self, batch: Batch) -> tuple[float, Metrics]:
        engine = join_engine(self._query, self._schemas)
        start = perf_counter()
        output = engine.feed(batch)
        output.extend(engine.flush())
        output.table  # noqa: B018  making it is part of the work
        seconds = perf_counter() - start
        return seconds, engine.metrics()
