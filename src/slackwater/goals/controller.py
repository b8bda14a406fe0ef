"""What every goal gives the engine: a controller that chooses K.

A controller owns no buffers. It is asked at the end of each adaptation interval (event time) with
the statistics of the engine and returns the next K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from slackwater.query import Query
from slackwater.stats.statistics import Statistics


@dataclass(frozen=True)
class Interval:
    """What is known at an adaptation boundary."""

    end: int  # largest local time
    slack: int  # K in force
    join_time: int  # the join's clock; BEFORE: nothing has left yet
    local: tuple[int, ...]  # local time of each stream
    statistics: Statistics


class Controller(Protocol):
    """Chooses K."""

    @property
    def start(self) -> int:
        """K before anything has arrived."""

    @property
    def follows_delay(self) -> bool:
        """Whether K rises at once to the delay of every event that exceeds it."""

    @property
    def every(self) -> int | None:
        """Length of the adaptation interval; None: K is never reconsidered."""

    def statistics(self, query: Query) -> Statistics | None:
        """What the engine has to learn; None: nothing."""

    def next_slack(self, interval: Interval) -> int:
        """K for the time behind `interval`."""

    def state(self) -> dict[str, Any]:
        """What it has learnt itself, as plain data."""

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
