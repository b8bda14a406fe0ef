"""How many results an event misses when a part of its partners is forgotten, if they lie evenly.

An event x of time 0 finds, of each other stream l, events whose windows end at b or later. With T
the largest time in a result, events of l lie in [max(T, b) - W_l, T], and T is at most W_x. The
share that is left follows from the number of such combinations, compared with that for b = 0.

>>> lost = Forgotten((5, 5, 5))
>>> lost.units(0, np.array([0, 3, 6, 11])) * 1000 // UNITS
array([   0,  362,  725, 1000])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.kernels.records import F64, I64

UNITS = 2**20  # all results of an event
_FINE = 256  # points between which shares are interpolated


class Forgotten:
    """Shares of results, as whole numbers of `UNITS`, so that sums do not depend on their order.

    Parameters
    ----------
    lengths
        Windows of the streams, both ends included.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self._tables = [_table(lengths, s) for s in range(len(lengths))]

    def units(self, stream: int, behind: I64) -> I64:
        """What events of `stream` miss that are so far `behind` what is kept."""
        at, lost = self._tables[stream]
        return np.rint(np.interp(behind, at, lost) * UNITS).astype(np.int64)


def _table(lengths: Sequence[int], stream: int) -> tuple[F64, F64]:
    own = lengths[stream]
    others = np.array([length for s, length in enumerate(lengths) if s != stream], np.float64)
    last = own + others.min() + 1  # from here on nothing is left
    at = np.unique(np.linspace(0, last, min(_FINE, int(last)) + 1))
    steps = np.linspace(0, own, min(_FINE, own) + 1)
    width = own / max(1, len(steps) - 1)
    hidden = np.maximum(at[:, None] - steps, 0.0)  # [b, T]: so much of each window is forgotten
    there = np.maximum(others[:, None, None] + 1 - hidden, 0.0)
    before = np.maximum(there - 1, 0.0)  # without those of time T
    of_newest = np.prod(there, axis=0)
    left = of_newest[:, 0] + width * (of_newest - np.prod(before, axis=0))[:, 1:].sum(axis=1)
    return at, 1.0 - left / left[0]
