"""The engine is defined per event: batch cuts, restarts and adaptation change nothing else."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import engine_query, fed, tables
from property.strategies import cases, tried
from slackwater.engine.engine import Engine
from slackwater.engine.replay import recorded
from slackwater.stats.statistics import Statistics

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


@pytest.mark.determinism
@tried(0.25)
@given(cases(windows="mixed"), CUTS)
def test_any_batch_cut_gives_the_same_results_slack_and_metrics(case, sizes):
    query = engine_query(case, late="emit")
    batch, _ = recorded(query, tables(case), "arr")
    assert fed(query, batch, sizes) == fed(query, batch)


@pytest.mark.determinism
@tried(0.1)
@given(cases(windows="mixed"), CUTS)
def test_any_restart_gives_the_same_results_slack_and_metrics(case, sizes):
    query = engine_query(case)
    batch, _ = recorded(query, tables(case), "arr")
    assert fed(query, batch, sizes, restart=True) == fed(query, batch)


@dataclass(frozen=True)
class Scripted:
    """K by the number of the adaptation interval: up and down, to zero and back."""

    slacks: tuple[int, ...]
    every: int
    start: int = 0
    follows_delay: bool = False

    def statistics(self, query):
        return Statistics(query, self.every, granularity=1, keep=100, profile=True)

    def next_slack(self, interval):
        return self.slacks[interval.end // self.every % len(self.slacks)]

    def state(self):
        return {}

    def resume(self, state):
        assert state == {}


@pytest.mark.determinism
@tried(0.1)
@given(
    cases(), CUTS, st.lists(st.integers(0, 40), min_size=2, max_size=5), st.sampled_from([1, 3, 10])
)
def test_slack_may_change_at_any_boundary_in_both_directions(case, sizes, slacks, every):
    """What a changing K produces is a subset of the truth, in order, and fully accounted for."""
    query = engine_query(case, retention=10**8)
    batch, _ = recorded(query, tables(case), "arr")
    controller = Scripted(tuple(slacks), every)
    whole = fed(query, batch, controller=controller)
    assert fed(query, batch, sizes, restart=True, controller=controller) == whole
    table, *_, metrics = whole
    times = table["result_ts"].to_pylist()
    assert times == sorted(times)
    exact = query.replay(tables(case), arrival="arr").report(period=1, every=1)
    assert metrics.produced + metrics.lost == exact.true


def test_a_script_of_slacks_is_carried_out_at_the_boundaries():
    # ts         0  4 | 5  9 | 10 ...      every 5: K = 7 in the second interval, 0 in the third
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k")
    table = pa.table({"ts": [0, 4, 5, 9, 10, 14], "k": [0] * 6})
    batch, _ = recorded(query, {"a": table, "b": table}, None)
    engine = Engine(query, {"a": table.schema, "b": table.schema}, Scripted((0, 7), 5))
    output = engine.feed(batch)
    assert output.slacks == [(0, 0), (5, 7), (10, 0)]
