"""Settings, throttle, search and learning of load shedding; what it does under overload."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import profiles
import slackwater as sw
from helpers import fed
from slackwater.engine.join import JoinEngine
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import late_table
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored
from slackwater.joins.conditions import may_reorder
from slackwater.joins.visit_order import counted
from slackwater.kernels import drop_rates
from slackwater.kernels import harvest as kernels
from slackwater.kernels import shed as places
from slackwater.kernels.records import EVENT, SHED, Index
from slackwater.kernels.sorted_windows import _sort as sort_window
from slackwater.query.shedding import shedding_from_dict, shedding_to_dict
from slackwater.shedding import harvest_search as setting
from slackwater.shedding.eviction import ages_kept
from slackwater_lab.papers.harvest import random_case
from slackwater_lab.papers.overload import Workload, query_of, run

slow = pytest.mark.skipif(profiles.PLAIN, reason="simulations are for compiled kernels")


def pair(**options):
    return sw.join(
        sw.Stream("a", "ts", 100),
        sw.Stream("b", "ts", 50),
        on="k",
        **{"goal": sw.NoSlack()} | options,
    )


# ---- settings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.Harvest(sample=0), "sample must be above 0 and below 1, got 0"),
        (lambda: sw.Harvest(sample=1.0), "sample must be above 0 and below 1, got 1.0"),
        (lambda: sw.Harvest(sample="x"), "sample must be above 0 and below 1, got 'x'"),
        (lambda: sw.Harvest(boost=1), "boost must be above 1, got 1"),
        (lambda: sw.Harvest(budget=0), "budget must be above 0, got 0"),
        (lambda: sw.TailDrop(budget=-1.5), "budget must be above 0, got -1.5"),
        (lambda: sw.RandomDrop(fraction=0), "fraction must be above 0 and at most 1, got 0"),
        (lambda: sw.Harvest(usage=1.1), "usage must be above 0 and at most 1, got 1.1"),
        (lambda: sw.Harvest(memory="lots"), "memory must be a number of bytes like '64 MB'"),
        (lambda: sw.Harvest(memory=0), "memory must be a number of bytes like '64 MB'"),
        (lambda: sw.Harvest(search="best"), "search must be one of 'better'"),
        (lambda: sw.Harvest(index="hash"), "index must be one of 'sorted', 'none', got 'hash'"),
        (lambda: pair(shed=sw.Harvest(basic_window=51)),
         r"basic_window must be at least 1 ms and at most the shortest window \(50 ms\), got 51"),
        (lambda: pair(shed=sw.Harvest(every=0)), "every must be at least 1 ms, got 0"),
        (lambda: pair(shed="often"), "shed must be 'adaptive', 'off' or one of Harvest"),
        (lambda: pair(shed="adaptive", pipeline="icde16", late_probe="window-end"),
         "needs late_probe='none'"),
        (lambda: sw.window(sw.Stream("a", "ts"), window=sw.Tumbling(10), select={"n": sw.count()},
                           shed="adaptive"),
         "shed must be 'off' for windows of one stream, got 'adaptive': only joins skip work; keep "
         "a share of the events"),
        (lambda: sw.aggregate(sw.Stream("a", "ts"), sw.Stream("b", "ts"), on="k", deadline=20,
                              window=sw.Tumbling(10), select={"n": sw.count()}, shed=sw.Harvest()),
         "for aggregates over a join, got Harvest.*keep a share of the keys of all streams"),
        (lambda: sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", sw.Tuples(5)), on="k",
                         shed="adaptive", goal=sw.NoSlack()), "needs time windows on all streams"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(make, message):
    with pytest.raises(sw.QueryError, match=message):
        make()


def test_settings_are_plain_data():
    for shed in ("adaptive", "off", sw.Harvest(memory="1.5 kB"), sw.RandomDrop(), sw.TailDrop()):
        assert shedding_from_dict(shedding_to_dict(shed)) == shed
        query = pair(shed=shed)
        assert sw.JoinQuery.from_dict(query.to_dict()) == query
    assert sw.Harvest(memory="1.5 kB").memory_bytes == 1536


# ---- search


def naive_best(known, budget):
    """The best of all settings, each direction off or with some basic windows of each step."""
    m, steps = known.n.shape
    choices = [
        [(0,) * steps, *itertools.product(*(range(1, n + 1) for n in known.n[i]))] for i in range(m)
    ]
    best = 0.0
    for counts in itertools.product(*choices):
        tried = np.array(counts)
        if setting.cost(tried, known) <= budget:
            best = max(best, setting.output(tried, known))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("correlated", [True, False])
def test_exhaustive_search_is_exhaustive(seed, correlated):
    known = random_case(np.random.default_rng(seed), 3, 3, correlated)
    everything = setting.cost(setting.full(known), known)
    for z in (0.02, 0.1, 0.3, 0.7, 1.0):
        best = setting.exhaustive(known, z * everything)
        assert setting.cost(best, known) <= z * everything
        assert setting.output(best, known) == pytest.approx(naive_best(known, z * everything))


@pytest.mark.parametrize("search", ["greedy", "reverse", "double-sided", "better"])
@pytest.mark.parametrize("metric", ["output", "output per cost", "gain per cost"])
def test_every_search_keeps_to_the_budget(search, metric):
    rng = np.random.default_rng(1)
    for m, n in ((2, 4), (3, 5), (4, 3)):
        known = random_case(rng, m, n, correlated=True)
        everything = setting.cost(setting.full(known), known)
        for z in (0.01, 0.1, 0.5, 0.9):
            counts = setting.choose(known, z * everything, search, metric)
            assert setting.cost(counts, known) <= z * everything
            assert (counts <= known.n).all()
            off = (counts == 0).any(axis=1)
            assert (counts[off] == 0).all()
        assert (setting.choose(known, everything, search, metric) == known.n).all() or metric != (
            "output"
        )


def test_the_default_is_nearly_optimal():
    rng, found = np.random.default_rng(2), []
    for _ in range(40):
        known = random_case(rng, 3, 6, correlated=True)
        everything = setting.cost(setting.full(known), known)
        for z in (0.1, 0.3, 0.6):
            best = setting.output(setting.exhaustive(known, z * everything), known)
            options = [
                setting.output(setting.choose(known, z * everything, s), known)
                for s in ("better", "greedy", "reverse")
            ]
            assert options[0] >= max(options[1:])
            found.append(options[0] / best if best else 1.0)
    assert np.mean(found) > 0.99


def test_a_share_of_the_events_may_look_where_all_would_be_too_many():
    known = setting.model(
        [10.0, 10.0], [[100.0], [100.0]], [[1.0], [0.1]], [[np.ones(2)], [np.ones(2)]]
    )
    counts, shares = setting.with_shares(setting.choose(known, 250.0), known, 250.0)
    assert counts[0, 0] >= 1
    assert shares.tolist() == [pytest.approx(0.5), 1.0]
    assert setting.cost(counts, known, shares) == pytest.approx(250.0)


def drop_cost(keep, known):
    return drop_rates.drop_cost(np.array(keep), *known, np.zeros(3))


def test_random_drop_is_the_static_optimum():
    """Against a grid of all shares."""
    rng, order = np.random.default_rng(3), np.array([[1, 2], [0, 2], [0, 1]])
    for _ in range(5):
        known = (
            rng.uniform(1, 5, 3), order, rng.uniform(10, 100, (3, 2)), rng.uniform(0.1, 3, (3, 2)),
        )  # fmt: skip
        budget = 0.3 * drop_cost([1.0, 1.0, 1.0], known)
        keep = np.ones(3)
        drop_rates.best_shares(budget, *known, keep, np.zeros(3), np.zeros(3))
        assert drop_cost(keep, known) <= budget * (1 + 1e-9)
        grid = itertools.product(np.linspace(0.04, 1.0, 25), repeat=3)
        best = max(np.prod(tried) for tried in grid if drop_cost(tried, known) <= budget)
        assert np.prod(keep) >= best


def test_costs_and_outputs_are_those_of_the_paper():
    """IV-C by hand: m = 3, one direction, two steps."""
    known = setting.model(
        [2.0, 0.0, 0.0],
        np.full((3, 2), 100.0),
        [[10.0, 5.0], [1.0, 1.0], [1.0, 1.0]],
        [[[4, 3, 2, 1], [1, 1, 1, 1]], [np.ones(4)] * 2, [np.ones(4)] * 2],
    )
    counts = np.array([[2, 1], [0, 0], [0, 0]])
    # 2 events, each 50 of 100 candidates, 7 of 10 matches, each 25 of 100 candidates
    assert kernels.evaluate(counts, known) == pytest.approx((2 * (50 + 7 * 25), 2 * 7 * 1.25))


# ---- memory


def test_what_nobody_looks_at_goes_first_and_then_the_least_that_is_to_come():
    size = [np.full(4, 10.0), np.full(4, 10.0)]
    worth = [np.array([5.0, 5.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])]
    assert ages_kept(size, worth, 80.0) == [4, 4]
    assert ages_kept(size, worth, 70.0) == [3, 4]
    assert ages_kept(size, worth, 60.0) == [2, 4]
    assert ages_kept(size, worth, 50.0) == [2, 3]  # 1 is less than 5
    assert ages_kept(size, worth, 0.0) == [1, 1]  # the youngest always stay


@slow
def test_windows_keep_to_their_memory_and_evictions_are_counted():
    work = Workload(rates=(200.0,), seconds=60)
    limit = 400_000
    query = query_of(3, sw.Harvest(budget=1e15, memory=limit))
    batch, _ = recorded(query, work.tables(1), None)
    engine = JoinEngine(query, {n: t.schema for n, t in work.tables(1).items()})
    most = 0
    for part in batch.slices(600):
        engine.feed(part)
        row = engine.rows[0].sizes(np.zeros(1, np.int64))[0] + engine.log.bytes_per_event
        most = max(most, engine.metrics().stored * int(row))
    metrics = engine.metrics()
    assert most <= 1.1 * limit  # between two looks, what comes must fit too
    assert metrics.shedding.evicted > 0
    assert metrics.is_balanced
    whole = run(query_of(3, "off"), work.tables(1)).made.sum()
    assert 0 < metrics.produced < whole
    # the oldest events of the stream that is needed last go: much more is left than memory
    assert metrics.produced / whole > 1.2 * limit / (3 * 200 * 20 * row)


# ---- under overload

BUDGET = 1e6


@slow
def test_a_given_throttle_is_kept():
    for lagged in (True, False):
        tables = Workload(rates=(150.0,), lagged=lagged, seconds=60).tables(1)
        plenty = sw.Harvest(budget=1e15, index="none")
        whole = run(query_of(3, plenty), tables).cost(40)
        for z in (0.1, 0.3, 0.6):
            some = sw.Harvest(budget=1e15, index="none", fraction=z)
            cost = run(query_of(3, some), tables).cost(40)
            assert 0.85 * z * whole <= cost <= 1.05 * z * whole


@slow
def test_after_a_step_of_the_rates_nothing_piles_up():
    tables = Workload(rates=(75.0, 150.0), seconds=120).tables(1)
    trace = run(query_of(3, sw.Harvest(budget=BUDGET, index="none", buffer="2 s")), tables)
    later = trace.backlog[trace.time > 60 + 20 + 2]
    assert trace.backlog.max() <= 2.5
    assert later.mean() < 1.0
    assert abs(np.polyfit(np.arange(len(later)), later, 1)[0] * len(later)) < 0.5
    assert trace.throttle[40] > 2 * trace.throttle[-1]


@slow
def test_much_more_is_found_than_by_dropping():
    tables = Workload(rates=(150.0,)).tables(1)
    ours, drop, tail = (
        run(query_of(3, shed), tables)
        for shed in (
            sw.Harvest(budget=BUDGET, index="none"),
            sw.RandomDrop(budget=BUDGET),
            sw.TailDrop(budget=BUDGET),
        )
    )
    assert all(trace.cost() <= 1.05 * BUDGET for trace in (ours, drop, tail))
    assert ours.output() > 2.5 * max(drop.output(), tail.output())


@slow
def test_drops_in_transition_are_counted():
    tables = Workload(rates=(150.0,)).tables(1)
    query = query_of(3, sw.Harvest(budget=BUDGET, index="none", buffer="50 ms"))
    metrics = query.replay(tables).metrics
    assert metrics.shed > 0
    assert metrics.is_balanced


@slow
def test_lags_that_move_are_followed():
    first, then = (
        Workload(rates=(150.0,), seconds=60, lagged=lagged).tables(1) for lagged in (True, False)
    )
    both = {
        name: pa.concat_tables([
            first[name],
            then[name].set_column(0, "ts", pa.array(then[name]["ts"].to_numpy() + 60_000)),
        ])
        for name in first
    }  # fmt: skip
    trace = run(query_of(3, sw.Harvest(budget=BUDGET, index="none")), both)
    whole = run(query_of(3, "off"), both)
    kept = trace.made / np.maximum(whole.made, 1)
    assert kept[40:60].mean() > 0.5
    assert kept[100:].mean() > 0.8 * kept[40:60].mean()  # two windows after the change


@slow
@pytest.mark.parametrize("select", ["*", "count"])
def test_what_was_missed_is_estimated_with_an_error_bar(select):
    tables = Workload(rates=(120.0,)).tables(1)
    query = query_of(3, sw.Harvest(budget=2e5, index="none"))
    query = sw.JoinQuery(**{**vars(query), "select": select})
    metrics = query.replay(tables).metrics
    true = query_of(3, "off").replay(tables).metrics.produced
    missed = true - metrics.produced
    assert metrics.shedding.missed == pytest.approx(missed, abs=2 * metrics.shedding.missed_error)
    assert metrics.shedding.missed_error < 0.25 * true


@slow
def test_a_recall_goal_hears_of_disorder_only_and_the_cpu_it_needs_is_told():
    rng = np.random.default_rng(1)
    tables = {}
    for name, table in Workload(rates=(120.0,)).tables(1).items():
        late = np.where(rng.random(table.num_rows) < 0.2, rng.exponential(300, table.num_rows), 0)
        arrival = table["ts"].to_numpy() + late.astype(np.int64)
        tables[name] = table.append_column("arrival", pa.array(arrival))
    near = query_of(3, "off").where
    streams = [sw.Stream(name, "ts", "20 s") for name in tables]
    # By delays: K moves little. When K falls much at once, all that is released fills the input
    # buffer, and what is dropped there is in no estimate.
    goal = sw.Recall(0.9, over="10 s", model="measured")
    runs = [
        sw.join(*streams, where=near, goal=goal, select="count", shed=shed)
        .replay(tables, arrival="arrival")
        for shed in ("off", sw.Harvest(budget=3e5, index="none"))
    ]  # fmt: skip
    plain, shed = (r.metrics for r in runs)
    # K is that of the disorder: a throttle does not make events late
    assert shed.slack <= 2 * plain.slack + 200
    assert shed.shedding.cpu_needed > 1.1
    true = plain.produced + plain.lost
    told = shed.produced + shed.lost + shed.shedding.missed
    assert told == pytest.approx(true, rel=0.15)


# ---- keys


@slow
@pytest.mark.parametrize("select", ["*", "count"])
@pytest.mark.parametrize("on", ["k", ["a.k = b.k", "b.j = c.j"]])
def test_joins_by_key_shed_too(select, on):
    rng, n = np.random.default_rng(1), 6000
    tables = {
        name: pa.table({
            "ts": np.sort(rng.integers(0, 30_000, n)),
            "k": rng.integers(0, 20, n), "j": rng.integers(0, 20, n),
        })
        for name in "abc"
    }  # fmt: skip
    streams = [sw.Stream(name, "ts", "1 s") for name in "abc"]
    whole = (
        sw.join(*streams, on=on, select=select, goal=sw.NoSlack()).replay(tables).metrics.produced
    )
    budget = 2000.0 if select == "count" else 20_000.0
    shed = sw.Harvest(budget=budget, every="1 s")
    metrics = (
        sw.join(*streams, on=on, select=select, shed=shed, goal=sw.NoSlack()).replay(tables).metrics
    )
    assert 0 < metrics.produced < whole
    assert metrics.shedding.throttle < 1.0
    assert metrics.is_balanced
    assert metrics.shedding.comparisons <= 1.3 * 30 * budget


def small(n=150, span=3000, seed=1):
    """Three short streams of numbers that follow each other."""
    rng = np.random.default_rng(seed)
    tables = {}
    for lag, name in enumerate("abc"):
        ts = np.sort(rng.integers(0, span, n))
        x = (ts + 150 * lag) / 20 + rng.normal(0, 1, n)
        keys = {"k": rng.integers(0, 3, n), "j": rng.integers(0, 3, n)}
        tables[name] = pa.table({"ts": ts, "x": x, "i": x.astype(int), **keys})
    return tables


NEAR = "abs(a.x - b.x) <= 2 and abs(b.x - c.x) <= 2"


@pytest.mark.parametrize(
    ("condition", "options"),
    [
        ({"where": NEAR}, {}),
        ({"where": NEAR}, {"index": "none"}),
        ({"where": NEAR}, {"scores": "per-stream", "index": "none", "throttle": "backlog"}),
        ({"where": NEAR, "on": "k"}, {}),
        ({"where": NEAR.replace("x", "i")}, {"search": "exhaustive", "basic_window": 100}),
        ({"on": "k"}, {}),
        ({"on": "k", "select": "count"}, {}),
        ({"on": ["a.k = b.k", "b.j = c.j"]}, {}),
        ({"on": ["a.k = b.k", "b.j = c.j"], "select": "count"}, {}),
    ],
)
def test_every_kind_of_join_sheds(condition, options):
    streams, tables = [sw.Stream(name, "ts", 400) for name in "abc"], small()
    whole = sw.join(*streams, **condition, goal=sw.NoSlack()).replay(tables).metrics.produced
    budget = 200.0 if condition.get("select") == "count" else 2000.0
    shed = sw.Harvest(**{"budget": budget, "every": 100, "sample": 0.4} | options)
    metrics = sw.join(*streams, **condition, shed=shed, goal=sw.NoSlack()).replay(tables).metrics
    assert metrics.is_balanced
    assert 0 < metrics.produced < whole
    assert metrics.shedding.missed_error > 0.0  # some of it was sampled, so some was shed


@pytest.mark.compiled
def test_what_is_lost_with_late_events_is_estimated_too():
    rng, tables = np.random.default_rng(1), {}
    for name, table in small().items():
        late = np.where(rng.random(table.num_rows) < 0.3, rng.integers(0, 300, table.num_rows), 0)
        tables[name] = table.append_column("arr", pa.array(table["ts"].to_numpy() + late))
    streams = [sw.Stream(name, "ts", 400) for name in "abc"]
    goal = sw.Recall(0.9, over="1 s", every=100, model="measured")
    shed = sw.Harvest(budget=3000.0, every=100, sample=0.5, index="none")
    run = sw.join(*streams, where=NEAR, goal=goal, shed=shed).replay(tables, arrival="arr")
    assert run.metrics.shedding.lost_error > 0.0
    assert run.metrics.shedding.cpu_needed >= 1.0
    assert not run.late.column("exact").to_numpy(zero_copy_only=False).all()


def test_a_loss_that_is_estimated_is_not_called_exact():
    """B10 comes when the join is at 30. While load is shed, only a sample is looked at: not B10."""
    query = sw.join(*(sw.Stream(name, "ts", 100) for name in "ab"), retention=100,
                    shed=sw.Harvest(budget=1e15, every=10**6), goal=sw.NoSlack())  # fmt: skip
    tables = {
        "a": pa.table({"ts": [5, 30], "arr": [5, 30]}),
        "b": pa.table({"ts": [30, 10], "arr": [30, 31]}),
    }
    batch, _ = recorded(query, tables, "arr")
    told = {}
    for shedding in (0, 1):
        engine = JoinEngine(query, dict.fromkeys("ab", tables["a"].schema))
        engine.shedder.shed.number[places.SAMPLE] = 0.0
        engine.shedder.shed.ctl[places.SHEDDING] = shedding
        output = engine.feed(batch)
        output.extend(engine.flush())
        late = late_table(output.late, query.names).select(["ts", "kept", "lost", "exact"])
        (told[shedding],) = late.to_pylist()
    assert told[0] == {"ts": 10, "kept": True, "lost": 2, "exact": True}  # with A5, A30
    assert told[1] == {"ts": 10, "kept": True, "lost": 0, "exact": False}


def test_orders_follow_the_selectivities():
    """Streams a and b have many matches, a and c few: c comes first."""
    n = 400
    ts, rng = np.sort(np.random.default_rng(1).integers(0, 4000, n)), np.random.default_rng(2)
    tables = {
        name: pa.table({"ts": ts, "x": rng.integers(0, values, n)})
        for name, values in (("a", 2), ("b", 2), ("c", 40))
    }
    streams = [sw.Stream(name, "ts", 400) for name in "abc"]
    near = "a.x == b.x and a.x == c.x and b.x == c.x"
    query = sw.join(
        *streams, where=near, shed=sw.Harvest(budget=1e4, every=200, sample=0.5), goal=sw.NoSlack()
    )
    batch, _ = recorded(query, tables, None)
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    assert engine.shedder.orders == [[1, 2], [0, 2], [0, 1]]
    engine.feed(batch)
    assert engine.shedder.orders[0] == [2, 1]
    assert engine.shedder.orders[1] == [2, 0]


def test_orders_of_up_to_five_streams_may_change_where_results_are_walked():
    streams = [sw.Stream(name, "ts", 400) for name in "abcdef"]
    five, six = (sw.join(*streams[:n], on="k", shed="adaptive", goal=sw.NoSlack()) for n in (5, 6))
    assert may_reorder(five)
    assert not may_reorder(six)
    assert not may_reorder(
        sw.join(*streams[:2], on="k", shed="adaptive", select="count", goal=sw.NoSlack())
    )
    assert not may_reorder(sw.join(*streams[:2], on="k", goal=sw.NoSlack()))


def test_streams_at_the_ends_of_the_join_tree_are_only_counted():
    """A chain a - b - c: from a, the events of b are walked, and for each those of c counted."""
    streams, chain = [sw.Stream(name, "ts", 400) for name in "abc"], ["a.k = b.k", "b.j = c.j"]
    leaves = counted(sw.join(*streams, on=chain, select="count", goal=sw.NoSlack()))
    assert leaves.tolist() == [[0, 0, 1], [1, 0, 1], [1, 0, 0]]
    assert not counted(
        sw.join(*streams, on=chain, goal=sw.NoSlack())
    ).any()  # results are walked as a whole


@pytest.mark.compiled
@pytest.mark.parametrize("shed", [sw.TailDrop, sw.RandomDrop])
def test_the_delays_of_dropped_events_count_however_the_input_is_cut(shed):
    query = pair(goal=sw.NoSlack(), shed=shed(budget=50.0, every=100, buffer=1))
    ts = np.arange(2000)
    tables = {name: pa.table({"ts": ts ^ 3, "k": ts % 2}) for name in "ab"}
    batch, _ = recorded(query, tables, None)
    counts = []
    for pieces in (1, 40):
        engine = JoinEngine(query, {n: t.schema for n, t in tables.items()})
        for part in batch.cut(np.linspace(0, 4000, pieces + 1)[1:].astype(int).tolist()):
            engine.feed(part)
        assert engine.metrics().shed > 2000
        assert (engine.log.keys[:, 0] == SHED).any()
        counts.append(engine.recent.counts.tolist())
    assert counts[0] == counts[1]
    assert np.sum(counts[0]) == len(batch.stream)


# ---- the wall clock


def test_any_load_is_too_much_for_a_join_that_may_do_nothing():
    streams = [sw.Stream(name, "ts", 400) for name in "abc"]
    shed = sw.Harvest(usage=1e-9, every=100, buffer=50)
    metrics = sw.join(*streams, where=NEAR, shed=shed, goal=sw.NoSlack()).replay(small()).metrics
    assert metrics.shedding.throttle < 0.1
    assert metrics.shedding.backlog > 50
    assert metrics.shed > 0.9 * metrics.arrivals
    assert metrics.is_balanced


@slow
def test_the_measured_load_opens_and_closes_the_throttle():
    """The meter says what it likes: fast enough, then much too slow, then fast enough."""
    tables = Workload(rates=(100.0,), seconds=60).tables(1)
    query = query_of(3, "adaptive")
    batch, _ = recorded(query, tables, None)
    engine = JoinEngine(query, {n: t.schema for n, t in tables.items()})
    seen = []
    ends = np.searchsorted(batch.arrival, 1000 * np.arange(1, 61)).tolist()
    for second, part in enumerate(batch.cut(ends)):
        begin, before = engine.reorder.top, engine.shedder.shed.ctl[2]
        engine.feed(part)
        compared = int(engine.shedder.shed.ctl[2] - before)
        speed = 1e5 if 20 <= second < 40 else 1e9  # comparisons per second
        engine.measured(compared / speed, begin)
        seen.append(engine.metrics().shedding.throttle)
    assert seen[19] == 1.0
    assert max(seen[25:40]) < 0.6
    assert seen[-1] == 1.0


def test_a_meter_that_is_left_by_an_error_says_nothing():
    query = pair(shed="adaptive")
    table = pa.table({"ts": [1, 2], "k": [1, 1]})
    engine = JoinEngine(query, dict.fromkeys("ab", table.schema))
    batch, _ = recorded(query, dict.fromkeys("ab", table), None)
    with pytest.raises(RuntimeError), LoadMeter(engine):
        engine.feed(batch)
        raise RuntimeError
    assert engine.metrics().shedding.backlog == 0.0


def test_the_same_query_may_shed_otherwise_after_a_restart():
    table = pa.table({"ts": np.arange(2000), "k": np.zeros(2000, int)})
    query = pair(shed=sw.Harvest(budget=30_000.0, every=10, buffer=5))
    batch, _ = recorded(query, dict.fromkeys("ab", table), None)
    engine = JoinEngine(query, dict.fromkeys("ab", table.schema))
    engine.feed(batch)
    for other in ("off", sw.TailDrop(budget=5.0), sw.Harvest(budget=9.0, basic_window=7)):
        again = restored(
            engine.snapshot(), JoinEngine(pair(shed=other), dict.fromkeys("ab", table.schema))
        )
        again.flush()
        assert again.metrics().is_balanced
        assert all(
            again.metrics().streams[s].shed >= then.shed > 0
            for s, then in engine.metrics().streams.items()
        )
        assert again.counters.missed >= engine.counters.missed > 0
    fixed = pair(shed=sw.Harvest(budget=30_000.0, every=10, fraction=0.25))
    again = restored(engine.snapshot(), JoinEngine(fixed, dict.fromkeys("ab", table.schema)))
    assert again.metrics().shedding.throttle == 0.25 != engine.metrics().shedding.throttle


@pytest.mark.compiled
@pytest.mark.parametrize("memory", [None, 90_000])
def test_a_restart_changes_nothing_where_windows_are_sorted(memory):
    """What the oldest basic window costs must not depend on what of it is forgotten already."""
    tables = Workload(m=2, rates=(60.0,), seconds=30).tables(1)
    query = sw.join(
        *(sw.Stream(name, "ts", "10 s") for name in tables),
        where="abs(s1.x - s2.x) <= 2",
        shed=sw.Harvest(budget=5_000, memory=memory),
        goal=sw.NoSlack(),
    )
    batch, _ = recorded(query, tables, "ts")
    whole = fed(query, batch)
    assert whole[-1].shedding.throttle < 1
    assert fed(query, batch, (37,), restart=True)[0] == whole[0]


def test_a_sorted_window_is_of_use_where_a_band_links_it():
    query = sw.join(
        *(sw.Stream(name, ts="ts", window=10) for name in "abc"),
        where="abs(a.x - b.x) <= 1 and abs(b.y - c.y) <= 1",
        shed="adaptive",
        goal=sw.NoSlack(),
    )
    schema = pa.schema([("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])
    engine = JoinEngine(query, dict.fromkeys("abc", schema))
    linked = engine.join._index.arrays.linked  # b is sorted by x, so nothing of c leads into it
    assert linked.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]


# ---- sorted basic windows


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 40, 200])
def test_a_basic_window_is_sorted_by_value_and_then_by_event(n):
    chance, begin = np.random.default_rng(n), 3  # what is before and behind it stays
    value = chance.integers(0, 1 + n // 2, n + 2 * begin).astype(float)
    entry = np.stack([100 + np.arange(len(value)), chance.permutation(len(value))], axis=1)
    place = slice(begin, begin + n)
    order = np.arange(len(value))
    order[place] = begin + np.lexsort((entry[place, EVENT], value[place]))
    wanted = value[order].tolist(), entry[order].tolist()
    square, cube = np.zeros((1, 1), np.int64), np.zeros((1, 1, 1), np.int64)
    index = Index(square, square, cube, np.zeros((1, 1)), cube, square, entry, value)
    sort_window(begin, n, index)
    assert (value.tolist(), entry.tolist()) == wanted
