"""Chunks of a snapshot: few, written seldom, and not full of the past."""

from math import log2

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import batches, schemas
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import Archive, restore_archive, restored
from slackwater.engine.snapshot_format import chunk_from
from slackwater.events.batch import Batch
from slackwater.events.limits import Limits
from slackwater.kernels.records import NONE

ROW = 24  # bytes: three columns


def stream(rows, step=1):
    ts = np.arange(rows) * step
    return pa.table({"ts": ts, "k": ts % 7, "arr": ts})


class Disk:
    """The chunks of one archive, and how many events were ever written."""

    def __init__(self, windows, rows, step=1, chunk_bytes=2 * 2**20):
        a, b = (sw.Stream(name, "ts", w) for name, w in zip("ab", windows, strict=True))
        self.query = sw.join(a, b, on="k", goal=sw.NoSlack())
        one = stream(rows, step)
        self.batch, _ = recorded(self.query, {"a": one, "b": one}, "arr")
        self.schemas = schemas(self.query, self.batch)
        self.limits = Limits(chunk_bytes=chunk_bytes)
        self.archive = Archive(self.engine())
        self.chunks, self.written = {}, 0

    def engine(self):
        return JoinEngine(self.query, self.schemas, limits=self.limits)

    def save(self):
        """Save; return the new chunks and those that are gone."""
        saved = self.archive.save()
        new = {name: chunk_from(data) for name, data in saved.new.items()}
        gone = [self.chunks[name] for name in saved.gone]
        self.chunks = {n: c for n, c in (self.chunks | new).items() if n not in saved.gone}
        self.written += sum(len(chunk.stream) for chunk in new.values())
        return list(new.values()), gone

    def feed(self, *sizes):
        """Save after each batch; yields what `save` returns."""
        for part in batches(self.batch, sizes):
            self.archive.engine.feed(part)
            yield self.save()

    def events(self, stream):
        return sum(int(np.count_nonzero(c.stream == stream)) for c in self.chunks.values())

    @property
    def live(self):
        metrics = self.archive.engine.metrics()
        return metrics.stored + metrics.buffered


@pytest.mark.compiled
@pytest.mark.parametrize(
    "sizes",
    [[4], [100], [1, 50, 3], range(80, 0, -1), range(1, 80)],
    ids=["small", "large", "mixed", "shrinking", "growing"],
)
def test_many_batches_make_few_chunks_and_each_event_is_written_a_few_times(sizes):
    disk = Disk(windows=(500, 500), rows=1500)
    for _ in disk.feed(*sizes):
        assert len(disk.chunks) <= 2 + log2(disk.live) / log2(1.5)
    assert disk.written < 8 * len(disk.batch.stream)


def arrivals(chunk):
    return set(zip(chunk.stream.tolist(), chunk.arrival.tolist(), strict=True))


def test_small_chunks_are_merged_large_batches_split_and_dying_chunks_written_anew():
    merged = split = rewritten = 0
    disk = Disk(windows=(300, 300), rows=3000, chunk_bytes=50 * ROW)
    for new, gone in disk.feed(3, 3, 3, 3, 400, 7, 7, 7):
        before = [arrivals(chunk) for chunk in gone]
        after = [arrivals(chunk) for chunk in new]
        assert all(len(chunk) <= 51 for chunk in after)
        assert sum(len(chunk.stream) for chunk in disk.chunks.values()) < 2 * disk.live
        split += len(after) > 6
        for chunk in after:
            merged += sum(len(old & chunk) > 0 for old in before) > 1
            rewritten += any(chunk < old for old in before)
    assert min(merged, split, rewritten) > 10


@pytest.mark.compiled
def test_the_number_of_full_chunks_follows_what_is_alive():
    # Half of what is written dies at once; the size of a chunk is that of the rows in it.
    disk = Disk(windows=(10, 2000), rows=4000, chunk_bytes=100 * ROW)
    for _ in disk.feed(20):
        for held in disk.archive.held:
            assert held.size <= ROW * len(held.events)
        assert len(disk.chunks) < 10 + 3 * disk.live / 100


@pytest.mark.compiled
@pytest.mark.parametrize("chunk_bytes", [50 * ROW, 2 * 2**20], ids=["small chunks", "large chunks"])
def test_the_past_of_a_stream_with_a_short_window_does_not_stay(chunk_bytes):
    # two and a thousand are alive
    disk = Disk(windows=(10, 10_000), rows=3000, step=10, chunk_bytes=chunk_bytes)
    most = [0, 0]
    for _ in disk.feed(20):
        most = [max(most[s], disk.events(s)) for s in (0, 1)]
    assert most[0] < 150
    assert 1000 <= most[1] < 2100


def test_saving_again_writes_nothing():
    disk = Disk(windows=(50, 50), rows=200)
    list(disk.feed(30))
    assert disk.save() == ([], [])


def test_a_restored_archive_goes_on_writing_the_same_chunks():
    whole, cut = Disk(windows=(50, 50), rows=400), Disk(windows=(50, 50), rows=400)
    for n, _ in enumerate(zip(whole.feed(16), cut.feed(16), strict=True)):
        assert list(whole.chunks) == list(cut.chunks)
        if n % 5 == 4:
            header = cut.archive.save().header
            cut.archive = restore_archive(header, cut.chunks.get, cut.engine())
    assert whole.written == cut.written


def test_a_restored_archive_saves_what_it_was_restored_from():
    """With events in it that are dead already: the numbers of the others have to be right."""
    disk = Disk(windows=(20, 50), rows=100)
    for _ in disk.feed(17, 30):
        saved = disk.archive.save()
        again = restore_archive(saved.header, disk.chunks.get, disk.engine())
        assert again.save() == (saved.header, {}, [])
        log = again.engine.log
        for held in again.held:
            is_alive, chunk = held.events != NONE, disk.chunks[held.name]
            own = held.events[is_alive] - log.base
            assert log.arrival[own].tolist() == chunk.arrival[is_alive].tolist()
            assert log.stream[own].tolist() == chunk.stream[is_alive].tolist()


def test_chunks_of_equal_content_are_one_chunk_and_gone_once():
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k", goal=sw.NoSlack())
    same, later = pa.table({"ts": [5] * 4, "k": [1] * 4}), pa.table({"ts": [500], "k": [1]})
    limits = Limits(chunk_bytes=65)
    archive = Archive(JoinEngine(query, dict.fromkeys("ab", same.schema), limits=limits))
    names = set()
    for _ in range(3):
        archive.engine.feed(Batch((same, same.slice(0, 0)), np.zeros(4, np.uint8)))
        names |= set(archive.save().new)
    assert len(names) == 1
    assert len(archive.held) == 3
    archive.engine.feed(Batch((later, later), np.array([0, 1], np.uint8)))
    assert archive.save().gone == list(names)


def test_a_restored_engine_does_not_invent_waits_where_arrivals_are_unknown():
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k", goal=sw.Slack(5))
    one = pa.table({"ts": [1], "k": [1]})
    engine = JoinEngine(query, {"a": one.schema, "b": one.schema})
    engine.feed(Batch((one, one), np.array([0, 1], np.uint8)))
    again = restored(engine.snapshot(), JoinEngine(query, {"a": one.schema, "b": one.schema}))
    for output in (engine.flush(), again.flush()):
        assert output.table.num_rows == 1
        assert output.waits == []
