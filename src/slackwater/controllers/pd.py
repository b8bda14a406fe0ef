"""The PD controller of the Thesis (6.2.3): K follows the error of the measured quality.

At each boundary, with the error e = target - measured quality: ``K += Kp e + Kd (e - last e)``,
never below 0 and never above the largest delay so far. It has no model of delays; it learns that K
was too small by losing results.

The quality is that of the intervals of result time that have become complete since the last
boundary: the join's clock has passed their end by the longest window, so that most of their late
events have come. While the join is silent none becomes complete, and K stays. With `overall` it is
that of the whole run so far.

Gains (`goal.gains`) are durations: what an error of 1, and its change by 1, add to K. The Thesis
tunes them by hand after Ziegler and Nichols, which needs a gain at which K swings evenly; with
losses that vary by themselves from second to second there is none. The recipe here: take
both gains alike, and the largest with which K does not yet vary (standard deviation) by more than
half of its mean. Of 50, 200, 500 and 1000 ms on the Thesis' data at a target of 0.95 that is
200 ms, the default: K varies by 0.33, 0.48, 0.69 and 0.84 of its mean. It is for delays of some
hundreds of milliseconds; for minutes of delay take minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.kernels.delay_scale import longest_delay
from slackwater.kernels.records import BEFORE
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.stats.statistics import Statistics


class PdController(RecallSeeker):
    """K follows the measured quality."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self._overall = goal.overall
        self._kp, self._kd = (to_units(gain, query.unit, "gains") for gain in goal.gains)
        lengths = [n for n in query.lengths if n is not None]
        self._window = max(lengths, default=self.every)
        self._slack = 0.0  # before it is rounded to g
        self._error: float | None = None  # the last one
        self._measured = BEFORE  # results up to here have been judged
        self._largest = 0  # delay

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays, and the results of the last period and window."""
        keep = self.over + self._window
        return Statistics(query, self.every, self._granularity, keep)

    def next_slack(self, interval: Interval) -> int:
        """One step of the controller."""
        delays = interval.statistics.delays
        used = np.flatnonzero(delays.latest.any(axis=0))
        if len(used):
            self._largest = max(self._largest, longest_delay(used[-1], delays.granularity))
        quality = self._quality(interval)
        if quality is None:
            return interval.slack
        error = self._target - quality
        change = 0.0 if self._error is None else error - self._error
        self._error = error
        wanted = self._slack + self._kp * error + self._kd * change
        self._slack = min(max(wanted, 0.0), float(self._largest))
        return round(self._slack / self._granularity) * self._granularity

    def _quality(self, interval: Interval) -> float | None:
        """What was measured since the last time; None: nothing."""
        known, clock = interval.statistics, interval.join_time
        if clock == BEFORE:
            return None
        end = (clock - self._window) // self.every * self.every
        begin = max(self._measured, end - self.over)
        if end <= begin:
            return None
        self._measured = end
        if self._overall:
            produced, lost = float(known.produced), float(known.lost)
        else:
            produced, lost = known.results.between(begin, end)[:2].sum(axis=1).tolist()
        true = produced + lost
        return produced / true if true else None

    def state(self) -> dict[str, Any]:
        """Where it is."""
        return {
            "slack": self._slack,
            "error": self._error,
            "measured": self._measured,
            "largest": self._largest,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._slack, self._error = state["slack"], state["error"]
        self._measured, self._largest = state["measured"], state["largest"]
