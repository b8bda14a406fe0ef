"""Identities of results: stable, one for each row, and the same in a correction."""

import pyarrow as pa
import pytest

import slackwater as sw

LEFT = pa.table({"ts": [1, 1, 9], "k": [0, 0, 0], "n": [1, 1, 3], "at": [0, 1, 2]})
RIGHT = pa.table({"ts": [9, 1], "k": [0, 0], "n": [7, 8], "at": [3, 4]})


def rows(how="left", ids=(), **options):
    window = None if how == "asof" else 2
    streams = [sw.Stream(name, "ts", window, id=ids) for name in "lr"]
    options = {"goal": sw.NoSlack(), "retention": 100, "late": "emit", "result_id": True} | options
    tables = {"l": LEFT, "r": RIGHT}
    query = sw.join(*streams, on="k", how=how, **options)
    return query.replay(tables, arrival="at").results.to_pylist()


def test_two_equal_rows_have_identities_of_their_own_and_are_taken_back_by_them():
    found = rows()
    alone = [r["result_id"] for r in found if r["r_ts"] is None and r["change"] == "insert"]
    withdrawn = [r["result_id"] for r in found if r["change"] == "delete"]
    assert len(set(alone)) == 2
    assert sorted(alone) == sorted(withdrawn)
    assert len({r["result_id"] for r in found}) == len(found) - len(withdrawn)
    assert {len(r["result_id"]) for r in found} == {16}


def test_a_correction_of_an_as_of_row_has_its_identity():
    found = rows("asof", tolerance=5)
    first = {r["result_id"]: r for r in found if r["change"] == "insert"}
    assert len(first) == 3
    assert [r["change"] for r in found if r["result_id"] in first].count("update") == 2


def test_declared_columns_identify_an_event_whatever_else_is_in_it():
    table, other = LEFT, LEFT.set_column(1, "k", pa.array([5, 5, 5]))
    assert table != other
    query = sw.join(
        *(sw.Stream(name, "ts", 2, id=("n", "at")) for name in "lr"),
        how="anti", on="k", goal=sw.MaxSlack(), result_id=True,
    )  # fmt: skip
    ids = [
        query.replay({"l": left, "r": RIGHT.slice(0, 0)}, arrival="at").results["result_id"]
        for left in (table, other)
    ]
    assert ids[0] == ids[1]


def test_identities_do_not_change_with_the_release():
    ids = [r["result_id"].hex() for r in rows(ids="at") if r["change"] == "insert"]
    assert ids == [
        "93fe6a3fa7dfa9e9d2d0ce4b88d9598a",
        "69882f17c19e069161063d9206f0cc02",
        "43f8ed971c10fbacdfec45e7fa3efc69",
        "0999c71fa320475a2b2c7b9401e69fc8",
        "ae542bf47efd2b0c1b905e3e495a9569",
    ]


def test_pairs_in_order_have_identities_too():
    found = rows("inner", late="count", goal=sw.MaxSlack(), retention=None)
    assert len({r["result_id"] for r in found}) == len(found) > 0


def test_columns_that_identify_must_exist():
    with pytest.raises(sw.QueryError, match="id names l.seq, but stream 'l' has no column 'seq'"):
        rows(ids="seq")
    with pytest.raises(sw.QueryError, match="id must be names of columns"):
        sw.Stream("a", "ts", 5, id=("",))
