"""What the sample tells: where partners are found, how many, and in which order to look for them.

The sample's events look for partners without prejudice (window shredding, GrubJoin V-B.1). For each
*direction* of the join, the stream of the event that looks, it is known how many candidates there
were, how many passed a step, and in which basic windows: of those that passed, and of those that
ended up in results. What is old is forgotten: half of it in a quarter of a window's time, unless
too little is left to tell anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.kernels.records import F64, Shed
from slackwater.kernels.shed import FIRST, LATER

_ENOUGH = 500.0  # results in the sample: below this nothing is forgotten
_WEIGHT_OF_PASSED = 4.0  # results that what passed counts for, where results are few
_WEIGHT_OF_NOTHING = 2.0  # the same for the assumption that all basic windows are equal
_CLEARLY = 0.8  # another stream comes first if its partners are fewer by this factor
_LEARNT = ("entered", "offered", "compared", "passed", "joined", "lags")


class Learning:
    """The statistics in `shed`, read and forgotten."""

    def __init__(self, shed: Shed, lengths: Sequence[int], per_stream: bool) -> None:
        self._shed = shed
        self._lengths = lengths
        self._per_stream = per_stream
        self._m = len(lengths)
        self._windows = np.zeros_like(shed.entered)  # events in the windows, for each time entered
        self._entered = shed.entered.copy()  # before this interval

    # ---- what is known

    def candidates(self, which: int, i: int, s: int, window: F64) -> float:
        """Events of `s` that one of `i` has to look at in the whole window."""
        windows = self._windows[which, i, s]
        share = self._shed.offered[which, i, s] / windows if windows > 0.0 else 1.0
        return float(share * window[s])

    def matches(self, which: int, i: int, s: int, window: F64) -> float:
        """How many of them join; where little was seen, what others found has a say."""
        shed = self._shed
        compared, passed = shed.compared[which].sum(), shed.passed[which].sum()
        candidates = self.candidates(which, i, s, window)
        usual = passed / compared if passed > 0.0 else 1.0 / max(candidates, 1.0)
        seen = shed.passed[which, i, s].sum() + 0.5
        return float(seen / (shed.compared[which, i, s] + 0.5 / usual) * candidates)

    def scores(self, i: int, s: int) -> F64:
        """Of each basic window of `s`, the results that an event of `i` finds there."""
        if self._per_stream:
            return _even(lag_scores(i, s, self._shed, self._lengths))
        n = self._shed.n[s]
        return _even(self._shed.joined[i, s, :n] + _WEIGHT_OF_PASSED * self.pass_scores(i, s))

    def pass_scores(self, i: int, s: int, which: int = FIRST) -> F64:
        """The same for events that pass the step, whatever becomes of them."""
        if self._per_stream:
            return _even(lag_scores(i, s, self._shed, self._lengths))
        passed = self._shed.passed[which, i, s, : self._shed.n[s]]
        return _even(passed)

    def orders(
        self, current: Sequence[Sequence[int]], tied: Sequence[set[int]], window: F64
    ) -> list[list[int]]:
        """Join orders, few partners first; each stream is `tied` to one before it.

        What is nearly as good as something else stays where it is.
        """
        return [self._order(i, list(order), tied, window) for i, order in enumerate(current)]

    def _order(
        self, i: int, current: list[int], tied: Sequence[set[int]], window: F64
    ) -> list[int]:
        few = {
            s: self.matches(FIRST if s in tied[i] else LATER, i, s, window)
            * (1.0 if place else _CLEARLY)
            for place, s in enumerate(current)
        }
        order: list[int] = []
        bound = {i}
        while len(order) < len(current):
            near = [s for s in current if s not in bound and tied[s] & bound]
            order.append(min(near, key=few.__getitem__))
            bound.add(order[-1])
        return order

    # ---- time goes on

    def close(self, share: float, window: F64) -> None:
        """An interval is over, with so many events in the windows.

        A `share` of what is known is kept, or as much as is needed to tell anything.
        """
        shed = self._shed
        self._windows += (shed.entered - self._entered) * window
        results = shed.joined.sum() / max(self._m - 1, 1)
        if results > _ENOUGH:
            kept = max(share, _ENOUGH / results)
            self._windows *= kept
            for name in _LEARNT:
                getattr(shed, name)[...] *= kept
        self._entered = shed.entered.copy()

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        known = {name: getattr(self._shed, name).ravel().tolist() for name in _LEARNT}
        return known | {"windows": self._windows.tolist(), "before": self._entered.tolist()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for name in _LEARNT:
            array = getattr(self._shed, name)
            array[...] = np.reshape(state[name], array.shape)
        self._windows = np.array(state["windows"])
        self._entered = np.array(state["before"])


def _even(scores: F64) -> F64:
    """Shares of one, with a little for basic windows where nothing was seen yet."""
    more = scores + _WEIGHT_OF_NOTHING / len(scores)
    return np.asarray(more / more.sum())


# ---- the paper's own


def lag_scores(i: int, s: int, shed: Shed, lengths: Sequence[int]) -> F64:
    """Scores of the basic windows of `s` from one histogram of lags per stream (Eq. 2 and 4)."""
    ends = np.arange(shed.n[s] + 1) * float(shed.basic[s])
    if i == 0:
        return -np.diff(_frequency(s, -ends, shed, lengths))
    if s == 0:
        return np.diff(_frequency(i, ends, shed, lengths))
    width = max(1, int(shed.basic[s]) // 4)
    middles = -lengths[s] + (np.arange(shed.lags.shape[1]) + 0.5) * width
    below = _frequency(i, middles[:, None] + ends[None, :], shed, lengths)
    return np.asarray(shed.lags[s] @ np.diff(below, axis=1))


def _frequency(s: int, until: F64, shed: Shed, lengths: Sequence[int]) -> F64:
    """How many results have a lag of `s` below `until`; buckets are even inside."""
    width = max(1, int(shed.basic[s]) // 4)
    edges = -lengths[s] + np.arange(shed.lags.shape[1] + 1) * float(width)
    total = np.concatenate([[0.0], np.cumsum(shed.lags[s])])
    return np.asarray(np.interp(until, edges, total))
