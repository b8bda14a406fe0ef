"""Intervals that contain the truth with the stated confidence, even if standard errors are wrong.

An estimator gives a value and a standard error. The errors of complete windows, in units of that,
give the quantiles (conformal prediction). If these are still too narrow or too wide, because
windows change, the level is moved until the right share is inside (Gibbs and Candes, 2021).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

_REMEMBERED = 250
_FEW = 20
_WIDER = 1.5  # than those of a normal distribution, while there are few windows
_STEP = 0.01


class Intervals:
    """The intervals of one aggregate."""

    def __init__(self, confidence: float) -> None:
        self._miss = 1.0 - confidence
        self._aim = self._miss  # the share of past errors that is left out
        self._past: list[float] = []
        self._sorted: list[float] = []  # the same

    def around(self, value: float, error: float) -> tuple[float, float]:
        """Return low and high."""
        if not math.isfinite(error):
            return -math.inf, math.inf
        if len(self._past) < _FEW:
            reach = _WIDER * NormalDist().inv_cdf(1.0 - self._miss / 2)
            return value - reach * error, value + reach * error
        low, high = _quantiles(self._sorted, min(max(self._aim, 0.002), 0.5))
        return value + low * error, value + high * error

    def learn(self, value: float, error: float, truth: float, was_inside: bool) -> None:
        """Learn from a complete window.

        Parameters
        ----------
        value, error
            The estimate that would be made now, and its standard error.
        truth
            The exact value.
        was_inside
            Whether it was in the interval that was reported at the deadline.
        """
        if error > 0.0 and math.isfinite(error):
            self._aim += _STEP * (self._miss - (not was_inside))
            off = (truth - value) / error
            self._past.append(off)
            insort(self._sorted, off)
            if len(self._past) > _REMEMBERED:
                del self._sorted[bisect_left(self._sorted, self._past.pop(0))]

    def state(self) -> list[Any]:
        """Return plain data to continue from."""
        return [self._aim, self._past]

    def resume(self, state: Sequence[Any]) -> None:
        """Continue from `state`."""
        self._aim, self._past = state[0], list(state[1])
        self._sorted = sorted(self._past)


def _quantiles(ordered: Sequence[float], left_out: float) -> tuple[float, float]:
    """Return bounds of all but the share `left_out`, the same on both sides."""
    n = len(ordered)
    place = left_out / 2 * (n + 1) - 1.0
    return _at(ordered, place), _at(ordered, n - 1 - place)


def _at(ordered: Sequence[float], place: float) -> float:
    """Return the value at a place between two others, or beyond the extreme ones."""
    last = len(ordered) - 1
    beyond = 0.1 * (ordered[-1] - ordered[0])
    if place < 0.0:
        return ordered[0] + place * beyond
    if place > last:
        return ordered[-1] + (place - last) * beyond
    below = min(int(place), last - 1)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
