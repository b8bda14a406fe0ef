"""The oracle of `slackwater verify`: DuckDB and our engine agree, and both with the definition."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.jobs.comparison import compare_rows, compare_windows, relative_error
from slackwater.testing import oracle
from slackwater.testing.sql_condition import NotSqlError, as_sql


def streams(names="ab", rows=60):
    """Rows in any order, with nulls where they may be."""
    rng = np.random.default_rng(5)
    return {
        name: pa.table({
            "ts": pa.array(rng.integers(0, 400, rows), mask=rng.random(rows) < 0.05),
            "k": pa.array(rng.integers(0, 3, rows), mask=rng.random(rows) < 0.05),
            "x": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.05),
            "n": rng.integers(-9, 9, rows),
        })
        for name in names
    }  # fmt: skip


QUERIES = {
    "key": {"on": "k"},
    "no key": {"where": "abs(a.x - b.x) < 0.5 or a.n % 4 == 1"},
    "functions": {"on": "k", "where": "max(a.n, b.n, 2) ** 2 > 9 and hypot(a.x, b.x) < 2"},
    "chain": {"on": "k", "where": "-1 < a.x < b.x and not (a.n // 4 != b.n // 4)"},
    "open": {"on": "k", "bounds": "(]"},
    "slide": {"on": "k", "slide": 30},
    "half open": {"on": "k", "slide": 30, "bounds": "[)"},
    "counted": {"on": "k", "select": "count"},
    "shed": {"on": "k", "shed": sw.Harvest(budget=5)},
}


KINDS = {
    **{how: {"how": how} for how in ("left", "right", "full", "semi", "anti")},
    "open": {"how": "full", "bounds": "(]"},
    **{d: {"how": "asof", "direction": d, "tolerance": 10} for d in ("backward", "forward")},
    "nearest": {"how": "asof", "direction": "nearest", "tolerance": 10},
}


def both(query, tables, monkeypatch):
    by_duckdb = oracle.exact(query, tables)
    monkeypatch.setattr(oracle, "find_spec", lambda name: None)
    ours = oracle.exact(query, tables)
    assert (by_duckdb.oracle, ours.oracle) == (oracle.DUCKDB, oracle.EMBEDDED)
    assert by_duckdb[2:4] == ours[2:4]
    assert by_duckdb.alone.sum() == ours.alone.sum()
    return by_duckdb.table, ours.table


@pytest.mark.parametrize("name", QUERIES)
def test_duckdb_and_our_engine_agree(name, monkeypatch):
    query = sw.join(*(sw.Stream(s, ts="ts", window=w) for s, w in (("a", 40), ("b", 25))),
                    **QUERIES[name])  # fmt: skip
    first, second = both(query, streams(), monkeypatch)
    assert first.column_names == second.column_names
    assert first.num_rows > 0
    counts = compare_rows(first, second, weight="n" if name == "counted" else None)
    assert (counts.missing, counts.extra, counts.doubled) == (0, 0, 0)


@pytest.mark.parametrize("where", [None, "abs(a.x - b.x) < 0.5"])
@pytest.mark.parametrize("name", KINDS)
def test_they_agree_about_all_kinds_of_joins(name, where, monkeypatch):
    lengths = (None, None) if "tolerance" in KINDS[name] else (10, 7)
    named = zip("ab", lengths, strict=True)
    query = sw.join(*(sw.Stream(s, "ts", w) for s, w in named), on="k", where=where, **KINDS[name])
    first, second = both(query, streams(), monkeypatch)
    assert first.column_names == second.column_names
    assert first.num_rows > 0
    counts = compare_rows(first, second)
    assert (counts.missing, counts.extra, counts.doubled) == (0, 0, 0)


def test_three_streams_and_a_graph_of_keys_as_defined(monkeypatch):
    tables = streams("abc", rows=25)
    query = sw.join(
        *(sw.Stream(name, ts="ts", window=90) for name in "abc"),
        on=["a.k = b.k", "b.n = c.n"],
        goal=sw.NoSlack(),
    )
    first, second = both(query, tables, monkeypatch)
    rows = [
        [row for row in tables[name].to_pylist() if None not in (row["ts"], row["k"])]
        for name in "ab"
    ] + [[row for row in tables["c"].to_pylist() if row["ts"] is not None]]
    true = [
        (a, b, c)
        for a, b, c in product(*rows)
        if a["k"] == b["k"] and b["n"] == c["n"]
        and min(r["ts"] for r in (a, b, c)) >= max(r["ts"] for r in (a, b, c)) - 90
    ]  # fmt: skip
    assert first.num_rows == second.num_rows == len(true) > 0


def test_what_duckdb_cannot_say_is_left_to_our_engine():
    tables = streams()
    nan = tables["a"]["x"].to_pylist()
    nan[0] = float("nan")
    with_nan = tables | {"a": tables["a"].set_column(2, "x", pa.array(nan))}
    plain = [sw.Stream(name, ts="ts", window=40) for name in "ab"]
    in_tuples = [sw.Stream("a", ts="ts", window=sw.Tuples(5)), plain[1]]
    for query, given in (
        (sw.join(*in_tuples, on="k", goal=sw.NoSlack()), tables),
        (sw.join(*plain, on="k", where="a.x > b.x", goal=sw.NoSlack()), with_nan),
        (sw.join(*plain, on="k", where=lambda a, b: a.x > b.x, goal=sw.NoSlack()), tables),
    ):
        assert oracle.exact(query, given).oracle == oracle.EMBEDDED
    with pytest.raises(NotSqlError, match="cosine"):
        as_sql("cosine(a.v, b.v) > 1", {"a": "s0", "b": "s1"})


ALL = {
    "n": sw.count(), "x_n": sw.count("x"), "s": sw.functions.sum("n"), "m": sw.avg("x"),
    "low": sw.functions.min("x"),
    "high": sw.functions.max("n"), "d": sw.stddev("x"), "f": sw.first("x"), "l": sw.last("n"),
}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"window": sw.Tumbling("50 ms")},
        {"window": sw.Sliding("70 ms", "30 ms"), "by": "k"},
        {"window": sw.Sliding("60 ms", "20 ms"), "bounds": "[)"},
        {"window": sw.Sliding("10 ms", "40 ms"), "by": "k"},
        {"window": sw.Sliding("10 ms", "40 ms"), "bounds": "(]"},
    ],
)
def test_duckdb_and_our_engine_agree_on_windows(options, monkeypatch):
    query = sw.window(sw.Stream("a", ts="ts"), select=ALL, **options)
    first, second = both(query, {"a": streams(rows=200)["a"]}, monkeypatch)
    compared = compare_windows(first, second, ["result_ts", *query.by], list(ALL))
    assert (compared.rows.missing, compared.rows.extra, compared.wrong.num_rows) == (0, 0, 0)
    assert compared.compared == first.num_rows > 0


@pytest.mark.parametrize("by", [(), ("a.n",), ("k",)])
@pytest.mark.parametrize("window", [sw.Tumbling(50), sw.Sliding(60, 25)])
def test_duckdb_and_our_engine_agree_on_aggregates(window, by, monkeypatch):
    select = {
        "all": sw.count(),
        "c": sw.count("b.x"),
        "s": sw.functions.sum("a.x"),
        "m": sw.avg("b.n"),
    }
    query = sw.aggregate(
        *(sw.Stream(name, ts="ts") for name in "ab"), on="k", select=select, window=window, by=by,
        deadline=50,
    )  # fmt: skip
    first, second = both(query, streams(rows=80), monkeypatch)
    assert first.schema.equals(second.schema)
    keys = ["window_start", *query.group_columns]
    compared = compare_windows(
        first, second, keys, ["window_end", *select, "all_observed", "exact"]
    )
    assert (compared.rows.missing, compared.rows.extra) == (0, 0)
    assert compared.wrong.to_pylist() == []
    assert compared.compared == first.num_rows > 0


def test_windows_see_all_events_in_order():
    query = sw.window(
        sw.Stream("a", ts="ts"), window=sw.Tumbling("100 ms"), select={"n": sw.count()}
    )
    table = streams()["a"]
    exact = oracle.exact(query, {"a": table}).table.sort_by("result_ts")
    times = [ts for ts in table["ts"].to_pylist() if ts is not None]
    expected = {end: sum(end - 100 <= ts < end for ts in times) for end in (100, 200, 300, 400)}
    assert dict(zip(*exact.to_pydict().values(), strict=True)) == expected


def test_aggregates_see_all_events_of_each_window():
    query = sw.aggregate(
        *(sw.Stream(name, ts="ts") for name in "ab"), on="k", select={"n": sw.count()},
        window=sw.Tumbling("100 ms"), deadline="100 ms", compensate=True,
    )  # fmt: skip
    tables = streams()
    exact = oracle.exact(query, tables).table
    rows = [
        [
            (r["ts"] // 100, r["k"])
            for r in tables[name].to_pylist()
            if None not in (r["ts"], r["k"])
        ]
        for name in "ab"
    ]
    expected = [sum(a == b == (w, b[1]) for a, b in product(*rows)) for w in range(4)]
    assert exact["n"].to_pylist() == expected
    assert exact["exact"].to_pylist() == [True] * 4


def test_rows_are_compared_as_bags():
    true = pa.table({"x": [1, 1, None, 2], "l": [[1], [1], [2], None]})
    found = pa.table({"x": pa.array([1, None, None, 3], pa.int32()), "l": [[1], [2], [2], None]})
    counts = compare_rows(true, found, late=[False, True, False, False])
    assert (counts.missing, counts.extra, counts.doubled) == (2, 1, 1)
    assert (counts.recall, counts.recall_in_time) == (0.5, 0.5)
    assert counts.examples(1)["extra"] == [{"x": 3, "l": None}]
    nothing = compare_rows(true.slice(0, 0), true.slice(0, 0))
    assert (nothing.recall, nothing.examples(3)) == (1.0, {})


def test_windows_are_compared_by_their_keys():
    true = pa.table({"t": [1, 2, 3], "s": [10.0, 20.0, 30.0], "f": ["x", "y", None]})
    found = pa.table({"t": [1, 2, 2, 4], "s": [10.0 + 1e-12, 1.0, 1.0, 1.0], "f": ["z"] * 4})
    compared = compare_windows(true, found, ["t"], ["s"])
    faults = compared.rows
    assert (faults.missing, faults.extra, faults.doubled) == (1, 1, 1)
    assert (compared.compared, compared.wrong.num_rows, compared.within(0)) == (1, 0, 1.0)
    assert compare_windows(true, found, ["t"], ["f"]).wrong.to_pylist() == [
        {"t": 1, "f": "z", "true f": "x"}
    ]


def test_errors_are_relative_and_nulls_are_wrong():
    true, found = ([0, 4, None, 4, None], [1, 5, None, None, 1])
    error = relative_error(pa.chunked_array([true]), pa.chunked_array([found]))
    assert error[1:].tolist() == [0.25, 0, 1, 1]
    assert error[0] > 1
