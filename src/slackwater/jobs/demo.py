"""The demo: the same disordered streams through Slackwater and through Spark's own join.

Quotes and trades of some symbols, in Parquet files in the order of their arrival: which quotes and
trades of a symbol are at most 2 s apart? Both joins read one file per stream and micro-batch.
Slackwater gets a recall target and sets its own slack; Spark gets a watermark delay.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery, Stream
from slackwater.query.joining import join
from slackwater.spark.listener import Lines
from slackwater.testing.workloads import WorkloadError, uniform_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

STREAMS = ("quotes", "trades")
RATE_PER_S = 10_000  # of a stream
GOAL = Recall(0.95, over="10 seconds")  # of ours
DELAY_MS = 1_000  # of Spark's watermarks
WINDOW = "2 seconds"
RETENTION = "10 seconds"  # beyond the window, so that late events find their partners
LATE_SHARE = 0.2
MEAN_DELAY_MS = 2_000

SYMBOLS = 20_000

_FILE_S = 5  # so much of a stream is in a file, and so in a micro-batch
_START_MS = 1_767_225_600_000  # 2026-01-01; any time in the past
_NAME = "native"  # of the metrics of Spark's own join

QUERY: JoinQuery = join(
    Stream("quotes", ts="event_time", window=WINDOW),
    Stream("trades", ts="event_time", window=WINDOW),
    on="symbol",
    goal=GOAL,
    late="emit",
    retention=RETENTION,
)
_CONDITION = (
    "quotes_symbol = trades_symbol "
    f"and trades_event_time >= quotes_event_time - interval {WINDOW} "
    f"and trades_event_time <= quotes_event_time + interval {WINDOW}"
)


def write_streams(directory: Path, seconds: float, seed: int) -> int:
    """Write both streams below `directory`; return the number of files of each."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        msg = f"the streams need a directory that is new or empty, got {directory}"
        raise WorkloadError(msg)
    rows, files = round(seconds * RATE_PER_S), max(2, round(seconds / _FILE_S))
    for number, name in enumerate(STREAMS):
        table = _table(rows, 2 * seed + number)
        (directory / name).mkdir(parents=True)
        for n in range(files):
            first, end = n * rows // files, (n + 1) * rows // files
            file = directory / name / f"{n:03}.parquet"
            pq.write_table(table.slice(first, end - first), file)
            os.utime(file, (_START_MS // 1000 + n,) * 2)  # Spark takes the oldest first
    return files


def _table(rows: int, seed: int) -> pa.Table:
    """Return (event_time, symbol, price, arrival), in the order of arrival."""
    table = uniform_keys(rows, seed, RATE_PER_S, SYMBOLS, LATE_SHARE, MEAN_DELAY_MS)
    event_time, arrival = (
        pa.array(1000 * (table[name].to_numpy() + _START_MS), pa.timestamp("us", tz="UTC"))
        for name in ("ts", "arrival")
    )
    cents = np.round(90 + 20 * table["v"].to_numpy(), 2)
    columns = {"event_time": event_time, "symbol": table["k"], "price": cents}
    return pa.table(columns | {"arrival": arrival})


# ---- the two joins, and the truth


def by_slackwater(spark: SparkSession, directory: Path, control: Path | None = None) -> DataFrame:
    """Return the join by Slackwater; late results are emitted too, marked.

    With a directory for commands it waits at the end for the command to flush.
    """
    frames = _streaming(spark, directory)
    if control is not None:
        return QUERY.stream(frames, arrival="arrival", control=str(control))
    return QUERY.stream(frames, arrival="arrival", at_end="flush")


def by_spark(spark: SparkSession, directory: Path) -> DataFrame:
    """Return the same by Spark's own stream-stream join, as a user would write it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    delay = f"{DELAY_MS} milliseconds"
    quotes, trades = (
        _prefixed(frame.drop("arrival"), name).withWatermark(f"{name}_event_time", delay)
        for name, frame in _streaming(spark, directory).items()
    )
    joined = quotes.join(trades, F.expr(_CONDITION))
    return joined.observe(_NAME, F.count(F.lit(1)).alias("results"))


def true_results(spark: SparkSession, directory: Path) -> int:
    """Count the true results by a batch join, which does not use Slackwater."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    quotes, trades = (
        _prefixed(spark.read.parquet(str(directory / name)), name) for name in STREAMS
    )
    return quotes.join(trades, F.expr(_CONDITION)).count()


def _streaming(spark: SparkSession, directory: Path) -> dict[str, DataFrame]:
    columns = "event_time timestamp, symbol long, price double, arrival timestamp"
    reader = spark.readStream.schema(columns)
    reader = reader.option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(str(directory / name)) for name in STREAMS}


def _prefixed(frame: DataFrame, name: str) -> DataFrame:
    return frame.toDF(*(f"{name}_{column}" for column in frame.columns))


class DemoLines(Lines):
    """Lines of micro-batches, with the results and dropped rows of Spark's own join."""

    def batch(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        """Return the line of a micro-batch."""
        native = progress.observedMetrics.get(_NAME)
        dropped = sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)
        results = 0 if native is None else native["results"]
        return super().batch(progress) | {"results": results, "dropped": dropped}
