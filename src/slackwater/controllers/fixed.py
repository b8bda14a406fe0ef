"""The baselines: a fixed K, and K that follows the largest delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.controllers.controller import Interval
from slackwater.query.join import JoinQuery


@dataclass(frozen=True)
class FixedSlack:
    """K = `start` for ever, or never less than any delay so far."""

    start: int
    follows_delay: bool = False
    every: int | None = None

    def statistics(self, query: JoinQuery) -> None:
        """Nothing has to be learnt."""

    def next_slack(self, interval: Interval) -> int:
        """Never called: there is no adaptation interval."""
        return interval.slack

    def state(self) -> dict[str, Any]:
        """Nothing was learnt."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""
