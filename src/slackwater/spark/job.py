"""The plain data that every stage of a streamed query has, made once and sent to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.errors import DataError
from slackwater.events.batch import flat, time_in_units
from slackwater.kernels.records import I64
from slackwater.query.any_query import AnyQuery
from slackwater.query.fingerprint import MAY_CHANGE, fingerprint
from slackwater.query.goals import Recall
from slackwater.query.units import to_units
from slackwater.spark.blobs import PIECE
from slackwater.spark.partitioning import Partitioning, partition_of, shard_keys
from slackwater.stats.arriving import block_length


@dataclass(frozen=True)
class Job:
    """A query over DataFrames of known schemas."""

    query: AnyQuery
    schemas: tuple[pa.Schema, ...]
    partitioning: Partitioning
    partitions: int  # of Spark's shuffle
    arrival: str | None
    idle_after: int | None  # in units
    max_future_skew: int | None  # in units
    flush_at_end: bool = False  # of a stream
    rejects: bool = False
    has_common_slack: bool = False  # all shards have one K
    shared: str | None = None  # the folder in which shards leave their reports
    keep: bool = True  # engines alive between micro-batches
    piece_bytes: int = PIECE  # of results, before they are handed on

    @cached_property
    def shard_keys(self) -> list[int]:
        """The grouping key of each shard."""
        return shard_keys(self.partitioning.shards, self.partitions)

    @property
    def is_gathered(self) -> bool:
        """Whether what the shards counted has to be added up."""
        return self.query.adds_up_shards and self.partitioning.shards > 1

    @cached_property
    def key_types(self) -> list[pa.DataType]:
        """The types in which keys are hashed."""
        return self.partitioning.key_types(self.schemas)

    @cached_property
    def delay_block(self) -> int | None:
        """The blocks of event time in which shards with one K look for growing delays, in units."""
        goal = self.query.goal
        if not self.has_common_slack or not isinstance(goal, Recall):
            return None
        return block_length(to_units(goal.over, self.query.unit))

    @property
    def schema_of(self) -> dict[str, pa.Schema]:
        """The schemas by stream name."""
        return dict(zip(self.query.names, self.schemas, strict=True))

    def expected_partition(self, shard: int) -> int:
        """The shuffle partition on which `shard` must find itself."""
        return partition_of(self.shard_keys[shard], self.partitions)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What must not change while the checkpoint lives, by name."""
        return {
            "shards": self.partitioning.shards,
            "partitioning": str(self.partitioning),
            "arrival": self.arrival,
            **fingerprint(self.query, self.schemas),
        }

    @cached_property
    def identity(self) -> str:
        """All that decides what a shard does; equal jobs may share a living engine."""
        free = {
            f.name: getattr(self.query, f.name) for f in fields(self.query) if f.name in MAY_CHANGE
        }
        own = self.idle_after, self.max_future_skew, self.has_common_slack, self.shared
        return repr((self.fingerprint, free, *own))

    # ---- for the pack stage: arrivals, and times that lie in the future

    @property
    def compares_with_arrival(self) -> bool:
        """Whether event times are compared with the arrival: both are timestamps then."""
        return has_comparable_arrival(self.query, self.schemas, self.arrival)

    @property
    def needs_now(self) -> bool:
        """Whether event times are compared with the time of the micro-batch."""
        return self.max_future_skew is not None and not self.compares_with_arrival

    def latest(self, n: int, arrival: I64 | None, now: int | None) -> I64 | None:
        """The largest time that is accepted, for each of `n` rows; None: there is no limit."""
        if self.max_future_skew is None:
            return None
        if self.compares_with_arrival and arrival is not None:
            return arrival + self.max_future_skew
        return None if now is None else np.broadcast_to(np.int64(now + self.max_future_skew), n)

    def arrivals(self, stream: int, table: pa.Table) -> I64 | None:
        """The arrival of each row as a number, if there is a column for it."""
        if self.arrival is None:
            return None
        values, good = time_in_units(flat(table.column(self.arrival)), self.query.unit)
        if not good.all():
            got = table.column(self.arrival)[int(np.flatnonzero(~good)[0])].as_py()
            msg = (
                f"stream {self.query.names[stream]!r}: arrival column {self.arrival!r} must be "
                f"set in each row, got {got!r}"
            )
            raise DataError(msg)
        return values


def has_comparable_arrival(
    query: AnyQuery, schemas: Sequence[pa.Schema], arrival: str | None
) -> bool:
    """Whether arrivals and event times are timestamps, so that one can be ahead of the other."""
    return arrival is not None and all(
        pa.types.is_timestamp(schema.field(name).type)
        for schema, stream in zip(schemas, query.streams, strict=True)
        for name in (arrival, stream.ts)
    )
