"""Queries from SQL on Spark: columns that are listed, aliases, a stream joined with itself."""

from pyspark.sql import types as t

import slackwater as sw
from spark.streams import (
    all_rows,
    as_frame,
    collected,
    finish,
    in_parts,
    pair,
    replayed,
    sources,
    write,
)

LISTED = """
SELECT r.k, r.arrival - l.arrival AS apart, MAX(l.ts, r.ts) AS at, l.v / 2 AS half,
    l.v < r.v AS less
FROM a [RANGE 1 SECOND] l, b [RANGE 1 SECOND] r WHERE l.k = r.k WITH SLACK 300 MS, LATE EMIT
"""


def test_listed_columns_are_those_of_the_embedded_engine(spark, tmp_path):
    tables, query = pair(1_000), sw.sql(LISTED)
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table, 2))
    frames = sources(spark, tmp_path)
    joined = query.stream(frames, arrival="arrival", shards=1, at_end="flush")
    assert [(f.name, f.dataType) for f in joined.schema.fields] == [
        ("result_ts", t.LongType()), ("k", t.LongType()), ("apart", t.LongType()),
        ("at", t.LongType()), ("half", t.DoubleType()), ("less", t.BooleanType()),
        ("late", t.BooleanType()),
    ]  # fmt: skip
    finish(joined, tmp_path)
    found = all_rows(tmp_path)
    assert found == replayed(query, tables)
    assert sum(found.values()) > 100


def test_a_stream_joins_itself_in_a_batch(spark):
    table = pair(300)["a"]
    query = sw.sql(
        "SELECT x.k, x.ts AS one, y.ts AS other FROM t [RANGE 1 S] x JOIN t [RANGE 1 S] y USING (k)"
    )
    found = collected(query.stream({"t": as_frame(spark, table)}, shards=2))
    rows = [(row["k"], row["ts"]) for row in table.to_pylist()]
    expected = [
        (max(t, u), k, t, u) for k, t in rows for j, u in rows if j == k and abs(t - u) <= 1000
    ]
    assert sorted(found.elements()) == sorted(expected)
