"""What the engine counts. Every arrival is in exactly one of the first groups."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Metrics:
    """Counters since the start; times in the query's unit.

    The accounting partition: arrivals = in order + late kept + late dropped + buffered + shed +
    rejected. `lost` counts the results that were lost with late events; for `lost_unknown` late
    events it is only a lower bound, because retention did not cover their lateness.
    """

    arrivals: int = 0
    in_order: int = 0
    late_kept: int = 0
    late_dropped: int = 0
    buffered: int = 0
    shed: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    slack: int = 0
    max_delay: int = 0
    max_lateness: int = 0
    stored: int = 0

    @property
    def is_balanced(self) -> bool:
        """Whether the accounting partition holds."""
        fates = self.in_order + self.late_kept + self.late_dropped
        return self.arrivals == fates + self.buffered + self.shed + sum(self.rejected.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
