"""A recall goal on shards: each chooses its own K, the promise is that of all of them together."""

from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from slackwater.engine.replay import recorded
from slackwater.engine.report import columns, recall_series, truth
from slackwater.testing.workloads import uniform_keys
from spark.streams import as_frame, collected, finish, in_parts, observed, sources, write

SECONDS, PERIOD = 120, 20_000
GOAL = sw.Recall(0.9, over=PERIOD)
A, B = (sw.Stream(name, ts="ts", window="2 s") for name in "ab")
QUERY = sw.join(A, B, on="k", goal=GOAL)


def streams(rate=300, keys=200):
    return {
        name: uniform_keys(rate * SECONDS, seed=i, rate_per_s=rate, keys=keys, mean_delay_ms=400)
        for i, name in enumerate("ab", 1)
    }


def fulfilment(result_times, tables):
    """Φ of the results of all shards together."""
    batch, _ = recorded(QUERY, tables, "arrival")
    true_ts, true_n, _ = columns(truth(QUERY, batch)[0].made)
    made_ts, made_n = np.unique(result_times, return_counts=True)
    grid = (PERIOD, 1000 * SECONDS, PERIOD, 1_000)
    series = recall_series(made_ts, made_n, true_ts, true_n, *grid)
    return float(np.mean(series["recall"].to_numpy() >= GOAL.target))


@pytest.mark.full
def test_four_shards_keep_the_promise_together(spark):
    tables = streams()
    frames = {name: as_frame(spark, table) for name, table in tables.items()}
    rows = collected(QUERY.stream(frames, arrival="arrival", shards=4).select("result_ts"))
    times = np.repeat([ts for (ts,) in rows], list(rows.values()))
    assert fulfilment(times, tables) >= 0.97


def test_one_shard_chooses_the_slack_of_the_engine_across_micro_batches(spark, tmp_path):
    tables = streams(rate=50)
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table, 4))
    joined = QUERY.stream(sources(spark, tmp_path), arrival="arrival", shards=1, at_end="flush")
    told = observed(finish(joined, tmp_path))
    run = replace(QUERY, select="count").replay(tables, arrival="arrival")
    assert told[-1]["slack"] == run.metrics.slack
    assert told[-1]["produced"] == run.metrics.produced
    assert told[-1]["lost"] == run.metrics.lost
