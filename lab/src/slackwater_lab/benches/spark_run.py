"""One timed streaming run in a process of its own.

Started as ``python -m slackwater_lab.benches.spark_run JSON``.

A fresh driver for each run, so that no run profits from what another has warmed up, and start-up is
part of what is measured. Prints one JSON line.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from slackwater.query.goals import Recall, Slack
from slackwater.query.join import join
from slackwater.query.join_options import Emit, How, Late, Select
from slackwater.query.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATE = "spark.sql.streaming.stateStore.providerClass"
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state."


@dataclass(frozen=True)
class Plan:
    """The query to run, and how."""

    engine: str  # "slackwater", "native rocksdb", "native rocksdb v4", "native hdfs"
    data: str  # a directory with one directory of Parquet files per stream
    streams: tuple[str, ...]
    window_ms: int
    slack_ms: int
    files_per_trigger: int
    count: bool = False  # only count the results
    most_files: int | None = None  # of each stream
    keep: bool = True  # whether workers keep engines alive
    cores: int = 2
    recall: float | None = None  # the target of Slackwater, instead of the fixed slack
    arrival: str | None = None  # the column; else rows arrive as Spark reads them
    late: Late = "count"  # what Slackwater does with results of late events
    checksum: bool = True  # of all results; it takes time
    how: How = "inner"
    emit: Emit = "ordered"


@dataclass(frozen=True)
class SparkRun:
    """The measurements of a run."""

    seconds: float  # from a fresh process to the end of the query
    rows: int
    results: int
    checksum: int  # of all results, in any order
    batches: list[tuple[int, int]]  # rows and ms of each micro-batch
    state_bytes: int
    stored: int
    slack_ms: float = 0.0  # mean K of Slackwater over the micro-batches

    def steady(self, skip: int = 2) -> float:
        """Rows per second without the first micro-batches."""
        later = self._later(skip)
        return sum(n for n, _ in later) / (sum(ms for _, ms in later) / 1000)

    def batch_ms(self, skip: int = 2) -> float:
        """The median duration of a micro-batch with data."""
        times = sorted(ms for _, ms in self._later(skip))
        return times[len(times) // 2]

    def _later(self, skip: int) -> list[tuple[int, int]]:
        """Micro-batches with data behind the first ones, at least the last."""
        full = [batch for batch in self.batches if batch[0]]
        return full[min(skip, len(full) - 1) :]


def run(plan: Plan) -> SparkRun:
    """Run it here; the process should be fresh."""
    begin = perf_counter()
    from slackwater.spark.session import session  # noqa: PLC0415  part of what is timed

    # Else Spark computes the size of a batch after each of its rows, which here never matters.
    settings = {
        "spark.driver.memory": "3g",
        "spark.sql.execution.arrow.maxBytesPerBatch": 2**31 - 1,
    }
    spark = session("slackwater bench", plan.cores, settings)
    with TemporaryDirectory() as scratch:
        sources = {name: _source(spark, plan, name, Path(scratch)) for name in plan.streams}
        is_ours = plan.engine == "slackwater"
        joined = _slackwater(plan, sources) if is_ours else _native(spark, plan, sources)
        writer = _checked(joined, plan).writeStream.format("noop")
        writer = writer.option("checkpointLocation", f"{scratch}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = perf_counter() - begin
        progress = query.recentProgress
    metrics = [p.observedMetrics.get("slackwater") for p in progress]
    known = [row for row in metrics if row is not None and row["shards"]]
    sums = [p.observedMetrics["check"] for p in progress]
    result = SparkRun(
        seconds,
        sum(p.numInputRows for p in progress),
        sum(int(row["n"] or 0) for row in sums),
        sum(int(row["h"] or 0) for row in sums) % 2**64,
        [(p.numInputRows, p.durationMs["triggerExecution"]) for p in progress],
        max((row["state_bytes"] for row in known), default=0),
        max((row["stored"] + row["buffered"] for row in known), default=0),
        sum(row["slack"] for row in known) / max(len(known), 1),
    )
    spark.stop()
    return result


def _source(spark: SparkSession, plan: Plan, name: str, scratch: Path) -> DataFrame:
    where = Path(plan.data) / name
    if plan.most_files is not None:
        chosen = scratch / "in" / name
        chosen.mkdir(parents=True)
        for file in sorted(where.iterdir())[: plan.most_files]:
            (chosen / file.name).symlink_to(file)
        where = chosen
    schema = spark.read.parquet(str(where)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", plan.files_per_trigger)
    return reader.parquet(str(where))


def _slackwater(plan: Plan, sources: dict[str, DataFrame]) -> DataFrame:
    from slackwater.spark.api import Options, stream  # noqa: PLC0415

    is_asof = plan.how == "asof"
    window = f"{plan.window_ms} ms"
    streams = [Stream(name, ts="ts", window=None if is_asof else window) for name in plan.streams]
    goal = Slack(plan.slack_ms) if plan.recall is None else Recall(plan.recall)
    select: Select = "count" if plan.count else "*"
    query = join(
        *streams, on="k", goal=goal, select=select, late=plan.late, how=plan.how, emit=plan.emit,
        tolerance=window if is_asof else None,
    )  # fmt: skip
    return stream(query, sources, Options(plan.arrival, at_end="flush", keep=plan.keep))


def _native(spark: SparkSession, plan: Plan, sources: dict[str, DataFrame]) -> DataFrame:
    """The same with Spark's own joins, as a user would write it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    provider = "HDFSBacked" if "hdfs" in plan.engine else "RocksDB"
    spark.conf.set(_STATE, f"{_PROVIDERS}{provider}StateStoreProvider")
    if "v4" in plan.engine:
        spark.conf.set("spark.sql.streaming.join.stateFormatVersion", "4")
    window = F.expr(f"interval {plan.window_ms} milliseconds")
    joined: DataFrame | None = None
    for name, source in sources.items():
        own = source.select(*(F.col(c).alias(f"{name}_{c}") for c in source.columns))
        own = own.withWatermark(f"{name}_ts", f"{plan.slack_ms} milliseconds")
        if joined is None:
            joined = own
            continue
        first = plan.streams[0]
        condition = F.col(f"{first}_k") == F.col(f"{name}_k")
        for other in plan.streams[: plan.streams.index(name)]:
            here, there = F.col(f"{name}_ts"), F.col(f"{other}_ts")
            condition &= (here >= there - window) & (here <= there + window)
        joined = joined.join(own, condition, plan.how)
        # a further join accepts one event-time column: the first stream's stays one
        plain = F.col(f"{name}_ts") + F.expr("interval 0 seconds")
        joined = joined.withColumn(f"{name}_ts", plain)
    assert joined is not None
    return joined


def _checked(joined: DataFrame, plan: Plan) -> DataFrame:
    """Count the results and sum up their hashes: equal sums, equal rows, in whatever order."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if plan.count and plan.engine == "slackwater":
        return joined.observe("check", F.sum("n").alias("n"), F.lit(0).alias("h"))
    columns = [c for c in joined.columns if c != "result_ts"]
    summed = plan.checksum and not plan.count
    small = F.shiftright(F.xxhash64(*columns), 20) if summed else F.lit(0)
    return joined.observe("check", F.count(F.lit(1)).alias("n"), F.sum(small).alias("h"))


def in_own_process(plan: Plan) -> SparkRun:
    """`run`, in a fresh process."""
    import subprocess  # noqa: PLC0415

    command = [sys.executable, "-m", "slackwater_lab.benches.spark_run", json.dumps(asdict(plan))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        msg = f"the run of {plan.engine} failed:\n{done.stderr[-3000:]}"
        raise RuntimeError(msg)
    found = json.loads(done.stdout.splitlines()[-1])
    found["batches"] = [tuple(batch) for batch in found["batches"]]
    return SparkRun(**found)


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    given["streams"] = tuple(given["streams"])
    sys.stdout.write(json.dumps(asdict(run(Plan(**given)))) + "\n")
