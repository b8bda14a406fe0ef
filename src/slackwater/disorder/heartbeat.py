"""The slack buffer of one stream, emptied by a heartbeat (Kim).

The heartbeat is the largest time so far, minus a distance of 1: the late 3 is still in time, and is
sorted; the 2 is not, and leaves at once, to be dropped by the next stage, which gets the heartbeat
before it.

>>> stage = HeartbeatStage(distance=1)
>>> [stage.arrive(ts) for ts in (1, 4, 3, 5, 2)]
[[], [1], [3], [4], [2]]
>>> stage.heartbeat, stage.dropped
(4, 1)
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from slackwater.disorder.rings import BucketRings
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import heartbeat as kernels
from slackwater.kernels import histogram
from slackwater.kernels.records import BEFORE, I64, NEVER, NONE, Released
from slackwater.query.window_goals import Heartbeat

Follow = Literal["nothing", "largest", "twice"]

_FOLLOW = {
    "nothing": kernels.FOLLOW_NOTHING,
    "largest": kernels.FOLLOW_LARGEST,
    "twice": kernels.FOLLOW_TWICE,
    "mean": kernels.FOLLOW_LARGEST,
    "max-delay": kernels.FOLLOW_LARGEST,
    "adaptive": kernels.FOLLOW_TWO,
}
_LASTING = {
    "slack": kernels.DISTANCE,
    "heartbeat": kernels.HEARTBEAT,
    "top": kernels.TOP,
    "max_delay": kernels.MAX_DELAY,
    "count": kernels.COUNT,
    "boundary": kernels.BOUNDARY,
    "dropped": kernels.DROPPED,
    "origin": kernels.ORIGIN,
    "span_end": kernels.SPAN_END,
    "largest": kernels.LARGEST,
    "second": kernels.SECOND,
    "buffered": kernels.BUFFERED,
    "follow": kernels.FOLLOW,
    "offset": kernels.OFFSET,
    "limit": kernels.LIMIT,
    "far": kernels.FAR,
    "votes": kernels.VOTES,
}


def _limit_of(max_jump: int | Literal["usual"] | None) -> int:
    if max_jump is None:
        return kernels.ANY_JUMP
    return kernels.USUAL_JUMP if max_jump == "usual" else max_jump


class HeartbeatState(NamedTuple):
    """Scalars by name, the mean, what was learnt of distances, and the events that wait."""

    scalars: dict[str, int]
    mean: float
    behind: list[list[int]]
    in_slack: I64


class HeartbeatStage:
    """A slack buffer and its heartbeat.

    Parameters
    ----------
    distance
        How far the heartbeat is behind its base; it may change at any time by `set_slack`.
    heartbeat
        What the base is, and what the distance follows; see `DropRatio`.
    follow
        What the distance follows: ``"nothing"``, the ``"largest"`` one so far, or ``"twice"`` that.
    recent
        Over how many events the mean is taken.
    span
        Over how many events ``"adaptive"`` looks for its second delay.
    hold
        Nothing leaves before so many events have come.
    slide, open_end
        Where windows end: marks are wanted there.
    max_jump
        How far ahead of the largest time one may be without being rejected; ``"usual"``: as far as
        is usual for these times. None: any.
    log
        Where the arrivals are; a new one when the stage is used by itself.
    limits
        How many buckets there may be.
    """

    def __init__(
        self,
        distance: int = 0,
        heartbeat: Heartbeat = "largest",
        follow: Follow = "nothing",
        recent: int = 100,
        span: int = 1000,
        hold: int = 0,
        slide: int = 0,
        open_end: bool = False,
        max_jump: int | Literal["usual"] | None = None,
        log: Log | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.log = log or Log()
        self._recent = recent
        self._span = span
        self._rings = BucketRings(1, self.log, limits)
        self.ctl = np.zeros(kernels.CTL_LENGTH, np.int64)
        self.ctl[kernels.DISTANCE] = distance
        self.ctl[kernels.HEARTBEAT] = self.ctl[kernels.TOP] = BEFORE
        self.ctl[kernels.FROM_MEAN] = heartbeat == "mean"
        self.ctl[kernels.FOLLOW] = _FOLLOW[follow if heartbeat == "largest" else heartbeat]
        self.ctl[kernels.HOLD] = hold
        self.ctl[kernels.LIMIT] = NEVER
        self.ctl[kernels.SLIDE] = slide
        self.ctl[kernels.OPEN_END] = open_end
        self.ctl[kernels.BOUNDARY] = NEVER
        self.ctl[kernels.MAX_JUMP] = _limit_of(max_jump)
        self.ctl[kernels.BELIEVED] = NONE
        self._mean = np.zeros(1)
        self.behind = np.zeros(histogram.BUCKETS, np.int64)  # how far events were behind the base
        self._out = Released(*(np.empty(0, np.int64) for _ in Released._fields))
        self._changes = np.empty((1, 2), np.int64)
        self._rejected = np.empty(0, np.int64)

    # ---- state

    @property
    def slack(self) -> int:
        """The distance: K, if the base is the largest time."""
        return int(self.ctl[kernels.DISTANCE])

    @property
    def heartbeat(self) -> int:
        """Nothing before this time leaves any more."""
        return int(self.ctl[kernels.HEARTBEAT])

    @property
    def top(self) -> int:
        """The largest time so far."""
        return int(self.ctl[kernels.TOP])

    @property
    def max_delay(self) -> int:
        """The largest delay so far."""
        return int(self.ctl[kernels.MAX_DELAY])

    @property
    def count(self) -> int:
        """How many events have come."""
        return int(self.ctl[kernels.COUNT])

    @property
    def dropped(self) -> int:
        """How many of them were dropped."""
        return int(self.ctl[kernels.DROPPED])

    @property
    def largest(self) -> int:
        """The largest distance of an event from the base so far."""
        return int(self.ctl[kernels.LARGEST])

    @property
    def average_buffered(self) -> float:
        """How many events waited, on average over all arrivals."""
        return float(self.ctl[kernels.BUFFERED]) / max(1, self.count)

    def buffered_of(self, stream: int) -> int:
        """How many events wait here."""
        return self._rings.size(stream)

    def local(self, stream: int) -> int:  # noqa: ARG002
        """Local time: the largest time so far."""
        return self.top

    def waiting(self) -> I64:
        """Numbers of all events that wait here."""
        return self._rings.contents(0)

    def is_idle(self, stream: int) -> bool:  # noqa: ARG002
        """Never: no other stream waits."""
        return False

    is_finished = is_idle

    def is_awaited(self, stream: int) -> bool:  # noqa: ARG002
        """Always."""
        return True

    # ---- what it does

    def set_slack(self, slack: int, follow: Follow = "nothing", limit: int = NEVER) -> None:
        """Change the distance from here on; the heartbeat does not fall.

        When `limit` events were dropped, it follows as with ``"twice"``.
        """
        if slack != self.slack:
            n = self.ctl[kernels.N_CHANGES]
            self._changes[n] = self.top, slack
            self.ctl[kernels.N_CHANGES] = n + 1
        self.ctl[kernels.DISTANCE] = slack
        self.ctl[kernels.FOLLOW] = _FOLLOW[follow]
        self.ctl[kernels.LIMIT] = limit

    def set_offset(self, offset: int) -> None:
        """Add this to the largest distance, which is followed."""
        self.ctl[kernels.OFFSET] = offset

    def stop_at(self, count: int | None) -> None:
        """Let runs stop behind so many events."""
        self.ctl[kernels.BOUNDARY] = NEVER if count is None else count

    def finish(self, stream: int) -> None:
        """There is nothing to do: no other stream waits."""

    def start(self, n: int) -> None:
        """Have room for what leaves when `n` more arrivals come; forget what left before."""
        self.ctl[[kernels.N_OUT, kernels.N_CHANGES, kernels.N_REJECTED]] = 0
        # An arrival leaves at most once, between at most two marks; the distance may change with
        # it, and again when it ends a period.
        self._have_room(self._rings.size(0) + 3 * n)
        self._changes = np.empty((2 * n + 1, 2), np.int64)
        self._rejected = np.empty(n, np.int64)

    def run(self, at: int, end: int) -> tuple[int, bool]:
        """Take in the arrivals ``at <= number < end`` of the log, for which there is room.

        Returns the next arrival to take in, and whether that is because of the boundary.
        """
        ctl, records = self.ctl, self.log.records()
        reason = kernels.NO_ROOM
        while reason == kernels.NO_ROOM:
            ctl[kernels.SHIFT] = self._rings.shift
            at, reason = kernels.run(
                at, end, self._recent, self._span, ctl, self._mean, self.behind,
                self._rings.arrays, records, self._out, self._changes, self._rejected,
            )  # fmt: skip
            if reason == kernels.NO_ROOM:
                self._make_room_for(at)
        return int(at), reason == kernels.AT_BOUNDARY

    def flush(self) -> None:
        """End of input: everything leaves."""
        self.start(0)
        self.ctl[kernels.NOW] = self.log.end - 1
        kernels.flush(self.ctl, self._rings.arrays, self.log.records(), self._out)

    @property
    def out(self) -> Released:
        """What has left since the start, in order; valid until the next one."""
        n = self.ctl[kernels.N_OUT]
        return Released(*(column[:n] for column in self._out))

    @property
    def changes(self) -> I64:
        """Rows (largest time, new distance) since the start."""
        return self._changes[: self.ctl[kernels.N_CHANGES]]

    @property
    def rejected(self) -> I64:
        """Arrivals since the start that were too far ahead."""
        return self._rejected[: self.ctl[kernels.N_REJECTED]]

    def arrive(self, ts: int) -> list[int]:
        """Take in one event; return the times of those that leave. For use by itself."""
        key = np.array([0], np.int32)
        self.start(1)
        self.run(*self.log.append(np.array([ts]), np.array([0]), [key]))
        return self.out.ts[self.out.event != NONE].tolist()  # type: ignore[no-any-return]

    def _make_room_for(self, arrival: int) -> None:
        """Have buckets for all that waits and the next arrival."""
        waiting = self.log.ts[self.waiting() - self.log.base]
        times = np.append(waiting, self.log.ts[arrival - self.log.base])
        self._rings.make_room(int(times.max() - times.min()))

    def _have_room(self, n: int) -> None:
        if n > len(self._out.event):
            self._out = Released(*(np.empty(2 * n, np.int64) for _ in Released._fields))

    # ---- for a snapshot

    def state(self) -> HeartbeatState:
        """All it would need to go on elsewhere, given the same events in another log."""
        at = np.flatnonzero(self.behind)
        return HeartbeatState(
            {name: int(self.ctl[place]) for name, place in _LASTING.items()},
            float(self._mean[0]),
            [at.tolist(), self.behind[at].tolist()],
            self.waiting(),
        )

    def resume(self, state: HeartbeatState) -> None:
        """Go on from `state`; its events are in the log."""
        for name, value in state.scalars.items():
            self.ctl[_LASTING[name]] = value
        self._mean[0] = state.mean
        self.behind[np.array(state.behind[0], np.int64)] = state.behind[1]
        times = self.log.ts[state.in_slack - self.log.base]
        if len(times):
            self._rings.make_room(int(times.max() - times.min()))
        self._rings.insert(0, state.in_slack)

    def about(self) -> dict[str, Any]:
        """The state without its events, as plain data."""
        scalars, mean, behind, _ = self.state()
        return {"scalars": scalars, "mean": mean, "behind": behind}
