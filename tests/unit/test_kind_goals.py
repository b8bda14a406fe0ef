"""What a goal means for rows without partner, as-of rows and pairs that are given out at once."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw

OVER = {"over": "5 seconds"}


def table(seed, n=15_000, rate=200):
    """Events whose delays are exponential, 120 ms on average."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, n * 1000 // rate, n))
    delay = np.minimum(rng.exponential(120, n), 5000).astype(np.int64)
    return pa.table({"ts": at - delay + 6000, "k": rng.integers(0, 300, n), "at": at})


TABLES = {"l": table(1), "r": table(2)}


def run(how, emit, goal):
    is_asof = how == "asof"
    streams = [sw.Stream(name, "ts", None if is_asof else 400) for name in "lr"]
    tolerance = 1500 if is_asof else None
    query = sw.join(*streams, on="k", how=how, emit=emit, goal=goal, tolerance=tolerance)
    return query.replay(TABLES, arrival="at")


@pytest.mark.compiled
@pytest.mark.parametrize("emit", ["ordered", "eager"])
@pytest.mark.parametrize("how", ["left", "anti", "asof"])
def test_the_share_of_right_rows_is_the_one_asked_for(how, emit):
    goals = [sw.Recall(share, **OVER) for share in (0.95, 0.99)]
    runs = [run(how, emit, goal) for goal in goals]
    right = [1 - r.metrics.withdrawn_rows / r.metrics.unmatched_rows for r in runs]
    assert right[0] >= 0.94
    assert right[1] >= 0.985
    waits = [np.mean(np.concatenate(r.output.waits)) for r in runs]
    assert waits[0] <= waits[1]


@pytest.mark.compiled
def test_rows_without_partner_may_have_a_share_of_their_own():
    plain, careful = (
        run("left", "eager", sw.Recall(0.95, **OVER, unmatched=share)) for share in (0.9, 0.999)
    )
    wrong = [r.metrics.withdrawn_rows / r.metrics.unmatched_rows for r in (plain, careful)]
    assert wrong[1] < 0.003 < wrong[0]
    assert plain.metrics.slack < careful.metrics.slack


@pytest.mark.compiled
def test_an_eager_recall_keeps_what_it_needs_and_no_more():
    all_pairs = run("inner", "eager", sw.MaxSlack()).results.num_rows
    some, most = (run("inner", "eager", sw.Recall(share, **OVER)) for share in (0.9, 0.99))
    assert 0.9 <= some.results.num_rows / all_pairs < most.results.num_rows / all_pairs
    assert most.results.num_rows / all_pairs >= 0.985
    assert some.metrics.slack < most.metrics.slack


# ---- what is rare, or comes later than events are kept at first


def paired(late_by):
    """Each right event has the key and time of a left one; a tenth of them are missing or late."""
    rng = np.random.default_rng(5)
    n = 6_000
    ts = np.sort(rng.integers(0, 1_200_000, n))
    there = rng.random(n) > 0.1
    at = ts + np.where(rng.random(n) < 0.1, rng.integers(late_by // 2, late_by, n), 0)
    order = np.argsort(at[there], kind="stable")
    right = {"ts": ts, "k": np.arange(n), "at": at}
    return {
        "l": pa.table({"ts": ts, "k": np.arange(n), "at": ts}),
        "r": pa.table({name: values[there][order] for name, values in right.items()}),
    }


@pytest.mark.compiled
@pytest.mark.parametrize("how", ["left", "anti", "asof"])
@pytest.mark.parametrize("emit", ["ordered", "eager"])
def test_partners_that_come_much_later_than_windows_are_long_are_learnt(how, emit):
    """The wait that is needed is 20 times the window: events are kept until it is known."""
    tables = paired(late_by=20_000)
    is_asof = how == "asof"
    streams = [sw.Stream(name, "ts", None if is_asof else 500) for name in "lr"]
    goal = sw.Recall(0.95, over="1 minute", unmatched=None if is_asof else 0.95)
    tolerance = 500 if is_asof else None
    query = sw.join(*streams, on="k", how=how, emit=emit, goal=goal, tolerance=tolerance)
    run = query.replay(tables, arrival="at")
    alone = run.results
    if how != "anti":
        alone = alone.filter(alone["r_ts"].is_null())
    wrong = alone.num_rows - (tables["l"].num_rows - tables["r"].num_rows)
    given = len(tables["l"]) if is_asof else alone.num_rows
    assert 0 <= wrong <= 0.05 * given
    assert run.metrics.slack > 5_000


@pytest.mark.compiled
@pytest.mark.parametrize("keep", [0, 100, 300])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_pairs_that_were_forgotten_are_estimated(how, keep):
    """There are all true pairs with enough time to keep events."""
    all_pairs = run("inner", "eager", sw.MaxSlack()).metrics.produced
    streams = [sw.Stream(name, "ts", 400) for name in "lr"]
    options = {"retention": keep} if how == "left" else {}
    query = sw.join(*streams, on="k", how=how, emit="eager", goal=sw.Slack(keep), **options)
    metrics = query.replay(TABLES, arrival="at").metrics
    lost = all_pairs - metrics.produced
    assert metrics.lost_unknown > 0
    assert metrics.lost_not_estimated == 0
    assert lost > 20
    assert abs(metrics.lost_estimated - lost) <= max(0.2 * lost, 2 * metrics.lost_estimated_error)
