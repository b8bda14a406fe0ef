"""Long streams: what is forgotten, moved and cut into pieces does not change any answer."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import (
    Case,
    emitted,
    engine_query,
    engine_run,
    fed,
    members,
    schemas,
    shard_batch,
    shards,
)
from helpers import answers as shown
from naive import Event
from slackwater.disorder import reorder
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded, replay_join
from slackwater.engine.snapshot import restored
from slackwater.events.limits import DEFAULT_LIMITS, Limits


def table(seed, rows=1200, fresh_keys=True):
    """A long stream whose keys come and go: each is used for a short time only."""
    rng = np.random.default_rng(seed)
    ts = np.arange(rows) * 3
    late = np.where(rng.random(rows) < 0.3, rng.integers(0, 60, rows), 0)
    k = rng.integers(0, 3, rows) + (ts // 100 * 3 if fresh_keys else 0)
    return pa.table(
        {
            "ts": ts,
            "arr": ts + late,
            "k": k,
            "name": [f"name {v}" for v in k],
            "f": k * 0.5,
            "x": rng.random(rows),
        }
    )


QUERIES = {
    "one key": {"on": "k"},
    "text": {"on": "name"},
    "two columns": {"on": ["k", "name"]},
    "three columns": {"on": ["k", "name", "f"]},
    "chain": {"on": ["a.k = b.k", "b.name = c.name"]},
    "counting": {"on": "k", "select": "count"},
    "condition": {"where": "abs(a.x - b.x) < 0.1 and c.x < 0.2", "late": "emit"},
}


def answers(query, tables, limits=DEFAULT_LIMITS):
    batch, _ = recorded(query, tables, "arr")
    engine = JoinEngine(query, {name: t.schema for name, t in tables.items()}, limits=limits)
    output = engine.feed(batch)
    output.extend(engine.flush())
    return output.table, engine.metrics(), engine


# All limits so small that they are hit all the time.
TINY = Limits(
    arrivals_at_once=50, results_at_once=7, code_cleanup=8, smallest_store=16, smallest_table=4,
    fewest_buckets=2, most_buckets=8,
)  # fmt: skip


@pytest.fixture(params=QUERIES.values(), ids=QUERIES.keys())
def expected(request):
    streams = [sw.Stream(name, "ts", 25) for name in "abc"]
    query = sw.join(*streams, goal=sw.Slack(20), **request.param)
    tables = {name: table(seed) for seed, name in enumerate("abc")}
    return query, tables, answers(query, tables)


@pytest.mark.compiled
def test_tiny_limits_change_nothing(expected):
    query, tables, (results, metrics, _) = expected
    assert metrics.produced > 100
    again, metrics_again, engine = answers(query, tables, TINY)
    assert again.equals(results)
    assert metrics_again == metrics
    # and memory stays small: keys, events and rows of the past are gone
    assert engine.intake.codes.size < 200
    assert engine.log.size < 1500
    assert len(engine.join.store.entry) < 8000


def long_case():
    """Three of the streams above, sorted by arrival; K covers every delay."""
    arriving = sorted(
        (row["arr"], s, row["ts"], row["k"]) for s in range(3) for row in table(s).to_pylist()
    )
    events = [Event(ts, s, n, (k, 0, 0)) for n, (_, s, ts, k) in enumerate(arriving)]
    return Case(events, [25] * 3, "key", slack=60)


@pytest.mark.compiled
def test_tiny_limits_change_nothing_in_shards():
    case = long_case()
    query = engine_query(case)
    parts = [shard_batch(case, arriving) for arriving in shards(case, 2)]
    expected = [fed(query, part, common_clock=True) for part in parts]
    together = [result for output, *_ in expected for result in members(output, case.m)]
    assert sorted(together) == sorted(emitted(engine_run(case), case.m))  # nothing is late
    for part, whole in zip(parts, expected, strict=True):
        engine = JoinEngine(query, schemas(query, part), common_clock=True, limits=TINY)
        assert shown(engine, [engine.feed(part), engine.flush()]) == whole
        assert engine.intake.codes.size < 200
        assert engine.log.size < 1500


def test_rows_of_the_past_are_forgotten():
    query = sw.join(sw.Stream("a", "ts", 25), sw.Stream("b", "ts", 25), on="k", goal=sw.NoSlack())
    tables = {name: table(seed, rows=6000) for seed, name in enumerate("ab")}
    batch, _ = recorded(query, tables, "arr")
    engine = JoinEngine(query, {name: t.schema for name, t in tables.items()})
    for part in batch.slices(100):
        engine.feed(part)
    kept = [sum(t.num_rows for t in rows._tables) for rows in engine.rows]
    assert max(kept) < 2500
    assert engine.metrics().stored < 200


@pytest.mark.parametrize("window", [25, sw.Tuples(30)])
def test_stored_events_are_those_that_a_restored_engine_finds(window):
    query = sw.join(*(sw.Stream(name, "ts", window) for name in "ab"), on="k", goal=sw.Slack(5))
    tables = {name: table(seed, rows=1500) for seed, name in enumerate("ab")}
    known = {name: t.schema for name, t in tables.items()}
    engine = JoinEngine(query, known)
    seen = []
    for part in recorded(query, tables, "arr")[0].slices(250):
        engine.feed(part)
        seen.append(engine.metrics().stored)
        assert seen[-1] == restored(engine.snapshot(), JoinEngine(query, known)).metrics().stored
    assert min(seen) > 25


def test_a_hot_key_comes_out_in_pieces():
    a = pa.table({"ts": np.arange(150), "k": [1] * 150})
    query = sw.join(*(sw.Stream(name, "ts", 1000) for name in "ab"), on="k", goal=sw.NoSlack())
    run = replay_join(query, {"a": a, "b": a}, None, Limits(results_at_once=100))
    assert run.results.num_rows == 150 * 150
    assert max(t.num_rows for t in run.output.tables) <= 100


def test_a_hole_of_a_day_and_a_lead_of_a_week_need_few_buckets():
    day = 86_400_000
    late = reorder.Reorder(n_streams=2, slack=10)
    for ts in (0, day, day + 5, 7 * day, 7 * day + 1):
        late.arrive(0, ts)
    assert late.rings.length <= 2**20
    assert late.in_sync(0) == [0, day, day + 5]
    out = late.arrive(1, 8 * day) + late.arrive(1, 9 * day)
    assert out == [0, 1, 2]
    assert [int(event) for event in late.flush().event] == [3, 4, 5, 6]
