"""What the pictures in metrics lines cost a join: one per micro-batch.

Part of `slackwater bench core`. Both times are of the same run, because their difference is smaller
than that of two runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import perf_counter

import pyarrow as pa

from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.metrics.picture import picture, sketch
from slackwater.metrics.progress import told
from slackwater.query.join import JoinQuery


class Pictures:
    """A query over recorded streams, ready to be drawn while it is timed."""

    def __init__(self, query: JoinQuery, tables: Mapping[str, pa.Table], micro_batch: int) -> None:
        self._query, self._micro_batch = query, micro_batch
        self._batch, _ = recorded(query, tables, "arrival")
        self.best = float("inf")  # times what it takes without pictures
        self.size = 0  # bytes of the last metrics
        self.run()
        self.best = float("inf")  # that was the warm-up

    def run(self) -> None:
        """Run it once more."""
        tables = self._batch.tables
        schemas = {n: t.schema for n, t in zip(self._query.names, tables, strict=True)}
        engine = JoinEngine(self._query, schemas)
        working = drawing = 0.0
        for part in self._batch.slices(self._micro_batch):
            begin = perf_counter()
            engine.feed(part).table  # noqa: B018  making it is part of the work
            fed = perf_counter()
            json.dumps(sketch(engine))
            working += fed - begin
            drawing += perf_counter() - fed
        self.best = min(self.best, (working + drawing) / working)
        metrics = told(engine.metrics(), self._query) | {"picture": picture(engine), "commands": []}
        self.size = len(json.dumps(metrics))
