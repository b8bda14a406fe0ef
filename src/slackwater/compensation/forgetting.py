"""Means in which old values lose weight.

>>> mean = ForgettingMean(4)
>>> for value in (1.0, 2.0, 3.0):
...     mean.add(value)
>>> float(mean.value)
2.0
>>> for _ in range(40):
...     mean.add(10.0)
>>> round(float(mean.value), 3)
10.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.records import F64


class ForgettingMean:
    """The mean of about the last `n` values or arrays; of all, until there are as many."""

    def __init__(self, n: float, shape: tuple[int, ...] = ()) -> None:
        self._most = n
        self.value = np.zeros(shape)
        self.weight = 0.0  # number of values that it counts as

    def add(self, value: float | F64) -> None:
        """Add a value."""
        self.weight = min(self.weight + 1.0, self._most)
        self.value = self.value + (value - self.value) / self.weight

    def forget(self, n: float) -> None:
        """Let the present mean count as at most `n` values."""
        self.weight = min(self.weight, n)

    def state(self) -> list[Any]:
        """Return plain data to continue from."""
        return [self.value.tolist(), self.weight]

    def resume(self, state: list[Any]) -> None:
        """Continue from `state`."""
        self.value, self.weight = np.asarray(state[0], float), state[1]
