"""Windows of one stream: errors of windows against lists, values of aggregates, rings that grow."""

import math
from statistics import stdev

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import batches
from naive_windows import Event, aggregate, beats, extents
from slackwater.engine.replay import recorded, schemas_of
from slackwater.engine.snapshot import restored
from slackwater.engine.window import WindowEngine
from slackwater.query.functions import Aggregate
from slackwater.windows import window_aggregate
from slackwater.windows.accuracy import MeasuredAggregate, WindowAccuracy, _value
from slackwater.windows.window_aggregate import _power_of_two

FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev")


# ---- errors of windows, against lists


def values_of(function, values):
    if function == "count":
        return float(len(values))
    if not values:
        return 0.0
    if function == "stddev":
        return stdev(values) if len(values) > 1 else 0.0
    return float({"sum": sum, "min": min, "max": max, "avg": np.mean}[function](values))


def naive_errors(events, functions, width, bins, open_end, ends):
    """The largest relative error of each window that ends at one of `ends`; none of empty ones."""
    found = []
    for end in ends:
        begin = end - bins * width
        inside = [e for e in events if (begin <= e[0] < end if open_end else begin < e[0] <= end)]
        errors = []
        for column, function in enumerate(functions):
            known = [(e[1][column], e[2]) for e in inside if not math.isnan(e[1][column])]
            kept = values_of(function, [v for v, is_dropped in known if not is_dropped])
            whole = values_of(function, [v for v, _ in known])
            error = abs(kept - whole) / abs(whole) if whole else math.inf
            errors.append(0.0 if kept == whole else error)
        if any(not e[2] and not all(map(math.isnan, e[1])) for e in inside):
            found.append(max(errors))
    return found


@pytest.mark.parametrize("open_end", [False, True])
@pytest.mark.parametrize("bins", [1, 3])
def test_errors_of_windows_are_those_of_lists(bins, open_end):
    rng, width = np.random.default_rng(bins), 10
    functions = ["count", "sum", "avg", "min", "max", "stddev"]
    accuracy = WindowAccuracy(
        [MeasuredAggregate(f, i) for i, f in enumerate(functions)], width, bins, open_end
    )
    ts = np.sort(rng.integers(1, 400, 150)) + rng.integers(0, 9, 150)
    values = rng.integers(-3, 9, (6, 150)).astype(float)
    values[rng.random((6, 150)) < 0.2] = np.nan
    is_dropped = rng.random(150) < 0.3
    events = list(zip(ts.tolist(), values.T.tolist(), is_dropped.tolist(), strict=True))
    first = (int(ts[:30].min()) - (not open_end)) // width * width
    found, until = [], 0
    for begin in range(0, 150, 30):
        part = slice(begin, begin + 30)
        accuracy.add(ts[part], values[:, part], is_dropped[part])
        until = int(ts[: begin + 30].max()) - 9  # what comes is not older
        errors = accuracy.settled(until)
        ends = range(first + bins * width, until + 1, width)
        found += errors.tolist()
        assert found == pytest.approx(
            naive_errors(events[: begin + 30], functions, width, bins, open_end, ends)
        )
        again = WindowAccuracy(
            [MeasuredAggregate(f, i) for i, f in enumerate(functions)], width, bins, open_end
        )
        again.resume(accuracy.state())
        assert again.state() == accuracy.state()
        accuracy = again
    assert len(found) > 20


@pytest.mark.parametrize(
    ("function", "numbers", "value"),
    [
        ("count", [3, 12, 50, 2, 5], 3.0),
        ("count", [0, 0, 0, math.inf, -math.inf], 0.0),
        ("sum", [3, 12, 50, 2, 5], 12.0),
        ("sum", [0, 0, 0, math.inf, -math.inf], 0.0),
        ("avg", [3, 12, 50, 2, 5], 4.0),
        ("min", [3, 12, 50, 2, 5], 2.0),
        ("min", [0, 0, 0, math.inf, -math.inf], 0.0),
        ("max", [3, 12, 50, 2, 5], 5.0),
        ("max", [1, 5, 25, 5, 5], 5.0),
        ("stddev", [3, 12, 56, 2, 6], 2.0),  # (56 - 48) / 2
        ("stddev", [1, 5, 25, 5, 5], 0.0),
        ("stddev", [2, 5, 12.4, 2, 3], 0.0),  # rounded below 0
    ],
)
def test_the_value_of_an_aggregate_of_some_bins(function, numbers, value):
    assert _value(function, np.array(numbers, float)) == pytest.approx(value)


def test_windows_before_a_gap_are_not_measured():
    def errors(gap):
        accuracy = WindowAccuracy([MeasuredAggregate("count", 0)], 1, 2, True)
        accuracy.add(np.array([5, 6]), np.ones((1, 2)), np.array([False, True]))
        accuracy.add(np.array([6 + gap]), np.ones((1, 1)), np.array([False]))
        return accuracy.settled(7 + gap), accuracy.state()["first"]

    # bins 5 to 6, then so many more: as many as that are kept
    found, first = errors(10_008)
    assert (found.tolist(), first) == ([0.5, 0.0], 6 + 10_008)
    found, first = errors(10_009)
    assert (found.tolist(), first) == ([0.0], 6 + 10_009)


def test_nothing_is_measured_of_nothing_and_of_events_before_the_first_bin():
    accuracy = WindowAccuracy([MeasuredAggregate("count", 0)], 10, 1, True)
    accuracy.add(np.empty(0, np.int64), np.empty((1, 0)), np.empty(0, bool))
    assert accuracy.settled(1000).tolist() == []
    accuracy.add(np.array([25, 37]), np.ones((1, 2)), np.array([False, False]))
    assert accuracy.settled(30).tolist() == [0.0]
    accuracy.add(np.array([21, 38]), np.ones((1, 2)), np.array([True, True]))  # 21 is settled
    assert accuracy.settled(39).tolist() == []
    assert accuracy.settled(40).tolist() == [0.5]


# ---- rings that grow, move and turn, against lists


def events_of(n, groups, seed, spread=12):
    rng = np.random.default_rng(seed)
    values = [None if rng.random() < 0.15 else int(v) for v in rng.integers(-50, 50, n)]
    ts = (np.arange(n) * 2 + rng.integers(0, spread, n)).tolist()
    return [
        Event(t, v, int(g)) for t, v, g in zip(ts, values, rng.integers(0, groups, n), strict=True)
    ]


def table_of(events, kind):
    return pa.table({
        "ts": pa.array([e.ts for e in events], pa.int64()),
        "v": pa.array([e.value for e in events], kind),
        "k": pa.array([e.group for e in events], pa.int64()),
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["int64", "double"])
@pytest.mark.parametrize(
    ("window", "groups", "open_end"),
    [
        (sw.Sliding(60, 12), 3, False),
        (sw.Sliding(60, 12), 100, True),
        (sw.Sliding(40), 70, False),
        (sw.Tuples(9, slide=2), 5, False),
    ],
)
def test_windows_of_many_groups_are_those_of_lists(monkeypatch, window, groups, open_end, kind):
    monkeypatch.setattr(window_aggregate, "_FEWEST_GROUPS", 4)
    monkeypatch.setattr(window_aggregate, "_LEAST_ROOM", 8)
    monkeypatch.setattr(window_aggregate, "_RESULTS_AT_ONCE", 5)
    events = events_of(130, groups, groups)
    query = sw.window(
        sw.Stream("s", "ts"), window=window, by="k", goal=sw.Slack(8),
        select={f: Aggregate(f, "v") for f in FUNCTIONS} | {"n": sw.count()},
        **({"bounds": "[)"} if open_end else {}),
    )  # fmt: skip
    batch, _ = recorded(query, {"s": table_of(events, kind)}, None)
    parts = list(batches(batch, (50, 37, 43)))
    engine, found = WindowEngine(query, schemas_of(query, batch)), []
    for part in parts:
        found += engine.feed(part).table.to_pylist()
        engine = restored(engine.snapshot(), WindowEngine(query, schemas_of(query, batch)))
    found += engine.flush().table.to_pylist()
    is_tuples = isinstance(window, sw.Tuples)
    released, _ = beats(events, 8)
    expected = extents(
        events, released, window.count if is_tuples else window.length, window.slide, is_tuples,
        open_end,
    )  # fmt: skip
    assert [(r["result_ts"], r["k"], r["n"]) for r in found] == [
        (end, group, len(members)) for end, group, members in expected
    ]
    for row, (_, _, members) in zip(found, expected, strict=True):
        for function in FUNCTIONS:
            wanted = aggregate(function, [events[n].value for n in members])
            assert row[function] == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


def test_the_next_power_of_two():
    assert _power_of_two(np.array([0, 1, 2, 3, 4, 5, 8, 9, 1000])).tolist() == [
        1, 1, 2, 4, 4, 8, 8, 16, 1024,
    ]  # fmt: skip


def test_types_that_aggregates_take_and_give():
    times = pa.array([7, None, 9], pa.timestamp("ms"))
    table = pa.table(
        {
            "t": [1, 2, 3],
            "small": pa.array([1, None, 3], pa.int8()),
            "single": pa.array([0.5, 1.5, None], pa.float32()),
            "at": times,
            "day": pa.array([3, 4, None], pa.date32()),
            "text": ["a", None, "c"],
            "big": pa.array([1, 2, 3], pa.uint64()),
        }
    )
    select = {
        f"{f}_{c}": Aggregate(f, c)
        for c, functions in {
            "small": FUNCTIONS, "single": FUNCTIONS, "at": ("count", "min", "max"),
            "day": ("count", "min", "max"), "text": ("count", "first", "last"), "big": ("count",),
        }.items()
        for f in functions
    }  # fmt: skip
    found = sw.window(sw.Stream("s", "t"), window=sw.Tumbling(5), select=select).replay(table)
    schema = found.results.schema
    types = {name: str(schema.field(name).type) for name in select}
    assert {name for name, kind in types.items() if kind == "int64"} == {
        "count_small", "sum_small", "count_single", "count_at", "count_day", "count_text",
        "count_big",
    }  # fmt: skip
    assert (types["min_small"], types["max_single"], types["sum_single"], types["avg_small"]) == (
        "int8", "float", "double", "double",
    )  # fmt: skip
    assert (types["min_at"], types["max_day"]) == ("timestamp[ms]", "date32[day]")
    (row,) = found.results.select(list(select)).to_pylist()
    assert row["min_at"], row["max_at"] == (times[0].as_py(), times[2].as_py())
    numbers = {k: v for k, v in row.items() if isinstance(v, int | float | str)}
    assert numbers == {
        "count_small": 2, "sum_small": 4, "avg_small": 2.0, "min_small": 1, "max_small": 3,
        "stddev_small": pytest.approx(2**0.5), "count_single": 2, "sum_single": 2.0,
        "avg_single": 1.0, "min_single": 0.5, "max_single": 1.5,
        "stddev_single": pytest.approx(0.5**0.5), "count_at": 2, "count_day": 2, "count_text": 2,
        "first_text": "a", "last_text": "c", "count_big": 3,
    }  # fmt: skip
    for function, column in (
        ("sum", "at"), ("avg", "day"), ("stddev", "at"), ("min", "text"), ("max", "big"),
        ("sum", "big"),
    ):  # fmt: skip
        with pytest.raises(sw.QueryError, match="cast the column"):
            sw.window(
                sw.Stream("s", "t"),
                window=sw.Tumbling(5),
                select={"x": Aggregate(function, column)},
            ).replay(table)


def test_a_window_aggregates_at_most_62_columns():
    def columns(n):
        numbers = {f"v{i}": pa.array([i or None], pa.int64()) for i in range(n)}
        table = pa.table({"t": [1], **numbers})
        select = {f"v{i}": Aggregate("sum", f"v{i}") for i in range(n)}
        query = sw.window(sw.Stream("s", "t"), window=sw.Tumbling(5), select=select)
        return query.replay(table).results.to_pylist()[0]

    row = columns(62)
    assert row.pop("v0") is None
    assert [row[f"v{i}"] for i in range(1, 62)] == list(range(1, 62))
    with pytest.raises(sw.QueryError, match="at most 62 columns"):
        columns(63)
