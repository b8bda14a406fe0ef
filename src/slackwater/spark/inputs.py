"""The DataFrames of a query: one per stream, all streaming or all batch, with usable columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from slackwater.errors import DataError, SparkError
from slackwater.events.batch import check_time_column
from slackwater.query.any_query import AnyQuery
from slackwater.query.stream import by_stream
from slackwater.spark.options import Options
from slackwater.spark.parts import ARRIVED, RESERVED

NOW_IN = {"ms": F.unix_millis, "us": F.unix_micros}


def frames_of(query: AnyQuery, inputs: Mapping[str, Any]) -> list[DataFrame]:
    """The DataFrames of all streams, in stream order."""
    names = ", ".join(query.names)
    inputs = by_stream(query.streams, inputs)
    unknown = sorted(set(inputs) - set(query.names))
    missing = [name for name in query.names if name not in inputs]
    problems = []
    if unknown:
        problems.append(f"there is no stream {', '.join(unknown)}; streams are {names}")
    if missing:
        listed = ", ".join(missing)
        problems.append(f"there is no DataFrame for stream {listed}; streams are {names}")
    problems += [
        problem
        for name in query.names
        if name in inputs and (problem := _problem_of(name, inputs[name]))
    ]
    if problems:
        raise DataError("\n".join(problems))
    return [inputs[name] for name in query.names]


def _problem_of(name: str, frame: Any) -> str | None:
    if not isinstance(frame, DataFrame):
        kind = type(frame)
        library = kind.__module__.partition(".")[0].removesuffix("builtins")
        got = f"{library}.{kind.__name__}".lstrip(".")
        return (
            f"stream {name!r} must be a Spark DataFrame, got {got}; query.replay takes "
            "pandas, Polars and Arrow tables without Spark, and spark.createDataFrame makes a "
            "DataFrame of one"
        )
    reserved = [column for column in frame.columns if column.lower().startswith(RESERVED)]
    if reserved:
        return (
            f"stream {name!r} has a column {reserved[0]}, but names that begin with "
            f"{RESERVED} are those of Slackwater's own columns; rename it"
        )
    return None


def are_streaming(query: AnyQuery, frames: Sequence[DataFrame]) -> bool:
    """Whether the DataFrames are streaming ones; all must be of one kind."""
    kinds = {name: f.isStreaming for name, f in zip(query.names, frames, strict=True)}
    if len(set(kinds.values())) > 1:
        got = ", ".join(f"{n} is {'streaming' if s else 'batch'}" for n, s in kinds.items())
        msg = (
            f"all DataFrames must be streaming, or all batch; got: {got}. To join a stream with a "
            "table that does not change, use Spark's own join"
        )
        raise SparkError(msg)
    return all(kinds.values())


def with_arrival(
    query: AnyQuery, frames: Sequence[DataFrame], options: Options, streaming: bool
) -> tuple[list[DataFrame], Options]:
    """Frames and options of a query that needs arrivals: rows arrive with their micro-batch.

    If there is an arrival column, or the query needs none, they are as given.
    """
    if not query.needs_arrival or options.arrival is not None:
        return list(frames), options
    if not streaming:
        msg = "a deadline is a time of arrival: name the column with arrival= for batch DataFrames"
        raise SparkError(msg)
    now = NOW_IN[query.unit](F.current_timestamp())
    return [frame.withColumn(ARRIVED, now) for frame in frames], replace(options, arrival=ARRIVED)


def arrow_schemas(
    query: AnyQuery, frames: Sequence[DataFrame], arrival: str | None
) -> tuple[pa.Schema, ...]:
    """The Arrow schema of each stream, with usable time columns."""
    schemas = tuple(map(_arrow_schema, query.names, frames))
    for stream, schema in zip(query.streams, schemas, strict=True):
        check_time_column(stream.name, stream.ts, schema)
        if arrival is not None:
            check_time_column(stream.name, arrival, schema, "arrival")
    _check_time_kinds(query, schemas)
    return schemas


def _arrow_schema(name: str, frame: DataFrame) -> pa.Schema:
    doubled = sorted({c for c in frame.columns if frame.columns.count(c) > 1})
    if doubled:
        msg = f"stream {name!r} has more than one column named {', '.join(doubled)}"
        raise DataError(msg)
    for field in frame.schema.fields:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except Exception as error:  # noqa: BLE001  whatever PySpark raises
            kind = field.dataType.simpleString()
            msg = (
                f"stream {name!r}: Spark cannot hand column {field.name!r} of type {kind} to "
                "Python; cast it or leave it out"
            )
            raise DataError(msg) from error
    return to_arrow_schema(frame.schema, timezone="UTC").remove_metadata()


def _check_time_kinds(query: AnyQuery, schemas: Sequence[pa.Schema]) -> None:
    """Local time and points in time cannot be compared without a zone."""
    kinds = [schema.field(s.ts).type for s, schema in zip(query.streams, schemas, strict=True)]
    zoned = {kind.tz is not None for kind in kinds if pa.types.is_timestamp(kind)}
    numbers = {pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds}
    if len(zoned) > 1 or len(numbers) > 1:
        got = ", ".join(f"{s.name}.{s.ts} {k}" for s, k in zip(query.streams, kinds, strict=True))
        msg = f"the time columns of all streams must be of one kind, got {got}"
        raise DataError(msg)
