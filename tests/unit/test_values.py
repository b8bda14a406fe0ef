"""User values pass through untouched, whatever their type; equal keys are equal across types."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.joins.keys import KeyCodes

UTC = dt.UTC


def test_every_type_of_column_comes_out_as_it_went_in():
    columns = {
        "ts": pa.array([1, 2, 3]),
        "big": pa.array([2**53 + 1, None, -(2**63)]),
        "text": pa.array(["u", None, "ü"]),
        "flag": pa.array([True, None, False]),
        "when": pa.array([dt.datetime(2024, 2, 29, 1, tzinfo=UTC), None, None],
                         pa.timestamp("ns", "Europe/Berlin")),
        "money": pa.array([Decimal("1.10"), None, Decimal("-0.01")]),
        "raw": pa.array([b"\x00", None, b""]),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "nested": pa.array([{"u": 1, "v": None}, None, {"u": None, "v": "w"}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "code": pa.array(["p", "q", "p"]).dictionary_encode(),
        "nothing": pa.nulls(3),
    }  # fmt: skip
    a = pa.table(columns)
    b = pa.table({"ts": [1]})
    query = sw.join(sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10), goal=sw.NoSlack())
    results = query.replay({"a": a, "b": b}).results
    for name in columns:
        column = results.column(f"a_{name}")
        assert column.type == a.column(name).type
        assert column.to_pylist() == a.column(name).to_pylist()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2, None], pa.int32()), pa.array([2, 1, None], pa.int64())),
        (pa.array([1, 2, None], pa.uint64()), pa.array([2, 1, None], pa.uint64())),
        (pa.array(["u", "v", None]), pa.array(["v", "u", None], pa.large_string())),
        (pa.array(["u", "v", None]).dictionary_encode(), pa.array(["v", "u", None])),
        (pa.array([0.0, float("nan"), None]), pa.array([float("nan"), -0.0, None])),
        (pa.array([1.0, 2.5, None]), pa.array([2.5, 1.0, None], pa.float32())),
        (pa.array([1, 2, None]), pa.array([2.0, 1.0, None])),
        (pa.array([True, False, None]), pa.array([False, True, None])),
        (pa.array([Decimal("1.10"), Decimal(2), None]), pa.array([2, 7, None])),
        (
            pa.array([1, 2, None], pa.timestamp("s", "UTC")),
            pa.array([2_000_000, 1_000_000, None], pa.timestamp("us", "Asia/Tokyo")),
        ),
        (pa.array([1, 2, None], pa.date32()), pa.array([2, 1, None], pa.date32())),
        (pa.array([b"u", b"v", None]), pa.array([b"v", b"u", None])),
    ],
)
def test_keys_are_equal_by_value_and_null_equals_nothing(left, right):
    a = pa.table({"ts": [1, 1, 1], "k": left, "id": [0, 1, 2]})
    b = pa.table({"ts": [1, 1, 1], "k": right, "id": [0, 1, 2]})
    query = sw.join(sw.Stream("a", "ts", 0), sw.Stream("b", "ts", 0), on="k", goal=sw.NoSlack())
    run = query.replay({"a": a, "b": b})
    pairs = sorted(
        zip(run.results["a_id"].to_pylist(), run.results["b_id"].to_pylist(), strict=True)
    )
    expected = [(0, 1), (1, 0)] if not isinstance(left[0], pa.Decimal128Scalar) else [(1, 0)]
    assert pairs == expected
    assert run.metrics.rejected == {"null key": 2}


def test_a_composite_key_of_three_columns():
    rows = [(i, i % 2, i // 2 % 2, "uv"[i // 4 % 2]) for i in range(8)]
    a = pa.table({"ts": [0] * 8, "id": [r[0] for r in rows], "p": [r[1] for r in rows],
                  "q": [r[2] for r in rows], "r": [r[3] for r in rows]})  # fmt: skip
    query = sw.join(
        sw.Stream("a", "ts", 0), sw.Stream("b", "ts", 0), on=["p", "q", "r"], goal=sw.NoSlack()
    )
    results = query.replay({"a": a, "b": a}).results
    pairs = zip(results["a_id"].to_pylist(), results["b_id"].to_pylist(), strict=True)
    assert sorted(pairs) == [(i, i) for i in range(8)]


def test_result_time_is_a_timestamp_where_the_streams_have_one():
    ts = pa.array([1_500, 2_700], pa.timestamp("us", "UTC"))  # 1.5 ms and 2.7 ms
    a = pa.table({"ts": ts})
    query = sw.join(sw.Stream("a", "ts", 0), sw.Stream("b", "ts", 0), goal=sw.NoSlack())
    results = query.replay({"a": a, "b": a}).results
    assert results.schema.field("result_ts").type == pa.timestamp("ms", "UTC")
    assert results["result_ts"].cast(pa.int64()).to_pylist() == [1, 2]
    assert results["a_ts"].to_pylist() == ts.to_pylist()
    micro = sw.join(sw.Stream("a", "ts", 0), sw.Stream("b", "ts", 0), unit="us", goal=sw.NoSlack())
    assert micro.replay({"a": a, "b": a}).results["result_ts"].cast(pa.int64()).to_pylist() == [
        1_500,
        2_700,
    ]


def test_dates_and_seconds_are_times_too():
    a = pa.table({"ts": pa.array([0, 1], pa.date32())})
    b = pa.table({"ts": pa.array([86_400], pa.timestamp("s"))})
    query = sw.join(sw.Stream("a", "ts", 0), sw.Stream("b", "ts", 0), goal=sw.NoSlack())
    assert query.replay({"a": a, "b": b}).produced.to_pydict() == {
        "result_ts": [86_400_000],
        "n": [1],
    }


# ---- codes of keys: those that no window holds any more are forgotten


def codes_of(types):
    return KeyCodes([{0: types}], first=2)


@pytest.mark.parametrize(
    "columns",
    [
        [pa.array([0, 1, 2, 3])],
        [pa.array([0.0, 1.5, -2.0, float("nan")])],
        [pa.array(["u", "v", "w", "x"])],
        [pa.array([0, 1, 2, 2]), pa.array(["u", "u", "v", "u"])],
        [pa.array([0, 1, 2, 2]), pa.array(["u", "u", "v", "u"]), pa.array([0.0, 0.0, 0.0, 2.5])],
    ],
    ids=["int", "float", "text", "two columns", "three columns"],
)
def test_keys_that_are_kept_close_ranks_and_one_that_was_forgotten_is_new(columns):
    codes = codes_of([c.type for c in columns])
    assert codes.encode(0, columns, 4).tolist() == [2, 3, 4, 5]
    live = np.array([True, True, True, False, True, True])  # all but the second row's
    assert codes.keep(live).tolist() == [0, 1, 2, -1, 3, 4]
    assert codes.encode(0, columns, 4).tolist() == [2, 5, 3, 4]


def test_a_cross_join_has_one_key_without_columns_and_keeps_it():
    codes = codes_of([])
    assert codes.encode(0, [], 3).tolist() == [2, 2, 2]
    assert codes.keep(np.ones(3, bool)).tolist() == [0, 1, 2]
    assert codes.encode(0, [], 1).tolist() == [2]


def test_more_keys_than_the_smallest_table_holds_may_be_kept():
    codes, values = codes_of([pa.int64()]), pa.array(range(300))
    before = codes.encode(0, [values], 300)
    codes.keep(np.ones(302, bool))
    assert codes.encode(0, [values], 300).tolist() == before.tolist()
