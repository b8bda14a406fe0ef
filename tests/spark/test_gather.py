"""The tallies of shards come in any order, and are added up in one."""

from itertools import permutations

import slackwater as sw
from slackwater.spark.blobs import RESULTS, from_ipc
from slackwater.spark.gather import gather_batch
from slackwater.spark.job import Job
from slackwater.spark.operator import run_batch
from slackwater.spark.pack import Pack
from slackwater.spark.partitioning import Partitioning
from spark.streams import pair


def told(job, blobs):
    rows = [dict(zip(("kind", "data", "numbers"), blob, strict=True)) for blob in blobs]
    return [from_ipc(data) for kind, data, _ in gather_batch(job, rows) if kind == RESULTS]


def test_sums_do_not_depend_on_which_shard_comes_first():
    """Floats are not added up alike in every order, and a repeated task may be another's turn."""
    tables = pair(3_000, keys=100)
    query = sw.aggregate(
        *(sw.Stream(name, ts="ts") for name in tables),
        on="k",
        select={"total": sw.functions.sum("a.v")},
        window=sw.Tumbling("1 s"),
        deadline="3 s",
    )
    schemas = tuple(table.schema for table in tables.values())
    job = Job(query, schemas, Partitioning.of(query, 3), 2, "arrival", None, None)
    packed = [
        row
        for s, table in enumerate(tables.values())
        for batch in Pack(job, s)(iter(table.to_batches()))
        for row in batch.to_pylist()
    ]
    shards = [
        list(run_batch(job, [row for row in packed if row["shard"] == key], number))
        for number, key in enumerate(job.shard_keys)
    ]
    first, *others = (told(job, sum(order, [])) for order in permutations(shards))
    assert first
    assert all(other == first for other in others)
