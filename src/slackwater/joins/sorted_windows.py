"""Which conditions can use basic windows sorted by value, and the arrays these lie in.

A condition like ``abs(a.x - b.x) <= 1`` between streams that no key ties (an ε-join) finds its
partners by bisection. Each stream is sorted by one column at most, the first that such a condition
reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.joins.conditions import Conditions
from slackwater.joins.visit_order import steps_from
from slackwater.kernels.records import I64, NONE, Index
from slackwater.query.expression import Band
from slackwater.query.join import JoinQuery

_MATRICES = ("ints", "floats")


class SortedWindows:
    """The sorted basic windows of a query.

    Parameters
    ----------
    query
        An ε-join.
    bands
        Its conditions that are bands.
    conditions
        Where the columns lie.
    n
        Basic windows per window, at most.
    """

    def __init__(
        self, query: JoinQuery, bands: Sequence[Band], conditions: Conditions, n: int
    ) -> None:
        m = len(query.streams)
        self._names = query.names
        self._places = {
            (self._names[c.stream], c.name): (_MATRICES.index(c.matrix), c.row)
            for c in conditions.columns.numbers
        }
        self._bands = bands
        sorted_by: dict[str, tuple[str, str]] = {}
        for band in bands:
            for column in (band.left, band.right):
                sorted_by.setdefault(column[0], column)
        self._sorted_by = sorted_by
        columns = np.full((m, 2), NONE, np.int64)
        for s, name in enumerate(self._names):
            if name in sorted_by:
                columns[s] = self._places[sorted_by[name]]
        self.arrays = Index(
            column=columns,
            linked=self._linked(),
            band=np.full((m, m - 1, 3), NONE, np.int64),
            width=np.zeros((m, m - 1)),
            slot=np.full((m, n + 3, 4), NONE, np.int64),
            room=np.zeros((m, 3), np.int64),
            entry=np.zeros((0, 2), np.int64),
            value=np.zeros(0),
        )
        self.set_orders([[step.stream for step in steps_from(s, query.keys)] for s in range(m)])

    def _linked(self) -> I64:
        m = len(self._names)
        found = np.zeros((m, m), np.int64)
        for band in self._bands:
            for column, other in ((band.left, band.right), (band.right, band.left)):
                if column == self._sorted_by[column[0]]:
                    found[self._names.index(other[0]), self._names.index(column[0])] = 1
        return found

    def set_orders(self, orders: Sequence[Sequence[int]]) -> None:
        """Streams are looked for in these orders."""
        self.arrays.band[:] = NONE
        for start, order in enumerate(orders):
            bound = [start]
            for step, stream in enumerate(order):
                self._set_band(start, step, stream, bound)
                bound.append(stream)

    def _set_band(self, start: int, step: int, stream: int, bound: Sequence[int]) -> None:
        own = self._sorted_by.get(self._names[stream])
        for band in self._bands:
            for column, other in ((band.left, band.right), (band.right, band.left)):
                parent = self._names.index(other[0])
                if column == own and parent in bound:
                    self.arrays.band[start, step] = parent, *self._places[other]
                    self.arrays.width[start, step] = band.width
                    return

    def reserve(self, n: int) -> None:
        """Have room for all events of a log of `n`; what was sorted is sorted anew."""
        if n <= self.arrays.room[0, 1]:
            return
        m, size = len(self._names), 2 * n
        room = self.arrays.room
        room[:, 0] = size * np.arange(m)
        room[:, 1] = size
        room[:, 2] = 0
        self.arrays.slot[:] = NONE
        self.arrays = self.arrays._replace(
            entry=np.zeros((m * size, 2), np.int64), value=np.zeros(m * size)
        )


def sorted_windows(query: JoinQuery, conditions: Conditions, n: int) -> SortedWindows | None:
    """The sorted windows of a query, if it has a condition for them and no key."""
    keyless = len(query.keys) == 1 and not any(query.keys[0].columns.values())
    if not keyless or query.condition is None:
        return None
    bands = [part.band for part in query.condition.parts]
    found = [band for band in bands if band is not None]
    return SortedWindows(query, found, conditions, n) if found else None
