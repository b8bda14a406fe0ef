"""Windows and aggregates over one disordered stream, against lists and loops."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from naive_windows import Event, aggregate, beats, extents
from property.strategies import tried
from slackwater.query.functions import Aggregate

FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev", "first", "last")
VALUES = st.one_of(st.none(), st.integers(-9, 9))
EVENTS = st.lists(
    st.builds(Event, st.integers(0, 60), VALUES, st.integers(0, 2)), min_size=1, max_size=40
)
LENGTHS = st.integers(1, 25)


@st.composite
def windows(draw):
    """(options of sw.window, length, slide, tuples, open end)."""
    length, tuples = draw(LENGTHS), draw(st.booleans())
    slide = draw(st.one_of(st.none(), st.just(length), LENGTHS))
    options = {"window": sw.Tuples(length, slide) if tuples else sw.Sliding(length, slide)}
    if slide is not None and not tuples:
        options["bounds"] = draw(st.sampled_from(["(]", "[)"]))
    return options, length, slide, tuples, options.get("bounds") == "[)"


def table_of(events, kind):
    return pa.table({
        "ts": pa.array([e.ts for e in events], pa.int64()),
        "v": pa.array([e.value for e in events], kind),
        "k": pa.array([e.group for e in events], pa.int64()),
    })  # fmt: skip


def asked(options, goal, grouped, functions=FUNCTIONS):
    select = {f: Aggregate(f, "v") for f in functions} | {"n": sw.count()}
    by = ["k"] if grouped else []
    return sw.window(sw.Stream("s", order_by="ts"), select=select, by=by, goal=goal, **options)


@pytest.mark.differential
@tried(0.5)
@given(EVENTS, windows(), st.integers(0, 30), st.booleans(), st.sampled_from(["int64", "double"]))
def test_every_aggregate_of_every_window_is_that_of_the_oracle(
    events, case, distance, grouped, kind
):
    options, length, slide, tuples, open_end = case
    run = asked(options, sw.Slack(distance), grouped).replay(table_of(events, kind))
    alone = events if grouped else [Event(e.ts, e.value) for e in events]
    released, dropped = beats(alone, distance)
    expected = extents(alone, released, length, slide, tuples, open_end)
    found = run.results.to_pylist()
    assert [(r["result_ts"], r.get("k", 0), r["n"]) for r in found] == [
        (end, group, len(members)) for end, group, members in expected
    ]
    for row, (_, _, members) in zip(found, expected, strict=True):
        values = [events[n].value for n in members]
        for function in FUNCTIONS:
            wanted = aggregate(function, values)
            assert row[function] == (None if wanted is None else pytest.approx(wanted, abs=1e-9))
    counts = run.metrics.streams["s"]
    assert (counts.late_dropped, counts.is_balanced) == (len(dropped), True)
    assert run.late.column("ts").to_pylist() == [events[n].ts for n in dropped]
