"""What is lost beyond retention, on cases that one can check by eye, and on average."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import fed
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored
from slackwater.events.limits import Limits
from slackwater.stats.sampling import Sampling

ALL = Sampling(share=1.0, times=100)


def metrics_of(query, tables, sampling):
    batch, _ = recorded(query, tables, "at")
    schemas = {name: table.schema for name, table in tables.items()}
    engine = JoinEngine(query, schemas, sampling=sampling)
    engine.feed(batch)
    engine.flush()
    return engine.metrics()


def by_eye(story, sampling, windows=(10, 10), **options):
    """Events like a100 in arrival order; all have the same key. Retention is 10."""
    arrivals = [(event[0], int(event[1:])) for event in story.split()]
    names = "abc"[: len(windows)]
    tables = {
        name: pa.table(
            {
                "ts": [ts for s, ts in arrivals if s == name],
                "at": [n for n, (s, _) in enumerate(arrivals) if s == name],
            }
        )
        for name in names
    }
    streams = [sw.Stream(n, ts="ts", window=w) for n, w in zip(names, windows, strict=True)]
    query = sw.join(*streams, goal=sw.Slack(0), **options)
    return metrics_of(query, tables, sampling)


def counts(metrics):
    return (metrics.produced, metrics.lost, metrics.lost_unknown, metrics.lost_estimated)


# ---- by eye


def test_a_result_whose_partner_is_gone_from_the_join_is_found_in_the_sample():
    # the clock is at 200 when b105 comes: the join has a from 200 - 10 - 10 = 180 on, not a100
    metrics = by_eye("a100 b100 a200 b200 b105", ALL)
    assert counts(metrics) == (2, 0, 1, 1)
    assert metrics.lost_not_estimated == 0


def test_what_the_join_has_counted_itself_is_not_estimated_again():
    # b185 joins a177, which the join has forgotten, and a190, which it has not
    assert counts(by_eye("a177 b177 a190 b190 a200 b200 b185", ALL)) == (5, 1, 1, 1)


def test_a_late_event_is_also_a_partner_of_one_that_comes_later_still():
    # a100 is in no window any more when it comes; b105 finds it in the sample
    assert counts(by_eye("a200 b200 a100 b105", ALL)) == (1, 0, 2, 1)


def test_three_streams_are_counted_with_all_that_they_share():
    # a100 with b95 at 100, with b105 at 105: once with c96, and once with c104 at 105
    story = "b95 c96 c104 b105 a90 a200 b200 c200 a100"
    metrics = by_eye(story, ALL, windows=(10, 10, 10))
    assert counts(metrics) == (1 + 1, 0, 1, 4)


def test_beyond_the_reach_of_the_sample_only_events_are_counted():
    metrics = by_eye("a100 b100 a200 b200 b105", Sampling(share=1.0, times=1))
    assert counts(metrics) == (2, 0, 1, 0)
    assert metrics.lost_not_estimated == 1


def test_a_sample_that_found_nothing_gives_a_bound_instead_of_zero():
    one_in_16 = {seed: Sampling(share=1 / 16, seed=seed) for seed in range(64)}
    stories = {n: by_eye("a100 b100 a200 b200 b105", one_in_16[n]) for n in one_in_16}
    found = {metrics.lost_estimated for metrics in stories.values()}
    assert found == {0, 16}  # a100 is in the sample, or not
    for metrics in stories.values():
        error = 48 if metrics.lost_estimated == 0 else 2 * (15 / 16 * 16**2) ** 0.5
        assert metrics.lost_estimated_error == pytest.approx(error)


@pytest.mark.parametrize(
    "options", [{"retention": 10}, {"late": "drop"}, {"pipeline": "icde16"}, {"shed": "adaptive"}]
)
def test_without_a_sample_the_event_is_said_to_be_unknown(options):
    metrics = by_eye("a100 b100 a200 b200 b105", ALL, **options)
    assert metrics.lost_not_estimated == metrics.lost_unknown == 1
    assert (metrics.lost_estimated, metrics.sampled) == (0, 0)


# ---- on average


def skewed(m, n=600, seed=3):
    """Events of m streams with a few hot keys; one in eight is far too late."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 900, n))
    key = np.minimum(rng.zipf(1.6, n), 9)
    stream = rng.integers(0, m, n)
    at = ts + np.where(rng.random(n) < 0.125, rng.integers(60, 400, n), 0)
    return {
        name: pa.table(
            {c: v[stream == s] for c, v in (("ts", ts), ("k", key), ("at", at.astype(float)))}
        )
        for s, name in enumerate("abcd"[:m])
    }


@pytest.mark.compiled
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("key", ["k", None])
def test_the_estimate_is_right_on_average_and_so_is_its_variance(m, key):
    tables = skewed(m, n=600 if key else 300)
    streams = [sw.Stream(name, ts="ts", window=6) for name in tables]
    query = sw.join(*streams, on=key, goal=sw.Slack(0), select="count")
    all_found = metrics_of(query, tables, Sampling(share=1.0, times=10**6))
    true = all_found.lost_estimated
    assert true > 30
    runs = [
        metrics_of(query, tables, Sampling(share=0.25, times=10**6, seed=seed))
        for seed in range(200)
    ]
    found = np.array([run.lost_estimated for run in runs])
    variance = np.array(
        [(run.lost_estimated_error / 2) ** 2 * (run.lost_estimated > 0) for run in runs]
    )
    error = found.std() / np.sqrt(len(runs))
    assert abs(found.mean() - true) < 3 * error
    assert variance.mean() == pytest.approx(found.var(), rel=0.3)
    assert {(run.produced, run.lost) for run in runs} == {(all_found.produced, all_found.lost)}


# ---- one event an hour late


def an_hour_late(hours):
    """Small delays for more than an hour; behind them one event `hours` late, if that is not 0."""
    rng = np.random.default_rng(5)
    n = 30_000
    ts = np.sort(rng.integers(0, 5_000_000, n))
    at = ts + rng.integers(0, 300, n)
    stream = rng.integers(0, 2, n)
    if hours:
        late = 4_900_000 - hours * 3_600_000
        ts, at, stream = np.append(ts, late), np.append(at, 4_900_000), np.append(stream, 0)
    return {
        name: pa.table({"ts": ts[stream == s], "at": at[stream == s].astype(float)})
        for s, name in enumerate("ab")
    }


@pytest.mark.compiled
@pytest.mark.parametrize("hours", [1 / 120, 1])
def test_one_very_late_event_costs_no_memory_and_is_reported(hours):
    a, b = (sw.Stream(name, ts="ts", window="5 s") for name in "ab")
    query = sw.join(a, b, goal=sw.Recall(0.95, over="1 minute"))
    without = metrics_of(query, an_hour_late(0), Sampling())
    metrics = metrics_of(query, an_hour_late(hours), Sampling())
    assert metrics.stored <= 2 * without.stored
    assert metrics.sampled <= 2 * without.stored
    assert metrics.late_dropped == 1
    assert metrics.lost_unknown > 0
    if hours == 1:
        assert (without.lost_not_estimated, metrics.lost_not_estimated) == (0, 1)
    else:  # 30 s: about 30 partners, all of them in the reach of the sample
        assert metrics.lost_not_estimated == 0
        assert metrics.lost_estimated > 0
        assert metrics.lost_estimated_error > 0


# ---- memory


@pytest.mark.compiled
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("key_type", [pa.int64(), pa.string()])
def test_keys_that_come_and_go_change_nothing(m, key_type):
    """Codes are cleaned up and logs are trimmed all the time, or never; some keys are null."""
    rng = np.random.default_rng(8)
    n = 12_000
    ts = np.sort(rng.integers(0, 60_000, n))
    key = (ts // 40 + rng.integers(0, 3, n)) % 997
    at = ts + np.where(rng.random(n) < 0.02, rng.integers(100, 900, n), 0)
    stream = rng.integers(0, m, n)
    keys = pa.array(key, pa.int64(), mask=rng.random(n) < 0.01).cast(key_type)
    tables = {
        name: pa.table({"ts": ts, "k": keys, "at": at.astype(float)}).filter(stream == s)
        for s, name in enumerate("abc"[:m])
    }
    streams = [sw.Stream(name, ts="ts", window=30) for name in tables]
    goal = sw.Recall(0.05, over="10 s")  # so much may be lost that little is kept for late events
    query = sw.join(*streams, on="k", goal=goal, select="count")
    batch, _ = recorded(query, tables, "at")
    sampling = Sampling(share=0.25, times=12)
    few = Limits(arrivals_at_once=200, code_cleanup=8, smallest_store=16, smallest_table=4)
    whole = fed(query, batch, sampling=sampling)[-1]
    assert whole.lost_estimated > 0
    assert whole.sampled < n / 8
    assert fed(query, batch, (700,), sampling=sampling, limits=few)[-1] == whole
    assert fed(query, batch, (2500,), restart=True, sampling=sampling, limits=few)[-1] == whole


# ---- another sample, or none, in the snapshot


def test_a_sample_that_begins_with_a_restart_says_what_it_has_not_seen():
    a, b = (sw.Stream(name, ts="ts", window=10) for name in "ab")
    query = sw.join(a, b, goal=sw.Slack(0))
    tables = {
        "a": pa.table({"ts": [100, 200, 300], "at": [0, 2, 5]}),
        "b": pa.table({"ts": [100, 200, 105, 300], "at": [1, 3, 4, 6]}),
    }
    batch, _ = recorded(query, tables, "at")
    first, last = batch.slices(4)
    schemas = {name: table.schema for name, table in tables.items()}
    engine = JoinEngine(query, schemas, sampling=ALL)
    engine.feed(first)
    other = Sampling(share=1.0, times=50)
    engine = restored(engine.snapshot(), JoinEngine(query, schemas, sampling=other))
    engine.feed(last)
    assert engine.metrics().lost_not_estimated == engine.metrics().lost_unknown == 1
