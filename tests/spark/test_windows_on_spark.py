"""Windows of one stream on Spark: the same aggregates as embedded, over shards and restarts."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slackwater as sw
from slackwater.testing.workloads import uniform_keys
from spark.streams import (
    as_frame,
    by_batch,
    collected,
    finish,
    in_parts,
    is_balanced,
    observed,
    source,
    write,
)

SELECT = {
    "n": sw.count(),
    "most": sw.functions.max("k"),
    "mean": sw.avg("ts"),
    "total": sw.functions.sum("k"),
    "first_at": sw.first("arrival"),
}
S = sw.Stream("s", ts="ts")


def table(rows=4_000):
    return uniform_keys(rows, seed=5, rate_per_s=500, keys=20, mean_delay_ms=100)


def rows_of(result):
    return Counter(tuple(row.values()) for row in result.to_pylist())


@pytest.mark.parametrize(
    "options",
    [
        {"window": sw.Tuples(50)},
        pytest.param({"window": sw.Sliding("1 second", "250 ms")}, marks=pytest.mark.full),
        pytest.param({"window": sw.Tumbling("1 s")}, marks=pytest.mark.full),
    ],
    ids=["tuples", "hopping", "tumbling"],
)
def test_one_shard_gives_what_a_replay_gives(spark, tmp_path, options):
    query = sw.window(S, select=SELECT, goal=sw.DropRatio(0.02), **options)
    data = table()
    expected = query.replay(data, arrival="arrival")
    write(tmp_path / "in", in_parts(data, 4))
    stream = query.stream(source(spark, tmp_path / "in"), arrival="arrival", at_end="flush")
    batches = observed(finish(stream, tmp_path))
    assert all(map(is_balanced, batches))
    told = batches[-1]
    found = Counter(row for rows in by_batch(tmp_path).values() for row in rows.elements())
    assert found == rows_of(expected.results)
    assert told["late_dropped"] == expected.metrics.streams["s"].late_dropped > 0
    assert told["recall"] is None


def test_groups_are_spread_over_shards(spark):
    # K is complete from the start, so that no shard drops what another would not.
    query = sw.window(
        S, window=sw.Sliding("1 s", "500 ms"), by="k", select=SELECT, goal=sw.Slack("1 h")
    )
    data = table()
    expected = rows_of(query.replay(data, arrival="arrival").results)
    for shards in (1, 3):
        frame = as_frame(spark, data)
        assert collected(query.stream(frame, arrival="arrival", shards=shards)) == expected


@pytest.mark.full
def test_a_restart_after_every_batch_changes_nothing(spark, tmp_path):
    query = sw.window(
        S, window=sw.Sliding("2 s", "500 ms"), by="k", select=SELECT, goal=sw.DropRatio(0.05)
    )
    parts = in_parts(table(), 3)
    write(tmp_path / "calm" / "in", parts)
    finish(
        query.stream(source(spark, tmp_path / "calm" / "in"), arrival="arrival"), tmp_path / "calm"
    )
    for number, part in enumerate(parts):
        write(tmp_path / "rough" / "in", [part], first=number)
        stream = query.stream(source(spark, tmp_path / "rough" / "in"), arrival="arrival")
        finish(stream, tmp_path / "rough")
    assert by_batch(tmp_path / "rough") == by_batch(tmp_path / "calm")


@pytest.mark.full
def test_what_was_dropped_can_be_had(spark):
    query = sw.window(S, window=sw.Tuples(10), select={"n": sw.count()}, goal=sw.NoSlack())
    data = table(500)
    tagged = query.stream(as_frame(spark, data), arrival="arrival", rejects=True)
    late = sw.rejects(tagged).where("reason = 'late'").count()
    assert late == query.replay(data, arrival="arrival").late.num_rows > 0
    assert sw.results(tagged).count() == 500 - late


def test_numbers_that_are_no_times_have_no_future(spark):
    query = sw.window(
        sw.Stream("orders", order_by="ts"), window=sw.Tuples(10), select={"last": sw.last("ts")}
    )
    data = table(300)
    far = data.set_column(0, "ts", pc.add(data.column("ts"), 10**17))
    assert query.stream(as_frame(spark, far), arrival="arrival").count() > 0


def test_a_number_far_ahead_of_all_others_is_rejected_with_its_row(spark):
    query = sw.window(
        sw.Stream("orders", order_by="id"), window=sw.Tuples(10), select={"n": sw.count()}
    )
    ids = np.arange(300)
    ids[200] = 10**9
    frame = spark.createDataFrame(pa.table({"id": ids, "at": np.arange(300)}).to_pandas())
    tagged = query.stream(frame, arrival="at", rejects=True)
    [row] = sw.rejects(tagged).collect()
    assert row.reason == "too far in the future"
    assert json.loads(row.row)["id"] == 10**9
    assert sw.results(tagged).count() == 299


def test_windows_without_groups_are_in_one_place(spark):
    query = sw.window(S, window=sw.Tuples(10), select={"n": sw.count()})
    with pytest.raises(sw.QueryError, match="windows without groups need all events in one place"):
        query.stream(as_frame(spark, table(10)), shards=2)
