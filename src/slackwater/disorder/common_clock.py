"""The clocks of the clocked stage without its buffer: for joins whose events do not wait.

>>> stage = CommonClock(n_streams=2, slack=1)
>>> [stage.arrive(s, ts) for s, ts in [(0, 1), (0, 4), (1, 2), (0, 3), (1, 4)]]
[[], [], [], [], []]
>>> stage.common_clock, stage.sync_time
(4, 3)
"""

from __future__ import annotations

import numpy as np

from slackwater.disorder.stage import ReorderStage, ReorderState, Step
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import clock_series as kernels
from slackwater.kernels import reorder as fields
from slackwater.kernels.records import I64, ClockSeries, Released

_NONE = np.empty(0, np.int64)


class CommonClock(ReorderStage):
    """Knows what time it is; K is how far the join's clock is behind the common one.

    `series` has the clocks of the last run. Parameters as in `ReorderStage`.
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
        super().__init__(n_streams, 0, slack, follow, idle_after, log, limits)
        self._room = np.empty((3, 0), np.int64)
        self.series = ClockSeries(_NONE, _NONE, _NONE)

    def waiting(self) -> I64:
        """Nothing waits here."""
        return _NONE

    def buffered_of(self, stream: int) -> int:  # noqa: ARG002  as other stages
        """Nothing waits here."""
        return 0

    def set_slack(self, slack: int) -> None:
        """Change K from here on; the join's clock does not go back."""
        self.buffers.ctl[fields.SLACK] = slack

    def state(self) -> ReorderState:
        """All it would need to go on elsewhere."""
        known = self.buffers
        lists = (known.local.tolist(), known.newest.tolist(), known.moved.tolist())
        return ReorderState(self._scalars(), *lists, _NONE, _NONE, _NONE)

    def resume(self, state: ReorderState) -> None:
        """Go on from `state`."""
        self._resume_scalars(state)

    def run(self, at: int, end: int) -> Step:
        """Take in the arrivals ``at <= number < end`` of the log, up to the boundary."""
        if end - at > self._room.shape[1]:
            self._room = np.empty((3, 2 * (end - at)), np.int64)
        changes = self._new_changes(end - at)
        self.buffers.ctl[fields.N_CHANGES] = 0
        reached, reason = kernels.run(
            at, end, self.buffers, self.log.records(), changes, *self._room
        )
        self.series = ClockSeries(*self._room[:, : reached - at])
        return Step(
            int(reached),
            reason == fields.AT_BOUNDARY,
            self._begin_run(0),
            changes[: self.buffers.ctl[fields.N_CHANGES]],
            _NONE,
            self.series.before,
        )

    def move_up(self, time: int) -> None:
        """Move the join's clock up to `time`."""
        self.buffers.ctl[fields.SYNC_TIME] = max(self.sync_time, time)

    def flush(self) -> Released:
        """End of input: the join's clock goes to the largest local time."""
        self.move_up(self.top)
        return self._begin_run(0)
