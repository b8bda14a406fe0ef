"""Our own estimator: each event represents those that are still missing around it.

The delays of past windows give the number of missing events in each cell (`sizes`). Their keys are
estimated from the events that have arrived in the same cell and nearby: keys come and go, so nearer
events have more weight. How much more is the *reach*, in cells; several are tried on every window,
and the one with the smallest error is used. A reach of 0 weighs each event by the inverse of its
chance to have arrived, an infinite one multiplies everything by the same factor.

A second source is the mean of all windows, per event, combined with the observation according to
the errors of both. Where windows differ much, as those of a stock exchange do, the mean does not
help, and is left out where its errors are larger.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.observation import Estimate, Truth, WindowObservation, contracted
from slackwater.compensation.sizes import Sizes
from slackwater.kernels.records import F64

_REACHES = (0.0, 1.0, 2.0, 4.0, 8.0, np.inf)
_AT_FIRST = 2  # the reach that is used before any window is complete
_ERRORS = 200.0  # windows over which errors are averaged
_USUAL = 10.0  # windows over which the mean is taken
_FEW = 3.0  # windows
_WORST = 2.0  # the most that an error counts, as a share of the truth
_OUTLIER = 9.0  # squared standard errors
_CLUMP = 10.0  # results that occur together
_TINY = 1e-9


class DelayWeightingEstimator:
    """Estimates what is missing from the delays, and from the cells around it."""

    def __init__(self, n_streams: int, cells: int, n_values: int) -> None:
        self._sizes = Sizes(n_streams, cells)
        self._error = ForgettingMean(_ERRORS, (2, len(_REACHES)))  # without and with the mean
        self._usual = ForgettingMean(_USUAL, (n_values,))  # value per combination of events
        self._varies = ForgettingMean(_ERRORS, (n_values,))  # its relative variance
        self._off = ForgettingMean(_ERRORS, (n_values,))  # squared errors by expected ones

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""
        whole = self._sizes.estimate(observation.counts)
        sizes = whole.sum(axis=1)
        weights = np.stack([_weights(observation.counts, whole, reach) for reach in _REACHES])
        plain = np.stack([contracted(observation.products, w) for w in weights])
        unit = _by_chance(observation, sizes)
        chance = unit * self._times
        blended, variance = self._blend(plain, sizes, chance)
        mean, reach = self._best
        values = (blended if mean else plain)[reach]
        spread = np.sqrt((variance if mean else np.broadcast_to(chance, plain.shape))[reach])
        # few results that occur in clumps: their number is random itself
        spread = spread * (1.0 + _CLUMP * sizes.min() / (1.0 + observation.observed[0])) ** 0.5
        scale = np.where(
            plain[reach] != 0.0, values / np.where(plain[reach] != 0, plain[reach], 1), 1
        )
        if not self._sizes.is_known:
            return Estimate(weights[reach], scale, values, np.full(len(values), np.inf), sizes)
        notes = (plain, blended, unit)
        return Estimate(weights[reach], scale, values, spread, sizes, notes)

    @property
    def _best(self) -> tuple[int, int]:
        """Whether the mean of all windows is used, and the reach."""
        if self._error.weight == 0.0:
            return 0, _AT_FIRST
        mean, reach = np.unravel_index(np.argmin(self._error.value), self._error.value.shape)
        return int(mean), int(reach)

    @property
    def _times(self) -> F64:
        """By how much squared errors are larger than those of independent results: [value]."""
        known = self._off.weight > 0.0
        return self._off.value if known else np.ones(self._off.value.shape)

    def _blend(self, plain: F64, sizes: F64, chance: F64) -> tuple[F64, F64]:
        """Combine with the mean of all windows; return values and variances: [reach, value]."""
        if self._varies.weight < _FEW:
            return plain, np.broadcast_to(chance, plain.shape)
        usual = self._usual.value * sizes.prod()
        of_usual = np.maximum(self._varies.value * usual**2, _TINY)
        of_plain = np.maximum(chance * np.maximum(np.abs(plain), 0.2 * np.abs(usual)) ** 2, _TINY)
        trust = of_plain / (of_plain + of_usual)
        apart = (plain - usual) ** 2 / (of_plain + of_usual)
        trust = trust * np.minimum(1.0, _OUTLIER / np.maximum(apart, _TINY))
        blended = plain + trust * (usual - plain)
        variance = trust**2 * of_usual + (1.0 - trust) ** 2 * of_plain
        return blended, variance / np.maximum(blended**2, _TINY)

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:
        """Learn from a window that is complete."""
        if estimate.notes is not None:
            plain, blended, unit = estimate.notes
            if truth.values[0] > 0.0:
                errors = np.abs(np.stack([plain[:, 0], blended[:, 0]]) / truth.values[0] - 1.0)
                self._error.add(np.minimum(errors, _WORST))
            self._learn_times(plain, unit, truth)
        per_event = truth.values / max(float(truth.counts.sum(axis=1).prod()), 1.0)
        if self._usual.weight > 0.0:
            usual = self._usual.value
            off = (per_event - usual) / np.where(usual != 0.0, usual, 1.0)
            self._varies.add(np.minimum(off**2, 25.0))
        self._usual.add(per_event)
        self._sizes.learn(observation.counts, truth.counts)

    def _learn_times(self, plain: F64, unit: float, truth: Truth) -> None:
        """Learn how much larger errors are than those of independent results."""
        extrapolated = plain[self._best[1]]
        if unit > 0.0 and (extrapolated != 0.0).all():
            off = (truth.values / extrapolated - 1.0) ** 2 / unit
            most = 25.0 * self._off.value if self._off.weight > _FEW else np.inf
            self._off.add(np.minimum(off, np.maximum(most, 1e-6)))

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        own = {name: getattr(self, name).state() for name in _LEARNT}
        return own | {"sizes": self._sizes.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for name in _LEARNT:
            getattr(self, name).resume(state[name])
        self._sizes.resume(state["sizes"])


_LEARNT = ("_error", "_usual", "_varies", "_off")


def _by_chance(observation: WindowObservation, sizes: F64) -> float:
    """Return the relative variance of extrapolated values if events are drawn at random."""
    share = np.clip(observation.totals / np.maximum(sizes, _TINY), 1e-3, 1.0)
    return float(((1.0 - share) / share / np.maximum(sizes, 1.0)).sum())


@cache
def _nearness(cells: int, reach: float) -> F64:
    """Return the weight of one cell for another: [cell, other]."""
    if reach == 0.0:
        return np.eye(cells)
    place = np.arange(cells)
    return np.asarray(np.exp(-np.abs(place[:, None] - place[None, :]) / reach))


def _weights(counts: F64, whole: F64, reach: float) -> F64:
    """Return how many events of the window an event of each cell represents: [stream, cell]."""
    near = _nearness(counts.shape[1], reach)
    missing = np.maximum(whole - counts, 0.0)
    around = counts @ near.T
    alone = around <= _TINY  # no event is near enough: all events represent these
    share = np.where(alone, 0.0, missing / np.where(alone, 1.0, around))
    weights = 1.0 + share @ near
    left = np.where(alone, missing, 0.0).sum(axis=1)
    weights += (left / np.maximum(counts.sum(axis=1), 1.0))[:, None]
    return np.asarray(weights)
