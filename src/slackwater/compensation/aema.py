"""PECJ's analytical estimator with low overhead: adaptive exponential moving averages (5.1).

The rate of a stream is that of the time in which all of it could have arrived: n events until the
last arrival, less the usual delay. So the window will have N = n W / (a - d) events, and at most
twice as many as there are, as in the authors' program. Sizes are followed from window to window by
averages whose decay adapts to their errors (Trigg and Leach); the filters of selectivity and mean
values follow the last window at once, as theirs do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.compensation.forgetting import Recent
from slackwater.compensation.observation import Guess, Seen, Truth
from slackwater.compensation.parameters import squared_errors

_REMEMBERED = 50.0  # windows
_MOST = 2.0  # times what there is
_NEWEST = 0.2  # weight of the newest error


class AdaptiveAverage:
    """A moving average that follows at once where it has erred in one direction.

    >>> average = AdaptiveAverage()
    >>> [round(average.follow(x), 2) for x in (1.0, 1.0, 5.0, 5.0)]
    [1.0, 1.0, 5.0, 5.0]
    >>> [round(average.follow(x), 2) for x in (4.0, 6.0, 4.0)]
    [4.56, 5.46, 5.26]
    """

    def __init__(self) -> None:
        self.known: tuple[float, float, float] | None = None  # value, mean error, mean size of it

    def with_(self, seen: float) -> float:
        """What the average would be if this were seen too."""
        return self._step(seen)[0]

    def follow(self, seen: float) -> float:
        """Learn from an observation."""
        self.known = self._step(seen)
        return self.known[0]

    def _step(self, seen: float) -> tuple[float, float, float]:
        if self.known is None:
            return seen, 0.0, 0.0
        value, error, size = self.known
        off = seen - value
        error += _NEWEST * (off - error)
        size += _NEWEST * (abs(off) - size)
        decay = abs(error) / size if size > 0.0 else 0.0
        return value + decay * off, error, size


class AemaEstimator:
    """Rates from delays, everything else as it is seen."""

    def __init__(self, n_streams: int, n_values: int) -> None:
        self._sizes = [AdaptiveAverage() for _ in range(n_streams)]
        self._off = Recent(_REMEMBERED, (n_values,))

    def guess(self, seen: Seen) -> Guess:
        """What the window will be."""
        sizes = [a.with_(n) for a, n in zip(self._sizes, _sizes(seen), strict=True)]
        more = math.prod(size / max(n, 1.0) for size, n in zip(sizes, seen.totals, strict=True))
        known = self._off.weight > 0.0
        spread = np.sqrt(self._off.value) if known else np.full(len(seen.observed), np.inf)
        scale = np.full(len(spread), more)  # σ and α are what they are, so all grow alike
        return Guess(None, scale, more * seen.observed, spread, np.array(sizes))

    def learn(self, seen: Seen, guess: Guess, truth: Truth) -> None:
        """Follow what was seen, and remember how far off it was."""
        for average, size in zip(self._sizes, _sizes(seen), strict=True):
            average.follow(size)
        self._off.add(squared_errors(guess, truth))

    def state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""
        return {"sizes": [average.known for average in self._sizes], "off": self._off.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for average, known in zip(self._sizes, state["sizes"], strict=True):
            average.known = None if known is None else tuple(known)
        self._off.resume(state["off"])


def _sizes(seen: Seen) -> list[float]:
    """How many events each stream will have, as this window alone has it."""
    sizes = []
    for n, last, delay in zip(seen.totals.tolist(), seen.latest, seen.delay, strict=True):
        time = max(float(last - delay), 1e-9)
        sizes.append(n * min(max(seen.length / time, 1.0), _MOST))
    return sizes
