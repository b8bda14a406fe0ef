"""Join three sensor streams with a condition: first exactly over files, then as a stream.

Run it with ``.venv/bin/python examples/three_sensors.py``.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark import session

SECONDS, FILES = 120, 4
rng = np.random.default_rng(1)


def write(directory: Path, per_s: int, mean: float) -> None:
    """Write readings of ten machines in order of arrival; one in ten is up to 6 s late."""
    rows = SECONDS * per_s
    ts = np.arange(rows) * 1000 // per_s
    delay = np.where(rng.random(rows) < 0.1, rng.integers(0, 6_000, rows), 0)
    table = pa.table({"ts": ts, "machine": rng.integers(0, 10, rows),
                      "value": rng.normal(mean, 10, rows)})  # fmt: skip
    table = table.take(np.argsort(ts + delay, kind="stable"))
    directory.mkdir()
    for n in range(FILES):
        pq.write_table(table.slice(n * rows // FILES, rows // FILES), directory / f"{n}.parquet")
        os.utime(directory / f"{n}.parquet", (n, n))  # Spark reads the oldest file first


spark = session("three sensors", cores=2)
query = sw.join(
    *(sw.Stream(name, ts="ts", window="1 second") for name in ("heat", "load", "noise")),
    on="machine",
    where="heat.value > 75 and noise.value - load.value > 20",
    goal=sw.Slack("1 second"),
    retention="10 seconds",
)
with TemporaryDirectory() as scratch:
    for name, per_s, mean in (("heat", 50, 70.0), ("load", 30, 50.0), ("noise", 40, 60.0)):
        write(Path(scratch) / name, per_s, mean)
    files = {name: spark.read.parquet(f"{scratch}/{name}") for name in query.names}
    exact = query.stream(files).count()  # files without arrival=: the exact join
    print(f"exact, from the files:   {exact:,} results")

    read = spark.readStream.schema("ts long, machine long, value double")
    read = read.option("maxFilesPerTrigger", 1)
    streams = {name: read.parquet(f"{scratch}/{name}") for name in query.names}
    writer = query.stream(streams, at_end="flush").writeStream.format("noop")
    writer = writer.option("checkpointLocation", f"{scratch}/state").trigger(availableNow=True)
    running = writer.start()
    running.awaitTermination()
    metrics = running.lastProgress.observedMetrics["slackwater"]
    print(f"streamed, waiting 1 s:   {metrics.produced:,} results, {metrics.produced / exact:.1%}")
    print(f"lost by late readings:   {metrics.lost:,}, counted by the join itself")
