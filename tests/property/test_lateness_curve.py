"""One pass over a recording says what every fixed slack gives."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import engine_query
from helpers import tables as tables_of
from naive import clocks, lateness, truth
from property.strategies import cases, tried
from slackwater.engine.lateness_curve import EDGES, lateness_curve
from slackwater.engine.replay import recorded
from slackwater.engine.report import columns
from slackwater.engine.report import truth as engine_truth
from slackwater.errors import QueryError
from slackwater.kernels.histogram import bucket_of
from slackwater.testing.workloads import uniform_keys

LENGTHS = st.sampled_from([(1, 1), (4, 2), (10, 5), (6, 4), (1_000, 100)])  # P, and the grid


def clocked_case(case):
    return case._replace(pipeline="clocked", overdue="advance", late_probe="none", slack=0)


def curve_of(query, batch, over, every):
    true = columns(engine_truth(query, batch)[0].made)[:2]
    return lateness_curve(query, batch, true, over, every)


def true_lateness(case):
    """(last member, result time, lateness) of each true result."""
    known = clocks(case.valid, [0] * len(case.valid), case.m)
    common = {e: c for e, (_, c) in zip(case.valid, known, strict=True)}
    for result in truth(case.valid, *case.query):
        yield max(result, key=lambda e: e.arrival), max(result).ts, lateness(result, common)


def interval_numbers(case, every):
    """The adaptation interval of each event: one ends behind the event that passes a multiple."""
    numbers, number, top, due = {}, 0, None, None
    for e in case.valid:
        due = (e.ts // every + 1) * every if due is None else due
        numbers[e] = number
        top = e.ts if top is None else max(top, e.ts)
        if top >= due:
            number, due = number + 1, (top // every + 1) * every
    return numbers


@pytest.mark.differential
@tried()
@given(cases(slack=None), LENGTHS)
def test_the_curve_has_every_late_result_where_brute_force_has_it(case, lengths):
    case = clocked_case(case)
    query = engine_query(case)
    curve = curve_of(query, recorded(query, tables_of(case), "arr")[0], *lengths)
    intervals = interval_numbers(case, lengths[1])
    wanted = Counter(
        (intervals[last], (t - 1) // curve.width, int(bucket_of(late)))
        for last, t, late in true_lateness(case)
        if late > 0
    )
    found = Counter()
    for *key, n in zip(*(column.tolist() for column in curve.late), strict=True):
        found[tuple(key)] += n
    assert found == wanted


@pytest.mark.differential
@tried(0.5)
@given(cases(slack=None), LENGTHS, st.integers(0, 30), st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_at_the_edge_of_a_bucket_the_curve_is_what_a_run_with_that_slack_reports(
    case, lengths, bucket, target
):
    case = clocked_case(case)
    over, every = lengths
    query = engine_query(case, select="count")
    curve = curve_of(query, recorded(query, tables_of(case), "arr")[0], over, every)
    slack = int(EDGES[bucket])
    run = replace(query, goal=sw.Slack(slack)).replay(tables_of(case), arrival="arr")
    report = run.report(target, over=over, every=every)
    assert curve.recall(slack) == report.recall
    if curve.is_exact:
        assert curve.series(slack).equals(report.measurements)
        assert curve.phi(slack, target) == report.phi


# ---- a longer recording


def pair(goal=None, **options):
    a, b = (sw.Stream(name, ts="ts", window="1 second") for name in "ab")
    return sw.join(a, b, on="k", select="count", goal=goal or sw.NoSlack(), **options)


TABLES = {n: uniform_keys(4_000, i, rate_per_s=200, keys=20) for i, n in enumerate("ab", 1)}


@pytest.fixture(scope="module")
def curve():
    return curve_of(pair(), recorded(pair(), TABLES, "arrival")[0], 2_000, 1_000)


def report(slack, target=0.9):
    run = pair(sw.Slack(slack)).replay(TABLES, arrival="arrival")
    return run.report(target, over="2 seconds", every="1 second")


@pytest.mark.parametrize("slack", [200, 500, 1_000])
def test_between_two_edges_recall_is_never_too_high_and_right_for_a_slack_a_little_smaller(
    curve, slack
):
    assert report(slack * 31 // 32).recall <= curve.recall(slack) <= report(slack).recall


@pytest.mark.parametrize("target", [0.8, 0.9, 0.95, 0.99])
def test_the_best_fixed_slack_is_at_most_a_bucket_above_the_smallest_that_does(curve, target):
    best = curve.smallest_slack(target, 0.97)
    assert report(best, target).phi >= 0.97
    less = best * 31 // 32 - 1
    assert best == 0 or report(less, target).phi < 0.97


def test_latency_is_about_that_of_a_run(curve):
    for slack in (0, 100, 500, int(curve.slacks()[-1])):
        assert curve.average_latency(slack) == pytest.approx(
            report(slack).average_latency, rel=0.05
        )


def test_every_result_is_on_time_or_late(curve):
    assert curve.on_time()[1].sum() + curve.late.n.sum() == curve.n_true
    assert curve.on_time()[1].sum() == report(0).produced


@pytest.mark.compiled
def test_bins_become_wider_where_events_are_very_late():
    late = {n: t.set_column(0, "ts", pc.multiply(t["ts"], 10_000)) for n, t in TABLES.items()}
    wide = curve_of(pair(), recorded(pair(), late, None)[0], 2_000, 1_000)
    assert not wide.is_exact
    assert wide.over % wide.width == wide.every % wide.width == 0
    assert wide.over >= 2_000


def test_the_papers_pipeline_has_no_curve():
    query = pair(pipeline="icde16")
    nothing = np.empty(0, np.int64)
    with pytest.raises(QueryError, match="needs pipeline='clocked'"):
        lateness_curve(query, recorded(query, TABLES, "arrival")[0], (nothing, nothing), 10, 10)
