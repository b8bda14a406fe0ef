"""Flink's SQL interval join: a script for the Python of Flink; see `job`.

State on the heap, no checkpoints, objects reused: the fastest that Flink has. Each stream comes
from as many CSV files as there are parallel readers; each reader takes one, in order, so that no
row is late but by its own delay. (Parquet needs a jar that PyFlink does not bring.)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

_SETTINGS = {
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "table.local-time-zone": "UTC",
}
_TABLE = """CREATE TEMPORARY TABLE {name} (
    ts BIGINT, k BIGINT, v DOUBLE, t AS TO_TIMESTAMP_LTZ(ts, 3),
    WATERMARK FOR t AS t - INTERVAL '{slack:.3f}' SECOND
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"""
# One window that ends with the input: the count is emitted once, and no result is too late for it.
_COUNT = """SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(t), INTERVAL '30000' DAY(5)))
GROUP BY window_start, window_end"""


def join_sql(streams: list[str], window_ms: int) -> str:
    """A chain of interval joins; `t` is the time of the first stream."""
    first, *others = streams
    window = f"INTERVAL '{window_ms / 1000:.3f}' SECOND"
    columns = ", ".join(f"{s}.{c} AS {s}_{c}" for s in streams for c in ("ts", "k", "v"))
    conditions = []
    for n, other in enumerate(others):
        conditions.append(f"{first}.k = {other}.k")
        conditions.append(f"{first}.t BETWEEN {other}.t - {window} AND {other}.t + {window}")
        # an interval join has one pair of times; the others are plain numbers
        conditions += [f"ABS({other}.ts - {s}.ts) <= {window_ms}" for s in others[:n]]
    return f"SELECT {first}.t, {columns} FROM {', '.join(streams)} WHERE {' AND '.join(conditions)}"


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The seconds of each run, and the results of the last."""
    configuration = Configuration()
    for name, value in {**_SETTINGS, "parallelism.default": str(job["parallelism"])}.items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    flink = TableEnvironment.create(settings.with_configuration(configuration).build())
    seconds = []
    for folder in job["runs"]:
        _register(flink, job, folder)
        start = perf_counter()
        if job["count"]:
            results = _count(flink)
        else:
            flink.execute_sql("INSERT INTO nowhere SELECT * FROM joined").wait()
        seconds.append(perf_counter() - start)
    return {"seconds": seconds, "results": results if job["count"] else _count(flink)}


def _register(flink: Any, job: dict[str, Any], folder: str) -> None:
    for name in job["streams"]:
        flink.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
        path, slack = f"{folder}/{name}", job["slack_ms"] / 1000
        flink.execute_sql(_TABLE.format(name=name, path=path, slack=slack))
    joined = join_sql(job["streams"], job["window_ms"])
    flink.execute_sql("DROP TEMPORARY VIEW IF EXISTS joined")
    flink.execute_sql(f"CREATE TEMPORARY VIEW joined AS {joined}")
    flink.execute_sql("DROP TEMPORARY TABLE IF EXISTS nowhere")
    columns = ", ".join(
        f"{s}_{c} {kind}"
        for s in job["streams"]
        for c, kind in (("ts", "BIGINT"), ("k", "BIGINT"), ("v", "DOUBLE"))
    )
    flink.execute_sql(
        f"CREATE TEMPORARY TABLE nowhere (t TIMESTAMP_LTZ(3), {columns}) "
        "WITH ('connector' = 'blackhole')"
    )


def _count(flink: Any) -> int:
    """Through a file: a table that is collected in Python polls the job."""
    with TemporaryDirectory() as scratch:
        flink.execute_sql("DROP TEMPORARY TABLE IF EXISTS counted")
        flink.execute_sql(
            "CREATE TEMPORARY TABLE counted (n BIGINT) "
            f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{scratch}')"
        )
        flink.execute_sql(f"INSERT INTO counted {_COUNT}").wait()
        files = [file for file in Path(scratch).rglob("*") if file.is_file()]
        return sum(int(line) for file in files for line in file.read_text().split())


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(measure(json.loads(sys.argv[1]))) + "\n")
