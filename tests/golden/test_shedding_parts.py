"""The parts of load shedding by themselves, with numbers that can be checked by eye."""

import math

import numpy as np
import pytest

import profiles
import slackwater as sw
from slackwater.kernels import basic_windows as pieces
from slackwater.kernels import drop_rates
from slackwater.kernels import shed as places
from slackwater.kernels.records import BEFORE
from slackwater.shedding import harvest_search
from slackwater.shedding.cost_model import CostModel
from slackwater.shedding.eviction import Eviction, ages_kept
from slackwater.shedding.join_orders import JoinOrders
from slackwater.shedding.kernel_state import AccessPaths, basic_windows, new_shed
from slackwater.shedding.learning import Learning, lag_scores
from slackwater.shedding.load import LoadMonitor
from slackwater.shedding.policy import (
    Expectation,
    HarvestPolicy,
    JoinParts,
    Policy,
    RandomDropPolicy,
    Situation,
    TailDropPolicy,
    policy_for,
)
from slackwater.shedding.sampling import Sampling
from slackwater.shedding.segments import HarvestSegments
from slackwater.shedding.shedder import Shedder
from slackwater.shedding.throttle import Load, Throttle

plain = pytest.mark.skipif(
    not profiles.PLAIN, reason="compiled, parts of kernels are in those that call them"
)
LENGTHS = (40, 30, 20)


def query_of(shedding, lengths=LENGTHS):
    streams = [sw.Stream(name, "ts", n) for name, n in zip("abcd", lengths, strict=False)]
    return sw.join(*streams, shed=shedding, goal=sw.NoSlack())


def paths_of(m=3, **options):
    """Nested loops, each stream with any other."""
    none = np.zeros((m, m), np.int64)
    given = {
        "orders": [[s for s in range(m) if s != i] for i in range(m)],
        "direct": np.full((m, m, 3), -1), "lookup": none, "counted": none, "linked": none,
        "tied": [set(range(m)) - {i} for i in range(m)], "any_order": True, "short_cut": False,
    }  # fmt: skip
    return AccessPaths(**given | options)


class Parts:
    """All parts for a join of three streams with basic windows of 10: four, three and two."""

    def __init__(self, shedding=None, lengths=LENGTHS, **options):
        self.shedding = shedding or sw.Harvest(budget=1000.0, every=20, basic_window=10)
        self.paths = paths_of(len(lengths), **options)
        query = query_of(self.shedding, lengths)
        self.shed = new_shed(query, self.shedding, self.paths)
        per_stream = self.shedding.scores_per_stream
        self.learning = Learning(self.shed, list(lengths), per_stream)
        self.orders = JoinOrders(self.shed, self.paths)
        self.sampling = Sampling(self.shed, per_stream)
        self.segments = HarvestSegments(self.shed, list(lengths), self.orders)
        self.costs = CostModel(self.shed, self.paths, self.learning, self.orders)
        self.policy = policy_for(
            self.shedding,
            JoinParts(self.shed, self.learning, self.orders, self.sampling, self.segments),
        )


# ---- the initial state


def test_at_first_nothing_is_shed_and_nothing_is_known():
    lookup = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    parts = Parts(
        sw.Harvest(budget=500.0, buffer=60, sample=0.25, basic_window=10),
        lookup=lookup, orders=[[2, 1], [0, 2], [1, 0]],
    )  # fmt: skip
    shed = parts.shed
    assert shed.ctl.tolist() == [0] * places.CTL_LENGTH
    number = dict(enumerate(shed.number.tolist()))
    assert {k: v for k, v in number.items() if v} == {
        places.FIRST_FRACTION: 1.0, places.LATER_FRACTION: 1.0, places.SAMPLE: 0.25,
        places.BUFFER: 60.0, places.COMPARISON: 2.0, places.FREE_AT: BEFORE,
    }  # fmt: skip
    assert (shed.keep.tolist(), shed.share.tolist()) == ([1.0] * 3, [1.0] * 3)
    assert (shed.basic.tolist(), shed.n.tolist()) == ([10] * 3, [4, 3, 2])
    assert shed.lookup.tolist() == [[2, 1], [3, 4], [6, 5]]
    assert (shed.n_segments.shape, shed.segment.shape) == ((3, 2), (3, 2, 10))
    assert (shed.passed.shape, shed.joined.shape, shed.lags.shape) == (
        (2, 3, 3, 4), (3, 3, 4), (3, 0),
    )  # fmt: skip
    assert shed.starts.shape == (0,)
    for name in ("dropped", "thinned", "n_segments", "segment", "entered", "offered", "compared"):
        assert not getattr(shed, name).any()


def test_the_state_that_only_some_settings_need():
    measured = Parts(sw.Harvest(basic_window=10)).shed
    assert measured.number[places.COMPARISON] == 0.0
    counts = Parts(sw.Harvest(budget=1.0, throttle="rates", basic_window=10)).shed
    assert counts.starts.tolist() == [float(BEFORE)] * 1024
    assert Parts(sw.Harvest(throttle="rates", basic_window=10)).shed.starts.shape == (0,)
    lags = Parts(sw.Harvest(scores="per-stream", basic_window=10)).shed
    assert lags.ctl[places.PER_STREAM] == 1
    # buckets of 2 for lags from -40 to 40, and one for the last
    assert lags.lags.shape == (3, 41)
    assert Parts(sw.TailDrop(budget=1.0)).shed.number[places.SAMPLE] == 0.0


@pytest.mark.parametrize(
    ("lengths", "given", "basic", "n"),
    [
        ((40, 30, 20), 10, 10, [4, 3, 2]),
        ((41, 30, 19), 10, 10, [5, 3, 2]),
        ((400, 100, 20), None, 20, [20, 5, 1]),
        ((401, 100, 21), None, 21, [20, 5, 1]),
        ((10, 3, 1), None, 1, [10, 3, 1]),
    ],
)
def test_a_twentieth_of_the_longest_window_is_a_basic_window(lengths, given, basic, n):
    shedding = sw.Harvest(basic_window=given)
    found = basic_windows(query_of(shedding, lengths), shedding)
    assert (found[0].tolist(), found[1].tolist()) == ([basic] * 3, n)


# ---- segments


def test_neighbours_are_one_segment_and_the_last_one_ends_with_the_window():
    parts = Parts(lengths=(40, 35, 20))
    parts.segments.choose(0, 1, [3, 0, 1])
    parts.segments.choose(0, 2, [1])
    parts.segments.choose(1, 0, [2])
    shed = parts.shed
    assert shed.n_segments.tolist() == [[2, 1], [1, 0], [0, 0]]
    assert shed.segment[0, 0, :4].tolist() == [0, 19, 30, 35]
    assert shed.segment[0, 1, :2].tolist() == [10, 20]
    assert shed.segment[1, 0, :2].tolist() == [20, 29]
    assert parts.segments.searched_share(0, 1).tolist() == [1.0] * 4
    assert parts.segments.is_searched(1).tolist() == [True] * 4
    shed.ctl[places.SHEDDING] = 1
    shed.share[:] = [0.5, 0.75, 1.0]
    assert parts.segments.searched_share(0, 1).tolist() == [0.5, 0.5, 0.0, 0.5]
    assert parts.segments.searched_share(0, 2).tolist() == [0.0, 0.5]
    assert parts.segments.searched_share(1, 0).tolist() == [0.0, 0.0, 0.75, 0.0]
    assert parts.segments.searched_share(2, 0).tolist() == [0.0] * 4
    assert parts.segments.is_searched(1).tolist() == [True, True, False, True]
    assert parts.segments.is_searched(0).tolist() == [False, False, True, False]
    assert parts.segments.is_searched(2)[:2].tolist() == [False, True]
    parts.segments.choose(0, 1, [])
    assert parts.segments.searched_share(0, 1).tolist() == [0.0] * 4


# ---- what is learnt

WINDOW = np.array([8.0, 100.0, 20.0])


def test_candidates_are_the_share_of_the_window_that_was_offered():
    parts = Parts()
    assert parts.learning.candidates(0, 0, 1, WINDOW) == 100.0  # nothing is known
    parts.shed.entered[0, 0, 1] = 4.0
    parts.shed.offered[0, 0, 1] = 50.0
    parts.learning.close(1.0, np.array([10.0, 50.0, 10.0]))  # 4 entries with 50 each
    assert parts.learning.candidates(0, 0, 1, WINDOW) == 100.0 * 50 / 200
    parts.shed.entered[0, 0, 1] += 1.0
    parts.learning.close(1.0, np.array([10.0, 100.0, 10.0]))
    assert parts.learning.candidates(0, 0, 1, WINDOW) == pytest.approx(100.0 * 50 / 300)
    assert parts.learning.candidates(1, 0, 1, WINDOW) == 100.0


def test_matches_lean_on_other_steps_while_there_are_few():
    shed, learning = (parts := Parts()).shed, parts.learning
    # nothing passed yet: as if one passed in a window
    assert learning.matches(0, 0, 1, WINDOW) == pytest.approx(0.5 / (0.5 * 100) * 100)
    assert learning.matches(0, 0, 1, np.array([8.0, 0.5, 20.0])) == pytest.approx(0.5 / 0.5 * 0.5)
    shed.compared[0, 1, 0], shed.passed[0, 1, 0, 2] = 40.0, 10.0
    shed.compared[1, 0, 1], shed.passed[1, 0, 1, 2] = 30.0, 30.0  # of later steps: not counted
    assert learning.matches(0, 0, 1, WINDOW) == pytest.approx(0.5 / (0.5 * 4) * 100)
    shed.compared[0, 0, 1], shed.passed[0, 0, 1, 1] = 10.0, 5.0
    usual = (40 + 10) / (10 + 5)
    assert learning.matches(0, 0, 1, WINDOW) == pytest.approx(5.5 / (10 + 0.5 * usual) * 100)


def test_scores_are_results_and_four_times_what_passes():
    shed, learning = (parts := Parts()).shed, parts.learning
    assert learning.scores(0, 1).tolist() == pytest.approx([1 / 3] * 3)
    shed.passed[0, 0, 1, :3] = [6.0, 0.0, 2.0]
    shed.passed[1, 0, 1, :3] = [0.0, 4.0, 0.0]
    even = np.array([6 + 2 / 3, 2 / 3, 2 + 2 / 3]) / 10
    assert learning.pass_scores(0, 1) == pytest.approx(even)
    assert learning.pass_scores(0, 1, 1) == pytest.approx(np.array([2, 14, 2]) / 18)
    shed.joined[0, 1] = [1.0, 9.0, 0.0, 0.0]
    wanted = np.array([1.0, 9.0, 0.0]) + 4 * even + 2 / 3
    assert learning.scores(0, 1) == pytest.approx(wanted / 16)


def test_old_statistics_lose_weight_unless_too_few_results_would_be_left():
    shed, learning = (parts := Parts()).shed, parts.learning
    shed.entered[0, 0, 1], shed.compared[0, 0, 1] = 10.0, 80.0
    shed.offered[0, 0, 1], shed.passed[0, 0, 1, 0] = 100.0, 40.0
    shed.joined[0, 1, 0] = 1000.0  # 500 results, as each has an event of two other streams
    learning.close(0.5, WINDOW)
    assert shed.joined[0, 1, 0] == 1000.0
    shed.joined[0, 1, 0] = 1600.0
    learning.close(0.5, WINDOW)  # 500 / 800 of the weight stays
    assert (shed.joined[0, 1, 0], shed.entered[0, 0, 1]) == (1000.0, 6.25)
    assert (shed.compared[0, 0, 1], shed.offered[0, 0, 1], shed.passed[0, 0, 1, 0]) == (
        50.0, 62.5, 25.0,
    )  # fmt: skip
    assert learning.candidates(0, 0, 1, WINDOW) == pytest.approx(100 * 62.5 / 625)
    shed.joined[0, 1, 0] = 4000.0
    learning.close(0.5, WINDOW)
    assert (shed.joined[0, 1, 0], shed.entered[0, 0, 1]) == (2000.0, 3.125)


def test_what_was_learnt_goes_on_from_its_state():
    shed, learning = (parts := Parts()).shed, parts.learning
    rng = np.random.default_rng(1)
    for name in ("entered", "offered", "compared", "passed", "joined"):
        getattr(shed, name)[...] = rng.integers(1, 99, getattr(shed, name).shape)
    learning.close(0.5, WINDOW)
    shed.entered[...] += 1.0
    again = Parts()
    again.learning.resume(learning.state())
    assert again.learning.state() == learning.state()
    for both in (learning, again.learning):
        both.close(0.5, WINDOW)
    assert again.learning.state() == learning.state()
    assert again.learning.candidates(0, 0, 1, WINDOW) == learning.candidates(0, 0, 1, WINDOW)


def with_matches(parts, few):
    """Let the matches of a stream in a window of 100 be about so many, in first and later steps."""
    for s, matches in enumerate(few):
        parts.shed.compared[:, :, s] = 1e6
        parts.shed.passed[:, :, s, 0] = matches * 1e4
    return np.full(3, 100.0)


@pytest.mark.parametrize(
    ("few", "orders"),
    [
        # of the first stream of each order 0.8 counts: another one has to be clearly better
        ((3.0, 10.0, 9.0), [[1, 2], [0, 2], [0, 1]]),
        ((3.0, 10.0, 7.9), [[2, 1], [0, 2], [0, 1]]),
        ((9.0, 7.0, 3.0), [[2, 1], [2, 0], [1, 0]]),
    ],
)
def test_streams_with_few_partners_come_first(few, orders):
    parts = Parts()
    window = with_matches(parts, few)
    assert parts.learning.orders(parts.orders.current, parts.paths.tied, window) == orders


def test_a_stream_is_searched_when_one_before_it_shares_its_key():
    chain = [{1}, {0, 2}, {1}]
    parts = Parts(tied=chain, orders=[[1, 2], [0, 2], [1, 0]])
    window = with_matches(parts, (1.0, 50.0, 0.01))
    assert parts.learning.orders(parts.orders.current, chain, window) == [[1, 2], [2, 0], [1, 0]]


def test_what_is_tied_to_the_starting_stream_is_a_first_step_and_the_rest_are_later_ones():
    parts = Parts(lengths=(40, 30, 20, 20))
    for which, few in enumerate(((1.0, 1.0, 5.0, 4.0), (1.0, 1.0, 7.0, 8.0))):
        for s, matches in enumerate(few):
            parts.shed.compared[which, :, s] = 1e6
            parts.shed.passed[which, :, s, 0] = matches * 1e4
    window = np.full(4, 100.0)
    star = [{1}, {0, 2, 3}, {1}, {1}]  # c and d are tied to b alone
    assert parts.learning.orders([[1, 3, 2]], star, window) == [[1, 2, 3]]
    all_tied = [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}]
    assert parts.learning.orders([[1, 2, 3]], all_tied, window) == [[1, 3, 2]]


def test_orders_change_only_where_they_may_and_have_to():
    lookup = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    parts = Parts(lookup=lookup)
    window = with_matches(parts, (3.0, 10.0, 1.0))
    assert parts.orders.adapt(parts.learning, window)
    assert parts.orders.current == [[2, 1], [2, 0], [0, 1]]
    assert parts.shed.lookup.tolist() == [[2, 1], [4, 3], [5, 6]]
    assert not parts.orders.adapt(parts.learning, window)
    fixed = Parts(any_order=False)
    assert not fixed.orders.adapt(fixed.learning, with_matches(fixed, (3.0, 10.0, 1.0)))
    assert fixed.orders.current == [[1, 2], [0, 2], [0, 1]]


def test_lags_score_basic_windows_where_partners_lie():
    """Eq. 2 and 4 against all pairs of lags, each even within its bucket of 2."""
    parts = Parts(sw.Harvest(scores="per-stream", basic_window=10))
    shed, rng = parts.shed, np.random.default_rng(1)
    for s in (1, 2):
        used = (LENGTHS[s] + 40) // 2  # lags from minus its own window to the first one's
        shed.lags[s, :used] = rng.integers(0, 5, used)
    fine = 40  # points of a bucket

    def points(s):
        """Lags of stream s, and how much each counts."""
        at = -LENGTHS[s] + (np.arange(shed.lags.shape[1] * fine) + 0.5) * 2 / fine
        return at, np.repeat(shed.lags[s], fine) / fine

    for i, s in ((0, 1), (0, 2), (1, 0), (2, 0)):
        at, weight = points(s if i == 0 else i)
        ages = -at if i == 0 else at
        wanted = [weight[(ages >= 10 * k) & (ages < 10 * (k + 1))].sum() for k in range(shed.n[s])]
        assert lag_scores(i, s, shed, LENGTHS) == pytest.approx(wanted)
    for i, s in ((1, 2), (2, 1)):
        at, weight = points(i)
        middles = -LENGTHS[s] + 2 * np.arange(shed.lags.shape[1]) + 1
        wanted = [
            sum(
                count * weight[(at - middle >= 10 * k) & (at - middle < 10 * (k + 1))].sum()
                for middle, count in zip(middles, shed.lags[s], strict=True)
            )
            for k in range(shed.n[s])
        ]
        assert lag_scores(i, s, shed, LENGTHS) == pytest.approx(wanted, rel=1e-9)
    known = lag_scores(0, 1, shed, LENGTHS)
    even = (known + 2 / 3) / (known.sum() + 2)
    assert parts.learning.scores(0, 1) == pytest.approx(even)
    assert parts.learning.pass_scores(0, 1, 1) == pytest.approx(even)


def test_selectivities_of_the_paper_are_those_of_pairs():
    parts = Parts(sw.Harvest(scores="per-stream", basic_window=10))
    shed, learning = parts.shed, parts.learning
    window = np.full(3, 100.0)
    # nothing is known: half a pair of one; its own: half a pair of one more
    assert learning.matches(0, 0, 1, window) == pytest.approx(100 * 0.5 / (0.5 / 0.5))
    shed.passed[0, 0, 1, 1], shed.compared[0, 0, 1] = 3.0, 30.0
    shed.passed[0, 1, 0, 0], shed.compared[0, 1, 0] = 1.0, 50.0
    shed.passed[1, 0, 1, 0], shed.compared[1, 0, 1] = 70.0, 90.0  # of later steps
    shed.passed[0, 1, 2, 0], shed.compared[0, 1, 2] = 1.0, 20.0
    usual = 5 / 100
    for i, s in ((0, 1), (1, 0)):
        assert learning.matches(0, i, s, window) == pytest.approx(100 * 4.5 / (80 + 0.5 / usual))
    assert learning.matches(1, 2, 0, window) == pytest.approx(100 * 0.5 / (0.5 / usual))


# ---- the model of costs


def test_costs_follow_the_way_partners_are_found():
    square = np.zeros((3, 3), np.int64)
    hashed, counted, linked = square.copy(), square.copy(), square.copy()
    hashed[0, 1] = 1  # a hash finds the events of b for one of a
    counted[1, 2] = 1  # those of c for one of b are only counted
    linked[1, 0] = 1  # a is sorted by a value near one of b: of use from b, and from c after b
    parts = Parts(lookup=hashed, counted=counted, linked=linked, orders=[[1, 2], [0, 2], [1, 0]])
    parts.shed.entered[:] = 10.0
    parts.shed.offered[:] = 100.0
    window = np.array([28.0, 24.0, 14.0])
    parts.learning.close(1.0, window)  # candidates: 10 of 28, of 24, of 14: 10 of each
    known = parts.costs.model(np.array([1.0, 2.0, 3.0]), window)
    assert known.rate.tolist() == [1.0, 2.0, 3.0]
    assert known.n.tolist() == [[3, 2], [4, 2], [3, 4]]
    assert known.entry.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    bisection = 2 * math.log2(28 / 4 + 1)
    assert known.each == pytest.approx(
        np.array([[0.0, 10 / 2], [bisection, 0.0], [10 / 3, bisection]])
    )
    assert known.near == pytest.approx(np.array([[10.0, 0.0], [10.0, 0.0], [0.0, 10.0]]))
    assert known.matches == pytest.approx(np.ones((3, 2)))  # nothing passed: one of a window


def test_first_and_later_steps_have_statistics_of_their_own():
    parts = Parts(orders=[[2, 1], [0, 2], [0, 1]])
    parts.shed.compared[0, 0, 2], parts.shed.passed[0, 0, 2, 1] = 1e6, 1e5
    parts.shed.compared[1, 0, 1], parts.shed.passed[1, 0, 1, 0] = 1e6, 3e5
    parts.shed.joined[0, 1, 2] = 1e6
    window = np.full(3, 100.0)
    known = parts.costs.model(np.ones(3), window)
    assert known.matches[0] == pytest.approx([10.0, 30.0], rel=1e-4)
    assert known.passed[0, 0, 1] == pytest.approx(1.0, abs=1e-4)
    assert known.passed[0, 1] == pytest.approx([0.0, 0.0, 1.0, 1.0, 1.0], abs=1e-4)
    assert known.joined[0, 1] == pytest.approx([0.0, 1.0, 1.0, 1.0, 1.0], abs=1e-4)


# ---- the sample


def test_a_sampled_event_searches_shares_of_the_windows():
    parts = Parts(sw.Harvest(sample=0.25, basic_window=10))
    sampling, number = parts.sampling, parts.shed.number
    assert (sampling.rate, sampling.share_of_results(3)) == (0.25, 0.25)
    known = parts.costs.model(np.ones(3), np.full(3, 100.0))
    everything = harvest_search.cost(harvest_search.full(known), known)
    sampling.limit(0.5, known, everything)
    share = harvest_search.shred_fraction(known, 0.5 * everything)
    assert number[[places.FIRST_FRACTION, places.LATER_FRACTION]].tolist() == [share, share]
    assert sampling.share_of_results(3) == 0.25 * share * share
    assert sampling.share_of_results(2) == 0.25 * share
    sampling.limit(1.0, known, everything)
    assert number[[places.FIRST_FRACTION, places.LATER_FRACTION]].tolist() == [1.0, 1.0]
    first_only = Sampling(parts.shed, first_step_only=True)
    first_only.limit(0.5, known, everything)
    assert number[[places.FIRST_FRACTION, places.LATER_FRACTION]].tolist() == [0.5, 1.0]
    sampling.open()
    assert number[[places.FIRST_FRACTION, places.LATER_FRACTION]].tolist() == [1.0, 1.0]
    number[[places.WOULD_MAKE, places.WOULD_MAKE_VARIANCE, places.LOST_VARIANCE]] = 3.0, 4.0, 5.0
    assert tuple(sampling.take_estimates()) == (3.0, 4.0, 5.0)
    assert tuple(sampling.take_estimates()) == (0.0, 0.0, 0.0)


# ---- policies


def test_tail_drop_decides_nothing():
    policy = policy_for(sw.TailDrop(budget=1.0), None)
    assert isinstance(policy, TailDropPolicy)
    load = Load(100, 50.0, 50.0, 0.25, 0.3)
    assert policy.throttle_load(load) == load
    assert policy.apply(0.5, None) == Expectation(1.0, None)
    assert (policy.take_cost(), policy.state(), policy.bias) == (0.0, {}, 1.0)
    assert not policy.plans_with_dropped_events
    policy.learn_bias(5, 10, 0.5, None)
    policy.resume({})
    assert policy.bias == 1.0
    throttle = Policy().new_throttle(0.2)
    assert (throttle.rule, throttle.may_wait, throttle.z) == ("capacity", 0.0, 1.0)


def situation_of(parts, wanted=None):
    rate, window = np.array([1.0, 2.0, 3.0]), np.array([40.0, 60.0, 60.0])
    known = parts.costs.model(rate, window)
    cost = harvest_search.cost(harvest_search.full(known), known)
    return Situation(rate, known, cost, wanted)


def test_random_drop_admits_the_shares_with_the_largest_product():
    parts = Parts(sw.RandomDrop(budget=1000.0))
    policy = parts.policy
    assert isinstance(policy, RandomDropPolicy)
    assert policy.plans_with_dropped_events
    assert policy.throttle_load(Load(9, 5.0, 4.0, 0.5, 0.3)) == Load(9, 5.0, 4.0, 0.5, 0.0)
    now = situation_of(parts)
    assert policy.apply(1.0, now) == Expectation(1.0, None)
    assert parts.shed.keep.tolist() == [1.0] * 3
    found = policy.apply(0.5, now)
    keep = parts.shed.keep
    assert found == Expectation(pytest.approx(keep.prod()), None)
    order = np.array(parts.orders.current)
    each = now.known.each * now.known.n + now.known.near
    gradient = np.zeros(3)
    cost = drop_rates.drop_cost(keep, now.rate, order, each, now.known.matches, gradient)
    assert cost == pytest.approx(0.5 * now.full_cost, rel=1e-9)
    # streams of which events are dropped cost the same, those that are admitted wholly no more
    assert gradient[keep < 1.0] == pytest.approx(gradient.max(), rel=1e-3)
    assert policy.apply(0.5, now._replace(wanted=0.9)).cpu_needed == 1.0
    assert policy.apply(1.0, now).kept == 1.0
    assert parts.shed.keep.tolist() == [1.0] * 3


def test_harvesting_sets_the_best_segments():
    parts = Parts(sw.Harvest(budget=1000.0, every=20, basic_window=10, sample=0.2))
    policy, shed = parts.policy, parts.shed
    assert isinstance(policy, HarvestPolicy)
    assert not policy.plans_with_dropped_events
    shed.joined[0, 1, :3] = [0.0, 900.0, 90.0]
    shed.joined[1, 0, :4] = [0.0, 0.0, 0.0, 900.0]
    now = situation_of(parts)
    assert policy.apply(1.0, now) == Expectation(1.0, None)
    assert shed.ctl[places.SHEDDING] == 0
    parts.sampling.limit(0.5, now.known, now.full_cost)
    found = policy.apply(0.5, now)
    assert shed.ctl[places.SHEDDING] == 1
    budget = 0.5 * now.full_cost
    counts, tried = harvest_search.searched(now.known, budget, "better", "gain per cost")
    counts, shares = harvest_search.with_shares(counts, now.known, budget)
    assert policy.state()["counts"] == counts.tolist()
    assert shed.share.tolist() == shares.tolist()
    made = harvest_search.output(counts, now.known, shares)
    made /= harvest_search.output(harvest_search.full(now.known), now.known)
    kept = 0.8 * made + parts.sampling.share_of_results(3)
    assert found == Expectation(pytest.approx(kept), None)
    for i, order in enumerate(parts.orders.current):
        for j, s in enumerate(order):
            best = harvest_search.ranking(parts.learning.scores(i, s))[: counts[i, j]]
            share = parts.segments.searched_share(i, s)
            assert np.flatnonzero(share).tolist() == (sorted(best) if shares[i] > 0 else [])
    # the setting was tried; it costs nothing unless the query says so
    assert policy._tried == tried
    assert policy.take_cost() == 0.0
    assert policy._tried == 0


def test_a_goal_that_is_out_of_reach_says_how_much_more_cpu_it_needs():
    parts = Parts(sw.Harvest(budget=1000.0, basic_window=10, sample=0.2, setting_cost=3.0))
    policy, now = parts.policy, situation_of(parts, wanted=0.75)
    parts.sampling.limit(0.25, now.known, now.full_cost)
    found = policy.apply(0.25, now)
    # the smallest fraction of the work that makes three quarters of the results, by bisection
    low, high = 0.25, 1.0
    searched = {}
    for _ in range(8):
        middle = (low + high) / 2
        counts, shares = harvest_search.with_shares(
            harvest_search.choose(now.known, middle * now.full_cost), now.known,
            middle * now.full_cost,
        )  # fmt: skip
        searched[middle] = harvest_search.output(counts, now.known, shares)
        made = searched[middle] / harvest_search.output(harvest_search.full(now.known), now.known)
        low, high = (low, middle) if made >= 0.75 else (middle, high)
    assert found.cpu_needed == high / 0.25
    assert high < 1.0
    assert policy.apply(0.25, now._replace(wanted=0.01)).cpu_needed == 1.0
    assert policy.apply(1.0, now).cpu_needed == 1.0
    assert policy.apply(1.0, now._replace(wanted=None)).cpu_needed is None
    tried = policy._tried
    assert tried > 0
    assert policy.take_cost() == 3.0 * tried


def test_the_bias_follows_what_was_measured_by_a_fifth_of_its_logarithm():
    parts = Parts(sw.Harvest(budget=1000.0, basic_window=10, sample=0.2))
    policy, now = parts.policy, situation_of(parts)
    policy.learn_bias(0, 10, 1.0, now.known)
    assert policy.bias == 1.0
    cost = now.full_cost
    policy.learn_bias(round(2 * cost * 10), 10, 1.0, now.known)
    assert policy.bias == pytest.approx(2**0.2, rel=1e-3)
    policy.bias = 1.0
    policy.learn_bias(round(90 * cost * 10), 10, 1.0, now.known)
    assert policy.bias == pytest.approx(5**0.2)  # five times at most
    policy.bias = 1.0
    policy.learn_bias(1, 10**6, 1.0, now.known)
    assert policy.bias == pytest.approx(0.2**0.2)
    # while load is shed, four fifths of the events search what is harvested
    policy.bias = 1.0
    policy.apply(0.5, now)
    harvested = harvest_search.cost(np.array(policy.state()["counts"]), now.known, parts.shed.share)
    expected = 0.8 * harvested + 0.2 * 0.5 * cost
    policy.learn_bias(round(3 * expected * 1000), 1000, 0.5, now.known)
    assert policy.bias == pytest.approx(3**0.2, rel=1e-3)
    nothing = now.known._replace(rate=np.zeros(3))
    policy.learn_bias(5, 10, 1.0, nothing)
    assert policy.bias == pytest.approx(3**0.2, rel=1e-3)


def test_a_given_fraction_is_corrected_by_the_bias_and_one_that_was_found_is_not():
    for fraction, bias, budget in ((None, 2.0, 0.4), (0.4, 2.0, 0.2), (0.4, 0.25, 1.0)):
        parts = Parts(sw.Harvest(budget=1000.0, basic_window=10, fraction=fraction))
        now = situation_of(parts)
        parts.policy.bias = bias
        parts.policy.apply(0.4, now)
        counts = harvest_search.choose(now.known, budget * now.full_cost)
        counts, shares = harvest_search.with_shares(counts, now.known, budget * now.full_cost)
        assert parts.policy.state() == {"counts": counts.tolist(), "bias": bias}
        assert parts.shed.share.tolist() == shares.tolist()
    again = Parts().policy
    again.resume(parts.policy.state())
    assert again.state() == parts.policy.state()


def test_only_our_search_harvests_shares_of_the_events():
    parts = Parts(sw.Harvest(budget=1000.0, basic_window=10, search="greedy", metric="output"))
    now = situation_of(parts)
    parts.policy.apply(0.02, now)
    counts = harvest_search.choose(now.known, 0.02 * now.full_cost, "greedy", "output")
    assert parts.policy.state()["counts"] == counts.tolist()
    assert parts.shed.share.tolist() == [1.0] * 3
    # nothing is known of a join without results: all of them are kept
    empty = now._replace(known=now.known._replace(matches=np.zeros((3, 2))))
    assert parts.policy._search(0.5, empty)[2] == 1.0


def test_the_throttle_of_a_policy_is_that_of_the_query():
    policy = Parts(sw.Harvest(throttle="rates", boost=1.5, basic_window=10)).policy
    throttle = policy.new_throttle(0.2)
    assert (throttle.rule, throttle.boost, throttle.may_wait) == ("rates", 1.5, 0.2)


# ---- the throttle


@pytest.mark.parametrize(
    ("rule", "before", "load", "z"),
    [
        ("rates", 0.5, Load(100, 100.0, 50.0, None, 0.0), 0.6),
        ("rates", 0.5, Load(100, 99.0, 50.0, None, 0.0), 0.495),
        ("rates", 0.5, Load(0, 0.0, 0.0, None, 0.0), 0.6),
        ("rates", 0.9, Load(10, 10.0, 0.0, None, 0.0), 1.0),
        ("rates", 0.5, Load(100, 0.0, 50.0, None, 0.0), 1e-4),
        ("backlog", 0.5, Load(50, 50.0, 50.0, None, 0.0), 0.25),
        ("backlog", 0.5, Load(0, 0.0, 10.0, None, 0.0), 1e-4),
        ("capacity", 0.5, Load(9, 9.0, 0.0, None, 0.7), 0.5),
        ("capacity", 0.5, Load(9, 9.0, 0.0, 0.4, 0.25), 0.4 * 1.05),
        ("capacity", 0.5, Load(9, 9.0, 0.0, 0.4, 1.2), 0.4 * 0.1),
        ("capacity", 0.5, Load(9, 9.0, 0.0, 0.4, 9.0), 0.4 * 0.1),
        ("capacity", 0.5, Load(9, 9.0, 0.0, math.inf, 0.0), 1.0),
    ],
)
def test_the_next_fraction_by_each_rule(rule, before, load, z):
    throttle = Throttle(rule, boost=1.2, may_wait=0.3, z=before)
    assert throttle.adapt(load) == pytest.approx(z)
    assert throttle.z == pytest.approx(z)


# ---- memory


def test_what_makes_no_more_results_is_evicted_first_then_what_is_worth_least_by_byte():
    size = [np.array([10.0, 10.0, 10.0]), np.array([20.0, 20.0, 20.0])]
    worth = [np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0])]
    # equal worth: by byte the second stream's is less
    assert ages_kept(size, worth, 89.0) == [3, 2]
    assert ages_kept(size, worth, 90.0) == [3, 3]
    worth = [np.array([9.0]), np.zeros(3)]  # ages that are missing make none; equally worthless
    assert ages_kept(size, worth, 89.0) == [3, 2]  # the one that has most
    assert ages_kept(size, worth, 45.0) == [2, 1]
    empty = [np.array([0.0, 0.0]), np.array([5.0, 5.0])]  # a stream without events is of one byte
    assert ages_kept(empty, [np.array([0.0, 1.0]), np.array([0.0, 6.0])], 9.0) == [1, 1]
    assert ages_kept(empty, [np.array([0.0, 2.0]), np.array([0.0, 6.0])], 9.0) == [2, 1]


def test_what_comes_in_the_next_interval_has_to_fit():
    parts = Parts(sw.Harvest(budget=1000.0, every=15, basic_window=10, memory=100))
    size = [np.array([10.0, 9.0, 10.0, 10.0]), np.array([10.0, 10.0, 10.0]), np.array([6.0, 7.0])]

    def kept(limit, now=0, every=15):
        return Eviction(parts.shed, parts.segments, limit, every, 40).ages_kept(size, now)

    # nothing was found yet: the streams make room in turn. 19 + 20 + 13 came in the last 15
    assert kept(82 + 52) == [4, 3, 2]
    assert kept(81 + 52) == [3, 3, 2]
    assert kept(81 + 52, now=39) == [3, 3, 2]
    assert kept(81 + 52, now=40) == [4, 3, 1]
    assert kept(81 + 52, now=80) == [4, 2, 2]
    assert kept(82 + 26, every=10) == [4, 3, 2]  # of 10 only the youngest
    assert kept(81 + 26, every=10) == [3, 3, 2]
    assert kept(80) == [1, 1, 2]  # half of the memory at most is held free
    parts.shed.joined[0, 1, :3] = [5.0, 5.0, 1.0]
    parts.shed.joined[2, 0, :4] = [5.0, 5.0, 5.0, 2.0]
    parts.shed.joined[1, 2, :2] = [5.0, 5.0]
    assert kept(81 + 52) == [4, 2, 2]
    # where nothing is searched, nothing is worth anything
    parts.shed.ctl[places.SHEDDING] = 1
    for start, stream, ages in ((0, 1, [0, 1, 2]), (2, 0, [0, 1]), (1, 2, [0])):
        parts.segments.choose(start, stream, ages)
    assert kept(81 + 52) == [3, 3, 2]


# ---- the load


def loaded(lengths=(25, 10)):
    parts = Parts(sw.Harvest(budget=1000.0, basic_window=5, buffer=9), lengths=lengths)
    parts.shed.number[places.FREE_AT] = 0.0
    return parts.shed, LoadMonitor(parts.shed, list(lengths))


def test_work_begins_when_the_server_is_free():
    shed, load = loaded()
    assert load.since == BEFORE
    load.begin_at(7)
    load.begin_at(9)
    assert load.since == 7
    load.add_work(5.0, 10)
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [5.0, 15.0]
    load.add_work(2.0, 12)
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [7.0, 17.0]
    load.charge(0.0, 40)
    assert shed.number[places.FREE_AT] == 17.0
    load.charge(1.0, 20)  # a ms each
    load.charge(2.0, 20)
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [10.0, 23.0]
    assert (load.backlog(20), load.backlog(23), load.backlog(30)) == (3.0, 0.0, 0.0)
    assert load.is_full(13)
    assert not load.is_full(14)  # 9 may wait
    assert load.is_busy(23, 99)
    assert not load.is_busy(23, 100)  # a tenth of the time
    assert load.is_busy(22, 100)


def test_an_interval_without_work_allows_any_fraction():
    shed, load = loaded()
    load.begin_at(0)
    assert tuple(load.load(10, 10, 1.0)) == (0, 0.0, 0.0, math.inf, 0.0)
    shed.number[places.FREE_AT] = 15.0
    assert tuple(load.load(10, 10, 1.0)) == (0, 0.0, 0.0, None, 0.5)
    load.add_arrivals(np.array([0, 1, 1]))
    shed.dropped[1] = 1
    assert tuple(load.load(10, 10, 1.0)) == (3, 2.0, 0.0, None, 0.5)
    shed.dropped[:] = [1, 2]
    shed.number[places.WORK] = 5.0
    assert tuple(load.load(10, 10, 1.0)) == (3, 0.0, 0.0, None, 0.5)


def test_the_load_goes_on_from_its_state():
    shed, load = loaded()
    load.begin_at(0)
    for end in (10, 20):
        load.add_arrivals(np.array([0, 1, 1]))
        shed.dropped[0] += 1
        shed.ctl[places.COMPARED] += 7
        load.add_work(13.0, end)
        assert load.comparisons == 7
        load.load(end, 10, 1.0)
        load.record_history(end)
        load.next_interval(end)
        assert (shed.number[places.WORK], load.since, load.comparisons) == (0.0, end, 0)
    load.add_arrivals(np.array([1]))
    again = LoadMonitor(shed, [25, 10])
    again.resume(load.state())
    assert again.state() == load.state()
    assert load.state() == {
        "since": 20, "backlog": 16.0, "waited": 2, "arrived": [0, 1], "dropped": [2, 0],
        "thinned": [0, 0], "compared": 14, "history": [[[10, 1, 0], [20, 1, 0]], [[20, 2, 2]]],
    }  # fmt: skip
    assert load.window_sizes(admitted=False).tolist() == [2.0, 2.0]


# ---- the shedder


def shedder_of(shedding, **options):
    return Shedder(query_of(shedding), shedding, paths_of(**options))


def test_the_short_cut_is_for_joins_that_shed_nothing():
    def idle(shedder):
        return bool(shedder.shed.ctl[places.IDLE])

    assert not idle(shedder_of(sw.Harvest(basic_window=10)))  # there is none
    assert idle(shedder_of(sw.Harvest(basic_window=10), short_cut=True))
    assert not idle(shedder_of(sw.Harvest(budget=5.0, basic_window=10), short_cut=True))
    assert not idle(shedder_of(sw.Harvest(memory=5, basic_window=10), short_cut=True))
    assert not idle(shedder_of(sw.Harvest(fraction=0.5, basic_window=10), short_cut=True))
    shedder = shedder_of(sw.Harvest(basic_window=10, buffer=20, usage=0.5), short_cut=True)
    shedder.shed.number[places.FREE_AT] = 0.0
    assert not shedder.add_busy_time(0.01, 0, 0)  # 10 ms of half a machine are 20
    assert shedder.shed.number[places.FREE_AT] == 20.0
    assert idle(shedder)
    shedder.add_busy_time(0.001, 0, 1)
    assert not idle(shedder)  # 21 wait
    shedder.add_busy_time(0.0, 0, 2)
    assert idle(shedder)


def test_an_interval_is_over_after_delta():
    shedder = shedder_of(sw.Harvest(basic_window=10, every=100))
    assert not shedder.add_busy_time(0.0, 50, 149)
    assert shedder.add_busy_time(0.0, 140, 150)
    assert shedder.load.since == 50
    assert shedder.every == 100
    assert shedder.second == 1000


def test_a_quarter_of_the_buffer_may_wait_in_quiet_times():
    for every, buffer, share in ((100, 80, 0.2), (100, 100, 0.25), (100, 900, 0.25)):
        shedder = shedder_of(sw.Harvest(basic_window=10, every=every, buffer=buffer))
        assert shedder.throttle.may_wait == pytest.approx(share)
    assert shedder_of(sw.Harvest(basic_window=10, fraction=0.3)).throttle.z == 0.3
    assert shedder.throttle.z == 1.0


def test_buffer_and_throttle_are_opened_and_set_again():
    shedder = shedder_of(sw.Harvest(basic_window=10, buffer=80, fraction=0.5))
    number = shedder.shed.number
    shedder.shed.ctl[places.SHEDDING] = 1
    number[places.FIRST_FRACTION] = 0.1
    assert shedder.is_shedding
    shedder.open_throttle()
    assert not shedder.is_shedding
    assert (shedder.throttle.z, number[places.FIRST_FRACTION]) == (1.0, 1.0)
    shedder.lift_buffer_limit()
    assert number[places.BUFFER] == math.inf
    shedder.restore_buffer_limit()
    assert number[places.BUFFER] == 80.0
    assert (shedder.kept, shedder.cpu_needed) == (1.0, None)


def test_dropped_events_are_reported_once():
    shedder = shedder_of(sw.Harvest(budget=5.0, basic_window=10))
    shedder.shed.dropped[:] = [1, 0, 2]
    shedder.shed.thinned[:] = [0, 0, 3]
    counts = shedder.count_arrivals(np.array([0, 2, 2, 1]))
    assert counts.dropped.tolist() == [1, 0, 5]
    assert shedder.load.rate(2).tolist() == [0.5, 0.5, 1.0]
    shedder.shed.dropped[1] += 1
    assert shedder.count_arrivals(np.array([1])).dropped.tolist() == [0, 1, 0]
    again = shedder_of(sw.Harvest(budget=5.0, basic_window=10))
    again.resume(shedder.state())
    assert again.count_arrivals(np.array([1])).dropped.tolist() == [0, 0, 0]


def busy(shedder, now, wanted=None):
    """An interval of 20 with ten events of each stream and much to do."""
    shedder.load.begin_at(now - 20)
    shedder.count_arrivals(np.arange(30) % 3)
    shedder.shed.ctl[places.COMPARED] += 500
    shedder.load.add_work(60.0, now - 20)
    shedder.adapt(now, wanted)


def test_each_interval_ends_with_a_decision_where_there_was_much_to_do():
    shedding = sw.Harvest(budget=1000.0, every=20, basic_window=10, buffer=40)
    quiet, shedder = shedder_of(shedding), shedder_of(shedding)
    quiet.count_arrivals(np.arange(30) % 3)
    quiet.adapt(20)
    assert (quiet.throttle.z, quiet.full_cost, quiet.load.since) == (1.0, 0.0, 20)
    busy(shedder, 20)
    # each event of a and b: 10 candidates and half a match for 10 more; all three streams
    window = np.full(3, 10.0)
    known = shedder._costs.model(np.full(3, 0.5), window)
    assert shedder.full_cost == harvest_search.cost(harvest_search.full(known), known)
    # 500 comparisons took 60: 500 / 60 in a unit of time, by the cost of the whole join; 40 wait
    bias = min(5.0, 500 / 20 / shedder.full_cost) ** 0.2
    possible = 500 / 60 / (bias * shedder.full_cost)
    assert shedder._policy.bias == pytest.approx(bias)
    assert shedder.throttle.z == pytest.approx(max(1 + 0.25 - 40 / 20, 0.1) * possible)
    assert shedder.is_shedding
    assert shedder.kept == shedder._expected.kept < 1.0
    assert shedder.cpu_needed is None
    busy(shedder, 40, wanted=0.9)
    assert shedder.cpu_needed > 1.0
    assert shedder.load.since == 40


def test_windows_of_a_throttle_slower_than_its_buffer_have_the_dropped_events_too():
    for every, buffer, admitted in ((20, 20, True), (20, 19, False)):
        shedding = sw.Harvest(budget=1000.0, every=every, basic_window=10, buffer=buffer)
        shedder = shedder_of(shedding)
        shedder.shed.dropped[:] = 6
        busy(shedder, 20)
        window = np.full(3, 4.0 if admitted else 10.0)
        known = shedder._costs.model(np.full(3, 0.5), window)
        assert shedder.full_cost == harvest_search.cost(harvest_search.full(known), known)


def test_a_given_fraction_is_decided_on_in_quiet_times_too():
    shedder = shedder_of(sw.Harvest(budget=1e9, every=20, basic_window=10, fraction=0.5))
    shedder.count_arrivals(np.arange(30) % 3)
    shedder.adapt(20)
    assert (shedder.throttle.z, shedder.is_shedding) == (0.5, True)
    first = shedder.shed.number[places.FIRST_FRACTION]
    assert 0.5 < first < 1.0
    drop = shedder_of(sw.RandomDrop(budget=1e9, every=20, fraction=0.5))
    drop.count_arrivals(np.arange(30) % 3)
    drop.adapt(20)
    assert 0.4 < drop.shed.keep.prod() < 0.6
    assert drop._policy.bias == 1.0


def test_half_of_the_weight_is_lost_in_a_quarter_of_the_longest_window():
    shedder = shedder_of(sw.Harvest(budget=1e9, every=20, basic_window=10))
    shedder.shed.joined[0, 1, 0] = 1e6
    shedder.load.begin_at(0)
    shedder.adapt(10)  # a quarter of 40
    assert shedder.shed.joined[0, 1, 0] == 5e5
    shedder.adapt(15)
    assert shedder.shed.joined[0, 1, 0] == pytest.approx(5e5 / 2**0.5)


def test_a_state_fits_shedding_of_the_same_kind_and_basic_windows():
    shedding = sw.Harvest(budget=1000.0, every=20, basic_window=10, buffer=40)
    shedder = shedder_of(shedding)
    busy(shedder, 20)
    state = shedder.state()
    for other, fits in (
        (shedding, True),
        (sw.Harvest(budget=9.0, basic_window=10), True),
        (sw.Harvest(budget=9.0, basic_window=20), False),
        (sw.Harvest(budget=9.0, basic_window=10, scores="per-stream"), False),
        (sw.TailDrop(budget=9.0), False),
    ):
        assert shedder_of(other).fits(state) == fits
    assert not shedder.fits(None)
    again = shedder_of(sw.Harvest(budget=500.0, every=20, basic_window=10, buffer=30, sample=0.3))
    options = again.shed.number[[places.SAMPLE, places.BUFFER, places.COMPARISON]].tolist()
    again.resume(state)
    assert (
        again.shed.number[[places.SAMPLE, places.BUFFER, places.COMPARISON]].tolist()
        == options
        == [0.3, 30.0, 2.0]
    )  # those of the query
    resumed = again.state()
    resumed["kernel"]["number"] = state["kernel"]["number"]
    assert resumed == state
    fixed = shedder_of(sw.Harvest(budget=500.0, basic_window=10, fraction=0.7))
    fixed.resume(state)
    assert fixed.throttle.z == 0.7


# ---- in the kernels


def at_turn(shed, turn):
    shed.ctl[places.TURN] = turn
    return shed


@plain
def test_random_choices_are_even_and_always_the_same():
    drawn = [places.mixed(n) for n in range(4000)]
    assert drawn[:4] == [0.0, 0.5266567736398429, 0.05334406509064138, 0.9274615631438792]
    assert (min(drawn) >= 0.0, max(drawn) < 1.0) == (True, True)
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx([400] * 10, abs=60)
    assert places.mixed(2**40 + 5) == places.mixed(5)  # of 32 bits
    shed = Parts().shed
    for turn in (0, 1, 77):
        for which in range(5):
            assert places.chance(which, at_turn(shed, turn)) == places.mixed(8 * turn + which)


@plain
def test_who_is_admitted():
    shed = Parts(sw.Harvest(budget=1000.0, buffer=10, basic_window=10)).shed
    shed.number[places.FREE_AT] = 50.0
    assert places.is_admitted(1, 40, shed)
    assert not places.is_admitted(1, 39, shed)
    assert (shed.dropped.tolist(), shed.thinned.tolist()) == ([0, 1, 0], [0, 0, 0])
    shed.keep[2] = places.chance(2, at_turn(shed, 3))
    assert not places.is_admitted(2, 40, shed)  # it would have to be less
    assert shed.thinned.tolist() == [0, 0, 1]
    shed.keep[2] += 1e-9
    assert places.is_admitted(2, 40, shed)
    assert not places.is_admitted(2, 39, shed)
    assert (shed.dropped.tolist(), shed.thinned.tolist()) == ([0, 1, 1], [0, 0, 1])


@plain
def test_how_an_event_searches():
    shed = Parts().shed
    modes = {}
    for sampled in (False, True):
        shed.number[places.SAMPLE] = places.chance(1, at_turn(shed, 5)) + 1e-9 * sampled
        assert places.is_sampled(shed) == sampled
        for shedding in (0, 1):
            shed.ctl[places.SHEDDING] = shedding
            modes[sampled, shedding] = [places.mode_of(late, shed) for late in (False, True)]
    assert modes == {
        (False, 0): [places.FULL, places.FULL], (False, 1): [places.HARVEST, places.FULL],
        (True, 0): [places.LEARN, places.FULL], (True, 1): [places.SHRED, places.FULL],
    }  # fmt: skip


@plain
def test_who_searches_at_all():
    shed = Parts().shed
    shed.number[places.SAMPLE] = 0.0
    assert places.searches(0, True, places.HARVEST, shed)
    shed.ctl[places.SHEDDING] = 1
    assert not places.searches(0, True, places.FULL, shed)  # late: only those in the sample
    assert places.searches(0, False, places.SHRED, shed)
    assert not places.searches(0, False, places.HARVEST, shed)  # the direction is off
    shed.n_segments[0, 0] = 1
    assert places.searches(0, False, places.HARVEST, shed)
    shed.share[0] = places.chance(4, at_turn(shed, 9))
    assert not places.searches(0, False, places.HARVEST, shed)
    shed.share[0] += 1e-9
    assert places.searches(0, False, places.HARVEST, shed)
    shed.number[places.SAMPLE] = 1.0
    assert places.searches(0, True, places.FULL, shed)


@plain
def test_a_sampled_event_represents_others():
    shed = Parts().shed
    shed.number[[places.SAMPLE, places.FIRST_FRACTION, places.LATER_FRACTION]] = 0.25, 0.5, 0.125
    assert places.represents(False, places.LEARN, shed) == 4.0
    assert places.represents(True, places.SHRED, shed) == 4.0
    assert places.represents(False, places.SHRED, shed) == 4.0 * 2 * 8  # two steps
    sampled = type("Sampled", (), {"position": np.zeros(3), "n": np.zeros(3)})
    places.note_sampled(7, 3, False, places.SHRED, shed, sampled)
    places.note_sampled(9, 1, True, places.LEARN, shed, sampled)
    assert (sampled.position.tolist(), sampled.n.tolist()) == ([7, 9, 0], [192, 4, 0])
    assert shed.ctl[places.N_SAMPLED] == 2
    assert shed.number[places.WOULD_MAKE] == 196.0
    assert shed.number[places.WOULD_MAKE_VARIANCE] == 0.75 * (192.0**2 + 4.0**2)
    shed.number[places.SAMPLE] = 0.4
    places.note_sampled(1, 1, True, places.LEARN, shed, sampled)
    assert sampled.n[2] == 3  # 2.5, rounded


@plain
def test_losses_are_estimated_while_load_is_shed():
    shed = Parts().shed
    shed.number[places.SAMPLE] = 1.0
    assert places.estimated_loss(3, shed) == 3
    shed.ctl[places.SHEDDING] = 1
    at_turn(shed, next(t for t in range(99) if places.chance(1, at_turn(shed, t)) < 0.4))
    shed.number[places.SAMPLE] = 0.4
    assert places.estimated_loss(3, shed) == 8  # 7.5
    assert shed.number[places.LOST_VARIANCE] == pytest.approx(0.6 * 7.5**2)
    shed.number[places.SAMPLE] = 0.0
    assert places.estimated_loss(3, shed) == 3  # not in the sample
    assert shed.number[places.LOST_VARIANCE] == pytest.approx(0.6 * 7.5**2)


@plain
def test_comparisons_are_charged_once():
    shed = Parts(sw.Harvest(budget=500.0, throttle="rates", basic_window=10)).shed
    shed.number[places.FREE_AT] = 5.0
    shed.ctl[places.COMPARED] = 3
    places.charge(4, shed)
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [6.0, 11.0]
    places.charge(20, shed)  # nothing to do
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [6.0, 11.0]
    shed.ctl[places.COMPARED] = 4
    places.charge(20, shed)
    assert shed.number[[places.WORK, places.FREE_AT]].tolist() == [8.0, 22.0]
    assert shed.starts[:4].tolist() == [5.0, 20.0, 20.0, float(BEFORE)]
    shed.ctl[places.N_STARTED] = 1024
    places.charge(30, shed)
    assert shed.starts[:2].tolist() == [30.0, 20.0]


@plain
def test_pieces_of_a_shredded_window_are_spread_over_it():
    for phase, fraction, begin, end in ((3, 0.25, 100, 400), (8, 1.0, 0, 33), (5, 0.5, 7, 30)):
        spacing, seen, piece = 8 / fraction, [], 0
        while True:
            low, high, piece = pieces._shredded(piece, phase, fraction, begin, end)
            if low >= high:
                break
            seen.append((low, high))
        first = math.floor((places.mixed(phase) - 1) * spacing)
        starts = [math.floor((k - 1 + places.mixed(phase)) * spacing) for k in range(99)]
        wanted = [(max(begin, begin + s), min(end, begin + s + 8)) for s in starts]
        assert seen == [(low, high) for low, high in wanted if low < high]
        assert starts[0] == first
        if fraction == 1.0:  # all of it, piece by piece
            assert [n for low, high in seen for n in range(low, high)] == list(range(begin, end))


@plain
def test_the_age_of_an_event_is_its_basic_window():
    shed = Parts().shed
    frame = type("Frame", (), {"ctl": np.zeros(9, np.int64)})
    from slackwater.kernels.frame import TIME

    frame.ctl[TIME] = 100
    ages = [places.age(t, 0, frame, shed) for t in (100, 91, 90, 70, 61, 60, 59)]
    assert ages == [0, 0, 1, 3, 3, 3, 3]
    assert [places.lag_width(basic) for basic in (1, 3, 4, 7, 8, 20)] == [1, 1, 1, 1, 2, 5]


def test_the_gradient_of_the_costs_is_by_the_logarithm_of_each_share():
    rng, order = np.random.default_rng(3), np.array([[1, 2], [2, 0], [0, 1]])
    rate, keep = rng.uniform(1, 5, 3), np.array([0.5, 0.9, 0.7])
    candidates, matches = rng.uniform(10, 100, (3, 2)), rng.uniform(0.1, 3, (3, 2))

    def cost(shares):
        return drop_rates.drop_cost(shares, rate, order, candidates, matches, np.zeros(3))

    wanted = sum(
        rate[i] * keep[i] * keep[order[i, 0]] * (
            candidates[i, 0] + matches[i, 0] * keep[order[i, 1]] * candidates[i, 1]
        )
        for i in range(3)
    )  # fmt: skip
    assert cost(keep) == pytest.approx(wanted)
    gradient = np.full(3, 99.0)
    drop_rates.drop_cost(keep, rate, order, candidates, matches, gradient)
    for s in range(3):
        more, less = (keep * np.exp(sign * 1e-6 * (np.arange(3) == s)) for sign in (1, -1))
        assert gradient[s] == pytest.approx((cost(more) - cost(less)) / 2e-6, rel=1e-6)


def test_a_stream_that_costs_little_is_admitted_wholly():
    """S1's events cost 1 each and S2's 100: by the square root of what each costs, limited by 1."""
    order, keep = np.array([[1], [0]]), np.zeros(2)
    rate, matches = np.array([1.0, 1.0]), np.ones((2, 1))
    # cost = 101 * keep1 * keep2: any split is as good; the shares are equal
    drop_rates.best_shares(
        50.5, rate, order, np.array([[1.0], [100.0]]), matches, keep, np.zeros(2), np.zeros(2)
    )
    assert keep == pytest.approx([0.5**0.5] * 2, rel=1e-6)
    drop_rates.best_shares(
        101.0, rate, order, np.array([[1.0], [100.0]]), matches, keep, np.zeros(2), np.zeros(2)
    )
    assert keep.tolist() == [1.0, 1.0]
    # of three streams one is in no expensive step: the others are dropped, it is not
    order = np.array([[1, 2], [0, 2], [0, 1]])
    candidates = np.array([[90.0, 0.0], [90.0, 0.0], [0.0, 1e-6]])
    keep = np.zeros(3)
    drop_rates.best_shares(
        45.0, np.ones(3), order, candidates, np.ones((3, 2)), keep, np.zeros(3), np.zeros(3)
    )
    assert keep == pytest.approx([0.5, 0.5, 1.0], rel=1e-4)
