"""Where decisions are made: the ends of intervals of event time.

The controller chooses K, the shedder what to leave out, and retention how long events are kept. The
reordering stage stops at each boundary, so decisions do not depend on how the input is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.controllers.controller import Controller, Interval
from slackwater.disorder.clocked import ClockedReorder
from slackwater.disorder.reorder import Reorder
from slackwater.disorder.stage import ReorderStage
from slackwater.engine.shedding import evict, wanted
from slackwater.events.limits import Limits
from slackwater.events.log import Log
from slackwater.kernels.records import BEFORE
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.stats.retention import Retention

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine

_RETENTION_EVERY = "1 second"
_FOR_FIXED_SLACK = 10  # times as long: no lateness is measured that must be within retention
_DEFAULT_LOSS = 0.05  # what a goal that is no recall is taken to allow


def retention_for(query: JoinQuery) -> Retention | None:
    """Who chooses how long events are kept; None: the query says it, or nothing is counted."""
    if query.retained is not None or query.late == "drop":
        return None
    every = to_units(_RETENTION_EVERY, query.unit)
    if isinstance(query.goal, Recall):
        return Retention(1.0 - query.goal.target, every)
    return Retention(_DEFAULT_LOSS, every, _FOR_FIXED_SLACK)


def stage_for(
    query: JoinQuery,
    controller: Controller,
    common_clock: bool,
    idle_after: int | None,
    log: Log,
    limits: Limits,
) -> ReorderStage:
    """The way of reordering that the query asks for."""
    m, start, follow = len(query.streams), controller.start, controller.follows_delay
    if query.is_clocked:
        return ClockedReorder(m, start, follow, idle_after, log, limits)
    return Reorder(
        m,
        start,
        query.overdue,
        follow=follow,
        hold_ties=query.has_tuple_windows,
        common_clock=common_clock,
        idle_after=idle_after,
        synchronize=query.synchronizes,
        slide=query.slide_units if query.pipeline == "icde16" else 1,
        open_end=query.bounds == "[)",
        log=log,
        limits=limits,
    )


def measure_lateness(engine: JoinEngine) -> None:
    """Let the join count the lateness of results, if the goal wants it."""
    join, reorder, statistics = engine.join, engine.reorder, engine.statistics
    if statistics is not None and statistics.lateness is not None:
        join.measure_lateness(statistics.lateness.record, reorder.waiting())
    if isinstance(reorder, ClockedReorder):
        reorder.gives_clocks = join.stores_at_arrival or engine.alone is not None


class Adaptation:
    """Ends the intervals of an engine's controller, shedder and retention."""

    def __init__(self, engine: JoinEngine) -> None:
        self._engine = engine
        self._is_clocked = engine.query.is_clocked
        self._due: list[int | None] = []  # when the interval of each ends

    def set_boundary(self) -> None:
        """Let the reordering stage stop where the next interval ends."""
        engine = self._engine
        top = engine.reorder.top
        if top == BEFORE:  # the grid is that of event time, wherever it starts
            top = int(engine.log.ts[0])
        self._due = [
            None if every is None else (top // every + 1) * every for every in self._lengths()
        ]
        engine.reorder.stop_at(min((due for due in self._due if due is not None), default=None))

    def _lengths(self) -> tuple[int | None, int | None, int | None]:
        """Of the intervals in event time; a measured load has intervals of its own."""
        engine, shedder = self._engine, self._engine.shedder
        return (
            engine.controller.every,
            None if shedder is None or shedder.uses_measured_load else shedder.every,
            None if engine.retention is None else engine.retention.every,
        )

    def end_intervals(self, reached: int) -> None:
        """Decide what is due; arrivals before number `reached` have been taken in."""
        top = self._engine.reorder.top
        for_goal, for_shedder, for_retention = (due is not None and top >= due for due in self._due)
        if for_goal:
            self._choose_slack()
        if for_shedder:
            self.shed(reached)
        if for_retention:
            self._choose_retention()

    def _choose_slack(self) -> None:
        engine, reorder, statistics = self._engine, self._engine.reorder, self._engine.statistics
        assert statistics is not None
        clock = reorder.sync_time if self._is_clocked else engine.join.time
        lateness = statistics.lateness
        interval = Interval(
            reorder.top,
            reorder.slack,
            clock,
            tuple(reorder.local(s) for s in range(reorder.n_streams)),
            statistics,
            reorder.common_clock,
            reorder.most_behind,
            None if lateness is None else lateness.close(clock, statistics.results),
        )
        statistics.close(reorder.top)
        seen = [interval]
        if engine.alone is not None and engine.alone.waits is not None:
            seen.append(engine.alone.waits_of(interval))
        if engine.common_slack is not None:
            slack = engine.common_slack.next_slack(seen)
        else:
            wanted = zip(engine.controllers, seen, strict=True)
            slack = max(controller.next_slack(own) for controller, own in wanted)
        engine.change_slack(slack, interval.end)

    def _choose_retention(self) -> None:
        engine = self._engine
        assert engine.retention is not None
        length = engine.retention.next_length(engine.reorder.slack)
        engine.join.set_retention(length)
        if engine.alone is not None:
            engine.alone.set_keep(length, engine.join)
        if engine.sample is not None:
            engine.sample.set_reach(length, engine.retention.rate)

    def shed(self, reached: int) -> None:
        """Let the shedder decide what to leave out."""
        engine, shedder = self._engine, self._engine.shedder
        assert shedder is not None
        before = shedder.orders
        shedder.adapt(engine.reorder.top, wanted(engine.query.goal, engine.statistics))
        if shedder.eviction is not None and engine.join.time != BEFORE:
            evict(engine, shedder, reached)
            engine.forget_rows(reached)
        if shedder.orders != before:
            engine.join.set_orders(shedder.orders)
