"""What advisors share: the result of a goal on a recording, targets, periods and fixed waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.kernels.records import F64, I64
from slackwater.query.goals import Goal
from slackwater.query.units import TimeUnit, to_units

TARGETS = (0.8, 0.9, 0.95, 0.99)

_PERIODS = ("1 minute", "10 seconds", "1 second")  # the first that fits often enough is P
_FEWEST_PERIODS = 6
_STEPS = (1, 2, 5)  # of fixed waits, times powers of ten

Step = tuple[str, Callable[[], Any]]  # its title, and the work


@dataclass(frozen=True)
class GoalResult:
    """What a goal achieved on the recording; times in the query's unit."""

    goal: Goal
    recall: float  # over the whole recording
    average_slack: float  # K, after the first P
    average_latency: float
    ts: I64
    recalls: F64  # γ(P) at ts
    slacks: I64  # K at ts

    def phi(self, target: float) -> float:
        """Return Φ, the share of the measurements γ(P) that are not below `target`."""
        return float(np.mean(self.recalls >= target)) if len(self.recalls) else 1.0


def fitting_period(span: int, unit: TimeUnit) -> str:
    """Return a minute, or less if the recording has only a few of them."""
    lengths = {period: to_units(period, unit) for period in _PERIODS}
    fitting = [p for p, length in lengths.items() if _FEWEST_PERIODS * length <= span]
    return fitting[0] if fitting else _PERIODS[-1]


def tried_slacks(largest_delay: int, granularity: int) -> list[int]:
    """Return the fixed waits that are tried, from none to the largest delay."""
    largest = -(-largest_delay // granularity) * granularity
    found, power = [0], granularity
    while power < largest:
        found += [step * power for step in _STEPS if step * power < largest]
        power *= 10
    return sorted({*found, largest})
