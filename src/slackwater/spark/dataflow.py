"""The stages of a query as Spark's plan: pack, exchange, operator, gather, unpack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from slackwater.spark.blobs import BATCH_CLOCK, PART_SCHEMA, PIECE_SCHEMA, blob_record
from slackwater.spark.gather import gather_batch
from slackwater.spark.inputs import NOW_IN
from slackwater.spark.job import Job
from slackwater.spark.metrics import NAME, observed
from slackwater.spark.operator import run_batch
from slackwater.spark.pack import Pack, PackCommands
from slackwater.spark.parts import NOW
from slackwater.spark.processor import GatherProcessor, ShardProcessor
from slackwater.spark.result_fields import result_struct
from slackwater.spark.unpack import Unpack


def dataflow(
    job: Job, frames: Sequence[DataFrame], control: str | None, streaming: bool
) -> DataFrame:
    """The results of `job` over `frames`."""
    parts = _packed(job, frames, control)
    if streaming:
        pieces = _streamed(job, parts)
    else:
        pieces = parts.groupBy("shard").applyInArrow(_batch_shard(job), PIECE_SCHEMA)
    if job.is_gathered:
        pieces = _gathered(job, pieces, streaming)
    return _unpacked(job, frames, pieces)


def _packed(job: Job, frames: Sequence[DataFrame], control: str | None) -> DataFrame:
    """The parts of all streams, in name order, and the commands."""
    by_name = sorted(range(len(frames)), key=lambda s: job.query.names[s])
    schema = PART_SCHEMA + f", {BATCH_CLOCK} timestamp" * job.flush_at_end
    parts = [_with_now(job, frames[s]).mapInArrow(Pack(job, s), schema) for s in by_name]
    if control is not None:
        spark: SparkSession = frames[0].sparkSession
        files = spark.readStream.text(str(control), wholetext=True)
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
    return frame.withColumn(NOW, NOW_IN[job.query.unit](F.current_timestamp()))


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
    """Add up and compensate in one place what the shards have counted."""
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
            yield blob_record(blob)

    return together.applyInArrow(run, PIECE_SCHEMA)


def _batch_shard(job: Job) -> Callable[..., Iterator[pa.RecordBatch]]:
    """A shard of a batch query as `applyInArrow` calls it."""

    def run(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for blob in run_batch(job, rows, job.shard_keys.index(key[0].as_py())):
            yield blob_record(blob)

    return run


def _unpacked(job: Job, frames: Sequence[DataFrame], pieces: DataFrame) -> DataFrame:
    """Blobs as rows; metrics are observed and taken out."""
    schema = result_struct(job, frames)
    blobs = pieces.observe(NAME, *observed(job)).drop("numbers")
    return blobs.mapInArrow(Unpack(to_arrow_schema(schema, timezone="UTC")), schema)
