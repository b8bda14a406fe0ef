"""Three streams at once on Spark: streams and batch DataFrames, restarts, a goal."""

from collections import Counter

import pytest

import slackwater as sw
from marks import full_but
from slackwater.testing.oracle import exact
from slackwater.testing.workloads import uniform_keys
from spark.streams import (
    all_rows,
    as_frame,
    by_arrival,
    by_batch,
    collected,
    finish,
    is_balanced,
    observed,
    replayed,
    rows_of,
    sources,
    write,
)

NAMES = "abc"
TABLES = {
    name: uniform_keys(1_200, seed=i, rate_per_s=400, keys=60) for i, name in enumerate(NAMES, 1)
}
KEYED = {"on": "k"}
CHAIN = {"on": ["a.k = b.k", "b.v = c.v"]}
CROSS = {"where": "a.k = b.k and abs(b.v - c.v) < 0.05"}


def query_of(**options):
    streams = (sw.Stream(name, ts="ts", window="300 ms") for name in NAMES)
    return sw.join(*streams, **{"emit": "eager", "goal": sw.Slack("60 ms")} | options)


def written(folder, files=range(4)):
    for name, parts in by_arrival(TABLES).items():
        for number in files:
            write(folder / name, [parts[number]], first=number)


def stream(spark, folder, query, **options):
    options = {"arrival": "arrival", "at_end": "flush", "shards": 2} | options
    return query.stream(sources(spark, folder, NAMES), **options)


@pytest.mark.parametrize(
    "options",
    full_but([KEYED | {"result_id": True}], [KEYED | {"result_id": True}, CHAIN, CROSS]),
    ids=str,
)
def test_shards_give_the_rows_of_the_engine(spark, tmp_path, options):
    query = query_of(**options)
    written(tmp_path)
    told = observed(finish(stream(spark, tmp_path, query), tmp_path))
    expected = replayed(query, TABLES)
    assert all_rows(tmp_path) == expected
    assert all(map(is_balanced, told))
    last = told[-1]
    assert last["produced"] == expected.total() > (0 if "k" != options.get("on") else 500)
    if options.get("on") == "k":
        metrics = query.replay(TABLES, arrival="arrival").metrics
        assert last["lost_unknown"] == metrics.lost_unknown > 0
        assert last["lost_estimated"] == pytest.approx(metrics.lost_estimated, rel=0.2)
        assert last["complete_through"] is None


def test_a_result_is_in_the_micro_batch_of_its_last_member(spark, tmp_path):
    query = query_of(on="k", goal=sw.MaxSlack())
    written(tmp_path)
    finish(stream(spark, tmp_path, query), tmp_path)
    rows, arrived = by_batch(tmp_path), {}
    for name, parts in by_arrival(TABLES).items():
        for number, part in enumerate(parts):
            arrived |= {
                (name, ts, v): number
                for ts, v in zip(part["ts"].to_pylist(), part["v"].to_pylist(), strict=True)
            }
    columns = query.result_schema(**{name: t.schema for name, t in TABLES.items()}).names
    place = {column: at for at, column in enumerate(columns)}
    for number, found in rows.items():
        for row in found:
            members = [
                arrived[name, row[place[f"{name}_ts"]], row[place[f"{name}_v"]]] for name in NAMES
            ]
            assert max(members) == number


@pytest.mark.full
def test_counts_add_up_over_micro_batches_and_a_stop(spark, tmp_path):
    query = query_of(on="k", select="count", retention="10 s")
    written(tmp_path, files=range(2))
    finish(stream(spark, tmp_path, query, at_end="hold"), tmp_path)
    written(tmp_path, files=(2, 3))
    finish(stream(spark, tmp_path, query, at_end="hold"), tmp_path)
    found = Counter()
    for (time, n), times in all_rows(tmp_path).items():
        found[time] += n * times
    expected = query.replay(TABLES, arrival="arrival").results
    assert found == dict(zip(*(column.to_pylist() for column in expected.columns), strict=True))


@pytest.mark.full
def test_a_goal_keeps_what_it_needs(spark, tmp_path):
    query = query_of(on="k", goal=sw.Recall(0.9, over="1 second"))
    written(tmp_path)
    told = observed(finish(stream(spark, tmp_path, query), tmp_path))
    true = (
        query_of(on="k", goal=sw.Slack("1 hour")).replay(TABLES, arrival="arrival").metrics.produced
    )
    assert 0.85 * true <= told[-1]["produced"] <= true
    assert told[-1]["slack"] > 0


def test_a_batch_frame_without_arrivals_gives_the_exact_join(spark):
    query = query_of(on="k", select={"t": "a.ts", "u": "b.ts", "v": "c.ts"})
    frames = {name: as_frame(spark, table) for name, table in TABLES.items()}
    true = Counter(rows_of(exact(query, TABLES).table))
    assert collected(query.stream(frames, shards=3)) == true
