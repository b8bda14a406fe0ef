"""What was learnt from the sample: where partners are, how many, and in which order to search.

Sampled events search for partners everywhere with equal chance (window shredding, GrubJoin V-B.1).
For each *direction* of the join, the stream of the searching event, the statistics have the number
of candidates, how many passed a step, and in which basic windows: of those that passed, and of
those that became part of results. Old statistics lose weight: half of it in a quarter of a window's
time, unless too few results would be left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.kernels.records import F64, Shed
from slackwater.kernels.shed import FIRST, LATER, lag_width

_ENOUGH = 500.0  # results in the sample: below this nothing loses weight
_WEIGHT_OF_PASSED = 4.0  # weight, in results, of events that passed, where results are few
_WEIGHT_OF_EQUAL = 2.0  # the same of the assumption that all basic windows are equal
_CLEARLY = 0.8  # another stream comes first if its partners are fewer by this factor
_LEARNT = ("entered", "offered", "compared", "passed", "joined", "lags")


class Learning:
    """Reads the statistics in `shed`, and lets old ones lose weight.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    lengths
        Length of the window of each stream.
    per_stream
        Score basic windows by lags, one histogram per stream, as in the paper.
    """

    def __init__(self, shed: Shed, lengths: Sequence[int], per_stream: bool) -> None:
        self._shed = shed
        self._lengths = lengths
        self._per_stream = per_stream
        self._m = len(lengths)
        self._windows = np.zeros_like(shed.entered)  # sum of window sizes over all entries
        self._entered = shed.entered.copy()  # before this interval

    # ---- estimates

    def candidates(self, which: int, i: int, s: int, window: F64) -> float:
        """Return the events of `s` that one of `i` is compared with in the whole window."""
        windows = self._windows[which, i, s]
        share = self._shed.offered[which, i, s] / windows if windows > 0.0 else 1.0
        return float(share * window[s])

    def matches(self, which: int, i: int, s: int, window: F64) -> float:
        """Return how many of them join; with few observations, those of other steps count too."""
        if self._per_stream:
            return self._selectivity(i, s) * self.candidates(which, i, s, window)
        shed = self._shed
        compared, passed = shed.compared[which].sum(), shed.passed[which].sum()
        candidates = self.candidates(which, i, s, window)
        usual = passed / compared if passed > 0.0 else 1.0 / max(candidates, 1.0)
        passed_here = shed.passed[which, i, s].sum() + 0.5
        return float(passed_here / (shed.compared[which, i, s] + 0.5 / usual) * candidates)

    def _selectivity(self, i: int, s: int) -> float:
        """Return σ of two streams, from either direction, as in the paper (IV-C).

        It is that of pairs: of first steps. With few observations, those of other pairs count too.
        """
        passed, compared = self._shed.passed[FIRST], self._shed.compared[FIRST]
        usual = max(float(passed.sum()), 0.5) / max(float(compared.sum()), 1.0)
        own = float(passed[i, s].sum() + passed[s, i].sum()) + 0.5
        return own / (float(compared[i, s] + compared[s, i]) + 0.5 / usual)

    def scores(self, i: int, s: int) -> F64:
        """Return the share of results that an event of `i` finds in each basic window of `s`."""
        if self._per_stream:
            return _even(lag_scores(i, s, self._shed, self._lengths))
        n = self._shed.n[s]
        return _even(self._shed.joined[i, s, :n] + _WEIGHT_OF_PASSED * self.pass_scores(i, s))

    def pass_scores(self, i: int, s: int, which: int = FIRST) -> F64:
        """Return the same for events that pass the step, whether or not they become results."""
        if self._per_stream:
            return _even(lag_scores(i, s, self._shed, self._lengths))
        passed = self._shed.passed[which, i, s, : self._shed.n[s]]
        return _even(passed)

    def orders(
        self, current: Sequence[Sequence[int]], tied: Sequence[set[int]], window: F64
    ) -> list[list[int]]:
        """Return join orders, few partners first; each stream is `tied` to one before it.

        The present first stream stays unless another one is clearly better. The paper's order is
        that of selectivities.
        """
        return [self._order(i, list(order), tied, window) for i, order in enumerate(current)]

    def _order(
        self, i: int, current: list[int], tied: Sequence[set[int]], window: F64
    ) -> list[int]:
        if self._per_stream:
            few = {s: self._selectivity(i, s) for s in current}
        else:
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

    # ---- intervals

    def close(self, share: float, window: F64) -> None:
        """End an interval in which `window` events were in each window.

        Statistics keep a `share` of their weight, or as much as leaves enough results.
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
        """Return plain data to continue from."""
        known = {name: getattr(self._shed, name).ravel().tolist() for name in _LEARNT}
        return known | {"windows": self._windows.tolist(), "before": self._entered.tolist()}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for name in _LEARNT:
            array = getattr(self._shed, name)
            array[...] = np.reshape(state[name], array.shape)
        self._windows = np.array(state["windows"])
        self._entered = np.array(state["before"])


def _even(scores: F64) -> F64:
    """Return shares that add up to 1, with a little for basic windows without observations."""
    more = scores + _WEIGHT_OF_EQUAL / len(scores)
    return np.asarray(more / more.sum())


# ---- the paper's scores


def lag_scores(i: int, s: int, shed: Shed, lengths: Sequence[int]) -> F64:
    """Return scores of the basic windows of `s` from one histogram per stream (Eq. 2 and 4)."""
    ends = np.arange(shed.n[s] + 1) * float(shed.basic[s])
    if i == 0:
        return -np.diff(_frequency(s, -ends, shed, lengths))
    if s == 0:
        return np.diff(_frequency(i, ends, shed, lengths))
    width = lag_width(int(shed.basic[s]))
    middles = -lengths[s] + (np.arange(shed.lags.shape[1]) + 0.5) * width
    below = _frequency(i, middles[:, None] + ends[None, :], shed, lengths)
    return np.asarray(shed.lags[s] @ np.diff(below, axis=1))


def _frequency(s: int, until: F64, shed: Shed, lengths: Sequence[int]) -> F64:
    """Return how many results have a lag of `s` below `until`, even within buckets."""
    width = lag_width(int(shed.basic[s]))
    edges = -lengths[s] + np.arange(shed.lags.shape[1] + 1) * float(width)
    total = np.concatenate([[0.0], np.cumsum(shed.lags[s])])
    return np.asarray(np.interp(until, edges, total))
