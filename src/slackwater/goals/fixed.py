"""The baselines: a fixed K, and K that follows the largest delay."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.goals.controller import Controller, Interval
from slackwater.query import MaxSlack, Query


@dataclass(frozen=True)
class FixedSlack:
    """K = `start` for ever, or never less than any delay seen."""

    start: int
    follows_delay: bool = False
    every: int | None = None

    def next_slack(self, interval: Interval) -> int:
        """Never asked: there is no adaptation interval."""
        return interval.slack


def controller_for(query: Query) -> Controller:
    """The controller of the query's goal."""
    return FixedSlack(query.slack, follows_delay=isinstance(query.goal, MaxSlack))
