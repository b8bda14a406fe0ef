"""Whether the delays of what arrives grow: counts that all shards know before they take it in.

What a goal has learnt is of results that are complete, so of the past. How late the events of a
micro-batch are is known when they arrive. If a larger share of them is beyond K than lately, K can
be raised at once, so that the share is as before.

K of a micro-batch is in force when the next one begins, so of a long micro-batch only the end
counts: the last block of event time, a tenth of a period, and the one before.

>>> calm, grown = (coarse_counts(np.arange(1_000) * n) for n in (1, 3))
>>> delays = ArrivingDelays(over=60_000)
>>> delays.remember(calm, passed=1_000)
>>> [delays.raised(900, counts, least=0.01) // 100 for counts in (calm, grown)]
[9, 26]
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels.histogram import BUCKETS, buckets_of, upper_edges
from slackwater.kernels.records import BEFORE, F64, I64
from slackwater.stats.buckets import dense, sparse

_FINE = 8  # buckets of `histogram` in one of these
COARSE = BUCKETS // _FINE
NO_COUNTS: I64 = np.zeros(COARSE, np.int64)
_BLOCKS = 10  # in a period
_EDGES: F64 = np.append(-1.0, upper_edges()[_FINE - 1 :: _FINE].astype(np.float64))
_DEVIATIONS = 3.0  # by which chance may exceed what is expected


def coarse_counts(delays: I64) -> I64:
    """How many of the delays are in each bucket."""
    return np.bincount(buckets_of(delays) // _FINE, minlength=COARSE)


def block_length(over: int) -> int:
    """Of the blocks of event time, for periods of this length."""
    return max(over // _BLOCKS, 1)


class LastDelays(NamedTuple):
    """Counts of delays at the end of some rows of a stream."""

    block: int  # number of the block of event time in which they end
    counts: I64  # in this block and in the one before: two rows


NO_DELAYS = LastDelays(BEFORE, np.zeros((2, COARSE), np.int64))


def last_delays(ts: I64, length: int) -> LastDelays:
    """The delays at the end of rows with these times, in the order of their arrival.

    >>> found = last_delays(np.array([5, 19, 12, 33, 31]), length=10)
    >>> found.block, [np.flatnonzero(counts).tolist() for counts in found.counts]
    (3, [[0], []])
    """
    if len(ts) == 0:
        return NO_DELAYS
    local = np.maximum.accumulate(ts)
    block, delay = local // length, local - ts
    last = int(block[-1])
    both = [coarse_counts(delay[block == number]) for number in (last, last - 1)]
    return LastDelays(last, np.stack(both))


def counts_at_the_end(parts: Iterable[LastDelays]) -> I64:
    """Counts of all parts of a stream in the last block and the one before.

    >>> parts = [last_delays(np.array(ts), length=10) for ts in ([9, 19], [7], [22, 21])]
    >>> int(counts_at_the_end(parts).sum())
    3
    """
    known = list(parts)
    least = max((part.block for part in known), default=BEFORE) - 1
    counts = NO_COUNTS
    for part in known:
        for number, own in zip((part.block, part.block - 1), part.counts, strict=True):
            if number >= least:
                counts = counts + own
    return counts


class ArrivingDelays:
    """The delays of the recent past.

    Parameters
    ----------
    over
        A time after which what was counts 1/e.
    """

    def __init__(self, over: int) -> None:
        self._over, self._long = over, 2 * block_length(over)
        self._recent = np.zeros(COARSE)

    def raised(self, slack: int, counts: I64, least: float) -> int:
        """K with which no larger share of `counts` is beyond it than was lately, and `least`."""
        before, now = _beyond(self._recent), _beyond(counts)
        if before[0] == 0.0 or now[0] == 0.0:
            return slack
        share = max(float(np.interp(slack, _EDGES, before)) / before[0], least)
        expected = share * now[0]
        allowed = expected + _DEVIATIONS * (sqrt(expected) + 1.0)
        if allowed >= now[0]:
            return slack
        high = int(np.argmax(now <= allowed))
        within = (now[high - 1] - allowed) / (now[high - 1] - now[high])
        return max(slack, int(_EDGES[high - 1] + within * (_EDGES[high] - _EDGES[high - 1])))

    def remember(self, counts: I64, passed: int) -> None:
        """So many delays came while event time moved on by `passed`."""
        kept = 0.0 if passed > self._long else exp(-passed / self._over)  # the end says all
        self._recent = kept * self._recent + counts

    def state(self) -> list[list[Any]]:
        """All of it as plain data."""
        return sparse(self._recent)

    def resume(self, state: list[list[Any]]) -> None:
        """Go on from `state`."""
        dense(state, self._recent)


def _beyond(counts: I64 | F64) -> F64:
    """How many are beyond each edge."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0).astype(np.float64)
