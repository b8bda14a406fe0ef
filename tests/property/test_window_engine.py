"""The engine of windows: any cut into batches, any restore and any shards give the same."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from property.strategies import tried
from property.test_windows import EVENTS, asked, table_of, windows
from slackwater.engine.replay import recorded
from slackwater.engine.window import WindowEngine

pytestmark = pytest.mark.determinism

GOALS = st.one_of(
    st.builds(sw.Slack, st.integers(0, 30)),
    st.just(sw.MaxSlack()),
    st.builds(
        sw.DropRatio,
        st.sampled_from([0.0, 0.1, 0.5]),
        st.sampled_from(["largest", "mean"]),
        every=st.builds(sw.Tuples, st.integers(1, 7)),
        recent=st.builds(sw.Tuples, st.integers(1, 9)),
    ),
    st.sampled_from(
        [
            sw.DropRatio(heartbeat="adaptive", every=sw.Tuples(5)),
            sw.DropRatio(heartbeat="max-delay"),
        ]
    ),
)


ERRORS = st.builds(
    sw.ErrorBound, st.sampled_from([0.05, 0.5]), every=st.builds(sw.Tuples, st.integers(1, 7))
)


def shown(engine, outputs):
    """All that a user sees."""
    made = [(p.ts.tolist(), p.latency.tolist()) for output in outputs for p in output.made]
    late = [(e.ts.tolist(), e.late_by.tolist()) for output in outputs for e in output.late]
    return (
        pa.concat_tables([output.table for output in outputs]).to_pylist(),
        [sum(column, []) for column in zip(*made, strict=True)],
        [sum(column, []) for column in zip(*late, strict=True)],
        [change for output in outputs for change in output.slacks],
        engine.metrics(),
        engine.reorder.average_buffered,
    )


@tried(0.15)
@given(EVENTS, windows(), GOALS, st.booleans(), st.integers(1, 9), st.booleans())
def test_cuts_and_restores_change_nothing(events, case, goal, grouped, cut, restored):
    query = asked(case[0], goal, grouped)
    unaffected(query, events, cut, restored)


@tried(0.15)
@given(EVENTS, windows().filter(lambda case: not case[3]), ERRORS, st.integers(1, 9), st.booleans())
def test_nor_do_they_with_an_error_bound(events, case, goal, cut, restored):
    unaffected(asked(case[0], goal, grouped=False), events, cut, restored)


def unaffected(query, events, cut, restored):
    batch, _ = recorded(query, {"s": table_of(events, "double")}, None)
    schemas = {"s": batch.tables[0].schema}
    whole = WindowEngine(query, schemas)
    expected = shown(whole, [whole.feed(batch), whole.flush()])
    engine = WindowEngine(query, schemas)
    outputs = []
    for part in batch.slices(cut):
        outputs.append(engine.feed(part))
        if restored:
            engine = restored(engine.snapshot(), WindowEngine(query, schemas))
    outputs.append(engine.flush())
    assert shown(engine, outputs) == expected


@tried(0.15)
@given(EVENTS, windows(), st.integers(1, 8), st.integers(1, 9))
def test_groups_may_be_spread_over_any_number_of_shards(events, case, shards, cut):
    query = asked(case[0], sw.Slack(60), grouped=True)  # no delay is longer
    table = table_of(events, "int64")
    whole = query.replay(table).results.to_pylist()
    for shard in range(shards):
        own = table.filter(np.array(table["k"]) % shards == shard)
        batch, _ = recorded(query, {"s": own}, None)
        engine = WindowEngine(query, {"s": own.schema})
        outputs = [*map(engine.feed, batch.slices(cut)), engine.flush()]
        found = [row for output in outputs for row in output.table.to_pylist()]
        assert found == [row for row in whole if row["k"] % shards == shard]
