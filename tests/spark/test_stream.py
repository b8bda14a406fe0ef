"""Streaming DataFrames: the results, what is told about them, and the end of the input."""

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slackwater as sw
from spark.streams import (
    all_rows,
    by_batch,
    finish,
    in_parts,
    is_balanced,
    observed,
    pair,
    pair_query,
    replayed,
    rows_of,
    sources,
    write,
)


def written(folder, tables, parts):
    for name, table in tables.items():
        write(folder / name, in_parts(table, parts))


def times(*pairs, **columns):
    """A table of (ts, k), with an arrival number for each row."""
    ts, k = zip(*pairs, strict=True)
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.int64()), **columns})


def test_one_shard_is_the_engine_whatever_the_batches_are(spark, tmp_path):
    # Both streams are cut at the same arrivals, so no number has passed when it comes.
    query, tables = pair_query(slack="50 ms", late="emit"), pair(rows=1_500)
    cuts = {
        name: [
            t.filter(pa.compute.equal(pa.compute.divide(t["arrival"], 1_000), i)) for i in range(4)
        ]
        for name, t in tables.items()
    }
    for name, parts in cuts.items():
        write(tmp_path / name, [*parts[:3], pa.concat_tables(parts[3:])])
    joined = query.stream(sources(spark, tmp_path), arrival="arrival", shards=1, at_end="flush")
    told = observed(finish(joined, tmp_path))
    assert all_rows(tmp_path) == replayed(query, {n: pa.concat_tables(c) for n, c in cuts.items()})
    assert [row["behind"] for row in told] == [0] * len(told)
    assert all(map(is_balanced, told))
    assert told[-1]["buffered"] == 0
    assert told[-1]["streams"]["a"]["state"] == "finished"


@pytest.mark.full
def test_hold_keeps_what_waits_for_the_next_run_and_flush_lets_it_out(spark, tmp_path):
    query, tables = pair_query(slack="10 s"), pair(rows=600)
    written(tmp_path, tables, 2)
    held = query.stream(sources(spark, tmp_path))
    told = observed(finish(held, tmp_path))
    assert not all_rows(tmp_path)  # ten seconds of slack, and the streams are shorter
    assert told[-1]["buffered"] == 1_200
    later = {n: t.set_column(0, "ts", pa.compute.add(t["ts"], 60_000)) for n, t in tables.items()}
    for name, table in later.items():
        write(tmp_path / name, [table], first=2)
    told = observed(finish(query.stream(sources(spark, tmp_path)), tmp_path))
    assert all_rows(tmp_path) == replayed(query, tables)
    assert told[-1]["arrivals"] == 2_400
    assert told[-1]["buffered"] == 1_200


@pytest.mark.full
def test_result_time_can_be_given_a_watermark_downstream(spark, tmp_path):
    query, tables = pair_query(slack="2 s"), pair(rows=2_000)  # no delay is longer
    zoned = {
        n: t.set_column(0, "ts", t["ts"].cast(pa.timestamp("ms", "UTC"))) for n, t in tables.items()
    }
    written(tmp_path, zoned, 3)
    joined = query.stream(sources(spark, tmp_path))
    window = F.window("result_ts", "200 milliseconds")
    counted = joined.withWatermark("result_ts", "0 seconds").groupBy(window).count()
    finish(counted.select("window.start", "count"), tmp_path)
    found = all_rows(tmp_path)
    assert found
    expected = Counter(row[0] // 200 * 200 for row in replayed(query, tables).elements())
    for (begin, n), times_seen in found.items():
        assert times_seen == 1
        assert n == expected[round(begin.timestamp() * 1_000)]


def test_rejected_rows_are_counted_and_can_be_had(spark, tmp_path):
    a = pa.table({"ts": [1, None, 3, 4, 10**14], "k": [7, 7, None, 7, 7]})
    b = pa.table({"ts": [2, 5], "k": [7, 7]})
    written(tmp_path, {"a": a, "b": b}, 1)
    tagged = pair_query().stream(sources(spark, tmp_path), rejects=True, at_end="flush")
    told = observed(finish(tagged, tmp_path))
    assert told[-1]["rejected"] == {
        "bad_time": 1, "null_key": 1, "null_in_where": 0, "too_far_in_the_future": 1,
        "bad_vector": 0,
    }  # fmt: skip
    assert told[-1]["streams"]["a"]["local_time"] == 4  # not the year 5138
    assert all(map(is_balanced, told))
    stored = spark.read.parquet(f"{tmp_path}/out")
    rejected = {(r.stream, r.reason, json.loads(r.row)["ts"]) for r in sw.rejects(stored).collect()}
    assert rejected == {
        ("a", "bad time", None), ("a", "null key", 3), ("a", "too far in the future", 10**14),
    }  # fmt: skip
    results = sw.results(stored)
    assert results.columns == ["result_ts", "a_ts", "a_k", "b_ts", "b_k"]
    assert sorted(rows_of(results.toArrow())) == [
        (2, 1, 7, 2, 7), (4, 4, 7, 2, 7), (5, 1, 7, 5, 7), (5, 4, 7, 5, 7),
    ]  # fmt: skip


@pytest.mark.full
def test_a_time_may_be_as_far_in_the_future_as_the_user_says(spark, tmp_path):
    late = pa.array([0, 90_000], pa.timestamp("ms", "UTC"))
    table = pa.table({"ts": late, "arrival": pa.array([0, 0], late.type), "k": [1, 1]})
    written(tmp_path, {"a": table, "b": table}, 1)
    for skew, rejected in (("1 minute", 2), ("2 minutes", 0), (None, 0)):
        joined = pair_query().stream(
            sources(spark, tmp_path), arrival="arrival", max_future_skew=skew
        )
        folder = tmp_path / str(rejected) / str(skew)
        told = observed(finish(joined, folder))
        assert told[-1]["rejected"]["too_far_in_the_future"] == rejected


@pytest.mark.full
def test_a_silent_stream_does_not_hold_back_the_others_for_ever(spark, tmp_path):
    # a: 0 100 ... 2000 2100 ... 4500          b speaks at 100, and after a pause at 4000
    a = [times((0, 1), (100, 1)), times((2000, 1)), times((2100, 1)), times((4500, 1))]
    b = [times((100, 1)), None, None, times((4000, 1), (90, 1))]
    query = sw.join(
        sw.Stream("a", "ts", "10 s"), sw.Stream("b", "ts", "10 s"), on="k", goal=sw.NoSlack()
    )
    write(tmp_path / "a", a)
    write(tmp_path / "b", [t if t is not None else b[0].slice(0, 0) for t in b])
    joined = query.stream(sources(spark, tmp_path), idle_after="1 s")
    told = observed(finish(joined, tmp_path))
    assert [row["streams"]["b"]["state"] for row in told] == ["active", "idle", "idle", "slow"]
    batches = by_batch(tmp_path)
    found = {batch: sorted(row[:2] for row in rows.elements()) for batch, rows in batches.items()}
    assert found[0] == [(100, 0), (100, 100)]
    assert found[1] == [(2000, 2000)]  # without waiting for b
    assert found[2] == [(2100, 2100)]
    # b's 4000 is in order; its 90 is behind what the others did meanwhile
    assert told[3]["late_kept"] == 1
    assert told[3]["lost"] == 4


def test_commands_reach_every_shard(spark, tmp_path):
    query = sw.join(
        sw.Stream("a", "ts", "10 s"), sw.Stream("b", "ts", "10 s"), on="k", goal=sw.Slack("1 hour")
    )
    keys = range(6)
    for name in "ab":
        write(tmp_path / name, [times(*((10 * k, k) for k in keys)), times((1_000, 1), (1_001, 2))])
    control = tmp_path / "control"
    control.mkdir()
    (control / "0-broken.json").write_text("{")
    joined = query.stream(sources(spark, tmp_path), control=str(control))
    told = observed(finish(joined, tmp_path))
    assert told[-1]["slack"] == 3_600_000
    assert told[0]["refused_commands"] == 1  # and the query runs on
    assert not all_rows(tmp_path)
    (control / "1.json").write_text(json.dumps({"set": {"slack": "10 ms"}, "flush": True}))
    told = observed(finish(query.stream(sources(spark, tmp_path), control=str(control)), tmp_path))
    assert told[-1]["slack"] == 10
    assert told[-1]["buffered"] == 0
    assert len(list(all_rows(tmp_path).elements())) == len(keys) + 2 + 4


@pytest.mark.full
def test_a_recall_set_by_a_command_lasts_over_restarts(spark, tmp_path):
    tables = pair(rows=3_000)
    halves = {name: in_parts(table, 2) for name, table in tables.items()}
    for name, (first, _) in halves.items():
        write(tmp_path / name, in_parts(first, 2))
    control = tmp_path / "control"
    control.mkdir()
    query = replace(pair_query(), goal=sw.Recall(0.8, over="2 seconds"))

    def told():
        joined = query.stream(
            sources(spark, tmp_path), arrival="arrival", shards=2, control=str(control)
        )
        return observed(finish(joined, tmp_path))

    (control / "1.json").write_text('{"set": {"recall": 0.99}}')
    assert {row["target"] for row in told()} == {0.99}
    for name, (_, second) in halves.items():
        write(tmp_path / name, in_parts(second, 2), first=2)
    again = told()
    assert {row["target"] for row in again} == {0.99}
    assert all(map(is_balanced, again))


@pytest.mark.full
def test_copied_streams_are_counted_once(spark, tmp_path):
    tables = pair(rows=120)
    written(tmp_path, tables, 2)
    near = [sw.Stream(name, ts="ts", window="30 ms") for name in "ab"]
    query = sw.join(*near, where="a.v < b.v", goal=sw.Slack("10 s"))
    joined = query.stream(sources(spark, tmp_path), arrival="arrival", shards=3, at_end="flush")
    told = observed(finish(joined, tmp_path))
    assert all_rows(tmp_path) == replayed(query, tables)
    assert told[-1]["arrivals"] == 240
    assert told[-1]["copies"] == 2 * 120
    assert all(map(is_balanced, told))
    assert told[-1]["produced"] == len(list(all_rows(tmp_path).elements()))


@pytest.mark.full
@pytest.mark.parametrize("parts", [1, 3])
def test_results_do_not_depend_on_the_cut_when_there_is_an_arrival(spark, tmp_path, parts):
    # Files are cut where the arrival of both streams is a multiple of one second.
    query, tables = pair_query(slack="100 ms"), pair(rows=900)
    for name, table in tables.items():
        second = pa.compute.divide(table["arrival"], 1_000)
        own = [table.filter(pa.compute.equal(second, i)) for i in range(6)]
        write(
            tmp_path / name,
            [pa.concat_tables(own[i::1][: 6 // parts]) for i in range(0, 6, 6 // parts)],
        )
    joined = query.stream(sources(spark, tmp_path), arrival="arrival", at_end="flush")
    told = observed(finish(joined, tmp_path))
    whole = query.stream(
        {n: spark.createDataFrame(t) for n, t in tables.items()}, arrival="arrival"
    )
    assert all_rows(tmp_path) == Counter(rows_of(whole.toArrow()))
    assert told[-1]["lost"] > 0
