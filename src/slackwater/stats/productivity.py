"""How productive events are, by their delay: the maps of ICDE16's Tuple-Productivity Profiler.

For each coarse delay d of the events that were joined in the last interval: the combinations that
they met (M-cross) and the results that they made (M-join). A late event is not joined; the paper
takes for it the largest numbers of any event in order "in the last adaptation interval". Ours:
in the interval in which it is late; where that has no event in order, in the last one that had.

An interval in which no event in order met any other (the join is silent after K has grown) shows
nothing; the maps of the one before it stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels import cross as kernels
from slackwater.kernels.delay_scale import buckets_of
from slackwater.kernels.records import F64, I64
from slackwater.query.join import JoinQuery
from slackwater.query.windows import Tuples
from slackwater.stats.buckets import BUCKETS, dense, sparse, used

_UNBOUNDED = 2**61


class Productivity:
    """The two maps of the last interval that had any; and what late events would have made."""

    def __init__(self, query: JoinQuery, every: int, granularity: int) -> None:
        m = len(query.streams)
        self._every = every
        self._granularity = granularity
        self._window = np.array([_UNBOUNDED if n is None else n for n in query.lengths])
        self._tuples = np.array([
            s.window.count if isinstance(s.window, Tuples) else _UNBOUNDED for s in query.streams
        ])  # fmt: skip
        self._slide = query.slide_units
        self._grid_shift = self._slide - (query.bounds != "[)")
        self._row = np.zeros((m, 1024), np.int64)
        self._bounds = np.zeros((m, 2), np.int64)
        self.crossed = np.zeros(BUCKETS)  # M-cross by delay
        self.joined = np.zeros(BUCKETS)  # M-join
        self._most = np.zeros(2)  # largest numbers of an event in order, in the last such interval
        self._begin()

    def _begin(self) -> None:
        self._now = np.zeros((kernels.N_MAPS, BUCKETS))
        self._most_now = np.zeros(2)
        self._late: dict[int, int] = {}  # late events by the interval of their own time

    def join(self, stream: I64, ts: I64, delay: I64, made: I64, late: I64) -> None:
        """Take in what went through the join.

        `made` has the results of each event, `late` whether it was late.
        """
        self._make_room(len(stream))
        bucket = buckets_of(delay, self._granularity)
        kernels.profile(
            stream, ts, bucket, made, late, self._grid_shift, self._slide, self._window,
            self._tuples, self._row, self._bounds, self._now, self._most_now,
        )  # fmt: skip
        bins, counts = np.unique(ts[late > 0] // self._every, return_counts=True)
        for number, n in zip(bins.tolist(), counts.tolist(), strict=True):
            self._late[number] = self._late.get(number, 0) + n

    def close(self) -> dict[int, float]:
        """The interval is over; return what its late events should have made.

        That is by the number of the interval that their own times are in.
        """
        crossed, joined, late = self._now
        if self._most_now[kernels.CROSSED] > 0:
            self._most = self._most_now
            self.crossed = crossed + late * self._most[kernels.CROSSED]
            self.joined = joined + late * self._most[kernels.JOINED]
        most = float(self._most[kernels.JOINED])
        lost = {number: n * most for number, n in sorted(self._late.items())}
        self._begin()
        return lost

    def selectivity_ratio(self) -> F64:
        """Eq. (6) of ICDE16 for a K at the end of each bucket: selectivity under K by the true one.

        It is 1 where nothing is known.
        """
        ratio = np.ones(BUCKETS)
        n = max(used(self.crossed), used(self.joined))  # beyond there is nothing to correct
        crossed, joined = np.cumsum(self.crossed[:n]), np.cumsum(self.joined[:n])
        if n == 0 or joined[-1] == 0:
            return ratio
        known = np.flatnonzero(crossed > 0)
        ratio[known] = joined[known] / crossed[known] * (crossed[-1] / joined[-1])
        ratio[n - 1] = 1.0  # of all by all: not a bit less by rounding
        return ratio

    def _make_room(self, n: int) -> None:
        begin, end = self._bounds[:, kernels.BEGIN], self._bounds[:, kernels.END]
        if int(end.max()) + n <= self._row.shape[1]:
            return
        held = int((end - begin).max())
        room = max(2 * (held + n), self._row.shape[1])
        row = np.zeros((len(self._row), room), np.int64)
        for s, (first, last) in enumerate(self._bounds.tolist()):
            row[s, : last - first] = self._row[s, first:last]
        self._row = row
        self._bounds = np.stack([np.zeros_like(begin), end - begin], axis=1)

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All of it as plain data: buckets that are not empty, times with their numbers."""
        rows = [self._row[s, begin:end] for s, (begin, end) in enumerate(self._bounds.tolist())]
        maps = [*self._now, self.crossed, self.joined]
        return {
            "rows": [[a.tolist() for a in np.unique(row, return_counts=True)] for row in rows],
            "maps": [sparse(counts) for counts in maps],
            "most": [self._most.tolist(), self._most_now.tolist()],
            "late": sorted(self._late.items()),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._bounds[:] = 0
        for s, (times, counts) in enumerate(state["rows"]):
            n = sum(counts)
            self._make_room(n)
            self._row[s, :n] = np.repeat(np.array(times, np.int64), counts)
            self._bounds[s, kernels.END] = n
        *now, self.crossed, self.joined = (dense(m, np.zeros(BUCKETS)) for m in state["maps"])
        self._now = np.stack(now)
        self._most, self._most_now = map(np.array, state["most"])
        self._late = dict(state["late"])
