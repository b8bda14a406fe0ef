"""Rows that `Matcher` gives, on their way to the output: those that are not for the user left out.

Semi joins in order give a row when the join's clock is at its time; until then it waits here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slackwater.events.log import Log
from slackwater.kernels import matching
from slackwater.kernels import partners as kernels
from slackwater.kernels.records import I64, NONE, ClockSeries, MatchedRows, Results

_NOTHING = MatchedRows(*(np.empty(0, np.int64) for _ in MatchedRows._fields))


def some(rows: MatchedRows, which: I64 | slice) -> MatchedRows:
    """Some of the rows, as copies."""
    return MatchedRows(*(column[which].copy() for column in rows))


def together(parts: Iterable[MatchedRows]) -> MatchedRows:
    """All of them, one behind the other."""
    return MatchedRows(*map(np.concatenate, zip(_NOTHING, *parts, strict=True)))


def in_turn(rows: MatchedRows) -> MatchedRows:
    """Rows in the order in which they are given out: late ones first, the others by time."""
    late = rows.late > 0
    order = np.lexsort((np.where(late, 0, rows.ts), ~late, rows.during))
    return some(rows, order)


class ReadyRows:
    """Rows of a semi join whose times the clock has not reached."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting = _NOTHING

    def add(self, rows: MatchedRows) -> MatchedRows:
        """Keep the rows that are ready at a time; return the others."""
        ready = rows.change == kernels.READY
        if ready.any():
            self._waiting = together([self._waiting, some(rows, np.flatnonzero(ready))])
        return some(rows, np.flatnonzero(~ready))

    def put_back(self, events: I64, ts: I64) -> None:
        """Rows of these events wait, after a restart."""
        none = np.full(len(events), NONE)
        self._waiting = MatchedRows(events, none, ts, events, none, np.zeros(len(ts), np.int64))

    def take(self, first: int, after: I64 | None) -> MatchedRows:
        """The rows whose times the clock reaches in a step that begins with arrival `first`.

        `after` is the join's clock behind each arrival; None: the end of input.
        """
        rows = self._waiting
        is_due = np.ones(len(rows.ts), bool)
        if after is not None:
            is_due = rows.ts <= after[-1] if len(after) else ~is_due
        self._waiting = some(rows, np.flatnonzero(~is_due))
        # an event may have got an earlier time since, or have been given out with it and forgotten
        due = some(rows, np.flatnonzero(is_due & (rows.left >= self._log.base)))
        times = self._log.marks[due.left - self._log.base, kernels.VALUE]
        due = some(due, np.flatnonzero(times == due.ts))
        at = np.full(len(due.ts), self._log.end - 1)
        if after is not None:
            at = np.maximum(first + np.searchsorted(after, due.ts), due.during)
        return due._replace(during=at, change=np.zeros(len(at), np.int64))


def as_results(rows: MatchedRows, log: Log) -> Results:
    """The rows of the members by number; below 0 where there is none."""
    n = len(rows.ts)
    row, last, late = np.empty((2, n), np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)
    matching.members(rows, log.records(), row, last, late)
    return Results(row, rows.ts, rows.during, last, late)


def joined(first: Results, second: Results) -> Results:
    """Both, one behind the other."""
    return Results(
        np.concatenate([first.row, second.row], axis=1),
        np.concatenate([first.ts, second.ts]),
        np.concatenate([first.position, second.position]),
        np.concatenate([first.last, second.last]),
        np.concatenate([first.late, second.late]),
    )


def top_series(log: Log, first: int, series: ClockSeries, top: int) -> I64:
    """The largest local time with each arrival of a step; `top` is that before it."""
    own = slice(first - log.base, first - log.base + len(series.before))
    return np.maximum.accumulate(np.maximum(log.ts[own], top))
