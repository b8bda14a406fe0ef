"""Batches of events, their times and sizes, and the identities of rows, by hand."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.identity import Identities, _tops, ranks, result_ids
from slackwater.events.batch import (
    Batch,
    Checked,
    _is_identity,
    as_table,
    in_arrival_order,
    is_set,
    offsets,
    row_bytes,
    time_in_units,
)
from slackwater.kernels.records import BEFORE
from slackwater.stats.sampling import Sampling, _Hashed

# ---- times

DAY = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("column", "unit", "times", "good"),
    [
        (pa.array([5, None, -7], pa.int32()), "ms", [5, 0, -7], [1, 0, 1]),
        (pa.array([1.9, -1.1, np.nan, np.inf, None]), "ms", [1, -2, 0, 0, 0], [1, 1, 0, 0, 0]),
        (pa.array([2.0**60, 2.0**60 + 256, -(2.0**60) - 256]), "ms",
         [2**60, 2**60 + 256, -(2**60) - 256], [1, 0, 0]),
        (pa.array([1e300, -1e300]), "ms", [2**61, -(2**61)], [0, 0]),
        (pa.array([2**60, 2**60 + 1, -(2**60), -(2**60) - 1]), "s",
         [2**60, 2**60 + 1, -(2**60), -(2**60) - 1], [1, 0, 1, 0]),
        (pa.array([Decimal("1.5"), Decimal("-1.5")]), "s", [1, -2], [1, 1]),
        (pa.array([7, 2**63, None], pa.uint64()), "s", [7, 2**61, 0], [1, 0, 0]),
        (pa.array([1_000_000_000_123_456_789], pa.uint64()), "us", [1_000_000_000_123_456_789],
         [1]),
        (pa.array([DAY], pa.timestamp("s", "UTC")), "ms", [86_400_000], [1]),
        (pa.array([1_999_999, -1], pa.int64()).cast(pa.timestamp("us")), "s", [1, -1], [1, 1]),
        (pa.array([2_500], pa.timestamp("ns")), "us", [2], [1]),
        (pa.array([DAY.date()], pa.date32()), "s", [86_400], [1]),
        (pa.array([2**62, 2**50, -(2**62)], pa.timestamp("s")), "us",
         [2**61 // 10**6 * 10**6, 2**61 // 10**6 * 10**6, -(2**61 // 10**6) * 10**6], [0, 0, 0]),
        (pa.array([], pa.int64()), "s", [], []),
    ],
)  # fmt: skip
def test_times_are_whole_units_rounded_down(column, unit, times, good):
    found, usable = time_in_units(column, unit)
    assert (found.tolist(), usable.astype(int).tolist()) == (times, good)


# ---- batches


def batch_of():
    """Three streams; a turn of 3 is a tick of the first, one of 5 a tick of the third."""
    tables = tuple(pa.table({"x": x}) for x in ([10, 11, 12], [20], [30, 31]))
    checked = tuple(
        Checked(table["x"].to_numpy() + 100, np.zeros(table.num_rows, np.uint8)) for table in tables
    )
    ticks = np.array([1, 2]), np.empty(0, int), np.array([9])
    turns = np.array([0, 3, 2, 0, 5, 1, 3, 0, 2], np.uint8)
    return Batch(tables, turns, np.arange(9) * 10, ticks, checked)


@pytest.mark.parametrize("ends", [[9], [4, 9], [1, 1, 5, 8, 9]])
def test_a_batch_is_cut_with_all_that_belongs_to_it(ends):
    whole, at, parts = batch_of(), 0, list(batch_of().cut(ends))
    assert len(parts) == len(ends)
    for part, end in zip(parts, ends, strict=True):
        assert part.stream.tolist() == whole.stream[at:end].tolist()
        assert part.arrival.tolist() == whole.arrival[at:end].tolist()
        for s, (table, checked) in enumerate(zip(part.tables, part.checked, strict=True)):
            first, last = ((whole.stream[:n] == s).sum() for n in (at, end))
            assert table.equals(whole.tables[s].slice(first, last - first))
            assert checked.ts.tolist() == whole.checked[s].ts[first:last].tolist()
            first, last = ((whole.stream[:n] == s + 3).sum() for n in (at, end))
            assert part.ticks[s].tolist() == whole.ticks[s][first:last].tolist()
        at = end
    bare = Batch(whole.tables, whole.stream[whole.stream < 3])
    assert [part.checked for part in bare.cut([3, 6])] == [None, None]
    assert [part.arrival for part in bare.cut([3, 6])] == [None, None]


def test_slices_are_no_longer_than_asked():
    whole = batch_of()
    assert [len(part.stream) for part in whole.slices(4)] == [4, 4, 1]
    assert [len(part.stream) for part in whole.slices(3)] == [3, 3, 3]
    assert next(whole.slices(9)) is whole
    with pytest.raises(sw.DataError, match="got .* turns for"):
        Batch(whole.tables, whole.stream[:-1], None, whole.ticks)
    with pytest.raises(sw.DataError, match="must have a time for each row"):
        Batch(whole.tables, whole.stream, None, whole.ticks, (*whole.checked[1:], whole.checked[0]))


def test_arrivals_are_in_order_of_time_then_stream_then_row():
    tables = [pa.table({"x": [0, 1, 2]}), pa.table({"x": [0, 1]})]
    checked = [Checked(t["x"].to_numpy(), np.zeros(t.num_rows, np.uint8)) for t in tables]
    arrivals = [np.array([5, 3, 5]), np.array([3, 5])]
    batch, orders = in_arrival_order(tables, checked, arrivals, [np.array([2, 0, 1]), np.arange(2)])
    assert [order.tolist() for order in orders] == [[1, 2, 0], [0, 1]]
    assert batch.stream.tolist() == [0, 1, 0, 0, 1]
    assert batch.arrival.tolist() == [3, 3, 5, 5, 5]
    assert batch.tables[0]["x"].to_pylist() == [1, 2, 0]
    assert batch.tables[1] is tables[1]
    assert [c.ts.tolist() for c in batch.checked] == [[1, 2, 0], [0, 1]]
    orders = ([], [0], [0, 1, 2], [1, 2], [0, 2], [1, 0])
    assert [_is_identity(np.array(order)) for order in orders] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_tables_of_many_kinds():
    table = pa.table({"x": [1]})
    assert as_table(table, "a") is table
    assert as_table(table.to_batches()[0], "a").equals(table)
    assert as_table(pd.DataFrame({"x": [1]}, index=[7]), "a").equals(table)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert as_table(Stream(), "a").equals(table)
    with pytest.raises(sw.DataError, match="stream 'a' has more than one column named x, y"):
        as_table(pa.table([[1]] * 5, names=["y", "x", "z", "x", "y"]), "a")
    with pytest.raises(sw.DataError, match="must be an Arrow table, .*, got list"):
        as_table([1], "a")


@pytest.mark.parametrize(
    ("column", "sizes"),
    [
        (pa.array([1, 2, None]), [8, 8, 8]),
        (pa.array([True, None, False]), [1, 1, 1]),
        (pa.array([1, 2, 3], pa.int16()), [2, 2, 2]),
        (pa.array(["", "four", None]), [4, 8, 4]),
        (pa.array(["", "four", None], pa.large_string()), [4, 8, 4]),
        (pa.array([b"ab", b"", b"abc"]), [6, 4, 7]),
        (pa.array([[1], [], [1, 2, 3]]), [12, 4, 28]),
        (pa.array([["a", "bc"], None, []]), [4 + 8 + 3, 4, 4]),
        (pa.array([[1.0, 2.0], [3.0, 4.0], None], pa.list_(pa.float32(), 2)), [8, 8, 8]),
        (pa.array([{"x": 1, "s": "abc"}] * 3), [15, 15, 15]),
        (pa.array([[("k", 1)], [], [("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64())),
         [4 + 5 + 8, 4, 4 + 2 * 13]),
    ],
)  # fmt: skip
def test_the_size_of_a_row(column, sizes):
    assert row_bytes(pa.table({"x": column})).tolist() == sizes
    assert row_bytes(pa.table({"x": column.slice(1), "y": column.slice(1)})).tolist() == [
        2 * size for size in sizes[1:]
    ]


def test_where_texts_begin_and_end():
    texts = pa.array(["ab", "c", "", "def"])
    assert offsets(texts).tolist() == [0, 2, 3, 3, 6]
    assert offsets(texts.slice(1, 2)).tolist() == [2, 3, 3]
    assert offsets(texts.cast(pa.large_string()).slice(2)).tolist() == [3, 3, 6]
    assert offsets(texts.slice(4)).tolist() == [0]
    assert offsets(pa.array([1])) is None
    assert is_set(pa.array([1, None])).tolist() == [True, False]
    assert is_set(pa.array([1, 2])).tolist() == [True, True]


# ---- identities

MINUTE = 60_000


def identities(**options):
    return Identities(sw.Stream("a", "ts", 5, **options), "ms")


def numbers(known, rows, ts, tops):
    table = pa.table({"x": rows})
    columns = known.columns(table, np.array(ts), np.array(tops))
    assert len(columns) == 2
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def test_equal_rows_of_a_minute_are_told_apart_by_their_number():
    known = identities()
    one = numbers(known, [7, 8, 7], [0, 0, 5], [0, 0, 5])
    assert len(set(one)) == 3
    again = identities()
    two = numbers(again, [7], [0], [0]) + numbers(again, [8], [0], [0])
    again_state = again.state()
    other = identities()
    other.resume(again_state)
    assert other.state() == again_state
    assert two + numbers(other, [7], [5], [5]) == one
    # a row that is older than a minute is not counted, and does not count
    assert numbers(known, [7], [0], [MINUTE]) != one[:1]  # the third one: just a minute old
    assert numbers(known, [7], [0], [MINUTE + 1]) == one[:1]
    assert numbers(known, [7], [MINUTE], [0])[0] not in one
    assert known.state()["top"] == MINUTE + 1
    assert numbers(known, [], [], []) == []


def test_declared_columns_identify_rows():
    known = identities(id="x")
    one, two = numbers(known, [7, 7], [0, 5], [0, 5])
    assert one == two
    assert numbers(known, [8], [0], [0])[0] != one


def test_content_that_is_older_than_a_minute_is_forgotten():
    known = identities()
    numbers(known, list(range(1000)), [0] * 1000, [0] * 1000)
    assert len(known.state()["seen"]) == 1000
    numbers(known, list(range(5000, 5030)), [MINUTE + 1] * 30, [MINUTE + 1] * 30)
    assert len(known._seen) == 30  # there were more than 1024
    assert known._purge_at == 1024
    numbers(known, list(range(9000)), [MINUTE + 2] * 9000, [MINUTE + 2] * 9000)
    assert (len(known._seen), known._purge_at) == (9000, 18_000)  # 30 of them are not new
    assert len(known.state()["seen"]) == 9000


def test_the_local_time_with_each_row_is_that_of_all_shards():
    tables = pa.table({"x": [5, 3, 9]}), pa.table({"x": [1]})
    checked = (
        Checked(np.array([5, 3, 9]), np.array([0, 0, 1], np.uint8)),
        Checked(np.array([1]), np.array([3], np.uint8)),
    )
    turns = np.array([0, 2, 0, 1, 2, 0], np.uint8)
    batch = Batch(tables, turns, None, (np.array([7, 6]), np.empty(0, int)), checked)
    assert _tops(batch, 0).tolist() == [5, 7, 7]  # the third row is rejected
    assert _tops(batch, 1).tolist() == [BEFORE]


def test_results_have_identities_by_their_members_and_kind():
    def ids(how, *members):
        options = {"tolerance": 5} if how == "asof" else {}
        streams = (sw.Stream(n, "ts", None if how == "asof" else 5) for n in "ab")
        query = sw.join(*streams, on="k", how=how, goal=sw.NoSlack(), **options)
        of = [[pa.array(one), pa.array(two)] for one, two in members]
        return result_ids(query, of).to_pylist()

    left, right = ([1, 1, None], [5, 5, None]), ([2, None, 2], [6, None, 6])
    found = ids("full", left, right)
    assert len(set(found)) == 3
    assert {len(one) for one in found} == {16}
    assert ids("full", left, right) == found
    # of an as-of row, and of rows of one side, only the left event counts
    for how in ("asof", "semi", "anti"):
        one, two, _ = ids(how, left, right)
        assert one == two
    assert ids("full", ([1], [5]), ([2], [7])) != found[:1]


def test_ranks_are_whole_numbers_or_hashes():
    least = np.iinfo(np.int64).min
    assert ranks(pa.table({"x": pa.array([3, None], pa.int8())}), ["x"]).tolist() == [3, least]
    for other in (pa.array([3, 4], pa.uint64()), pa.array(["a", "b"]), pa.array([1.0, 2.0])):
        found = ranks(pa.table({"x": other}), ["x"]).tolist()
        assert len({*found, 3, 4}) == 4
    both = pa.table({"x": [3, 3], "y": [4, 5]})
    assert len(set(ranks(both, ["x", "y"]).tolist())) == 2
    assert len(set(ranks(both, []).tolist())) == 2


def test_a_sample_is_the_share_that_was_asked_for():
    for share in (1.0, 0.5, 0.125):
        for seed in (0, 5):
            numbers = np.arange(4000, dtype=np.uint64)
            chosen = _Hashed(Sampling(share, seed=seed)).chooses(numbers)
            assert chosen.mean() == pytest.approx(share, abs=0.03)
    two = [
        _Hashed(Sampling(0.5, seed=seed)).chooses(np.arange(64, dtype=np.uint64)) for seed in (0, 1)
    ]
    assert (two[0] != two[1]).any()
    hashed = _Hashed(Sampling(0.5, seed=5))
    in_a_row = np.arange(7, 71, dtype=np.uint64)
    assert hashed.chooses_numbers(7, 64).tolist() == hashed.chooses(in_a_row).tolist()


def test_a_key_is_sampled_with_either_of_its_two_panes():
    hashed, pane = _Hashed(Sampling(0.5, seed=5)), 10
    ts, stream, lengths = np.arange(-32, 32), np.arange(64) % 2, np.array([10, 3])
    keys = np.arange(64, dtype=np.uint64)
    first, last = ((at // pane).view(np.uint64) for at in (ts, ts + lengths[stream]))
    either = hashed.chooses(keys, first) | hashed.chooses(keys, last)
    assert 20 < either.sum() < 60
    assert hashed.chooses_panes(keys, ts, lengths, stream, pane).tolist() == either.tolist()
