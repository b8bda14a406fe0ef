"""Joins of all kinds on several shards, with the operator's logic but without a JVM."""

import tempfile
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import slackwater as sw
from kinds_of_joins import kinds, plain
from naive_kinds import accounts
from property.strategies import tried
from slackwater.spark import shared_folder
from slackwater.spark.metrics import place_of
from spark.test_operator import CUTS, Cluster, cut_at
from spark.test_shared_folder import Sharing

pytestmark = pytest.mark.determinism

SHARDS = st.integers(1, 8)


def on_cluster(case, query, sizes, shards, seed):
    """The rows of all shards, and the cluster; an event that comes is as late as on one shard."""
    own = [t.append_column("arr", t["n"]) for t in case.tables().values()]
    schemas = tuple(t.schema for t in own)
    options = {"has_common_slack": query.shares_slack and shards > 1}
    cluster = Cluster(query, schemas, shards, seed=seed, flush_at_end=True, **options)
    found = [row for batch in cut_at(own, sizes) for row in cluster.run(batch)]
    return found + cluster.end(10**9), cluster


def numbered(query, rows):
    """Rows of the results in the form of the oracle."""
    names = query.result_schema(SCHEMAS).names
    place = {name: names.index(name) for name in names}

    def value(row, name, default):
        found = row[place[name]] if name in place else default
        return -1 if found is None else found

    columns = (("result_ts", None), ("l_n", -1), ("r_n", -1), ("change", "insert"), ("late", False))
    return sorted(tuple(value(row, *column) for column in columns) for row in rows)


COLUMNS = pa.schema([(name, pa.int64()) for name in ("ts", "k", "x", "rank", "n", "arr")])
SCHEMAS = {"l": COLUMNS, "r": COLUMNS}


@tried(0.1)
@drawn(kinds(), CUTS, SHARDS, st.integers(0, 99))
def test_rows_and_corrections_are_those_of_the_oracle_on_any_number_of_shards(
    case, sizes, shards, seed
):
    case = case._replace(slack=case.slack or 0)  # K that follows delays is one for the query
    query = case.query()
    found, cluster = on_cluster(case, query, sizes, shards, seed)
    assert numbered(query, found) == plain(g.row for g in case.play().given())
    if case.how in ("left", "right", "full", "anti"):
        last = cluster.metrics[-shards:]
        names = {"in time": "unmatched_rows", "late": "unmatched_rows_late",
                 "withdrawn": "withdrawn_rows"}  # fmt: skip
        wanted = accounts(case.play())
        told = {of: sum(numbers[place_of(name)] for numbers in last) for of, name in names.items()}
        assert told == {of: wanted[of] for of in names}


@tried(0.05)
@drawn(kinds(hows=("left", "right", "anti", "semi", "asof", "inner")), CUTS, SHARDS)
def test_without_a_key_the_side_whose_rows_are_kept_is_split(case, sizes, shards):
    case = case._replace(slack=case.slack or 0, has_where=True)
    keyed = [e._replace(values=(0, *e.values[1:])) for e in case.events]  # the key is that of all
    case = case._replace(events=keyed)
    query = replace(case.query(), on=None)
    found, _ = on_cluster(case, query, sizes, shards, seed=1)
    assert numbered(query, found) == plain(g.row for g in case.play().given())


@tried(0.05)
@drawn(kinds(), CUTS, SHARDS)
def test_identities_do_not_depend_on_the_number_of_shards(case, sizes, shards):
    case = case._replace(slack=case.slack or 0)
    query = case.query(ids=(), result_id=True)
    alone, _ = on_cluster(case, query, sizes, 1, seed=2)
    together, _ = on_cluster(case, query, sizes, shards, seed=3)
    key = lambda row: tuple(-1 if value is None else value for value in row)  # noqa: E731
    assert sorted(together, key=repr) == sorted(alone, key=repr)
    assert len({key(row) for row in alone}) == len(alone)


GOAL = {"over": 40, "every": 4, "granularity": 2}
FLUSH = '{"flush": true}'


@tried(0.05)
@drawn(kinds(), CUTS, st.sampled_from([2, 4, 8]), st.integers(0, 99))
def test_with_a_goal_all_shards_end_each_micro_batch_at_the_same_time(case, sizes, shards, seed):
    has_alone = case.how in ("left", "right", "full", "anti")
    goal = sw.Recall(0.9, **GOAL, unmatched=0.8 if has_alone else None)
    query = replace(case.query(), goal=goal, retention=None)
    own = [t.append_column("arr", t["n"]) for t in case.tables().values()]
    shared_folder._reports.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        cluster = Sharing(query, tuple(t.schema for t in own), shards, folder=folder, seed=seed)
        complete = None
        for batch in cut_at(own, sizes):
            if not any(part.num_rows for parts in batch for part in parts):
                continue
            rows = numbered(query, cluster.run(batch))
            if case.emit == "ordered":
                (now,) = set(cluster.complete())
                times = [row[0] for row in rows if not row[-1]]
                assert complete is None or all(time > complete for time in times)
                complete = now
            slacks = {numbers[place_of("slack")] for numbers in cluster.metrics[-shards:]}
            assert len(slacks) == 1
