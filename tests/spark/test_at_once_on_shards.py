"""Results of any number of streams at once, on several shards: the operator without a JVM."""

import tempfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import LONG, NAMES, engine_query, tables
from property.strategies import tried
from property.test_at_once import KEEPS, eager_cases, plain, played
from slackwater.spark import shared_folder
from slackwater.spark.metrics import place_of
from spark.test_operator import CUTS, Cluster, cut_at
from spark.test_shared_folder import Sharing

pytestmark = pytest.mark.determinism

SHARDS = st.integers(1, 8)


def on_cluster(case, query, sizes, shards, seed):
    """What each micro-batch gives, and the cluster."""
    own = list(tables(case).values())
    options = {"has_common_slack": query.shares_slack and shards > 1}
    cluster = Cluster(
        query, tuple(t.schema for t in own), shards, seed=seed, flush_at_end=True, **options
    )
    found = [row for batch in cut_at(own, sizes) for row in cluster.run(batch)]
    return found + cluster.end(10**9), cluster


def numbered(query, rows, case):
    """Rows as (time, arrival numbers)."""
    schemas = {name: table.schema for name, table in tables(case).items()}
    names = query.result_schema(schemas).names
    ids = [names.index(f"{name}_id") for name in NAMES[: case.m]]
    return sorted((row[0], tuple(row[at] for at in ids)) for row in rows)


@tried(0.1)
@given(eager_cases(kinds=("key", "keys", "cross", "chain", "theta")), KEEPS, CUTS, SHARDS)
def test_results_are_those_of_the_oracle_on_any_number_of_shards(case, keep, sizes, shards):
    case = case._replace(slack=case.slack or 0)  # K that follows delays is one for the query
    query = engine_query(case, emit="eager", retention=keep)
    found, cluster = on_cluster(case, query, sizes, shards, seed=1)
    wanted = played(case, keep)
    assert numbered(query, found, case) == sorted(plain(wanted))
    if found:
        last = cluster.metrics[-shards:]
        assert sum(numbers[place_of("produced")] for numbers in last) == len(wanted)


@tried(0.05)
@given(eager_cases(kinds=("key",)), KEEPS, CUTS, SHARDS)
def test_counts_add_up(case, keep, sizes, shards):
    case = case._replace(slack=case.slack or 0)
    query = engine_query(case, emit="eager", retention=keep, select="count")
    found, _ = on_cluster(case, query, sizes, shards, seed=2)
    assert sum(n for _, n in found) == len(played(case, keep))


GOAL = sw.Recall(0.9, over=40, every=4, granularity=2)


@tried(0.05)
@given(eager_cases(kinds=("key",)), CUTS, st.sampled_from([2, 4, 8]))
def test_with_a_goal_all_shards_keep_events_as_long(case, sizes, shards):
    query = replace(engine_query(case, emit="eager"), goal=GOAL)
    own, results = list(tables(case).values()), []
    shared_folder._reports.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        cluster = Sharing(query, tuple(t.schema for t in own), shards, folder=folder)
        for batch in cut_at(own, sizes):
            if not any(part.num_rows for parts in batch for part in parts):
                continue
            results += numbered(query, cluster.run(batch), case)
            assert len({n[place_of("slack")] for n in cluster.metrics[-shards:]}) == 1
    assert len(set(results)) == len(results)
    assert set(results) <= set(plain(played(case._replace(slack=None), LONG)))
