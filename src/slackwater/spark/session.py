"""A local Spark session with the settings that Slackwater needs; users may bring their own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

STATE_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_PROVIDER,
    # write what changed, not a snapshot of RocksDB, with each micro-batch
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "slackwater.spark.daemon",
    # else the operator's workers differ from the others' and come from a second daemon
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    name: str = "slackwater", cores: int | None = None, settings: dict[str, Any] | None = None
) -> SparkSession:
    """Return the active session or create a local one.

    Parameters
    ----------
    name
        The name of the application.
    cores
        How many cores it uses, and into how many partitions it shuffles; by default all.
    settings
        Further Spark settings, by name; they come before ours.

    Returns
    -------
    SparkSession
        With RocksDB as state store, times in UTC, and Python workers that start fast.

    Examples
    --------
    >>> spark = session(cores=2)  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415  workers import this module for nothing

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any python3 on the PATH
    own_java = Path(sys.prefix) / "bin" / "java"  # see tools/ensure_java.py
    if own_java.exists():
        os.environ["JAVA_HOME"] = sys.prefix
    cores = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName(name).master(f"local[{cores}]")
    chosen = _SETTINGS | {"spark.sql.shuffle.partitions": cores} | (settings or {})
    for setting, value in chosen.items():
        builder = builder.config(setting, str(value))
    spark: SparkSession = builder.getOrCreate()
    if hasattr(spark, "sparkContext"):
        spark.sparkContext.setLogLevel("ERROR")
        Thread(target=_start_workers, args=(spark,), daemon=True).start()
    return spark


def _start_workers(spark: SparkSession) -> None:
    """Let Spark start its Python daemon while the query is still being made."""
    with suppress(Exception):  # the query itself will report the error
        spark.range(1, numPartitions=1).mapInArrow(_same, "id long").collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def cores_of(spark: SparkSession) -> int | None:
    """How many tasks can run at once; None: it is not known.

    Of a cluster it is not known yet: executors start after the driver, and Spark then reports 2.
    """
    master = str(spark.conf.get("spark.master", ""))
    if not re.match(r"local(\[|$)", master):
        return None
    threads = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master)
    if threads:
        return int(threads[1])
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001  a Spark Connect client has no context; what it raises varies
        return None
