"""The queries that are disturbed: one of each kind, small enough to run hundreds of times."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.testing.workloads import uniform_keys
from slackwater_lab.papers.overload import Workload
from spark.cases import PAPERS, Trial, golden
from spark.streams import by_arrival

FILES = 9  # of each stream; below Spark's compaction of its logs, so each batch has its own entry

SELECT = {"n": sw.count(), "total": sw.functions.sum("a.v"), "mean": sw.avg("b.v")}
NEAR = "abs(s1.x - s2.x) <= 2"
CLOCK = "shedding, wall clock"  # the one kind whose runs differ


def streams(names="ab", rows=1_800, rate=100, keys=40, delay=300):
    """Disordered streams; no two events of one have the same time, so each row is one of a kind."""
    return {
        name: uniform_keys(rows, seed=i, rate_per_s=rate, keys=keys, mean_delay_ms=delay)
        for i, name in enumerate(names, 1)
    }


def trial(query, tables, **options):
    return Trial(query, by_arrival(tables, FILES), "arrival", options)


def joined(tables, on="k", window="2 s", **asked):
    inputs = [sw.Stream(name, ts="ts", window=window) for name in tables]
    return trial(sw.join(*inputs, on=on, late="emit", **asked), tables)


def vectors():
    """Streams whose rows have a direction."""
    tables = {}
    for i, (name, table) in enumerate(streams(rows=900, rate=50).items()):
        directions = np.random.default_rng(i).normal(size=(table.num_rows, 3))
        tables[name] = table.append_column("d", pa.array(list(directions), pa.list_(pa.float64())))
    inputs = [sw.Stream(name, "ts", "1 s", vectors={"d": 3}) for name in tables]
    near = sw.join(*inputs, where="cosine(a.d, b.d) > 0.95", goal=sw.Slack("100 ms"), late="emit")
    return trial(near, tables)


def windows():
    query = sw.window(
        sw.Stream("s", ts="ts"),
        window=sw.Sliding("2 s", "500 ms"),
        by="k",
        select={"n": sw.count(), "mean": sw.avg("v"), "first_at": sw.first("arrival")},
        goal=sw.DropRatio(0.05),
    )
    return trial(query, streams("s", keys=15))


def aggregates(**asked):
    """Sums over three shards: floats, so that the order in which they are added shows."""
    inputs = [sw.Stream(name, ts="ts") for name in "ab"]
    query = sw.aggregate(
        *inputs, on="k", select=SELECT, window=sw.Tumbling("500 ms"), late="emit", **asked
    )
    return trial(query, streams(), shards=3)


def shedding(shed):
    """More than the budget allows, or than any machine can do in no time."""
    tables = {
        name: table.take(np.unique(table["ts"].to_numpy(), return_index=True)[1])
        for name, table in Workload(m=2, rates=(60.0,), seconds=36).tables(1).items()
    }
    tables = {n: table.append_column("arrival", table["ts"]) for n, table in tables.items()}
    inputs = [sw.Stream(name, "ts", "10 s") for name in tables]
    return trial(sw.join(*inputs, where=NEAR, shed=shed, goal=sw.NoSlack()), tables)


KINDS: dict[str, Callable[[], Trial]] = {
    "two-way": lambda: joined(streams(), goal=sw.Slack("100 ms")),
    "recall goal": lambda: joined(streams(), goal=sw.Recall(0.95, over="3 s")),
    "three-way": lambda: joined(streams("abc", rows=1_200, keys=120), goal=sw.Slack("100 ms")),
    "theta": lambda: joined(
        streams(), on=None, where="abs(a.v - b.v) < 0.01", goal=sw.Slack("100 ms")
    ),
    "vectors": vectors,
    "windows": windows,
    "aggregates": lambda: aggregates(goal=sw.Deadline("2 s")),
    "compensation": lambda: aggregates(goal=sw.Deadline("600 ms"), compensate=True),
    "shedding, budget": lambda: shedding(sw.Harvest(budget=2e3)),
    CLOCK: lambda: shedding(sw.Harvest(usage=1e-6, buffer="1 s")),
    **{name: partial(golden, case, FILES) for name, case in PAPERS.items()},
}
USUAL = list(KINDS)[: 1 - len(PAPERS)]  # one example of a paper, unless others are asked for
