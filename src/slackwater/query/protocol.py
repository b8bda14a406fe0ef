"""What all kinds of queries have in common, so that stages need not test for a kind.

`JoinQuery`, `WindowQuery` and `AggregateQuery` are the kinds. An engine, the Spark stages and the
command line ask a query for these properties; what belongs to one kind only is in that kind's
module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from slackwater.query.goals import Goal
    from slackwater.query.join import Stream
    from slackwater.query.keys import Key
    from slackwater.query.units import TimeUnit

QueryKind = Literal["join", "window", "aggregate"]


class Query(ABC):
    """A query of any kind: streams in, results out."""

    kind: ClassVar[QueryKind]
    needs_arrival: ClassVar[bool] = False  # results depend on when rows arrived
    has_slack: ClassVar[bool] = True  # there is a K that can be set by hand
    has_recall: ClassVar[bool] = False  # single results can be lost, and are counted
    adds_up_shards: ClassVar[bool] = False  # results are made from what all shards have counted
    shares_delays: ClassVar[bool] = False  # all shards must know the largest delay of any
    numbers_are_times: ClassVar[bool] = True  # a number in the time column is a time in `unit`

    streams: tuple[Stream, ...]
    goal: Goal
    unit: TimeUnit
    strict: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    @abstractmethod
    def keys(self) -> list[Key]:
        """The keys by which events are compared or grouped."""

    @property
    @abstractmethod
    def single_shard_reason(self) -> str | None:
        """Which part of the query needs all events in one shard; None: they may be spread."""

    @property
    def single_shard(self) -> bool:
        """Whether all events must be in one shard."""
        return self.single_shard_reason is not None
