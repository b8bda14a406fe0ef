"""A shard that sees nothing for minutes has the K and the S of the others; without a JVM."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.events.hashing import hash_rows
from slackwater.spark import shared_folder
from slackwater.spark.metrics import place_of
from slackwater.testing.workloads import arriving, generator
from spark.test_operator import Cluster, cut_at
from spark.test_shared_folder import Sharing

SHARDS, QUIET = 4, 3  # the shard that gets no rows for long
BATCH_S = 5
CALM_S, RETURN_S, END_S = 40, 80, 100  # delays grow; the quiet shard gets rows again


def keys_of(shards):
    """Four keys of each of these shards."""
    keys = np.arange(100)
    of = (hash_rows([pa.array(keys)]) >> np.uint64(32)).astype(np.int64) % SHARDS
    return np.concatenate([keys[of == shard][:4] for shard in shards])


def streams():
    """Two streams; rows of the quiet shard come in the first 8 s, and from the return on."""
    tables = []
    for s in range(2):
        rng = generator(7, s)
        ts = np.sort(rng.integers(0, END_S * 1000, END_S * 80))
        k = rng.choice(keys_of(range(SHARDS)), len(ts))
        is_quiet = np.isin(k, keys_of([QUIET])) & (ts > 8_000) & (ts < RETURN_S * 1000)
        k[is_quiet] = rng.choice(keys_of(range(QUIET)), np.count_nonzero(is_quiet))
        mean = np.where(ts < CALM_S * 1000, 100.0, 800.0)
        arrival = ts + rng.exponential(mean).astype(np.int64)
        tables.append(arriving(arrival, ts=ts, k=k).rename_columns({"arrival": "arr"}))
    return tables


QUERY = sw.join(
    *(sw.Stream(name, ts="ts", window="1 s") for name in "ab"),
    on="k",
    goal=sw.Recall(0.9, over="20 s"),
)


def of_each_shard(cluster, name):
    """A metric behind the last micro-batch."""
    return [numbers[place_of(name)] for numbers in cluster.metrics[-SHARDS:]]


def recall_after_return(cluster, own):
    """Of the quiet shard; all shards have one K and one S behind each micro-batch."""
    before = None
    for number, batch in enumerate(cut_at(own, [1000 * BATCH_S])):
        if number * BATCH_S == RETURN_S:
            before = counts_of(cluster)
        cluster.run(batch)
        is_one(cluster)
    made, lost = (n - m for n, m in zip(counts_of(cluster), before, strict=True))
    assert made + lost > 500
    return made / (made + lost)


def counts_of(cluster):
    return [of_each_shard(cluster, name)[QUIET] for name in ("produced", "lost")]


@pytest.fixture(scope="module")
def own():
    return streams()


def is_one(cluster):
    assert len(set(of_each_shard(cluster, "slack"))) == 1
    assert len(set(cluster.complete())) == 1


def test_a_shard_that_sees_nothing_for_minutes_knows_what_the_others_learnt(own, tmp_path):
    shared_folder._reports.cache_clear()
    cluster = Sharing(QUERY, tuple(table.schema for table in own), SHARDS, folder=tmp_path)
    assert recall_after_return(cluster, own) > 0.9


def test_with_a_slack_of_its_own_it_knows_nothing(own):
    cluster = Cluster(QUERY, tuple(table.schema for table in own), SHARDS)
    for _, batch in zip(range(RETURN_S // BATCH_S), cut_at(own, [1000 * BATCH_S]), strict=False):
        cluster.run(batch)
    *others, quiet = of_each_shard(cluster, "slack")
    assert quiet <= 10  # one step of K: something was late in the first minutes
    assert min(others) > 1_000


def test_a_new_goal_reaches_all_shards_in_the_same_micro_batch(own, tmp_path):
    shared_folder._reports.cache_clear()
    cluster = Sharing(QUERY, tuple(table.schema for table in own), SHARDS, folder=tmp_path)
    complete, slacks = -1, []
    for number, batch in enumerate(cut_at(own, [1000 * BATCH_S])):
        commands = ['{"set": {"recall": 0.999}}'] if number == 6 else []
        times = [row[0] for row in cluster.run(batch, *commands)]
        assert min(times, default=complete + 1) > complete
        is_one(cluster)
        (complete,) = set(cluster.complete())
        slacks.append(of_each_shard(cluster, "slack")[0])
        if number == 7:  # the delays are still those of before
            break
    assert slacks[7] > 2 * max(slacks[3:7])  # the next interval is the first with the new target
