"""The columns of results that a query lists, computed by Arrow, against plain Python."""

import math

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.snapshot import restored

A = pa.table({
    "ts": [1, 2, 3, 4],
    "k": ["x", "y", "x", "y"],
    "x": [1.5, -2.0, 3.0, None],
    "n": pa.array([7, 2, -3, 5], pa.int64()),
    "v": [[1.0, 0.0], [0.0, 1.0], [3.0, 4.0], [1.0, 1.0]],
})  # fmt: skip
STREAMS = sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10)

EXPRESSIONS = {
    "a.n + b.n * 2": lambda a, b: a["n"] + b["n"] * 2,
    "a.n / b.n": lambda a, b: a["n"] / b["n"],
    "a.n // b.n": lambda a, b: a["n"] // b["n"],
    "a.n % b.n": lambda a, b: math.fmod(a["n"], b["n"]),
    "-(a.n - b.n) ** 2": lambda a, b: -((a["n"] - b["n"]) ** 2),
    "max(a.n, b.n, 3)": lambda a, b: max(a["n"], b["n"], 3),
    "min(a.ts, b.ts)": lambda a, b: min(a["ts"], b["ts"]),
    "abs(a.x - b.x) + sqrt(a.ts)": lambda a, b: abs(a["x"] - b["x"]) + math.sqrt(a["ts"]),
    "dist(a.x, a.ts, b.x, b.ts)": lambda a, b: math.dist((a["x"], a["ts"]), (b["x"], b["ts"])),
    "hypot(a.x, b.x) + atan2(a.x, b.ts)": lambda a, b: (
        math.hypot(a["x"], b["x"]) + math.atan2(a["x"], b["ts"])
    ),
    "floor(a.x) + ceil(b.x)": lambda a, b: math.floor(a["x"]) + math.ceil(b["x"]),
    "exp(a.x) + log(b.ts) + sin(a.x) + cos(a.x) + tan(a.x)": lambda a, b: (
        math.exp(a["x"])
        + math.log(b["ts"])
        + math.sin(a["x"])
        + math.cos(a["x"])
        + math.tan(a["x"])
    ),  # fmt: skip
    "0 < a.n < b.n": lambda a, b: 0 < a["n"] < b["n"],
    "not (a.n != b.n) or a.n >= b.n and +a.n == 7": lambda a, b: (
        not (a["n"] != b["n"]) or (a["n"] >= b["n"] and a["n"] == 7)
    ),
    "dot(a.v, b.v)": lambda a, b: sum(map(float.__mul__, a["v"], b["v"])),
    "l2(a.v, b.v)": lambda a, b: math.dist(a["v"], b["v"]),
    "cosine(a.v, b.v)": lambda a, b: (
        sum(map(float.__mul__, a["v"], b["v"])) / math.hypot(*a["v"]) / math.hypot(*b["v"])
    ),
    "4 - 1": lambda a, b: 3,
}


def run(select, **options):
    query = sw.join(*STREAMS, select=select, goal=sw.MaxSlack(), **options)
    return query.replay({"a": A, "b": A}).results


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_what_python_says(text):
    members = run({"i": "a.ts", "j": "b.ts", "value": text}).to_pylist()
    rows = {row["ts"]: row for row in A.to_pylist()}
    assert len(members) == 16
    for result in members:
        a, b = rows[result["i"]], rows[result["j"]]
        needs_x = [row for name, row in (("a.x", a), ("b.x", b)) if name in text]
        if any(row["x"] is None for row in needs_x):
            assert result["value"] is None
        else:
            assert result["value"] == pytest.approx(EXPRESSIONS[text](a, b))


def test_results_have_their_time_what_is_listed_and_whether_they_are_late():
    results = run({"name": "a.k", "b.*": "b.*"}, on="k", late="emit")
    assert results.column_names == [
        "result_ts", "name", "b_ts", "b_k", "b_x", "b_n", "b_v", "late",
    ]  # fmt: skip
    assert results.schema.field("name").type == pa.string()


def test_only_columns_that_are_needed_are_kept():
    from slackwater.engine.join import JoinEngine

    query = sw.join(*STREAMS, on="k", where="a.n < b.n", select={"x": "a.x"}, goal=sw.NoSlack())
    engine = JoinEngine(query, {"a": A.schema, "b": A.schema})
    kept = [engine.intake.kept_columns(s) for s in range(2)]
    assert kept == [["ts", "k", "n", "x"], ["ts", "k", "n"]]


def test_a_restored_engine_projects_the_same():
    from slackwater.engine.join import JoinEngine
    from slackwater.engine.replay import recorded

    query = sw.join(*STREAMS, on="k", select={"s": "a.n + b.n"}, goal=sw.Slack(3))
    schemas = {"a": A.schema, "b": A.schema}
    batch, _ = recorded(query, {"a": A, "b": A}, None)
    whole, cut = JoinEngine(query, schemas), JoinEngine(query, schemas)
    expected = whole.feed(batch)
    expected.extend(whole.flush())
    first, second = batch.cut([5, len(batch.stream)])
    got = cut.feed(first)
    cut = restored(cut.snapshot(), JoinEngine(query, schemas))
    got.extend(cut.feed(second))
    got.extend(cut.flush())
    assert got.table.equals(expected.table) and got.table.num_rows > 0


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ({"y": "a.y"}, "select reads a.y, but stream 'a' has no column 'y'; it has ts, k"),
        ({"y": "c.y"}, "select names an unknown stream in c.y; streams are a, b"),
        ({"y": "a.k + 1"}, "select: a.k is a text, no number"),
        ({"y": "len(a.k)"}, "select knows the functions abs"),
        ({"y": "a.n +"}, "select does not parse"),
        ({"result_ts": "a.n"}, "more than one column result_ts \\(result_ts is one\\); rename one"),
        ({"": "a.n"}, "a column of results needs a name, got '' for a.n"),
        ({"y": "cosine(a.n, b.n)"}, "cosine takes vectors, lists of numbers; got a.n of"),
    ],
)
def test_what_cannot_be_selected_is_refused(select, message):
    with pytest.raises(sw.QueryError, match=message):
        run(select)


def test_a_sum_that_does_not_fit_is_an_error_and_not_another_number():
    huge = pa.table({"ts": [1], "n": [2**63 - 1]})
    query = sw.join(*STREAMS, select={"n": "a.n + b.n"}, goal=sw.NoSlack())
    with pytest.raises(sw.DataError, match="cannot compute a.n \\+ b.n: overflow"):
        query.replay({"a": huge, "b": huge})


def test_vectors_of_several_lengths_have_no_product():
    ragged = pa.table({"ts": [1, 2], "v": [[1.0], [1.0, 2.0]]})
    query = sw.join(*STREAMS, select={"d": "dot(a.v, b.v)"}, goal=sw.NoSlack())
    with pytest.raises(sw.DataError, match="dot takes vectors of one length without nulls"):
        query.replay({"a": ragged, "b": ragged})


def test_two_streams_may_read_one_source():
    query = sw.join(
        sw.Stream("a", "ts", 10, source="t"),
        sw.Stream("b", "ts", 10, source="t"),
        on="k",
        goal=sw.NoSlack(),
    )
    once = query.replay({"t": A}).results
    assert once.equals(query.replay({"a": A, "b": A}).results) and once.num_rows > 0
