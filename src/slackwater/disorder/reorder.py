"""All K-slack buffers and the Synchronizer of one shard.

K = 1, one stream (ICDE16 Fig. 3): event 1 leaves when local time reaches 4, the late 3 leaves
before 4 when local time reaches 5.

>>> reorder = Reorder(n_streams=1, slack=1)
>>> [reorder.arrive(0, ts) for ts in (1, 4, 3, 5)]
[[], [0], [], [2, 1]]
>>> reorder.in_slack(0)
[5]
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from slackwater.disorder.rings import BucketRings
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import reorder as kernels
from slackwater.kernels.records import BEFORE, I64, LINK, NEVER, NONE, TICK, Buffers, Released

Overdue = Literal["advance", "now"]


class Step(NamedTuple):
    """What one run over arrivals gave; its arrays are valid until the next run."""

    reached: int  # the next arrival to take in
    at_boundary: bool
    out: Released  # what left, in order
    changes: I64  # rows (largest local time, new K), where K followed a delay


def _first(n: int, out: Released) -> Released:
    return Released(*(column[:n] for column in out))


def _empty_buffers(n_streams: int) -> Buffers:
    ctl = np.zeros(kernels.CTL_LENGTH, np.int64)
    ctl[kernels.SYNC_TIME] = ctl[kernels.TOP] = BEFORE
    ctl[kernels.BOUNDARY] = NEVER
    return Buffers(
        ctl,
        local=np.full(n_streams, BEFORE),
        newest=np.full(n_streams, BEFORE),
        moved=np.zeros(n_streams, np.int64),
        overdue=np.full(n_streams, NONE),
        overdue_last=np.full(n_streams, NONE),
    )


def _span(times: list[int]) -> int:
    """Time from the earliest to the latest."""
    return max(times) - min(times) if times else 0


class ReorderState(NamedTuple):
    """Scalars by name, what is known of each stream, and where the waiting events are."""

    scalars: dict[str, int]
    local: list[int]
    newest: list[int]
    moved: list[int]
    in_slack: I64
    overdue: I64
    in_sync: I64


_LASTING = {
    "slack": kernels.SLACK,
    "sync_time": kernels.SYNC_TIME,
    "top": kernels.TOP,
    "max_delay": kernels.MAX_DELAY,
    "boundary": kernels.BOUNDARY,
}


class Reorder:
    """K-slack per stream with one K for all, then the Synchronizer.

    Parameters
    ----------
    n_streams
        How many streams there are.
    slack
        K. A larger K sorts more and delays more. It may change at any time by `set_slack`.
    overdue
        When an event leaves that K does not cover: with the next advance of local time
        (ICDE16), or at once (Thesis Fig. 3.2).
    follow
        Whether K follows the largest delay so far (Max-K-slack).
    hold_ties
        Whether events of equal time leave only when the time is complete; tuple-count windows
        need the total order (ts, stream, arrival).
    common_clock
        Whether this is one of several shards that get the local times of all streams: ticks move
        them on, and the Synchronizer goes by them instead of waiting for events of its own.
    idle_after
        A stream whose local time stands still while the largest one moves on by this is idle: the
        Synchronizer does not wait for it, and what K-slack holds of it leaves. None: never.
    synchronize
        False: neither K-slack nor Synchronizer (Baseline3 of the Thesis); events leave as they
        come.
    log
        Where the arrivals are; a new one when the stage is used by itself.
    limits
        How many buckets there may be.
    """

    def __init__(
        self,
        n_streams: int,
        slack: int = 0,
        overdue: Overdue = "advance",
        follow: bool = False,
        hold_ties: bool = False,
        common_clock: bool = False,
        idle_after: int | None = None,
        synchronize: bool = True,
        log: Log | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.n_streams = n_streams
        self.log = log or Log()
        self.buffers = _empty_buffers(n_streams)
        ctl = self.buffers.ctl
        ctl[kernels.HOLD_TIES] = hold_ties
        ctl[kernels.OVERDUE_NOW] = overdue == "now"
        ctl[kernels.FOLLOW] = follow
        ctl[kernels.PASS] = not synchronize
        ctl[kernels.COMMON_CLOCK] = common_clock
        ctl[kernels.IDLE_AFTER] = kernels.AT_NO_TIME if idle_after is None else idle_after
        self.rings = BucketRings(2 * n_streams, self.log, limits)
        self._out = Released(*(np.empty(0, np.int64) for _ in Released._fields))
        self.set_slack(slack)

    # ---- state

    @property
    def slack(self) -> int:
        """K."""
        return int(self.buffers.ctl[kernels.SLACK])

    @property
    def sync_time(self) -> int:
        """Everything up to this time has left the Synchronizer (T_sync of Alg. 1)."""
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
    def buffered(self) -> int:
        """How many events wait here."""
        return sum(map(self.buffered_of, self._streams))

    def buffered_of(self, stream: int) -> int:
        """How many events of `stream` wait here."""
        rings = self.rings.size(stream) + self.rings.size(self.n_streams + stream)
        return rings + len(self._overdue(stream))

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

    def in_slack(self, stream: int) -> list[int]:
        """Times in the K-slack buffer of `stream`, ascending."""
        return sorted(self._times(self._overdue(stream)) + self._times(self.rings.contents(stream)))

    def in_sync(self, stream: int) -> list[int]:
        """Times in the Synchronizer's buffer of `stream`, ascending."""
        return self._times(self.rings.contents(self.n_streams + stream))

    def waiting(self) -> I64:
        """Numbers of all events that wait here."""
        rings = [self.rings.contents(ring) for ring in range(2 * self.n_streams)]
        overdue = [self._overdue(stream) for stream in self._streams]
        return np.concatenate(rings + overdue)

    def _times(self, events: I64) -> list[int]:
        return [int(t) for t in self.log.ts[events - self.log.base]]

    def state(self) -> ReorderState:
        """All it would need to go on elsewhere, given the same events in another log."""
        ctl = self.buffers.ctl
        return ReorderState(
            {name: int(ctl[place]) for name, place in _LASTING.items()},
            self.buffers.local.tolist(),
            self.buffers.newest.tolist(),
            self.buffers.moved.tolist(),
            np.concatenate([self.rings.contents(s) for s in self._streams]),
            np.concatenate([self._overdue(s) for s in self._streams]),
            np.concatenate([self.rings.contents(self.n_streams + s) for s in self._streams]),
        )

    def resume(self, state: ReorderState) -> None:
        """Go on from `state`; its events are in the log."""
        for name, value in state.scalars.items():
            self.buffers.ctl[_LASTING[name]] = value
        self.buffers.local[:] = state.local
        self.buffers.newest[:] = state.newest
        self.buffers.moved[:] = state.moved
        events = np.concatenate([state.in_slack, state.overdue, state.in_sync])
        times = self._times(events)
        self._make_room(_span(times))
        records = self.log.records()
        for s in self._streams:
            own = state.in_slack[self.log.stream[state.in_slack - self.log.base] == s]
            self.rings.insert(s, own)
            own = state.in_sync[self.log.stream[state.in_sync - self.log.base] == s]
            self.rings.insert(self.n_streams + s, own)
        for event in state.overdue:
            stream = self.log.stream[event - self.log.base]
            kernels.set_overdue(event, stream, self.buffers, records)

    # ---- what it does

    def set_slack(self, slack: int) -> None:
        """Change K from here on. What has left cannot be called back; the rest obeys the new K."""
        grows = slack > self.slack
        self.buffers.ctl[kernels.SLACK] = slack
        self._make_room(slack)
        if grows:
            for stream in self._streams:
                kernels.recall_overdue(stream, self.buffers, self.rings.arrays, self.log.records())

    def finish(self, stream: int) -> None:
        """No more is to be expected of `stream`: it is idle from the next advance of another on."""
        self.buffers.moved[stream] = kernels.FINISHED

    def stop_at(self, boundary: int | None) -> None:
        """Let runs stop behind the arrival that takes the largest local time to `boundary`."""
        self.buffers.ctl[kernels.BOUNDARY] = NEVER if boundary is None else boundary

    def run(self, at: int, end: int) -> Step:
        """Take in the arrivals ``at <= number < end`` of the log, up to the boundary."""
        ctl = self.buffers.ctl
        out = self._room_for(self.buffered + end - at)
        changes = np.empty((end - at if ctl[kernels.FOLLOW] else 0, 2), np.int64)
        ctl[kernels.N_OUT] = ctl[kernels.N_CHANGES] = 0
        records = self.log.records()
        if ctl[kernels.PASS] and self.buffered:  # of a goal before this one
            ctl[kernels.NOW] = at
            kernels.flush(self.buffers, self.rings.arrays, records, out)
        reason = kernels.NO_ROOM
        while reason == kernels.NO_ROOM:
            at, reason = kernels.run(
                at, end, self.buffers, self.rings.arrays, records, out, changes
            )
            if reason == kernels.NO_ROOM:
                self._make_room(self._span_with(at))
        n, k = ctl[kernels.N_OUT], ctl[kernels.N_CHANGES]
        boundary = reason == kernels.AT_BOUNDARY
        return Step(int(at), boundary, _first(n, out), changes[:k])

    def flush(self) -> Released:
        """End of input: everything leaves, in this order; valid until the next run."""
        self._make_room(_span(self._times(self.waiting())))
        self.buffers.ctl[kernels.N_OUT] = 0
        self.buffers.ctl[kernels.NOW] = self.log.end - 1
        out = self._room_for(self.buffered)
        kernels.flush(self.buffers, self.rings.arrays, self.log.records(), out)
        return _first(self.buffers.ctl[kernels.N_OUT], out)

    def arrive(self, stream: int, ts: int, tick: bool = False) -> list[int]:
        """Take in one event or tick; return the numbers of those that leave. For use by itself."""
        key = np.array([TICK if tick else 0], np.int32)
        first, end = self.log.append(np.array([ts]), np.array([stream]), [key])
        return [int(event) for event in self.run(first, end).out.event]

    # ---- buckets

    @property
    def _streams(self) -> range:
        return range(self.n_streams)

    def _room_for(self, n: int) -> Released:
        if n > len(self._out.event):
            self._out = Released(*(np.empty(2 * n, np.int64) for _ in Released._fields))
        return self._out

    def _overdue(self, stream: int) -> I64:
        events, event = [], int(self.buffers.overdue[stream])
        link = self.log.records().event[:, LINK]
        while event != NONE:
            events.append(event)
            event = int(link[event - self.log.base])
        return np.array(events, np.int64)

    def _span_with(self, arrival: int) -> int:
        """Time spanned by what waits, the next arrival, and the local time of its stream."""
        ts = int(self.log.ts[arrival - self.log.base])
        local = self.local(int(self.log.stream[arrival - self.log.base]))
        known = [local] if local > BEFORE else []
        return _span([*self._times(self.waiting()), ts, *known])

    def _make_room(self, span: int) -> None:
        """Have buckets for `span` time units, K and all that waits: more of them, or wider ones."""
        span = max(span, self.slack)
        if not self.rings.fits(span):
            self.rings.make_room(max(span, _span(self._times(self.waiting()))))
            self.buffers.ctl[kernels.SHIFT] = self.rings.shift
