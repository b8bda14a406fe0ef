"""The streams of the demo, and its joins: by Slackwater and by Spark itself.

Orders and payments in Parquet files, in the order of their arrival: which orders are paid within 10
seconds, and which are not? Both systems read one file of each stream in a micro-batch. In the
streams of the left join, what is late is ten times as late from the middle on. Each order says
whether it is paid in time; the joins do not read that, it only counts their mistakes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.metrics.progress import MetricsView
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery, join
from slackwater.query.join_options import How
from slackwater.query.stream import Stream
from slackwater.spark.listener import Lines
from slackwater.testing.workloads import WorkloadError, arriving, generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

STREAMS = ("orders", "payments")
IN_TIME_S = 10  # an order is paid in time if its payment is at most so much later
PAID_SHARE = 0.9
LATE_SHARE = 0.2
CALM_MS, ROUGH_MS = 300, 3_000  # mean delays of what is late, before the change and after
RIGHT = 0.99  # the goal: so many of the rows without payment
FOUND = 0.999  # and so many of the pairs
GUESS = "1 second"  # Spark's watermark delay

_START_MS = 1_767_225_600_000  # 2026-01-01; any time in the past
_COUNTS = "demo"  # of the observed counts
_SCHEMAS = {
    "orders": "ts timestamp, id long, amount double, paid boolean, arrival timestamp",
    "payments": "ts timestamp, id long, amount double, arrival timestamp",
}


class Scale(NamedTuple):
    """How much data there is."""

    orders_per_s: int
    seconds: int
    file_s: int  # so much of a stream is in a file, and so in a micro-batch
    changes: bool  # whether delays grow in the middle

    @property
    def files(self) -> int:
        """Files of each stream."""
        return max(2, self.seconds // self.file_s)

    @property
    def change_ms(self) -> int:
        """When delays grow; the end if they do not."""
        return (500 if self.changes else 1000) * self.seconds


# ---- the streams


def streams(scale: Scale, seed: int) -> dict[str, pa.Table]:
    """Return both streams in the order of their arrival: ts, arrival, and their columns."""
    rng, end = generator(seed), 1000 * scale.seconds
    n = scale.seconds * scale.orders_per_s
    ordered = np.arange(n) * 1000 // scale.orders_per_s
    paid_at = ordered + rng.integers(0, 1000 * IN_TIME_S + 1, n)
    paid = (rng.random(n) < PAID_SHARE) & (paid_at < end)
    amount, number = np.round(rng.uniform(5, 500, n), 2), np.arange(n)

    def delayed(ts: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        mean = np.where(ts < scale.change_ms, CALM_MS, ROUGH_MS)
        delay = np.where(rng.random(len(ts)) < LATE_SHARE, rng.exponential(mean), 0.0)
        return np.asarray(ts + np.ceil(delay), np.int64)

    return {
        "orders": arriving(delayed(ordered), ts=ordered, id=number, amount=amount, paid=paid),
        "payments": arriving(
            delayed(paid_at[paid]), ts=paid_at[paid], id=number[paid], amount=amount[paid]
        ),
    }


def write_streams(directory: Path, scale: Scale, seed: int) -> dict[str, int]:
    """Write both streams below `directory`; return how many rows and true pairs they have."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        msg = f"the streams need a directory that is new or empty, got {directory}"
        raise WorkloadError(msg)
    made = streams(scale, seed)
    for name, table in made.items():
        (directory / name).mkdir(parents=True)
        parts = np.searchsorted(
            table["arrival"].to_numpy(), 1000 * scale.seconds * np.arange(scale.files) / scale.files
        )
        ends = [*parts[1:], table.num_rows]
        for number, (first, end) in enumerate(zip(parts, ends, strict=True)):
            file = directory / name / f"{number:03}.parquet"
            pq.write_table(_with_times(table.slice(first, end - first)), file)
            os.utime(file, (_START_MS // 1000 + number,) * 2)  # Spark takes the oldest first
    rows = sum(table.num_rows for table in made.values())
    return {"rows": rows, "pairs": made["payments"].num_rows}


def _with_times(table: pa.Table) -> pa.Table:
    for name in ("ts", "arrival"):
        times = pa.array(1000 * (table[name].to_numpy() + _START_MS), pa.timestamp("us", tz="UTC"))
        table = table.set_column(table.column_names.index(name), name, times)
    return table


# ---- the joins


def query(how: How) -> JoinQuery:
    """Return the join of orders and payments, given out at once."""
    unmatched = RIGHT if how == "left" else None
    return join(
        *(Stream(name, ts="ts") for name in STREAMS),
        on="id",
        between=("0 seconds", f"{IN_TIME_S} seconds"),
        how=how,
        emit="eager",
        late="emit" if how == "left" else "count",
        goal=Recall(FOUND, over="10 seconds", unmatched=unmatched),
        retention="1 minute" if how == "left" else None,  # so long can wrong rows be taken back
    )


def by_slackwater(
    spark: SparkSession,
    directory: Path,
    scale: Scale,
    how: How,
    shared: Path,
    control: Path | None = None,
) -> DataFrame:
    """Return the join by Slackwater, its rows counted.

    `shared` is the folder for the reports of shards. With a directory for commands it waits at the
    end for the command to flush.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    frames, reports = _streaming(spark, directory), str(shared)
    if control is None:
        joined = query(how).stream(frames, arrival="arrival", at_end="flush", shared=reports)
    else:
        joined = query(how).stream(frames, arrival="arrival", control=str(control), shared=reports)
    if how == "inner":
        return _counted(joined, scale, F.lit(True), F.lit(False))
    return _counted(joined, scale, F.col("change") == "insert", F.col("change") == "delete")


def by_spark(spark: SparkSession, directory: Path, scale: Scale, how: How) -> DataFrame:
    """Return the same by Spark's own stream-stream join, as a user would write it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    orders, payments = (
        _prefixed(frame.drop("arrival"), name).withWatermark(f"{name}_ts", GUESS)
        for name, frame in _streaming(spark, directory).items()
    )
    condition = (
        "orders_id = payments_id and payments_ts >= orders_ts "
        f"and payments_ts <= orders_ts + interval {IN_TIME_S} seconds"
    )
    joined = orders.join(payments, F.expr(condition), how)
    return _counted(joined, scale, F.lit(True), F.lit(False))


def _counted(joined: DataFrame, scale: Scale, is_new: Any, is_withdrawal: Any) -> DataFrame:
    """Observe pairs, rows without payment, those that are wrong, and those that are withdrawn.

    The last three are counted for orders whose payments come before the change of delays, and for
    orders behind it.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    ts, change = F.unix_millis(F.col("orders_ts")), _START_MS + scale.change_ms
    alone, wrong = F.col("payments_id").isNull(), F.col("orders_paid")
    phases = {"calm": ts < change - 1000 * IN_TIME_S, "rough": ts >= change}
    counts = {"pairs": is_new & ~alone}
    for phase, is_in in phases.items():
        counts[f"alone_{phase}"] = is_new & alone & is_in
        counts[f"wrong_{phase}"] = is_new & alone & is_in & wrong
        counts[f"withdrawn_{phase}"] = is_withdrawal & is_in
    columns = [F.count_if(condition).alias(name) for name, condition in counts.items()]
    return joined.observe(_COUNTS, *columns)


def _streaming(spark: SparkSession, directory: Path) -> dict[str, DataFrame]:
    frames = {}
    for name, schema in _SCHEMAS.items():
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(str(directory / name))
    return frames


def _prefixed(frame: DataFrame, name: str) -> DataFrame:
    return frame.toDF(*(f"{name}_{column}" for column in frame.columns))


class DemoLines(Lines):
    """Lines of micro-batches, with the counts of `_counted` and the events that are kept."""

    def batch(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        """Return the line of a micro-batch."""
        line, counts = super().batch(progress), progress.observedMetrics.get(_COUNTS)
        kept = MetricsView(line["metrics"]).stored
        if kept is None:  # Spark's own join
            kept = sum(state.numRowsTotal for state in progress.stateOperators)
        dropped = sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)
        known = {} if counts is None else counts.asDict()
        return line | {name: n or 0 for name, n in known.items()} | {"kept": kept, "late": dropped}
