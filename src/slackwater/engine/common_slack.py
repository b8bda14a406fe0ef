"""One K and one S for all shards of a query (decision 24).

Shards cannot talk to each other inside a micro-batch. What all of them know are the clocks of all
streams in it, and what each reported at the end of the micro-batch before. K of the micro-batch and
S at its end are functions of these two alone, so they are equal on all shards and in a retry.

K follows from the sum of the reports, and from the delays of the micro-batch if they have grown. S
is that of a *clock stage*: a reordering stage with this K that gets no rows, only the clocks of all
streams. It runs before the rows are joined. A shard goes no further than this S inside the
micro-batch, and up to it at the end.

Inside a micro-batch a shard goes on learning from its own events, on trial: it may wait longer than
K, which no one sees because the results of a micro-batch appear together. In the first one it
decides alone, and S at its end stays behind by the largest delay that the clocks show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slackwater.controllers.controller import Controller, Interval, RecallSeeker
from slackwater.disorder.clocked import ClockedReorder
from slackwater.disorder.stage import ReorderState
from slackwater.engine.output import Output
from slackwater.engine.shard_report import LearntIn, Reports, ShardReport
from slackwater.kernels.records import BEFORE, I64, NEVER, TICK, U8
from slackwater.kernels.reorder import FINISHED
from slackwater.query.goals import Latency, NoSlack, Recall, Slack
from slackwater.stats.arriving import NO_COUNTS, ArrivingDelays

if TYPE_CHECKING:
    from slackwater.engine.arrivals import ArrivalEngine
    from slackwater.engine.join import JoinEngine

_NONE = np.empty(0, np.int64)
_LEAST = 0.1  # of the allowed loss: so many arrivals beyond K are always borne
_KNOW_K_AT_THE_START = (Slack, NoSlack, Latency)  # goals


class Clocks(NamedTuple):
    """The local times of all streams in a micro-batch, as all shards know them."""

    stream: U8  # of each tick, in arrival order
    time: I64  # to which its local time rose
    largest_delay: int  # that they show
    delays: I64 = NO_COUNTS  # how many arrivals at its end had which; see `coarse_counts`


class CommonSlack:
    """The part that one of several shards takes in finding their K and S.

    In each micro-batch: `learn` from the reports of the one before, obey commands, `begin`, take in
    the rows, `end`, and hand the `report` on.

    Parameters
    ----------
    engine
        The shard.
    shards
        How many there are.
    idle_after
        As of the shard.
    """

    def __init__(
        self, engine: JoinEngine | ArrivalEngine, shards: int, idle_after: int | None
    ) -> None:
        self._engine = engine
        self._shards = shards
        self._idle_after = idle_after
        self._clock_stage: ReorderState | None = None  # None: there was no micro-batch yet
        self._others_reached = BEFORE  # S of the shard that is furthest
        self._wanted: int | None = None  # by the controller of this shard alone
        self._agreed = engine.reorder.slack  # K in this micro-batch
        self._least = self._agreed  # of K inside it
        self._trials: list[Controller] = []  # learn from this shard alone in this micro-batch
        # for each controller, the intervals that ended in this micro-batch
        self._intervals: list[dict[int, LearntIn]] = [{} for _ in engine.controllers]
        self._delays: ArrivingDelays | None = None  # of what arrived, where all learn together
        self.start_anew()

    @property
    def needs_reports(self) -> bool:
        """Whether K depends on what shards see; a fixed K does not."""
        return self._engine.statistics is not None or self._engine.controller.follows_delay

    @property
    def _allowed_loss(self) -> float:
        goal = self._engine.query.goal
        return 1.0 - goal.target if isinstance(goal, Recall) else 0.0

    @property
    def _adds_up(self) -> bool:
        """Whether all shards run the same controllers over the sum of what all have learnt."""
        statistics = self._engine.statistics
        return statistics is not None and statistics.adds_up

    # ---- a micro-batch

    def learn(self, reports: Reports) -> None:
        """Choose K by what all shards reported of the micro-batch before; none: keep it."""
        if not reports:
            return
        engine, reorder = self._engine, self._engine.reorder
        self._others_reached = max(report.sync_time for report in reports)
        slack = max(report.slack for report in reports)
        if self._adds_up:
            wanted = (
                self._wanted_by(controller, slack, reports.learnt(n))
                for n, controller in enumerate(engine.controllers)
            )
            slack = max(wanted)
        engine.change_slack(slack, reorder.top)

    def _wanted_by(self, controller: Controller, slack: int, learnt: dict[int, LearntIn]) -> int:
        """The K that a controller chooses by what all shards learnt; `slack` is in force."""
        reorder, statistics = self._engine.reorder, self._engine.statistics
        assert statistics is not None
        local = tuple(reorder.local(s) for s in range(reorder.n_streams))
        for known in learnt.values():
            slack = controller.next_slack(
                Interval(
                    known.end,
                    slack,
                    self._others_reached,
                    local,
                    statistics,
                    known.common_clock,
                    known.most_behind,
                    known.lateness,
                )  # fmt: skip
            )
        return slack

    def begin(self, clocks: Clocks) -> None:
        """Find S at the end of the micro-batch, before its rows are taken in."""
        engine, reorder = self._engine, self._engine.reorder
        state = reorder.state() if self._clock_stage is None else self._clock_stage
        self._agreed = self._least = reorder.slack
        knows_k = isinstance(engine.query.goal, _KNOW_K_AT_THE_START)
        top = state.scalars["top"]
        if top == BEFORE and not knows_k:
            self._agreed = max(self._agreed, clocks.largest_delay)
        elif self._delays is not None:
            self._agreed = self._least = self._delays.raised(
                self._agreed, clocks.delays, _LEAST * self._allowed_loss
            )
            engine.change_slack(self._agreed, reorder.top)
        self._clock_stage = self._moved_on(state, clocks)
        reached = self._clock_stage.scalars
        if self._delays is not None and reached["top"] > BEFORE:
            self._delays.remember(clocks.delays, reached["top"] - top if top > BEFORE else 0)
        reorder.set_limit(reached["sync_time"])
        self._trials = deepcopy(list(engine.controllers)) if self._adds_up else []

    def next_slack(self, intervals: Sequence[Interval]) -> int:
        """K of this shard for the rest of the micro-batch, unless another interval ends.

        `intervals` has the same interval as each controller of the engine sees it.
        """
        if not self._trials:
            own = zip(self._engine.controllers, intervals, strict=True)
            self._wanted = max(controller.next_slack(seen) for controller, seen in own)
            return max(self._wanted, self._least)
        wanted = [self._least]
        for trial, own_part, seen in zip(self._trials, self._intervals, intervals, strict=True):
            assert seen.lateness is not None
            own_part[seen.end // seen.statistics.every] = LearntIn(
                seen.end, seen.common_clock, seen.most_behind, seen.lateness
            )
            scaled = replace(seen, lateness=seen.lateness.times(self._shards))
            wanted.append(trial.next_slack(scaled))
        return max(wanted)

    def end(self, piece: int | None) -> Iterator[Output]:
        """Go on to S, as all shards do."""
        assert self._clock_stage is not None
        engine = self._engine
        if engine.controller.follows_delay:
            self._wanted = engine.reorder.slack
        yield from engine.move_up(self._clock_stage.scalars["sync_time"], piece)
        engine.change_slack(self._agreed, engine.reorder.top)

    def report(self) -> ShardReport:
        """What the other shards should know of the micro-batch."""
        wanted = self._agreed if self._adds_up or self._wanted is None else self._wanted
        intervals, self._intervals = self._intervals, [{} for _ in self._intervals]
        return ShardReport(wanted, self._engine.reorder.sync_time, intervals)

    # ---- what happens to all shards alike

    def finish(self, stream: int) -> None:
        """No more rows of `stream` will come."""
        if self._clock_stage is not None:
            self._clock_stage.moved[stream] = FINISHED

    def start_anew(self) -> None:
        """The goal has changed: what this shard wanted counts no more."""
        self._wanted = None
        seeker = self._engine.controller
        if self._adds_up and isinstance(seeker, RecallSeeker):
            self._delays = self._delays or ArrivingDelays(seeker.over)

    # ---- the clock stage

    def _moved_on(self, state: ReorderState, clocks: Clocks) -> ReorderState:
        """The clock stage behind these ticks. Its S is no less than that of any shard."""
        reached = max(
            state.scalars["sync_time"], self._others_reached, self._engine.reorder.sync_time
        )
        if state.scalars["common_clock"] > BEFORE:  # K may be smaller than it was
            reached = max(reached, state.scalars["common_clock"] - self._agreed)
        scalars = state.scalars | {"slack": self._agreed, "sync_time": reached, "boundary": NEVER}
        stage = ClockedReorder(len(state.local), idle_after=self._idle_after)
        stage.resume(state._replace(scalars=scalars, in_slack=_NONE))
        keys = [np.full(len(clocks.time), TICK, np.int32)]
        first, end = stage.log.append(clocks.time, clocks.stream, keys)
        stage.run(first, end)
        return stage.state()

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All that is remembered between micro-batches, as plain data."""
        clock = self._clock_stage
        plain = None if clock is None else clock.without_events()
        delays = None if self._delays is None else self._delays.state()
        return {"clock_stage": plain, "wanted": self._wanted, "delays": delays}

    def resume(self, state: dict[str, Any], same_goal: bool) -> None:
        """Go on from `state`; what this shard wanted counts only with the same goal."""
        if state["clock_stage"] is not None:
            self._clock_stage = ReorderState(
                **state["clock_stage"], in_slack=_NONE, overdue=_NONE, in_sync=_NONE
            )
        self._wanted = state["wanted"] if same_goal else None
        if self._delays is not None and state["delays"] is not None:
            self._delays.resume(state["delays"])
