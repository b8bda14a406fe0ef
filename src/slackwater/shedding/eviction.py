"""Which events leave the windows early when memory is short (GrubJoin VII).

The value of an event is the sum of the results that it will make at the ages still to come. So the
oldest basic window of a stream is never worth more than a younger one, and it is enough to choose
between the streams' oldest. Basic windows that are not searched any more are worth nothing: they
are evicted first.

>>> ages = [np.array([10.0, 10.0, 10.0]), np.array([10.0, 10.0, 10.0])]
>>> worth = [np.array([0.0, 9.0, 0.0]), np.array([1.0, 1.0, 1.0])]
>>> ages_kept(ages, worth, limit=60.0), ages_kept(ages, worth, limit=50.0)
([3, 3], [2, 3])
>>> ages_kept(ages, worth, limit=35.0)
[2, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.kernels.records import F64, Shed
from slackwater.shedding.segments import HarvestSegments


class Eviction:
    """Decides how many basic windows of each stream stay in memory.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    segments
        Which parts of the windows are searched.
    limit
        Most bytes of events in the windows.
    every
        Δ: time until the next decision.
    longest
        Length of the longest window.
    """

    def __init__(
        self, shed: Shed, segments: HarvestSegments, limit: int, every: int, longest: int
    ) -> None:
        self._shed = shed
        self._segments = segments
        self._limit = limit
        self._every = every
        self._longest = longest

    def ages_kept(self, size: list[F64], now: int) -> list[int]:
        """Return how many basic windows of each stream stay, given their bytes by age.

        What came in the last Δ is expected in the next one too, and has to fit.
        """
        shed, streams = self._shed, range(len(size))
        worth = [shed.joined[:, s].sum(axis=0) * self._segments.is_searched(s) for s in streams]
        if not any(w.any() for w in worth):
            # Nothing was found yet: partners may be older than what all windows can hold together.
            # One stream makes room for the others, each in its turn.
            first = now // self._longest
            worth = [np.full(len(w), float((s + first) % len(size))) for s, w in enumerate(worth)]
        expected = [sizes[: -(-self._every // int(shed.basic[s]))] for s, sizes in enumerate(size)]
        spare = min(sum(float(sizes.sum()) for sizes in expected), self._limit / 2)
        return ages_kept(size, worth, self._limit - spare)


def ages_kept(size: Sequence[F64], worth: Sequence[F64], limit: float) -> list[int]:
    """Return how many basic windows of each stream stay, the youngest ones.

    Parameters
    ----------
    size
        Bytes in each basic window of each stream, by age.
    worth
        Results that a basic window makes at this age; ages that are missing make none.
    limit
        Most bytes of all streams together. The youngest basic window of a stream always stays.
    """
    kept = [len(sizes) for sizes in size]
    to_come = [_to_come(w, len(sizes)) for w, sizes in zip(worth, size, strict=True)]
    total = sum(float(sizes.sum()) for sizes in size)
    while total > limit:
        oldest = [s for s in range(len(size)) if kept[s] > 1]
        if not oldest:
            break
        # equally worthless: take from the stream that has most
        s = min(oldest, key=lambda s: (to_come[s][kept[s] - 1] / _usual(size[s]), -size[s].sum()))
        kept[s] -= 1
        total -= float(size[s][kept[s]])
    return kept


def _to_come(worth: F64, n: int) -> F64:
    padded = np.zeros(n)
    padded[: min(n, len(worth))] = worth[:n]
    return np.cumsum(padded[::-1])[::-1]


def _usual(sizes: F64) -> float:
    """Mean bytes of a basic window: its value is compared per byte."""
    return max(1.0, float(sizes.mean()))
