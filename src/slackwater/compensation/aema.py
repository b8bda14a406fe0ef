"""PECJ's analytical estimator with low overhead: adaptive exponential moving averages (5.1).

The rate of a stream is that of the time in which all of it could have arrived: n events until the
last arrival, less the usual delay. So the window will have N = n W / (a - d) events, and at most
twice as many as there are, as in the authors' program. Sizes are followed from window to window by
averages whose decay adapts to their errors (Trigg and Leach); the filters of selectivity and mean
values follow the last window at once, as theirs do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.compensation.memory import Recent
from slackwater.compensation.parameters import (
    guess_of,
    parameters,
    product_form,
    squared_errors,
)
from slackwater.compensation.seen import Guess, Seen, Truth
from slackwater.kernels.records import F64

_REMEMBERED = 50.0  # windows
_MOST = 2.0  # times what there is
_NEWEST = 0.2  # weight of the newest error


class AdaptiveAverages:
    """Moving averages that follow at once where they have erred in one direction.

    >>> averages = AdaptiveAverages(1)
    >>> [round(float(averages.follow(np.array([x]))[0]), 2) for x in (1.0, 1.0, 5.0, 5.0)]
    [1.0, 1.0, 5.0, 5.0]
    >>> [round(float(averages.follow(np.array([x]))[0]), 2) for x in (4.0, 6.0, 4.0)]
    [4.56, 5.46, 5.26]
    """

    def __init__(self, n: int) -> None:
        self._value: F64 | None = None
        self._error, self._size = np.zeros(n), np.zeros(n)

    def with_(self, seen: F64) -> F64:
        """What the averages would be if these were seen too; what is NaN is not."""
        return self._step(seen)[0]

    def follow(self, seen: F64) -> F64:
        """These were seen."""
        self._value, self._error, self._size = self._step(seen)
        return self._value

    def _step(self, seen: F64) -> tuple[F64, F64, F64]:
        known = np.isfinite(seen)
        if self._value is None:
            return np.where(known, seen, 0.0), self._error, self._size
        off = np.where(known, np.where(known, seen, 0.0) - self._value, 0.0)
        newest = np.where(known, _NEWEST, 0.0)
        error = self._error + newest * (off - self._error)
        size = self._size + newest * (np.abs(off) - self._size)
        decay = np.abs(error) / np.where(size > 0.0, size, 1.0)
        return self._value + decay * off, error, size

    def state(self) -> list[Any]:
        """As plain data."""
        value = None if self._value is None else self._value.tolist()
        return [value, self._error.tolist(), self._size.tolist()]

    def resume(self, state: list[Any]) -> None:
        """Go on from `state`."""
        self._value = None if state[0] is None else np.array(state[0])
        self._error, self._size = np.array(state[1]), np.array(state[2])


class AemaEstimator:
    """Rates from delays, everything else as it is seen."""

    def __init__(self, n_streams: int, n_values: int) -> None:
        self._sizes = AdaptiveAverages(n_streams)
        self._off = Recent(_REMEMBERED, (n_values,))

    def guess(self, seen: Seen) -> Guess:
        """What the window will be."""
        sizes = self._sizes.with_(_sizes(seen))
        values = product_form(sizes, *parameters(seen))
        known = self._off.weight > 0.0
        spread = np.sqrt(self._off.value) if known else np.full(len(values), np.inf)
        return guess_of(seen, sizes, values, spread)

    def learn(self, seen: Seen, guess: Guess, truth: Truth) -> None:
        """Follow what was seen, and remember how far off it was."""
        self._sizes.follow(_sizes(seen))
        self._off.add(squared_errors(guess, truth))

    def state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""
        return {"sizes": self._sizes.state(), "off": self._off.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._sizes.resume(state["sizes"])
        self._off.resume(state["off"])


def _sizes(seen: Seen) -> F64:
    """How many events each stream will have, as this window alone has it."""
    time = np.maximum(seen.latest - seen.delay, 1e-9)
    return np.asarray(seen.totals * np.clip(seen.length / time, 1.0, _MOST))
