"""The recall of every fixed slack on recorded streams, from one pass over them.

With a fixed K a result is produced iff K is at least its lateness (`kernels.lateness`). So one pass
that counts late results by result time and lateness says what every K would have lost, and when.
`LatenessCurve` has the answers: recall, γ(P), Φ and K*, the smallest K that holds a target.

Lateness is counted in the buckets of `kernels.histogram`. The answer for a K that is the upper edge
of a bucket is exact. Between two edges, results in the bucket of K count as lost, so recall is
never too high, and K* is at most 1/32 above the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Interval
from slackwater.engine.event_gaps import Gaps, good_rows
from slackwater.engine.join import JoinEngine
from slackwater.engine.report import columns, recall_series, sum_within
from slackwater.errors import QueryError
from slackwater.events.batch import Batch
from slackwater.kernels import lateness as kernels
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import BEFORE, I64, Lateness
from slackwater.query.goals import Slack
from slackwater.query.join import JoinQuery
from slackwater.stats.lateness import LatenessOf, ResultLateness
from slackwater.stats.results import Results
from slackwater.stats.statistics import Statistics

_MOST_ROWS = 2**13  # of the table that is counted into, 120 MB; bins become wider instead

EDGES = upper_edges()


class LateResults(NamedTuple):
    """Late results, counted: entry i stands for `n[i]` results with the same three numbers."""

    interval: I64  # the adaptation interval in which their last member arrived
    bin: I64  # of result time: bin b holds the times above b * width, up to (b + 1) * width
    bucket: I64  # of lateness
    n: I64


class Intervals(NamedTuple):
    """The adaptation intervals, by arrival: one ends with the arrival that passes a multiple."""

    first: I64  # number of its first arrival
    end: I64  # the largest local time when it is over
    clock: I64  # the common clock then; BEFORE: some stream has not begun


@dataclass(frozen=True)
class LatenessCurve:
    """What every fixed slack would have given; times in the query's unit.

    Made by `lateness_curve`, and for other rows than pairs in order by `wait_curve`. Where what is
    late is false (`are_false`), recall is the share of the given rows that is right.
    """

    width: int  # of bins of result time
    over: int  # P
    every: int  # between two measurements of γ(P)
    is_exact: bool  # False: bins had to be wider than P and `every` ask for, which were rounded
    true: tuple[I64, I64]  # result times, and how many true results each has
    n_late: I64  # how many of these are late
    late: LateResults
    intervals: Intervals
    arrivals: Arrivals
    are_false: bool = False  # the late ones are rows that are not true, not true ones that are lost

    @cached_property
    def n_true(self) -> int:
        """All true results."""
        return int(self.true[1].sum())

    @cached_property
    def lateness(self) -> I64:
        """Of each entry of `late`: that of its bucket's upper edge, if any can be so late."""
        return np.minimum(EDGES[self.late.bucket], self.arrivals.behind)

    @cached_property
    def _measured(self) -> tuple[I64, I64]:
        """When γ(P) is measured, and the true results of that period."""
        top = self.arrivals.top
        begin, end = (int(top[0]), int(top[-1])) if len(top) else (0, 0)
        ts, n = self.true
        series = recall_series(ts, n, ts, n, begin + self.over, end, self.over, self.every)
        return series["ts"].to_numpy(), series["true"].to_numpy()

    # ---- answers

    def lost(self, slack: int) -> int:
        """How many true results this K does not produce, or how many false ones it does."""
        return int(self.late.n[self.lateness > slack].sum())

    def recall(self, slack: int) -> float:
        """Over all; 1.0 when there is nothing to find."""
        lost = self.lost(slack)
        right, of = self._right(self.n_true, lost)
        return float(right / of) if of else 1.0

    def _right(self, true: Any, lost: Any) -> tuple[Any, Any]:
        """How many are right, and of how many."""
        return (true, true + lost) if self.are_false else (true - lost, true)

    def series(self, slack: int) -> pa.Table:
        """(ts, produced, true, recall): γ(P) as `Report.measurements` has it."""
        return self.series_without(self.lateness > slack)

    def series_without(self, is_lost: Any) -> pa.Table:
        """γ(P) if these entries of `late` are not produced."""
        ts, true = self._measured
        produced, true = self._right(true, self._lost_within(is_lost, ts))
        recall = produced / true
        return pa.table({"ts": ts, "produced": produced, "true": true, "recall": recall})

    def phi(self, slack: int, target: float) -> float:
        """Φ(target)."""
        recall = self.series(slack)["recall"].to_numpy()
        return float(np.mean(recall >= target)) if len(recall) else 1.0

    def slacks(self) -> I64:
        """The values of K between which anything changes: 0 and the edges of buckets in use."""
        return np.unique(np.append(self.lateness, 0))

    def smallest_slack(self, target: float, wanted: float) -> int:
        """K*: the smallest K of `slacks` with a Φ(target) of at least `wanted`."""
        slacks = self.slacks()
        low, high = -1, len(slacks) - 1  # the last loses nothing
        while high - low > 1:
            middle = (low + high) // 2
            if self.phi(int(slacks[middle]), target) >= wanted:
                high = middle
            else:
                low = middle
        return int(slacks[high])

    def average_latency(self, slack: int) -> float:
        """How far event time is beyond the results of this K when they come out, about.

        A result leaves when the common clock is K beyond it. Which of the late results of a bin are
        lost is not known: they count with the average latency of all that are late in their bin.
        """
        ts, n = self.true
        at = np.searchsorted(self.arrivals.clock, ts + slack)
        latency = self.arrivals.top[np.minimum(at, len(self.arrivals.top) - 1)] - ts
        latency = Gaps.of(self.arrivals.top, self.over).latency(ts, latency, slack)
        is_lost = self.lateness > slack
        number, of = np.unique(self._bin_of(ts), return_inverse=True)
        lost, late = np.zeros(len(number)), np.bincount(of, weights=self.n_late)
        np.add.at(lost, np.searchsorted(number, self.late.bin[is_lost]), self.late.n[is_lost])
        produced = n - self.n_late * (lost / np.maximum(late, 1))[of]
        return float(np.average(latency, weights=produced)) if produced.any() else 0.0

    def on_time(self) -> tuple[I64, I64]:
        """Bins of result time, and how many results without lateness each has."""
        ts, n = self.true
        number, of = np.unique(self._bin_of(ts), return_inverse=True)
        return number, np.bincount(of, weights=n - self.n_late).astype(np.int64)

    def _bin_of(self, ts: I64) -> I64:
        return np.asarray((ts - 1) // self.width)

    def _lost_within(self, is_lost: Any, ts: I64) -> I64:
        """How many of these entries of `late` are in the periods that end at `ts`."""
        number, of = np.unique(self.late.bin[is_lost], return_inverse=True)
        n = np.bincount(of, weights=self.late.n[is_lost]).astype(np.int64)
        return sum_within((number + 1) * self.width, n, ts, self.over)


def lateness_curve(
    query: JoinQuery, batch: Batch, true: tuple[I64, I64], over: int, every: int
) -> LatenessCurve:
    """Count the late results of a recording, in one pass without slack.

    Parameters
    ----------
    query
        The join; its goal is not used.
    batch
        The recording, as `engine.replay.recorded` returns it.
    true
        The times of true results in ascending order, and how many each time has.
    over, every
        The period P of γ(P) and the time between two measurements, in units. Intervals in which
        lateness becomes known have the length `every` too.

    Raises
    ------
    QueryError
        If the query does not reorder on the common clock: no lateness decides there.
    """
    if not query.is_clocked:
        msg = "a curve of lateness needs pipeline='clocked' and time windows"
        raise QueryError(msg)
    arrivals = Arrivals.of(batch, len(query.streams))
    width = wanted = gcd(over, every)
    while arrivals.rows_needed(width, every) > _MOST_ROWS:
        width *= 2
    retention = arrivals.behind + query.slide_units  # windows end at multiples of the slide
    counted = replace(
        query, goal=Slack(0), select="count", late="drop", shed="off", retention=retention
    )
    ring = _Ring(arrivals.spans(width, every), width, arrivals.rows_needed(width, every))
    schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
    engine = JoinEngine(counted, schemas, _Counting(ring, every))
    output = engine.feed(batch)
    output.extend(engine.flush())
    ring.close_rest()
    made_ts, made_n, _ = columns(output.made)
    n_late = true[1].copy()
    np.subtract.at(n_late, np.searchsorted(true[0], made_ts), made_n)
    late = LateResults(*(np.concatenate(column) for column in zip(*ring.found, strict=True)))
    up = _rounded_up
    return LatenessCurve(
        width, up(over, width), up(every, width), width == wanted, true, n_late, late,
        arrivals.intervals(every), arrivals,
    )  # fmt: skip


def _rounded_up(length: int, step: int) -> int:
    return -(-length // step) * step


@dataclass(frozen=True)
class Arrivals:
    """The clocks at each arrival of a batch, as the clocked stage has them."""

    ts: I64
    top: I64  # the largest local time
    clock: I64  # the common clock

    @classmethod
    def of(cls, batch: Batch, m: int) -> Arrivals:
        """All rows that are not rejected."""
        ts, stream = good_rows(batch)
        locals_ = (np.maximum.accumulate(np.where(stream == s, ts, BEFORE)) for s in range(m))
        clock = np.min(np.array(list(locals_)), axis=0)
        return cls(ts, np.maximum.accumulate(ts), clock)

    @property
    def behind(self) -> int:
        """How far an arrival is behind the common clock, at most."""
        return max(0, int((self.clock - self.ts)[self.clock > BEFORE].max(initial=0)))

    def intervals(self, every: int) -> Intervals:
        """The adaptation intervals of that length, as `JoinEngine` has them."""
        if len(self.ts) == 0:
            return Intervals(*np.empty((3, 0), np.int64))
        number = np.append(self.top[0], self.top[:-1]) // every
        first = np.flatnonzero(np.append(True, np.diff(number) > 0))
        last = np.append(first[1:], len(self.ts)) - 1
        return Intervals(first, self.top[last], self.clock[last])

    def spans(self, width: int, every: int) -> list[tuple[int, int]]:
        """For each interval the first and the last bin in which results can turn out late.

        They are between an arrival and the common clock. (0, -1): there are none.
        """
        first = self.intervals(every).first
        if len(first) == 0:
            return []
        late = self.ts < self.clock
        none = np.iinfo(np.int64).max
        low = np.minimum.reduceat(np.where(late, (self.ts - 1) // width, none), first)
        high = np.maximum.reduceat(np.where(late, (self.clock - 1) // width, -none), first)
        some = high > -none
        return list(
            zip(np.where(some, low, 0).tolist(), np.where(some, high, -1).tolist(), strict=True)
        )

    def rows_needed(self, width: int, every: int) -> int:
        """So many bins never hold results of the same interval in the same row."""
        return max([1, *(high - low + 1 for low, high in self.spans(width, every))])


class _Ring(ResultLateness):
    """Counts late results by bin of result time; takes them out at the end of each interval."""

    def __init__(self, spans: list[tuple[int, int]], width: int, rows: int) -> None:
        super().__init__(width)
        self.record = Lateness(
            self.record.ctl, np.zeros((rows, BUCKETS), np.int64), self.record.caught
        )
        self.record.ctl[kernels.ORIGIN] = 1  # a period includes its end, not its beginning
        self._spans = spans
        self._closed = 0
        self.found = [LateResults(*np.empty((4, 0), np.int64))]

    def close(self, join_clock: int, results: Results) -> LatenessOf:  # noqa: ARG002
        """Take out what became known; all arrivals are probed, however many steps it takes."""
        self._take_out()
        return LatenessOf(np.zeros(BUCKETS, np.int64), 0, 0, np.empty(0, np.int64), 0)

    def close_rest(self) -> None:
        """Close the interval that was running at the end."""
        while self._closed < len(self._spans):
            self._take_out()

    def _take_out(self) -> None:
        low, high = self._spans[self._closed]
        bins = np.arange(low, high + 1)
        rows = bins % len(self.record.counts)
        counts = self.record.counts[rows]
        row, bucket = np.nonzero(counts)
        interval = np.full(len(row), self._closed)
        self.found.append(LateResults(interval, bins[row], bucket, counts[row, bucket]))
        self.record.counts[rows] = 0
        self._closed += 1


@dataclass(frozen=True)
class _Counting:
    """No slack, and an interval that ends each `every`."""

    ring: _Ring
    every: int
    start: int = 0
    follows_delay: bool = False

    def statistics(self, query: JoinQuery) -> Statistics:
        """Only the lateness of results."""
        statistics = Statistics(query, self.every, None, self.every)
        statistics.lateness = self.ring
        return statistics

    def next_slack(self, interval: Interval) -> int:  # noqa: ARG002
        """None."""
        return 0

    def state(self) -> dict[str, Any]:
        """Nothing is learnt."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""
