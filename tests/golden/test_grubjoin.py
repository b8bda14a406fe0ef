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
