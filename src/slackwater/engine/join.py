"""The join of one shard: arrivals in, results out (DESIGN 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.controllers.model import RecallModel
from slackwater.disorder.reorder import Reorder, ReorderState
from slackwater.engine.base import DEAD, ShardEngine, add
from slackwater.engine.chart_part import with_join_facts
from slackwater.engine.output import Output, Shape
from slackwater.engine.result_schema import check_schema
from slackwater.engine.shedding import index_for, metrics_of, shedder_for, wanted
from slackwater.errors import QueryError
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.conditions import compile_conditions
from slackwater.joins.window_join import JoinState, WindowJoin
from slackwater.kernels import join as fates
from slackwater.kernels.records import BEFORE, I32, I64, U8, Late, Made, Released, Results
from slackwater.metrics.charts import ChartPart
from slackwater.metrics.counters import SheddingMetrics
from slackwater.query.goals import Goal, goal_from_dict
from slackwater.query.join import JoinQuery

_STORED, _IN_SLACK, _OVERDUE, _IN_SYNC = range(4)  # locations of events


class JoinEngine(ShardEngine[JoinQuery, Reorder]):
    """The join of one shard.

    Parameters
    ----------
    query
        The join.
    schemas
        The Arrow schema of each stream, by name.
    controller
        Sets K; by default the controller of the query's goal.
    common_clock, idle_after
        See `Reorder`: whether ticks carry the local times of the streams in other shards, and after
        which silence (in units) the join stops waiting for a stream.
    limits
        Sizes of arrays; they do not change results.
    """

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        controller: Controller | None = None,
        common_clock: bool = False,
        idle_after: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        given = [check_schema(schemas, name) for name in query.names]
        conditions = compile_conditions(query, given)
        super().__init__(query, schemas, Shape.of(query, given), conditions.columns, limits)
        self.controller = controller or controller_for(query)
        self.statistics = self.controller.statistics(query)
        self.model = RecallModel(query)  # only for charts: the controller has its own
        if self.statistics is not None:
            self.recent = None  # they have all delays
        self.reorder = Reorder(
            len(query.streams),
            self.controller.start,
            query.overdue,
            follow=self.controller.follows_delay,
            hold_ties=query.has_tuple_windows,
            common_clock=common_clock,
            idle_after=idle_after,
            synchronize=getattr(query.goal, "synchronize", True),
            log=self.log,
            limits=limits,
        )
        index = index_for(query, conditions)
        self.shedder = shedder_for(query, conditions, index)
        self._reached = 0  # arrivals before this one have been taken in
        self._first_alive = 0  # none before this one is in a window; horizons never go back
        self._due: list[int | None] = []  # when the intervals of controller and shedder end
        shed = None if self.shedder is None else self.shedder.shed
        self.join = WindowJoin(query, conditions, self.log, shed, index, limits)

    # ---- work

    def set_goal(self, goal: Goal) -> None:
        """Change the figures of the goal from here on; what was learnt stays."""
        if not isinstance(goal, type(self.query.goal)) or self.statistics is None:
            msg = f"a running goal {self.query.goal} can only get other figures, got {goal}"
            raise QueryError(msg)
        self.query = replace(self.query, goal=goal)
        self.controller = controller_for(self.query)
        statistics = self.controller.statistics(self.query)
        if statistics is not None and statistics.kind != self.statistics.kind:
            self.statistics = statistics

    def set_slack(self, slack: int) -> None:
        """Change K by hand."""
        self._set_slack(slack, self.reorder.top)

    def event_locations(self) -> U8:
        """Stored in the windows, or waiting in one of the buffers."""
        log, waiting = self.log, self.reorder.state()
        horizons = np.array([self.join.stream_horizon(s) for s in range(len(self.rows))])
        kept = log.ts >= horizons[log.stream] if log.size else np.zeros(0, bool)
        kept &= log.keys[:, 0] >= 0  # ticks and shed events are not stored
        place = np.where(kept, _STORED, DEAD).astype(np.uint8)
        place[waiting.in_slack - log.base] = _IN_SLACK
        place[waiting.overdue - log.base] = _OVERDUE
        place[waiting.in_sync - log.base] = _IN_SYNC
        return place

    def state(self) -> dict[str, Any]:
        """The state without the events, as plain data."""
        waiting = self.reorder.state()
        return {
            "reorder": {
                "scalars": waiting.scalars,
                "local": waiting.local,
                "newest": waiting.newest,
                "moved": waiting.moved,
            },
            "join": self.join.state()._asdict(),
            "statistics": None if self.statistics is None else self.statistics.state(),
            "controller": self.controller.state(),
            "shedder": None if self.shedder is None else self.shedder.state(),
        }

    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the header of a snapshot; the goal may be another one."""
        slack = self.reorder.slack
        none = np.empty(0, np.int64)
        self.reorder.resume(
            ReorderState(
                **header["reorder"],
                in_slack=at.get(_IN_SLACK, none),
                overdue=at.get(_OVERDUE, none),
                in_sync=at.get(_IN_SYNC, none),
            )
        )
        same_goal = repr(self.initial_goal) == header["initial_goal"]
        goal = goal_from_dict(header["goal"])
        if same_goal and goal != self.query.goal:
            self.set_goal(goal)  # it was changed on the way
        elif not same_goal and self.statistics is None:
            self.reorder.set_slack(slack)  # a goal that learns finds its own way from the old one
        self.join.resume(JoinState(**header["join"]), at.get(_STORED, none))
        if self.statistics is not None and self.statistics.fits(header["statistics"]):
            self.statistics.resume(header["statistics"])
            if same_goal:
                self.controller.resume(header["controller"])
        if self.shedder is not None and self.shedder.fits(header["shedder"]):
            self.shedder.resume(header["shedder"])
            self.join.set_orders(self.shedder.orders)

    def _stored(self) -> int:
        """How many events wait in the windows for partners, or for late events to be counted."""
        log = self.log
        since = max(self._first_alive, log.base)
        rest = slice(since - log.base, None)
        horizons = np.array([self.join.stream_horizon(s) for s in range(len(self.rows))])
        kept = (log.ts[rest] >= horizons[log.stream[rest]]) & (log.keys[rest, 0] >= 0)
        self._first_alive = since + (int(np.argmax(kept)) if kept.any() else len(kept))
        waiting = self.reorder.waiting() - since
        kept[waiting[waiting >= 0]] = False
        return int(np.count_nonzero(kept))

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        while begin < end:
            self._set_boundary()
            step = self.reorder.run(begin, end)
            if self.statistics is not None:
                self.statistics.arrive(
                    begin, step.reached, self.reorder.max_delay, self.log.records()
                )
            for top, slack in step.changes:
                self._output.slack(int(top), int(slack))
            yield from self._join(step.out, piece)
            begin = self._reached = step.reached
            if step.at_boundary:
                self._at_boundary()

    def _flush(self, piece: int | None) -> Iterator[Output]:
        if self.shedder is not None:
            self.shedder.lift_buffer_limit()
        yield from self._join(self.reorder.flush(), piece)
        if self.shedder is not None:
            self.shedder.restore_buffer_limit()

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many key codes."""
        self.join.reserve_codes(size)

    def _rename_codes(self, renamed: I32) -> None:
        self.join.rename_codes(renamed)

    def _oldest(self) -> int:
        alive = self.log.ts >= self.join.horizon  # what is stored is not older
        return self.log.base + int(np.argmax(alive)) if alive.any() else self.log.end

    # ---- adaptation

    def _set_boundary(self) -> None:
        """Stop where an interval of the controller or of the shedder ends."""
        top = self.reorder.top
        if top == BEFORE:  # the grid is that of event time, wherever it starts
            top = int(self.log.ts[0])
        self._due = [
            None if every is None else (top // every + 1) * every
            for every in (self.controller.every, self._shed_every)
        ]
        self.reorder.stop_at(min((due for due in self._due if due is not None), default=None))

    @property
    def _shed_every(self) -> int | None:
        """Boundaries of the shedder in event time; a measured load has its own intervals."""
        shedder = self.shedder
        return None if shedder is None or shedder.uses_measured_load else shedder.every

    def _at_boundary(self) -> None:
        for_goal, for_shedder = self._due
        if for_goal is not None and self.reorder.top >= for_goal:
            self._adapt()
        if for_shedder is not None and self.reorder.top >= for_shedder:
            self._shed()

    def _shed(self) -> None:
        """End an interval of the shedder: let it decide what to leave out."""
        assert self.shedder is not None
        before = self.shedder.orders
        self.shedder.adapt(self.reorder.top, wanted(self.query.goal, self.statistics))
        self._evict()
        if self.shedder.orders != before:
            self.join.set_orders(self.shedder.orders)

    def _evict(self) -> None:
        """Drop the least valuable events when the windows hold more than they may."""
        shedder, log = self.shedder, self.log
        assert shedder is not None
        if shedder.eviction is None or self.join.time == BEFORE:
            return
        stored = self.event_locations() == _STORED
        stored[self._reached - log.base :] = False  # they have not come yet
        age, size = [], []
        for s, rows in enumerate(self.rows):
            own = np.flatnonzero(stored & (log.stream == s))
            age.append(np.maximum(0, self.join.time - log.ts[own]) // shedder.shed.basic[s])
            sizes = rows.sizes(log.row[own]) + log.bytes_per_event
            size.append(np.bincount(age[s], sizes).astype(float))
        for s, kept in enumerate(shedder.eviction.ages_kept(size, self.reorder.top)):
            if np.any(age[s] >= kept):
                basic = int(shedder.shed.basic[s])
                first = self.join.first_to_keep(self.join.time - kept * basic + 1, basic)
                own = stored & (log.stream == s)
                self.counters.evicted += int(np.count_nonzero(log.ts[own] < first))
                self.join.forget_before(s, first)
        self._forget_rows(self._reached)

    def measured(self, busy: float, begin: int) -> None:
        """Record that the input since time `begin` kept the machine busy for `busy` seconds.

        Only load shedding without a budget uses it; it acts from the next batch on.
        """
        shedder = self.shedder
        if shedder is None or not shedder.uses_measured_load:
            return
        top = self.reorder.top
        if top != BEFORE and shedder.add_busy_time(busy, top if begin == BEFORE else begin, top):
            self._shed()

    def _adapt(self) -> None:
        """End an adaptation interval: the controller chooses the next K."""
        assert self.statistics is not None
        reorder = self.reorder
        interval = Interval(
            reorder.top,
            reorder.slack,
            self.join.time,
            tuple(reorder.local(s) for s in range(reorder.n_streams)),
            self.statistics,
        )
        self.statistics.delays.close(reorder.top)
        self._set_slack(self.controller.next_slack(interval), interval.end)

    def _set_slack(self, slack: int, now: int) -> None:
        if slack != self.reorder.slack:
            self.reorder.set_slack(slack)
            self._output.slack(now, slack)

    # ---- join

    def _join(self, out: Released, piece: int | None) -> Iterator[Output]:
        """Join what left the Synchronizer."""
        if len(out.event) == 0:
            return
        joining = self.join.process(out)
        while True:
            try:
                found = next(joining)
            except StopIteration as end:
                made, late, sampled = end.value
                break
            for part in self._cut(found, piece):
                self._materialise(part, out)
                if piece is not None and self._output.nbytes >= piece:
                    yield self._give_out()
        self._count(out.stream, made, late)
        if self.statistics is not None:
            could_make = made
            if self.shedder is not None and self.shedder.is_shedding:
                # The goal is about disorder alone. Late events, which are behind, make nothing.
                own = sampled.n > 0
                position = sampled.position[own]
                could_make = Made(position, out.ts[position], sampled.n[own])
            self.statistics.join(
                out.stream,
                out.ts,
                lambda: self.log.delay[out.event - self.log.base],
                could_make,
                (late.position, late.lost),
            )
        self._output.step(self.log, out, made, late)

    def _count(self, streams: I64, made: Made, late: Late) -> None:
        total, m = self.counters, len(self.rows)
        kept = (late.fate & fates.LATE_KEPT) > 0
        behind = np.bincount(streams[late.position], minlength=m)
        behind_kept = np.bincount(streams[late.position[kept]], minlength=m)
        add(total.in_order, np.bincount(streams, minlength=m) - behind)
        add(total.late_kept, behind_kept)
        add(total.late_dropped, behind - behind_kept)
        total.lost_unknown += int(np.count_nonzero(late.fate & fates.LOSS_UNKNOWN))
        total.max_lateness = max(total.max_lateness, int(late.by.max(initial=0)))
        produced, lost = int(made.n.sum()), int(late.lost.sum())
        total.produced += produced
        total.lost += lost
        if self.shedder is not None:
            dropped, estimates = self.shedder.count_arrivals(streams)
            add(total.shed, dropped)
            add(total.in_order, -dropped)
            total.lost_variance += estimates.lost_variance
            if self.shedder.is_shedding:
                total.missed += estimates.full_results - produced
                total.missed_variance += estimates.full_results_variance

    def _shedding_metrics(self) -> SheddingMetrics | None:
        if self.shedder is None:
            return None
        return metrics_of(self.shedder, self.counters, self.reorder.top)

    def add_chart_facts(self, part: ChartPart, results: pa.Table | None) -> ChartPart:  # noqa: ARG002
        """`part` with the recent recall, the curve and the harvest."""
        return with_join_facts(self, part)

    def _cut(self, found: Results, piece: int | None) -> Iterator[Results]:
        """`found` in parts of about `piece` bytes each, so that large rows cannot pile up."""
        if piece is None:
            yield found
            return
        sizes = np.zeros(len(found.ts), np.int64)
        for s, rows in enumerate(self.rows):
            sizes += rows.sizes(found.row[s])
        part = np.cumsum(sizes) // piece
        ends = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        for begin, end in pairwise(ends):
            own = slice(begin, end)
            yield Results(
                found.row[:, own], found.ts[own], found.position[own], found.last[own],
                found.late[own],
            )  # fmt: skip

    def _materialise(self, found: Results, out: Released) -> None:
        output = self._output
        tables = [rows.take(found.row[s]) for s, rows in enumerate(self.rows)]
        output.results(found, tables)
        if not self.has_arrival:
            return
        emitted = self.log.arrival[out.during[found.position] - self.log.base]
        waits = emitted - self.log.arrival[found.last - self.log.base]
        output.waits.append(waits if self.query.late != "emit" else waits[found.late == 0])
