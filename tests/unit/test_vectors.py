"""Vectors in conditions: what is refused, what is rejected, and that nothing else matters."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored
from slackwater.joins.columns import VectorColumn

LISTS = pa.list_(pa.float64())
PAIRS = pa.list_(pa.float64(), 2)


def table(*vectors, kind=PAIRS, **others):
    """A table with the vectors v; their times are their places."""
    columns = {"ts": np.arange(len(vectors)), "v": pa.array(vectors, kind)}
    return pa.table({**columns, "x": [1.0] * len(vectors), **others})


def replay(a, b, where="dot(a.v, b.v) > 0", vectors=None, **options):
    streams = [sw.Stream(name, "ts", 100, vectors=vectors or {}) for name in "ab"]
    return sw.join(*streams, where=where, **{"goal": sw.NoSlack()} | options).replay(
        {"a": a, "b": b}
    )


def pairs(run):
    """The rows of the members of the results, which are their times."""
    times = (run.results[f"{name}_ts"].to_pylist() for name in "ab")
    return sorted(zip(*times, strict=True))


ONE = table([1, 0])


# ---- what is refused


@pytest.mark.parametrize(
    ("a", "where", "vectors", "message"),
    [
        (ONE, "dot(a.u, b.v) > 0", {}, "where reads a.u, but stream 'a' has no column 'u'; it has"),
        (
            table([1, 0], kind=LISTS),
            "cosine(a.v, b.v) > 0",
            {},
            r"where: cosine must know how long its vectors are; a.v of type list<item: double> may "
            r"have any length: give Stream\('a', ..., vectors=\{'v': length\}\)",
        ),
        (
            ONE,
            "dot(a.v, b.v) > 0",
            {"v": 3},
            r"stream 'a': vectors= gives v 3 components, got 2 in fixed_size_list<.*>\[2\]",
        ),
        (
            table([1, 0, 0], kind=pa.list_(pa.float64(), 3)),
            "l2(a.v, b.v) < 1",
            {},
            "where: l2 takes two vectors of the same length, got a.v of 3 and b.v of 2",
        ),
        (
            ONE,
            "a.v > b.x",
            {},
            "where: the vector a.v is for dot, cosine and l2; got a.v > b.x",
        ),
        (
            ONE,
            "dot(a.x, b.v) > 0",
            {},
            "where: dot takes vectors, lists of numbers; got a.x of type float",
        ),
        (
            pa.table({"ts": [1], "v": [["one", "two"]]}),
            "dot(a.v, b.v) > 0",
            {"v": 2},
            "dot takes vectors, lists of numbers; got a.v of type another type",
        ),
        (
            ONE,
            lambda a, b: a.v[0] > b.x,
            {},
            r"where is a function and reads a.v, which must be numeric, got fixed_size_list<.*; "
            "vectors are for conditions as text, with dot, cosine and l2",
        ),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(a, where, vectors, message):
    with pytest.raises(sw.QueryError, match=message):
        replay(a, ONE, where, vectors)


def test_a_function_may_read_a_number_that_is_a_vector_in_another_stream():
    a, b = pa.table({"ts": [0, 1], "v": [1.0, 3.0]}), table([1, 2])
    assert pairs(replay(a, b, lambda a, b: a.v > b.x)) == [(1, 0)]


# ---- what is rejected


@pytest.mark.parametrize("kind", [LISTS, pa.large_list(pa.float64()), PAIRS])
def test_vectors_with_flaws_are_counted_with_their_rows(kind):
    longer = [] if kind == PAIRS else [[1], [1, 2, 3], [], [None]]
    a = table([1, 2], None, [None, 2], *longer, [3, 4], kind=kind)
    run = replay(a, ONE, vectors={"v": 2})
    found = [(row["row"], row["reason"]) for row in run.rejected.to_pylist()]
    expected = [(1, "null in where"), (2, "null in where")]
    if longer:
        expected += [(row, "bad vector") for row in (3, 4, 5)] + [(6, "null in where")]
    assert found == expected
    assert run.metrics.is_balanced
    assert pairs(run) == [(0, 0), (a.num_rows - 1, 0)]


def test_strict_does_not_take_them():
    a = table([1, 2], [1], kind=LISTS)
    with pytest.raises(sw.DataError, match="stream 'a', column v, row 1: bad vector; with strict"):
        replay(a, ONE, vectors={"v": 2}, strict=True)


def test_components_that_are_no_numbers_compare_with_nothing():
    a = table([math.nan, 1], [math.inf, 1], [-math.inf, 1], [1e200, 1], [1, 1])
    run = replay(a, table([1e200, 0]), "dot(a.v, b.v) > 0 or dot(a.v, b.v) <= 0")
    assert pairs(run) == [(n, 0) for n in (1, 2, 3, 4)]
    run = replay(a, table([1e200, 0]), "cosine(a.v, b.v) > 0 or cosine(a.v, b.v) <= 0")
    assert pairs(run) == [(4, 0)]  # elsewhere infinity is divided by infinity
    assert run.metrics.rejected == {}


# ---- what does not matter


COLUMNS = [
    (pa.list_(pa.float32()), [[1, 2], None, [3], [4, None], [], [5, 6]]),
    (pa.large_list(pa.int64()), [[1, 2], None, [3], [4, None], [], [2**60 + 1, 6]]),
    (pa.list_(pa.bool_()), [[True, False], None, [True], [None, None], [], [True, True]]),
    (pa.list_(pa.decimal128(9, 2)), [[1, 2], None, [3], [4, None], [], [5, 6]]),
    (pa.list_(pa.uint8(), 2), [[1, 2], None, [3, 4], [4, None], None, [5, 6]]),
    (pa.list_(pa.float16(), 2), [[1, 2], None, [3, 4], [4, None], None, [5, 6]]),
]


@pytest.mark.parametrize(("kind", "lists"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
def test_a_slice_of_a_column_has_the_vectors_of_its_rows(kind, lists):
    column, vector = pa.array(lists, kind), VectorColumn(0, "v", 0, 2)
    for begin in range(len(lists) + 1):
        for end in range(begin, len(lists) + 1):
            rows, part = lists[begin:end], column.slice(begin, end - begin)
            null, of_another_length = vector.flaws(part)
            assert null.tolist() == [row is None or None in row for row in rows]
            values = vector.values(part)
            assert values.shape == (len(rows), 2)
            for row, found, flawed in zip(rows, values, null | of_another_length, strict=True):
                assert flawed == (row is None or None in row or len(row) != 2)
                assert flawed or found.tolist() == [float(component) for component in row]


def test_pandas_and_polars_frames_have_vectors_too():
    vectors = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    arrays = [np.array(v, np.float32) for v in vectors]
    for frame in (
        pd.DataFrame({"ts": [0, 1, 2], "v": arrays}),
        pl.DataFrame({"ts": [0, 1, 2], "v": vectors}),
        pl.DataFrame(
            {"ts": [0, 1, 2], "v": vectors}, {"ts": pl.Int64, "v": pl.Array(pl.Float32, 2)}
        ),
    ):
        found = pairs(replay(frame, frame, "cosine(a.v, b.v) > 0.5", {"v": 2}))
        assert found == [(0, 0), (0, 2), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize("length", [5, 33])
def test_a_sum_is_the_same_to_the_last_bit_whichever_event_comes_last(length):
    # d is the sum to the last bit or so: a difference would tip the scales of some pair.
    rng = np.random.default_rng(length)
    kind = pa.list_(pa.float64(), length)
    a, b = rng.normal(size=(2, 120, length))
    d = (a * b).sum(axis=1)
    tables = {"a": table(*a, kind=kind, d=d), "b": table(*b, kind=kind)}
    streams = [sw.Stream(name, "ts", 0, vectors={"v": length}) for name in "ab"]
    query = sw.join(*streams, where="dot(a.v, b.v) >= a.d", goal=sw.Slack(0))
    first, second = (
        query.replay(
            {
                name: rows.append_column("at", pa.array(2 * np.arange(120) + (name == last)))
                for name, rows in tables.items()
            },
            arrival="at",
        )
        for last in "ab"
    )
    assert pairs(first) == pairs(second) != []


@pytest.mark.compiled
def test_vectors_of_the_past_are_forgotten():
    rows, length = 4_000, 64
    kind = pa.list_(pa.float64(), length)
    vectors = np.random.default_rng(1).normal(size=(rows, length))
    long = table(*vectors, kind=kind)
    query = sw.join(
        *(sw.Stream(name, "ts", 5) for name in "ab"), where="dot(a.v, b.v) > 0", goal=sw.NoSlack()
    )
    batch, _ = recorded(query, {"a": long, "b": long}, None)
    engine = JoinEngine(query, {"a": long.schema, "b": long.schema})
    for part in batch.slices(100):
        engine.feed(part)
    assert engine.log.records().vectors.shape == (1024, length + 1)


def test_a_snapshot_is_refused_by_a_query_with_vectors_of_another_length():
    def query(length):
        streams = [sw.Stream(name, "ts", 5, vectors={"v": length}) for name in "ab"]
        return sw.join(*streams, where="dot(a.v, b.v) > 0", goal=sw.NoSlack())

    rows = table([1, 2], kind=LISTS)
    schemas = {"a": rows.schema, "b": rows.schema}
    saved = JoinEngine(query(2), schemas).snapshot()
    restored(saved, JoinEngine(query(2), schemas))
    message = r"another query: streams was \['a by ts, v of 2', .*, now \['a by ts, v of 3'"
    with pytest.raises(sw.SnapshotError, match=message):
        restored(saved, JoinEngine(query(3), schemas))
