"""The controllers on numbers that can be checked by eye."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.controllers.controller import Interval
from slackwater.controllers.factory import controller_for
from slackwater.controllers.late_degree import behind, quality, quality_curve
from slackwater.controllers.measured import Measured
from slackwater.controllers.model import RecallModel
from slackwater.events.log import Log
from slackwater.stats.buckets import BUCKETS
from slackwater.stats.delays import Delays
from slackwater.stats.productivity import Productivity
from slackwater.stats.results import Results
from slackwater.stats.statistics import Statistics

LATE = np.array([0.6, 0.2, 0.1, 0.1])  # Thesis Fig. 5.1


def query(goal, window=2, m=2):
    return sw.join(*(sw.Stream(n, "ts", window) for n in "abc"[:m]), on="k", goal=goal)


# ---- Thesis 5.3


def test_the_thesis_example_has_a_quality_of_46_5_percent():
    # a at t with b at t and t-1:   .6 * .6 + .6 * .8
    # b at t with a at t-1 and t-2: .6 * .8 + .6 * .9      1.86 of W_A + W_B - 1 = 4
    assert quality(LATE, LATE, 3, 2) == pytest.approx(0.465)


def test_a_slack_of_1_moves_late_degrees_by_1():
    assert behind(LATE, 1) == pytest.approx([0.8, 0.1, 0.1])  # Thesis Fig. 5.3
    assert behind(LATE, 3) == pytest.approx([1.0])
    assert behind(LATE, 9) == pytest.approx([1.0])


def test_the_example_with_slack_and_with_a_lead():
    # K = 1: .8 * (.8 + .9 + .9 + 1)   K = 2: .9 * (.9 + 1 + 1 + 1)   K = 3: all
    curve = quality_curve((LATE, LATE), (3, 2), (0, 0), 3)
    assert curve == pytest.approx([0.465, 0.72, 0.8775, 1.0])
    # A leads by 1, K = 0: .8 * .6 + .8 * .8 + .6 * (.9 + 1)
    assert quality_curve((LATE, LATE), (3, 2), (1, 0), 0) == pytest.approx([0.565])


@pytest.mark.parametrize(("most_late", "slack"), [(None, 3), (2, 2), (9, 9)])
def test_the_last_late_degree_counts_all_that_are_later(most_late, slack):
    # windows of 3 and 2 units; one event of ten is 9 late. Of degrees 0 to Λ_max the last has all
    # "of Λ_max or more": K = Λ_max passes for enough. Here it is the longest window by default
    streams = sw.Stream("a", "ts", 3), sw.Stream("b", "ts", 2)
    goal = sw.Recall(1.0, over=2, every=1, granularity=1, model="late-degree", most_late=most_late)
    asked = sw.join(*streams, on="k", goal=goal, bounds="(]")
    controller = controller_for(asked)
    statistics = controller.statistics(asked)
    statistics.delays.latest[:, [0, 9]] = [9, 1]
    assert controller.next_slack(Interval(100, 0, 90, (100, 100), statistics)) == slack


@pytest.mark.parametrize(
    ("produced", "wanted"),
    [
        (144, 0.9),  # (.9 * (160 + 80) - 144) / 80: on target so far
        (160, 0.7),  # nothing was lost
        (100, 1.0),  # 1.45: more than all is not to be had
    ],
)
def test_the_true_results_of_a_cross_join_follow_from_its_data_rates(produced, wanted):
    # windows of 30 and 20 that slide by 10, rates of .1 and .2: .1 * .2 * (30 + 20 - 10) = .8
    # results in a unit of time: 80 in the first interval of 100 (counted), the second, and the next
    streams = sw.Stream("a", "ts", 30), sw.Stream("b", "ts", 20)
    goal = sw.Recall(0.9, every=100, granularity=1, model="late-degree", overall=True)
    controller = controller_for(sw.join(*streams, goal=goal, bounds="(]", slide=10))
    statistics = controller.statistics(sw.join(*streams, goal=goal, bounds="(]", slide=10))
    statistics.delays._totals[:, [0, 3]] = [[10, 100], [20, 100]]
    statistics.produced, statistics.lost = 70, 10
    controller._wanted(Interval(100, 0, 100, (100, 100), statistics))
    statistics.produced = produced
    again = controller_for(sw.join(*streams, goal=goal, bounds="(]", slide=10))
    again.resume(controller.state())
    assert again._wanted(Interval(200, 0, 200, (200, 200), statistics)) == pytest.approx(wanted)


# ---- ICDE16 IV


def test_recall_of_two_streams_with_the_delays_of_the_thesis():
    # W = 2, g = b = 1: the window has .6 + .8 of 2 events' time, .6 are in order
    statistics = Statistics(query(sw.NoSlack()), every=10, granularity=1, keep=10)
    statistics.delays.histogram[:, :4] = [6, 2, 1, 1]
    statistics.delays.top = 3
    model = RecallModel(query(sw.NoSlack()))
    model.learn(statistics.delays)
    assert model.curve() == pytest.approx([0.6 * 1.4 / 2, 0.8 * 1.7 / 2, 0.9 * 1.9 / 2, 1.0])
    assert [model.smallest_slack(r) for r in (0.42, 0.43, 0.9, 1.0)] == [0, 1, 3, 3]


@pytest.mark.parametrize(("b", "arrived"), [(1, 0.6 + 0.8 + 0.9), (2, 2 * 0.6 + 0.9), (3, 3 * 0.6)])
def test_longer_basic_windows_count_less_as_arrived(b, arrived):
    # W = 3, g = 1. Of a basic window there is what had arrived when it began: "when n_i = 1 [b = 3]
    # the estimation considers only in-order tuples" (IV-A)
    goal = sw.Recall(0.5, model="eqsel", granularity=1, basic_window=b)
    statistics = Statistics(query(goal, 3), every=10, granularity=1, keep=10)
    statistics.delays.histogram[:, :4] = [6, 2, 1, 1]
    statistics.delays.top = 3
    model = RecallModel(query(goal, 3), goal.basic_steps("ms"))
    model.learn(statistics.delays)
    assert model.recall(0) == pytest.approx(0.6 * arrived / 3)


def test_a_basic_window_is_a_multiple_of_g():
    with pytest.raises(sw.QueryError, match="basic_window must be a multiple of granularity"):
        query(sw.Recall(0.9, model="eqsel", basic_window="15 ms"))
    with pytest.raises(sw.QueryError, match="basic_window= is for model='eqsel' and 'noneqsel'"):
        sw.Recall(0.9, basic_window="20 ms")


@pytest.mark.parametrize("window", [20, sw.Tuples(2)])
def test_the_same_in_steps_of_10_and_with_tuples_that_take_as_long(window):
    asked = query(sw.NoSlack(), window)
    delays = Statistics(asked, every=100, granularity=10, keep=100).delays
    delays.histogram[:, :4] = [6, 2, 1, 1]
    delays.top = 3
    delays._totals[:] = 10, 10, 0, 100  # ten events in 100 units, all with a lead of 0
    model = RecallModel(asked)
    model.learn(delays)
    assert model.curve() == pytest.approx([0.42, 0.68, 0.855, 1.0])
    assert [model.recall(slack) for slack in (0, 10, 19)] == pytest.approx([0.42, 0.68, 0.68])
    assert [model.smallest_slack(r) for r in (0.42, 0.43, 1.0)] == [0, 10, 30]
    assert (model.largest, model.lead) == (30, 0)
    delays._totals[0, 2] = 400  # 40 each
    model.learn(delays)
    assert model.lead == 40


def test_a_stream_of_one_event_is_as_late_as_that():
    # nothing is known of the other stream, so it counts as in order
    statistics = Statistics(query(sw.NoSlack()), every=10, granularity=1, keep=10)
    statistics.delays.histogram[0, 3] = 1
    statistics.delays.top = 3
    model = RecallModel(query(sw.NoSlack()))
    model.learn(statistics.delays)
    # a is in order from K = 3 on, and of the two units of its window none, one, then both are there
    assert model.curve() == pytest.approx([0, 0, (0 + 0.5) / 2, 1])


def test_selectivity_by_delay():
    # M-cross 6, 3 and M-join 4, 1: 4/6 up to delay 0, 5/9 in all
    profile = Productivity(query(sw.NoSlack()), every=10, granularity=1)
    profile.crossed[:2], profile.joined[:2] = [6, 3], [4, 1]
    assert profile.selectivity_ratio()[:3] == pytest.approx([4 / 6 * 9 / 5, 1, 1])


@pytest.mark.parametrize(
    ("gamma", "wanted"),
    [
        (0.8, 0.7),  # (.8 * 30 - 17) / 10
        (0.9, 1.0),  # (.9 * 30 - 17) / 10
        (0.99, 1.0),  # 1.27: more than all is not to be had
    ],
)
def test_instant_requirement(gamma, wanted):
    # P = 3, L = 1. Produced by result time 0, 1: 8, 9; late events should have made 2, 1
    goal = sw.Recall(gamma, over=3, every=1, granularity=1, model="eqsel")
    manager = controller_for(query(goal))
    manager.resume({"lost": [[0, 2.0], [1, 1.0], [2, 99.0]]})  # 2 is not over yet
    results = Results(every=1, keep=9)
    results.produce(np.arange(3), np.array([8, 9, 5]))
    assert manager.instant_requirement(results, clock=2) == pytest.approx(wanted)


@pytest.mark.parametrize(("calibrate", "slack"), [(True, 3), (False, 1)])
def test_without_calibration_the_model_alone_decides(calibrate, slack):
    # curve .42 .68 .855 1 at K = 0 to 3. Γ = .6 needs K = 1; the last period lost so much that the
    # next interval has to lose nothing
    goal = sw.Recall(0.6, over=3, every=1, granularity=1, model="eqsel", calibrate=calibrate)
    manager = controller_for(query(goal))
    statistics = manager.statistics(query(goal))
    statistics.delays.histogram[:, :4] = [6, 2, 1, 1]
    statistics.delays.top = 3
    manager.resume({"lost": [[0, 9.0], [1, 9.0]]})
    statistics.results.produce(np.arange(2), np.array([1, 1]))
    assert manager.next_slack(Interval(2, 0, 2, (2, 2), statistics)) == slack


def test_adwin_watches_the_logarithm_of_delays_or_the_delays():
    # delays of 0, 1, 2 and at least 4095 steps of 10
    for adwin, signal in (("log", np.log([1, 2, 3, 4096]) / np.log(4096)),
                          ("delay", np.array([0, 1, 2, 4095]) / 4095)):  # fmt: skip
        delays = Delays(1, granularity=10, every=100, adwin=adwin)
        log = Log()
        first, end = log.append(np.arange(4), np.zeros(4, int), [np.zeros(4, np.int32)])
        log.records().delay[first:end] = [0, 10, 11, 999_999]
        delays.arrive(first, end, 999_999, log.records())
        delays.close(100)
        [[chunk]] = delays._adwin[0].rows
        assert (chunk.size, chunk.mean) == (4, pytest.approx(signal.mean()))
        assert chunk.spread == pytest.approx(4 * signal.var())


def test_the_largest_delay_is_that_of_the_adwin_windows():
    # ten intervals with delays of 300, then fifty without: MaxD^H ends at 0, Max-K-slack's at 300
    delays, log, found = Delays(1, granularity=10, every=100), Log(), []
    for n in range(60):
        first, end = log.append(np.arange(20), np.zeros(20, int), [np.zeros(20, np.int32)])
        log.records().delay[first:end] = 300 if n < 10 else 0
        delays.arrive(first, end, 300, log.records())
        delays.close(100 * (n + 1))
        found.append(delays.largest)
    assert set(found[:10]) == {30} and found[-1] == 0


# ---- ours


def test_what_the_last_period_left_over_may_be_lost_in_the_next():
    # P = 40, L = 8, W = 2: three quarters of P are still judged, of which half is made up for
    controller = controller_for(
        query(sw.Recall(0.75, over=40, every=8, granularity=1, model="measured"))
    )

    def allowed(spent, margin=0.0, scale=1.0):
        return controller._allowed(Measured(scale, margin, spent))

    assert allowed(spent=0.25) == pytest.approx(0.25)
    assert allowed(spent=0.0) == pytest.approx(0.25 + 3 / 8 * 0.25)
    assert allowed(spent=0.5) == pytest.approx(0.25 - 3 / 8 * 0.25)
    assert allowed(spent=1.0) == pytest.approx(0.025)  # a tenth, however much was overspent
    assert allowed(spent=0.25, margin=2.0) == pytest.approx((1.25**0.5 - 1) ** 2)  # x + 2 √x = 1/4
    assert allowed(spent=0.25, scale=2.0) == pytest.approx(0.125)  # twice what the model says
    assert allowed(spent=0.25, scale=0.5) == pytest.approx(0.5)  # half of what it says


# ---- baselines


def delays_of(goal, a, b):
    """A controller's K when the delays of two streams are these."""
    controller = controller_for(query(goal))
    statistics = controller.statistics(query(goal))
    for histogram, delays in zip(statistics.delays.histogram, (a, b), strict=True):
        histogram[:] = np.bincount([-(-d // 10) for d in delays], minlength=BUCKETS)

    class Interval:
        slack = 0

    Interval.statistics = statistics
    return controller.next_slack(Interval)


@pytest.mark.parametrize(
    ("share", "slack"), [(0.5, 0), (0.6, 10), (0.7, 20), (0.9, 20), (0.91, 300), (1.0, 300)]
)
def test_input_quantile(share, slack):
    # both streams together: five of no delay, then 1, 11, 15, 20 and 291 ms
    assert delays_of(sw.InputQuantile(share), [0, 0, 0, 1, 291], [0, 0, 11, 15, 20]) == slack


def ticking(lag):
    """An event each 10 ms that arrives `lag` later."""
    ts = np.arange(0, 5000, 10)
    return pa.table({"ts": ts, "k": np.zeros_like(ts), "arr": ts + lag})


@pytest.mark.parametrize(("limit", "slack"), [(250, 140), (110, 0), (40, 0)])
def test_latency_leaves_what_the_lead_does_not_take(limit, slack):
    # a leads by 110 when its events come: that of b, 100 behind, is not there yet
    goal = sw.Latency(limit, every=100, granularity=10)
    run = query(goal).replay({"a": ticking(0), "b": ticking(100)}, arrival="arr")
    changes = run.slack["k"].to_pylist()
    assert changes[0] == limit  # nothing is known of leads yet
    assert changes[-1] == slack


def test_without_synchronizer_the_slower_stream_is_late():
    # a  4 5     b  3 4 5, each arriving behind a's 5: 3 and 4 are late, 5 meets 4 and 5
    a = pa.table({"ts": [4, 5], "k": [0, 0], "arr": [1, 2]})
    b = pa.table({"ts": [3, 4, 5], "k": [0, 0, 0], "arr": [3, 4, 5]})
    with_, without = (
        query(sw.NoSlack(synchronize=s)).replay({"a": a, "b": b}, arrival="arr")
        for s in (True, False)
    )
    assert without.results["b_ts"].to_pylist() == [5, 5]
    assert without.late["ts"].to_pylist() == [3, 4]
    assert without.late["lost"].to_pylist() == [2, 2]
    assert with_.results.num_rows == 6
    assert with_.late.num_rows == 0
