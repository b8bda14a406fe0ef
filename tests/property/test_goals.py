"""Every goal: batch cuts and restarts change nothing, K series included."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import engine_query, fed, members, plain, tables
from naive import join
from property.strategies import cases, tried
from slackwater.engine.replay import recorded

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
SMALL = {"over": 12, "every": 3, "granularity": 2}
GOALS = {
    "no slack": sw.NoSlack(synchronize=False),
    "quantile": sw.InputQuantile(0.8, every=3, granularity=2),
    "latency": sw.Latency(20, every=3, granularity=2),
    "measured": sw.Recall(0.9, **SMALL),
    "eqsel": sw.Recall(0.9, model="eqsel", **SMALL),
    "noneqsel": sw.Recall(0.9, model="noneqsel", **SMALL),
    "late-degree": sw.Recall(0.9, model="late-degree", **SMALL),
    "late-degree, overall": sw.Recall(0.9, model="late-degree", overall=True, **SMALL),
    "pd": sw.Recall(0.9, model="pd", gains=(50, 20), **SMALL),
    "pd, overall": sw.Recall(0.9, model="pd", gains=(50, 20), overall=True, **SMALL),
}


@pytest.mark.determinism
@pytest.mark.parametrize("name", GOALS)
@tried(0.02)
@given(cases(windows="mixed"), CUTS)
def test_cuts_and_restarts_change_nothing(name, case, sizes):
    if name.startswith("late-degree"):
        case = case._replace(
            events=[e for e in case.events if e.stream < 2], windows=case.windows[:2], kind="key",
            pipeline="icde16",  # without a tuple-count window it could be clocked, with overdue=
        )  # fmt: skip
    query = replace(engine_query(case), goal=GOALS[name])
    batch, _ = recorded(query, tables(case), "arr")
    whole = fed(query, batch)
    assert fed(query, batch, sizes) == whole
    assert fed(query, batch, sizes, restart=True) == whole


@pytest.mark.differential
@tried(0.25)
@given(cases(windows="mixed"))
def test_without_synchronizer_events_are_joined_as_they_come(case):
    query = replace(engine_query(case), goal=sw.NoSlack(synchronize=False), retention=10**8)
    run = query.replay(tables(case), arrival="arr")
    results, late = join(case.valid, *case.query, late_probe=case.late_probe)
    assert sorted(members(run.results, case.m)) == plain(results)
    assert run.late["ts"].to_pylist() == [e.ts for e, _ in late]
    if not query.has_tuple_windows:  # for those a loss is no more than a difference of counts
        exact = run.report(over=1, every=1)
        assert run.metrics.produced + run.metrics.lost == exact.true
