"""Batch DataFrames: without an arrival column the exact join, with one a replay of the arrivals."""

import pytest

import slackwater as sw
from marks import full_but
from spark.streams import as_frame, collected, pair, pair_query, replayed, rows_of

SMALL = pair(rows=300, keys=8)


def frames(spark, tables):
    return {name: as_frame(spark, table) for name, table in tables.items()}


def exact(query, tables):
    """The join of the sorted streams: all that there is to find."""
    ordered = {name: table.sort_by("ts") for name, table in tables.items()}
    return replayed(query, ordered, arrival="ts")


QUERIES = {
    "one key": pair_query(),
    "two keys": sw.join(
        sw.Stream("a", "ts", "1 s"),
        sw.Stream("b", "ts", "1 s"),
        on=["k", "arrival"],
        goal=sw.NoSlack(),
    ),
    "theta": sw.join(
        sw.Stream("a", "ts", "40 ms"),
        sw.Stream("b", "ts", "40 ms"),
        where="abs(a.v - b.v) < 0.3",
        goal=sw.NoSlack(),
    ),
    "cross": sw.join(
        sw.Stream("a", "ts", "20 ms"), sw.Stream("b", "ts", "30 ms"), goal=sw.NoSlack()
    ),
    "function": sw.join(
        sw.Stream("a", "ts", "40 ms"),
        sw.Stream("b", "ts", "40 ms"),
        where=lambda a, b: a.v < b.v,
        goal=sw.NoSlack(),
    ),
    "three streams, a chain": sw.join(
        *(sw.Stream(name, "ts", "300 ms") for name in "abc"),
        on=["a.k = b.k", "b.r = c.r"],
        goal=sw.NoSlack(),
    ),
}


@pytest.mark.parametrize("name", full_but(("one key", "theta"), QUERIES))
def test_without_arrival_the_result_is_the_exact_join_on_any_number_of_shards(spark, name):
    query = QUERIES[name]
    tables = dict(SMALL)
    if len(query.streams) == 3:
        tables = {n: t.append_column("r", t["k"]) for n, t in (SMALL | {"c": SMALL["a"]}).items()}
    expected = exact(query, tables)
    assert expected
    inputs = frames(spark, tables)
    for shards in (1, 2, 7):
        assert collected(query.stream(inputs, shards=shards)) == expected


def test_with_arrival_and_one_shard_the_result_is_that_of_the_engine(spark):
    query, tables = pair_query(slack="50 ms", late="emit"), pair()
    expected = replayed(query, tables)
    assert any(row[-1] for row in expected)  # some are late
    assert collected(query.stream(frames(spark, tables), arrival="arrival", shards=1)) == expected


@pytest.mark.full
def test_complete_slack_gives_the_same_on_any_number_of_shards(spark):
    query, tables = pair_query(slack="10 s"), pair()
    expected = exact(query, tables)
    for shards in (1, 2, 3, 4, 8):
        joined = query.stream(frames(spark, tables), arrival="arrival", shards=shards)
        assert collected(joined) == expected


@pytest.mark.full
def test_counts_add_up_to_the_number_of_results(spark):
    query, tables = pair_query(select="count"), pair()
    found = query.stream(frames(spark, tables)).toArrow()
    assert found.column_names == ["result_ts", "n"]
    assert sum(found["n"].to_pylist()) == sum(exact(pair_query(), tables).values())


@pytest.mark.full
def test_tuple_count_windows_run_on_one_shard(spark):
    a, b = (sw.Stream(name, ts="ts", window=sw.Tuples(5)) for name in "ab")
    query, tables = sw.join(a, b, on="k", goal=sw.Slack("10 s")), pair(rows=400)
    inputs = frames(spark, tables)
    expected = replayed(query, tables)
    assert collected(query.stream(inputs, arrival="arrival")) == expected
    with pytest.raises(sw.QueryError, match="shards must be 1, got 2"):
        query.stream(inputs, shards=2)


def test_a_query_can_be_a_step_of_a_chain(spark):
    query, tables = pair_query(), SMALL
    inputs = frames(spark, tables)
    joined = inputs["b"].transform(query.with_(a=inputs["a"], shards=1))
    assert collected(joined) == collected(query.stream(inputs, shards=1))


@pytest.mark.full
def test_the_order_of_rows_and_partitions_does_not_matter(spark):
    query, tables = pair_query(slack="50 ms", late="emit"), pair(rows=800)
    expected = collected(query.stream(frames(spark, tables), arrival="arrival"))
    shuffled = {
        name: frame.repartition(5).orderBy("v") for name, frame in frames(spark, tables).items()
    }
    assert collected(query.stream(shuffled, arrival="arrival")) == expected


def test_empty_streams_give_no_results(spark):
    tables = {name: table.slice(0, 0) for name, table in SMALL.items()}
    schema = "ts long, k long, v double, arrival long"
    empty = {name: spark.createDataFrame([], schema) for name in tables}
    assert rows_of(pair_query().stream(empty).toArrow()) == []
