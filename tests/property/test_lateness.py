"""The lateness of results decides what a slack produces: for every K, on any number of shards."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import LONG, engine_query, fed, members, plain, shard_batch, shards
from helpers import tables as tables_of
from naive import clocked, clocks, lateness, truth
from property.strategies import cases, tried
from slackwater.engine.replay import recorded
from slackwater.kernels.histogram import bucket_of, upper_edges
from slackwater.stats.statistics import Statistics

SILENCE = st.sampled_from([None, None, 5, 40])
KEYS = ("key", "keys")


def common_clock(case, idle_after=None):
    """The common clock at the arrival of each event."""
    known = clocks(case.valid, [0] * len(case.valid), case.m, idle_after=idle_after)
    return {e: c for e, (_, c) in zip(case.valid, known, strict=True)}


def clocked_case(case):
    return case._replace(pipeline="clocked", overdue="advance", late_probe="none")


def results_of(case, arriving=None, idle_after=None, **options):
    """What the engine produces in time."""
    query = engine_query(case, retention=LONG)
    if arriving is None:
        batch, _ = recorded(query, tables_of(case), "arr")
    else:
        batch = shard_batch(case, arriving)
        options = {"common_clock": True} | options
    return members(fed(query, batch, idle_after=idle_after, **options)[0], case.m)


@pytest.mark.differential
@tried()
@given(cases(slack=None), st.integers(0, 60), SILENCE)
def test_a_result_is_produced_iff_the_slack_is_at_least_its_lateness(case, slack, idle_after):
    case = clocked_case(case)._replace(slack=slack)
    common = common_clock(case, idle_after)
    wanted = [r for r in truth(case.valid, *case.query) if lateness(r, common) <= slack]
    assert sorted(results_of(case, idle_after=idle_after)) == plain(wanted)


@dataclass(frozen=True)
class Scripted:
    """K by the number of the adaptation interval."""

    slacks: tuple[int, ...]
    every: int
    start: int = 0
    follows_delay: bool = False

    def statistics(self, query):
        return Statistics(query, self.every, granularity=1, keep=100)

    def next_slack(self, interval):
        return self.slacks[interval.end // self.every % len(self.slacks)]

    def state(self):
        return {}

    def resume(self, state):
        assert state == {}


def slack_series(case, script):
    """K at each arrival: it changes behind the arrival with which an interval ends."""
    top, slack, due, series = None, script.start, None, []
    for e in case.valid:
        if top is None:
            due = (e.ts // script.every + 1) * script.every
        series.append(slack)
        top = e.ts if top is None else max(top, e.ts)
        if top >= due:
            slack = script.slacks[top // script.every % len(script.slacks)]
            due = (top // script.every + 1) * script.every
    return series


@pytest.mark.differential
@tried(0.5)
@given(
    cases(slack=None, kinds=KEYS),
    st.lists(st.integers(0, 40), min_size=2, max_size=5),
    st.sampled_from([1, 3, 10]),
    st.sampled_from([1, 1, 2, 3, 8]),
    SILENCE,
)
def test_a_changing_slack_follows_the_rule_on_any_number_of_shards(
    case, slacks, every, n, idle_after
):
    case = clocked_case(case)._replace(slack=0)
    script = Scripted(tuple(slacks), every)
    ks = slack_series(case, script)
    wanted, _ = clocked(case.valid, *case.query, ks=ks, idle_after=idle_after)
    found = []
    for arriving in shards(case, n):
        found += results_of(case, arriving, idle_after, controller=script)
    assert sorted(found) == plain(wanted)


@pytest.mark.differential
@tried()
@given(cases(slack="any"), SILENCE, st.booleans())
def test_the_lateness_histogram_is_that_of_all_true_results(case, idle_after, counts):
    case = clocked_case(case)
    common = common_clock(case, idle_after)
    late = [lateness(r, common) for r in truth(case.valid, *case.query)]
    wanted = Counter(int(bucket_of(x)) for x in late if x > 0)
    query = engine_query(case, retention=LONG, select="count" if counts else "*")
    query = replace(query, goal=sw.Recall(0.9, over=10**9, every=10**9, granularity=1))
    batch, _ = recorded(query, tables_of(case), "arr")
    engine = fed(query, batch, idle_after=idle_after, as_engine=True)
    found = engine.join.lateness.counts[0]
    assert {int(b): int(found[b]) for b in np.flatnonzero(found)} == wanted


@pytest.mark.parametrize("restart", [False, True])
def test_what_the_join_does_not_see_any_more_has_no_lateness(restart):
    # windows of 10, retention 0: when a15 comes the clock is 100 and b20 is out of sight, though
    # a join that was not restarted still has it in memory
    arrivals = [("a", 20), ("b", 20), ("a", 100), ("b", 100), ("a", 15), ("a", 95)]
    query = sw.join(
        sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10), retention=0,
        goal=sw.Recall(0.9, over=10**9, every=10**9, granularity=1),
    )  # fmt: skip
    tables = {
        name: pa.table(
            {
                "ts": [ts for s, ts in arrivals if s == name],
                "at": [n for n, (s, _) in enumerate(arrivals) if s == name],
            }
        )
        for name in "ab"
    }
    batch, _ = recorded(query, tables, "at")
    sizes = [1] if restart else [len(arrivals)]
    engine = fed(query, batch, sizes, restart=restart, as_engine=True)
    found = engine.join.lateness.counts[0]
    assert {int(b): int(found[b]) for b in np.flatnonzero(found)} == {1: 1}  # a95 with b100


def test_raising_the_slack_never_loses_a_result():
    # a50 b10 | K 0 -> 100 | a20 b25 b131 a150: the papers' pipeline loses (a20, b25) by the change
    a, b = (sw.Stream(name, "ts", 10) for name in "ab")
    arrivals = [("a", 50), ("b", 10), ("a", 20), ("b", 25), ("b", 131), ("a", 150)]
    tables = {
        name: pa.table(
            {
                "ts": [ts for s, ts in arrivals if s == name],
                "at": [n for n, (s, _) in enumerate(arrivals) if s == name],
            }
        )
        for name in "ab"
    }
    for goal in (sw.Slack(0), sw.Slack(100)):
        run = sw.join(a, b, goal=goal).replay(tables, arrival="at")
        assert (20, 25) in zip(
            run.results["a_ts"].to_pylist(), run.results["b_ts"].to_pylist(), strict=True
        ), goal


def test_the_upper_edge_of_a_bucket_is_never_below_the_lateness_and_never_far_above():
    edges = upper_edges()
    for number in (0, 1, 63, 64, 65, 1000, 3_600_000, 86_400_000):
        assert number <= edges[bucket_of(number)] <= number * (1 + 1 / 32)
