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

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels.records import I64
from slackwater.stats.buckets import dense, sparse

OCTAVES = 32
EDGES = [0, *(2**i for i in range(OCTAVES - 1))]  # where each begins

_ONE_IN = 127  # arrivals
_CLUSTER = 8  # arrivals that are in the sample together: they are side by side in memory
_IN_CLUSTER = np.arange(_CLUSTER)
_SPAN = 2**17  # arrivals
_EARLY = 2**12  # arrivals that are all in the sample: there may never be many


def octaves(delays: I64) -> I64:
    """The octave of each delay; the last one has no end."""
    return np.asarray(np.minimum(np.frexp(delays)[1], OCTAVES - 1), np.int64)


class Part(NamedTuple):
    """Arrivals of the sample, all of one span; each stands for so many."""

    number: I64
    weight: int


def sampled(begin: int, end: int) -> Iterator[Part]:
    """The sample of the arrivals ``begin <= number < end``.

    >>> [(part.number.tolist(), part.weight) for part in sampled(4094, 5084)]
    [([4094, 4095], 1), ([5080, 5081, 5082, 5083], 127)]
    >>> [part.number.tolist() for part in sampled(5085, 7000)]
    [[5085, 5086, 5087, 6096, 6097, 6098, 6099, 6100, 6101, 6102, 6103]]
    """
    while begin < end:
        is_early = begin < _EARLY
        until = min(end, _EARLY if is_early else (begin // _SPAN + 1) * _SPAN)
        number = np.arange(begin, until) if is_early else _clusters(begin, until)
        if len(number):
            yield Part(number, 1 if is_early else _ONE_IN)
        begin = until


def _clusters(begin: int, end: int) -> I64:
    period = _ONE_IN * _CLUSTER
    number = np.arange(begin // period * period, end, period)[:, None] + _IN_CLUSTER
    before = min(begin - int(number[0, 0]), _CLUSTER)
    behind = max(0, int(number[-1, -1]) + 1 - end)
    return np.asarray(number.ravel()[before : number.size - behind])


class RecentDelays:
    """A sample of the delays of `m` streams."""

    def __init__(self, m: int) -> None:
        self._span = 0  # the number of the one that goes on
        self._counts = np.zeros((2, m, OCTAVES), np.int64)  # of the one before it, and of this one

    def take(self, part: Part, stream: I64, delay: I64) -> None:
        """Take in the events among a part of the sample."""
        span = int(part.number[0]) // _SPAN
        if span != self._span:
            self._counts[0] = self._counts[1] if span == self._span + 1 else 0
            self._counts[1] = 0
            self._span = span
        cell = stream * OCTAVES + octaves(delay)
        counts = np.bincount(cell, minlength=self._counts[1].size)
        self._counts[1] += part.weight * counts.reshape(-1, OCTAVES)

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
