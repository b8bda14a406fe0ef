"""The join of one shard whose results go out with the arrival of their last member.

It joins any number of streams. Nothing waits, and nothing is decided: K is how long events are
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.accounting import with_pairs_lost
from slackwater.engine.arrivals import ArrivalEngine
from slackwater.engine.output import Output, Production, parts_of
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.at_once import JoinAtOnce
from slackwater.joins.conditions import Conditions
from slackwater.joins.matcher import MatcherState
from slackwater.kernels.records import I64, TICK, ClockSeries, Results
from slackwater.metrics.counters import Metrics
from slackwater.query.join import JoinQuery
from slackwater.stats.forgotten import UNITS, Forgotten


class AtOnceEngine(ArrivalEngine):
    """The inner join of one shard; parameters as in `JoinEngine`."""

    matcher: JoinAtOnce

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        idle_after: int | None = None,
        sharing: int = 1,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(query, schemas, idle_after, sharing, limits)
        self._missed = Forgotten([length or 0 for length in query.lengths])

    def _new_matcher(self, conditions: Conditions) -> JoinAtOnce:
        return JoinAtOnce(self.query, conditions, self.log, self.limits)

    def _control(self) -> None:
        super()._control()
        self.matcher.measures = self.waits is not None

    # ---- work

    def move_up(self, time: int, piece: int | None = None) -> Iterator[Output]:  # noqa: ARG002
        """Let the join's clock be at `time`; no result waits for it."""
        self.reorder.move_up(time)
        yield self._give_out()

    def put_back(self, header: dict[str, Any], kept: I64) -> None:
        """Continue from the header of a snapshot with these events, but for clocks and goal."""
        self.matcher.resume(MatcherState(**header["matcher"]), kept)

    def _flush(self, piece: int | None) -> Iterator[Output]:  # noqa: ARG002  nothing waits
        self.reorder.flush()
        return iter(())

    def _find(
        self, begin: int, end: int, series: ClockSeries, tops: I64, piece: int | None
    ) -> Iterator[Output]:
        if self.matcher.counts:
            for made in self.matcher.numbers(begin, end, series):
                self._count(made.ts.copy(), made.n.copy(), tops[made.position - begin])
            return
        for found in self.matcher.results(begin, end, series):
            once = np.ones(len(found.ts), np.int64)
            self._count(found.ts.copy(), once, tops[found.position - begin])
            if not self.shape.counts:
                yield from self._give_rows(found, piece)

    def _count(self, ts: I64, n: I64, top: I64) -> None:
        """Results of these times came when the largest local time was `top`."""
        self.counters.produced += int(n.sum())
        self._output.made.append(Production(ts, n, top - ts))

    def _give_rows(self, found: Results, piece: int | None) -> Iterator[Output]:
        """Give results out in pieces; their members are numbers of events."""
        as_rows = found._replace(row=self.log.row[found.row - self.log.base])
        for part in parts_of(as_rows, self.rows, piece):
            self._output.results(part, [of.take(part.row[s]) for s, of in enumerate(self.rows)])
            if self.has_arrival:
                self._output.waits.append(np.zeros(len(part.ts), np.int64))
            if piece is not None and self._output.nbytes >= piece:
                yield self._give_out()

    # ---- counters

    def metrics(self) -> Metrics:
        """Counters since the start, with an estimate of what was lost."""
        found = replace(super().metrics(), complete_through=None)
        return with_pairs_lost(found, self.counters, self.matcher, UNITS)

    def _count_events(self, begin: int, series: ClockSeries) -> None:
        super()._count_events(begin, series)
        own = slice(begin - self.log.base, begin - self.log.base + len(series.before))
        behind = self.matcher.forgets(series) - self.log.ts[own]
        missed = (behind > 0) & (self.log.keys[own, 0] != TICK)
        for s in range(len(self.query.streams)):
            mine = self._missed.units(s, behind[missed & (self.log.stream[own] == s)])
            self.counters.forgotten[s] += int(mine.sum())
