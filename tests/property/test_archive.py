"""Snapshots in chunks: whatever was written when, a restarted engine goes on as if nothing was."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    FEW_BUCKETS,
    answers,
    batches,
    engine_query,
    fed,
    schemas,
    shard_batch,
    shards,
    tables,
)
from property.strategies import cases, tried
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import Archive, restore_archive
from slackwater.engine.snapshot_format import chunk_from

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
RESTARTS = st.lists(st.booleans(), min_size=1, max_size=8)
CHUNK_BYTES = st.sampled_from([64, 200, 512])  # a row has 48


def small_chunks(size):
    return replace(FEW_BUCKETS, chunk_bytes=size)


def archived(query, batch, sizes, restarts, **options):
    """Feed batches, save after each and restart after some; the answers of the last engine."""

    def new():
        return JoinEngine(query, schemas(query, batch), **options)

    archive, store, outputs = Archive(new()), {}, []
    for n, part in enumerate(batches(batch, sizes)):
        outputs.append(archive.engine.feed(part))
        saved = archive.save()
        store |= saved.new
        for name in saved.gone:
            del store[name]
        assert set(store) == {held.name for held in archive.held}
        if restarts[n % len(restarts)]:
            read = []

            def chunk(name, store=store, read=read):
                read.append(name)
                return chunk_from(store[name])

            archive = restore_archive(saved.header, chunk, new())
            assert set(read) == set(store)
    return answers(archive.engine, [*outputs, archive.engine.flush()])


@pytest.mark.determinism
@tried(0.2)
@given(cases(windows="mixed"), st.sampled_from(["*", "count"]), CUTS, RESTARTS, CHUNK_BYTES)
def test_restarts_from_chunks_change_no_answer(case, select, sizes, restarts, size):
    query = engine_query(case, select=select)
    batch, _ = recorded(query, tables(case), "arr")
    again = archived(query, batch, sizes, restarts, limits=small_chunks(size))
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
    again = archived(query, batch, sizes, restarts, limits=small_chunks(size), **options)
    assert again == fed(query, batch, **options)
