"""Intervals that contain the truth as often as they say, whatever the estimator believes of itself.

An estimator tells a value and a standard error. How far the truth has been off in windows that are
complete, in units of that, gives the quantiles (conformal prediction). If these turn out to be too
narrow or too wide all the same, because windows change, the level that is aimed at is moved until
the right share is inside (Gibbs and Candes, 2021).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

_REMEMBERED = 250
_FEW = 20
_WIDER = 1.5  # than those of a normal distribution, as long as little is known
_STEP = 0.01


class Intervals:
    """The intervals of one aggregate."""

    def __init__(self, confidence: float) -> None:
        self._miss = 1.0 - confidence
        self._aim = self._miss  # the share that is left out of the past
        self._past: list[float] = []
        self._sorted: list[float] = []  # the same

    def around(self, value: float, error: float) -> tuple[float, float]:
        """Low and high."""
        if not math.isfinite(error):
            return -math.inf, math.inf
        if len(self._past) < _FEW:
            reach = _WIDER * NormalDist().inv_cdf(1.0 - self._miss / 2)
            return value - reach * error, value + reach * error
        low, high = _quantiles(self._sorted, min(max(self._aim, 0.002), 0.5))
        return value + low * error, value + high * error

    def learn(self, value: float, error: float, truth: float, was_inside: bool) -> None:
        """So much would be told now, that was the truth, and it was in the interval told then."""
        if error > 0.0 and math.isfinite(error):
            self._aim += _STEP * (self._miss - (not was_inside))
            off = (truth - value) / error
            self._past.append(off)
            insort(self._sorted, off)
            if len(self._past) > _REMEMBERED:
                del self._sorted[bisect_left(self._sorted, self._past.pop(0))]

    def state(self) -> list[Any]:
        """As plain data."""
        return [self._aim, self._past]

    def resume(self, state: Sequence[Any]) -> None:
        """Go on from `state`."""
        self._aim, self._past = state[0], list(state[1])
        self._sorted = sorted(self._past)


def _quantiles(ordered: Sequence[float], left_out: float) -> tuple[float, float]:
    """Between these lies all but `left_out`, as much below as above."""
    n = len(ordered)
    place = left_out / 2 * (n + 1) - 1.0
    return _at(ordered, place), _at(ordered, n - 1 - place)


def _at(ordered: Sequence[float], place: float) -> float:
    """The value at a place between two others, or beyond what has been seen so far."""
    last = len(ordered) - 1
    beyond = 0.1 * (ordered[-1] - ordered[0])
    if place < 0.0:
        return ordered[0] + place * beyond
    if place > last:
        return ordered[-1] + (place - last) * beyond
    below = min(int(place), last - 1)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
