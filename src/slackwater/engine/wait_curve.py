"""How good every fixed wait would have been for rows of all kinds of joins, from one pass.

DESIGN 14 has the one number of each row that says from which wait on it is right. For pairs in
order that is `lateness_curve`. Here a pass that gives pairs out at once, without slack, finds all
pairs in the order in which their last members arrive, and from them the others: the pair that shows
first that an event has a partner; the earliest pair of an event of a semi join. As-of rows come
from a pass that corrects them, results of more than two streams from one of their own. All events
are kept as long as any is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from slackwater.engine.at_once import AtOnceEngine
from slackwater.engine.lateness_curve import (
    Arrivals,
    LatenessCurve,
    LateResults,
)
from slackwater.engine.match import MatchEngine
from slackwater.engine.output import Output
from slackwater.events.batch import Batch
from slackwater.kernels.histogram import BUCKETS, buckets_of
from slackwater.kernels.partners import INSERT
from slackwater.kernels.records import I64, NONE, ClockSeries, MatchedRows
from slackwater.query.goals import Slack
from slackwater.query.join import JoinQuery

NEVER = np.iinfo(np.int64).max  # the row needs more than any wait: it is right only without one
AT_ONCE = np.iinfo(np.int64).min


class Rows(NamedTuple):
    """True or false rows, and the wait that each of them needs."""

    ts: I64
    wait: I64

    def some(self, which: Any) -> Rows:
        """Those of them."""
        return Rows(self.ts[which], self.wait[which])


class WaitCurves(NamedTuple):
    """The curves of a join: of pairs that are given out at once, and of rows that are decided."""

    kept: LatenessCurve | None  # by how long events are kept; semi joins in order: by K
    alone: LatenessCurve | None  # rows without partner, or as-of rows: by K
    partner: I64 | None  # as-of: the row of the true partner of each left row, or NONE
    has_partner: tuple[I64, ...]  # by row of each stream, 0 or 1


def wait_curves(query: JoinQuery, batch: Batch, over: int, every: int) -> WaitCurves:
    """Find what every fixed wait would have given.

    Parameters
    ----------
    query
        The join; its goal is not used.
    batch
        The recording, as `engine.replay.recorded` returns it.
    over, every
        The period over which shares are measured, and the time between two measurements, in units.
    """
    arrivals = Arrivals.of(batch, len(query.streams))
    curve = _Maker(arrivals, over, every)
    if len(query.streams) > 2:
        results = _ResultsPass(query, batch, arrivals.behind)
        results.run(batch)
        return WaitCurves(curve.of_pairs(results.ts, results.late), None, None, ())
    found = _Pass(query, batch, arrivals.behind)
    found.run(batch)
    kept = alone = partner = None
    if query.how == "asof":
        rows = found.asof_rows(query.emit == "ordered")
        alone = curve.of_rows(rows)
        partner = found.partner
    elif query.how == "semi":
        kept = curve.of_rows(found.semi_rows(query.emit == "eager"))
    elif query.emit == "eager" and query.how != "anti":
        kept = curve.of_pairs(found.ts, found.late)
    if any(query.preserved) and query.how != "asof":
        alone = curve.of_false_rows(*found.rows_alone(query.preserved))
    return WaitCurves(kept, alone, partner, tuple((wait < NEVER) * 1 for wait in found.first))


class _Pass(MatchEngine):
    """Collects what rows need instead of giving them out; rows are those of the batch's tables."""

    def __init__(self, query: JoinQuery, batch: Batch, behind: int) -> None:
        how = {"inner": "inner", "semi": "inner", "asof": "asof"}.get(query.how, "full")
        options: dict[str, Any] = {"how": how, "late": "emit" if how == "asof" else "count"}
        counted = replace(
            query, emit="eager", goal=Slack(0), retention=behind, result_id=False, **options
        )
        schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
        super().__init__(counted, schemas)
        sizes = [table.num_rows for table in batch.tables]
        self.times = [np.zeros(n, np.int64) for n in sizes]
        self.there = [np.zeros(n, bool) for n in sizes]
        # by row: until its first partner comes, from the end of its window on
        self.first = tuple(np.full(n, NEVER) for n in sizes)
        self.semi_time, self.semi_wait = np.full(sizes[0], NEVER), np.full(sizes[0], NEVER)
        self.semi_kept = np.full(sizes[0], NEVER)
        self.partner = np.full(sizes[0], NONE)
        self.asof_wait, self.own_wait = np.full(sizes[0], AT_ONCE), np.full(sizes[0], AT_ONCE)
        self.ts: list[tuple[I64, I64]] = []  # of pairs, and how many each time has
        self.late: list[tuple[I64, I64, I64]] = []  # time, bucket of the wait, number
        self._common = np.empty(0, np.int64)

    def run(self, batch: Batch) -> None:
        """Take in all arrivals."""
        self._common = np.zeros(len(batch.stream), np.int64)
        for _ in self.feed_in_pieces(batch):
            pass
        self.flush()

    def _matched(self, begin: int, end: int, series: ClockSeries) -> Iterator[MatchedRows]:
        own = slice(begin - self.log.base, end - self.log.base)
        self._common[begin:end] = series.common
        for s in range(2):
            at = np.flatnonzero(self.log.stream[own] == s)
            row = self.log.row[own][at]
            self.times[s][row], self.there[s][row] = self.log.ts[own][at], True
            if s == 0:
                self.own_wait[row] = series.common[at] - self._due(0, self.log.ts[own][at])
        for rows in super()._matched(begin, end, series):
            self._take_rows(rows)
        return iter(())

    def _flush(self, piece: int | None) -> Iterator[Output]:
        self.reorder.flush()
        for rows in self.matcher.flush():
            self._take_rows(rows)
        yield from super()._flush(piece)

    def _due(self, s: int, ts: I64) -> I64:
        return ts + int(self.matcher.record.length[s])

    def _take_rows(self, rows: MatchedRows) -> None:
        if self.query.how == "asof":
            self._take_asof(rows)
            return
        both = (rows.left != NONE) & (rows.right != NONE)
        if both.any():
            self._take_pairs(*(column[both] for column in (rows.left, rows.right, rows.ts)))

    def _take_pairs(self, left: I64, right: I64, ts: I64) -> None:
        """Pairs, with the numbers of their members."""
        base, last = self.log.base, np.maximum(left, right)
        common = self._common[last]
        times = self.log.ts[left - base], self.log.ts[right - base]
        rows = self.log.row[left - base], self.log.row[right - base]
        kept = np.where(
            left < right, common - self._due(0, times[0]), common - self._due(1, times[1])
        )
        for s, is_first in enumerate((left < right, right < left)):
            wait = np.where(is_first, common - self._due(s, times[s]), AT_ONCE)
            np.minimum.at(self.first[s], rows[s], wait)
        own = np.where(left == last, *times)
        np.minimum.at(self.semi_time, rows[0], ts)
        np.minimum.at(self.semi_wait, rows[0], common - ts + (own < ts))
        np.minimum.at(self.semi_kept, rows[0], kept)
        self.ts.append(_counts(ts))
        self.late.append(_late_counts(ts, kept))

    def _take_asof(self, rows: MatchedRows) -> None:
        """As-of rows and their corrections: of several of one left event the last one counts."""
        base = self.log.base
        left, right = self.log.row[rows.left - base], np.full(len(rows.ts), NONE)
        there = rows.right != NONE
        right[there] = self.log.row[rows.right[there] - base]
        waits = np.full(len(rows.ts), AT_ONCE)
        later = there & ((rows.right > rows.left) | (rows.change != INSERT))
        waits[later] = self._common[rows.right[later]] - rows.ts[later]
        self.partner[left], self.asof_wait[left] = right, waits

    # ---- what rows need

    def asof_rows(self, waits_for_own: bool) -> Rows:
        """All rows of an as-of join; with `waits_for_own` one is late if its own event is."""
        wait = np.maximum(self.asof_wait, self.own_wait) if waits_for_own else self.asof_wait
        return Rows(self._due(0, self.times[0]), wait).some(self.there[0])

    def semi_rows(self, are_eager: bool) -> Rows:
        """The events of the first stream that have a partner."""
        wait = self.semi_kept if are_eager else self.semi_wait
        return Rows(self.semi_time, wait).some(self.semi_time != NEVER)

    def rows_alone(self, preserved: Sequence[bool]) -> tuple[Rows, Rows]:
        """Events without partner, and those that look as if they had none until it comes."""
        parts = [
            Rows(self._due(s, self.times[s]), self.first[s]).some(self.there[s])
            for s in range(2)
            if preserved[s]
        ]
        rows = Rows(*map(np.concatenate, zip(*parts, strict=True)))
        return rows.some(rows.wait == NEVER), rows.some((rows.wait > 0) & (rows.wait < NEVER))


class _ResultsPass(AtOnceEngine):
    """Collects how long the members of results must be kept, of any number of streams."""

    def __init__(self, query: JoinQuery, batch: Batch, behind: int) -> None:
        counted = replace(query, goal=Slack(0), retention=behind, select="*", result_id=False)
        schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
        super().__init__(counted, schemas)
        self.ts: list[tuple[I64, I64]] = []  # of results, and how many each time has
        self.late: list[tuple[I64, I64, I64]] = []  # time, bucket of the wait, number

    def run(self, batch: Batch) -> None:
        """Take in all arrivals."""
        for _ in self.feed_in_pieces(batch):
            pass

    def _find(
        self, begin: int, end: int, series: ClockSeries, tops: I64, piece: int | None
    ) -> Iterator[Output]:
        for found in self.matcher.results(begin, end, series):
            needed = self.matcher.needed(found, series.common[found.position - begin])
            self.ts.append(_counts(found.ts))
            self.late.append(_late_counts(found.ts, needed))
        return iter(())


def _late_counts(ts: I64, wait: I64) -> tuple[I64, I64, I64]:
    """How many results of which times need which waits, by bucket."""
    is_late = wait > 0
    late, n = _counts(ts[is_late] * BUCKETS + buckets_of(wait[is_late]))
    return late // BUCKETS, late % BUCKETS, n


def _counts(values: I64) -> tuple[I64, I64]:
    found, n = np.unique(values, return_counts=True)
    return found, n.astype(np.int64)


class _Maker(NamedTuple):
    """Makes curves; see `LatenessCurve` for the fields."""

    arrivals: Arrivals
    over: int
    every: int

    def of_rows(self, rows: Rows) -> LatenessCurve:
        """True rows, each late with less than the wait that it needs."""
        late = rows.some(rows.wait > 0)
        return self._curve(_counts(rows.ts), late.ts, buckets_of(late.wait), np.ones(len(late.ts)))

    def of_false_rows(self, true: Rows, false: Rows) -> LatenessCurve:
        """Rows without partner, of which `false` are given out with less than their wait."""
        n, bucket = np.ones(len(false.ts)), buckets_of(false.wait)
        return self._curve(_counts(true.ts), false.ts, bucket, n, are_false=True)

    def of_pairs(
        self, ts: Sequence[tuple[I64, I64]], late: Sequence[tuple[I64, I64, I64]]
    ) -> LatenessCurve:
        """Pairs, counted by time, and the late ones by time and bucket of their lateness."""
        times, n = (np.concatenate(parts) for parts in zip(*[_NO_PAIRS, *ts], strict=True))
        true, of = np.unique(times, return_inverse=True)
        total = np.bincount(of, weights=n, minlength=len(true)).astype(np.int64)
        parts = zip(*[(*_NO_PAIRS, _NO_PAIRS[0]), *late], strict=True)
        late_ts, bucket, number = map(np.concatenate, parts)
        return self._curve((true, total), late_ts, bucket, number)

    def _curve(
        self, true: tuple[I64, I64], ts: I64, bucket: I64, n: Any, are_false: bool = False
    ) -> LatenessCurve:
        width = gcd(self.over, self.every)
        n_late = np.zeros(len(true[0]), np.int64)
        if not are_false:
            np.add.at(n_late, np.searchsorted(true[0], ts), n.astype(np.int64))
        cells, of = np.unique((ts - 1) // width * BUCKETS + bucket, return_inverse=True)
        number = np.bincount(of, weights=n, minlength=len(cells)).astype(np.int64)
        none = np.zeros(len(cells), np.int64)
        late = LateResults(none, cells // BUCKETS, cells % BUCKETS, number)
        intervals = self.arrivals.intervals(self.every)
        return LatenessCurve(
            width, self.over, self.every, True, true, n_late, late, intervals, self.arrivals,
            are_false,
        )  # fmt: skip


_NO_PAIRS = (np.empty(0, np.int64), np.empty(0, np.int64))
