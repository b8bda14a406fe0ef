"""Produced and lost results by result time, in bins of the adaptation interval.

Both are counted on the axis of result time, so that a join that is silent because K has just grown
does not look like one that loses everything. A lost result is counted at the time of the late event
it was lost with: its own time is later by less than a window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels import accounting as kernels
from slackwater.kernels.records import F64, I64

PRODUCED, LOST, PREDICTED = range(3)


class Results:
    """Bins of width `every`: the last `keep` of them."""

    def __init__(self, every: int, keep: int) -> None:
        self.every = every
        self._keep = keep
        self._first = 0  # number of the first bin; some may be older than is promised
        self._n = 0  # how many there are
        self._bins = np.zeros((3, 2 * keep))  # produced, lost, predicted loss as a share

    @property
    def first(self) -> int:
        """The first bin that is known; bin n begins at ``n * every``."""
        return self._first + max(0, self._n - self._keep)

    def produce(self, ts: I64, n: I64) -> int:
        """So many results have these times, which ascend; return how many there are."""
        return self._add(PRODUCED, ts, n, int(ts[0]), int(ts[-1])) if len(n) else 0

    def lose(self, ts: I64, n: I64) -> int:
        """So many results were lost with events of these times; return how many."""
        return self._add(LOST, ts, n, int(ts.min()), int(ts.max())) if len(n) else 0

    def _add(self, row: int, ts: I64, n: I64, earliest: int, latest: int) -> int:
        high = latest // self.every
        low = max(earliest // self.every, high - self._keep)
        self._reach(low, high)
        start = max(low, self._first)
        return int(kernels.add_by_bin(ts, n, self.every, start, self._first, self._bins[row]))

    def predict(self, begin: int, end: int, loss: float) -> None:
        """From `begin` to `end` a share `loss` of the results should be lost."""
        low, high = begin // self.every, end // self.every
        self._reach(max(low, high - self._keep), high)
        self._bins[PREDICTED, max(0, low - self._first) : high - self._first + 1] = loss

    def between(self, begin: int, end: int) -> F64:
        """(produced, lost, predicted loss) of the bins within [begin, end)."""
        low = max(-(-begin // self.every), self.first) - self._first
        high = min(self._n, max(low, end // self.every - self._first))
        return self._bins[:, low:high]

    def _reach(self, low: int, high: int) -> None:
        """Have the bins up to `high`, and from `low` if that is not too long ago."""
        if self._n == 0:
            self._first = low
        before = min(max(0, self._first - low), max(0, self._keep - self._n))
        if before:
            self._bins[:, before:] = self._bins[:, : self._bins.shape[1] - before].copy()
            self._bins[:, :before] = 0
            self._first -= before
            self._n += before
        self._n = max(self._n, high + 1 - self._first)
        gone = self._n - self._keep
        if self._n > self._bins.shape[1]:
            kept = self._bins[:, gone:].copy()
            self._bins[:] = 0
            self._bins[:, : kept.shape[1]] = kept[:, : self._keep]
            self._first += gone
            self._n = self._keep

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        kept = self._bins[:, max(0, self._n - self._keep) : self._n]
        return {"first": self.first, "bins": kept.tolist()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        bins = np.array(state["bins"]).reshape(3, -1)
        self._first, self._n = state["first"], bins.shape[1]
        self._bins[:] = 0
        self._bins[:, : self._n] = bins
