"""What aggregates of joined windows cost, and the additional cost of compensation.

Part of `slackwater bench core`. Two streams of 100,000 events a second and 100 keys, as in PECJ.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pyarrow as pa

from slackwater.compensation.compensator import ResultRow
from slackwater.compensation.tally import Tally
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.replay import recorded
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.aggregate_checks import Compensation
from slackwater.query.functions import count
from slackwater.query.stream import Stream
from slackwater.query.window_goals import Deadline
from slackwater.query.windows import Tumbling

_PER_MS = 100
_KEYS = 100
_DELAY = 5_000  # µs


class Aggregates:
    """Windows of some length, to be timed with several estimators."""

    def __init__(self, windows: int, length_ms: int, warm_up: int, seed: int) -> None:
        self.windows, self._length = windows, 1000 * length_ms
        rng = np.random.default_rng(seed)
        n = (windows + warm_up) * length_ms * _PER_MS
        self._tables = {name: _stream(n, rng) for name in "rs"}
        batch, _ = recorded(self._query(None), self._tables, "arrival")
        begin = int(np.searchsorted(batch.arrival, warm_up * self._length))  # type: ignore[arg-type]
        self._warm_up, self._timed = batch.cut([begin, len(batch.stream)])
        self.rows = len(self._timed.stream)
        self.best: dict[Compensation | None, float] = {}

    def _query(self, compensate: Compensation | None) -> AggregateQuery:
        return AggregateQuery(
            (Stream("r", "ts"), Stream("s", "ts")), "k", {"n": count()}, Tumbling(self._length),
            Deadline(self._length), compensate=compensate, late="emit", unit="us",
        )  # fmt: skip

    def run(self, compensate: Compensation | None) -> None:
        """Time one run; `best` has the shortest time so far."""
        schemas = {name: table.schema for name, table in self._tables.items()}
        engine = AggregateEngine(self._query(compensate), schemas)
        engine.feed(self._warm_up)
        begin = perf_counter()
        engine.feed(self._timed)
        seconds = perf_counter() - begin
        self.best[compensate] = min(self.best.get(compensate, seconds), seconds)

    def report_seconds(self, compensate: Compensation) -> float:
        """Return the seconds from a window's counts to its early result; the median."""
        schemas = {name: table.schema for name, table in self._tables.items()}
        engine = AggregateEngine(self._query(compensate), schemas)
        engine.feed(self._warm_up)
        assert engine.compensator is not None
        report_early, taken = engine.compensator.report_early, []

        def timed(start: int, tally: Tally) -> list[ResultRow]:
            begin = perf_counter()
            rows = report_early(start, tally)
            taken.append(perf_counter() - begin)
            return rows

        setattr(engine.compensator, "report_early", timed)  # noqa: B010  a method for mypy
        engine.feed(self._timed)
        return float(np.median(taken))

    def extra_seconds(self, compensate: Compensation) -> float:
        """Return the seconds per window that compensation costs."""
        return (self.best[compensate] - self.best[None]) / self.windows


def _stream(n: int, rng: np.random.Generator) -> pa.Table:
    ts = np.arange(n) * 1000 // _PER_MS
    delay = np.ceil(rng.random(n) * _DELAY).astype(int)
    return pa.table({"ts": ts, "k": rng.integers(0, _KEYS, n), "arrival": ts + delay})
