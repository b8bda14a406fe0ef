"""What the engine counts. Every arrival of a stream is in exactly one of its groups."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["active", "slow", "idle", "finished"]


@dataclass(frozen=True)
class StreamMetrics:
    """Counters of one stream since the start.

    The accounting partition: arrivals = in order + late kept + late dropped + buffered + shed +
    rejected.

    A stream is *active*; *slow* when it is so far behind another that everybody waits for it;
    *idle* when it was silent for so long that nobody waits any more; *finished* when no more will
    come.
    """

    arrivals: int = 0
    in_order: int = 0
    late_kept: int = 0
    late_dropped: int = 0
    buffered: int = 0
    shed: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    local_time: int | None = None  # the largest time it has delivered; None: nothing yet
    state: State = "active"

    @property
    def is_balanced(self) -> bool:
        """Whether the accounting partition holds."""
        fates = self.in_order + self.late_kept + self.late_dropped
        return self.arrivals == fates + self.buffered + self.shed + sum(self.rejected.values())


@dataclass(frozen=True)
class SheddingMetrics:
    """What load shedding does and costs. Results that were left out are counted by a sample."""

    throttle: float  # z: the share of the whole join's work that is done now
    kept: float  # the share of the results that is expected of it
    comparisons: int  # since the start
    full_cost: float  # comparisons per second that the whole join would take now
    missed: int  # results that were left out since the start, an estimate
    missed_error: float  # two standard errors of it
    lost_error: float  # the same of `Metrics.lost`, which is exact as long as nothing is shed
    backlog: float  # how long the work that waits will take: so much later than needed is a result
    evicted: int  # events that left the windows early for want of memory
    cpu_needed: float | None  # with a recall goal: so many times the CPU would keep the promise


@dataclass(frozen=True)
class Metrics:
    """Counters since the start; times in the query's unit.

    `lost` counts the results that were lost with late events; for `lost_unknown` late events it is
    only a lower bound, because retention did not cover their lateness.
    """

    streams: dict[str, StreamMetrics] = field(default_factory=dict)
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    slack: int = 0
    max_delay: int = 0
    max_lateness: int = 0
    stored: int = 0
    shedding: SheddingMetrics | None = None  # None: nothing may be shed

    def _sum(self, name: str) -> int:
        return sum(getattr(stream, name) for stream in self.streams.values())

    @property
    def arrivals(self) -> int:
        """Rows of all streams."""
        return self._sum("arrivals")

    @property
    def in_order(self) -> int:
        """Events that the join took in order."""
        return self._sum("in_order")

    @property
    def late_kept(self) -> int:
        """Late events whose window could still take them."""
        return self._sum("late_kept")

    @property
    def late_dropped(self) -> int:
        """Late events whose window had passed."""
        return self._sum("late_dropped")

    @property
    def buffered(self) -> int:
        """Events that wait in K-slack or in the Synchronizer."""
        return self._sum("buffered")

    @property
    def shed(self) -> int:
        """Events that were shed at the input."""
        return self._sum("shed")

    @property
    def rejected(self) -> dict[str, int]:
        """Rows that could not take part, by reason."""
        reasons = sorted({reason for stream in self.streams.values() for reason in stream.rejected})
        return {
            reason: sum(stream.rejected.get(reason, 0) for stream in self.streams.values())
            for reason in reasons
        }

    @property
    def is_balanced(self) -> bool:
        """Whether the accounting partition holds for each stream."""
        return all(stream.is_balanced for stream in self.streams.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the totals of all streams."""
        totals = (
            "arrivals",
            "in_order",
            "late_kept",
            "late_dropped",
            "buffered",
            "shed",
            "rejected",
        )
        return {name: getattr(self, name) for name in totals} | asdict(self)
