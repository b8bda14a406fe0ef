"""Files in, streaming queries over them, rows out."""

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark.listener import plain
from slackwater.testing.workloads import uniform_keys

KEYS = 50


def pair(rows=2_000, seed=1, keys=KEYS):
    """Two disordered streams: one table each, in arrival order."""
    return {
        name: uniform_keys(rows, seed=2 * seed + i, rate_per_s=500, keys=keys)
        for i, name in enumerate("ab")
    }


def pair_query(window="1 s", slack="300 ms", **options):
    """A join of the two."""
    a, b = (sw.Stream(name, ts="ts", window=window) for name in "ab")
    return sw.join(a, b, on="k", goal=sw.Slack(slack), **options)


def in_parts(table, n):
    """The table cut into `n` tables."""
    size = -(-table.num_rows // n)
    return [table.slice(i * size, size) for i in range(n)]


def by_arrival(tables, parts=4):
    """The tables in parts that arrive one after the other, those of both streams at a time."""
    last = max(pc.max(table["arrival"]).as_py() for table in tables.values())
    ends = [-1, *(last * (i + 1) // parts for i in range(parts))]
    return {
        name: [
            table.filter((pc.field("arrival") > begin) & (pc.field("arrival") <= end))
            for begin, end in pairwise(ends)
        ]
        for name, table in tables.items()
    }


def write(folder, tables, first=0):
    """A file for each table; Spark reads older files first."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables, first):
        file = folder / f"{number:05}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


def source(spark, folder, per_trigger=1):
    """The files of a folder as a stream."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_trigger)
    return reader.parquet(str(folder))


def sources(spark, folder, names="ab", per_trigger=1):
    """The streams whose files are in folders of their names."""
    return {name: source(spark, Path(folder) / name, per_trigger) for name in names}


def start(frame, folder, sink="out"):
    """Write a stream to Parquet files until there is no more input."""
    writer = frame.writeStream.format("parquet").option("path", f"{folder}/{sink}")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()


def finish(frame, folder, sink="out"):
    """`start`, and wait for the end; returns what each micro-batch observed."""
    query = start(frame, folder, sink)
    query.awaitTermination()
    return query.recentProgress


def observed(progress):
    """The metrics of each micro-batch, as plain data."""
    rows = [plain(p.observedMetrics["slackwater"]) for p in progress]
    return [row for row in rows if row["shards"]]


def by_batch(folder, sink="out"):
    """What each micro-batch wrote, read through the sink's manifest: a multiset of rows."""
    log = Path(folder) / sink / "_spark_metadata"
    found = {}
    for file in sorted(log.iterdir(), key=lambda f: int(f.stem) if f.stem.isdigit() else -1):
        if file.suffix == ".compact" or not file.name.isdigit():
            continue
        entries = [json.loads(line) for line in file.read_text().splitlines()[1:]]
        paths = [entry["path"].removeprefix("file://") for entry in entries]
        tables = [pq.ParquetFile(path).read() for path in paths]
        found[int(file.name)] = Counter(row for table in tables for row in rows_of(table))
    return found


def all_rows(folder, sink="out"):
    """What all micro-batches wrote."""
    return sum(by_batch(folder, sink).values(), Counter())


def rows_of(table):
    """The rows of a table as tuples, which can be counted; so are the lists in them."""
    return [
        tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
        for row in table.to_pylist()
    ]


def replayed(query, tables, arrival="arrival"):
    """What the embedded engine makes of the same arrivals: a multiset of rows."""
    return Counter(rows_of(query.replay(tables, arrival=arrival).results))


def as_frame(spark, table):
    """A batch DataFrame."""
    return spark.createDataFrame(table)


def collected(frame):
    """The rows of a batch DataFrame, a multiset."""
    return Counter(rows_of(pa.Table.from_batches(frame.toArrow().to_batches())))


def is_balanced(row):
    """Whether the accounting partition of observed metrics holds."""
    fates = ("in_order", "late_kept", "late_dropped", "buffered", "shed")
    return row["arrivals"] == sum(row[f] for f in fates) + sum(row["rejected"].values())
