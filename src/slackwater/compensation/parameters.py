"""The product form of PECJ 3.3: window sizes, selectivity and mean values, estimated independently.

>>> from slackwater.compensation.observation import WindowObservation
>>> five = np.array([[5.0], [5.0]])
>>> observation = WindowObservation(
...     five, np.array([[[4.0]], [[20.0]]]), np.zeros(2), np.zeros(2), 6.0
... )
>>> selectivity, means = parameters(observation)
>>> round(selectivity, 3), means.tolist()
(0.16, [1.0, 5.0])
>>> product_form(np.array([6.0, 6.0]), selectivity, means).round(2).tolist()
[5.76, 28.8]
"""

from __future__ import annotations

import numpy as np

from slackwater.compensation.observation import Estimate, Truth, WindowObservation
from slackwater.kernels.records import F64


def parameters(observation: WindowObservation) -> tuple[float, F64]:
    """Return σ, results by pairs of events; and α, the mean of each value over the results."""
    observed, pairs = observation.observed, float(observation.totals.prod())
    selectivity = float(observed[0]) / pairs if pairs > 0.0 else 0.0
    means = observed / observed[0] if observed[0] > 0.0 else np.zeros(len(observed))
    return selectivity, np.asarray(means)


def product_form(sizes: F64, selectivity: float, means: F64) -> F64:
    """Return results and sums: σ times all sizes, times α."""
    return np.asarray(selectivity * sizes.prod() * means)


def scaled_estimate(
    observation: WindowObservation, sizes: F64, values: F64, spread: F64
) -> Estimate:
    """Return an estimate that multiplies everything by the same factor."""
    observed = observation.observed
    safe = np.where(observed != 0.0, observed, 1.0)
    scale = np.where(observed != 0.0, values / safe, 1.0)
    values = np.where(observed != 0.0, values, 0.0)
    return Estimate(None, scale, values, spread, sizes)


def squared_errors(estimate: Estimate, truth: Truth) -> F64:
    """Return the squared errors of an estimate, relative to it: [value]."""
    safe = np.where(estimate.values != 0.0, estimate.values, 1.0)
    off = np.where(estimate.values != 0.0, (truth.values - estimate.values) / safe, 0.0)
    return np.asarray(np.minimum(off**2, 4.0))
