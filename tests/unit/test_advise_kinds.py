"""Advice about joins of all kinds: one pass says what replays of every fixed wait measure."""

import numpy as np
import pytest

import slackwater as sw
from recorded import tables
from slackwater.engine.replay import recorded
from slackwater.engine.wait_curve import wait_curves
from slackwater.jobs.advise_kinds import KindAdvisor, measurements, sentences
from slackwater.kernels.histogram import buckets_of, upper_edges
from slackwater.testing.oracle import exact

TABLES = tables()
DECIDED = ("left", "right", "full", "anti")


def query_of(how, emit, **options):
    lengths = (None, None) if how == "asof" else (60, 40)
    options = {"tolerance": 60 if how == "asof" else None} | options
    named = zip("ab", lengths, strict=True)
    streams = [sw.Stream(name, "ts", length) for name, length in named]
    return sw.join(*streams, on="k", how=how, emit=emit, **options)


def share_with(query, wait):
    """What a replay with this fixed wait measures, corrections included."""
    run = query_of(query.how, query.emit, goal=sw.Slack(wait), retention=10**6, late="emit").replay(
        TABLES, arrival="arrival"
    )
    metrics = run.metrics
    if query.how == "asof":
        rows = run.results.to_pylist()
        wrong = {r["a_v"] for r in rows if r["change"] == "update" or r["late"]}
        return 1 - len(wrong) / TABLES["a"].num_rows
    given = metrics.unmatched_rows + metrics.unmatched_rows_late
    n_true = given - metrics.withdrawn_rows
    return n_true / given


@pytest.mark.parametrize("wait", [0, 100, 400])
@pytest.mark.parametrize("emit", ["ordered", "eager"])
@pytest.mark.parametrize("how", [*DECIDED, "asof"])
def test_the_curve_says_what_every_fixed_wait_gives(how, emit, wait):
    query = query_of(how, emit)
    wait = int(upper_edges()[buckets_of(np.array([wait]))[0]])  # there the curve is exact
    batch, _ = recorded(query, TABLES, "arrival")
    curve = wait_curves(query, batch, 1000, 500).alone
    found, measured = curve.recall(wait), share_with(query, wait)
    if emit == "ordered" and how != "asof":
        # late events count as late rows, or not at all if their partners came first
        assert found == pytest.approx(measured, abs=0.02)
    else:
        assert found == pytest.approx(measured, abs=1e-3)  # of clocks that jump past two times


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_eager_pairs_are_found_as_long_as_events_are_kept(how):
    query = query_of(how, "eager")
    batch, _ = recorded(query, TABLES, "arrival")
    curve = wait_curves(query, batch, 1000, 500).kept
    assert curve.n_true == exact(query, TABLES).table.num_rows
    for wait in (0, 50, 63):
        found = query_of(how, "eager", goal=sw.Slack(wait)).replay(TABLES, arrival="arrival")
        assert curve.recall(wait) * curve.n_true == pytest.approx(found.results.num_rows, abs=2)
    assert curve.recall(0) < curve.recall(63) < curve.recall(10**6) == 1


@pytest.mark.parametrize(
    ("how", "emit", "parts"),
    [
        ("left", "eager", ["pairs", "alone"]),
        ("full", "ordered", ["pairs", "alone"]),
        ("anti", "ordered", ["alone"]),
        ("asof", "eager", ["rows"]),
        ("semi", "ordered", ["rows"]),
        ("inner", "eager", ["pairs"]),
    ],
)
def test_each_kind_of_row_has_its_own_advice(how, emit, parts):
    advisor = KindAdvisor(query_of(how, emit), TABLES, "arrival", 0.9, "1 second")
    for _, step in advisor.steps():
        step()
    assert list(advisor.parts) == parts
    for name, part in advisor.parts.items():
        shares = [part.curve.recall(wait) for wait in advisor.slacks]
        assert shares == sorted(shares) and shares[-1] == 1
        result, best = advisor.result(name, 0.9), advisor.best_wait(name, 0.9)
        assert 0 < result.recall <= 1
        assert part.curve.phi(best, 0.9) >= result.phi(0.9)
    told = {one.name for one in measurements(advisor)}
    assert any(name.endswith("0.9 asked: best fixed") for name in told)
    assert len(sentences(advisor, str)) == len(parts)
