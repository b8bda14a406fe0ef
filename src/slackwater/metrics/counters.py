"""What is counted while a query runs: values, without their names in metrics lines.

The engine returns `Metrics`; `Surroundings` is what only its caller knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

State = Literal["active", "slow", "idle", "finished"]
STATES: tuple[State, ...] = get_args(State)

REASONS = ("bad time", "null key", "null in where", "too far in the future", "bad vector")
"""Why rows are rejected."""


@dataclass(frozen=True)
class StreamMetrics:
    """Counters of one stream since the start.

    The accounting partition: arrivals = in order + late kept + late dropped + buffered + shed +
    rejected.

    A stream is *active*; *slow* when it is so far behind another that the others wait for it;
    *idle* when it was silent for so long that they do not wait any more; *finished* when no more
    rows will come.
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
    """What load shedding does and costs. Results that were left out are counted by a sample.

    The defaults are those of a join that sheds nothing.
    """

    throttle: float = 1.0  # z: the share of the whole join's work that is done now
    kept: float = 1.0  # the share of the results that is expected of it
    comparisons: int = 0  # since the start
    full_cost: float = 0.0  # comparisons per second that the whole join would take now
    missed: int = 0  # results that were left out since the start, an estimate
    missed_error: float = 0.0  # two standard errors of it
    lost_error: float = 0.0  # the same of `Metrics.lost`, which is exact if nothing is shed
    backlog: float = 0.0  # how long the waiting work will take: results are later by so much
    evicted: int = 0  # events that left the windows early for want of memory
    cpu_needed: float | None = None  # with a recall goal: CPU that would keep the promise, times


@dataclass(frozen=True)
class Metrics:
    """Counters since the start; times in the query's unit.

    `lost` counts the results that were lost with late events; for `lost_unknown` late events it is
    only a lower bound, because retention did not cover their lateness. What is missing there is
    `lost_estimated`, from a sample that is kept longer, or as if late events had as many partners
    as others where pairs are given out at once; `lost_not_estimated` of these events are
    later than that too, or there is no sample.

    Of joins with rows that are decided: `unmatched_rows` without partner were in time and
    `unmatched_rows_late` late, `withdrawn_rows` of them were taken back. In an as-of join these are
    all rows, and the corrections. As long as nothing is forgotten, the first two without the third
    are the number of true rows without partner.
    """

    streams: dict[str, StreamMetrics] = field(default_factory=dict)
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    lost_estimated: int = 0
    lost_estimated_error: float = 0.0  # two standard errors of it
    lost_not_estimated: int = 0
    unmatched_rows: int = 0
    unmatched_rows_late: int = 0
    withdrawn_rows: int = 0
    slack: int = 0
    complete_through: int | None = None  # None: nothing is complete, or the query has no such time
    max_delay: int = 0
    max_lateness: int = 0
    stored: int = 0
    sampled: int = 0
    shedding: SheddingMetrics | None = None  # None: nothing may be shed

    @property
    def arrivals(self) -> int:
        """Rows of all streams."""
        return sum(stream.arrivals for stream in self.streams.values())

    @property
    def in_order(self) -> int:
        """Events that the join took in order."""
        return sum(stream.in_order for stream in self.streams.values())

    @property
    def late_kept(self) -> int:
        """Late events whose window could still take them."""
        return sum(stream.late_kept for stream in self.streams.values())

    @property
    def late_dropped(self) -> int:
        """Late events whose window had passed."""
        return sum(stream.late_dropped for stream in self.streams.values())

    @property
    def buffered(self) -> int:
        """Events that wait to be put in order."""
        return sum(stream.buffered for stream in self.streams.values())

    @property
    def shed(self) -> int:
        """Events that were shed at the input."""
        return sum(stream.shed for stream in self.streams.values())

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


@dataclass(frozen=True)
class StreamSurroundings:
    """What the caller of an engine knows of one stream."""

    behind: int = 0


@dataclass(frozen=True)
class Surroundings:
    """What the caller of an engine knows: the shard on Spark, or a replay, which saves nothing."""

    target: float | None = None
    right_target: float | None = None
    shards: int = 1
    copies: int = 0
    state_bytes: int = 0
    restored: int = 0
    refused_commands: int = 0
    streams: Sequence[StreamSurroundings] = ()  # one for each, or none: all have the defaults
