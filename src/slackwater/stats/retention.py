"""How long a join keeps events beyond their window, so that it can count what late events lose.

An event that is late by d needs events of the last d to be counted exactly. The largest lateness
ever seen would do, but then one event an hour late costs the memory of an hour, for ever. So
retention covers all lateness but a tail that loses next to nothing: a small share of the results
that the goal allows to be lost. What lies beyond is counted as unknown, never as nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels import accounting as kernels
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import F64, Late
from slackwater.stats.buckets import dense, sparse

_TAIL = 0.02  # share of the allowed loss that may lie beyond retention
_HALF_LIFE = 120  # first intervals after which what was lost counts half
_FIRST = 9.0  # intervals, until they may be longer
_HEADROOM = 1.25  # retention is longer than what was needed so far by this
_MOST = 2**20  # events that are kept beyond their windows

_EDGES = upper_edges()


class Retention:
    """Learns from late events; `next_length` is called at the end of each interval.

    Parameters
    ----------
    allowed
        Share of the results that the goal allows to be lost.
    first
        Length of the first intervals.
    times
        How many times as long the later ones are: less is new then.
    """

    def __init__(self, allowed: float, first: int, times: int = 1) -> None:
        self._first = first
        self._times = times
        self._tail = _TAIL * allowed
        self._keep = 0.5 ** (1 / _HALF_LIFE)
        self._loss = np.zeros(BUCKETS)  # results by the lateness of the event they were lost with
        self._true = 0.0
        self._events = 0.0
        self._intervals = 0.0  # as long as the first; all of these fade with time
        # of this interval, as whole numbers: sums do not depend on how the input is cut
        self._lost = np.zeros(BUCKETS, np.int64)
        self._unknown = np.zeros(BUCKETS, np.int64)  # events whose loss is not known exactly
        self._produced = 0
        self._joined = 0

    def join(self, events: int, produced: int, late: Late) -> None:
        """Take in a step of the join."""
        self._joined += events
        self._produced += produced
        if len(late.by) == 0:
            return
        kernels.count_late(late, self._lost, self._unknown)

    def next_length(self, slack: int) -> int:
        """End an interval; return how long to keep events beyond their window."""
        length = self.every // self._first
        keep = self._keep**length
        lost = int(self._lost.sum())
        self._true = keep * self._true + self._produced + lost
        self._events = keep * self._events + self._joined
        self._intervals = keep * self._intervals + length
        # an event whose loss is unknown lost at least what was counted; as much as others make
        each = self._true / max(self._events, 1.0)
        last = kernels.last_that_matters(
            self._loss, keep, self._lost, self._unknown, each, self._tail, self._true
        )
        self._lost[:] = self._unknown[:] = 0
        self._produced = self._joined = 0
        covered = int(_HEADROOM * _EDGES[last]) if last >= 0 else 0
        return min(max(slack, covered), int(_MOST / max(self.rate, 1e-9)))

    @property
    def every(self) -> int:
        """Length of the running interval."""
        return self._first if self._intervals < _FIRST else self._times * self._first

    @property
    def rate(self) -> float:
        """Events per unit of time, of late."""
        return self._events / max(self._intervals * self._first, 1e-9)

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "loss": sparse(self._loss),
            "faded": [self._true, self._events, self._intervals],
            "lost": sparse(self._lost),
            "unknown": sparse(self._unknown),
            "counts": [self._produced, self._joined],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        into: F64 = self._loss
        dense(state["loss"], into)
        dense(state["lost"], self._lost)
        dense(state["unknown"], self._unknown)
        self._true, self._events, self._intervals = state["faded"]
        self._produced, self._joined = state["counts"]
