"""Results of several streams at once: goals, estimates, and what is made of them elsewhere."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.at_once import AtOnceEngine
from slackwater.engine.output import counts
from slackwater.engine.replay import recorded
from slackwater.engine.wait_curve import wait_curves
from slackwater.jobs.advise_kinds import KindAdvisor, measurements, sentences
from slackwater.kernels.histogram import buckets_of, upper_edges
from slackwater.stats.forgotten import UNITS, Forgotten
from slackwater.testing.oracle import exact

OVER = {"over": "5 seconds"}
A, B, C = (sw.Stream(name, "ts", 400) for name in "abc")


def table(seed, n, rate, keys):
    """Events whose delays are exponential, 120 ms on average."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, n * 1000 // rate, n))
    delay = np.minimum(rng.exponential(120, n), 5000).astype(np.int64)
    return pa.table({"ts": at - delay + 6000, "k": rng.integers(0, keys, n), "at": at})


TABLES = {name: table(seed, 15_000, 200, 100) for seed, name in enumerate("abc", 1)}
FEW = {name: table(seed, 1_500, 200, 30) for seed, name in enumerate("abc", 1)}


def query_of(**options):
    return sw.join(A, B, C, **{"on": "k", "emit": "eager"} | options)


def run(goal, tables=TABLES, **options):
    return query_of(goal=goal, **options).replay(tables, arrival="at")


# ---- goals


@pytest.mark.compiled
def test_a_recall_keeps_what_it_needs_and_no_more():
    true = run(sw.Slack(10**6)).metrics.produced
    runs = [run(sw.Recall(share, **OVER)) for share in (0.9, 0.99)]
    some, most = (r.metrics.produced / true for r in runs)
    assert 0.9 <= some < most
    assert most >= 0.985
    assert runs[0].metrics.slack < runs[1].metrics.slack
    # events are not kept much longer than the best fixed length would be, windows included
    curve = curve_of(query_of(), TABLES)
    best = next(k for k in range(0, 1000, 10) if curve.recall(k) >= 0.99)
    assert 400 + runs[1].report().average_slack <= 1.25 * (400 + best)


@pytest.mark.compiled
def test_counting_learns_the_same():
    goal = sw.Recall(0.99, **OVER)
    found, counted = run(goal), run(goal, select="count")
    assert counted.output.slacks == found.output.slacks
    assert counted.produced == found.produced
    assert counted.metrics.lost_estimated == found.metrics.lost_estimated


@pytest.mark.parametrize("lengths", [(400, 400, 400), (30, 500, 200), (300, 0, 80, 150)])
@pytest.mark.parametrize("keep", [0, 70, 10**6])
def test_counting_finds_as_many_that_had_to_be_kept_as_long(lengths, keep):
    """Once by products, once one by one."""
    known = []
    for select in ("*", "count"):
        streams = [sw.Stream(n, "ts", w) for n, w in zip("abcd", lengths, strict=False)]
        query = sw.join(*streams, on="k", emit="eager", select=select, goal=sw.Slack(keep))
        tables = {s.name: table(n, 500, 200, 7) for n, s in enumerate(streams)}
        batch, _ = recorded(query, tables, "at")
        engine = AtOnceEngine(query, {name: t.schema for name, t in tables.items()})
        engine.matcher.measures = True
        engine.feed(batch)
        produced = counts(engine.output.made, pa.schema([("ts", pa.int64()), ("n", pa.int64())]))
        known.append((engine.matcher.record.keeps.tolist(), engine.metrics(), produced))
    assert known[0][1].produced > 500
    assert keep == 0 or sum(known[0][0]) > 50
    assert known[0] == known[1]


@pytest.mark.compiled
def test_nothing_waits():
    report = run(sw.Recall(0.99, **OVER)).report(target=0.99, **OVER)
    assert report.average_wait == 0
    assert report.phi > 0.9
    assert report.recall >= 0.985


def test_a_late_event_that_completes_results_has_waited_for_none():
    rows = {"ts": [1, 2], "k": [0, 0], "at": [5, 6]}
    late = {"ts": [1], "k": [0], "at": [9]}
    found = run(sw.Slack(0), {"a": pa.table(rows), "b": pa.table(rows), "c": pa.table(late)})
    assert found.results.num_rows == 4
    assert found.report().average_wait == 0


# ---- what was lost


@pytest.mark.compiled
@pytest.mark.parametrize("keep", [0, 100, 300])
@pytest.mark.parametrize("select", ["*", "count"])
def test_results_that_were_forgotten_are_estimated(keep, select):
    true = run(sw.Slack(10**6), select="count").metrics.produced
    metrics = run(sw.Slack(keep), select=select).metrics
    lost = true - metrics.produced
    assert metrics.lost_unknown > 0
    assert metrics.lost_not_estimated == 0
    assert lost > 20
    assert abs(metrics.lost_estimated - lost) <= max(0.25 * lost, 2 * metrics.lost_estimated_error)


def missed_share(lengths, stream, behind):
    """By trying all combinations of times around an event of time 0."""
    own = range(1)
    times = [own if s == stream else range(-w, lengths[stream] + 1) for s, w in enumerate(lengths)]
    true = [
        r for r in product(*times) if all(t + w >= max(r) for t, w in zip(r, lengths, strict=True))
    ]
    kept = [
        r for r in true if all(r[s] + w >= behind for s, w in enumerate(lengths) if s != stream)
    ]
    return 1 - len(kept) / len(true)


@pytest.mark.parametrize("lengths", [(5, 5, 5), (3, 4), (2, 7, 1), (0, 3, 3), (4, 2, 3, 2)])
def test_what_an_event_misses_is_counted_for_events_that_lie_evenly(lengths):
    lost = Forgotten(lengths)
    for s in range(len(lengths)):
        behind = np.arange(max(lengths) + lengths[s] + 3)
        wanted = [missed_share(lengths, s, b) for b in behind]
        assert lost.units(s, behind) / UNITS == pytest.approx(wanted, abs=1e-6)


def test_of_long_windows_it_is_interpolated():
    short, long = Forgotten((100, 200, 150)), Forgotten((10_000, 20_000, 15_000))
    behind = np.arange(0, 260, 20)
    for s in range(3):
        found = long.units(s, 100 * behind) / UNITS
        assert found == pytest.approx(short.units(s, behind) / UNITS, abs=0.02)


# ---- advice, truth, text


def curve_of(query, tables):
    batch, _ = recorded(query, tables, "at")
    return wait_curves(query, batch, 1000, 500).kept


def test_the_curve_says_what_every_fixed_length_gives():
    query = query_of()
    curve = curve_of(query, FEW)
    assert curve.n_true == exact(query, FEW).table.num_rows
    for wait in upper_edges()[buckets_of(np.array([0, 50, 63, 300]))].tolist():  # it is exact there
        found = run(sw.Slack(wait), FEW).metrics.produced
        assert curve.recall(wait) * curve.n_true == pytest.approx(found, abs=2)
    assert curve.recall(0) < curve.recall(300) < curve.recall(10**6) == 1


def test_advice_is_about_results():
    advisor = KindAdvisor(query_of(select="count"), FEW, "at", 0.9, "1 second")
    (sentence,) = sentences(advisor, lambda time: f"{time:.0f} ms")
    assert sentence.startswith("Results: with 0.9 asked, 9")
    assert "The best fixed time to keep events" in sentence
    known = {m.name: m.value for m in measurements(advisor)}
    assert known["true results"] == advisor.parts["pairs"].curve.n_true
    assert known["results, 0.9 asked: found"] >= 0.9


def test_three_streams_at_once_in_sql():
    text = """SELECT COUNT(*) FROM a [RANGE 400 MILLISECONDS]
     JOIN b [RANGE 400 MILLISECONDS] USING (k)
     JOIN c [RANGE 400 MILLISECONDS] USING (k) WITH EMIT EAGER"""
    streams = (sw.Stream(name, "ts", "400 milliseconds") for name in "abc")
    query = sw.join(*streams, on="k", emit="eager", select="count")
    assert sw.sql(text) == query
    assert sw.sql(str(query)) == query


def test_an_error_in_a_condition_names_the_row():
    tables = {name: pa.table({"ts": [1], "x": [0], "at": [n]}) for n, name in enumerate("abc")}
    query = sw.join(A, B, C, where="a.x / b.x > c.x", emit="eager")
    with pytest.raises(sw.SlackwaterError, match="stream 'c'"):
        query.replay(tables, arrival="at")
