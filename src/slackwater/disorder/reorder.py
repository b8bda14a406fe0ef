"""The papers' way of reordering: a K-slack buffer per stream, then the Synchronizer.

K = 1, one stream (ICDE16 Fig. 3): event 1 leaves when local time reaches 4, the late 3 leaves
before 4 when local time reaches 5.

>>> reorder = Reorder(n_streams=1, slack=1)
>>> [reorder.arrive(0, ts) for ts in (1, 4, 3, 5)]
[[], [0], [], [2, 1]]
>>> reorder.in_slack(0)
[5]
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from slackwater.disorder.stage import ReorderStage, ReorderState, Step, span
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import reorder as kernels
from slackwater.kernels.records import BEFORE, I64, LINK, NONE, Released

Overdue = Literal["advance", "now"]

_NONE = np.empty(0, np.int64)


class Reorder(ReorderStage):
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
    slide
        The slide unit: the Synchronizer waits until windows can move on by that (Thesis 4.1).
    open_end
        Whether such windows do not contain their end.
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
        slide: int = 1,
        open_end: bool = False,
        log: Log | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(n_streams, 2 * n_streams, slack, follow, idle_after, log, limits)
        ctl = self.buffers.ctl
        ctl[kernels.HOLD_TIES] = hold_ties
        ctl[kernels.OVERDUE_NOW] = overdue == "now"
        ctl[kernels.PASS] = not synchronize
        ctl[kernels.COMMON_CLOCK] = common_clock
        ctl[kernels.SLIDE] = slide
        ctl[kernels.OPEN_END] = open_end

    # ---- state

    def buffered_of(self, stream: int) -> int:
        """How many events of `stream` wait here."""
        rings = self.rings.size(stream) + self.rings.size(self.n_streams + stream)
        return rings + len(self._overdue(stream))

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

    def state(self) -> ReorderState:
        """All it would need to go on elsewhere, given the same events in another log."""
        return ReorderState(
            self._scalars(),
            self.buffers.local.tolist(),
            self.buffers.newest.tolist(),
            self.buffers.moved.tolist(),
            np.concatenate([self.rings.contents(s) for s in self._streams]),
            np.concatenate([self._overdue(s) for s in self._streams]),
            np.concatenate([self.rings.contents(self.n_streams + s) for s in self._streams]),
        )

    def resume(self, state: ReorderState) -> None:
        """Go on from `state`; its events are in the log."""
        self._resume_scalars(state)
        events = np.concatenate([state.in_slack, state.overdue, state.in_sync])
        times = self._times(events)
        self._make_room(span(times))
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

    def run(self, at: int, end: int) -> Step:
        """Take in the arrivals ``at <= number < end`` of the log, up to the boundary."""
        ctl = self.buffers.ctl
        out = self._begin_run(self.buffered + end - at)
        changes = self._new_changes(end - at)
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
        boundary = reason == kernels.AT_BOUNDARY
        changes = changes[: ctl[kernels.N_CHANGES]]
        return Step(int(at), boundary, self._left(out), changes, _NONE, _NONE)

    def flush(self) -> Released:
        """End of input: everything leaves, in this order; valid until the next run."""
        self._make_room(span(self._times(self.waiting())))
        out = self._begin_run(self.buffered)
        self.buffers.ctl[kernels.NOW] = self.log.end - 1
        kernels.flush(self.buffers, self.rings.arrays, self.log.records(), out)
        return self._left(out)

    # ---- buckets

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
        return span([*self._times(self.waiting()), ts, *known])

    def _make_room(self, length: int) -> None:
        """Have buckets for `length` units, K and all that waits: more of them, or wider ones."""
        length = max(length, self.slack)
        if not self.rings.fits(length):
            self.rings.make_room(max(length, span(self._times(self.waiting()))))
            self.buffers.ctl[kernels.SHIFT] = self.rings.shift
