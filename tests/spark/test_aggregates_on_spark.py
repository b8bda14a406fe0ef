"""Aggregates over joined windows on Spark: what is told embedded, over shards and restarts."""

from collections import Counter

import numpy as np
import pytest

import slackwater as sw
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.replay import recorded
from slackwater.spark.listener import with_merged_charts
from spark.streams import (
    as_frame,
    by_arrival,
    by_batch,
    finish,
    in_parts,
    is_balanced,
    observed,
    pair,
    sources,
    write,
)

A, B = (sw.Stream(name, ts="ts") for name in "ab")


def query_of(**options):
    asked = {
        "select": {"n": sw.count(), "total": sw.functions.sum("a.k"), "mean": sw.avg("b.k")},
        "window": sw.Tumbling("500 ms"),
        "deadline": "600 ms",
        "late": "emit",
    } | options
    return sw.aggregate(A, B, on="k", **asked)


def rows_of(table):
    return Counter(tuple(_rounded(row).values()) for row in table.to_pylist())


def _rounded(row):
    """Sums over shards are added in another order."""
    return {n: float(f"{v:.9g}") if isinstance(v, float) else v for n, v in row.items()}


def put(tmp_path, tables, first=0, last=None):
    """Files, some of the parts."""
    for name, parts in by_arrival(tables).items():
        write(tmp_path / name, parts[first:last], first=first)


# the average delay of AEMA goes by the order of arrival, so that of several shards is another one
@pytest.mark.parametrize(
    ("shards", "kind"), [pytest.param(1, "aema", marks=pytest.mark.full), (3, True)]
)
def test_a_stream_tells_what_a_replay_tells(spark, tmp_path, shards, kind):
    query, tables = query_of(compensate=kind), pair(4_000, keys=20)
    expected = query.replay(tables, "arrival")
    put(tmp_path, tables)
    stream = query.stream(
        sources(spark, tmp_path), arrival="arrival", shards=shards, at_end="flush"
    )
    batches = observed(finish(stream, tmp_path))
    assert all(map(is_balanced, batches))
    found = Counter(row for rows in by_batch(tmp_path).values() for row in rows.elements())
    assert _all_rounded(found) == rows_of(expected.results)
    assert batches[-1]["produced"] == expected.results.num_rows > 30
    assert batches[-1]["recall"] is None
    charts = [with_merged_charts(batch)["charts"] for batch in batches]
    made = np.diff([0, *(batch["produced"] for batch in batches)])
    assert [len(drawn["aggregates"]) for drawn in charts] == [min(13, n) for n in made]
    starts = expected.results["window_start"].to_pylist()
    assert [drawn["aggregates"][-1]["start"] for drawn in charts] == [
        starts[until - 1] for until in np.cumsum(made)
    ]


def _all_rounded(found):
    return Counter({
        tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row): n
        for row, n in found.items()
    })  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("shards", [1, 2])
def test_batch_frames_too(spark, shards):
    query, tables = query_of(compensate=True, by="a.k"), pair(2_000, keys=5)
    frames = {name: as_frame(spark, table) for name, table in tables.items()}
    found = query.stream(frames, arrival="arrival", shards=shards).toArrow()
    expected = query.replay(tables, "arrival").results
    assert rows_of(found) == rows_of(expected)
    with pytest.raises(sw.SparkError, match="name the column with arrival="):
        query.stream(frames)


@pytest.mark.full
def test_a_stream_goes_on_after_a_restart(spark, tmp_path):
    query, tables = query_of(compensate=True), pair(3_000, keys=10)
    engine = AggregateEngine(query, {name: table.schema for name, table in tables.items()})
    expected = engine.feed(recorded(query, tables, "arrival")[0]).table
    put(tmp_path, tables, last=2)
    finish(query.stream(sources(spark, tmp_path), arrival="arrival", shards=2), tmp_path)
    put(tmp_path, tables, first=2)
    again = query.stream(sources(spark, tmp_path), arrival="arrival", shards=2)
    finish(again, tmp_path)
    found = Counter(row for rows in by_batch(tmp_path).values() for row in rows.elements())
    assert _all_rounded(found) == rows_of(expected)
    assert expected.num_rows > 15


@pytest.mark.full
def test_rows_without_an_arrival_arrive_with_their_batch(spark, tmp_path):
    query = query_of(select={"n": sw.count()}, retention=2**45)
    tables = pair(1_000, keys=10)
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table.drop_columns(["arrival"]), 2))
    stream = query.stream(sources(spark, tmp_path), at_end="flush", max_future_skew=None)
    finish(stream, tmp_path)
    found = [row for rows in by_batch(tmp_path).values() for row in rows.elements()]
    exact = query.replay(tables, "arrival").exact
    assert sum(row[2] for row in found if row[-1]) == sum(exact.column("n").to_pylist())
