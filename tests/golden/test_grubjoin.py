"""GrubJoin's own examples, to be checked by eye."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels import drop_rates
from slackwater.kernels import harvest as kernels
from slackwater.kernels import shed as places
from slackwater.kernels.sorted_windows import HEAD
from slackwater.shedding import harvest_search as setting
from slackwater.shedding.learning import lag_scores
from slackwater.shedding.throttle import Load, Throttle


def test_figure_5_greedy_steps_freeze_what_is_too_expensive():
    """Three streams, ten basic windows each, all fractions at 0.2, three increments left.

    Each event costs 1 per basic window of its first step and, for the one partial result that each
    of those finds on average, 1 per basic window of its second. So direction i costs
    ``rate * c1 * (1 + c2)``, here with rates 1, 1 and 4, and gives ``rate * c1 * c2`` results.
    """
    known = setting.model(
        rate=[1.0, 1.0, 4.0],
        candidates=np.full((3, 2), 10.0),
        matches=np.full((3, 2), 10.0),
        scores=[
            [np.ones(10), np.ones(10)],
            # the second direction finds more in its third basic window than in any other
            [[1, 1, 8, 0, 0, 0, 0, 0, 0, 0], np.ones(10)],
            [np.ones(10), np.ones(10)],
        ],
    )
    counts, frozen = np.full((3, 2), 2), np.zeros((3, 2), np.int64)
    before = setting.cost(counts, known)
    # z31 and z32 would cost 12 and 8 more; z21 costs 10 (its partial results cost most), and is
    # the best of what is left; after that there is not enough for anything else
    kernels.pick(kernels.BEST_GAIN_PER_COST, before + 11.0, -1, counts, frozen, known)
    assert frozen[2].tolist() == [1, 1]
    assert setting.cost(counts, known) <= before + 11.0
    assert (counts >= 2).all()
    assert counts[2].tolist() == [2, 2]
    assert frozen.all()  # the last setting: nothing can be added to it


def test_figure_3_three_and_two_logical_basic_windows():
    """R1 = {3, 2}: three of five basic windows of W3 (ranks 4, 3, 5), two of W2 (ranks 3, 2)."""
    query = sw.join(
        *(sw.Stream(f"s{i}", "ts", 49) for i in (1, 2, 3)),
        shed=sw.Harvest(budget=1e9, every=10**6, basic_window=10),
        goal=sw.NoSlack(),
    )
    old = pa.table({"ts": np.arange(51, 101)})  # everything in the windows of an event at 100
    new = pa.table({"ts": [100]})
    engine = JoinEngine(query, dict.fromkeys(query.names, old.schema))
    shed = engine.shedder.shed
    shed.number[places.SAMPLE] = 0.0
    shed.ctl[places.SHEDDING] = 1
    for stream, ages in ((2, [3, 2, 4]), (1, [2, 1])):  # counted from 0
        engine.shedder.segments.choose(0, stream, ages)
    tables = {"s1": new, "s2": old, "s3": old}
    batch, _ = recorded(query, tables, None)
    output = engine.feed(batch)
    output.extend(engine.flush())
    times = output.table.select(["s2_ts", "s3_ts"]).to_pydict()
    assert sorted(set(times["s3_ts"])) == list(range(51, 81))  # ages 20 to 49
    assert sorted(set(times["s2_ts"])) == list(range(71, 91))  # ages 10 to 29
    assert output.table.num_rows == 30 * 20


def test_the_throttle_falls_by_beta_and_rises_by_the_boost():
    """III-A with γ = 1.2, as in Fig. 2."""
    throttle = Throttle("rates", boost=1.2)
    half = Load(pushed=100, consumed=50.0, left=0.0, possible=0.0, waiting=0.0)
    enough = half._replace(consumed=100.0)
    seen = [throttle.adapt(load) for load in (half, half, enough, enough)]
    assert seen == pytest.approx([0.5, 0.25, 0.3, 0.36])
    assert Throttle("rates", boost=1.2).adapt(enough) == 1.0


def test_scores_come_from_one_histogram_per_stream():
    """Eq. 2 and 4: S2 lags behind S1 by 4 s, S3 by 5 s; b = 2 s."""
    lengths = [10, 10, 10]
    query = sw.join(
        *(sw.Stream(f"s{i}", "ts", 10) for i in (1, 2, 3)),
        shed=sw.Harvest(budget=1e9, basic_window=2, scores="per-stream"),
        goal=sw.NoSlack(),
    )
    schema = pa.schema({"ts": pa.int64()})
    shed = JoinEngine(query, dict.fromkeys(query.names, schema)).shedder.shed
    shed.lags[1, 10 + 4] = 100.0  # buckets of one unit from -10 on
    shed.lags[2, 10 + 5] = 100.0
    # S2 after S1: an event of S2 finds S1 in the third basic window, ages 4 to 6
    assert lag_scores(1, 0, shed, lengths).tolist() == [0, 0, 100, 0, 0]
    # and S3 finds S1 in the same one, ages 5 to 6
    assert lag_scores(2, 0, shed, lengths).tolist() == [0, 0, 100, 0, 0]
    # S1 comes first: it finds nothing
    assert lag_scores(0, 1, shed, lengths).tolist() == [0, 0, 0, 0, 0]
    # S3 is one behind S2, give or take the width of a bucket: half of it before age 2, with Eq. 4
    assert lag_scores(2, 1, shed, lengths).tolist() == [10_000, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("window", "basic", "lag", "place"), [(100, 5, 90, 18), (140, 7, 120, 17), (220, 11, 200, 18)]
)
def test_lags_are_found_in_short_basic_windows_too(window, basic, lag, place):
    # an event of S2 comes 90 after its partner of S1: with b = 5 in basic window 18, ages 90 to 94
    query = sw.join(
        *(sw.Stream(f"s{i}", "ts", window) for i in (1, 2)),
        shed=sw.Harvest(budget=1e9, every=10**6, basic_window=basic, scores="per-stream"),
        goal=sw.NoSlack(),
    )
    first, last = pa.table({"ts": [1000]}), pa.table({"ts": [1000 + lag]})
    engine = JoinEngine(query, dict.fromkeys(query.names, first.schema))
    engine.shedder.shed.number[places.SAMPLE] = 1.0  # all events are in the sample
    engine.feed(recorded(query, {"s1": first, "s2": last}, None)[0])
    engine.flush()
    scores = lag_scores(1, 0, engine.shedder.shed, [window, window])
    assert scores.tolist() == [float(k == place) for k in range(-(-window // basic))]


# ---- IV-C and V-A.2 by hand: two streams, two basic windows each
#
#   S1: a basic window costs 4 and gives 6 results      S2: it costs 2 and gives 4, or 2.8


TWO = setting.model(
    rate=[1.0, 1.0], candidates=[[8.0], [4.0]], matches=[[12.0], [6.8]],
    scores=[[[6.0, 6.0]], [[4.0, 2.8]]],
)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "budget", "counts", "output"),
    [
        ("output", 4.0, [1, 0], 6.0),  # 6 is more than 4
        ("output per cost", 4.0, [0, 2], 6.8),  # 4 / 2 is more than 6 / 4
        ("gain per cost", 4.0, [0, 2], 6.8),
        ("output", 6.0, [1, 1], 10.0),
        ("output per cost", 6.0, [0, 2], 6.8),  # after [0, 1]: 6.8 / 4 is more than 10 / 6
        ("gain per cost", 6.0, [1, 1], 10.0),  # but 6 / 4 is more than 2.8 / 2
    ],
)
def test_best_output_best_output_per_cost_and_best_gain_per_cost(metric, budget, counts, output):
    found = setting.choose(TWO, budget, "greedy", metric)
    assert found.ravel().tolist() == counts
    assert setting.output(found, TWO) == pytest.approx(output)


def test_greedy_reverse_leaves_out_what_loses_least_for_its_cost_and_adds_nothing_again():
    # all costs 12; 2 for 2.8 is cheaper to lose than 4 for 6, then 4 for 6 than 2 for 4
    assert setting.choose(TWO, 9.0, "reverse").ravel().tolist() == [1, 1]
    # ours uses the 3 that are left
    assert setting.choose(TWO, 9.0, "better").ravel().tolist() == [1, 2]


def test_double_sided_switches_at_a_half_to_the_power_of_half_the_other_streams():
    # m = 2: 0.5 ** 0.5 = 0.707 of 12
    assert setting.choose(TWO, 0.70 * 12, "double-sided").ravel().tolist() == [1, 2]  # greedy
    assert setting.choose(TWO, 0.72 * 12, "double-sided").ravel().tolist() == [1, 1]  # reverse


def test_the_settings_that_greedy_tries_are_counted():
    # budget 4: [1, 0] and [0, 1] once each; then [1, 1] is too much, [0, 2] is taken, and [1, 2]
    # is not tried, as S1 is frozen
    assert setting.searched(TWO, 4.0, "greedy")[1] == 4
    # all of 12 to 9: both twice, as above
    assert setting.searched(TWO, 9.0, "reverse")[1] == 4
    assert setting.searched(TWO, 4.0, "exhaustive")[1] == 9  # each direction: off, 1 or 2


def work_after_a_decision(**options):
    """The work in the buffer of the virtual server right after the first Δ; 1 is 0.001 ms."""
    query = sw.join(
        sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10), where="a.x <= b.x",
        shed=sw.Harvest(budget=1e6, every=20, fraction=0.5, search="greedy", basic_window=5,
                        index="none", **options),
        goal=sw.NoSlack(),
    )  # fmt: skip
    tables = {name: pa.table({"ts": np.arange(21), "x": np.zeros(21)}) for name in "ab"}
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    engine.feed(recorded(query, tables, None)[0])
    assert engine.shedder.is_shedding
    return 1000 * float(engine.shedder.shed.number[places.WORK])


def test_the_time_of_setting_is_charged_to_the_virtual_server():
    # two streams of two basic windows, half of the work: [1, 0] and [0, 1] are tried, and one is
    # taken; with the other, or with its own second one, it would be a little more than half
    events = work_after_a_decision()
    assert work_after_a_decision(setting_cost=5.0) - events == pytest.approx(5.0 * (2 + 2))


def cost_after_drops(buffer):
    """What the whole join is taken to cost a ms, after a Δ in which events were dropped."""
    query = sw.join(
        sw.Stream("a", "ts", 1000), sw.Stream("b", "ts", 1000), where="a.x <= b.x",
        shed=sw.Harvest(budget=200.0, every=20, buffer=buffer, index="none", sample=0.9),
        goal=sw.NoSlack(),
    )  # fmt: skip
    tables = {name: pa.table({"ts": np.arange(21), "x": np.zeros(21)}) for name in "ab"}
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    engine.feed(recorded(query, tables, None)[0])
    metrics = engine.metrics()
    assert 30 < metrics.shed < 42
    return metrics.shedding.full_cost / 1000


def test_a_throttle_slower_than_its_buffer_plans_with_the_events_that_were_dropped():
    # of 20 events of each stream all but three or so were dropped; while windows fill, an event
    # meets half of those that are there in the end
    assert cost_after_drops(buffer=19) == pytest.approx(2 * 20 / 2, rel=0.1)
    assert cost_after_drops(buffer=20) == pytest.approx(2 * 3 / 2, rel=0.1)


# ---- what the paper learns


def learning_of(scores):
    query = sw.join(
        sw.Stream("s1", "ts", 100), sw.Stream("s2", "ts", 100), sw.Stream("s3", "ts", 100),
        shed=sw.Harvest(budget=1e9, basic_window=50, scores=scores), goal=sw.NoSlack(),
    )  # fmt: skip
    schema = pa.schema({"ts": pa.int64()})
    shedder = JoinEngine(query, dict.fromkeys(query.names, schema)).shedder
    return shedder.learning, shedder.shed


def test_orders_of_the_paper_are_by_selectivity_and_selectivities_know_no_direction():
    window, tied = np.array([10.0, 1000.0, 10.0]), [{1, 2}, {0, 2}, {0, 1}]
    found = {}
    for scores in ("per-stream", "direction"):
        learning, shed = learning_of(scores)
        shed.entered[0, 0, 1:] = 100.0
        # S1 found 10 of 1000 in S2, and nothing was found in 1000 the other way
        shed.compared[0, 0, 1], shed.passed[0, 0, 1, 0] = 1000.0, 10.0
        shed.compared[0, 1, 0] = 1000.0
        # and 100 of 1000 in S3
        shed.compared[0, 0, 2], shed.passed[0, 0, 2, 0] = 1000.0, 100.0
        matches = [learning.matches(0, 0, s, window) for s in (1, 2)]
        matches.append(learning.matches(0, 1, 0, window))
        found[scores] = matches, learning.orders([[1, 2], [0, 2], [0, 1]], tied, window)[0]
    matches, order = found["per-stream"]
    assert order == [1, 2]  # 0.005 of 1000 is less than 0.1 of 10, as a selectivity
    assert matches == pytest.approx([5.0, 1.0, 0.05], rel=0.06)
    matches, order = found["direction"]
    assert order == [2, 1]  # one match is less than ten
    assert matches == pytest.approx([10.0, 1.0, 0.0], rel=0.06, abs=0.01)


def test_beta_of_the_paper_is_of_events_that_left_the_buffer():
    # an event each ms, of a and b in turn; each comes to the join with the next one. The n-th is
    # compared with n // 2 others, half a ms each. They leave the buffer at 2, 3, 4, 5, 6, 7, 8.5,
    # 10, 12, 14, 16.5 and 19: 11 of the 16 in 17 ms. By their mean cost it would be less than 10
    query = sw.join(
        sw.Stream("a", "ts", 1000), sw.Stream("b", "ts", 1000), where="a.x <= b.x",
        shed=sw.Harvest(budget=2000.0, every=17, buffer=1000, throttle="rates", index="none"),
        goal=sw.NoSlack(),
    )  # fmt: skip
    tables = {
        name: pa.table({"ts": np.arange(first, 18, 2), "x": np.zeros(10 - first)})
        for first, name in ((1, "a"), (2, "b"))
    }
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    engine.feed(recorded(query, tables, None)[0])
    assert engine.shedder.throttle.z == 11 / 16 == 0.6875


def test_random_drop_keeps_equal_shares_of_equal_streams():
    """Three alike streams, also in the orders, at half the cost: the cost is spent evenly."""
    rate, order = np.full(3, 10.0), np.array([[1, 2], [2, 0], [0, 1]])
    candidates, matches = np.full((3, 2), 100.0), np.full((3, 2), 2.0)
    keep, gradient = np.ones(3), np.zeros(3)
    whole = drop_rates.drop_cost(keep, rate, order, candidates, matches, gradient)
    drop_rates.best_shares(whole / 2, rate, order, candidates, matches, keep, np.zeros(3), gradient)
    # 3 * 10 x * (100 x + 2 x * 100 x) = 4500  <=>  x^2 + 2 x^3 = 1.5
    x = keep[0]
    assert keep == pytest.approx([x, x, x], rel=1e-6)
    assert x**2 + 2 * x**3 == pytest.approx(1.5, rel=1e-6)


# ---- VII: basic windows sorted by value; b = 20, abs(a.x - b.x) <= 1
#
#   time      80 ... 94                            101   102   103   |   105     106
#   stream b  15 events, x = 14, 13, ... 0         x=7   x=40  x=41
#   stream a                                                         |   x=7.5   x=7.5
#
# The basic window from 80 to 99 is over: bisection costs 2 log2(16) = 8, and x = 7 and 8 are near
# enough. That from 100 on still grows: all of its 3 events are compared. So each of a costs 13.


def test_only_what_is_near_is_compared_in_a_basic_window_that_is_over():
    a = pa.table({"ts": [105, 106], "x": [7.5, 7.5]})
    b = pa.table({"ts": [*range(80, 95), 101, 102, 103], "x": [*range(14, -1, -1), 7, 40, 41]})
    b = b.set_column(1, "x", b["x"].cast(pa.float64()))
    query = sw.join(
        *(sw.Stream(name, "ts", 100) for name in "ab"),
        where="abs(a.x - b.x) <= 1",
        shed=sw.Harvest(budget=1e15, every=10**6, basic_window=20),
        goal=sw.NoSlack(),
    )
    engine = JoinEngine(query, dict.fromkeys("ab", a.schema))
    engine.shedder.shed.number[places.SAMPLE] = 0.0
    batch, _ = recorded(query, {"a": a, "b": b}, None)
    output = engine.feed(batch)
    output.extend(engine.flush())
    assert sorted(output.table["b_ts"].to_pylist()) == [86, 86, 87, 87, 101, 101]
    assert engine.metrics().shedding.comparisons == 2 * (8 + 2 + 3)
    # and the second event finds the 15 sorted
    assert engine.join._index.arrays.room[1, HEAD] == 15


def test_what_joined_is_learnt_by_the_age_of_each_member():
    """Seen from C25 (b = 10), A0 is 25 old and B12 13; B14 passed the first step, but not C's."""
    query = sw.join(
        *(sw.Stream(name, "ts", 49) for name in "abc"),
        where="a.x <= b.x and b.x == c.x",
        shed=sw.Harvest(budget=1e15, every=10**6, basic_window=10, index="none"),
        goal=sw.NoSlack(),
    )
    tables = {
        "a": pa.table({"ts": [0], "x": [1]}),
        "b": pa.table({"ts": [12, 14], "x": [1, 2]}),
        "c": pa.table({"ts": [25], "x": [1]}),
    }
    engine = JoinEngine(query, dict.fromkeys("abc", tables["a"].schema))
    engine.shedder.shed.number[places.SAMPLE] = 1.0  # all events are in the sample
    engine.feed(recorded(query, tables, None)[0])
    engine.flush()
    joined = engine.shedder.shed.joined
    assert np.argwhere(joined).tolist() == [[2, 0, 2], [2, 1, 1]]  # of c's event: stream, age
    assert joined.sum() == 2


# ---- IV: harvesting by time; b = 10, an event of each stream each time, and a pair if it is near


@pytest.mark.parametrize("index", ["sorted", "none"])
@pytest.mark.parametrize("ages", [[0], [1], [3], [0, 2], [1, 2], [0, 1, 2, 3]])
def test_a_segment_has_the_events_of_its_ages_and_no_other(index, ages):
    """Whether its basic windows are sorted by value, still grow, or lie in order of time."""
    x = {name: [(7 * t + s) % 4 for t in range(75)] for s, name in enumerate("ab")}
    tables = {name: pa.table({"ts": range(75), "x": x[name]}) for name in "ab"}
    query = sw.join(
        *(sw.Stream(name, "ts", 38) for name in "ab"),
        where="abs(a.x - b.x) <= 1",
        shed=sw.Harvest(budget=1e15, every=10**6, basic_window=10, index=index),
        goal=sw.NoSlack(),
    )
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    engine.shedder.shed.number[places.SAMPLE] = 0.0
    engine.shedder.shed.ctl[places.SHEDDING] = 1
    for start in range(2):
        engine.shedder.segments.choose(start, 1 - start, ages)
    output = engine.feed(recorded(query, tables, None)[0])
    output.extend(engine.flush())
    found = zip(output.table["a_ts"].to_pylist(), output.table["b_ts"].to_pylist(), strict=True)
    assert sorted(found) == [
        (a, b)
        for a in range(75)
        for b in range(75)
        if abs(a - b) <= 38 and abs(a - b) // 10 in ages and abs(x["a"][a] - x["b"][b]) <= 1
    ]
