"""Metrics lines of recorded streams: they add up, can be repeated, and take commands."""

import json

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.replay_lines import lines
from slackwater.errors import DataError, QueryError

A, B = (sw.Stream(name, "ts", "500 ms") for name in "ab")
JOIN = sw.join(A, B, on="k", goal=sw.Recall(0.9, over="5 s"))
WINDOW = sw.window(sw.Stream("a", "ts"), window=sw.Tumbling("1 s"), select={"n": sw.count()})
AGGREGATE = sw.aggregate(
    sw.Stream("a", "ts"), sw.Stream("b", "ts"), on="k", select={"n": sw.count()},
    window=sw.Tumbling("1 s"), deadline="1 s", late="emit",
)  # fmt: skip
SHEDDING = sw.join(
    A, B, where="abs(a.x - b.x) < 1", goal=sw.Recall(0.9, over="5 s"),
    shed=sw.Harvest(budget=2_000, every="1 s"),
)  # fmt: skip
QUERIES = [JOIN, WINDOW, AGGREGATE, SHEDDING]


def tables(query, rows=2_000):
    made = {}
    for i, name in enumerate(query.names):
        rng = np.random.default_rng(i)
        ts = np.arange(rows) * 4
        late = np.where(rng.random(rows) < 0.3, rng.integers(0, 400, rows), 0)
        keys = pa.array(rng.integers(0, 5, rows), mask=rng.random(rows) < 0.01)
        columns = {"ts": ts, "k": keys, "x": 10 * rng.random(rows), "arrival": ts + late}
        made[name] = pa.table(columns)
    return made


def reported(query, every=None, **options):
    return list(lines(query, tables(query), "arrival", every, **options))


@pytest.mark.parametrize("query", QUERIES, ids=["join", "window", "aggregate", "shedding"])
def test_steps_add_up_to_the_replay(query):
    found = []
    first, *steps, last = reported(query, results=found.append)
    assert (first["event"], last["event"]) == ("started", "terminated")
    assert {step["event"] for step in steps} == {"batch"}
    assert [step["batch"] for step in steps] == list(range(len(steps)))
    assert 190 <= len(steps) <= 201  # with the flush
    run = query.replay(tables(query), arrival="arrival")
    assert sum(step["rows"] for step in steps) == run.metrics.arrivals
    assert pa.concat_tables(found).equals(run.results)
    assert all(step["balanced"] for step in steps)
    end = steps[-1]["metrics"]
    for name in ("produced", "lost", "slack", "late_kept", "late_dropped", "in_order", "stored"):
        assert end[name] == getattr(run.metrics, name), name
    assert end["streams"]["a"]["arrivals"] == 2_000
    assert end["rejected"] == {
        reason.replace(" ", "_"): n
        for reason, n in {"bad time": 0, "null key": 0, "null in where": 0,
                          "too far in the future": 0, "bad vector": 0}.items()
    } | {reason.replace(" ", "_"): n for reason, n in run.metrics.rejected.items()}  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize("query", QUERIES, ids=["join", "window", "aggregate", "shedding"])
def test_a_line_is_small_and_the_same_each_time(query):
    def timeless(line):
        return {name: value for name, value in line.items() if name != "duration_ms"}

    once, again = reported(query), reported(query)
    assert list(map(timeless, once)) == list(map(timeless, again))
    assert max(len(json.dumps(line, allow_nan=False)) for line in once) < 8_192


def test_a_start_describes_the_query():
    start = reported(JOIN, name="pairs")[0]
    assert (start["name"], start["timestamp"]) == ("pairs", None)
    about = start["query"]
    assert about["goal"]["kind"] == "Recall"
    assert sw.sql(about["sql"]).to_dict() == JOIN.to_dict()
    assert {name: about[name] for name in ("unit", "streams", "kind", "control")} == {
        "unit": "ms", "streams": ["a", "b"], "kind": "join", "control": False,
    }  # fmt: skip
    others = [reported(query, commands=list)[0]["query"] for query in (WINDOW, AGGREGATE)]
    assert [(o["kind"], o["control"]) for o in others] == [("window", True), ("aggregate", True)]


@pytest.mark.compiled
def test_steps_are_as_long_as_requested_but_not_too_many():
    steps = reported(JOIN, "2 s")[1:-2]
    assert len(steps) == 5  # of 8.4 seconds
    assert len(reported(JOIN, 1)[1:-2]) <= 2_000
    with pytest.raises(QueryError, match="every must be at least 1 ms, got 0"):
        reported(JOIN, 0)


def test_no_rows_at_all():
    empty = {name: table.slice(0, 0) for name, table in tables(JOIN).items()}
    _, flush, _ = lines(JOIN, empty, "arrival")
    assert (flush["rows"], flush["metrics"]["charts"]) == (0, None)


COUNTING = sw.window(sw.Stream("a", "ts"), window=sw.Tumbling(1_000), select={"n": sw.count()})


@pytest.mark.parametrize(("arrivals", "rows"), [(200, [1] * 200), (201, [2] * 100 + [1])])
def test_steps_are_at_most_two_hundred_by_default(arrivals, rows):
    every = np.arange(arrivals)
    _, *steps, _, _ = lines(COUNTING, {"a": pa.table({"ts": every, "arrival": every})}, "arrival")
    assert [step["rows"] for step in steps] == rows


def test_arrivals_beyond_the_calendar_have_no_timestamp():
    far = 10**17  # ms: three million years
    table = pa.table({"ts": [far], "arrival": [far]})
    _, step, *_ = lines(COUNTING, {"a": table}, "arrival")
    assert (step["rows"], step["timestamp"]) == (1, None)


def test_commands_are_obeyed_and_reported():
    given = iter([[], [{"recall": 0.99}], [{"slack": "300 ms"}, {"recall": 7}, {"nonsense": 1}]])
    steps = reported(JOIN, "1 s", commands=lambda: next(given, ()))[1:-1]
    assert [step["metrics"]["commands"] for step in steps[:4]] == [
        [], [{"recall": 0.99}], [{"slack": 300}], [],
    ]  # fmt: skip
    assert [step["metrics"]["target"] for step in steps[:2]] == [0.9, 0.99]
    assert [step["metrics"]["refused_commands"] for step in steps[:4]] == [0, 0, 2, 0]
    assert steps[-1]["metrics"]["target"] == 0.99
    without = reported(JOIN, "1 s")[1:-1]
    assert steps[-1]["metrics"]["lost"] < without[-1]["metrics"]["lost"]


def test_a_flush_and_an_end_can_be_commanded():
    given = iter([[{"flush": True}], [{"finished": ["b"]}]])
    steps = reported(JOIN, "2 s", commands=lambda: next(given, ()))[1:-1]
    assert steps[0]["metrics"]["buffered"] == 0
    assert [step["metrics"]["commands"] for step in steps[:2]] == [
        [{"flush": True}], [{"finished": ["b"]}],
    ]  # fmt: skip


def test_result_rows_of_a_step_are_in_its_charts():
    steps = reported(AGGREGATE)[1:-1]
    rows = [row for step in steps for row in step["metrics"]["charts"]["aggregates"]]
    run = AGGREGATE.replay(tables(AGGREGATE), arrival="arrival").results
    assert [row["start"] for row in rows] == run["window_start"].to_pylist()
    assert [row["values"]["n"]["observed"] for row in rows] == run["n_observed"].to_pylist()
    assert {row["exact"] for row in rows} == {True, False}


def test_deadlines_need_arrivals():
    with pytest.raises(DataError, match="arrival= must name a column, got None"):
        list(lines(AGGREGATE, tables(AGGREGATE), None))
