"""What every goal gives the engine: a controller that chooses K.

A controller owns no buffers. It is called at the end of each adaptation interval (event time) with
the statistics of the engine and returns the next K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from slackwater.kernels.records import BEFORE
from slackwater.query.goals import InputQuantile, Latency, Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.stats.lateness import LatenessOf
from slackwater.stats.statistics import Statistics


@dataclass(frozen=True)
class Interval:
    """What is known at an adaptation boundary."""

    end: int  # largest local time
    slack: int  # K in force
    join_time: int  # the join's clock; BEFORE: it has not begun
    local: tuple[int, ...]  # local time of each stream
    statistics: Statistics
    common_clock: int = BEFORE  # of the clocked stage
    most_behind: int = 0  # how far an arrival was behind the largest local time, at most
    lateness: LatenessOf | None = None  # of results, if it is measured


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

    def statistics(self, query: JoinQuery) -> Statistics | None:
        """What the engine has to learn; None: nothing."""

    def next_slack(self, interval: Interval) -> int:
        """K for the time behind `interval`."""

    def state(self) -> dict[str, Any]:
        """What it has learnt itself, as plain data."""

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""


class Adaptive:
    """What controllers that reconsider K have in common: their clock and resolution, in units.

    They start without slack and, unless they override this, have learnt nothing of their own.
    """

    follows_delay = False
    start = 0

    def __init__(self, query: JoinQuery, goal: Recall | InputQuantile | Latency) -> None:
        self.every = goal.interval(query.unit)
        self._granularity = to_units(goal.granularity, query.unit, "granularity")

    def state(self) -> dict[str, Any]:
        """Nothing of its own."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""


class RecallSeeker(Adaptive):
    """A controller that wants a recall over a period."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self.over = to_units(goal.over, query.unit, "over")
        self._target = goal.target
