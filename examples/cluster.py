"""A join on a cluster, submitted with the package in a zip; docs/cluster.md explains each step.

``spark-submit --master spark://HOST:7077 --properties-file examples/cluster.conf
--py-files slackwater.zip examples/cluster.py DATA STATE OUT``

The three folders are on a shared file system; DATA has Parquet files in the folders a and b.
After a crash, submit it again: it continues.
"""

import sys

from pyspark.sql import SparkSession

import slackwater as sw

SCHEMA = "ts long, k long, v double, arrival long"
QUERY = sw.join(
    sw.Stream("a", ts="ts", window="1 second"),
    sw.Stream("b", ts="ts", window="1 second"),
    on="k",
    goal=sw.Recall(0.95, over="2 seconds"),
    late="emit",
    retention="1 minute",  # an event may be this late and still find its partners
)

if __name__ == "__main__":
    data, state, out = sys.argv[1:]
    spark = SparkSession.builder.appName("cluster").getOrCreate()
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    streams = {name: read.parquet(f"{data}/{name}") for name in QUERY.names}
    joined = QUERY.stream(streams, arrival="arrival", at_end="flush")
    writer = joined.writeStream.option("checkpointLocation", state).trigger(availableNow=True)
    query = writer.start(out)
    query.awaitTermination()
    for batch in query.recentProgress:
        metrics = batch.observedMetrics["slackwater"]
        if metrics.shards:  # a micro-batch without data has no metrics
            print(f"batch {batch.batchId}: {metrics.arrivals:,} rows, {metrics.produced:,} results")
