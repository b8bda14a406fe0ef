"""Orders with their payments and shipments, or without them: two outer joins, one behind the other.

Outer joins are for two streams. What the first writes is a stream of the second, on `result_ts`.

Run it with ``.venv/bin/python examples/three_streams_outer.py``.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark import session

# (second, order); each list is a file, and files are in order of arrival
FILES = {
    "orders": [[(0, 1), (10, 2), (20, 3)], [(30, 4), (15, 5)], [(3600, 9)]],
    "payments": [[(12, 2)], [(24, 3), (32, 4), (5, 1)], [(3600, 9)]],
    "shipments": [[(30, 2)], [(38, 4), (40, 5)], [(3600, 9)]],
}
LEFT = {"how": "left", "goal": sw.Slack("10 seconds")}
paid = sw.join(
    *(sw.Stream(name, ts="ts", window="20 seconds") for name in ("orders", "payments")),
    on="id",
    **LEFT,
)
shipped = sw.join(
    sw.Stream("paid", ts="result_ts", window="40 seconds"),
    sw.Stream("shipments", ts="ts", window="40 seconds"),
    on="paid.orders_id = shipments.id",
    **LEFT,
)
spark = session("three streams", cores=2)
read = spark.readStream.option("maxFilesPerTrigger", 1)
with TemporaryDirectory() as scratch:
    here = Path(scratch)
    for name, files in FILES.items():
        (here / name).mkdir()
        for n, rows in enumerate(files):
            columns = {"ts": [1000 * s for s, _ in rows], "id": [i for _, i in rows]}
            pq.write_table(pa.table(columns), here / name / f"{n}.parquet")
            os.utime(here / name / f"{n}.parquet", (n, n))  # Spark reads the oldest file first
    given = {name: read.schema("ts long, id long").parquet(f"{here}/{name}") for name in FILES}
    for name, query in (("paid", paid), ("shipped", shipped)):
        joined = query.stream({stream: given[stream] for stream in query.names})
        writer = joined.writeStream.format("parquet").option("path", f"{here}/{name}")
        writer = writer.option("checkpointLocation", f"{here}/{name}-state")
        writer.trigger(availableNow=True).start().awaitTermination()
        given[name] = read.schema(joined.schema).parquet(f"{here}/{name}")
    for row in spark.read.parquet(f"{here}/shipped").orderBy("paid_orders_id").collect():
        times = f"paid {row.paid_payments_ts}, shipped {row.shipments_ts}"
        print(f"order {row.paid_orders_id}: {times}")
