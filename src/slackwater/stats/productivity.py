"""How productive events are, by their delay: the maps of ICDE16's Tuple-Productivity Profiler.

For each coarse delay d of the events that were joined since the last boundary: the combinations
they met (M-cross) and the results they made (M-join). A late event is not joined; the paper assumes
the largest numbers of any event in order for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels import cross as kernels
from slackwater.kernels.records import I64
from slackwater.query import Query
from slackwater.stats.delays import BUCKETS

_LONG = 2**62  # a window that holds everything


class Productivity:
    """The two maps of the interval that goes on, and of the last one that had results."""

    def __init__(self, query: Query) -> None:
        m = len(query.streams)
        self._window = np.array([_LONG if n is None else n for n in query.lengths])
        self._row = np.zeros((m, 1024), np.int64)
        self._bounds = np.zeros((m, 2), np.int64)
        self._begin()

    def _begin(self) -> None:
        self.crossed = np.zeros(BUCKETS)  # M-cross by delay
        self.joined = np.zeros(BUCKETS)  # M-join
        self._late = np.zeros(BUCKETS)  # late events, not yet in either
        self._most = np.zeros(2)  # the largest numbers of an event in order

    def join(self, stream: I64, ts: I64, bucket: I64, made: I64, late: I64) -> None:
        """Take in what went through the join.

        `bucket` has the delays of the events, `made` their results, `late` whether they were late.
        """
        self._make_room(len(stream))
        sizes = np.empty(len(stream), np.int64)
        kernels.cross_sizes(stream, ts, late, self._window, self._row, self._bounds, sizes)
        self.crossed += np.bincount(bucket, weights=sizes, minlength=BUCKETS)
        self.joined += np.bincount(bucket, weights=made, minlength=BUCKETS)
        self._late += np.bincount(bucket[late > 0], minlength=BUCKETS)
        if len(stream):
            self._most = np.maximum(self._most, [sizes.max(), made.max()])

    def close(self) -> tuple[Any, Any]:
        """The interval is over: its two maps, with the estimates for late events."""
        crossed = self.crossed + self._late * self._most[0]
        joined = self.joined + self._late * self._most[1]
        self._begin()
        return crossed, joined

    def _make_room(self, n: int) -> None:
        begin, end = self._bounds[:, kernels.BEGIN], self._bounds[:, kernels.END]
        if int(end.max()) + n <= self._row.shape[1]:
            return
        held = int((end - begin).max())
        row = np.zeros((len(self._row), 2 * (held + n)), np.int64)
        for s, (first, last) in enumerate(self._bounds.tolist()):
            row[s, : last - first] = self._row[s, first:last]
        self._row = row
        self._bounds = np.stack([np.zeros_like(begin), end - begin], axis=1)

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        rows = [
            self._row[s, begin:end].tolist() for s, (begin, end) in enumerate(self._bounds.tolist())
        ]
        maps = [self.crossed.tolist(), self.joined.tolist(), self._late.tolist()]
        return {"rows": rows, "maps": maps, "most": self._most.tolist()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._bounds[:] = 0
        for s, times in enumerate(state["rows"]):
            self._make_room(len(times))
            self._row[s, : len(times)] = times
            self._bounds[s, kernels.END] = len(times)
        self.crossed, self.joined, self._late = map(np.array, state["maps"])
        self._most = np.array(state["most"])
