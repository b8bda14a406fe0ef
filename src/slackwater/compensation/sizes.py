"""How many events a window will have, by cell, given those that have arrived.

Complete windows show how many events a cell has on average, which share of them has arrived by the
deadline (this is how delays are used), and how much rates vary, from window to window (the *level*)
and from cell to cell (the *dispersion*: 0 for a regular stream, 1 for independent events). The
estimate is the best linear one: a regular stream has its usual size, whatever has arrived; in a
stream of independent events those that have arrived give no information about the missing ones; in
a stream whose rate changes they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.kernels.records import F64

_DELAYS = 20.0  # windows that completeness is learnt from
_RATES = 20.0
_VARIATION = 200.0
_UNKNOWN_LEVEL = 0.05  # variance of a rate without observations
_FEW = 2.0  # windows that are remembered when delays have changed
_NEW = 3.0  # times the usual error: delays have changed
_TINY = 1e-9


class Sizes:
    """The sizes of the windows of all streams."""

    def __init__(self, n_streams: int, cells: int) -> None:
        shape = (n_streams, cells)
        self._arrived = ForgettingMean(_DELAYS, shape)  # at the deadline
        self._whole = ForgettingMean(_DELAYS, shape)  # of the same windows
        self._usual = ForgettingMean(_RATES, shape)
        self._dispersion = ForgettingMean(_VARIATION, (n_streams,))
        self._level = ForgettingMean(_VARIATION, (n_streams,))
        self._off = ForgettingMean(_VARIATION)  # squared errors of the share, by random ones

    @property
    def share(self) -> F64:
        """The share of a cell's events that has arrived by the deadline: [stream, cell]."""
        whole = self._whole.value
        return np.where(whole > 0.0, self._arrived.value / np.maximum(whole, _TINY), 1.0)

    @property
    def completeness(self) -> F64:
        """The same of whole windows: [stream]."""
        whole = self._whole.value.sum(axis=1)
        return np.where(
            whole > 0.0, self._arrived.value.sum(axis=1) / np.maximum(whole, _TINY), 1.0
        )

    @property
    def is_known(self) -> bool:
        """Whether a window was complete yet."""
        return self._usual.weight > 0.0

    def estimate(self, counts: F64) -> F64:
        """Return the events that each cell will have: [stream, cell]."""
        if not self.is_known:
            return counts.copy()
        usual, share = self._usual.value, self.share
        expected = usual * share
        dispersion = (
            np.ones(len(counts)) if self._dispersion.weight == 0 else self._dispersion.value
        )
        level = self._levels(counts, expected, share, dispersion)
        rate, spread = level[:, None] * usual, dispersion[:, None]
        gain = spread / np.maximum(share * spread + 1.0 - share, _TINY)
        whole = np.where(share >= 1.0, counts, rate + gain * (counts - rate * share))
        return np.asarray(np.maximum(whole, counts))

    def _levels(self, counts: F64, expected: F64, share: F64, dispersion: F64) -> F64:
        """Return the rate of each stream in this window, as a multiple of its usual rate."""
        arrived, usual = counts.sum(axis=1), np.maximum(expected.sum(axis=1), _TINY)
        chance = (expected * (1.0 - share)).sum(axis=1) + dispersion * (expected * share).sum(
            axis=1
        )
        noise = chance / usual**2
        varies = (
            self._level.value if self._level.weight > 0 else np.full(len(counts), _UNKNOWN_LEVEL)
        )
        trust = varies / np.maximum(varies + noise, _TINY)
        return np.asarray(1.0 + trust * (arrived / usual - 1.0))

    def learn(self, arrived: F64, whole: F64) -> None:
        """Learn from a complete window: its events by cell at the deadline, and all of them."""
        if self._usual.weight > 0.0:
            usual = np.maximum(self._usual.value, _TINY)
            level = whole.sum(axis=1) / usual.sum(axis=1)
            rate = level[:, None] * usual
            cells = max(whole.shape[1] - 1, 1)
            dispersion = ((whole - rate) ** 2 / np.maximum(rate, _TINY)).sum(axis=1) / cells
            self._dispersion.add(np.minimum(dispersion, 100.0))
            by_chance = self._dispersion.value / usual.sum(axis=1)
            self._level.add(np.maximum((level - 1.0) ** 2 - by_chance, 0.0))
        if self._whole.weight > 0.0:
            self._notice(arrived, whole)
        self._usual.add(whole)
        self._arrived.add(arrived)
        self._whole.add(whole)

    def _notice(self, arrived: F64, whole: F64) -> None:
        """Let the newest windows count most when delays have changed."""
        share = np.clip(self.share, 0.01, 0.99)
        chance = np.maximum(whole * share * (1.0 - share), _TINY)
        off = float(((arrived - whole * share) ** 2 / np.maximum(chance, 1.0)).mean())
        if self._off.weight > _FEW and off > _NEW * float(self._off.value):
            self._arrived.forget(_FEW)
            self._whole.forget(_FEW)
        else:
            self._off.add(off)

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {name: getattr(self, name).state() for name in _LEARNT}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for name in _LEARNT:
            getattr(self, name).resume(state[name])


_LEARNT = ("_arrived", "_whole", "_usual", "_dispersion", "_level", "_off")
