"""Events of overlapping windows by *pane*: the longest spans that windows have in common."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np

from slackwater.kernels.records import I64


class Panes:
    """Numbers of events by pane, in arrival order.

    Parameters
    ----------
    length, step
        Length of a window, and time from one window to the next.

    Examples
    --------
    >>> panes = Panes(length=20, step=10)
    >>> panes.add(np.array([0, 1, 2]), np.array([3, 14, 5]))
    [0, 1]
    >>> list(panes.windows_of(1, closed=0)), panes.events(-10).tolist(), panes.events(0).tolist()
    ([0, 10], [0, 2], [0, 1, 2])
    """

    def __init__(self, length: int, step: int) -> None:
        self._length, self._step = length, step
        self._pane = gcd(length, step)
        self._events: dict[int, list[I64]] = {}

    def add(self, numbers: I64, ts: I64) -> list[int]:
        """Add events; return the panes that they are in."""
        pane = ts // self._pane
        order = np.argsort(pane, kind="stable")
        edges = np.flatnonzero(np.diff(pane[order])) + 1
        found = []
        for own in np.split(order, edges) if len(order) else []:
            found.append(int(pane[own[0]]))
            self._events.setdefault(found[-1], []).append(numbers[own])
        return found

    def windows_of(self, pane: int, closed: int) -> Iterator[int]:
        """Return the starts of the windows that contain `pane` and end after `closed`."""
        begin = pane * self._pane
        first = -((self._length - self._pane - begin) // self._step) * self._step
        for start in range(first, begin + 1, self._step):
            if start + self._length > closed:
                yield start

    def events(self, start: int) -> I64:
        """Return the events of a window, in arrival order."""
        panes = range(start // self._pane, (start + self._length) // self._pane)
        parts = [part for pane in panes for part in self._events.get(pane, ())]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def drop(self, start: int) -> None:
        """Forget the panes that no window after the one at `start` contains."""
        for pane in range(start // self._pane, (start + self._step) // self._pane):
            self._events.pop(pane, None)

    def all_events(self) -> I64:
        """Return the events of all panes."""
        parts = (part for own in self._events.values() for part in own)
        return np.concatenate([np.empty(0, np.int64), *parts])
