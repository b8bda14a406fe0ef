"""How many times the K that a controller wants would have been enough.

Rules for K are chosen by how they did. Of many rules some did well by luck, and a burst that is
later than all before it is in none of them. So beside the query runs K itself, times seventeen
factors from 1 to 4, and each notes in which periods it would have lost too much. The margin is the
smallest factor that held in nine of ten of the last periods: 1 where the rules are right, and more
where bursts have outgrown them again and again. It begins when five periods are over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.records import F64

# Chosen on the data that decision 26 names.
_HELD = 0.9  # of the periods
_FIRST = 5.0  # periods that must be over: before, a bad one says little
_CREDIT = 4.5  # good periods that every factor has to its credit at the start
_STEPS = 17
_PER_OCTAVE = 8

_FACTORS = 2.0 ** (np.arange(_STEPS) / _PER_OCTAVE)


class Margin:
    """The losses of K times each factor, period by period.

    A period has `period` intervals, and `n_blocks` blocks. `fade` is the weight of an interval in
    the share of bad periods.
    """

    def __init__(self, n_blocks: int, fade: float, period: int) -> None:
        self._fade = fade
        self._first = 1.0 - (1.0 - fade) ** (_FIRST * period)
        self._credit = 1.0 - (1.0 - fade) ** (_CREDIT * period)
        self._slack = np.zeros(_STEPS)
        self._in_force = np.zeros(_STEPS)
        self._lost = np.zeros((n_blocks, _STEPS))  # in the last period, youngest block first
        self._bad = np.zeros(_STEPS)  # share of bad periods, so far as it is known

    def turn_blocks(self, passed: int) -> None:
        """Move on by so many blocks."""
        if passed > 0:
            kept = len(self._lost) - passed
            self._lost[passed:] = self._lost[:kept].copy()
            self._lost[:passed] = 0.0

    def judge(self, beyond: F64, edges: F64, advance: float, allowed: float) -> None:
        """Count what each factor would have lost in the last interval.

        ``beyond[b]`` of its results are in bucket b of lateness or later. The common clock has
        advanced by `advance`, and slack in force rises no faster (see `kernels.back_test.judge`).
        """
        reached = np.minimum(self._slack, self._in_force + advance / 2)
        first = np.searchsorted(edges, reached, side="right")
        self._lost[0] += beyond[np.minimum(first, len(beyond) - 1)]
        self._in_force = np.minimum(self._slack, self._in_force + advance)
        self._bad += self._fade * ((self._lost.sum(axis=0) > allowed) - self._bad)

    def follow(self, slack: float) -> None:
        """Take the K that the controller wants from now on."""
        self._slack = slack * _FACTORS

    def factor(self, known: float) -> float:
        """The margin; `known` is how much of the share of bad periods is known."""
        if known < self._first:
            return 1.0
        held = self._bad <= (1.0 - _HELD) * (known + self._credit)
        return float(_FACTORS[np.argmax(held)] if held.any() else _FACTORS[-1])

    # ---- for a snapshot

    _LEARNT = ("slack", "in_force", "lost", "bad")

    def state(self) -> dict[str, Any]:
        """All that is remembered, as plain data."""
        return {name: getattr(self, f"_{name}").tolist() for name in self._LEARNT}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for name in self._LEARNT:
            getattr(self, f"_{name}")[...] = state[name]
