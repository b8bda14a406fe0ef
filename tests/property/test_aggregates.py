"""Aggregates over joined windows: the engine against the oracle, cuts, restarts and shards."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from naive_aggregates import Asked, Event, told
from property.strategies import tried
from slackwater.compensation.compensator import Compensator
from slackwater.compensation.tally import added_up
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.factory import restore
from slackwater.engine.replay import recorded
from slackwater.events.batch import Batch

NAMES = "abc"


@st.composite
def cases(draw):
    """A query and events in arrival order."""
    m = draw(st.sampled_from([2, 2, 3]))
    step = draw(st.integers(1, 8))
    length = step * draw(st.integers(1, 3)) + draw(st.sampled_from([0, 0, 1]))
    asked = Asked(
        m,
        length,
        step,
        draw(st.integers(1, 20)),
        draw(st.sampled_from([None, None, 0, 3])),
        draw(st.sampled_from([None, None, 0, 5])),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    events, now = [], draw(st.sampled_from([0, -5, 10**12]))
    for _ in range(draw(st.integers(0, 25))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 3, 9]))
        delay = draw(st.sampled_from([0, 0, 1, 2, 5, 12]))
        s, key, value = draw(
            st.tuples(st.integers(0, m - 1), st.integers(0, 2), st.integers(-3, 9))
        )
        events.append(Event(s, now - delay, now, key, value))
    return asked, events


def query_of(asked, **options):
    streams = (sw.Stream(name, "ts") for name in NAMES[: asked.m])
    return sw.aggregate(
        *streams,
        on="k",
        select={"n": sw.count(), "total": sw.functions.sum("a.v"), "mean": sw.avg("a.v")},
        window=sw.Sliding(asked.length, asked.step),
        deadline=sw.Deadline(asked.deadline, slack=asked.held_back),
        retention=asked.retained,
        by="k" if asked.by_key else (),
        late="emit" if asked.emits else "count",
        **options,
    )


def tables_of(asked, events):
    columns = {"ts": "ts", "arrival": "arrival", "k": "key", "v": "value"}
    return {
        NAMES[s]: pa.table({
            column: pa.array([getattr(e, of) for e in events if e.stream == s], pa.int64())
            for column, of in columns.items()
        })
        for s in range(asked.m)
    }  # fmt: skip


def rows_of(table):
    keys = table.column("k").to_pylist() if "k" in table.column_names else None
    return [
        (row["window_start"], () if keys is None else (keys[i],), row["n_observed"],
         row["total_observed"], row["exact"])
        for i, row in enumerate(table.to_pylist())
    ]  # fmt: skip


def in_turn(asked, events):
    """The order in which a replay takes rows: arrivals, then streams, then times."""
    numbered = sorted(enumerate(events), key=lambda p: (p[1].arrival, p[1].stream, p[1].ts, p[0]))
    return [event for _, event in numbered]


@pytest.mark.differential
@tried(0.5)
@given(cases())
def test_what_is_told_is_what_enumerating_all_results_gives(case):
    asked, events = case
    run = query_of(asked).replay(tables_of(asked, events), "arrival")
    rows, dropped = told(in_turn(asked, events), asked)
    assert rows_of(run.results) == rows
    assert run.metrics.late_dropped == dropped
    assert run.metrics.is_balanced
    for row in run.results.to_pylist():
        assert row["n"] == row["n_observed"]
        if row["n_observed"]:
            assert row["mean"] == pytest.approx(row["total_observed"] / row["n_observed"])
        else:
            assert row["mean"] is None
        if row["exact"]:
            assert row["n_low"] == row["n_high"] == row["n"]
            assert row["completeness"] == 1.0


ON_SHARDS = [None, "delays", "svi", "mlp", "mlp-elbo"]  # aema goes by the order of arrival
KINDS = st.sampled_from([*ON_SHARDS, "aema"])


@pytest.mark.determinism
@tried(0.3)
@given(cases(), KINDS, st.lists(st.integers(0, 25), max_size=3), st.integers(0, 3))
def test_cuts_and_restarts_change_nothing(case, kind, cuts, restored_at):
    asked, events = case
    query, tables = query_of(asked, compensate=kind), tables_of(asked, events)
    whole = query.replay(tables, "arrival")
    batch, _ = recorded(query, tables, "arrival")
    schemas = {name: table.schema for name, table in tables.items()}
    engine, parts = AggregateEngine(query, schemas), []
    ends = sorted({min(cut, len(events)) for cut in cuts} | {len(events)})
    for number, part in enumerate(batch.cut(ends)):
        if number == restored_at:
            engine = restore(engine.snapshot(), query, schemas)
        parts.append(engine.feed(part).table)
    parts.append(engine.flush().table)
    assert pa.concat_tables(parts).to_pylist() == whole.results.to_pylist()
    assert engine.metrics() == whole.metrics


@pytest.mark.determinism
@tried(0.1)
@given(cases(), st.sampled_from(ON_SHARDS), st.integers(1, 8))
def test_shards_add_up_to_the_whole(case, kind, shards):
    asked, events = case
    query, tables = query_of(asked, compensate=kind), tables_of(asked, events)
    whole = query.replay(tables, "arrival")
    batch, _ = recorded(query, tables, "arrival")
    schemas = {name: table.schema for name, table in tables.items()}
    partials = []
    for shard in range(shards):
        engine = AggregateEngine(query, schemas, partial=True)
        output = engine.feed(_share(batch, shard, shards))
        output.extend(engine.flush())
        partials += output.partials
    one = AggregateEngine(query, schemas)
    compensator = Compensator(query, one.values, one.codec)
    rows = []
    for place in sorted({(p.instant, not p.is_closed, p.start) for p in partials}):
        same = [p.tally for p in partials if (p.instant, not p.is_closed, p.start) == place]
        tally = added_up([one.codec.decode(one.codec.encode(t)) for t in same])
        rows += (compensator.report_early if place[1] else compensator.close)(place[2], tally)
    told_ = [(r.start, r.group, *(t.value for t in r.aggregates), r.exact) for r in rows]
    keys = whole.results.column("k").to_pylist() if asked.by_key else None
    assert told_ == [
        (r["window_start"], () if keys is None else (keys[i],), r["n"], r["total"], r["mean"],
         r["exact"])
        for i, r in enumerate(whole.results.to_pylist())
    ]  # fmt: skip


def _share(batch, shard, shards):
    """The rows of some keys, and ticks for all others."""
    m = len(batch.tables)
    own = [np.array(table.column("k").to_pylist(), int) % shards == shard for table in batch.tables]
    at, turns = [0] * m, []
    ticks = [[] for _ in range(m)]
    for s in batch.stream.tolist():
        mine = own[s][at[s]]
        turns.append(s if mine else m + s)
        if not mine:
            ticks[s].append(batch.tables[s].column("ts")[at[s]].as_py())
        at[s] += 1
    tables = tuple(t.filter(pa.array(o)) for t, o in zip(batch.tables, own, strict=True))
    return Batch(
        tables, np.array(turns, np.uint8), batch.arrival, tuple(np.array(t, int) for t in ticks)
    )
