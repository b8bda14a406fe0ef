"""Batches with ticks, and the size of rows of any type."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.join import JoinEngine
from slackwater.engine.snapshot import restored
from slackwater.events.batch import Batch, Checked, offsets, row_bytes

POINT = pa.struct({"x": pa.int32(), "name": pa.string()})
SIZES = [  # type, values, bytes of each: a text or list has 4 of its own, a null has room
    (pa.int64(), [1, None], [8, 8]),
    (pa.bool_(), [True, None], [1, 1]),
    (pa.decimal128(9, 2), [1, None], [16, 16]),
    (pa.binary(3), [b"abc", None], [3, 3]),
    (pa.string(), ["four", "", None], [8, 4, 4]),
    (pa.large_binary(), [b"four", b"", None], [8, 4, 4]),
    (pa.list_(pa.int32()), [[1, 2], [], None], [12, 4, 4]),
    (pa.large_list(pa.string()), [["a", "bc"], [], None], [15, 4, 4]),
    (pa.list_(pa.list_(pa.int8())), [[[1], [2, 3]], [[]], None], [15, 8, 4]),
    (pa.list_(pa.int32(), 2), [[1, 2], [3, 4], None], [8, 8, 8]),
    (pa.list_(pa.string(), 2), [["a", "bc"], ["", ""], None], [11, 8, 8]),
    (pa.list_(pa.list_(pa.int32(), 2)), [[], [], None], [4, 4, 4]),
    (pa.list_(pa.int32(), 0), [[], [], None], [0, 0, 0]),
    (POINT, [{"x": 1, "name": "four"}, {"x": 1, "name": None}, None], [12, 8, 8]),
    (pa.list_(POINT), [[{"x": 1, "name": "four"}] * 2, [], None], [28, 4, 4]),
    (pa.map_(pa.string(), pa.int16()), [[("a", 1), ("bc", 2)], [], None], [19, 4, 4]),
    (pa.map_(pa.int8(), pa.list_(pa.int8())), [[(1, [1, 2])], [], None], [11, 4, 4]),
    (pa.json_(), ['{"a": 1}', "{}", None], [12, 6, 4]),
    (pa.uuid(), [b"sixteen bytes = 16"[:16], None], [16, 16]),
    (pa.null(), [None, None], [1, 1]),
]
ids = [str(kind) for kind, *_ in SIZES]


@pytest.mark.parametrize(("kind", "values", "sizes"), SIZES, ids=ids)
def test_a_row_has_the_size_of_its_values_also_in_a_slice(kind, values, sizes):
    column = pa.array([*values, *values], kind)
    assert row_bytes(pa.table({"c": column, "d": column})).tolist() == [2 * n for n in sizes * 2]
    for begin in range(len(column) + 1):
        for end in range(begin, len(column) + 1):
            part = pa.table({"c": column.slice(begin, end - begin)})
            assert row_bytes(part).tolist() == (sizes * 2)[begin:end]
    chunks = pa.table({"c": pa.chunked_array([column.slice(1), column], kind)})
    assert row_bytes(chunks).tolist() == [*(sizes * 2)[1:], *sizes * 2]


def test_a_column_inside_a_slice_of_a_struct_has_its_own_size():
    inner = pa.array([["a"], ["bc", "d"], [], ["efg"]])
    column = pa.StructArray.from_arrays([inner, inner], ["u", "v"]).slice(1, 2)
    assert row_bytes(pa.table({"c": column})).tolist() == [2 * (4 + 6 + 5), 2 * 4]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2, 3]], pa.list_view(pa.int64())),
        pa.RunEndEncodedArray.from_arrays([1, 2], [10, 20]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_of_unusual_layout_has_about_its_size(column):
    assert 1 <= row_bytes(pa.table({"c": column})).sum() <= column.nbytes


@pytest.mark.parametrize(("kind", "values", "_"), SIZES, ids=ids)
def test_an_engine_with_rows_of_any_type_can_be_saved(kind, values, _):
    table = pa.table({"ts": range(len(values)), "c": pa.array(values, kind)})
    query = sw.join(sw.Stream("a", "ts", 9), sw.Stream("b", "ts", 9), goal=sw.Slack(9))
    schemas = {"a": table.schema, "b": table.schema}
    engine = JoinEngine(query, schemas)
    engine.feed(Batch((table, table), np.repeat([0, 1], len(values)).astype(np.uint8)))
    again = restored(engine.snapshot(), JoinEngine(query, schemas))
    assert again.flush().table.equals(engine.flush().table)


def test_offsets_are_those_of_the_slice():
    column = pa.array(["a", "bc", None, "def"])
    assert offsets(column).tolist() == [0, 1, 3, 3, 6]
    assert offsets(column.slice(1, 2)).tolist() == [1, 3, 3]
    assert offsets(column.slice(4)).tolist() == [0]
    assert offsets(pa.array([1])) is None


# ---- batches

T = [pa.table({"ts": [1, 2, 3]}), pa.table({"ts": [10]})]


def batch():
    #        a  a  tick of b  b  a  tick of a  tick of b
    turns = [0, 0, 3, 1, 0, 2, 3]
    return Batch(
        tuple(T),
        np.array(turns, np.uint8),
        np.arange(7),
        ticks=(np.array([4]), np.array([5, 20])),
        checked=(
            Checked(np.array([91, 92, 93]), np.array([0, 1, 2], np.uint8)),
            Checked(np.array([94]), np.array([3], np.uint8)),
        ),
    )  # fmt: skip


def test_slices_of_a_batch_have_their_own_rows_ticks_and_checks():
    parts = list(batch().slices(3))
    assert [part.stream.tolist() for part in parts] == [[0, 0, 3], [1, 0, 2], [3]]
    assert [part.arrival.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    rows = [[t["ts"].to_pylist() for t in part.tables] for part in parts]
    assert rows == [[[1, 2], []], [[3], [10]], [[], []]]
    ticks = [[t.tolist() for t in part.ticks] for part in parts]
    assert ticks == [[[], [5]], [[4], []], [[], [20]]]
    times = [[c.ts.tolist() for c in part.checked] for part in parts]
    assert times == [[[91, 92], []], [[93], [94]], [[], []]]
    reasons = [[c.reason.tolist() for c in part.checked] for part in parts]
    assert reasons == [[[0, 1], []], [[2], [3]], [[], []]]
    assert list(batch().slices(7))[0].stream.tolist() == batch().stream.tolist()


def test_a_checked_batch_has_a_time_for_each_row():
    turns, one = np.array([0, 0, 0, 1], np.uint8), Checked(np.array([1]), np.zeros(1, np.uint8))
    with pytest.raises(sw.DataError, match="a checked batch must have a time for each row"):
        Batch(tuple(T), turns, checked=(one, one))


@pytest.mark.parametrize("turns", [[0, 0, 0], [0, 0, 0, 1, 2], [0, 0, 0, 1, 3], [0, 0, 1, 1]])
def test_a_batch_needs_a_turn_for_each_row_and_each_tick(turns):
    ticks = (np.array([4]), np.array([], int)) if 3 in turns else ()
    with pytest.raises(sw.DataError, match="a batch must have a turn for each row"):
        Batch(tuple(T), np.array(turns, np.uint8), ticks=ticks)
