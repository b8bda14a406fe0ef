"""`stream` of each kind of query: DataFrames in, a DataFrame of results out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from slackwater.engine.factory import engine_for
from slackwater.errors import QueryError, SparkError
from slackwater.query.any_query import AnyQuery
from slackwater.spark.dataflow import dataflow
from slackwater.spark.inputs import are_streaming, arrow_schemas, frames_of, with_arrival
from slackwater.spark.job import Job, has_comparable_arrival
from slackwater.spark.options import Options, check_options, idle_after, max_future_skew
from slackwater.spark.partitioning import Partitioning
from slackwater.spark.session import STATE_PROVIDER, check_workers, cores_of
from slackwater.spark.shared_folder import located
from slackwater.spark.unpack import REJECTED

__all__ = ["Options", "rejects", "results", "stream"]

_LOG = logging.getLogger("slackwater")
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def stream(query: AnyQuery, inputs: Mapping[str, Any], options: Options) -> DataFrame:
    """The results of `query` over DataFrames."""
    frames = frames_of(query, inputs)
    streaming = are_streaming(query, frames)
    check_options(query, options, frames, streaming)
    check_workers(frames[0].sparkSession)
    frames, options = with_arrival(query, frames, options, streaming)
    job = _job(query, frames, options, streaming)
    _LOG.info("%s of %s; goal: %s", query.kind, ", ".join(query.names), query.goal)
    return dataflow(job, frames, options.control, streaming)


def results(output: DataFrame) -> DataFrame:
    """The results of a query that was run with ``rejects=True``."""
    return output.where(F.col(REJECTED).isNull()).drop(REJECTED)


def rejects(output: DataFrame) -> DataFrame:
    """The rejected rows of a query run with ``rejects=True``: stream, reason, row (as JSON)."""
    return output.where(F.col(REJECTED).isNotNull()).select(f"{REJECTED}.*")


def _job(query: AnyQuery, frames: Sequence[DataFrame], options: Options, streaming: bool) -> Job:
    schemas = arrow_schemas(query, frames, options.arrival)
    partitions = _partitions(frames[0].sparkSession, streaming)
    if query.single_shard:
        shards = 1
    else:
        shards = partitions if options.shards is None else options.shards
    has_arrival = has_comparable_arrival(query, schemas, options.arrival)
    has_common_slack, shared = False, None
    if streaming and shards > 1 and query.shares_slack:
        has_common_slack, shared = _common_slack(query, options, frames[0].sparkSession)
    job = Job(
        query,
        schemas,
        Partitioning.of(query, shards),
        partitions,
        options.arrival,
        idle_after(options, query),
        # a batch has no time at which it was read: only arrivals say what lies in the future
        max_future_skew(options, query, schemas) if streaming or has_arrival else None,
        flush_at_end=streaming and options.at_end == "flush",
        rejects=options.rejects,
        has_common_slack=has_common_slack,
        shared=shared,
        keep=options.keep,
    )
    engine_for(query, job.schema_of)  # errors are raised here and now, not in a worker
    job.key_types  # noqa: B018
    return job


def _common_slack(
    query: AnyQuery, options: Options, spark: SparkSession
) -> tuple[bool, str | None]:
    """Whether all shards have one K, and the folder that they need for it."""
    if query.has_fixed_slack:
        return True, None
    if options.shared is not None:
        return True, located(options.shared)
    checkpoints = spark.conf.get(_CHECKPOINTS, None)
    why = f"neither shared= nor {_CHECKPOINTS} of the session"
    if checkpoints is not None:
        try:
            return True, located(f"{checkpoints}/slackwater")
        except QueryError as error:
            why = f"no shared=, and for {_CHECKPOINTS}: {error}"
    _LOG.warning(
        "each shard chooses its own K, so results are not in order from one micro-batch to the "
        "next: for one K they need a folder, and there is %s. slack_scope='shard' says that this "
        "is meant",
        why,
    )
    return False, None


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
    if streaming and spark.conf.get(_PROVIDER) != STATE_PROVIDER:
        msg = (
            f"Slackwater keeps its state in RocksDB: set {_PROVIDER} to {STATE_PROVIDER}, "
            f"got {spark.conf.get(_PROVIDER)}"
        )
        raise SparkError(msg)
    return partitions
