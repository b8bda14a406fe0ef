"""One result schema: what is derived before a run is what engines give."""

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.factory import engine_for
from slackwater.engine.result_schema import result_columns, result_schema

TABLE = pa.table(
    {
        "ts": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "arrived": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "k": pa.array(["x", "y", "x"]),
        "v": pa.array([1, 2, 3], pa.int32()),
    }
)
A, B = sw.Stream("a", "ts", "1 s"), sw.Stream("b", "ts", "1 s")
PLAIN = sw.Stream("a", "ts"), sw.Stream("b", "ts")
QUERIES = {
    "all columns": sw.join(A, B, on="k", late="emit"),
    "counts": sw.join(A, B, on="k", select="count"),
    "listed": sw.join(A, B, on="k", select={"key": "a.k", "sum": "a.v + b.v"}),
    "windows": sw.window(
        PLAIN[0],
        window=sw.Tumbling("1 s"),
        by="k",
        select={"n": sw.count(), "mean": sw.avg("v"), "last": sw.last("v")},
    ),
    "aggregates": sw.aggregate(
        *PLAIN,
        on="k",
        by="a.k",
        select={"n": sw.count()},
        window=sw.Tumbling("1 s"),
        deadline="2 s",
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_results_have_the_schema_that_was_derived_before(name):
    query = QUERIES[name]
    schemas = dict.fromkeys(query.names, TABLE.schema)
    expected = result_schema(query, schemas)
    assert query.result_schema(schemas) == query.result_schema(**schemas) == expected
    assert engine_for(query, schemas).shape.schema == expected
    tables = dict.fromkeys(query.names, TABLE)
    assert query.replay(tables, arrival="arrived").results.schema == expected


def test_columns_with_values_of_a_users_column_name_it():
    sources = {
        column.field.name: column.source
        for name in ("listed", "windows")
        for column in result_columns(QUERIES[name], [TABLE.schema] * len(QUERIES[name].names))
    }
    assert sources == {
        "result_ts": None, "key": ("a", "k"), "sum": None, "k": ("a", "k"), "n": None,
        "mean": None, "last": ("a", "v"),
    }  # fmt: skip


def test_a_stream_without_a_schema_is_named():
    with pytest.raises(sw.DataError, match="there is no data for stream 'b'; got a"):
        result_schema(QUERIES["counts"], {"a": TABLE.schema})


@pytest.mark.parametrize(
    ("name", "kind", "single", "arrival"),
    [
        ("all columns", "join", False, False),
        ("windows", "window", False, False),
        ("aggregates", "aggregate", False, True),
    ],
)
def test_queries_of_all_kinds_have_the_same_properties(name, kind, single, arrival):
    query = QUERIES[name]
    assert (query.kind, query.single_shard, query.needs_arrival) == (kind, single, arrival)
