"""The list of docs/bad-input.md: what is odd about the input, and what happens then.

What is tested elsewhere is named in the table there; nothing is tested twice.
"""

import datetime as dt
import logging
import re
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored

A = sw.Stream("a", ts="ts", window="10 ms")
B = sw.Stream("b", ts="ts", window="10 ms")
NOW = 1_700_000_000  # seconds since 1970: a day in November 2023
YEAR_9999 = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


def table(ts, **columns):
    return pa.table({"ts": ts, **columns})


def replay(a, b, arrival=None, **options):
    return sw.join(A, B, **{"goal": sw.NoSlack()} | options).replay(
        {"a": a, "b": b}, arrival=arrival
    )


def pairs(run):
    return sorted(
        zip(run.results["a_ts"].to_pylist(), run.results["b_ts"].to_pylist(), strict=True)
    )


# ---- times


def test_not_a_time_is_counted_in_every_frame():
    days = pd.DataFrame({"ts": [pd.Timestamp(0), pd.NaT, pd.Timestamp(1_000_000)]})
    run = replay(days, days)
    assert run.metrics.rejected == {"bad time": 2}
    assert run.rejected.to_pylist() == [
        {"stream": name, "row": 1, "reason": "bad time"} for name in "ab"
    ]
    assert run.results.num_rows == 4


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_1970_and_the_year_9999_are_times_like_others(unit):
    ts = pa.array([dt.datetime(1970, 1, 1, tzinfo=dt.UTC), YEAR_9999], pa.timestamp("us", "UTC"))
    run = replay(table(ts), table(ts), unit=unit)
    assert run.metrics.rejected == {}
    assert run.results["result_ts"].to_pylist() == ts.to_pylist()
    assert run.report().recall == 1.0


def test_without_a_limit_the_year_9999_is_believed_and_what_follows_is_late():
    far = int(YEAR_9999.timestamp() * 1000)
    wild = table([1, far, 2, 3], arr=[1, 2, 3, 4])
    run = replay(wild, wild, "arr")
    assert run.metrics.streams["a"].local_time == far
    assert sorted(run.late["ts"].to_pylist()) == [2, 2, 3, 3]
    assert run.metrics.is_balanced


def test_times_before_1970_are_rounded_down_like_others():
    ts = [-11.5, -1.5, -0.5, 0.5]  # in whole units -12, -2, -1, 0
    run = replay(table(ts), table([-2, 9]))
    assert run.metrics.rejected == {}
    assert pairs(run) == [(-11.5, -2), (-1.5, -2), (-0.5, -2), (-0.5, 9), (0.5, -2), (0.5, 9)]
    ancient = pa.array([-1001, -1000, -1], pa.timestamp("us"))
    run = replay(table(ancient), table(ancient))
    assert sorted(run.results["result_ts"].cast("int64").to_pylist()) == [-2] + [-1] * 8


def test_the_same_instant_is_the_same_in_every_zone():
    # Clocks went back in Berlin at 1 o'clock UTC: 02:30 there came twice, an hour apart.
    first = dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)
    instants = [first, first + dt.timedelta(hours=1)]
    berlin = pa.array(instants, pa.timestamp("ms", "Europe/Berlin"))
    assert [t.strftime("%H:%M") for t in berlin.to_pylist()] == ["02:30", "02:30"]
    for zone in ("America/New_York", "+05:45", "UTC"):
        run = replay(table(berlin), table(pa.array(instants, pa.timestamp("ms", zone))))
        of_a, of_b = (run.results[c].cast(pa.int64()).to_pylist() for c in ("a_ts", "b_ts"))
        assert of_a == of_b == [int(t.timestamp()) * 1000 for t in instants]
    local = pa.array([t.replace(tzinfo=None) for t in instants], pa.timestamp("ms"))
    with pytest.raises(
        sw.DataError, match=r"have a zone, or none of them, got a\.ts .*, b\.ts tim"
    ):
        replay(table(berlin), table(local))


@pytest.mark.parametrize("left", ["s", "ms", "us", "ns"])
def test_the_unit_of_a_timestamp_does_not_matter(left):
    def seconds(unit):
        return table(pa.array([NOW, NOW + 60], pa.timestamp("s")).cast(pa.timestamp(unit)))

    for right in ("s", "ms", "us", "ns"):
        run = replay(seconds(left), seconds(right))
        ms = run.results["result_ts"].cast("int64").to_pylist()
        assert ms == [NOW * 1000, (NOW + 60) * 1000]


# ---- seconds that are taken for milliseconds


def clocks(caplog, a, b, arrival=None, **options):
    """What is said of the columns of two streams with these times."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "slackwater"):
        recorded(sw.join(A, B, **{"goal": sw.NoSlack()} | options), {"a": a, "b": b}, arrival)
    return [record.getMessage() for record in caplog.records if record.name == "slackwater"]


def test_seconds_are_noticed_by_another_stream(caplog):
    seconds, ms = np.arange(NOW, NOW + 50), np.arange(NOW, NOW + 50) * 1000
    said = "column 'ts' of stream 'a' seems to be in {}, going by column 'ts' of stream 'b', but"
    assert clocks(caplog, table(seconds), table(ms)) == [
        said.format("seconds") + " is taken for milliseconds: convert it"
    ]
    [told] = clocks(caplog, table(ms * 1000), table(ms))
    assert told.startswith(said.format("microseconds"))
    [told] = clocks(caplog, table(seconds), table(pa.array(ms, pa.timestamp("ms", "UTC"))))
    assert told.startswith(said.format("seconds"))
    [told] = clocks(caplog, table(ms), table(ms * 1000), unit="us")
    assert told.startswith(said.format("milliseconds"))
    assert told.endswith("taken for microseconds: convert it")


def test_seconds_are_noticed_by_their_arrival(caplog):
    seconds = np.arange(NOW, NOW + 50)
    wrong = table(seconds, arr=pa.array(seconds * 1000 + 700, pa.timestamp("ms")))
    told = clocks(caplog, wrong, wrong, "arr")
    assert [t.partition(" seems")[0] for t in told] == [
        "column 'ts' of stream 'a'",
        "column 'ts' of stream 'b'",
    ]
    wrong = table(seconds * 1000, arr=seconds)
    told = clocks(caplog, wrong, wrong, "arr")
    assert told[0].startswith("column 'arr' of stream 'a' seems to be in seconds, going by column")
    assert len(told) == 2


def test_what_is_not_contradicted_is_not_warned_about(caplog):
    seconds, ms = np.arange(NOW, NOW + 50), np.arange(NOW, NOW + 50) * 1000
    small = np.arange(50)
    assert clocks(caplog, table(seconds), table(seconds)) == []  # nobody knows better
    assert clocks(caplog, table(small), table(small * 1000)) == []  # no date
    assert clocks(caplog, table(small), table(ms)) == []  # a test's numbers beside real ones
    assert clocks(caplog, table(ms - 10**11), table(ms)) == []  # three years behind
    assert clocks(caplog, table(small, arr=ms), table(small, arr=ms), "arr") == []
    nothing = table(pa.nulls(3, pa.int64()))
    assert clocks(caplog, nothing, table(ms)) == []
    one_wrong = np.where(small == 7, seconds, ms)
    assert clocks(caplog, table(one_wrong), table(ms)) == []  # a row is not the stream


def test_a_replay_warns(caplog):
    replay(table([NOW]), table([NOW * 1000]))
    assert "column 'ts' of stream 'a' seems to be in seconds" in caplog.text


# ---- rows


def test_exact_duplicates_are_events_of_their_own():
    run = replay(table([5, 5, 5], k=[1, 1, 1]), table([5, 5], k=[1, 1]), on="k")
    assert run.results.num_rows == 6
    assert run.report().recall == 1.0


def test_equal_stamps_are_in_order_whoever_comes_first():
    many = table([7] * 40)
    run = replay(many, many)
    assert run.results.num_rows == 40 * 40
    assert run.late.num_rows == 0


def test_one_hot_event_with_very_many_matches_comes_out_in_bounded_pieces():
    matches = 10_000 if numba.config.DISABLE_JIT else 1_000_000  # plain Python takes its time
    megabyte = 10**6
    a = table(np.zeros(matches, np.int64), k=np.zeros(matches, np.int64))
    b = table([1], k=[0])
    query = sw.join(A, B, on="k", goal=sw.NoSlack())
    engine = JoinEngine(query, {"a": a.schema, "b": b.schema})
    batch, _ = recorded(query, {"a": a, "b": b}, None)
    rows = 0
    for piece in [engine.feed_in_pieces(batch, megabyte), engine.flush_in_pieces(megabyte)]:
        for output in piece:
            assert output.nbytes < 3 * megabyte
            rows += output.table.num_rows
    assert rows == matches


# ---- order


def test_a_stream_that_runs_backwards_is_all_late_and_each_loss_is_counted_or_emitted():
    a = table(np.arange(50, 0, -1), arr=np.arange(1000, 1050))
    b = table(np.arange(1, 100), arr=np.arange(1, 100))
    truth = sum(len(range(max(1, ts - 10), ts + 11)) for ts in range(1, 51))
    lost = replay(a, b, "arr", retention=1000)
    of_a = lost.metrics.streams["a"]
    assert (of_a.in_order, of_a.late_kept + of_a.late_dropped) == (1, 49)
    assert lost.metrics.is_balanced
    assert 0 < lost.metrics.produced < truth / 2
    assert lost.metrics.produced + lost.metrics.lost == truth
    emitted = replay(a, b, "arr", late="emit", retention=1000)
    assert emitted.results.num_rows == truth


def test_perfect_order_needs_no_slack_and_loses_nothing():
    ordered = table(np.arange(0, 300, 3), arr=np.arange(0, 300, 3))
    run = replay(ordered, ordered, "arr", goal=sw.MaxSlack())
    assert run.slack["k"].to_pylist() == [0]
    assert run.late.num_rows == 0
    assert run.report().recall == 1.0


def test_rows_that_arrive_before_they_happen_have_no_delay():
    ts = np.arange(0, 300, 3)
    early = table(ts, arr=ts - 1000)
    run = replay(early, early, "arr", goal=sw.MaxSlack())
    assert run.slack["k"].to_pylist() == [0]
    assert pairs(run) == pairs(replay(table(ts, arr=ts), table(ts, arr=ts), "arr"))
    assert run.metrics.is_balanced


# ---- another schema, and functions that do not do


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (pa.field("k", pa.int32()), "'k int64'.*now .*'k int32'"),
        (pa.field("q", pa.int64()), "'k int64'.*now .*'q int64'"),
    ],
)
def test_a_schema_that_changed_between_snapshot_and_restore_is_refused(field, message):
    query = sw.join(A, B, goal=sw.NoSlack())
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64()})
    saved = JoinEngine(query, {"a": schema, "b": schema}).snapshot()
    changed = {"a": schema, "b": schema.set(1, field)}
    with pytest.raises(sw.SnapshotError, match=f"columns was .*{message}"):
        restored(saved, JoinEngine(query, changed))
    with pytest.raises(sw.SnapshotError, match="streams was .*'b by ts'.*now .*'b by k'"):
        other = sw.join(A, sw.Stream("b", "k", 10), goal=sw.NoSlack())
        restored(saved, JoinEngine(other, {"a": schema, "b": schema}))


def raises_value_error(a, b):
    if a.x > 1:
        raise ValueError("no such price")  # noqa: EM101  numba takes constants only
    return a.x <= b.x


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (lambda a, b: 1 // (a.x - 2) < b.x, r"where raised ZeroDivisionError \(.*\) for row . of"),
        (raises_value_error, "where raised ValueError .no such price. for row 1 of stream 'a', ts"),
    ],
)
def test_a_function_that_raises_stops_the_run_and_names_the_row(where, message):
    numbers = table([1, 2], x=[1, 2])
    with pytest.raises(sw.ConditionError, match=message):
        replay(numbers, numbers, where=where)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="types are known to the compiler")
@pytest.mark.parametrize("result", ["yes", None, (1, 2)], ids=repr)
def test_a_function_must_return_true_false_or_a_number(result):
    numbers = table([1, 2], x=[1, 2])
    with pytest.raises(sw.QueryError, match="where must return true or false, or a number, got"):
        replay(numbers, numbers, where=lambda a, b: result)
    assert replay(numbers, numbers, where=lambda a, b: a.x - b.x).results.num_rows == 2


def test_only_a_plain_function_is_taken_and_names_that_records_cannot_have_are_refused():
    numbers = table([1], _x=[1])
    with pytest.raises(sw.QueryError, match="made by def or lambda, got builtin"):
        replay(numbers, numbers, where=max)
    with pytest.raises(sw.QueryError, match=r"reads a\._x: names in a record must not begin with"):
        replay(numbers, numbers, where=lambda a, b: a._x == b._x)
    assert replay(numbers, numbers, where="a._x >= b._x").results.num_rows == 1


def test_the_tests_that_the_page_names_are_there():
    tests = Path(__file__).parents[1]
    page = (tests.parent / "docs" / "bad-input.md").read_text(encoding="utf-8")
    files = {Path(__file__), *(tests / file for file in re.findall(r"`(\w+/test_\w+\.py)`", page))}
    known = "".join(file.read_text(encoding="utf-8") for file in sorted(files))
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 25
    assert [name for name in named if f"def {name}(" not in known] == []
    own = re.findall(r"^def (test_\w+)", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in own[:-1] if f"`{name}`" not in page] == []
