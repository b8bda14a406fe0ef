"""Bad data gets an error that names stream, column and row, or a counted reject; never silence."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.checks import Checks
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import rejects_table
from slackwater.events.batch import Batch

A = sw.Stream("a", ts="ts", window=10)
B = sw.Stream("b", ts="ts", window=10)
GOOD = pa.table({"ts": [1, 2], "k": [1, 1], "x": [1.0, 2.0]})


def replay(a, b=GOOD, **options):
    return sw.join(A, B, **{"goal": sw.NoSlack()} | options).replay({"a": a, "b": b})


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        (pa.table({"t": [1]}), {}, sw.DataError, "stream 'a' has no time column 'ts'; it has t"),
        (
            pa.table({"ts": ["1"]}),
            {},
            sw.DataError,
            "stream 'a': time column 'ts' must be a timestamp or a number, got string",
        ),
        (
            pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"]),
            {},
            sw.DataError,
            "stream 'a' has more than one column named ts",
        ),
        (GOOD, {"on": "q"}, sw.QueryError, "on names a.q, but stream 'a' has no column 'q'"),
        (
            GOOD,
            {"where": "a.q < b.x"},
            sw.QueryError,
            "where reads a.q, but stream 'a' has no column 'q'; it has ts, k, x",
        ),
        (
            pa.table({"ts": [1], "x": ["u"]}),
            {"where": "a.x < b.x"},
            sw.QueryError,
            "a.x is a text, b.x is a float",
        ),
        (
            pa.table({"ts": [1], "k": ["one"]}),
            {"on": "k"},
            sw.DataError,
            "columns of a key must be comparable, got string and int64",
        ),
        ([1, 2], {}, sw.DataError, "stream 'a' must be an Arrow table.*got list"),
    ],
)
def test_data_that_does_not_fit_is_refused_before_anything_runs(table, options, error, message):
    with pytest.raises(error, match=message):
        replay(table, **options)


def test_streams_must_be_the_ones_of_the_query():
    query = sw.join(A, B, goal=sw.NoSlack())
    with pytest.raises(sw.DataError, match="there is no data for stream b; got a"):
        query.replay({"a": GOOD})
    with pytest.raises(sw.DataError, match="there is no stream c; streams are a, b"):
        query.replay({"a": GOOD, "b": GOOD, "c": GOOD})


def test_a_row_must_have_arrived():
    bad = GOOD.append_column("arr", pa.array([1, None]))
    with pytest.raises(sw.DataError, match="stream 'b': arrival column 'arr' .* row 1 is not"):
        sw.join(A, B, goal=sw.NoSlack()).replay(
            {"a": GOOD.append_column("arr", [[1, 2]]), "b": bad}, arrival="arr"
        )


def test_bad_times_and_null_keys_are_counted_with_their_rows():
    ts = [1.0, None, math.nan, math.inf, 1e30, 2.0]
    run = replay(pa.table({"ts": ts, "k": [1, 1, 1, 1, 1, None], "x": [0.0] * 6}), on="k")
    assert run.metrics.rejected == {"bad time": 4, "null key": 1}
    assert run.metrics.is_balanced
    assert run.rejected.to_pylist() == [
        {"stream": "a", "row": row, "reason": "bad time"} for row in (1, 2, 3, 4)
    ] + [{"stream": "a", "row": 5, "reason": "null key"}]
    assert run.results.num_rows == 2  # the good row still joins


def test_a_null_in_a_column_that_where_reads_is_rejected():
    run = replay(pa.table({"ts": [1, 2], "x": [None, 1.0]}), where="a.x <= b.x")
    assert run.metrics.rejected == {"null in where": 1}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (pa.table({"ts": [1, None]}), {}, "stream 'a', column ts, row 1: bad time; with strict"),
        (pa.table({"ts": [1], "k": [None]}, schema=pa.schema({"ts": "int64", "k": "int64"})),
         {"on": "k"}, "stream 'a', column k, row 0: null key"),
    ],
)  # fmt: skip
def test_strict_turns_rejects_into_errors(table, options, message):
    with pytest.raises(sw.DataError, match=message):
        replay(table, strict=True, **options)


def test_a_condition_that_raises_stops_the_run_and_says_where():
    a = pa.table({"ts": [1, 2, 3], "x": [1, 0, 2]})
    b = pa.table({"ts": [1, 2, 3], "x": [5, 5, 5]})
    with pytest.raises(
        sw.ConditionError, match="where raised ZeroDivisionError .* row . of stream"
    ):
        replay(a, b, where="b.x // a.x > 0")


def test_a_function_that_cannot_be_compiled_is_refused():
    def reads_a_file(a, b):
        return open("x").read() == a.x  # noqa: PTH123, SIM115

    with pytest.raises(sw.QueryError, match="one record per stream"):
        replay(GOOD, where=lambda a: True)
    if not _jit_is_off():
        with pytest.raises(sw.QueryError, match="cannot be compiled .*name 'open'"):
            replay(GOOD, where=reads_a_file)


def _jit_is_off():
    import numba

    return numba.config.DISABLE_JIT


def test_result_columns_must_not_collide():
    a = pa.table({"ts": [1], "b_c": [1]})
    query = sw.join(sw.Stream("a", "ts", 1), sw.Stream("a_b", "ts", 1), goal=sw.NoSlack())
    with pytest.raises(sw.QueryError, match="more than one column a_b_c"):
        query.replay({"a": a, "a_b": pa.table({"ts": [1], "c": [1]})})


def test_pandas_and_polars_frames_are_as_good_as_arrow():
    columns = {"ts": [1, 3, 2], "k": ["u", "v", "u"]}
    expected = replay(pa.table(columns), pa.table(columns), on="k").results.to_pydict()
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert replay(frame, frame, on="k").results.to_pydict() == expected


def test_a_frame_with_doubled_columns_is_refused():
    frame = pd.DataFrame([[1, 2]], columns=["ts", "ts"])
    with pytest.raises(sw.DataError, match="stream 'a' has more than one column named ts"):
        replay(frame)


def test_empty_streams_give_empty_results():
    empty = GOOD.slice(0, 0)
    run = replay(empty, on="k")
    assert run.results.num_rows == 0
    assert run.report().recall == 1.0
    assert replay(empty, empty).slack.num_rows == 0


def too_far(strict=False):
    """Row 1 of stream a is 1000, where only times up to 10 are believed; row 2 is just that."""
    a, b = pa.table({"ts": [1, 1000, 10, 2000], "k": [1, 1, 1, None]}), GOOD.select(["ts", "k"])
    query = sw.join(A, B, on="k", strict=strict, goal=sw.NoSlack())
    engine = JoinEngine(query, {"a": a.schema, "b": b.schema})
    checks = Checks(query, [a.schema, b.schema])
    checked = checks.check(0, a, np.full(4, 10)), checks.check(1, b, np.full(2, 10))
    turns = np.array([0, 0, 0, 0, 1, 1], np.uint8)
    return engine, Batch((a, b), turns, checked=checked)


def test_a_time_too_far_in_the_future_is_counted_and_moves_no_clock():
    engine, batch = too_far()
    output = engine.feed(batch)
    output.extend(engine.flush())
    a = engine.metrics().streams["a"]
    assert a.rejected == {"null key": 1, "too far in the future": 1}
    assert a.is_balanced
    assert a.local_time == output.top == 10
    assert output.table["a_ts"].to_pylist() == [1, 1, 10, 10]
    in_table_order = [np.arange(4), np.arange(2)]
    assert rejects_table(output.rejected, "ab", in_table_order).to_pylist() == [
        {"stream": "a", "row": 1, "reason": "too far in the future"},
        {"stream": "a", "row": 3, "reason": "null key"},
    ]


def test_strict_does_not_take_a_time_too_far_in_the_future():
    engine, batch = too_far(strict=True)
    with pytest.raises(sw.DataError, match="stream 'a', column ts, row 1: too far in the future"):
        engine.feed(batch)


def test_without_a_limit_any_time_is_believed():
    engine, batch = too_far()
    engine.feed(replace(batch, checked=None))
    assert engine.metrics().streams["a"].local_time == 1000
