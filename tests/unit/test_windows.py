"""Windows of one stream: what is refused, what is counted, what is kept."""

import math

import numpy as np
import pyarrow as pa
import pytest

import profiles
import slackwater as sw
from slackwater.engine.replay import recorded
from slackwater.engine.window import WindowEngine
from slackwater.windows.accuracy import MeasuredAggregate, WindowAccuracy
from slackwater_lab.papers.kim_runs import SHAPES, drops, times

compiled = pytest.mark.skipif(profiles.PLAIN, reason="too many events for kernels as plain Python")
S = sw.Stream("s", ts="t")
N = {"n": sw.count()}


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"window": 5}, "window must be a Tumbling, a Sliding or Tuples, got 5"),
            ({"window": sw.Sliding("0 s")}, "window must be at least 1 ms, got '0 s'"),
            ({"window": sw.Sliding("1 s", 0)}, "slide must be at least 1 ms, got 0"),
            ({"window": sw.Tumbling("soon")}, "window must be like '5 seconds'"),
            (
                {"window": sw.Tuples(5), "bounds": "[)"},
                r"bounds='\[\)' leaves out the window's own end",
            ),
            (
                {"window": sw.Tuples(5), "bounds": "[]"},
                r"bounds must be one of '\(\]', '\[\)', got '\[\]'",
            ),
            ({"window": sw.Tuples(5), "select": {}}, "a window needs at least one aggregate"),
            (
                {"window": sw.Tuples(5), "select": {"x": "v"}},
                "select must have aggregates by name, got 'x': 'v'",
            ),
            ({"window": sw.Tuples(5), "by": "n"}, "more than one column n"),
            (
                {"window": sw.Tuples(5), "goal": sw.Recall(0.9)},
                "must be one of DropRatio, ErrorBound, Slack",
            ),
        ],
    )
    def test_queries(self, options, message):
        with pytest.raises(sw.QueryError, match=message):
            sw.window(S, **{"select": N} | options)

    def test_streams(self):
        with pytest.raises(sw.QueryError, match="give window= beside it"):
            sw.window(sw.Stream("s", ts="t", window=5), window=sw.Tuples(5), select=N)
        with pytest.raises(sw.QueryError, match=r"for the where of a join, got \{'v': 2\}"):
            sw.window(sw.Stream("s", ts="t", vectors={"v": 2}), window=sw.Tuples(5), select=N)
        with pytest.raises(sw.QueryError, match="give ts or order_by, got both"):
            sw.Stream("s", ts="t", order_by="id")
        with pytest.raises(sw.QueryError, match="must say how long an event can find partners"):
            sw.join(S, sw.Stream("b", ts="t", window=5), goal=sw.NoSlack())

    @pytest.mark.parametrize("ratio", [-0.1, 1, 1.0, "1%", True])
    def test_ratios(self, ratio):
        with pytest.raises(sw.QueryError, match="a drop ratio must be at least 0 and below 1"):
            sw.DropRatio(ratio)

    def test_options_of_ratios(self):
        with pytest.raises(sw.QueryError, match="'max-delay' cannot be steered: ratio must be 0"):
            sw.DropRatio(0.1, heartbeat="max-delay")
        with pytest.raises(sw.QueryError, match="heartbeat must be one of"):
            sw.DropRatio(0.1, heartbeat="fast")
        with pytest.raises(sw.QueryError, match="every must be a number of events like Tuples"):
            sw.DropRatio(0.1, every=1000)

    @pytest.mark.parametrize(
        ("select", "message"),
        [
            (
                {"x": sw.functions.sum("w")},
                "x aggregates 'w', but stream 's' has no such column; it has t, v",
            ),
            (
                {"x": sw.functions.sum("text")},
                r"sum\(text\) takes numbers, got string; cast the column",
            ),
            ({"x": sw.functions.max("text")}, r"max\(text\) takes numbers or times, got string"),
        ],
    )
    def test_columns(self, select, message):
        data = pa.table({"t": [1], "v": [1], "text": ["a"]})
        with pytest.raises(sw.QueryError, match=message):
            sw.window(S, window=sw.Tuples(5), select=select).replay(data)

    def test_aggregates(self):
        with pytest.raises(sw.QueryError, match="sum needs the name of a column, got ''"):
            sw.functions.sum("")
        with pytest.raises(sw.QueryError, match="an aggregate must be one of count"):
            sw.Aggregate("median", "v")

    def test_an_order_must_be_a_time_or_a_whole_number(self):
        with pytest.raises(sw.DataError, match="'t'"):
            sw.window(S, window=sw.Tuples(5), select=N).replay(pa.table({"t": ["a"]}))

    def test_groups_must_be_there(self):
        with pytest.raises(sw.QueryError, match="by names 'k', but stream 's' has no such column"):
            sw.window(S, window=sw.Tuples(5), select=N, by="k").replay(pa.table({"t": [1]}))


def test_rows_without_an_order_or_a_group_are_counted():
    data = pa.table({"t": [1, None, 3], "k": ["a", "b", None]})
    run = sw.window(S, window=sw.Tuples(5), select=N, by="k").replay(data)
    assert run.rejected.to_pylist() == [
        {"stream": "s", "row": 1, "reason": "bad time"},
        {"stream": "s", "row": 2, "reason": "null key"},
    ]
    assert run.metrics.streams["s"].is_balanced


def test_a_query_is_plain_data():
    query = sw.window(
        sw.Stream("s", order_by="id"), window=sw.Tuples(100, slide=10),
        select={"x": sw.avg("v")} | N, by="k", goal=sw.DropRatio(0.01),
    )  # fmt: skip
    assert sw.WindowQuery.from_dict(query.to_dict()) == query


def test_nan_is_larger_than_every_number():
    data = pa.table({"t": [1, 2, 3, 4], "v": [1.0, math.nan, 2.0, 3.0]})
    select = {
        "least": sw.functions.min("v"),
        "most": sw.functions.max("v"),
        "sum": sw.functions.sum("v"),
    }
    found = sw.window(S, window=sw.Tuples(2), select=select).replay(data).results.to_pydict()
    assert found["least"] == [1.0, 1.0, 2.0, 2.0]
    assert [math.isnan(v) for v in found["most"]] == [False, True, True, False]
    assert found["sum"][3] == 5.0  # a NaN that has left has left no trace


def test_types_of_values_are_kept():
    times_ = pa.array([5, 7, 6], pa.timestamp("us", "UTC"))
    data = pa.table({"t": [1, 2, 3], "at": times_, "small": pa.array([1, 2, 3], pa.int8())})
    select = {"at": sw.functions.max("at"), "small": sw.functions.min("small"), "n": sw.count("at")}
    found = sw.window(S, window=sw.Tuples(2), select=select).replay(data).results
    assert found.schema.field("at").type == times_.type
    assert found.schema.field("small").type == pa.int8()
    assert found.column("at").cast(pa.int64()).to_pylist() == [5, 7, 7]


def test_a_sum_beyond_64_bits_is_an_error():
    data = pa.table({"t": [1, 2], "v": [2**62, 2**62]})
    with pytest.raises(sw.DataError, match="beyond 64 bits; cast the column to a double"):
        sw.window(S, window=sw.Tuples(2), select={"x": sw.functions.sum("v")}).replay(data)


def test_sums_of_floats_do_not_drift():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1e12, 5_000), np.full(100, 0.1)])
    data = pa.table({"t": np.arange(len(values)), "v": values})
    found = (
        sw.window(S, window=sw.Tuples(50), select={"x": sw.functions.sum("v")}).replay(data).results
    )
    assert found.column("x")[-1].as_py() == pytest.approx(5.0, rel=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("window", [sw.Sliding("1 s"), sw.Tumbling("1 s")])
def test_groups_that_fall_silent_are_forgotten(window):
    query = sw.window(S, window=window, by="k", select={"x": sw.functions.max("t")} | N)
    engine = WindowEngine(query, {"s": pa.schema({"t": pa.int64(), "k": pa.int64()})})
    for second in range(60):  # two hundred new groups a second
        t = 1000 * second + 5 * np.arange(200)
        data = pa.table({"t": t, "k": 200 * second + np.arange(200)})
        engine.feed(recorded(query, {"s": data}, None)[0])
    assert engine.log.size < 5_000
    assert engine.metrics().stored < 5_000


@compiled
@pytest.mark.parametrize("shape", ["exponential", "bursts"])
def test_a_drop_ratio_is_kept_and_used(shape):
    goal = sw.DropRatio(0.05)
    seen = drops(times(SHAPES[shape], 60_000, seed=4), goal)
    assert seen.under(goal.ratio, goal.every.count) >= 0.99
    assert 0.8 * goal.ratio <= seen.ratio <= goal.ratio


@compiled
def test_best_effort_drops_no_more_than_max_delay_with_the_same_buffer():
    data = times(SHAPES["normal"], 60_000, seed=4)
    ours, theirs = (drops(data, sw.DropRatio(0, name)) for name in ("largest", "max-delay"))
    assert ours.dropped[-1] < theirs.dropped[-1]
    assert ours.buffered == pytest.approx(theirs.buffered, rel=0.01)
    assert ours.waiting[-1] == theirs.waiting[-1]


@compiled
def test_after_a_step_the_ratio_is_soon_kept_again():
    goal = sw.DropRatio(0.05)
    seen = drops(times(SHAPES["step"], 60_000, seed=4), goal)
    ratio = seen.dropped / seen.events
    assert (ratio[35:] <= goal.ratio).all()  # the step is at 30,000 events, a period has 1,000


def naive_errors(kept, dropped, width, length, until):
    """Relative errors of sums over windows of `length` that end at multiples of `width`."""
    both = kept + dropped
    first = min(t for t, _ in both) // width * width
    errors = []
    for end in range(first + length, until // width * width + 1, width):
        inside = [[v for t, v in events if end - length <= t < end] for events in (kept, both)]
        if inside[0]:
            got, wanted = map(sum, inside)
            errors.append(abs(got - wanted) / wanted)
    return errors


def test_errors_are_those_of_the_windows_without_what_was_dropped():
    rng = np.random.default_rng(3)
    events = [
        (int(t), float(v)) for t, v in zip(rng.integers(0, 500, 300), rng.random(300), strict=True)
    ]
    lost = rng.random(300) < 0.1
    errors = WindowAccuracy([MeasuredAggregate("sum", 0)], width=10, bins=5, open_end=True)
    ts, values = np.array([t for t, _ in events]), np.array([[v for _, v in events]])
    errors.add(ts, values, lost)
    kept = [e for e, gone in zip(events, lost, strict=True) if not gone]
    dropped = [e for e, gone in zip(events, lost, strict=True) if gone]
    assert errors.settled(437).tolist() == pytest.approx(naive_errors(kept, dropped, 10, 50, 437))


@compiled
@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "stddev"])
def test_an_error_bound_is_kept_by_most_windows(function):
    rng = np.random.default_rng(6)
    ts = times(SHAPES["exponential"], 100_000, seed=6)
    data = pa.table({"t": ts, "v": rng.lognormal(0, 1, len(ts))})
    options = {"window": sw.Sliding("10 s", "1 s"), "select": {"x": sw.Aggregate(function, "v")}}
    goal = sw.ErrorBound(0.05)
    found, true = (
        {
            r["result_ts"]: r["x"]
            for r in sw.window(S, goal=g, **options).replay(data).results.to_pylist()
        }
        for g in (goal, sw.Slack("1 h"))
    )
    errors = [abs(found[end] - true[end]) / true[end] for end in true if end > 300_000]
    assert np.mean(np.array(errors) <= goal.bound) >= 0.93
    assert max(errors) > 0  # and not by waiting for everything


def test_error_bounds_are_for_windows_in_time():
    for options in ({"window": sw.Tuples(10)}, {"window": sw.Sliding("1 s"), "by": "k"}):
        with pytest.raises(sw.QueryError, match="windows in time and without groups"):
            sw.window(S, select=N, goal=sw.ErrorBound(0.1), **options)
    with pytest.raises(sw.QueryError, match="got first and last only"):
        sw.window(S, window=sw.Sliding("1 s"), select={"x": sw.last("v")}, goal=sw.ErrorBound(0.1))
    with pytest.raises(sw.QueryError, match="an error bound must be above 0 and at most 1"):
        sw.ErrorBound(0)
    with pytest.raises(sw.QueryError, match="an error bound is for windows of one stream"):
        sw.join(sw.Stream("a", "t", 5), sw.Stream("b", "t", 5), goal=sw.ErrorBound(0.1))


def test_a_running_ratio_can_change_and_nothing_else():
    query = sw.window(S, window=sw.Tuples(5), select=N, goal=sw.DropRatio(0.1))
    engine = WindowEngine(query, {"s": pa.schema({"t": pa.int64()})})
    engine.set_goal(sw.DropRatio(0.2))
    assert engine.query.goal.ratio == 0.2
    with pytest.raises(sw.QueryError, match="can only get other figures"):
        engine.set_goal(sw.Slack(5))
