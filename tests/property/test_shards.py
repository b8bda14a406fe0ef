"""Shards that are told the local times of all streams do together what one engine does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    LONG,
    NAMES,
    engine_query,
    fed,
    members,
    plain,
    replicate,
    shard_batch,
    shards,
    true_results,
)
from naive import pipeline
from property.strategies import cases, largest_delay, tried
from property.test_goals import GOALS
from property.test_shedding import SHEDDING, overloaded

pytestmark = pytest.mark.determinism

KEYS = ("key", "keys", "key and theta")
COUNTS = st.integers(1, 8)
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
SILENCE = st.sampled_from([None, None, 1, 5, 20, 60])


def run(case, arriving, idle_after=None, **options):
    """The answers of one shard."""
    query = engine_query(case, **options)
    batch = shard_batch(case, arriving)
    return fed(query, batch, common_clock=True, idle_after=idle_after)


def metrics(answer):
    return answer[-1]


def together(case, answers):
    """The results of all shards."""
    return sorted(result for answer in answers for result in members(answer[0], case.m))


@pytest.mark.differential
@tried(0.3)
@given(cases(slack="complete", kinds=KEYS), COUNTS)
def test_complete_slack_gives_exactly_the_true_results_over_any_number_of_shards(case, n):
    parts = [run(case, arriving) for arriving in shards(case, n)]
    assert together(case, parts) == true_results(case)
    assert sum(metrics(part).late_kept + metrics(part).late_dropped for part in parts) == 0


@pytest.mark.differential
@tried(0.3)
@given(cases(slack="complete", kinds=("cross", "theta", "function", "vectors")), COUNTS)
def test_one_stream_split_and_the_others_replicated_give_exactly_the_true_results(case, n):
    parts = [run(case, arriving) for arriving in shards(case, n, replicate)]
    assert together(case, parts) == true_results(case)


@tried(0.3)
@given(cases(kinds=KEYS), COUNTS, SILENCE)
def test_any_slack_produces_or_counts_as_lost_every_true_result(case, n, idle_after):
    parts = [
        run(case, arriving, idle_after=idle_after, retention=LONG) for arriving in shards(case, n)
    ]
    true = true_results(case)
    assert sum(metrics(part).lost_unknown for part in parts) == 0
    assert sum(metrics(part).produced + metrics(part).lost for part in parts) == len(true)
    results = together(case, parts)
    assert len(results) == len(set(results))
    assert set(results) <= set(true)


@pytest.mark.differential
@tried(0.3)
@given(cases(kinds=KEYS), COUNTS, SILENCE)
def test_each_shard_is_the_oracles_pipeline_on_a_common_clock(case, n, idle_after):
    valid = set(case.valid)
    disorder = case.disorder | {"common_clock": True, "idle_after": idle_after}
    for arriving in shards(case, n):
        events = [e for e in arriving if e.values is None or e in valid]
        if case.is_clocked:
            continue  # test_lateness: the same results on any number of shards
        produced, late = pipeline(events, *case.query, late_probe=case.late_probe, **disorder)
        table, _, said, *_ = run(case, arriving, idle_after=idle_after)
        assert sorted(members(table, case.m)) == plain(produced)
        assert [e[:2] for e in zip(*said, strict=True)] == [(e.stream, e.ts) for e, _ in late]


def unaffected(query, case, n, sizes, restart, **options):
    """Cuts and restarts change nothing that a shard says."""
    for arriving in shards(case, n):
        batch = shard_batch(case, arriving)
        whole = fed(query, batch, common_clock=True, **options)
        assert fed(query, batch, sizes, restart, common_clock=True, **options) == whole


@tried(0.2)
@given(cases(kinds=KEYS), COUNTS, SILENCE, CUTS, st.booleans())
def test_cuts_and_restarts_change_no_answer_of_a_shard(case, n, idle_after, sizes, restart):
    unaffected(engine_query(case), case, n, sizes, restart, idle_after=idle_after)


@tried(0.1)
@given(cases(kinds=KEYS), st.sampled_from(sorted(GOALS)), COUNTS, CUTS, st.booleans())
def test_nor_do_they_with_any_goal(case, name, n, sizes, restart):
    if name.startswith("late-degree"):
        case = case._replace(
            events=[e for e in case.events if e.stream < 2], windows=case.windows[:2], kind="key"
        )
    unaffected(replace(engine_query(case), goal=GOALS[name]), case, n, sizes, restart)


@tried(0.1)
@given(cases(kinds=KEYS), SHEDDING, st.sampled_from([50.0, 400.0]), COUNTS, CUTS, st.booleans())
def test_nor_do_they_under_overload(case, kind, budget, n, sizes, restart):
    case = case._replace(late_probe="none")
    unaffected(engine_query(case, shed=overloaded(kind, budget)), case, n, sizes, restart)


@tried(0.3)
@given(cases(kinds=KEYS), COUNTS)
def test_shards_count_each_row_once_and_all_know_the_time(case, n):
    parts = [metrics(run(case, arriving)) for arriving in shards(case, n)]
    assert all(part.is_balanced for part in parts)
    assert sum(part.arrivals for part in parts) == len(case.events)
    rejected = sum(part.rejected.get("null key", 0) for part in parts)
    assert rejected == len(case.events) - len(case.valid)
    assert max(part.max_delay for part in parts) == largest_delay(case.valid)
    for s, name in enumerate(NAMES[: case.m]):
        reached = max((e.ts for e in case.valid if e.stream == s), default=None)
        assert {part.streams[name].local_time for part in parts} == {reached}
