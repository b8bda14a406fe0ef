"""The report, on cases small enough to work out by hand."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.report import recall_series
from slackwater.jobs.advise import Advisor


def joined(a, b, windows=(2, 2), **options):
    tables = {
        "a": pa.table({"ts": [t for t, _ in a], "arr": [r for _, r in a]}),
        "b": pa.table({"ts": [t for t, _ in b], "arr": [r for _, r in b]}),
    }
    streams = [sw.Stream(name, "ts", w) for name, w in zip("ab", windows, strict=True)]
    return sw.join(*streams, **{"goal": sw.NoSlack()} | options).replay(tables, arrival="arr")


def test_recall_series_slack_and_latency_by_hand():
    # a arrives   1  2  3  4 ... in order; b2 comes when b is at 4
    a = [(t, 10 * t) for t in range(1, 9)]
    b = [(1, 11), (3, 31), (4, 41), (2, 42), (5, 51), (6, 61), (7, 71), (8, 81)]
    run = joined(a, b, windows=(0, 0))
    # true: 1..8; with K = 0 the late 2 is lost
    report = run.report(target=0.9, over=2, every=1)
    assert (report.true, report.produced, report.recall) == (8, 7, 7 / 8)
    series = report.measurements.to_pydict()
    assert series["ts"] == [3, 4, 5, 6, 7, 8]
    assert series["true"] == [2] * 6
    assert series["recall"] == [0.5, 1, 1, 1, 1, 1]
    assert report.phi == 5 / 6
    assert report.average_slack == 0
    assert report.precision == 1.0
    assert report.as_dict()["produced"] == 7
    # b1 completes a1 when it arrives: no wait; the last pair waits for nothing either
    assert report.average_wait == 0.0


def test_slack_costs_its_length_in_latency():
    a = [(t, t) for t in range(0, 100)]
    run = joined(a, a, goal=sw.Slack(10))
    report = run.report(over=10, every=1)
    assert report.recall == 1.0
    assert report.average_slack == 10
    assert 9 <= report.average_latency <= 11
    assert report.latency_95 <= 11
    assert report.average_wait > 8
    assert report.wait_95 <= 11


def with_a_gap(length):
    """Two minutes of two streams, and two more that begin so much later."""
    rng = np.random.default_rng(5)
    ts = np.concatenate([np.arange(0, 120_000, 20), length + np.arange(120_000, 240_000, 20)])
    late = np.where(rng.random(len(ts)) < 0.1, rng.exponential(2_000, len(ts)), 0)
    of = rng.integers(0, 2, len(ts))
    keys = rng.integers(0, 5, len(ts))
    return {
        name: pa.table({"ts": ts[of == s], "k": keys[of == s], "arr": (ts + late)[of == s]})
        for s, name in enumerate("ab")
    }


def test_an_hour_in_which_nothing_happens_is_no_latency():
    streams = [sw.Stream(name, "ts", "200 ms") for name in "ab"]
    latency = {}
    for slack in ("1 s", "3 s"):
        query = sw.join(*streams, on="k", goal=sw.Slack(slack))
        without, with_gap = (
            query.replay(with_a_gap(length), arrival="arr").report() for length in (0, 3_600_000)
        )
        assert with_gap.average_latency == pytest.approx(without.average_latency, rel=0.02)
        assert with_gap.latency_95 == pytest.approx(without.latency_95, rel=0.02)
        latency[slack] = with_gap.average_latency
        advice = Advisor(query, with_a_gap(3_600_000), "arr", over="1 minute")
        for found in (advice.result(sw.Slack(slack)), advice._replayed(sw.Slack(slack))):
            assert found.average_latency == pytest.approx(without.average_latency, rel=0.05)
    assert latency["1 s"] < latency["3 s"]


def test_tuple_count_windows_report_recall_and_precision():
    # b: window of the last 1 tuple. b3 is late, so a4 is paired with b2 instead of b3.
    a = [(1, 10), (4, 40), (9, 90)]
    b = [(2, 20), (6, 41), (3, 42), (9, 91)]
    run = joined(a, b, windows=(100, sw.Tuples(1)))
    report = run.report(over=1, every=1)
    assert report.precision is not None
    assert report.precision < 1.0
    assert report.recall < 1.0
    counted = joined(a, b, windows=(100, sw.Tuples(1)), select="count").report(over=1, every=1)
    assert counted.precision is None
    exact = joined(a, b, windows=(100, sw.Tuples(1)), goal=sw.Slack(10)).report(over=1, every=1)
    assert (exact.recall, exact.precision) == (1.0, 1.0)


def test_a_report_must_be_asked_for_sensibly():
    run = joined([(1, 1)], [(1, 1)])
    with pytest.raises(sw.QueryError, match="target must be between 0 and 1, got 95"):
        run.report(target=95)
    with pytest.raises(sw.QueryError, match="over and every must be at least 1 ms"):
        run.report(over=0)


def test_nothing_to_find_is_nothing_lost():
    report = joined([(1, 1)], [(50, 50)]).report(over=1, every=1)
    assert (report.true, report.recall, report.phi, report.latency_95) == (0, 1.0, 1.0, 0.0)


def test_the_truth_has_what_was_shed():
    every = [(t, t) for t in range(200)]
    busy = joined(every, every, windows=(50, 50), select="count", shed=sw.Harvest(budget=100))
    whole = joined(every, every, windows=(50, 50), select="count")
    assert busy.metrics.produced < whole.metrics.produced
    report = busy.report(over=10, every=1)
    assert report.true == whole.metrics.produced
    assert report.recall == busy.metrics.produced / whole.metrics.produced


def test_recall_is_measured_wherever_the_period_has_a_true_result():
    rng = np.random.default_rng(7)
    for _ in range(50):
        true_ts = np.sort(rng.integers(-300, 300, rng.integers(0, 12)))
        true_n = rng.integers(1, 4, len(true_ts))
        made_n = rng.integers(0, true_n + 1)
        p, step = (int(n) for n in rng.integers(1, 40, 2))
        begin, end = -200, 250
        series = recall_series(true_ts, made_n, true_ts, true_n, begin, end, p, step)
        expected = []
        for t in range(begin, end + 1):
            inside = (t - p < true_ts) & (true_ts <= t)
            if t % step == 0 and inside.any():
                expected.append((t, made_n[inside].sum(), true_n[inside].sum()))
        found = [series[name].to_pylist() for name in ("ts", "produced", "true")]
        assert list(zip(*found, strict=True)) == expected
