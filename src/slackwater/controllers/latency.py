"""Results in time: the largest K that a latency allows.

The join waits for the slowest stream. A result comes out when its slack is over and the slowest
stream is there too, so its latency is K and the lead of the fastest stream over the slowest: the
Thesis' Eq. 5.19 with the same K for both streams. The lead is the mean one of the ADWIN windows,
rounded to g.
"""

from __future__ import annotations

from slackwater.controllers.controller import Adaptive, Interval
from slackwater.query.goals import Latency
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.stats.statistics import Statistics


class LatencyController(Adaptive):
    """K = the limit less the lead of the fastest stream, and no less than 0."""

    def __init__(self, query: JoinQuery, goal: Latency) -> None:
        super().__init__(query, goal)
        self._limit = to_units(goal.limit, query.unit, "latency")
        self.start = self._limit  # all of it: no lead is known yet

    def statistics(self, query: JoinQuery) -> Statistics:
        """Leads."""
        return Statistics(query, self.every, self._granularity, keep=self.every)

    def next_slack(self, interval: Interval) -> int:
        """What the lead leaves over."""
        delays = interval.statistics.delays
        lead = int(delays.leads().max()) * delays.granularity
        return max(0, self._limit - lead)
