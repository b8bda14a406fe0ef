"""The authors' AEMA as their program computes it, event by event, over its one window.

It differs from the formula N = n W / (a - d) in what limits it. Expected events are at most a
*ratio* of those that have arrived; after each use the limit of that ratio becomes the square root
of how much of the expected rate it let through, between 0.1 and 100. The program asks twice for
each event, first with the average delay of the key of the event, then with that of the stream, and
both have the same limit. Averages start at 0: to a key of few events the window seems to be over
as soon as arrivals are past its end, nothing is expected of it, and the limit falls to 0.1. So from
ω = W on the program multiplies by 1.1 for each stream (1.21 in all), whatever is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slackwater.kernels.records import I64
from slackwater_lab.papers.pecj.data import Window

_NEWEST = 1 / 8  # weight of the newest delay
_LIMITS = (0.1, 100.0)
_FIRST_LIMIT = 10.0


class Result(NamedTuple):
    """What the program reports."""

    observed: float  # results of the events that have arrived
    compensated: float


@dataclass
class _Delays:
    """Of a key or of a stream."""

    average: float = 0.0
    events: int = 0

    def add(self, delay: float) -> None:
        """Follow another delay."""
        self.average += _NEWEST * (delay - self.average)
        self.events += 1


class _Expected:
    """How many events are still expected."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._limit = _FIRST_LIMIT

    def __call__(self, delays: _Delays, arrival: float) -> float:
        """Return it, and move the limit."""
        covered = arrival - delays.average
        left = self._length + delays.average - arrival
        ratio = min(left / (covered if covered > 0.0 else 1.0), self._limit)
        more = max(ratio * delays.events, 0.0)
        if covered > 0.0 and left != 0.0:
            let_through = (more / left) / (delays.events / covered)
            low, high = _LIMITS
            self._limit = min(max(max(let_through, 0.0) ** 0.5, low), high)
        return more


def aema(window: Window, delay: I64, deadline: int, length: int) -> Result:
    """Run the program over the events of a window that arrive by its deadline.

    Sizes and selectivity are those of the last event of each stream that had a partner.
    """
    arrival = window.time + delay
    order = np.argsort(arrival, kind="stable")
    order = order[: np.searchsorted(arrival[order], deadline, side="right")]
    expected = _Expected(length)
    of_key: tuple[dict[int, _Delays], ...] = ({}, {})
    of_stream = (_Delays(), _Delays())
    made, selectivity, sizes = 0, 0.0, [0.0, 0.0]
    for i in order.tolist():
        s, key = int(window.stream[i]), int(window.code[i])
        own = of_key[s].setdefault(key, _Delays())
        for delays in (own, of_stream[s]):
            delays.add(float(delay[i]))
            more = expected(delays, float(arrival[i]))
        if (partners := of_key[1 - s].get(key)) is not None:
            made += partners.events
            sizes[s] = of_stream[s].events + more
            sizes[1 - s] = sizes[1 - s] or of_stream[1 - s].events
            selectivity = made / (of_stream[0].events * of_stream[1].events)
    return Result(made, selectivity * sizes[0] * sizes[1])
