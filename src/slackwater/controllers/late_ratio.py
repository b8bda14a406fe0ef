"""`DropRatio` of a join: no more than a share of all events reaches the join late.

The same choice as for the heartbeat of one stream (`drop_ratio`), by the delays of all streams and
with K in place of the distance. The period is a second of event time.
"""

from __future__ import annotations

from typing import Any

from slackwater.controllers.controller import Interval
from slackwater.controllers.drop_ratio import Beyond
from slackwater.kernels.delay_scale import longest_delay
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.query.window_goals import DropRatio
from slackwater.stats.buckets import BUCKETS
from slackwater.stats.statistics import Statistics

_EVERY, _GRANULARITY = "1 second", "10 ms"


class LateRatioController:
    """Steers K by the share of events that were late."""

    follows_delay = False
    start = 0

    def __init__(self, query: JoinQuery, goal: DropRatio) -> None:
        self.every = to_units(_EVERY, query.unit)
        self._granularity = to_units(_GRANULARITY, query.unit)
        self._ratio = goal.ratio
        self._beyond = Beyond(BUCKETS)

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays, and how many events were late."""
        return Statistics(query, self.every, self._granularity, keep=self.every)

    def next_slack(self, interval: Interval) -> int:
        """The smallest K that should keep within the budget."""
        known, delays = interval.statistics, interval.statistics.delays
        behind = delays.latest.sum(axis=0)
        n = int(behind.sum())
        if n == 0:
            return interval.slack
        allowed = self._ratio * n
        self._beyond.learn(behind, allowed)
        budget = self._ratio * (known.events + n) - known.late
        best = self._beyond.within(budget, self._ratio * known.events)
        if best is None:
            furthest = self._beyond.furthest(allowed, known.events + n)
            return 2 * longest_delay(furthest, self._granularity)
        return longest_delay(best, self._granularity)

    def state(self) -> dict[str, Any]:
        """What it has learnt."""
        return {"beyond": self._beyond.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._beyond.resume(state["beyond"])
