"""What metrics lines cost a join: the charts in them, once per micro-batch.

Part of `slackwater bench core`. Both times are of the same run, because their difference is smaller
than that of two runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import perf_counter

import pyarrow as pa

from slackwater.engine.chart_part import chart_part, charts
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.metrics.progress import metrics_dict, with_charts
from slackwater.query.join import JoinQuery


class MetricsLines:
    """A query over recorded streams that collects its charts while it is timed."""

    def __init__(self, query: JoinQuery, tables: Mapping[str, pa.Table], micro_batch: int) -> None:
        self._query, self._micro_batch = query, micro_batch
        self._batch, _ = recorded(query, tables, "arrival")
        self.best = float("inf")  # times what it takes without charts
        self.size = 0  # bytes of the last metrics
        self.run()
        self.best = float("inf")  # that was the warm-up

    def run(self) -> None:
        """Run it once more."""
        tables = self._batch.tables
        schemas = {n: t.schema for n, t in zip(self._query.names, tables, strict=True)}
        engine = JoinEngine(self._query, schemas)
        working = collecting = 0.0
        for part in self._batch.slices(self._micro_batch):
            begin = perf_counter()
            engine.feed(part).table  # noqa: B018  making it is part of the work
            fed = perf_counter()
            json.dumps(chart_part(engine)._asdict())
            working += fed - begin
            collecting += perf_counter() - fed
        self.best = min(self.best, (working + collecting) / working)
        metrics = with_charts(metrics_dict(engine.metrics(), self._query), charts(engine), [])
        self.size = len(json.dumps(metrics))
