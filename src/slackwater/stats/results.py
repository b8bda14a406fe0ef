"""Produced and lost results by result time, in bins of the adaptation interval.

Both are counted on the axis of result time, so that a join that is silent because K has just grown
does not look like one that loses everything. A lost result is counted at the time of the late event
it was lost with: its own time is later by less than a window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        """So many results have these times, which ascend."""
        if len(n) == 0:
            return 0
        high = int(ts[-1]) // self.every
        low = max(int(ts[0]) // self.every, high - self._keep)
        self._reach(low, high)
        cuts = [bisect_left(ts, self.every * number) for number in range(low, high + 2)]
        sums = [int(n[a:b].sum()) for a, b in pairwise(cuts)]
        self._add(PRODUCED, low, sums)
        return sum(sums) + int(n[: cuts[0]].sum())

    def lose(self, ts: I64, n: I64) -> int:
        """So many results were lost with events of these times."""
        if len(n) == 0:
            return 0
        numbers = ts // self.every
        high = int(numbers.max())
        low = max(int(numbers.min()), high - self._keep)
        self._reach(low, high)
        known = numbers >= low
        self._add(LOST, low, np.bincount(numbers[known] - low, weights=n[known]))
        return int(n.sum())

    def _add(self, row: int, low: int, sums: Sequence[int] | NDArray[Any]) -> None:
        """Add `sums` to the bins from `low` on, where there are any."""
        missing = max(0, self._first - low)
        at = low + missing - self._first
        self._bins[row, at : at + max(0, len(sums) - missing)] += sums[missing:]

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
