"""A join on a cluster, submitted with the package in a zip; docs/cluster.md has the whole recipe.

``spark-submit --master spark://HOST:7077 --properties-file examples/cluster.conf
--py-files slackwater.zip examples/cluster.py DATA STATE OUT``: three folders that every node sees.
DATA has Parquet files in the folders a and b. Submit it again after a crash, and it goes on.
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
    retention="1 minute",  # so late may an event be, and still find its partners
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
        told = batch.observedMetrics["slackwater"]
        if told.shards:  # a micro-batch without data has nothing to tell
            print(f"batch {batch.batchId}: {told.arrivals:,} rows, {told.produced:,} results")
