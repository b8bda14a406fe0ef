"""The Thesis' controller of `Recall` for two streams: late degree distributions with decay.

The late degree of an event is its delay. Each stream has a record of them (Alg. 3) that decays by a
factor per adaptation interval (Alg. 4). At each boundary K is the smallest multiple of g whose
estimated quality (Eq. 5.12) reaches the target (Alg. 2).

Both streams late by {.6, .2, .1, .1}, windows of 3 and 2 units, no slack (Thesis 5.3):

>>> late = np.array([0.6, 0.2, 0.1, 0.1])
>>> round(quality(late, late, 3, 2), 3)
0.465
>>> round(quality(behind(late, 1), behind(late, 1), 3, 2), 3)
0.72

Corrected: the sums of Eq. 5.11 and 5.12 run to W - 1 (only so it is 46.5 %), the denominator is
W_A + W_B - 1; Algorithm 2 is a while loop (as do ... while, K would never be 0) and stops at Λ_max,
or earlier at the largest late degree on record.

What the text leaves open, and what we do:

- The time unit of Eq. 5.12. Ours is g: of late degrees, of windows and of leads, each rounded to it
  (a late degree upwards). A tuple-count window is as long as its tuples take.
- Λ_max, the last degree, of which 5.2 only says that it counts all degrees of Λ_max "or more". Ours
  is `goal.most_late`, or else the longest window or `over`, whichever is longer. K = Λ_max passes
  for enough for all of them: it is never larger, whatever is late.
- A record never decays to 0. What is below a billionth of an event is forgotten, so that K can
  fall again when it follows the largest late degree.
- `overall`. The Thesis has only that the target is then that of the whole run. We take for the
  next interval the quality q that makes all results so far and those of the next interval reach
  it together: ``produced + q n >= target (original + n)``, with n the true results of an interval.
  q is at least 0 and at most 1.
- Nr_original is estimated "with the data rates" (6.1.1). That is possible for its own query, where
  all pairs within the windows are results: r_A r_B (W_A + W_B - U) in a unit of time. With a
  condition, losses are counted, and n is the mean of the intervals of the last period, `over`:
  what is late is then known only when it comes, and the overall quality looks better than it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.kernels.delay_scale import ENDS, bucket_below, longest_delay
from slackwater.kernels.records import BEFORE, F64, I64
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.query.windows import Tuples
from slackwater.stats.buckets import BUCKETS, used
from slackwater.stats.statistics import Statistics

_FORGOTTEN = 1e-9  # of an event
_LONGEST = 2**20  # steps of a window


def behind(late: F64, buffer: int) -> F64:
    """Eq. 5.10: the late degree distribution behind buffers of `buffer` units, K + L."""
    in_order = late[: buffer + 1].sum()
    return np.concatenate([[in_order], late[buffer + 1 :]])


def quality(late_a: F64, late_b: F64, window_a: int, window_b: int) -> float:
    """Eq. 5.12: the share of results that streams with these late degrees produce."""
    arrived_a, arrived_b = _arrived(late_a, window_a), _arrived(late_b, window_b)
    produced = arrived_a[0] * arrived_b[0]
    produced += arrived_a[0] * arrived_b[1:].sum()
    produced += arrived_b[0] * arrived_a[1:].sum()
    return float(produced / (window_a + window_b - 1))


def _arrived(late: F64, window: int) -> F64:
    """Which share of the events of i = 0, 1, ... units ago has arrived, throughout a window."""
    arrived = np.ones(window)
    known = min(window, len(late))
    arrived[:known] = np.cumsum(late)[:known]
    return arrived


def quality_curve(
    lates: tuple[F64, F64], windows: tuple[int, int], leads: tuple[int, int], most: int
) -> F64:
    """`quality` behind the leads and a K at the end of bucket 0, 1, ..., `most`, all at once.

    Up to 4,096 steps of g each is a bucket of its own; see `kernels.delay_scale`.
    """
    k = ENDS[: most + 1]
    now, window_sum = [], []
    for late, window, lead in zip(lates, windows, leads, strict=True):
        arrived = np.append(np.cumsum(late), 1.0)  # at the end of each bucket, and beyond
        ends = ENDS[: len(arrived)]
        total = np.concatenate([[0.0], np.cumsum(arrived[:-1] * np.diff(ends))])  # before it
        now.append(arrived[_below(k + lead, ends)])
        first, last = k + lead + 1, k + lead + window
        window_sum.append(_total_at(last, ends, arrived, total))
        window_sum[-1] -= _total_at(first, ends, arrived, total)
    produced = now[0] * now[1] + now[0] * window_sum[1] + now[1] * window_sum[0]
    return np.asarray(produced / (windows[0] + windows[1] - 1))


def _below(steps: I64, ends: I64) -> I64:
    """The last bucket that ends at so many steps or before."""
    return np.asarray(np.searchsorted(ends, steps, side="right") - 1)


def _total_at(steps: I64, ends: I64, arrived: F64, total: F64) -> F64:
    """The sum of `arrived` over all steps before `steps`."""
    bucket = _below(steps, ends)
    return np.asarray(total[bucket] + (steps - ends[bucket]) * arrived[bucket])


class LateDegreeController(RecallSeeker):
    """Smallest K whose estimated quality reaches the target."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self._decay, self._overall = goal.decay, goal.overall
        self._most_late = -1  # Λ_max in steps; -1: as long as windows or `over`
        if goal.most_late is not None:
            self._most_late = -(-to_units(goal.most_late, query.unit) // self._granularity)
        self._streams, self._lengths = query.streams, query.lengths
        self._joins_all = query.on is None and not query.has_condition
        self._overlap = query.slide_units
        self._record = np.zeros((2, BUCKETS))  # R of Alg. 3
        self._original = 0.0  # true results up to the time below, by data rates
        self._tracked = BEFORE

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays, and the results of the last period."""
        return Statistics(query, self.every, self._granularity, self.over)

    def next_slack(self, interval: Interval) -> int:
        """Alg. 2, then Alg. 4."""
        delays = interval.statistics.delays
        self._record += delays.latest
        slack = self._smallest_slack(interval)
        self._record *= self._decay
        self._record[self._record < _FORGOTTEN] = 0.0
        return slack

    def _smallest_slack(self, interval: Interval) -> int:
        totals = self._record.sum(axis=1)
        if not totals.all():
            return interval.slack  # a stream of which nothing is known
        windows = self._steps(self._windows(interval.statistics.delays.rates()))
        most_late = self._most_late
        if most_late < 0:
            most_late = max(*windows, self.over // self._granularity)
        most = min(used(self._record.sum(axis=0)) - 1, bucket_below(most_late))
        late = self._record[:, : most + 1] / totals[:, None]
        late[:, most] += self._record[:, most + 1 :].sum(axis=1) / totals  # Λ_max or more
        curve = quality_curve((late[0], late[1]), windows, self._leads(interval), most)
        enough = np.flatnonzero(curve >= self._wanted(interval))
        return longest_delay(enough[0] if len(enough) else most, self._granularity)

    def _leads(self, interval: Interval) -> tuple[int, int]:
        """L_A and L_B, in steps."""
        a, b = interval.local
        if min(a, b) == BEFORE:
            return 0, 0
        g = self._granularity
        return round(max(0, a - b) / g), round(max(0, b - a) / g)

    def _windows(self, rates: F64) -> list[float]:
        """W_A and W_B: how many units of time a window holds."""
        return [
            stream.window.count / max(rate, 1e-9)
            if isinstance(stream.window, Tuples)
            else (length or 0) + 1  # both ends belong to it
            for stream, length, rate in zip(self._streams, self._lengths, rates, strict=True)
        ]

    def _steps(self, lengths: list[float]) -> tuple[int, int]:
        a, b = (min(max(1, round(length / self._granularity)), _LONGEST) for length in lengths)
        return a, b

    def _wanted(self, interval: Interval) -> float:
        """The quality that the next interval needs."""
        if not self._overall or interval.join_time == BEFORE:
            return self._target
        original, n = self._by_rates(interval) if self._joins_all else self._counted(interval)
        if n == 0:
            return self._target
        wanted = self._target * (original + n) - interval.statistics.produced
        return min(max(wanted / n, 0.0), 1.0)

    def _by_rates(self, interval: Interval) -> tuple[float, float]:
        """Nr_original so far and of an interval, estimated from data rates."""
        known = interval.statistics
        rates = known.delays.rates()
        in_unit = float(rates.prod()) * (sum(self._windows(rates)) - self._overlap)
        if self._tracked == BEFORE:  # of the first interval it is what was seen
            self._original, self._tracked = float(known.produced + known.lost), interval.join_time
        self._original += in_unit * (interval.join_time - self._tracked)
        self._tracked = interval.join_time
        return self._original, in_unit * self.every

    def _counted(self, interval: Interval) -> tuple[float, float]:
        """The same, with losses as they were counted."""
        known = interval.statistics
        end = interval.join_time // self.every * self.every
        produced, lost = known.results.between(end - self.over, end)[:2]
        n = float(produced.sum() + lost.sum()) / max(1, len(produced))
        return float(known.produced + known.lost), n

    def state(self) -> dict[str, Any]:
        """The records, and what was tracked."""
        at = [np.flatnonzero(record) for record in self._record]
        counts = [r[i].tolist() for r, i in zip(self._record, at, strict=True)]
        tracked = [self._original, self._tracked]
        return {"at": [i.tolist() for i in at], "counts": counts, "tracked": tracked}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._record[:] = 0.0
        for record, at, counts in zip(self._record, state["at"], state["counts"], strict=True):
            record[np.array(at, np.int64)] = counts
        self._original, self._tracked = state["tracked"]
