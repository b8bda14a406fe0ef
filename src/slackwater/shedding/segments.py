"""Which parts of the windows are searched: segments of neighbouring basic windows, by age."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels import shed as fields
from slackwater.kernels.records import F64, Shed
from slackwater.shedding.join_orders import JoinOrders


class HarvestSegments:
    """Writes the chosen segments to `shed`, where the join kernel reads them.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    lengths
        Length of the window of each stream.
    orders
        The present join orders.
    """

    def __init__(self, shed: Shed, lengths: Sequence[int], orders: JoinOrders) -> None:
        self._shed = shed
        self._lengths = lengths
        self._orders = orders

    def choose(self, start: int, stream: int, ages: Sequence[int]) -> None:
        """Let events of `start` search only these basic windows of `stream`."""
        shed, step = self._shed, self._orders.current[start].index(stream)
        ranges = _ranges(sorted(ages))
        shed.n_segments[start, step] = len(ranges)
        for k, (first, last) in enumerate(ranges):
            is_last = last == shed.n[stream] - 1
            end = self._lengths[stream] if is_last else (last + 1) * shed.basic[stream] - 1
            shed.segment[start, step, 2 * k : 2 * k + 2] = first * shed.basic[stream], end

    def searched_share(self, start: int, stream: int) -> F64:
        """Return the share of the events of `start` that search each basic window of `stream`."""
        shed, step = self._shed, self._orders.current[start].index(stream)
        share = np.zeros(int(shed.n[stream]))
        if not shed.ctl[fields.SHEDDING]:
            return share + 1.0
        for k in range(shed.n_segments[start, step]):
            first, last = shed.segment[start, step, 2 * k : 2 * k + 2] // shed.basic[stream]
            share[first : last + 1] = shed.share[start]
        return share

    def is_searched(self, stream: int) -> NDArray[np.bool_]:
        """Return which basic windows of `stream` are searched from any other stream."""
        shed = self._shed
        used = np.zeros(shed.joined.shape[2], bool)
        if not shed.ctl[fields.SHEDDING]:
            return np.ones_like(used)
        for i, order in enumerate(self._orders.current):
            for j in (j for j, s in enumerate(order) if s == stream):
                for k in range(shed.n_segments[i, j]):
                    first, last = shed.segment[i, j, 2 * k : 2 * k + 2]
                    basic = shed.basic[stream]
                    used[first // basic : last // basic + 1] = True
        return used


def _ranges(ages: Sequence[int]) -> list[tuple[int, int]]:
    """Join neighbours: [0, 1, 4] is 0 to 1 and 4 to 4."""
    found: list[tuple[int, int]] = []
    for age in ages:
        if found and found[-1][1] == age - 1:
            found[-1] = (found[-1][0], age)
        else:
            found.append((age, age))
    return found
