"""The engine against the oracle: what is produced, in which order, and what is said of the rest.

Time windows promise a subset of the truth and an exact account of what is missing. Tuple-count
windows promise the truth only with complete slack, since a missing event lets an older one stay.
"""

from collections import Counter

import pytest
from hypothesis import given

from helpers import (
    LONG,
    NAMES,
    emitted,
    engine_run,
    naive_losses,
    naive_run,
    plain,
    true_results,
)
from property.strategies import cases, largest_delay, tried

pytestmark = pytest.mark.differential


def late_events(run):
    """The rows of `run.late`, with stream numbers for names."""
    rows = run.late.to_pylist()
    return [
        (NAMES.index(r["stream"]), r["ts"], r["late_by"], r["kept"], r["lost"], r["exact"])
        for r in rows
    ]


# ---- results


@tried()
@given(cases(slack="complete"))
def test_slack_no_smaller_than_every_delay_gives_exactly_the_true_results(case):
    run = engine_run(case)
    assert sorted(emitted(run, case.m)) == true_results(case)
    assert run.metrics.late_kept == run.metrics.late_dropped == run.metrics.lost == 0


@tried()
@given(cases(windows="tuples", slack="complete"))
def test_complete_slack_gives_exactly_the_true_results_of_tuple_count_windows(case):
    assert sorted(emitted(engine_run(case), case.m)) == true_results(case)


@tried()
@given(cases(windows="mixed", slack="complete"))
def test_complete_slack_gives_exactly_the_true_results_of_mixed_windows(case):
    assert sorted(emitted(engine_run(case), case.m)) == true_results(case)


@tried()
@given(cases())
def test_any_slack_gives_a_subset_of_the_truth_in_order_without_duplicates(case):
    results = emitted(engine_run(case), case.m)
    assert len(results) == len(set(results))
    assert set(results) <= set(true_results(case))
    times = [ts for ts, _ in results]
    assert times == sorted(times)


@tried()
@given(cases())
def test_the_engine_is_the_oracles_pipeline_result_for_result(case):
    produced, late = naive_run(case)
    run = engine_run(case)
    assert sorted(emitted(run, case.m)) == plain(produced)
    assert [e[:2] for e in late_events(run)] == [(e.stream, e.ts) for e, _ in late]
    assert [e[3] for e in late_events(run)] == [kept for _, kept in late]


@tried()
@given(cases(windows="mixed"))
def test_the_engine_is_the_oracles_pipeline_with_tuple_count_windows(case):
    produced, late = naive_run(case)
    run = engine_run(case)
    results = emitted(run, case.m)
    assert sorted(results) == plain(produced)
    assert [ts for ts, _ in results] == sorted(ts for ts, _ in results)
    assert [e[:2] for e in late_events(run)] == [(e.stream, e.ts) for e, _ in late]
    assert [e[3] for e in late_events(run)] == [kept for _, kept in late]


# ---- what is missing


@tried()
@given(cases())
def test_produced_and_lost_make_up_the_truth_when_retention_is_long(case):
    run = engine_run(case, retention=LONG)
    assert run.metrics.lost_unknown == 0
    assert run.metrics.produced + run.metrics.lost == len(true_results(case))
    assert late_events(run) == [(*event, True) for event in naive_losses(case)]


@tried()
@given(cases())
def test_retention_that_grows_never_counts_too_much_and_says_when_it_is_unsure(case):
    run = engine_run(case)
    true = len(true_results(case))
    assert run.metrics.produced + run.metrics.lost <= true
    if run.metrics.lost_unknown == 0:
        assert run.metrics.produced + run.metrics.lost == true
    for said, known in zip(late_events(run), naive_losses(case), strict=True):
        *rest, lost, exact = said
        assert (*rest,) == known[:-1]
        assert lost == known[-1] if exact else lost <= known[-1]


@tried()
@given(cases())
def test_late_results_on_request_are_exactly_the_missing_ones(case):
    run = engine_run(case, late="emit", retention=LONG)
    late = run.results["late"].to_pylist()
    results = emitted(run, case.m)
    on_time = [r for r, behind in zip(results, late, strict=True) if not behind]
    assert sorted(on_time) == plain(naive_run(case)[0])
    assert sorted(results) == true_results(case)


@tried()
@given(cases())
def test_late_events_may_be_dropped_without_a_look(case):
    run = engine_run(case, late="drop")
    assert sorted(emitted(run, case.m)) == plain(naive_run(case)[0])
    assert run.metrics.late_kept + run.metrics.late_dropped == len(run.late)


# ---- counts


@tried()
@given(cases(windows="mixed"))
def test_counting_is_as_good_as_materialising_with_tuple_count_windows(case):
    _same_counts(case)


@tried()
@given(cases())
def test_counting_is_as_good_as_materialising(case):
    _same_counts(case)


def _same_counts(case):
    counted, made = engine_run(case, select="count"), engine_run(case)
    expected = sorted(Counter(ts for ts, _ in emitted(made, case.m)).items())
    assert list(zip(*counted.results.to_pydict().values(), strict=True)) == expected
    assert counted.produced == made.produced
    assert counted.produced.to_pydict() == counted.results.to_pydict()
    assert counted.late == made.late
    assert counted.metrics == made.metrics


@tried()
@given(cases(windows="mixed"))
def test_every_arrival_is_accounted_for_once(case):
    m = engine_run(case).metrics
    assert m.arrivals == len(case.events)
    assert m.arrivals == m.in_order + m.late_kept + m.late_dropped + m.buffered + m.shed + sum(
        m.rejected.values()
    )
    rejected = len(case.events) - len(case.valid)
    assert m.rejected == ({"null key": rejected} if rejected else {})
    _, late = naive_run(case)
    assert m.late_kept == sum(kept for _, kept in late)
    assert m.in_order == len(case.valid) - len(late)
    assert m.buffered == m.shed == 0  # a replay ends with a flush
    assert m.max_delay == largest_delay(case.valid)


@tried(0.5)
@given(cases())
def test_the_slack_series_follows_the_largest_delay_or_stays(case):
    series = [(row["ts"], row["k"]) for row in engine_run(case).slack.to_pylist()]
    local, k, top, expected = {}, case.slack or 0, None, []
    for e in case.valid:
        local[e.stream] = max(local.get(e.stream, e.ts), e.ts)
        top = e.ts if top is None else max(top, e.ts)
        if not expected:
            expected.append((e.ts, k))
        if case.slack is None and local[e.stream] - e.ts > k:
            k = local[e.stream] - e.ts
            expected.append((top, k))
    assert series == expected
