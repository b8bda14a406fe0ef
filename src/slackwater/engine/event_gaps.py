"""Latency without the gaps of event time: hours in which nothing happened are no waiting.

The latency of a result is how far event time is beyond it when it comes out. If nothing happens for
an hour, results that K held back come out with the first event behind it: an hour late by event
time, though a clock that goes on would have let them out after K.

>>> gaps = Gaps.of(np.array([0, 5, 10, 3610, 3620]), longest=60)
>>> gaps.latency(np.array([4, 9]), np.array([6, 3601]), np.array([5, 5])).tolist()
[6, 5]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.engine.checks import is_accepted
from slackwater.events.batch import Batch
from slackwater.kernels.records import I64, U8


class Gaps(NamedTuple):
    """Where event time jumps."""

    end: I64  # the largest local time behind each gap
    total: I64  # length of all gaps up to this one, in front of it 0

    @classmethod
    def of(cls, top: I64, longest: int) -> Gaps:
        """The jumps by more than `longest` of the largest local time, `top` by arrival."""
        jumps = np.diff(top)
        place = np.flatnonzero(jumps > longest)
        return cls(top[place + 1], np.concatenate([[0], np.cumsum(jumps[place])]))

    def latency(self, ts: I64, latency: I64, slack: I64 | int) -> I64:
        """Latencies of results of these times without gaps; they are not below K where that is."""
        inside = self._until(ts + latency) - self._until(ts)
        return np.maximum(latency - inside, np.minimum(latency, slack))

    def _until(self, ts: I64) -> I64:
        return np.asarray(self.total[np.searchsorted(self.end, ts, side="right")])


def largest_times(batch: Batch) -> I64:
    """The largest local time at each arrival that is not rejected."""
    return np.maximum.accumulate(good_rows(batch)[0])


def good_rows(batch: Batch) -> tuple[I64, U8]:
    """Times and streams of the arrivals that are not rejected."""
    assert batch.checked is not None
    ts, is_good = np.empty(len(batch.stream), np.int64), np.empty(len(batch.stream), bool)
    for s, checked in enumerate(batch.checked):
        own = batch.stream == s
        ts[own] = checked.ts
        is_good[own] = is_accepted(checked.reason)
    return ts[is_good], batch.stream[is_good]


def slack_at(slacks: list[tuple[int, int]], ts: I64) -> I64:
    """K at these event times; `slacks` has where it changed."""
    if not slacks:
        return np.zeros(len(ts), np.int64)
    changes, values = np.array(slacks, np.int64).T
    return np.asarray(values[np.maximum(np.searchsorted(changes, ts, side="right") - 1, 0)])
