"""Results in time: the largest K that a latency allows.

Who is waited for is the slowest stream. A result comes out when its slack is over and the slowest
stream is there too, so its latency is K and the lead of the fastest stream over the slowest: the
Thesis' Eq. 5.19 with the same K for both streams. The lead is the mean one of the ADWIN windows,
rounded to g.
"""

from __future__ import annotations

from typing import Any

from slackwater.goal import Latency
from slackwater.goals.controller import Interval
from slackwater.query import Query
from slackwater.stats.statistics import Statistics
from slackwater.units import to_units


class LatencyController:
    """K = the limit less the lead of the fastest stream, and no less than 0."""

    follows_delay = False

    def __init__(self, query: Query, goal: Latency) -> None:
        self.every = to_units(goal.every, query.unit, "every")
        self._granularity = to_units(goal.granularity, query.unit, "granularity")
        self._limit = to_units(goal.limit, query.unit, "latency")

    @property
    def start(self) -> int:
        """All of it: no lead is known yet."""
        return self._limit

    def statistics(self, query: Query) -> Statistics:
        """Leads."""
        return Statistics(query, self.every, self._granularity, keep=self.every)

    def next_slack(self, interval: Interval) -> int:
        """What the lead leaves over."""
        delays = interval.statistics.delays
        lead = int(delays.leads().max()) * delays.granularity
        return max(0, self._limit - lead)

    def state(self) -> dict[str, Any]:
        """Nothing of its own."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""
