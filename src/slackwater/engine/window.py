"""The windows of one shard: arrivals in, aggregates out (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import gcd
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from slackwater.controllers.drop_ratio import DropController, KimController, Period
from slackwater.controllers.error_bound import ErrorController
from slackwater.disorder.heartbeat import Follow, HeartbeatStage, HeartbeatState
from slackwater.engine.accounting import add
from slackwater.engine.base import DEAD, ShardEngine
from slackwater.engine.checks import TOO_FAR
from slackwater.engine.intake import Rejected
from slackwater.engine.output import LateEvents, Output, Production, Shape
from slackwater.engine.result_schema import check_schema, schema_of, window_columns
from slackwater.errors import QueryError
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.kernels.records import I32, I64, NONE, U8, Aggregated, Late, Released
from slackwater.query.goals import Goal, MaxSlack, Slack, goal_from_dict
from slackwater.query.units import to_units
from slackwater.query.window import WindowQuery
from slackwater.query.window_goals import DropRatio, ErrorBound
from slackwater.windows.accuracy import MeasuredAggregate, WindowAccuracy
from slackwater.windows.slots import SlotPlan
from slackwater.windows.window_aggregate import AggregateState, WindowAggregate

_BINS = 20  # of a window that ends with each event
_MOST_BINS = 1000  # of another: range and slide may have no common measure
_BACK, _FRONT, _IN_SLACK = range(3)  # locations of events


class WindowEngine(ShardEngine[WindowQuery, HeartbeatStage]):
    """Aggregates over windows of one stream."""

    def __init__(
        self,
        query: WindowQuery,
        schemas: Mapping[str, pa.Schema],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        [schema] = [check_schema(schemas, name) for name in query.names]
        self.plan = SlotPlan(query.select, schema, query.names[0])
        columns = schema_of(window_columns(query, schema, self.plan))
        shape = Shape(columns, counts=False, keeps_members=False)
        super().__init__(query, schemas, shape, self.plan, limits)
        goal, step = query.goal, query.step
        self.reorder = HeartbeatStage(
            to_units(goal.length, query.unit, "slack") if isinstance(goal, Slack) else 0,
            **_heartbeat(goal),
            slide=step if isinstance(step, int) else 0,
            open_end=query.bounds == "[)",
            max_jump=_max_jump(query, schema),
            log=self.log,
            limits=limits,
        )
        self.controller = _controller(goal)
        self.errors = _errors(query) if isinstance(goal, ErrorBound) else None
        self.windows = WindowAggregate(query, self.plan, self.log)

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        stage = self.reorder
        stage.start(end - begin)
        while begin < end:
            if self.controller is not None:
                every = self.controller.every
                stage.stop_at((stage.count // every + 1) * every)
            begin, at_boundary = stage.run(begin, end)
            if at_boundary and self.controller is not None:
                if self.errors is not None:  # those of the period count
                    yield from self._hand_on(piece)
                    stage.start(end - begin)
                self._adapt(self.controller)
        yield from self._hand_on(piece)

    def _hand_on(self, piece: int | None) -> Iterator[Output]:
        if len(self.reorder.rejected):
            rows = self.log.row[self.reorder.rejected - self.log.base].astype(np.int64)
            if self.query.strict:
                self.intake.checks.raise_first(0, int(rows[0]), TOO_FAR)
            reasons = np.full(len(rows), TOO_FAR, np.uint8)
            self._count_rejects(Rejected(np.zeros(len(rows), np.int64), rows, reasons))
        for top, distance in self.reorder.changes.tolist():
            self._output.slack(top, distance)
        yield from self._aggregate(piece)

    def _adapt(self, controller: DropController | KimController) -> None:
        """Decide at the end of a period how far back the heartbeat is from here on."""
        stage = self.reorder
        if self.errors is not None and isinstance(controller, ErrorController):
            controller.judge(self.errors.settled(stage.heartbeat - stage.largest))
        period = Period(stage.count, stage.dropped, stage.largest, stage.behind)
        setting = controller.next_setting(period)
        if setting.distance is None:
            stage.set_offset(setting.offset)
        else:
            follow: Follow = "twice" if setting.twice else "nothing"
            stage.set_slack(setting.distance, follow, setting.limit)

    def _flush(self, piece: int | None) -> Iterator[Output]:
        self.reorder.flush()
        yield from self._aggregate(piece)
        for found in self.windows.close():
            self._materialise(found, np.full(len(found.ts), self.reorder.top))
            if piece is not None and self._output.nbytes >= piece:
                yield self._give_out()

    def _aggregate(self, piece: int | None) -> Iterator[Output]:
        """Hand on what left the slack buffer."""
        out = self.reorder.out
        if len(out.event) == 0:
            return
        working = self.windows.process(out)
        while True:
            try:
                found = next(working)
            except StopIteration as end:
                late = end.value
                break
            self._materialise(found, out.top[found.position])
            if piece is not None and self._output.nbytes >= piece:
                yield self._give_out()
        self._count(out, late)

    def _count(self, out: Released, late: Late) -> None:
        counters, n_late = self.counters, len(late.position)
        add(counters.in_order, [int(np.count_nonzero(out.event != NONE)) - n_late])
        add(counters.late_dropped, [n_late])
        counters.max_lateness = max(counters.max_lateness, int(late.by.max(initial=0)))
        if self.errors is not None:
            is_dropped = np.zeros(len(out.event), bool)
            is_dropped[late.position] = True
            real = out.event != NONE
            place = out.event[real] - self.log.base
            watched = list(self.query.watched.values())
            values = self.plan.values(watched, place, self.log.records())
            self.errors.add(out.ts[real], values, is_dropped[real])
        if n_late:
            place = out.event[late.position] - self.log.base
            stream, nothing = np.zeros(n_late, np.int64), np.zeros(n_late, bool)
            times = self.log.ts[place]
            self._output.late.append(
                LateEvents(stream, times, late.by, nothing, late.lost, nothing)
            )
            self._output.dropped.append(self.log.row[place])

    def _materialise(self, found: Aggregated, top: I64) -> None:
        """Write down results; `top` has the largest time when each was made."""
        if self.query.by and isinstance(self.query.step, int):
            order = np.lexsort((found.first, found.ts))  # groups have no order of their own
            found, top = found.take(order), top[order]
        members = {
            which: self.rows[0].take(self.log.row[events - self.log.base])
            for which, events in (("first", found.first), ("last", found.last))
            if self.plan.reads_rows(which) or (which == "last" and self.query.by)
        }
        columns = [pa.array(found.ts.copy()).cast(self.shape.schema.field(0).type)]
        columns += [members["last"].column(name) for name in self.query.by]
        columns += [self.plan.column(column, found, members) for column in self.plan.columns]
        self._output.tables.append(pa.Table.from_arrays(columns, schema=self.shape.schema))
        ones = np.ones(len(found.ts), np.int64)
        self._output.made.append(Production(found.ts.copy(), ones, top - found.ts))
        self.counters.produced += len(ones)

    def set_slack(self, slack: int) -> None:
        """Change the distance by hand."""
        self.reorder.start(0)
        self.reorder.set_slack(slack)
        for top, distance in self.reorder.changes.tolist():
            self._output.slack(top, distance)

    def set_goal(self, goal: Goal) -> None:
        """Change the figures of the goal from here on; what was learnt stays."""
        before = self.query.goal
        if self.controller is None or not _is_alike(goal, before):
            msg = f"a running goal {before} can only get other figures, got {goal}"
            raise QueryError(msg)
        self.query = replace(self.query, goal=goal)
        learnt = self.controller.state()
        self.controller = _controller(goal)
        if self.controller is not None:
            self.controller.resume(learnt)

    # ---- for a snapshot

    def event_locations(self) -> U8:
        """In a window, in its front or back stack, or waiting."""
        place = np.full(self.log.size, DEAD, np.uint8)
        events, is_front = self.windows.kept()
        place[events - self.log.base] = np.where(is_front, _FRONT, _BACK)
        place[self.reorder.waiting() - self.log.base] = _IN_SLACK
        return place

    def state(self) -> dict[str, Any]:
        """The state without the events, as plain data."""
        return {
            "heartbeat": self.reorder.about(),
            "windows": self.windows.state()._asdict(),
            "controller": None if self.controller is None else self.controller.state(),
            "errors": None if self.errors is None else self.errors.state(),
        }

    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the header of a snapshot; the goal may be another one."""
        none = np.empty(0, np.int64)
        distance = self.reorder.slack
        waiting = at.get(_IN_SLACK, none)
        self.reorder.resume(HeartbeatState(**header["heartbeat"], in_slack=waiting))
        front, back = at.get(_FRONT, none), at.get(_BACK, none)
        kept = np.concatenate([front, back])
        is_front = np.arange(len(kept)) < len(front)
        order = np.argsort(kept)
        self.windows.resume(AggregateState(**header["windows"]), kept[order], is_front[order])
        same_goal = repr(self.initial_goal) == header["initial_goal"]
        goal = goal_from_dict(header["goal"])
        if same_goal and goal != self.query.goal:
            self.set_goal(goal)  # it was changed on the way
        if self.errors is not None and header["errors"] is not None:
            self.errors.resume(header["errors"])
        if self.controller is not None and _is_alike(goal, self.query.goal):
            self.controller.resume(header["controller"])
        elif self.controller is not None:
            self.controller.begin(self.reorder.count)
        elif not same_goal:
            self.set_slack(distance)

    # ---- memory

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many groups."""
        self.windows.reserve_codes(size)

    def _rename_codes(self, renamed: I32) -> None:
        self.windows.rename_codes(renamed)

    def stored_events(self) -> int:
        """How many events wait in the windows."""
        return len(self.windows.kept()[0])

    def _oldest(self) -> int:
        self.windows.forget(self.reorder.heartbeat)
        return int(self.windows.kept()[0].min(initial=self.log.end))


def _max_jump(query: WindowQuery, schema: pa.Schema) -> int | Literal["usual"] | None:
    """How far ahead a row may be; of times ahead of the clock somebody else takes care."""
    if query.max_jump == "auto":
        is_time = pa.types.is_temporal(schema.field(query.streams[0].ts).type)
        return None if is_time else "usual"
    return None if query.max_jump == "none" else to_units(query.max_jump, query.unit, "max_jump")


def _heartbeat(goal: Goal) -> dict[str, Any]:
    """The options of the stage that follow from the goal."""
    if isinstance(goal, MaxSlack):
        return {"follow": "largest"}
    if isinstance(goal, ErrorBound):
        return {"recent": goal.recent.count, "hold": goal.recent.count, "follow": "twice"}
    if not isinstance(goal, DropRatio):
        return {}
    known: dict[str, Any] = {
        "heartbeat": goal.heartbeat,
        "recent": goal.recent.count,
        "span": goal.every.count,
    }
    if goal.heartbeat == "largest":
        known |= {"follow": "twice" if goal.is_steered else "largest", "hold": goal.recent.count}
    return known


def _controller(goal: Goal) -> DropController | KimController | None:
    if isinstance(goal, ErrorBound):
        return ErrorController(goal)
    if not isinstance(goal, DropRatio) or not goal.is_steered:
        return None
    if goal.heartbeat == "mean":
        return KimController(goal)
    return DropController(goal.every.count, goal.ratio)


def _errors(query: WindowQuery) -> WindowAccuracy:
    """Bins as wide as the slide, or some of them to a window that ends with each event."""
    length, step = query.length, query.step
    assert isinstance(length, int)
    width = max(1, length // _BINS)
    if isinstance(step, int) and length // gcd(length, step) <= _MOST_BINS:
        width = gcd(length, step)
    measured = [MeasuredAggregate(a.function, i) for i, a in enumerate(query.watched.values())]
    return WindowAccuracy(measured, width, -(-length // width), query.bounds == "[)")


def _is_alike(goal: Goal, other: Goal) -> bool:
    """Whether both are steered in the same way."""
    if not isinstance(goal, DropRatio) or not isinstance(other, DropRatio):
        return isinstance(goal, ErrorBound) and isinstance(other, ErrorBound)
    return goal.is_steered == other.is_steered and goal.heartbeat == other.heartbeat
