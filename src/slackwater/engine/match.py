"""The join of one shard whose rows come from arrivals: eager emission, semi, anti and as-of joins.

Nothing waits to be put in order here. `Matcher` finds partners when events arrive; rows without
partner and as-of rows are decided when the join's clock has passed their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.disorder.common_clock import CommonClock
from slackwater.engine import match_state
from slackwater.engine.accounting import count_arrivals, with_matches, with_pairs_lost
from slackwater.engine.base import ShardEngine
from slackwater.engine.checks import check_new_goal
from slackwater.engine.common_slack import CommonSlack
from slackwater.engine.identity import ranks, set_ranks
from slackwater.engine.matched import (
    ReadyRows,
    as_results,
    in_turn,
    some,
    together,
    top_series,
)
from slackwater.engine.output import Output, Production, Shape, parts_of
from slackwater.engine.result_schema import check_schema
from slackwater.engine.waits import correction_reach, keep_waits, row_waits
from slackwater.events.batch import Batch
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.conditions import compile_conditions
from slackwater.joins.matcher import Matcher, keep_for
from slackwater.kernels import partners as kernels
from slackwater.kernels.records import BEFORE, I32, I64, NONE, U8, ClockSeries, MatchedRows
from slackwater.metrics.counters import Metrics
from slackwater.query.goals import Goal
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS


class MatchEngine(ShardEngine[JoinQuery, CommonClock]):
    """The join of one shard, of two streams; parameters as in `JoinEngine`."""

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        idle_after: int | None = None,
        sharing: int = 1,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        given = [check_schema(schemas, name) for name in query.names]
        conditions = compile_conditions(query, given)
        shape = Shape.of(query, given)
        super().__init__(query, schemas, shape, conditions.columns, limits, kernels.MARKS)
        self.matcher = Matcher(query, conditions, self.log, limits)
        self._control()
        start, follow = self.controller.start, self.controller.follows_delay
        self.reorder = CommonClock(2, start, follow, idle_after, self.log, limits)
        self.ready = ReadyRows(self.log)
        # as-of: of the right rows, from this one on
        self._ranks: tuple[int, I64] = (0, np.empty(0, np.int64))
        self.common_slack = CommonSlack(self, sharing, idle_after) if sharing > 1 else None

    @property
    def controllers(self) -> list[Controller]:
        """The one that chooses K."""
        return [self.controller]

    def _control(self) -> None:
        """Have who chooses K, and how long events are kept, for the goal."""
        self.waits = row_waits(self.query, self.matcher)
        self.keeper = keep_waits(self.query, self.matcher)
        self.corrections = correction_reach(self.query, self.matcher)
        self.controller = self.waits.controller if self.waits else controller_for(self.query)
        self.statistics = self.controller.statistics(self.query)

    # ---- work

    def set_goal(self, goal: Goal) -> None:
        """Change the figures of the goal from here on; what was learnt stays."""
        check_new_goal(self.query.goal, goal, self.statistics is not None)
        self.query, before = replace(self.query, goal=goal), (self.waits, self.keeper)
        learnt = self.corrections
        self._control()
        if self.corrections is not None and learnt is not None:
            self.corrections.resume(learnt.state())
        for old, new in zip(before, (self.waits, self.keeper), strict=True):
            if old is not None and new is not None:
                new.resume(old.state(), same_goal=False)
        if self.common_slack is not None:
            self.common_slack.start_anew()

    def set_slack(self, slack: int) -> None:
        """Change K."""
        self.change_slack(slack, self.reorder.top)

    def change_slack(self, slack: int, now: int) -> None:
        """Let K be `slack` from time `now` on."""
        if slack != self.reorder.slack:
            self.reorder.set_slack(slack)
            self._output.slack(now, slack)

    def finish(self, stream: int) -> None:
        """No more rows of `stream` will come: the others need not wait for it."""
        super().finish(stream)
        if self.common_slack is not None:
            self.common_slack.finish(stream)

    def move_up(self, time: int, piece: int | None = None) -> Iterator[Output]:
        """Let everything up to `time` out; what comes before it is late from here on."""
        self.reorder.move_up(time)
        found = [*map(_copied, self.matcher.move_up(time))]
        found.append(self.ready.take(self.log.end - 1, np.array([time])))
        rows = in_turn(together(found))
        yield from self._give_rows(rows, np.full(len(rows.ts), self.reorder.top), piece)
        yield self._give_out()

    def event_locations(self) -> U8:
        """Kept, or not needed any more."""
        return match_state.event_locations(self)

    def state(self) -> dict[str, Any]:
        """The state without the events, as plain data."""
        return match_state.plain_state(self)

    def attachments(self) -> list[bytes]:
        """The marks of the events."""
        return [match_state.saved_marks(self.log, self.event_locations(), self.matcher)]

    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the header of a snapshot; the goal may be another one."""
        match_state.resume(self, header, at)

    def stored_events(self) -> int:
        """How many events are kept for partners to come."""
        return int(np.count_nonzero(self.matcher.is_kept()))

    def reserve_codes(self, size: int) -> None:
        """Have runs for so many key codes."""
        self.matcher.reserve_codes(size)

    def _rename_codes(self, renamed: I32) -> None:
        self.matcher.rename_codes(renamed)

    def _oldest(self) -> int:
        alive = self.matcher.is_kept()
        return self.log.base + int(np.argmax(alive)) if alive.any() else self.log.end

    def _take_in(self, batch: Batch, piece: int | None) -> Iterator[Output]:
        if self.query.how == "asof":  # all columns count, also those that are not kept
            self._ranks = self.rows[1].end, ranks(batch.tables[1], self.query.streams[1].id)
        yield from super()._take_in(batch, piece)

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        if self.query.how == "asof":
            set_ranks(self.log, begin, *self._ranks)
        while begin < end:
            top, due = self.reorder.top, self._set_boundary()
            step = self.reorder.run(begin, end)
            for changed, slack in step.changes:
                self._output.slack(int(changed), int(slack))
            series = self.reorder.series
            tops = top_series(self.log, begin, series, top)
            count_arrivals(
                self.counters, begin, series, self.matcher, self.log,
                ordered=self.query.emit == "ordered",
                window_units=self._window_units if self._gives_pairs else 0,
            )  # fmt: skip
            for rows in self._matched(begin, step.reached, series):
                yield from self._give_rows(rows, tops[rows.during - begin], piece)
            begin = step.reached
            if due is not None and self.reorder.top >= due:
                self._choose()

    def _set_boundary(self) -> int | None:
        """Stop where the next interval of the controller ends."""
        every, top = self.controller.every, self.reorder.top
        if every is None:
            return None
        if top == BEFORE:  # the grid is that of event time, wherever it starts
            top = int(self.log.ts[0])
        due = (top // every + 1) * every
        self.reorder.stop_at(due)
        return due

    def _choose(self) -> None:
        """End an interval: choose K, and how long events are kept."""
        clocks = self.reorder
        assert self.statistics is not None and self.waits is not None
        local = (clocks.local(0), clocks.local(1))
        interval = Interval(
            clocks.top, clocks.slack, clocks.sync_time, local, self.statistics,
            clocks.common_clock, clocks.most_behind,
        )  # fmt: skip
        seen = self.waits.of(interval)
        if self.common_slack is not None:
            self.set_slack(self.common_slack.next_slack([seen]))
        else:
            self.set_slack(self.controller.next_slack(seen))
        keep = keep_for(self.query, clocks.slack)
        if self.corrections is not None and seen.lateness is not None:
            keep = max(keep, self.corrections.next_length(seen.lateness.counts))
        if self.keeper is not None:
            kept = replace(interval, slack=self.matcher.state().keep)
            keep = max(keep, self.keeper.next_length(kept))
        self.matcher.set_keep(keep)

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
        if self._gives_pairs:
            return with_pairs_lost(found, self.counters, self.matcher, self._window_units)
        return replace(found, lost=found.lost + self.matcher.counters["late_pairs"])

    @property
    def _gives_pairs(self) -> bool:
        return self.query.emit == "eager" and self.query.how in WITH_PAIRS

    @property
    def _window_units(self) -> int:
        """How long the time is in which the partners of an event lie."""
        return int(self.matcher.record.length.sum()) + 1

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
