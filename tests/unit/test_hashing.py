"""Hashes look at values only: not at nulls behind masks, slices, chunks or processes."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from slackwater.events.hashing import hash_rows
from slackwater.joins.keys import common_type
from slackwater.kernels.hashing import sort_runs

COLUMNS = [
    pa.array([1, None, 3, -1]),
    pa.array([0.5, None, float("nan"), -0.0]),
    pa.array(["a", None, "", "a long text of more than eight bytes"]),
    pa.array([b"x", b"", None, b"y"]),
    pa.array([True, None, False, True]),
    pa.array([Decimal("1.5"), None, Decimal("-2.5"), Decimal("0.0")]),
    pa.array([[1, 2], None, [], [3]]),
    pa.array([[("k", 1)], None, [], [("k", None)]], pa.map_(pa.string(), pa.int64())),
    pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 2, "y": None}]),
    pa.array([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), 2)),
    pa.array(["a", None, "b", "a"]).dictionary_encode(),
    pa.nulls(4),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_slice_and_a_copy_hash_like_the_whole(column):
    whole = hash_rows([column])
    assert hash_rows([column.slice(1, 2)]).tolist() == whole[1:3].tolist()
    copied = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert hash_rows([copied]).tolist() == whole.tolist()


def test_different_rows_differ_and_floats_that_are_equal_do_not():
    assert len(set(hash_rows(COLUMNS).tolist())) == 4
    zeros, nans = pa.array([0.0, -0.0]), pa.array(np.array([np.nan, -np.nan]))
    assert len(set(hash_rows([zeros]).tolist())) == 1
    assert len(set(hash_rows([nans]).tolist())) == 1
    assert hash_rows([]).tolist() == []


def test_keys_of_different_types_have_a_type_in_which_they_are_equal():
    cases = [
        ([pa.int8(), pa.int64()], pa.int64()),
        ([pa.int32(), pa.float32()], pa.float64()),
        ([pa.timestamp("ms"), pa.timestamp("us")], pa.timestamp("us")),
        ([pa.decimal128(5, 2), pa.int64()], pa.decimal256(76, 2)),
        ([pa.uint64(), pa.int64()], pa.decimal256(76, 0)),
        ([pa.bool_(), pa.bool_()], pa.bool_()),
        ([pa.string(), pa.large_string()], pa.string()),
        ([pa.date32(), pa.date64()], pa.date64()),
    ]
    assert [common_type(types) for types, _ in cases] == [kind for _, kind in cases]


def test_short_runs_are_sorted_each_by_itself():
    rank = np.array([3, 1, 2, 9, 5, 4], np.uint64)
    order = np.arange(6)
    sort_runs(np.array([0, 4]), np.array([3, 6]), rank, order)
    assert order.tolist() == [1, 2, 0, 3, 5, 4]
