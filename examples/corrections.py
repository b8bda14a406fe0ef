"""Keep a table of orders with their payments right: corrections are applied with plain Spark.

If a payment comes when its order was given out without one, that row is taken back.

Run it with ``.venv/bin/python examples/corrections.py``.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

import slackwater as sw
from slackwater.spark import session

ORDERS, FILES = 2_000, 5
rng = np.random.default_rng(1)


def write(folder: Path, ts: np.ndarray, ids: np.ndarray, mean_delay: float) -> None:
    """Write rows in order of arrival."""
    order = np.argsort(ts + rng.exponential(mean_delay, len(ts)), kind="stable")
    folder.mkdir()
    for n, part in enumerate(np.array_split(order, FILES)):
        pq.write_table(pa.table({"ts": ts[part], "id": ids[part]}), folder / f"{n}.parquet")
        os.utime(folder / f"{n}.parquet", (n, n))  # Spark reads the oldest file first


def apply(changes: DataFrame, batch: int) -> None:
    """Write the table behind this micro-batch: of each identity the last change counts."""
    changes = changes.withColumn("place", F.monotonically_increasing_id())  # rows are in order
    newest = Window.partitionBy("result_id").orderBy(F.desc("place"))
    last = changes.withColumn("n", F.row_number().over(newest)).where("n = 1").drop("n", "place")
    new = last.where("change != 'delete'")
    if batch > 0:
        before = spark.read.parquet(f"{here}/table/{batch - 1}")
        new = new.unionByName(before.join(last, "result_id", "left_anti"))
    new.write.mode("overwrite").parquet(f"{here}/table/{batch}")  # a repeated one is the same
    taken_back = changes.where("change = 'delete'").count()
    print(f"batch {batch}: {taken_back} rows were taken back")


spark = session("corrections", cores=2)
orders, payments = (sw.Stream(name, ts="ts", window="5 seconds") for name in ("orders", "payments"))
options = {"on": "id", "how": "left", "goal": sw.Slack("1 second"), "retention": "1 hour"}
query = sw.join(orders, payments, emit="eager", late="emit", result_id=True, **options)
with TemporaryDirectory() as scratch:
    here, ids, paid = Path(scratch), np.arange(ORDERS), rng.random(ORDERS) < 0.8
    ts = 100 * ids
    write(here / "orders", ts, ids, 100)
    write(here / "payments", (ts + rng.integers(0, 5_000, ORDERS))[paid], ids[paid], 6_000)
    read = spark.readStream.schema("ts long, id long").option("maxFilesPerTrigger", 1)
    joined = query.stream({n: read.parquet(f"{here}/{n}") for n in query.names}, at_end="flush")
    writer = joined.writeStream.foreachBatch(apply).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{here}/state").start().awaitTermination()
    table = spark.read.parquet(str(max((here / "table").iterdir())))
    exact = query.stream({n: spark.read.parquet(f"{here}/{n}") for n in query.names})
    wrong = table.exceptAll(exact).count() + exact.exceptAll(table).count()
    print(f"the table has {table.count():,} rows; {wrong} differ from the exact join")
