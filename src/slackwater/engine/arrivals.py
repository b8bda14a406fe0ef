"""What joins of one shard have in common whose rows come from arrivals: clocks, K, what is kept.

Nothing waits to be put in order here. Subclasses find rows when events arrive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.disorder.common_clock import CommonClock
from slackwater.engine import match_state
from slackwater.engine.accounting import count_arrivals
from slackwater.engine.base import ShardEngine
from slackwater.engine.checks import check_new_goal
from slackwater.engine.common_slack import CommonSlack
from slackwater.engine.matched import top_series
from slackwater.engine.output import Output, Shape
from slackwater.engine.result_schema import check_schema
from slackwater.engine.waits import correction_reach, keep_waits, row_waits
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.at_once import JoinAtOnce
from slackwater.joins.conditions import Conditions, compile_conditions
from slackwater.joins.matcher import Matcher, keep_for
from slackwater.kernels.records import BEFORE, I32, I64, U8, ClockSeries
from slackwater.query.goals import Goal
from slackwater.query.join import JoinQuery


class ArrivalEngine(ShardEngine[JoinQuery, CommonClock]):
    """The join of one shard; parameters as in `JoinEngine`.

    `matcher` finds rows, and knows which events are kept.
    """

    matcher: Matcher | JoinAtOnce

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        idle_after: int | None = None,
        sharing: int = 1,
        limits: Limits = DEFAULT_LIMITS,
        marks: int = 0,
    ) -> None:
        given = [check_schema(schemas, name) for name in query.names]
        conditions = compile_conditions(query, given)
        shape = Shape.of(query, given)
        super().__init__(query, schemas, shape, conditions.columns, limits, marks)
        self.matcher = self._new_matcher(conditions)
        self._control()
        start, follow = self.controller.start, self.controller.follows_delay
        m = len(query.streams)
        self.reorder = CommonClock(m, start, follow, idle_after, self.log, limits)
        self.common_slack = CommonSlack(self, sharing, idle_after) if sharing > 1 else None

    @abstractmethod
    def _new_matcher(self, conditions: Conditions) -> Matcher | JoinAtOnce:
        """Who finds rows."""

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

    @abstractmethod
    def move_up(self, time: int, piece: int | None = None) -> Iterator[Output]:
        """Let everything up to `time` out; what comes before it is late from here on."""

    def event_locations(self) -> U8:
        """Kept, or not needed any more."""
        return match_state.event_locations(self)

    def state(self) -> dict[str, Any]:
        """The state without the events, as plain data."""
        return match_state.plain_state(self)

    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the header of a snapshot; the goal may be another one."""
        match_state.resume(self, header, at)

    @abstractmethod
    def put_back(self, header: dict[str, Any], kept: I64) -> None:
        """Continue from the header of a snapshot with these events, but for clocks and goal."""

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

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        while begin < end:
            top, due = self.reorder.top, self._set_boundary()
            step = self.reorder.run(begin, end)
            for changed, slack in step.changes:
                self._output.slack(int(changed), int(slack))
            series = self.reorder.series
            tops = top_series(self.log, begin, series, top)
            self._count_events(begin, series)
            yield from self._find(begin, step.reached, series, tops, piece)
            begin = step.reached
            if due is not None and self.reorder.top >= due:
                self._choose()

    @abstractmethod
    def _find(
        self, begin: int, end: int, series: ClockSeries, tops: I64, piece: int | None
    ) -> Iterator[Output]:
        """Give out the rows of a step; `tops` has the largest local time with each arrival."""

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
        local = tuple(clocks.local(s) for s in range(clocks.n_streams))
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

    # ---- counters

    def _count_events(self, begin: int, series: ClockSeries) -> None:
        """Which events were late, and which of them find no partners to come."""
        count_arrivals(
            self.counters, begin, series, self.matcher, self.log,
            ordered=self.query.emit == "ordered", window_units=self._pair_units,
        )  # fmt: skip

    @property
    def _pair_units(self) -> int:
        """In how much time the partners of an event lie; 0: no pairs are given out."""
        return 0
