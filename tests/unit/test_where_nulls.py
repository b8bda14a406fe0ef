"""Conditions that nulls do not decide, and conditions that native code cannot have."""

import datetime as dt

import pyarrow as pa
import pytest

import slackwater as sw

T = dt.datetime(2026, 1, 1)
A = pa.table({
    "ts": [0, 1, 2, 3],
    "x": [1, None, 3, 4],
    "s": ["u", "v", None, "w"],
    "t": pa.array([T, T + dt.timedelta(seconds=1), None, T], pa.timestamp("us", "UTC")),
})  # fmt: skip
B = pa.table({
    "ts": [0, 1, 2, 3],
    "x": [1, 2, None, 4],
    "s": ["u", "u", "w", None],
    "t": pa.array([T] * 4, pa.timestamp("us", "UTC")),
})  # fmt: skip


def run(where, **options):
    streams = (sw.Stream(name, "ts", 10) for name in "ab")
    select = {"i": "a.ts", "j": "b.ts"}
    options = {"goal": sw.MaxSlack(), "select": select} | options
    return sw.join(*streams, where=where, **options).replay(a=A, b=B)


@pytest.mark.parametrize(
    ("where", "pairs", "rejected"),
    [
        ("a.x = b.x", [(0, 0), (3, 3)], 2),
        (
            "a.x > 2 or b.x is null",
            [(0, 2), (1, 2), *((i, j) for i in (2, 3) for j in range(4))],
            0,
        ),
        ("a.x is null and b.x is null", [(1, 2)], 0),
        ("coalesce(a.x, 2) = b.x", [(0, 0), (1, 1), (3, 3)], 1),
        ("least(a.x, b.x) = 1", [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)], 0),
        ("a.s = b.s", [(0, 0), (0, 1), (3, 2)], 2),
        ("a.s = b.s or a.x = b.x", [(0, 0), (0, 1), (3, 2), (3, 3)], 0),
        ("a.s <> b.s and b.x = 1", [(1, 0), (3, 0)], 3),
        ("upper(a.s) like 'V%' and b.s in ('u')", [(1, 0), (1, 1)], 2),
        ("case when a.s = 'u' then b.x = 1 else false end", [(0, 0)], 0),
        ("a.t - b.t >= interval 1 second", [(1, 0), (1, 1), (1, 2), (1, 3)], 1),
        ("a.t > timestamp '2026-01-01 00:00:00' and b.ts = 0", [(1, 0)], 1),
        ("a.ts <> 0 and 4 / a.ts > 2 and b.ts = 0", [(1, 0)], 0),
    ],
)
def test_a_row_is_rejected_only_if_the_condition_can_never_be_true(where, pairs, rejected):
    found = run(where)
    rows = found.results.to_pylist()
    assert sorted((row["i"], row["j"]) for row in rows) == sorted(pairs)
    assert found.metrics.rejected.get("null in where", 0) == rejected
    assert run(where, select="count").metrics.produced == len(pairs)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a.s < b.s", "cannot compute a.s < b.s for each pair of events: texts of two streams"),
        ("length(a.s || b.s) = 2", "other functions of texts take one stream"),
        ("a.s", "where must be true or false, got a.s, a text"),
        ("a.t = '2026-01-01'", "a time is written TIMESTAMP"),
        ("a.nothing = 'x'", "stream 'a' has no column 'nothing'"),
        ("(" * 60 + "a.x" + " = (b.x is null))" * 60, "is too large to be compiled"),
        ("least(" + ", ".join(["a.x", "b.x"] * 200) + ") = 1", "is too large to be compiled"),
    ],
)
def test_what_native_code_cannot_have_is_refused_with_the_way_around(where, message):
    with pytest.raises(sw.QueryError) as error:
        run(where)
    assert message in str(error.value)
