"""Change the slack of a running query through its control directory, and read its metrics log.

Run it with ``.venv/bin/python examples/change_the_slack.py``.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark import MetricsLog, session

rng = np.random.default_rng(1)


def write_minute(file: Path, number: int) -> None:
    """Write the readings of a minute, in order of arrival; one in five is up to 3 s late."""
    ts = 60_000 * number + np.arange(600) * 100
    delay = np.where(rng.random(600) < 0.2, rng.integers(0, 3_000, 600), 0)
    order = np.argsort(ts + delay, kind="stable")
    rows = {"ts": ts[order], "k": rng.integers(0, 5, 600), "at": (ts + delay)[order]}
    hidden = file.with_name(f".{file.name}")  # hidden from Spark until it is complete
    pq.write_table(pa.table(rows), hidden)
    hidden.rename(file)


spark = session("change the slack", cores=2)
streams = (sw.Stream(name, ts="ts", window="1 second") for name in "ab")
query = sw.join(*streams, on="k", goal=sw.Slack("100 ms"), retention="5 seconds")
with TemporaryDirectory() as scratch:
    here = Path(scratch)
    for name in ("a", "b", "control"):
        (here / name).mkdir()
    log = MetricsLog(here / "metrics.jsonl")
    spark.streams.addListener(log)
    read = spark.readStream.schema("ts long, k long, at long")
    inputs = {name: read.parquet(str(here / name)) for name in query.names}
    joined = query.stream(inputs, arrival="at", control=str(here / "control"))
    writer = joined.writeStream.format("noop").option("checkpointLocation", f"{here}/state")
    running = writer.start()
    for number in range(4):
        if number == 2:
            (here / "control" / "1.json").write_text('{"set": {"slack": "3 s"}}')
        for name in query.names:
            write_minute(here / name / f"{number}.parquet", number)
        running.processAllAvailable()
    running.stop()
    log.wait()
    spark.streams.removeListener(log)
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    for batch in (line["metrics"] for line in lines if line["event"] == "batch"):
        rows, k = batch["arrivals"], batch["slack"]
        late, recall = batch["late_kept"] + batch["late_dropped"], batch["recall"] or 0
        print(f"{rows:5,} rows: K {k:4} ms, {late} late, {recall:.0%} found")
