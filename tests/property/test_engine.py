"""The engine is defined per event: batch cuts, restarts and adaptation change nothing else."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import engine_query, fed, tables
from property.strategies import cases, tried
from slackwater.engine.join import JoinEngine
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
    exact = query.replay(tables(case), arrival="arr").report(over=1, every=1)
    assert metrics.produced + metrics.lost == exact.true


def test_a_script_of_slacks_is_carried_out_at_the_boundaries():
    # ts         0  4 | 5  9 | 10 ...      every 5: K = 7 in the second interval, 0 in the third
    query = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), on="k", goal=sw.NoSlack())
    table = pa.table({"ts": [0, 4, 5, 9, 10, 14], "k": [0] * 6})
    batch, _ = recorded(query, {"a": table, "b": table}, None)
    engine = JoinEngine(query, {"a": table.schema, "b": table.schema}, Scripted((0, 7), 5))
    output = engine.feed(batch)
    assert output.slacks == [(0, 0), (5, 7), (10, 0)]


def test_what_a_late_event_makes_at_the_window_end_has_the_time_of_the_clock():
    # arrives  A4  B4  A5  B5  B3     K = 0, windows of 2: B3 is late, and joins A5 at the clock
    a, b = (sw.Stream(name, "ts", 2) for name in "ab")
    query = sw.join(a, b, on="k", pipeline="icde16", late_probe="window-end", goal=sw.NoSlack())
    tables = {
        "a": pa.table({"ts": [4, 5], "k": [0, 0], "at": [1, 3]}),
        "b": pa.table({"ts": [4, 5, 3], "k": [0, 0, 0], "at": [2, 4, 5]}),
    }
    batch, _ = recorded(query, tables, "at")
    engine = JoinEngine(query, {n: t.schema for n, t in tables.items()}, Scripted((0, 0), 1))
    engine.feed(batch)
    engine.flush()
    produced, lost, _ = engine.statistics.results.between(0, 9)
    # time 4: A4 B4; time 5: A5 B4, A4 B5, A5 B5 and A5 B3; A4 B3 is lost, told at B3's time
    assert (produced.tolist(), lost.tolist()) == ([0, 1, 4], [1, 0, 0])
