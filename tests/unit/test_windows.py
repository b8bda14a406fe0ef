"""Windows of one stream: what is refused, what is counted, what is kept."""

import math

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.replay import recorded
from slackwater.engine.window_engine import WindowEngine
from slackwater.lab.kim import SHAPES, drops, times

S = sw.Stream("s", ts="t")
N = {"n": sw.count()}


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"range": 0}, "a tuple-count window must hold at least 1 tuple, got 0"),
            ({"range": "0 s"}, "range must be at least 1 ms, got '0 s'"),
            ({"range": "soon"}, "range must be like '5 seconds'"),
            ({"range": 5, "slide": "1 s"}, "both in tuples or both in time, got 5 and '1 s'"),
            ({"range": 5, "bounds": "[)"}, r"bounds='\[\)' leaves out the window's own end"),
            ({"range": 5, "bounds": "[]"}, r"bounds must be one of '\(\]', '\[\)', got '\[\]'"),
            ({"range": 5, "select": {}}, "a window needs at least one aggregate"),
            (
                {"range": 5, "select": {"x": "v"}},
                "select must have aggregates by name, got 'x': 'v'",
            ),
            ({"range": 5, "by": "n"}, "more than one column n"),
            (
                {"range": 5, "goal": sw.Recall(0.9)},
                "must be one of DropRatio, Slack, MaxSlack, NoSl",
            ),
        ],
    )
    def test_queries(self, options, message):
        with pytest.raises(sw.QueryError, match=message):
            sw.window(S, **{"select": N} | options)

    def test_streams(self):
        with pytest.raises(sw.QueryError, match="give range= instead"):
            sw.window(sw.Stream("s", ts="t", window=5), range=5, select=N)
        with pytest.raises(sw.QueryError, match="give ts or order_by, got both"):
            sw.Stream("s", ts="t", order_by="id")
        with pytest.raises(sw.QueryError, match="must say how long an event can find partners"):
            sw.join(S, sw.Stream("b", ts="t", window=5))

    @pytest.mark.parametrize("ratio", [-0.1, 1, 1.0, "1%", True])
    def test_ratios(self, ratio):
        with pytest.raises(sw.QueryError, match="a drop ratio must be at least 0 and below 1"):
            sw.DropRatio(ratio)

    def test_options_of_ratios(self):
        with pytest.raises(sw.QueryError, match="'max-delay' cannot be steered: ratio must be 0"):
            sw.DropRatio(0.1, heartbeat="max-delay")
        with pytest.raises(sw.QueryError, match="heartbeat must be one of"):
            sw.DropRatio(0.1, heartbeat="fast")
        with pytest.raises(sw.QueryError, match="every must be a whole number of events"):
            sw.DropRatio(0.1, every=0)

    @pytest.mark.parametrize(
        ("select", "message"),
        [
            (
                {"x": sw.sum("w")},
                "x aggregates 'w', but stream 's' has no such column; it has t, v",
            ),
            ({"x": sw.sum("text")}, r"sum\(text\) takes numbers, got string; cast the column"),
            ({"x": sw.max("text")}, r"max\(text\) takes numbers or times, got string"),
        ],
    )
    def test_columns(self, select, message):
        data = pa.table({"t": [1], "v": [1], "text": ["a"]})
        with pytest.raises(sw.QueryError, match=message):
            sw.window(S, range=5, select=select).replay(data)

    def test_aggregates(self):
        with pytest.raises(sw.QueryError, match="sum needs the name of a column, got ''"):
            sw.sum("")
        with pytest.raises(sw.QueryError, match="an aggregate must be one of count"):
            sw.Aggregate("median", "v")

    def test_an_order_must_be_a_time_or_a_whole_number(self):
        with pytest.raises(sw.DataError, match="'t'"):
            sw.window(S, range=5, select=N).replay(pa.table({"t": ["a"]}))

    def test_groups_must_be_there(self):
        with pytest.raises(sw.QueryError, match="by names 'k', but stream 's' has no such column"):
            sw.window(S, range=5, select=N, by="k").replay(pa.table({"t": [1]}))


def test_rows_without_an_order_or_a_group_are_counted():
    data = pa.table({"t": [1, None, 3], "k": ["a", "b", None]})
    run = sw.window(S, range=5, select=N, by="k").replay(data)
    assert run.rejected.to_pylist() == [
        {"stream": "s", "row": 1, "reason": "bad time"},
        {"stream": "s", "row": 2, "reason": "null key"},
    ]
    assert run.metrics.streams["s"].is_balanced


def test_a_query_is_plain_data():
    query = sw.window(
        sw.Stream("s", order_by="id"), range=100, slide=10, select={"x": sw.avg("v")} | N, by="k",
        goal=sw.DropRatio(0.01),
    )  # fmt: skip
    assert sw.WindowQuery.from_dict(query.to_dict()) == query


def test_nan_is_larger_than_every_number():
    data = pa.table({"t": [1, 2, 3, 4], "v": [1.0, math.nan, 2.0, 3.0]})
    select = {"least": sw.min("v"), "most": sw.max("v"), "sum": sw.sum("v")}
    found = sw.window(S, range=2, select=select).replay(data).results.to_pydict()
    assert found["least"] == [1.0, 1.0, 2.0, 2.0]
    assert [math.isnan(v) for v in found["most"]] == [False, True, True, False]
    assert found["sum"][3] == 5.0  # a NaN that has left has left no trace


def test_types_of_values_are_kept():
    times_ = pa.array([5, 7, 6], pa.timestamp("us", "UTC"))
    data = pa.table({"t": [1, 2, 3], "at": times_, "small": pa.array([1, 2, 3], pa.int8())})
    select = {"at": sw.max("at"), "small": sw.min("small"), "n": sw.count("at")}
    found = sw.window(S, range=2, select=select).replay(data).results
    assert found.schema.field("at").type == times_.type
    assert found.schema.field("small").type == pa.int8()
    assert found.column("at").cast(pa.int64()).to_pylist() == [5, 7, 7]


def test_a_sum_beyond_64_bits_is_an_error():
    data = pa.table({"t": [1, 2], "v": [2**62, 2**62]})
    with pytest.raises(sw.DataError, match="beyond 64 bits; cast the column to a double"):
        sw.window(S, range=2, select={"x": sw.sum("v")}).replay(data)


def test_sums_of_floats_do_not_drift():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1e12, 5_000), np.full(100, 0.1)])
    data = pa.table({"t": np.arange(len(values)), "v": values})
    found = sw.window(S, range=50, select={"x": sw.sum("v")}).replay(data).results
    assert found.column("x")[-1].as_py() == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"slide": "1 s"}], ids=["sliding", "tumbling"])
def test_groups_that_fall_silent_are_forgotten(options):
    query = sw.window(S, range="1 s", by="k", select={"x": sw.max("t")} | N, **options)
    engine = WindowEngine(query, {"s": pa.schema({"t": pa.int64(), "k": pa.int64()})})
    for second in range(300):  # two hundred new groups a second
        t = 1000 * second + 5 * np.arange(200)
        data = pa.table({"t": t, "k": 200 * second + np.arange(200)})
        engine.feed(recorded(query, {"s": data}, None)[0])
    assert engine.log.size < 5_000
    assert engine.metrics().stored < 5_000


@pytest.mark.parametrize("shape", ["exponential", "bursts"])
def test_a_drop_ratio_is_kept_and_used(shape):
    goal = sw.DropRatio(0.05)
    seen = drops(times(SHAPES[shape], 60_000, seed=4), goal)
    assert seen.under(goal.ratio, goal.every) >= 0.99
    assert 0.8 * goal.ratio <= seen.ratio <= goal.ratio


def test_best_effort_drops_no_more_than_max_delay_with_the_same_buffer():
    data = times(SHAPES["normal"], 60_000, seed=4)
    ours, theirs = (drops(data, sw.DropRatio(0, name)) for name in ("largest", "max-delay"))
    assert ours.dropped[-1] < theirs.dropped[-1]
    assert ours.buffered == pytest.approx(theirs.buffered, rel=0.01)
    assert ours.waiting[-1] == theirs.waiting[-1]


def test_after_a_step_the_ratio_is_soon_kept_again():
    goal = sw.DropRatio(0.05)
    seen = drops(times(SHAPES["step"], 60_000, seed=4), goal)
    ratio = seen.dropped / seen.events
    assert (ratio[35:] <= goal.ratio).all()  # the step is at 30,000 events, a period has 1,000


def test_a_running_ratio_can_change_and_nothing_else():
    query = sw.window(S, range=5, select=N, goal=sw.DropRatio(0.1))
    engine = WindowEngine(query, {"s": pa.schema({"t": pa.int64()})})
    engine.set_goal(sw.DropRatio(0.2))
    assert engine.query.goal.ratio == 0.2
    with pytest.raises(sw.QueryError, match="can only get other figures"):
        engine.set_goal(sw.Slack(5))
