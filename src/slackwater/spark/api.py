"""`JoinQuery.stream`: DataFrames in, a DataFrame of results out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from slackwater.engine.aggregate import result_schema
from slackwater.engine.output import LATE, RESULT_TS, time_type
from slackwater.engine.snapshot import engine_for
from slackwater.errors import DataError, QueryError, SparkError
from slackwater.events.batch import check_time_column
from slackwater.joins.projection import Projection
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.join import JoinQuery, by_stream
from slackwater.query.units import Duration, to_units
from slackwater.query.window import AnyQuery, WindowQuery
from slackwater.spark.blobs import BATCH_CLOCK, PART_SCHEMA, PIECE_SCHEMA, PIECES
from slackwater.spark.gather import gather_batch
from slackwater.spark.job import ARRIVED, NOW, Job
from slackwater.spark.metrics import NAME, observed
from slackwater.spark.operator import run_batch
from slackwater.spark.pack import Pack, PackCommands
from slackwater.spark.partitioning import Partitioning
from slackwater.spark.processor import GatherProcessor, ShardProcessor
from slackwater.spark.session import cores_of
from slackwater.spark.unpack import KIND, TAGS, Unpack
from slackwater.windows.slots import Plan

AtEnd = Literal["hold", "flush"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column
_NOW_IN = {"ms": F.unix_millis, "us": F.unix_micros}
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
    keep: bool = True  # engines alive between micro-batches; only measurements say no


def stream(query: AnyQuery, inputs: Mapping[str, Any], options: Options) -> DataFrame:
    """The results of `query` over DataFrames."""
    frames = _frames(query, inputs)
    spark = frames[0].sparkSession
    streaming = _is_streaming(query, frames)
    _check_options(query, options, frames, streaming)
    if isinstance(query, AggregateQuery) and options.arrival is None:
        frames, options = _arriving_now(query, frames, options, streaming)
    job = _job(query, frames, spark, options, streaming)
    parts = _packed(job, frames, spark, options)
    if streaming:
        pieces = _streamed(job, parts)
    else:
        pieces = parts.groupBy("shard").applyInArrow(_batch_shard(job), PIECE_SCHEMA)
    if job.is_gathered:
        pieces = _gathered(job, pieces, streaming)
    return _unpacked(job, frames, pieces)


def results(tagged: DataFrame) -> DataFrame:
    """The results of a query that was run with ``rejects=True``."""
    found = tagged.where(F.col(KIND) == "result")
    return found.drop(KIND, "stream", "reason", "row")


def rejects(tagged: DataFrame) -> DataFrame:
    """The rejected rows of a query run with ``rejects=True``: stream, reason, row (as JSON)."""
    return tagged.where(F.col(KIND) == "reject").select("stream", "reason", "row")


# ---- checks


def _frames(query: AnyQuery, inputs: Mapping[str, Any]) -> list[DataFrame]:
    names = ", ".join(query.names)
    inputs = by_stream(query.streams, inputs)
    unknown = sorted(set(inputs) - set(query.names))
    if unknown:
        msg = f"there is no stream {', '.join(unknown)}; streams are {names}"
        raise DataError(msg)
    missing = [name for name in query.names if name not in inputs]
    if missing:
        msg = f"there is no DataFrame for stream {', '.join(missing)}; streams are {names}"
        raise DataError(msg)
    for name in query.names:
        if not hasattr(inputs[name], "isStreaming"):
            got = type(inputs[name]).__name__
            msg = f"stream {name!r} must be a Spark DataFrame, got {got}"
            raise DataError(msg)
    return [inputs[name] for name in query.names]


def _is_streaming(query: AnyQuery, frames: Sequence[DataFrame]) -> bool:
    kinds = {name: f.isStreaming for name, f in zip(query.names, frames, strict=True)}
    if len(set(kinds.values())) > 1:
        said = ", ".join(f"{n} is {'streaming' if s else 'batch'}" for n, s in kinds.items())
        msg = (
            f"all DataFrames must be streaming, or all batch; got: {said}. To join a stream with a "
            "table that does not change, use Spark's own join"
        )
        raise SparkError(msg)
    return all(kinds.values())


def _check_options(
    query: AnyQuery, options: Options, frames: Sequence[DataFrame], streaming: bool
) -> None:
    if options.at_end not in get_args(AtEnd):
        msg = f"at_end must be one of 'hold', 'flush', got {options.at_end!r}"
        raise QueryError(msg)
    shards = options.shards
    if shards is not None and (
        isinstance(shards, bool) or not isinstance(shards, int) or shards < 1
    ):
        msg = f"shards must be a whole number not below 1, got {shards!r}"
        raise QueryError(msg)
    if query.in_one_place and (shards or 1) > 1:
        what = "tuple-count windows" if isinstance(query, JoinQuery) else "windows without groups"
        msg = f"{what} need all events in one place: shards must be 1, got {shards}"
        raise QueryError(msg)
    if not streaming and options.control is not None:
        msg = "control= needs streaming DataFrames, got batch ones"
        raise SparkError(msg)
    if streaming and options.at_end == "flush":
        for name, frame in zip(query.names, frames, strict=True):
            marked = [f.name for f in frame.schema.fields if _WATERMARK in (f.metadata or {})]
            if marked:
                msg = (
                    "at_end='flush' uses Spark's watermark to see the end of the input, but "
                    f"stream {name!r} has one on {marked[0]}; leave out withWatermark, Slackwater "
                    "does not need it"
                )
                raise SparkError(msg)


def _job(
    query: AnyQuery,
    frames: Sequence[DataFrame],
    spark: SparkSession,
    options: Options,
    streaming: bool,
) -> Job:
    schemas = tuple(map(_arrow_schema, query.names, frames))
    for stream, schema in zip(query.streams, schemas, strict=True):
        check_time_column(stream.name, stream.ts, schema)
        if options.arrival is not None:
            check_time_column(stream.name, options.arrival, schema, "arrival")
    _check_time_kinds(query, schemas)
    partitions = _partitions(spark, streaming)
    if query.in_one_place:
        shards = 1
    else:
        shards = partitions if options.shards is None else options.shards
    job = Job(
        query,
        schemas,
        Partitioning.of(query, shards),
        partitions,
        options.arrival,
        _units(options.idle_after, query, "idle_after", least=1),
        _skew(options, query, schemas),
        flush_at_end=streaming and options.at_end == "flush",
        rejects=options.rejects,
        keep=options.keep,
    )
    engine_for(query, job.schema_of)  # raises what a worker would raise, here and now
    job.key_types  # noqa: B018
    return job


def _arrow_schema(name: str, frame: DataFrame) -> pa.Schema:
    doubled = sorted({c for c in frame.columns if frame.columns.count(c) > 1})
    if doubled:
        msg = f"stream {name!r} has more than one column named {', '.join(doubled)}"
        raise DataError(msg)
    for field in frame.schema.fields:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except Exception as error:  # noqa: BLE001  whatever PySpark says about it
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
        said = ", ".join(f"{s.name}.{s.ts} {k}" for s, k in zip(query.streams, kinds, strict=True))
        msg = f"the time columns of all streams must be of one kind, got {said}"
        raise DataError(msg)


def _units(length: Duration | None, query: AnyQuery, what: str, least: int = 0) -> int | None:
    if length is None:
        return None
    units = to_units(length, query.unit, what)
    if units < least:
        msg = f"{what} must be at least {least} {query.unit}, got {length!r}"
        raise QueryError(msg)
    return units


def _skew(options: Options, query: AnyQuery, schemas: Sequence[pa.Schema]) -> int | None:
    skew = _units(options.max_future_skew, query, "max_future_skew")
    kinds = [schema.field(s.ts).type for s, schema in zip(query.streams, schemas, strict=True)]
    if isinstance(query, WindowQuery) and not pa.types.is_temporal(kinds[0]):
        return None
    is_local = any(not pa.types.is_timestamp(kind) or kind.tz is None for kind in kinds)
    if skew is not None and is_local and pa.types.is_temporal(kinds[0]):
        return skew + to_units(_ZONES_AHEAD, query.unit, "zones")
    return skew


def _partitions(spark: SparkSession, streaming: bool) -> int:
    partitions = int(str(spark.conf.get(_PARTITIONS)))
    cores = cores_of(spark)
    if streaming and cores is not None and partitions > 4 * cores:
        msg = (
            f"{_PARTITIONS} is {partitions}, on {cores} cores: each of them costs time in every "
            f"micro-batch. Set it to the number of cores, {cores}, and at most to {4 * cores}, "
            "before the query starts (it stays as it is in a checkpoint)"
        )
        raise SparkError(msg)
    if streaming and spark.conf.get(_PROVIDER) != _ROCKS_DB:
        msg = (
            f"Slackwater keeps its state in RocksDB: set {_PROVIDER} to {_ROCKS_DB}, "
            f"got {spark.conf.get(_PROVIDER)}"
        )
        raise SparkError(msg)
    return partitions


def _arriving_now(
    query: AggregateQuery, frames: Sequence[DataFrame], options: Options, streaming: bool
) -> tuple[list[DataFrame], Options]:
    """Rows that arrive with their micro-batch."""
    if not streaming:
        msg = "a deadline is a time of arrival: name the column with arrival= for batch DataFrames"
        raise SparkError(msg)
    now = _NOW_IN[query.unit](F.current_timestamp())
    return [frame.withColumn(ARRIVED, now) for frame in frames], replace(options, arrival=ARRIVED)


# ---- the plan


def _packed(
    job: Job, frames: Sequence[DataFrame], spark: SparkSession, options: Options
) -> DataFrame:
    """The parts of all streams, in name order, and the commands."""
    by_name = sorted(range(len(frames)), key=lambda s: job.query.names[s])
    schema = PART_SCHEMA + f", {BATCH_CLOCK} timestamp" * job.flush_at_end
    parts = [_with_now(job, frames[s]).mapInArrow(Pack(job, s), schema) for s in by_name]
    if options.control is not None:
        files = spark.readStream.text(str(options.control), wholetext=True)
        named = files.select(F.col("_metadata.file_name"), "value")
        parts.append(named.mapInArrow(PackCommands(job), schema))
    union = parts[0]
    for more in parts[1:]:
        union = union.unionAll(more)
    return union


def _with_now(job: Job, frame: DataFrame) -> DataFrame:
    # PySpark's mapInArrow would take names apart at dots and backticks; Pack has the true names.
    frame = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    if not job.needs_now:
        return frame
    return frame.withColumn(NOW, _NOW_IN[job.query.unit](F.current_timestamp()))


def _streamed(job: Job, parts: DataFrame) -> DataFrame:
    if not job.flush_at_end:
        return parts.groupBy("shard").transformWithStateInPandas(
            ShardProcessor(job), PIECE_SCHEMA, "Append", "None"
        )
    # The clock ticks once per micro-batch, so its watermark passes the operator's timers only when
    # Spark runs a batch without data: at the end. The column must not reach the operator, or Spark
    # would call the whole first batch late.
    ticking = parts.withWatermark(BATCH_CLOCK, "0 seconds").drop(BATCH_CLOCK)
    return ticking.groupBy("shard").transformWithStateInPandas(
        ShardProcessor(job), PIECE_SCHEMA, "Append", "EventTime"
    )


def _gathered(job: Job, pieces: DataFrame, streaming: bool) -> DataFrame:
    """What shards have counted, added up and compensated in one place."""
    together = pieces.withColumn("place", F.lit(0)).groupBy("place")
    if streaming:
        return together.transformWithStateInPandas(
            GatherProcessor(job), PIECE_SCHEMA, "Append", "None"
        )

    def run(
        key: tuple[pa.Scalar, ...],  # noqa: ARG001
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for blob in gather_batch(job, rows):
            columns = [pa.array([value], kind) for value, kind in zip(blob, PIECES, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["kind", "data", "numbers"])

    return together.applyInArrow(run, PIECE_SCHEMA)


def _batch_shard(job: Job) -> Callable[..., Iterator[pa.RecordBatch]]:
    """A shard of a batch query as `applyInArrow` calls it."""

    def run(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for blob in run_batch(job, rows, job.shard_keys.index(key[0].as_py())):
            columns = [pa.array([value], kind) for value, kind in zip(blob, PIECES, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["kind", "data", "numbers"])

    return run


def _unpacked(job: Job, frames: Sequence[DataFrame], pieces: DataFrame) -> DataFrame:
    """Blobs as rows; metrics are observed and taken out."""
    fields = _result_fields(job, frames)
    if job.rejects:
        fields = [StructField(f.name, f.dataType, True, f.metadata) for f in fields]
        fields = [StructField(name, StringType()) for name in TAGS] + fields
    schema = StructType(fields)
    blobs = pieces.observe(NAME, *observed(job)).drop("numbers")
    return blobs.mapInArrow(Unpack(to_arrow_schema(schema, timezone="UTC")), schema)


def _result_fields(job: Job, frames: Sequence[DataFrame]) -> list[StructField]:
    query = job.query
    if isinstance(query, AggregateQuery):
        kinds = [from_arrow_type(f.type) for f in result_schema(query, job.schemas)]
        named = zip(result_schema(query, job.schemas).names, kinds, strict=True)
        return [StructField(name, kind) for name, kind in named]
    time = time_type(query, job.schemas)
    zoned = TimestampNTZType() if getattr(time, "tz", None) is None else TimestampType()
    fields = [StructField(RESULT_TS, zoned if pa.types.is_timestamp(time) else LongType(), False)]
    if isinstance(query, WindowQuery):
        known = {field.name: field.dataType for field in frames[0].schema.fields}
        fields += [StructField(name, known[name]) for name in query.by]
        for column in Plan(query.select, job.schemas[0], query.names[0]).columns:
            kept = column.aggregate.function in ("first", "last", "min", "max")
            kind = known[str(column.aggregate.column)] if kept else from_arrow_type(column.type)
            fields.append(StructField(column.name, kind))
        return fields
    if query.select == "count":
        return [*fields, StructField("n", LongType(), False)]
    if query.listed:
        fields += _projected(query, job, frames)
    else:
        for name, frame in zip(query.names, frames, strict=True):
            fields += [
                StructField(f"{name}_{f.name}", f.dataType, True, _plain(f.metadata))
                for f in frame.schema.fields
            ]
    if query.late == "emit":
        fields.append(StructField(LATE, BooleanType(), False))
    return fields


def _projected(query: JoinQuery, job: Job, frames: Sequence[DataFrame]) -> list[StructField]:
    """Columns of streams as they are there, others as Arrow computes them."""
    projection = Projection(query, job.schemas)
    known = {
        (name, field.name): field
        for name, frame in zip(query.names, frames, strict=True)
        for field in frame.schema.fields
    }
    fields = []
    for item, computed in zip(projection.items, projection.fields, strict=True):
        if item.column is None:
            fields.append(StructField(item.name, from_arrow_type(computed.type)))
        else:
            own = known[item.column]
            fields.append(StructField(item.name, own.dataType, True, _plain(own.metadata)))
    return fields


def _plain(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Metadata without Spark's watermark: results have none until somebody gives them one."""
    return {name: value for name, value in (metadata or {}).items() if name != _WATERMARK}
