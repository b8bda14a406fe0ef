"""Results of any number of streams at once, against the oracle."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import (
    FEW_BUCKETS,
    LONG,
    engine_query,
    members,
    replicate,
    schemas,
    shard_batch,
    shards,
    tables,
    true_results,
)
from kinds_of_joins import fed
from naive_at_once import AtOnce
from property.strategies import cases, tried
from slackwater.engine.at_once import AtOnceEngine
from slackwater.engine.match import MatchEngine
from slackwater.engine.replay import recorded
from slackwater.events.limits import Limits
from slackwater.kernels.histogram import bucket_of

SILENCE = st.sampled_from([None, None, 5, 40])
KEEPS = st.sampled_from([0, 2, 9, LONG, LONG])
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
GOAL = sw.Recall(0.9, over=40, every=4)
LIMITS = st.sampled_from([
    FEW_BUCKETS,
    Limits(arrivals_at_once=5, results_at_once=1, code_cleanup=2, smallest_store=16),
])  # fmt: skip


@st.composite
def eager_cases(draw, **options):
    """Inner joins of two to five streams with time windows, at any K."""
    case = draw(cases(options=False, **options))._replace(pipeline="clocked")
    if draw(st.booleans()):
        return case
    return case._replace(bounds="(]", windows=[max(1, w) for w in case.windows])


def oracle(case):
    """What the case means, without its K."""
    opened = case.bounds == "(]"
    return AtOnce(tuple(w - opened for w in case.windows), case.graph.holds)


def played(case, keep, idle_after=None, arrivals=None):
    """The oracle's results."""
    arrivals = case.valid if arrivals is None else arrivals
    options = {"follow": case.slack is None, "idle_after": idle_after}
    return list(oracle(case).play(arrivals, case.slack or 0, keep, **options))


def plain(found):
    """Results as (time, arrival numbers)."""
    return [(f.ts, tuple(e.arrival for e in f.members)) for f in found]


def batch_of(case, keep, **options):
    """The query and its arrivals."""
    query = engine_query(case, emit="eager", retention=keep, **options)
    return query, recorded(query, tables(case), "arr")[0]


@pytest.mark.differential
@tried()
@given(eager_cases(), KEEPS, SILENCE, LIMITS)
def test_results_are_those_of_the_oracle(case, keep, idle_after, limits):
    query, batch = batch_of(case, keep)
    found = members(fed(query, batch, idle_after=idle_after, limits=limits)[0], case.m)
    assert sorted(found) == sorted(plain(played(case, keep, idle_after)))


@pytest.mark.differential
@tried(0.5)
@given(eager_cases(), KEEPS)
def test_each_goes_out_with_the_arrival_of_its_last_member(case, keep):
    """So many results are there behind each arrival, and they are those."""
    query, batch = batch_of(case, keep)
    found = members(fed(query, batch, sizes=[1])[0], case.m)
    wanted = played(case, keep)
    last = [max(numbers) for _, numbers in found]
    assert last == sorted(last)
    assert Counter(last) == Counter(case.valid[f.during].arrival for f in wanted)


@pytest.mark.differential
@tried(0.5)
@given(eager_cases(), st.sampled_from([None, 0, 9]))
def test_all_true_results_are_found_if_nothing_is_forgotten(case, slack):
    case = case._replace(slack=slack)
    query, batch = batch_of(case, LONG)
    *_, metrics = answer = fed(query, batch)
    assert sorted(members(answer[0], case.m)) == true_results(case)
    assert metrics.lost_unknown == metrics.lost_estimated == 0


@pytest.mark.differential
@tried()
@given(eager_cases(), KEEPS, SILENCE, LIMITS)
def test_counting_gives_the_numbers_of_results_by_time(case, keep, idle_after, limits):
    query, batch = batch_of(case, keep, select="count")
    table, *_, metrics = fed(query, batch, idle_after=idle_after, limits=limits)
    wanted = Counter(f.ts for f in played(case, keep, idle_after))
    assert dict(zip(*(table[name].to_pylist() for name in table.column_names), strict=True)) == (
        dict(wanted)
    )
    assert table["result_ts"].to_pylist() == sorted(wanted)
    assert metrics.produced == wanted.total()


@pytest.mark.determinism
@tried(0.5)
@given(eager_cases(), KEEPS, CUTS, st.booleans(), SILENCE, st.sampled_from(["*", "count"]))
def test_cuts_and_restarts_change_nothing(case, keep, sizes, restart, idle_after, select):
    query, batch = batch_of(case, keep, select=select, result_id=select == "*")
    whole = fed(query, batch, idle_after=idle_after)
    again = fed(query, batch, sizes, restart, idle_after=idle_after)
    assert again == whole


@pytest.mark.determinism
@tried(0.5)
@given(eager_cases(), CUTS, st.booleans(), st.sampled_from(["*", "count"]))
def test_so_do_they_with_a_goal(case, sizes, restart, select):
    query, batch = batch_of(case, None, select=select)
    query = replace(query, goal=GOAL)
    assert fed(query, batch, sizes, restart) == fed(query, batch)


@pytest.mark.determinism
@tried(0.5)
@given(eager_cases(), KEEPS, st.integers(1, 8), SILENCE, CUTS, st.booleans())
def test_shards_give_the_same_results_together(case, keep, n, idle_after, sizes, restart):
    case = case._replace(slack=case.slack or 0)  # each shard would follow the delays of its own
    is_keyed = case.kind in ("key", "keys")
    arriving = shards(case, n) if is_keyed else shards(case, n, replicate)
    query, found = batch_of(case, keep)[0], []
    for own in arriving:
        options = {"common_clock": True, "idle_after": idle_after}
        table = fed(query, shard_batch(case, own), sizes, restart, **options)[0]
        found += members(table, case.m)
    assert sorted(found) == sorted(plain(played(case, keep, idle_after)))


@pytest.mark.differential
@tried(0.5)
@given(eager_cases(), KEEPS, st.sampled_from(["*", "count"]))
def test_how_long_members_had_to_be_kept_is_known(case, keep, select):
    query, batch = batch_of(case, keep, select=select)
    engine = AtOnceEngine(query, schemas(query, batch), limits=FEW_BUCKETS)
    engine.matcher.measures = True  # as with a goal; here K stays what it is
    engine.feed(batch)
    keeps = engine.matcher.record.keeps
    wanted = Counter(int(bucket_of(f.needed)) for f in played(case, keep) if f.needed > 0)
    assert {int(b): int(keeps[b]) for b in keeps.nonzero()[0]} == wanted


@pytest.mark.differential
@tried(0.5)
@given(eager_cases(), KEEPS)
def test_a_result_is_found_if_its_members_are_kept_as_long_as_it_needs(case, keep):
    """With K = 0 what is kept is that which is no more than `keep` behind the common clock."""
    case = case._replace(slack=0)
    keep = 0 if keep == LONG else keep
    complete = played(case._replace(slack=None), LONG)
    query, batch = batch_of(case, keep)
    found = set(members(fed(query, batch)[0], case.m))
    needs = dict(zip(plain(complete), (f.needed for f in complete), strict=True))
    assert found == {r for r, needed in needs.items() if needed <= keep}


@pytest.mark.differential
@tried(0.5)
@given(eager_cases(kinds=("key", "cross", "theta")), KEEPS, st.booleans())
def test_two_streams_are_joined_as_by_the_other_engine(case, keep, has_goal):
    """K, results and all counters are the same; only the estimate of what was lost is rounded."""
    case = case._replace(windows=case.windows[:2], events=[e for e in case.events if e.stream < 2])
    query, batch = batch_of(case, None if has_goal else keep)
    if has_goal:
        query = replace(query, goal=GOAL)
    answers = []
    for engine_of in (AtOnceEngine, MatchEngine):
        engine = engine_of(query, schemas(query, batch), limits=FEW_BUCKETS)
        output = engine.feed(batch)
        output.extend(engine.flush())
        known = replace(engine.metrics(), lost_estimated=0, lost_estimated_error=0.0)
        answers.append((sorted(members(output.table, 2)), output.slacks, known))
    assert answers[0] == answers[1]


@tried(0.5)
@given(eager_cases(), KEEPS)
def test_every_arrival_is_counted_once(case, keep):
    query, batch = batch_of(case, keep)
    metrics = fed(query, batch)[-1]
    assert metrics.is_balanced
    assert metrics.in_order + metrics.late_dropped == len(case.valid)
    assert metrics.late_kept == 0
