"""Rows that are due at a time: those of events without partner, and as-of rows.

A row of time u is due with the first arrival behind which the join's clock is past u, not before
its event has come. So the order of decisions depends on clocks alone, and is known before any
partner is looked for.

>>> queue = Undecided()
>>> queue.add(np.array([0, 1]), np.array([5, 3]))  # events 0 and 1, due at 5 and 3
>>> queue.take(first=0, after=np.array([2, 4]))  # the clock is 2 behind event 0, then 4
(array([1]), array([1]))
>>> queue.take(first=2, after=np.array([4, 9]))  # and 9 behind event 3
(array([0]), array([3]))
"""

from __future__ import annotations

import numpy as np

from slackwater.kernels.records import BEFORE, I64, NEVER

_NARROW = 2**16
_NONE = np.empty(0, np.int64)


class Undecided:
    """Events by the time at which their rows are due, in blocks that came together."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, I64, I64]] = []  # the earliest time, events, times

    def add(self, events: I64, due: I64) -> None:
        """These events have arrived, in this order: each has a larger number than all before it."""
        if len(events):
            self._blocks.append((int(due.min()), events, due))

    def take(self, first: int, after: I64) -> tuple[I64, I64]:
        """The rows that are due by the last of these arrivals, and the arrivals they are due at.

        `after` is the join's clock behind each arrival from `first` on.
        """
        if len(after) == 0:
            return _NONE, _NONE
        events, due = self._by_time(int(after[-1]))
        at = np.maximum(first + np.searchsorted(after, due, side="right"), events)
        order = _stable_order(at)
        return events[order], at[order]

    def take_before(self, time: int) -> I64:
        """The rows that are due before `time`, in the order of their times."""
        return self._by_time(time)[0]

    def events(self) -> I64:
        """The events whose rows are not decided."""
        return np.concatenate([_NONE, *(block[1] for block in self._blocks)])

    def _by_time(self, clock: int) -> tuple[I64, I64]:
        """Take out what is due before `clock`: the events by the time they are due, and that."""
        events, due = self._remove(clock)
        order = _stable_order(due)  # the events ascend, so it is theirs among equal times
        return events[order], due[order]

    def _remove(self, clock: int) -> tuple[I64, I64]:
        """The events that are due before `clock`, and when."""
        kept, events, due = [], [_NONE], [_NONE]
        for block in self._blocks:
            if block[0] >= clock:
                kept.append(block)
                continue
            is_due = block[2] < clock
            events.append(block[1][is_due])
            due.append(block[2][is_due])
            if not is_due.all():
                rest = block[2][~is_due]
                kept.append((int(rest.min()), block[1][~is_due], rest))
        self._blocks = kept
        return np.concatenate(events), np.concatenate(due)


def _stable_order(numbers: I64) -> I64:
    """Which places the numbers have when they are sorted; equal ones keep their order."""
    low, high = int(numbers.min(initial=NEVER)), int(numbers.max(initial=BEFORE))
    if high - low < _NARROW:  # numpy counts such numbers instead of comparing them
        return np.argsort((numbers - low).astype(np.uint16), kind="stable")
    return np.argsort(numbers, kind="stable")
