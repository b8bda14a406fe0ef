"""Produced and lost results by result time, in bins of the adaptation interval.

Both are counted on the axis of result time, so that a join that is silent because K has just grown
does not look like one that loses everything. A lost result is counted at the time of the late event
it was lost with: its own time is later by less than a window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.records import F64, I64


class Results:
    """Bins of width `every` for the last `keep` of them."""

    def __init__(self, every: int, keep: int) -> None:
        self.every = every
        self._keep = keep
        self.first = 0  # number of the first bin
        self.counts = np.zeros((3, 0))  # produced, lost, predicted loss as a share

    def add(self, made_ts: I64, made: I64, lost_ts: I64, lost: I64) -> None:
        """Results that were produced, and results that were lost."""
        for row, ts, n in ((0, made_ts, made), (1, lost_ts, lost)):
            if len(ts) == 0:
                continue
            bins = ts // self.every
            self._reach(int(bins.min()), int(bins.max()))
            inside = bins >= self.first
            weights = np.bincount(bins[inside] - self.first, weights=n[inside])
            self.counts[row, : len(weights)] += weights

    def predict(self, begin: int, end: int, loss: float) -> None:
        """From `begin` to `end` a share `loss` of the results should be lost."""
        low, high = begin // self.every, end // self.every
        self._reach(max(low, high - self._keep), high)
        self.counts[2, max(0, low - self.first) : high - self.first + 1] = loss

    def between(self, begin: int, end: int) -> F64:
        """(produced, lost, predicted loss) of the bins within [begin, end)."""
        low = max(0, -(-begin // self.every) - self.first)
        high = max(low, end // self.every - self.first)
        return self.counts[:, low:high]

    def _reach(self, low: int, high: int) -> None:
        """Have the bins up to `high`, and from `low` if that is not too long ago."""
        n = self.counts.shape[1]
        if n == 0:
            self.first = low
        more_before = min(max(0, self.first - low), max(0, self._keep - n))
        more_behind = max(0, high + 1 - self.first - n)
        if more_before or more_behind:
            self.counts = np.pad(self.counts, ((0, 0), (more_before, more_behind)))
            self.first -= more_before
        if self.counts.shape[1] > 2 * self._keep:
            gone = self.counts.shape[1] - self._keep
            self.counts = self.counts[:, gone:].copy()
            self.first += gone

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"first": self.first, "counts": self.counts.tolist()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.first = state["first"]
        self.counts = np.array(state["counts"]).reshape(3, -1)
