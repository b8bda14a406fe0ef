"""Averages that forget, as much as they have to remember.

>>> mean = Recent(4)
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


class Recent:
    """The mean of about the last `n` values or arrays; of all, until there are as many."""

    def __init__(self, n: float, shape: tuple[int, ...] = ()) -> None:
        self._most = n
        self.value = np.zeros(shape)
        self.weight = 0.0  # how many it is of

    def add(self, value: float | F64) -> None:
        """One more."""
        self.weight = min(self.weight + 1.0, self._most)
        self.value = self.value + (value - self.value) / self.weight

    def forget(self, n: float) -> None:
        """Let what there is count like `n` values."""
        self.weight = min(self.weight, n)

    def state(self) -> list[Any]:
        """As plain data."""
        return [self.value.tolist(), self.weight]

    def resume(self, state: list[Any]) -> None:
        """Go on from `state`."""
        self.value, self.weight = np.asarray(state[0], float), state[1]
