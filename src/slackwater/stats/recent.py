"""Delays of the recent past by octaves: what is shown of the disorder of a stream.

Octave 0 is no delay, octave i reaches from 2^(i-1) to 2^i, not included. Where no goal keeps a
histogram of its own, a sample of the delays is kept here: of one arrival in 127, and of the first
ones all, over the last one to two spans of arrivals. Which ones, goes by the numbers of the
arrivals, so it does not depend on how they are cut into batches.

>>> octaves(np.array([0, 1, 2, 3, 4, 1000])).tolist()
[0, 1, 2, 2, 3, 10]
>>> EDGES[:5], EDGES[10]
([0, 1, 2, 4, 8], 512)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels import recent as kernels
from slackwater.kernels.records import I64
from slackwater.stats.buckets import dense, sparse

OCTAVES = 32
EDGES = [0, *(2**i for i in range(OCTAVES - 1))]  # where each begins

_ONE_IN = 127  # arrivals
_CLUSTER = 8  # arrivals in a row that are in the sample
_SPAN = 2**17  # arrivals
_EARLY = 2**12  # arrivals that are all in the sample: there may never be many


def octaves(delays: I64) -> I64:
    """The octave of each delay; the last one has no end."""
    return np.asarray(np.minimum(np.frexp(delays)[1], OCTAVES - 1), np.int64)


class RecentDelays:
    """A sample of the delays of `m` streams."""

    def __init__(self, m: int) -> None:
        self._span = 0  # the number of the one that goes on
        self._counts = np.zeros((2, m, OCTAVES), np.int64)  # of the one before it, and of this one

    def take(self, begin: int, event: I64, delay: I64) -> None:
        """Take in arrivals from number `begin` on, as the log has them, and their delays."""
        first, end = begin, begin + len(delay)
        while first < end:
            span = first // _SPAN
            if span != self._span:
                self._counts[0] = self._counts[1] if span == self._span + 1 else 0
                self._counts[1] = 0
                self._span = span
            until = min(end, _EARLY if first < _EARLY else (span + 1) * _SPAN)
            own = slice(first - begin, until - begin)
            one_in = 1 if first < _EARLY else _ONE_IN
            kernels.sample(first, until, one_in, _CLUSTER, event[own], delay[own], self._counts[1])
            first = until

    @property
    def counts(self) -> I64:
        """[stream, octave]: about how many events of the last spans had such a delay."""
        return np.asarray(self._counts.sum(axis=0))

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"span": self._span, "counts": sparse(self._counts.ravel())}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._span = state["span"]
        dense(state["counts"], self._counts.reshape(-1))
