"""PECJ's analytical estimator with low overhead: adaptive exponential moving averages (5.1).

The rate of a stream is taken over the time of which all events have arrived: n events until the
last arrival, less the usual delay. So the window will have N = n W / (a - d) events. The program of
the authors limits that in two ways, and so does this. While the window lasts, N is at most twice n.
When it is over, a - d says nothing any more (with delays far longer than the window it would be a
part of the window, whatever is missing), and N is at most 1.1 n. The program decides that it is
over by the average delay of a key, which begins at 0: for the first event of a key that is an
eighth of its delay.

Sizes are followed from window to window by averages whose decay adapts to their errors (Trigg and
Leach); the filters of selectivity and mean values follow the last window at once, as theirs do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.observation import Estimate, Truth, WindowObservation
from slackwater.compensation.parameters import squared_errors

_REMEMBERED = 50.0  # windows
_MOST = 2.0  # times what there is
_MOST_AFTER = 1.1  # the same when the window is over
_FIRST = 1 / 8  # of a delay: the average after the first event
_NEWEST = 0.2  # weight of the newest error


class AdaptiveAverage:
    """A moving average that follows at once when its errors have one sign.

    >>> average = AdaptiveAverage()
    >>> [round(average.follow(x), 2) for x in (1.0, 1.0, 5.0, 5.0)]
    [1.0, 1.0, 5.0, 5.0]
    >>> [round(average.follow(x), 2) for x in (4.0, 6.0, 4.0)]
    [4.56, 5.46, 5.26]
    """

    def __init__(self) -> None:
        self.known: tuple[float, float, float] | None = None  # value, mean error, mean size of it

    def preview(self, number: float) -> float:
        """Return what the average would be with this number too."""
        return self._step(number)[0]

    def follow(self, number: float) -> float:
        """Add a number; return the average."""
        self.known = self._step(number)
        return self.known[0]

    def _step(self, number: float) -> tuple[float, float, float]:
        if self.known is None:
            return number, 0.0, 0.0
        value, error, size = self.known
        off = number - value
        error += _NEWEST * (off - error)
        size += _NEWEST * (abs(off) - size)
        decay = abs(error) / size if size > 0.0 else 0.0
        return value + decay * off, error, size


class AemaEstimator:
    """Rates from delays, everything else as observed."""

    def __init__(self, n_streams: int, n_values: int) -> None:
        self._sizes = [AdaptiveAverage() for _ in range(n_streams)]
        self._off = ForgettingMean(_REMEMBERED, (n_values,))

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""
        sizes = [a.preview(n) for a, n in zip(self._sizes, _sizes(observation), strict=True)]
        more = math.prod(
            size / max(n, 1.0) for size, n in zip(sizes, observation.totals, strict=True)
        )
        known = self._off.weight > 0.0
        spread = np.sqrt(self._off.value) if known else np.full(len(observation.observed), np.inf)
        # σ and α are as observed, so all values grow by the same factor
        scale = np.full(len(spread), more)
        return Estimate(None, scale, more * observation.observed, spread, np.array(sizes))

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:
        """Follow the observation, and remember the errors of the estimate."""
        for average, size in zip(self._sizes, _sizes(observation), strict=True):
            average.follow(size)
        self._off.add(squared_errors(estimate, truth))

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {"sizes": [average.known for average in self._sizes], "off": self._off.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for average, known in zip(self._sizes, state["sizes"], strict=True):
            average.known = None if known is None else tuple(known)
        self._off.resume(state["off"])


def _sizes(observation: WindowObservation) -> list[float]:
    """Return how many events each stream will have, from this window alone."""
    sizes = []
    for n, last, delay in zip(
        observation.totals.tolist(), observation.latest, observation.delay, strict=True
    ):
        time = max(float(last - delay), 1e-9)
        is_over = last > observation.length + _FIRST * delay
        most = _MOST_AFTER if is_over else _MOST
        sizes.append(n * min(max(observation.length / time, 1.0), most))
    return sizes
