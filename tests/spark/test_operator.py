"""The operator's logic without a JVM: pack, the processor in TwsTester, unpack."""

import gc
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.tws_tester import TwsTester

import slackwater as sw
from helpers import engine_query, engine_run, tables
from property.strategies import cases, tried
from slackwater.engine.checks import REASONS
from slackwater.errors import SnapshotError
from slackwater.events.batch import Checked
from slackwater.spark.blobs import METRICS, RESULTS, from_ipc, to_ipc
from slackwater.spark.job import Job
from slackwater.spark.metrics import place_of
from slackwater.spark.order import in_order
from slackwater.spark.pack import Pack, PackCommands
from slackwater.spark.partitioning import Partitioning
from slackwater.spark.parts import PackedRows, Part, clock_bytes
from slackwater.spark.processor import ShardProcessor
from slackwater.spark.shard import Shard
from slackwater.spark.shard_cache import ShardCache
from slackwater.stats.arriving import NO_DELAYS, last_delays
from spark.streams import in_parts, pair, pair_query, replayed, rows_of


class Cluster:
    """Shards on workers that swap them; each has its own memory, the state is common."""

    def __init__(self, query, schemas, shards, workers=2, seed=0, **options):
        self.job = Job(
            query, schemas, Partitioning.of(query, shards), 2, "arr", None, None, **options
        )
        mode = {"timeMode": "EventTime", "eventTimeExtractor": lambda row: 2**60}
        self.testers = [
            TwsTester(
                ShardProcessor(self.job, lambda: self.worker),
                **(mode if self.job.flush_at_end else {}),
            )
            for _ in range(shards)
        ]
        self.workers = [ShardCache() for _ in range(workers)]
        self.worker = self.workers[0]
        self.random = random.Random(seed)
        self.metrics = []

    def run(self, batch, *commands):
        """A micro-batch: a list of tables by stream number; returns the results of all shards."""
        files = pa.record_batch({"name": [str(i) for i in range(len(commands))],
                                 "text": pa.array(commands, pa.string())})  # fmt: skip
        rows = [row for packed in PackCommands(self.job)([files]) for row in packed.to_pylist()]
        for s, parts in enumerate(batch):
            for table in self.random.sample(parts, len(parts)):
                for packed in Pack(self.job, s)(iter(table.to_batches(max_chunksize=7))):
                    rows += packed.to_pylist()
        self.random.shuffle(rows)
        found = []
        for key, tester in zip(self.job.shard_keys, self.testers, strict=True):
            self.worker = self.random.choice(self.workers)
            own = pd.DataFrame([row for row in rows if row["shard"] == key])
            if len(own):
                found += self._results(tester.testInPandas(key, own))
        return found

    def end(self, watermark):
        """The batch without data behind the last one."""
        found = []
        for tester in self.testers:
            self.worker = self.random.choice(self.workers)
            out = tester.setWatermark(watermark)
            found += self._results(out) if len(out) else []
        return found

    def _results(self, frame):
        self.metrics += [
            n for n, k in zip(frame["numbers"], frame["kind"], strict=True) if k == METRICS
        ]
        return [
            row
            for kind, data in zip(frame["kind"], frame["data"], strict=True)
            if kind == RESULTS
            for row in rows_of(from_ipc(data))
        ]


def cut_at(all_tables, sizes):
    """Micro-batches of these many arrivals, over and over."""
    first, n = 0, 1 + max((v for t in all_tables for v in t["arr"].to_pylist()), default=-1)
    for size in sizes * (n + 1):
        if first >= n:
            return
        inside = [
            t.filter(
                pa.compute.and_(
                    pa.compute.greater_equal(t["arr"], first),
                    pa.compute.less(t["arr"], first + size),
                )
            )
            for t in all_tables
        ]
        yield [in_parts(t, 2) for t in inside]
        first += size


CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=5)


def on_cluster(case, sizes, shards, seed, **options):
    query = engine_query(case, **options)
    own = list(tables(case).values())
    schemas = tuple(t.schema for t in own)
    cluster = Cluster(query, schemas, shards, seed=seed, flush_at_end=True)
    found = [row for batch in cut_at(own, sizes) for row in cluster.run(batch)]
    return Counter(found + cluster.end(10**9)), cluster


@pytest.mark.determinism
@tried(0.02)
@given(cases(windows="mixed"), CUTS, st.integers(0, 99))
def test_one_shard_on_swapping_workers_is_the_engine(case, sizes, seed):
    expected = Counter(rows_of(engine_run(case, late="emit").results))
    found, _ = on_cluster(case, sizes, 1, seed, late="emit")
    assert found == expected


@pytest.mark.determinism
@tried(0.02)
@given(cases(slack="complete", options=False), CUTS, st.integers(1, 8), st.integers(0, 99))
def test_complete_slack_gives_the_exact_join_on_any_number_of_shards(case, sizes, shards, seed):
    expected = Counter(rows_of(engine_run(case).results))
    found, cluster = on_cluster(case, sizes, shards, seed)
    assert found == expected
    places = [place_of("arrivals", s) for s in range(len(engine_query(case).streams))]
    counted = sum(n[place] for n in cluster.metrics[-shards:] for place in places)
    assert counted == len(case.events)


@pytest.mark.determinism
@tried(0.02)
@given(cases(), CUTS, CUTS, st.integers(1, 8))
def test_shards_give_the_same_whatever_the_batches_and_workers(case, sizes, others, shards):
    found, first = on_cluster(case, sizes, shards, seed=1, late="emit")
    again, second = on_cluster(case, others, shards, seed=2, late="emit")
    assert found == again
    others = {place_of("state_bytes"), place_of("restored")}  # they depend on the workers
    alike = [
        [[n for place, n in enumerate(numbers) if place not in others] for numbers in last]
        for last in (first.metrics[-shards:], second.metrics[-shards:])
    ]
    assert alike[0] == alike[1]


def test_a_worker_that_kept_the_engine_restores_nothing():
    query, own = pair_query(), pair(rows=200)
    renamed = [t.rename_columns(["ts", "k", "v", "arr"]) for t in own.values()]
    schemas = tuple(t.schema for t in renamed)
    restored = place_of("restored")
    for workers, expected in ((1, 0), (40, 1)):
        cluster = Cluster(query, schemas, 1, workers=workers, seed=3)
        for batch in cut_at(renamed, [100]):
            cluster.run(batch)
        assert max(numbers[restored] for numbers in cluster.metrics) == expected


def test_workers_that_swap_shards_keep_no_engine_that_is_behind():
    query, own = pair_query(), pair(rows=400)
    renamed = [t.rename_columns(["ts", "k", "v", "arr"]) for t in own.values()]
    shards, workers = 2, 3
    cluster = Cluster(query, tuple(t.schema for t in renamed), shards, workers=workers, seed=3)
    gc.collect()
    before = sum(isinstance(thing, Shard) for thing in gc.get_objects())
    for batch in cut_at(renamed, [20]):
        cluster.run(batch)
    gc.collect()
    alive = sum(isinstance(thing, Shard) for thing in gc.get_objects()) - before
    assert 0 < alive <= shards * workers


RECALL_SET = '{"set": {"recall": 0.99}}'
SLACK, RESTORED, REFUSED, TARGET = map(
    place_of, ("slack", "restored", "refused_commands", "target")
)


def commanded(goal, command, at, workers=1, shards=2):
    """The results and metrics of each micro-batch; `command` comes with the one of number `at`."""
    query, own = replace(pair_query(retention="5 s"), goal=goal), pair(rows=4_000)
    renamed = [t.rename_columns(["ts", "k", "v", "arr"]) for t in own.values()]
    cluster = Cluster(query, tuple(t.schema for t in renamed), shards, workers=workers, seed=5)
    found = [
        Counter(cluster.run(batch, *([command] if number == at else [])))
        for number, batch in enumerate(cut_at(renamed, [800]))
    ]
    return found, [cluster.metrics[i : i + shards] for i in range(0, len(cluster.metrics), shards)]


def test_a_recall_that_was_set_stays_whichever_worker_goes_on():
    goal = sw.Recall(0.8, over="2 s")
    found, told = commanded(goal, RECALL_SET, at=4)
    targets = [{shard[TARGET] / 1e9 for shard in batch} for batch in told]
    assert targets == [{0.8}] * 4 + [{0.99}] * (len(told) - 4)
    again, told_again = commanded(goal, RECALL_SET, at=4, workers=40)  # each from the saved state
    assert max(shard[RESTORED] for batch in told_again for shard in batch) == 1
    assert again == found
    assert [[s[SLACK] for s in b] for b in told] == [[s[SLACK] for s in b] for b in told_again]
    _, left_alone = commanded(goal, RECALL_SET, at=None)
    assert left_alone[:4] == told[:4]
    assert max(s[SLACK] for s in told[-1]) > 2 * max(s[SLACK] for s in left_alone[-1])


@pytest.mark.parametrize(
    ("goal", "command"),
    [
        (sw.Slack("100 ms"), RECALL_SET),
        (sw.MaxSlack(), RECALL_SET),
        (sw.Recall(0.8, over="2 s"), '{"set": {"recall": 1.5}}'),
        (sw.Recall(0.8, over="2 s"), '{"set": {"recall": "0.99"}}'),
        (sw.Recall(0.8, over="2 s"), '{"set": {"latency": "1 s"}}'),
    ],
)
def test_a_command_that_does_not_fit_the_goal_is_counted_and_changes_nothing(goal, command):
    found, told = commanded(goal, command, at=2)
    assert [batch[0][REFUSED] for batch in told] == [0, 0, 1] + [0] * (len(told) - 3)
    assert found == commanded(goal, command, at=None)[0]


def test_state_is_a_header_and_the_chunks_it_names():
    query, own = pair_query(window="10 s"), pair(rows=400)
    renamed = [t.rename_columns(["ts", "k", "v", "arr"]) for t in own.values()]
    cluster = Cluster(query, tuple(t.schema for t in renamed), 1)
    for batch in cut_at(renamed, [50]):
        cluster.run(batch)
    [key] = cluster.job.shard_keys
    chunks = cluster.testers[0].peekMapState("chunks", key)
    header = bytes(cluster.testers[0].peekValueState("header", key)[0])
    assert header[:4] == b"SLKW"
    assert 0 < len(chunks) <= 8
    assert all(name[0].encode() in header for name in chunks)


@pytest.fixture
def interrupted():
    """A cluster behind its first micro-batch whose workers remember nothing, and the second one."""
    query, own = pair_query(window="10 s"), pair(rows=100)
    renamed = [t.rename_columns(["ts", "k", "v", "arr"]) for t in own.values()]
    cluster = Cluster(query, tuple(t.schema for t in renamed), 1)
    first, second, *_ = cut_at(renamed, [50])
    cluster.run(first)
    cluster.workers = [ShardCache()]
    return cluster, second


def test_a_missing_chunk_is_said(interrupted):
    cluster, second = interrupted
    cluster.testers[0].updateMapState("chunks", cluster.job.shard_keys[0], {})
    with pytest.raises(SnapshotError, match="the checkpoint is damaged: chunk .* is missing"):
        cluster.run(second)


@pytest.mark.parametrize("state", ["header", "chunks"])
def test_a_byte_that_changed_in_the_state_is_said(interrupted, state):
    """Such as the memory of a state store may do it, which has checksums for its files alone."""
    cluster, second = interrupted
    [tester], [key] = cluster.testers, cluster.job.shard_keys
    if state == "header":
        tester.updateValueState(state, key, (_flipped(*tester.peekValueState(state, key)),))
    else:
        chunks = tester.peekMapState(state, key)
        tester.updateMapState(state, key, {n: (_flipped(*c),) for n, c in chunks.items()})
    with pytest.raises(SnapshotError, match="the snapshot is damaged: its bytes are not those"):
        cluster.run(second)


def _flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def test_results_of_a_hot_key_come_in_bounded_blobs():
    rows = {"ts": [1] * 599 + [2], "k": [1] * 600, "v": ["x" * 40] * 600, "arr": range(600)}
    table = pa.table(rows)
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k", goal=sw.NoSlack())
    options = {"flush_at_end": True, "piece_bytes": 2**16}
    cluster = Cluster(query, (table.schema, table.schema), 1, **options)
    packed = [
        row
        for s in range(2)
        for batch in Pack(cluster.job, s)(iter(table.to_batches()))
        for row in batch.to_pylist()
    ]
    frame = cluster.testers[0].testInPandas(cluster.job.shard_keys[0], pd.DataFrame(packed))
    sizes = [
        len(data)
        for data, kind in zip(frame["data"], frame["kind"], strict=True)
        if kind == RESULTS
    ]
    assert len(sizes) > 100
    assert max(sizes) < 4 * 2**16


def test_rows_are_checked_once_and_carry_their_times_and_reasons():
    rows = {"ts": [5.9, None, 7.0], "k": [1, 1, None], "arr": [0, 1, 2]}
    table = pa.table({name: pa.array(values) for name, values in rows.items()})
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k")
    job = Job(query, (table.schema,) * 2, Partitioning.of(query, 1), 2, "arr", None, None)
    [packed] = [
        row for batch in Pack(job, 0)(iter(table.to_batches())) for row in batch.to_pylist()
    ]
    part = Part.read(0, packed["clock"], packed["data"])
    assert part.rows.table.equals(table)  # the user's columns, and none of ours
    assert part.rows.checked.ts.tolist() == [5, 0, 7]
    assert [REASONS[r] for r in part.rows.checked.reason] == ["", "bad time", "null key"]
    ordered = in_order(job, [part], [0, 0], 0)
    assert ordered.batch.checked[0].reason.tolist() == part.rows.checked.reason.tolist()


def test_a_clock_is_read_as_it_was_written():
    checked = Checked(np.array([33]), np.zeros(1, np.uint8))
    data = to_ipc(PackedRows(pa.table({"ts": [33]}), checked).with_own_columns())
    arrival, time = np.array([3, 5]), np.array([10, 33])
    delays = last_delays(np.array([5, 19, 12, 33, 31]), length=10)
    for steps, known in (((arrival, time), delays), ((arrival, time), NO_DELAYS), ((), NO_DELAYS)):
        part = Part.read(1, clock_bytes(*steps, delays=known), data)
        expected = steps or (np.empty(0), np.empty(0))
        assert part.clock_arrival.tolist() == expected[0].tolist()
        assert part.clock_time.tolist() == expected[1].tolist()
        assert part.delays.block == known.block
        assert part.delays.counts.tolist() == known.counts.tolist()


def test_replayed_helper_agrees_with_the_cluster():
    query, own = pair_query(slack="50 ms", late="emit"), pair(rows=300)
    renamed = {n: t.rename_columns(["ts", "k", "v", "arr"]) for n, t in own.items()}
    cluster = Cluster(query, tuple(t.schema for t in renamed.values()), 1, flush_at_end=True)
    found = [row for batch in cut_at(list(renamed.values()), [150]) for row in cluster.run(batch)]
    assert Counter(found + cluster.end(10**9)) == replayed(query, renamed, "arr")
