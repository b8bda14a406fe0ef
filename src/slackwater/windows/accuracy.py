"""How wrong the aggregates of windows were, because of the events that were dropped.

Time is cut into bins; each has the count, sum, sum of squares, smallest and largest value of what
left in time and of what was dropped. From them follow the aggregates of a window as it was emitted,
and as it would have been with everything: the relative error of the window. A window is judged when
the heartbeat is so far beyond its end that no event was ever that late.
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


class Watched(NamedTuple):
    """An aggregate whose error counts: a function, and which column of the values it is of."""

    function: str
    column: int


class Errors:
    """The bins that matter still, oldest first.

    Parameters
    ----------
    watched
        The aggregates; the error of a window is that of the worst of them.
    width
        Of a bin.
    bins
        How many of them a window has.
    open_end
        Whether a bin contains its beginning and not its end.
    """

    def __init__(self, watched: Sequence[Watched], width: int, bins: int, open_end: bool) -> None:
        self._shut = 1 - open_end
        self._watched = watched
        self._width = width
        self._bins = bins
        columns = max(w.column for w in watched) + 1
        self._first = 0  # number of the first bin
        self._kept: F64 = np.empty((0, columns, _KINDS))
        self._dropped: F64 = np.empty((0, columns, _KINDS))

    def add(self, ts: I64, values: F64, is_dropped: np.ndarray) -> None:
        """Take in events by time; `values` has a row for each column, NaN where it is null."""
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
        """The errors of the windows that end at or before `until` and were not asked for before."""
        n = min(len(self._kept), until // self._width - self._first)
        errors = [self._error(end) for end in range(self._bins, n + 1)]
        gone = max(0, n - self._bins + 1)
        self._first += gone
        self._kept, self._dropped = self._kept[gone:], self._dropped[gone:]
        return np.array([e for e in errors if e is not None])

    def _error(self, end: int) -> float | None:
        """That of the window of the bins before `end`; None: nothing was emitted."""
        inside = slice(end - self._bins, end)
        kept, dropped = _whole(self._kept[inside]), _whole(self._dropped[inside])
        both = _together(kept, dropped)
        if not kept[:, _COUNT].any():
            return None
        return max(_relative(w, kept[w.column], both[w.column]) for w in self._watched)

    def _reach(self, low: int, high: int) -> None:
        if len(self._kept) == 0:
            self._first = max(low, self._first)
        more = max(0, high + 1 - self._first - len(self._kept))
        if more > _MOST_EMPTY + 4 * self._bins:  # a hole: the windows before it are not judged
            self._first, more = high - 2 * self._bins, 2 * self._bins + 1
            self._kept, self._dropped = self._kept[:0], self._dropped[:0]
        if more:
            shape = (more, *self._kept.shape[1:])
            self._kept = np.concatenate([self._kept, np.broadcast_to(_EMPTY, shape)])
            self._dropped = np.concatenate([self._dropped, np.broadcast_to(_EMPTY, shape)])

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "first": self._first,
            "kept": self._kept.tolist(),
            "dropped": self._dropped.tolist(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        shape = (-1, *self._kept.shape[1:])
        self._first = state["first"]
        self._kept = np.array(state["kept"], np.float64).reshape(shape)
        self._dropped = np.array(state["dropped"], np.float64).reshape(shape)


def _whole(bins: F64) -> F64:
    """Several bins as one."""
    summed = bins[:, :, :_MIN].sum(axis=0)
    least, most = bins[:, :, _MIN].min(axis=0), bins[:, :, _MAX].max(axis=0)
    return np.concatenate([summed, least[:, None], most[:, None]], axis=1)


def _together(kept: F64, dropped: F64) -> F64:
    return _whole(np.stack([kept, dropped]))


def _relative(watched: Watched, kept: F64, both: F64) -> float:
    got, wanted = _value(watched.function, kept), _value(watched.function, both)
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
