"""Columns of any name on Spark: the same results as in a replay."""

import pyarrow as pa
import pytest

import slackwater as sw
from spark.streams import collected, finish, in_parts, replayed, sources, write

TIME, KEY, PRICE, SIZE = "the time", "`key`.1", "bid price", 'x = "y"'


def quotes(first):
    ts = range(first, first + 60)
    return pa.table({
        TIME: ts,
        KEY: [t % 3 for t in ts],
        PRICE: [float(t % 7) for t in ts],
        SIZE: [None if t == 20 else t for t in ts],
    })  # fmt: skip


@pytest.mark.full
def test_a_column_may_be_called_anything(spark, tmp_path):
    tables = {"a": quotes(0), "b": quotes(1)}
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table, 2))
    query = sw.join(
        *(sw.Stream(name, ts=TIME, window=10) for name in "ab"),
        on="a.```key``.1` = b.```key``.1`",
        where=(sw.col("a", PRICE) < sw.col("b", PRICE)) & (sw.col("a", SIZE) != 7),
        select={PRICE: sw.col("b", PRICE), "a.gap": sw.col("b", PRICE) - sw.col("a", PRICE)},
        goal=sw.Slack(100),
    )
    assert sw.sql(str(query)).where == query.where
    expected = replayed(query, tables, arrival=TIME)
    assert expected
    streamed = query.stream(
        sources(spark, tmp_path), arrival=TIME, shards=2, rejects=True, at_end="flush"
    )
    assert streamed.columns == ["result_ts", PRICE, "a.gap", "rejected"]
    finish(streamed, tmp_path)
    stored = spark.read.parquet(f"{tmp_path}/out")
    assert collected(sw.results(stored)) == expected
    [rejected] = sw.rejects(stored).collect()
    assert (rejected.stream, rejected.reason) == ("a", "null in where")
    assert PRICE in rejected.row
