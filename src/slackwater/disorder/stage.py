"""What both ways of reordering have in common: local times, the largest one, idle streams, K.

`reorder` has the papers' way (K-slack per stream, then the Synchronizer), `clocked` ours (one
buffer on the common clock).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.disorder.rings import BucketRings
from slackwater.events.limits import Limits
from slackwater.events.log import Log
from slackwater.kernels import reorder as kernels
from slackwater.kernels.records import BEFORE, I64, NEVER, NONE, TICK, Buffers, Released


class Step(NamedTuple):
    """What one run over arrivals gave; its arrays are valid until the next run."""

    reached: int  # the next arrival to take in
    at_boundary: bool
    out: Released  # what left, in order
    changes: I64  # rows (largest local time, new K), where K followed a delay
    behind: I64  # how far each arrival is behind the common clock; only of the clocked way
    clocks: I64  # the join's clock before it; only of the clocked way


class ReorderState(NamedTuple):
    """Scalars by name, what is known of each stream, and where the waiting events are."""

    scalars: dict[str, int]
    local: list[int]
    newest: list[int]
    moved: list[int]
    in_slack: I64
    overdue: I64
    in_sync: I64

    def without_events(self) -> dict[str, Any]:
        """What is not events, as plain data."""
        return {
            "scalars": self.scalars,
            "local": self.local,
            "newest": self.newest,
            "moved": self.moved,
        }


_LASTING = {
    "slack": kernels.SLACK,
    "sync_time": kernels.SYNC_TIME,
    "top": kernels.TOP,
    "max_delay": kernels.MAX_DELAY,
    "boundary": kernels.BOUNDARY,
    "common_clock": kernels.COMMON,
    "most_behind": kernels.MOST_BEHIND,
}


def _empty_buffers(n_streams: int) -> Buffers:
    ctl = np.zeros(kernels.CTL_LENGTH, np.int64)
    ctl[kernels.SYNC_TIME] = ctl[kernels.TOP] = ctl[kernels.COMMON] = BEFORE
    ctl[kernels.BOUNDARY] = ctl[kernels.LIMIT] = NEVER
    return Buffers(
        ctl,
        local=np.full(n_streams, BEFORE),
        newest=np.full(n_streams, BEFORE),
        moved=np.zeros(n_streams, np.int64),
        overdue=np.full(n_streams, NONE),
        overdue_last=np.full(n_streams, NONE),
        waiting=np.zeros(n_streams, np.int64),
    )


def span(times: Sequence[int] | I64) -> int:
    """Time from the earliest to the latest."""
    return int(np.max(times)) - int(np.min(times)) if len(times) else 0


class ReorderStage(ABC):
    """Takes in arrivals and lets them out in order, `slack` behind.

    Parameters
    ----------
    n_streams
        How many streams there are.
    n_rings
        How many bucket rings.
    slack
        K. A larger K sorts more and delays more. It may change at any time by `set_slack`.
    follow
        Whether K follows the largest delay so far (Max-K-slack).
    idle_after
        A stream whose local time stands still while the largest one moves on by this is idle: the
        others do not wait for it. None: never.
    log
        Where the arrivals are; a new one when the stage is used by itself.
    limits
        How many buckets there may be.
    """

    def __init__(
        self,
        n_streams: int,
        n_rings: int,
        slack: int,
        follow: bool,
        idle_after: int | None,
        log: Log | None,
        limits: Limits,
    ) -> None:
        self.n_streams = n_streams
        self.log = log or Log()
        self.buffers = _empty_buffers(n_streams)
        ctl = self.buffers.ctl
        ctl[kernels.FOLLOW] = follow
        ctl[kernels.IDLE_AFTER] = kernels.AT_NO_TIME if idle_after is None else idle_after
        self.rings = BucketRings(n_rings, self.log, limits)
        self._out = Released(*(np.empty(0, np.int64) for _ in Released._fields))
        self.set_slack(slack)

    # ---- what a way of reordering does

    @abstractmethod
    def set_slack(self, slack: int) -> None:
        """Change K from here on. What has left cannot be called back; the rest obeys the new K."""

    @abstractmethod
    def run(self, at: int, end: int) -> Step:
        """Take in the arrivals ``at <= number < end`` of the log, up to the boundary."""

    @abstractmethod
    def flush(self) -> Released:
        """End of input: everything leaves, in this order; valid until the next run."""

    @abstractmethod
    def waiting(self) -> I64:
        """Numbers of all events that wait here."""

    @abstractmethod
    def buffered_of(self, stream: int) -> int:
        """How many events of `stream` wait here."""

    @abstractmethod
    def state(self) -> ReorderState:
        """All it would need to go on elsewhere, given the same events in another log."""

    @abstractmethod
    def resume(self, state: ReorderState) -> None:
        """Go on from `state`; its events are in the log."""

    # ---- what is known

    @property
    def slack(self) -> int:
        """K."""
        return int(self.buffers.ctl[kernels.SLACK])

    @property
    def sync_time(self) -> int:
        """Everything up to this time has left (T_sync of Alg. 1; S of the clocked way)."""
        return int(self.buffers.ctl[kernels.SYNC_TIME])

    @property
    def top(self) -> int:
        """The largest local time of all streams."""
        return int(self.buffers.ctl[kernels.TOP])

    @property
    def max_delay(self) -> int:
        """The largest delay so far."""
        return int(self.buffers.ctl[kernels.MAX_DELAY])

    @property
    def common_clock(self) -> int:
        """The smallest local time of the streams that are not idle; BEFORE until all have begun.

        Only of the clocked way.
        """
        return int(self.buffers.ctl[kernels.COMMON])

    @property
    def most_behind(self) -> int:
        """How far an arrival was behind the largest local time, so far; only of the clocked way."""
        return int(self.buffers.ctl[kernels.MOST_BEHIND])

    @property
    def buffered(self) -> int:
        """How many events wait here."""
        return sum(map(self.buffered_of, self._streams))

    def is_idle(self, stream: int) -> bool:
        """Whether the stream is not waited for: silent for too long, or finished."""
        return self.top > BEFORE and bool(kernels.is_idle(stream, self.buffers))

    def is_awaited(self, stream: int) -> bool:
        """Whether no other stream that is waited for is further behind."""
        others = [self.local(s) for s in self._streams if not self.is_idle(s)]
        return not others or self.local(stream) <= min(others)

    def is_finished(self, stream: int) -> bool:
        """Whether the stream was declared finished and has not moved on since."""
        return bool(self.buffers.moved[stream] == kernels.FINISHED)

    def local(self, stream: int) -> int:
        """Local time: the largest time this stream has delivered."""
        return int(self.buffers.local[stream])

    def finish(self, stream: int) -> None:
        """No more is to be expected of `stream`: it is idle from the next advance of another on."""
        self.buffers.moved[stream] = kernels.FINISHED

    def stop_at(self, boundary: int | None) -> None:
        """Let runs stop behind the arrival that takes the largest local time to `boundary`."""
        self.buffers.ctl[kernels.BOUNDARY] = NEVER if boundary is None else boundary

    def set_limit(self, time: int) -> None:
        """Let the join's clock go no further than `time` from here on; not of the papers' way."""
        self.buffers.ctl[kernels.LIMIT] = time

    def arrive(self, stream: int, ts: int, tick: bool = False) -> list[int]:
        """Take in one event or tick; return the numbers of those that leave. For use by itself."""
        key = np.array([TICK if tick else 0], np.int32)
        first, end = self.log.append(np.array([ts]), np.array([stream]), [key])
        return [int(event) for event in self.run(first, end).out.event]

    # ---- for both ways

    @property
    def _streams(self) -> range:
        return range(self.n_streams)

    def _times(self, events: I64) -> list[int]:
        times: list[int] = self._ts(events).tolist()
        return times

    def _ts(self, events: I64) -> I64:
        return self.log.ts[events - self.log.base]

    def _begin_run(self, most: int) -> Released:
        """Room for `most` events that leave."""
        ctl = self.buffers.ctl
        ctl[kernels.N_OUT] = ctl[kernels.N_CHANGES] = 0
        if most > len(self._out.event):
            self._out = Released(*(np.empty(2 * most, np.int64) for _ in Released._fields))
        return self._out

    def _left(self, out: Released) -> Released:
        """What has left."""
        n = self.buffers.ctl[kernels.N_OUT]
        return Released(*(column[:n] for column in out))

    def _new_changes(self, n: int) -> I64:
        """Room for the changes of K that `n` arrivals can cause."""
        return np.empty((n if self.buffers.ctl[kernels.FOLLOW] else 0, 2), np.int64)

    def _scalars(self) -> dict[str, int]:
        return {name: int(self.buffers.ctl[place]) for name, place in _LASTING.items()}

    def _resume_scalars(self, state: ReorderState) -> None:
        for name, value in state.scalars.items():
            self.buffers.ctl[_LASTING[name]] = value
        self.buffers.local[:] = state.local
        self.buffers.newest[:] = state.newest
        self.buffers.moved[:] = state.moved
