"""When windows are reported and when they are complete.

A window is reported when the arrival clock passes its deadline. It is complete when the clock is
past its end by the largest delay so far (or by `retention`). Both happen at *instants*, the
deadlines of all windows, so that they do not depend on how the input is cut into batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.kernels.records import BEFORE, I64, NEVER
from slackwater.query.aggregate import AggregateQuery


class Lateness(NamedTuple):
    """How late events are for their windows."""

    is_lost: NDArray[np.bool_]  # all windows of the event are complete
    is_late: NDArray[np.bool_]  # one of them was reported without it
    behind: I64  # arrival minus the deadline of the first window


class WindowDeadlines:
    """The windows that are not complete, by start.

    Parameters
    ----------
    query
        Windows, deadline and retention.
    clock
        The arrival clock of the engine.
    """

    def __init__(self, query: AggregateQuery, clock: ArrivalClock) -> None:
        self._length, self._step, self._deadline = query.length, query.step, query.deadline
        self._retained = query.retained
        self._clock = clock
        self._to_report: list[int] = []  # a heap
        self._open: list[int] = []  # a heap
        self._known: set[int] = set()  # the same
        self.closed = BEFORE  # windows that end by then are complete

    def begin(self, start: int, due: int) -> None:
        """Open a window when its first event arrives; `due` is the next instant."""
        if start in self._known:
            return
        self._known.add(start)
        heapq.heappush(self._open, start)
        if start + self._deadline >= due:
            heapq.heappush(self._to_report, start)

    def lateness(self, ts: I64, arrival: I64) -> Lateness:
        """Compare arrivals with the deadlines of their windows."""
        last_end = ts // self._step * self._step + self._length
        first = -((self._length - 1 - ts) // self._step) * self._step
        behind = arrival - (first + self._deadline)
        is_lost = np.asarray(last_end <= self.closed)
        return Lateness(is_lost, (behind > 0) & ~is_lost, behind)

    # ---- instants

    def next_due(self) -> int:
        """Return the first instant at which a window is reported or complete; or NEVER."""
        due = NEVER
        if self._to_report:
            due = self._to_report[0] + self._deadline
        if self._open:
            due = min(due, self._instant_from(self._open[0] + self._length + self._awaited))
        return due

    def instant_after(self, arrival: int) -> int:
        """Return the first instant that is not before `arrival`; complete what ended before."""
        due = self._instant_from(arrival)
        if self._clock.now != BEFORE:
            self.closed = max(self.closed, due - self._step - self._awaited)
        return due

    def _instant_from(self, now: int) -> int:
        """Return the first deadline of any window that is not before `now`."""
        return -((self._deadline - now) // self._step) * self._step + self._deadline

    @property
    def _awaited(self) -> int:
        """How long after its end a window waits for events: until the deadline at least.

        What arrives before it belongs into the result, even if no delay was as long as that.
        """
        known = self._clock.max_delay if self._retained is None else self._retained
        return max(known, self._deadline - self._length)

    def take_complete(self, now: int) -> Iterator[int]:
        """Remove and return the windows that are complete at the instant `now`."""
        self.closed = max(self.closed, now - self._awaited)
        while self._open and self._open[0] + self._length <= self.closed:
            yield self._close_first()

    def take_due(self, now: int) -> Iterator[int]:
        """Remove and return the windows to report at the instant `now`; not complete ones."""
        while self._to_report and self._to_report[0] + self._deadline <= now:
            start = heapq.heappop(self._to_report)
            if start in self._known:
                yield start

    def take_all(self) -> Iterator[int]:
        """Remove and return all windows: the input has ended."""
        while self._open:
            start = self._close_first()
            self.closed = max(self.closed, start + self._length)
            yield start
        self._to_report = []

    def _close_first(self) -> int:
        start = heapq.heappop(self._open)
        self._known.discard(start)
        return start

    # ---- snapshot

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {
            "open": sorted(self._open),
            "to_report": sorted(self._to_report),
            "closed": self.closed,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._open, self._to_report = list(state["open"]), list(state["to_report"])
        self._known = set(self._open)
        self.closed = state["closed"]
