"""One reorder buffer for all streams, on their common clock.

K = 1, two streams: event 0 (time 1) leaves when both streams have reached 2, the late 3 leaves
before 4, and 2 comes too late: the clock is at 3 by then.

>>> stage = ClockedReorder(n_streams=2, slack=1)
>>> [stage.arrive(s, ts) for s, ts in [(0, 1), (0, 4), (1, 2), (0, 3), (1, 4), (0, 2)]]
[[], [], [0], [], [2, 3], [5]]
>>> stage.sync_time
3
"""

from __future__ import annotations

import numpy as np

from slackwater.disorder.stage import ReorderStage, ReorderState, Step, span
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import clocked as kernels
from slackwater.kernels import reorder as fields
from slackwater.kernels.records import I64, Released

_NONE = np.empty(0, np.int64)


class ClockedReorder(ReorderStage):
    """A buffer in which events wait until the common clock is K past them.

    The common clock is the smallest local time of the streams that are not idle. `sync_time` is
    S, the largest common clock - K so far. An arrival behind S is late and leaves at once; the
    others leave in (ts, number) order when S reaches them. Parameters as in `ReorderStage`.
    """

    def __init__(
        self,
        n_streams: int,
        slack: int = 0,
        follow: bool = False,
        idle_after: int | None = None,
        log: Log | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(n_streams, 1, slack, follow, idle_after, log, limits)
        self._behind = self._clocks = _NONE
        self.gives_clocks = True  # whether steps have them; they take time

    def waiting(self) -> I64:
        """Numbers of all events that wait here, in the order in which they would leave."""
        return self.rings.contents(kernels.RING)

    def buffered_of(self, stream: int) -> int:
        """How many events of `stream` wait here."""
        return int(self.buffers.waiting[stream])

    def set_slack(self, slack: int) -> None:
        """Change K from here on. What has left cannot be called back; the rest obeys the new K."""
        self.buffers.ctl[fields.SLACK] = slack

    def move_up(self, time: int) -> Released:
        """Move the join's clock up to `time`; what it passes leaves. Valid until the next run."""
        out = self._begin_run(self.buffered)
        self.buffers.ctl[fields.NOW] = self.log.end - 1
        kernels.move_up(time, self.buffers, self.rings.arrays, self.log.records(), out)
        return self._left(out)

    def state(self) -> ReorderState:
        """All it would need to go on elsewhere, given the same events in another log."""
        known = self.buffers
        return ReorderState(
            self._scalars(),
            known.local.tolist(),
            known.newest.tolist(),
            known.moved.tolist(),
            self.waiting(),
            _NONE,
            _NONE,
        )

    def resume(self, state: ReorderState) -> None:
        """Go on from `state`; its events are in the log."""
        self._resume_scalars(state)
        self._make_room(self._ts(state.in_slack))
        self.rings.insert(kernels.RING, state.in_slack)
        streams = self.log.stream[state.in_slack - self.log.base]
        self.buffers.waiting[:] = np.bincount(streams, minlength=self.n_streams)

    def run(self, at: int, end: int) -> Step:
        """Take in the arrivals ``at <= number < end`` of the log, up to the boundary."""
        first = at
        out = self._begin_run(self.buffered + end - at)
        changes = self._new_changes(end - at)
        behind = clocks = _NONE
        if self.gives_clocks and end - at > len(self._behind):
            self._behind, self._clocks = np.empty((2, 2 * (end - at)), np.int64)
        if self.gives_clocks:
            behind, clocks = self._behind, self._clocks
        records = self.log.records()
        reason = fields.NO_ROOM
        while reason == fields.NO_ROOM:
            at, reason = kernels.run(
                first, at, end, self.buffers, self.rings.arrays, records, out, changes,
                behind, clocks,
            )  # fmt: skip
            if reason == fields.NO_ROOM:
                next_one = int(self.log.ts[at - self.log.base])
                self._make_room(np.append(self._ts(self.waiting()), next_one))
        return Step(
            int(at),
            reason == fields.AT_BOUNDARY,
            self._left(out),
            changes[: self.buffers.ctl[fields.N_CHANGES]],
            behind[: at - first],
            clocks[: at - first],
        )

    def flush(self) -> Released:
        """End of input: everything leaves, in this order; valid until the next run."""
        out = self._begin_run(self.buffered)
        self.buffers.ctl[fields.NOW] = self.log.end - 1
        kernels.flush(self.buffers, self.rings.arrays, self.log.records(), out)
        return self._left(out)

    def _make_room(self, times: I64) -> None:
        """Have buckets for events of these times: more of them, or wider ones."""
        self.rings.make_room(span(times))
        self.buffers.ctl[fields.SHIFT] = self.rings.shift
