"""DuckDB and Polars join the same rows at rest: what the machine can do; see `job`.

An interval join by key is written with buckets of time as long as the window, so that no engine
compares rows that are far apart: each row of the other stream is in three buckets.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


def join_sql(folder: str, streams: list[str], window_ms: int, count: bool) -> str:
    """The join for DuckDB."""
    window = f"to_milliseconds({window_ms})"
    bucket = f"epoch_ms(ts) // {window_ms}"
    first, *others = streams
    tables = [f"(SELECT *, {bucket} AS near FROM read_parquet('{folder}/{first}/*')) {first}"]
    conditions = []
    for n, other in enumerate(others):
        spread = f"unnest([{bucket} - 1, {bucket}, {bucket} + 1]) AS near"
        tables.append(f"(SELECT *, {spread} FROM read_parquet('{folder}/{other}/*')) {other}")
        conditions.append(f"{first}.k = {other}.k AND {first}.near = {other}.near")
        conditions += [
            f"{s}.ts BETWEEN {other}.ts - {window} AND {other}.ts + {window}"
            for s in (first, *others[:n])
        ]
    columns = ", ".join(f"{s}.{c} AS {s}_{c}" for s in streams for c in ("ts", "k", "v", "arrival"))
    what = "count(*) AS n" if count else columns
    return f"SELECT {what} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"


def polars_join(folder: str, streams: list[str], window_ms: int) -> pl.LazyFrame:
    """The join for Polars."""
    import polars as pl  # noqa: PLC0415

    first, *others = streams
    window = pl.duration(milliseconds=window_ms)
    bucket = pl.col("ts").dt.epoch("ms") // window_ms
    joined = pl.scan_parquet(f"{folder}/{first}/*").with_columns(near=bucket)
    for n, other in enumerate(others):
        offset = pl.concat_list(bucket - 1, bucket, bucket + 1)
        own = pl.scan_parquet(f"{folder}/{other}/*").with_columns(near=offset).explode("near")
        joined = joined.join(own, on=["k", "near"], suffix=f"_{other}")
        for before in ("ts", *(f"ts_{s}" for s in others[:n])):
            joined = joined.filter((pl.col(before) - pl.col(f"ts_{other}")).abs() <= window)
    return joined.drop("near")


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The seconds of each run, reading included, and the results of the last."""
    seconds = []
    for folder in job["runs"]:
        start = perf_counter()
        results = _run(job, folder)
        seconds.append(perf_counter() - start)
    return {"seconds": seconds, "results": results}


def _run(job: dict[str, Any], folder: str) -> int:
    if job["peer"] == "duckdb":
        import duckdb  # noqa: PLC0415

        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {job['parallelism']}")
            sql = join_sql(folder, job["streams"], job["window_ms"], job["count"])
            table = connection.sql(sql).to_arrow_table()
            return int(table["n"][0].as_py()) if job["count"] else int(table.num_rows)
    joined = polars_join(folder, job["streams"], job["window_ms"])
    if job["count"]:
        import polars as pl  # noqa: PLC0415

        return int(joined.select(pl.len()).collect(engine="streaming").item())
    return joined.collect(engine="streaming").height


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(json.loads(sys.argv[1]))) + "\n")
