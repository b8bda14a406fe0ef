"""Snapshots: versioned, refused when they do not fit, and continued by another process."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored

QUERY = sw.join(
    sw.Stream("a", "ts", 50), sw.Stream("b", "ts", 50), on="k", goal=sw.Slack(20), late="emit"
)
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "arr": pa.int64()})
SCHEMAS = {"a": SCHEMA, "b": SCHEMA}


def table(seed, first=0):
    rng = np.random.default_rng(seed)
    ts = first + np.arange(300) * 2
    late = np.where(rng.random(300) < 0.4, rng.integers(0, 80, 300), 0)
    keys = [f"key {k}" for k in rng.integers(0, 5, 300)]
    return pa.table({"ts": ts, "k": keys, "arr": ts + late}, schema=SCHEMA)


def batch(first):
    tables = {"a": table(1 + first, first), "b": table(2 + first, first)}
    return recorded(QUERY, tables, "arr")[0]


def engine_after_a_batch():
    engine = JoinEngine(QUERY, SCHEMAS)
    engine.feed(batch(0))
    return engine


GO_ON = """
import sys, pyarrow as pa
from test_snapshot import QUERY, SCHEMAS, batch
from slackwater.engine.join import JoinEngine
from slackwater.engine.snapshot import restored
engine = restored(sys.stdin.buffer.read(), JoinEngine(QUERY, SCHEMAS))
output = engine.feed(batch(600))
output.extend(engine.flush())
with pa.ipc.new_stream(sys.stdout.buffer, output.table.schema) as writer:
    writer.write_table(output.table)
"""


def test_a_fresh_process_goes_on_identically():
    engine = engine_after_a_batch()
    saved = engine.snapshot()
    elsewhere = subprocess.run(
        [sys.executable, "-c", GO_ON],
        input=saved,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert elsewhere.returncode == 0, elsewhere.stderr.decode()
    output = engine.feed(batch(600))
    output.extend(engine.flush())
    assert output.table.num_rows > 1000
    assert pa.ipc.open_stream(elsewhere.stdout).read_all().equals(output.table)


def test_a_snapshot_is_compact():
    engine = engine_after_a_batch()
    live = engine.metrics().stored + engine.metrics().buffered
    assert len(engine.snapshot()) < 100 * live + 4000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "not a Slackwater snapshot"),
        (lambda data: b"PK" + data, "must begin with b'SLKW', got b'PKSL'"),
        (lambda data: data[:4] + b"\x63\x00" + data[6:], "has version 99; this release reads"),
        (lambda data: data[:-5], "the snapshot is cut off"),
        (lambda data: data[:10], "the snapshot is cut off"),
    ],
)
def test_a_damaged_or_foreign_snapshot_is_refused(damage, message):
    with pytest.raises(sw.SnapshotError, match=message):
        restored(damage(engine_after_a_batch().snapshot()), JoinEngine(QUERY, SCHEMAS))


@pytest.mark.parametrize(
    ("query", "schemas", "message"),
    [
        (
            replace(QUERY, streams=(sw.Stream("a", "ts", 60), QUERY.streams[1])),
            SCHEMAS,
            r"another query: windows was \['50', '50'\], now \['60', '50'\]",
        ),
        (replace(QUERY, on=None), SCHEMAS, "another query: on was 'k', now None"),
        (
            QUERY,
            {"a": SCHEMA, "b": SCHEMA.append(pa.field("x", pa.int64()))},
            "another query: columns was",
        ),
    ],
)
def test_another_query_is_refused_with_what_changed(query, schemas, message):
    with pytest.raises(sw.SnapshotError, match=message):
        restored(engine_after_a_batch().snapshot(), JoinEngine(query, schemas))


def test_goal_and_retention_may_change():
    saved = engine_after_a_batch().snapshot()
    query = replace(QUERY, goal=sw.Slack(500), retention=1000, late="count")
    engine = restored(saved, JoinEngine(query, SCHEMAS))
    assert engine.reorder.slack == 500
    engine.feed(batch(600))
    assert engine.metrics().is_balanced


@pytest.mark.parametrize("goals", [("slack", "recall"), ("recall", "slack"), ("slack", "slack")])
def test_what_waits_is_joined_once_when_another_goal_goes_on(goals):
    """Only a goal that measures lateness has events stored before they are released."""
    known = {"slack": sw.Slack(40), "recall": sw.Recall(0.9, over=400, every=20, at_least=40)}
    before, after = (replace(QUERY, goal=known[name], retention=10**6) for name in goals)
    engine = JoinEngine(before, SCHEMAS)
    first, *rest = batch(600).slices(300)
    engine.feed(first)
    assert engine.reorder.buffered > 0
    engine = restored(engine.snapshot(), JoinEngine(after, SCHEMAS))
    for part in rest:
        engine.feed(part)
    engine.flush()
    whole = JoinEngine(replace(QUERY, goal=sw.Slack(10**6), retention=10**6), SCHEMAS)
    whole.feed(batch(600))
    whole.flush()
    assert engine.metrics().produced + engine.metrics().lost == whole.metrics().produced > 0


def test_a_goal_that_measures_lateness_takes_what_waits_into_account():
    goals = [
        sw.Recall(0.9, over=400, every=20, at_least=40, model=m) for m in ("measured", "lateness")
    ]
    engine = JoinEngine(replace(QUERY, goal=goals[0], retention=10**6), SCHEMAS)
    first, *rest = batch(600).slices(300)
    engine.feed(first)
    assert not engine.join.stores_at_arrival
    engine.set_goal(goals[1])
    assert engine.join.stores_at_arrival
    for part in rest:
        engine.feed(part)
    engine.flush()
    whole = JoinEngine(replace(QUERY, goal=sw.Slack(10**6), retention=10**6), SCHEMAS)
    whole.feed(batch(600))
    whole.flush()
    assert engine.metrics().produced + engine.metrics().lost == whole.metrics().produced > 0


def test_an_engine_that_failed_in_a_batch_must_be_restored():
    query = sw.join(
        sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), where="1 // a.x > b.x", goal=sw.NoSlack()
    )
    good, bad = (pa.table({"ts": [1, 2, 3], "x": [x, x, x]}) for x in (1, 0))
    engine = JoinEngine(query, {"a": good.schema, "b": good.schema})
    with pytest.raises(sw.ConditionError):
        engine.feed(recorded(query, {"a": bad, "b": good}, None)[0])
    with pytest.raises(sw.EngineStoppedError, match="restore it from a snapshot"):
        engine.flush()


def test_a_batch_of_other_columns_is_refused():
    engine = engine_after_a_batch()
    other = pa.table({"ts": [1], "k": [2]})
    query = sw.join(sw.Stream("a", "ts", 50), sw.Stream("b", "ts", 50), on="k", goal=sw.NoSlack())
    with pytest.raises(sw.DataError, match="stream 'a' must have the columns ts int64, k string"):
        engine.feed(recorded(query, {"a": other, "b": other}, None)[0])
