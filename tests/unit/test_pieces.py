"""Results in pieces: memory stays bounded, and together they are what comes in one piece."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import answers
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded

KILO = 1000


def hot_key(rows=400, **columns):
    ts = np.arange(rows)
    return pa.table({"ts": ts, "k": [1] * rows, "arr": ts, **columns})


def started(a, b, goal=0, **options):
    """A new engine, and a batch in which every row of `a` meets every row of `b`."""
    streams = [sw.Stream(name, "ts", 10**6) for name in "ab"]
    query = sw.join(*streams, on="k", goal=sw.Slack(goal), **options)
    batch, _ = recorded(query, {"a": a, "b": b}, "arr")
    return JoinEngine(query, {"a": a.schema, "b": b.schema}), batch


def in_pieces(engine, batch, piece):
    return [*engine.feed_in_pieces(batch, piece), *engine.flush_in_pieces(piece)]


@pytest.mark.parametrize("goal", [0, 100, 10**6], ids=["feed", "both", "flush"])
def test_a_hot_key_comes_out_in_pieces_of_the_size_asked_for(goal):
    a = hot_key()
    engine, batch = started(a, a, goal, late="emit")
    pieces = in_pieces(engine, batch, 4 * KILO)
    assert len(pieces) > 400 * 400 * 56 / (3 * 4 * KILO)  # 7 columns of 8 bytes, and the flag
    assert max(piece.nbytes for piece in pieces) < 3 * 4 * KILO
    table, *rest = answers(engine, pieces)
    engine, batch = started(a, a, goal, late="emit")
    whole, *expected = answers(engine, [engine.feed(batch), engine.flush()])
    assert whole.num_rows == 400 * 400
    assert table.equals(whole)
    assert rest == expected


def test_large_rows_do_not_pile_up():
    # One value of 100 kB joins 300 partners: 30 MB of results, from 0.1 MB of input.
    large = hot_key(1, text=["x" * 100 * KILO])
    small = hot_key(300, text=["y"] * 300)
    engine, batch = started(large, small)
    pieces = in_pieces(engine, batch, 1000 * KILO)
    assert len(pieces) > 20
    assert max(piece.nbytes for piece in pieces) < 2200 * KILO
    assert sum(piece.table.num_rows for piece in pieces) == 300


def test_a_result_larger_than_a_piece_is_a_piece_of_its_own():
    large = hot_key(3, text=["x" * 100 * KILO] * 3)
    engine, batch = started(large, hot_key(2))
    rows = [piece.table.num_rows for piece in in_pieces(engine, batch, KILO)]
    assert [n for n in rows if n] == [1] * 6


def test_pieces_of_counts_and_of_nothing_are_one_piece():
    a = hot_key(50)
    engine, batch = started(a, a, select="count")
    (first,), (last,) = engine.feed_in_pieces(batch, 1), engine.flush_in_pieces(1)
    assert first.table["n"].to_pylist() == [2 * n + 1 for n in range(50)]
    assert last.table.num_rows == 0


@pytest.mark.parametrize("goal", [0, 10**6], ids=["feed", "flush"])
def test_an_engine_that_is_left_between_pieces_is_of_no_more_use(goal):
    a = hot_key(100)
    engine, batch = started(a, a, goal)
    if goal:
        engine.feed(batch)
    pieces = engine.flush_in_pieces(KILO) if goal else engine.feed_in_pieces(batch, KILO)
    next(pieces)
    pieces.close()
    for go_on in (lambda: engine.feed(batch), engine.flush, engine.snapshot):
        with pytest.raises(sw.EngineStoppedError, match="restore it from a snapshot"):
            go_on()


def test_nothing_happens_before_the_first_piece_is_asked_for():
    a = hot_key(10)
    engine, batch = started(a, a)
    engine.feed_in_pieces(batch, KILO)
    assert engine.metrics().arrivals == 0
    assert engine.feed(batch).table.num_rows == 100
