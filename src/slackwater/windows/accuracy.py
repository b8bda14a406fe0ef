"""How wrong the aggregates of windows were, because of the events that were dropped.

Time is cut into bins; each has the count, sum, sum of squares, smallest and largest value of the
events that left in time and of those that were dropped. From them follow the aggregates of a window
as it was emitted, and as it would have been with all events: the relative error of the window. It
is computed when the heartbeat is so far beyond the window's end that no event was ever that late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels.records import F64, I64

_KINDS = 5  # numbers of a bin, as below
_COUNT, _SUM, _SQUARES, _MIN, _MAX = range(_KINDS)
_MOST_EMPTY = 10_000  # bins
_EMPTY = np.array([0.0, 0.0, 0.0, np.inf, -np.inf])


class MeasuredAggregate(NamedTuple):
    """An aggregate whose error is measured: a function, and its column of the values."""

    function: str
    column: int


class WindowAccuracy:
    """Measures the errors of windows; keeps the bins of windows that are not settled.

    Parameters
    ----------
    aggregates
        The error of a window is the largest one of these.
    width
        Length of a bin.
    bins
        Number of bins in a window.
    open_end
        Whether a bin contains its beginning and not its end.
    """

    def __init__(
        self, aggregates: Sequence[MeasuredAggregate], width: int, bins: int, open_end: bool
    ) -> None:
        self._shut = 1 - open_end
        self._aggregates = aggregates
        self._width = width
        self._bins = bins
        columns = max(a.column for a in aggregates) + 1
        self._first = 0  # number of the first bin
        self._kept: F64 = np.empty((0, columns, _KINDS))
        self._dropped: F64 = np.empty((0, columns, _KINDS))

    def add(self, ts: I64, values: F64, is_dropped: np.ndarray) -> None:
        """Add events by time; `values` has a row for each column, NaN where it is null."""
        if len(ts) == 0:
            return
        number = (ts - self._shut) // self._width
        self._reach(int(number.min()), int(number.max()))
        for into, own in ((self._kept, ~is_dropped), (self._dropped, is_dropped)):
            at = number[own] - self._first
            known = at >= 0
            for column, row in enumerate(values):
                good = known & ~np.isnan(row[own])
                place, value = at[good], row[own][good]
                np.add.at(into[:, column, _COUNT], place, 1.0)
                np.add.at(into[:, column, _SUM], place, value)
                np.add.at(into[:, column, _SQUARES], place, value * value)
                np.minimum.at(into[:, column, _MIN], place, value)
                np.maximum.at(into[:, column, _MAX], place, value)

    def settled(self, until: int) -> F64:
        """Return the errors of the windows that end by `until` and were not returned before."""
        n = min(len(self._kept), until // self._width - self._first)
        errors = [self._error(end) for end in range(self._bins, n + 1)]
        gone = max(0, n - self._bins + 1)
        self._first += gone
        self._kept, self._dropped = self._kept[gone:], self._dropped[gone:]
        return np.array([e for e in errors if e is not None])

    def _error(self, end: int) -> float | None:
        """Return the error of the window of the bins before `end`; None: it was empty."""
        inside = slice(end - self._bins, end)
        kept, dropped = _whole(self._kept[inside]), _whole(self._dropped[inside])
        both = _together(kept, dropped)
        if not kept[:, _COUNT].any():
            return None
        return max(_relative(a, kept[a.column], both[a.column]) for a in self._aggregates)

    def _reach(self, low: int, high: int) -> None:
        if len(self._kept) == 0:
            self._first = max(low, self._first)
        more = max(0, high + 1 - self._first - len(self._kept))
        if more > _MOST_EMPTY + 4 * self._bins:  # a gap: windows before it are not measured
            self._first, more = high - 2 * self._bins, 2 * self._bins + 1
            self._kept, self._dropped = self._kept[:0], self._dropped[:0]
        if more:
            shape = (more, *self._kept.shape[1:])
            self._kept = np.concatenate([self._kept, np.broadcast_to(_EMPTY, shape)])
            self._dropped = np.concatenate([self._dropped, np.broadcast_to(_EMPTY, shape)])

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {
            "first": self._first,
            "kept": self._kept.tolist(),
            "dropped": self._dropped.tolist(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        shape = (-1, *self._kept.shape[1:])
        self._first = state["first"]
        self._kept = np.array(state["kept"], np.float64).reshape(shape)
        self._dropped = np.array(state["dropped"], np.float64).reshape(shape)


def _whole(bins: F64) -> F64:
    """Return several bins as one."""
    summed = bins[:, :, :_MIN].sum(axis=0)
    least, most = bins[:, :, _MIN].min(axis=0), bins[:, :, _MAX].max(axis=0)
    return np.concatenate([summed, least[:, None], most[:, None]], axis=1)


def _together(kept: F64, dropped: F64) -> F64:
    return _whole(np.stack([kept, dropped]))


def _relative(aggregate: MeasuredAggregate, kept: F64, both: F64) -> float:
    got, wanted = _value(aggregate.function, kept), _value(aggregate.function, both)
    if got == wanted:
        return 0.0
    return abs(got - wanted) / abs(wanted) if wanted else np.inf


def _value(function: str, numbers: F64) -> float:
    n = numbers[_COUNT]
    if function == "count":
        return float(n)
    if n == 0:
        return 0.0
    match function:
        case "sum":
            return float(numbers[_SUM])
        case "avg":
            return float(numbers[_SUM] / n)
        case "min":
            return float(numbers[_MIN])
        case "max":
            return float(numbers[_MAX])
    spread = numbers[_SQUARES] - numbers[_SUM] ** 2 / n
    return float(np.sqrt(max(spread, 0.0) / max(n - 1, 1)))
