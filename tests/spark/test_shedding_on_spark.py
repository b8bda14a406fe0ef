"""Load shedding on shards: each throttles itself, and tells."""

import itertools

import numpy as np
import pytest

import slackwater as sw
from slackwater.metrics.progress import is_balanced
from slackwater_lab.papers.overload import Workload, query_of
from spark.streams import finish, observed, sources, write

SECONDS, FILES = 36, 6


def streams(rate=60.0):
    """No two events of a stream have the same time: nothing is left to their order."""
    tables = Workload(rates=(rate,), seconds=SECONDS).tables(1)
    firsts = {
        name: np.unique(table["ts"].to_numpy(), return_index=True)[1]
        for name, table in tables.items()
    }
    return {
        name: table.take(firsts[name]).append_column("arrival", table["ts"].take(firsts[name]))
        for name, table in tables.items()
    }


def in_step(table):
    """Files that end at the same times in all streams."""
    ends = np.searchsorted(table["ts"].to_numpy(), np.arange(1, FILES) * 1000 * SECONDS // FILES)
    begins = [0, *ends.tolist(), table.num_rows]
    return [table.slice(begin, end - begin) for begin, end in itertools.pairwise(begins)]


def told(spark, folder, query, tables, **options):
    for name, table in tables.items():
        write(folder / name, in_step(table))
    joined = query.stream(
        sources(spark, folder, tables), arrival="arrival", at_end="flush", **options
    )
    return observed(finish(joined, folder))


def test_a_budget_gives_on_spark_what_it_gives_here(spark, tmp_path):
    tables, query = streams(), query_of(3, sw.Harvest(budget=3e4))
    last = told(spark, tmp_path, query, tables, shards=1)[-1]
    here = query.replay(tables, arrival="arrival").metrics
    assert last["produced"] == here.produced
    assert last["missed"] == here.shedding.missed > 0
    assert last["throttle"] == pytest.approx(here.shedding.throttle)
    assert last["recall"] == pytest.approx(here.produced / (here.produced + here.shedding.missed))
    assert is_balanced(last)


@pytest.mark.full
def test_each_shard_throttles_itself_by_the_wall_clock(spark, tmp_path):
    """A join that may hardly be busy at all is overloaded on every machine."""
    tables, query = streams(), query_of(3, sw.Harvest(usage=1e-6, buffer="1 day"))
    rows = told(spark, tmp_path, query, tables, shards=2)
    assert all(map(is_balanced, rows))
    assert len(rows[-1]["throttles"]) == 2
    assert all(z < 0.5 for z in rows[-1]["throttles"])
    assert rows[-1]["throttle"] == min(rows[-1]["throttles"])
    whole = query_of(3, "off").replay(tables).metrics.produced
    assert 0 < rows[-1]["produced"] < whole
