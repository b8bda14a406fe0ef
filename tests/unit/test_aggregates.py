"""Aggregates over joined windows: what is asked, and what is told."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import profiles
import slackwater as sw
from slackwater.compensation.intervals import Intervals
from slackwater.compensation.sizes import Sizes
from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.factory import restore
from slackwater.engine.replay import recorded

R, S = sw.Stream("r", "t"), sw.Stream("s", "t")
slow = pytest.mark.skipif(profiles.PLAIN, reason="simulations are for compiled kernels")


def asked(**options):
    return sw.aggregate(
        R, S, on="k",
        **{
            "select": {"n": sw.count(), "total": sw.functions.sum("r.v")},
            "window": sw.Tumbling(100),
            "deadline": 100,
        } | options,
    )  # fmt: skip


def micro(windows, delay, seed=1, per_window=100, keys=10, rate=None):
    """Two streams of uniform keys; `delay` is the largest one, or one for each window."""
    rng = np.random.default_rng(seed)
    tables = {}
    for name in "rs":
        sizes = np.full(windows, per_window) if rate is None else rng.poisson(per_window, windows)
        start = np.repeat(np.arange(windows) * 100, sizes)
        ts = start + rng.integers(0, 100, len(start))
        late = np.broadcast_to(delay, windows)[start // 100]
        tables[name] = pa.table({
            "t": ts,
            "k": rng.integers(0, keys, len(ts)),
            "v": rng.integers(1, 100, len(ts)),
            "arrival": ts + np.floor(rng.random(len(ts)) * (late + 1)).astype(int),
        })  # fmt: skip
    return tables


# ---- what is asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"select": {"m": sw.functions.max("r.v")}},
            "what has not arrived may hold the extreme value",
        ),
        ({"select": {"m": sw.stddev("r.v")}}, "a join is aggregated by count, sum and avg, got st"),
        ({"select": {}}, "aggregates are missing"),
        ({"select": {"n": "count"}}, "select must have aggregates by name, got 'n': 'count'"),
        (
            {"select": {"n": sw.functions.sum("v")}},
            "named 'stream.column', streams are r, s; got 'v'",
        ),
        (
            {"select": {"n": sw.functions.sum("x.v")}},
            "named 'stream.column', streams are r, s; got 'x.v'",
        ),
        ({"select": {"exact": sw.count()}}, "more than one column exact"),
        ({"deadline": sw.Deadline(0)}, "must be at least 1 ms, or no data can have arrived; got 0"),
        ({"deadline": sw.Deadline(-1, after="end")}, "must be at least 0 ms|must be >= 0"),
        ({"deadline": sw.Slack(5)}, "a deadline must be a number of ms, .* got Slack"),
        ({"window": 100}, "window must be a Tumbling or a Sliding, got 100"),
        ({"window": sw.Tumbling(0)}, "window must be at least 1 ms, got 0"),
        ({"window": sw.Sliding(10, 20)}, "slide must not be longer than the window"),
        ({"by": ["r.v", "s.k"]}, "groups are made by columns of one stream or of the key"),
        ({"by": "region"}, "named 'stream.column'"),
        ({"compensate": "magic"}, "compensate must be one of 'delays', 'aema'"),
        ({"confidence": 95}, "confidence must be at least 0.5 and below 1, got 95"),
        ({"late": "drop"}, "late must be one of 'count', 'emit' for aggregates, got 'drop'"),
        ({"window": sw.Sliding(10)}, "the sliding windows of a join need a slide"),
    ],
)
def test_what_cannot_be_answered_is_refused(options, message):
    with pytest.raises(sw.QueryError, match=message):
        asked(**options)


def test_streams_share_one_key_and_have_no_windows():
    select, window, goal = {"n": sw.count()}, sw.Tumbling(10), sw.Deadline(10)
    with pytest.raises(sw.QueryError, match="must name one key that all streams share, got None"):
        sw.aggregate(R, S, select=select, window=window, deadline=goal)
    with pytest.raises(sw.QueryError, match="aggregates have one window= for all streams"):
        sw.aggregate(sw.Stream("r", "t", 5), S, on="k", select=select, window=window, deadline=goal)
    with pytest.raises(sw.QueryError, match="aggregates are for sw.aggregate"):
        sw.join(R, S, on="k", select=select)
    with pytest.raises(sw.QueryError, match="a deadline is for aggregates"):
        sw.join(sw.Stream("r", "t", 5), sw.Stream("s", "t", 5), on="k", goal=goal)
    with pytest.raises(sw.QueryError, match="after must be one of 'start', 'end', got 'now'"):
        sw.Deadline(5, after="now")


def test_columns_must_be_there_and_numbers():
    tables = micro(2, 5)
    words = {n: t.append_column("word", pa.array(["x"] * t.num_rows)) for n, t in tables.items()}
    for options, message in (
        (
            {"select": {"a": sw.functions.sum("r.gone")}},
            "stream 'r' has no such column; it has t, k, v",
        ),
        ({"select": {"a": sw.avg("s.word")}}, r"avg\(s.word\) takes numbers, got string"),
        ({"by": "s.gone"}, "by names s.gone, but stream 's' has no such column"),
    ):
        with pytest.raises(sw.QueryError, match=message):
            asked(**options).replay(words, "arrival")
    with pytest.raises(sw.DataError, match="arrival= must name a column, got None"):
        asked().replay(tables, None)


def test_a_query_is_plain_data():
    for query in (
        asked(compensate=True, by="r.k", late="emit", retention="5 s", confidence=0.8),
        asked(
            window=sw.Sliding("10 s", "1 s"), deadline=sw.Deadline("1 s", after="end", slack="2 s")
        ),
    ):
        assert sw.AggregateQuery.from_dict(query.to_dict()) == query


def test_a_deadline_after_the_end():
    query = asked(deadline=sw.Deadline(20, after="end"))
    assert query.deadline_of(300) == 420


# ---- what is told


def test_a_complete_window_is_exact_and_its_interval_has_no_width():
    run = asked(compensate=True, late="emit").replay(micro(20, 30), "arrival")
    rows = run.exact.to_pylist()
    assert len(rows) == 20
    for row in rows:
        assert row["n_low"] == row["n_high"] == row["n"] == row["n_observed"]
        assert row["completeness"] == 1.0
    assert run.early.num_rows == 20


def test_in_order_data_is_not_compensated():
    for kind in (True, "aema", "svi", "mlp"):
        run = asked(compensate=kind, deadline=sw.Deadline(110)).replay(micro(30, 0), "arrival")
        assert run.early.num_rows == 0  # the bound has passed: nothing is estimated
        assert run.exact.num_rows == 30
    waiting = asked(compensate=True, deadline=sw.Deadline(110), retention=1000, late="emit")
    error, inside = judged(waiting.replay(micro(60, 0), "arrival"), skip=20)
    assert (error, inside) == (0, 1)  # it has learnt that nothing comes later


def test_who_holds_back_sees_less():
    tables = micro(20, 30)
    plain = asked().replay(tables, "arrival")
    held = asked(deadline=sw.Deadline(100, slack=20)).replay(tables, "arrival")
    plain_n, held_n = (pc.sum(run.early["n"]).as_py() for run in (plain, held))
    assert 0 < held_n < 0.9 * plain_n


def test_groups_add_up_and_nulls_do_not_take_part():
    tables = micro(10, 30, keys=4)
    holes = pc.if_else(pc.equal(tables["r"]["k"], 0), None, tables["r"]["v"])
    tables["r"] = tables["r"].set_column(2, "v", holes)
    select = {
        "n": sw.count(),
        "with": sw.count("r.v"),
        "total": sw.functions.sum("r.v"),
        "m": sw.avg("r.v"),
    }
    whole = asked(select=select).replay(tables, "arrival").results.to_pylist()
    parts = asked(select=select, by="k").replay(tables, "arrival").results.to_pylist()
    for row in whole:
        own = [
            p
            for p in parts
            if (p["window_start"], p["exact"]) == (row["window_start"], row["exact"])
        ]
        assert [p["k"] for p in own] == [0, 1, 2, 3]
        for name in ("n", "with", "total"):
            assert sum(p[name] for p in own) == row[name]
        assert row["with"] == row["n"] - own[0]["n"]
        assert row["m"] == pytest.approx(row["total"] / row["with"])
        assert own[0]["m"] is None


def test_events_beyond_the_bound_are_dropped_and_counted():
    tables = micro(20, 30)
    run = asked(retention=0).replay(tables, "arrival")
    assert run.metrics.late_dropped > 0
    assert run.metrics.is_balanced
    assert asked().replay(tables, "arrival").metrics.late_dropped < run.metrics.late_dropped


def test_goal_and_slack_of_a_running_engine_stay():
    query, tables = asked(), micro(2, 5)
    engine = AggregateEngine(query, {name: table.schema for name, table in tables.items()})
    with pytest.raises(sw.QueryError, match="a deadline has no slack to set, got 5"):
        engine.set_slack(5)
    with pytest.raises(sw.QueryError, match="cannot be changed"):
        engine.set_goal(sw.Deadline(7))
    batch, _ = recorded(query, tables, "arrival")
    engine.feed(batch)
    assert engine.metrics().stored > 0
    engine.finish(0)
    assert engine.metrics().streams["r"].state == "finished"


@pytest.mark.parametrize("kind", ["delays", "aema", "svi", "mlp", "mlp-elbo"])
def test_what_was_learnt_survives_a_restart(kind):
    query, tables = asked(compensate=kind, late="emit"), micro(130, 50, per_window=8, keys=3)
    schemas = {name: table.schema for name, table in tables.items()}
    batch, _ = recorded(query, tables, "arrival")
    engine, parts = AggregateEngine(query, schemas), []
    for part in batch.cut([1300, len(batch.stream)]):
        parts.append(engine.feed(part).table)
        engine = restore(engine.snapshot(), query, schemas)
    parts.append(engine.flush().table)
    whole = query.replay(tables, "arrival").results
    assert pa.concat_tables(parts).to_pylist() == whole.to_pylist()
    told = [row for row in whole.to_pylist()[100:] if not row["exact"]]
    assert all(row["n_low"] <= row["n_high"] and row["completeness"] < 1 for row in told)
    for other in (None, "aema", "delays"):
        changed = restore(engine.snapshot(), asked(compensate=other, late="emit"), schemas)
        assert changed.flush().table.num_rows == 0
    half = AggregateEngine(query, schemas)
    half.feed(next(batch.cut([1300])))
    for other in (None, "aema", "delays"):
        changed = restore(half.snapshot(), asked(compensate=other, late="emit"), schemas)
        assert changed.flush().table.num_rows > 0
    with pytest.raises(sw.SnapshotError, match="of another query: window was"):
        restore(engine.snapshot(), asked(window=sw.Tumbling(50)), schemas)


# ---- how well


def judged(run, name="n", skip=0):
    """Mean relative error and the share of truths inside, of windows told early."""
    both = run.early.join(run.exact, "window_start", right_suffix="_exact").sort_by("window_start")
    both = both.slice(skip)
    value, true, low, high = (
        both[c].to_numpy() for c in (name, f"{name}_exact", f"{name}_low", f"{name}_high")
    )
    return np.abs(value / true - 1).mean(), ((low <= true) & (true <= high)).mean()


@slow
@pytest.mark.parametrize("kind", ["delays", "aema", "svi", "mlp", "mlp-elbo"])
def test_every_estimator_is_better_than_none_and_honest(kind):
    tables = micro(400, 50)
    none = asked(late="emit").replay(tables, "arrival")
    uncompensated = (1 - none.early["n"].to_numpy() / none.exact["n"].to_numpy()).mean()
    run = asked(compensate=kind, late="emit").replay(tables, "arrival")
    for name in ("n", "total"):
        error, inside = judged(run, name, skip=100)
        assert error < 0.5 * uncompensated
        assert 0.91 <= inside <= 0.99


@slow
@pytest.mark.parametrize("rate", [None, "poisson"])
def test_ours_is_nearly_as_good_as_knowing_everything(rate):
    tables = micro(500, 50, rate=rate)
    error, inside = judged(asked(compensate=True, late="emit").replay(tables, "arrival"), skip=200)
    assert error < (0.06 if rate is None else 0.08)
    assert 0.91 <= inside <= 0.99


@slow
def test_after_a_change_of_the_disorder_intervals_are_honest_again():
    missed = []
    for seed in range(12):
        delay = np.where(np.arange(260) < 200, 30, 80)
        tables = micro(260, delay, seed=seed, rate="poisson")
        run = asked(compensate=True, late="emit", deadline=sw.Deadline(110)).replay(
            tables, "arrival"
        )
        _, inside = judged(run, skip=220)
        missed.append(1 - inside)
    assert np.mean(missed) < 0.1


@slow
def test_more_streams():
    """Three streams, a sliding window and groups."""
    tables = micro(60, 30)
    tables["q"] = tables["s"]
    query = sw.aggregate(
        R, S, sw.Stream("q", "t"), on="k", select={"n": sw.count(), "a": sw.avg("q.v")},
        window=sw.Sliding(200, 100), deadline=200, compensate=True, late="emit",
    )  # fmt: skip
    run = query.replay(tables, "arrival")
    error, _ = judged(run, skip=20)
    assert error < 0.05


def test_sizes_of_a_steady_stream_are_known_and_of_a_random_one_expected():
    sizes = Sizes(1, 2)
    for _ in range(50):
        sizes.learn(np.array([[10.0, 5.0]]), np.array([[10.0, 10.0]]))
    assert sizes.estimate(np.array([[10.0, 3.0]])).tolist() == [[10.0, 10.0]]
    rng, random = np.random.default_rng(1), Sizes(1, 2)
    for _ in range(400):
        whole = rng.poisson(100, (1, 2)).astype(float)
        random.learn(np.stack([whole[:, 0], rng.binomial(whole[:, 1].astype(int), 0.5)], 1), whole)
    # what has arrived says nothing about the rest, which is 50 on average
    assert random.estimate(np.array([[100.0, 60.0]]))[0, 1] == pytest.approx(110, abs=5)


def test_intervals_are_as_wide_as_errors_have_been():
    intervals, rng = Intervals(0.9), np.random.default_rng(2)
    inside = 0
    for number in range(1500):
        low, high = intervals.around(100.0, 1.0)
        truth = 100 + rng.standard_t(3) * 5
        intervals.learn(100.0, 1.0, truth, low <= truth <= high)
        inside += number >= 500 and low <= truth <= high
    assert inside / 1000 == pytest.approx(0.9, abs=0.02)
    assert intervals.around(5.0, float("inf")) == (-float("inf"), float("inf"))
    again = Intervals(0.9)
    again.resume(intervals.state())
    assert again.around(100.0, 1.0) == intervals.around(100.0, 1.0)


def test_the_clock_of_aggregates_holds_nothing_back():
    clock = ArrivalClock(2)
    assert clock.waiting().size == clock.buffered_of(0) == 0
    for ask in (clock.is_idle, clock.is_awaited, clock.is_finished):
        assert [ask(0), ask(1)] == [False, False]
    clock.finish(1)
    assert [clock.is_finished(0), clock.is_finished(1)] == [False, True]


# ---- pre-trained weights


def test_a_network_begins_with_what_another_one_has_learnt(tmp_path):
    path = tmp_path / "mlp.json"
    query = asked(compensate="mlp")
    before = query.replay(micro(30, 60), arrival="arrival")
    before.save_weights(path)
    other = micro(12, 60, seed=2)
    fresh, trained = (query.replay(other, arrival="arrival", weights=w) for w in (None, path))
    first = [run.early.slice(0, 1).to_pylist()[0] for run in (fresh, trained)]
    assert first[0]["n"] == first[0]["n_observed"]  # nothing is known yet
    assert first[1]["n"] > 1.1 * first[1]["n_observed"]
    saved = json.loads(path.read_text())
    assert saved["recipe"]["steps"] > 20
    assert saved["recipe"] == before.estimator.recipe


def test_weights_of_another_recipe_and_files_without_weights_are_refused(tmp_path):
    path, query = tmp_path / "mlp.json", asked(compensate="mlp")
    tables = micro(3, 60)
    query.replay(tables, arrival="arrival").save_weights(path)
    with pytest.raises(sw.QueryError, match="elbo = True, got False"):
        asked(compensate="mlp-elbo").replay(tables, arrival="arrival", weights=path)
    with pytest.raises(sw.QueryError, match="values = 1, got 2"):
        asked(compensate="mlp", select={"n": sw.count()}).replay(
            tables, arrival="arrival", weights=path
        )
    for compensate in ("aema", None):
        run = asked(compensate=compensate).replay(tables, arrival="arrival")
        with pytest.raises(sw.QueryError, match="weights need compensate='mlp' or 'mlp-elbo'"):
            run.save_weights(path)
    path.write_text('{"format": 7, "recipe": {}, "state": {}}')
    with pytest.raises(sw.DataError, match="weights of format 1, got 7"):
        query.replay(tables, arrival="arrival", weights=path)
    path.write_text("[]")
    with pytest.raises(sw.DataError, match="must be a file that save_weights wrote"):
        query.replay(tables, arrival="arrival", weights=path)
