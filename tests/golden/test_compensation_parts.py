"""Compensation by parts: what is counted of a window, what is reported of it, and all estimates.

Counts and products are compared with a join by loops. What is reported of a window is worked out
from an estimator that says what the test says.
"""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.compensation.compensator import AggregateValue, Compensator
from slackwater.compensation.delay_weighting import DelayWeightingEstimator, _nearness, _weights
from slackwater.compensation.factory import estimator_for
from slackwater.compensation.mlp import MlpEstimator
from slackwater.compensation.observation import Estimate, Truth, WindowObservation, cells_for
from slackwater.compensation.tally import Events, Tally
from slackwater.compensation.tally_codec import TallyCodec
from slackwater.compensation.values import Values

Z80 = 1.2815515655446004  # a normal number is within so many deviations with 80 %

# ---- what is counted


def some_events(n, m, cells, n_values, groups, seed):
    rng = np.random.default_rng(seed)
    return Events(
        stream=rng.integers(0, m, n), cell=rng.integers(0, cells, n), key=rng.integers(0, 4, n),
        group=np.zeros(n, np.int64) if groups is None else rng.integers(0, groups, n),
        values=rng.integers(-3, 9, (n_values, n)).astype(float),
        delay=rng.integers(0, 40, n).astype(float),
        arrival=np.sort(rng.integers(1, 99, n)).astype(float),
    )  # fmt: skip


@pytest.mark.parametrize(("m", "by"), [(2, None), (2, 0), (2, 1), (3, None), (3, 2)])
def test_the_products_of_a_window_are_those_of_a_join_by_loops(m, by):
    cells, value_of = 3, np.array([1, 0, m - 1])
    names = [()] if by is None else [("x",), ("y",), ("z",)]
    events = some_events(30, m, cells, len(value_of), len(names), m)
    if by is not None:  # only the stream that makes groups has any
        events = events._replace(group=np.where(events.stream == by, events.group, 0))
    tally = Tally.of(events, (m, cells, 1 + len(value_of)), value_of, by, names)
    counts, delay, latest = np.zeros((m, cells)), [None] * m, np.zeros(m)
    for s, cell, late, at in zip(
        events.stream, events.cell, events.delay, events.arrival, strict=True
    ):
        counts[s, cell] += 1
        delay[s] = late if delay[s] is None else delay[s] + (late - delay[s]) / 8
        latest[s] = max(latest[s], at)
    assert tally.counts.tolist() == counts.tolist()
    assert tally.delay == pytest.approx(delay)
    assert tally.latest.tolist() == latest.tolist()
    wanted = np.zeros((len(names), 1 + len(value_of), *(cells,) * m))
    own = [np.flatnonzero(events.stream == s) for s in range(m)]
    for members in itertools.product(*own):
        if len({events.key[i] for i in members}) == 1:
            at = tuple(events.cell[i] for i in members)
            group = 0 if by is None else events.group[members[by]]
            wanted[(group, 0, *at)] += 1
            for v, s in enumerate(value_of):
                wanted[(group, 1 + v, *at)] += events.values[v, members[s]]
    assert wanted.any()
    for g in range(len(names)):
        assert tally.tensor(g) == pytest.approx(wanted[g])
    assert tally.values == pytest.approx(wanted.reshape(len(names), 1 + len(value_of), -1).sum(2))
    assert tally.groups == names
    whole = wanted.sum(axis=0)
    seen = tally.observation(60)
    assert seen.products == pytest.approx(whole)
    assert (seen.counts is tally.counts, seen.length) == (True, 60.0)
    assert tally.truth.found == pytest.approx(
        whole.reshape(1 + len(value_of), cells, -1).sum(axis=2)
    )


def test_a_key_that_a_stream_lacks_joins_nothing():
    one = np.array([0, 0, 1])
    events = Events(one, one, np.array([5, 6, 6]), one * 0, np.ones((0, 3)), one * 1.0, one * 1.0)
    tally = Tally.of(events, (2, 2, 1), np.empty(0, np.int64), None, [()])
    assert tally.products.tolist() == [[[0.0, 1.0, 0.0, 0.0]]]
    assert tally.values.tolist() == [[1.0]]


def test_a_first_event_without_delay_is_like_none():
    """The mean begins with the first delay, or with the next one after a window's very start."""
    zero = np.zeros(3, np.int64)
    for delays, arrivals, wanted in (
        ([8.0, 16.0, 0.0], [1.0, 2.0, 3.0], (8 + 1) * 7 / 8),
        ([0.0, 16.0, 16.0], [0.0, 1.0, 2.0], 16.0),
        ([0.0, 16.0, 0.0], [1.0, 2.0, 3.0], 2 * 7 / 8),
    ):
        events = Events(
            zero, zero, zero, zero, np.ones((0, 3)), np.array(delays), np.array(arrivals)
        )
        tally = Tally.of(events, (1, 2, 1), np.empty(0, np.int64), None, [()])
        assert tally.delay.tolist() == [wanted]


@pytest.mark.parametrize(
    ("types", "groups"),
    [
        ([], [()]),
        ([pa.string()], [("a",), (None,), ("ä",)]),
        ([pa.int64(), pa.timestamp("ms")], [(5, None), (None, None)]),
        ([pa.string(), pa.int64()], []),
    ],
)
def test_a_tally_is_the_same_when_it_is_read_again(types, groups):
    rng = np.random.default_rng(len(groups))
    tally = Tally(
        rng.random((2, 3)), rng.random((len(groups), 2, 9)), groups, rng.random(2), rng.random(2)
    )
    codec = TallyCodec((2, 3, 2), types)
    plain = json.loads(json.dumps(codec.encode(tally)))
    again = codec.decode(plain)
    assert again.groups == groups
    for name in ("counts", "products", "delay", "latest"):
        assert getattr(again, name).tolist() == getattr(tally, name).tolist()
    again.counts[0, 0] = 5.0  # it can be added to


# ---- what is reported


def query_of(**options):
    given = {
        "on": "k", "window": sw.Tumbling(10), "deadline": 12, "confidence": 0.8, "late": "emit",
        "select": {"n": sw.count(), "total": sw.functions.sum("a.v"), "mean": sw.avg("b.f")},
    }  # fmt: skip
    return sw.aggregate(sw.Stream("a", "ts"), sw.Stream("b", "ts"), **given | options)


SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64(), "f": pa.float64()})


class Says:
    """An estimator that says what it is told, and remembers what it was taught."""

    def __init__(self, estimate):
        self.said, self.taught, self.asked = estimate, [], 0

    def estimate(self, observation):  # noqa: ARG002
        self.asked += 1
        return self.said

    def learn(self, observation, estimate, truth):
        self.taught.append((observation, estimate, truth))

    def state(self):
        return {"asked": self.asked}

    def resume(self, state):
        self.asked = state["asked"]


def compensator_of(says=None, types=(), **options):
    query = query_of(**options)
    values = Values(query, [SCHEMA, SCHEMA])
    made = Compensator(query, values, TallyCodec((2, 2, values.n), list(types)))
    if says is not None:
        made.estimator = says
    return made


def tally_of(values, groups=((),), counts=((3.0, 1.0), (2.0, 2.0))):
    """A tally with all results of a group in one combination of cells."""
    products = np.zeros((len(groups), len(values[0]), 4))
    products[:, :, 1] = values
    return Tally(np.array(counts), products, list(groups), np.zeros(2), np.zeros(2))


# results, sum of a.v, those with b.f, their sum
SEEN = (4.0, 6.0, 20.0, 4.0)


def estimate_of(values, spread, sizes=(6.0, 4.0), weights=None, scale=None):
    scale = np.ones(len(values)) if scale is None else np.array(scale)
    return Estimate(weights, scale, np.array(values), np.array(spread), np.array(sizes))


def test_without_compensation_a_window_is_reported_as_it_is():
    made = compensator_of(compensate=False)
    assert made.estimator is None
    (row,) = made.report_early(10, tally_of([SEEN]))
    assert (row.start, row.group, row.completeness, row.exact) == (10, (), None, False)
    assert row.aggregates == [AggregateValue(x, x, None, None) for x in (4.0, 6.0, 5.0)]
    (row,) = made.close(10, tally_of([(5.0, 6.0, 0.0, 0.0)]))
    assert (row.start, row.completeness, row.exact) == (10, 1.0, True)
    assert row.aggregates == [
        AggregateValue(5.0, 5.0, 5.0, 5.0), AggregateValue(6.0, 6.0, 6.0, 6.0),
        AggregateValue(None, None, None, None),
    ]  # fmt: skip
    final = compensator_of(compensate=False, late="count")
    final.report_early(10, tally_of([SEEN]))
    assert final.close(10, tally_of([SEEN])) == []
    assert len(final.close(20, tally_of([SEEN]))) == 1  # it was not reported yet
    final.report_early(30, tally_of([SEEN]))
    final.forget(30)
    final.forget(40)
    assert len(final.close(30, tally_of([SEEN]))) == 1


def test_an_early_report_has_estimates_and_intervals():
    says = Says(estimate_of((8.0, 12.0, 30.0, 5.0), (0.25, 0.5, 0.1, 0.1)))
    made = compensator_of(says)
    (row,) = made.report_early(10, tally_of([SEEN]))
    assert row.completeness == 8 / 10
    reach = 1.5 * Z80  # few windows
    wanted = [
        AggregateValue(4.0, 8.0, max(4.0, 8 - reach * 2), 8 + reach * 2),
        AggregateValue(6.0, 12.0, 12 - reach * 6, 12 + reach * 6),
        AggregateValue(5.0, 6.0, 6 - reach * 0.6, 6 + reach * 0.6),
    ]
    for found, own in zip(row.aggregates, wanted, strict=True):
        assert found == pytest.approx(own)
    assert row.aggregates[0].low == pytest.approx(8 - reach * 2)
    says.said = estimate_of((4.5, 12.0, 30.0, 5.0), (1.0, 0.5, 0.1, 0.1), sizes=(0.0, 0.0))
    (row,) = made.report_early(20, tally_of([SEEN]))
    assert row.aggregates[0].low == 4.0  # a count can only grow
    assert row.completeness is None
    says.said = estimate_of((3.0, 12.0, 30.0, 5.0), (0.01, 0.5, 0.1, 0.1))
    (row,) = made.report_early(30, tally_of([SEEN]))
    assert row.aggregates[0] == AggregateValue(4.0, 4.0, 4.0, 4.0)


def test_what_is_not_known_has_no_interval():
    says = Says(estimate_of((0.0, -2.0, 0.0, 0.0), (math.inf, math.inf, 0.5, 0.5)))
    made = compensator_of(says)
    (row,) = made.report_early(10, tally_of([(0.0, 0.0, 0.0, 0.0)]))
    assert row.aggregates == [
        AggregateValue(0.0, 0.0, 0.0, None),  # a count is not below what is there
        AggregateValue(0.0, -2.0, None, None),
        AggregateValue(None, None, None, None),
    ]
    # of nothing the error is 1, whatever its share would be
    says.said = estimate_of((0.0, 0.0, 0.0, 0.0), (0.5, 0.25, 0.5, 0.5))
    (row,) = made.report_early(20, tally_of([(0.0, 0.0, 0.0, 0.0)]))
    assert row.aggregates[0] == pytest.approx(AggregateValue(0.0, 0.0, 0.0, 1.5 * Z80))
    assert row.aggregates[1] == pytest.approx(AggregateValue(0.0, 0.0, -1.5 * Z80, 1.5 * Z80))
    says.said = estimate_of((2.0, -4.0, 0.0, 0.0), (0.5, 0.25, 0.5, 0.5))
    (row,) = made.report_early(30, tally_of([(0.0, 0.0, 0.0, 0.0)]))
    assert row.aggregates[1] == pytest.approx(
        AggregateValue(0.0, -4.0, -4 - 1.5 * Z80, -4 + 1.5 * Z80)
    )


def test_a_group_is_less_certain_than_the_whole():
    says = Says(
        estimate_of((16.0, 20.0, 1.0, 1.0), (0.25, 0.25, 0.1, 0.1), scale=(2.0, 1.0, 1.0, 1.0))
    )
    made = compensator_of(says, [pa.string()], by="b.s")
    parts = [(2.0, 5.0, 1.0, 1.0), (6.0, 15.0, 0.0, 0.0), (0.0, 80.0, 2.0, 0.0)]
    one, two, three = made.report_early(10, tally_of(parts, [("x",), ("y",), (None,)]))
    assert [row.group for row in (one, two, three)] == [("x",), ("y",), (None,)]
    # 4 of 16 results: twice as uncertain
    reach = 1.5 * Z80
    assert one.aggregates[0] == pytest.approx(AggregateValue(2.0, 4.0, 2.0, 4 + reach * 4 * 0.5))
    assert two.aggregates[0] == pytest.approx(
        AggregateValue(6.0, 12.0, max(6.0, 12 - reach * 3 * (16 / 12) ** 0.5),
                       12 + reach * 3 * (16 / 12) ** 0.5)
    )  # fmt: skip
    assert three.aggregates[0] == pytest.approx(AggregateValue(0.0, 0.0, 0.0, reach))
    # more than the whole is as certain as the whole
    assert three.aggregates[1] == pytest.approx(
        AggregateValue(80.0, 80.0, 80 - reach * 20, 80 + reach * 20)
    )
    assert one.completeness == 0.8


def test_complete_windows_teach_the_estimator_and_the_intervals():
    said = estimate_of((8.0, 12.0, 30.0, 5.0), (0.25, 0.5, 0.1, 0.1))
    says = Says(said)
    made = compensator_of(says)
    early, whole = tally_of([SEEN]), tally_of([(9.0, 60.0, 18.0, 3.0)])
    made.report_early(10, early)
    made.close(10, whole)
    ((seen, estimate, truth),) = says.taught
    assert (seen.length, estimate is said, says.asked) == (10.0, True, 1)
    assert truth.values.tolist() == [9.0, 60.0, 18.0, 3.0]
    states = [own.state() for own in made._intervals]
    # errors: of 8 ± 2, 12 ± 6 and 6 ± 0.6; 60 was not inside
    assert [past for _, past in states] == [[0.5], [8.0], [0.0]]
    assert [aim for aim, _ in states] == pytest.approx([0.202, 0.192, 0.202])
    assert [own.state()[1] for own in made._intervals_of_zero] == [[], [], []]
    made.close(20, whole)  # it was never reported: nothing to learn
    assert len(says.taught) == 1
    # windows whose estimate was 0 have intervals of their own
    says.said = estimate_of((0.0, 0.0, 0.0, 0.0), (0.25, 0.5, 0.1, 0.1))
    made.report_early(30, tally_of([(0.0, 0.0, 0.0, 0.0)]))
    made.close(30, tally_of([(3.0, 0.0, 0.0, 0.0)]))
    assert [own.state()[1] for own in made._intervals_of_zero] == [[3.0], [0.0], []]
    assert [len(own.state()[1]) for own in made._intervals] == [1, 1, 1]


def test_an_aggregate_without_a_value_does_not_keep_others_from_learning():
    says = Says(estimate_of((8.0, 0.0, 0.0), (0.25, 0.1, 0.1)))
    made = compensator_of(says, select={"mean": sw.avg("b.f"), "n": sw.count()})
    made.report_early(10, tally_of([(4.0, 0.0, 0.0)]))
    made.close(10, tally_of([(9.0, 0.0, 0.0)]))
    assert [own.state()[1] for own in made._intervals] == [[], [0.5]]


def test_weights_are_estimated_again_as_they_would_be_now():
    weights = np.ones((2, 2))
    says = Says(estimate_of((8.0, 12.0, 30.0, 5.0), (0.25, 0.5, 0.1, 0.1), weights=weights))
    made = compensator_of(says)
    made.report_early(10, tally_of([SEEN]))
    says.said = now = estimate_of((7.0, 12.0, 30.0, 5.0), (0.25, 0.5, 0.1, 0.1), weights=weights)
    made.close(10, tally_of([(9.0, 60.0, 18.0, 3.0)]))
    assert says.taught[0][1] is now
    assert made._intervals[0].state()[1] == [2.0 / 1.75]


def test_of_many_groups_the_first_fifty_are_learnt_from():
    n = 52
    says = Says(estimate_of((8.0, 12.0, 30.0, 5.0), (0.25, 0.5, 0.1, 0.1)))
    made = compensator_of(says, [pa.string()], by="b.s")
    names = [(f"{i:02}",) for i in range(n)]
    made.report_early(10, tally_of([SEEN] * n, names))
    made.close(10, tally_of([SEEN] * (n + 1), [*names, ("late",)]))
    assert [len(own.state()[1]) for own in made._intervals] == [50] * 3
    assert made._intervals[0].state()[0] == pytest.approx(0.2 + 50 * 0.01 * 0.2)


def test_a_compensator_goes_on_from_its_state():
    says = Says(estimate_of((8.0, 12.0, 30.0, 5.0), (0.25, math.inf, 0.1, 0.1)))
    made = compensator_of(says, [pa.string()], by="b.s", compensate="aema")
    made.report_early(10, tally_of([SEEN], [("x",)]))
    made.close(10, tally_of([(9.0, 60.0, 18.0, 3.0)], [("x",)]))
    made.report_early(20, tally_of([SEEN, SEEN], [("x",), (None,)]))
    weighted = estimate_of((8.0, 12.0, 30.0, 5.0), (0.2, 0.2, 0.2, 0.2), weights=np.ones((2, 2)))
    says.said = weighted
    made.report_early(30, tally_of([SEEN], [("y",)]))
    state = json.loads(json.dumps(made.state()))
    other = Says(weighted)
    again = compensator_of(other, [pa.string()], by="b.s", compensate="aema")
    again.resume(state)
    assert other.asked == 3
    assert json.loads(json.dumps(again.state())) == state
    whole = {20: [("x",), ("z",), (None,)], 30: [("y",)]}
    for start, groups in whole.items():
        tally = tally_of([(9.0, 60.0, 18.0, 3.0)] * len(groups), groups)
        assert again.close(start, tally) == made.close(start, tally)
    assert again.state()["intervals"] == made.state()["intervals"]
    # another estimator, or another confidence, begins anew; what was reported stays reported
    for options in ({"compensate": "svi"}, {"compensate": "aema", "confidence": 0.9}):
        new = compensator_of(Says(weighted), [pa.string()], by="b.s", **options)
        new.resume(state)
        assert new.state()["intervals"][0][1] == []
        assert set(new.state()["early"]) == {"20", "30"}
    nothing = compensator_of(None, [pa.string()], by="b.s", compensate=False)
    nothing.report_early(10, tally_of([SEEN], [("x",)]))
    assert json.loads(json.dumps(nothing.state()))["early"] == {"10": None}
    resumed = compensator_of(None, [pa.string()], by="b.s", compensate=False, late="count")
    resumed.resume(nothing.state())
    assert resumed.close(10, tally_of([SEEN], [("x",)])) == []


def test_the_estimator_of_a_query():
    kinds = {
        True: "DelayWeightingEstimator", "delays": "DelayWeightingEstimator",
        "aema": "AemaEstimator", "svi": "SviEstimator", "mlp": "MlpEstimator",
        "mlp-elbo": "MlpEstimator", False: "NoneType",
    }  # fmt: skip
    for given, kind in kinds.items():
        query = query_of(compensate=given)
        made = estimator_for(query, Values(query, [SCHEMA, SCHEMA]))
        assert type(made).__name__ == kind
        if isinstance(made, MlpEstimator):
            assert made.recipe["elbo"] == (given == "mlp-elbo")
            assert (made.recipe["streams"], made.recipe["cells"], made.recipe["values"]) == (
                2, 20, 4,
            )  # fmt: skip
    assert [cells_for(m) for m in range(1, 9)] == [20, 20, 7, 4, 3, 2, 2, 2]


# ---- our estimator, by hand


def test_near_cells_represent_what_is_missing():
    half = math.exp(-1 / 2)
    assert _nearness(3, 0.0).tolist() == np.eye(3).tolist()
    assert _nearness(3, 2.0) == pytest.approx(
        np.array([[1, half, half**2], [half, 1, half], [half**2, half, 1]])
    )
    assert _nearness(2, np.inf).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    counts, whole = np.array([[4.0, 2.0, 0.0]]), np.array([[4.0, 6.0, 3.0]])
    # by themselves: 4 are missing in the second cell; nobody is in the third, so all have half
    assert _weights(counts, whole, 0.0).tolist() == [[1 + 0.5, 1 + 2 + 0.5, 1 + 0.5]]
    assert _weights(counts, whole, np.inf) == pytest.approx(np.full((1, 3), 1 + 7 / 6))
    # what is missing is shared by those around it, by nearness
    around = [4 * half + 2, 4 * half**2 + 2 * half]
    weights = (
        1 + 4 / around[0] * np.array([half, 1, half]) + 3 / around[1] * np.array([half**2, half, 1])
    )
    found = _weights(counts, whole, 2.0)[0]
    assert found == pytest.approx(weights)
    assert (found * counts[0]).sum() == pytest.approx(13)
    # more than expected: nothing is missing
    assert _weights(whole, counts, 1.0).tolist() == [[1.0, 1.0, 1.0]]
    assert _weights(counts * 0, whole, 1.0).tolist() == [[14.0, 14.0, 14.0]]  # nobody at all


def known_window(counts, near=0.5, value=3.0):
    counts = np.array(counts)
    found = near * np.einsum("i,j->ij", *counts)
    return WindowObservation(
        counts, np.stack([found, value * found]), np.zeros(2), np.zeros(2), 10.0
    ), Truth(counts, np.stack([found.sum(axis=1), value * found.sum(axis=1)]))


def test_chance_and_the_mean_of_all_windows_by_hand():
    made = DelayWeightingEstimator(2, 2, 2)
    seen, _ = known_window([[4.0, 2.0], [3.0, 3.0]])
    _, truth = known_window([[4.0, 4.0], [3.0, 3.0]])
    first = made.estimate(seen)
    assert (first.values.tolist(), first.spread.tolist()) == ([18.0, 54.0], [math.inf] * 2)
    assert first.notes is None
    made.learn(seen, first, truth)
    second = made.estimate(seen)
    # the second cell had half of its events: 8 events are expected of stream 1, 6 of stream 2
    plain, blended, unit = second.notes
    assert second.sizes == pytest.approx([8.0, 6.0])
    assert unit == pytest.approx((1 - 6 / 8) / (6 / 8) / 8)
    assert plain[:, 0] == pytest.approx([24.0] * 6)
    assert blended is plain  # no variance is known
    spread = unit**0.5 * (1 + 10 * 6 / (1 + 18)) ** 0.5
    assert second.spread == pytest.approx([spread] * 2)


def test_estimates_that_were_exact_do_not_stay_certain():
    made = DelayWeightingEstimator(2, 2, 2)
    seen, _ = known_window([[4.0, 2.0], [3.0, 3.0]])
    _, truth = known_window([[4.0, 4.0], [3.0, 3.0]])
    for _ in range(3):  # a regular stream: the first estimates are exact
        made.learn(seen, made.estimate(seen), truth)
    assert made.estimate(seen).spread == pytest.approx([0.0, 0.0], abs=1e-6)
    _, more = known_window([[4.0, 6.0], [3.0, 3.0]])
    for _ in range(12):
        made.learn(seen, made.estimate(seen), more)
    assert (made._off.value > 1e-3).all()


def test_errors_of_estimates_are_learnt_by_their_expected_size():
    made = DelayWeightingEstimator(1, 1, 1)
    made._off.add(np.array([4.0]))
    plain, truth = np.full((6, 1), 10.0), Truth(np.ones((1, 1)), np.array([[13.0]]))
    made._learn_times(plain, 0.02, truth)
    assert made._off.state() == [[pytest.approx((4 + 0.3**2 / 0.02) / 2)], 2.0]
    made._learn_times(plain * 0, 0.02, truth)
    made._learn_times(plain, 0.0, truth)
    assert made._off.weight == 2.0  # nothing can be said by a factor of nothing
    for _ in range(2):
        made._off.add(np.array([1.0]))
    usual = float(made._off.value[0])
    made._learn_times(plain, 0.02, Truth(np.ones((1, 1)), np.array([[1e6]])))
    assert float(made._off.value[0]) == pytest.approx(usual + (25 * usual - usual) / 5)
