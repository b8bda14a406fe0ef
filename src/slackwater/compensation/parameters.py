"""The product form of PECJ 3.3: window sizes, selectivity and mean values, guessed independently.

>>> from slackwater.compensation.observation import Seen
>>> five = np.array([[5.0], [5.0]])
>>> seen = Seen(five, np.array([[[4.0]], [[20.0]]]), np.zeros(2), np.zeros(2), 6.0)
>>> selectivity, means = parameters(seen)
>>> round(selectivity, 3), means.tolist()
(0.16, [1.0, 5.0])
>>> product_form(np.array([6.0, 6.0]), selectivity, means).round(2).tolist()
[5.76, 28.8]
"""

from __future__ import annotations

import numpy as np

from slackwater.compensation.observation import Guess, Seen, Truth
from slackwater.kernels.records import F64


def parameters(seen: Seen) -> tuple[float, F64]:
    """σ, results by pairs of events; and α, the mean of each value over the results (1 of ones)."""
    observed, pairs = seen.observed, float(seen.totals.prod())
    selectivity = float(observed[0]) / pairs if pairs > 0.0 else 0.0
    means = observed / observed[0] if observed[0] > 0.0 else np.zeros(len(observed))
    return selectivity, np.asarray(means)


def product_form(sizes: F64, selectivity: float, means: F64) -> F64:
    """Results and sums: σ times all sizes, times α."""
    return np.asarray(selectivity * sizes.prod() * means)


def guess_of(seen: Seen, sizes: F64, values: F64, spread: F64) -> Guess:
    """A guess that multiplies everything by the same factor."""
    observed = seen.observed
    safe = np.where(observed != 0.0, observed, 1.0)
    scale = np.where(observed != 0.0, values / safe, 1.0)
    told = np.where(observed != 0.0, values, 0.0)
    return Guess(None, scale, told, spread, sizes)


def squared_errors(guess: Guess, truth: Truth) -> F64:
    """How far a guess was off, as a share of what it said: [value]."""
    said = np.where(guess.values != 0.0, guess.values, 1.0)
    off = np.where(guess.values != 0.0, (truth.values - guess.values) / said, 0.0)
    return np.asarray(np.minimum(off**2, 4.0))
