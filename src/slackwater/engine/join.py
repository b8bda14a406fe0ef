"""The join of one shard: arrivals in, results out (DESIGN 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Controller
from slackwater.controllers.factory import controller_for
from slackwater.controllers.model import RecallModel
from slackwater.disorder.clocked import ClockedReorder
from slackwater.disorder.stage import ReorderStage
from slackwater.engine import join_state
from slackwater.engine.accounting import with_matches
from slackwater.engine.adaptation import (
    Adaptation,
    measure_lateness,
    retention_for,
    stage_for,
)
from slackwater.engine.alone import RowsAlone
from slackwater.engine.base import ShardEngine
from slackwater.engine.chart_part import with_join_facts
from slackwater.engine.checks import check_new_goal
from slackwater.engine.common_slack import CommonSlack
from slackwater.engine.join_output import write_in_turn, write_rest
from slackwater.engine.join_step import note_step
from slackwater.engine.longer_sample import sample_for
from slackwater.engine.output import Output, Shape, parts_of
from slackwater.engine.result_schema import check_schema
from slackwater.engine.shedding import (
    index_for,
    metrics_of,
    shedder_for,
)
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.joins.conditions import compile_conditions
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels.partners import MARKS
from slackwater.kernels.records import BEFORE, I32, I64, U8, Released
from slackwater.metrics.charts import ChartPart
from slackwater.metrics.counters import Metrics, SheddingMetrics
from slackwater.query.goals import Goal
from slackwater.query.join import JoinQuery
from slackwater.stats.sampling import DEFAULT_SAMPLING, Sampling

_NOTHING = np.empty(0, np.int64)


class JoinEngine(ShardEngine[JoinQuery, ReorderStage]):
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
    sharing
        How many shards have one K together, this one included; see `CommonSlack`.
    limits
        Sizes of arrays; they do not change results.
    sampling
        How much is kept longer, to estimate what is lost beyond retention.
    """

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        controller: Controller | None = None,
        common_clock: bool = False,
        idle_after: int | None = None,
        sharing: int = 1,
        limits: Limits = DEFAULT_LIMITS,
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> None:
        given = [check_schema(schemas, name) for name in query.names]
        conditions = compile_conditions(query, given)
        is_outer = any(query.preserved)
        super().__init__(
            query, schemas, Shape.of(query, given), conditions.columns, limits, MARKS * is_outer
        )
        self.controller = controller or controller_for(query)
        self.statistics = self.controller.statistics(query)
        self.model = RecallModel(query)  # only for charts: the controller has its own
        if self.statistics is not None and self.statistics.has_delays:
            self.recent = None  # they have all delays
        self.reorder = stage_for(query, self.controller, common_clock, idle_after, self.log, limits)
        index = index_for(query, conditions)
        self.shedder = shedder_for(query, conditions, index)
        self._reached = 0  # arrivals before this one have been taken in
        self.first_alive = 0  # none before this one is in a window; horizons never go back
        self.retention = retention_for(query)
        shed = None if self.shedder is None else self.shedder.shed
        self.join = WindowJoin(query, conditions, self.log, shed, index, limits)
        self.alone = RowsAlone(query, conditions, self.log, limits) if is_outer else None
        measure_lateness(self)
        self.sample = sample_for(query, conditions, self, sampling, limits)
        self.common_slack = CommonSlack(self, sharing, idle_after) if sharing > 1 else None
        self._adaptation = Adaptation(self)

    @property
    def controllers(self) -> list[Controller]:
        """Those that choose K; the largest counts."""
        if self.alone is None or self.alone.waits is None:
            return [self.controller]
        return [self.controller, self.alone.waits.controller]

    # ---- work

    def set_goal(self, goal: Goal) -> None:
        """Change the figures of the goal from here on; what was learnt stays."""
        check_new_goal(self.query.goal, goal, self.statistics is not None)
        self.query = replace(self.query, goal=goal)
        self.controller = controller_for(self.query)
        if self.common_slack is not None:
            self.common_slack.start_anew()
        before, statistics = self.statistics, self.controller.statistics(self.query)
        if before and statistics and statistics.kind != before.kind:
            self.statistics = statistics
            measure_lateness(self)

    def set_slack(self, slack: int) -> None:
        """Change K by hand."""
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
        assert isinstance(self.reorder, ClockedReorder)
        if self.alone is not None:
            self.alone.move_up(time)
        yield from self._join(self.reorder.move_up(time), piece, self.log.end)
        yield from self._give_rest(piece)
        yield self._give_out()

    def event_locations(self) -> U8:
        """Stored in the windows, or waiting in one of the buffers."""
        return join_state.event_locations(self)

    def state(self) -> dict[str, Any]:
        """The state without the events, as plain data."""
        return join_state.plain_state(self)

    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the header of a snapshot; the goal may be another one."""
        join_state.resume(self, header, at)

    def stored_events(self) -> int:
        """How many events wait in the windows for partners, or for late events to be counted."""
        return join_state.stored_events(self)

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        first = begin
        while begin < end:
            self._adaptation.set_boundary()
            step = self.reorder.run(begin, end)
            if self.statistics is not None:
                self.statistics.arrive(
                    begin, step.reached, self.reorder.max_delay, self.log.records()
                )
            for top, slack in step.changes:
                self._output.slack(int(top), int(slack))
            if self.alone is not None:
                self.alone.step(
                    begin, step.reached, step.behind, step.clocks, self.reorder.sync_time
                )
            yield from self._join(step.out, piece, begin, step.behind, step.clocks)
            yield from self._give_rest(piece)
            begin = self._reached = step.reached
            if step.at_boundary:
                self._adaptation.end_intervals(self._reached)
        if self.sample is not None:
            self.sample.take(first, end)

    def _flush(self, piece: int | None) -> Iterator[Output]:
        if self.shedder is not None:
            self.shedder.lift_buffer_limit()
        if self.alone is not None:
            self.alone.flush()
        yield from self._join(self.reorder.flush(), piece, self.log.end)
        yield from self._give_rest(piece)
        if self.shedder is not None:
            self.shedder.restore_buffer_limit()

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many key codes."""
        self.join.reserve_codes(size)
        if self.alone is not None:
            self.alone.matcher.reserve_codes(size)
        if self.sample is not None:
            self.sample.reserve_codes(size)

    def _rename_codes(self, renamed: I32) -> None:
        self.join.rename_codes(renamed)
        if self.alone is not None:
            self.alone.matcher.rename_codes(renamed)
        if self.sample is not None:
            self.sample.rename_codes(renamed)

    def _used_codes(self) -> list[I64]:
        sampled = [] if self.sample is None else [self.sample.join.log.keys]
        return [self.log.keys, *sampled]

    def attachments(self) -> list[bytes]:
        """The marks of all events and the events of the sample, if there are such."""
        return join_state.attachments(self)

    def forget_rows(self, reached: int) -> None:
        """Drop the rows that are not needed any more; the sample has copies of its own."""
        if self.sample is not None:
            self.sample.copy_rows()
        super().forget_rows(reached)

    def _oldest(self) -> int:
        alive = self.log.ts >= self.join.horizon  # what is stored is not older
        if self.alone is not None:
            alive |= self.alone.matcher.is_kept()
        return self.log.base + int(np.argmax(alive)) if alive.any() else self.log.end

    def measured(self, busy: float, begin: int) -> None:
        """Record that the input since time `begin` kept the machine busy for `busy` seconds.

        Only load shedding without a budget uses it; it acts from the next batch on.
        """
        shedder = self.shedder
        if shedder is None or not shedder.uses_measured_load:
            return
        top = self.reorder.top
        if top != BEFORE and shedder.add_busy_time(busy, top if begin == BEFORE else begin, top):
            self._adaptation.shed(self._reached)

    # ---- join

    def _join(
        self,
        out: Released,
        piece: int | None,
        first: int,
        behind: I64 = _NOTHING,
        clocks: I64 = _NOTHING,
    ) -> Iterator[Output]:
        """Join what left the reordering stage; see `WindowJoin.process`."""
        if len(out.event) == 0 and len(behind) == 0:
            return
        joining = self.join.process(out, first, behind, clocks)
        while True:
            try:
                found = next(joining)
            except StopIteration as end:
                made, late, sampled = end.value
                break
            for part in parts_of(found, self.rows, piece):
                write_in_turn(self, part, out.during)
                if piece is not None and self._output.nbytes >= piece:
                    yield self._give_out()
        note_step(self, out, made, late, sampled)
        self._output.step(self.log, out, made, late)

    def metrics(self) -> Metrics:
        """Counters since the start, with what was estimated."""
        clock = self.reorder.sync_time if self.query.is_clocked else self.join.time
        complete = None if clock == BEFORE else clock - 1  # at the clock itself more may come
        counted = replace(super().metrics(), complete_through=complete)
        if self.alone is not None:
            counted = with_matches(counted, self.alone.matcher)
        return counted if self.sample is None else self.sample.with_estimate(counted)

    def shedding_metrics(self) -> SheddingMetrics | None:
        """Figures of load shedding, if there is a shedder."""
        shedder = self.shedder
        return None if shedder is None else metrics_of(shedder, self.counters, self.reorder.top)

    def add_chart_facts(self, part: ChartPart, results: pa.Table | None) -> ChartPart:  # noqa: ARG002
        """`part` with the recent recall, the curve and the harvest."""
        return with_join_facts(self, part)

    def _give_rest(self, piece: int | None) -> Iterator[Output]:
        """Give out the rows without partner behind the pairs of a step."""
        for _ in () if self.alone is None else write_rest(self, self.alone, piece):
            if piece is not None and self._output.nbytes >= piece:
                yield self._give_out()
