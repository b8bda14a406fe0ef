"""What every goal gives the engine: a controller that chooses K.

A controller owns no buffers. It is asked at the end of each adaptation interval (event time) with
the statistics of that interval and returns the next K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Interval:
    """What happened up to an adaptation boundary since the one before."""

    end: int  # largest local time
    slack: int  # K in force
    arrivals: int
    produced: int
    lost: int


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

    def next_slack(self, interval: Interval) -> int:
        """K for the time behind `interval`."""
