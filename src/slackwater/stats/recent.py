"""Delays of the recent past by octaves: what is shown of the disorder of a stream.

Octave 0 is no delay, octave i reaches from 2^(i-1) to 2^i, not included. Where no goal keeps a
histogram of its own, a sample of the delays is kept here: one arrival in 61, over the last one to
two spans of arrivals. Which ones, goes by the numbers of the arrivals, so it does not depend on how
they are cut into batches.

>>> octaves(np.array([0, 1, 2, 3, 4, 1000])).tolist()
[0, 1, 2, 2, 3, 10]
>>> EDGES[:5], EDGES[10]
([0, 1, 2, 4, 8], 512)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.records import I64
from slackwater.stats.buckets import dense, sparse

OCTAVES = 32
EDGES = [0, *(2**i for i in range(OCTAVES - 1))]  # where each begins

_STRIDE = 61  # a prime, so that streams that take turns are all in the sample
_SPAN = 2**16  # arrivals


def octaves(delays: I64) -> I64:
    """The octave of each delay; the last one has no end."""
    return np.minimum(np.frexp(np.maximum(delays, 0))[1], OCTAVES - 1)


def sampled(begin: int, end: int) -> I64:
    """Which of the arrivals ``begin <= number < end`` are in the sample."""
    return np.arange(begin + -begin % _STRIDE, end, _STRIDE)


class RecentDelays:
    """A sample of the delays of `m` streams."""

    def __init__(self, m: int) -> None:
        self._span = 0  # the number of the one that goes on
        self._cells = m * OCTAVES
        self._counts = np.zeros((2, m, OCTAVES), np.int64)  # of the one before it, and of this one

    def take(self, number: I64, stream: I64, delay: I64) -> None:
        """Take in arrivals of the sample by their numbers, which ascend."""
        at, cell = 0, stream * OCTAVES + octaves(delay)
        while at < len(number):
            span = int(number[at]) // _SPAN
            if span != self._span:
                self._counts[0] = self._counts[1] if span == self._span + 1 else 0
                self._counts[1] = 0
                self._span = span
            end = int(np.searchsorted(number, (span + 1) * _SPAN))
            self._counts[1] += np.bincount(cell[at:end], minlength=self._cells).reshape(-1, OCTAVES)
            at = end

    @property
    def counts(self) -> I64:
        """[stream, octave]: the sample."""
        return np.asarray(self._counts.sum(axis=0))

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"span": self._span, "counts": sparse(self._counts.ravel())}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._span = state["span"]
        dense(state["counts"], self._counts.reshape(-1))
