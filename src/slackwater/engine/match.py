"""The join of one shard, of two streams, whose rows come from arrivals.

That is: eager emission of columns, semi, anti and as-of joins. `Matcher` finds partners when events
arrive; rows without partner and as-of rows are decided when the join's clock has passed their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine import match_state
from slackwater.engine.accounting import with_matches, with_pairs_lost
from slackwater.engine.arrivals import ArrivalEngine
from slackwater.engine.identity import ranks, set_ranks
from slackwater.engine.matched import (
    ReadyRows,
    as_results,
    in_turn,
    some,
    together,
)
from slackwater.engine.output import Output, Production, parts_of
from slackwater.events.batch import Batch
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.conditions import Conditions
from slackwater.joins.matcher import Matcher, MatcherState
from slackwater.kernels.partners import MARKS
from slackwater.kernels.records import BEFORE, I64, NONE, ClockSeries, MatchedRows
from slackwater.metrics.counters import Metrics
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS


class MatchEngine(ArrivalEngine):
    """The join of one shard, of two streams; parameters as in `JoinEngine`."""

    matcher: Matcher

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        idle_after: int | None = None,
        sharing: int = 1,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(query, schemas, idle_after, sharing, limits, MARKS)
        self.ready = ReadyRows(self.log)
        # as-of: of the right rows, from this one on
        self._ranks: tuple[int, I64] = (0, np.empty(0, np.int64))

    def _new_matcher(self, conditions: Conditions) -> Matcher:
        return Matcher(self.query, conditions, self.log, self.limits)

    # ---- work

    def move_up(self, time: int, piece: int | None = None) -> Iterator[Output]:
        """Let everything up to `time` out; what comes before it is late from here on."""
        self.reorder.move_up(time)
        found = [*map(_copied, self.matcher.move_up(time))]
        found.append(self.ready.take(self.log.end - 1, np.array([time])))
        rows = in_turn(together(found))
        yield from self._give_rows(rows, np.full(len(rows.ts), self.reorder.top), piece)
        yield self._give_out()

    def put_back(self, header: dict[str, Any], kept: I64) -> None:
        """Continue from the header of a snapshot with these events, but for clocks and goal."""
        undecided = match_state.restore_marks(self.log, kept, header["attachments"][0])
        self.matcher.resume(MatcherState(**header["matcher"]), kept, undecided)
        if self.query.how == "semi" and self.query.emit == "ordered":
            self.ready.put_back(*match_state.ready_rows(self.log, kept, self.reorder.sync_time))

    def attachments(self) -> list[bytes]:
        """The marks of the events."""
        return [match_state.saved_marks(self.log, self.event_locations(), self.matcher)]

    def _take_in(self, batch: Batch, piece: int | None) -> Iterator[Output]:
        if self.query.how == "asof":  # all columns count, also those that are not kept
            self._ranks = self.rows[1].end, ranks(batch.tables[1], self.query.streams[1].id)
        yield from super()._take_in(batch, piece)

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        if self.query.how == "asof":
            set_ranks(self.log, begin, *self._ranks)
        yield from super()._run(begin, end, piece)

    def _find(
        self, begin: int, end: int, series: ClockSeries, tops: I64, piece: int | None
    ) -> Iterator[Output]:
        for rows in self._matched(begin, end, series):
            yield from self._give_rows(rows, tops[rows.during - begin], piece)

    def _matched(self, begin: int, end: int, series: ClockSeries) -> Iterator[MatchedRows]:
        """The rows of a step, in the order in which they are given out."""
        found = self.matcher.process(begin, end, series)
        if self.query.how != "semi" or self.query.emit == "eager":
            yield from found
            return
        others = together([self.ready.add(rows) for rows in found])
        yield in_turn(together([others, self.ready.take(begin, series.after)]))

    def _flush(self, piece: int | None) -> Iterator[Output]:
        self.reorder.flush()
        rows = together([*map(_copied, self.matcher.flush()), self.ready.take(self.log.end, None)])
        yield from self._give_rows(in_turn(rows), np.full(len(rows.ts), self.reorder.top), piece)

    # ---- rows and counters

    def metrics(self) -> Metrics:
        """Counters since the start, with those of rows that are decided."""
        clock = self.reorder.sync_time
        is_in_order = self.query.emit == "ordered" and clock != BEFORE
        complete = clock - 1 if is_in_order else None  # at the clock itself more may come
        found = with_matches(super().metrics(), self.matcher)
        found = replace(found, complete_through=complete, lost_not_estimated=found.lost_unknown)
        if units := self._pair_units:
            return with_pairs_lost(found, self.counters, self.matcher, units)
        return replace(found, lost=found.lost + self.matcher.counters["late_pairs"])

    @property
    def _pair_units(self) -> int:
        gives_pairs = self.query.emit == "eager" and self.query.how in WITH_PAIRS
        return int(self.matcher.record.length.sum()) + 1 if gives_pairs else 0

    def _give_rows(self, rows: MatchedRows, tops: I64, piece: int | None) -> Iterator[Output]:
        """Count rows and give them out, in pieces; `tops` is the largest local time with each."""
        on_time = np.flatnonzero(rows.late == 0)
        counted = on_time
        if self.query.how in WITH_PAIRS:  # rows without partner have metrics of their own
            counted = np.flatnonzero((rows.left != NONE) & (rows.right != NONE))
        self.counters.produced += len(counted)
        ts, latency = rows.ts[counted], tops[counted] - rows.ts[counted]
        self._output.made.append(Production(ts, np.ones(len(ts), np.int64), latency))
        if self.query.late != "emit" and len(on_time) < len(rows.ts):
            rows = some(rows, on_time)
        found, at = as_results(rows, self.log), 0
        for part in parts_of(found, self.rows, piece):
            own = slice(at, at + len(part.ts))
            tables = [
                of_stream.take(part.row[s])
                for s, of_stream in enumerate(self.rows)
                if self.query.shows(s)
            ]
            self._output.results(part, tables, rows.change[own])
            if self.has_arrival:
                waited = rows.during[own] - self.log.base, part.last - self.log.base
                waits = self.log.arrival[waited[0]] - self.log.arrival[waited[1]]
                self._output.waits.append(waits[part.late == 0])
            at = own.stop
            if piece is not None and self._output.nbytes >= piece:
                yield self._give_out()


def _copied(rows: MatchedRows) -> MatchedRows:
    return some(rows, slice(None))
