"""How a query is run on Spark, and the checks of these options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa
from pyspark.sql import DataFrame

from slackwater.errors import QueryError, SparkError
from slackwater.query.any_query import AnyQuery
from slackwater.query.units import Duration, to_units

AtEnd = Literal["hold", "flush"]

WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column
_ZONES_AHEAD = "14 hours"  # local time may be so far ahead of UTC


@dataclass(frozen=True)
class Options:
    """How a query is run; see `JoinQuery.stream`."""

    arrival: str | None = None
    shards: int | None = None
    at_end: AtEnd = "hold"
    control: str | None = None
    idle_after: Duration | None = None
    max_future_skew: Duration | None = "1 hour"
    rejects: bool = False
    shared: str | None = None  # a folder that all executors can write to
    keep: bool = True  # engines stay alive between micro-batches; only benches switch it off


def check_options(
    query: AnyQuery, options: Options, frames: Sequence[DataFrame], streaming: bool
) -> None:
    """Raise an error if an option does not fit the query or the frames."""
    if options.at_end not in get_args(AtEnd):
        msg = f"at_end must be one of 'hold', 'flush', got {options.at_end!r}"
        raise QueryError(msg)
    shards = options.shards
    if shards is not None and (
        isinstance(shards, bool) or not isinstance(shards, int) or shards < 1
    ):
        msg = f"shards must be a whole number not below 1, got {shards!r}"
        raise QueryError(msg)
    if query.single_shard and (shards or 1) > 1:
        what = query.single_shard_reason
        msg = f"{what} need all events in one place: shards must be 1, got {shards}"
        raise QueryError(msg)
    if not streaming and options.control is not None:
        msg = "control= needs streaming DataFrames, got batch ones"
        raise SparkError(msg)
    if streaming and options.at_end == "flush":
        for name, frame in zip(query.names, frames, strict=True):
            marked = [f.name for f in frame.schema.fields if WATERMARK in (f.metadata or {})]
            if marked:
                msg = (
                    "at_end='flush' uses Spark's watermark to see the end of the input, but "
                    f"stream {name!r} has one on {marked[0]}; leave out withWatermark, Slackwater "
                    "does not need it"
                )
                raise SparkError(msg)


def idle_after(options: Options, query: AnyQuery) -> int | None:
    """After which silence the join stops waiting for a stream, in units."""
    return _units(options.idle_after, query, "idle_after", least=1)


def max_future_skew(options: Options, query: AnyQuery, schemas: Sequence[pa.Schema]) -> int | None:
    """How far in the future a time may lie, in units; None: there is no limit."""
    skew = _units(options.max_future_skew, query, "max_future_skew")
    kinds = [schema.field(s.ts).type for s, schema in zip(query.streams, schemas, strict=True)]
    if not query.numbers_are_times and not pa.types.is_temporal(kinds[0]):
        return None  # a number that is no time has no future
    is_local = any(not pa.types.is_timestamp(kind) or kind.tz is None for kind in kinds)
    if skew is not None and is_local and pa.types.is_temporal(kinds[0]):
        return skew + to_units(_ZONES_AHEAD, query.unit, "zones")
    return skew


def _units(length: Duration | None, query: AnyQuery, what: str, least: int = 0) -> int | None:
    if length is None:
        return None
    units = to_units(length, query.unit, what)
    if units < least:
        msg = f"{what} must be at least {least} {query.unit}, got {length!r}"
        raise QueryError(msg)
    return units
