"""Joins of all kinds on Spark: streams and batch DataFrames, restarts, Spark's own joins beside."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import slackwater as sw
from marks import full_but
from spark.streams import (
    all_rows,
    as_frame,
    by_arrival,
    by_batch,
    collected,
    finish,
    is_balanced,
    observed,
    pair,
    replayed,
    sources,
    write,
)

KINDS = ("inner", "left", "right", "full", "semi", "anti", "asof")
CASES = [(how, emit) for how in KINDS for emit in ("ordered", "eager")][1:]
TABLES = pair(rows=1_500, keys=200)


def kind_query(how, emit, slack="60 ms", **options):
    """A join of the two streams; its corrections are given out if there are any."""
    window = None if how == "asof" else "300 ms"
    streams = (sw.Stream(name, ts="ts", window=window) for name in "ab")
    if emit == "ordered" or how not in ("inner", "semi"):
        options = {"late": "emit"} | options
    tolerance = "300 ms" if how == "asof" else None
    options = {"goal": sw.Slack(slack), "retention": "10 s", "result_id": True} | options
    return sw.join(*streams, on="k", how=how, emit=emit, tolerance=tolerance, **options)


def written(folder, tables=TABLES, files=range(4)):
    for name, parts in by_arrival(tables).items():
        for number in files:
            write(folder / name, [parts[number]], first=number)


def stream(spark, folder, query, **options):
    options = {"arrival": "arrival", "at_end": "flush"} | options
    return query.stream(sources(spark, folder), **options)


OFTEN = [("full", "ordered"), ("asof", "eager")]


@pytest.mark.parametrize("case", full_but(OFTEN, CASES), ids="-".join)
def test_shards_give_the_rows_of_the_engine(spark, tmp_path, case):
    how, emit = case
    query = kind_query(how, emit)
    expected = replayed(query, TABLES)
    written(tmp_path)
    told = observed(finish(stream(spark, tmp_path, query, shards=2), tmp_path))
    assert all_rows(tmp_path) == expected
    assert all(map(is_balanced, told))
    if how not in ("inner", "semi"):
        changes = Counter(row[-1] for row in expected.elements())
        assert told[-1]["withdrawn_rows"] == changes["delete"] + changes["update"] > 0
        assert told[-1]["unmatched_rows"] > 0


def test_corrections_go_on_after_a_stop(spark, tmp_path):
    query, held = kind_query("left", "eager"), {"at_end": "hold", "shards": 2}
    for name in ("whole", "stopped"):
        written(tmp_path / name, files=range(2))
    written(tmp_path / "whole", files=(2, 3))
    for _ in range(2):
        finish(stream(spark, tmp_path / "stopped", query, **held), tmp_path / "stopped")
        written(tmp_path / "stopped", files=(2, 3))
    finish(stream(spark, tmp_path / "whole", query, **held), tmp_path / "whole")
    rows = by_batch(tmp_path / "whole")
    assert by_batch(tmp_path / "stopped") == rows
    assert any(row[-1] == "delete" for row in rows[3])
    expected = replayed(query, TABLES)
    assert not sum(rows.values(), Counter()) - expected


# ---- beside Spark's own joins


SPARKS = {"inner": "inner", "left": "left_outer", "right": "right_outer", "full": "full_outer",
          "semi": "left_semi", "anti": "left_anti"}  # fmt: skip
CLOSING = -1  # the key of rows that come when all others are there, so that nothing waits


def zoned(with_nulls=True):
    """The streams with timestamps, and with a null instead of some keys."""
    tables = {}
    for name, table in TABLES.items():
        keys = table["k"].to_pylist()
        keys = [None if with_nulls and n % 70 == 69 else k for n, k in enumerate(keys)]
        ts = pc.add(table["ts"], 1_000).cast(pa.timestamp("ms", "UTC"))  # Spark drops time 0
        columns = {"ts": ts, "k": pa.array(keys, pa.int64()), "arrival": table["arrival"]}
        tables[name] = pa.table(columns)
    return tables


def sparks_own(how, frames):
    """The same join by Spark, for frames that may have watermarks."""
    named = [
        frame.select(*(F.col(c).alias(f"{name}_{c}") for c in ("ts", "k")))
        for name, frame in frames.items()
    ]
    condition = F.expr(
        "a_k = b_k AND b_ts >= a_ts - INTERVAL 0.3 SECONDS AND b_ts <= a_ts + INTERVAL 0.3 SECONDS"
    )
    return named[0].join(named[1], condition, SPARKS[how])


def only_keys(how):
    own = ["a_ts", "a_k"]
    return own if how in ("semi", "anti") else [*own, "b_ts", "b_k"]


@pytest.mark.parametrize("how", full_but(("full",), SPARKS))
def test_batch_frames_give_the_rows_of_sparks_own_join(spark, how):
    frames = {name: as_frame(spark, table) for name, table in zoned().items()}
    expected = collected(sparks_own(how, frames))
    for emit in ("ordered", "eager"):
        query = kind_query(how, emit, result_id=False, late="count", retention=None)
        found = query.stream(frames, shards=3).select(*only_keys(how))
        assert collected(found) == expected


@pytest.mark.parametrize(
    ("how", "emit"),
    [
        pytest.param(how, emit, marks=[] if (how, emit) == ("left", "eager") else pytest.mark.full)
        for how in SPARKS
        for emit in ("ordered", "eager")
        if how != "anti"  # Spark has none of two streams
    ],
)
def test_streams_give_the_rows_of_sparks_own_join(spark, tmp_path, how, emit):
    tables = zoned(with_nulls=how != "full")  # Spark's own full join leaves them out of streams
    end = pa.scalar(10**6, pa.timestamp("ms", "UTC"))
    closing = {"ts": [end], "k": [CLOSING], "arrival": [10**6]}
    tables = {n: pa.concat_tables([t, pa.table(closing, t.schema)]) for n, t in tables.items()}
    for name, table in tables.items():
        parts = [table.slice(i, 500) for i in range(0, len(table), 500)]
        write(tmp_path / name, parts)
    marked = {n: f.withWatermark("ts", "1 minute") for n, f in sources(spark, tmp_path).items()}
    finish(sparks_own(how, marked), tmp_path / "spark")
    query = kind_query(how, emit, slack="1 minute", result_id=False, late="count", retention=None)
    found = stream(spark, tmp_path, query, shards=2, arrival=None).select(*only_keys(how))
    finish(found, tmp_path, sink="ours")
    assert without_end(all_rows(tmp_path, "ours")) == without_end(all_rows(tmp_path / "spark"))


def without_end(rows):
    return Counter({row: n for row, n in rows.items() if CLOSING not in row})


# ---- commands, the end of the input, order


def test_rows_in_time_lie_above_what_was_complete_with_one_wait_for_all_shards(spark, tmp_path):
    goal = sw.Recall(0.9, over="1 second", unmatched=0.95)
    query = kind_query("left", "ordered", goal=goal, retention=None, result_id=False)
    written(tmp_path)
    shared = {"shared": f"{tmp_path}/shared", "at_end": "hold", "shards": 2}
    told = observed(finish(stream(spark, tmp_path, query, **shared), tmp_path))
    complete = [row["complete_through"] for row in told]
    assert complete == sorted(complete)
    for before, rows in zip(complete, list(by_batch(tmp_path).values())[1:], strict=False):
        times = [row[0] for row in rows if not row[-2]]
        assert times
        assert min(times) > before
