"""Snapshots in chunks: whatever was written when, a restarted engine goes on as if nothing was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import answers, batches, engine_query, fed, schemas, shard_batch, shards, tables
from property.strategies import cases, tried
from slackwater.engine import snapshot
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import Archive, chunk_from, restore_archive

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
RESTARTS = st.lists(st.booleans(), min_size=1, max_size=8)
CHUNK_BYTES = st.sampled_from([64, 200, 512])  # a row has 48


def archived(query, batch, sizes, restarts, **options):
    """Feed batches, save after each and restart after some; the answers of the last engine."""
    archive, store, outputs = Archive(JoinEngine(query, schemas(query, batch), **options)), {}, []
    for n, part in enumerate(batches(batch, sizes)):
        outputs.append(archive.engine.feed(part))
        saved = archive.save()
        store |= saved.new
        for name in saved.gone:
            del store[name]
        assert set(store) == {held.name for held in archive.held}
        if restarts[n % len(restarts)]:
            asked = []

            def chunk(name, store=store, asked=asked):
                asked.append(name)
                return chunk_from(store[name])

            archive = restore_archive(saved.header, chunk, query, schemas(query, batch), **options)
            assert set(asked) == set(store)
    return answers(archive.engine, [*outputs, archive.engine.flush()])


@pytest.mark.determinism
@tried(0.2)
@given(cases(windows="mixed"), st.sampled_from(["*", "count"]), CUTS, RESTARTS, CHUNK_BYTES)
def test_restarts_from_chunks_change_no_answer(case, select, sizes, restarts, size):
    query = engine_query(case, select=select)
    batch, _ = recorded(query, tables(case), "arr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "_CHUNK_BYTES", size)
        again = archived(query, batch, sizes, restarts)
    assert again == fed(query, batch)


@pytest.mark.determinism
@tried(0.2)
@given(
    cases(kinds=("key", "keys")),
    st.sampled_from([None, 5, 20]),
    CUTS,
    RESTARTS,
    CHUNK_BYTES,
)
def test_restarts_from_chunks_change_no_answer_of_a_shard(case, idle_after, sizes, restarts, size):
    query = engine_query(case, late="emit")
    options = {"common_clock": True, "idle_after": idle_after}
    batch = shard_batch(case, shards(case, 2)[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "_CHUNK_BYTES", size)
        again = archived(query, batch, sizes, restarts, **options)
    assert again == fed(query, batch, **options)
