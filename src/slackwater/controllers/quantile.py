"""The usual watermark rule: K covers a share of the delays, whatever that means for results."""

from __future__ import annotations

from math import ceil

import numpy as np

from slackwater.controllers.controller import Adaptive, Interval
from slackwater.kernels.delay_scale import longest_delay
from slackwater.query.goals import InputQuantile
from slackwater.query.join import JoinQuery
from slackwater.stats.statistics import Statistics


class QuantileController(Adaptive):
    """Smallest multiple of g that a share of all delays in the ADWIN windows does not exceed."""

    def __init__(self, query: JoinQuery, goal: InputQuantile) -> None:
        super().__init__(query, goal)
        self._target = goal.target

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays."""
        return Statistics(query, self.every, self._granularity, keep=self.every)

    def next_slack(self, interval: Interval) -> int:
        """The quantile."""
        delays = interval.statistics.delays
        within = np.cumsum(delays.histogram.sum(axis=0))
        if within[-1] == 0:
            return interval.slack
        needed = ceil(self._target * int(within[-1]) - 1e-6)  # 0.07 * 100 is a bit above 7
        return longest_delay(int(np.searchsorted(within, needed)), delays.granularity)
