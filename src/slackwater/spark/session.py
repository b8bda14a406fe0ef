"""A local Spark session with the settings that Slackwater needs; users may bring their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from slackwater.errors import SparkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

STATE_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_NEEDED = "slackwater", "pyarrow", "pandas", "numba"
_ASK = (
    "import sys; from importlib.util import find_spec; print(*sys.version_info[:2], sep='.'); "
    f"print(*(name for name in {_NEEDED} if find_spec(name) is None))"
)
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


def check_workers(spark: SparkSession) -> None:
    """Raise if the Python that Spark starts on this machine cannot run a query.

    A session that was made without ``PYSPARK_PYTHON`` starts the ``python3`` of the PATH, which is
    another one where the virtual environment is not activated; the workers then die in the JVM.
    """
    context = getattr(spark, "_sc", None)  # a Spark Connect client has none
    if context is None or not str(context.master).startswith("local"):
        return  # the executors of a cluster have a Python of their own
    problem = _problem_of(str(context.pythonExec))
    if problem is not None:
        msg = (
            f"Spark's workers run {context.pythonExec}, {problem}. Set PYSPARK_PYTHON to "
            f"{sys.executable} before the session is created: "
            'os.environ["PYSPARK_PYTHON"] = sys.executable, or use slackwater.spark.session'
        )
        raise SparkError(msg)


@cache
def _problem_of(python: str) -> str | None:
    """What is wrong with an interpreter; None: nothing."""
    found = shutil.which(python)
    if found is None:
        return "which is not there"
    if Path(found).absolute().parent == Path(sys.executable).absolute().parent:
        return None
    try:
        answer = subprocess.run(  # noqa: S603  what Spark is about to run, too
            [found, "-c", _ASK], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "which does not start"
    version, *missing = answer.split()
    if version != f"{sys.version_info.major}.{sys.version_info.minor}":
        return f"which is Python {version}"
    return f"which has no {', '.join(missing)}" if missing else None


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
