"""Rows without partner of outer joins in order, which take their turns among the pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.controllers.controller import Interval
from slackwater.engine.matched import as_results, joined, some, together
from slackwater.engine.waits import Waits, correction_reach, row_waits
from slackwater.events.limits import Limits
from slackwater.events.log import Log
from slackwater.joins.conditions import Conditions
from slackwater.joins.matcher import Matcher, MatcherState
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels.records import I64, ClockSeries, MatchedRows, Results
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.stats.corrections import CorrectionReach

_NO_ROWS = together([])


class RowsAlone:
    """Finds events without partner, and keeps their rows until the pairs before them are there."""

    def __init__(self, query: JoinQuery, conditions: Conditions, log: Log, limits: Limits) -> None:
        self.matcher = Matcher(query, conditions, log, limits)
        self.waits: Waits | None = None
        self.corrections: CorrectionReach | None = None
        self._reach = 0  # events are kept at least so long
        if isinstance(query.goal, Recall) and query.goal.unmatched is not None:
            self.waits = row_waits(query, self.matcher)
            self.corrections = correction_reach(query, self.matcher)
        self._emits_late = query.late == "emit"
        self._log = log
        self._rows = _NO_ROWS  # of the step, which have not been given out

    def step(self, begin: int, end: int, behind: I64, before: I64, clock: int) -> None:
        """Take in these arrivals: how far each is behind the common clock, and the join's clock.

        `clock` is the join's clock behind the last of them.
        """
        ts = self._log.ts[begin - self._log.base : end - self._log.base]
        series = ClockSeries(before, np.append(before[1:], clock), ts + behind)
        self._keep(self.matcher.process(begin, end, series))

    def move_up(self, time: int) -> None:
        """The join's clock moves up to `time`."""
        self._keep(self.matcher.move_up(time))

    def flush(self) -> None:
        """End of input."""
        self._keep(self.matcher.flush())

    def state(self) -> dict[str, Any]:
        """The state without the events."""
        waits = None if self.waits is None else self.waits.state()
        corrections = None if self.corrections is None else self.corrections.state()
        return {
            "matcher": self.matcher.state()._asdict(),
            "waits": waits,
            "corrections": corrections,
            "reach": self._reach,
        }

    def resume(self, state: dict[str, Any], kept: I64, undecided: I64, same_goal: bool) -> None:
        """Go on from `state` with these events, whose marks are there."""
        self.matcher.resume(MatcherState(**state["matcher"]), kept, undecided)
        if self.waits is not None and state["waits"] is not None:
            self.waits.resume(state["waits"], same_goal)
        if self.corrections is not None and state["corrections"] is not None:
            self.corrections.resume(state["corrections"])
            self._reach = state["reach"]

    def waits_of(self, interval: Interval) -> Interval:
        """`interval`, which ends, with the waits that rows needed in it."""
        assert self.waits is not None
        seen = self.waits.of(interval)
        if self.corrections is not None and seen.lateness is not None:
            self._reach = self.corrections.next_length(seen.lateness.counts)
        return seen

    def set_keep(self, length: int, join: WindowJoin) -> None:
        """Keep events so long behind the join's clock; the window join forgets the same events."""
        if self._reach > length:
            length = self._reach
            join.set_retention(length)
        for s in range(2):
            join.forget_before(s, self.matcher.kept_from(s))
        self.matcher.set_keep(length)

    def _keep(self, found: Iterator[MatchedRows]) -> None:
        parts = [
            some(rows, slice(None) if self._emits_late else np.flatnonzero(rows.late == 0))
            for rows in found
        ]
        self._rows = together([self._rows, *parts])

    def among(self, pairs: Results, during: I64) -> tuple[Results, I64, I64]:
        """The next pairs, given out with these arrivals, and the rows whose turn has come.

        That is before the last of the pairs. Returns also with which arrival each of them is given
        out, and what it does.
        """
        rows, before = self._rows, self._are_before(pairs, during)
        self._rows = some(rows, np.flatnonzero(~before))
        rows = some(rows, np.flatnonzero(before))
        if len(rows.ts) == 0:
            return pairs, during, np.zeros(len(during), np.int64)
        alone = as_results(rows, self._log)
        both = joined(pairs, alone)
        at = np.concatenate([during, rows.during])
        late = both.late > 0
        order = np.lexsort((np.where(late, 0, both.ts), ~late, at))  # pairs first at equal times
        change = np.concatenate([np.zeros(len(during), np.int64), rows.change])
        return both.take(order), at[order], change[order]

    def rest(self) -> tuple[Results, I64, I64]:
        """The rows behind the last pair of a step."""
        rows, self._rows = self._rows, _NO_ROWS
        return as_results(rows, self._log), rows.during, rows.change

    def _are_before(self, pairs: Results, during: I64) -> NDArray[np.bool_]:
        """Which rows are given out before the last of these pairs."""
        rows, at, on_time, ts = self._rows, during[-1], pairs.late[-1] == 0, pairs.ts[-1]
        earlier = rows.ts < ts if on_time else np.zeros(len(rows.ts), bool)
        same = (rows.late == 0) == on_time
        among = (same & earlier) | ((rows.late > 0) & on_time)
        before: NDArray[np.bool_] = (rows.during < at) | ((rows.during == at) & among)
        return before
