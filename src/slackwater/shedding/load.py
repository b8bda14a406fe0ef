"""The load of a join: what arrived in the current interval, and how much work waits.

The times and counters of the virtual server are in `Shed`, where the kernel charges each comparison
to it; `LoadMonitor` compares them with their values at the start of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.kernels import shed as fields
from slackwater.kernels.records import BEFORE, F64, I64, Shed
from slackwater.shedding.throttle import Load

_BUSY = 0.1  # of the time: below that nothing has to be decided


class LoadMonitor:
    """Measures the load of one interval after the other.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    lengths
        Length of the window of each stream.
    """

    def __init__(self, shed: Shed, lengths: Sequence[int]) -> None:
        self._shed = shed
        self._lengths = lengths
        m = len(lengths)
        self.since = BEFORE  # start of the current interval
        self._backlog = 0.0  # at its start
        self._waited = 0  # events that waited then
        self._arrived = np.zeros(m, np.int64)  # events in this interval
        # totals at the start of the interval:
        self._dropped = np.zeros(m, np.int64)  # because the buffer was full
        self._thinned = np.zeros(m, np.int64)  # at random
        self._compared = 0
        # intervals that reach into the window of each stream: [end, arrived, admitted]
        self._history: list[list[list[int]]] = [[] for _ in range(m)]

    # ---- within an interval

    def begin_at(self, start: int) -> None:
        """Start the first interval at `start`; later calls have no effect."""
        if self.since == BEFORE:
            self.since = start

    def add_arrivals(self, streams: I64) -> None:
        """Count events, given the stream of each, that came to the join."""
        self._arrived += np.bincount(streams, minlength=len(self._arrived))

    def add_work(self, work: float, begin: int) -> None:
        """Charge measured work, as time, that was requested from time `begin` on."""
        number = self._shed.number
        number[fields.WORK] += work
        number[fields.FREE_AT] = max(number[fields.FREE_AT], float(begin)) + work

    def charge(self, comparisons: float, now: int) -> None:
        """Charge the virtual server with work of its own."""
        if comparisons > 0.0:
            self.add_work(comparisons * float(self._shed.number[fields.COMPARISON]), now)

    def backlog(self, now: int) -> float:
        """Return how long the waiting work will take."""
        return max(0.0, float(self._shed.number[fields.FREE_AT]) - now)

    def is_full(self, now: int) -> bool:
        """Return whether the backlog is larger than the buffer allows."""
        return self.backlog(now) > float(self._shed.number[fields.BUFFER])

    # ---- at the end of an interval

    def is_busy(self, now: int, span: int) -> bool:
        """Return whether the join needed a notable part of the last `span`."""
        return float(self._shed.number[fields.WORK]) + self.backlog(now) > _BUSY * span

    @property
    def comparisons(self) -> int:
        """Comparisons in this interval."""
        return int(self._shed.ctl[fields.COMPARED]) - self._compared

    def rate(self, span: int) -> F64:
        """Return the events per time of each stream, dropped ones included."""
        return np.asarray(self._arrived / span)

    def window_sizes(self, admitted: bool) -> F64:
        """Return the events in the window of each stream: only those admitted, or all."""
        column = 2 if admitted else 1
        return np.array([float(sum(entry[column] for entry in past)) for past in self._history])

    def load(self, now: int, span: int, full_cost: float) -> Load:
        """Return the load of this interval.

        `full_cost` is the cost of the whole join per unit of time; 0: unknown.
        """
        shed = self._shed
        pushed = int((self._arrived - (shed.thinned - self._thinned)).sum())
        admitted = pushed - int((shed.dropped - self._dropped).sum())
        work, backlog = float(shed.number[fields.WORK]), self.backlog(now)
        if work <= 0.0 or admitted == 0:
            unlimited = math.inf if backlog <= 0.0 else None
            return Load(pushed, float(admitted), 0.0, unlimited, backlog / span)
        consumed, left = self._events(now, work / admitted, admitted)
        possible = None
        if self.comparisons > 0 and full_cost > 0.0:
            possible = self.comparisons / work / full_cost
        return Load(pushed, consumed, left, possible, backlog / span)

    def _events(self, now: int, each: float, admitted: int) -> tuple[float, float]:
        """Return the events that left the buffer in this interval, and those that wait in it.

        The virtual server says when it begins an event. Where it does not, or cannot remember all
        that wait, each event of the interval is taken to need the same time.
        """
        starts, backlog = self._shed.starts, self.backlog(now)
        waiting = int(np.count_nonzero(starts > now))
        if waiting == len(starts):
            self._waited = round(backlog / each)
            return admitted - (backlog - self._backlog) / each, backlog / each
        consumed = admitted + self._waited - waiting
        self._waited = waiting
        return float(consumed), float(waiting)

    def record_history(self, now: int) -> None:
        """Remember the arrivals of this interval for as long as windows contain them."""
        shed = self._shed
        left_out = shed.dropped - self._dropped + shed.thinned - self._thinned
        admitted = self._arrived - left_out
        for s, past in enumerate(self._history):
            past.append([now, int(self._arrived[s]), int(admitted[s])])
            while len(past) > 1 and past[0][0] <= now - self._lengths[s]:
                past.pop(0)

    def next_interval(self, now: int) -> None:
        """Start the next interval."""
        shed = self._shed
        self.since = now
        self._backlog = self.backlog(now)
        shed.number[fields.WORK] = 0.0
        self._arrived[:] = 0
        self._dropped = shed.dropped.copy()
        self._thinned = shed.thinned.copy()
        self._compared = int(shed.ctl[fields.COMPARED])

    # ---- snapshot

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {
            "since": self.since,
            "backlog": self._backlog,
            "waited": self._waited,
            "arrived": self._arrived.tolist(),
            "dropped": self._dropped.tolist(),
            "thinned": self._thinned.tolist(),
            "compared": self._compared,
            "history": self._history,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.since, self._backlog = state["since"], state["backlog"]
        self._waited = state["waited"]
        self._arrived[:] = state["arrived"]
        self._dropped, self._thinned = np.array(state["dropped"]), np.array(state["thinned"])
        self._compared = state["compared"]
        self._history = state["history"]
